//! The places of a spec that can be mutated: nodes, entries, names, and the words inside directives and expressions.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use swarmc_compiler::FileId;
use swarmc_compiler::syntax::{Node, ValueKind, parse};

/// A spec with the files beside it, by path.
#[derive(Clone)]
pub(crate) struct Spec {
    pub path: String,
    pub files: BTreeMap<String, String>,
}

/// A stretch of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub file: String,
    pub range: Range<usize>,
}

impl Place {
    pub(super) fn new(file: &str, range: Range<usize>) -> Place {
        Place { file: file.to_owned(), range }
    }
}

/// What a name names: those of one kind can stand for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Step,
    Agent,
    Provider,
    Param,
    Type,
    Field,
    /// A value of an enum, or an option of a gate.
    Word,
    Other,
}

/// A name at its declaration or where it is used.
#[derive(Clone, Debug)]
pub(super) struct Name {
    pub kind: Kind,
    pub text: String,
    pub place: Place,
}

/// What stands where in a spec.
pub(super) struct Places {
    pub declared: Vec<Name>,
    pub used: Vec<Name>,
    /// Directives, and the expressions and statements of templates, delimiters included; whole expressions of nodes.
    pub regions: Vec<Place>,
    /// Texts in quotes inside regions, without the quotes.
    pub literals: Vec<Place>,
}

/// Nodes that declare what their first argument names.
fn declares(node: &str) -> Option<Kind> {
    Some(match node {
        "task" | "gate" | "loop" | "stop" => Kind::Step,
        "agent" => Kind::Agent,
        "provider" => Kind::Provider,
        "param" => Kind::Param,
        "type" => Kind::Type,
        "ask" => Kind::Field,
        "pipeline" | "prompt" | "input" | "secret" => Kind::Other,
        _ => return None,
    })
}

/// Nodes whose arguments are words of their own, whatever else has that name.
const PROSE: &[&str] = &["workflow", "session", "description", "run", "system", "message", "value", "can", "tools"];
/// Properties whose values are names.
const PROPERTIES: &[&str] = &["agent", "provider", "from", "type", "ref", "task"];
/// Nodes whose argument is an expression.
const EXPRESSIONS: &[&str] = &["when", "until", "for-each"];

impl Places {
    pub(super) fn of(spec: &Spec) -> Places {
        let mut places = Places { declared: Vec::new(), used: Vec::new(), regions: Vec::new(), literals: Vec::new() };
        let text = &spec.files[&spec.path];
        let nodes = nodes(text);
        for (node, parents) in walk(&nodes) {
            places.declare(&spec.path, node, parents.last().map_or("", |parent| &*parent.name.text));
        }
        let known: BTreeMap<String, Kind> =
            places.declared.iter().map(|name| (name.text.replace('-', "_"), name.kind)).collect();
        for (node, _) in walk(&nodes) {
            places.refer(&spec.path, text, node, &known);
        }
        for (path, text) in &spec.files {
            if path.ends_with(".md") {
                places.regions_of(path, text, 0..text.len());
            }
        }
        for region in places.regions.clone() {
            places.words(&spec.files[&region.file], &region, &known);
        }
        places
    }

    fn declare(&mut self, file: &str, node: &Node, parent: &str) {
        let arguments: Vec<(&str, Range<usize>)> = node
            .arguments()
            .filter_map(|entry| match &entry.value.kind {
                ValueKind::String(text) => Some((text.as_str(), entry.value.span.range())),
                _ => None,
            })
            .collect();
        let mut add = |kind, (text, range): &(&str, Range<usize>)| {
            self.declared.push(Name { kind, text: (*text).to_owned(), place: Place::new(file, range.clone()) });
        };
        let name = &*node.name.text;
        if parent == "type" || parent == "output" && name != "default" {
            add(Kind::Field, &(name, node.name.span.range()));
        } else if let (Some(kind), Some(first)) = (declares(name), arguments.first()) {
            // `prompt "text"` declares nothing.
            if name != "prompt" || node.children.is_none() && parent.is_empty() {
                add(kind, first);
            }
        }
        if name == "options" {
            arguments.iter().for_each(|option| add(Kind::Word, option));
        } else if let Some(at) = arguments.iter().position(|(word, _)| *word == "enum") {
            arguments[at + 1..].iter().for_each(|word| add(Kind::Word, word));
        }
    }

