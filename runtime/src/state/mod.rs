//! The state of a run: the fold of its records, and the answers that prompts, conditions and people need from it.
//!
//! In: records, in order. Out: where every step of the current round stands, and what the round before left.
//! Invariant: facts decide everything but the [`agenda`], which `decide` empties; a record that does not fit (a late
//! result, a step that is not in the plan) changes nothing. No I/O, no clock, no randomness.

pub(crate) mod agenda;
mod fold;
pub(crate) mod round;
mod settle;

use std::collections::BTreeMap;
use std::sync::Arc;

use self::agenda::Agenda;
use self::round::{Detail, Instance, Phase, Step};
use crate::event::{Content, Process, RunStatus, Status, StepId};
use crate::graph::{Graph, Key};

pub use self::round::End;

/// Where a run stands.
#[derive(Debug)]
pub struct State {
    pub(crate) graph: Arc<Graph>,
    pub(crate) instances: Vec<Instance>,
    /// The steps that started and have not settled, with the process of their attempt.
    open: BTreeMap<Key, Option<Process>>,
    pub(crate) agenda: Agenda,
    pub(crate) stopping: bool,
    /// No step starts any more in any instance, because of `fail-fast`.
    halted: bool,
    /// How many instances have ended.
    ended: u32,
    finished: Option<RunStatus>,
    settled: [u64; 3],
}

/// What a step of one round left for others to read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading<'a> {
    /// How it ended; none while it has not.
    pub status: Option<Status>,
    /// Its output; where it failed or was skipped, the default it declares.
    pub output: Option<&'a Content>,
    /// The exit code of its last attempt.
    pub exit: Option<i32>,
    /// Why its last attempt failed: the tail of its stderr, or the runner's words.
    pub error: Option<&'a str>,
}

/// How many steps stand where, over all instances in their current rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// All of them.
    pub total: u64,
    /// Those with an open attempt, or between two attempts.
    pub running: u64,
    /// Those that succeeded.
    pub succeeded: u64,
    /// Those that failed.
    pub failed: u64,
    /// Those that were skipped.
    pub skipped: u64,
}

/// A step that started and has not settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Open {
    /// The step.
    pub step: StepId,
    /// The attempt that runs, or the one that comes next.
    pub attempt: u32,
    /// Whether the attempt began and has no end.
    pub running: bool,
    /// Its process, where it has one.
    pub process: Option<Process>,
}

impl State {
    /// The state before the first record.
    pub fn new(graph: Arc<Graph>) -> State {
        State {
            instances: (0..graph.instances).map(|_| Instance::default()).collect(),
            open: BTreeMap::new(),
            agenda: Agenda::new(&graph),
            stopping: false,
            halted: false,
            ended: 0,
            finished: None,
            settled: [0; 3],
            graph,
        }
    }

    /// The pipeline that runs.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// How the run ended; none while it has not.
    pub fn finished(&self) -> Option<RunStatus> {
        self.finished
    }

    /// Whether the run was asked to end, so that nothing starts until it is resumed.
    pub fn stopping(&self) -> bool {
        self.stopping
    }

    /// How an instance (from 1) of the pipeline ended; none while it has not.
    pub fn end(&self, instance: u32) -> Option<End> {
        self.instances.get(instance.checked_sub(1)? as usize)?.end
    }

    /// The round (from 1) that an instance (from 1) is in; 0 before the run started.
    pub fn iteration(&self, instance: u32) -> u32 {
        let position = instance.wrapping_sub(1) as usize;
        self.instances.get(position).map_or(0, |instance| instance.iteration)
    }

    /// What a step left in a round; none for rounds other than the current one and the one before, and for unknown
    /// names.
    pub fn read(&self, name: &str, instance: u32, iteration: u32) -> Option<Reading<'_>> {
        let number = self.graph.find(name)?;
        let instance = self.instances.get(instance.checked_sub(1)? as usize)?;
        if iteration == 0 || instance.iteration == 0 {
            return None;
        }
        if iteration == instance.iteration {
            let step = instance.steps.get(number as usize)?;
            return Some(self.reading(number, step.status(), step.detail.as_deref()));
        }
        match iteration + 1 == instance.iteration {
            true => {
                let past = instance.previous.get(number as usize)?;
                Some(self.reading(number, Some(past.status), past.detail.as_deref()))
            }
            false => None,
        }
    }

    /// The value of an instance (from 1): the output of the first step of the `result` that succeeded in the last round.
    pub fn value(&self, instance: u32) -> Option<&Content> {
        let instance = self.instances.get(instance.checked_sub(1)? as usize)?;
        let steps = self.graph.result().iter().filter_map(|&number| instance.steps.get(number as usize));
        let first = steps.into_iter().find(|step| step.phase == Phase::Settled(Status::Succeeded))?;
        first.detail.as_ref()?.output.as_ref()
    }

    /// The steps of the current rounds whose failure nothing handles.
    pub fn unhandled(&self) -> impl Iterator<Item = StepId> {
        (0..).zip(&self.instances).flat_map(move |(number, instance)| {
            let key = move |&step: &u32| Key { instance: number, step };
            instance.unhandled.iter().map(key).map(|key| self.id(key))
        })
    }

    /// The steps that started and have not settled, in order.
    pub fn open(&self) -> impl Iterator<Item = Open> {
        self.open.iter().map(|(&key, &process)| Open {
            step: self.id(key),
            attempt: self.step(key).attempt,
            running: self.step(key).phase == Phase::Running,
            process,
        })
    }

    /// How many steps stand where.
    pub fn counts(&self) -> Counts {
        let [succeeded, failed, skipped] = self.settled;
        let total = self.graph.len() as u64 * u64::from(self.graph.instances);
        Counts { total, running: self.open.len() as u64, succeeded, failed, skipped }
    }

    /// Whether every instance has ended: what is left is to record the end of the run.
    pub(crate) fn all_ended(&self) -> bool {
        self.ended == self.graph.instances
    }

    /// How the run ends, now that every instance has.
    pub(crate) fn verdict(&self) -> RunStatus {
        match self.instances.iter().all(|instance| instance.end == Some(End::Succeeded)) {
            true => RunStatus::Succeeded,
            false => RunStatus::Failed,
        }
    }

    pub(crate) fn id(&self, key: Key) -> StepId {
        self.graph.id(key, self.instance(key.instance).iteration)
    }

    pub(crate) fn instance(&self, instance: u32) -> &Instance {
        &self.instances[instance as usize]
    }

    pub(crate) fn step(&self, key: Key) -> &Step {
        &self.instances[key.instance as usize].steps[key.step as usize]
    }

    fn instance_mut(&mut self, instance: u32) -> &mut Instance {
        &mut self.instances[instance as usize]
    }

    pub(crate) fn step_mut(&mut self, key: Key) -> &mut Step {
        &mut self.instances[key.instance as usize].steps[key.step as usize]
    }

    fn reading<'a>(&'a self, number: u32, status: Option<Status>, detail: Option<&'a Detail>) -> Reading<'a> {
        let default = self.graph.node(number).default.as_ref();
        let output = detail.and_then(|detail| detail.output.as_ref());
        Reading {
            status,
            output: match status {
                Some(Status::Failed) => default.or(output),
                Some(Status::Skipped) => default,
                Some(Status::Succeeded) | None => output,
            },
            exit: detail.and_then(|detail| detail.exit),
            error: detail.and_then(|detail| detail.error.as_deref()),
        }
    }
}
