//! `--events`: a record of the journal as one event, for programs that watch a run.
//!
//! In: a record. Out: a flat JSON object; `type` is what happened, and `agent_id` who did it in a swarm, with the names
//! that seed dashboards know. The other fields are those of the journal.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};
use swarmc_runtime::{AttemptId, Event, Record};

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
    pub swarm: Option<AttemptId>,
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

impl From<&Record> for EventLine {
    fn from(record: &Record) -> EventLine {
        let swarm = record.event.swarm().cloned();
        let agent = match &record.event {
            Event::ApprovalAsked { request, .. } => Some(&*request.agent),
            event => event.agent(),
        };
        let agent_id = agent.map(str::to_owned);
        let (mut kind, mut fields) = (String::new(), Map::new());
        for (key, field) in json!(record.event).as_object().cloned().unwrap_or_default() {
            match key.as_str() {
                "event" => kind = seed_name(field.as_str().unwrap_or_default()).to_owned(),
                // That of the line; the journal has one of its own.
                "version" => {}
                "step" | "attempt" if swarm.is_some() => {}
                _ => _ = fields.insert(key, field),
            }
        }
        EventLine { version: Version, seq: record.seq, at: record.at, swarm, agent_id, kind, fields }
    }
}

/// The name that dashboards know an event of the journal by: of the swarm's events, eight have those of seed 001.
fn seed_name(event: &str) -> &str {
    match event {
        "swarm_started" => "workflow_started",
        "phase_entered" => "progress",
        "agent_finished" => "agent_completed",
        "action_refused" => "refused",
        "agent_idled" => "idled",
        "data_published" => "workspace_updated",
        "swarm_finished" => "workflow_completed",
        event => event,
    }
}
