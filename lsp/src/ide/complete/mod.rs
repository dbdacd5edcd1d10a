//! Completion: what a person could type at a cursor, in specs and in prompts.
//!
//! In: the current text around the cursor, and the names and types of the last known compilation. That compilation may
//! be a keystroke old: an answer never waits for a new one.

mod directive;
mod expression;
mod file;
mod name;
mod node;
pub(super) mod scope;
mod steps;
#[cfg(test)]
mod tests;
mod value;

use std::ops::Range;

use swarmc_compiler::Code;
use swarmc_compiler::index::SymbolKind;
use swarmc_compiler::schema::{Kind as Values, Node, SPEC};

use super::cursor::{self, CursorContext, CursorKind, Entry};
use super::document::Kind;
use super::hole::{self, Interpolation, Logic};
use super::{Document, Edit, Snapshot};
pub(super) use name::describe_preset;
use scope::Scope;

/// The most items in one answer: a person does not read more, and the editor would receive them slowly.
const MOST: usize = 200;

/// What could be typed at a cursor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Completion {
    /// What any of it replaces: the word under the cursor.
    pub range: Range<usize>,
    /// The most likely first.
    pub items: Vec<Item>,
    /// Whether there is more than this, so that it must be asked for again when more is typed.
    pub incomplete: bool,
}

/// One thing that could be typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// What it is called; what has been typed is held against it.
    pub label: String,
    /// What it is.
    pub kind: ItemKind,
    /// Its type, and what there is to say in a few words.
    pub detail: Option<String>,
    /// What it is for, in Markdown.
    pub doc: Option<String>,
    /// What is written.
    pub text: String,
    /// The same with places to fill in, as the protocol writes them.
    pub snippet: Option<String>,
    /// What changes elsewhere in the file.
    pub edits: Vec<Edit>,
    /// Whether there is more to choose right behind it.
    pub again: bool,
}

/// What an [`Item`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemKind {
    /// A node of the language.
    Node,
    /// A property of a node.
    Property,
    /// A word of the language.
    Word,
    /// A value such as `"10m"`.
    Value,
    /// A name.
    Name(SymbolKind),
    /// A field.
    Field,
    /// A filter or a test.
    Filter,
    /// A file.
    File,
    /// A folder.
    Folder,
    /// The code of a rule.
    Code,
    /// A variable of a text or of the environment.
    Variable,
}

impl Item {
    fn new(label: impl Into<String>, kind: ItemKind) -> Item {
        let label = label.into();
        let text = label.clone();
        Item { label, kind, detail: None, doc: None, text, snippet: None, edits: Vec::new(), again: false }
    }

    fn detail(mut self, detail: impl Into<String>) -> Item {
        self.detail = Some(detail.into());
        self
    }

    fn doc(mut self, doc: impl Into<String>) -> Item {
        self.doc = Some(doc.into());
        self
    }

    fn doc_maybe(mut self, doc: Option<&String>) -> Item {
        self.doc = doc.cloned();
        self
    }

    fn text(mut self, text: impl Into<String>) -> Item {
        self.text = text.into();
        self
    }

    fn snippet(mut self, snippet: impl Into<String>) -> Item {
        self.snippet = Some(snippet.into());
        self
    }

    fn suggest_next(mut self) -> Item {
        self.again = true;
        self
    }
}

/// What is asked.
struct Ask<'a> {
    snapshot: &'a Snapshot,
    path: &'a str,
    document: &'a Document,
    offset: usize,
    /// The character that was just typed, where it is what asks.
    trigger: Option<char>,
}

impl Ask<'_> {
    fn text(&self) -> &str {
        self.document.text()
    }
}

/// What could be typed at an offset; `trigger` is the character before it when typing that has asked, unbidden.
pub fn list_completions(snapshot: &Snapshot, path: &str, offset: usize, trigger: Option<char>) -> Completion {
    let Some(document) = snapshot.document(path) else { return Completion::default() };
    let offset = document.text().floor_char_boundary(offset);
    let ask = Ask { snapshot, path, document: &document, offset, trigger };
    let found = match document.kind() {
        Kind::Foreign if is_spec_prefix(&ask) => complete_spec(&ask),
        Kind::Foreign => None,
        Kind::Text => complete_prompt(&ask),
        Kind::Spec | Kind::Part | Kind::Settings => complete_spec(&ask),
    };
    found.map_or_else(Completion::default, |found| limit_items(&ask, found))
}

/// A list that can be read: of a long one what fits to what has been typed, first what begins with it.
fn limit_items(ask: &Ask<'_>, mut found: Completion) -> Completion {
    if found.items.len() <= MOST {
        return found;
    }
    let typed = ask.text().get(found.range.start..ask.offset).unwrap_or_default().trim_start_matches('"');
    // Editors filter only what they are given, so the best of a long list must be chosen here.
    found.items.retain(|item| hole::is_like(typed, &item.label));
    found.items.sort_by_key(|item| !item.label.starts_with(typed));
    found.items.truncate(MOST);
    Completion { incomplete: true, ..found }
}

