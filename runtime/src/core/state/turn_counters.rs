//! Counts what turns under way report beside their handoffs: their progress, and their requests for help and for tasks.
//!
//! In: the facts of it. Out: the last report, and the counts that bound both. Invariant: it exists for as long as the
//! turn goes on, across runners, and the runner forgets it with its end.

use serde::{Deserialize, Serialize};

use super::State;
use crate::core::graph::Key;
use crate::types::event::{Content, StepId};

/// What one turn has said.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(crate) struct TurnCounters {
    /// How often it has reported.
    pub(crate) reports: u32,
    /// What it reported last.
    pub(crate) report: Option<Content>,
    /// How often it has asked for help.
    pub(crate) pleas: u32,
    /// How often it has asked for the approval of a task.
    pub(crate) spawns: u32,
    /// What it has asked people for, by the numbers of the requests.
    pub(crate) asked: Vec<(u32, Content)>,
}

impl State {
    /// What the turn of a step has said so far.
    pub(crate) fn turn_counters(&self, key: Key) -> Option<&TurnCounters> {
        self.voices.get(&key)
    }

    /// What the turn of a step that is under way has reported last.
    pub fn last_report(&self, step: &StepId) -> Option<&Content> {
        self.turn_counters(self.find_step(step)?)?.report.as_ref()
    }

    pub(super) fn status_reported(&mut self, key: Key, report: &Content) {
        let voice = self.voices.entry(key).or_default();
        voice.reports += 1;
        voice.report = Some(report.clone());
    }

    pub(super) fn help_asked(&mut self, key: Key, id: u32, message: &Content) {
        let voice = self.voices.entry(key).or_default();
        voice.pleas += 1;
        voice.asked.push((id, message.clone()));
    }

    pub(super) fn spawn_asked(&mut self, key: Key) {
        self.voices.entry(key).or_default().spawns += 1;
    }

    /// No person could be asked: at another time one may be.
    pub(super) fn help_refused(&mut self, step: &StepId, id: u32) {
        if let Some(voice) = self.find_step(step).and_then(|key| self.voices.get_mut(&key)) {
            voice.asked.retain(|(asked, _)| *asked != id);
        }
    }

    pub(super) fn voice_over(&mut self, key: Key) {
        self.voices.remove(&key);
    }
}
