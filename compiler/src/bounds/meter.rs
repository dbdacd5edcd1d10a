//! Counts the tokens of the texts of a plan and parses their interpolations.
//!
//! In: texts. Out: their tokens and trees, kept, as several estimates ask for the same texts.

use std::collections::HashMap;
use std::rc::Rc;

use swarmc_plan::{Segment, Template};

use crate::template::{self, Expr};
use crate::tokens::{Family, Tokenizer};

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

    /// The tree of an expression; none where the text is not an expression.
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
