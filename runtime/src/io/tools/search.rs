//! `file_search`: the lines of files that hold a text. The text is never a pattern.

use std::fmt::Write as _;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use memchr::memmem::Finder;
use rustix::fs::FileType;

use super::arguments::Arguments;
use super::files::is_binary;
use crate::io::confine::{Entry, Folder, child, entries, parts};
use crate::types::secrets::Secrets;
use crate::types::visible_text::beginning;

/// The lines that are found at most.
const MOST: usize = 200;

/// The characters of a line that are shown.
const SHOWN: usize = 300;

/// The longest text that is looked for, in bytes.
const LONGEST: usize = 1_000;

/// What is looked at, at most: files, bytes of one, bytes of all, names in a folder, folders below one another.
const FILES: usize = 20_000;
const LARGEST: u64 = 4 * 1024 * 1024;
const ALL: u64 = 256 * 1024 * 1024;
const NAMES: usize = 20_000;
const DEEPEST: usize = 64;

/// How long is looked.
const TIME: Duration = Duration::from_secs(10);

/// Folders that hold what others made, large and rarely meant; one that is named as `path` is looked into.
const SKIPPED: [&str; 3] = [".git", "node_modules", "target"];

/// Searches a folder, or a file.
pub(super) fn search(folder: &Folder, mut arguments: Arguments, secrets: &Secrets) -> Result<String, String> {
    let text = arguments.text("text")?;
    let path = arguments.optional_text("path")?.unwrap_or_else(|| ".".to_owned());
    let ignore_case = arguments.flag("ignore_case")?;
    arguments.finish()?;
    if text.is_empty() || text.len() > LONGEST || text.contains('\n') {
        return Err(format!("`text` must be one line of 1 to {LONGEST} bytes"));
    }
    let text = if ignore_case { text.to_ascii_lowercase() } else { text };
    let mut search = Search {
        finder: Finder::new(text.as_bytes()),
        ignore_case,
        secrets,
        out: String::new(),
        found: 0,
        files: 0,
        bytes: 0,
        until: Instant::now() + TIME,
        cut: None,
    };
    let named = parts(&path)?.join("/");
    match folder.folder(&path) {
        Ok(start) => search.folders(start, &named)?,
        Err(_) => {
            let (file, _) = folder.file(&path)?;
            search.file(file.into(), &named);
        }
    }
    if search.found == 0 {
        search.out.push_str("[no line holds that text]\n");
    }
    if let Some(why) = search.cut {
        let _ = write!(search.out, "[the search ended early: {why}; name a folder or a longer text]");
    }
    Ok(search.out.trim_end().to_owned())
}

struct Search<'f> {
    finder: Finder<'f>,
    ignore_case: bool,
    secrets: &'f Secrets,
    out: String,
    found: usize,
    files: usize,
    bytes: u64,
    until: Instant,
    /// Why not everything was looked at.
    cut: Option<&'static str>,
}

