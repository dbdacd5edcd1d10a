//! Reports `[a, b]`, the list of other notations.

use super::problem::Problem;
use crate::source::Span;

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
