//! What is wrong: told to clients, or asked for by them.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

use gen_lsp_types as lsp;
use swarmc_compiler::{Code, Severity};

use super::Context;
use crate::ide::{self, Document};
use crate::server::convert::{self, Encoding};
use crate::server::dispatch::Failure;
use crate::server::pages::Pages;
use crate::server::workspaces::{File, WorkspaceSnapshot};

/// Tells what is wrong in every file, by address, as soon as that is known; what else there is to know of the files is
/// worked out after that.
pub(in crate::server) fn report_problems(
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

/// What is wrong in a file, for clients that ask; that it is what they know, where it is.
pub(super) fn pull_diagnostics(
    context: &Context,
    params: lsp::DocumentDiagnosticParams,
) -> Result<lsp::DocumentDiagnosticReport, Failure> {
    let file = context.moment.file(&params.text_document.uri);
    let items = file.and_then(|file| {
        let problems = ide::collect_diagnostics(file.snapshot).remove(&file.path)?;
        Some(problems_of(&file, &file.document()?, &problems, context))
    });
    Ok(match make_report(items.unwrap_or_default(), params.previous_result_id.as_deref()) {
        Report::Full(full_document_diagnostic_report) => {
            lsp::RelatedFullDocumentDiagnosticReport { full_document_diagnostic_report, related_documents: None }.into()
        }
        Report::Unchanged(unchanged_document_diagnostic_report) => lsp::RelatedUnchangedDocumentDiagnosticReport {
            unchanged_document_diagnostic_report,
            related_documents: None,
        }
        .into(),
    })
}

/// The same of every file that has a problem, or of which the client knows one.
pub(super) fn pull_workspace(
    context: &Context,
    params: lsp::WorkspaceDiagnosticParams,
) -> Result<lsp::WorkspaceDiagnosticReport, Failure> {
    let mut known: BTreeMap<String, String> =
        params.previous_result_ids.into_iter().map(|known| (known.uri.0, known.value)).collect();
    let mut found: BTreeMap<String, Vec<lsp::Diagnostic>> = BTreeMap::new();
    report_problems(&context.moment, context.encoding, |problems| found = problems);
    // A file whose problems are gone needs a report, too, or the client keeps showing them.
    for uri in known.keys() {
        found.entry(uri.clone()).or_default();
    }
    let report = |(uri, items): (String, Vec<lsp::Diagnostic>)| {
        let version = context.versions.get(&uri).copied();
        let known = known.remove(&uri);
        let uri = lsp::Uri(uri);
        match make_report(items, known.as_deref()) {
            Report::Full(full_document_diagnostic_report) => {
                lsp::WorkspaceFullDocumentDiagnosticReport { uri, version, full_document_diagnostic_report }.into()
            }
            Report::Unchanged(unchanged_document_diagnostic_report) => {
                lsp::WorkspaceUnchangedDocumentDiagnosticReport { uri, version, unchanged_document_diagnostic_report }
                    .into()
            }
        }
    };
    Ok(lsp::WorkspaceDiagnosticReport { items: found.into_iter().map(report).collect() })
}

/// The answer to a client that asks for the problems of a file.
enum Report {
    Full(lsp::FullDocumentDiagnosticReport),
    Unchanged(lsp::UnchangedDocumentDiagnosticReport),
}

/// The problems, or that they are those that the client knows by this id.
fn make_report(items: Vec<lsp::Diagnostic>, known: Option<&str>) -> Report {
    // Its keys are fixed: the same problems have the same id whenever they are asked for.
    let mut hasher = std::hash::DefaultHasher::new();
    items.hash(&mut hasher);
    let result_id = format!("{:016x}", hasher.finish());
    match known == Some(result_id.as_str()) {
        true => Report::Unchanged(lsp::UnchangedDocumentDiagnosticReport { result_id }),
        false => Report::Full(lsp::FullDocumentDiagnosticReport { result_id: Some(result_id), items }),
    }
}

pub(super) fn problems_of(
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
