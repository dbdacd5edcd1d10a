//! Finds the interpolations of a text, for editors: their ranges, their parts, and the words that they may contain.
//!
//! In: any text. Out: ranges of bytes, and the vocabulary that the compiler itself uses. This module resolves no names.

use std::ops::Range;

use crate::template::{self, Part};

pub use crate::template::Term;

/// The workflow in which the examples of directives hold: each in the prompt of `show` there, for the second step in the
/// second round, and the one of `inbox` in the pipeline `talk`.
pub const EXAMPLE_SPEC: &str = include_str!("template/examples.kdl");

/// An interpolation of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interpolation {
    /// All of it, delimiters included.
    pub range: Range<usize>,
    /// What it is.
    pub kind: HoleKind,
}

/// What a [`Interpolation`] is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HoleKind {
    /// `<<word:name.field | filter>>`, and where its parts stand.
    Directive {
        /// The word.
        word: Range<usize>,
        /// The step, parameter, port, pack, topic or path.
        name: Option<Range<usize>>,
        /// Fields of the value, outermost first.
        fields: Vec<Range<usize>>,
        /// The filters, arguments included.
        filters: Vec<Range<usize>>,
    },
    /// `{{ … }}` or `{% … %}`.
    Logic,
    /// `{# … #}`.
    Comment,
}

/// The interpolations of a text, by place.
pub fn find_interpolations(text: &str) -> Vec<Interpolation> {
    let template = template::scan(text);
    let hole = |part: &Part| match part {
        Part::Text(_) | Part::Escape => None,
        Part::Logic(range) => {
            let kind = if text[range.clone()].starts_with("{#") { HoleKind::Comment } else { HoleKind::Logic };
            Some(Interpolation { range: range.clone(), kind })
        }
        Part::Directive(directive) => {
            let inside = &text[directive.range.clone()];
            let skipped = inside.len() - inside.trim_start_matches(['<', '{', ' ', '-']).len();
            let start = directive.range.start + skipped;
            let word = start..start + directive.kind.as_str().len().min(inside.len() - skipped);
            Some(Interpolation {
                range: directive.range.clone(),
                kind: HoleKind::Directive {
                    word,
                    name: directive.name.as_ref().map(|name| name.range.clone()),
                    fields: directive.fields.iter().map(|field| field.range.clone()).collect(),
                    filters: directive.filters.iter().map(|filter| filter.range.clone()).collect(),
                },
            })
        }
    };
    template.parts.iter().filter_map(hole).collect()
}

/// The words of directives: `output`, `param`.
pub fn directive_terms() -> impl Iterator<Item = Term> {
    template::list_terms()
}

/// The filters that a directive of this word may have.
pub fn directive_filters(word: &str) -> Vec<Term> {
    template::filter_terms(word)
}

/// The words with which a path of an expression begins: `output`, `item`.
pub fn root_words() -> impl Iterator<Item = &'static str> {
    template::list_roots()
}

/// The filters of expressions.
pub fn expression_filters() -> impl Iterator<Item = Term> {
    template::applied_terms(template::FILTERS)
}

/// The tests of expressions, which follow `is`.
pub fn expression_tests() -> impl Iterator<Item = Term> {
    template::applied_terms(template::TESTS)
}

/// The statements of `{% … %}`.
pub fn statement_words() -> impl Iterator<Item = &'static str> {
    template::OPENING.into_iter().chain(template::PLAIN)
}

/// What a word that stands first in `{% … %}` does, how it is written first; an end says what it ends.
pub fn describe_statement(word: &str) -> Option<(&'static str, &'static str)> {
    let word =
        word.strip_prefix("end").filter(|word| *word == "raw" || template::OPENING.contains(word)).unwrap_or(word);
    let known = template::STATEMENTS.iter().find(|(known, ..)| *known == word);
    known.map(|(_, usage, doc)| (*usage, *doc))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_directives_have_their_places() {
        let text = "a <<output:x.y | tail:3>> {{ z }} {# c #} <<iteration>> {{output:old}}";
        let shown = |range: &Range<usize>| text[range.clone()].to_owned();
        let parts: Vec<String> = find_interpolations(text)
            .iter()
            .map(|hole| match &hole.kind {
                HoleKind::Directive { word, name, fields, filters } => {
                    let inside: Vec<String> =
                        [word].into_iter().chain(name).chain(fields).chain(filters).map(shown).collect();
                    inside.join("·")
                }
                kind => format!("{kind:?} {}", shown(&hole.range)),
            })
            .collect();
        assert_eq!(parts, ["output·x·y·tail:3", "Logic {{ z }}", "Comment {# c #}", "iteration", "output·old"]);
    }

    #[test]
    fn every_word_says_what_it_gives() {
        assert!(directive_terms().all(|term| term.doc.ends_with('.') && term.usage.starts_with("<<")));
        assert!(directive_filters("output").iter().all(|term| term.usage.starts_with(term.word)));
        assert!(directive_filters("context").is_empty());
        for word in statement_words().chain(["elif", "else", "raw", "endraw", "endfor", "endset"]) {
            let (usage, doc) = describe_statement(word).unwrap_or_else(|| panic!("`{word}` is described"));
            assert!(usage.starts_with("{% ") && usage.contains(word.trim_start_matches("end")), "{usage}");
            assert!(doc.ends_with('.'), "{doc}");
        }
        assert_eq!(
            [describe_statement("enddo"), describe_statement("endelse"), describe_statement("macro")],
            [None; 3]
        );
    }
}
