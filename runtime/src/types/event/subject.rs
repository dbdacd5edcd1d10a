//! What an event is about: a step, a swarm and an agent in it, or the run; and how that step ended.

use super::{AttemptId, Event, Outcome, Status, StepId};
use crate::types::swarm::{SUPERVISOR, WORKSPACE};

/// What an event is about.
enum Subject<'event> {
    Step(&'event StepId),
    Swarm(&'event AttemptId),
    Run,
}

impl Event {
    /// The step that it happened to, or that did it; none where it is about a round or the run.
    pub fn step(&self) -> Option<&StepId> {
        match self.subject() {
            Subject::Step(step) => Some(step),
            Subject::Swarm(swarm) => Some(&swarm.step),
            Subject::Run => None,
        }
    }

    /// The swarm in which it happened, as the attempt that it runs as; none where it is about something else.
    pub fn swarm(&self) -> Option<&AttemptId> {
        match self.subject() {
            Subject::Swarm(swarm) => Some(swarm),
            Subject::Step(_) | Subject::Run => None,
        }
    }

    /// The attempt that it ends.
    pub fn ended_attempt(&self) -> Option<(&StepId, u32)> {
        match self {
            Event::AttemptEnded { step, attempt, .. } => Some((step, *attempt)),
            _ => None,
        }
    }

    /// The agent of a swarm that it is about, or [`SUPERVISOR`] or [`WORKSPACE`]; none outside of swarms.
    pub fn agent(&self) -> Option<&str> {
        Some(match self {
            Event::SwarmStarted { .. } | Event::PhaseEntered { .. } | Event::SwarmFinished { .. } => SUPERVISOR,
            Event::DataPublished { .. } => WORKSPACE,
            Event::MessageSent { message, .. } => &message.from,
            Event::AgentSpawned { agent, .. }
            | Event::AgentStarted { agent, .. }
            | Event::AgentIdled { agent, .. }
            | Event::AgentFinished { agent, .. }
            | Event::MessageReceived { agent, .. }
            | Event::ActionRefused { agent, .. }
            | Event::HelpRequested { agent, .. } => agent,
            Event::Team { fact, .. } => fact.agent(),
            Event::TurnStarted { turn, .. }
            | Event::TurnRejoined { turn, .. }
            | Event::TurnEnded { turn, .. }
            | Event::ToolStarted { turn, .. }
            | Event::ToolEnded { turn, .. } => &turn.agent,
            _ => return None,
        })
    }

    fn subject(&self) -> Subject<'_> {
        match self {
            Event::ConditionJudged { step, .. }
            | Event::StepSkipped { step, .. }
            | Event::AttemptStarted { step, .. }
            | Event::AttemptRejoined { step, .. }
            | Event::ReuseMissed { step, .. }
            | Event::ProcessStarted { step, .. }
            | Event::SessionKnown { step, .. }
            | Event::AttemptEnded { step, .. }
            | Event::Opened { step, .. }
            | Event::GateOpened { step, .. }
            | Event::GateAnswered { step, .. }
            | Event::ApprovalAsked { step, .. }
            | Event::ApprovalAnswered { step, .. }
            | Event::StatusReported { step, .. }
            | Event::InputsTaken { step, .. }
            | Event::ArtifactStored { step, .. }
            | Event::NodeClosed { step, .. }
            | Event::Exchanged { step, .. } => Subject::Step(step),
            Event::SwarmStarted { swarm, .. }
            | Event::PhaseEntered { swarm, .. }
            | Event::AgentSpawned { swarm, .. }
            | Event::AgentStarted { swarm, .. }
            | Event::AgentIdled { swarm, .. }
            | Event::AgentFinished { swarm, .. }
            | Event::TurnStarted { swarm, .. }
            | Event::TurnRejoined { swarm, .. }
            | Event::TurnEnded { swarm, .. }
            | Event::ToolStarted { swarm, .. }
            | Event::ToolEnded { swarm, .. }
            | Event::MessageSent { swarm, .. }
            | Event::MessageReceived { swarm, .. }
            | Event::DataPublished { swarm, .. }
            | Event::ActionRefused { swarm, .. }
            | Event::HelpRequested { swarm, .. }
            | Event::Team { swarm, .. }
            | Event::SwarmFinished { swarm, .. } => Subject::Swarm(swarm),
            Event::Sent { from, .. } => from.as_ref().map_or(Subject::Run, Subject::Step),
            Event::RunStarted { .. }
            | Event::RunResumed
            | Event::RoundJudged { .. }
            | Event::BudgetSpent { .. }
            | Event::PackAppended { .. }
            | Event::StopRequested
            | Event::RunFinished { .. }
            | Event::StepReopened { .. }
            | Event::UsedBefore { .. }
            | Event::RunReopened { .. } => Subject::Run,
        }
    }

    /// How the step of a record that settled it ended.
    pub(crate) fn settled_status(&self) -> Status {
        match self {
            Event::AttemptEnded { outcome: Outcome { failure: None, .. }, .. }
            | Event::GateAnswered { choice: Some(_), .. } => Status::Succeeded,
            Event::StepSkipped { .. } => Status::Skipped,
            _ => Status::Failed,
        }
    }
}
