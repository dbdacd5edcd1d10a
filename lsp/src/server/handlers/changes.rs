//! What changes texts on demand: code actions and formatting.

use std::collections::{BTreeMap, HashMap};

use gen_lsp_types as lsp;

use super::{Answer, Context, problems_of};
use crate::ide::{self, Action, ActionKind, Document, Edit};
use crate::server::convert;
use crate::server::workspaces::File;

pub(super) fn actions(context: &Context, params: lsp::CodeActionParams) -> Answer<Vec<lsp::CodeActionResponse>> {
    let Some(file) = context.moment.file(&params.text_document.uri) else { return Ok(None) };
    let Some(document) = file.document() else { return Ok(None) };
    let range = convert::bytes(document.source(), params.range, context.encoding);
    let only = params.context.only.unwrap_or_default();
    let problems = ide::diagnostics(file.snapshot).remove(&file.path).unwrap_or_default();
    let shown = problems_of(&file, &document, &problems, context);
    let mut found = Vec::new();
    for action in ide::actions(file.snapshot, &file.path, range) {
        let kind = kind(action.kind);
        let possible = action.files.is_empty() || context.client.creates;
        if !possible || !only.is_empty() && !only.iter().any(|only| covers(only, &kind)) {
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
            edit: Some(edit(&file, &action, context)),
            ..Default::default()
        }));
    }
    Ok(Some(found))
}

fn kind(kind: ActionKind) -> lsp::CodeActionKind {
    match kind {
        ActionKind::Fix => lsp::CodeActionKind::QuickFix,
        ActionKind::FixAll => lsp::CodeActionKind::SourceFixAll,
        ActionKind::Extract => lsp::CodeActionKind::RefactorExtract,
        ActionKind::Inline => lsp::CodeActionKind::RefactorInline,
    }
}

/// Whether a kind that a client asks for holds another: `refactor` holds `refactor.inline`.
fn covers(wanted: &lsp::CodeActionKind, kind: &lsp::CodeActionKind) -> bool {
    let word = |kind: &lsp::CodeActionKind| {
        serde_json::to_value(kind).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
    };
    let (wanted, kind) = (word(wanted), word(kind));
    wanted.is_empty() || kind == wanted || kind.starts_with(&format!("{wanted}."))
}

fn edit(file: &File<'_>, action: &Action, context: &Context) -> lsp::WorkspaceEdit {
    if action.files.is_empty() {
        return plain(file, &action.edits, context);
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
            texts(file, path, edits, context),
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
fn plain(file: &File<'_>, edits: &BTreeMap<String, Vec<Edit>>, context: &Context) -> lsp::WorkspaceEdit {
    let changes: HashMap<lsp::Uri, Vec<lsp::TextEdit>> =
        edits.iter().map(|(path, edits)| (file.uri(path), texts(file, path, edits, context))).collect();
    lsp::WorkspaceEdit { changes: Some(changes), ..Default::default() }
}

fn texts(file: &File<'_>, path: &str, edits: &[Edit], context: &Context) -> Vec<lsp::TextEdit> {
    file.snapshot.document(path).map_or(Vec::new(), |document| converted(&document, edits, context))
}

fn converted(document: &Document, edits: &[Edit], context: &Context) -> Vec<lsp::TextEdit> {
    let edit = |edit: &Edit| lsp::TextEdit {
        range: convert::range(document.source(), &edit.range, context.encoding),
        new_text: edit.text.clone(),
    };
    edits.iter().map(edit).collect()
}

pub(super) fn format(context: &Context, params: lsp::DocumentFormattingParams) -> Answer<Vec<lsp::TextEdit>> {
    let document = context.moment.file(&params.text_document.uri).and_then(|file| file.document());
    Ok(document.map(|document| converted(&document, &ide::format(&document, None), context)))
}

pub(super) fn format_range(
    context: &Context,
    params: lsp::DocumentRangeFormattingParams,
) -> Answer<Vec<lsp::TextEdit>> {
    let document = context.moment.file(&params.text_document.uri).and_then(|file| file.document());
    Ok(document.map(|document| {
        let range = convert::bytes(document.source(), params.range, context.encoding);
        converted(&document, &ide::format(&document, Some(range)), context)
    }))
}

pub(super) fn format_typed(
    context: &Context,
    params: lsp::DocumentOnTypeFormattingParams,
) -> Answer<Vec<lsp::TextEdit>> {
    let document = context.moment.file(&params.text_document.uri).and_then(|file| file.document());
    Ok(document.map(|document| {
        let offset = convert::offset(document.source(), params.position, context.encoding);
        converted(&document, &ide::format_typed(&document, offset), context)
    }))
}
