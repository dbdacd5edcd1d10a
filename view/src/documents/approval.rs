//! Requests of agents for approval, as `ps` and `inspect` print them.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use swarmc_plan::Unattended;
use swarmc_runtime::{AnsweredBy, Choice, Content, RequestKind, Same, Verdict};

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
    /// To move a branch of the repository on to what it merged.
    Merge,
    /// To change the plan of its team.
    Plan,
    /// To take a further turn.
    GoOn {
        /// What its turns have in common.
        same: Same,
        /// How many of them.
        times: u32,
    },
}

/// A request with all that it is about, and its answer.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ApprovalDetails {
    /// What was asked.
    #[serde(flatten)]
    pub approval: Approval,
    /// What the agent wrote.
    #[serde(flatten)]
    pub text: RequestText,
    /// What it can be answered with, while it waits.
    pub choices: Vec<Choice>,
    /// The answer; null while there is none.
    pub answer: Option<ApprovalAnswer>,
}

/// What an agent wrote in a request: one of these.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct RequestText {
    /// The arguments of the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// The task of the helper.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// What the task would be given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<Value>,
    /// What it needs help with, or how the plan is to change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What its turns have in common.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
}

/// The answer to a request.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ApprovalAnswer {
    /// What was decided.
    pub choice: Choice,
    /// Who decided.
    pub by: AnsweredBy,
    /// Why.
    pub because: Option<String>,
    /// The arguments that the tool is called with in place of the agent's.
    pub arguments: Option<Value>,
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
            RequestKind::Plan { .. } => ApprovalWants::Plan,
            RequestKind::Merge { .. } => ApprovalWants::Merge,
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

impl ApprovalDetails {
    /// A request with its answer; `read` has the texts that lie beside the journal.
    pub fn new(open: &OpenRequest, verdict: Option<&Verdict>, read: impl Fn(&Content) -> String) -> ApprovalDetails {
        let json = |content: &Content| parse_json(read(content));
        let mut text = RequestText::default();
        match &open.request.wants {
            RequestKind::Tool { arguments, .. } => text.arguments = Some(json(arguments)),
            RequestKind::Spawn { task, .. } => text.task = Some(read(task)),
            RequestKind::Node { letter, .. } => text.payload = Some(json(&letter.content)),
            RequestKind::Help { message }
            | RequestKind::Plan { change: message }
            | RequestKind::Merge { change: message } => text.message = Some(read(message)),
            RequestKind::GoOn { evidence, .. } => text.evidence = Some(read(evidence)),
        }
        let answer = verdict.map(|verdict| ApprovalAnswer {
            choice: verdict.choice,
            by: verdict.by,
            because: verdict.because.clone(),
            arguments: verdict.arguments.as_ref().map(json),
        });
        let choices = if answer.is_none() { open.request.wants.choices().to_vec() } else { Vec::new() };
        ApprovalDetails { approval: Approval::from(open), text, choices, answer }
    }
}

/// JSON as what it is, anything else as a text.
pub fn parse_json(text: String) -> Value {
    serde_json::from_str(&text).unwrap_or(Value::String(text))
}
