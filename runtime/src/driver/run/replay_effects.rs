//! Repeats the side effects of recorded attempts in a replay: handoffs, changes, and the answers to their requests.
//!
//! Invariants: an attempt whose step receives messages begins in a replay when as much has happened as in the
//! recording; its handoffs pass the same checks, and have the same ids and times.

use std::sync::Arc;

use swarmc_plan::Approval;

use super::driver::Driver;
use super::messages::make_person_message;
use crate::core::state::Waiting;
use crate::io::recording::{RecordedVerdict, ReplayEffect, ReplayInput, Sending, Written};
use crate::types::approval::{RequestKind, Verdict, approval_name};
use crate::types::artifact::ArtifactMeta;
use crate::types::event::{Event, StepId};
use crate::types::user_request::CONTEXT;

impl Driver<'_> {
    /// An attempt is ordered to start: whether it does so later, as in the recording. What it does there is done when
    /// its turn comes.
    pub(super) fn begins_later(&mut self, step: &StepId, attempt: u32) -> bool {
        let Some(replaying) = self.world.recording_mut() else { return false };
        let beginning = replaying.replay.beginning(step, attempt);
        if !replaying.known.insert((step.clone(), attempt)) {
            // An order that came twice: it begins when it does.
            return beginning.is_some();
        }
        let effects = match replaying.replay.effects(step, attempt) {
            Ok(effects) => effects,
            Err(error) => {
                self.handle_replay_error(error);
                return true;
            }
        };
        for (rank, effect) in effects {
            replaying.queue_input(
                rank,
                step,
                attempt,
                ReplayInput::Effect { step: step.clone(), attempt, effect }.into_input(),
            );
        }
        if let Some(rank) = beginning {
            replaying.queue_input(rank, step, attempt, ReplayInput::Begin { step: step.clone(), attempt }.into_input());
        }
        beginning.is_some()
    }

    /// An attempt begins when it did in the recording.
    pub(super) fn begin_replayed(&mut self, step: StepId, attempt: u32) {
        // It may have been ended since it was ordered.
        if self.state.find_step(&step).is_some_and(|key| self.state.may_begin(key, attempt)) {
            self.start_attempt(step, attempt);
        }
    }

    /// What an attempt did is done again.
    pub(super) fn apply_effect(&mut self, step: &StepId, attempt: u32, effect: ReplayEffect) {
        match effect {
            ReplayEffect::Sent(sending) => self.send_again(step, attempt, &sending),
            ReplayEffect::Left(kept, text) => match self.outputs.texts.store_text(&text) {
                Ok(content) => {
                    let artifact = Box::new(ArtifactMeta { content, ..*kept }.truncate_texts());
                    self.record(Event::ArtifactStored { step: step.clone(), attempt, artifact });
                }
                Err(error) => self.give_up(error.to_string()),
            },
            ReplayEffect::Reported(report) => match self.outputs.keep_text(report) {
                Ok(report) => self.record(Event::StatusReported { step: step.clone(), attempt, report }),
                Err(failure) => self.give_up(failure.to_string()),
            },
            ReplayEffect::Pleaded { message, answer } => self.plead_again(step, attempt, message, answer),
            ReplayEffect::Overheard(inputs) => self.record(Event::InputsTaken { step: step.clone(), inputs }),
        }
    }

    /// A person writes to an agent, as in the recording.
    pub(super) fn write_again(&mut self, written: &Written) {
        let Some(replay) = self.world.recording().map(|replaying| Arc::clone(&replaying.replay)) else { return };
        let Written { id, to, instance, within, interrupts, text, .. } = written;
        if let Some(pack) = to.strip_prefix(CONTEXT) {
            return match self.append_to_pack(pack, text) {
                Ok(_) => {}
                Err(problem) => self.handle_replay_error(replay.unwritten(written, &problem)),
            };
        }
        let frame = self.state.frame_of(*instance, within.as_ref());
        let spot = frame.and_then(|frame| {
            let spot = self.state.graph().scope(self.state.region(frame).scope).find(to)?;
            Some((frame, spot))
        });
        let problem = match spot {
            None => Some("there is no such task"),
            Some((scope, spot)) => (!self.state.may_receive(scope, spot)).then_some("it takes no further turn"),
        };
        if let Some(problem) = problem {
            return self.handle_replay_error(replay.unwritten(written, problem));
        }
        let content = match self.outputs.keep_text(text.clone()) {
            Ok(content) => content,
            Err(failure) => return self.give_up(failure.to_string()),
        };
        let letter = make_person_message(Arc::clone(id), content, *interrupts);
        let (to, instance, within) = (Arc::clone(to), *instance, within.clone());
        self.record(Event::Sent { from: None, to, instance, within, way: None, letter });
    }

    fn plead_again(&mut self, step: &StepId, attempt: u32, message: String, answer: Option<Arc<str>>) {
        let Some(key) = self.state.find_step(step) else { return };
        let message = match self.outputs.keep_text(message) {
            Ok(message) => message,
            Err(failure) => return self.give_up(failure.to_string()),
        };
        // Ahead of the request, which the policy may answer at once.
        if let (Some(replaying), Some(answer)) = (self.world.recording_mut(), answer) {
            replaying.letters.insert(approval_name(self.state.next_request()).into(), answer);
        }
        let agent = self.state.node(key).agent.clone().unwrap_or_else(|| Arc::clone(&step.name));
        let id = self.request_approval(step, attempt, &agent, RequestKind::Help { message });
        // What the policy says to that it has heard.
        let _ = self.decide_at_once(key, id, Approval::Human);
    }

    fn send_again(&mut self, step: &StepId, attempt: u32, sending: &Sending) {
        let Some(replaying) = self.world.recording_mut() else { return };
        let replay = Arc::clone(&replaying.replay);
        let id = sending.envelope.id.as_str();
        replaying.letters.extend(sending.refusal.clone().map(|refusal| (id.into(), refusal)));
        let Some(key) = self.state.find_step(step) else { return };
        let handoff = sending.handoff();
        let spawns = self.evaluator.is_spawn_target(&self.state, key, &handoff.to);
        let (event, envelope) =
            match self.evaluator.hand_over(&self.state, key, (handoff, spawns), sending.stamp, &self.attempts.made) {
                Ok(sent) => sent,
                Err(problem) => return self.handle_replay_error(replay.unsent((step, attempt), sending, problem)),
            };
        if let Err(error) = replay.compare((step, attempt), sending, &envelope) {
            return self.handle_replay_error(error);
        }
        match sending.asks {
            // The policy may say no at once, of which its sender is told as it was.
            true => drop(self.have_started((key, step, attempt), event, &envelope)),
            false => self.record(event),
        }
    }

    /// In a replay, takes the answer to a task's request from the recording. False if the recording asked no person.
    pub(super) fn foretold_task(&mut self, waiting: &Waiting) -> bool {
        let Some(replaying) = self.world.recording_mut() else { return false };
        let (step, attempt, request) = (&waiting.step, waiting.attempt, &waiting.request);
        let asked = replaying.count_request(step, attempt, &request.agent);
        match replaying.replay.verdict((step, attempt), ("", asked), &request.wants.describe()) {
            Ok((RecordedVerdict::Nothing, _)) => return false,
            Ok((RecordedVerdict::Unanswered, _)) => {
                replaying.leave_request((step, attempt), &request.agent, asked);
            }
            Ok((RecordedVerdict::Answered(rank, choice, because, _), by)) => {
                let verdict = Verdict { id: request.id, choice, by, because, arguments: None };
                replaying.queue_input(rank, step, attempt, ReplayInput::Verdict(verdict).into_input());
            }
            Err(error) => self.handle_replay_error(error),
        }
        true
    }

    /// Answers a task's request as the recording does.
    pub(super) fn agree_replayed(&mut self, verdict: Verdict) {
        if let Some(waiting) = self.state.find_request(verdict.id).cloned() {
            self.answer_request(&waiting, verdict);
        }
    }
}
