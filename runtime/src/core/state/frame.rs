//! What the state holds of one frame: its round, every step's phase, and the round before.
//!
//! A frame is one activation of a region: an instance of the pipeline, the rounds of a loop, one item of a for-each, or
//! the pipeline behind a call.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use swarmc_plan::StopStatus;

use super::budget::{Account, Spent};
use super::run_queues::DeclarationOrder;
use crate::core::graph::Key;
use crate::types::event::{Content, InboxMessage, Status};

/// A region in its current round.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(crate) struct Frame {
    pub(crate) region: u32,
    /// The step that it is the inside of; none for an instance of the pipeline that runs.
    pub(crate) parent: Option<Key>,
    /// The frame of the pipeline that it belongs to: itself, unless it is a loop or an item.
    pub(crate) scope: u32,
    /// The instance of the pipeline that runs, from 1.
    pub(crate) instance: u32,
    /// The position of the item, from 0.
    pub(crate) item: Option<u32>,
    /// What the ids of its steps say in `within`.
    pub(crate) path: Option<Arc<str>>,
    /// Its place in the declaration: the positions of the steps that it is inside of, outermost first.
    pub(crate) rank: Arc<[u32]>,
    /// The record that opened it.
    pub(crate) opened: u64,
    /// Of a call: what was used in it.
    pub(crate) spent: Spent,
    /// The parameters of a call.
    pub(crate) params: Option<Content>,
    /// The round, from 1; 0 before it began. An item has that of the frame around it.
    pub(crate) iteration: u32,
    pub(crate) steps: Vec<Step>,
    pub(crate) previous: Vec<Past>,
    /// How many steps have not settled.
    pub(crate) unsettled: u32,
    /// How many of them are at work, or will be even if all waiting steps go on waiting; 0 where no step waits for
    /// envelopes.
    pub(super) live: u32,
    /// Of a pipeline: the `stop` steps in it that are about to be decided. No other step starts before them.
    pub(crate) stops: BTreeSet<DeclarationOrder>,
    /// What ended it early.
    pub(crate) ending: Option<Ending>,
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
    /// Of a pipeline or an item: the conversations in it.
    pub(crate) sessions: Vec<super::session::Known>,
}

/// What ends a frame early: no step starts in it any more, and running ones are ended.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Ending {
    /// The step that does.
    pub(crate) by: Arc<str>,
    /// How its pipeline ends, where it is a `stop`; else its failure, which nothing handles, ends its loop or call.
    pub(crate) stop: Option<StopStatus>,
}

/// How an instance of the pipeline ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
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
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Step {
    pub(crate) phase: Phase,
    /// The attempt that runs, or the one that comes next.
    pub(crate) attempt: u32,
    /// The attempts of its earlier turns.
    pub(crate) earlier: u32,
    /// What its turn has taken from its inbox.
    pub(crate) taken: Vec<InboxMessage>,
    /// How many of these the conversation has been told that a person interrupted.
    pub(crate) heard: usize,
    /// What its open attempt has sent.
    pub(crate) sent: Vec<InboxMessage>,
    /// The attempts in which agents sum up files for its packs, where there are any.
    pub(crate) summing: Option<Box<Summing>>,
    /// The first context pack that an attempt was given, and which attempt.
    pub(crate) pack: Option<Box<(u32, crate::types::artifact::ArtifactMeta)>>,
    /// Whether the changes of its attempt are recorded.
    pub(crate) has_changes: bool,
    /// The last attempt of which the provider has said under which id it keeps the conversation, and that id.
    pub(crate) session: Option<Box<(u32, String)>>,
    /// The conversation of the attempt before, which a person interrupted.
    pub(crate) interrupted: Option<Box<super::session::Known>>,
    /// What its last turns have in common, where that is counted.
    pub(crate) streak: Option<Box<super::loop_detection::RepeatCounter>>,
    /// How many needs have not settled.
    pub(crate) waiting: u32,
    /// How many declared needs hold.
    pub(crate) held: u32,
    /// Whether an attempt began in this round.
    pub(crate) started: bool,
    pub(crate) fault: Fault,
    pub(crate) detail: Option<Box<Detail>>,
    /// What is inside of it, from the attempt on that opened it.
    pub(crate) inner: Option<Box<Inner>>,
    /// What it has of the budgets, where there are any.
    pub(crate) account: Option<Box<Account>>,
    /// Whether it can write to others, or hold up those who need it.
    pub(super) seat: super::quiescence::NodeStatus,
    // What follows is the working state of `decide`; events do not depend on it.
    pub(crate) place: super::run_queues::Place,
    /// It takes one of the pipeline's slots.
    pub(crate) slot: bool,
    /// It is to be cancelled, or was ordered to.
    pub(crate) cancelling: bool,
}

