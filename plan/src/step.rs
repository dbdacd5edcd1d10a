//! Steps: what they wait for, what they do, and how their output is kept.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::body::Body;
use crate::provider::Environment;
use crate::{Budget, DirectiveKind, Expression, FileProtocol, Iteration, Origin, Schema, Template};

/// One step of a pipeline.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Its name, unique in the pipeline.
    pub name: String,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What must have settled, and how, before it starts. At most one entry for each step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<Need>,
    /// How the declared needs combine; implied needs must hold too.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub join: Join,
    /// A condition that must hold too, after the needs; otherwise the step is skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<Expression>,
    /// What the step's failure means.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub on_failure: OnFailure,
    /// What it does.
    pub body: Body,
    /// Runs the body once for each item of a list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub for_each: Option<ForEach>,
    /// The conversation that this turn continues: tasks of one agent with one session name, inside one pipeline
    /// instance, call or item. Without it, every turn starts a new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The ports: a name of this step for another step's output.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub inputs: BTreeMap<String, String>,
    /// How its output is read and kept.
    pub output: Output,
    /// Further attempts.
    pub retry: Retry,
    /// The wall time of one attempt at most, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The time without a byte of output at most, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_ms: Option<u64>,
    /// How long a command-line agent that has reported its result may take to exit, in milliseconds; then the runner
    /// ends it, and it counts as done.
    pub grace_ms: u64,
    /// Whether its processes outlive a runner that is killed; none where [`crate::Plan::survive`] says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub survives: Option<bool>,
    /// The pool whose workers carry its processes out in a run with an engine; by default `default`. A pool that its
    /// agent or its pipeline declares is written here too, for steps that start processes. In a swarm,
    /// [`crate::Agent::pool`] comes first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// After how many turns in a row with the same output, messages and changes, or attempts that fail the same check,
    /// the runner asks a person whether it goes on; 0 is never.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub stall: u32,
    /// Whether the runner keeps the end of what its command writes to both streams, at most 64 KiB, because a text
    /// reads it.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub keeps_log: bool,
    /// Commands that must exit with 0 after the body, in order; otherwise the attempt failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<Command>,
    /// How many of this step may run at once, over all instances of the pipeline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    /// The files it reads, as globs relative to the workspace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reads: Vec<String>,
    /// The files it writes, as globs relative to the workspace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writes: Vec<String>,
    /// Whether a run with `--reuse` may take its result from an earlier run: `false` is never, `true` also where it may
    /// read files that `reads` does not name. None: by what it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reuse: Option<bool>,
    /// The working tree that its processes run in, by name; by default the pipeline's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<String>,
    /// The inputs and outputs of its agent in the workspace of the file protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<FileProtocol>,
    /// What it may use at most, over all its attempts; of a for-each, each item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// Variables of its processes, after the pipeline's and the provider's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Environment,
    /// What its process reads on standard input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin: Option<Template>,
    /// Where it is declared.
    pub origin: Origin,
}

/// A pipeline called as a function.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// The pipeline, by name.
    pub pipeline: String,
    /// Its parameters. A parameter that is left out has its default.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub params: BTreeMap<String, Template>,
}

/// A swarm started by a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SwarmCall {
    /// The swarm, by name.
    pub swarm: String,
    /// Its goal; by default the one that it declares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<Template>,
}

/// A question to a person.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Gate {
    /// What the person reads.
    pub message: Template,
    /// The choices, in order, at least one.
    pub options: Vec<String>,
    /// The fields that the person fills in, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ask: Vec<Ask>,
    /// What is chosen when no person decides in time; without it, the gate waits for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_timeout: Option<GateTimeout>,
    /// What is chosen at once in an unattended run (`--headless`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headless: Option<GateDefault>,
}

/// What a person may decide about a failed step with `on-failure escalate`.
const ESCALATED: [&str; 3] = ["retry", "skip", "fail"];

impl Step {
    /// The further turns of one attempt at most, in which its agent mends its answer. A text of no type has nothing to
    /// mend, but for the operations in it where edges lead to the step or away from it.
    #[must_use]
    pub fn most_repairs(&self, has_edges: bool) -> u32 {
        if self.output.schema.is_some() || has_edges { self.output.repair } else { 0 }
    }

    /// Whether its prompt or its standard input contains `<<inbox>>`: if it can receive envelopes, its first turn waits
    /// for one.
    pub fn says_inbox(&self) -> bool {
        let prompt = match &self.body {
            Body::Prompt(body) => Some(&body.prompt),
            _ => None,
        };
        prompt.into_iter().chain(&self.stdin).any(|text| text.reads_kind(DirectiveKind::Inbox))
    }

    /// Whether its turns read its inbox, so that an envelope gives it a turn: a command that does not read it would
    /// only repeat its work.
    pub fn reads_inbox(&self) -> bool {
        matches!(self.body, Body::Prompt(_)) || self.files.is_some() || self.says_inbox()
    }

