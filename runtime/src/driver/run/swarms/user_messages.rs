//! Messages of people to members of swarms: each goes into the mailbox of a member, whose next turn reads it.
//!
//! In: `STEP/MEMBER` and a text; `STEP` alone is the coordinator of a team. Out: a swarm event, durable before the author receives the reply; or the reason for a
//! refusal, with the members that can be written to. A message ends no turn of a member.

use std::sync::Arc;

use serde_json::json;

use crate::core::swarm::MessageType;
use crate::core::swarm::action::PAYLOAD_BYTES;
use crate::driver::run::driver::Driver;
use crate::driver::run::messages::LISTED;
use crate::types::event::{AttemptId, Event, StepId};
use crate::types::handoff::INBOX;
use crate::types::swarm::{MemberMessage, PERSON};

impl Driver<'_> {
    /// The swarm, and the name in it, that a person means; none where no swarm is meant that runs.
    pub(in crate::driver::run) fn team_meant(&self, word: &str) -> Result<Option<(StepId, u32, String)>, String> {
        let Some((team, member)) = word.rsplit_once('/') else { return Ok(self.coordinator_meant(word)) };
        let called = |step: &StepId| *step.name == *team || step.label() == team || step.to_string() == team;
        let mut meant: Vec<(StepId, u32)> =
            self.teams.list_running().into_iter().filter(|(step, _)| called(step)).collect();
        match meant.len() {
            0 => Ok(None),
            1 => Ok(meant.pop().map(|(step, attempt)| (step, attempt, member.to_owned()))),
            _ => {
                let ids = meant.iter().take(LISTED).map(|(step, _)| format!("`{step}/{member}`"));
                let ids: Vec<String> = ids.collect();
                Err(format!("several swarms are called `{team}`: name one of {}", ids.join(", ")))
            }
        }
    }

    /// The coordinator of the team that a person means by the name of its step.
    fn coordinator_meant(&self, word: &str) -> Option<(StepId, u32, String)> {
        let called = |step: &StepId| *step.name == *word || step.label() == word || step.to_string() == word;
        let mut meant = self.teams.list_running().into_iter().filter(|(step, _)| called(step));
        let ((step, attempt), None) = (meant.next()?, meant.next()) else { return None };
        let swarm = self.state.find_step(&step).and_then(|key| self.state.swarm(key, attempt))?;
        let coordinator = swarm.coordinator()?.to_string();
        Some((step, attempt, coordinator))
    }

    /// A person writes to a member of a swarm.
    pub(in crate::driver::run) fn write_to_member(
        &mut self,
        (step, attempt): (&StepId, u32),
        member: &str,
        text: &str,
        interrupts: bool,
    ) -> Result<String, String> {
        let team = step.label();
        if self.evaluator.source.is_recorded() {
            let problem = "the run is recorded, and recordings do not support messages to members of swarms";
            return Err(problem.to_owned());
        }
        if text.len() > PAYLOAD_BYTES {
            let bytes = text.len();
            return Err(format!(
                "the message has {bytes} bytes, but at most {PAYLOAD_BYTES} are allowed for a member of a swarm"
            ));
        }
        let swarm = self.state.find_step(step).and_then(|key| self.state.swarm(key, attempt));
        let agent = swarm.and_then(|swarm| swarm.agent(member));
        let Some(agent) = agent.filter(|agent| !agent.is_done()) else {
            let member: String = member.chars().filter(|found| !found.is_control()).take(64).collect();
            let problem = match agent {
                Some(_) => format!("`{team}/{member}` is done, and reads no more messages"),
                None => format!("swarm `{team}` has no agent `{member}`"),
            };
            return Err(match self.members().as_slice() {
                [] => problem,
                members => format!("{problem}: you can write to {}", members.join(", ")),
            });
        };
        if agent.mailbox.len() >= INBOX {
            return Err(format!("the mailbox of `{team}/{member}` is full: {INBOX} messages wait in it"));
        }
        let (number, to) = (agent.letters + 1, Arc::clone(&agent.name));
        let payload = json!({ "message": text }).to_string();
        let payload = self.outputs.keep_text(payload).map_err(|failure| failure.to_string())?;
        let message = MemberMessage { number, from: PERSON.into(), to, kind: MessageType::Info, payload, person: true };
        self.record_swarm_event(Event::MessageSent { swarm: AttemptId::new(step, attempt), message });
        Ok(match interrupts {
            true => format!("members of swarms cannot be interrupted: the next turn of `{team}/{member}` reads it"),
            false => format!("the next turn of `{team}/{member}` reads it"),
        })
    }

    /// The members of swarms that may be written to, as they are called, a few of each.
    pub(in crate::driver::run) fn members(&self) -> Vec<String> {
        let mut members = Vec::new();
        for (step, attempt) in self.teams.list_running() {
            let swarm = self.state.find_step(&step).and_then(|key| self.state.swarm(key, attempt));
            let agents = swarm.into_iter().flat_map(|swarm| &swarm.agents).filter(|agent| !agent.is_done());
            members.extend(agents.take(LISTED).map(|agent| format!("`{}/{}`", step.label(), agent.name)));
        }
        members.truncate(LISTED);
        members
    }
}
