//! `file_list`: what lies in a folder, and below it.

use std::fmt::Write as _;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, readlinkat, statat};

use super::arguments::Arguments;
use crate::io::confine::{Entry, Folder, child, entries, parts};
use crate::types::visible_text;

/// The lines of a list at most.
const MOST: usize = 1_000;

/// The names that are looked at in one folder.
const LOOKED_AT: usize = 20_000;

/// The folders below one another at most.
const DEEPEST: u64 = 8;

/// Lists a folder, sorted by name; folders end in `/`, links say where they lead, and are not followed.
pub(super) fn list(folder: &Folder, mut arguments: Arguments) -> Result<String, String> {
    let path = arguments.optional_text("path")?.unwrap_or_else(|| ".".to_owned());
    let depth = arguments.number("depth", (1, DEEPEST), 1)?;
    arguments.finish()?;
    let parts = parts(&path)?;
    let start = folder.folder(&path)?;
    let mut lines = Lines { out: String::new(), count: 0, cut: false };
    let beginning = if parts.is_empty() { String::new() } else { parts.join("/") + "/" };
    lines.folder(&start, &beginning, depth)?;
    if lines.cut {
        let _ = write!(lines.out, "[the list is cut after {} entries: name a folder in `path`]", lines.count);
    }
    match lines.out.is_empty() {
        true => Ok(format!("[`{path}` is empty]")),
        false => Ok(lines.out.trim_end().to_owned()),
    }
}

struct Lines {
    out: String,
    count: usize,
    cut: bool,
}

impl Lines {
    /// Lists one folder; what lies below comes right after it. The depth is bounded by [`DEEPEST`].
    fn folder(&mut self, folder: &OwnedFd, beginning: &str, depth: u64) -> Result<(), String> {
        let (entries, more) = entries(folder.as_fd(), LOOKED_AT)?;
        self.cut |= more;
        for Entry { name, kind } in entries {
            if self.count == MOST {
                self.cut = true;
                return Ok(());
            }
            self.count += 1;
            let shown = visible_text::visible(&name).replace('\n', "␊");
            let _ = write!(self.out, "{beginning}{shown}");
            match kind {
                FileType::Directory => self.out.push('/'),
                FileType::Symlink => {
                    let target = readlinkat(folder, name.as_str(), Vec::new());
                    let target = target.map(|target| target.to_string_lossy().into_owned()).unwrap_or_default();
                    let _ = write!(self.out, " -> {}", visible_text::short(&target));
                }
                FileType::RegularFile => {
                    let size = statat(folder, name.as_str(), AtFlags::SYMLINK_NOFOLLOW).map_or(0, |stat| stat.st_size);
                    let _ = write!(self.out, " ({size} bytes)");
                }
                _ => self.out.push_str(" (no regular file)"),
            }
            self.out.push('\n');
            // Git's own files concern no agent, and are large.
            if kind == FileType::Directory && depth > 1 && name != ".git" {
                // It may be gone already, or closed to us.
                if let Ok(below) = child(folder.as_fd(), &name, kind) {
                    self.folder(&below, &format!("{beginning}{shown}/"), depth - 1)?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn lists(place: &std::path::Path, value: Value) -> Result<String, String> {
        list(&Folder::open(place).unwrap(), Arguments::new("file_list", value.as_object().unwrap().clone()))
    }

    #[test]
    fn a_folder_is_listed_by_name_and_no_link_is_followed() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path();
        std::fs::create_dir_all(root.join("src/deep")).unwrap();
        std::fs::write(root.join("src/main.rs"), "fn main() {}").unwrap();
        std::fs::write(root.join("src/deep/x"), "").unwrap();
        std::os::unix::fs::symlink("/etc", root.join("etc")).unwrap();
        assert_eq!(lists(root, json!({})).unwrap(), "etc -> /etc\nsrc/");
        assert_eq!(
            lists(root, json!({"depth": 3})).unwrap(),
            "etc -> /etc\nsrc/\nsrc/deep/\nsrc/deep/x (0 bytes)\nsrc/main.rs (12 bytes)"
        );
        assert_eq!(lists(root, json!({"path": "./src"})).unwrap(), "src/deep/\nsrc/main.rs (12 bytes)");
        assert_eq!(lists(root, json!({"path": "etc"})).unwrap_err(), "`etc` leads out of the working folder");
        assert!(lists(root, json!({"path": "src/deep/x"})).unwrap_err().contains("no folder"));
    }

    #[test]
    fn a_long_list_is_cut_and_says_so() {
        let place = tempfile::tempdir().unwrap();
        assert_eq!(lists(place.path(), json!({})).unwrap(), "[`.` is empty]");
        for number in 0..1_200 {
            std::fs::write(place.path().join(format!("{number:04}\n")), "").unwrap();
        }
        let list = lists(place.path(), json!({})).unwrap();
        assert_eq!(list.lines().count(), 1_001);
        assert!(list.starts_with("0000␊ (0 bytes)\n"), "{list:.60}");
        assert!(list.ends_with("[the list is cut after 1000 entries: name a folder in `path`]"));
    }
}
