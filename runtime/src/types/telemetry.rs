//! What people and programs see of a run while it goes on, beside its journal: which agents are connected, and which
//! tools they use.
//!
//! Nothing depends on a signal: a run goes the same way without observers. The runner writes the uses of tools to a
//! file beside the logs, one signal a line.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::activity::Flow;
use super::step_id::StepId;

/// The limit of reported tool uses in one attempt, including fallbacks and repair turns.
pub const TOOL_USES: usize = 1_000;

/// The bytes of arguments and results that are told.
pub(crate) const TOLD: usize = 2_000;

/// Something that happened to a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Signal {
    /// When, in milliseconds since 1970 (UTC).
    pub at: u64,
    /// The step.
    pub step: StepId,
    /// Its attempt.
    pub attempt: u32,
    /// What.
    #[serde(flatten)]
    pub sign: TelemetryKind,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TelemetryKind {
    /// The state of a node's connection to its agent changes.
    Connection {
        /// Whether the agent is connected.
        state: Link,
        /// What its agent is doing, where it is connected.
        stream: Option<Flow>,
        /// Under which id its provider keeps the conversation, where that is known.
        session: Option<String>,
        /// What it waits for, where it is idle.
        waits: Option<String>,
    },
    /// An agent uses a tool; told again under the same id where its arguments become known later.
    ToolStarted {
        /// What the result is told under, within the attempt; empty where none will be.
        id: String,
        /// The tool.
        tool: String,
        /// Its arguments as they were written, without secrets, cut after 2,000 bytes; empty where they are not known.
        arguments: String,
    },
    /// Something came of that.
    ToolEnded {
        /// That of the use.
        id: String,
        /// Whether it worked.
        ok: bool,
        /// What came of it, or why it failed: without secrets, cut after 2,000 bytes.
        text: String,
    },
    /// Something that a person should know of the attempt. It stands in the file alone: an observer gets the same text
    /// as [`Observer::notice`](super::observer::Observer::notice).
    #[schemars(skip)]
    Notice {
        /// What, without secrets, cut after 2,000 bytes.
        text: String,
    },
}

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Link {
    /// A turn goes on.
    Connected,
    /// It waits for input.
    Idle,
    /// Its turns are over, or no process runs the run.
    Disconnected,
    /// The run is over.
    Over,
}

impl Link {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Link::Connected => "connected",
            Link::Idle => "idle",
            Link::Disconnected => "disconnected",
            Link::Over => "over",
        }
    }
}
