//! Messages of seed 003, over every transport: their types, and the envelopes that these mean.
//!
//! In: a message as an agent writes it, as a file or by an operation. Out: the [`Handoff`] that it is, which goes the
//! way of all others; and the message type of an envelope, for a reader of the file protocol.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use swarmc_plan::Response;

use super::envelope::{Envelope, EnvelopeKind, Handoff, MESSAGE_LIMIT};

/// What one agent writes to another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Message {
    /// The receiver: a task that an edge leads to from yours.
    pub to: String,
    /// What it is for.
    #[serde(rename = "type")]
    pub kind: MessageKind,
    /// What you say: `message` is what people read of it; further fields are data for the receiver.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    #[schemars(schema_with = "content_schema")]
    pub content: Value,
    /// The id of the message that this one answers; the oldest that waits for one, when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<String>,
}

/// What one agent writes to all that it can reach.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Broadcast {
    /// What it is for.
    #[serde(rename = "type")]
    pub kind: MessageKind,
    /// What you say: `message` is what people read of it; further fields are data for the receiver.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    #[schemars(schema_with = "content_schema")]
    pub content: Value,
}

/// The schema of the content of a message. A text is taken too, but an object is what a tool is asked for.
fn content_schema(_: &mut SchemaGenerator) -> Schema {
    let said = json_schema!({ "type": "string", "maxLength": MESSAGE_LIMIT, "description": "In a sentence." });
    json_schema!({ "type": "object", "properties": { "message": said } })
}

/// What a message is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MessageKind {
    /// Work: something is there for the receiver.
    DataReady,
    /// Work that wants an answer.
    Question,
    /// The answer to a question.
    Answer,
    /// News: where an edge is for signals they wait for the receiver's next turn, else they go as the edge has it.
    Update,
}

impl MessageKind {
    /// The word for it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            MessageKind::DataReady => "data_ready",
            MessageKind::Question => "question",
            MessageKind::Answer => "answer",
            MessageKind::Update => "update",
        }
    }

    /// What an envelope is for: as its sender said, else what fits it.
    pub(crate) fn from_envelope(envelope: &Envelope) -> MessageKind {
        if let Some(said) = envelope.meta.as_ref().and_then(|meta| meta.message_kind) {
            return said;
        }
        let response = envelope.payload.response.as_ref();
        match envelope.kind {
            EnvelopeKind::Signal => MessageKind::Update,
            _ if response.is_some_and(|response| response.expectation != Response::None) => MessageKind::Question,
            _ if response.is_some_and(|response| response.reply_to.is_some()) => MessageKind::Answer,
            EnvelopeKind::Handoff => MessageKind::DataReady,
        }
    }
}

/// Whom an agent can write to, as far as that decides what a message is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Receivers {
    /// Those to whom edges lead that expect no answer by themselves.
    pub unasked: Vec<String>,
    /// Those to whom edges lead that take signals.
    pub signals: Vec<String>,
}

impl Message {
    /// The handoff that it means, over every transport.
    ///
    /// # Errors
    /// Its content is neither an object nor a text.
    pub(crate) fn into_handoff(self, receivers: &Receivers) -> Result<Handoff, String> {
        let Message { to, kind, content, reply_to } = self;
        if !matches!(content, Value::Null | Value::String(_) | Value::Object(_)) {
            return Err("`content` is neither an object nor a text".to_owned());
        }
        let said = content.as_str().or_else(|| content.get("message")?.as_str());
        let message = said.map_or_else(|| kind.as_str().to_owned(), str::to_owned);
        let asks = kind == MessageKind::Question && receivers.unasked.contains(&to);
        let signals = kind == MessageKind::Update && receivers.signals.contains(&to);
        Ok(Handoff {
            to,
            message,
            structured: content.is_object().then_some(content),
            kind: signals.then_some(EnvelopeKind::Signal),
            response: asks.then_some(Response::Optional),
            reply_to: reply_to.filter(|_| kind == MessageKind::Answer),
            answers_by_name: matches!(kind, MessageKind::Question | MessageKind::Update),
            message_kind: Some(kind),
            ..Handoff::default()
        })
    }
}

impl Broadcast {
    /// The same to one of them.
    pub(crate) fn message_to(&self, to: &str) -> Message {
        Message { to: to.to_owned(), kind: self.kind, content: self.content.clone(), reply_to: None }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What is handed over where only an edge for signals asks nothing, or none is there.
    fn handed(kind: &str, content: Value, quiet: &[&str]) -> Result<Handoff, String> {
        let message = json!({ "to": "b", "type": kind, "content": content, "reply_to": "e1" });
        let message: Message = serde_json::from_value(message).unwrap();
        let quiet: Vec<String> = quiet.iter().map(|&name| name.to_owned()).collect();
        message.into_handoff(&Receivers { unasked: quiet.clone(), signals: quiet })
    }

    #[test]
    fn the_type_says_what_is_expected() {
        let ready = handed("data_ready", json!({ "message": "There", "rows": 3 }), &["b"]).unwrap();
        assert_eq!(
            (ready.message.as_str(), ready.structured),
            ("There", Some(json!({ "message": "There", "rows": 3 })))
        );
        assert_eq!((ready.kind, ready.response, ready.reply_to), (None, None, None));
        assert_eq!(handed("question", json!("Well?"), &["b"]).unwrap().response, Some(Response::Optional));
        // The edge has its own word.
        assert_eq!(handed("question", json!("Well?"), &[]).unwrap().response, None);
        assert_eq!(handed("answer", json!("Yes"), &["b"]).unwrap().reply_to.as_deref(), Some("e1"));
        let answers = |kind| !handed(kind, json!("Yes"), &["b"]).unwrap().answers_by_name;
        assert_eq!(["data_ready", "question", "answer", "update"].map(answers), [true, false, true, false]);
        let update = handed("update", Value::Null, &["b"]).unwrap();
        assert_eq!((update.kind, update.message.as_str()), (Some(EnvelopeKind::Signal), "update"));
        // News go the way that there is.
        assert_eq!(handed("update", Value::Null, &[]).unwrap().kind, None);
        for wrong in [json!([1]), json!(7), json!(true)] {
            assert_eq!(handed("update", wrong, &[]).unwrap_err(), "`content` is neither an object nor a text");
        }
    }
}
