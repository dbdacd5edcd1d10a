//! The examples of seeds 002 and 003, character by character: what swarmc reads of them it writes again unchanged.

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use swarmc_runtime::handoff::{Envelope, envelope_schema};
use swarmc_runtime::pack::Pack;
use swarmc_runtime::{AgentState, AgentStatus};

/// Seed 002, envelope (canonical payload).
pub(crate) const ENVELOPE: &str = r#"{
  "kind": "handoff",
  "id": "payload-uuid",
  "fromNodeId": "node-a",
  "toNodeId": "node-b",
  "createdAt": "2026-01-01T00:00:00Z",
  "payload": {
    "message": "Short human-readable summary",
    "structured": { "key": "value" },
    "artifacts": [
      { "type": "diff", "ref": "artifact://diff/123" },
      { "type": "log", "ref": "artifact://log/456" }
    ],
    "status": { "ok": true, "reason": "tests-pass" },
    "response": { "expectation": "optional", "replyTo": "node-a" }
  },
  "contextRef": "contextpack://pack/789",
  "meta": { "priority": "normal" }
}"#;

/// Seed 002, context pack structure.
const PACK: &str = r#"{
  "packId": "uuid",
  "runId": "run-123",
  "nodeId": "node-abc",
  "createdAt": "2026-01-01T00:00:00Z",
  "goal": "Implement feature X",
  "definitionOfDone": ["criteria1", "criteria2"],
  "globalMode": "IMPLEMENTATION",
  "nodeMode": "AUTO",
  "docsRoot": "/docs",
  "docRefs": [
    { "path": "docs/PLAN.md", "excerpt": "..." }
  ],
  "repoFacts": {
    "language": "typescript",
    "packageManager": "pnpm"
  },
  "relevantFiles": [
    { "path": "src/foo.ts", "summary": "entry point" }
  ],
  "inputs": [
    { "payloadId": "payload-uuid" }
  ],
  "artifacts": [
    { "id": "artifact-123", "kind": "diff" }
  ],
  "constraints": {
    "noNewDependencies": true
  }
}"#;

/// Seed 003, status file specification: `state` is one of four.
const STATUS: &str = r#"{
  "state": "pending|running|completed|failed",
  "started": "2024-01-15T10:30:00Z",
  "completed": "2024-01-15T11:45:00Z",
  "error": null,
  "progress": {
    "current_step": "analyzing_data",
    "steps_completed": 3,
    "total_steps": 5
  },
  "metrics": {
    "files_processed": 12,
    "outputs_generated": 4
  }
}"#;

/// Seed 003, failure protocol.
const FAILED: &str = r#"{
  "state": "failed",
  "error": {
    "type": "ValidationError",
    "message": "Input file format invalid",
    "details": "Expected CSV, got JSON",
    "recoverable": true
  }
}"#;

/// What `T` makes of a text is the same again, twice.
fn passes<T: Serialize + DeserializeOwned + PartialEq + Debug>(text: &str) -> T {
    let expected: Value = serde_json::from_str(text).expect("the example is JSON");
    let read: T = serde_json::from_str(text).expect("the example is read");
    let written = serde_json::to_string(&read).expect("it is written");
    assert_eq!(serde_json::from_str::<Value>(&written).expect("that is JSON"), expected);
    assert_eq!(serde_json::from_str::<T>(&written).expect("that is read"), read);
    read
}

#[test]
fn the_envelope_passes_through_unchanged() {
    let envelope: Envelope = passes(ENVELOPE);
    assert_eq!((envelope.from_node_id.as_str(), envelope.payload.artifacts.len()), ("node-a", 2));
    let schema = serde_json::to_value(envelope_schema()).expect("a schema is JSON");
    let text = serde_json::from_str(ENVELOPE).expect("the example is JSON");
    assert!(jsonschema::is_valid(&schema, &text));
    // Only what is required.
    passes::<Envelope>(
        r#"{"kind": "signal", "id": "e1", "fromNodeId": "a", "toNodeId": "b", "createdAt": "2026-01-01T00:00:00Z",
            "payload": {"message": "m"}}"#,
    );
}

