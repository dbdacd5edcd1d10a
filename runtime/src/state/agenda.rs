//! What the facts call for and `decide` has not ordered yet, kept in order so that no decision scans the steps.
//!
//! In: a step whose phase changed. Out: queues that `decide` takes from. Invariant: a step stands in at most one queue,
//! the one its `place` names; a step of a lane with a limit is queued only when it could also start.

use std::collections::BTreeSet;

use super::State;
use super::round::{Phase, Reason};
use crate::event::SkipReason;
use crate::graph::{Graph, Key, Kind};

/// The queues.
#[derive(Debug)]
pub(crate) struct Agenda {
    pub(crate) judge: BTreeSet<Key>,
    pub(crate) skip: BTreeSet<Key>,
    pub(crate) stops: BTreeSet<Key>,
    pub(crate) values: BTreeSet<Key>,
    pub(crate) tasks: BTreeSet<Key>,
    pub(crate) timers: BTreeSet<(u64, Key)>,
    /// Attempts to be ended.
    pub(crate) cancel: BTreeSet<Key>,
    /// Starts that are ordered, and of which no event told yet.
    pub(crate) ordered: BTreeSet<Key>,
    /// Instances whose round is to be judged.
    pub(crate) rounds: BTreeSet<u32>,
    /// Slots taken.
    pub(crate) busy: u32,
    lanes: Vec<Lane>,
    /// The wake-up that was asked for last.
    pub(crate) alarm: Option<u64>,
    /// Whether the end of the run was ordered.
    pub(crate) finishing: bool,
}

/// The steps of one name, over all instances, with a limit of their own.
#[derive(Debug)]
struct Lane {
    limit: u32,
    /// Slots taken, and steps in the queue of tasks: at most `limit`, or nothing is parked.
    admitted: u32,
    parked: BTreeSet<Key>,
}

/// The queue that a step stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Nowhere,
    Judge,
    Skip,
    Stop,
    Value,
    Task,
    Parked,
    Timer(u64),
    Ordered,
}

impl Agenda {
    pub(crate) fn new(graph: &Graph) -> Agenda {
        let lanes = graph.lanes.iter().map(|&limit| Lane { limit, admitted: 0, parked: BTreeSet::new() });
        Agenda {
            judge: BTreeSet::new(),
            skip: BTreeSet::new(),
            stops: BTreeSet::new(),
            values: BTreeSet::new(),
            tasks: BTreeSet::new(),
            timers: BTreeSet::new(),
            cancel: BTreeSet::new(),
            ordered: BTreeSet::new(),
            rounds: BTreeSet::new(),
            busy: 0,
            lanes: lanes.collect(),
            alarm: None,
            finishing: false,
        }
    }
}

impl State {
    /// Moves a step to another phase and into the queue that belongs to it.
    pub(super) fn enter(&mut self, key: Key, phase: Phase) {
        if phase == Phase::Running {
            // Before it leaves the queue, so that its lane is not given to another step.
            self.take_slot(key);
        }
        self.unqueue(key);
        let kind = self.graph.node(key.step).kind;
        let step = self.step_mut(key);
        step.phase = phase;
        if phase != Phase::Running {
            let freed = std::mem::take(&mut step.slot);
            if std::mem::take(&mut step.cancelling) {
                self.agenda.cancel.remove(&key);
            }
            if freed {
                self.agenda.busy -= 1;
                self.leave_lane(key);
            }
        }
        if matches!(kind, Kind::Stop(_)) {
            let stops = &mut self.instance_mut(key.instance).stops;
            match phase {
                Phase::Judging | Phase::Ready | Phase::Running => stops.insert(key.step),
                _ => stops.remove(&key.step),
            };
        }
        self.enqueue(key);
    }

    /// Puts a step that stands nowhere where its phase belongs.
    fn enqueue(&mut self, key: Key) {
        let instance = self.instance(key.instance);
        let step = self.step(key);
        let dropped = instance.stopped.is_some() || instance.cut && !step.started;
        let place = match step.phase {
            Phase::Judging => Place::Judge,
            Phase::Skipping(_) => Place::Skip,
            Phase::Ready if dropped => Place::Skip,
            Phase::Ready => return self.line_up(key),
            Phase::Resting(_) if instance.stopped.is_some() => Place::Skip,
            Phase::Resting(due) => Place::Timer(due),
            Phase::Running => {
                if self.stopping || instance.stopped.is_some() {
                    self.cancel(key);
                }
                Place::Nowhere
            }
            Phase::Waiting | Phase::Settled(_) => Place::Nowhere,
        };
        match place {
            Place::Judge => self.agenda.judge.insert(key),
            Place::Skip => self.agenda.skip.insert(key),
            Place::Timer(due) => self.agenda.timers.insert((due, key)),
            _ => false,
        };
        self.step_mut(key).place = place;
    }

