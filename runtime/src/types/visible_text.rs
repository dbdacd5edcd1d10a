//! Texts of agents as messages show them: short, and with what a terminal would act on made visible.

use std::borrow::Cow;

/// The first characters of a text.
pub(crate) fn beginning(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

/// What a model wrote, as far as it is worth repeating.
pub(crate) fn short(text: &str) -> String {
    visible(&beginning(text, 80)).replace('\n', "␊")
}

/// The text with everything that a terminal would act on, or that is invisible, made visible.
pub(crate) fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut signs = text.chars().peekable();
    while let Some(sign) = signs.next() {
        match sign {
            '\n' | '\t' => out.push(sign),
            // A line that ends as on Windows is a line.
            '\r' if signs.peek() == Some(&'\n') => {}
            '\0'..='\u{1f}' => out.push(char::from_u32(0x2400 + u32::from(sign)).unwrap_or('\u{fffd}')),
            '\u{7f}' => out.push('␡'),
            sign if hides(sign) => out.push_str(&format!("\\u{{{:x}}}", u32::from(sign))),
            _ => out.push(sign),
        }
    }
    out
}

/// Whether a character acts on what is around it, or carries invisible text. Joiners of scripts and emoji stay.
fn hides(sign: char) -> bool {
    matches!(
        sign,
        '\u{80}'..='\u{9f}'
            | '\u{200b}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

/// A path of an agent, as a message may show it.
pub(crate) fn shown(path: &str) -> String {
    let mut shown: String = path.chars().map(|found| if found.is_control() { '\u{fffd}' } else { found }).collect();
    if let Some((end, _)) = shown.char_indices().nth(120) {
        shown.truncate(end);
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_act_on_is_seen() {
        assert_eq!(visible("a\tb\r\nc\rd"), "a\tb\nc␍d");
        assert_eq!(visible("\u{1b}[2J\u{7}\u{7f}\0"), "␛[2J␇␡␀");
        assert_eq!(visible("\u{9b}31m \u{202e}txt \u{200b}\u{e0041}"), "\\u{9b}31m \\u{202e}txt \\u{200b}\\u{e0041}");
        assert_eq!(visible("日本 é 👩\u{200d}💻"), "日本 é 👩\u{200d}💻");
    }
}
