//! `--events`: a record of the journal as one event, for programs that watch a run.
//!
//! In: a record. Out: a flat JSON object; `type` is what happened, and `agent_id` who did it in a swarm, with the names
//! that seed dashboards know. The other fields are those of the journal.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};
use swarmc_runtime::{Event, Record, StepId};

use crate::documents::{RunLine, Version};

/// A line of `swarmc run --events`: an event, or what stands in no journal, as `--json` has it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum EventsLine {
    /// An event.
    Event(EventLine),
    /// A signal, a notice or the result.
    Other(RunLine),
}

/// An event.
#[derive(Debug, Serialize, JsonSchema)]
pub struct EventLine {
    /// The version of this form.
    pub version: Version,
    /// The number of its record in the journal.
    pub seq: u64,
    /// When it happened, in milliseconds since 1970.
    pub at: u64,
    /// The swarm in which it happened.
    #[serde(flatten)]
    pub swarm: Option<SwarmAttempt>,
    /// Who did it, in a swarm, or asked for approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// What happened.
    #[serde(rename = "type")]
    pub kind: String,
    /// The other fields of the event, as the journal has them.
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}

/// A swarm, by the attempt of a step that it runs as.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SwarmAttempt {
    /// The step.
    pub step: StepId,
    /// The attempt.
    pub attempt: u32,
}

impl From<&Record> for EventLine {
    fn from(record: &Record) -> EventLine {
        let (swarm, event, tag, agent_id) = match &record.event {
            Event::Swarm { step, attempt, fact } => {
                let swarm = SwarmAttempt { step: step.clone(), attempt: *attempt };
                (Some(swarm), json!(fact), "what", Some(fact.agent().to_owned()))
            }
            event @ Event::ApprovalAsked { request, .. } => {
                (None, json!(event), "event", Some(request.agent.to_string()))
            }
            event => (None, json!(event), "event", None),
        };
        let (mut kind, mut fields) = (String::new(), Map::new());
        for (key, field) in event.as_object().cloned().unwrap_or_default() {
            match key.as_str() {
                key if key == tag => kind = field.as_str().unwrap_or_default().to_owned(),
                // That of the line; the journal has one of its own.
                "version" => {}
                // A turn has an attempt of its own, which counts within its iteration.
                "attempt" if tag == "what" => _ = fields.insert("turn_attempt".to_owned(), field),
                // Within a mailbox, or the workspace; that of the journal is there already.
                "seq" => _ = fields.insert("number".to_owned(), field),
                // The type of a message, not of the event.
                "type" => _ = fields.insert("message_type".to_owned(), field),
                _ => _ = fields.insert(key, field),
            }
        }
        EventLine { version: Version, seq: record.seq, at: record.at, swarm, agent_id, kind, fields }
    }
}
