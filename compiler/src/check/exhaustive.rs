//! SW207: steps branch over a value and leave out a case, so that no step runs in that case; or no step reads a gate's
//! choice.
//!
//! A lone `when` is a filter, and so are several equal ones: only conditions that tell cases apart branch.

use std::collections::{BTreeMap, BTreeSet};

use crate::ast;
use crate::code::{Code, Severity};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::flow::{Cover, Lazy, Uncovered};
use crate::model::{Body, Model, Pipeline, Read, Step};
use crate::source::Span;
use crate::stats::Routes;
use crate::suggest;
use crate::template::Root;

/// The conditions of one report that are shown.
const SHOWN: usize = 5;

/// Reports what is left out; says over how many values steps branch, and of how many they take every case.
pub(super) fn check<'a>(
    model: &Model<'a>,
    pipeline: &Pipeline<'a>,
    flow: &mut Lazy<'_, 'a>,
    diagnostics: &mut Diagnostics,
) -> Routes {
    let mut routes = Routes::default();
    let (mut found, mut open) = (Vec::new(), Vec::new());
    for readers in collect_tested_values(model, pipeline).into_values() {
        let mut testers: Vec<usize> = readers.iter().map(|(step, _)| *step).collect();
        // They come step by step, so equal ones stand side by side.
        testers.dedup();
        let [(first, read), ..] = readers.as_slice() else { continue };
        if testers.len() < 2 {
            continue;
        }
        let cover = flow.get().find_cover(&testers, *first, read);
        routes.branches += usize::from(matches!(cover, Cover::All | Cover::Partly(_)));
        match cover {
            Cover::All => routes.exhaustive += 1,
            Cover::Partly(left) => found.push((readers, left)),
            Cover::Not => {}
            Cover::Unknown => open.push(readers[0]),
        }
    }
    if let [(first, read), others @ ..] = open.as_slice() {
        diagnostics.set_home(Some(pipeline.steps[*first].ast.name.span));
        diagnostics.push(too_large(pipeline, read, others.len()));
    }
    // A whole case that is left out says more than the combinations in which it is.
    let whole: BTreeSet<Option<usize>> = found
        .iter()
        .filter(|(_, left)| matches!(left, Uncovered::Cases(_)))
        .map(|(readers, _)| readers[0].1.step())
        .collect();
    for (readers, left) in found {
        let (first, read) = readers[0];
        if matches!(left, Uncovered::Cases(_)) || !whole.contains(&read.step()) {
            diagnostics.set_home(Some(pipeline.steps[first].ast.name.span));
            diagnostics.push(report_uncovered(pipeline, &readers, &left));
        }
    }
    for (index, step) in pipeline.steps.iter().enumerate() {
        if let Some(gate) = step.body.gate()
            && gate.options.len() > 1
            && !is_read(pipeline, index)
            && !diagnostics.has_report_at(options_span(gate))
        {
            diagnostics.set_home(Some(step.ast.name.span));
            diagnostics.push(report_unread_gate(step, gate));
        }
    }
    diagnostics.set_home(None);
    routes
}

/// What a condition reads: a field of a step's output, or of a parameter.
type Tested = (Option<usize>, String, Vec<String>);

/// The values that conditions read and that can have a few cases, with the steps that read them.
fn collect_tested_values<'p>(
    model: &Model<'_>,
    pipeline: &'p Pipeline<'_>,
) -> BTreeMap<Tested, Vec<(usize, &'p Read)>> {
    let mut tested: BTreeMap<Tested, Vec<(usize, &Read)>> = BTreeMap::new();
    let params = pipeline.ast.params.iter().chain(&model.spec.params);
    let declared = params.filter(|param| matches!(param.kind.kind, ast::TypeKind::Enum(_) | ast::TypeKind::Named(_)));
    let params: BTreeSet<String> = declared.map(|param| param.name.value.replace('-', "_")).collect();
    for (index, step) in pipeline.steps.iter().enumerate() {
        for read in step.reads.iter().filter(|read| read.in_when) {
            let name = match (read.root, read.step()) {
                (Root::Output | Root::Input, Some(target)) if has_cases(&pipeline.steps[target]) => String::new(),
                (Root::Param, None) => {
                    let name = read.name.as_deref().unwrap_or_default().replace('-', "_");
                    if !params.contains(&name) {
                        continue;
                    }
                    name
                }
                _ => continue,
            };
            let fields = read.fields.iter().map(|field| field.value.clone()).collect();
            tested.entry((read.step(), name, fields)).or_default().push((index, read));
        }
    }
    tested
}

/// Whether the output can hold a value of a few cases.
fn has_cases(step: &Step<'_>) -> bool {
    step.ast.output.kind.is_some() || matches!(step.body, Body::Gate { .. } | Body::Call { .. })
}

