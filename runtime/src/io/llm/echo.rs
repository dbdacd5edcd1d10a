//! Removes the key from a service's answers, which may repeat it: they are shown, logged and journaled.
//!
//! In: pieces of a text. Out: the same text, `[key]` in the place of the key. Invariant: a piece that ends like the key
//! begins is held back until it is known what follows, and never longer than the key.

use std::borrow::Cow;

/// Shorter keys are words that an answer may well have; those of services are longer.
const SHORTEST: usize = 16;

/// A text that comes in pieces.
#[derive(Debug)]
pub(super) struct Echo<'k> {
    key: Option<&'k str>,
    held: String,
}

impl<'k> Echo<'k> {
    /// A text that may hold `key`.
    pub(super) fn new(key: Option<&'k str>) -> Echo<'k> {
        Echo { key: key.filter(|key| key.len() >= SHORTEST), held: String::new() }
    }

    /// What is known of the text with one more piece.
    pub(super) fn redact_piece(&mut self, piece: &str) -> String {
        let Some(key) = self.key else { return piece.to_owned() };
        self.held.push_str(piece);
        let known = self.redact_text(&self.held).into_owned();
        // Keys are ASCII, so that every part of one begins and ends with a character.
        let begins = (1..key.len()).rev().find(|&length| known.ends_with(&key[..length]));
        let (known, held) = known.split_at(known.len() - begins.unwrap_or(0));
        let known = known.to_owned();
        self.held = held.to_owned();
        known
    }

    /// What was held back, at the end of the text.
    pub(super) fn take_held(&mut self) -> String {
        std::mem::take(&mut self.held)
    }

    /// A text that comes at once.
    pub(super) fn redact_text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.key {
            Some(key) if text.contains(key) => Cow::Owned(text.replace(key, "[key]")),
            _ => Cow::Borrowed(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "sk-0123456789abcdef";

    #[test]
    fn a_key_is_found_however_it_comes() {
        for text in [format!("it is {KEY}{KEY}, sk-0123456789"), format!("s{KEY}sk-sk"), "é sk-012".to_owned()] {
            for size in 1..text.len() {
                let mut echo = Echo::new(Some(KEY));
                let signs: Vec<char> = text.chars().collect();
                let pieces = signs.chunks(size).map(|piece| echo.redact_piece(&piece.iter().collect::<String>()));
                let told = pieces.collect::<String>() + &echo.take_held();
                assert_eq!(told, text.replace(KEY, "[key]"), "in pieces of {size}");
            }
        }
    }

    #[test]
    fn a_word_for_a_key_is_a_word() {
        let mut echo = Echo::new(Some("none"));
        assert_eq!(echo.redact_piece("none of them") + &echo.take_held(), "none of them");
    }
}
