//! Hover of the words of the language: nodes, properties, choices, built-in types and codes.

use std::ops::Range;

use swarmc_compiler::schema::{self, Kind, Property, Target, Word};
use swarmc_compiler::syntax::TokenKind;
use swarmc_compiler::{BUILT_IN_TOOLS, Code, PROGRAM_TOOLS};

use super::{Hover, quote_block, quote_code};
use crate::ide::element::{self, Part, Slot};
use crate::ide::texts;
use crate::ide::{Document, complete};

pub(super) fn hover_grammar(document: &Document, offset: usize) -> Option<Hover> {
    if let Some(hover) = hover_rule(document, offset) {
        return Some(hover);
    }
    let found = element::find_element(document, offset)?;
    let known = found.known;
    match found.part {
        Part::Name(name) => Some(Hover { range: name.span.range(), markdown: describe_node(known, &name.text) }),
        Part::Key(name, Some(known)) => Some(Hover { range: name.span.range(), markdown: describe_property(known) }),
        Part::Key(name, None) => {
            let (_, kind) = known.open_properties?;
            Some(Hover {
                range: name.span.range(),
                markdown: format!("{}\n\n{}.", known.doc, capitalize_first(&kind.describe())),
            })
        }
        Part::Value(entry, slot) => {
            let range = entry.value.span.range();
            let inside = texts::unquoted_range(document.text(), range.clone());
            let markdown = describe_value(known, slot, &document.text()[inside], offset.saturating_sub(range.start))?;
            Some(Hover { range, markdown })
        }
        Part::Rest => None,
    }
}

/// A node: how it is written, what it says, and what may stand in it.
fn describe_node(known: &'static schema::Node, written: &str) -> String {
    let more = if known.children.is_empty() && known.open_children.is_none() { "" } else { " { … }" };
    let mut text = format!("```text\n{}{more}\n```\n\n{}", known.usage_as(known.display_name(written)), known.doc);
    if let Some(older) = known.older.iter().find(|older| older.name == written) {
        text +=
            &format!("\n\nAn older spelling of {}, deprecated since edition {}.", quote_code(known.name), older.since);
    }
    let mut rows: Vec<String> = Vec::new();
    for argument in known.arguments {
        let default = argument.default.map_or(String::new(), |value| format!(" Without the node: `{value}`."));
        rows.push(format!("- `{}`: {}.{default}", argument.name, argument.kind.describe()));
    }
    rows.extend(known.properties.iter().map(|property| format!("- {}", summarize_property(property))));
    if !rows.is_empty() {
        text += &format!("\n\n{}", rows.join("\n"));
    }
    text
}

fn describe_property(known: &'static Property) -> String {
    let mut text =
        format!("```text\n{}=\n```\n\n{} {}.", known.name, known.doc, capitalize_first(&known.kind.describe()));
    if let Some(default) = known.default {
        text += &format!(" Default: `{default}`.");
    }
    if let Kind::Choice(words) = known.kind {
        text += &format!("\n\n{}", describe_choices(words));
    }
    text
}

fn summarize_property(property: &Property) -> String {
    let default = property.default.map_or(String::new(), |value| format!(" Default: `{value}`."));
    format!("`{}=`: {}{default}", property.name, property.doc)
}

fn describe_choices(words: &[Word]) -> String {
    words.iter().map(|word| format!("- `{}`: {}", word.word, word.doc)).collect::<Vec<_>>().join("\n")
}

/// What a value means, where the language says more than its name does.
fn describe_value(known: &'static schema::Node, slot: Slot, written: &str, at: usize) -> Option<String> {
    let doc = match slot {
        Slot::Property(property) => property.doc,
        Slot::Argument(_) | Slot::Open(_) => known.doc,
    };
    let word = |words: &[Word], written: &str| {
        let word = words.iter().find(|word| word.word == written)?;
        Some(format!("`{}`: {}.\n\n{doc}", word.word, word.doc))
    };
    match slot.kind() {
        Kind::Choice(words) => word(words, written),
        Kind::Type => {
            let at = at.min(written.len());
            let is_word = |sign: char| sign.is_ascii_alphanumeric() || sign == '_';
            let start = written.get(..at)?.rfind(|sign| !is_word(sign)).map_or(0, |found| found + 1);
            let end = written[at..].find(|sign| !is_word(sign)).map_or(written.len(), |found| at + found);
            word(schema::TYPES, written.get(start..end)?)
        }
        Kind::Duration
        | Kind::Size
        | Kind::Money
        | Kind::Count(..)
        | Kind::Bool
        | Kind::Ratio(..)
        | Kind::Lines
        | Kind::Pool
        | Kind::Number
        | Kind::Glob => Some(format!("{doc} {}.", capitalize_first(&slot.kind().describe()))),
        Kind::Reference(Target::Agent | Target::Provider | Target::Preset) => describe_preset(written),
        Kind::Text if matches!(known.name, "tools" | "tool") && !matches!(slot, Slot::Property(_)) => {
            Some(format!("{}\n\n{doc}", describe_tool(written)?))
        }
        _ => None,
    }
}

/// What a preset of the library is: the first lines of it, and what it says of itself.
fn describe_preset(name: &str) -> Option<String> {
    let block = quote_block("kdl", swarmc_compiler::find_preset(name)?);
    let doc = complete::describe_preset(name).map_or(String::new(), |doc| format!(": {doc}"));
    Some(format!("{block}\n\nPreset of the library{doc}"))
}

/// What a tool does; of one that a program brings along, that it does.
fn describe_tool(written: &str) -> Option<String> {
    let name = written.split('(').next().unwrap_or_default();
    if let Some(tool) = BUILT_IN_TOOLS.iter().find(|tool| tool.name == name) {
        return Some(format!("{}: a tool of swarmc. {}", quote_code(name), tool.does));
    }
    PROGRAM_TOOLS.contains(&name).then(|| format!("{}: a tool that agent programs bring along.", quote_code(name)))
}

/// The page of a code that stands in an `allow` or a comment.
fn hover_rule(document: &Document, offset: usize) -> Option<Hover> {
    let (range, written) = find_word(document, offset)?;
    let code = Code::find(written)?;
    let comment = match document.tree() {
        Some(tree) => {
            let token = tree.tokens.partition_point(|token| (token.end as usize) < offset.max(1));
            let kind = tree.tokens.get(token).map(|token| token.kind);
            matches!(kind, Some(TokenKind::LineComment | TokenKind::BlockComment))
        }
        None => document.text()[..range.start].trim_end().ends_with("swarmc: allow("),
    };
    let suppresses = || {
        let found = element::find_element(document, offset)?;
        [schema::ALLOW.name, "deny", "warn"].contains(&found.known.name).then_some(())
    };
    if !comment && suppresses().is_none() {
        return None;
    }
    Some(Hover { range, markdown: code.page().to_owned() })
}

/// The word of letters, digits and `-` around an offset.
fn find_word(document: &Document, offset: usize) -> Option<(Range<usize>, &str)> {
    let text = document.text();
    let is_word = |sign: char| sign.is_ascii_alphanumeric() || sign == '-';
    let before = text.get(..offset)?;
    let start =
        before.rfind(|sign| !is_word(sign)).map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
    let end = text[offset..].find(|sign| !is_word(sign)).map_or(text.len(), |at| offset + at);
    (start < end).then(|| (start..end, &text[start..end]))
}

fn capitalize_first(text: &str) -> String {
    let mut signs = text.chars();
    signs.next().map_or(String::new(), |first| first.to_uppercase().chain(signs).collect())
}
