//! The shape of a file: symbols, folding, selections, links, and data flow as a hierarchy of calls.

use gen_lsp_types as lsp;
use swarmc_compiler::index::SymbolKind;

use super::{Answer, Context};
use crate::ide::{self, Document, EntryKind, Feed, FoldKind, Member, Place};
use crate::server::convert;
use crate::server::workspaces::File;

pub(super) fn document_symbols(
    context: &Context,
    params: lsp::DocumentSymbolParams,
) -> Answer<lsp::DocumentSymbolResponse> {
    let Some((_, document)) = context.document(&params.text_document) else { return Ok(None) };
    let list = ide::build_outline(&document).into_iter().map(|entry| make_symbol(context, &document, entry)).collect();
    Ok(Some(lsp::DocumentSymbolResponse::DocumentSymbolList(list)))
}

fn make_symbol(context: &Context, document: &Document, entry: ide::Entry) -> lsp::DocumentSymbol {
    let children: Vec<_> = entry.children.into_iter().map(|entry| make_symbol(context, document, entry)).collect();
    let kind = match entry.kind {
        EntryKind::Symbol(kind) => kind_of(kind),
        EntryKind::Workflow => lsp::SymbolKind::Package,
        EntryKind::Test => lsp::SymbolKind::Event,
        EntryKind::Edges => lsp::SymbolKind::Array,
    };
    let range = |range| convert::to_range(document.source(), range, context.encoding);
    let children = (!children.is_empty()).then_some(children);
    let (whole, name) = (range(&entry.range), range(&entry.selection));
    lsp::DocumentSymbol::new(entry.name, Some(entry.detail), kind, None, None, whole, name, children)
}

pub(super) fn workspace_symbols(
    context: &Context,
    params: lsp::WorkspaceSymbolParams,
) -> Answer<lsp::WorkspaceSymbolResponse> {
    let mut list = Vec::new();
    for file in context.moment.list_roots() {
        for found in ide::search_symbols(file.snapshot, &params.query) {
            let Some(location) = file.location(&found.place, context.encoding) else { continue };
            list.push(lsp::WorkspaceSymbol {
                location: location.into(),
                data: None,
                base_symbol_information: lsp::BaseSymbolInformation {
                    name: found.name,
                    kind: kind_of(found.kind),
                    tags: None,
                    container_name: found.within,
                },
            });
        }
    }
    Ok(Some(lsp::WorkspaceSymbolResponse::WorkspaceSymbolList(list)))
}

pub(super) fn list_folds(context: &Context, params: lsp::FoldingRangeParams) -> Answer<Vec<lsp::FoldingRange>> {
    let Some((file, document)) = context.document(&params.text_document) else { return Ok(None) };
    let fold = |fold: ide::Fold| {
        let range = convert::to_range(document.source(), &fold.range, context.encoding);
        lsp::FoldingRange {
            start_line: range.start.line,
            start_character: Some(range.start.character),
            end_line: range.end.line,
            end_character: Some(range.end.character),
            kind: Some(match fold.kind {
                FoldKind::Region => lsp::FoldingRangeKind::Region,
                FoldKind::Comment => lsp::FoldingRangeKind::Comment,
                FoldKind::Imports => lsp::FoldingRangeKind::Imports,
            }),
            collapsed_text: None,
        }
    };
    Ok(Some(ide::list_folds(file.snapshot, &file.path).into_iter().map(fold).collect()))
}

pub(super) fn list_selections(
    context: &Context,
    params: lsp::SelectionRangeParams,
) -> Answer<Vec<lsp::SelectionRange>> {
    let Some((file, document)) = context.document(&params.text_document) else { return Ok(None) };
    let around = |position: lsp::Position| {
        let offset = convert::to_offset(document.source(), position, context.encoding);
        let mut ranges = ide::list_selections(file.snapshot, &file.path, offset);
        if ranges.is_empty() {
            // Every position wants an answer.
            ranges.push(offset..offset);
        }
        let grown = ranges.iter().rev().fold(None, |parent, range| {
            let range = convert::to_range(document.source(), range, context.encoding);
            Some(Box::new(lsp::SelectionRange { range, parent }))
        });
        grown.map(|grown| *grown)
    };
    Ok(Some(params.positions.into_iter().filter_map(around).collect()))
}

pub(super) fn list_links(context: &Context, params: lsp::DocumentLinkParams) -> Answer<Vec<lsp::DocumentLink>> {
    let Some((file, document)) = context.document(&params.text_document) else { return Ok(None) };
    let link = |link: ide::Link| lsp::DocumentLink {
        range: convert::to_range(document.source(), &(link.start..link.end), context.encoding),
        target: Some(file.uri(&link.file)),
        tooltip: Some(link.file),
        data: None,
    };
    Ok(Some(ide::list_links(file.snapshot, &file.path).into_iter().map(link).collect()))
}

