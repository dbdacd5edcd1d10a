//! The typed tree of a pipeline's steps: their options and their bodies.

use std::sync::Arc;

use swarmc_plan as plan;

use super::{Budget, Dependency, Field, Input, Line, Name, Source, Spanned, TypeExpr, Variable};
use crate::source::Span;
use crate::syntax::Text;

/// A `task`, a `gate`, a `loop` or a `stop`; the body says which.
#[derive(Debug)]
pub(crate) struct Step {
    pub name: Name,
    pub description: Option<String>,
    pub needs: Vec<Dependency>,
    pub join: Spanned<plan::Join>,
    pub when: Option<Arc<Text>>,
    pub on_failure: OnFailure,
    pub body: Option<Body>,
    pub agent: Option<Name>,
    /// The model that its agent uses here; none once an agent of its own stands for that.
    pub model: Option<Name>,
    pub prefix: Option<Source>,
    pub suffix: Option<Source>,
    /// Context packs of its prompt, in order.
    pub context: Vec<Name>,
    pub output: Output,
    pub inputs: Vec<Input>,
    /// The conversation that the turn belongs to.
    pub session: Option<Name>,
    pub for_each: Option<ForEach>,
    pub retry: plan::Retry,
    pub timeout_ms: Option<u64>,
    pub idle_ms: Option<u64>,
    pub grace_ms: u64,
    pub survives: Option<bool>,
    /// The pool of workers; none: that of its agent or its pipeline.
    pub pool: Option<String>,
    /// The number of equal turns in a row after which the run asks whether to go on; 3 by default in a step with turns.
    pub stall: u32,
    /// Whether the spec writes `stall`.
    pub stalls: bool,
    pub checks: Vec<Line>,
    pub concurrency: Option<u32>,
    pub reads: Vec<Text>,
    pub writes: Vec<Text>,
    /// Whether its result may be reused; by what it does, when left out.
    pub reuse: Option<bool>,
    pub worktree: Option<Worktree>,
    pub files: Option<Box<Files>>,
    pub env: Vec<Variable>,
    pub stdin: Option<Text>,
    pub budget: Option<Budget>,
}

/// What becomes of what a step prints.
#[derive(Debug)]
pub(crate) struct Output {
    /// Its type; text when left out.
    pub kind: Option<TypeExpr>,
    pub max: u64,
    /// Whether `max` was written.
    pub limited: bool,
    pub default: Option<Name>,
    /// Turns to mend an answer that does not fit the type.
    pub repair: u32,
    /// The `output` node, where there is one.
    pub span: Option<Span>,
}

/// What a step's failure means.
#[derive(Debug, PartialEq)]
pub(crate) enum OnFailure {
    Fail,
    Skip,
    /// The agent gets one turn, then the step runs once more.
    Fix(Name),
    /// A person decides.
    Escalate(Span),
}

/// Runs the body once for each item of a list.
#[derive(Debug)]
pub(crate) struct ForEach {
    pub list: EachList,
    /// How many items at once; as many as may run when left out.
    pub parallel: Option<Spanned<u32>>,
    pub join: plan::EachJoin,
    /// Whether the results are records of the item and its output.
    pub with_item: bool,
    pub span: Span,
}

/// Where the list of a for-each is.
#[derive(Debug)]
pub(crate) enum EachList {
    Expression(Arc<Text>),
    /// The path of a JSON file.
    File(Text),
}

#[derive(Debug)]
pub(crate) enum Body {
    Prompt(Source),
    Run(Line),
    Script(Text),
    Value(Text),
    Fields(Vec<(Name, Text)>),
    /// A pipeline as a function; a parameter stands once at most.
    Call {
        pipeline: Name,
        args: Vec<(Name, Text)>,
    },
    Swarm {
        swarm: Name,
        goal: Option<Text>,
    },
    Gate(Gate),
    Loop(Loop),
    Stop {
        status: plan::StopStatus,
        message: Option<Text>,
    },
}

impl Body {
    pub(crate) fn kind(&self) -> plan::StepKind {
        match self {
            Body::Prompt(_) => plan::StepKind::Prompt,
            Body::Run(_) | Body::Script(_) => plan::StepKind::Run,
            Body::Value(_) | Body::Fields(_) => plan::StepKind::Value,
            Body::Call { .. } => plan::StepKind::Call,
            Body::Swarm { .. } => plan::StepKind::Swarm,
            Body::Gate(_) => plan::StepKind::Gate,
            Body::Loop(_) => plan::StepKind::Loop,
            Body::Stop { .. } => plan::StepKind::Stop,
        }
    }
}

/// A decision of a person.
#[derive(Debug)]
pub(crate) struct Gate {
    pub message: Option<Text>,
    /// At least one, each once; `fail` is none of them.
    pub options: Vec<Name>,
    /// What the person fills in besides.
    pub asks: Vec<Field>,
    pub on_timeout: Option<OnTimeout>,
    /// The decision in a run that no person attends: an option, or `fail`.
    pub headless: Option<Name>,
}

/// The decision that a gate takes when no person answers in time.
#[derive(Debug)]
pub(crate) struct OnTimeout {
    /// An option, or `fail`.
    pub choice: Name,
    pub after_ms: Spanned<u64>,
}

/// Steps that repeat.
#[derive(Debug)]
pub(crate) struct Loop {
    /// The rounds at most; missing is SW304.
    pub max: Option<Spanned<u32>>,
    pub exhausted: plan::Exhausted,
    pub until: Vec<Arc<Text>>,
    pub steps: Vec<Step>,
}

/// A checkout of its own; those with one name share it.
#[derive(Debug)]
pub(crate) struct Worktree {
    pub name: Option<Name>,
    pub span: Span,
}

/// The files that an agent gets and leaves, beside its prompt and its answer.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    /// The file that becomes `SKILL.md`.
    pub skill: Option<Text>,
    pub inputs: Vec<FileInput>,
    /// The bytes of an input that are copied at most.
    pub copy_max: u64,
    pub outputs: Vec<FileOutput>,
    pub requirements: Vec<Text>,
    pub criteria: Vec<Text>,
    pub constraints: Vec<Text>,
    /// Tasks that must have succeeded first, whether or not their files are copied.
    pub wait_for: Vec<Name>,
    pub span: Span,
}

/// What lies in the inbox.
#[derive(Clone, Debug)]
pub(crate) struct FileInput {
    /// A path of the workspace, or in the outbox of `from`.
    pub path: Text,
    pub description: Option<String>,
    /// The task that leaves it.
    pub from: Option<Name>,
    /// The folder of the inbox that it is copied to; the inbox itself when left out.
    pub copy_to: Option<Text>,
    /// Whether only its path is given, and nothing is copied.
    pub reference: bool,
    /// Whether it is there for sure.
    pub required: bool,
}

/// What must lie in the outbox at the end.
#[derive(Clone, Debug)]
pub(crate) struct FileOutput {
    /// A file, or a folder with a `/` at its end.
    pub path: Text,
    pub description: Option<String>,
    pub required: bool,
    /// The type of a JSON file.
    pub kind: Option<TypeExpr>,
    /// Where in the workspace it is copied to at the end.
    pub copy_to: Option<Text>,
}
