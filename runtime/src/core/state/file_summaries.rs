//! Attempts in which an agent sums up files for the context packs of the attempt after them.
//!
//! They have a number of their own, and are no try of the step's turn. What was written in one is known to the whole
//! run; where one failed, a rule sums up what is left for that turn.

use std::sync::Arc;

use super::State;
use super::frame::{Phase, Reason, Summing};
use crate::core::graph::Key;
use crate::types::event::{Content, Outcome};

impl State {
    /// What agents wrote of files so far: JSON each, in the order in which it was written.
    pub(crate) fn summaries(&self) -> &[Content] {
        &self.summaries
    }

    /// Whether a step has had a turn before: not only files summed up.
    pub(crate) fn had_turn(&self, key: Key) -> bool {
        let step = self.step(key);
        step.earlier > step.summing.as_deref().map_or(0, |summing| summing.past)
    }

    /// Whether files may be summed up before the next attempt of a step. One that has its packs begins again with them, and
    /// a conversation that goes on is not sent them.
    pub(crate) fn may_sum_up(&self, key: Key) -> bool {
        let (node, step) = (self.node(key), self.step(key));
        let has_packs = step.pack.as_deref().is_some_and(|(attempt, _)| *attempt == step.attempt)
            || self.had_turn(key)
                && match &node.talk {
                    Some(talk) => self.find_session(key, &talk.agent, Some(&talk.session)).is_some(),
                    None => step.interrupted.is_some(),
                };
        !has_packs && !self.is_being_mended(key) && step.summing.as_deref().is_none_or(|summing| !summing.failed)
    }

    /// An attempt begins, in which this agent sums up files, if it does.
    pub(super) fn begin_summing(&mut self, key: Key, by: Option<&Arc<str>>) {
        let summing = &mut self.step_mut(key).summing;
        match (summing.as_deref_mut(), by) {
            (Some(summing), by) => summing.by = by.cloned(),
            (None, Some(by)) => *summing = Some(Box::new(Summing { by: Some(Arc::clone(by)), ..Summing::default() })),
            (None, None) => {}
        }
    }

    /// The turns in which an agent has summed up files for the attempt that runs or comes next.
    pub(crate) fn count_summings(&self, key: Key, agent: &str) -> u64 {
        let summing = self.step(key).summing.as_deref();
        summing.and_then(|summing| summing.turns.get(agent)).copied().unwrap_or(0)
    }

    /// The number of an attempt of a step as people write it: those before it in which files were summed up are none.
    pub(crate) fn attempt_number(&self, key: Key, attempt: u32) -> u32 {
        attempt.saturating_sub(self.step(key).summing.as_deref().map_or(0, |summing| summing.past))
    }

    /// An attempt has ended; the agent that was to sum up files in it, if it was one of those.
    pub(super) fn summing_over(&mut self, key: Key) -> Option<Arc<str>> {
        self.step_mut(key).summing.as_deref_mut()?.by.take()
    }

    /// An agent has summed up files, or could not: the attempt comes that reads what it wrote.
    pub(super) fn end_summing(&mut self, key: Key, by: Arc<str>, outcome: &Outcome) {
        let step = self.step_mut(key);
        step.earlier += 1;
        step.attempt += 1;
        if let Some(summing) = step.summing.as_deref_mut() {
            summing.past += 1;
            summing.failed |= outcome.failure.is_some();
            *summing.turns.entry(by).or_default() += 1;
        }
        self.summaries.extend(outcome.output.clone());
        self.open.insert(key, Vec::new());
        if self.is_ended(key) {
            self.open.remove(&key);
            return self.enter_phase(key, Phase::Skipping(Reason::Ended));
        }
        self.enter_phase(key, Phase::Ready);
    }

    /// An attempt has ended that is none of these: for the one after it as many may be taken again.
    pub(super) fn reset_summings(&mut self, key: Key) {
        if let Some(summing) = self.step_mut(key).summing.as_deref_mut() {
            summing.turns.clear();
        }
    }

    /// The next turn of a step begins: what failed before the last one may be tried again.
    pub(super) fn may_sum_up_again(&mut self, key: Key) {
        if let Some(summing) = self.step_mut(key).summing.as_deref_mut() {
            summing.failed = false;
        }
    }
}