/// The attempts of a step in which an agent sums up files for the attempt after them.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Summing {
    /// The agent, while one is open.
    pub(crate) by: Option<Arc<str>>,
    /// How many have ended.
    pub(crate) past: u32,
    /// Whether one has failed in this turn, so that a rule sums up the rest.
    pub(crate) failed: bool,
    /// How many of each agent have ended since the last attempt that was none of them.
    pub(crate) turns: BTreeMap<Arc<str>, u64>,
}

/// The phase of a step. Facts alone decide it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) enum Phase {
    /// Needs are open.
    Waiting,
    /// Its needs hold, and its `when` is to be evaluated.
    Judging,
    /// It will not run, which is to be recorded.
    Skipping(Reason),
    /// It may start.
    Ready,
    /// Its needs hold, and it waits for its first envelope.
    Listening,
    /// An attempt is open.
    Running,
    /// The steps inside of it run.
    Inside,
    /// The steps inside of it have ended, and what they came to is to be recorded.
    Concluding,
    /// It waits for a person's answer, and not longer than until this time.
    Asking(u64),
    /// Its turn is over, and it waits for further envelopes.
    Idle,
    /// It goes in circles, and waits for a decision whether it goes on.
    Stalled,
    /// An attempt failed; the next one begins at this time.
    Resting(u64),
    /// It ended.
    Settled(Status),
}

/// Why a step will not run; the small form of [`crate::SkipReason`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) enum Reason {
    Need(u32, Status),
    Join,
    When,
    OnFailure,
    /// Its frame ended early.
    Ended,
    /// What is inside of it was cut by `fail-fast`.
    Cut,
}

/// What is known of a step's failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
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
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub(crate) struct Detail {
    pub(crate) output: Option<Content>,
    pub(crate) exit: Option<i32>,
    pub(crate) error: Option<Box<str>>,
    /// Of a for-each: the items that failed.
    pub(crate) errors: Option<Content>,
    /// What it wrote to both streams, where something reads that.
    pub(crate) log: Option<Content>,
    /// What its agent left in its folder.
    pub(crate) files: Option<Box<Content>>,
}

/// What is inside of a step.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) enum Inner {
    /// The frame of a loop or a call, which stays until the round around it ends.
    Frame(u32),
    /// The items of a for-each.
    Each(Each),
    /// Nothing any more: it has ended, and had so many steps.
    Closed(u64),
}

/// The items of a for-each. A frame is open for few of them at a time.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(crate) struct Each {
    /// The list, as JSON.
    pub(crate) list: Option<Content>,
    /// How many there are.
    pub(crate) count: u32,
    /// All before this one were opened.
    pub(crate) next: u32,
    /// The frames of those that are open.
    pub(crate) open: BTreeMap<u32, u32>,
    /// What became of those that ended, by position; none where one was not carried through.
    pub(crate) ended: Vec<Option<Box<Past>>>,
    /// The steps of those that ended.
    pub(crate) size: u64,
    /// How many ended, by status.
    pub(crate) settled: [u32; 3],
}

/// A step of the round before, or an item.
#[derive(Debug, PartialEq, Deserialize, Serialize)]
pub(crate) struct Past {
    pub(crate) status: Status,
    pub(crate) detail: Option<Box<Detail>>,
    /// The steps inside, where it was a loop.
    pub(crate) inside: Vec<Past>,
}

impl Step {
    pub(crate) fn new(needs: u32) -> Step {
        Step {
            phase: Phase::Waiting,
            attempt: 1,
            earlier: 0,
            taken: Vec::new(),
            heard: 0,
            sent: Vec::new(),
            pack: None,
            has_changes: false,
            session: None,
            streak: None,
            interrupted: None,
            waiting: needs,
            held: 0,
            started: false,
            fault: Fault::None,
            detail: None,
            inner: None,
            account: None,
            summing: None,
            seat: super::quiescence::NodeStatus::default(),
            place: super::run_queues::Place::Nowhere,
            slot: false,
            cancelling: false,
        }
    }

    /// The attempt that runs, or comes next, counted in its turn.
    pub(crate) fn turn_attempt(&self) -> u32 {
        self.attempt - self.earlier
    }

    pub(crate) fn status(&self) -> Option<Status> {
        match self.phase {
            Phase::Settled(status) => Some(status),
            _ => None,
        }
    }

    pub(crate) fn each(&self) -> Option<&Each> {
        match self.inner.as_deref() {
            Some(Inner::Each(each)) => Some(each),
            Some(Inner::Frame(_) | Inner::Closed(_)) | None => None,
        }
    }
}

impl Each {
    /// The first item that was not opened; none where all were.
    pub(crate) fn next_item(&mut self) -> Option<u32> {
        let opened = |each: &Each, item: u32| {
            each.open.contains_key(&item) || each.ended.get(item as usize).is_some_and(Option::is_some)
        };
        while self.next < self.count && opened(self, self.next) {
            self.next += 1;
        }
        (self.next < self.count).then_some(self.next)
    }

    /// How many have ended.
    pub(crate) fn count_ended(&self) -> u32 {
        self.settled.iter().sum()
    }
}
