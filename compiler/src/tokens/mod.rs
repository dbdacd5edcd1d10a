//! How many tokens a text has.
//!
//! A text and the family of a model go in, a number comes out: exact for the family whose vocabulary is embedded, an
//! estimate for the others, and never more than the text has bytes. The vocabulary is loaded when the first text is
//! counted; who only needs to know that a limit holds counts bytes first.

mod family;

use std::sync::OnceLock;

use tiktoken::CoreBpe;

pub(crate) use family::{Family, prompt_overhead};

/// Counts tokens.
pub trait Tokenizer {
    /// The tokens of a text.
    fn count(&self, text: &str) -> u64;
}

/// The vocabulary `o200k` of the models of OpenAI since GPT-4o.
#[derive(Clone, Copy, Debug)]
pub struct O200k;

impl Tokenizer for O200k {
    fn count(&self, text: &str) -> u64 {
        static VOCABULARY: OnceLock<CoreBpe> = OnceLock::new();
        // What looks like a special token is ordinary text in a prompt.
        VOCABULARY.get_or_init(tiktoken::encoding::o200k_base).count(text) as u64
    }
}

/// Counts bytes where tokens are not worth their time: never too few, as no token is shorter than a byte.
#[derive(Clone, Copy, Debug)]
pub struct Bytes;

impl Tokenizer for Bytes {
    fn count(&self, text: &str) -> u64 {
        text.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_those_of_the_vocabulary() {
        // Counted with the vocabulary's own reference implementation.
        for (text, tokens) in [("", 0), ("hello world", 2), ("Read <<output:plan>> with care.", 9)] {
            assert_eq!(O200k.count(text), tokens, "{text}");
        }
    }

    #[test]
    fn hostile_texts_are_counted_soon_and_never_above_their_bytes() {
        let size = 200_000;
        for text in ["a", " ", "\n ", "!?", "漢", "\u{1F600}", "<|endoftext|>", "aB1"] {
            let text = text.repeat(size / text.len());
            let tokens = O200k.count(&text);
            assert!(0 < tokens && tokens <= text.len() as u64);
        }
    }
}
