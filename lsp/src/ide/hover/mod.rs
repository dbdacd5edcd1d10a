//! What is shown about what stands under the pointer: names, directives, and the words of the language.
//!
//! In: a place. Out: Markdown. What texts of a run or of a spec say stands in code blocks, and is cut after a few lines.

mod grammar;
mod hole;
mod symbol;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::Arc;

use swarmc_compiler::interpolation::HoleKind;

pub(super) use hole::{find_last_value, resolve_shape};
pub(super) use symbol::{format_age, format_number};

use super::document::Kind;
use super::names;
use super::texts;
use super::{Analysis, Document, Snapshot};
use crate::runs::Runs;

/// What is shown about a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hover {
    /// What it is about.
    pub range: Range<usize>,
    /// What is shown.
    pub markdown: String,
}

/// How many lines of a text are shown, and how many characters.
const LINES: usize = 6;
const CHARACTERS: usize = 600;

/// What is known of what stands at an offset.
pub fn find_hover(snapshot: &Snapshot, path: &str, offset: usize, runs: &dyn Runs) -> Option<Hover> {
    let document = snapshot.document(path)?;
    if document.kind() == Kind::Foreign {
        return None;
    }
    let about = snapshot.find_analyses(path);
    let hole = texts::hole_at(snapshot, path, &document, offset);
    let directive = hole.as_ref().filter(|hole| matches!(hole.kind, HoleKind::Directive { .. }));
    if let Some((range, mut markdown)) = hover_name(&about, path, offset, directive.is_none().then_some(runs)) {
        if let Some(hole) = directive {
            let value = hole::describe_value(&about, path, &document, hole, runs);
            let parts = [value, Some(markdown), hole::hole_title(&document, hole)];
            markdown = parts.into_iter().flatten().collect::<Vec<_>>().join(RULE);
        }
        return Some(Hover { range, markdown });
    }
    match hole {
        Some(hole) => hole::hover_hole(&about, path, &document, &hole, offset, runs),
        None => {
            hover_expression(snapshot, path, &document, offset).or_else(|| grammar::hover_grammar(&document, offset))
        }
    }
}

/// What is known of a word of an expression that is a value of its own: `when "…"`.
fn hover_expression(snapshot: &Snapshot, path: &str, document: &Document, offset: usize) -> Option<Hover> {
    let texts = texts::list_texts(snapshot, path, document);
    let said = texts.iter().find(|said| said.expression && said.range.start <= offset && offset <= said.range.end)?;
    hole::hover_word(document, &said.range, offset)
}

/// What stands between two answers.
const RULE: &str = "\n\n---\n\n";

/// What is known of a name: the union of what the specs know that read the file. Without `runs` nothing about its value.
fn hover_name(
    about: &[Arc<Analysis>],
    path: &str,
    offset: usize,
    runs: Option<&dyn Runs>,
) -> Option<(Range<usize>, String)> {
    let (mut range, mut parts): (Option<Range<usize>>, Vec<String>) = (None, Vec::new());
    for analysis in about {
        for (place, id) in names::find_names(analysis, path, offset) {
            let here = place.span.range();
            // Where two names meet, the one that begins here is meant.
            if range.clone().is_some_and(|range| range != here) {
                continue;
            }
            range = Some(here);
            let part = symbol::describe_symbol(analysis, id, runs);
            if !parts.contains(&part) {
                parts.push(part);
            }
        }
    }
    range.map(|range| (range, parts.join(RULE)))
}

/// The beginning of a text as a block of code that it cannot leave.
fn quote_block(language: &str, text: &str) -> String {
    let mut shown: Vec<String> = Vec::new();
    let mut left = CHARACTERS;
    let mut lines = text.lines();
    for line in lines.by_ref().take(LINES) {
        let kept: String = line.chars().filter(|sign| *sign == '\t' || !sign.is_control()).take(left).collect();
        let cut = kept.len() < line.len() && kept.chars().count() == left;
        left -= kept.chars().count();
        shown.push(if cut { kept + "…" } else { kept });
        if left == 0 {
            break;
        }
    }
    if lines.next().is_some() {
        shown.push("…".to_owned());
    }
    let text = shown.join("\n");
    let longest = text.split(|sign| sign != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{language}\n{text}\n{fence}")
}

/// A word as code.
fn quote_code(word: &str) -> String {
    let longest = word.split(|sign| sign != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let space = if longest > 0 { " " } else { "" };
    format!("{fence}{space}{word}{space}{fence}")
}

/// The text of a range of a document.
fn slice_text<'d>(document: &'d Document, range: &Range<usize>) -> &'d str {
    document.text().get(range.clone()).unwrap_or_default()
}
