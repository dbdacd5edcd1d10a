//! The conversations that agents' programs keep, and which of them a turn goes on with.
//!
//! A session belongs to an agent and a name, inside one instance of the pipeline, one call or one item: rounds of loops,
//! tasks and attempts share it.

use std::sync::Arc;

use super::State;
use crate::event::{Outcome, Usage};
use crate::graph::Key;
use crate::stream::sum;

/// A conversation as it stood at the end of its last turn.
#[derive(Debug)]
pub(crate) struct Known {
    agent: Arc<str>,
    name: Arc<str>,
    /// Its id, as its provider told it.
    id: String,
    /// What its turns have used, all together.
    used: Usage,
}

impl State {
    /// The id of the session of `agent` called `name` that a step of `frame` goes on with, and what it has used.
    pub(crate) fn session(&self, frame: u32, agent: &str, name: &str) -> Option<(&str, Usage)> {
        let sessions = &self.frame(self.home(frame)).sessions;
        let known = sessions.iter().find(|known| *known.agent == *agent && *known.name == *name)?;
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
    pub(super) fn talked(&mut self, key: Key, outcome: &Outcome) {
        let Some(id) = &outcome.session else { return };
        self.session_known(key, id);
        let Some(talk) = self.node(key).talk.clone() else { return };
        let agent = outcome.fallback.as_deref().map_or(talk.agent, Arc::from);
        let used = outcome.usage.unwrap_or_default();
        let home = self.home(key.frame);
        let sessions = &mut self.frame_mut(home).sessions;
        match sessions.iter_mut().find(|known| known.agent == agent && known.name == talk.session) {
            Some(known) if known.id == *id => known.used = sum(known.used, used),
            Some(known) => (known.id, known.used) = (id.clone(), used),
            None => sessions.push(Known { agent, name: talk.session, id: id.clone(), used }),
        }
    }

    /// The frame that holds the sessions of the steps in `frame`: its item, or its pipeline.
    fn home(&self, mut frame: u32) -> u32 {
        while self.frame(frame).item.is_none()
            && self.frame(frame).scope != frame
            && let Some(parent) = self.frame(frame).parent
        {
            frame = parent.frame;
        }
        frame
    }
}