pub(super) fn find_linked_ranges(
    context: &Context,
    params: lsp::LinkedEditingRangeParams,
) -> Answer<lsp::LinkedEditingRanges> {
    let Some((file, document, offset)) = context.locate_position(&params.text_document_position_params) else {
        return Ok(None);
    };
    let ranges = ide::find_linked_ranges(file.snapshot, &file.path, offset);
    let ranges: Vec<_> =
        ranges.iter().map(|range| convert::to_range(document.source(), range, context.encoding)).collect();
    let word_pattern = Some("[a-z][a-z0-9_-]*".to_owned());
    Ok((!ranges.is_empty()).then_some(lsp::LinkedEditingRanges { ranges, word_pattern }))
}

pub(super) fn prepare_calls(
    context: &Context,
    params: lsp::CallHierarchyPrepareParams,
) -> Answer<Vec<lsp::CallHierarchyItem>> {
    let Some((file, _, offset)) = context.locate_position(&params.text_document_position_params) else {
        return Ok(None);
    };
    let members = ide::list_members(file.snapshot, &file.path, offset);
    Ok(Some(members.into_iter().filter_map(|member| make_item(context, &file, member)).collect()))
}

pub(super) fn list_incoming(
    context: &Context,
    params: lsp::CallHierarchyIncomingCallsParams,
) -> Answer<Vec<lsp::CallHierarchyIncomingCall>> {
    let Some((file, _, offset)) = context.locate_position(&place_of(&params.item)) else { return Ok(None) };
    let feeds = ide::list_incoming(file.snapshot, &file.path, offset).into_iter();
    let call = |feed: Feed| {
        let reads = file_ranges(context, &file, &feed.reads, &feed.member.place.path);
        let from = make_item(context, &file, feed.member)?;
        Some(lsp::CallHierarchyIncomingCall { from_ranges: or_name(reads, from.selection_range), from })
    };
    Ok(Some(feeds.filter_map(call).collect()))
}

pub(super) fn list_outgoing(
    context: &Context,
    params: lsp::CallHierarchyOutgoingCallsParams,
) -> Answer<Vec<lsp::CallHierarchyOutgoingCall>> {
    let Some((file, _, offset)) = context.locate_position(&place_of(&params.item)) else { return Ok(None) };
    let feeds = ide::list_outgoing(file.snapshot, &file.path, offset).into_iter();
    let call = |feed: Feed| {
        let reads = file_ranges(context, &file, &feed.reads, &file.path);
        let from_ranges = or_name(reads, params.item.selection_range);
        Some(lsp::CallHierarchyOutgoingCall { to: make_item(context, &file, feed.member)?, from_ranges })
    };
    Ok(Some(feeds.filter_map(call).collect()))
}

/// What reads in the file in which the protocol wants it; where it stands in a prompt, the name of the one who is read.
fn or_name(reads: Vec<lsp::Range>, name: lsp::Range) -> Vec<lsp::Range> {
    if reads.is_empty() { vec![name] } else { reads }
}

/// The places that lie in one file.
fn file_ranges(context: &Context, file: &File<'_>, places: &[Place], path: &str) -> Vec<lsp::Range> {
    let places = places.iter().filter(|place| place.path == path);
    places.filter_map(|place| Some(file.location(place, context.encoding)?.range)).collect()
}

fn place_of(item: &lsp::CallHierarchyItem) -> lsp::TextDocumentPositionParams {
    lsp::TextDocumentPositionParams {
        text_document: lsp::TextDocumentIdentifier { uri: item.uri.clone() },
        position: item.selection_range.start,
    }
}

fn make_item(context: &Context, file: &File<'_>, member: Member) -> Option<lsp::CallHierarchyItem> {
    let (name, whole) =
        (file.location(&member.place, context.encoding)?, file.location(&member.whole, context.encoding)?);
    Some(lsp::CallHierarchyItem {
        name: member.name,
        kind: kind_of(member.kind),
        tags: None,
        detail: Some(member.detail),
        uri: whole.uri,
        range: whole.range,
        selection_range: name.range,
        data: None,
    })
}

/// A symbol in the terms of the protocol.
fn kind_of(kind: SymbolKind) -> lsp::SymbolKind {
    match kind {
        SymbolKind::Param | SymbolKind::Port => lsp::SymbolKind::Variable,
        SymbolKind::Secret => lsp::SymbolKind::Key,
        SymbolKind::Type => lsp::SymbolKind::Struct,
        SymbolKind::Field => lsp::SymbolKind::Field,
        SymbolKind::Provider | SymbolKind::ToolServer => lsp::SymbolKind::Interface,
        SymbolKind::Tier => lsp::SymbolKind::Constant,
        SymbolKind::Agent | SymbolKind::Member => lsp::SymbolKind::Class,
        SymbolKind::Prompt => lsp::SymbolKind::String,
        SymbolKind::Pack => lsp::SymbolKind::Object,
        SymbolKind::Task | SymbolKind::Gate | SymbolKind::Loop | SymbolKind::Stop => lsp::SymbolKind::Function,
        SymbolKind::Option => lsp::SymbolKind::EnumMember,
        SymbolKind::Pipeline | SymbolKind::Swarm => lsp::SymbolKind::Module,
        SymbolKind::Item => lsp::SymbolKind::Property,
        SymbolKind::Channel | SymbolKind::Worktree => lsp::SymbolKind::Namespace,
        SymbolKind::Alias => lsp::SymbolKind::Namespace,
    }
}
