//! What changed in a folder that no version control knows: its text files before and after, side by side.
//!
//! In: a folder, twice. Out: a unified diff. What ignore files name is left out, links are not followed, and neither
//! more nor larger files are read than is declared here.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use ignore::WalkBuilder;

use super::diff::{Changes, LARGEST_FILE};
use super::version::unified;

/// The files of a folder that are compared at most, and the bytes of all of them together.
const FILES: usize = 5_000;
const BYTES: u64 = 32 << 20;

/// The text files of a folder.
#[derive(Debug, Default)]
pub(super) struct Snapshot {
    files: BTreeMap<String, String>,
    /// What could not be taken in, in words.
    omitted: Vec<String>,
}

impl Snapshot {
    /// The folder as it is now, without what lies in `apart`.
    pub(super) fn take(folder: &Path, apart: &Path) -> Snapshot {
        let apart = apart.to_owned();
        let mut snapshot = Snapshot::default();
        let (mut bytes, mut large) = (0, 0);
        let walk = WalkBuilder::new(folder)
            .hidden(false)
            .require_git(false)
            .git_global(false)
            .parents(false)
            .filter_entry(move |entry| entry.file_name() != ".git" && entry.path() != apart)
            .sort_by_file_name(std::cmp::Ord::cmp)
            .build();
        for entry in walk.filter_map(Result::ok).filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file())) {
            let Ok(path) = entry.path().strip_prefix(folder) else { continue };
            let size = entry.metadata().map_or(0, |metadata| metadata.len());
            if size > LARGEST_FILE {
                large += 1;
                continue;
            }
            if snapshot.files.len() == FILES || bytes + size > BYTES {
                let place = path.display();
                snapshot.omitted.push(format!("the files from `{place}` on: there are too many to compare"));
                break;
            }
            // One that is no text is not compared.
            let Ok(text) = fs::read(entry.path()).map(String::from_utf8) else { continue };
            let Ok(text) = text else { continue };
            bytes += text.len() as u64;
            snapshot.files.insert(path.to_string_lossy().into_owned(), text);
        }
        if large > 0 {
            snapshot.omitted.push(format!("{large} files of more than {} KiB", LARGEST_FILE >> 10));
        }
        snapshot
    }

    /// What is different in `after`.
    pub(super) fn changes(&self, after: &Snapshot) -> Changes {
        let mut changes = Changes { omitted: after.omitted.clone(), ..Changes::default() };
        let mut paths: Vec<&String> = self.files.keys().chain(after.files.keys()).collect();
        paths.sort_unstable();
        paths.dedup();
        for path in paths {
            let (old, new) = (self.files.get(path), after.files.get(path));
            if old != new {
                changes.push(&told(path, old.map(String::as_str), new.map(String::as_str)));
            }
        }
        changes
    }
}

/// The difference of one file, as Git would write it.
fn told(path: &str, old: Option<&str>, new: Option<&str>) -> String {
    let name = |side: char, there: bool| if there { format!("{side}/{path}") } else { "/dev/null".to_owned() };
    let (from, to) = (name('a', old.is_some()), name('b', new.is_some()));
    let lines = unified((&from, &to), old.unwrap_or_default(), new.unwrap_or_default());
    format!("diff --git a/{path} b/{path}\n{lines}")
}

#[cfg(test)]
mod tests {
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
        let before = Snapshot::take(folder.path(), &apart);
        write("apart/run", "2");
        write("kept.txt", "one\n2\n");
        write("new.txt", "fresh\n");
        write("noise.log", "2");
        write("picture", "\u{0}");
        fs::write(folder.path().join("binary"), [0xff, 0xfe]).expect("a file");
        fs::remove_file(folder.path().join("gone.txt")).expect("a file can be removed");
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join("link")).expect("a link");
        let changes = before.changes(&Snapshot::take(folder.path(), &apart));
        assert_eq!((changes.files, changes.added, changes.removed), (4, 3, 2), "{}", changes.text);
        assert!(changes.text.contains("--- a/kept.txt\n+++ b/kept.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"));
        assert!(changes.text.contains("--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+fresh\n"), "{}", changes.text);
        assert!(changes.text.contains("--- a/gone.txt\n+++ /dev/null\n"), "{}", changes.text);
        assert!(!changes.text.contains("passwd") && !changes.text.contains("noise"), "{}", changes.text);
    }
}
