//! How much text fits in an event, counted as JSON.

use super::{INLINE, ROOM};

/// Whether an event itself may hold `text`.
pub(crate) fn fits(text: &str) -> bool {
    text.len() <= INLINE && escaped(text) <= ROOM
}

/// Cuts words that are too long for an event at their end.
pub(crate) fn shorten(words: &mut String) {
    if escaped(words) > ROOM {
        words.truncate(kept(words.chars()));
        words.push('…');
    }
}

/// How many bytes of text fit, beginning with the first character given.
pub(super) fn kept(characters: impl Iterator<Item = char>) -> usize {
    let mut room = ROOM;
    let fitting = characters.take_while(|&character| {
        let left = room.checked_sub(escaped_character(character));
        room = left.unwrap_or(0);
        left.is_some()
    });
    fitting.map(char::len_utf8).sum()
}

/// The length of `text` as JSON, without its quotes.
pub(crate) fn escaped(text: &str) -> usize {
    text.chars().map(escaped_character).sum()
}

fn escaped_character(character: char) -> usize {
    match character {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..' ' => 6,
        _ => character.len_utf8(),
    }
}
