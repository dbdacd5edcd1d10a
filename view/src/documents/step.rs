//! A step with all that is known of it, as `swarmc inspect RUN STEP --json` prints it.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use swarmc_plan::{Ask, Gate};
use swarmc_runtime::AgentFiles;
use swarmc_runtime::handoff::Report;

use super::Version;
use super::approval::ApprovalDetails;
use super::artifact::StepArtifact;
use super::run::{NodeConnection, StepPaths, StepRow, WaitedFor};
use super::swarm::StepSwarm;

/// What `swarmc inspect RUN STEP --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct StepDetails {
    /// What `inspect RUN` says of it.
    #[serde(flatten)]
    pub row: StepRow,
    /// The version of this form.
    pub version: Version,
    /// The run.
    pub run: String,
    /// Its attempts.
    pub tries: Vec<Try>,
    /// What its agents asked for.
    pub approvals: Vec<ApprovalDetails>,
    /// What a person is asked, where it is a gate without an answer.
    pub gate: Option<OpenGate>,
    /// What it is as a node.
    #[serde(flatten)]
    pub node: NodeDetails,
    /// What its swarm did, where it is one.
    pub swarm: Option<StepSwarm>,
}

/// A gate that waits for an answer, as `swarmc approve` takes one.
#[derive(Debug, Serialize, JsonSchema)]
pub struct OpenGate {
    /// What the person reads.
    pub message: String,
    /// The choices, in order; none where several steps have its name.
    pub options: Vec<String>,
    /// The fields that the person fills in, in order.
    pub asks: Vec<GateField>,
}

/// A field that a person fills in.
#[derive(Debug, Serialize, JsonSchema)]
pub struct GateField {
    /// Its name.
    pub name: String,
    /// Whether it may be left out.
    pub optional: bool,
    /// What it is for.
    pub description: Option<String>,
}

impl OpenGate {
    /// The gate as its plan declares it, where that is known.
    pub fn new(message: String, declared: Option<&Gate>) -> OpenGate {
        let field = |ask: &Ask| GateField {
            name: ask.name.clone(),
            optional: ask.optional,
            description: ask.description.clone(),
        };
        OpenGate {
            message,
            options: declared.map(|gate| gate.options.clone()).unwrap_or_default(),
            asks: declared.iter().flat_map(|gate| &gate.ask).map(field).collect(),
        }
    }
}

/// An attempt.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Try {
    /// Its number, from 1.
    pub attempt: u32,
    /// The agent that sums up files in it; null in others.
    pub summarizer: Option<String>,
    /// Its files.
    pub paths: StepPaths,
    /// What an agent that works by files was given and left.
    pub files: Option<AgentFiles>,
    /// What the agent reported last.
    pub report: Option<Report>,
}

/// What a step that takes part in handoffs, or whose turns were given something, has of it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct NodeDetails {
    /// How it stands with its agent.
    pub connection: Option<NodeConnection>,
    /// The envelopes that came.
    pub incoming: Vec<ReceivedEnvelope>,
    /// The envelopes that it sent.
    pub outgoing: Vec<SentEnvelope>,
    /// Of its artifacts, the diffs.
    pub diffs: Vec<StepArtifact>,
    /// Its artifacts.
    pub artifacts: Vec<StepArtifact>,
    /// The tools that its turns used.
    pub tools: Vec<ToolUse>,
    /// What people should know of its turns: that its agent started no tools, for example.
    pub notices: Vec<AttemptNotice>,
    /// What was refused.
    pub refused: Vec<Refusal>,
    /// What its turns were told.
    pub prompts: Vec<TurnPrompt>,
    /// The steps that it waits for.
    pub pending: Vec<WaitedFor>,
}

/// An envelope that came.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ReceivedEnvelope {
    /// When it was sent, in milliseconds since 1970.
    pub at: u64,
    /// The turn that read it.
    pub read_in: Option<u32>,
    /// It as it was sent.
    pub envelope: Value,
}

/// An envelope that was sent.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SentEnvelope {
    /// When it was sent, in milliseconds since 1970.
    pub at: u64,
    /// The turn that sent it.
    pub sent_in: Option<u32>,
    /// It as it was sent.
    pub envelope: Value,
}

/// One use of a tool.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ToolUse {
    /// The attempt that used it.
    pub turn: u32,
    /// The tool.
    pub tool: String,
    /// Its arguments, as they were written.
    pub arguments: String,
    /// When it began, in milliseconds since 1970.
    pub at: u64,
    /// When it ended, in milliseconds since 1970.
    pub ended_ms: Option<u64>,
    /// Whether it worked.
    pub ok: Option<bool>,
    /// What came of it, or why it failed.
    pub text: Option<String>,
}

/// Something that people should know of an attempt.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AttemptNotice {
    /// The attempt.
    pub turn: u32,
    /// When it was reported, in milliseconds since 1970.
    pub at: u64,
    /// What, as one line.
    pub text: String,
}

/// Something that was refused.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Refusal {
    /// The attempt.
    pub turn: u32,
    /// What, and why.
    pub why: String,
}

/// What a turn was told.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TurnPrompt {
    /// The attempt.
    pub turn: u32,
    /// The fallback that was asked, from 1; 0 is the task's own agent.
    pub fallback: usize,
    /// Which of the turns that mended an answer it was; 0 is the one before them.
    pub repair: u32,
    /// Its files.
    pub paths: PromptPaths,
    /// The blocks of the prompt with their sizes and digests.
    pub effective: Value,
}

/// The files of what a turn was told, those that there are.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct PromptPaths {
    /// What was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<PathBuf>,
    /// The whole of it, where only what is new was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub full: Option<PathBuf>,
    /// What the agent was told before that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<PathBuf>,
    /// The blocks of the prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocks: Option<PathBuf>,
}

impl PromptPaths {
    /// Each path with its word.
    pub fn list(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let all = [("prompt", &self.prompt), ("full", &self.full), ("system", &self.system), ("blocks", &self.blocks)];
        all.into_iter().filter_map(|(kind, path)| Some((kind, path.as_deref()?)))
    }
}
