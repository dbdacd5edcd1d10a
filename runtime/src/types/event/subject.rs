//! Which step an event is about, and how that step ended.

use super::{Event, Outcome, Status, StepId};

impl Event {
    /// The step that it happened to, or that did it; none where it is about a round or the run.
    pub fn step(&self) -> Option<&StepId> {
        match self {
            Event::ConditionJudged { step, .. }
            | Event::StepSkipped { step, .. }
            | Event::AttemptStarted { step, .. }
            | Event::ProcessStarted { step, .. }
            | Event::SessionKnown { step, .. }
            | Event::AttemptEnded { step, .. }
            | Event::Opened { step, .. }
            | Event::GateOpened { step, .. }
            | Event::GateAnswered { step, .. }
            | Event::ApprovalAsked { step, .. }
            | Event::ApprovalAnswered { step, .. }
            | Event::Swarm { step, .. }
            | Event::StatusReported { step, .. }
            | Event::InputsTaken { step, .. }
            | Event::ArtifactStored { step, .. }
            | Event::NodeClosed { step, .. }
            | Event::Exchanged { step, .. } => Some(step),
            Event::Sent { from, .. } => from.as_ref(),
            Event::RunStarted { .. }
            | Event::RunResumed
            | Event::RoundJudged { .. }
            | Event::BudgetSpent { .. }
            | Event::StopRequested
            | Event::RunFinished { .. }
            | Event::StepReopened { .. }
            | Event::UsedBefore { .. }
            | Event::RunReopened { .. } => None,
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
