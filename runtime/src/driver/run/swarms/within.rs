//! Operations of a program while its turn goes on: a call of a tool of its team becomes an event, and its result also
//! holds what others wrote meanwhile.
//!
//! Invariant: the result of a call is sent when its events are durable; a message counts as read with the first result
//! that holds it, and a turn that is repeated reads it at its beginning.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::super::driver::Driver;
use crate::core::graph::Key;
use crate::core::swarm::check_part;
use crate::core::swarm::state::AgentStage;
use crate::core::swarm::within::{Operated, WithinTurn, find_unread, operate_within};
use crate::io::agent_api::NOTICES;
use crate::io::executor::{locate_edit, read_edit};
use crate::io::input::ReplyTo;
use crate::io::steering::{Notices, Steered, Steering};
use crate::io::tools::FILE_WRITE;
use crate::types::event::{AttemptId, Event, Failure, StepId};
use crate::types::swarm::{Action, TurnId};
use crate::types::team::{TeamReading, Touch};
use crate::types::team_fact::TeamFact;

/// A turn into which texts can be sent.
#[derive(Debug)]
pub(super) struct SteeredTurn {
    steering: Arc<Steering>,
    /// Whether a text is on its way.
    is_pending: bool,
    /// The last message and the version of the plan of a text that the agent did not take.
    refused: Option<(u64, u32)>,
}

