//! `--events`: a record of the journal as one event, and what stands in none, for programs that watch a run.
//!
//! In: a record. Out: a flat JSON object; `type` is what happened, and `agent_id` who did it in a swarm, with the names
//! that seed dashboards know. The other fields are those of the journal.

use serde_json::{Value, json};
use swarmc_runtime::{Event, Record, Signal};

/// What stands in no journal as an event: it has no number.
pub fn encode_signal(signal: &Signal) -> Value {
    let mut value = json!({ "version": 1 });
    if let (Ok(Value::Object(fields)), Some(object)) = (serde_json::to_value(signal), value.as_object_mut()) {
        object.extend(fields);
    }
    value
}

/// The record as an event.
pub fn encode_record(record: &Record) -> Value {
    let mut value = json!({ "version": 1, "seq": record.seq, "at": record.at });
    let Some(object) = value.as_object_mut() else { return value };
    let (fields, kind) = match &record.event {
        Event::Swarm { step, attempt, fact } => {
            object.insert("step".to_owned(), json!(step));
            object.insert("attempt".to_owned(), json!(attempt));
            object.insert("agent_id".to_owned(), json!(fact.agent()));
            // A turn has an attempt of its own, which counts within its iteration.
            (serde_json::to_value(fact), "what")
        }
        event => {
            if let Event::ApprovalAsked { request, .. } = event {
                object.insert("agent_id".to_owned(), json!(request.agent));
            }
            (serde_json::to_value(event), "event")
        }
    };
    let Ok(Value::Object(fields)) = fields else { return value };
    for (key, field) in fields {
        match key.as_str() {
            key if key == kind => _ = object.insert("type".to_owned(), field),
            // That of the line; the journal has one of its own.
            "version" => {}
            "attempt" if kind == "what" => _ = object.insert("turn_attempt".to_owned(), field),
            // Within a mailbox, or the workspace; that of the journal is there already.
            "seq" => _ = object.insert("number".to_owned(), field),
            // The type of a message, not of the event.
            "type" => _ = object.insert("message_type".to_owned(), field),
            _ => _ = object.insert(key, field),
        }
    }
    value
}
