//! A run that goes on after its end, as the fold sees it: the records of before that still count, and what begins then.
//!
//! While the records of before are folded, an item of a for-each is open when a record tells of it, whatever the order in
//! which the items were opened once: those that run again do not hold up those that stay.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::State;
use super::budget::Spent;
use super::frame::{Inner, Phase};
use crate::core::graph::{Graph, Key};
use crate::core::reopened_records::effective;
use crate::types::event::{Event, Record, StepId};

/// What the records of before the run went on tell of.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Past {
    /// How many times the run goes on until they are over.
    left: usize,
    /// The frames with a record, by instance and path.
    frames: BTreeSet<(u32, Arc<str>)>,
}

impl Past {
    pub(super) fn tells_of(&self, instance: u32, path: &Arc<str>) -> bool {
        self.frames.contains(&(instance, Arc::clone(path)))
    }
}

impl State {
    /// The state that the records of a run come to.
    pub fn replay(graph: Arc<Graph>, records: &[Record]) -> State {
        State::replay_with(graph, records, |_, _| ())
    }

    /// The same; `seen` is shown each record that counts, with the state before it.
    pub fn replay_with(graph: Arc<Graph>, records: &[Record], seen: impl FnMut(&State, &Record)) -> State {
        State::fold_records(graph, &effective(records), 0, seen)
    }

    /// The state that records come to which all count; the run goes on so many times after them.
    pub(crate) fn fold_records(
        graph: Arc<Graph>,
        records: &[Record],
        later: usize,
        mut seen: impl FnMut(&State, &Record),
    ) -> State {
        let mut state = State::new(graph);
        let goes_on = |record: &Record| matches!(record.event, Event::RunReopened { .. });
        let left = records.iter().filter(|record| goes_on(record)).count() + later;
        if left > 0 {
            let before = match later {
                0 => records.iter().rposition(goes_on).unwrap_or(0),
                _ => records.len(),
            };
            let frame = |record: &Record| {
                let step = record.event.step()?;
                Some((step.instance, step.within.clone()?))
            };
            let frames = records[..before].iter().filter_map(frame).collect();
            state.past = Some(Box::new(Past { left, frames }));
        }
        for record in records {
            seen(&state, record);
            state.apply(record);
        }
        state
    }

    /// What counts for the budgets of the run, where it has any.
    pub(crate) fn usage_events(&self) -> Vec<Event> {
        if !self.graph.has_budgets {
            return Vec::new();
        }
        let event = |agent: Option<&Arc<str>>, used: &Spent| Event::UsedBefore {
            agent: agent.cloned(),
            calls: used.calls,
            tokens: used.tokens,
            cost: used.cost,
            time_ms: used.time_ms,
        };
        let agents = self.agents.iter().map(|(agent, used)| event(Some(agent), used));
        std::iter::once(event(None, &self.spent)).chain(agents).collect()
    }

    /// How long the run has run, in milliseconds.
    pub(crate) fn ran_ms(&self) -> u64 {
        self.at.saturating_sub(self.began.unwrap_or(self.at))
    }

    /// A step runs again: with this attempt, as soon as everything that it needs is there.
    pub(super) fn step_reopened(&mut self, step: &StepId, attempt: u32) {
        self.reopened.insert(step.clone(), attempt);
        if let Some(key) = self.find_step(step)
            && self.step(key).status().is_none()
        {
            self.go_on_with(key, attempt);
        }
    }

    /// Steps of a round that begins go on with the attempts that follow those of before.
    pub(super) fn reopen_round(&mut self, number: u32) {
        if self.reopened.is_empty() {
            return;
        }
        for step in 0..self.frame(number).steps.len() as u32 {
            let key = Key { frame: number, step };
            if let Some(&attempt) = self.reopened.get(&self.id(key)) {
                self.go_on_with(key, attempt);
            }
        }
    }

    fn go_on_with(&mut self, key: Key, attempt: u32) {
        let step = self.step_mut(key);
        (step.attempt, step.earlier) = (attempt, attempt.saturating_sub(1));
    }

    pub(super) fn used_before(&mut self, agent: Option<&Arc<str>>, used: Spent) {
        match agent {
            None => self.spent = used,
            Some(agent) => _ = self.agents.insert(Arc::clone(agent), used),
        }
    }

    /// All that counts of before is known: the items of for-eaches open that did not yet.
    pub(super) fn run_reopened(&mut self) {
        if let Some(past) = &mut self.past {
            past.left = past.left.saturating_sub(1);
            if past.left > 0 {
                return;
            }
        }
        self.past = None;
        for frame in 0..self.frames.len() as u32 {
            for step in 0..self.frame(frame).steps.len() as u32 {
                let key = Key { frame, step };
                if self.step(key).phase == Phase::Inside
                    && matches!(self.step(key).inner.as_deref(), Some(Inner::Each(_)))
                {
                    self.open_items(key);
                }
            }
        }
    }
}
