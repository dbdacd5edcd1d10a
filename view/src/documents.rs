//! The documents that `--json` and `--format json` print: each is a type, and has a schema.
//!
//! In: values of the other modules. Out: text, and JSON Schemas. [`DOCUMENTS`] is the only list of them: `swarmc schema`
//! prints their schemas, and the tests hold the outputs of the commands against them.

mod approval;
mod artifact;
mod check;
mod doctor;
mod run;
mod run_line;
mod stats;
mod step;
mod swarm;
mod test;

use std::borrow::Cow;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};

use crate::events::EventsLine;

pub use approval::{
    Approval, ApprovalAnswer, ApprovalDetails, ApprovalTimeout, ApprovalWants, RequestText, parse_json,
};
pub use artifact::{ArtifactText, ArtifactTurn, StepArtifact, content_digest};
pub use check::{Check, Diagnostic, Edit, Fix, Label, Position, Severity, Span};
pub use doctor::{Doctor, DoctorSpec, HomeState, ModelState, ProgramState, SpecProgram};
pub use run::{
    AgentAtWork, NodeConnection, Run, RunDetails, RunState, RunnerState, Runs, StepFiles, StepPaths, StepRow,
    StepStatus, WaitedFor, WaitingStep, WaitingSteps,
};
pub use run_line::{DivergenceCause, ResultStatus, RunLine, RunLineKind, RunResult, SkippedResult, TaskStream};
pub use stats::{
    CheckStats, Counts, Fields, FlowCounts, Largest, OutputCounts, PipelinePrompts, PipelineStats, PromptCounts,
    RouteCounts, SpecStats, StepCounts, Suppressions, SwarmStats,
};
pub use step::{
    NodeDetails, PromptPaths, ReceivedEnvelope, Refusal, SentEnvelope, StepDetails, ToolUse, Try, TurnPrompt,
};
pub use swarm::{AgentAction, AgentDetails, AgentTurn, MailboxMessage, StepSwarm, SwarmAgent, SwarmUsage, TurnResult};
pub use test::{Failure, TestCase, TestStatus, Tests};

/// A document that a command prints.
#[derive(Clone, Copy, Debug)]
pub struct Document {
    /// The word that `swarmc schema` takes.
    pub name: &'static str,
    /// What prints it.
    pub about: &'static str,
    /// Builds its schema.
    pub schema: fn() -> Schema,
}

/// Every document, and every other format that has a schema.
pub const DOCUMENTS: &[Document] = &[
    Document::new("plan", "An execution plan, as `swarmc plan` writes it", swarmc_plan::plan_schema),
    Document::new("envelope", "An envelope, as agents receive it", swarmc_runtime::handoff::envelope_schema),
    Document::new("handoff", "A handoff, as agents send it", swarmc_runtime::handoff::handoff_schema),
    Document::new("check", "What `swarmc check --format json` prints", build_schema::<Check>),
    Document::new("test", "What `swarmc test --format json` prints", build_schema::<Tests>),
    Document::new("run", "A line of `swarmc run --json` and `resume --json`", build_schema::<RunLine>),
    Document::new("events", "A line of `swarmc run --events` and `resume --events`", build_schema::<EventsLine>),
    Document::new("ps", "What `swarmc ps --json` prints", build_schema::<Runs>),
    Document::new("inspect", "What `swarmc inspect RUN --json` prints", build_schema::<RunDetails>),
    Document::new("inspect-step", "What `swarmc inspect RUN STEP --json` prints", build_schema::<StepDetails>),
    Document::new("inspect-agent", "What `swarmc inspect RUN STEP AGENT --json` prints", build_schema::<AgentDetails>),
    Document::new(
        "inspect-artifact",
        "What `swarmc inspect RUN REFERENCE --json` prints",
        build_schema::<ArtifactText>,
    ),
    Document::new("doctor", "What `swarmc doctor --json` prints", build_schema::<Doctor>),
    Document::new("doctor-spec", "What `swarmc doctor SPEC --json` prints", build_schema::<DoctorSpec>),
];

impl Document {
    const fn new(name: &'static str, about: &'static str, schema: fn() -> Schema) -> Document {
        Document { name, about, schema }
    }
}

/// The document of this name.
pub fn find_document(name: &str) -> Option<&'static Document> {
    DOCUMENTS.iter().find(|document| document.name == name)
}

/// A document as one line of JSON, with its fields in the order in which its type has them.
pub fn encode<T: Serialize>(document: &T) -> String {
    serde_json::to_string(document).expect("the keys of documents are texts, and their paths UTF-8")
}

/// The schema of what is written: a field that is always there is required.
fn build_schema<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>()
}

/// The version of a document; it is raised when a field goes or changes its meaning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Version;

/// What [`Version`] stands for.
const VERSION: u32 = 1;

impl Serialize for Version {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u32(VERSION)
    }
}

impl JsonSchema for Version {
    fn schema_name() -> Cow<'static, str> {
        "Version".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "const": VERSION })
    }
}
