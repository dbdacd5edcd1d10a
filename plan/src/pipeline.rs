//! Pipelines and their steps.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::provider::Environment;
use crate::{Expression, Origin, Param, Template};

/// A graph of steps that is walked once a round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pipeline {
    /// Its name.
    pub name: String,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its own inputs, in declaration order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub params: Vec<Param>,
    /// How often it goes round.
    pub iteration: Iteration,
    /// How many independent instances run, named `NAME.1` to `NAME.N` where there is more than one.
    pub parallelism: u32,
    /// How many steps may run at once, over all instances; none is the number of processors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    /// Whether an unhandled failure keeps further steps from starting.
    #[serde(default, skip_serializing_if = "crate::is_false")]
    pub fail_fast: bool,
    /// Where its processes run, relative to the workspace; none is the workspace itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_dir: Option<String>,
    /// Variables of its processes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Environment,
    /// The steps, in declaration order.
    pub steps: Vec<Step>,
    /// The steps whose output is the pipeline's value: the first of them that succeeded. Empty: it has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub result: Vec<String>,
    /// Where it is declared.
    pub origin: Origin,
}

/// How a pipeline repeats.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Iteration {
    /// The rounds at most, 1 or more.
    pub max: u32,
    /// Any of these that holds after a round ends the repetition. One that reads a missing value does not hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub until: Vec<Expression>,
    /// The steps whose status, exit code or error an `until` reads: their failures are handled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub handles: Vec<String>,
    /// What an unhandled failure in a round does.
    pub on_failure: RoundFailure,
    /// What it means that no `until` ever held.
    pub exhausted: Exhausted,
}

/// What an unhandled failure in a round does to the rounds after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RoundFailure {
    /// No further round starts, and the pipeline has failed.
    #[default]
    Stop,
    /// The next round starts; the last round decides.
    Continue,
}

/// What it means when no `until` held after the last round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Exhausted {
    /// The pipeline has failed.
    #[default]
    Fail,
    /// The pipeline has succeeded.
    Success,
}

/// One step of a pipeline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    /// How the declared needs combine; implied needs must hold besides.
    #[serde(default, skip_serializing_if = "is_default")]
    pub join: Join,
    /// What must be true besides, once the needs hold; otherwise the step is skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<Expression>,
    /// What the step's failure means.
    #[serde(default, skip_serializing_if = "is_default")]
    pub on_failure: OnFailure,
    /// What it does.
    pub body: Body,
    /// The ports: a name of this step for another step's output.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub inputs: BTreeMap<String, String>,
    /// What becomes of what it prints.
    pub output: Output,
    /// Further attempts.
    pub retry: Retry,
    /// The wall time of one attempt at most, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The time without a byte of output at most, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_ms: Option<u64>,
    /// How long a command-line agent that has reported its result may take to exit, in milliseconds; then it is ended,
    /// and counts as done.
    pub grace_ms: u64,
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
    /// Variables of its processes, after the pipeline's and the provider's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Environment,
    /// What its process reads on standard input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin: Option<Template>,
    /// Where it is declared.
    pub origin: Origin,
}

/// What a step does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Body {
    /// One turn of an agent.
    Prompt(PromptBody),
    /// A command; its output is its stdout without the final newline.
    Run(Command),
    /// A computed text.
    Value(Template),
    /// A computed record of texts.
    Fields(Fields),
    /// The end of the pipeline.
    Stop {
        /// How it ends.
        status: StopStatus,
        /// Why.
        message: Template,
    },
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
}

/// A process to start in the workspace. Never a template.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// An argument vector, program first.
    Argv(Vec<String>),
    /// A line for `sh -c`.
    Shell(String),
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

/// One step that another waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Need {
    /// The step waited for.
    pub step: String,
    /// How it must have ended.
    pub when: When,
    /// Whether it was written (`depends-on`) rather than implied by a reference.
    #[serde(default, skip_serializing_if = "crate::is_false")]
    pub declared: bool,
    /// What the step's running does for a failure of the other one.
    #[serde(default, skip_serializing_if = "is_default")]
    pub effect: Effect,
    /// What made it: the `depends-on`, or the reference.
    pub origin: Origin,
}

/// Whether a dependant that ran makes up for a failure.
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// It is a failure.
    #[default]
    Fail,
    /// The step counts as skipped.
    Skip,
}

/// What becomes of a step's output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Output {
    /// The bytes kept at most, cut at a character; the tail stays.
    pub max_bytes: u64,
    /// The value when the step failed or was skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

/// Further attempts after a failed one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Retry {
    /// How many further attempts.
    pub times: u32,
    /// The wait before the first of them in milliseconds; doubled before each next one.
    pub backoff_ms: u64,
    /// The longest wait in milliseconds.
    pub max_backoff_ms: u64,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
