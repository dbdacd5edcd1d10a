//! One handler a request, a few lines each: convert, ask `ide`, convert back.

mod changes;
pub(super) mod commands;
mod complete;
mod edits;
mod names;
mod problems;
mod shown;
mod structure;
#[cfg(test)]
mod tests;
pub(super) mod tokens;

use std::collections::HashMap;
use std::sync::Arc;

use gen_lsp_types as lsp;

use super::capabilities::Client;
use super::convert::{self, Encoding};
use super::dispatch::{Dispatch, Failure};
use super::options::Options;
use super::workspaces::{File, WorkspaceSnapshot};
use crate::ide::{Document, Place};
pub(super) use problems::report_problems;

/// What a handler knows.
pub(super) struct Context {
    /// The workspaces when the request came.
    pub(super) moment: WorkspaceSnapshot,
    /// What positions count.
    pub(super) encoding: Encoding,
    /// What the client has said about itself.
    pub(super) client: Arc<Client>,
    /// What the person has set.
    pub(super) options: Options,
    /// The tokens that the client was given last.
    pub(super) painted: Arc<tokens::Painted>,
    /// The versions of open documents, by address.
    pub(super) versions: Arc<HashMap<String, i32>>,
}

type Answer<T> = Result<Option<T>, Failure>;

impl Context {
    /// The file of a position, its text, and the offset.
    fn locate_position(&self, at: &lsp::TextDocumentPositionParams) -> Option<(File<'_>, Document, usize)> {
        let file = self.moment.file(&at.text_document.uri)?;
        let document = file.document()?;
        let offset = convert::to_offset(document.source(), at.position, self.encoding);
        Some((file, document, offset))
    }

    /// A file and its text.
    fn document(&self, at: &lsp::TextDocumentIdentifier) -> Option<(File<'_>, Document)> {
        let file = self.moment.file(&at.uri)?;
        let document = file.document()?;
        Some((file, document))
    }

    fn locations(&self, file: &File<'_>, places: &[Place]) -> Vec<lsp::Location> {
        places.iter().filter_map(|place| file.location(place, self.encoding)).collect()
    }
}

/// The handler of each request.
pub(super) fn register_handlers(request: Dispatch) -> Dispatch {
    request
        .on::<lsp::CompletionRequest>(complete::list_completions)
        .on::<lsp::SignatureHelpRequest>(complete::find_signature)
        .on::<lsp::HoverRequest>(shown::find_hover)
        .on::<lsp::InlayHintRequest>(shown::list_hints)
        .on::<lsp::CodeLensRequest>(shown::list_lenses)
        .on::<lsp::CodeLensResolveRequest>(shown::resolve_lens)
        .on::<lsp::InlineValueRequest>(shown::list_values)
        .on::<lsp::DocumentSymbolRequest>(structure::document_symbols)
        .on::<lsp::WorkspaceSymbolRequest>(structure::workspace_symbols)
        .on::<lsp::FoldingRangeRequest>(structure::list_folds)
        .on::<lsp::SelectionRangeRequest>(structure::list_selections)
        .on::<lsp::DocumentLinkRequest>(structure::list_links)
        .on::<lsp::LinkedEditingRangeRequest>(structure::find_linked_ranges)
        .on::<lsp::CallHierarchyPrepareRequest>(structure::prepare_calls)
        .on::<lsp::CallHierarchyIncomingCallsRequest>(structure::list_incoming)
        .on::<lsp::CallHierarchyOutgoingCallsRequest>(structure::list_outgoing)
        .on::<lsp::SemanticTokensRequest>(tokens::list_tokens)
        .on::<lsp::SemanticTokensRangeRequest>(tokens::list_range_tokens)
        .on::<lsp::SemanticTokensDeltaRequest>(tokens::list_token_delta)
        .on::<lsp::DefinitionRequest>(names::find_definition)
        .on::<lsp::TypeDefinitionRequest>(names::type_definition)
        .on::<lsp::ReferencesRequest>(names::find_references)
        .on::<lsp::DocumentHighlightRequest>(names::highlight_name)
        .on::<lsp::PrepareRenameRequest>(names::prepare_rename)
        .on::<lsp::RenameRequest>(names::rename_symbol)
        .on::<lsp::CodeActionRequest>(changes::list_actions)
        .on::<lsp::DocumentFormattingRequest>(changes::format_document)
        .on::<lsp::DocumentRangeFormattingRequest>(changes::format_range)
        .on::<lsp::DocumentOnTypeFormattingRequest>(changes::format_typed)
        .on::<lsp::WillRenameFilesRequest>(edits::move_files)
        .on::<lsp::DocumentDiagnosticRequest>(problems::pull_diagnostics)
        .on::<lsp::WorkspaceDiagnosticRequest>(problems::pull_workspace)
        .on::<lsp::ExecuteCommandRequest>(commands::execute_command)
}
