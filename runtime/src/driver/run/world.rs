//! The world of a run: who carries out what the driver orders, and from whom its inputs come.
//!
//! The driver asks it where attempts begin, where agents, tools and people are asked, and where it waits for an input.
//! Invariant: only this module and the replay know whether agents work, or a recording answers in their place.

use std::sync::Arc;

use super::replay::Replaying;
use crate::types::error::RunError;
use crate::types::event::StepId;

/// The world of a run.
pub(super) enum World {
    /// Agents, programs, tools and people.
    Real,
    /// A recording.
    Recorded(Box<Replaying>),
}

impl World {
    /// Whether agents, programs, tools and hooks start, and time passes.
    pub(super) fn is_real(&self) -> bool {
        matches!(self, World::Real)
    }

    /// Checks that people can be asked, and can write.
    ///
    /// # Errors
    /// They cannot: why.
    pub(super) fn admit_people(&self) -> Result<(), String> {
        match self {
            World::Real => Ok(()),
            World::Recorded(_) => {
                Err("the run is a replay: its recording answers, and its agents read no messages".to_owned())
            }
        }
    }

    /// The id of the message with the decision on this request, where the world knows it.
    pub(super) fn decision_id(&self, request: &Arc<str>) -> Option<Arc<str>> {
        self.recording().and_then(|replaying| replaying.letters.get(request).cloned())
    }

    /// Checks what an attempt that is about to begin reads of its inbox.
    ///
    /// # Errors
    /// It is something else than it was in the recording.
    pub(super) fn check_inputs(&self, step: &StepId, attempt: u32, inputs: &[Arc<str>]) -> Result<(), RunError> {
        self.recording().map_or(Ok(()), |replaying| replaying.replay.reads(step, attempt, inputs))
    }

    /// The recording that answers.
    pub(super) fn recording(&self) -> Option<&Replaying> {
        match self {
            World::Real => None,
            World::Recorded(replaying) => Some(replaying),
        }
    }

    /// The same, to take from it.
    pub(super) fn recording_mut(&mut self) -> Option<&mut Replaying> {
        match self {
            World::Real => None,
            World::Recorded(replaying) => Some(replaying),
        }
    }
}
