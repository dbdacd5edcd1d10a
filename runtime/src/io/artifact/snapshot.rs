//! What changed in a folder that no version control knows: its files before and after, side by side.
//!
//! In: a folder, twice. Out: a unified diff. What ignore files name is left out, links are not followed, and neither
//! more nor larger files are read than one look takes in. Invariant: only what both looks came to is compared.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::diff::Changes;
use super::read_budget::{ReadBudget, Skip, describe_large};
use super::version::{Version, diff_versions};
use crate::io::confine::Folder;
use crate::io::ignored::build_walk;

/// The files of a folder.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Snapshot {
    /// In the order in which they are met.
    files: BTreeMap<PathBuf, Seen>,
    /// Where there was no room left; nothing from there on was looked at.
    end: Option<PathBuf>,
    /// What could not be taken in, in words.
    omitted: Vec<String>,
}

/// A file as it was seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Seen {
    Text(Version),
    NoText(Version),
    /// It is too large to be compared.
    Large,
}

impl Snapshot {
    /// The folder as it is now, without what lies in `apart`.
    pub(super) fn take(folder: &Path, apart: Option<&Path>) -> Snapshot {
        let apart = apart.map(Path::to_owned);
        let mut snapshot = Snapshot::default();
        let Ok(root) = Folder::open(folder) else {
            snapshot.omitted.push("all files: the folder cannot be opened".to_owned());
            return snapshot;
        };
        let root = Arc::new(root);
        let mut room = ReadBudget::default();
        let walk = build_walk(folder, &root, move |entry| {
            entry.file_name() != ".git" && Some(entry.path()) != apart.as_deref()
        })
        .sort_by_file_name(std::cmp::Ord::cmp)
        .build();
        for entry in walk.filter_map(Result::ok).filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file())) {
            let Ok(path) = entry.path().strip_prefix(folder) else { continue };
            // From here on the looks before and after might come to different files.
            if room.is_full() {
                let place = path.display();
                snapshot.omitted.push(format!("the files from `{place}` on: there are too many to compare"));
                snapshot.end = Some(path.to_owned());
                break;
            }
            let Some(name) = path.to_str() else {
                snapshot.omitted.push("files whose names are no text".to_owned());
                continue;
            };
            let seen = match room.admit_file(&root, name) {
                Ok(Some(version)) if version.is_text() => Seen::Text(version),
                Ok(Some(version)) => Seen::NoText(version),
                Err(Skip::Large) => Seen::Large,
                // It was removed while the folder was walked, or is no file any more.
                Ok(None) | Err(Skip::Full | Skip::Other) => continue,
            };
            snapshot.files.insert(path.to_owned(), seen);
        }
        snapshot.omitted.sort_unstable();
        snapshot.omitted.dedup();
        snapshot
    }

    /// What is different in `after`.
    pub(super) fn changes(&self, after: &Snapshot) -> Changes {
        let mut changes = Changes { omitted: self.omitted.clone(), ..Changes::default() };
        changes.omitted.extend(after.omitted.iter().cloned());
        let mut paths: Vec<&PathBuf> = self.files.keys().chain(after.files.keys()).collect();
        paths.sort_unstable();
        paths.dedup();
        let ends = [&self.end, &after.end];
        let (mut too_large, mut no_text) = (0, 0);
        for path in paths.into_iter().filter(|path| ends.iter().all(|end| end.as_ref().is_none_or(|end| *path < end))) {
            let sides = [self.files.get(path), after.files.get(path)];
            let [old, new] = sides.map(|seen| match seen {
                Some(Seen::Text(version)) => Some(version),
                _ => None,
            });
            if sides.contains(&Some(&Seen::Large)) {
                // Whether it has changed is not known, unless it was another one before.
                too_large += 1;
                changes.files += u32::from(sides[0] != sides[1]);
            } else if sides.iter().any(|seen| matches!(seen, Some(Seen::NoText(_)))) {
                no_text += usize::from(sides[0] != sides[1]);
                changes.files += u32::from(sides[0] != sides[1]);
            } else if let Some(told) = diff_versions(&path.to_string_lossy(), old, new) {
                changes.push(&told);
            }
        }
        changes.omitted.extend(describe_large(too_large));
        if no_text > 0 {
            changes.omitted.push(format!("{no_text} files that changed and are no text"));
        }
        changes.omitted.sort_unstable();
        changes.omitted.dedup();
        changes
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::super::read_budget::FILES;
    use super::*;

    #[test]
    fn files_that_are_new_changed_and_gone_are_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("a file");
        fs::create_dir(folder.path().join("apart")).expect("a folder");
        write("kept.txt", "one\ntwo\n");
        write("gone.txt", "old\n");
        write(".gitignore", "*.log\n");
        write("noise.log", "1");
        let apart = folder.path().join("apart");
        write("apart/run", "1");
        let before = Snapshot::take(folder.path(), Some(&apart));
        write("apart/run", "2");
        write("kept.txt", "one\n2\n");
        write("new.txt", "fresh\n");
        write("noise.log", "2");
        write("picture", "\u{0}");
        fs::write(folder.path().join("binary"), [0xff, 0xfe]).expect("a file");
        fs::remove_file(folder.path().join("gone.txt")).expect("a file can be removed");
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join("link")).expect("a link");
        for name in ["pipe", ".ignore"] {
            mknodat(CWD, folder.path().join(name), FileType::Fifo, Mode::from_raw_mode(0o600), 0).expect("a pipe");
        }
        let changes = before.changes(&Snapshot::take(folder.path(), Some(&apart)));
        assert_eq!((changes.files, changes.added, changes.removed), (5, 2, 2), "{}", changes.text);
        assert!(changes.text.contains("--- a/kept.txt\n+++ b/kept.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"));
        assert!(changes.text.contains("--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+fresh\n"), "{}", changes.text);
        assert!(changes.text.contains("--- a/gone.txt\n+++ /dev/null\n"), "{}", changes.text);
        assert!(!changes.text.contains("passwd") && !changes.text.contains("noise"), "{}", changes.text);
        assert_eq!(changes.omitted, ["2 files that changed and are no text"]);
    }

    #[test]
    fn what_becomes_too_large_or_no_text_is_not_gone() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).expect("a file");
        write("grows", b"one\n");
        write("turns", b"one\n");
        write("picture", b"\0one");
        let before = Snapshot::take(folder.path(), None);
        write("grows", &b"x\n".repeat(1 << 20));
        write("turns", b"\xff\xfe");
        let changes = before.changes(&Snapshot::take(folder.path(), None));
        assert_eq!((changes.files, changes.text.as_str()), (2, ""));
        assert_eq!(changes.omitted, ["1 files of more than 1024 KiB", "1 files that changed and are no text"]);
    }

    #[test]
    fn only_what_both_looks_came_to_is_compared() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("a file");
        fs::create_dir(folder.path().join("f")).expect("a folder");
        write("f/x", "in a folder whose name begins another\n");
        (0..FILES).for_each(|number| write(&format!("f.{number:05}"), "same\n"));
        let before = Snapshot::take(folder.path(), None);
        write("a.txt", "new\n");
        let changes = before.changes(&Snapshot::take(folder.path(), None));
        assert_eq!((changes.files, changes.added, changes.removed), (1, 1, 0), "{}", changes.text);
        assert!(changes.text.contains("+++ b/a.txt") && changes.omitted.len() == 2, "{:?}", changes.omitted);
    }

    #[test]
    fn what_is_told_can_be_applied() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("a file");
        let odd = "with \"quotes\" and\ta tab";
        write("kept", "one\n");
        write("gone", "one\n");
        let before = Snapshot::take(folder.path(), None);
        write("kept", "two");
        write(odd, "new\n");
        write("empty", "");
        fs::remove_file(folder.path().join("gone")).expect("it is there");
        let changes = before.changes(&Snapshot::take(folder.path(), None));
        write("kept", "one\n");
        write("gone", "one\n");
        [odd, "empty"].iter().for_each(|name| fs::remove_file(folder.path().join(name)).expect("it is there"));
        let place = tempfile::tempdir().expect("a folder");
        let patch = place.path().join("patch");
        fs::write(&patch, &changes.text).expect("a file");
        let mut git = Command::new("git");
        let output = git.arg("apply").arg(&patch).current_dir(folder.path()).output().expect("git starts");
        assert!(output.status.success(), "{}\n{}", String::from_utf8_lossy(&output.stderr), changes.text);
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).ok();
        assert_eq!(
            [read("kept"), read(odd), read("empty"), read("gone")].map(|text| text.unwrap_or("none".to_owned())),
            ["two", "new\n", "", "none"]
        );
    }
}
