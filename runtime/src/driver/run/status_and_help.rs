//! Broadcasts, status reports and requests for help: what agents send besides handoffs.
//!
//! In: an operation of an agent during its turn. Out: events and a receipt, or the reason for a refusal. Invariants: a
//! turn may send a limited number; what it repeats, by mistake or after its runner was killed, counts once.

use std::sync::Arc;

use serde_json::{Value, json};
use swarmc_plan::{Approval, Unattended};

use super::driver::Driver;
use crate::core::graph::Key;
use crate::types::approval::{RequestKind, Verdict};
use crate::types::event::{AnsweredBy, Content, Event, StepId};
use crate::types::handoff::{Broadcast, HelpRequest, MESSAGE_LIMIT, Report};

/// How often one turn reports at most.
const REPORTS: u32 = 1_000;

/// How often one turn asks for help at most, and how many requests of a task wait at once.
const PLEAS: u32 = 20;
const WAITING: usize = 3;

/// How many requests of a step in a row may go unanswered before the driver refuses further ones.
const UNANSWERED: u32 = 3;

/// The refusals that the answer to a broadcast says at most, and the characters of a plea that its answer repeats.
const REASONS: usize = 20;
const REPEATED: usize = 200;

impl Driver<'_> {
    /// An agent sends the same message to every task that an edge leads to.
    pub(super) fn broadcast(
        &mut self,
        (key, step, attempt): (Key, &StepId, u32),
        broadcast: &Broadcast,
    ) -> Result<Value, String> {
        let reached = self.evaluator.resolve_reach(&self.state, key).receivers;
        if reached.is_empty() {
            return Err(format!(
                "there is no receiver: no edge leads from `{}` to a task that has not ended",
                step.name
            ));
        }
        let receivers = self.evaluator.message_receivers(&self.state, key);
        let (mut sent, mut refused) = (Vec::new(), Vec::new());
        for to in &reached {
            let handed = broadcast.message_to(to).into_handoff(&receivers);
            match handed.and_then(|handoff| self.hand_on((key, step, attempt), handoff, false)) {
                Ok(receipt) => sent.push(receipt),
                Err(why) => refused.push((to, why)),
            }
        }
        let more = refused.len().saturating_sub(REASONS);
        match (sent.is_empty(), refused.first()) {
            (true, Some((_, why))) if refused.iter().all(|(_, other)| other == why) => Err(why.clone()),
            (true, _) => {
                let reasons = refused.iter().take(REASONS).map(|(to, why)| format!("to `{to}`: {why}"));
                let reasons: Vec<String> = reasons.chain((more > 0).then(|| format!("and {more} more"))).collect();
                Err(format!("no message was sent: {}", reasons.join("; ")))
            }
            (false, _) => {
                let refused = refused.iter().take(REASONS).map(|(to, why)| json!({ "to": to, "reason": why }));
                let mut receipt = json!({ "sent": sent, "refused": refused.collect::<Vec<_>>() });
                if more > 0 {
                    receipt["more"] = more.into();
                }
                Ok(receipt)
            }
        }
    }

    /// An agent says how far it is.
    pub(super) fn report_status(
        &mut self,
        (key, step, attempt): (Key, &StepId, u32),
        report: &Report,
    ) -> Result<Value, String> {
        let text = report.to_json()?;
        let voice = self.state.turn_counters(key);
        let reports = voice.map_or(0, |voice| voice.reports);
        let before = voice.and_then(|voice| voice.report.as_ref());
        if before.is_some_and(|before| self.evaluator.texts.load_text(before).is_ok_and(|before| before == text)) {
            return Ok(json!({ "reports": reports }));
        }
        if reports >= REPORTS {
            return Err(format!("you have reported {REPORTS} times in this turn, which is the limit"));
        }
        let report = self.outputs.keep_text(text).map_err(|failure| failure.to_string())?;
        self.record(Event::StatusReported { step: step.clone(), attempt, report });
        Ok(json!({ "reports": reports + 1 }))
    }

    /// An agent asks a person for help, who answers in its inbox.
    pub(super) fn request_help(
        &mut self,
        (key, step, attempt): (Key, &StepId, u32),
        plea: HelpRequest,
    ) -> Result<Value, String> {
        let message = plea.message.trim();
        match message.chars().count() {
            0 => return Err("`message` is empty: say what you need to know, or what a person should do".to_owned()),
            chars if chars > MESSAGE_LIMIT => {
                return Err(format!("`message` has {chars} characters, but at most {MESSAGE_LIMIT} are allowed"));
            }
            _ => {}
        }
        if !self.evaluator.hears_persons(&self.state, key) {
            return Err(format!("you cannot receive an answer: `{}` reads no inbox (`<<inbox>>`)", step.name));
        }
        if let Some(id) = self.find_equal_request((key, step), message) {
            return Ok(json!({ "approval": id }));
        }
        let open: Vec<String> = self.state.help_requests(step).map(|(id, _)| id.to_string()).collect();
        if open.len() >= WAITING {
            return Err(format!(
                "{WAITING} of your requests wait for a person, which is the limit: {}",
                open.join(", ")
            ));
        }
        if self.state.turn_counters(key).is_some_and(|voice| voice.pleas >= PLEAS) {
            return Err(format!("you have asked for help {PLEAS} times in this turn, which is the limit"));
        }
        self.check_unanswered_limit(step)?;
        let message = self.outputs.keep_text(message.to_owned()).map_err(|failure| failure.to_string())?;
        let agent = self.state.node(key).agent.clone().unwrap_or_else(|| Arc::clone(&step.name));
        let id = self.request_approval(step, attempt, &agent, RequestKind::Help { message });
        if let Some(refusal) = self.decide_at_once(key, id, Approval::Human) {
            return Err(refusal);
        }
        // An answer in time, or in place of one, is in its inbox.
        let waits =
            self.state.turn_counters(key).is_some_and(|voice| voice.asked.iter().any(|(asked, _)| *asked == id));
        match (waits, self.evaluator.plan.policy.unattended) {
            (true, _) => Ok(json!({ "approval": id })),
            (false, Unattended::Approve) => Ok(json!({ "approval": id, "answer": "allow" })),
            (false, _) => {
                Err("no person can answer: go on without help, or say in your answer what is missing".to_owned())
            }
        }
    }

    /// Refuses a further request after several unanswered ones: each timeout wakes the step, which would ask for ever.
    pub(super) fn check_unanswered_limit(&self, step: &StepId) -> Result<(), String> {
        match self.state.count_unheeded(step) {
            UNANSWERED.. => Err(format!(
                "no person answered your last {UNANSWERED} requests in time: go on without an answer, or say in your answer what is missing"
            )),
            _ => Ok(()),
        }
    }

    /// The number of an equal request of a step: one of this turn, or an unanswered one of an earlier turn.
    fn find_equal_request(&self, (key, step): (Key, &StepId), message: &str) -> Option<u32> {
        let asked = self
            .state
            .turn_counters(key)
            .into_iter()
            .flat_map(|voice| &voice.asked)
            .map(|(id, message)| (*id, message));
        let is_same = |before: &Content| self.evaluator.texts.load_text(before).is_ok_and(|before| before == message);
        asked.chain(self.state.help_requests(step)).find(|(_, before)| is_same(before)).map(|(id, _)| id)
    }

    /// The answer to a request for help, as the step that asked receives it.
    pub(super) fn format_help_answer(&self, message: &Content, verdict: &Verdict) -> String {
        let message = self.evaluator.texts.load_text(message).unwrap_or_default();
        let mut repeated: String = message.chars().take(REPEATED).collect();
        if repeated.len() < message.len() {
            repeated.push('…');
        }
        let answer = match (verdict.is_allowed(), &verdict.because) {
            (true, _) if verdict.by == AnsweredBy::Timeout => "no person answered in time: go on".to_owned(),
            (false, _) if verdict.by == AnsweredBy::Timeout => {
                "no person answered in time: go on without help, or say in your answer what is missing".to_owned()
            }
            (true, None) => "a person has read it: go on".to_owned(),
            (true, Some(because)) => format!("a person says: {because}"),
            (false, _) => verdict.refusal(),
        };
        format!("To your request for help ({repeated}): {answer}")
    }
}
