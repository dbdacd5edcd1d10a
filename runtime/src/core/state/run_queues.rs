//! The queues of the scheduler: steps that the facts call for and `decide` has not ordered yet, kept in order.
//!
//! In: a step whose phase changed. Out: queues that `decide` takes from. Invariant: a step is in at most one queue,
//! the one its `place` names; a step of a lane with a limit is queued only when it could also start.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::State;
use super::frame::{Phase, Reason};
use crate::core::graph::{Graph, Key, Kind, Limit};
use crate::types::event::SkipReason;

/// The queues.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct RunQueues {
    pub(crate) judge: BTreeSet<Key>,
    pub(crate) skip: BTreeSet<Key>,
    pub(crate) stops: BTreeSet<DeclarationOrder>,
    /// What takes no slot: values, gates, and steps with others inside.
    pub(crate) values: BTreeSet<DeclarationOrder>,
    pub(crate) tasks: BTreeSet<DeclarationOrder>,
    /// Loops, for-eaches and calls whose inside has ended.
    pub(crate) conclude: BTreeSet<Key>,
    pub(crate) timers: BTreeSet<(u64, Key)>,
    /// Steps that go in circles, about which a person is to be asked.
    pub(crate) stalled: BTreeSet<Key>,
    /// Attempts to be ended.
    pub(crate) cancel: BTreeSet<Key>,
    /// Starts that are ordered, and of which no event told yet.
    pub(crate) ordered: BTreeSet<Key>,
    /// Frames whose round is to be judged.
    pub(crate) rounds: BTreeSet<u32>,
    /// Swarms in which there may be something to do.
    pub(crate) swarms: BTreeSet<Key>,
    /// The frames of pipelines in which a step may wait for an envelope that no step can write.
    pub(crate) posts: BTreeSet<u32>,
    /// The frames of pipelines in which a `stop` is about to be decided, with how many.
    pub(crate) holding: BTreeMap<u32, u32>,
    /// Slots taken.
    pub(crate) busy: u32,
    lanes: Vec<Lane>,
    /// The wake-up that was asked for last.
    pub(crate) alarm: Option<u64>,
    /// Whether the end of the run for want of time was ordered.
    pub(crate) overdue: bool,
    /// Whether the end of the run was ordered.
    pub(crate) finishing: bool,
}

/// A step in the order of the declaration: the steps inside of a step come at its place.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct DeclarationOrder {
    rank: Arc<[u32]>,
    pub(crate) key: Key,
}

/// The steps of one name, or of a called pipeline, with a limit of their own.
#[derive(Debug, Deserialize, Serialize)]
struct Lane {
    limit: u32,
    /// Slots taken, and steps in the queue of tasks: at most `limit`, or nothing is parked.
    admitted: u32,
    parked: BTreeSet<DeclarationOrder>,
}

/// The queue that holds a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) enum Place {
    Nowhere,
    Judge,
    Skip,
    Stop,
    Value,
    Task,
    /// In a lane.
    Parked(u32),
    Conclude,
    Stalled,
    Timer(u64),
    Ordered,
}

impl DeclarationOrder {
    /// What comes behind everything inside of a frame.
    pub(crate) fn behind_frame(rank: &[u32]) -> Option<DeclarationOrder> {
        let (last, around) = rank.split_last()?;
        Some(DeclarationOrder { rank: around.into(), key: Key { frame: 0, step: last.checked_add(1)? } })
    }

    fn rank_path(&self) -> impl Iterator<Item = u32> {
        self.rank.iter().copied().chain([self.key.step])
    }
}

impl Ord for DeclarationOrder {
    fn cmp(&self, other: &DeclarationOrder) -> Ordering {
        // Steps of one frame share the rank, and most comparisons are between such.
        match Arc::ptr_eq(&self.rank, &other.rank) {
            true => self.key.step.cmp(&other.key.step),
            // The path with the step's own position at its end: a step inside of another one sorts at the place of
            // that.
            false => self.rank_path().cmp(other.rank_path()),
        }
    }
}

