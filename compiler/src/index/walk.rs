//! The trees of a spec held against the table of the language: every name, type, path and text that the table says is one.

use super::build::Builder;
use super::{PathUse, Role, SymbolId, SymbolKind, TextUse};
use crate::schema::{self, Argument, Kind, Target};
use crate::source::{FileId, Span};
use crate::symbols::NameKind;
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
pub(super) fn visit_file(builder: &mut Builder<'_, '_, '_>, file: FileId) {
    let tree = builder.loader.syntax_tree(file);
    visit_nodes(builder, &tree.nodes, &schema::SPEC, Place::default());
}

/// Recursion is bounded by how deep a document nests.
fn visit_nodes(builder: &mut Builder<'_, '_, '_>, list: &[Node], parent: &'static schema::Node, place: Place) {
    for written in list {
        if let Some(known) = parent.find_child(&written.name.text).or(parent.open_children) {
            visit_node(builder, written, known, place);
        }
    }
}

fn visit_node(builder: &mut Builder<'_, '_, '_>, written: &Node, known: &'static schema::Node, place: Place) {
    let mut place = place;
    let first = written.arguments().next().map(|entry| entry.value.span);
    // The name of its node declares a field, and the first argument declares all else.
    let declared = [Some(written.name.span), first].into_iter().flatten().find_map(|span| builder.find_declared(span));
    if let Some(id) = declared {
        let describes = |child: &&Node| &*child.name.text == "description";
        let doc = written.children().iter().find(describes).and_then(|child| entry_text(child.arguments().next()?));
        let symbol = &mut builder.index.symbols[id.0 as usize];
        symbol.whole = written.span;
        symbol.doc = doc.map(|text| text.as_str().to_owned()).or(symbol.doc.take());
        match symbol.kind {
            SymbolKind::Pipeline => place.pipeline = builder.pipeline_index(id),
            SymbolKind::Swarm => place.swarm = builder.swarm_index(id),
            _ => {}
        }
        if !matches!(symbol_kind(builder, id), SymbolKind::Port | SymbolKind::Option | SymbolKind::Field) {
            place.owner = Some(id);
        }
    }
    if std::ptr::eq(known, &raw const schema::EDGE) {
        add_reference(builder, Target::Party, &written.name.text, written.name.span, place);
    }
    if std::ptr::eq(known, &raw const schema::SEQUENCE_STEP) {
        add_reference(builder, Target::Step, &written.name.text, written.name.span, place);
    }
    let mut position = 0;
    let mut callee = None;
    // A property may stand ahead of the argument, and is one of the pipeline that the argument names.
    let (arguments, properties): (Vec<_>, Vec<_>) = written.entries.iter().partition(|entry| entry.name.is_none());
    for entry in arguments.into_iter().chain(properties) {
        let kind = match &entry.name {
            None => {
                let argument: Option<&Argument> = known.arguments.get(position).or(known.rest.as_ref());
                position += 1;
                argument.map(|argument| argument.kind)
            }
            Some(name) => match known.find_property(&name.text) {
                Some(property) => Some(property.kind),
                None => {
                    let param = match std::ptr::eq(known, &raw const schema::TEST_PARAM) {
                        true => builder.find_test_param(&name.text, name.span),
                        false => callee.and_then(|callee| builder.find_param(callee, &name.text)),
                    };
                    if let Some(param) = param {
                        builder.add_occurrence(name.span, param, Role::Reference);
                    }
                    known.open_properties.map(|(_, kind)| kind)
                }
            },
        };
        let (Some(kind), Some(value)) = (kind, entry_text(entry)) else { continue };
        let inside = value.span(0..value.as_str().len());
        match kind {
            Kind::Reference(target) => {
                let found = add_reference(builder, target, value.as_str(), inside, place);
                match target {
                    Target::Pipeline => callee = found,
                    // The choice that follows is one of its options.
                    Target::AnyStep | Target::Maker => place.owner = found,
                    _ => {}
                }
            }
            Kind::Type => visit_type(builder, value),
            Kind::Path => visit_path(builder, value, inside),
            Kind::Variable => {
                let from = inside.file;
                let secret = builder.model.tables.find_name(NameKind::Secret, value.as_str(), true, from);
                if let Some(secret) = secret.and_then(|secret| builder.top_symbol(NameKind::Secret, secret)) {
                    builder.add_occurrence(inside, secret, Role::Reference);
                }
            }
            Kind::Template | Kind::Expression => visit_text(builder, entry.value.span, place),
            Kind::Text if known.name == "tools" => {
                let server = builder.model.tables.find_name(NameKind::ToolServer, value.as_str(), true, inside.file);
                if let Some(server) = server.and_then(|server| builder.top_symbol(NameKind::ToolServer, server)) {
                    builder.add_occurrence(inside, server, Role::Reference);
                }
            }
            _ => {}
        }
    }
    visit_nodes(builder, written.children(), known, place);
}

