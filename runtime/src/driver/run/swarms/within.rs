//! Operations of a program while its turn goes on: a call of a tool of its team becomes an event, and its result also
//! holds what others wrote meanwhile.
//!
//! Invariant: the result of a call is sent when its events are durable; a message counts as read with the first result
//! that holds it, and a turn that is repeated reads it at its beginning.

use serde_json::{Map, Value, json};

use super::super::driver::Driver;
use crate::core::graph::Key;
use crate::core::swarm::within::{Operated, WithinTurn, find_unread, operate_within};
use crate::io::input::ReplyTo;
use crate::types::event::{AttemptId, Event, StepId};
use crate::types::swarm::{Action, TurnId};

impl Driver<'_> {
    /// Handles a call of an agent, which receives the result; people see refusals.
    pub(super) fn take_call(
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
        let part = self.state.swarm(key, attempt).map(|swarm| swarm.part_of(&turn.agent)).unwrap_or_default();
        let action = self.evaluator.read_operation((name, arguments), part, &self.attempts.made);
        let came = action.and_then(|action| self.operate_member((attempt, key), turn, &action));
        if let Err(problem) = &came {
            self.tell_refusal(step, attempt, &format!("{}: {problem}", turn.agent));
        }
        let notices = self.read_notices((step, attempt, key), turn);
        let told = match (came, notices) {
            (Ok(()), None) => Ok(json!({ "done": name })),
            (Ok(()), Some(notices)) => Ok(json!({ "done": name, "notices": notices })),
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
            WithinTurn::Act(action) => drop(self.operate_member((attempt, key), turn, &action)),
            WithinTurn::Reads => drop(self.read_notices((step, attempt, key), turn)),
        }
    }

    fn operate_member(&mut self, (attempt, key): (u32, Key), turn: &TurnId, action: &Action) -> Result<(), String> {
        let swarm = self.state.swarm(key, attempt).ok_or("your turn is over")?;
        match operate_within(swarm, turn, action)? {
            Operated::Before => {}
            Operated::Record(event) => self.record_swarm_event(*event),
        }
        Ok(())
    }

    /// What waits for the agent of a turn, in words: it counts as read. None where nothing does.
    fn read_notices(&mut self, (step, attempt, key): (&StepId, u32, Key), turn: &TurnId) -> Option<String> {
        let swarm = self.state.swarm(key, attempt)?;
        let unread = find_unread(swarm, turn)?;
        match self.evaluator.render_unread(swarm, turn, &unread) {
            Ok(notices) => {
                let fact = unread.to_fact(&turn.agent);
                self.record_swarm_event(Event::Team { swarm: AttemptId::new(step, attempt), fact });
                Some(notices)
            }
            Err(failure) => {
                self.give_up(failure.to_string());
                None
            }
        }
    }
}
