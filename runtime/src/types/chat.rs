//! What a model is asked and what it answers, whichever protocol carries it.

use std::time::Duration;

use serde_json::Value;

use super::retry;
use super::usage::Usage;

/// What a model is asked.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Question {
    /// The model; none is the provider's own.
    pub model: Option<String>,
    /// What it is told before everything else; empty is nothing.
    pub system: String,
    /// The conversation so far, the newest last.
    pub messages: Vec<Message>,
    /// What the answer begins with, where the provider lets us say so; the reply's text then begins with it too.
    pub prefill: Option<String>,
    /// The JSON Schema that the answer must have, where the provider enforces one.
    pub schema: Option<Value>,
    /// The tools that it may call.
    pub tools: Vec<Tool>,
    /// The randomness of the answer; none is the provider's own.
    pub temperature: Option<f64>,
    /// The tokens of the answer at most; none is the provider's own.
    pub max_output: Option<u64>,
}

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Message {
    /// What we said.
    User(String),
    /// What the model said, and what it called.
    Assistant {
        /// The text; empty is none.
        text: String,
        /// The calls.
        calls: Vec<Call>,
    },
    /// What came of the calls before.
    Results(Vec<CallResult>),
}

/// A tool that a model may call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tool {
    /// Its name.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub parameters: Value,
}

/// A call that a model makes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Call {
    /// What its result refers to.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// The arguments, as the model wrote them.
    pub arguments: Value,
}

/// What came of a call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CallResult {
    /// The call's id.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// What it gave, or why it failed.
    pub text: String,
    /// Whether it failed.
    pub failed: bool,
}

/// What a model answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Reply {
    /// The text.
    pub text: String,
    /// The calls.
    pub calls: Vec<Call>,
    /// The tokens; none is unknown.
    pub usage: Option<Usage>,
    /// The model that answered, as the provider names it.
    pub model: Option<String>,
    /// The conversation that a program keeps of the turn, by its id.
    pub session: Option<String>,
    /// Whether the answer stopped at the limit of its tokens.
    pub cut: bool,
}

/// Why there is no reply.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fault {
    /// What happened, for people.
    pub message: String,
    /// Whether asking again later may help.
    pub transient: bool,
    /// When the provider says to ask again.
    pub retry_after: Option<Duration>,
    /// Whether the program that was to answer went away on its own.
    pub crashed: bool,
}

/// Why a tool gave no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ToolFault {
    /// What happened, for the model and for people.
    pub message: String,
    /// Whether the same call may work later.
    pub transient: bool,
}

impl ToolFault {
    /// The same call will fail again.
    pub(crate) fn lasting(message: impl Into<String>) -> ToolFault {
        ToolFault { message: message.into(), transient: false }
    }

    /// The words of the message say whether the same call may work later.
    pub(crate) fn judged(message: impl Into<String>) -> ToolFault {
        let message = message.into();
        ToolFault { transient: retry::is_transient(&message), message }
    }
}
