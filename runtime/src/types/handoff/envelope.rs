//! The canonical payload of a handoff, as agents send and receive it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use swarmc_plan::{Priority, Response};

use super::message::MessageKind;

/// The bytes of an envelope as JSON at most; longer things are files, handed over by reference.
pub const ENVELOPE_LIMIT: usize = swarmc_plan::prompt_text::ENVELOPE_BYTES;

/// The characters of a message at most: it is a short summary.
pub const MESSAGE_LIMIT: usize = 4_000;

/// What one agent hands over to another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Envelope {
    /// Whether it is work or news.
    pub kind: EnvelopeKind,
    /// Its id, unique in the run.
    pub id: String,
    /// The sender; `user` is a person.
    pub from_node_id: String,
    /// The receiver.
    pub to_node_id: String,
    /// When it was sent (RFC 3339, UTC).
    pub created_at: String,
    /// What it says.
    pub payload: Payload,
    /// A stored context pack: `contextpack://pack/ID`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_ref: Option<String>,
    /// How it is to be handled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// What travels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EnvelopeKind {
    /// Work: it wakes its receiver.
    #[default]
    Handoff,
    /// News: it is read in the receiver's next turn.
    Signal,
}

/// What an envelope says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Payload {
    /// A short summary, for people too.
    pub message: String,
    /// What a program can read; of the edge's type, where it says one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Value>,
    /// What is too long to be sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Artifact>,
    /// How something went.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Verdict>,
    /// Whether an answer is expected, or what this one answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<Reply>,
}

/// A stored thing, by reference.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Artifact {
    /// `diff`, `log`, `report`, …
    #[serde(rename = "type")]
    pub kind: String,
    /// `artifact://KIND/ID`, or a path in the workspace.
    #[serde(rename = "ref")]
    pub reference: String,
}

/// How something went.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Verdict {
    /// Whether it went well.
    pub ok: bool,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Whether an answer is expected, and by whom.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Reply {
    /// Whether its receiver is to answer.
    #[serde(default)]
    pub expectation: Response,
    /// The node that the answer goes to, or the id of the envelope that this one answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<String>,
}

/// How an envelope is to be handled.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Meta {
    /// Its place in the inbox, before or behind others.
    #[serde(default)]
    pub priority: Priority,
    /// The type of the message, where its sender wrote one of the file protocol.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub message_kind: Option<MessageKind>,
}
