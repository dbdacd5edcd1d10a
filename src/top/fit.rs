//! Makes text fit the columns of a screen: without signs of doubtful width, and in several lines.
//!
//! In: text that `make_printable` has passed, or that of this program. Out: text whose width all terminals agree on, so that
//! nothing that an agent writes shifts what stands beside it.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::terminal::take_columns;

/// The marks without a width, such as accents, that a sign bears at most: a heap of them reaches into other lines.
const MARKS: usize = 4;

/// How far lines that go on are indented at most.
const INDENT: usize = 20;

/// The text without signs about whose width terminals disagree: what joins or modifies others goes, and the halves of a flag
/// become letters. `unicode` says whether the terminal has more signs than ASCII.
pub(super) fn plain_text(text: &str, unicode: bool) -> String {
    let plain = |sign: char| match sign {
        '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2064}' | '\u{feff}' => None,
        '\u{fe00}'..='\u{fe0f}' | '\u{1f3fb}'..='\u{1f3ff}' | '\u{e0000}'..='\u{e0fff}' => None,
        '\u{1f1e6}'..='\u{1f1ff}' => char::from_u32(u32::from(sign) - 0x1_f1e6 + u32::from('A')),
        '\t' => Some(' '),
        _ => Some(sign),
    };
    let mut marks = 0;
    let is_bearable = |sign: &char| {
        marks = if sign.width() == Some(0) { marks + 1 } else { 0 };
        marks <= MARKS
    };
    let signs = text.chars().filter_map(plain).filter(is_bearable);
    if unicode { signs.collect() } else { signs.map(to_ascii).collect() }
}

fn to_ascii(sign: char) -> char {
    match sign {
        _ if sign.is_ascii() => sign,
        '…' => '~',
        '→' | '▸' => '>',
        '─' | '━' => '-',
        '│' | '┃' => '|',
        '┌' | '┐' | '└' | '┘' | '├' | '┤' | '┬' | '┴' | '┼' => '+',
        '●' => '*',
        '○' | '◌' => 'o',
        '✓' => '+',
        '✗' => 'x',
        '◆' => '!',
        '■' => '#',
        '█' => '#',
        '░' => '.',
        _ => '?',
    }
}

/// The text in lines of this many columns, broken between words where that is possible; lines that go on are indented as
/// the first.
pub(super) fn wrap_text(text: &str, width: usize) -> Vec<String> {
    let blanks = text.chars().take_while(|sign| *sign == ' ').count();
    let indent = " ".repeat(blanks.min(INDENT).min(width / 2));
    let room = width.saturating_sub(indent.len()).max(1);
    let mut rest = text.trim_start_matches(' ').trim_end();
    let mut lines = Vec::new();
    // Every round takes at least one sign of the rest, so the loop ends also where `room` is too narrow for it.
    while rest.width() > room {
        let taken = take_columns(rest, room);
        let end = match rest[taken.len()..].starts_with(' ') {
            true => taken.len(),
            false => taken.rfind(' ').filter(|end| *end > 0).unwrap_or(taken.len()),
        };
        // A sign that is wider than the screen stands alone.
        let end = if end == 0 { rest.chars().next().map_or(rest.len(), char::len_utf8) } else { end };
        lines.push(format!("{indent}{}", rest[..end].trim_end()));
        rest = rest[end..].trim_start_matches(' ');
    }
    if !rest.is_empty() || lines.is_empty() {
        lines.push(format!("{indent}{rest}").trim_end().to_owned());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_goes_on_below_between_words() {
        assert_eq!(wrap_text("one two three", 8), ["one two", "three"]);
        assert_eq!(wrap_text("  one two three", 8), ["  one", "  two", "  three"]);
        assert_eq!(wrap_text("abcdefghij k", 4), ["abcd", "efgh", "ij k"]);
        assert_eq!(wrap_text("", 4), [""]);
        assert_eq!(wrap_text("界界界", 1), ["界", "界", "界"]);
        let text = "a word, another, and a_very_long_word_indeed that is followed by one";
        for width in 1..80 {
            let lines = wrap_text(text, width);
            assert!(lines.iter().all(|line| line.width() <= width), "{width}: {lines:?}");
            let letters = |text: &str| text.replace(' ', "");
            assert_eq!(letters(&lines.concat()), letters(text), "{width}");
        }
    }

    #[test]
    fn signs_of_doubtful_width_go() {
        let family = "👩\u{200d}👧 👍\u{1f3fd} ❤\u{fe0f} 🇩🇪 e\u{301}\tz";
        assert_eq!(plain_text(family, true), "👩👧 👍 ❤ DE e\u{301} z");
        assert_eq!(plain_text(&format!("e{}x", "\u{301}".repeat(500)), true), format!("e{}x", "\u{301}".repeat(MARKS)));
        assert_eq!(plain_text("✓ é → …", false), "+ ? > ~");
    }
}