/// Whether a file is none of ours only because its last word is not typed to its end.
fn is_spec_prefix(ask: &Ask<'_>) -> bool {
    let nodes = ask.document.tree().map_or(&[] as &[_], |tree| tree.nodes.as_slice());
    nodes.iter().all(|node| {
        let typed =
            node.name.span.touches_offset(u32::try_from(ask.offset).unwrap_or(u32::MAX)) && node.entries.is_empty();
        let known = |known: &Node| hole::is_like(&node.name.text, known.name);
        SPEC.find_child(&node.name.text).is_some() || typed && SPEC.children.iter().any(|child| known(child))
    })
}

fn complete_prompt(ask: &Ask<'_>) -> Option<Completion> {
    let scopes = scope::of_prompt(ask.snapshot, ask.path);
    if scopes.is_empty() {
        return None;
    }
    let text = ask.text();
    let line = text[..ask.offset].rfind('\n').map_or(0, |newline| newline + 1);
    if let Some(found) = complete_suppression(ask, line..ask.offset) {
        return Some(found);
    }
    in_text(ask, &scopes, 0..text.len(), None)
}

/// What a person could type in a template text, which has this range in the file.
fn in_text(ask: &Ask<'_>, scopes: &[Scope], region: Range<usize>, quote: Option<&str>) -> Option<Completion> {
    match hole::find_hole(ask.text(), region, ask.offset)? {
        Interpolation::Directive(found) => Some(directive::complete_directive(ask, scopes, &found, quote)),
        Interpolation::Logic(found) => expression::complete_expression(ask, scopes, &found),
    }
}

fn complete_spec(ask: &Ask<'_>) -> Option<Completion> {
    let spot = cursor::find_context(ask.text(), ask.document.tree()?, ask.document.language(), ask.offset);
    match &spot.what {
        CursorKind::Nothing => None,
        CursorKind::Comment(range) => complete_suppression(ask, range.start..ask.offset),
        CursorKind::Name { range, siblings, followed } => {
            // Where a sign was typed and nothing was asked for, a list of all nodes would be in the way.
            let empty = range.is_empty() && ask.trigger.is_some();
            (!empty).then(|| node::complete_node(ask, &spot, range, siblings, *followed))
        }
        CursorKind::Entry(entry) => in_entry(ask, &spot, entry),
    }
}

fn in_entry(ask: &Ask<'_>, spot: &CursorContext<'_>, entry: &Entry<'_>) -> Option<Completion> {
    let kind = entry.kind();
    match (kind, entry.quote) {
        (Some(Values::Template), Some(quote)) => {
            let scopes = scope::of_spot(ask.snapshot, ask.path, spot);
            return in_text(ask, &scopes, entry.range.clone(), Some(quote));
        }
        (Some(Values::Expression), Some(_)) => {
            let scopes = scope::of_spot(ask.snapshot, ask.path, spot);
            let before = &ask.text()[entry.range.start..ask.offset];
            let logic = Logic { before, start: entry.range.start, statement: false, text: entry.range.start };
            return expression::complete_expression(ask, &scopes, &logic);
        }
        _ => {}
    }
    // What only means something inside a text opens nothing elsewhere.
    if matches!(ask.trigger, Some('<' | ':' | '|' | '{' | '%')) || ask.trigger == Some('/') && !value::is_path(kind) {
        return None;
    }
    let mut items = if entry.is_key { Vec::new() } else { value::list_values(ask, spot, entry) };
    if entry.quote.is_none() && entry.key.is_none() {
        items.extend(value::list_properties(ask, spot, entry));
    }
    let mut range = entry.range.clone();
    if let Some(kind) = kind {
        range.start = value::find_word_start(kind, ask.text(), &range, ask.offset, entry.quote);
    }
    Some(Completion { range, items, incomplete: false })
}

/// The codes of rules after `swarmc: allow(` in a comment.
fn complete_suppression(ask: &Ask<'_>, comment: Range<usize>) -> Option<Completion> {
    const MARK: &str = "swarmc: allow(";
    let before = &ask.text()[comment.clone()];
    let start = comment.start + before.rfind(MARK)? + MARK.len();
    let is_code = |sign: char| sign.is_ascii_alphanumeric() || sign == '-';
    if !ask.text()[start..ask.offset].chars().all(is_code) {
        return None;
    }
    let rest = &ask.text()[ask.offset..];
    let end = ask.offset + rest.len() - rest.trim_start_matches(is_code).len();
    let closing = if ask.text()[end..].starts_with(')') { "" } else { ") " };
    let items = list_codes().map(|item| Item { text: format!("{}{closing}", item.text), ..item }).collect();
    Some(Completion { range: start..end, items, incomplete: false })
}

/// The rules that can be suppressed: their codes, then their names.
fn list_codes() -> impl Iterator<Item = Item> {
    let codes = || Code::ALL.iter().copied().filter(|code| code.is_suppressible());
    let doc =
        |code: Code| code.page().lines().find(|line| !line.is_empty() && !line.starts_with('#')).unwrap_or_default();
    let by_code = codes().map(move |code| Item::new(code.id(), ItemKind::Code).detail(code.name()).doc(doc(code)));
    by_code.chain(codes().map(move |code| Item::new(code.name(), ItemKind::Code).detail(code.id()).doc(doc(code))))
}
