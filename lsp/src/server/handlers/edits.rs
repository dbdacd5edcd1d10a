//! Edits of a workspace as clients take them: with files that are made and versions where they know these.

use std::collections::{BTreeMap, HashMap};

use gen_lsp_types as lsp;

use super::{Answer, Context};
use crate::ide::{self, Document, Edit};
use crate::server::convert;
use crate::server::workspaces::File;

/// Makes files with their texts, then edits those that are there.
pub(super) fn make_workspace_edit(
    context: &Context,
    file: &File<'_>,
    files: &[(String, String)],
    edits: &BTreeMap<String, Vec<Edit>>,
) -> lsp::WorkspaceEdit {
    let convert = |path: &str, edits: &[Edit]| {
        file.snapshot.document(path).map_or(Vec::new(), |document| convert_edits(&document, edits, context))
    };
    // Plain `changes` can neither make files nor name versions, but every client knows them.
    if !context.client.documents {
        let changes: HashMap<lsp::Uri, Vec<lsp::TextEdit>> =
            edits.iter().map(|(path, edits)| (file.uri(path), convert(path, edits))).collect();
        return lsp::WorkspaceEdit { changes: Some(changes), ..Default::default() };
    }
    let mut changes = Vec::new();
    for (path, text) in files {
        let uri = file.uri(path);
        changes.push(lsp::DocumentChange::CreateFile(lsp::CreateFile::new(uri.clone(), None, None)));
        let edits = vec![lsp::TextEdit { range: lsp::Range::default(), new_text: text.clone() }];
        changes.push(lsp::DocumentChange::TextDocumentEdit(edit_document(uri, None, edits)));
    }
    for (path, edits) in edits {
        let uri = file.uri(path);
        // A client refuses an edit of a text that has changed since.
        let version = context.versions.get(&uri.0).copied();
        changes.push(lsp::DocumentChange::TextDocumentEdit(edit_document(uri, version, convert(path, edits))));
    }
    lsp::WorkspaceEdit { document_changes: Some(changes), ..Default::default() }
}

fn edit_document(uri: lsp::Uri, version: Option<i32>, edits: Vec<lsp::TextEdit>) -> lsp::TextDocumentEdit {
    let text_document_identifier = lsp::TextDocumentIdentifier { uri };
    lsp::TextDocumentEdit {
        text_document: lsp::OptionalVersionedTextDocumentIdentifier { version, text_document_identifier },
        edits: edits.into_iter().map(lsp::Edit::TextEdit).collect(),
    }
}

pub(super) fn convert_edits(document: &Document, edits: &[Edit], context: &Context) -> Vec<lsp::TextEdit> {
    let edit = |edit: &Edit| lsp::TextEdit {
        range: convert::to_range(document.source(), &edit.range, context.encoding),
        new_text: edit.text.clone(),
    };
    edits.iter().map(edit).collect()
}

/// What changes in other files when some are about to move.
pub(super) fn move_files(context: &Context, params: lsp::RenameFilesParams) -> Answer<lsp::WorkspaceEdit> {
    let mut moves: BTreeMap<_, Vec<(String, String)>> = BTreeMap::new();
    for moved in params.files {
        let (Some((root, from)), Some((new_root, to))) =
            (context.moment.find_path(&moved.old_uri), context.moment.find_path(&moved.new_uri))
        else {
            continue;
        };
        // What leaves the workspace cannot be named there.
        if root == new_root {
            moves.entry(root).or_default().push((from, to));
        }
    }
    let mut whole: Option<lsp::WorkspaceEdit> = None;
    for (root, moves) in moves {
        let Some(file) = context.moment.find_in_root(&root, "") else { continue };
        let edits = ide::move_files(file.snapshot, &moves);
        if edits.is_empty() {
            continue;
        }
        let edit = make_workspace_edit(context, &file, &[], &edits);
        match &mut whole {
            None => whole = Some(edit),
            Some(whole) => {
                whole.changes.iter_mut().for_each(|known| known.extend(edit.changes.clone().unwrap_or_default()));
                let more = edit.document_changes.unwrap_or_default();
                whole.document_changes.iter_mut().for_each(|known| known.extend(more.clone()));
            }
        }
    }
    Ok(whole)
}
