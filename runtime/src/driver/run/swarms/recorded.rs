//! Recording and replay of swarms: the driver records what agents ask, or answers it from the recording.
//!
//! Invariant: a replay asks no person, model or tool, and no pause or deadline passes by itself: each is over when as
//! many answers have come as in the recording.

use std::sync::Arc;

use serde_json::Value;

use super::super::Input;
use super::super::driver::Driver;
use super::SwarmInput;
use crate::core::graph::Key;
use crate::core::state::Waiting;
use crate::core::swarm::prompt;
use crate::io::recording::{At, Question, RecordedVerdict, Replay, Source, words};
use crate::io::tools::{self, Grant};
use crate::types::approval::{Choice, RequestKind, Verdict};
use crate::types::chat::Tool;
use crate::types::divergence::Difference;
use crate::types::error::RunError;
use crate::types::event::{AnsweredBy, Failure, StepId};
use crate::types::swarm::TurnId;

/// What names are made from in runs that are recorded and in replays, the same as in rehearsals: both are to have the
/// same agents, whatever the ids of the runs.
const NAMES: &str = "rehearsal";

/// What a replay knows of the tools of an agent.
pub(super) enum Known {
    /// Nothing: they are to be asked for.
    Nothing,
    /// These.
    Tools(Arc<Vec<Tool>>),
    /// It comes, or there is no use in waiting for it.
    Later,
}