impl PartialOrd for DeclarationOrder {
    fn partial_cmp(&self, other: &DeclarationOrder) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for DeclarationOrder {
    fn eq(&self, other: &DeclarationOrder) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for DeclarationOrder {}

impl RunQueues {
    pub(crate) fn new(graph: &Graph) -> RunQueues {
        let lane = |limit: &Limit| Lane { limit: limit.most, admitted: 0, parked: BTreeSet::new() };
        RunQueues {
            judge: BTreeSet::new(),
            skip: BTreeSet::new(),
            stops: BTreeSet::new(),
            values: BTreeSet::new(),
            tasks: BTreeSet::new(),
            conclude: BTreeSet::new(),
            timers: BTreeSet::new(),
            stalled: BTreeSet::new(),
            cancel: BTreeSet::new(),
            ordered: BTreeSet::new(),
            rounds: BTreeSet::new(),
            swarms: BTreeSet::new(),
            posts: BTreeSet::new(),
            holding: BTreeMap::new(),
            busy: 0,
            lanes: graph.lanes.iter().map(lane).collect(),
            alarm: None,
            overdue: false,
            finishing: false,
        }
    }
}

impl State {
    /// Moves a step to another phase and into the queue that belongs to it.
    pub(super) fn enter_phase(&mut self, key: Key, phase: Phase) {
        if phase == Phase::Running {
            // Before it leaves the queue, so that its lane is not given to another step.
            self.take_slot(key);
        }
        self.dequeue_step(key);
        let is_stop = matches!(self.node(key).kind, Kind::Stop(_));
        let step = self.step_mut(key);
        step.phase = phase;
        if phase != Phase::Running {
            // A step that retries or waits for a person gives its slot to another one meanwhile.
            let freed = std::mem::take(&mut step.slot);
            if std::mem::take(&mut step.cancelling) {
                self.agenda.cancel.remove(&key);
            }
            if freed {
                self.agenda.busy -= 1;
                self.leave_lanes(key);
            }
        }
        if is_stop {
            self.hold_pipeline(key, matches!(phase, Phase::Judging | Phase::Ready | Phase::Running));
        }
        self.enqueue_step(key);
        self.update_standing(key);
    }

    /// Holds up the other steps of a pipeline while a `stop` in it is about to be decided.
    fn hold_pipeline(&mut self, key: Key, holds: bool) {
        let scope = self.frame(key.frame).scope;
        let turn = self.declaration_order(key);
        let stops = &mut self.frame_mut(scope).stops;
        let changed = if holds { stops.insert(turn) } else { stops.remove(&turn) };
        if !changed {
            return;
        }
        let count = stops.len() as u32;
        match count {
            0 => self.agenda.holding.remove(&scope),
            count => self.agenda.holding.insert(scope, count),
        };
    }

    /// Puts a step that is in no queue where its phase belongs.
    fn enqueue_step(&mut self, key: Key) {
        let ended = self.is_ended(key);
        let dropped = self.is_dropped(key);
        let step = self.step(key);
        let place = match step.phase {
            Phase::Judging => Place::Judge,
            Phase::Skipping(_) => Place::Skip,
            Phase::Ready | Phase::Listening | Phase::Stalled if dropped => Place::Skip,
            Phase::Ready => return self.enqueue_ready(key),
            Phase::Resting(_) | Phase::Asking(_) | Phase::Concluding if ended => Place::Skip,
            // What is tried again has not begun either.
            Phase::Resting(_) | Phase::Stalled if self.frame(key.frame).cut => Place::Skip,
            Phase::Resting(due) => Place::Timer(due),
            // A gate without a time limit waits for ever, and is in no queue.
            Phase::Asking(due) if due < u64::MAX => Place::Timer(due),
            Phase::Concluding => Place::Conclude,
            Phase::Stalled => Place::Stalled,
            Phase::Running => {
                // It was ordered before the stop, or before its frame ended, and began after that.
                if self.stopping || ended {
                    self.cancel(key);
                }
                Place::Nowhere
            }
            Phase::Waiting | Phase::Listening | Phase::Idle | Phase::Inside | Phase::Asking(_) | Phase::Settled(_) => {
                Place::Nowhere
            }
        };
        match place {
            Place::Judge => self.agenda.judge.insert(key),
            Place::Skip => self.agenda.skip.insert(key),
            Place::Conclude => self.agenda.conclude.insert(key),
            Place::Stalled => self.agenda.stalled.insert(key),
            Place::Timer(due) => self.agenda.timers.insert((due, key)),
            _ => false,
        };
        self.step_mut(key).place = place;
    }

    /// Queues a step that may start.
    pub(crate) fn enqueue_ready(&mut self, key: Key) {
        let turn = self.declaration_order(key);
        let node = self.node(key);
        let lanes = node.lanes;
        let place = match node.kind {
            Kind::Stop(_) => Place::Stop,
            Kind::Task => self.enter_lanes(lanes),
            Kind::Value | Kind::Gate(_) | Kind::Loop(_) | Kind::Each { .. } | Kind::Call(_) => Place::Value,
        };
        match place {
            Place::Stop => self.agenda.stops.insert(turn),
            Place::Value => self.agenda.values.insert(turn),
            Place::Task => self.agenda.tasks.insert(turn),
            Place::Parked(lane) => self.agenda.lanes[lane as usize].parked.insert(turn),
            _ => false,
        };
        self.step_mut(key).place = place;
    }

    /// A place in every one of the lanes, or where to wait for one.
    fn enter_lanes(&mut self, lanes: [Option<u32>; 4]) -> Place {
        let lanes = || lanes.into_iter().flatten();
        let full = |lane: &u32| {
            let lane = &self.agenda.lanes[*lane as usize];
            lane.admitted >= lane.limit
        };
        // In the first full lane alone: it is asked about the others when there is room in that one.
        if let Some(lane) = lanes().find(full) {
            return Place::Parked(lane);
        }
        lanes().for_each(|lane| self.agenda.lanes[lane as usize].admitted += 1);
        Place::Task
    }

    /// Takes a step out of its queue.
    pub(super) fn dequeue_step(&mut self, key: Key) {
        match std::mem::replace(&mut self.step_mut(key).place, Place::Nowhere) {
            Place::Nowhere => {}
            Place::Judge => drop(self.agenda.judge.remove(&key)),
            Place::Skip => drop(self.agenda.skip.remove(&key)),
            Place::Conclude => drop(self.agenda.conclude.remove(&key)),
            Place::Stalled => drop(self.agenda.stalled.remove(&key)),
            Place::Timer(due) => drop(self.agenda.timers.remove(&(due, key))),
            Place::Ordered => drop(self.agenda.ordered.remove(&key)),
            Place::Stop => {
                let turn = self.declaration_order(key);
                self.agenda.stops.remove(&turn);
            }
            Place::Value => {
                let turn = self.declaration_order(key);
                self.agenda.values.remove(&turn);
            }
            Place::Task => {
                let turn = self.declaration_order(key);
                self.agenda.tasks.remove(&turn);
                self.leave_lanes(key);
            }
            Place::Parked(lane) => {
                let turn = self.declaration_order(key);
                self.agenda.lanes[lane as usize].parked.remove(&turn);
            }
        }
    }

    /// Marks a step as ordered to start; a task takes its slot now.
    pub(crate) fn mark_ordered(&mut self, key: Key) {
        self.take_slot(key);
        self.dequeue_step(key);
        self.agenda.ordered.insert(key);
        self.step_mut(key).place = Place::Ordered;
    }

    /// Asks for the end of an attempt, once.
    pub(super) fn cancel(&mut self, key: Key) {
        if !std::mem::replace(&mut self.step_mut(key).cancelling, true) {
            self.agenda.cancel.insert(key);
        }
    }

    /// Asks for the end of an ordered attempt. What takes no time happens all the same, and is seen to then.
    pub(super) fn cancel_ordered(&mut self, key: Key) {
        let kind = self.node(key).kind;
        if !kind.is_container() && !matches!(kind, Kind::Gate(_)) {
            self.cancel(key);
        }
    }

    /// Queues again what may now have to be skipped: a frame ended early, or was cut.
    pub(super) fn requeue(&mut self, frame: u32) {
        for step in 0..self.frame(frame).steps.len() as u32 {
            let key = Key { frame, step };
            let ended = self.is_ended(key);
            match self.step(key).phase {
                Phase::Running if ended => self.cancel(key),
                Phase::Inside => self.pass_down(key),
                Phase::Running | Phase::Waiting | Phase::Judging | Phase::Skipping(_) | Phase::Settled(_) => {}
                // Its event is still to come, and would find the step in another phase.
                _ if self.step(key).place == Place::Ordered => {
                    if ended {
                        self.cancel_ordered(key);
                    }
                }
                phase => self.enter_phase(key, phase),
            }
        }
    }

    /// Why a queued step is skipped.
    pub(crate) fn skip_reason(&self, key: Key) -> SkipReason {
        let name = |step: u32| self.node(Key { step, ..key }).name.to_string();
        let ended = || {
            let ending = self.frame(key.frame).ending.as_ref().filter(|_| self.is_ended(key))?;
            if self.over_budget {
                return Some(SkipReason::OverBudget);
            }
            let by = ending.by.to_string();
            Some(if ending.stop.is_some() { SkipReason::Stopped { by } } else { SkipReason::Ended { by } })
        };
        match (self.step(key).phase, ended()) {
            (Phase::Skipping(Reason::OnFailure), _) => SkipReason::OnFailure,
            (_, Some(reason)) => reason,
            (Phase::Skipping(Reason::Need(step, status)), None) => SkipReason::Need { step: name(step), status },
            (Phase::Skipping(Reason::Join), None) => SkipReason::Join,
            (Phase::Skipping(Reason::When), None) => SkipReason::When,
            _ if self.over_budget => SkipReason::OverBudget,
            _ => SkipReason::FailFast,
        }
    }

    /// The frame whose `stop` is about to be decided before steps of `frame` may start: the outermost one.
    pub(crate) fn held_by(&self, frame: u32) -> Option<u32> {
        // Asked for each step that starts, and few pipelines have a `stop`.
        if self.agenda.holding.is_empty() {
            return None;
        }
        let mut held = None;
        let mut scope = self.frame(frame).scope;
        loop {
            if self.agenda.holding.contains_key(&scope) {
                held = Some(scope);
            }
            match self.frame(scope).parent {
                Some(parent) => scope = self.frame(parent.frame).scope,
                None => return held,
            }
        }
    }

    fn declaration_order(&self, key: Key) -> DeclarationOrder {
        DeclarationOrder { rank: Arc::clone(&self.frame(key.frame).rank), key }
    }

    fn take_slot(&mut self, key: Key) {
        let node = self.node(key);
        let lanes = node.lanes;
        // Only what works takes a slot: a container that had one would keep the steps inside of it from theirs.
        if node.kind == Kind::Task && !std::mem::replace(&mut self.step_mut(key).slot, true) {
            self.agenda.busy += 1;
            // Leaving the queue of tasks takes the place in the lanes away again: it is counted twice for a moment.
            lanes.into_iter().flatten().for_each(|lane| self.agenda.lanes[lane as usize].admitted += 1);
        }
    }

    /// Gives up a place in the lanes of a step, to the first steps that are parked there.
    fn leave_lanes(&mut self, key: Key) {
        for lane in self.node(key).lanes.into_iter().flatten() {
            self.agenda.lanes[lane as usize].admitted -= 1;
            // A step that is let out may be parked in another lane, and leave its place here to the next.
            while let Some(next) = self.agenda.lanes[lane as usize].next() {
                self.enqueue_ready(next.key);
            }
        }
    }
}

impl Lane {
    /// The first parked step, if it could be admitted.
    fn next(&mut self) -> Option<DeclarationOrder> {
        if self.admitted < self.limit { self.parked.pop_first() } else { None }
    }
}
