//! SW508: a step merges, publishes, deploys or deletes, and no gate and no check comes before it.
//!
//! A check is a step with `check` lines. The gate or the check may also be inside a loop or a call before the step, or
//! before the call of the step's pipeline.

use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::model::{Body, Model, Pipeline};
use crate::source::Sources;
use crate::trust::command::{self, Started};

pub(super) fn check(model: &Model<'_>, sources: &Sources, diagnostics: &mut Diagnostics) {
    let guards: Vec<Vec<bool>> = model.pipelines.iter().map(find_guarded_steps).collect();
    let called = called_behind_guards(model, &guards);
    for (index, pipeline) in model.pipelines.iter().enumerate() {
        if called[index] {
            continue;
        }
        for (step, _) in pipeline.steps.iter().zip(&guards[index]).filter(|(_, guarded)| !**guarded) {
            diagnostics.set_home(Some(step.ast.name.span));
            let found = command::list_body_commands(step, sources).into_iter().find_map(|started| {
                let does = command::irreversible_effect(&started.simple)?;
                Some((started, does))
            });
            if let Some((started, does)) = found {
                diagnostics.push(report_irreversible(step.name(), &started, does));
            }
        }
    }
    diagnostics.set_home(None);
}

fn report_irreversible(step: &str, started: &Started<'_>, does: &str) -> Diagnostic {
    let message = format!("`{step}` {does}, and no gate and no check comes before it");
    Diagnostic::new(Code::UngatedIrreversible, message)
        .label(started.span(), format!("`{}` cannot be undone", started.name()))
        .help(format!("put a `gate` before `{step}`, or a step with a `check` that must hold"))
}

/// By step: whether it comes after a gate or a check.
fn find_guarded_steps(pipeline: &Pipeline<'_>) -> Vec<bool> {
    let steps = &pipeline.steps;
    let mut guards: Vec<bool> =
        steps.iter().map(|step| matches!(step.body, Body::Gate { .. }) || !step.ast.checks.is_empty()).collect();
    // A loop guards when something in it does; what stands in it comes later in the list.
    for step in (0..steps.len()).rev() {
        if let Some(holder) = steps[step].within {
            guards[holder] |= guards[step];
        }
    }
    let mut guarded = vec![false; steps.len()];
    // A cycle has no order, so the check reports no step.
    if !pipeline.order.cycles.is_empty() {
        return vec![true; steps.len()];
    }
    for &step in &pipeline.order.sorted {
        guarded[step] = steps[step].needs.iter().any(|need| guards[need.step] || guarded[need.step]);
    }
    // A loop stands before its steps in the list, so it has got its own answer when they ask for it.
    for step in 0..steps.len() {
        guarded[step] |= steps[step].within.is_some_and(|holder| guarded[holder]);
    }
    guarded
}

/// By pipeline: whether every call of it comes after a gate or a check; not when it is the one that runs by itself.
fn called_behind_guards(model: &Model<'_>, guards: &[Vec<bool>]) -> Vec<bool> {
    let mut calls: Vec<Vec<(usize, bool)>> = vec![Vec::new(); model.pipelines.len()];
    for (caller, pipeline) in model.pipelines.iter().enumerate() {
        for (step, guarded) in pipeline.steps.iter().zip(&guards[caller]) {
            if let Body::Call { pipeline: Some(target), .. } = step.body {
                calls[target].push((caller, *guarded));
            }
        }
    }
    let mut behind: Vec<bool> = (0..model.pipelines.len())
        .map(|index| !calls[index].is_empty() && model.default != Some(crate::model::Start::Pipeline(index)))
        .collect();
    // One that turns out to be called freely frees those that it calls itself.
    let mut open: Vec<usize> = (0..behind.len()).filter(|&index| !behind[index]).collect();
    let mut users: Vec<Vec<usize>> = vec![Vec::new(); behind.len()];
    for (target, calls) in calls.iter().enumerate() {
        calls.iter().filter(|(_, guarded)| !guarded).for_each(|&(caller, _)| users[caller].push(target));
    }
    while let Some(caller) = open.pop() {
        for &target in &users[caller] {
            if std::mem::replace(&mut behind[target], false) {
                open.push(target);
            }
        }
    }
    behind
}