impl Search<'_> {
    /// Looks into a folder and those below, with as many open as lie below one another.
    fn folders(&mut self, start: OwnedFd, named: &str) -> Result<(), String> {
        let mut open = vec![(start, named.to_owned(), None::<std::vec::IntoIter<Entry>>)];
        loop {
            let deep = open.len();
            let Some((folder, named, left)) = open.last_mut() else { return Ok(()) };
            let left = match left {
                Some(left) => left,
                None => {
                    let (entries, more) = entries(folder.as_fd(), NAMES)?;
                    self.cut = self.cut.or(more.then_some("a folder holds too many names"));
                    left.insert(entries.into_iter())
                }
            };
            let Some(Entry { name, kind }) = left.next() else {
                open.pop();
                continue;
            };
            if self.is_over() {
                return Ok(());
            }
            let path = if named.is_empty() { name.clone() } else { format!("{named}/{name}") };
            // It may be gone already, or closed to us; what is neither a file nor a folder is nothing to read.
            match kind {
                FileType::RegularFile => {
                    if let Ok(file) = child(folder.as_fd(), &name, kind) {
                        self.file(file, &path);
                    }
                }
                FileType::Directory if !SKIPPED.contains(&name.as_str()) => {
                    if deep >= DEEPEST {
                        self.cut = Some("folders lie too deep");
                    } else if let Ok(below) = child(folder.as_fd(), &name, kind) {
                        open.push((below, path, None));
                    }
                }
                _ => {}
            }
        }
    }

    fn is_over(&mut self) -> bool {
        let why = match () {
            () if self.found >= MOST => Some("it found 200 lines"),
            () if self.files >= FILES => Some("it looked at 20000 files"),
            () if self.bytes >= ALL => Some("it read 256 MiB"),
            () if Instant::now() >= self.until => Some("it took 10 seconds"),
            () => None,
        };
        self.cut = why.or(self.cut);
        why.is_some()
    }

    fn file(&mut self, file: OwnedFd, path: &str) {
        self.files += 1;
        let is_regular =
            rustix::fs::fstat(&file).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
        let mut bytes = Vec::new();
        let most = LARGEST + self.secrets.longest() as u64;
        if !is_regular || std::fs::File::from(file).take(most).read_to_end(&mut bytes).is_err() || is_binary(&bytes) {
            return;
        }
        self.bytes += bytes.len() as u64;
        // As the whole: of a secret, parts of lines would show parts. Lines count as `file_read` counts them.
        let text = String::from_utf8_lossy(&bytes);
        let beyond = bytes.len().saturating_sub(usize::try_from(LARGEST).unwrap_or(usize::MAX));
        let end = text.floor_char_boundary(text.len() - beyond);
        let text = self.secrets.redact_part(&text, 0..end);
        let bytes = text.as_bytes();
        let lowered = if self.ignore_case { bytes.to_ascii_lowercase() } else { Vec::new() };
        let looked = if self.ignore_case { &lowered } else { bytes };
        let (mut from, mut line) = (0, 1);
        while let Some(at) = self.finder.find(&looked[from..]).map(|at| from + at) {
            if self.found >= MOST {
                return;
            }
            self.found += 1;
            line += memchr::memchr_iter(b'\n', &bytes[from..at]).count();
            let start = memchr::memrchr(b'\n', &bytes[..at]).map_or(0, |newline| newline + 1);
            let end = memchr::memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |newline| at + newline);
            // Of a long line, what is around the place.
            let shown = String::from_utf8_lossy(&bytes[start.max(at.saturating_sub(SHOWN / 2))..end]);
            let shown = shown.trim_start_matches('\u{fffd}').trim_end();
            let _ = writeln!(self.out, "{path}:{line}: {}", beginning(shown, SHOWN));
            // One line is told once.
            from = (end + 1).min(bytes.len());
            line += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn searches(place: &std::path::Path, value: Value) -> Result<String, String> {
        let arguments = Arguments::new("file_search", value.as_object().unwrap().clone());
        let environment = [("KEY".into(), "s3cr3t".into()), ("PEM".into(), "begin\nm1ddle\nend".into())];
        let secrets = Secrets::new(&environment.into(), &["KEY", "PEM"].into());
        search(&Folder::open(place).unwrap(), arguments, &secrets)
    }

    #[test]
    fn lines_are_found_by_plain_text_in_order() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path();
        std::fs::create_dir_all(root.join("b/c")).unwrap();
        std::fs::create_dir_all(root.join("target")).unwrap();
        std::fs::write(root.join("a"), "one a.*b a.*b\ntwo\nThree A.*B\n").unwrap();
        std::fs::write(root.join("b/c/d"), "xaab\n\na.*b").unwrap();
        std::fs::write(root.join("target/x"), "a.*b").unwrap();
        std::fs::write(root.join("binary"), "a.*b\0").unwrap();
        std::os::unix::fs::symlink("a", root.join("link")).unwrap();
        assert_eq!(searches(root, json!({"text": "a.*b"})).unwrap(), "a:1: one a.*b a.*b\nb/c/d:3: a.*b");
        assert_eq!(
            searches(root, json!({"text": "a.*B", "ignore_case": true, "path": "a"})).unwrap(),
            "a:1: one a.*b a.*b\na:3: Three A.*B"
        );
        assert_eq!(searches(root, json!({"text": "a.*b", "path": "target"})).unwrap(), "target/x:1: a.*b");
        assert_eq!(searches(root, json!({"text": "none"})).unwrap(), "[no line holds that text]");
        assert!(searches(root, json!({"text": "x", "path": "../x"})).unwrap_err().contains("`..`"));
        assert_eq!(searches(root, json!({"text": ""})).unwrap_err(), "`text` must be one line of 1 to 1000 bytes");
    }

    #[test]
    fn a_search_that_finds_much_ends_and_says_so() {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join("a"), "é".repeat(1_000) + "needle" + &"é".repeat(1_000)).unwrap();
        std::fs::write(place.path().join("b"), "needle\n".repeat(1_000)).unwrap();
        std::fs::write(place.path().join("c"), "needle\n").unwrap();
        let found = searches(place.path(), json!({"text": "needle"})).unwrap();
        assert_eq!(found.lines().count(), 201);
        assert!(found.lines().all(|line| line.chars().count() <= SHOWN + 10), "lines are short");
        assert!(found.contains("needle") && found.ends_with("it found 200 lines; name a folder or a longer text]"));
    }

    #[test]
    fn of_a_secret_no_part_is_found_or_shown() {
        let place = tempfile::tempdir().unwrap();
        let write = |name: &str, text: String| std::fs::write(place.path().join(name), text).unwrap();
        write("begins", format!("s3cr3t{}needle", "x".repeat(SHOWN / 2 - 3)));
        write("ends", format!("needle{}s3cr3t", "x".repeat(SHOWN - 9)));
        write("lines", "begin\nm1ddle\nend needle".to_owned());
        write("vast", format!("{}needle s3cr3t", "x\n".repeat(usize::try_from(LARGEST).unwrap() / 2 - 5)));
        let found = searches(place.path(), json!({"text": "needle"})).unwrap();
        assert_eq!(found.lines().count(), 4, "{found}");
        assert!(!found.contains("3t") && !found.contains("s3"), "{found}");
        assert!(found.contains("lines:1: ⟦secret:PEM⟧ needle"), "{found}");
        for part in ["cr3t", "m1d"] {
            assert_eq!(searches(place.path(), json!({"text": part})).unwrap(), "[no line holds that text]");
        }
    }
}
