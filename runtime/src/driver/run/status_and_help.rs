//! Broadcasts, status reports and requests for help: what agents send besides handoffs.
//!
//! In: an operation of an agent during its turn. Out: events and a receipt, or the reason for a refusal. Invariants: a
//! turn may send a limited number; what it repeats, by mistake or after its runner was killed, counts once.

use std::sync::Arc;

use serde_json::{Value, json};
use swarmc_plan::{Approval, Unattended};

use super::driver::Driver;
use super::eval::operations::{AdmittedHelp, REASONS, describe_refusals};
use crate::core::graph::Key;
use crate::types::event::{Event, StepId};
use crate::types::handoff::{Broadcast, HelpRequest, Report};

impl Driver<'_> {
    /// An agent sends the same message to every task that an edge leads to.
    pub(super) fn broadcast(
        &mut self,
        (key, step, attempt): (Key, &StepId, u32),
        broadcast: &Broadcast,
    ) -> Result<Value, String> {
        let (mut sent, mut refused) = (Vec::new(), Vec::new());
        for (to, handoff) in self.evaluator.split_broadcast((&self.state, key), broadcast)? {
            match handoff.and_then(|handoff| self.hand_on((key, step, attempt), handoff, false)) {
                Ok(receipt) => sent.push(receipt),
                Err(why) => refused.push((to, why)),
            }
        }
        let more = refused.len().saturating_sub(REASONS);
        if sent.is_empty() {
            return Err(describe_refusals(&refused));
        }
        let refused = refused.iter().take(REASONS).map(|(to, why)| json!({ "to": to, "reason": why }));
        let mut receipt = json!({ "sent": sent, "refused": refused.collect::<Vec<_>>() });
        if more > 0 {
            receipt["more"] = more.into();
        }
        Ok(receipt)
    }

    /// An agent says how far it is.
    pub(super) fn report_status(
        &mut self,
        (key, step, attempt): (Key, &StepId, u32),
        report: &Report,
    ) -> Result<Value, String> {
        let admitted = self.evaluator.admit_report((&self.state, key), report, &self.attempts.made)?;
        if let Some(report) = admitted.report {
            self.record(Event::StatusReported { step: step.clone(), attempt, report });
        }
        Ok(json!({ "reports": admitted.count }))
    }

    /// An agent asks a person for help, who answers in its inbox.
    pub(super) fn request_help(
        &mut self,
        (key, step, attempt): (Key, &StepId, u32),
        request: &HelpRequest,
    ) -> Result<Value, String> {
        let made = &self.attempts.made;
        let wants = match self.evaluator.admit_help((&self.state, key), step, request, made)? {
            AdmittedHelp::Made(id) => return Ok(json!({ "approval": id })),
            AdmittedHelp::New(wants) => wants,
        };
        let agent = self.state.node(key).agent.clone().unwrap_or_else(|| Arc::clone(&step.name));
        let id = self.request_approval(step, attempt, &agent, wants);
        let refusal = self.decide_at_once(key, id, Approval::Human);
        // What the policy says to a test is no fault of the plan.
        if let Some(refusal) = refusal.filter(|_| !self.world.is_rehearsed()) {
            return Err(refusal);
        }
        // An answer in time, or in place of one, is in its inbox.
        let waits =
            self.state.turn_counters(key).is_some_and(|voice| voice.asked.iter().any(|(asked, _)| *asked == id));
        match (waits, self.evaluator.plan.policy.unattended) {
            (true, _) => Ok(json!({ "approval": id })),
            _ if self.world.is_rehearsed() => Ok(json!({ "approval": id })),
            (false, Unattended::Approve) => Ok(json!({ "approval": id, "answer": "allow" })),
            (false, _) => {
                Err("no person can answer: go on without help, or say in your answer what is missing".to_owned())
            }
        }
    }
}
