//! Handoffs in a rehearsal: it admits the operations of faked answers as a run does.

use std::sync::Arc;

use swarmc_plan::Unattended;

use super::FakeRun;
use crate::core::graph::Key;
use crate::driver::run::eval::operations::{AdmittedHelp, describe_refusals};
use crate::types::approval::{Choice, Request, RequestKind, Verdict};
use crate::types::event::{AnsweredBy, Event, StepId};
use crate::types::handoff::{Handoff, HelpRequest, Operation, Report};

impl FakeRun<'_, '_> {
    /// Carries out or refuses the operations of an answer. A run reports refusals to people, a rehearsal to its tests.
    pub(super) fn said(&mut self, step: &StepId, attempt: u32, operations: Vec<Result<Operation, String>>) {
        for operation in operations {
            let Some(key) = self.state.find_step(step).filter(|&key| self.state.takes_turn(key, attempt)) else {
                return;
            };
            let done = operation.and_then(|operation| self.apply_operation((key, step, attempt), operation));
            if let Err(problem) = done {
                self.fault(Some(step), format!("a request of its agent was refused: {problem}"));
            }
        }
    }

    fn apply_operation(
        &mut self,
        (key, step, attempt): (Key, &StepId, u32),
        operation: Operation,
    ) -> Result<(), String> {
        match operation {
            // The answers to these change nothing, and no agent reads them.
            Operation::ReadInbox {} | Operation::ReadContext(_) => Ok(()),
            Operation::ReportStatus(report) => self.report_status((key, step, attempt), &report),
            Operation::RequestHelp(request) => self.request_help((key, step, attempt), &request),
            Operation::SendHandoff(handoff) => self.hand_on(key, *handoff, false),
            Operation::SendMessage(message) => {
                let handoff = message.into_handoff(&self.evaluator.message_receivers(&self.state, key))?;
                self.hand_on(key, handoff, false)
            }
            Operation::Broadcast(broadcast) => {
                let (mut sent, mut refused) = (false, Vec::new());
                for (to, handoff) in self.evaluator.split_broadcast((&self.state, key), &broadcast)? {
                    match handoff.and_then(|handoff| self.hand_on(key, handoff, false)) {
                        Ok(()) => sent = true,
                        Err(why) => refused.push((to, why)),
                    }
                }
                // What reaches some of all is no fault.
                if sent { Ok(()) } else { Err(describe_refusals(&refused)) }
            }
            // A rehearsal approves every spawn.
            Operation::SpawnNode(handoff) => self.hand_on(key, *handoff, true),
        }
    }

    fn hand_on(&mut self, key: Key, handoff: Handoff, spawns: bool) -> Result<(), String> {
        let at = (self.seq + 1, self.clock);
        let (event, _) = self.evaluator.hand_over(&self.state, key, (handoff, spawns), at, &self.made)?;
        self.record(event);
        Ok(())
    }

    fn report_status(&mut self, (key, step, attempt): (Key, &StepId, u32), report: &Report) -> Result<(), String> {
        let admitted = self.evaluator.admit_report((&self.state, key), report, &self.made)?;
        if let Some(report) = admitted.report {
            self.record(Event::StatusReported { step: step.clone(), attempt, report });
        }
        Ok(())
    }

    /// A rehearsal asks no person: `unattended` of the policy answers a request for help.
    fn request_help(&mut self, (key, step, attempt): (Key, &StepId, u32), request: &HelpRequest) -> Result<(), String> {
        let wants = match self.evaluator.admit_help((&self.state, key), step, request, &self.made)? {
            AdmittedHelp::Made(_) => return Ok(()),
            AdmittedHelp::New(wants) => wants,
        };
        let agent = self.state.node(key).agent.clone().unwrap_or_else(|| Arc::clone(&step.name));
        let choice = match self.evaluator.plan.policy.unattended {
            Unattended::Approve => Choice::Allow,
            Unattended::Deny | Unattended::Fail => Choice::Deny,
        };
        self.answer_by_policy((step, attempt), agent, wants, choice);
        Ok(())
    }

    /// Records a request for an approval, with the answer of the policy.
    pub(super) fn answer_by_policy(
        &mut self,
        (step, attempt): (&StepId, u32),
        agent: Arc<str>,
        wants: RequestKind,
        choice: Choice,
    ) {
        let id = self.state.next_request();
        let verdict = Verdict { id, choice, by: AnsweredBy::Policy, because: None, arguments: None };
        let request = Request { id, agent, wants };
        self.record(Event::ApprovalAsked { step: step.clone(), attempt, request });
        self.record(Event::ApprovalAnswered { step: step.clone(), attempt, verdict });
    }

    /// A step repeats itself because its tests say so: lets it go on.
    pub(super) fn go_on(&mut self, step: &StepId, attempt: u32) {
        let Some(key) = self.state.find_step(step) else { return };
        let Some(wants) = self.state.go_on_wish(key) else { return };
        self.answer_by_policy((step, attempt), Arc::clone(&step.name), wants, Choice::Allow);
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
