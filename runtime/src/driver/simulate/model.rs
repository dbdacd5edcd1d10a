//! The rules of settling once more, written the slow and obvious way: every step's end follows from the ends of those
//! it needs. It holds for plans in which no timing decides, that is without `stop` and `fail-fast`.

use std::collections::BTreeMap;

use swarmc_plan::{
    Body, EachJoin, Effect, Exhausted, Iteration, Join, Need, OnFailure, Plan, RoundFailure, Step, When,
};

use super::world::World;
use crate::types::event::{RunStatus, Status, StepId};

/// How a run ends: the ends of the pipeline's own steps in the last round of each instance, and its own.
#[derive(Debug, PartialEq)]
pub(crate) struct Ending {
    pub(crate) steps: BTreeMap<StepId, Status>,
    pub(crate) status: RunStatus,
}

/// How a run of the plan's first pipeline ends in a world.
pub(crate) fn ending(plan: &Plan, world: World) -> Ending {
    let pipeline = &plan.pipelines[0];
    let mut steps = BTreeMap::new();
    let mut status = RunStatus::Succeeded;
    for instance in 1..=pipeline.parallelism {
        let frame = Frame { plan, world, steps: &pipeline.steps, rounds: &pipeline.iteration, instance, within: None };
        if !frame.succeeds(&mut steps) {
            status = RunStatus::Failed;
        }
    }
    Ending { steps, status }
}

pub(crate) fn find<'a>(plan: &'a Plan, name: &str) -> &'a Step {
    plan.pipelines.iter().flat_map(|pipeline| pipeline.all_steps()).find(|step| step.name == name).unwrap()
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

/// Steps that start and settle together.
struct Frame<'a> {
    plan: &'a Plan,
    world: World,
    steps: &'a [Step],
    rounds: &'a Iteration,
    instance: u32,
    within: Option<String>,
}

impl<'a> Frame<'a> {
    /// Whether it succeeds; the ends of its last round are added to `steps`.
    fn succeeds(&self, steps: &mut BTreeMap<StepId, Status>) -> bool {
        let rounds = self.rounds;
        if self.steps.is_empty() {
            return true;
        }
        for iteration in 1.. {
            let ends = self.round(iteration);
            let failed = self.steps.iter().any(|step| self.unhandled(step, &ends));
            let last = iteration == rounds.max;
            let stops = failed && rounds.on_failure == RoundFailure::Stop;
            // A failure inside of a step counts at once.
            let judged = self.within.is_none() || !failed || !(stops || last);
            let until = !rounds.until.is_empty() && judged;
            let held = until && self.world.until(self.instance, iteration, self.within.as_deref());
            if held || stops || last {
                steps.extend(ends.into_iter().map(|(name, (status, _))| (self.id(name, iteration), status)));
                return !failed && (held || rounds.until.is_empty() || rounds.exhausted == Exhausted::Success);
            }
        }
        unreachable!("the last round ends the frame")
    }

    fn id(&self, name: &str, iteration: u32) -> StepId {
        StepId { within: self.within.as_deref().map(Into::into), ..StepId::new(name, iteration, self.instance) }
    }

    /// How every step ends in a round, and whether it ran.
    fn round(&self, iteration: u32) -> BTreeMap<&'a str, (Status, bool)> {
        let mut ends: BTreeMap<&str, (Status, bool)> = BTreeMap::new();
        while ends.len() < self.steps.len() {
            for step in self.steps {
                let status = |name: &str| ends.get(name).map(|(status, _)| *status);
                if let Some(allowed) = allowed(step, &status) {
                    let id = self.id(&step.name, iteration);
                    let end = if allowed { self.run(step, &id) } else { (Status::Skipped, false) };
                    ends.insert(&step.name, end);
                }
            }
        }
        ends
    }

    fn run(&self, step: &Step, id: &StepId) -> (Status, bool) {
        let failed = match step.on_failure {
            OnFailure::Fail | OnFailure::Fix(_) | OnFailure::Escalate => Status::Failed,
            OnFailure::Skip => Status::Skipped,
        };
        match step.when.as_ref().map(|_| self.world.condition(id)) {
            Some(Err(_)) => (failed, false),
            Some(Ok(false)) => (Status::Skipped, false),
            _ => match self.whole(step, id) {
                true => (Status::Succeeded, true),
                false => (failed, true),
            },
        }
    }

    /// Whether a step that may run succeeds, with all its items.
    fn whole(&self, step: &Step, id: &StepId) -> bool {
        let Some(each) = &step.for_each else { return self.one(step, id, false) };
        let Some(items) = self.world.items(id) else { return false };
        let item = |item: u32| StepId { within: Some(self.path(id, 1, Some(item)).into()), ..id.clone() };
        let succeeded = (0..items).filter(|&index| self.one(step, &item(index), true)).count() as u32;
        match each.join {
            EachJoin::All => succeeded == items,
            EachJoin::Any => succeeded > 0 || items == 0,
            EachJoin::Settled => true,
        }
    }

    /// Whether one of the attempts succeeds, of a step or of an item.
    fn one(&self, step: &Step, id: &StepId, is_item: bool) -> bool {
        if let Body::Gate(_) = &step.body {
            return self.world.answer(id).is_none_or(|(_, yes)| yes);
        }
        (1..=step.retry.times + 1).any(|attempt| match &step.body {
            Body::Loop(body) => self.inside(&body.steps, &body.iteration, id, attempt, is_item),
            Body::Call(call) => {
                let callee = self.plan.pipeline(&call.pipeline).unwrap();
                self.inside(&callee.steps, &callee.iteration, id, attempt, is_item)
            }
            _ => self.world.attempt(id, attempt).1,
        })
    }

    fn inside(&self, steps: &[Step], rounds: &Iteration, id: &StepId, attempt: u32, is_item: bool) -> bool {
        let around = match is_item {
            // An item goes round once, whatever is around it.
            true => format!("{}/{}", id.within.as_deref().unwrap(), again(&id.name, attempt)),
            false => self.path(id, attempt, None),
        };
        let within = Some(around);
        let (plan, world, instance) = (self.plan, self.world, self.instance);
        Frame { plan, world, steps, rounds, instance, within }.succeeds(&mut BTreeMap::new())
    }

    /// The path of what is inside of a step.
    fn path(&self, id: &StepId, attempt: u32, item: Option<u32>) -> String {
        let mut path = self.within.as_ref().map_or(String::new(), |within| format!("{within}/"));
        path += &id.name;
        if self.rounds.max > 1 {
            path += &format!(".{}", id.iteration);
        }
        path = again(&path, attempt);
        path + &item.map_or(String::new(), |item| format!("[{item}]"))
    }

    fn unhandled(&self, step: &Step, ends: &BTreeMap<&str, (Status, bool)>) -> bool {
        let handles = |other: &&Step| {
            let needs = other.needs.iter().any(|need| need.step == step.name && need.effect == Effect::Handles);
            needs && ends[other.name.as_str()].1
        };
        ends[step.name.as_str()].0 == Status::Failed
            && step.output.default.is_none()
            && !self.rounds.handles.contains(&step.name)
            && !self.steps.iter().any(|other| handles(&other))
    }
}

fn again(path: &str, attempt: u32) -> String {
    if attempt > 1 { format!("{path}~{attempt}") } else { path.to_owned() }
}

fn holds(need: &Need, status: Status) -> bool {
    matches!(
        (need.when, status),
        (When::Success | When::Any, Status::Succeeded)
            | (When::Failure | When::Any, Status::Failed)
            | (When::Always, _)
    )
}
