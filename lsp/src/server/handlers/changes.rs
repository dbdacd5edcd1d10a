//! What changes texts on demand: code actions and formatting.

use std::collections::{BTreeMap, HashMap};

use gen_lsp_types as lsp;

use super::{Answer, Context, problems_of};
use crate::ide::{self, Action, ActionKind, Document, Edit};
use crate::server::convert;
use crate::server::workspaces::File;

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
            edit: Some(make_workspace_edit(&file, &action, context)),
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

fn make_workspace_edit(file: &File<'_>, action: &Action, context: &Context) -> lsp::WorkspaceEdit {
    // Plain `changes` cannot make files, but every client knows them.
    if action.files.is_empty() {
        return make_text_changes(file, &action.edits, context);
    }
    let mut changes = Vec::new();
    for (path, text) in &action.files {
        let uri = file.uri(path);
        let made = lsp::CreateFile::new(uri.clone(), None, None);
        changes.push(lsp::DocumentChange::CreateFile(made));
        let start = lsp::Range::default();
        let edits = vec![lsp::TextEdit { range: start, new_text: text.clone() }];
        changes.push(lsp::DocumentChange::TextDocumentEdit(document_edit(uri, edits)));
    }
    for (path, edits) in &action.edits {
        changes.push(lsp::DocumentChange::TextDocumentEdit(document_edit(
            file.uri(path),
            convert_file_edits(file, path, edits, context),
        )));
    }
    lsp::WorkspaceEdit { document_changes: Some(changes), ..Default::default() }
}

fn document_edit(uri: lsp::Uri, edits: Vec<lsp::TextEdit>) -> lsp::TextDocumentEdit {
    let identifier = lsp::TextDocumentIdentifier { uri };
    lsp::TextDocumentEdit {
        text_document: lsp::OptionalVersionedTextDocumentIdentifier {
            version: None,
            text_document_identifier: identifier,
        },
        edits: edits.into_iter().map(lsp::Edit::TextEdit).collect(),
    }
}

/// Edits of files that are there, for any client.
fn make_text_changes(file: &File<'_>, edits: &BTreeMap<String, Vec<Edit>>, context: &Context) -> lsp::WorkspaceEdit {
    let changes: HashMap<lsp::Uri, Vec<lsp::TextEdit>> =
        edits.iter().map(|(path, edits)| (file.uri(path), convert_file_edits(file, path, edits, context))).collect();
    lsp::WorkspaceEdit { changes: Some(changes), ..Default::default() }
}

fn convert_file_edits(file: &File<'_>, path: &str, edits: &[Edit], context: &Context) -> Vec<lsp::TextEdit> {
    file.snapshot.document(path).map_or(Vec::new(), |document| convert_edits(&document, edits, context))
}

fn convert_edits(document: &Document, edits: &[Edit], context: &Context) -> Vec<lsp::TextEdit> {
    let edit = |edit: &Edit| lsp::TextEdit {
        range: convert::to_range(document.source(), &edit.range, context.encoding),
        new_text: edit.text.clone(),
    };
    edits.iter().map(edit).collect()
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
