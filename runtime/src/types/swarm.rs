//! What the events of a swarm hold: turns, answers and actions of its agents, and their messages.
//!
//! [`Event::agent`](super::event::Event::agent) returns the agent of an event, with the ids [`SUPERVISOR`] and
//! [`WORKSPACE`] for events of no agent. Texts that may be long are [`Content`].

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::content::Content;
use super::team::TeamOp;

/// Who decomposes, spawns, answers requests for help and merges.
pub const SUPERVISOR: &str = "swarm-supervisor";

/// The name of people among the names of agents.
pub const PERSON: &str = "user";

/// Whose events those of the shared workspace are.
pub const WORKSPACE: &str = "workspace";

/// A turn of an agent, or of the supervisor: deterministic, the same in every replay.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct TurnId {
    /// The agent; [`SUPERVISOR`] where `purpose` is not to act.
    pub agent: Arc<str>,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Purpose::is_act")]
    pub purpose: Purpose,
    /// The iteration, from 1; of the supervisor, whose turns have a purpose each, always 1.
    pub iteration: u32,
    /// How often it was asked, or the tool called, in this iteration: from 1. The attempt of the swarm is another one.
    #[serde(rename = "turn_attempt")]
    pub attempt: u32,
}

/// What a model is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// The next action of an agent.
    #[default]
    Act,
    /// The goal, split into tasks.
    Decompose,
    /// The results, merged into one.
    Synthesize,
}

impl Purpose {
    fn is_act(&self) -> bool {
        *self == Purpose::Act
    }
}

/// A phase of a swarm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The goal is split.
    Planning,
    /// The agents of the roster are made.
    Spawning,
    /// Agents take turns.
    Monitoring,
    /// The results are merged.
    Synthesizing,
}

/// How an agent ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// It said so.
    Done,
    /// It made no progress.
    Converged,
    /// Its iterations are used up.
    Exhausted,
    /// Its tools failed again and again.
    ToolErrors,
    /// Its model cannot be reached, or refuses.
    Unreachable,
    /// Its program went away on its own, again and again.
    Crashed,
    /// Its time is over.
    TimedOut,
    /// A budget refused its next turn.
    OverBudget,
    /// It never received a message, and no agent is left that could send one.
    Unneeded,
    /// The coordinator ended it.
    Stopped,
    /// The coordinator ended the whole swarm.
    Released,
}

impl End {
    /// In a word, as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            End::Done => "done",
            End::Converged => "converged",
            End::Exhausted => "exhausted",
            End::ToolErrors => "tool_errors",
            End::Unreachable => "unreachable",
            End::Crashed => "crashed",
            End::TimedOut => "timed_out",
            End::OverBudget => "over_budget",
            End::Unneeded => "unneeded",
            End::Stopped => "stopped",
            End::Released => "released",
        }
    }

    /// Whether it has something to give.
    pub fn has_result(self) -> bool {
        matches!(self, End::Done | End::Converged | End::Exhausted)
    }
}

/// A message, as it lies in a mailbox.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MemberMessage {
    /// Its number in the mailbox of the receiver, from 1.
    pub number: u64,
    /// Who wrote it.
    pub from: Arc<str>,
    /// Whose mailbox it lies in.
    pub to: Arc<str>,
    /// What it is for.
    #[serde(rename = "message_type")]
    pub kind: MessageType,
    /// What it says, as JSON.
    pub payload: Content,
    /// Whether a person wrote it, and no agent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub person: bool,
}

/// What a model answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// An action.
    Acts(Arc<Action>),
    /// The tasks of a decomposition, in order.
    Split(Vec<Part>),
    /// The merged result.
    Merged(Content),
    /// Something else than was asked for: what is wrong with it, for the model to read.
    Invalid(String),
    /// Nothing: why.
    Failed {
        /// What the provider said.
        message: String,
        /// Whether it may pass, and when it should be tried again.
        fault: Fault,
    },
}

/// How something failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// It may pass: not before so many milliseconds, where the other side said so.
    Transient {
        /// 0 if the other side gave no time.
        #[serde(default)]
        after_ms: u64,
    },
    /// The program that was to answer went away on its own: it is started again, as often as after what may pass.
    Crashed,
    /// It stays.
    Permanent,
    /// A budget refused it.
    Budget,
}

impl Fault {
    /// How long to wait at least before it is tried again, in milliseconds; none where trying again does not help.
    pub(crate) fn pause(self) -> Option<u64> {
        match self {
            Fault::Transient { after_ms } => Some(after_ms),
            Fault::Crashed => Some(0),
            Fault::Permanent | Fault::Budget => None,
        }
    }
}

/// A part of the goal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Part {
    /// What is to be done.
    pub task: Content,
    /// Who is to do it, where the lead says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Arc<str>>,
}

impl Part {
    /// The bytes that the task of one of so many parts may take as JSON: one event contains all of them.
    pub(crate) fn max_task_bytes(parts: usize) -> usize {
        (6_000 / parts.max(1)).saturating_sub(60)
    }
}

/// The action of a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum Action {
    /// Calls a tool.
    ToolCall {
        /// Which.
        tool: Arc<str>,
        /// Its parameters, as JSON.
        params: Content,
    },
    /// Shares something with the team.
    PublishData {
        /// Under what.
        topic: Arc<str>,
        /// What.
        data: Content,
    },
    /// Writes to a teammate.
    SendMessage {
        /// To whom.
        to: Arc<str>,
        /// What for.
        message_type: MessageType,
        /// What, as JSON.
        payload: Content,
    },
    /// Asks the supervisor for a helper.
    RequestHelp {
        /// What the helper is to do.
        description: Content,
        /// The tools that it needs.
        skills: Vec<String>,
    },
    /// Does something that only a team with a coordinator knows.
    Operate(TeamOp),
    /// Ends with an answer.
    Done {
        /// The answer.
        response: Content,
    },
    /// Waits.
    Idle,
}

impl Action {
    /// The operation of a team, where it is one.
    pub(crate) fn operation(&self) -> Option<&TeamOp> {
        match self {
            Action::Operate(op) => Some(op),
            _ => None,
        }
    }
}

/// What kind of message one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MessageType {
    /// Asks for something to be done.
    Request,
    /// Offers to help.
    Offer,
    /// Takes a task.
    Accept,
    /// Hands a task on.
    Delegation,
    /// Tells something.
    Info,
}

impl MessageType {
    /// All of them.
    pub(crate) const ALL: [MessageType; 5] =
        [MessageType::Request, MessageType::Offer, MessageType::Accept, MessageType::Delegation, MessageType::Info];

    /// Its name, as models write it.
    pub fn as_str(self) -> &'static str {
        match self {
            MessageType::Request => "request",
            MessageType::Offer => "offer",
            MessageType::Accept => "accept",
            MessageType::Delegation => "delegation",
            MessageType::Info => "info",
        }
    }
}
