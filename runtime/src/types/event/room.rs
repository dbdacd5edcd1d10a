//! How much text fits in an event, counted as JSON.

use super::{INLINE, ROOM};

/// The bytes of JSON that a character takes beyond its own, at most: a control character as `\u0001`.
const MOST_EXTRA: u8 = 5;

/// What each byte of a text takes beyond itself: a line of the journal holds quotes, backslashes and control characters
/// escaped.
const EXTRA: [u8; 256] = {
    let mut extra = [0; 256];
    let mut control = 0;
    while control < b' ' {
        extra[control as usize] = MOST_EXTRA;
        control += 1;
    }
    let mut short: &[u8] = b"\"\\\n\r\t\x08\x0c";
    while let [byte, rest @ ..] = short {
        extra[*byte as usize] = 1;
        short = rest;
    }
    extra
};

/// Whether an event itself may hold `text`.
pub(crate) fn can_inline(text: &str) -> bool {
    // Most texts are so short that they fit whatever they hold.
    let always = text.len() * (1 + MOST_EXTRA as usize) <= ROOM;
    text.len() <= INLINE && (always || escaped_length(text) <= ROOM)
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
    text.len() + text.bytes().map(extra).sum::<usize>()
}

fn escaped_character(character: char) -> usize {
    character.len_utf8() + u8::try_from(character).map_or(0, extra)
}

fn extra(byte: u8) -> usize {
    usize::from(EXTRA[usize::from(byte)])
}
