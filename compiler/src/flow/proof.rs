//! The quick proofs that a value is there: by what steps need, without a formula.
//!
//! A step that started proves things about the steps before it: those that it needs succeeded, and so did those that
//! *they* need (dominators on the condition graph, never paths), and its `when` held. Nearly every read is proved so.

use std::collections::BTreeMap;

use swarmc_plan::{Join, When};

use crate::ast::OnFailure;
use crate::model::{Body, Need, Pipeline, Read, Step, find_siblings};
use crate::template::{Fact, Root, Status, same_name};

/// The needs that may be looked at for all values of a pipeline: so many, and some more for each step.
const MOST_LOOKS: usize = 200_000;
const PER_STEP: usize = 100;

/// What steps prove by having started, for each step that is asked about.
pub(crate) struct Proofs<'p, 'a> {
    pipeline: &'p Pipeline<'a>,
    /// The needs that may still be looked at.
    left: usize,
    /// The steps that run whatever happens.
    certain: Vec<bool>,
    /// Where each step stands in the order of needs.
    position: Vec<usize>,
    by_value: BTreeMap<(usize, Root), BTreeMap<usize, Proof>>,
}

/// Whether a step proves that the value of another is there.
#[derive(Clone, Copy, Default)]
struct Proof {
    /// By its needs: they held even where it failed over its own `when`.
    settled: bool,
    /// By its needs and its `when`.
    started: bool,
}

impl<'p, 'a> Proofs<'p, 'a> {
    pub(crate) fn new(pipeline: &'p Pipeline<'a>) -> Proofs<'p, 'a> {
        let mut position = vec![0; pipeline.steps.len()];
        for (at, &step) in pipeline.order.sorted.iter().enumerate() {
            position[step] = at;
        }
        let left = MOST_LOOKS + PER_STEP * pipeline.steps.len();
        Proofs { pipeline, left, certain: certain_steps(pipeline), position, by_value: BTreeMap::new() }
    }

    /// Whether the step proves the value that it reads of another.
    pub(crate) fn is_proved(&mut self, step: usize, target: usize, read: &Read) -> bool {
        let pipeline = self.pipeline;
        let producer = &pipeline.steps[target];
        let ran = [Status::Succeeded, Status::Failed];
        if self.certain[target]
            && ran.into_iter().all(|status| has_value_after(producer, read.root, status))
            && pipeline.steps[step].needs.iter().any(|need| need.step == target)
        {
            return true;
        }
        // Nearly every read is proved by the need that it implies.
        let direct = |holder: usize, need: &Need| {
            need.step == target
                && pipeline.steps[holder].is_binding(need)
                && has_value_when(producer, read.root, need.when)
        };
        // What a step in a loop reads from outside is a need of the loop.
        let holder = find_siblings(&pipeline.steps, step, target).map_or(step, |(holder, _)| holder);
        if pipeline.steps[holder].needs.iter().any(|need| direct(holder, need)) {
            return true;
        }
        let root = if read.root == Root::Input { Root::Output } else { read.root };
        let Some(proof) = self.prove_value(step, target, root) else { return false };
        // A `when` proves nothing for what it reads itself.
        if read.in_when { proof.settled } else { proof.started }
    }

    /// What `step` proves of a value of `target`: looks at the steps before it whose end it depends on, each once. None
    /// where these are too many.
    fn prove_value(&mut self, step: usize, target: usize, root: Root) -> Option<Proof> {
        let steps = &self.pipeline.steps;
        let known = self.by_value.entry((target, root)).or_default();
        let mut open = vec![step];
        let mut found = BTreeMap::new();
        while let Some(step) = open.pop() {
            if known.contains_key(&step) || found.insert(self.position[step], step).is_some() {
                continue;
            }
            self.left = self.left.checked_sub(1 + steps[step].needs.len())?;
            let told = |need: &&Need| need.step != target && effective_when(&steps[step], need) != When::Always;
            open.extend(steps[step].needs.iter().filter(told).map(|need| need.step));
        }
        // In the order of needs, so that what a step needs is known before it.
        for step in found.into_values() {
            let proof = prove_step(&steps[step], &steps[target], target, root, known);
            known.insert(step, proof);
        }
        known.get(&step).copied()
    }
}

/// The steps that nothing can skip: without `when`, and with needs that hold however those before them end.
fn certain_steps(pipeline: &Pipeline<'_>) -> Vec<bool> {
    let mut certain = vec![false; pipeline.steps.len()];
    for &index in &pipeline.order.sorted {
        let step = &pipeline.steps[index];
        let holds = |need: &Need| match need.when {
            When::Always => true,
            When::Any => certain[need.step],
            When::Success | When::Failure => false,
        };
        certain[index] = step.when.is_none()
            && pipeline.spawned[index].is_none()
            && step.ast.on_failure == OnFailure::Fail
            && step.ast.join.value == Join::All
            && step.needs.iter().all(holds);
    }
    certain
}

