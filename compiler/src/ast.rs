//! The typed tree: what was written, with spans, and with holes where something could not be read.

use swarmc_plan as plan;

use crate::source::Span;
use crate::syntax::Text;

/// Something with its place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Spanned<T> {
    pub value: T,
    pub span: Span,
}

/// A name with its place.
pub(crate) type Name = Spanned<String>;

/// A spec.
#[derive(Debug, Default)]
pub(crate) struct Spec {
    pub workflow: Option<Workflow>,
    pub params: Vec<Param>,
    pub secrets: Vec<Secret>,
    pub providers: Vec<Provider>,
    pub agents: Vec<Agent>,
    pub prompts: Vec<Prompt>,
    pub pipelines: Vec<Pipeline>,
    pub allows: Vec<Allow>,
}

#[derive(Debug)]
pub(crate) struct Workflow {
    pub name: Name,
    pub description: Option<String>,
    pub default: Option<Name>,
}

#[derive(Debug)]
pub(crate) struct Param {
    pub name: Name,
    pub kind: plan::ParamType,
    pub optional: bool,
    pub default: Option<Name>,
    pub description: Option<String>,
}

#[derive(Debug)]
pub(crate) struct Secret {
    pub name: Name,
    pub env: String,
}

#[derive(Debug)]
pub(crate) struct Provider {
    pub name: Name,
    pub preset: Option<Name>,
    pub exec: Option<Line>,
    pub script: Option<Script>,
    pub args: Vec<Text>,
    pub delivery: Option<Spanned<plan::PromptDelivery>>,
    pub reads: Option<Spanned<plan::Format>>,
    pub model_flag: Option<String>,
    pub system_flag: Option<String>,
    pub env: Vec<Variable>,
    pub install: Option<String>,
}

/// Recorded answers.
#[derive(Debug)]
pub(crate) struct Script {
    pub answers: Vec<Answer>,
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub text: Option<Source>,
    pub task: Option<Name>,
    pub iteration: Option<u32>,
    pub attempt: Option<u32>,
    pub exit: i32,
    pub delay_ms: u64,
}

/// A variable of an environment.
#[derive(Debug)]
pub(crate) enum Variable {
    /// A secret, or a variable of the caller.
    Named(Name),
    /// One that is set.
    Set(String, Text),
}

#[derive(Debug)]
pub(crate) struct Agent {
    pub name: Name,
    pub provider: Option<Name>,
    pub model: Option<String>,
    pub description: Option<String>,
    pub system: Option<Source>,
}

#[derive(Debug)]
pub(crate) struct Prompt {
    pub name: Name,
    pub text: Option<Source>,
}

/// Where a text comes from.
#[derive(Debug)]
pub(crate) enum Source {
    Inline(Text),
    File(Text),
    Ref(Name),
}

#[derive(Debug)]
pub(crate) struct Pipeline {
    pub name: Name,
    pub description: Option<String>,
    pub params: Vec<Param>,
    pub iterations: u32,
    pub on_failure: plan::RoundFailure,
    pub exhausted: plan::Exhausted,
    pub until: Vec<Text>,
    pub parallelism: u32,
    pub concurrency: Option<u32>,
    pub result: Vec<Name>,
    pub fail_fast: bool,
    pub env: Vec<Variable>,
    pub working_dir: Option<Text>,
    pub steps: Vec<Step>,
}

#[derive(Debug)]
pub(crate) struct Step {
    pub name: Name,
    pub description: Option<String>,
    pub needs: Vec<Dependency>,
    pub join: Spanned<plan::Join>,
    pub when: Option<Text>,
    pub on_failure: plan::OnFailure,
    pub body: Option<Body>,
    pub agent: Option<Name>,
    pub prefix: Option<Source>,
    pub suffix: Option<Source>,
    pub output_max: u64,
    pub output_default: Option<String>,
    pub inputs: Vec<Input>,
    pub retry: plan::Retry,
    pub timeout_ms: Option<u64>,
    pub idle_ms: Option<u64>,
    pub grace_ms: u64,
    pub checks: Vec<Line>,
    pub concurrency: Option<u32>,
    pub reads: Vec<Text>,
    pub writes: Vec<Text>,
    pub env: Vec<Variable>,
    pub stdin: Option<Text>,
}

/// A `depends-on` of one step.
#[derive(Debug)]
pub(crate) struct Dependency {
    pub step: Name,
    pub when: plan::When,
}

#[derive(Debug)]
pub(crate) struct Input {
    pub name: Name,
    pub from: Name,
}

#[derive(Debug)]
pub(crate) enum Body {
    Prompt(Source),
    Run(Line),
    Script(Text),
    Value(Text),
    Fields(Vec<(Name, Text)>),
    Stop { status: plan::StopStatus, message: Option<Text> },
}

/// The words of a command, as written.
#[derive(Debug)]
pub(crate) struct Line {
    pub words: Vec<Text>,
}

/// A suppression.
#[derive(Debug)]
pub(crate) struct Allow {
    pub code: Name,
    pub reason: Option<String>,
    /// The node itself, or the comment.
    pub span: Span,
    /// Where it holds; the whole file and what it reads for one at the top level.
    pub scope: Scope,
}

/// Where a suppression holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Scope {
    /// Everywhere.
    Everywhere,
    /// In this place.
    Within(Span),
}
