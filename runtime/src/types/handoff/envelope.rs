//! The canonical payload of a handoff, as agents send and receive it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
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

/// What is handed over.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Handoff {
    /// The receiver: a task that an edge leads to from yours.
    pub to: String,
    /// A short summary of what you hand over.
    #[schemars(length(max = MESSAGE_LIMIT))]
    pub message: String,
    /// What a program can read, as an object; of the edge's type, where it says one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("type" = ["object", "null"]))]
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
    /// Reads a handoff as agents write it: in the form of the tool, or in that of the envelopes which they read. The
    /// sender, the id and the time of an envelope are the run's to say: they are unknown fields.
    ///
    /// # Errors
    /// A field is missing, unknown or wrong.
    pub(crate) fn from_written(mut written: Value) -> serde_json::Result<Handoff> {
        if let Some(fields) = written.as_object_mut() {
            flatten_envelope(fields);
        }
        serde_json::from_value(written)
    }

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

/// Moves the fields of an envelope to where a handoff has them; what already stands there stays.
fn flatten_envelope(fields: &mut Map<String, Value>) {
    for nested in ["payload", "meta"] {
        for (name, value) in take_object(fields, nested) {
            move_field(fields, &name, value);
        }
    }
    for (name, value) in take_object(fields, "response") {
        move_field(fields, if name == "expectation" { "response" } else { &name }, value);
    }
    for (read, written) in [("toNodeId", "to"), ("replyTo", "reply_to"), ("contextRef", "context_ref")] {
        if let Some(value) = fields.remove(read) {
            move_field(fields, written, value);
        }
    }
}

/// The object of this name, taken out; nothing where there is none.
fn take_object(fields: &mut Map<String, Value>, name: &str) -> Map<String, Value> {
    if !fields.get(name).is_some_and(Value::is_object) {
        return Map::new();
    }
    match fields.remove(name) {
        Some(Value::Object(object)) => object,
        _ => Map::new(),
    }
}

fn move_field(fields: &mut Map<String, Value>, name: &str, value: Value) {
    fields.entry(name).or_insert(value);
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

    #[test]
    fn an_envelope_can_be_written_in_the_form_in_which_it_is_read() {
        let read = json!({
            "kind": "handoff", "toNodeId": "parser",
            "payload": {
                "message": "m", "structured": { "n": 1 }, "status": { "ok": true },
                "response": { "expectation": "required", "replyTo": "e3" },
            },
            "contextRef": "contextpack://pack/1", "meta": { "priority": "high" },
        });
        let handoff = Handoff::from_written(read).unwrap();
        let same = json!({
            "to": "parser", "message": "m", "structured": { "n": 1 }, "status": { "ok": true }, "response": "required",
            "reply_to": "e3", "context_ref": "contextpack://pack/1", "kind": "handoff", "priority": "high",
        });
        assert_eq!(handoff, serde_json::from_value(same).unwrap());
        let half =
            json!({ "to": "b", "message": "m", "response": { "replyTo": "e3" }, "contextRef": "contextpack://pack/1" });
        let handoff = Handoff::from_written(half).unwrap();
        assert_eq!((handoff.response, handoff.reply_to.as_deref()), (None, Some("e3")));
        let wrong = |written: Value| Handoff::from_written(written).unwrap_err().to_string();
        assert!(wrong(json!({ "to": "b", "message": "m", "payload": 3 })).contains("unknown field `payload`"));
        assert!(wrong(json!({ "to": "b", "message": "m", "fromNodeId": "c" })).contains("unknown field `fromNodeId`"));
        assert!(wrong(json!({ "to": "b", "payload": { "summary": "m" } })).contains("unknown field `summary`"));
        assert!(wrong(json!([])).contains("invalid length"));
    }
}
