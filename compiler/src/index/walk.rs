//! The trees of a spec held against the table of the language: every name, type, path and text that the table says is one.

use super::build::Builder;
use super::{PathUse, Role, SymbolId, SymbolKind, TextUse};
use crate::resolve::symbols::NameKind;
use crate::schema::{self, Argument, Kind, Target};
use crate::source::{FileId, Span};
use crate::syntax::{self, Node, Text, ValueKind};

/// What a node stands in.
#[derive(Clone, Copy, Default)]
struct Place {
    /// The innermost symbol that says something.
    owner: Option<SymbolId>,
    /// The pipeline, by index.
    pipeline: Option<usize>,
    /// The swarm, by index.
    swarm: Option<usize>,
}

/// Gathers what stands in a file.
pub(super) fn walk(builder: &mut Builder<'_, '_, '_>, file: FileId) {
    let tree = builder.loader.tree(file);
    nodes(builder, &tree.nodes, &schema::SPEC, Place::default());
}

/// Recursion is bounded by how deep a document nests.
fn nodes(builder: &mut Builder<'_, '_, '_>, list: &[Node], parent: &'static schema::Node, place: Place) {
    for written in list {
        if let Some(known) = parent.child(&written.name.text).or(parent.open_children) {
            node(builder, written, known, place);
        }
    }
}

fn node(builder: &mut Builder<'_, '_, '_>, written: &Node, known: &'static schema::Node, place: Place) {
    let mut place = place;
    let first = written.arguments().next().map(|entry| entry.value.span);
    let declared = [Some(written.name.span), first].into_iter().flatten().find_map(|span| builder.declared(span));
    if let Some(id) = declared {
        let describes = |child: &&Node| &*child.name.text == "description";
        let doc = written.children().iter().find(describes).and_then(|child| text(child.arguments().next()?));
        let symbol = &mut builder.index.symbols[id.0 as usize];
        symbol.whole = written.span;
        symbol.doc = doc.map(|text| text.as_str().to_owned()).or(symbol.doc.take());
        match symbol.kind {
            SymbolKind::Pipeline => place.pipeline = builder.pipeline(id),
            SymbolKind::Swarm => place.swarm = builder.swarm(id),
            _ => {}
        }
        if !matches!(symbol_kind(builder, id), SymbolKind::Port | SymbolKind::Option | SymbolKind::Field) {
            place.owner = Some(id);
        }
    }
    if std::ptr::eq(known, &raw const schema::EDGE) {
        refers(builder, Target::Party, &written.name.text, written.name.span, place);
    }
    let mut position = 0;
    let mut callee = None;
    for entry in &written.entries {
        let kind = match &entry.name {
            None => {
                let argument: Option<&Argument> = known.arguments.get(position).or(known.rest.as_ref());
                position += 1;
                argument.map(|argument| argument.kind)
            }
            Some(name) => match known.property(&name.text) {
                Some(property) => Some(property.kind),
                None => {
                    let param = match std::ptr::eq(known, &raw const schema::TEST_PARAM) {
                        true => builder.tested(&name.text, name.span),
                        false => callee.and_then(|callee| builder.param(callee, &name.text)),
                    };
                    if let Some(param) = param {
                        builder.occurs(name.span, param, Role::Reference);
                    }
                    known.open_properties.map(|(_, kind)| kind)
                }
            },
        };
        let (Some(kind), Some(value)) = (kind, text(entry)) else { continue };
        let inside = value.span(0..value.as_str().len());
        match kind {
            Kind::Reference(target) => {
                let found = refers(builder, target, value.as_str(), inside, place);
                match target {
                    Target::Pipeline => callee = found,
                    // The choice that follows is one of its options.
                    Target::AnyStep | Target::Maker => place.owner = found,
                    _ => {}
                }
            }
            Kind::Type => types(builder, value),
            Kind::Path => path(builder, value, inside),
            Kind::Variable => {
                let from = inside.file;
                let secret = builder.model.tables.find(NameKind::Secret, value.as_str(), true, from);
                if let Some(secret) = secret.and_then(|secret| builder.top(NameKind::Secret, secret)) {
                    builder.occurs(inside, secret, Role::Reference);
                }
            }
            Kind::Template | Kind::Expression => says(builder, entry.value.span, place),
            Kind::Text if known.name == "tools" => {
                let server = builder.model.tables.find(NameKind::ToolServer, value.as_str(), true, inside.file);
                if let Some(server) = server.and_then(|server| builder.top(NameKind::ToolServer, server)) {
                    builder.occurs(inside, server, Role::Reference);
                }
            }
            _ => {}
        }
    }
    nodes(builder, written.children(), known, place);
}

