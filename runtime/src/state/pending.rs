//! Whom a step waits for that edges lead to, and why: for people who wonder why nothing happens.

use std::sync::Arc;

use super::State;
use super::frame::Phase;
use crate::event::StepId;

impl State {
    /// The steps that can still write to a step, each with what it is doing; nobody where the step has settled, or where
    /// no edge leads to it.
    pub fn pending(&self, id: &StepId) -> Vec<(Arc<str>, &'static str)> {
        let Some(key) = self.find(id).filter(|&key| self.step(key).status().is_none()) else { return Vec::new() };
        let (scope, spot) = self.address(key);
        let ways = &self.graph.scope(self.region(scope).scope).ways;
        let mut pending = Vec::new();
        for way in ways.list.iter().filter(|way| way.to == spot) {
            let name = &self.graph.region(way.from.region).nodes[way.from.step as usize].name;
            let why = match self.receiver(scope, way.from).map(|key| self.step(key).phase) {
                None => "what it is inside of has not begun",
                Some(Phase::Settled(_) | Phase::Skipping(_)) => continue,
                Some(Phase::Waiting) => "it waits for other steps",
                Some(Phase::Judging | Phase::Ready) => "it is about to begin",
                Some(Phase::Listening) => "it waits for its first envelope",
                Some(Phase::Idle) => "it waits for envelopes itself",
                Some(Phase::Running | Phase::Inside | Phase::Concluding) => "its turn goes on",
                Some(Phase::Asking(_) | Phase::Stalled) => "it waits for a person",
                Some(Phase::Resting(_)) => "it is about to try again",
            };
            if !pending.iter().any(|(known, _)| known == name) {
                pending.push((Arc::clone(name), why));
            }
        }
        pending
    }
}
