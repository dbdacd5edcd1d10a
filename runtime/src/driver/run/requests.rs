//! What agents have requested of this process: approvals that tasks wait for, and operations that were refused or sent
//! before.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::replies::Replies;
use crate::io::input::Asker;
use crate::types::event::StepId;
use crate::types::handoff::{Envelope, Handoff};

/// A task that waits for an approval.
#[derive(Debug)]
pub(super) struct WaitingTask {
    step: StepId,
    attempt: u32,
    /// Whether an answer cannot change the arguments of its call.
    pub fixed: bool,
    pub reply: Asker,
}

/// The requests of agents.
#[derive(Debug, Default)]
pub(super) struct Requests {
    /// Whether no person can answer.
    pub headless: bool,
    /// The tasks that wait, by the number of their request.
    tasks: BTreeMap<u32, WaitingTask>,
    /// The requests of former processes that were taken up again.
    pub used: BTreeSet<u32>,
    /// How many operations of each attempt were refused.
    refused: HashMap<(StepId, u32), u32>,
    /// What attempts had sent that start again, since their runner was killed.
    again: HashMap<(StepId, u32), Vec<Envelope>>,
    /// The replies to the callers of this turn, which they receive once its records are durable.
    pub replies: Replies,
}

impl Requests {
    /// No requests yet.
    pub(super) fn new(headless: bool) -> Requests {
        Requests { headless, ..Requests::default() }
    }

    /// A task waits for the answer to request `id`.
    pub(super) fn wait_for(&mut self, id: u32, (step, attempt): (StepId, u32), fixed: bool, reply: Asker) {
        self.tasks.insert(id, WaitingTask { step, attempt, fixed, reply });
    }

    /// The task that waits for the answer to request `id`. It waits no longer.
    pub(super) fn take_task(&mut self, id: u32) -> Option<WaitingTask> {
        self.tasks.remove(&id)
    }

    /// Forgets an attempt that has ended.
    pub(super) fn forget_attempt(&mut self, step: &StepId, attempt: u32) {
        self.tasks.retain(|_, waits| waits.step != *step || waits.attempt != attempt);
        self.refused.remove(&(step.clone(), attempt));
    }

    /// Forgets all waiting tasks.
    pub(super) fn forget_tasks(&mut self) {
        self.tasks.clear();
    }

    /// Counts a refused operation of an attempt. Returns how many there are.
    pub(super) fn count_refusal(&mut self, step: &StepId, attempt: u32) -> u32 {
        let count = self.refused.entry((step.clone(), attempt)).or_insert(0);
        *count += 1;
        *count
    }

    /// Notes what an attempt sent before its runner was killed.
    pub(super) fn note_sent(&mut self, step: StepId, attempt: u32, sent: Vec<Envelope>) {
        if !sent.is_empty() {
            self.again.insert((step, attempt), sent);
        }
    }

    /// The id of what an attempt sent before its runner was killed, where it sends the same again.
    pub(super) fn sent_before(&mut self, step: &StepId, attempt: u32, handoff: &Handoff) -> Option<String> {
        let sent = self.again.get_mut(&(step.clone(), attempt))?;
        let position = sent.iter().position(|envelope| handoff.is_in(envelope))?;
        // Each stands for one sending: an agent may mean to send the same twice.
        Some(sent.remove(position).id)
    }
}
