//! Requests of agents for approval, as `ps` and `inspect` print them.

use schemars::JsonSchema;
use serde::Serialize;
use swarmc_plan::Unattended;
use swarmc_runtime::{RequestKind, Same};

use crate::approvals::OpenRequest;

/// A request of an agent that waits for an answer.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Approval {
    /// Its number in the run.
    pub id: u32,
    /// The step whose agent asks.
    pub step: String,
    /// The agent.
    pub agent: String,
    /// When it asked, in milliseconds since 1970.
    pub since_ms: u64,
    /// What the run does without an answer; null where it waits for ever.
    pub on_timeout: Option<ApprovalTimeout>,
    /// What it is for.
    #[serde(flatten)]
    pub wants: ApprovalWants,
}

/// What the run does without an answer.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct ApprovalTimeout {
    /// What it does.
    pub then: Unattended,
    /// When it does that, in milliseconds since 1970.
    pub at_ms: u64,
}

/// What an agent asks for.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "wants", rename_all = "snake_case")]
pub enum ApprovalWants {
    /// To call a tool.
    Tool {
        /// Its name.
        tool: String,
    },
    /// To have a helper.
    Spawn {
        /// The agent that it would play.
        plays: String,
        /// The tools that it would have.
        tools: Vec<String>,
    },
    /// To have a task of its pipeline started.
    Node {
        /// The agent of that task.
        plays: String,
        /// The task.
        task: String,
    },
    /// To be helped by a person.
    Help,
    /// To take a further turn.
    GoOn {
        /// What its turns have in common.
        same: Same,
        /// How many of them.
        times: u32,
    },
}

impl From<&OpenRequest> for Approval {
    fn from(open: &OpenRequest) -> Approval {
        let at_ms = |after_ms| open.since.saturating_add(after_ms);
        let wants = match &open.request.wants {
            RequestKind::Tool { tool, .. } => ApprovalWants::Tool { tool: tool.to_string() },
            RequestKind::Spawn { plays, tools, .. } => {
                ApprovalWants::Spawn { plays: plays.to_string(), tools: tools.clone() }
            }
            RequestKind::Node { plays, to, .. } => {
                ApprovalWants::Node { plays: plays.to_string(), task: to.to_string() }
            }
            RequestKind::Help { .. } => ApprovalWants::Help,
            RequestKind::GoOn { same, times, .. } => ApprovalWants::GoOn { same: *same, times: *times },
        };
        Approval {
            id: open.request.id,
            step: open.step.label(),
            agent: open.request.agent.to_string(),
            since_ms: open.since,
            on_timeout: open.on_timeout.map(|due| ApprovalTimeout { then: due.then, at_ms: at_ms(due.after_ms) }),
            wants,
        }
    }
}