    /// The question to a person about the step: that of its gate, or what to do about its failure. In an unattended run
    /// the step fails.
    pub fn effective_gate(&self) -> Option<Cow<'_, Gate>> {
        match (&self.body, &self.on_failure) {
            (Body::Gate(gate), _) => Some(Cow::Borrowed(gate)),
            (_, OnFailure::Escalate) => Some(Cow::Owned(Gate {
                message: Template::default(),
                options: ESCALATED.map(str::to_owned).to_vec(),
                ask: Vec::new(),
                on_timeout: None,
                headless: Some(GateDefault::Fail),
            })),
            _ => None,
        }
    }
}

/// A field that a gate asks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    /// Its name.
    pub name: String,
    /// What it must be.
    pub schema: Schema,
    /// Whether it may be left out.
    #[serde(default, skip_serializing_if = "crate::is_false")]
    pub optional: bool,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// What a gate does without an answer in time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GateTimeout {
    /// The choice that is then taken.
    pub then: GateDefault,
    /// After how many milliseconds.
    pub after_ms: u64,
}

/// A choice without a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GateDefault {
    /// This option.
    Option(String),
    /// The gate fails.
    Fail,
}

/// Steps that repeat.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Loop {
    /// How often, and until when. An unhandled failure in a round always fails the loop.
    pub iteration: Iteration,
    /// The steps, in declaration order.
    pub steps: Vec<Step>,
}

/// A body that runs once for each item of a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ForEach {
    /// The list.
    pub list: Expression,
    /// How many items run at once; by default as many as the pipeline allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel: Option<u32>,
    /// Which items must succeed.
    pub join: EachJoin,
    /// The schema of a result that holds its item, `{"item": …, "output": …}`. The results are the outputs alone, when
    /// left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<Schema>,
}

/// When a for-each has succeeded. All items run in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EachJoin {
    /// When every item has succeeded.
    #[default]
    All,
    /// When at least one item has succeeded, or there is no item.
    Any,
    /// When every item has ended.
    Settled,
}

/// The fields of a computed record, by name.
pub type Fields = BTreeMap<String, Template>;

/// One turn of an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PromptBody {
    /// The agent, by name.
    pub agent: String,
    /// What it is asked, prefix and suffix included.
    pub prompt: Template,
    /// The context packs that stand before the prompt, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<String>,
}

/// A process to start in the workspace. Never a template.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// An argument vector, program first.
    Argv(Vec<String>),
    /// A line for `sh -c`.
    Shell(String),
    /// A script of the workspace.
    Script {
        /// The argument vector; the script is its last word, relative to the folder that the command starts in.
        argv: Vec<String>,
        /// The script, relative to the workspace.
        file: String,
    },
}

/// How a pipeline that reached a `stop` ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StopStatus {
    /// As done.
    #[default]
    Success,
    /// As failed.
    Failure,
}

/// A step that another step waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Need {
    /// The step waited for.
    pub step: String,
    /// How it must have ended.
    pub when: When,
    /// Whether it was written (`depends-on`), not implied by a reference.
    #[serde(default, skip_serializing_if = "crate::is_false")]
    pub declared: bool,
    /// Whether the step handles a failure of the other one.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub effect: Effect,
    /// The place of the `depends-on`, or of the reference.
    pub origin: Origin,
}

/// Whether a dependent step that ran handles a failure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// It does not.
    #[default]
    None,
    /// It does: `when=failure` or `any`, or a reader of status, exit or error.
    Handles,
}

/// How a step must have ended for a need to hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// Succeeded.
    #[default]
    Success,
    /// Failed.
    Failure,
    /// Succeeded or failed.
    Any,
    /// Settled in any way.
    Always,
}

/// How the declared needs of a step combine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Join {
    /// Every one holds, else the step is skipped.
    #[default]
    All,
    /// All have settled and at least one holds.
    Any,
    /// All have settled, none failed, at least one succeeded.
    NoneFailed,
}

/// What a step's failure means for the pipeline.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// It is a failure.
    #[default]
    Fail,
    /// The step counts as skipped.
    Skip,
    /// The agent of this name gets one turn to fix the cause; then the step runs once more.
    Fix(String),
    /// A person decides: to run it once more, to skip it, or to let it fail.
    Escalate,
}

/// How a step's output is read and kept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Output {
    /// The bytes kept at most, cut at a character; the tail stays.
    pub max_bytes: u64,
    /// The value when the step failed or was skipped: text, or JSON where there is a `schema`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// The JSON Schema of the value; without it, the value is text. In a for-each it describes one item, and the value
    /// is a list of items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Schema>,
    /// How often an agent is asked again within one attempt, with the faults of its answer.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub repair: u32,
}

/// Further attempts after a failed one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Retry {
    /// Whether an attempt that starts again after a crash of its runner begins a new conversation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fresh: bool,
    /// How many further attempts.
    pub times: u32,
    /// The wait before the first of them in milliseconds; doubled before each next one.
    pub backoff_ms: u64,
    /// The longest wait in milliseconds.
    pub max_backoff_ms: u64,
}
