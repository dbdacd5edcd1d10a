//! What an agent does in one turn: exactly one action, read from a model's text or from the tool that it called.
//!
//! Texts are untrusted: reading is linear in their length, and recurses no deeper than the nesting that the JSON reader
//! allows. A text that is no action gives a sentence that tells the model what to return.

mod offer;
mod read;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::types::swarm::MessageType;

pub(crate) use offer::{Offer, list_tools, step_schema};
pub(crate) use read::{from_calls, parse_action};

/// The bytes of an answer that are looked at; a longer one is no action.
pub(crate) const ANSWER_BYTES: usize = 256 * 1024;
/// The characters of a tool's name at most, and of a skill.
pub(crate) const TOOL_CHARS: usize = 128;
/// The bytes of a tool call's parameters at most, as JSON.
pub(crate) const PARAMS_BYTES: usize = 128 * 1024;
/// The characters of a topic at most.
pub(crate) const TOPIC_CHARS: usize = 64;
/// The characters of what is published at most.
pub(crate) const DATA_CHARS: usize = 16_000;
/// The characters of a receiver's name at most: an agent may have any name that a spec can give it.
pub(crate) const RECEIVER_CHARS: usize = swarmc_plan::LONGEST_NAME;
/// The most names that a model receives after it wrote an unknown one.
pub(crate) const TOLD: usize = 20;
/// The bytes of a message at most, as JSON.
pub(crate) const PAYLOAD_BYTES: usize = 4_000;
/// The characters of a request for help at most.
pub(crate) const DESCRIPTION_CHARS: usize = 2_000;
/// The skills of a request for help at most.
pub(crate) const SKILLS: usize = 20;
/// The bytes of them at most, as JSON: events contain them.
pub(crate) const SKILLS_BYTES: usize = 2_000;
/// How deep parameters and messages nest at most.
pub(crate) const NESTING: usize = 32;
/// The characters of a final answer that is not repaired.
pub(crate) const RESPONSE_CHARS: usize = 500;

/// What an agent does. Written as the JSON that models answer with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub(crate) enum RawAction {
    /// Calls a tool.
    ToolCall {
        /// Its name.
        tool: String,
        /// Its parameters, an object.
        #[serde(rename = "tool_params")]
        params: Value,
    },
    /// Adds an entry to the shared workspace.
    PublishData {
        /// Where it belongs.
        topic: String,
        /// The entry.
        data: String,
    },
    /// Writes to another agent.
    SendMessage {
        /// Its name, as the model wrote it.
        to: String,
        /// What kind of message it is.
        #[serde(rename = "message_type")]
        kind: MessageType,
        /// The message, an object.
        payload: Value,
    },
    /// Asks for a further agent.
    RequestHelp {
        /// What that agent is to do.
        #[serde(rename = "help_description")]
        description: String,
        /// The tools that it needs.
        #[serde(rename = "help_skills")]
        skills: Vec<String>,
    },
    /// Ends its work.
    Done {
        /// The result: a text, or a JSON value as one.
        response: String,
    },
    /// Does nothing this turn.
    Idle,
}

/// One action, as prompts describe it to models.
pub(crate) struct ActionDoc {
    /// Its name.
    pub name: &'static str,
    /// What it does, one sentence.
    pub does: &'static str,
    /// The JSON of it.
    pub json: &'static str,
}

/// The actions, in the order in which prompts describe them.
pub(crate) const FORMS: [ActionDoc; 6] = [
    ActionDoc {
        name: "tool_call",
        does: "Call one of your tools. You see its result in your next turn.",
        json: r#"{"action": "tool_call", "tool": "NAME", "tool_params": {"PARAMETER": "..."}}"#,
    },
    ActionDoc {
        name: "publish_data",
        does: "Share a finding with the whole team.",
        json: r#"{"action": "publish_data", "topic": "findings", "data": "..."}"#,
    },
    ActionDoc {
        name: "send_message",
        does: "Write to one teammate. Types: request, offer, accept, delegation, info.",
        json: r#"{"action": "send_message", "to": "NAME", "message_type": "info", "payload": {"message": "..."}}"#,
    },
    ActionDoc {
        name: "request_help",
        does: "Ask the supervisor for a further agent, with the tools that it needs.",
        json: r#"{"action": "request_help", "help_description": "...", "help_skills": ["TOOL"]}"#,
    },
    ActionDoc {
        name: "done",
        does: "End your work with your result: under 500 characters, details belong in files that you wrote before.",
        json: r#"{"action": "done", "response": "..."}"#,
    },
    ActionDoc { name: "idle", does: "Wait for messages; nothing is gained by it.", json: r#"{"action": "idle"}"# },
];

/// What to say to an agent whose final answer is over [`RESPONSE_CHARS`]; none where it is not.
pub(crate) fn too_long(response: &str) -> Option<String> {
    let chars = response.chars().count();
    (chars > RESPONSE_CHARS).then(|| {
        format!(
            "the response of `done` has {chars} characters and may have {RESPONSE_CHARS}: save the details to a file \
             first, then return `done` with a short summary that names the file"
        )
    })
}

/// A final answer as it counts when it stayed too long: its first characters, and how many are missing.
pub(crate) fn cut_response(response: &str) -> String {
    super::prompt::truncate_text(response, RESPONSE_CHARS)
}

#[cfg(test)]
mod tests;
