//! SW209: a step that always divides by a parameter whose default is zero, or by the place of an item, which is zero for
//! the first one.
//!
//! In: the model. Out: a report for each such divisor. One of a default is reported only where nothing else decides that
//! the division fails: no pipeline calls that of the step, no `stop` ends it, the step runs unless one before it fails,
//! and no condition stands around the division.

use std::collections::BTreeSet;

use swarmc_plan::{EachJoin, When};

use super::never_asked::count_items;
use crate::ast::{OnFailure, Param};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::model::{Body, Files, Model, Pipeline, Step, Variable};
use crate::source::Span;
use crate::template::{Divisor, same_name};

pub(super) fn check(model: &Model<'_>, diagnostics: &mut Diagnostics) {
    let called = model.called_pipelines();
    for (at, pipeline) in model.pipelines.iter().enumerate().filter(|(at, _)| model.wanted[*at]) {
        let find = |name: &str| {
            let mut all = pipeline.ast.params.iter().chain(&model.spec.params);
            all.find(|param| same_name(&param.name.value, name))
        };
        // A caller gives values and has conditions, and a `stop` ends the pipeline before the step.
        let is_guarded =
            called.contains(&at) || pipeline.steps.iter().any(|step| matches!(step.body, Body::Stop { .. }));
        let runs = if is_guarded { vec![false; pipeline.steps.len()] } else { list_unconditional(pipeline) };
        let needs = || pipeline.steps.iter().flat_map(|step| &step.needs);
        let handled: BTreeSet<usize> = needs().filter(|need| need.handles).map(|need| need.step).collect();
        for (index, step) in pipeline.steps.iter().enumerate() {
            // Its failure may be meant.
            let is_lenient = step.ast.on_failure != OnFailure::Fail || step.ast.output.default.is_some();
            if is_lenient || handled.contains(&index) {
                continue;
            }
            diagnostics.set_home(Some(step.ast.name.span));
            let of_texts: Vec<_> = text_divisors(step).filter(|(divisor, _)| divisor.always).collect();
            if fails_for_first(step) {
                let indices = of_texts.iter().filter(|(divisor, _)| divisor.is_index);
                indices.for_each(|(_, place)| diagnostics.push(zero_by_index(*place)));
            }
            let of_texts = of_texts.into_iter().filter(|_| fails_for_all(step));
            for (divisor, place) in of_texts.chain(list_divisors(step)).filter(|_| runs[index]) {
                let param = divisor.param.as_deref().filter(|_| divisor.always).and_then(find);
                if let Some((param, default)) = param.and_then(|param| Some((param, zero_default(param)?))) {
                    diagnostics.push(zero_by_default(param, default, place));
                }
            }
        }
    }
    diagnostics.set_home(None);
}

/// Whether a `for-each` fails where its first item does.
fn fails_for_first(step: &Step<'_>) -> bool {
    step.ast.for_each.as_ref().is_some_and(|each| each.join == EachJoin::All) && count_items(step) != Some(0)
}

/// Whether a step fails where each of its items does: there is an item, or it is no `for-each`.
fn fails_for_all(step: &Step<'_>) -> bool {
    let Some(each) = &step.ast.for_each else { return true };
    each.join != EachJoin::Settled && count_items(step).is_some_and(|count| count > 0)
}

fn zero_by_index(place: Span) -> Diagnostic {
    let message = "a division by zero has no value, and `index` is 0 for the first item";
    Diagnostic::new(Code::TemplateError, message).label(place, "begins at 0").help("count from 1: `(index + 1)`")
}

/// Where the default of a parameter is zero.
fn zero_default(param: &Param) -> Option<Span> {
    let default = param.default.as_ref()?;
    let number: f64 = default.value.trim().parse().ok()?;
    (number == 0.0).then_some(default.span)
}

fn zero_by_default(param: &Param, default: Span, place: Span) -> Diagnostic {
    let name = &param.name.value;
    let message = format!("a division by zero has no value, and `param.{}` is 0 by default", name.replace('-', "_"));
    Diagnostic::new(Code::TemplateError, message)
        .label(place, "zero, unless the run is given another value")
        .label(default, "the default")
        .help(format!("give `{name}` another default, or none, or divide only where it is not 0"))
}

/// The steps that run unless one before them fails.
fn list_unconditional(pipeline: &Pipeline<'_>) -> Vec<bool> {
    let mut runs = vec![false; pipeline.steps.len()];
    // A loop comes before what it holds.
    for &index in &pipeline.order.sorted {
        let step = &pipeline.steps[index];
        runs[index] = pipeline.spawned[index].is_none()
            && step.when.is_none()
            && step.needs.iter().all(|need| need.when != When::Failure && runs[need.step]);
    }
    for index in 0..runs.len() {
        let around = std::iter::successors(pipeline.steps[index].within, |&outer| pipeline.steps[outer].within);
        runs[index] &= around.into_iter().all(|outer| runs[outer]);
    }
    runs
}

/// What the texts of a step divide by, and where.
fn text_divisors<'s>(step: &'s Step<'_>) -> impl Iterator<Item = (&'s Divisor, Span)> {
    let of_env = step.env.iter().filter_map(|variable| match variable {
        Variable::Set(_, prose) => Some(prose),
        Variable::Pass(_) | Variable::Secret(_) => None,
    });
    let texts = step.body.template_texts().into_iter().chain(&step.stdin).chain(of_env);
    let texts = texts.chain(step.files.iter().flat_map(Files::template_texts));
    texts.flat_map(|prose| {
        prose.template.risks.divisors.iter().map(|divisor| (divisor, prose.passage.span(divisor.range.clone())))
    })
}

/// What the list of a step divides by, and where.
fn list_divisors<'s>(step: &'s Step<'_>) -> impl Iterator<Item = (&'s Divisor, Span)> {
    step.list.iter().flat_map(|list| {
        list.expression.risks.divisors.iter().map(|divisor| (divisor, list.text.span(divisor.range.clone())))
    })
}
