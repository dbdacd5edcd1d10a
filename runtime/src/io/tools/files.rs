//! `file_read` and `file_write`.

use std::fmt::Write as _;
use std::io::Read;

use super::arguments::Arguments;
use super::result::GIVEN;
use crate::io::confine::Folder;
use crate::types::secrets::Secrets;
use crate::types::visible_text::visible;

/// The bytes of a file that is read at most.
pub(super) const LARGEST: u64 = 10 * 1024 * 1024;

/// The bytes that are written in one call at most.
pub(super) const LONGEST: usize = 1024 * 1024;

/// The lines and characters that can be counted to.
const FAR: u64 = 100_000_000;

/// What shows that a file is no text, in its first bytes.
const LOOKED_AT: usize = 8 * 1024;

/// Reads a part of a text file, of at most [`GIVEN`] characters, which ends with a line where one ends in it.
pub(super) fn read(folder: &Folder, mut arguments: Arguments, secrets: &Secrets) -> Result<String, String> {
    let path = arguments.text("path")?;
    let line = arguments.number("line", (1, FAR), 1)?;
    let offset = arguments.number("offset", (0, FAR), 0)?;
    arguments.finish()?;
    let (bytes, size) = bytes(folder, &path, LARGEST)?.ok_or_else(|| {
        format!("`{path}` is larger than the {LARGEST} bytes that are read: look for what you need with `file_search`")
    })?;
    if is_binary(&bytes) {
        return Err(format!("`{path}` is not text ({size} bytes)"));
    }
    // A secret that the end of a part cut in two would not be seen in either.
    let text = String::from_utf8_lossy(&bytes);
    let text = visible(&secrets.redact(&text));
    if text.is_empty() {
        return Ok(format!("[`{path}` is empty]"));
    }
    part(&path, &text, line, offset)
}

fn part(path: &str, text: &str, line: u64, offset: u64) -> Result<String, String> {
    let lines = text.lines().count() as u64;
    let beyond = || format!("`{path}` has {lines} lines and ends before that place");
    let mut rest = text;
    for _ in 1..line {
        rest = rest.split_once('\n').map(|(_, rest)| rest).ok_or_else(beyond)?;
    }
    let skip = usize::try_from(offset).unwrap_or(usize::MAX);
    let start = rest.char_indices().map(|(at, _)| at).chain([rest.len()]).nth(skip).ok_or_else(beyond)?;
    // A large offset leads to another line.
    let line = line + memchr::memchr_iter(b'\n', &rest.as_bytes()[..start]).count() as u64;
    let into = rest[..start].rfind('\n').map_or(start, |newline| start - newline - 1);
    let into = rest[start - into..start].chars().count() as u64;
    let rest = &rest[start..];
    if rest.is_empty() {
        return Err(beyond());
    }
    let end = rest.char_indices().nth(GIVEN).map_or(rest.len(), |(end, _)| end);
    // Lines stay whole, unless one alone is too long.
    let end = match rest[..end].rfind('\n') {
        Some(newline) if end < rest.len() => newline + 1,
        _ => end,
    };
    let shown = &rest[..end];
    let mut note = String::new();
    if end < rest.len() {
        let newlines = memchr::memchr_iter(b'\n', shown.as_bytes()).count() as u64;
        let (next, offset) = match newlines {
            0 => (line, into + shown.chars().count() as u64),
            _ => (line + newlines, 0),
        };
        let offset = if offset > 0 { format!(" and offset={offset}") } else { String::new() };
        let _ = writeln!(note, "[from line {line} of {lines}; go on with line={next}{offset}]");
    } else if line > 1 || into > 0 {
        let _ = writeln!(note, "[from line {line} of {lines} to the end]");
    }
    Ok(format!("{note}{}", shown.strip_suffix('\n').unwrap_or(shown)))
}

/// Writes a file, or appends to it.
pub(super) fn write(folder: &Folder, mut arguments: Arguments) -> Result<String, String> {
    let path = arguments.text("path")?;
    let content = arguments.text("content")?;
    let append = arguments.flag("append")?;
    arguments.finish()?;
    if content.len() > LONGEST {
        return Err(format!(
            "`content` has {} bytes, more than the {LONGEST} of one call: append in parts",
            content.len()
        ));
    }
    let bytes = content.len();
    if append {
        let size = folder.append(&path, content.as_bytes(), LARGEST)?;
        return Ok(format!("appended {bytes} bytes to `{path}`, which has {size} now"));
    }
    Ok(match folder.write(&path, content.as_bytes())? {
        Some(before) => format!("wrote {bytes} bytes to `{path}`, which had {before}"),
        None => format!("wrote {bytes} bytes to `{path}`"),
    })
}