impl Driver<'_> {
    /// The seed for the names of agents that the plan does not name.
    pub(super) fn name_seed(&self) -> String {
        match self.evaluator.source {
            Source::Live => self.outputs.folder.id.clone(),
            Source::Recorded(_) | Source::Replayed(_) => NAMES.to_owned(),
        }
    }

    /// A swarm begins: a replay queues the recorded inputs from outside of it.
    pub(super) fn queue_recorded_inputs(&mut self, step: &StepId, attempt: u32) {
        let Some(replaying) = self.world.recording_mut() else { return };
        let outside = replaying.replay.outside(step, attempt);
        replaying.mark_swarm_begun(step, attempt);
        for (rank, agent) in outside.late {
            replaying.queue_swarm_input(rank, step, attempt, SwarmInput::Over(agent));
        }
        for (rank, proposal) in outside.overdue {
            replaying.queue_swarm_input(rank, step, attempt, SwarmInput::Overdue(proposal));
        }
        match outside.failed {
            Some((_, Failure::Cancelled)) => replaying.park(step, attempt),
            Some((rank, failure)) => replaying.queue_swarm_input(rank, step, attempt, SwarmInput::Failed(failure)),
            None => {}
        }
    }

    /// Whether a turn is not to begin yet, because it did not in the recording.
    pub(super) fn is_held_back(&self, step: &StepId, attempt: u32, turn: &TurnId) -> bool {
        let Some(replaying) = self.world.recording() else { return false };
        replaying.replay.after(At { step, attempt, turn }) > replaying.count_answers(step, attempt)
    }

    /// The tools of the agent that takes a turn, if the driver knows them without asking a server.
    pub(super) fn known_tools(&mut self, step: &StepId, attempt: u32, turn: &TurnId, grant: &Grant) -> Known {
        // Without a tool that it may use, there is no server to ask.
        if grant.allow.is_empty() {
            return Known::Tools(Arc::default());
        }
        if self.world.is_rehearsed() {
            let tools = Arc::new(tools::known(self.evaluator.plan, grant));
            self.teams.store_tools(step, attempt, &turn.agent, Arc::clone(&tools));
            return Known::Tools(tools);
        }
        let Some(replaying) = self.world.recording_mut() else { return Known::Nothing };
        let at = At { step, attempt, turn };
        match replaying.replay.tools(at) {
            Ok(Some((_, Ok(tools)))) => {
                let tools = Arc::new(tools);
                self.teams.store_tools(step, attempt, &turn.agent, Arc::clone(&tools));
                return Known::Tools(tools);
            }
            Ok(Some((rank, Err(fault)))) => {
                replaying.queue_swarm_input(rank, step, attempt, SwarmInput::Listed(turn.clone(), Err(fault)));
            }
            Ok(None) => {
                let place = format!("the list of the tools of `{}` in {}", turn.agent, words(step, attempt));
                let error = replaying.replay.diverged(step, attempt, place, Difference::Missing);
                self.handle_replay_error(error);
            }
            Err(error) => self.handle_replay_error(error),
        }
        Known::Later
    }

    /// A model is asked. Whether it is to be: in a replay the recording answers.
    pub(super) fn ask_recorded(
        &mut self,
        step: &StepId,
        attempt: u32,
        turn: &TurnId,
        question: impl FnOnce() -> Question,
    ) -> bool {
        let at = At { step, attempt, turn };
        let source = self.evaluator.source.clone();
        // Ahead of the question, whose texts are copied for a recording alone.
        if matches!(source, Source::Live) {
            return true;
        }
        let mut question = question();
        // A prompt says how much time is left, which is another in each run.
        question.prompt = question.prompt.as_deref().map(prompt::mask_seconds);
        match source {
            Source::Live => true,
            Source::Recorded(recorder) => self.check_written(recorder.turn_asked(at, &question)),
            Source::Replayed(replay) => {
                let answer = replay.turn(at, &question);
                self.queue_operations(&replay, at);
                self.queue_recorded_answer(
                    at,
                    None,
                    answer.map(|it| it.map(|(rank, reply)| (rank, SwarmInput::Answered(turn.clone(), reply)))),
                );
                false
            }
        }
    }

    /// A tool is called. Whether it is to be: in a replay the recording answers.
    pub(super) fn call_recorded(
        &mut self,
        step: &StepId,
        attempt: u32,
        turn: &TurnId,
        (tool, arguments): (&str, &Value),
    ) -> bool {
        let at = At { step, attempt, turn };
        match self.evaluator.source.clone() {
            Source::Live => true,
            Source::Recorded(recorder) => self.check_written(recorder.called(at, tool, arguments)),
            Source::Replayed(replay) => {
                let answer = replay.called(at, tool, arguments);
                let answer = answer.map(|it| it.map(|(rank, result)| (rank, SwarmInput::Called(turn.clone(), result))));
                self.queue_recorded_answer(at, Some(tool), answer);
                false
            }
        }
    }

    /// In a replay, takes the answer to an agent's request from the recording. False if the recording asked no person.
    pub(in crate::driver::run) fn answer_from_recording(&mut self, waiting: &Waiting) -> bool {
        let Some(replaying) = self.world.recording_mut() else { return false };
        let (step, attempt, request) = (&waiting.step, waiting.attempt, &waiting.request);
        if matches!(request.wants, RequestKind::Node { .. } | RequestKind::GoOn { .. } | RequestKind::Help { .. }) {
            return self.foretold_task(waiting);
        }
        let asked = replaying.count_request(step, attempt, &request.agent);
        match replaying.replay.verdict((step, attempt), (&request.agent, asked), &request.wants.describe()) {
            Ok((RecordedVerdict::Nothing, _)) => return false,
            Ok((RecordedVerdict::Unanswered, _)) => replaying.leave_request((step, attempt), &request.agent, asked),
            Ok((RecordedVerdict::Answered(rank, choice, because, arguments), by)) => {
                let word = SwarmInput::Agreed { id: request.id, choice, by, because, arguments };
                replaying.queue_swarm_input(rank, step, attempt, word);
            }
            Err(error) => self.handle_replay_error(error),
        }
        true
    }

    /// Answers a request as the recording does. An error if the swarm fails because of it.
    pub(super) fn apply_recorded_verdict(
        &mut self,
        (id, choice, by): (u32, Choice, AnsweredBy),
        because: Option<String>,
        arguments: Option<String>,
    ) -> Result<(), Failure> {
        let Some(waiting) = self.state.find_request(id).cloned() else { return Ok(()) };
        let arguments = arguments.map(|arguments| self.outputs.keep_text(arguments)).transpose()?;
        let verdict = Verdict { id, choice, by, because, arguments };
        let fails = self.policy_failure((&waiting.request.agent, &waiting.request.wants), &verdict);
        self.answer_request(&waiting, verdict);
        fails.map_or(Ok(()), |message| Err(Failure::Agent { message }))
    }

    /// Something came back, and is written down where the run is recorded.
    pub(super) fn write_down(&mut self, step: &StepId, attempt: u32, word: &SwarmInput) {
        let Source::Recorded(recorder) = &self.evaluator.source else { return };
        let recorder = Arc::clone(recorder);
        let at = |turn| At { step, attempt, turn };
        self.check_written(match word {
            SwarmInput::Listed(turn, listed) => recorder.tools(at(turn), listed),
            SwarmInput::Answered(turn, reply) => recorder.turn_answered(at(turn), reply),
            SwarmInput::Called(turn, result) => recorder.gave(at(turn), result),
            // What happens while a turn goes on stands in its events.
            _ => Ok(()),
        });
    }

    /// In a replay, has the turns begin that began when as many answers had come as have now. False when there is none.
    pub(in crate::driver::run) fn begin_paused(&mut self) -> bool {
        let mut begins = false;
        for (step, attempt) in self.teams.list_running() {
            let Some(replaying) = self.world.recording() else { return false };
            let paused = replaying.replay.paused(&step, attempt, replaying.count_answers(&step, attempt));
            let Some(key) = self.state.find_step(&step) else { continue };
            for turn in paused {
                begins |= self.state.swarm_again(key, &turn);
            }
        }
        begins
    }

    /// In a replay in which nothing else can happen, ends the pause of a turn that the recording does not know of.
    /// False when there is none.
    pub(in crate::driver::run) fn end_pause(&mut self) -> bool {
        self.teams.list_running().iter().any(|(step, attempt)| {
            let Some(key) = self.state.find_step(step) else { return false };
            let resting =
                self.state.swarm(key, *attempt).map(crate::core::swarm::Swarm::resting_turns).unwrap_or_default();
            resting.first().is_some_and(|turn| self.state.swarm_again(key, turn))
        })
    }

    /// The time of an agent is over, as it was in the recording.
    pub(super) fn end_late(&mut self, key: Key, agent: &str) {
        self.state.swarm_overdue(key, agent);
    }

    /// In a replay, queues what an agent did and read while the turn went on.
    fn queue_operations(&mut self, replay: &Replay, at: At<'_>) {
        let within = match replay.within(at) {
            Ok(within) => within,
            Err(error) => return self.handle_replay_error(error),
        };
        let Some(replaying) = self.world.recording_mut() else { return };
        for (rank, within) in within {
            let word = SwarmInput::Again(at.turn.clone(), within);
            replaying.queue_swarm_input(rank, at.step, at.attempt, word);
        }
    }

    fn queue_recorded_answer(
        &mut self,
        at: At<'_>,
        tool: Option<&str>,
        answer: Result<Option<(usize, SwarmInput)>, RunError>,
    ) {
        let Some(replaying) = self.world.recording_mut() else { return };
        match answer {
            Ok(Some((rank, word))) => replaying.queue_swarm_input(rank, at.step, at.attempt, word),
            Ok(None) => replaying.note_unended(at, tool),
            Err(error) => self.handle_replay_error(error),
        }
    }

    fn check_written(&mut self, written: Result<(), RunError>) -> bool {
        if let Err(error) = written {
            self.give_up(error.to_string());
        }
        true
    }

    pub(in crate::driver::run) fn handle_replay_error(&mut self, error: RunError) {
        match error {
            RunError::Diverged(divergence) => self.diverge(divergence),
            error => self.give_up(error.to_string()),
        }
    }
}

impl SwarmInput {
    /// As an input of the loop.
    pub(in crate::driver::run) fn into_input(self, step: &StepId, attempt: u32) -> Input {
        Input::Swarm { step: step.clone(), attempt, word: Box::new(self) }
    }
}
