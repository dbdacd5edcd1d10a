//! The state of a run: the fold of its records, and the answers that prompts, conditions and people need from it.
//!
//! In: records, in order. Out: the phase of every step of the current rounds, and what the rounds before left.
//! Invariant: facts decide everything but the [`run_queues`], which `decide` empties; a record that does not fit (a
//! late result, a step that is not in the plan) changes nothing. No I/O, no clock, no randomness.

mod approvals;
mod artifacts;
pub(crate) mod budget;
mod connection;
mod file_summaries;
mod fold;
pub(crate) mod frame;
pub(crate) mod inbox;
mod loop_detection;
mod pending;
mod progress;
mod quiescence;
mod read;
mod reopened;
pub(crate) mod run_queues;
mod session;
mod settle;
mod sub_frames;
mod swarms;
mod turn_counters;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use self::approvals::Approvals;
use self::budget::Spent;
use self::frame::{Frame, Phase, Step};
use self::run_queues::RunQueues;
use crate::core::graph::{Graph, Key, Node, Region};
use crate::core::snapshot::FromPlan;
use crate::types::event::{Process, RunStatus, StepId};

pub use self::approvals::Waiting;
pub use self::connection::Standing;
pub use self::frame::End;
pub use self::pending::{Blocked, Pending};
pub use self::progress::Progress;
pub use self::read::Reading;
pub(crate) use self::swarms::SwarmState;

/// The state of a run.
#[derive(Debug, Deserialize, Serialize)]
pub struct State {
    #[serde(skip)]
    pub(crate) graph: FromPlan<Graph>,
    /// The instances of the pipeline first, then what is inside of them, in the order in which it was opened; places
    /// that became free are taken again.
    pub(crate) frames: Vec<Frame>,
    free: Vec<u32>,
    /// The frames by instance and path.
    #[serde(with = "crate::core::snapshot::pairs")]
    paths: FxHashMap<(u32, Arc<str>), u32>,
    /// The steps that started and have not settled, with the process of their attempt.
    #[serde(with = "crate::core::snapshot::pairs")]
    open: BTreeMap<Key, Vec<Process>>,
    pub(crate) agenda: RunQueues,
    pub(crate) stopping: bool,
    /// No step starts any more in any instance, because of `fail-fast`.
    halted: bool,
    /// How many instances have ended.
    ended: u32,
    finished: Option<RunStatus>,
    settled: [u64; 3],
    /// The number of the last record, and its time.
    seq: u64,
    at: u64,
    /// When the run started; later, if it stood still in between.
    began: Option<u64>,
    /// What was used in all, and by each agent.
    spent: Spent,
    agents: BTreeMap<Arc<str>, Spent>,
    /// What agents wrote of files, for context packs.
    summaries: Vec<crate::types::event::Content>,
    /// What people appended to context packs, by the name of the pack.
    pub(crate) appended: BTreeMap<Arc<str>, Vec<crate::types::event::Content>>,
    /// The run ends, because its budget was spent.
    pub(crate) over_budget: bool,
    /// The swarms of steps that have not settled.
    #[serde(with = "crate::core::snapshot::pairs")]
    pub(crate) swarms: BTreeMap<Key, SwarmState>,
    approvals: Approvals,
    /// Whether a replay, and not the time, decides when pauses and deadlines of swarms are over.
    pub(crate) paced: bool,
    /// The inboxes, by the frame of the pipeline that they belong to.
    posts: BTreeMap<u32, inbox::Inboxes>,
    /// The artifacts of steps.
    artifact_index: artifacts::ArtifactIndex,
    /// What turns that are under way have said beside handing over.
    #[serde(with = "crate::core::snapshot::pairs")]
    voices: BTreeMap<Key, turn_counters::TurnCounters>,
    /// The attempts with which steps go on that run again after the end of the run, by step.
    #[serde(with = "crate::core::snapshot::pairs")]
    reopened: HashMap<StepId, u32>,
    /// While records of before the run went on are folded: what they need to be there.
    past: Option<Box<reopened::Past>>,
}

/// How many of the pipeline's own steps are in which phase, over all instances in their current rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// All of them.
    pub total: u64,
    /// Those with an open attempt, or between two attempts; those inside of others too.
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
    /// Whether it is a gate that waits for an answer.
    pub asking: bool,
    /// Its processes, where it has some: that of its attempt, and those that an agent has us run.
    pub processes: Vec<Process>,
}

