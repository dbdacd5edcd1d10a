//! One handler a request, a few lines each: convert, ask `ide`, convert back.

mod changes;
pub(super) mod commands;
mod complete;
mod names;
mod shown;
mod structure;
#[cfg(test)]
mod tests;
pub(super) mod tokens;

use std::collections::BTreeMap;
use std::sync::Arc;

use gen_lsp_types as lsp;
use swarmc_compiler::{Code, Severity};

use super::capabilities::Client;
use super::convert::{self, Encoding};
use super::dispatch::{Dispatch, Failure};
use super::options::Options;
use super::pages::Pages;
use super::workspaces::{File, WorkspaceSnapshot};
use crate::ide::{self, Document, Place};

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
        .on::<lsp::DocumentDiagnosticRequest>(pull_diagnostics)
        .on::<lsp::ExecuteCommandRequest>(commands::execute_command)
}

/// Tells what is wrong in every file, by address, as soon as that is known; what else there is to know of the files is
/// worked out after that.
pub(super) fn report_problems(
    moment: &WorkspaceSnapshot,
    encoding: Encoding,
    mut tell: impl FnMut(BTreeMap<String, Vec<lsp::Diagnostic>>),
) {
    let mut found = BTreeMap::new();
    let count = moment.workspaces.len();
    for (number, (root, snapshot)) in moment.workspaces.iter().enumerate() {
        ide::tell_diagnostics(snapshot, &mut |problems| {
            for (path, problems) in problems {
                let Some(file) = moment.find_in_root(root, &path) else { continue };
                let Some(document) = file.document() else { continue };
                let problems = problems
                    .iter()
                    .map(|problem| problem_of(&file, &document, problem, &moment.pages, encoding))
                    .collect();
                found.insert(file.uri(&path).0, problems);
            }
            // The loop hears of all files at once: one that is missing loses the problems that it shows.
            if number + 1 == count {
                tell(std::mem::take(&mut found));
            }
        });
    }
    if count == 0 {
        tell(found);
    }
}

/// What is wrong in a file, for clients that ask.
fn pull_diagnostics(
    context: &Context,
    params: lsp::DocumentDiagnosticParams,
) -> Result<lsp::DocumentDiagnosticReport, Failure> {
    let file = context.moment.file(&params.text_document.uri);
    let items = file.and_then(|file| {
        let problems = ide::collect_diagnostics(file.snapshot).remove(&file.path)?;
        Some(problems_of(&file, &file.document()?, &problems, context))
    });
    let report = lsp::FullDocumentDiagnosticReport { items: items.unwrap_or_default(), ..Default::default() };
    Ok(lsp::RelatedFullDocumentDiagnosticReport { full_document_diagnostic_report: report, related_documents: None }
        .into())
}

fn problems_of(
    file: &File<'_>,
    document: &Document,
    problems: &[ide::Problem],
    context: &Context,
) -> Vec<lsp::Diagnostic> {
    let pages = &context.moment.pages;
    problems.iter().map(|problem| problem_of(file, document, problem, pages, context.encoding)).collect()
}

fn problem_of(
    file: &File<'_>,
    document: &Document,
    problem: &ide::Problem,
    pages: &Pages,
    encoding: Encoding,
) -> lsp::Diagnostic {
    let related = problem.related.iter().filter_map(|related| {
        let location = file.location(&related.place, encoding)?;
        Some(lsp::DiagnosticRelatedInformation { location, message: related.text.clone() })
    });
    let related: Vec<_> = related.collect();
    lsp::Diagnostic {
        range: convert::to_range(document.source(), &problem.range, encoding),
        severity: Some(match problem.severity {
            Severity::Error => lsp::DiagnosticSeverity::Error,
            Severity::Warning => lsp::DiagnosticSeverity::Warning,
            Severity::Hint => lsp::DiagnosticSeverity::Hint,
        }),
        code: Some(problem.code.id().to_owned().into()),
        code_description: pages.rule_link(problem.code),
        source: Some("swarmc".to_owned()),
        message: problem.message.clone().into(),
        tags: match problem.code {
            Code::UnusedDefinition | Code::UnusedSuppression => Some(vec![lsp::DiagnosticTag::Unnecessary]),
            Code::Deprecated | Code::LegacyDirective => Some(vec![lsp::DiagnosticTag::Deprecated]),
            _ => None,
        },
        related_information: (!related.is_empty()).then_some(related),
        ..Default::default()
    }
}
