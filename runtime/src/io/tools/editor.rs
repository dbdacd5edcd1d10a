//! Reads and writes files for a program that has no other access to them: a text whole and exactly as it is, or not at
//! all, in the folder of its grant.
//!
//! The rights are those of `file_read` and `file_write`, and so are the confinement and the bounds of files. Invariant:
//! a text that is read is the file's own, so that it can be written back; where it may not be shown the call is
//! refused.

use std::sync::Arc;

use swarmc_plan::Capability;

use super::files::{LARGEST, bytes, is_binary};
use super::{FILE_TIME, Grant, Toolbox};
use crate::io::confine::{Folder, missing, parts};
use crate::types::secrets::Secrets;
use crate::types::visible_text::short;

/// The bytes of text that are handed out at once, at most.
pub(crate) const HANDED: usize = 1024 * 1024;

/// Why a file was not read or written.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unread {
    /// What happened.
    pub message: String,
    /// Whether there is no such file.
    pub missing: bool,
}

/// The lines of a file that are wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lines {
    /// The first of them, from 1.
    pub from: u32,
    /// How many at most; to the end, where it is none.
    pub most: Option<u32>,
}

impl Toolbox {
    /// Whether a grant allows a built-in tool; else what is to be typed.
    pub(crate) fn lends(&self, grant: &Grant, tool: &str) -> Result<(), String> {
        let built_in = swarmc_plan::tools::built_in(tool).ok_or_else(|| format!("there is no tool `{tool}`"))?;
        self.allowed(grant).built_in(built_in).map_err(|why| {
            let able = match built_in.needs {
                Some(Capability::WriteFiles) => "; can write-files",
                Some(Capability::RunCommands) => "; can run-commands",
                _ => "",
            };
            format!("{why}; its spec allows it by `agent {} {{ tools {tool}{able} }}`", grant.agent)
        })
    }

    /// A part of a text file, exactly.
    ///
    /// # Errors
    /// Why it is not handed out.
    pub(crate) async fn text_of(&self, grant: &Grant, path: String, lines: Lines) -> Result<String, Unread> {
        let (root, secrets) = (grant.folder.clone(), Arc::clone(&self.secrets));
        let read = self.editing.blocking(FILE_TIME, move |_| {
            let unread = |message: String| Unread { missing: message == missing(&path), message };
            let folder = Folder::open(&root).map_err(unread)?;
            let text = whole(&folder, &path).map_err(unread)?;
            // Blanked it would be written back so.
            if secrets.redact(&text) != text {
                return Err(unread(format!("`{}` holds a secret of this run, and is not handed out", short(&path))));
            }
            part(&path, &text, lines).map_err(unread)
        });
        read.await.unwrap_or_else(|message| Err(Unread { message, missing: false }))
    }

    /// Writes a text file whole; missing folders are made. Says how many bytes were there before, if there was a file.
    ///
    /// # Errors
    /// Why it is not written.
    pub(crate) async fn put_text(&self, grant: &Grant, path: String, text: String) -> Result<Option<u64>, Unread> {
        let root = grant.folder.clone();
        let written = self.editing.blocking(FILE_TIME, move |_| {
            let size = text.len();
            if size as u64 > LARGEST {
                return Err(format!("`{}` would have {size} bytes, more than the {LARGEST} of a file", short(&path)));
            }
            Folder::open(&root)?.write(&path, text.as_bytes())
        });
        written.await.and_then(|written| written).map_err(|message| Unread { message, missing: false })
    }

    /// The secrets of the run, which no output shows.
    pub(crate) fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// The first `most` bytes of a text, at most, without the secrets of the run; `…` replaces the rest.
    pub(crate) fn beginning(&self, text: &str, most: usize) -> String {
        let end = text.floor_char_boundary(most);
        let around = &text[..text.floor_char_boundary(most.saturating_add(self.secrets.longest()))];
        let mut beginning = self.secrets.redact_part(around, 0..end).into_owned();
        if end < text.len() {
            beginning.push('…');
        }
        beginning
    }
}

/// Whether a path stays in its folder as far as its names say; else why not.
pub(crate) fn inside(path: &str) -> Result<(), String> {
    parts(path).map(drop)
}

/// The whole text of a file.
fn whole(folder: &Folder, path: &str) -> Result<String, String> {
    let shown = short(path);
    let (bytes, size) = bytes(folder, path, LARGEST)?
        .ok_or_else(|| format!("`{shown}` is larger than the {LARGEST} bytes of a file that is read"))?;
    match is_binary(&bytes) {
        true => Err(format!("`{shown}` is not text ({size} bytes)")),
        false => String::from_utf8(bytes).map_err(|_| format!("`{shown}` is not UTF-8 ({size} bytes)")),
    }
}

/// The lines that are wanted, with their ends.
fn part(path: &str, text: &str, Lines { from, most }: Lines) -> Result<String, String> {
    let mut lines = text.split_inclusive('\n');
    let skipped = (1..from).take_while(|_| lines.next().is_some()).count();
    if from > 1 && (skipped as u64) + 1 < u64::from(from) {
        let count = text.lines().count();
        return Err(format!("`{}` has {count} lines, and ends before line {from}", short(path)));
    }
    let mut found = String::new();
    for line in lines.take(most.map_or(usize::MAX, |most| most as usize)) {
        if found.len() + line.len() > HANDED {
            return Err(format!(
                "this part of `{}` is larger than the {HANDED} bytes that are handed out at once: read fewer lines with \
                 `line` and `limit`",
                short(path)
            ));
        }
        found.push_str(line);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str, from: u32, most: Option<u32>) -> Result<String, String> {
        part("f", text, Lines { from, most })
    }

    #[test]
    fn lines_are_handed_out_as_they_stand() {
        let text = "one\r\ntwo\n\nfour";
        assert_eq!(lines(text, 1, None).unwrap(), text);
        assert_eq!(lines(text, 0, Some(1)).unwrap(), "one\r\n");
        assert_eq!(lines(text, 2, Some(2)).unwrap(), "two\n\n");
        assert_eq!(lines(text, 4, Some(u32::MAX)).unwrap(), "four");
        assert_eq!(lines(text, 3, Some(0)).unwrap(), "");
        assert_eq!(lines("", 1, None).unwrap(), "");
        // After the last newline an editor has one more line, which is empty.
        assert_eq!(lines("one\n", 2, None).unwrap(), "");
        assert_eq!(lines(text, 6, None).unwrap_err(), "`f` has 4 lines, and ends before line 6");
        assert_eq!(lines(text, u32::MAX, None).unwrap_err(), "`f` has 4 lines, and ends before line 4294967295");
    }

    #[test]
    fn what_is_too_large_to_be_handed_out_at_once_is_handed_out_in_parts() {
        let text = "0123456789abcdef\n".repeat(100_000);
        assert!(lines(&text, 1, None).unwrap_err().contains("read fewer lines with `line` and `limit`"));
        assert_eq!(lines(&text, 90_000, Some(2)).unwrap(), "0123456789abcdef\n".repeat(2));
    }
}