impl State {
    /// The state before the first record.
    pub fn new(graph: Arc<Graph>) -> State {
        let region = graph.scopes[0].region;
        let frame = |instance: u32| Frame {
            region,
            scope: instance,
            instance: instance + 1,
            rank: Arc::from([instance]),
            ..Frame::default()
        };
        State {
            frames: (0..graph.instances).map(frame).collect(),
            free: Vec::new(),
            paths: FxHashMap::default(),
            open: BTreeMap::new(),
            agenda: RunQueues::new(&graph),
            stopping: false,
            halted: false,
            ended: 0,
            finished: None,
            settled: [0; 3],
            seq: 0,
            at: 0,
            began: None,
            spent: Spent::default(),
            agents: BTreeMap::new(),
            summaries: Vec::new(),
            appended: BTreeMap::new(),
            over_budget: false,
            swarms: BTreeMap::new(),
            approvals: Approvals::default(),
            paced: false,
            posts: BTreeMap::new(),
            artifact_index: artifacts::ArtifactIndex::default(),
            voices: BTreeMap::new(),
            reopened: HashMap::new(),
            past: None,
            graph: graph.into(),
        }
    }

    /// The pipeline that runs.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The time of the last record, in milliseconds since 1970.
    pub(crate) fn now(&self) -> u64 {
        self.at
    }

    /// How the run ended; none while it has not.
    pub fn final_status(&self) -> Option<RunStatus> {
        self.finished
    }

    /// Whether the run was asked to end, so that nothing starts until it is resumed.
    pub fn is_stopping(&self) -> bool {
        self.stopping
    }

    /// How an instance (from 1) of the pipeline ended; none while it has not.
    pub fn instance_end(&self, instance: u32) -> Option<End> {
        self.instance(instance)?.end
    }

    /// The round (from 1) that an instance (from 1) is in; 0 before the run started.
    pub fn iteration(&self, instance: u32) -> u32 {
        self.instance(instance).map_or(0, |frame| frame.iteration)
    }

    /// The steps of the current rounds whose failure nothing handles.
    pub fn unhandled_steps(&self) -> impl Iterator<Item = StepId> {
        (0..self.graph.instances).flat_map(move |frame| {
            let key = move |&step: &u32| Key { frame, step };
            self.frame(frame).unhandled.iter().map(key).map(|key| self.id(key))
        })
    }

    /// The steps that started and have not settled, in the order of their frames.
    pub fn open_steps(&self) -> impl Iterator<Item = Open> {
        self.open.iter().map(|(&key, processes)| Open {
            step: self.id(key),
            attempt: self.step(key).attempt,
            running: self.step(key).phase == Phase::Running,
            asking: matches!(self.step(key).phase, Phase::Asking(_)),
            processes: processes.clone(),
        })
    }

    /// Whether a step waits for what a person says.
    pub(crate) fn is_asking(&self, step: &StepId) -> bool {
        self.find_step(step).is_some_and(|key| matches!(self.step(key).phase, Phase::Asking(_)))
    }

    /// How many steps are in which phase.
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
    pub(crate) fn decide_status(&self) -> RunStatus {
        let instances = &self.frames[..self.graph.instances as usize];
        match instances.iter().all(|frame| frame.end == Some(End::Succeeded)) {
            _ if self.over_budget => RunStatus::OverBudget,
            true => RunStatus::Succeeded,
            false => RunStatus::Failed,
        }
    }

    /// The step of a record, if it belongs to a round that is under way.
    pub(crate) fn find_step(&self, id: &StepId) -> Option<Key> {
        let number = self.frame_of(id.instance, id.within.as_ref())?;
        let frame = self.frame(number);
        let current = frame.iteration == id.iteration && id.iteration > 0;
        let step = self.region(number).find(&id.name)?;
        (current && frame.end.is_none()).then_some(Key { frame: number, step })
    }

    /// The frame of an instance (from 1), or inside of it.
    pub(crate) fn frame_of(&self, instance: u32, within: Option<&Arc<str>>) -> Option<u32> {
        match within {
            Some(path) => self.paths.get(&(instance, Arc::clone(path))).copied(),
            None => instance.checked_sub(1).filter(|&number| number < self.graph.instances),
        }
    }

    pub(crate) fn id(&self, key: Key) -> StepId {
        let frame = self.frame(key.frame);
        StepId {
            name: Arc::clone(&self.node(key).name),
            iteration: frame.iteration,
            instance: frame.instance,
            within: frame.path.clone(),
        }
    }

    pub(crate) fn node(&self, key: Key) -> &Node {
        &self.region(key.frame).nodes[key.step as usize]
    }

    pub(crate) fn region(&self, frame: u32) -> &Region {
        self.graph.region(self.frame(frame).region)
    }

    pub(crate) fn frame(&self, frame: u32) -> &Frame {
        &self.frames[frame as usize]
    }

    pub(crate) fn step(&self, key: Key) -> &Step {
        &self.frame(key.frame).steps[key.step as usize]
    }

    fn instance(&self, instance: u32) -> Option<&Frame> {
        self.frame_of(instance, None).map(|frame| self.frame(frame))
    }

    fn frame_mut(&mut self, frame: u32) -> &mut Frame {
        &mut self.frames[frame as usize]
    }

    pub(crate) fn step_mut(&mut self, key: Key) -> &mut Step {
        &mut self.frames[key.frame as usize].steps[key.step as usize]
    }
}
