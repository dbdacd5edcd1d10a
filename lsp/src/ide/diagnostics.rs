//! What is wrong, file by file: what `swarmc check` says, at the places of open texts.

use std::collections::BTreeMap;
use std::ops::Range;

use swarmc_compiler::{Code, Diagnostic, Severity, Sources, Span};

use super::document::Kind;
use super::rules::Rules;
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

/// Problems by the path of their file.
pub type Problems = BTreeMap<String, Vec<Problem>>;

/// The problems of every file that has one, by path, as the workspace asks for them. A file that only other specs take in is
/// judged as a part of these.
pub fn collect_diagnostics(snapshot: &Snapshot) -> Problems {
    let mut found = Problems::new();
    tell_diagnostics(snapshot, &mut |problems| found = problems);
    found
}

/// Tells the same as soon as it is known, once; what else there is to know of the specs is worked out after that. Of texts
/// that are others by then nothing is told.
pub fn tell_diagnostics(snapshot: &Snapshot, tell: &mut dyn FnMut(Problems)) {
    let rules = snapshot.rules();
    let specs: Vec<&str> = snapshot.specs().collect();
    // This spec reports its problems before its analysis ends. The other specs are analyzed by then, so one call reports all.
    let last = specs.iter().rposition(|spec| !snapshot.is_analyzed(spec));
    let of = |index: usize| {
        let analysis = snapshot.analysis(specs[index]).filter(|analysis| analysis.kind == Kind::Spec);
        analysis.map_or_else(Vec::new, |analysis| {
            list_problems(rules, &analysis.compilation.sources, &analysis.compilation.diagnostics)
        })
    };
    let mut lists: Vec<Vec<Placed>> =
        (0..specs.len()).map(|index| if Some(index) == last { Vec::new() } else { of(index) }).collect();
    let mut told = false;
    if let Some(last) = last {
        let mut hear = |sources: &Sources, diagnostics: &[Diagnostic]| {
            if snapshot.is_cut() {
                return;
            }
            lists[last] = list_problems(rules, sources, diagnostics);
            told = true;
            tell(put_together(rules, std::mem::take(&mut lists)));
        };
        snapshot.analysis_telling(specs[last], &mut hear);
    }
    // It was known after all, or there is nothing to tell of it.
    if !told {
        if let Some(last) = last {
            lists[last] = of(last);
        }
        if !snapshot.is_cut() {
            tell(put_together(rules, lists));
        }
    }
}

/// A problem where it is shown, with what a baseline knows it by.
struct Placed {
    path: String,
    code: Code,
    message: String,
    problem: Problem,
}

/// The problems of a spec.
fn list_problems(rules: &Rules, sources: &Sources, diagnostics: &[Diagnostic]) -> Vec<Placed> {
    let placed = |diagnostic: &Diagnostic| {
        let (span, severity) = (diagnostic.span()?, rules.resolve_severity(diagnostic)?);
        let path = sources.name(span.file);
        (!path.starts_with("std:")).then(|| Placed {
            path: path.to_owned(),
            code: diagnostic.code,
            message: diagnostic.message.clone(),
            problem: make_problem(diagnostic, span, severity, sources),
        })
    };
    diagnostics.iter().filter_map(placed).collect()
}

/// All problems, without those that a baseline knows. Two specs can be told the same about a text that they share.
fn put_together(rules: &Rules, lists: Vec<Vec<Placed>>) -> Problems {
    let mut known = rules.known_problems();
    let mut hidden: Vec<(String, Problem)> = Vec::new();
    let mut found: Problems = rules.problems.clone();
    for Placed { path, code, message, problem } in lists.into_iter().flatten() {
        let twice = found.get(&path).is_some_and(|list| list.contains(&problem))
            || hidden.iter().any(|(file, hidden)| *file == path && *hidden == problem);
        match twice {
            true => {}
            false if known.take(&path, code, &message) => hidden.push((path, problem)),
            false => found.entry(path).or_default().push(problem),
        }
    }
    found.values_mut().for_each(|list| list.sort_by_key(|problem| (problem.range.start, problem.range.end)));
    found
}

/// A diagnostic as a problem of its file, as bad as it counts.
pub(super) fn make_problem(diagnostic: &Diagnostic, span: Span, severity: Severity, sources: &Sources) -> Problem {
    let place = |span: Span| Place { path: sources.name(span.file).to_owned(), range: span.range() };
    let mut message = diagnostic.message.clone();
    if let Some(help) = &diagnostic.help {
        message.push('\n');
        message.push_str(help);
    }
    let related = diagnostic.all_labels().into_iter().skip(1);
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