/// What a step proves, once those that it needs are known.
fn prove_step(
    step: &Step<'_>,
    producer: &Step<'_>,
    target: usize,
    root: Root,
    known: &BTreeMap<usize, Proof>,
) -> Proof {
    let by = |need: &Need| {
        let when = effective_when(step, need);
        if need.step == target {
            return has_value_when(producer, root, when);
        }
        let before = known.get(&need.step).copied().unwrap_or_default();
        match when {
            When::Success => before.started,
            When::Failure | When::Any => before.settled,
            When::Always => false,
        }
    };
    let binding = step.needs.iter().any(|need| step.is_binding(need) && by(need));
    let mut declared = step.needs.iter().filter(|need| need.declared).peekable();
    // Without a declared need, `all` would hold and prove what nothing says.
    let any = step.ast.join.value != Join::All && declared.peek().is_some() && declared.all(by);
    let settled = binding || any;
    let proves = |fact: &Fact| is_proof_of(fact, producer, root);
    let started = settled || step.when.as_ref().is_some_and(|when| when.expression.proves.iter().any(proves));
    Proof { settled, started }
}

/// How the step that is needed must have ended where this need is the one that held.
fn effective_when(step: &Step<'_>, need: &Need) -> When {
    match need.declared && step.ast.join.value == Join::NoneFailed {
        true => When::Success,
        false => need.when,
    }
}

/// Whether a step that ended like this has a value.
fn has_value_when(producer: &Step<'_>, root: Root, when: When) -> bool {
    ending_statuses(producer, when).into_iter().all(|status| has_value_after(producer, root, status))
}

/// The ways to end that satisfy a need; a failure that counts as a skip is none of its own.
pub(crate) fn ending_statuses(producer: &Step<'_>, when: When) -> Vec<Status> {
    let all = match when {
        When::Success => vec![Status::Succeeded],
        When::Failure => vec![Status::Failed],
        When::Any => vec![Status::Succeeded, Status::Failed],
        When::Always => vec![Status::Succeeded, Status::Failed, Status::Skipped],
    };
    let skips = producer.ast.on_failure == OnFailure::Skip && when != When::Failure;
    all.into_iter().filter(|status| !(skips && *status == Status::Failed)).collect()
}

/// Whether a step that ended like this leaves such a value behind.
pub(crate) fn has_value_after(producer: &Step<'_>, root: Root, status: Status) -> bool {
    match (root, status) {
        // What a call gives is another pipeline's to say.
        (Root::Output | Root::Input, Status::Succeeded) => {
            producer.list.is_some() || !matches!(producer.body, Body::Call { .. } | Body::Loop { .. })
        }
        (Root::Output | Root::Input, Status::Failed) => producer.keeps_output(),
        (Root::Exit, Status::Succeeded | Status::Failed) => producer.has_exit(),
        (Root::Log, Status::Succeeded | Status::Failed) => producer.has_log(),
        (Root::Error, Status::Failed) => true,
        // The list of the items that failed, which may be empty.
        (Root::Error, Status::Succeeded) => producer.list.is_some(),
        _ => false,
    }
}

pub(crate) fn is_assumed(read: &Read, producer: &Step<'_>) -> bool {
    read.assumes.iter().any(|fact| match fact {
        Fact::Defined { root: Root::Input, .. } => read.root == Root::Input && is_about(fact, read),
        fact => is_proof_of(fact, producer, read.root),
    })
}

/// Whether a fact is about what a reference names.
pub(crate) fn is_about(fact: &Fact, read: &Read) -> bool {
    match (fact, &read.name) {
        (Fact::Defined { name: Some(name), .. }, Some(read)) => same_name(name, read),
        (Fact::Defined { name: None, .. }, None) => true,
        _ => false,
    }
}

/// Whether a fact says that the value of a step is there.
fn is_proof_of(fact: &Fact, producer: &Step<'_>, wanted: Root) -> bool {
    match fact {
        Fact::Defined { root, name: Some(name), .. } => {
            *root != Root::Input && *root == wanted && same_name(name, producer.name())
        }
        Fact::Defined { .. } | Fact::Repeated | Fact::NonZero(_) => false,
        Fact::Ended { step, any_of } => {
            same_name(step, producer.name())
                && !any_of.is_empty()
                && any_of.iter().all(|status| has_value_after(producer, wanted, *status))
        }
    }
}
