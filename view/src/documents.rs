//! The documents that `--json` and `--format json` print: each is a type, and has a schema.
//!
//! In: values of the other modules. Out: text, and JSON Schemas. [`DOCUMENTS`] is the only list of them: `swarmc schema`
//! prints their schemas, and the tests hold the outputs of the commands against them. The schemas are files under
//! `view/schemas`, made from the types by a test: so the binary has no code that makes them, and a change of a public
//! format shows in a diff.

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

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};

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
    AttemptNotice, GateField, NodeDetails, OpenGate, PromptPaths, ReceivedEnvelope, Refusal, SentEnvelope, StepDetails,
    ToolUse, Try, TurnPrompt,
};
pub use swarm::{AgentAction, AgentDetails, AgentTurn, MailboxMessage, StepSwarm, SwarmAgent, SwarmUsage, TurnResult};
pub use swarm::{ConflictDocument, PlanItem, TeamPlanDocument, WorktreeDocument};
pub use test::{Failure, TestCase, TestStatus, Tests};

/// A document that a command prints.
#[derive(Clone, Copy, Debug)]
pub struct Document {
    /// The word that `swarmc schema` takes.
    pub name: &'static str,
    /// What prints it.
    pub about: &'static str,
    /// Its JSON Schema (draft 2020-12), as text that ends with a line break.
    pub schema: &'static str,
}

/// A row of [`DOCUMENTS`], whose schema is the file of its name.
macro_rules! document {
    ($name:literal, $about:literal) => {
        Document { name: $name, about: $about, schema: include_str!(concat!("../schemas/", $name, ".json")) }
    };
}

/// Every document, and every other format that has a schema.
pub const DOCUMENTS: &[Document] = &[
    document!("plan", "An execution plan, as `swarmc plan` writes it"),
    document!("envelope", "An envelope, as agents receive it"),
    document!("handoff", "A handoff, as agents send it"),
    document!("check", "What `swarmc check --format json` prints"),
    document!("test", "What `swarmc test --format json` prints"),
    document!("run", "A line of `swarmc run --json` and `resume --json`"),
    document!("events", "A line of `swarmc run --events` and `resume --events`"),
    document!("ps", "What `swarmc ps --json` prints"),
    document!("inspect", "What `swarmc inspect RUN --json` prints"),
    document!("inspect-step", "What `swarmc inspect RUN STEP --json` prints"),
    document!("inspect-agent", "What `swarmc inspect RUN STEP AGENT --json` prints"),
    document!("inspect-artifact", "What `swarmc inspect RUN REFERENCE --json` prints"),
    document!("doctor", "What `swarmc doctor --json` prints"),
    document!("doctor-spec", "What `swarmc doctor SPEC --json` prints"),
];

/// The document of this name.
pub fn find_document(name: &str) -> Option<&'static Document> {
    DOCUMENTS.iter().find(|document| document.name == name)
}

/// A document as one line of JSON, with its fields in the order in which its type has them.
pub fn encode<T: Serialize>(document: &T) -> String {
    serde_json::to_string(document).expect("the keys of documents are texts, and their paths UTF-8")
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

#[cfg(test)]
mod tests {
    use schemars::generate::SchemaSettings;

    use super::*;
    use crate::events::EventsLine;

    /// Builds the schemas, in the order of [`DOCUMENTS`].
    const SCHEMAS: &[fn() -> Schema] = &[
        swarmc_plan::plan_schema,
        swarmc_runtime::handoff::envelope_schema,
        swarmc_runtime::handoff::handoff_schema,
        build_schema::<Check>,
        build_schema::<Tests>,
        build_schema::<RunLine>,
        build_schema::<EventsLine>,
        build_schema::<Runs>,
        build_schema::<RunDetails>,
        build_schema::<StepDetails>,
        build_schema::<AgentDetails>,
        build_schema::<ArtifactText>,
        build_schema::<Doctor>,
        build_schema::<DoctorSpec>,
    ];

    /// The schema of what is written: a field that is always there is required.
    fn build_schema<T: JsonSchema>() -> Schema {
        SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>()
    }

    #[test]
    fn the_schemas_are_those_of_the_types() {
        assert_eq!(SCHEMAS.len(), DOCUMENTS.len());
        for (document, build) in DOCUMENTS.iter().zip(SCHEMAS) {
            let expected = serde_json::to_string_pretty(&build()).unwrap() + "\n";
            if std::env::var_os("BLESS").is_some_and(|value| value == "1") {
                let path = concat!(env!("CARGO_MANIFEST_DIR"), "/schemas").to_owned();
                std::fs::write(format!("{path}/{}.json", document.name), &expected).unwrap();
                continue;
            }
            assert_eq!(document.schema, expected, "{} is stale: run `tests/run bless`", document.name);
        }
    }
}
