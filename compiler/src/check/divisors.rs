//! SW209: a parameter whose default is zero, and by which a step always divides.
//!
//! In: the model. Out: a report for each such default, where nothing but it decides that the division fails: the step
//! runs unless one before it fails, and no condition stands around the division.

use std::collections::BTreeSet;

use swarmc_plan::When;

use crate::ast::{OnFailure, Param};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::model::{Body, Files, Model, Pipeline, Step, Variable};
use crate::source::Span;
use crate::template::{Divisor, same_name};

pub(super) fn check(model: &Model<'_>, diagnostics: &mut Diagnostics) {
    let called: BTreeSet<usize> = model
        .pipelines
        .iter()
        .flat_map(|pipeline| &pipeline.steps)
        .filter_map(|step| if let Body::Call { pipeline, .. } = &step.body { *pipeline } else { None })
        .collect();
    for (at, pipeline) in model.pipelines.iter().enumerate().filter(|(at, _)| model.wanted[*at]) {
        // What a caller may give is no matter of the default.
        let own: &[Param] = if called.contains(&at) { &[] } else { &pipeline.ast.params };
        let shadows = |name: &str| pipeline.ast.params.iter().any(|param| same_name(&param.name.value, name));
        let find = |name: &str| {
            let mut own = own.iter().filter(|param| same_name(&param.name.value, name));
            let mut of_all = model.spec.params.iter().filter(|param| same_name(&param.name.value, name));
            own.next().or_else(|| of_all.next().filter(|_| !shadows(name)))
        };
        let runs = list_unconditional(pipeline);
        let needs = || pipeline.steps.iter().flat_map(|step| &step.needs);
        let handled: BTreeSet<usize> = needs().filter(|need| need.handles).map(|need| need.step).collect();
        for (index, step) in pipeline.steps.iter().enumerate().filter(|(index, _)| runs[*index]) {
            // Its failure may be meant.
            let is_lenient = step.ast.on_failure != OnFailure::Fail || step.ast.output.default.is_some();
            if is_lenient || handled.contains(&index) {
                continue;
            }
            diagnostics.set_home(Some(step.ast.name.span));
            for (divisor, place) in list_divisors(step) {
                let param = divisor.param.as_deref().filter(|_| divisor.always).and_then(find);
                if let Some((param, default)) = param.and_then(|param| Some((param, zero_default(param)?))) {
                    diagnostics.push(zero_by_default(param, default, place));
                }
            }
        }
    }
    diagnostics.set_home(None);
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

/// What a step divides by, and where.
fn list_divisors<'s>(step: &'s Step<'_>) -> impl Iterator<Item = (&'s Divisor, Span)> {
    let of_env = step.env.iter().filter_map(|variable| match variable {
        Variable::Set(_, prose) => Some(prose),
        Variable::Pass(_) | Variable::Secret(_) => None,
    });
    let texts = step.body.template_texts().into_iter().chain(&step.stdin).chain(of_env);
    let texts = texts.chain(step.files.iter().flat_map(Files::template_texts));
    let of_texts = texts.flat_map(|prose| {
        prose.template.risks.divisors.iter().map(|divisor| (divisor, prose.passage.span(divisor.range.clone())))
    });
    let of_list = step.list.iter().flat_map(|list| {
        list.expression.risks.divisors.iter().map(|divisor| (divisor, list.text.span(divisor.range.clone())))
    });
    of_texts.chain(of_list)
}
