//! Reports `[a, b]`, the list of other notations, and brackets in the words of a command.

use super::parse::Parser;
use super::problem::Problem;
use super::text::Text;
use super::word::quote_text;
use crate::source::Span;

/// The longest word with brackets that is looked at, and how far before it its command may begin, in bytes: a line may
/// have any number of brackets.
const LONGEST: usize = 400;

impl Parser<'_> {
    /// Reports a bracket that begins a word of a command, and takes the word, as `[ab]*`, where it closes. False where it
    /// stands in no command, or is a list.
    pub(super) fn take_command_word(&mut self, start: usize) -> bool {
        let from = self.text.floor_char_boundary(start.saturating_sub(LONGEST));
        let line = self.text[from..start].rsplit(['\n', ';', '{']).next().unwrap_or_default();
        if !matches!(line.split_whitespace().next(), Some("run" | "check" | "exec")) {
            return false;
        }
        let to = self.text.floor_char_boundary(start + LONGEST);
        let word = self.text[start..to].split(|sign: char| sign.is_whitespace() || matches!(sign, ';' | '}'));
        let word = word.into_iter().next().unwrap_or_default();
        if start + word.len() == to && to < self.text.len() {
            return false;
        }
        let span = self.span(start, start + word.len());
        if word == "[" {
            self.problems.add(|| {
                Problem::new(span, "a bracket needs quotes where it is a word of a command", "not in quotes")
                    .help("write `\"[\"` and `\"]\"`")
            });
            return true;
        }
        let is_plain = |sign: char| !matches!(sign, '"' | '\\' | ',' | '{' | '#');
        if !word.contains(']') || !word.chars().all(is_plain) {
            return false;
        }
        self.problems.add(|| {
            let title = format!("write `{}`", quote_text(word));
            Problem::new(span, format!("`{word}` has brackets, and so it needs quotes"), "not in quotes")
                .help(title.clone())
                // A pattern of files needs a shell as well.
                .unsafe_fix(title, span, quote_text(word))
        });
        self.push_made(Text::from_made(word.to_owned(), span));
        true
    }
}

/// The problem of a list in brackets; `inner` is what is between them, none where they do not close on their line.
pub(super) fn describe_list(span: Span, inner: Option<&str>) -> Problem {
    let wrong = Problem::new(span, "a list is written without brackets and commas", "not a list here");
    // With quotes or brackets in it, a comma may be part of a text.
    match inner.filter(|inner| !inner.contains(['[', '"', '\'', '\\', '/', '{'])) {
        Some(inner) => wrong.rewrite(span, split_items(inner).join(" ")),
        None => wrong.help("write the values one after another, separated by spaces"),
    }
}

/// The items between brackets as a list in an expression: numbers as they are, all else as texts. None where they are more
/// than words, numbers and plain texts.
pub(super) fn write_expression(inner: &str) -> Option<String> {
    if inner.contains(['[', '\'', '\\', '/', '{']) {
        return None;
    }
    let parts: Vec<&str> = inner.split('"').collect();
    let items: Vec<String> = match &parts[..] {
        [bare] => split_items(bare).into_iter().map(write_item).collect(),
        // Every second part was in quotes, and only separators stand between these.
        _ if parts.len() % 2 == 1 && parts.iter().step_by(2).all(|part| split_items(part).is_empty()) => {
            parts.iter().skip(1).step_by(2).map(|text| format!("'{text}'")).collect()
        }
        _ => return None,
    };
    Some(format!("[{}]", items.join(", ")))
}

fn write_item(item: &str) -> String {
    if item.parse::<f64>().is_ok() { item.to_owned() } else { format!("'{item}'") }
}

fn split_items(inner: &str) -> Vec<&str> {
    inner.split([',', ' ', '\t']).filter(|part| !part.is_empty()).collect()
}
