//! Handoffs in a rehearsal: it admits the operations of faked answers as a run does.

use std::sync::Arc;

use super::FakeRun;
use crate::core::graph::Key;
use crate::types::approval::{Choice, Request, Verdict};
use crate::types::event::{AnsweredBy, Event, StepId};
use crate::types::handoff::{Handoff, Operation};

/// A handoff, and whether it starts its receiver; or what is wrong with it.
type HandedOn = Result<(Handoff, bool), String>;

impl FakeRun<'_, '_> {
    /// Carries out or refuses the operations of an answer. A run reports refusals to people, a rehearsal to its tests.
    pub(super) fn said(&mut self, step: &StepId, attempt: u32, operations: Vec<Result<Operation, String>>) {
        for operation in operations {
            let Some(key) = self.state.find_step(step).filter(|&key| self.state.takes_turn(key, attempt)) else {
                return;
            };
            let handoffs = match operation.and_then(|operation| self.handoffs(key, operation)) {
                Ok(handoffs) => handoffs,
                Err(problem) => vec![Err(problem)],
            };
            let (count, mut problems) = (handoffs.len(), Vec::new());
            for handoff in handoffs {
                let at = (self.seq + 1, self.clock);
                match handoff.and_then(|handoff| self.evaluator.hand_over(&self.state, key, handoff, at, &self.made)) {
                    Ok((event, _)) => self.record(event),
                    Err(problem) => problems.push(problem),
                }
            }
            // What reaches some of all is no fault.
            if problems.len() == count {
                problems.dedup();
                for problem in problems {
                    self.fault(Some(step), format!("a request of its agent was refused: {problem}"));
                }
            }
        }
    }

    /// The handoffs of an operation, one for each receiver, and whether each starts its receiver.
    fn handoffs(&self, key: Key, operation: Operation) -> Result<Vec<HandedOn>, String> {
        let receivers = || self.evaluator.message_receivers(&self.state, key);
        Ok(match operation {
            // No person reads a report or answers a request for help: the agent goes on.
            Operation::ReadInbox {}
            | Operation::ReadContext(_)
            | Operation::ReportStatus(_)
            | Operation::RequestHelp(_) => Vec::new(),
            Operation::SendHandoff(handoff) => vec![Ok((*handoff, false))],
            Operation::SendMessage(message) => vec![Ok((message.into_handoff(&receivers())?, false))],
            Operation::Broadcast(broadcast) => {
                let (reached, receivers) = (self.evaluator.resolve_reach(&self.state, key).receivers, receivers());
                if reached.is_empty() {
                    return Err("there is no receiver".to_owned());
                }
                let message = |to: &String| Ok((broadcast.message_to(to).into_handoff(&receivers)?, false));
                reached.iter().map(message).collect()
            }
            // A rehearsal approves every spawn.
            Operation::SpawnNode(handoff) => vec![Ok((*handoff, true))],
        })
    }

    /// A step repeats itself because its tests say so: lets it go on.
    pub(super) fn go_on(&mut self, step: &StepId, attempt: u32) {
        let Some(key) = self.state.find_step(step) else { return };
        let Some(wants) = self.state.go_on_wish(key) else { return };
        let (id, agent) = (self.state.next_request(), Arc::clone(&step.name));
        let verdict = Verdict { id, choice: Choice::Allow, by: AnsweredBy::Policy, because: None, arguments: None };
        let step = step.clone();
        self.record(Event::ApprovalAsked { step: step.clone(), attempt, request: Request { id, agent, wants } });
        self.record(Event::ApprovalAnswered { step, attempt, verdict });
    }

    /// The inputs of the turn that is about to begin leave the inbox.
    pub(super) fn take_inputs(&mut self, step: &StepId) {
        let Some(key) = self.state.find_step(step) else { return };
        let inputs = self.state.fresh_inputs(key);
        if !inputs.is_empty() {
            self.record(Event::InputsTaken { step: step.clone(), inputs });
        }
    }
}
