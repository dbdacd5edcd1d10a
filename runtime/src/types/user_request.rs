//! What a person asks of a running run: an answer to a gate, a message to an agent, a stop.

use serde::{Deserialize, Serialize};

/// A person's answer to a gate, or to an agent's request for approval.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateAnswer {
    /// The gate: its name, with what it is inside of where several have that name; or the number of a request.
    pub gate: String,
    /// The option that is chosen; of a request a word of [`crate::Choice`].
    pub choice: String,
    /// The fields that the gate asks for, as they were typed.
    #[serde(default)]
    pub fields: Vec<(String, String)>,
    /// Why, for the agent that made the request.
    #[serde(default)]
    pub because: Option<String>,
    /// The arguments that its tool is called with in place of its own: a JSON object.
    #[serde(default)]
    pub arguments: Option<String>,
}

/// What stands before the name of a context pack, where a person writes to that: as in `<<context:NAME>>`.
pub(crate) const CONTEXT: &str = "context:";

/// What a person writes to an agent, or appends to a context pack.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserMessage {
    /// The task whose agent reads it: its name, with what it is inside of where several have that name. Or
    /// `context:` and the name of a context pack.
    pub to: String,
    /// What it says.
    pub text: String,
    /// Whether a turn that is under way is to be ended for it, where its agent can go on from there.
    #[serde(default)]
    pub interrupt: bool,
}

/// What a person wants of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum StopLevel {
    /// End one attempt as [`ToolCallRequest::Stop`] does; its agent goes on with what a person wrote.
    Interrupt,
    /// End processes with TERM, then KILL after a grace.
    Stop,
    /// End processes with KILL at once.
    Kill,
}
