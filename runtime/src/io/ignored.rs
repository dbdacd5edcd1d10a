//! Walks of a folder that leave out what its ignore files name: `.ignore`, `.gitignore` and `.git/info/exclude`, in every
//! folder on the way; and whether one file is named by them, or by `.gitattributes` as a generated one.
//!
//! In: a folder. Out: its entries, links not followed; or a yes or no. Invariants: an ignore file is read as every other file of the
//! folder is: none that leads out of it, none that would be waited for (FIFOs), and no more than so many bytes for a walk.

use std::borrow::Cow;
use std::io::Read;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use ignore::{DirEntry, Match, WalkBuilder};

use crate::io::confine::Folder;

/// What the patterns of files say of other files.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Meaning {
    /// That they are left out.
    Ignored,
    /// That a program generates them (`linguist-generated`).
    Generated,
}

impl Meaning {
    /// The files of a folder that hold such patterns; where one decides, those behind it are not asked.
    fn files(self) -> &'static [&'static str] {
        match self {
            Meaning::Ignored => &[".ignore", ".gitignore", ".git/info/exclude"],
            Meaning::Generated => &[".gitattributes"],
        }
    }

    /// The pattern of a line, as an ignore file writes it.
    fn read_line(self, line: &str) -> Option<Cow<'_, str>> {
        let Meaning::Generated = self else { return Some(Cow::Borrowed(line)) };
        let mut words = line.split_whitespace();
        let pattern = words.next().filter(|pattern| !pattern.starts_with(['#', '!']))?;
        words.find_map(|word| match word {
            "linguist-generated" | "linguist-generated=true" => Some(Cow::Borrowed(pattern)),
            "-linguist-generated" | "linguist-generated=false" => Some(Cow::Owned(format!("!{pattern}"))),
            _ => None,
        })
    }
}

/// The bytes of ignore files that one walk reads. A file for which there is no room left counts as missing: half of it
/// could say something else.
const BYTES: u64 = 1 << 20;

/// A walk of `folder`, which lies at `path`, into what `enter` says yes to and no ignore file leaves out.
pub(crate) fn build_walk(
    path: &Path,
    folder: &Arc<Folder>,
    enter: impl Fn(&DirEntry) -> bool + Send + Sync + 'static,
) -> WalkBuilder {
    let ignored = Mutex::new(Ignored::new(folder, Meaning::Ignored));
    let root = path.to_owned();
    let mut walk = WalkBuilder::new(path);
    // The crate opens ignore files itself, and waits for a FIFO.
    walk.standard_filters(false).follow_links(false).filter_entry(move |entry| {
        let mut ignored = ignored.lock().unwrap_or_else(PoisonError::into_inner);
        entry.path().strip_prefix(&root).is_ok_and(|path| !ignored.is_ignored(path, is_folder(entry))) && enter(entry)
    });
    walk
}

/// Whether patterns of `folder`, or of those in it, name the file at `path`, or a folder that it lies in.
pub(crate) fn is_named(folder: &Arc<Folder>, path: &Path, meaning: Meaning) -> bool {
    let mut ignored = Ignored::new(folder, meaning);
    let mut above: Vec<&Path> = path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty()).collect();
    above.reverse();
    above.into_iter().any(|above| ignored.is_ignored(above, true)) || ignored.is_ignored(path, false)
}

fn is_folder(entry: &DirEntry) -> bool {
    entry.file_type().is_some_and(|kind| kind.is_dir())
}

/// What is left out, as far as a walk has come.
#[derive(Debug)]
struct Ignored {
    folder: Arc<Folder>,
    meaning: Meaning,
    /// The folders that lead to where the walk is, the outermost first; of each, its files in order.
    levels: Vec<Vec<Gitignore>>,
    /// The bytes that may still be read.
    left: u64,
}

impl Ignored {
    fn new(folder: &Arc<Folder>, meaning: Meaning) -> Ignored {
        Ignored { folder: Arc::clone(folder), meaning, levels: Vec::new(), left: BYTES }
    }

    /// Whether an entry is left out. A walk asks for every folder before it asks for what lies in it.
    fn is_ignored(&mut self, path: &Path, is_folder: bool) -> bool {
        let mut above: Vec<&Path> = path.ancestors().skip(1).collect();
        above.reverse();
        self.levels.truncate(above.len());
        for folder in &above[self.levels.len()..] {
            let level = self.meaning.files().iter().map(|name| self.read_patterns(folder, name)).collect();
            self.levels.push(level);
        }
        let matched = |file: usize| {
            let innermost = self.levels.iter().rev().map(|level| level[file].matched(path, is_folder));
            innermost.map(|matched| matched.map(|_| ())).find(|matched| !matched.is_none())
        };
        (0..self.meaning.files().len()).find_map(matched).is_some_and(|matched| matches!(matched, Match::Ignore(())))
    }

