//! The conversations that agents' programs keep, and which of them a turn goes on with.
//!
//! A session belongs to an agent and a name, inside one instance of the pipeline, one call or one item: rounds of loops,
//! tasks and attempts share it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::State;
use crate::core::graph::Key;
use crate::types::event::{Outcome, Usage};
use crate::types::usage::sum;

/// A conversation as it stood at the end of its last turn.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Known {
    agent: Arc<str>,
    name: Arc<str>,
    /// Its id, as its provider told it.
    id: String,
    /// What its turns have used, all together.
    used: Usage,
}

impl Known {
    /// The same, when its last turn went on with what was known `before`.
    pub(super) fn continue_from(self, before: Option<&Known>) -> Known {
        let earlier = before.filter(|before| before.id == self.id).map_or_else(Usage::default, |before| before.used);
        Known { used: sum(earlier, self.used), ..self }
    }
}

impl State {
    /// The conversation of `agent` called `name` that a step goes on with, by its id, and what it has used; of a step that
    /// declares none, the one that a person interrupted.
    pub(crate) fn find_session(&self, key: Key, agent: &str, name: Option<&str>) -> Option<(&str, Usage)> {
        let interrupted = self.step(key).interrupted.as_deref().filter(|known| *known.agent == *agent);
        let sessions = &self.frame(self.session_frame(key.frame)).sessions;
        let is_meant = |known: &&Known| *known.agent == *agent && Some(&*known.name) == name;
        let known = sessions.iter().find(is_meant).or(interrupted)?;
        Some((&known.id, known.used))
    }

    /// Under which id the conversation of a step's attempt is kept: of the one that is open, or else the last one. A
    /// turn that was interrupted has it too.
    pub(crate) fn talk_of(&self, key: Key) -> Option<&str> {
        let step = self.step(key);
        let (attempt, id) = step.session.as_deref()?;
        (*attempt == step.attempt).then_some(id)
    }

    pub(super) fn session_known(&mut self, key: Key, id: &str) {
        let step = self.step_mut(key);
        step.session = Some(Box::new((step.attempt, id.to_owned())));
    }

    /// A turn of a step has ended: its session is where the next one goes on.
    pub(super) fn update_session(&mut self, key: Key, outcome: &Outcome) {
        if let Some(id) = &outcome.session {
            self.session_known(key, id);
        }
        let Some(latest) = self.turn_session(key, outcome).filter(|_| self.node(key).talk.is_some()) else { return };
        let home = self.session_frame(key.frame);
        let sessions = &mut self.frame_mut(home).sessions;
        match sessions.iter_mut().find(|known| known.agent == latest.agent && known.name == latest.name) {
            Some(known) => *known = latest.continue_from(Some(known)),
            None => sessions.push(latest),
        }
    }

    /// The conversation that a turn of a step was part of; one without a name where the step declares none.
    pub(super) fn turn_session(&self, key: Key, outcome: &Outcome) -> Option<Known> {
        let node = self.node(key);
        let (id, talk) = (outcome.session.clone()?, node.talk.as_deref());
        let own = talk.map(|talk| &talk.agent).filter(|_| !self.is_being_mended(key)).or(self.acting_agent(key));
        let agent = outcome.fallback.as_deref().map(Arc::from).or_else(|| own.cloned())?;
        let name = talk.map_or_else(|| Arc::from(""), |talk| Arc::clone(&talk.session));
        Some(Known { agent, name, id, used: outcome.usage.unwrap_or_default() })
    }

    /// The frame that holds the sessions of the steps in `frame`: its item, or its pipeline.
    fn session_frame(&self, mut frame: u32) -> u32 {
        while self.frame(frame).item.is_none()
            && self.frame(frame).scope != frame
            && let Some(parent) = self.frame(frame).parent
        {
            frame = parent.frame;
        }
        frame
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversation_that_goes_on_has_used_what_its_turns_have() {
        let known = |id: &str, output: u64| {
            let used = Usage { output, ..Usage::default() };
            Known { agent: "a".into(), name: "".into(), id: id.to_owned(), used }
        };
        let used = |before: Option<&Known>| known("s-1", 5).continue_from(before).used.output;
        assert_eq!(used(None), 5);
        assert_eq!(used(Some(&known("s-1", 7))), 12);
        assert_eq!(used(Some(&known("s-0", 7))), 5, "another conversation");
    }
}