fn symbol_kind(builder: &Builder<'_, '_, '_>, id: SymbolId) -> SymbolKind {
    builder.index.symbol(id).kind
}

/// Notes a reference; gives what it leads to.
fn add_reference(
    builder: &mut Builder<'_, '_, '_>,
    target: Target,
    name: &str,
    span: Span,
    place: Place,
) -> Option<SymbolId> {
    let found = builder.resolve_reference(target, name, span.file, place.pipeline, place.swarm, place.owner);
    // A qualifier is a name of its own.
    let mut span = span;
    // With an escape in it, the places in the text are not those in the name.
    if let Some((alias, rest)) = name.split_once('.')
        && span.len() == name.len()
    {
        let dot = span.start + u32::try_from(alias.len()).unwrap_or(0);
        let import = builder.find_alias(alias, span.file);
        if let Some(import) = import {
            builder.add_occurrence(Span { end: dot, ..span }, import, Role::Reference);
        }
        span = Span { start: span.end - u32::try_from(rest.len()).unwrap_or(0), ..span };
    }
    for &found in &found {
        builder.add_occurrence(span, found, Role::Reference);
    }
    found.first().copied()
}

/// The declared types in a written one: `list<Issue>?`. The words of an enum are none.
fn visit_type(builder: &mut Builder<'_, '_, '_>, value: &Text) {
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
        let found = builder.model.tables.find_name(NameKind::Type, word, true, span.file);
        if let Some(found) = found.and_then(|found| builder.top_symbol(NameKind::Type, found)) {
            let name = word.rsplit('.').next().unwrap_or(word);
            let span = value.span(at - name.len()..at);
            builder.add_occurrence(span, found, Role::Reference);
        }
    }
}

fn visit_path(builder: &mut Builder<'_, '_, '_>, value: &Text, span: Span) {
    if let Some(file) = builder.file_of(value.as_str(), span.file) {
        builder.index.paths.push(PathUse { span, file });
    }
}

/// Notes a text of the spec itself.
fn visit_text(builder: &mut Builder<'_, '_, '_>, span: Span, place: Place) {
    let Some(owner) = place.owner else { return };
    let mut pipelines: Vec<usize> = match place.pipeline {
        Some(pipeline) => vec![pipeline],
        None => builder.pipelines_of(owner).to_vec(),
    };
    // They come pipeline by pipeline, so equal ones stand side by side.
    pipelines.dedup();
    let homes: Vec<Option<SymbolId>> = match pipelines.is_empty() {
        true => vec![None],
        false => pipelines.into_iter().map(|pipeline| builder.top_symbol(NameKind::Pipeline, pipeline)).collect(),
    };
    for pipeline in homes {
        builder.index.texts.push(TextUse { span, owner, pipeline });
    }
}

fn entry_text(entry: &syntax::Entry) -> Option<&Text> {
    match &entry.value.kind {
        ValueKind::String(text) => Some(text),
        _ => None,
    }
}
