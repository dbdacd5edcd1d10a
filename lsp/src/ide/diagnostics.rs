//! What is wrong, file by file: what `swarmc check` says, at the places of open texts.

use std::collections::BTreeMap;
use std::ops::Range;

use swarmc_compiler::{Code, Diagnostic, Severity, Sources, Span};

use super::document::Kind;
use super::{Edit, Place, Snapshot};

/// A problem of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where.
    pub range: Range<usize>,
    /// How bad it is.
    pub severity: Severity,
    /// What it is about.
    pub code: Code,
    /// What is wrong, and what to type.
    pub message: String,
    /// The other places that it is about.
    pub related: Vec<Related>,
    /// Edits that mend it, by file.
    pub fix: Option<Fix>,
}

/// A place that a problem is about, too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Related {
    /// The place.
    pub place: Place,
    /// What it is.
    pub text: String,
}

/// What mends a problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fix {
    /// What it does, as an order.
    pub title: String,
    /// The edits, by file.
    pub edits: BTreeMap<String, Vec<Edit>>,
    /// Whether the meaning is certainly the one wanted.
    pub certain: bool,
}

/// The problems of every file that has one, by path, as the workspace asks for them. A file that only other specs take in is
/// judged as a part of these.
pub fn diagnostics(snapshot: &Snapshot) -> BTreeMap<String, Vec<Problem>> {
    let rules = snapshot.rules();
    let mut known = rules.known();
    let mut hidden: Vec<(String, Problem)> = Vec::new();
    let mut found: BTreeMap<String, Vec<Problem>> = rules.problems.clone();
    let analyses = snapshot.specs().filter_map(|spec| snapshot.analysis(spec));
    for analysis in analyses.filter(|analysis| analysis.kind == Kind::Spec) {
        let sources = &analysis.compilation.sources;
        for diagnostic in &analysis.compilation.diagnostics {
            let (Some(span), Some(severity)) = (diagnostic.span(), rules.level(diagnostic)) else { continue };
            let path = sources.name(span.file);
            if path.starts_with("std:") {
                continue;
            }
            let problem = problem(diagnostic, span, severity, sources);
            // Two specs can be told the same about a text that they share.
            let twice = found.get(path).is_some_and(|list| list.contains(&problem))
                || hidden.iter().any(|(file, hidden)| file == path && *hidden == problem);
            match twice {
                true => {}
                false if known.take(path, diagnostic.code, &diagnostic.message) => {
                    hidden.push((path.to_owned(), problem));
                }
                false => found.entry(path.to_owned()).or_default().push(problem),
            }
        }
    }
    found.values_mut().for_each(|list| list.sort_by_key(|problem| (problem.range.start, problem.range.end)));
    found
}

/// A diagnostic as a problem of its file, as bad as it counts.
pub(super) fn problem(diagnostic: &Diagnostic, span: Span, severity: Severity, sources: &Sources) -> Problem {
    let place = |span: Span| Place { path: sources.name(span.file).to_owned(), range: span.range() };
    let mut message = diagnostic.message.clone();
    if let Some(help) = &diagnostic.help {
        message.push('\n');
        message.push_str(help);
    }
    let related = diagnostic.places().into_iter().skip(1);
    Problem {
        range: span.range(),
        severity,
        code: diagnostic.code,
        message,
        related: related.map(|label| Related { place: place(label.span), text: label.text }).collect(),
        fix: diagnostic.fix.as_ref().map(|fix| {
            let mut edits: BTreeMap<String, Vec<Edit>> = BTreeMap::new();
            for edit in &fix.edits {
                let Place { path, range } = place(edit.span);
                edits.entry(path).or_default().push(Edit { range, text: edit.text.clone() });
            }
            Fix { title: fix.title.clone(), edits, certain: fix.certain }
        }),
    }
}
