//! SW301: steps that wait for each other, and pipelines that call each other without an end, drawn.

use swarmc_plan::When;

use crate::ast::OnFailure;
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::model::{Body, Model, Need, Pipeline, Step};
use crate::resolve::order::find_cycles;

/// The labels that one diagnostic can bear and still be read.
const DRAWN: usize = 6;

pub(super) fn check(pipeline: &Pipeline<'_>, diagnostics: &mut Diagnostics) {
    for cycle in &pipeline.order.cycles {
        diagnostics.push(report_cycle(pipeline, cycle));
    }
}

fn report_cycle(pipeline: &Pipeline<'_>, cycle: &[usize]) -> Diagnostic {
    let name = |step: usize| pipeline.steps[step].name();
    let needs: Vec<(usize, &Need)> = cycle
        .iter()
        .enumerate()
        .map(|(position, &step)| {
            let next = cycle[(position + 1) % cycle.len()];
            let need = pipeline.steps[step].needs.iter().find(|need| need.step == next);
            (step, need.expect("each step of a cycle needs the next one"))
        })
        .collect();
    let mut path: Vec<String> = cycle.iter().take(DRAWN).map(|&step| format!("`{}`", name(step))).collect();
    if cycle.len() > DRAWN {
        path.push(format!("{} more", cycle.len() - DRAWN));
    }
    path.push(format!("`{}`", name(cycle[0])));
    let message = match cycle {
        [one] => format!("`{}` waits for itself", name(*one)),
        _ => format!("these steps wait for each other: {}", path.join(" → ")),
    };
    let diagnostic = Diagnostic::new(Code::Cycle, message);
    let diagnostic = needs.iter().take(DRAWN).fold(diagnostic, |diagnostic, (step, need)| {
        let how = if need.declared { "depends on" } else { "reads" };
        diagnostic.label(need.span, format!("`{}` {how} `{}`", name(*step), name(need.step)))
    });
    match needs.iter().find(|(_, need)| !need.declared) {
        Some((_, need)) => {
            let read = name(need.step);
            diagnostic.help(format!(
                "to read the round before, write `<<previous:{read}>>`: it waits for nothing; otherwise take one `depends-on` out"
            ))
        }
        None => diagnostic.help("take one of these `depends-on` out"),
    }
}

/// Calls that come back to their pipeline in each case, whatever its steps come to: none of them ever ends.
pub(super) fn check_calls(model: &Model<'_>, diagnostics: &mut Diagnostics) {
    let calls: Vec<Vec<(usize, &Step<'_>)>> = model.pipelines.iter().map(list_certain_calls).collect();
    let targets: Vec<Vec<usize>> =
        calls.iter().map(|calls| calls.iter().map(|(target, _)| *target).collect()).collect();
    for circle in find_cycles(&targets) {
        let name = |pipeline: usize| &model.pipelines[pipeline].ast.name.value;
        let links = circle.iter().enumerate().filter_map(|(position, &pipeline)| {
            let next = circle[(position + 1) % circle.len()];
            let (_, step) = calls[pipeline].iter().find(|(target, _)| *target == next)?;
            Some((step, name(pipeline), name(next)))
        });
        let message = match circle.as_slice() {
            [one] => format!("pipeline `{}` calls itself without an end", name(*one)),
            _ => {
                let path = circle.iter().chain(circle.first()).map(|&pipeline| format!("`{}`", name(pipeline)));
                format!("these pipelines call each other without an end: {}", path.collect::<Vec<_>>().join(" → "))
            }
        };
        let diagnostic =
            links.take(DRAWN).fold(Diagnostic::new(Code::Cycle, message), |diagnostic, (step, from, to)| {
                diagnostic.label(step.ast.name.span, format!("`{from}` calls `{to}`, in each case"))
            });
        diagnostics.push(diagnostic.help(
            "say when to call it: `when \"…\"`; or repeat steps with `loop NAME max=N` or `iterations N` in its place",
        ));
    }
}

/// The calls of a pipeline that are made whenever it succeeds, with what they call.
fn list_certain_calls<'p, 's>(pipeline: &'p Pipeline<'s>) -> Vec<(usize, &'p Step<'s>)> {
    // A `stop` may end it before.
    if pipeline.steps.iter().any(|step| matches!(step.body, Body::Stop { .. })) {
        return Vec::new();
    }
    let mut certain = vec![false; pipeline.steps.len()];
    for &index in &pipeline.order.sorted {
        certain[index] = is_certain(&pipeline.steps[index], &certain);
    }
    let steps = pipeline.steps.iter().zip(certain).filter(|(_, is_certain)| *is_certain).map(|(step, _)| step);
    let called = |step: &'p Step<'s>| match &step.body {
        Body::Call { pipeline: Some(target), .. } => Some((*target, step)),
        _ => None,
    };
    steps.filter_map(called).collect()
}

/// Whether a step runs in each round that no failure ends, given those of which that is known.
fn is_certain(step: &Step<'_>, certain: &[bool]) -> bool {
    let is_there = |need: &Need| certain[need.step] && need.when != When::Failure;
    step.when.is_none()
        && step.list.is_none()
        && matches!(step.ast.on_failure, OnFailure::Fail)
        && step.awaits.is_empty()
        && step.within.is_none_or(|around| certain[around])
        && step.needs.iter().all(is_there)
}