/// The example without what stands at a place.
fn without(place: &str) -> Value {
    let mut envelope: Value = serde_json::from_str(ENVELOPE).expect("the example is JSON");
    let (above, name) = place.rsplit_once('/').expect("a pointer");
    let above = envelope.pointer_mut(above).and_then(Value::as_object_mut).expect("an object");
    assert!(above.remove(name).is_some(), "{place}");
    envelope
}

#[test]
fn required_fields() {
    let schema = serde_json::to_value(envelope_schema()).expect("a schema is JSON");
    for place in ["/kind", "/id", "/fromNodeId", "/toNodeId", "/createdAt", "/payload", "/payload/message"] {
        let (envelope, name) = (without(place), place.rsplit('/').next().expect("a name"));
        assert!(!jsonschema::is_valid(&schema, &envelope), "{place}");
        let refused = serde_json::from_value::<Envelope>(envelope).expect_err(place).to_string();
        assert!(refused.contains(&format!("missing field `{name}`")), "{place}: {refused}");
    }
    for (kind, fits) in [("handoff", true), ("signal", true), ("spawn", false), ("", false)] {
        let text = ENVELOPE.replace("\"handoff\"", &format!("\"{kind}\""));
        assert_eq!(serde_json::from_str::<Envelope>(&text).is_ok(), fits, "{kind}");
    }
}

#[test]
fn optional_fields() {
    let schema = serde_json::to_value(envelope_schema()).expect("a schema is JSON");
    let optional =
        ["/payload/structured", "/payload/artifacts", "/payload/status", "/payload/response", "/contextRef", "/meta"];
    let further = ["/payload/status/reason", "/payload/response/replyTo"];
    for place in optional.iter().chain(&further) {
        let envelope = without(place);
        assert!(jsonschema::is_valid(&schema, &envelope), "{place}");
        // What is not there is not made up.
        passes::<Envelope>(&envelope.to_string());
    }
    for (expectation, fits) in [("none", true), ("optional", true), ("required", true), ("maybe", false)] {
        let text = ENVELOPE.replace("\"optional\"", &format!("\"{expectation}\""));
        assert_eq!(serde_json::from_str::<Envelope>(&text).is_ok(), fits, "{expectation}");
    }
}

#[test]
fn the_context_pack_passes_through_unchanged() {
    let pack: Pack = passes(PACK);
    assert_eq!(pack.definition_of_done, ["criteria1", "criteria2"]);
    let same: Value = serde_json::from_str(&pack.json()).expect("a pack is JSON");
    assert_eq!(same, serde_json::from_str::<Value>(PACK).expect("the example is JSON"));
}

#[test]
fn the_status_file_passes_through_unchanged() {
    for (word, state) in [
        ("pending", AgentState::Pending),
        ("running", AgentState::Running),
        ("completed", AgentState::Completed),
        ("failed", AgentState::Failed),
    ] {
        let status: AgentStatus = passes(&STATUS.replace("pending|running|completed|failed", word));
        assert_eq!(status.state, state);
        assert_eq!(status.summarize(), format!("{word} 3/5 analyzing_data (files_processed 12, outputs_generated 4)"));
    }
    assert!(AgentStatus::parse_status(STATUS).is_err_and(|problem| problem.contains("none of `pending`")));
    // What the protocol does not know is kept as well.
    passes::<AgentStatus>(r#"{"state": "running", "mood": [1], "progress": {"percent": 20}, "metrics": null}"#);
}

#[test]
fn the_error_of_a_failed_agent_passes_through_unchanged() {
    let status: AgentStatus = passes(FAILED);
    assert_eq!(AgentStatus::parse_status(FAILED), Ok(status));
}
