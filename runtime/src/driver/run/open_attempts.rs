//! The attempts that threads have, and those that are about to start.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::eval::Made;
use super::eval::file_summaries::Wanted;
use super::reuse::Reuser;
use crate::io::executor::{Job, Pool};
use crate::io::shim::HeldAttempt;
use crate::types::cancel::Cancel;
use crate::types::event::StepId;
use crate::types::swarm::TurnId;
use crate::types::user_request::StopLevel;

/// A step in any round, or with an empty name the frame of a step: its instance, path and name.
type Place = (u32, Option<Arc<str>>, Arc<str>);

/// What a former runner has left that goes on: attempts, and turns of swarms that programs take.
pub(super) type HeldAttempts = BTreeMap<(StepId, u32, Option<TurnId>), HeldAttempt>;

/// The attempts of a run.
pub(super) struct Attempts {
    pool: Option<Pool>,
    /// Jobs of this turn, not yet submitted.
    jobs: VecDeque<Box<Job>>,
    /// The attempts that threads have.
    pub open: BTreeMap<(StepId, u32), Arc<Cancel>>,
    /// The record of the last end of each step that others may need.
    ended: FxHashMap<Place, u64>,
    /// What evaluations made that is not yet recorded.
    pub made: Made,
    /// What is taken from earlier runs in the place of attempts, and left for later runs.
    pub reuse: Reuser,
    /// The files that are summed up in the attempts that do that.
    pub summing: HashMap<(StepId, u32), Vec<Wanted>>,
    /// Whether a process of some attempt may be held by a shim.
    pub has_held: bool,
    /// The attempts of a former runner that go on, and have not begun in this one.
    held: HeldAttempts,
    /// The attempts that a former runner had begun, and that start again where they do not go on.
    pub restarted: BTreeSet<(StepId, u32)>,
    /// The rejoined attempts whose changes a former runner has recorded.
    pub left: BTreeSet<(StepId, u32)>,
    /// What a person wants.
    level: Option<StopLevel>,
}

impl Attempts {
    /// No attempts yet; `pool` carries them out, where the world is to, `held` go on, and `reuse` spares some.
    pub(super) fn new(pool: Option<Pool>, held: HeldAttempts, reuse: Reuser) -> Attempts {
        Attempts {
            pool,
            jobs: VecDeque::new(),
            open: BTreeMap::new(),
            ended: FxHashMap::default(),
            made: Made::default(),
            reuse,
            summing: HashMap::new(),
            has_held: !held.is_empty(),
            held,
            restarted: BTreeSet::new(),
            left: BTreeSet::new(),
            level: None,
        }
    }

    /// Whether a former runner has left something of an attempt that is about to begin in this one.
    pub(super) fn take_held(&mut self, step: &StepId, attempt: u32) -> bool {
        self.held.remove(&(step.clone(), attempt, None)).is_some()
    }

    /// The turns of the swarm of an attempt of which a former runner has left something.
    pub(super) fn take_held_turns(&mut self, step: &StepId, attempt: u32) -> Vec<TurnId> {
        let is_of = |of: &(StepId, u32, Option<TurnId>)| of.0 == *step && of.1 == attempt;
        let turns = self.held.extract_if(.., |of, _| is_of(of));
        turns.filter_map(|((_, _, turn), _)| turn).collect()
    }

    /// What carries attempts out, until the run ends.
    pub(super) fn pool(&mut self) -> Option<&mut Pool> {
        self.pool.as_mut()
    }

    /// Waits for the threads, and ends them.
    pub(super) fn end_pool(&mut self) {
        self.pool = None;
    }

    /// Has an attempt start when the records that it depends on are handed over.
    pub(super) fn start(&mut self, job: Box<Job>) {
        self.open.insert((job.step.clone(), job.attempt), Arc::clone(&job.cancel));
        self.start_member(job);
    }

    /// Has a turn of a swarm start in the same way. The swarm itself knows when it has ended.
    pub(super) fn start_member(&mut self, job: Box<Job>) {
        self.has_held |= job.survival.is_some();
        self.jobs.push_back(job);
    }

    /// The attempts that begin now, in a world that carries them out itself.
    pub(super) fn take_jobs(&mut self) -> VecDeque<Box<Job>> {
        std::mem::take(&mut self.jobs)
    }

    /// Submits the jobs. A world without a pool takes them itself, by `take_jobs`.
    pub(super) fn submit_jobs(&mut self) {
        if let Some(pool) = &mut self.pool {
            pool.submit(self.jobs.drain(..));
        }
    }

    /// Whether a thread has the attempt.
    pub(super) fn is_open(&self, of: &(StepId, u32)) -> bool {
        self.open.contains_key(of)
    }

    /// A thread has ended the attempt.
    pub(super) fn close(&mut self, step: &StepId, attempt: u32) {
        self.open.remove(&(step.clone(), attempt));
    }

    /// Notes what a person wants; killing concerns the open attempts as well.
    pub(super) fn raise_level(&mut self, level: StopLevel) {
        // A milder level that comes later does not weaken the first.
        self.level = self.level.max(Some(level));
        if level == StopLevel::Kill {
            self.stop_all(StopLevel::Kill);
        }
    }

    /// Ends all attempts.
    pub(super) fn stop_all(&self, level: StopLevel) {
        self.open.values().for_each(|cancel| cancel.request_stop(level));
    }

    /// Ends an attempt, in the way that a person wants.
    pub(super) fn stop(&self, step: StepId, attempt: u32) {
        if let Some(cancel) = self.open.get(&(step, attempt)) {
            cancel.request_stop(self.level.unwrap_or(StopLevel::Stop));
        }
    }

    /// Interrupts the turn of an attempt. False if it cannot be interrupted.
    pub(super) fn interrupt(&self, of: &(StepId, u32)) -> bool {
        self.open.get(of).is_some_and(|cancel| cancel.interrupt())
    }

    /// Starts nothing more, and ends what runs.
    pub(super) fn give_up(&mut self) {
        // They were not submitted: no thread would report their end.
        for job in self.jobs.drain(..) {
            self.open.remove(&(job.step, job.attempt));
        }
        self.stop_all(self.level.unwrap_or(StopLevel::Stop));
    }

    /// Notes the record that ends a step: others may start behind it.
    pub(super) fn note_end(&mut self, step: &StepId, record: u64) {
        self.ended.insert((step.instance, step.within.clone(), Arc::clone(&step.name)), record);
    }

    /// The record that ended the step called `name` beside `step`.
    pub(super) fn end_beside(&self, step: &StepId, name: &str) -> Option<u64> {
        self.ended.get(&(step.instance, step.within.clone(), Arc::from(name))).copied()
    }
}
