//! SW405: one file or output that stands in a prompt twice, and costs its tokens twice.
//!
//! What a filter cuts is a part, and parts differ. Of two places in branches of which one is taken nothing is said, nor of
//! what is short anyway.

use std::collections::HashMap;

use swarmc_plan::Filter;

use crate::ast::TypeKind;
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::model::{Body, Model, Step, TemplateText};
use crate::source::{FileId, Sources, Span};
use crate::template::{Directive, Kind, Part, Root, Statement};

/// A text of so many bytes or fewer may be repeated: a rule, a heading, a separator.
const SHORT: usize = 400;

pub(super) fn check(model: &Model<'_>, sources: &Sources, diagnostics: &mut Diagnostics) {
    for pipeline in &model.pipelines {
        let names: HashMap<String, usize> =
            pipeline.steps.iter().enumerate().map(|(index, step)| (expression_name(step.name()), index)).collect();
        let pipeline = Steps { list: &pipeline.steps, names };
        for step in pipeline.list {
            let Body::Prompt(prose) = &step.body else { continue };
            diagnostics.set_home(Some(step.ast.name.span));
            check_directives(&pipeline, step, prose, diagnostics);
            // Where one of two branches is taken, which of them an include stands in is not known here.
            if !prose.template.logic.iter().any(|statement| matches!(statement, Statement::If { .. })) {
                check_includes(prose, sources, diagnostics);
            }
        }
    }
    diagnostics.set_home(None);
}

/// The steps of a pipeline, with their indices by name.
struct Steps<'m, 'a> {
    list: &'m [Step<'a>],
    names: HashMap<String, usize>,
}

/// A name as expressions write it.
fn expression_name(name: &str) -> String {
    name.replace('-', "_")
}

/// The `if`s around a place, outermost first: the number of each, and on which side of it.
type Branch = Vec<(usize, bool)>;

/// What is read as a whole: an output by the index of its step, a file by its path.
#[derive(PartialEq, Eq, Hash)]
enum Whole {
    Output(usize),
    Previous(usize),
    File(String),
}

fn check_directives(pipeline: &Steps<'_, '_>, step: &Step<'_>, prose: &TemplateText, diagnostics: &mut Diagnostics) {
    let mut branches = HashMap::new();
    let mut next = 0;
    collect_branches(&prose.template.logic, &mut Vec::new(), &mut next, &mut branches);
    let mut seen: HashMap<Whole, Vec<(Span, Branch)>> = HashMap::new();
    for (index, part) in prose.template.parts.iter().enumerate() {
        let Part::Directive(directive) = part else { continue };
        let Some(whole) = inserted_value(pipeline, step, directive) else { continue };
        let branch = branches.get(&index).cloned().unwrap_or_default();
        let span = prose.passage.span(directive.range.clone());
        let places = seen.entry(whole).or_default();
        // One that is always there stands beside any other; two of one branch beside each other.
        let twin = places.iter().find(|(_, other)| branch.is_empty() || other.is_empty() || branch == *other);
        if let Some((first, _)) = twin {
            let name = directive.name.as_ref().map_or("", |name| name.value.as_str());
            let what = match directive.kind {
                Kind::File => format!("the file `{name}`"),
                _ => format!("the output of `{name}`"),
            };
            diagnostics.push(report_duplicate(&what, span, *first));
        }
        places.push((span, branch));
    }
}

/// The branches that each directive stands in.
fn collect_branches(list: &[Statement], path: &mut Branch, next: &mut usize, found: &mut HashMap<usize, Branch>) {
    for statement in list {
        match statement {
            Statement::Directive(index) => _ = found.insert(*index, path.clone()),
            Statement::If { then, otherwise, .. } => {
                *next += 1;
                let number = *next;
                for (side, body) in [(true, then), (false, otherwise)] {
                    path.push((number, side));
                    collect_branches(body, path, next, found);
                    path.pop();
                }
            }
            Statement::For { body, otherwise, .. } => {
                collect_branches(body, path, next, found);
                collect_branches(otherwise, path, next, found);
            }
            Statement::With { body, .. }
            | Statement::Capture { body, .. }
            | Statement::Filter { body, .. }
            | Statement::AutoEscape { body, .. } => collect_branches(body, path, next, found),
            Statement::Emit(_) | Statement::Text(_) | Statement::Set { .. } | Statement::Do(_) => {}
        }
    }
}

/// What a directive puts there in full; none where it is a part, or short.
fn inserted_value(pipeline: &Steps<'_, '_>, step: &Step<'_>, directive: &Directive) -> Option<Whole> {
    let cut =
        |filter: &Filter| matches!(filter, Filter::Tail(_) | Filter::Head(_) | Filter::Lines(..) | Filter::Chars(_));
    if !directive.fields.is_empty() || directive.filters.iter().any(|filter| cut(&filter.value)) {
        return None;
    }
    let name = &directive.name.as_ref()?.value;
    let target = || match directive.kind {
        Kind::Read(Root::Input) => step.inputs.iter().find(|(port, _)| port == name).map(|(_, target)| *target),
        _ => pipeline.names.get(&expression_name(name)).copied(),
    };
    match directive.kind {
        Kind::File => Some(Whole::File(name.clone())),
        Kind::Read(Root::Output | Root::Input) => {
            target().filter(|&step| is_long(&pipeline.list[step])).map(Whole::Output)
        }
        Kind::Read(Root::Previous) => target().filter(|&step| is_long(&pipeline.list[step])).map(Whole::Previous),
        _ => None,
    }
}

/// Whether an output can be longer than what may be said twice.
fn is_long(step: &Step<'_>) -> bool {
    let output = &step.ast.output;
    let short = output
        .kind
        .as_ref()
        .is_some_and(|kind| matches!(kind.kind, TypeKind::Int | TypeKind::Float | TypeKind::Bool | TypeKind::Enum(_)));
    let made = matches!(step.body, Body::Value(_) | Body::Fields(_) | Body::Gate { .. });
    !short && !made && output.max > SHORT as u64
}

fn check_includes(prose: &TemplateText, sources: &Sources, diagnostics: &mut Diagnostics) {
    let mut seen: HashMap<FileId, Span> = HashMap::new();
    for (file, span) in prose.passage.includes() {
        match seen.get(file) {
            Some(first) if sources.text(*file).len() > SHORT => {
                diagnostics.push(report_duplicate(&format!("the file `{}`", sources.name(*file)), *span, *first));
            }
            Some(_) => {}
            None => _ = seen.insert(*file, *span),
        }
    }
}

fn report_duplicate(what: &str, span: Span, first: Span) -> Diagnostic {
    Diagnostic::new(Code::DuplicatedContext, format!("this prompt includes {what} twice"))
        .label(span, "again")
        .label(first, "here first")
        .help("say it once and refer to it: \"the plan above\"")
        .unsafe_fix("leave the second one out", span, "")
}
