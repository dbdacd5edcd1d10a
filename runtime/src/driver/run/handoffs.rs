//! Operations of agents during their turns: the driver checks and records each, and replies when it is durable.

use std::sync::Arc;

use serde_json::{Value, json};

use super::driver::Driver;
use super::eval::truncate_to_event;
use crate::core::graph::Key;
use crate::io::input::ReplyTo;
use crate::types::artifact::Stored;
use crate::types::error::RunError;
use crate::types::event::{InboxMessage, StepId};
use crate::types::handoff::{Envelope, Handoff, Operation, Reading};

/// The refusals of one turn that people see.
const TOLD: u32 = 10;
const AFTER: u32 = TOLD + 1;

/// The lines of the file of a turn's refusals at most.
const LOGGED: u32 = 200;

/// The bytes of a stored thing that are read at once.
const PART: usize = 64 * 1024;

/// The bytes of inbox messages that one operation reads.
const READ: u64 = 4 * 1024 * 1024;

/// How often one turn may request an approval for a task.
const SPAWNS: u32 = 20;

impl Driver<'_> {
    /// Handles an operation of an agent. The agent receives the result, unless the operation is part of its answer;
    /// people see refusals.
    pub(super) fn handle_operation(
        &mut self,
        step: &StepId,
        attempt: u32,
        operation: Result<Operation, String>,
        hearer: Option<ReplyTo>,
    ) {
        let came = operation.and_then(|operation| self.apply_operation(step, attempt, operation));
        match (came, hearer) {
            (Ok(receipt), Some(hearer)) => self.requests.replies.receipt(hearer, receipt),
            (Ok(_), None) => {}
            (Err(problem), hearer) => {
                self.tell_refusal(step, attempt, &problem);
                // The agent may have stopped waiting.
                let _ = hearer.map(|hearer| hearer.send(Err(problem)));
            }
        }
    }

    /// Shows people a few refusals of each turn, and writes more of them to a file.
    pub(super) fn tell_refusal(&mut self, step: &StepId, attempt: u32, problem: &str) {
        if let Some(rehearsing) = self.world.rehearsal() {
            return rehearsing.note_fault(Some(step), format!("a request of its agent was refused: {problem}"));
        }
        let count = self.requests.count_refusal(step, attempt);
        match count {
            ..=TOLD => self
                .notices
                .send(truncate_to_event(&format!("`{}`: a request of its agent was refused: {problem}", step.label()))),
            AFTER => {
                self.notices.send(format!("`{}`: further refusals of this turn are not shown", step.label()));
            }
            _ => {}
        }
        match count {
            ..LOGGED => self.outputs.append_refusal(step, attempt, &truncate_to_event(problem)),
            LOGGED => {
                let rest = "further refusals of this turn are not logged";
                self.outputs.append_refusal(step, attempt, rest);
            }
            _ => {}
        }
    }

    fn apply_operation(&mut self, step: &StepId, attempt: u32, operation: Operation) -> Result<Value, String> {
        let key = self.state.find_step(step).filter(|&key| self.state.takes_turn(key, attempt));
        let key = key.ok_or("your turn is over: the run accepts no further operations from you")?;
        match operation {
            Operation::SendHandoff(handoff) => self.hand_on((key, step, attempt), *handoff, false),
            Operation::SendMessage(message) => {
                let handoff = message.into_handoff(&self.evaluator.message_receivers(&self.state, key))?;
                self.hand_on((key, step, attempt), handoff, false)
            }
            Operation::Broadcast(broadcast) => self.broadcast((key, step, attempt), &broadcast),
            Operation::ReportStatus(report) => self.report_status((key, step, attempt), &report),
            Operation::RequestHelp(plea) => self.request_help((key, step, attempt), &plea),
            Operation::SpawnNode(handoff) => self.hand_on((key, step, attempt), *handoff, true),
            Operation::ReadContext(reading) => self.read_context((key, attempt), &reading),
            Operation::ReadInbox {} => {
                // Both lists share the room, what the step has taken first.
                let mut room = READ;
                let mut read = |letters: &[InboxMessage]| -> Result<Vec<Value>, String> {
                    let fits = letters.iter().take_while(|letter| {
                        room = room.saturating_sub(letter.content.bytes());
                        room > 0
                    });
                    fits.map(|letter| letter.to_json(self.evaluator.texts.load_text(&letter.content)?)).collect()
                };
                let (taken, inbox) = (&self.state.step(key).taken, self.state.inbox(key));
                let (inputs, waiting) = (read(taken)?, read(inbox)?);
                let more = taken.len() + inbox.len() - inputs.len() - waiting.len();
                let mut said = json!({ "inputs": inputs, "waiting": waiting });
                if more > 0 {
                    said["more"] = more.into();
                }
                Ok(said)
            }
        }
    }

    /// Hands something over along an edge, or has the receiver started with it (`spawns`), once.
    pub(super) fn hand_on(
        &mut self,
        (key, step, attempt): (Key, &StepId, u32),
        handoff: Handoff,
        spawns: bool,
    ) -> Result<Value, String> {
        // A turn that starts again after a crash sends again what it has sent.
        if let Some(id) = self.requests.sent_before(step, attempt, &handoff) {
            return Ok(json!({ "id": id, "to": handoff.to }));
        }
        if spawns && let Some((approval, id)) = self.asked_already(step, attempt, &handoff) {
            return Ok(json!({ "id": id, "to": handoff.to, "approval": approval }));
        }
        if spawns && self.state.turn_counters(key).is_some_and(|voice| voice.spawns >= SPAWNS) {
            return Err(format!("you have asked for tasks {SPAWNS} times in this turn, which is the limit"));
        }
        let at = self.records.now();
        let (event, envelope) = self.evaluator.hand_over(
            &self.state,
            key,
            (handoff, spawns),
            // The id of the envelope is made from this number.
            (self.records.seq + 1, at),
            &self.attempts.made,
        )?;
        if spawns {
            return self.have_started((key, step, attempt), event, &envelope);
        }
        self.record(event);
        Ok(json!({ "id": envelope.id, "to": envelope.to_node_id }))
    }

    /// A part of a stored thing that belongs to the same activation of the pipeline.
    fn read_context(&self, (key, attempt): (Key, u32), reading: &Reading) -> Result<Value, String> {
        let scope = self.state.frame(key.frame).scope;
        let kept = match &reading.reference {
            Some(reference) => Stored::parse_reference(reference)
                .and_then(|to| self.state.find_artifact(scope, to))
                .ok_or_else(|| "there is no such reference: copy it from an envelope or a pack of this run".to_owned()),
            None => self.state.pack_of(key, attempt).ok_or_else(|| "your turn has no context pack".to_owned()),
        }?;
        let from = reading.offset.unwrap_or(0);
        let part = self.outputs.texts.load_part(&kept.content, from, PART)?;
        let (bytes, to) = (kept.content.bytes(), part.end);
        let rest = (to < bytes).then_some(to);
        Ok(json!({ "reference": kept.reference(), "bytes": bytes, "text": part.text, "next": rest }))
    }

    /// Notes what the attempts that were open when a runner was killed had sent: they start again, and what they send
    /// again has been sent.
    pub(super) fn note_sent(&mut self) {
        let open: Vec<(StepId, u32)> = self.state.open_steps().map(|open| (open.step, open.attempt)).collect();
        for (step, attempt) in open {
            let Some(key) = self.state.find_step(&step) else { continue };
            let texts = self.state.step(key).sent.iter().map(|letter| self.evaluator.texts.load_text(&letter.content));
            let envelopes = texts.filter_map(|text| serde_json::from_str(&text.ok()?).ok());
            let sent: Vec<Envelope> = envelopes.collect();
            self.requests.note_sent(step, attempt, sent);
        }
    }

    /// What the turn that is about to begin takes from the inbox.
    fn fresh_inputs(&self, step: &StepId) -> Vec<Arc<str>> {
        // The turn that mends a step reads nothing of what is sent to it.
        let key = self.state.find_step(step).filter(|&key| !self.state.is_being_mended(key));
        key.map(|key| self.state.fresh_inputs(key)).unwrap_or_default()
    }

    /// What an attempt that is about to begin takes from the inbox: a turn does, which `takes`. In a replay that is
    /// what it was.
    ///
    /// # Errors
    /// It is something else.
    pub(super) fn inputs_of(&self, step: &StepId, attempt: u32, takes: bool) -> Result<Vec<Arc<str>>, RunError> {
        let inputs = if takes { self.fresh_inputs(step) } else { Vec::new() };
        self.world.check_inputs(step, attempt, &inputs)?;
        Ok(inputs)
    }
}