impl Driver<'_> {
    /// Handles a call of an agent, which receives the result; people see refusals.
    pub(in crate::driver::run) fn take_call(
        &mut self,
        (step, attempt): (&StepId, u32),
        turn: &TurnId,
        (name, arguments): (&str, Map<String, Value>),
        hearer: ReplyTo,
    ) {
        let key = self.state.find_step(step).filter(|_| self.find_team(step, attempt).is_some());
        let Some(key) = key else {
            let _ = hearer.send(Err("your turn is over: the run accepts no further operations from it".to_owned()));
            return;
        };
        let swarm = self.state.swarm(key, attempt);
        let part = swarm.map(|swarm| swarm.part_of(&turn.agent)).unwrap_or_default();
        // Ahead of the arguments: who may not use it learns nothing from what is wrong with them.
        let may = swarm.map_or(Ok(()), |swarm| check_part(swarm, &turn.agent, name));
        let came = match name {
            NOTICES => Ok(None),
            name => {
                let read = || self.evaluator.read_operation((name, arguments), part, &self.attempts.made);
                let action = may.and_then(|()| read());
                action.and_then(|action| self.operate_member((step, attempt, key), turn, &action))
            }
        };
        if let Err(problem) = &came {
            self.tell_refusal(step, attempt, &format!("{}: {problem}", turn.agent));
        }
        let notices = self.read_notices((step, attempt, key), turn);
        let told = match (came, notices) {
            (Ok(text), notices) => {
                let parts = [("done", Some(name.to_owned())), ("text", text), ("notices", notices)];
                Ok(parts.into_iter().filter_map(|(key, text)| Some((key.to_owned(), json!(text?)))).collect())
            }
            (Err(problem), None) => Err(problem),
            (Err(problem), Some(notices)) => Err(format!("{problem}\n\n{notices}")),
        };
        self.requests.replies.answer(hearer, told);
    }

    /// What an agent did in a turn that goes on, in a replay.
    pub(super) fn repeat_within(
        &mut self,
        (step, attempt, key): (&StepId, u32, Key),
        turn: &TurnId,
        within: WithinTurn,
    ) {
        match within {
            // What was recorded was not refused; where it is now, the next prompt differs from the recorded one.
            WithinTurn::Act(action) => drop(self.operate_member((step, attempt, key), turn, &action)),
            WithinTurn::Touches(touch) => self.note_touch((step, attempt, key), turn, touch),
            WithinTurn::Reads { number, version } => self.record_read((step, attempt), turn, (number, version)),
        }
    }

    /// What the call of an agent changes that writes a file by the tool of the runner; none where it is another call.
    pub(super) fn find_written_file(&self, (attempt, key): (u32, Key), turn: &TurnId) -> Option<Touch> {
        let agent = self.state.swarm(key, attempt).filter(|swarm| swarm.team.is_some())?.agent(&turn.agent)?;
        let AgentStage::Calling(act, _) = &agent.stage else { return None };
        let Action::ToolCall { tool, params } = &**act else { return None };
        let arguments = (**tool == *FILE_WRITE).then(|| self.evaluator.load_text(params).ok()).flatten()?;
        let mut touch = locate_edit(&read_edit(&arguments)?, Path::new("/"))?;
        touch.diff = self.services.tools.beginning(&touch.diff, touch.diff.len());
        Some(touch)
    }

    /// An agent of a team has changed a file.
    pub(super) fn note_touch(&mut self, (step, attempt, key): (&StepId, u32, Key), turn: &TurnId, touch: Touch) {
        let swarm = self.state.swarm(key, attempt);
        if swarm.is_some_and(|swarm| swarm.team.is_some() && swarm.agent(&turn.agent).is_some()) {
            let fact = TeamFact::Touched { agent: Arc::clone(&turn.agent), touch };
            self.record_swarm_event(Event::Team { swarm: AttemptId::new(step, attempt), fact });
        }
    }

    /// The program of a turn that goes on tells again of this many changes of files.
    pub(super) fn skip_touches(&mut self, step: &StepId, attempt: u32, turn: &TurnId, touched: u32) {
        if let Some(team) = self.find_team(step, attempt).filter(|_| touched > 0) {
            team.known_touches.insert(turn.clone(), touched);
        }
    }

    /// Whether a change of a file was recorded before its turn was rejoined.
    pub(super) fn is_known_touch(&mut self, step: &StepId, attempt: u32, turn: &TurnId) -> bool {
        let left = self.find_team(step, attempt).and_then(|team| team.known_touches.get_mut(turn));
        left.filter(|left| **left > 0).map(|left| *left -= 1).is_some()
    }

    /// An agent has read, within its turn, its messages up to `number` and the plan at `version`.
    fn record_read(&mut self, (step, attempt): (&StepId, u32), turn: &TurnId, (number, version): (u64, u32)) {
        let fact = TeamFact::Noticed { agent: Arc::clone(&turn.agent), number, version };
        self.record_swarm_event(Event::Team { swarm: AttemptId::new(step, attempt), fact });
    }

    /// Texts can be sent into a turn that is about to begin.
    pub(super) fn note_steering(&mut self, (step, attempt): (&StepId, u32), turn: &TurnId, steering: Arc<Steering>) {
        if let Some(team) = self.find_team(step, attempt) {
            team.steered.insert(turn.clone(), SteeredTurn { steering, is_pending: false, refused: None });
        }
    }

    /// A text for a turn was taken, or was not.
    pub(super) fn note_steered(&mut self, (step, attempt): (&StepId, u32), turn: &TurnId, steered: Steered) {
        let Some(open) = self.find_team(step, attempt).and_then(|team| team.steered.get_mut(turn)) else { return };
        match steered {
            // What waits is sent when this input is handled.
            Steered::Open => {}
            Steered::Refused(notices) => {
                (open.is_pending, open.refused) = (false, Some((notices.number, notices.version)));
            }
            Steered::Injected(notices) => {
                open.is_pending = false;
                self.record_read((step, attempt), turn, (notices.number, notices.version));
            }
        }
    }

    /// Sends what cannot wait into the turns that go on: what would wake an agent, and a further version of the plan. The
    /// rest waits for the next call of the agent, or for its next turn.
    pub(in crate::driver::run) fn steer_turns(&mut self) {
        let mut broken = None;
        for ((step, attempt), team) in &mut self.teams.open {
            let Some(swarm) = self.state.find_step(step).and_then(|key| self.state.swarm(key, *attempt)) else {
                continue;
            };
            let idle = team.steered.iter_mut().filter(|(_, open)| open.steering.is_open() && !open.is_pending);
            for (turn, open) in idle {
                let Some(unread) = find_unread(swarm, turn).filter(|unread| unread.is_urgent) else { continue };
                let (number, version) = (unread.last_number(), unread.version);
                if open.refused == Some((number, version)) {
                    continue;
                }
                match self.evaluator.render_unread(swarm, turn, &unread) {
                    Ok(text) => {
                        open.steering.push(Notices { text, number, version });
                        open.is_pending = true;
                    }
                    Err(failure) => broken = Some(failure.to_string()),
                }
            }
        }
        broken.into_iter().for_each(|reason| self.give_up(reason));
    }

    /// What an agent does while its turn goes on; the text that it reads, where it reads one.
    fn operate_member(
        &mut self,
        (step, attempt, key): (&StepId, u32, Key),
        turn: &TurnId,
        action: &Action,
    ) -> Result<Option<String>, String> {
        let swarm = self.state.swarm(key, attempt).ok_or("your turn is over")?;
        match operate_within(swarm, turn, action)? {
            Operated::Before => Ok(None),
            Operated::Record(event) => {
                self.record_swarm_event(*event);
                Ok(None)
            }
            Operated::Read(what) => {
                let text = self.read_team((step, attempt, key), &turn.agent, what);
                text.map(Some).map_err(|failure| failure.to_string())
            }
        }
    }

    /// Puts together what an agent reads of others, and records that it does.
    pub(super) fn read_team(
        &mut self,
        (step, attempt, key): (&StepId, u32, Key),
        agent: &Arc<str>,
        what: TeamReading,
    ) -> Result<String, Failure> {
        let Some(swarm) = self.state.swarm(key, attempt) else { return Ok(String::new()) };
        let read = self.evaluator.render_reading(swarm, agent, &what)?;
        let text = self.outputs.keep_text(read.clone())?;
        let fact = TeamFact::ContextRead { agent: Arc::clone(agent), what, text };
        self.record_swarm_event(Event::Team { swarm: AttemptId::new(step, attempt), fact });
        Ok(read)
    }

    /// What waits for the agent of a turn, in words: it counts as read. None where nothing does.
    fn read_notices(&mut self, (step, attempt, key): (&StepId, u32, Key), turn: &TurnId) -> Option<String> {
        let swarm = self.state.swarm(key, attempt)?;
        let open = self.teams.open.get(&(step.clone(), attempt));
        // What is on its way to the agent already is not said twice.
        if open.and_then(|team| team.steered.get(turn)).is_some_and(|steered| steered.is_pending) {
            return None;
        }
        let unread = find_unread(swarm, turn)?;
        match self.evaluator.render_unread(swarm, turn, &unread) {
            Ok(notices) => {
                let (number, version) = (unread.last_number(), unread.version);
                self.record_read((step, attempt), turn, (number, version));
                Some(notices)
            }
            Err(failure) => {
                self.give_up(failure.to_string());
                None
            }
        }
    }
}
