//! The words of an expression.

use std::ops::Range;

use swarmc_compiler::interpolation;

use super::TokenType;

/// The words that are part of the grammar of expressions, besides statements.
const WORDS: [&str; 9] = ["and", "or", "not", "in", "is", "if", "else", "recursive", "endif"];

/// Calls `paint` for every word of an expression.
pub(super) fn visit_words(text: &str, range: Range<usize>, paint: &mut dyn FnMut(Range<usize>, TokenType)) {
    let mut at = range.start;
    // What stands before a word, spaces left out, and whether `is` does.
    let (mut before, mut tested) = (' ', false);
    while let Some(sign) = text[at..range.end].chars().next() {
        let rest = &text[at..range.end];
        let is_word = |sign: char| sign.is_alphanumeric() || sign == '_';
        let length = match sign {
            '"' | '\'' => {
                let end = string_length(rest, sign);
                paint(at..at + end, TokenType::String);
                end
            }
            '0'..='9' => {
                let end = rest.find(|sign| !is_word(sign) && sign != '.').unwrap_or(rest.len());
                paint(at..at + end, TokenType::Number);
                end
            }
            sign if is_word(sign) => {
                let end = rest.find(|sign| !is_word(sign)).unwrap_or(rest.len());
                let word = &rest[..end];
                paint(at..at + end, classify_word(word, before, tested));
                tested = word == "is" || (tested && word == "not");
                before = 'a';
                at += end;
                continue;
            }
            sign => sign.len_utf8(),
        };
        if !sign.is_whitespace() {
            (before, tested) = (sign, false);
        }
        at += length;
    }
}

fn classify_word(word: &str, before: char, tested: bool) -> TokenType {
    if before == '.' {
        return TokenType::Property;
    }
    if before == '|' || (tested && word != "not") {
        return TokenType::Method;
    }
    if WORDS.contains(&word) || interpolation::statement_words().any(|known| known == word) || word.starts_with("end") {
        return TokenType::Keyword;
    }
    if matches!(word, "true" | "false" | "none" | "True" | "False" | "None") {
        return TokenType::Number;
    }
    if interpolation::root_words().any(|root| root == word) { TokenType::Macro } else { TokenType::Variable }
}

/// The length of a string that begins here; to the end where it has none.
fn string_length(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, sign) in text.char_indices().skip(1) {
        match sign {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if sign == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}