/// A file's bytes and their number; none where it is larger than `most`.
pub(super) fn bytes(folder: &Folder, path: &str, most: u64) -> Result<Option<(Vec<u8>, u64)>, String> {
    let (file, _) = folder.file(path)?;
    let mut bytes = Vec::new();
    // It may grow while it is read.
    let read = file.take(most + 1).read_to_end(&mut bytes);
    let size = read.map_err(|error| format!("`{path}` cannot be read: {error}"))? as u64;
    Ok((size <= most).then_some((bytes, size)))
}

pub(super) fn is_binary(bytes: &[u8]) -> bool {
    memchr::memchr(0, &bytes[..bytes.len().min(LOOKED_AT)]).is_some()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn arguments(value: &Value) -> Arguments {
        Arguments::new("file_read", value.as_object().unwrap().clone())
    }

    fn place(files: &[(&str, &[u8])]) -> (tempfile::TempDir, Folder) {
        let place = tempfile::tempdir().unwrap();
        files.iter().for_each(|(name, bytes)| std::fs::write(place.path().join(name), bytes).unwrap());
        let folder = Folder::open(place.path()).unwrap();
        (place, folder)
    }

    fn reads(folder: &Folder, value: Value) -> Result<String, String> {
        read(folder, arguments(&value), &Secrets::default())
    }

    #[test]
    fn a_file_is_read_in_parts_that_together_are_the_whole() {
        let lines: String = (1..=900).map(|line| format!("line {line} {}\n", "é".repeat(line % 17))).collect();
        let long = "ü".repeat(9_000);
        for text in [lines, long.clone(), format!("a\n{long}\nb\n")] {
            let (_place, folder) = place(&[("f", text.as_bytes())]);
            let mut whole = String::new();
            let mut next = json!({"path": "f"});
            for _ in 0..40 {
                let part = reads(&folder, next.clone()).unwrap();
                let (note, shown) = match part.strip_prefix('[') {
                    Some(rest) => rest.split_once("]\n").unwrap(),
                    None => ("", part.as_str()),
                };
                assert!(shown.chars().count() <= GIVEN);
                whole.push_str(shown);
                let Some((_, go_on)) = note.split_once("go on with line=") else { break };
                let (line, offset) = go_on.split_once(" and offset=").unwrap_or((go_on, "0"));
                if offset == "0" {
                    whole.push('\n');
                }
                next = json!({"path": "f", "line": line, "offset": offset});
            }
            assert_eq!(whole.trim_end(), text.trim_end());
        }
    }

    #[test]
    fn what_cannot_be_read_is_said() {
        let (_place, folder) =
            place(&[("empty", b""), ("binary", b"\x7fELF\0\0"), ("two", b"a\nb\n"), ("odd", b"a\xff\x1b")]);
        assert_eq!(reads(&folder, json!({"path": "empty"})).unwrap(), "[`empty` is empty]");
        assert_eq!(reads(&folder, json!({"path": "binary"})).unwrap_err(), "`binary` is not text (6 bytes)");
        assert_eq!(reads(&folder, json!({"path": "odd"})).unwrap(), "a\u{fffd}␛");
        assert_eq!(reads(&folder, json!({"path": "two", "line": 2})).unwrap(), "[from line 2 of 2 to the end]\nb");
        for far in
            [json!({"path": "two", "line": 3}), json!({"path": "two", "line": 9}), json!({"path": "two", "offset": 4})]
        {
            assert_eq!(reads(&folder, far).unwrap_err(), "`two` has 2 lines and ends before that place");
        }
    }

    #[test]
    fn a_huge_file_is_refused_without_reading_it_all() {
        let (place, folder) = place(&[]);
        let file = std::fs::File::create(place.path().join("huge")).unwrap();
        file.set_len(1 << 40).unwrap();
        assert!(reads(&folder, json!({"path": "huge"})).unwrap_err().starts_with("`huge` is larger than the 10485760"));
    }

    #[test]
    fn what_is_written_is_there_and_has_its_bounds() {
        let (place, folder) = place(&[]);
        let writes = |value: Value| write(&folder, Arguments::new("file_write", value.as_object().unwrap().clone()));
        assert_eq!(writes(json!({"path": "d/f", "content": "één"})).unwrap(), "wrote 5 bytes to `d/f`");
        assert_eq!(
            writes(json!({"path": "d/f", "content": "!", "append": true})).unwrap(),
            "appended 1 bytes to `d/f`, which has 6 now"
        );
        assert_eq!(writes(json!({"path": "d/f", "content": "x"})).unwrap(), "wrote 1 bytes to `d/f`, which had 6");
        assert_eq!(std::fs::read_to_string(place.path().join("d/f")).unwrap(), "x");
        let long = "x".repeat(LONGEST + 1);
        assert!(
            writes(json!({"path": "f", "content": long})).unwrap_err().contains("more than the 1048576 of one call")
        );
        assert_eq!(writes(json!({"path": "f"})).unwrap_err(), "`file_write` needs `content`, a text");
    }
}
