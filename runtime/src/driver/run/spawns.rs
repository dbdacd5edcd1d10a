//! Tasks that agents start with `spawn_node`.
//!
//! In: a first payload, along an edge that allows it. Out: an envelope in the inbox of a task that was not there
//! before, at once or after an approval. Invariant: the driver sends an approved envelope once, even if a process is
//! killed in between.

use std::sync::Arc;

use serde_json::{Value, json};
use swarmc_plan::{Approval, Priority, Response};

use super::driver::Driver;
use crate::core::graph::Key;
use crate::core::state::Waiting;
use crate::types::approval::{Request, RequestKind};
use crate::types::event::{AnsweredBy, Content, Event, InboxMessage, StepId, truncate_message};
use crate::types::handoff::{Envelope, EnvelopeKind, Handoff};

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
        self.check_unanswered_limit(step)?;
        let (plays, to, letter) = (Arc::from(plays), Arc::clone(to), Box::new(letter.clone()));
        let id = self.request_approval(step, attempt, &agent, RequestKind::Node { plays, to, way: *way, letter });
        if let Some(refusal) = self.decide_at_once(key, id, of) {
            return Err(refusal);
        }
        let waits = self.state.open_requests().any(|waiting| waiting.request.id == id);
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
            let Some(frame) = self.state.frame_of(waiting.step.instance, waiting.step.within.as_ref()) else {
                continue;
            };
            let activation = self.state.frame(self.state.frame(frame).scope);
            let (instance, within) = (activation.instance, activation.path.clone());
            let name = waiting.request.name();
            let (words, answers) = match waiting.request.wants {
                RequestKind::Node { to, way, letter, .. } if verdict.is_allowed() => {
                    let (from, way, letter) = (Some(waiting.step), Some(way), *letter);
                    self.record(Event::Sent { from, to, instance, within, way, letter });
                    continue;
                }
                RequestKind::Node { to, letter, .. } => {
                    (format!("`{to}` was not started: {}", verdict.refusal()), letter.id)
                }
                RequestKind::Help { message } => (self.format_help_answer(&message, &verdict), name.into()),
                RequestKind::Tool { .. } | RequestKind::Spawn { .. } | RequestKind::GoOn { .. } => continue,
            };
            let letter = self.decision_message(words, answers, verdict.by);
            self.record(Event::Sent { from: None, to: waiting.step.name, instance, within, way: None, letter });
        }
    }

    /// A decision as an inbox message to the step that asked; its author is a person or the run.
    fn decision_message(&self, mut words: String, answers: Arc<str>, by: AnsweredBy) -> InboxMessage {
        truncate_message(&mut words);
        let known = self.replaying.as_ref().and_then(|replaying| replaying.letters.get(&answers).cloned());
        InboxMessage {
            id: known.unwrap_or_else(|| format!("e{}", self.records.seq + 1).into()),
            kind: EnvelopeKind::Handoff,
            priority: Priority::Normal,
            response: Response::None,
            answers: Some(answers),
            answered_to: None,
            person: by == AnsweredBy::Person,
            run: by != AnsweredBy::Person,
            interrupts: false,
            said: None,
            content: Content::Text(words),
        }
    }
}