fn report_uncovered(pipeline: &Pipeline<'_>, readers: &[(usize, &Read)], left: &Uncovered) -> Diagnostic {
    let value = format_read(pipeline, readers[0].1);
    let what = match left {
        Uncovered::Cases(cases) => {
            format!("`{value}` is {}", suggest::format_list(cases.iter().map(String::as_str), "or"))
        }
        Uncovered::Combination(values) => {
            let parts: Vec<String> = values.iter().map(|(value, case)| format!("`{value}` is `{case}`")).collect();
            parts.join(" and ")
        }
    };
    let message = format!("no step runs when {what}");
    let [(_, first), rest @ ..] = readers else { unreachable!("at least two conditions test the value") };
    let diagnostic = Diagnostic::new(Code::NonExhaustive, message).label(first.span, "this takes another case");
    let mut diagnostic = rest
        .iter()
        .take(SHOWN)
        .fold(diagnostic, |diagnostic, (_, read)| diagnostic.label(read.span, "and so does this"));
    if let Some(target) = first.step() {
        let step = &pipeline.steps[target];
        diagnostic = diagnostic.label(step.ast.name.span, "decides");
    }
    diagnostic.help(match left {
        Uncovered::Cases(cases) => {
            let condition = match cases.as_slice() {
                [case] if matches!(case.as_str(), "true" | "false") => {
                    format!("{}{value}", if case == "true" { "" } else { "not " })
                }
                [case] => format!("{value} == '{case}'"),
                _ => {
                    let cases: Vec<String> = cases.iter().map(|case| format!("'{case}'")).collect();
                    format!("{value} in [{}]", cases.join(", "))
                }
            };
            format!("add a step for it, with `when \"{condition}\"`, which may be a `stop`")
        }
        Uncovered::Combination(_) => "add a step for it, or let one of these conditions take it".to_owned(),
    })
}

/// A value whose cases more conditions share than can be followed, and how many more such values there are.
fn too_large(pipeline: &Pipeline<'_>, read: &Read, others: usize) -> Diagnostic {
    let value = format_read(pipeline, read);
    let others = match others {
        0 => String::new(),
        1 => "; the same holds for another value".to_owned(),
        _ => format!("; the same holds for {others} other values"),
    };
    let message = format!("too many conditions test `{value}` to tell whether each of its cases is taken{others}");
    let diagnostic = Diagnostic::new(Code::NonExhaustive, message)
        .label(read.span, "one of them")
        .help("put the tasks of one case into a pipeline of their own, for a `call` with one `when`");
    Diagnostic { severity: Some(Severity::Warning), ..diagnostic }
}

fn format_read(pipeline: &Pipeline<'_>, read: &Read) -> String {
    let name = match read.step() {
        Some(step) => pipeline.steps[step].name(),
        None => read.name.as_deref().unwrap_or_default(),
    };
    let root = if read.step().is_some() { Root::Output } else { read.root };
    let fields = read.fields.iter().map(|field| format!(".{}", field.value)).collect::<String>();
    format!("{}.{}{fields}", root.as_str(), name.replace('-', "_"))
}

/// Whether anything reads which option of the gate was chosen.
fn is_read(pipeline: &Pipeline<'_>, gate: usize) -> bool {
    let of_loops = pipeline.steps.iter().flat_map(|step| step.body.until_reads());
    let mut reads = pipeline.steps.iter().flat_map(|step| &step.reads).chain(&pipeline.until_reads).chain(of_loops);
    let chosen = |read: &Read| {
        read.step() == Some(gate)
            && matches!(read.root, Root::Output | Root::Input | Root::Previous)
            && read.fields.first().is_none_or(|field| field.value == "choice")
    };
    let given = pipeline.ast.result.iter().any(|name| name.value == pipeline.steps[gate].name());
    given || reads.any(chosen)
}

fn report_unread_gate(step: &Step<'_>, gate: &ast::Gate) -> Diagnostic {
    let name = step.name();
    let words = gate.options.iter().map(|option| option.value.as_str());
    let message = format!("gate `{name}` lets a person choose, and nothing reads the choice");
    Diagnostic::new(Code::NonExhaustive, message)
        .label(options_span(gate), format!("{}: no step tells them apart", suggest::format_list(words, "or")))
        .help(format!(
            "ask in a step after it, `when \"output.{}.choice == '{}'\"`, or leave one option",
            name.replace('-', "_"),
            gate.options[0].value
        ))
}

/// From the first option to the last.
fn options_span(gate: &ast::Gate) -> Span {
    let (first, last) = (&gate.options[0], &gate.options[gate.options.len() - 1]);
    Span { end: last.span.end, ..first.span }
}
