//! Directives that are not closed, or only by half of `>>`.
//!
//! In: a text and where a directive starts in it. Out: where it ends all the same, and the problem that says so.

use std::ops::Range;

use super::default::nested_default;
use super::directive::{MAX_LENGTH, clip_word, has_directive_shape};
use super::{Kind, Problem};
use crate::code::Code;

/// The end of a directive that one `>` closes, where all before it has a directive's shape.
pub(super) fn half_closed(text: &str, start: usize, after: usize, kind: Kind) -> Option<usize> {
    let bytes = &text.as_bytes()[..text.len().min(after + MAX_LENGTH)];
    let length = find_end(&bytes[after..])?;
    let end = after + length;
    let next = bytes.get(end + 1);
    if bytes[end] != b'>' || next == Some(&b'>') || !has_directive_shape(&text[after..end]) {
        return None;
    }
    // `cat <<plan>out.md` is a here-document, `<<file> <<dir>` are words to be filled in.
    let stands_alone = matches!(kind, Kind::Read(root) if root.required_name().is_none());
    let redirected = next.is_some_and(|byte| byte.is_ascii_alphanumeric() || b"/~$&_".contains(byte));
    let here_string = start > 0 && bytes[start - 1] == b'<';
    let bare = length == 0;
    (!bare || stands_alone && !redirected && !here_string).then_some(end + 1)
}

/// The first `>`, `<` or end of the line that does not stand in a text in quotes; where those are not closed, the first.
fn find_end(bytes: &[u8]) -> Option<usize> {
    let ends = |byte: &u8| matches!(byte, b'>' | b'<' | b'\n' | b'\r');
    let mut quoted = false;
    for (index, byte) in bytes.iter().enumerate() {
        match byte {
            b'"' if index == 0 || bytes[index - 1] != b'\\' => quoted = !quoted,
            b'\n' | b'\r' if quoted => break,
            _ if ends(byte) && !quoted => return Some(index),
            _ => {}
        }
    }
    bytes.iter().position(ends)
}

pub(super) fn half_closed_problem(text: &str, range: Range<usize>) -> Problem {
    let shown = clip_word(&text[range.clone()]);
    let end = range.end;
    Problem::new(Code::BadDirective, range, format!("`{shown}` is closed by one `>`"), "two are needed")
        .help(format!("write `{shown}>`, or `\\{shown}` for the text itself"))
        .fix("write `>>`", end..end, ">", true)
}

/// The problem of a directive that starts at `start`, whose word ends at `after`, and that no `>` closes.
pub(super) fn unclosed_directive(text: &str, start: usize, after: usize) -> Problem {
    let bytes = &text.as_bytes()[after..];
    let part = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-.:/".contains(byte);
    let length = bytes.iter().take(MAX_LENGTH).take_while(|byte| part(byte)).count();
    // A full stop ends the sentence, and not the name.
    let path = text[after..after + length].trim_end_matches(['.', ':', '-', '/']);
    let (mut end, mut certain) = (after + path.len(), true);
    let rest = &text.as_bytes()[end..text.len().min(end + MAX_LENGTH)];
    let stop = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r' | b'<')).unwrap_or(rest.len());
    // Where the limit falls into a character, the line is longer than a directive may be.
    let line = text.get(end..end + stop).unwrap_or_default().trim_end();
    if line.trim_start().starts_with('|') {
        certain = has_directive_shape(&text[after..end + line.len()]);
        end += if certain { line.len() } else { 0 };
    }
    let shown = clip_word(&text[start..end]);
    if let Some(problem) = nested_default(text, start..end) {
        return problem;
    }
    Problem::new(Code::BadDirective, start..end, format!("`{shown}` is not closed"), "no `>>` follows on this line")
        .help(format!("write `{shown}>>`, or `\\{shown}` for the text itself"))
        .fix("write `>>`", end..end, ">>", certain)
}
