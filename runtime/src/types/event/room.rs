//! How much text fits in an event, counted as JSON.

use super::{INLINE, ROOM};

/// Whether an event itself may hold `text`.
pub(crate) fn can_inline(text: &str) -> bool {
    text.len() <= INLINE && escaped_length(text) <= ROOM
}

/// Cuts words that are too long for an event at their end.
pub(crate) fn truncate_message(words: &mut String) {
    if escaped_length(words) > ROOM {
        words.truncate(count_fitting_bytes(words.chars()));
        words.push('…');
    }
}

/// How many bytes of text fit, beginning with the first character given.
pub(super) fn count_fitting_bytes(characters: impl Iterator<Item = char>) -> usize {
    let mut room = ROOM;
    let fitting = characters.take_while(|&character| {
        let left = room.checked_sub(escaped_character(character));
        room = left.unwrap_or(0);
        left.is_some()
    });
    fitting.map(char::len_utf8).sum()
}

/// The length of `text` as JSON, without its quotes.
pub(crate) fn escaped_length(text: &str) -> usize {
    text.chars().map(escaped_character).sum()
}

fn escaped_character(character: char) -> usize {
    match character {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..' ' => 6,
        _ => character.len_utf8(),
    }
}