    fn refer(&mut self, file: &str, text: &str, node: &Node, known: &BTreeMap<String, Kind>) {
        let name = &*node.name.text;
        for entry in &node.entries {
            let ValueKind::String(value) = &entry.value.kind else { continue };
            let range = entry.value.span.range();
            if entry.name.is_none() && EXPRESSIONS.contains(&name) {
                self.regions.push(Place::new(file, range));
                continue;
            }
            self.regions_of(file, text, range.clone());
            let refers = match &entry.name {
                Some(property) => PROPERTIES.contains(&&*property.text),
                None => !PROSE.contains(&name),
            };
            let declared = |other: &Name| other.place.file == file && other.place.range == range;
            let plain = value.as_str() == &text[range.clone()];
            if let Some(kind) = known.get(&value.as_str().replace('-', "_"))
                && refers
                && plain
                && !self.declared.iter().any(declared)
            {
                let place = Place::new(file, range.clone());
                self.used.push(Name { kind: *kind, text: value.as_str().to_owned(), place });
            }
        }
    }

    /// Finds `<<…>>`, `{{…}}` and `{%…%}` on single lines.
    fn regions_of(&mut self, file: &str, text: &str, range: Range<usize>) {
        let mut at = range.start;
        while let Some(rest) = text.get(at..range.end) {
            let found = [("<<", ">>"), ("{{", "}}"), ("{%", "%}")].into_iter();
            let found = found.filter_map(|(open, close)| Some((rest.find(open)?, close))).min();
            let Some((start, close)) = found else { return };
            let Some(length) = rest[start..].find(close) else {
                at += start + 2;
                continue;
            };
            let end = start + length + 2;
            let inner = &rest[start + 2..end - 2];
            if !inner.contains('\n') && (close != ">>" || inner.starts_with(|sign: char| sign.is_ascii_lowercase())) {
                self.regions.push(Place::new(file, at + start..at + end));
            }
            at += end;
        }
    }

    /// The names and the quoted texts inside a region.
    fn words(&mut self, text: &str, region: &Place, known: &BTreeMap<String, Kind>) {
        let source = &text[region.range.clone()];
        let directive = source.starts_with("<<");
        let part = |sign: char| sign.is_ascii_alphanumeric() || sign == '_' || directive && sign == '-';
        let mut at = 0;
        while let Some(start) = source[at..].find(part).map(|start| at + start) {
            let end = source[start..].find(|sign| !part(sign)).map_or(source.len(), |length| start + length);
            let word = &source[start..end];
            let before = source[..start].chars().next_back();
            let quoted =
                matches!(before, Some('\'' | '"')) && start > 1 && source[end..].starts_with(before.unwrap_or(' '));
            let place = Place::new(&region.file, region.range.start + start..region.range.start + end);
            let named = matches!(before, Some(':' | '.' | '[')) || quoted;
            if let Some(kind) = known.get(&word.replace('-', "_")).filter(|_| named) {
                self.used.push(Name { kind: *kind, text: word.to_owned(), place: place.clone() });
            }
            if quoted {
                self.literals.push(place);
            }
            at = end;
        }
    }

    /// The texts that the spec compares with or knows as words.
    pub(super) fn vocabulary(&self, spec: &Spec) -> Vec<String> {
        let text = |place: &Place| spec.files[&place.file][place.range.clone()].to_owned();
        let words: BTreeSet<String> = self.literals.iter().map(text).collect();
        words.into_iter().collect()
    }
}

/// The top-level nodes of a text.
pub(super) fn nodes(text: &str) -> Vec<Node> {
    parse(text, FileId::new(0)).nodes
}

/// Every node with those around it, in the order of the text.
pub(super) fn walk(nodes: &[Node]) -> Vec<(&Node, Vec<&Node>)> {
    let mut found = Vec::new();
    let mut open: Vec<(&Node, Vec<&Node>)> = nodes.iter().rev().map(|node| (node, Vec::new())).collect();
    while let Some((node, parents)) = open.pop() {
        let inside = [parents.as_slice(), &[node]].concat();
        open.extend(node.children().iter().rev().map(|child| (child, inside.clone())));
        found.push((node, parents));
    }
    found
}