    /// Queues a step that may start.
    pub(crate) fn line_up(&mut self, key: Key) {
        let node = self.graph.node(key.step);
        let lane = node.lane;
        let place = match node.kind {
            Kind::Stop(_) => Place::Stop,
            Kind::Value => Place::Value,
            Kind::Task => match lane.map(|lane| &mut self.agenda.lanes[lane as usize]) {
                Some(lane) if lane.admitted >= lane.limit => {
                    lane.parked.insert(key);
                    Place::Parked
                }
                Some(lane) => {
                    lane.admitted += 1;
                    Place::Task
                }
                None => Place::Task,
            },
        };
        match place {
            Place::Stop => self.agenda.stops.insert(key),
            Place::Value => self.agenda.values.insert(key),
            Place::Task => self.agenda.tasks.insert(key),
            _ => false,
        };
        self.step_mut(key).place = place;
    }

    /// Takes a step out of its queue.
    pub(super) fn unqueue(&mut self, key: Key) {
        match std::mem::replace(&mut self.step_mut(key).place, Place::Nowhere) {
            Place::Nowhere => {}
            Place::Judge => drop(self.agenda.judge.remove(&key)),
            Place::Skip => drop(self.agenda.skip.remove(&key)),
            Place::Stop => drop(self.agenda.stops.remove(&key)),
            Place::Value => drop(self.agenda.values.remove(&key)),
            Place::Timer(due) => drop(self.agenda.timers.remove(&(due, key))),
            Place::Ordered => drop(self.agenda.ordered.remove(&key)),
            Place::Task => {
                self.agenda.tasks.remove(&key);
                self.leave_lane(key);
            }
            Place::Parked => {
                if let Some(lane) = self.graph.node(key.step).lane {
                    self.agenda.lanes[lane as usize].parked.remove(&key);
                }
            }
        }
    }

    /// Marks a step as ordered to start; a task takes its slot now.
    pub(crate) fn order(&mut self, key: Key) {
        self.take_slot(key);
        self.unqueue(key);
        self.agenda.ordered.insert(key);
        self.step_mut(key).place = Place::Ordered;
    }

    /// Asks for the end of an attempt, once.
    pub(super) fn cancel(&mut self, key: Key) {
        if !std::mem::replace(&mut self.step_mut(key).cancelling, true) {
            self.agenda.cancel.insert(key);
        }
    }

    /// Queues again what may now have to be skipped: an instance was stopped or cut.
    pub(super) fn requeue(&mut self, instance: u32) {
        let range = Key { instance, step: 0 }..=Key { instance, step: u32::MAX };
        let agenda = &self.agenda;
        let mut keys: Vec<Key> = [&agenda.stops, &agenda.values, &agenda.tasks]
            .into_iter()
            .flat_map(|queue| queue.range(range.clone()).copied())
            .chain(agenda.lanes.iter().flat_map(|lane| lane.parked.range(range.clone()).copied()))
            .collect();
        keys.extend(self.open.range(range.clone()).map(|(key, _)| *key));
        keys.sort_unstable();
        keys.dedup();
        let stopped = self.instance(instance).stopped.is_some();
        for key in keys {
            match self.step(key).phase {
                Phase::Running if stopped => self.cancel(key),
                Phase::Running => {}
                _ if self.step(key).place == Place::Ordered => {}
                phase => self.enter(key, phase),
            }
        }
        if stopped {
            let ordered: Vec<Key> = self.agenda.ordered.range(range).copied().collect();
            ordered.into_iter().for_each(|key| self.cancel(key));
        }
    }

    /// Why a queued step is skipped.
    pub(crate) fn skip_reason(&self, key: Key) -> SkipReason {
        let instance = self.instance(key.instance);
        let name = |step: u32| self.graph.node(step).name.to_string();
        match (self.step(key).phase, instance.stopped) {
            (Phase::Skipping(Reason::OnFailure), _) => SkipReason::OnFailure,
            (_, Some(by)) => SkipReason::Stopped { by: name(by) },
            (Phase::Skipping(Reason::Need(step, status)), None) => SkipReason::Need { step: name(step), status },
            (Phase::Skipping(Reason::Join), None) => SkipReason::Join,
            (Phase::Skipping(Reason::When), None) => SkipReason::When,
            _ => SkipReason::FailFast,
        }
    }

    fn take_slot(&mut self, key: Key) {
        if self.graph.node(key.step).kind == Kind::Task && !std::mem::replace(&mut self.step_mut(key).slot, true) {
            self.agenda.busy += 1;
            if let Some(lane) = self.graph.node(key.step).lane {
                self.agenda.lanes[lane as usize].admitted += 1;
            }
        }
    }

    /// Gives up a place in a lane, to the first step that is parked there.
    fn leave_lane(&mut self, key: Key) {
        let Some(lane) = self.graph.node(key.step).lane else { return };
        let lane = &mut self.agenda.lanes[lane as usize];
        lane.admitted -= 1;
        if lane.admitted < lane.limit
            && let Some(next) = lane.parked.pop_first()
        {
            lane.admitted += 1;
            self.agenda.tasks.insert(next);
            self.step_mut(next).place = Place::Task;
        }
    }
}
