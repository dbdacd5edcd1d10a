//! How many tokens a text has.
//!
//! A text and the family of a model go in, a number comes out: exact for the family whose vocabulary is embedded, an
//! estimate for the others, and never more than the text has bytes. The vocabulary is loaded when the first text is
//! counted; who only needs to know that a limit holds counts bytes first.

mod family;

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::OnceLock;

use swarmc_plan::{Segment, Template};
use tiktoken::CoreBpe;

pub(crate) use family::{Family, prompt_overhead};

use crate::template::{self, Expr};

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

/// Counts the fixed parts of templates and parses their interpolations, each text once.
pub(crate) struct Meter<'t> {
    tokenizer: &'t dyn Tokenizer,
    /// Tokens and bytes of the fixed text, by the template's digest, or by the text itself.
    known: HashMap<String, (u64, u64)>,
    /// The trees of interpolations, by their text; none for what is no expression.
    trees: HashMap<String, Option<Rc<Expr>>>,
}

impl<'t> Meter<'t> {
    pub(crate) fn new(tokenizer: &'t dyn Tokenizer) -> Meter<'t> {
        Meter { tokenizer, known: HashMap::new(), trees: HashMap::new() }
    }

    /// The tree of an expression.
    pub(crate) fn parse_tree(&mut self, text: &str) -> Option<Rc<Expr>> {
        match self.trees.get(text) {
            Some(tree) => tree.clone(),
            None => self.trees.entry(text.to_owned()).or_insert(template::parse_tree(text).map(Rc::new)).clone(),
        }
    }

    /// The tokens of a text that is no template.
    pub(crate) fn count_text(&mut self, text: &str, family: Family) -> u64 {
        let counted = || (self.tokenizer.count(text), text.len() as u64);
        let (tokens, bytes) = match self.known.get(text) {
            Some(&known) => known,
            None => *self.known.entry(text.to_owned()).insert_entry(counted()).get(),
        };
        family.scale(tokens, bytes)
    }

    /// The tokens of what stands fixed in a template.
    pub(crate) fn count_fixed(&mut self, template: &Template, family: Family) -> u64 {
        let (tokens, bytes) = match self.known.get(&template.digest) {
            Some(&known) => known,
            None => {
                let mut sum = (0, 0);
                for segment in &template.segments {
                    if let Segment::Text(text) = segment {
                        sum = (sum.0 + self.tokenizer.count(text), sum.1 + text.len() as u64);
                    }
                }
                // `Template::without_kind` gives texts without a digest, which nothing would tell apart.
                if !template.digest.is_empty() {
                    self.known.insert(template.digest.clone(), sum);
                }
                sum
            }
        };
        family.scale(tokens, bytes)
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

    #[test]
    fn the_fixed_text_of_a_template_is_counted_once() {
        struct Counting(std::cell::Cell<u32>);
        impl Tokenizer for Counting {
            fn count(&self, text: &str) -> u64 {
                self.0.set(self.0.get() + 1);
                text.len() as u64
            }
        }
        let counting = Counting(Default::default());
        let mut meter = Meter::new(&counting);
        let text = Template { segments: vec![Segment::Text("abc".to_owned())], digest: "sha256:1".to_owned() };
        assert_eq!([meter.count_fixed(&text, Family::O200k), meter.count_fixed(&text, Family::Gemini)], [3, 3]);
        assert_eq!(counting.0.get(), 1);
    }
}
