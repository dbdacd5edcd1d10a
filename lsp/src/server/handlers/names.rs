//! Definition, type definition, references, highlights and renaming.

use gen_lsp_types as lsp;

use super::edits::make_workspace_edit;
use super::{Answer, Context};
use crate::ide::{self, Target};
use crate::server::convert;
use crate::server::dispatch::Failure;
use crate::server::workspaces::File;

pub(super) fn find_definition(context: &Context, params: lsp::DefinitionParams) -> Answer<lsp::DefinitionResponse> {
    let Some((file, _, offset)) = context.locate_position(&params.text_document_position_params) else {
        return Ok(None);
    };
    let targets = ide::find_definition(file.snapshot, &file.path, offset);
    Ok(Some(match context.client.links {
        true => lsp::DefinitionResponse::DefinitionLinkList(make_links(context, &file, &targets)),
        false => lsp::Definition::LocationList(name_locations(context, &file, &targets)).into(),
    }))
}

pub(super) fn type_definition(
    context: &Context,
    params: lsp::TypeDefinitionParams,
) -> Answer<lsp::TypeDefinitionResponse> {
    let Some((file, _, offset)) = context.locate_position(&params.text_document_position_params) else {
        return Ok(None);
    };
    let targets = ide::type_definition(file.snapshot, &file.path, offset);
    Ok(Some(match context.client.type_links {
        true => lsp::TypeDefinitionResponse::DefinitionLinkList(make_links(context, &file, &targets)),
        false => lsp::Definition::LocationList(name_locations(context, &file, &targets)).into(),
    }))
}

fn name_locations(context: &Context, file: &File<'_>, targets: &[Target]) -> Vec<lsp::Location> {
    targets.iter().filter_map(|target| file.location(&target.name, context.encoding)).collect()
}

fn make_links(context: &Context, file: &File<'_>, targets: &[Target]) -> Vec<lsp::DefinitionLink> {
    let Some(document) = file.document() else { return Vec::new() };
    let link = |target: &Target| {
        let (name, whole) =
            (file.location(&target.name, context.encoding)?, file.location(&target.whole, context.encoding)?);
        Some(lsp::LocationLink {
            origin_selection_range: Some(convert::to_range(document.source(), &target.origin, context.encoding)),
            target_uri: whole.uri,
            target_range: whole.range,
            target_selection_range: name.range,
        })
    };
    targets.iter().filter_map(link).collect()
}

pub(super) fn find_references(context: &Context, params: lsp::ReferenceParams) -> Answer<Vec<lsp::Location>> {
    let Some((file, _, offset)) = context.locate_position(&params.text_document_position_params) else {
        return Ok(None);
    };
    let places = ide::find_references(file.snapshot, &file.path, offset, params.context.include_declaration);
    Ok(Some(context.locations(&file, &places)))
}

pub(super) fn highlight_name(
    context: &Context,
    params: lsp::DocumentHighlightParams,
) -> Answer<Vec<lsp::DocumentHighlight>> {
    let Some((file, document, offset)) = context.locate_position(&params.text_document_position_params) else {
        return Ok(None);
    };
    let places = ide::highlight_name(file.snapshot, &file.path, offset).into_iter();
    let highlight = |(range, declares)| lsp::DocumentHighlight {
        range: convert::to_range(document.source(), &range, context.encoding),
        kind: Some(if declares { lsp::DocumentHighlightKind::Write } else { lsp::DocumentHighlightKind::Read }),
    };
    Ok(Some(places.map(highlight).collect()))
}

pub(super) fn prepare_rename(context: &Context, params: lsp::PrepareRenameParams) -> Answer<lsp::PrepareRenameResult> {
    let Some((file, document, offset)) = context.locate_position(&params.text_document_position_params) else {
        return Ok(None);
    };
    let range = ide::prepare_rename(file.snapshot, &file.path, offset).map_err(Failure)?;
    Ok(Some(convert::to_range(document.source(), &range, context.encoding).into()))
}

pub(super) fn rename_symbol(context: &Context, params: lsp::RenameParams) -> Answer<lsp::WorkspaceEdit> {
    let Some((file, _, offset)) = context.locate_position(&params.text_document_position_params) else {
        return Ok(None);
    };
    let edits = ide::rename_symbol(file.snapshot, &file.path, offset, &params.new_name).map_err(Failure)?;
    Ok(Some(make_workspace_edit(context, &file, &[], &edits)))
}