fn symbol_kind(builder: &Builder<'_, '_, '_>, id: SymbolId) -> SymbolKind {
    builder.index.symbol(id).kind
}

/// Notes a reference; gives what it leads to.
fn refers(builder: &mut Builder<'_, '_, '_>, target: Target, name: &str, span: Span, place: Place) -> Option<SymbolId> {
    let found = builder.find(target, name, span.file, place.pipeline, place.swarm, place.owner);
    // A qualifier is a name of its own.
    let mut span = span;
    if let Some((alias, rest)) = name.split_once('.')
        && span.len() == name.len()
    {
        let dot = span.start + u32::try_from(alias.len()).unwrap_or(0);
        let import = builder.alias(alias, span.file);
        if let Some(import) = import {
            builder.occurs(Span { end: dot, ..span }, import, Role::Reference);
        }
        span = Span { start: span.end - u32::try_from(rest.len()).unwrap_or(0), ..span };
    }
    for &found in &found {
        builder.occurs(span, found, Role::Reference);
    }
    found.first().copied()
}

/// The declared types in a written one: `list<Issue>?`. The words of an enum are none.
fn types(builder: &mut Builder<'_, '_, '_>, value: &Text) {
    let written = value.as_str();
    if written.starts_with("enum ") || written == "enum" {
        return;
    }
    let mut at = 0;
    for word in written.split(|sign: char| !(sign.is_ascii_alphanumeric() || matches!(sign, '_' | '-' | '.'))) {
        // Every separator is one character.
        let start = written[at..].find(word).map_or(at, |found| at + found);
        at = start + word.len();
        if word.is_empty() {
            continue;
        }
        let span = value.span(start..at);
        let found = builder.model.tables.find(NameKind::Type, word, true, span.file);
        if let Some(found) = found.and_then(|found| builder.top(NameKind::Type, found)) {
            let name = word.rsplit('.').next().unwrap_or(word);
            let span = value.span(at - name.len()..at);
            builder.occurs(span, found, Role::Reference);
        }
    }
}

fn path(builder: &mut Builder<'_, '_, '_>, value: &Text, span: Span) {
    if let Some(file) = builder.file_of(value.as_str(), span.file) {
        builder.index.paths.push(PathUse { span, file });
    }
}

/// Notes a text of the spec itself.
fn says(builder: &mut Builder<'_, '_, '_>, span: Span, place: Place) {
    let Some(owner) = place.owner else { return };
    let mut pipelines: Vec<usize> = match place.pipeline {
        Some(pipeline) => vec![pipeline],
        None => builder.pipelines_of(owner).to_vec(),
    };
    pipelines.dedup();
    let homes: Vec<Option<SymbolId>> = match pipelines.is_empty() {
        true => vec![None],
        false => pipelines.into_iter().map(|pipeline| builder.top(NameKind::Pipeline, pipeline)).collect(),
    };
    for pipeline in homes {
        builder.index.texts.push(TextUse { span, owner, pipeline });
    }
}

fn text(entry: &syntax::Entry) -> Option<&Text> {
    match &entry.value.kind {
        ValueKind::String(text) => Some(text),
        _ => None,
    }
}
