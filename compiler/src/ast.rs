//! The typed tree of a spec: its nodes with their spans, and gaps where lowering could not read a part.

mod pack;
mod provider;
mod step;
mod swarm;
mod test;
mod types;

use std::sync::Arc;

use swarmc_plan as plan;

use crate::source::Span;
use crate::syntax::Text;

pub(crate) use pack::{ContextPack, Literal, PackRule, Summary};
pub(crate) use provider::{Agent, Answer, Llm, Price, Provider, Rate, Script, Tier, ToolServer, Tools};
pub(crate) use step::{
    Body, EachList, FileInput, FileOutput, Files, ForEach, Gate, Loop, OnFailure, OnTimeout, Output, Step, Worktree,
};
pub(crate) use swarm::{
    Channel, Conflicts, Convergence, Decompose, Edge, Edges, Group, History, Item, Leader, LeaderKind, Limits, Managed,
    Member, NameList, Spawn, Spawns, Swarm, Synthesize, Timeouts, TransientRetry, TurnTimeout, Workspace,
};
pub(crate) use test::{Expect, ExpectKind, Fake, Holds, Test};
pub(crate) use types::{Field, TypeDef, TypeExpr, TypeKind};

/// How many items must succeed.
pub(crate) type ForEachJoin = plan::EachJoin;

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
    pub imports: Vec<Import>,
    pub params: Vec<Param>,
    pub secrets: Vec<Secret>,
    pub types: Vec<TypeDef>,
    pub providers: Vec<Provider>,
    pub tiers: Vec<Tier>,
    pub agents: Vec<Agent>,
    pub tool_servers: Vec<ToolServer>,
    pub prompts: Vec<Prompt>,
    pub packs: Vec<ContextPack>,
    /// Tasks that pipelines share through `use`.
    pub tasks: Vec<Step>,
    pub pipelines: Vec<Pipeline>,
    pub swarms: Vec<Swarm>,
    pub budget: Option<Budget>,
    pub policy: Option<Policy>,
    pub hooks: Vec<Hook>,
    pub tests: Vec<Test>,
    pub allows: Vec<Allow>,
    /// Where agents and providers are named that a preset of the library has the name of, in the order of the text.
    pub presets: Vec<Name>,
}

#[derive(Debug)]
pub(crate) struct Workflow {
    pub name: Name,
    pub description: Option<String>,
    /// A pipeline or a swarm.
    pub default: Option<Name>,
    pub edition: Option<Name>,
    pub docs_root: Option<Text>,
    pub mode: Option<Spanned<plan::Mode>>,
    pub survive: plan::Survive,
    /// Where it asks for fixed versions.
    pub locked: Option<Span>,
}

/// Another spec, or a part of the library (`std:NAME`).
#[derive(Debug)]
pub(crate) struct Import {
    pub path: Text,
    /// Qualifies its names; without one they stand as they are.
    pub alias: Option<Name>,
    pub span: Span,
}

#[derive(Debug)]
pub(crate) struct Param {
    pub name: Name,
    pub kind: TypeExpr,
    pub default: Option<Name>,
    /// The environment variable that holds the value when none is given.
    pub env: Option<Name>,
    pub description: Option<String>,
}

#[derive(Debug)]
pub(crate) struct Secret {
    pub name: Name,
    pub env: String,
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
pub(crate) struct Prompt {
    pub name: Name,
    pub text: Option<Source>,
}

/// Where a text comes from.
#[derive(Clone, Debug)]
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
    /// Where it says so.
    pub rounds: Option<Span>,
    pub on_failure: plan::RoundFailure,
    pub exhausted: plan::Exhausted,
    pub until: Vec<Arc<Text>>,
    pub parallelism: u32,
    /// Where it says so.
    pub instances: Option<Span>,
    pub concurrency: Option<u32>,
    /// The pool of workers for its steps.
    pub pool: Option<String>,
    pub uses: Vec<Use>,
    pub result: Vec<Name>,
    pub fail_fast: bool,
    pub worktree: Option<Worktree>,
    pub env: Vec<Variable>,
    pub working_dir: Option<Text>,
    pub budget: Option<Budget>,
    pub edges: Option<Edges>,
    pub steps: Vec<Step>,
}

/// Shared tasks that a pipeline takes in.
#[derive(Debug)]
pub(crate) struct Use {
    pub tasks: Vec<Name>,
    /// Whether tasks that these refer to may be left out.
    pub partial: bool,
    pub span: Span,
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

/// The words of a command, as written.
#[derive(Debug)]
pub(crate) struct Line {
    pub words: Vec<Text>,
}

/// What may be spent; each at most.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    pub tokens: Option<Spanned<u64>>,
    /// In micro-dollars.
    pub cost: Option<Spanned<u64>>,
    /// In milliseconds.
    pub time_ms: Option<Spanned<u64>>,
    /// Turns of agents.
    pub calls: Option<Spanned<u32>>,
    /// The share in per cent from which on a warning is given.
    pub warn: u32,
    /// Whether it stops what goes beyond it, in the place of a proof that nothing does.
    pub at_most: bool,
    pub span: Span,
}

/// Who approves what.
#[derive(Debug)]
pub(crate) struct Policy {
    pub spawn: Option<Spanned<plan::Approval>>,
    pub tools: Vec<(Name, Spanned<plan::Approval>)>,
    pub plan_update: Option<Spanned<plan::Approval>>,
    pub integrate: Option<Spanned<plan::Approval>>,
    pub unattended: Spanned<plan::Unattended>,
    pub on_timeout: Option<Spanned<plan::RequestTimeout>>,
    pub span: Span,
}

/// A command that runs when something happened.
#[derive(Debug)]
pub(crate) struct Hook {
    pub event: Spanned<plan::HookEvent>,
    /// [`Body::Run`] or [`Body::Script`].
    pub body: Option<Body>,
    pub span: Span,
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