    /// The patterns of an ignore file; none where it is none.
    fn read_patterns(&mut self, folder: &Path, name: &str) -> Gitignore {
        let mut builder = GitignoreBuilder::new(folder);
        let bytes = self.read_bytes(&folder.join(name)).unwrap_or_default();
        let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&bytes);
        // What follows a line that is no text is not read.
        for line in bytes.split(|&byte| byte == b'\n').map_while(|line| std::str::from_utf8(line).ok()) {
            // A pattern that is none leaves nothing out, and says nothing of the others.
            if let Some(pattern) = self.meaning.read_line(line.strip_suffix('\r').unwrap_or(line)) {
                let _ = builder.add_line(None, &pattern);
            }
        }
        builder.build().unwrap_or_else(|_| Gitignore::empty())
    }

    fn read_bytes(&mut self, path: &Path) -> Option<Vec<u8>> {
        let (file, stat) = self.folder.file(path.to_str()?).ok()?;
        if u64::try_from(stat.st_size).is_ok_and(|size| size > self.left) {
            return None;
        }
        let mut bytes = Vec::new();
        // It may have grown since, or say nothing of its size.
        let room = self.left;
        let read = file.take(room + 1).read_to_end(&mut bytes).ok()? as u64;
        self.left = room.saturating_sub(read);
        (read <= room).then_some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    /// A folder with these files.
    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, text).expect("a file");
        }
        folder
    }

    /// The files called `f…` that a walk comes to.
    fn check(root: &Path, expected: &str) {
        let folder = Arc::new(Folder::open(root).expect("a folder"));
        let entries = build_walk(root, &folder, |_| true).build().map(|entry| entry.expect("an entry"));
        let files = entries.filter(|entry| !is_folder(entry) && entry.file_name().to_string_lossy().starts_with('f'));
        let mut paths: Vec<String> =
            files.map(|file| file.path().strip_prefix(root).expect("in it").display().to_string()).collect();
        paths.sort();
        assert_eq!(paths.join(" "), expected);
    }

    #[test]
    fn ignore_files_of_every_folder_count_and_the_innermost_decides() {
        let files = [
            (".gitignore", "\u{feff}*.log\r\n/made/\n\n# f\n[\nfoo/bar\n"),
            ("f", ""),
            ("f.log", ""),
            ("made/f", ""),
            ("a/made/f", ""),
            ("a/.gitignore", "!f.log\n/only\n"),
            ("a/f.log", ""),
            ("a/b/f.log", ""),
            ("a/only/f", ""),
            ("a/b/only/f", ""),
            ("b/f.log", ""),
            ("foo/bar/f", ""),
            ("b/foo/bar/f", ""),
        ];
        let place = folder(&files);
        check(place.path(), "a/b/f.log a/b/only/f a/f.log a/made/f b/foo/bar/f f");
    }

    #[test]
    fn an_ignore_file_decides_before_that_of_git_and_that_before_what_is_excluded() {
        let files = [
            (".ignore", "!f1\nf4\n"),
            ("a/.gitignore", "f1\n!f2\n!f4\nf5\n"),
            (".git/info/exclude", "f2\nf3\n"),
            ("a/f1", ""),
            ("a/f2", ""),
            ("a/f3", ""),
            ("a/f4", ""),
            ("a/f5", ""),
        ];
        let place = folder(&files);
        check(place.path(), "a/f1 a/f2");
    }

    #[test]
    fn what_is_no_file_of_the_folder_is_neither_waited_for_nor_read() {
        let outside = folder(&[("patterns", "f\n")]);
        let place = folder(&[("a/f", ""), ("b/f", ""), ("c/f", ""), ("d/f", ""), ("e/.git", "gitdir: /"), ("e/f", "")]);
        let at = |path: &str| place.path().join(path);
        let pipe = |path: &str| mknodat(CWD, at(path), FileType::Fifo, Mode::from_raw_mode(0o600), 0).expect("a pipe");
        [".gitignore", ".ignore", "a/.gitignore"].into_iter().for_each(pipe);
        fs::create_dir_all(at("d/.git/info")).expect("a folder");
        pipe("d/.git/info/exclude");
        symlink("/dev/zero", at("b/.gitignore")).expect("a link");
        symlink(outside.path().join("patterns"), at("c/.gitignore")).expect("a link");
        check(place.path(), "a/f b/f c/f d/f e/f");
    }

    #[test]
    fn what_there_is_no_room_for_counts_as_missing() {
        let most = "f\n".repeat(usize::try_from(BYTES).expect("it fits") / 2);
        let place = folder(&[("a/.gitignore", &format!("{most}f")), ("a/f", ""), ("b/.gitignore", "f\n"), ("b/f", "")]);
        check(place.path(), "a/f");
    }

    #[test]
    fn lines_behind_one_that_is_no_text_are_not_read() {
        let place = folder(&[("f1", ""), ("f2", "")]);
        fs::write(place.path().join(".gitignore"), b"f1\n\xff\nf2\n").expect("a file");
        check(place.path(), "f2");
    }
}
