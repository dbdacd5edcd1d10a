//! Handoffs in a rehearsal: what faked answers ask for is admitted as in a run.

use std::sync::Arc;

use super::Stage;
use crate::approval::{Choice, Request, Verdict};
use crate::event::{AnsweredBy, Event, StepId};
use crate::handoff::{Handoff, Operation};

impl Stage<'_, '_> {
    /// What an answer asked for happens, or is refused: which a run tells people, and a rehearsal its tests.
    pub(super) fn said(&mut self, step: &StepId, attempt: u32, operations: Vec<Result<Operation, String>>) {
        for operation in operations {
            let Some(key) = self.state.find(step).filter(|&key| self.state.takes_turn(key, attempt)) else { return };
            let hand_over = |handoff: Handoff, spawns: bool| {
                let (event, _) =
                    self.scene.hand_over(&self.state, key, (handoff, spawns), (self.seq + 1, self.clock))?;
                Ok(Some(event))
            };
            let event = operation.and_then(|operation| match operation {
                Operation::ReadInbox {} | Operation::ReadContext(_) => Ok(None),
                Operation::SendHandoff(handoff) => hand_over(*handoff, false),
                // Somebody agrees to everything.
                Operation::SpawnNode(handoff) => hand_over(*handoff, true),
            });
            match event {
                Ok(Some(event)) => self.record(event),
                Ok(None) => {}
                Err(problem) => self.fault(Some(step), format!("what its agent asked for was refused: {problem}")),
            }
        }
    }

    /// A step that goes in circles does so as its tests tell it to.
    pub(super) fn go_on(&mut self, step: &StepId, attempt: u32) {
        let Some(key) = self.state.find(step) else { return };
        let Some(wants) = self.state.go_on_wish(key) else { return };
        let (id, agent) = (self.state.next_request(), Arc::clone(&step.name));
        let verdict = Verdict { id, choice: Choice::Allow, by: AnsweredBy::Policy, because: None, arguments: None };
        let step = step.clone();
        self.record(Event::ApprovalAsked { step: step.clone(), attempt, request: Request { id, agent, wants } });
        self.record(Event::ApprovalAnswered { step, attempt, verdict });
    }

    /// The inputs of the turn that is about to begin leave the inbox.
    pub(super) fn take_inputs(&mut self, step: &StepId) {
        let Some(key) = self.state.find(step) else { return };
        let inputs = self.state.fresh_inputs(key);
        if !inputs.is_empty() {
            self.record(Event::InputsTaken { step: step.clone(), inputs });
        }
    }
}
