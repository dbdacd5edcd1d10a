//! What changes texts on demand: code actions and formatting.

use gen_lsp_types as lsp;

use super::edits::{convert_edits, make_workspace_edit};
use super::problems::problems_of;
use super::{Answer, Context};
use crate::ide::{self, ActionKind};
use crate::server::convert;

pub(super) fn list_actions(context: &Context, params: lsp::CodeActionParams) -> Answer<Vec<lsp::CodeActionResponse>> {
    let Some(file) = context.moment.file(&params.text_document.uri) else { return Ok(None) };
    let Some(document) = file.document() else { return Ok(None) };
    let range = convert::to_bytes(document.source(), params.range, context.encoding);
    let only = params.context.only.unwrap_or_default();
    let problems = ide::collect_diagnostics(file.snapshot).remove(&file.path).unwrap_or_default();
    let shown = problems_of(&file, &document, &problems, context);
    let mut found = Vec::new();
    for action in ide::list_actions(file.snapshot, &file.path, range) {
        let kind = action_kind(action.kind);
        let possible = action.files.is_empty() || context.client.creates;
        if !possible || !only.is_empty() && !only.iter().any(|only| covers_kind(only, &kind)) {
            continue;
        }
        let mends = action.mends.as_ref().and_then(|(range, code)| {
            let at = problems.iter().position(|problem| problem.range == *range && problem.code == *code)?;
            Some(vec![shown.get(at)?.clone()])
        });
        found.push(lsp::CodeActionResponse::CodeAction(lsp::CodeAction {
            title: action.title.clone(),
            kind: Some(kind),
            diagnostics: mends,
            is_preferred: action.preferred.then_some(true),
            edit: Some(make_workspace_edit(context, &file, &action.files, &action.edits)),
            ..Default::default()
        }));
    }
    Ok(Some(found))
}

fn action_kind(kind: ActionKind) -> lsp::CodeActionKind {
    match kind {
        ActionKind::Fix => lsp::CodeActionKind::QuickFix,
        ActionKind::FixAll => lsp::CodeActionKind::SourceFixAll,
        ActionKind::Extract => lsp::CodeActionKind::RefactorExtract,
        ActionKind::Inline => lsp::CodeActionKind::RefactorInline,
    }
}

/// Whether a kind that a client asks for holds another: `refactor` holds `refactor.inline`.
fn covers_kind(wanted: &lsp::CodeActionKind, kind: &lsp::CodeActionKind) -> bool {
    let word = |kind: &lsp::CodeActionKind| {
        serde_json::to_value(kind).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
    };
    let (wanted, kind) = (word(wanted), word(kind));
    wanted.is_empty() || kind == wanted || kind.starts_with(&format!("{wanted}."))
}

pub(super) fn format_document(context: &Context, params: lsp::DocumentFormattingParams) -> Answer<Vec<lsp::TextEdit>> {
    let document = context.moment.file(&params.text_document.uri).and_then(|file| file.document());
    Ok(document.map(|document| convert_edits(&document, &ide::format_document(&document, None), context)))
}

pub(super) fn format_range(
    context: &Context,
    params: lsp::DocumentRangeFormattingParams,
) -> Answer<Vec<lsp::TextEdit>> {
    let document = context.moment.file(&params.text_document.uri).and_then(|file| file.document());
    Ok(document.map(|document| {
        let range = convert::to_bytes(document.source(), params.range, context.encoding);
        convert_edits(&document, &ide::format_document(&document, Some(range)), context)
    }))
}

pub(super) fn format_typed(
    context: &Context,
    params: lsp::DocumentOnTypeFormattingParams,
) -> Answer<Vec<lsp::TextEdit>> {
    let document = context.moment.file(&params.text_document.uri).and_then(|file| file.document());
    Ok(document.map(|document| {
        let offset = convert::to_offset(document.source(), params.position, context.encoding);
        convert_edits(&document, &ide::format_typed(&document, offset), context)
    }))
}
