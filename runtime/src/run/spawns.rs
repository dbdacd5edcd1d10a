//! Tasks that agents have started: `spawn_node`.
//!
//! In: a first payload, along an edge that allows it. Out: an envelope in the inbox of a task that was not there before, at
//! once or when somebody has agreed to it. Invariant: what was agreed to is sent once, whoever is killed in between.

use std::sync::Arc;

use serde_json::{Value, json};
use swarmc_plan::{Approval, Priority, Response};

use super::run_loop::{Loop, now};
use crate::approval::Wants;
use crate::event::{Content, Event, Letter, StepId, shorten};
use crate::graph::Key;
use crate::handoff::{Envelope, EnvelopeKind, Handoff};

/// How often one turn asks somebody to agree to a task at most.
const SPAWNS: u32 = 20;

impl Loop<'_> {
    /// An agent wants a task started.
    pub(super) fn spawn_node(
        &mut self,
        (key, step, attempt): (Key, &StepId, u32),
        handoff: Handoff,
    ) -> Result<Value, String> {
        if let Some(id) = self.sent_before(step, attempt, &handoff) {
            return Ok(json!({ "id": id, "to": handoff.to }));
        }
        if let Some(id) = self.asked_already(step, attempt, &handoff) {
            return Ok(json!({ "to": handoff.to, "approval": id }));
        }
        if self.state.voice(key).is_some_and(|voice| voice.spawns >= SPAWNS) {
            return Err(format!("you have asked for tasks {SPAWNS} times in this turn, which is the most"));
        }
        let at = now().max(self.clock);
        let (event, envelope) = self.scene.hand_over(&self.state, key, (handoff, true), (self.seq + 1, at))?;
        self.have_started((key, step, attempt), event, &envelope)
    }

    /// Sends what starts a task, or asks whoever is to agree to it first.
    pub(super) fn have_started(
        &mut self,
        (key, step, attempt): (Key, &StepId, u32),
        event: Event,
        envelope: &Envelope,
    ) -> Result<Value, String> {
        let (scope, of) = (self.state.frame(key.frame).scope, self.scene.plan.policy.spawn);
        let Event::Sent { to, way: Some(way), letter, .. } = &event else { return Err("it takes no way".to_owned()) };
        let agents = self.state.node(key).agent.clone().zip(self.scene.agent_of(&self.state, scope, to));
        let Some((agent, plays)) = agents.filter(|_| of != Approval::Auto) else {
            self.record(event);
            return Ok(json!({ "id": envelope.id, "to": envelope.to_node_id }));
        };
        let (plays, to, letter) = (Arc::from(plays), Arc::clone(to), Box::new(letter.clone()));
        let id = self.request(step, attempt, &agent, Wants::Node { plays, to, way: *way, letter });
        if let Some(refusal) = self.decide_at_once(key, id, of) {
            return Err(refusal);
        }
        let waits = self.state.waiting().any(|waiting| waiting.request.id == id);
        match waits || self.state.step(key).sent.iter().any(|letter| *letter.id == *envelope.id) {
            true => Ok(json!({ "id": envelope.id, "to": envelope.to_node_id, "approval": id })),
            false => Err(format!(
                "`{}` is not started: it needs somebody's agreement, and nobody can be asked",
                envelope.to_node_id
            )),
        }
    }

    /// The number under which an attempt has asked for just this, before its runner was killed.
    fn asked_already(&self, step: &StepId, attempt: u32, handoff: &Handoff) -> Option<u32> {
        let asked = self.state.waiting().find(|waiting| {
            let Wants::Node { letter, .. } = &waiting.request.wants else { return false };
            let text = self.scene.store.text(&letter.content).ok();
            let envelope = text.and_then(|text| serde_json::from_str(&text).ok());
            (&waiting.step, waiting.attempt) == (step, attempt)
                && envelope.is_some_and(|envelope| handoff.is_in(&envelope))
        });
        asked.map(|waiting| waiting.request.id)
    }

    /// Sends what was agreed to, and tells whoever asked of what was not, or what a person says to its request for help.
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
                Wants::Node { to, way, letter, .. } if verdict.allows() => {
                    let (from, way, letter) = (Some(waiting.step), Some(way), *letter);
                    self.record(Event::Sent { from, to, instance, within, way, letter });
                    continue;
                }
                Wants::Node { to, letter, .. } => (format!("`{to}` was not started: {}", verdict.refusal()), letter.id),
                Wants::Help { message } => (self.helped(&message, &verdict), name.into()),
                Wants::Tool { .. } | Wants::Spawn { .. } | Wants::GoOn { .. } => continue,
            };
            let letter = self.told(words, answers);
            self.record(Event::Sent { from: None, to: waiting.step.name, instance, within, way: None, letter });
        }
    }

    /// What a person decided, as a letter to whoever had asked.
    fn told(&self, mut words: String, answers: Arc<str>) -> Letter {
        shorten(&mut words);
        let known = self.replaying.as_ref().and_then(|replaying| replaying.letters.get(&answers).cloned());
        Letter {
            id: known.unwrap_or_else(|| format!("e{}", self.seq + 1).into()),
            kind: EnvelopeKind::Handoff,
            priority: Priority::Normal,
            response: Response::None,
            answers: Some(answers),
            person: true,
            interrupts: false,
            said: None,
            content: Content::Text(words),
        }
    }
}
