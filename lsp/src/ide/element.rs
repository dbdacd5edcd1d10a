//! The tree of a spec held against the table of the language: which part of which node stands in a place.

use swarmc_compiler::schema::{self, Argument, Kind, Property};
use swarmc_compiler::syntax::{Entry, Name, Node, Text, ValueKind};

use super::Document;

/// A part of a node that the language knows.
#[derive(Debug)]
pub(super) struct Element<'t> {
    /// What the language says of the node.
    pub(super) known: &'static schema::Node,
    /// The part.
    pub(super) part: Part<'t>,
}

/// A part of a node.
#[derive(Debug)]
pub(super) enum Part<'t> {
    /// Its name.
    Name(&'t Name),
    /// The key of a property; of one that any name may have, none.
    Key(&'t Name, Option<&'static Property>),
    /// A value, and what it is an instance of.
    Value(&'t Entry, Slot),
    /// Anything else of it.
    Rest,
}

/// What a value is given for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Slot {
    /// An argument.
    Argument(&'static Argument),
    /// A property.
    Property(&'static Property),
    /// A property of any name, with what its value may be.
    Open(Kind),
}

impl Slot {
    /// What the value may be.
    pub(super) fn kind(self) -> Kind {
        match self {
            Slot::Argument(argument) => argument.kind,
            Slot::Property(property) => property.kind,
            Slot::Open(kind) => kind,
        }
    }
}

/// The part of the innermost node around an offset.
pub(super) fn find_element(document: &Document, offset: usize) -> Option<Element<'_>> {
    let tree = document.tree()?;
    let covers = |node: &&Node| node.span.range().start <= offset && offset <= node.span.range().end;
    let (mut nodes, mut parent, mut found) = (tree.nodes.as_slice(), document.language(), None);
    // Of two nodes that meet at a place, the later one begins there.
    while let Some(node) = nodes.iter().rev().find(covers) {
        let Some(known) = find_schema(parent, node) else { break };
        found = Some((node, known));
        (nodes, parent) = (node.children(), known);
    }
    let (node, known) = found?;
    Some(Element { known, part: classify_offset(node, known, offset) })
}

/// What the language says of a node in the block of another one.
pub(super) fn find_schema(parent: &'static schema::Node, node: &Node) -> Option<&'static schema::Node> {
    parent.find_child(&node.name.text).or(parent.open_children)
}

/// Calls `visit` for every node that the language knows, with how deep it stands, outer ones first; recursion is bounded
/// by how deep a document nests.
pub(super) fn visit_nodes<'t>(document: &'t Document, visit: &mut dyn FnMut(&'t Node, &'static schema::Node)) {
    let nodes = document.tree().map_or(&[] as &[Node], |tree| &tree.nodes);
    visit_children(nodes, document.language(), visit);
}

fn visit_children<'t>(
    nodes: &'t [Node],
    parent: &'static schema::Node,
    visit: &mut dyn FnMut(&'t Node, &'static schema::Node),
) {
    for node in nodes {
        if let Some(known) = find_schema(parent, node) {
            visit(node, known);
            visit_children(node.children(), known, visit);
        }
    }
}

/// The entries of a node with what each is given for, where the language knows.
pub(super) fn list_entries<'t>(
    node: &'t Node,
    known: &'static schema::Node,
) -> impl Iterator<Item = (&'t Entry, Option<Slot>)> {
    let mut position = 0;
    node.entries.iter().map(move |entry| {
        let slot = match &entry.name {
            None => {
                position += 1;
                known.arguments.get(position - 1).or(known.rest.as_ref()).map(Slot::Argument)
            }
            Some(name) => match known.find_property(&name.text) {
                Some(property) => Some(Slot::Property(property)),
                None => known.open_properties.map(|(_, kind)| Slot::Open(kind)),
            },
        };
        (entry, slot)
    })
}

/// The text of an entry's value.
pub(super) fn entry_text(entry: &Entry) -> Option<&Text> {
    match &entry.value.kind {
        ValueKind::String(text) => Some(text),
        _ => None,
    }
}

fn classify_offset<'t>(node: &'t Node, known: &'static schema::Node, offset: usize) -> Part<'t> {
    let touches = |span: swarmc_compiler::Span| span.range().start <= offset && offset <= span.range().end;
    if touches(node.name.span) {
        return Part::Name(&node.name);
    }
    for (entry, slot) in list_entries(node, known) {
        match (&entry.name, slot) {
            (_, Some(slot)) if touches(entry.value.span) => return Part::Value(entry, slot),
            (Some(name), slot) if touches(name.span) => {
                let property = match slot {
                    Some(Slot::Property(property)) => Some(property),
                    _ => None,
                };
                return Part::Key(name, property);
            }
            _ => {}
        }
    }
    Part::Rest
}
