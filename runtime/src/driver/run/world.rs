//! The world of a run: who carries out what the driver orders, and from whom its inputs come.
//!
//! The driver asks it where attempts begin, where agents, tools and people are asked, and where it waits for an input.
//! Invariant: who answers is decided once, when the run is set up.

use std::sync::Arc;

use super::rehearsal::Rehearsing;
use super::replay::Replaying;
use super::reuse::Planning;
use crate::types::error::RunError;
use crate::types::event::StepId;

/// The world of a run.
pub(super) enum World<'a> {
    /// Agents, programs, tools and people.
    Real,
    /// A recording.
    Recorded(Box<Replaying>),
    /// The answers of a test, and a time of its own.
    Rehearsed(Box<Rehearsing<'a>>),
    /// Nothing at all: it is only looked at what a run would reuse.
    Planned(Box<Planning>),
}

impl<'a> World<'a> {
    /// Whether agents, programs, tools and hooks start, and the system clock counts.
    pub(super) fn is_real(&self) -> bool {
        matches!(self, World::Real)
    }

    /// Whether a test answers.
    pub(super) fn is_rehearsed(&self) -> bool {
        matches!(self, World::Rehearsed(_))
    }

    /// Whether nothing happens at all, and it is only looked at what would.
    pub(super) fn is_planned(&self) -> bool {
        matches!(self, World::Planned(_))
    }

    /// Checks that people can be asked, and can write.
    ///
    /// # Errors
    /// They cannot: why.
    pub(super) fn admit_people(&self) -> Result<(), String> {
        let problem = match self {
            World::Real => return Ok(()),
            World::Recorded(_) => "the run is a replay: its recording answers, and its agents read no messages",
            World::Rehearsed(_) => "the run is a rehearsal: its test answers",
            World::Planned(_) => "the run is only planned",
        };
        Err(problem.to_owned())
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
            World::Recorded(replaying) => Some(replaying),
            World::Real | World::Rehearsed(_) | World::Planned(_) => None,
        }
    }

    /// The same, to take from it.
    pub(super) fn recording_mut(&mut self) -> Option<&mut Replaying> {
        match self {
            World::Recorded(replaying) => Some(replaying),
            World::Real | World::Rehearsed(_) | World::Planned(_) => None,
        }
    }

    /// The rehearsal, to ask its test.
    pub(super) fn rehearsal(&mut self) -> Option<&mut Rehearsing<'a>> {
        match self {
            World::Rehearsed(rehearsing) => Some(rehearsing),
            World::Real | World::Recorded(_) | World::Planned(_) => None,
        }
    }
}
