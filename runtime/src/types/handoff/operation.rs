//! What an agent of a pipeline may ask for: one set of operations, over every transport.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use swarmc_plan::{Priority, Response};

use super::envelope::{Artifact, Envelope, EnvelopeKind, Verdict};
use super::message::{Broadcast, Message, MessageKind};
use super::report::Report;

/// One thing that an agent asks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "swarm", rename_all = "snake_case")]
pub enum Operation {
    /// Hand something over along an edge.
    SendHandoff(Box<Handoff>),
    /// Have a further agent started, along an edge for that, with this as its first payload.
    SpawnNode(Box<Handoff>),
    /// Write to another agent along an edge, in the words of the file protocol: a handoff like any other.
    SendMessage(Message),
    /// Write the same to everybody whom edges lead to.
    Broadcast(Broadcast),
    /// Say how far you are.
    ReportStatus(Box<Report>),
    /// Ask a person for help, who answers in your inbox.
    RequestHelp(HelpRequest),
    /// Read the inputs of this turn, and what waits for the next one.
    ReadInbox {},
    /// Read a stored context pack or artifact.
    ReadContext(Reading),
}

/// What a person is asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HelpRequest {
    /// What you need to know, or what is to be done for you.
    pub message: String,
}

/// Which stored thing is read, and from where.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reading {
    /// What envelopes and packs say of it: `contextpack://pack/ID`, `artifact://KIND/ID`. The pack of your own turn, when left
    /// out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// The byte that is read first, 0 when left out: what is long is read in parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
}

impl Operation {
    /// Reads what an agent asks for.
    ///
    /// # Errors
    /// It is no operation: says which field is wrong.
    pub(crate) fn from_value(value: Value) -> Result<Operation, String> {
        serde_json::from_value(value).map_err(|error| error.to_string())
    }
}

/// What is handed over.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Handoff {
    /// The receiver: a task that an edge leads to from yours.
    pub to: String,
    /// A short summary of what you hand over.
    pub message: String,
    /// What a program can read, as an object; of the edge's type, where it says one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Value>,
    /// Files or stored artifacts that belong to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Artifact>,
    /// How it went.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Verdict>,
    /// Whether you expect an answer; the edge's own word, when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<Response>,
    /// The id of the envelope that this one answers; or, where an answer is expected, the task that it goes to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<String>,
    /// Whether it answers nothing but what `reply_to` names. Else it answers the oldest envelope that waits for it.
    #[serde(skip)]
    pub answers_by_name: bool,
    /// The type that it has as a message of the file protocol, where it is one.
    #[serde(skip)]
    pub message_kind: Option<MessageKind>,
    /// A stored context pack: `contextpack://pack/ID`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_ref: Option<String>,
    /// `handoff` wakes its receiver, a `signal` waits for the receiver's next turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<EnvelopeKind>,
    /// Its place in the receiver's inbox.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
}

impl Handoff {
    /// Whether an envelope says just this.
    pub(crate) fn is_in(&self, envelope: &Envelope) -> bool {
        let payload = &envelope.payload;
        let said = envelope.meta.as_ref().and_then(|meta| meta.message_kind);
        self.to == envelope.to_node_id
            && self.message == payload.message
            && self.structured == payload.structured
            && self.artifacts == payload.artifacts
            && self.status == payload.status
            // Where it says none, the run has added the edge's, what waited for an answer, and the pack of the turn.
            && self.kind.is_none_or(|kind| kind == envelope.kind)
            // Journals of earlier versions do not say which message it was.
            && (said.is_none() || said == self.message_kind)
            && (self.reply_to.is_none() || self.reply_to == payload.response.as_ref().and_then(|it| it.reply_to.clone()))
            && (self.context_ref.is_none() || self.context_ref == envelope.context_ref)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_sent_before_says_the_same_and_answers_the_same() {
        let envelope = json!({
            "kind": "handoff", "id": "e3", "fromNodeId": "a", "toNodeId": "b", "createdAt": "2026-11-22T00:00:00Z",
            "payload": { "message": "Yes", "response": { "expectation": "none", "replyTo": "e1" } },
            "contextRef": "contextpack://pack/1"
        });
        let envelope: Envelope = serde_json::from_value(envelope).unwrap();
        let handoff = |more: Value| {
            let mut handoff = json!({ "to": "b", "message": "Yes" });
            handoff.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            serde_json::from_value::<Handoff>(handoff).unwrap().is_in(&envelope)
        };
        for same in [json!({}), json!({ "reply_to": "e1" }), json!({ "kind": "handoff" })] {
            assert!(handoff(same.clone()), "{same}");
        }
        for other in [
            json!({ "reply_to": "e2" }),
            json!({ "kind": "signal" }),
            json!({ "message": "No" }),
            json!({ "context_ref": "contextpack://pack/2" }),
        ] {
            assert!(!handoff(other.clone()), "{other}");
        }
    }
}
