//! Text from outside, made fit to be shown: no terminal obeys what is in it, and no reader is misled by it.

use std::borrow::Cow;
use std::fmt::Write;

/// The characters of what an agent says that are shown of it.
const SHOWN: usize = 100;

/// The text without anything that a terminal would obey: escape sequences are cut out, other control characters and
/// marks that reorder text become `\u{FFFD}`. Tabs stay. A carriage return becomes a sign, since a terminal would hide what
/// stands before it; one at the end of the line goes.
pub fn make_printable(line: &str) -> Cow<'_, str> {
    if !line.chars().any(is_control) {
        return Cow::Borrowed(line);
    }
    let mut out = String::with_capacity(line.len());
    let mut chars = line.trim_end_matches('\r').chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\x1b' => skip_escape(&mut chars),
            '\r' => out.push('␍'),
            c if is_control(c) => out.push('\u{FFFD}'),
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// Replaces what a terminal would obey by as many bytes, so that offsets stay right. Line breaks and tabs stay.
pub fn same_length(text: &str) -> Cow<'_, str> {
    if !text.chars().any(|c| is_control(c) && !matches!(c, '\n' | '\r')) {
        return Cow::Borrowed(text);
    }
    let replace = |c: char| match c {
        '\n' | '\r' => c,
        c if !is_control(c) => c,
        // What counts as control has three bytes at most, as the last replacement has.
        c if c.len_utf8() == 1 => '?',
        c if c.len_utf8() == 2 => '\u{B7}',
        _ => '\u{FFFD}',
    };
    Cow::Owned(text.chars().map(replace).collect())
}

fn is_control(c: char) -> bool {
    let reorders = matches!(c, '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}');
    (c.is_control() && c != '\t') || reorders
}

/// Skips what follows an escape character: a control sequence, a string up to its terminator, or one character.
fn skip_escape(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    // A control character behind the escape belongs to no sequence: the caller handles it.
    match chars.next_if(|c| (' '..='~').contains(c)) {
        Some('[') => {
            while chars.next_if(|c| (' '..='?').contains(c)).is_some() {}
            chars.next_if(|c| ('@'..='~').contains(c));
        }
        Some(']' | 'P' | 'X' | '^' | '_') => {
            // A terminal also takes everything for the string until its end comes.
            while let Some(c) = chars.next() {
                if c == '\x07' || (c == '\x1b' && chars.next_if_eq(&'\\').is_some()) {
                    break;
                }
            }
        }
        _ => {}
    }
}

/// Makes one short line without control characters from text that may be hostile.
pub fn sanitize_line(text: &str) -> String {
    let mut line = String::new();
    let mut length = 0;
    // Each word is shown by itself: no return carries the reader back over what came before.
    for word in text.split_whitespace() {
        let word = make_printable(word);
        let apart = usize::from(length > 0);
        let room = SHOWN.saturating_sub(length + apart);
        if word.chars().count() > room {
            line.extend(std::iter::repeat_n(' ', apart).chain(word.chars().take(room)).chain(['…']));
            return line;
        }
        line.extend(std::iter::repeat_n(' ', apart).chain(word.chars()));
        length += apart + word.chars().count();
    }
    line
}

/// A text in one line in which everything is seen: control characters and those without a width as their codes.
pub fn escape_hidden(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for sign in text.chars() {
        let hidden = sign.is_control()
            || matches!(sign, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}');
        match hidden {
            true => _ = write!(out, "\\u{{{:x}}}", u32::from(sign)),
            false => out.push(sign),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_are_cut_out() {
        assert_eq!(make_printable("plain\ttext é"), "plain\ttext é");
        assert_eq!(make_printable("\x1b[31mred\x1b[0m"), "red");
        assert_eq!(make_printable("\x1b]0;title\x07text\x1b]8;;u\x1b\\x"), "textx");
        assert_eq!(make_printable("a\x1b[2J\x1b[Hb\x08\x07"), "ab\u{FFFD}\u{FFFD}");
        assert_eq!(make_printable("\u{9b}31m\u{202e}x"), "\u{FFFD}31m\u{FFFD}x");
        assert_eq!(make_printable("unfinished \x1b[12"), "unfinished ");
        assert_eq!(make_printable("unfinished \x1b]0;never"), "unfinished ");
        assert_eq!(make_printable("\x1b\x1b[31mx"), "x");
    }

    #[test]
    fn a_carriage_return_hides_nothing() {
        assert_eq!(make_printable("10%\r50%\r100%"), "10%␍50%␍100%");
        assert_eq!(make_printable("rm -rf /\r\x1b[2Kls"), "rm -rf /␍ls");
        assert_eq!(make_printable("text\r"), "text");
    }

    #[test]
    fn replacing_keeps_every_offset() {
        for text in ["a\x1bb", "a\u{9b}b", "a\u{202e}b\r\n\tc", "plain"] {
            let same = same_length(text);
            assert_eq!(same.len(), text.len());
            assert!(!same.chars().any(|c| is_control(c) && !matches!(c, '\n' | '\r')));
        }
    }

    #[test]
    fn what_agents_say_is_one_short_line_that_no_terminal_obeys() {
        assert_eq!(sanitize_line("two\nlines\tand  more"), "two lines and more");
        assert_eq!(sanitize_line("✓ real\r\x1b[2Jfake \u{202e}gnp"), "✓ real fake \u{fffd}gnp");
        assert_eq!(sanitize_line(&"x".repeat(1 << 20)).chars().count(), SHOWN + 1);
        assert_eq!(sanitize_line(&"word ".repeat(1000)).chars().filter(|&c| c == '…').count(), 1);
    }

    #[test]
    fn what_is_not_seen_is_written_as_its_code() {
        assert_eq!(escape_hidden("a\tb\x1b[2J\u{200b}\u{e0041}é\r"), "a\\u{9}b\\u{1b}[2J\\u{200b}\\u{e0041}é\\u{d}");
    }
}
