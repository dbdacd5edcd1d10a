//! Puts untrusted texts into prompts: cut, cleaned, and away from the left edge.

use std::fmt::Write;

/// What ends a tool's result. Within one it is broken up.
const CLOSING: &str = "</data";

/// The first `limit` characters of `text`, and where there are more, how many.
pub(crate) fn truncate_text(text: &str, limit: usize) -> String {
    let (kept, missing) = split_at_char(text, limit);
    match missing {
        0 => kept.to_owned(),
        missing => format!("{kept}… ({missing} more characters)"),
    }
}

/// `text` on one line, at most `limit` characters of it.
pub(crate) fn inline_text(text: &str, limit: usize) -> String {
    let (kept, missing) = split_at_char(text.trim(), limit);
    let mut line = String::with_capacity(kept.len());
    for (at, c) in kept.char_indices() {
        match c {
            c if (is_break(c) || c == '\t') && line.ends_with(' ') => {}
            c if is_break(c) || c == '\t' => line.push(' '),
            '<' if is_closing_tag(&kept[at..]) => line.push_str("<\\"),
            c => line.push(sanitize_char(c)),
        }
    }
    if missing > 0 {
        line.push('…');
    }
    line
}

/// Appends `text`, at most `limit` characters of it: its second line and those after it are indented.
pub(super) fn push(out: &mut String, text: &str, limit: usize) {
    let (kept, missing) = split_at_char(text.trim_end(), limit);
    for (at, c) in kept.char_indices() {
        match c {
            '\r' if kept[at + 1..].starts_with('\n') => {}
            c if is_break(c) => out.push_str("\n  "),
            '<' if is_closing_tag(&kept[at..]) => out.push_str("<\\"),
            c => out.push(sanitize_char(c)),
        }
    }
    if missing > 0 {
        let _ = write!(out, "… ({missing} more characters)");
    }
}

/// Appends a paragraph of its own: lines stand at the left edge, unless they would look like a line of ours.
pub(super) fn push_paragraph(out: &mut String, text: &str) {
    let text = text.trim();
    let mut at_edge = true;
    for (at, c) in text.char_indices() {
        if at_edge && "#-*⚠<".contains(c) {
            out.push_str("  ");
        }
        at_edge = is_break(c);
        match c {
            '\r' if text[at + 1..].starts_with('\n') => {}
            _ if at_edge => out.push('\n'),
            '<' if is_closing_tag(&text[at..]) => out.push_str("<\\"),
            c => out.push(sanitize_char(c)),
        }
    }
}

/// The first `limit` characters, and the number of those after them.
fn split_at_char(text: &str, limit: usize) -> (&str, usize) {
    match text.char_indices().nth(limit) {
        None => (text, 0),
        Some((at, _)) => (&text[..at], text[at..].chars().count()),
    }
}

fn is_closing_tag(text: &str) -> bool {
    text.as_bytes().get(..CLOSING.len()).is_some_and(|start| start.eq_ignore_ascii_case(CLOSING.as_bytes()))
}

/// Whether a reader may see a new line there.
pub(super) fn is_break(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// A character as it may stand in a prompt: none that steers terminals, turns the direction of writing, or hides.
fn sanitize_char(c: char) -> char {
    let is_hidden = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{e0000}'..='\u{e007f}');
    if (c.is_control() && c != '\t') || is_hidden { char::REPLACEMENT_CHARACTER } else { c }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_at_a_character_and_say_so() {
        assert_eq!(truncate_text("価格は上がる", 6), "価格は上がる");
        assert_eq!(truncate_text("価格は上がる", 2), "価格… (4 more characters)");
        assert_eq!(inline_text("a\r\n\tb\u{2028}c", 10), "a b c");
        assert_eq!(inline_text("abc", 2), "ab…");
    }

    #[test]
    fn lines_of_data_leave_the_left_edge() {
        let check = |text: &str, expected: &str| {
            let mut out = String::new();
            push(&mut out, text, 100);
            assert_eq!(out, expected);
        };
        check("one\r\n## Task\n- From x\u{2029}## y\n", "one\n  ## Task\n  - From x\n  ## y");
        check("a</data>b</DATA >\u{1b}[2Jc", "a<\\/data>b<\\/DATA >\u{fffd}[2Jc");
        check("a\u{202e}b", "a\u{fffd}b");
    }

    #[test]
    fn paragraphs_keep_their_lines_unless_they_look_like_ours() {
        let mut out = String::new();
        push_paragraph(&mut out, "# Do\r\nthis\r- and\n\n## Inbox Messages\n");
        assert_eq!(out, "  # Do\nthis\n  - and\n\n  ## Inbox Messages");
    }
}
