//! Tasks that agents start with `spawn_node`.
//!
//! In: a first payload, along an edge that allows it. Out: an envelope in the inbox of a task that was not there
//! before, at once or after an approval. Invariant: the driver sends an approved envelope once, even if a process is
//! killed in between.

use std::sync::Arc;

use serde_json::{Value, json};
use swarmc_plan::Approval;

use super::driver::Driver;
use super::eval::operations::check_unanswered_limit;
use crate::core::graph::Key;
use crate::core::state::Waiting;
use crate::types::approval::{Request, RequestKind};
use crate::types::event::{Event, StepId};
use crate::types::handoff::{Envelope, Handoff};

impl Driver<'_> {
    /// Sends the envelope that starts a task, or requests an approval for it first.
    pub(super) fn have_started(
        &mut self,
        (key, step, attempt): (Key, &StepId, u32),
        event: Event,
        envelope: &Envelope,
    ) -> Result<Value, String> {
        let (scope, of) = (self.state.frame(key.frame).scope, self.evaluator.plan.policy.spawn);
        let Event::Sent { to, way: Some(way), letter, .. } = &event else { return Err("it takes no edge".to_owned()) };
        let agents = self.state.node(key).agent.clone().zip(self.evaluator.agent_of(&self.state, scope, to));
        let Some((agent, plays)) = agents.filter(|_| of != Approval::Auto) else {
            self.record(event);
            return Ok(json!({ "id": envelope.id, "to": envelope.to_node_id }));
        };
        check_unanswered_limit(&self.state, step)?;
        let (plays, to, letter) = (Arc::from(plays), Arc::clone(to), Box::new(letter.clone()));
        let id = self.request_approval(step, attempt, &agent, RequestKind::Node { plays, to, way: *way, letter });
        if let Some(refusal) = self.decide_at_once(key, id, of) {
            return Err(refusal);
        }
        let waits = self.state.open_requests().any(|waiting| waiting.request.id == id);
        // It was approved at once where the envelope has been sent already.
        match waits || self.state.step(key).sent.iter().any(|letter| *letter.id == *envelope.id) {
            true => Ok(json!({ "id": envelope.id, "to": envelope.to_node_id, "approval": id })),
            false => {
                Err(format!("`{}` is not started: it needs approval, but no person can answer", envelope.to_node_id))
            }
        }
    }

    /// Finds an earlier request of an attempt for the same handoff, also one of a killed runner: no person is asked
    /// twice. Returns the number of the request and the id of the envelope. An inbox message reports a refusal.
    pub(super) fn asked_already(&mut self, step: &StepId, attempt: u32, handoff: &Handoff) -> Option<(u32, Arc<str>)> {
        let first = |request: &Request| {
            let RequestKind::Node { letter, .. } = &request.wants else { return None };
            let envelope: Envelope =
                serde_json::from_str(&self.evaluator.texts.load_text(&letter.content).ok()?).ok()?;
            handoff.is_in(&envelope).then(|| Arc::clone(&letter.id))
        };
        let is_here = |waiting: &&Waiting| (&waiting.step, waiting.attempt) == (step, attempt);
        let mut open = self.state.open_requests().filter(is_here).map(|waiting| &waiting.request);
        let before =
            || self.state.asked_before((step, attempt), &self.requests.used, |request| first(request).is_some());
        let request = open.find(|request| first(request).is_some());
        let request = request.or_else(|| before().map(|(waiting, _)| &waiting.request))?;
        let (approval, id) = (request.id, first(request)?);
        self.requests.used.insert(approval);
        Some((approval, id))
    }

    /// Sends the approved envelopes, and sends refusals and answers to requests for help to the steps that asked.
    pub(super) fn deliver_decided(&mut self) {
        let decided: Vec<_> =
            self.state.decisions().map(|(waiting, verdict)| (waiting.clone(), verdict.clone())).collect();
        for (waiting, verdict) in decided {
            let next = || format!("e{}", self.records.seq + 1).into();
            let message_id = |answers: &Arc<str>| self.world.decision_id(answers).unwrap_or_else(next);
            if let Some(event) = self.evaluator.decision_event(&self.state, (&waiting, &verdict), message_id) {
                self.record(event);
            }
        }
    }
}
