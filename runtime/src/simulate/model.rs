//! The rules of settling once more, written the slow and obvious way: every step's end follows from the ends of those
//! it needs. It holds for pipelines in which no timing decides, that is without `stop` and `fail-fast`.

use std::collections::BTreeMap;

use swarmc_plan::{Effect, Exhausted, Join, Need, OnFailure, Pipeline, RoundFailure, Step, When};

use super::world::World;
use crate::event::{RunStatus, Status, StepId};

/// How a run ends: the ends of all steps in the last round of each instance, and its own.
#[derive(Debug, PartialEq)]
pub(crate) struct Ending {
    pub(crate) steps: BTreeMap<StepId, Status>,
    pub(crate) status: RunStatus,
}

/// How the pipeline ends in a world.
pub(crate) fn ending(pipeline: &Pipeline, world: World) -> Ending {
    let mut steps = BTreeMap::new();
    let mut status = RunStatus::Succeeded;
    for instance in 1..=pipeline.parallelism {
        if !self::instance(pipeline, world, instance, &mut steps) {
            status = RunStatus::Failed;
        }
    }
    Ending { steps, status }
}

pub(crate) fn find<'a>(pipeline: &'a Pipeline, name: &str) -> &'a Step {
    pipeline.steps.iter().find(|step| step.name == name).unwrap()
}

/// Whether the needs let a step run; nothing while that is open.
pub(crate) fn allowed(step: &Step, status: &impl Fn(&str) -> Option<Status>) -> Option<bool> {
    let ends: Vec<(&Need, Status)> =
        step.needs.iter().map(|need| Some((need, status(&need.step)?))).collect::<Option<_>>()?;
    let implied = ends.iter().filter(|(need, _)| !need.declared).all(|(need, status)| holds(need, *status));
    let declared: Vec<_> = ends.iter().filter(|(need, _)| need.declared).collect();
    let joined = match step.join {
        Join::All => declared.iter().all(|(need, status)| holds(need, *status)),
        Join::Any => declared.iter().any(|(need, status)| holds(need, *status)),
        Join::NoneFailed => {
            declared.iter().all(|(_, status)| *status != Status::Failed)
                && declared.iter().any(|(_, status)| *status == Status::Succeeded)
        }
    };
    Some(implied && (declared.is_empty() || joined))
}

/// Whether the instance succeeds; the ends of its last round are added to `steps`.
fn instance(pipeline: &Pipeline, world: World, instance: u32, steps: &mut BTreeMap<StepId, Status>) -> bool {
    let rounds = &pipeline.iteration;
    if pipeline.steps.is_empty() {
        return true;
    }
    for iteration in 1.. {
        let ends = round(pipeline, world, instance, iteration);
        let failed = pipeline.steps.iter().any(|step| unhandled(pipeline, step, &ends));
        let held = !rounds.until.is_empty() && world.until(instance, iteration);
        let stops = failed && rounds.on_failure == RoundFailure::Stop;
        if held || stops || iteration == rounds.max {
            let id = |name: &str| StepId::new(name, iteration, instance);
            steps.extend(ends.into_iter().map(|(name, (status, _))| (id(name), status)));
            return !failed && (held || rounds.until.is_empty() || rounds.exhausted == Exhausted::Success);
        }
    }
    unreachable!("the last round ends the instance")
}

/// How every step ends in a round, and whether it ran.
fn round(pipeline: &Pipeline, world: World, instance: u32, iteration: u32) -> BTreeMap<&str, (Status, bool)> {
    let mut ends: BTreeMap<&str, (Status, bool)> = BTreeMap::new();
    while ends.len() < pipeline.steps.len() {
        for step in &pipeline.steps {
            let status = |name: &str| ends.get(name).map(|(status, _)| *status);
            if let Some(allowed) = allowed(step, &status) {
                let id = StepId::new(&step.name, iteration, instance);
                let end = if allowed { run(step, &id, world) } else { (Status::Skipped, false) };
                ends.insert(&step.name, end);
            }
        }
    }
    ends
}

fn run(step: &Step, id: &StepId, world: World) -> (Status, bool) {
    let failed = match step.on_failure {
        OnFailure::Fail | OnFailure::Fix(_) | OnFailure::Escalate => Status::Failed,
        OnFailure::Skip => Status::Skipped,
    };
    match step.when.as_ref().map(|_| world.condition(id)) {
        Some(Err(_)) => (failed, false),
        Some(Ok(false)) => (Status::Skipped, false),
        _ => match (1..=step.retry.times + 1).any(|attempt| world.attempt(id, attempt).1) {
            true => (Status::Succeeded, true),
            false => (failed, true),
        },
    }
}

fn unhandled(pipeline: &Pipeline, step: &Step, ends: &BTreeMap<&str, (Status, bool)>) -> bool {
    let handles = |other: &&Step| {
        let needs = other.needs.iter().any(|need| need.step == step.name && need.effect == Effect::Handles);
        needs && ends[other.name.as_str()].1
    };
    ends[step.name.as_str()].0 == Status::Failed
        && step.output.default.is_none()
        && !pipeline.iteration.handles.contains(&step.name)
        && !pipeline.steps.iter().any(|other| handles(&other))
}

fn holds(need: &Need, status: Status) -> bool {
    matches!(
        (need.when, status),
        (When::Success | When::Any, Status::Succeeded)
            | (When::Failure | When::Any, Status::Failed)
            | (When::Always, _)
    )
}
