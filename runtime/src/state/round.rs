//! What the state holds of one instance of the pipeline: its round, every step's phase, and the round before.

use std::collections::BTreeSet;

use crate::event::{Content, Status};

/// An instance of the pipeline in its current round.
#[derive(Debug, Default)]
pub(crate) struct Instance {
    /// The round, from 1; 0 before the run started.
    pub(crate) iteration: u32,
    pub(crate) steps: Vec<Step>,
    pub(crate) previous: Vec<Past>,
    /// How many steps have not settled.
    pub(crate) unsettled: u32,
    /// The `stop` steps that are about to be decided: no other step starts before them.
    pub(crate) stops: BTreeSet<u32>,
    /// The stop that ended the instance.
    pub(crate) stopped: Option<u32>,
    /// The steps of this round whose failure nothing handles, in the order of that becoming certain.
    pub(crate) unhandled: Vec<u32>,
    /// No further step starts, because of `fail-fast`.
    pub(crate) cut: bool,
    /// A step of this round was skipped for that reason.
    pub(crate) dropped: bool,
    /// Its steps have settled, and its `until` is to be judged.
    pub(crate) judging: bool,
    /// How it ended.
    pub(crate) end: Option<End>,
    /// The steps of this round that succeeded, failed and were skipped.
    pub(crate) settled: [u32; 3],
}

/// How an instance of the pipeline ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Done.
    Succeeded,
    /// A failure that nothing handled.
    Unhandled,
    /// No `until` held after the last round.
    Exhausted,
    /// A `stop status=failure`.
    Stopped,
    /// It was not carried through, because another instance failed under `fail-fast`.
    Cut,
}

/// A step of the current round.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) phase: Phase,
    /// The attempt that runs, or the one that comes next.
    pub(crate) attempt: u32,
    /// How many needs have not settled.
    pub(crate) waiting: u32,
    /// How many declared needs hold.
    pub(crate) held: u32,
    /// Whether an attempt began in this round.
    pub(crate) started: bool,
    pub(crate) fault: Fault,
    pub(crate) detail: Option<Box<Detail>>,
    // What follows is what `decide` has in hand; events do not depend on it.
    pub(crate) place: super::agenda::Place,
    /// It takes one of the pipeline's slots.
    pub(crate) slot: bool,
    /// It is to be cancelled, or was ordered to.
    pub(crate) cancelling: bool,
}

/// Where a step stands. Facts alone decide it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Needs are open.
    Waiting,
    /// Its needs hold, and its `when` is to be evaluated.
    Judging,
    /// It will not run, which is to be recorded.
    Skipping(Reason),
    /// It may start.
    Ready,
    /// An attempt is open.
    Running,
    /// An attempt failed; the next one begins at this time.
    Resting(u64),
    /// It ended.
    Settled(Status),
}

/// Why a step will not run; the small form of [`crate::SkipReason`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    Need(u32, Status),
    Join,
    When,
    OnFailure,
    Stopped,
}

/// What is known of a step's failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// So many steps that handle it by running did run, or still may.
    Open(u32),
    /// Whatever runs.
    Handled,
    /// Certainly by nothing.
    Unhandled,
}

/// What a step left behind.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Detail {
    pub(crate) output: Option<Content>,
    pub(crate) exit: Option<i32>,
    pub(crate) error: Option<Box<str>>,
}

/// A step of the round before.
#[derive(Debug)]
pub(crate) struct Past {
    pub(crate) status: Status,
    pub(crate) detail: Option<Box<Detail>>,
}

impl Step {
    pub(crate) fn new(needs: u32) -> Step {
        Step {
            phase: Phase::Waiting,
            attempt: 1,
            waiting: needs,
            held: 0,
            started: false,
            fault: Fault::None,
            detail: None,
            place: super::agenda::Place::Nowhere,
            slot: false,
            cancelling: false,
        }
    }

    pub(crate) fn status(&self) -> Option<Status> {
        match self.phase {
            Phase::Settled(status) => Some(status),
            _ => None,
        }
    }
}
