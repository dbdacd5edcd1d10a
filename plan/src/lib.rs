//! The execution plan: the contract between the compiler, which writes it, and the runtime, which reads it.
//!
//! A [`Plan`] is self-contained and plain: prompts are embedded, names are resolved, implied dependencies are
//! spelled out, every default is filled in. Parts that messages at run time may name carry an [`Origin`].
//! The JSON form is versioned, byte-stable for the same input, and meant to be read in a review.

mod agent_names;
mod body;
pub mod close_names;
mod compare;
mod connection;
mod json;
mod limits;
mod pipeline;
pub mod prompt_text;
mod provider;
mod reach;
mod step;
mod steps_around;
mod swarm;
mod team;
mod template;
pub mod tools;
mod unsupported;
mod validate;
mod validator;

pub use agent_names::{STATIONS, is_station};
pub use body::{Body, Shape, Slot, StepKind};
pub use compare::{Change, Difference, Field, Part, compare_plans};
pub use connection::{Connection, ProviderKind};
pub use json::{ReadError, VERSION, encode_plan, plan_schema, read_plan, read_with, write_plan};
pub use limits::{Approval, Bound, Bounds, Budget, Hook, HookEvent, Likely, Policy, RequestTimeout, Unattended};
pub use pipeline::{Exhausted, Iteration, Pipeline, RoundFailure};
pub use provider::{
    Ability, Agent, Capability, EnvValue, Environment, Format, LlmKind, MCP_NOTICES, MCP_TOKEN, MCP_URL, McpConfig,
    McpVariable, Mode, Permissions, Price, PromptDelivery, Provider, Rate, Recorded, SESSION, SchemaFlag, Secret,
    ToolProtocol, ToolServer, Transport,
};
pub use reach::Reach;
pub use step::{
    Ask, Call, Command, EachJoin, Effect, Fields, ForEach, Gate, GateDefault, GateTimeout, Join, Loop, Need, OnFailure,
    Output, PromptBody, Retry, Step, StopStatus, SwarmCall, When,
};
pub use swarm::{
    ContextPack, Convergence, Edge, EdgeKind, FileInput, FileOutput, FileProtocol, History, Lead, Member, Overflow,
    PACK_FILES, PackRule, ProgressRule, Response, SUMMED_BYTES, SUMMED_FILES, Spawn, Swarm, SwarmLimits, SwarmTimeouts,
    Synthesize, TransientRetry, TurnLimit, WorkspaceView,
};
pub use team::{Conflicts, Group, PlanItem, Priority, Spawns, Worktree};
pub use template::{Directive, DirectiveKind, Expression, Filter, LOG, Reads, Segment, Template};
pub use unsupported::Unsupported;
pub use validate::{DEFAULT_POOL, Judge, LONGEST_NAME, LONGEST_POOL, Piece, is_pool_name};
pub use validator::build_validator;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A whole workflow, ready to run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The version of this format, [`VERSION`] when written by this build.
    pub version: u32,
    /// The workflow's name.
    pub workflow: String,
    /// What the workflow is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The default mode of agents: planning or implementation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// Which processes go on where their runner is killed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub survive: Survive,
    /// The folder of documents for agents, relative to the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub docs_root: Option<String>,
    /// The pipeline or swarm that `swarmc run` starts when none is named.
    pub default: String,
    /// The typed inputs of the workflow, in declaration order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub params: Vec<Param>,
    /// Secrets, by name and environment variable only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<Secret>,
    /// The types that schemas of this plan refer to as `#/$defs/NAME`.
    #[serde(rename = "$defs", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub types: BTreeMap<String, Schema>,
    /// The providers that an agent uses, in declaration order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub providers: Vec<Provider>,
    /// The agents that a step uses, in declaration order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<Agent>,
    /// The servers of the tools that agents may use, in declaration order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_servers: Vec<ToolServer>,
    /// Every pipeline, in declaration order.
    pub pipelines: Vec<Pipeline>,
    /// Every swarm, in declaration order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub swarms: Vec<Swarm>,
    /// Every context pack, in declaration order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub packs: Vec<ContextPack>,
    /// What a run may use at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// What needs approval.
    #[serde(default, skip_serializing_if = "is_default")]
    pub policy: Policy,
    /// Commands that run after events, in declaration order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<Hook>,
    /// What a run uses at most, by pipeline or swarm.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub bounds: BTreeMap<String, Bounds>,
    /// The files that the plan was made from, with the digests of their contents.
    pub sources: Vec<SourceFile>,
}

/// Which processes outlive a runner that is killed, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Survive {
    /// Which.
    pub what: Survivors,
    /// How long they are kept where no runner comes back, in milliseconds.
    pub for_ms: u64,
}

impl Default for Survive {
    /// As the language has it: agents, for an hour.
    fn default() -> Survive {
        Survive { what: Survivors::Agents, for_ms: 60 * 60 * 1000 }
    }
}

/// The processes that outlive a runner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Survivors {
    /// None.
    None,
    /// Those of agents, and of commands with a `timeout` of [`LONG_COMMAND_MS`] or more.
    Agents,
    /// Those of agents and of all commands.
    All,
}

/// A command that may take so long outlives its runner, in milliseconds: to start it again costs more than a shim.
pub const LONG_COMMAND_MS: u64 = 5 * 60 * 1000;

impl Plan {
    /// The pipeline called `name`.
    pub fn pipeline(&self, name: &str) -> Option<&Pipeline> {
        self.pipelines.iter().find(|pipeline| pipeline.name == name)
    }

    /// The same plan, with a pipeline of one step for each swarm whose name no pipeline has, so that the swarm can run
    /// by itself.
    #[must_use]
    pub fn with_swarms(mut self) -> Plan {
        let alone = self.swarms.iter().filter(|swarm| self.pipeline(&swarm.name).is_none()).map(swarm::wrap_swarm);
        let alone: Vec<Pipeline> = alone.collect();
        self.pipelines.extend(alone);
        self
    }

    /// The same plan for tasks that run outside its workspace, the folder `workspace`; scripts are still found there.
    #[must_use]
    pub fn with_scripts_in(mut self, workspace: &str) -> Plan {
        let place = |command: &mut Command| {
            if let Command::Script { argv, file } = command
                && let Some(last) = argv.last_mut()
            {
                *last = format!("{workspace}/{file}");
            }
        };
        self.hooks.iter_mut().for_each(|hook| place(&mut hook.run));
        let mut open: Vec<&mut Step> = self.pipelines.iter_mut().flat_map(|pipeline| &mut pipeline.steps).collect();
        while let Some(step) = open.pop() {
            match &mut step.body {
                Body::Run(command) => place(command),
                Body::Loop(body) => open.extend(&mut body.steps),
                _ => {}
            }
        }
        self
    }

    /// The swarm called `name`.
    pub fn swarm(&self, name: &str) -> Option<&Swarm> {
        self.swarms.iter().find(|swarm| swarm.name == name)
    }

    /// The agent called `name`.
    pub fn agent(&self, name: &str) -> Option<&Agent> {
        self.agents.iter().find(|agent| agent.name == name)
    }

    /// The file protocol of a step: its own, or else that of its agent.
    pub fn files_of<'p>(&'p self, step: &'p Step) -> Option<&'p FileProtocol> {
        let of_agent = match &step.body {
            Body::Prompt(body) => self.agent(&body.agent).and_then(|agent| agent.files.as_ref()),
            _ => None,
        };
        step.files.as_ref().or(of_agent)
    }

    /// The provider called `name`.
    pub fn provider(&self, name: &str) -> Option<&Provider> {
        self.providers.iter().find(|provider| provider.name == name)
    }

    /// The agents that sum up files for the context packs of a prompt (`summary=agent`), and the turns that each takes
    /// for that before an attempt at most; none where `step` asks no agent.
    pub fn summary_turns<'p>(&'p self, step: &'p Step) -> BTreeMap<&'p str, u64> {
        let mut turns = BTreeMap::new();
        let Body::Prompt(body) = &step.body else { return turns };
        let system = self.agent(&body.agent).and_then(|agent| agent.system.as_ref());
        let texts = [Some(&body.prompt), step.stdin.as_ref(), system].into_iter().flatten();
        let in_texts = texts.flat_map(|text| &text.segments).filter_map(|segment| match segment {
            Segment::Directive(Directive { kind: DirectiveKind::Context, name, .. }) => name.as_deref(),
            _ => None,
        });
        let mut open: Vec<&str> = body.context.iter().map(String::as_str).chain(in_texts).collect();
        let mut seen = BTreeSet::new();
        while let Some(name) = open.pop() {
            let pack = self.packs.iter().find(|pack| pack.name == name).filter(|_| seen.insert(name));
            for rule in pack.into_iter().flat_map(|pack| &pack.rules) {
                match rule {
                    PackRule::Merge(other) => open.push(other),
                    PackRule::Files { agent: Some(agent), max, .. } => {
                        let files = u64::from(max.unwrap_or(PACK_FILES));
                        *turns.entry(agent.as_str()).or_default() += files.div_ceil(SUMMED_FILES as u64);
                    }
                    _ => {}
                }
            }
        }
        turns
    }

    /// The environment variables whose values are secret: those of secrets, keys of models and tokens of
    /// tool servers.
    pub fn secret_variables(&self) -> impl Iterator<Item = &str> {
        let keys = self.providers.iter().filter_map(|provider| provider.connection.key_variable());
        let tokens = self.tool_servers.iter().filter_map(|server| server.auth.as_deref());
        self.secrets.iter().map(|secret| secret.env.as_str()).chain(keys).chain(tokens)
    }
}

/// A JSON Schema (draft 2020-12). References lead to the `$defs` of the plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Schema(pub serde_json::Value);

/// A place in a source file, for messages at run time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// The file, relative to the workspace, with `/`.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// A file that the plan was made from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SourceFile {
    /// The path, relative to the workspace, with `/`.
    pub path: String,
    /// `sha256:` and the digest of the contents in hexadecimal; of a spec, of all but its `test` blocks.
    pub digest: String,
}

/// A typed input of a workflow or a pipeline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Param {
    /// Its name.
    pub name: String,
    /// The type that a given value must have.
    #[serde(rename = "type")]
    pub kind: ParamType,
    /// Whether it may be left out without a default (`type="string?"`).
    #[serde(default, skip_serializing_if = "is_false")]
    pub optional: bool,
    /// The value where none is given, in its textual form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// The environment variable that holds the value where none is given; before the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env: Option<String>,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Where it is declared.
    pub origin: Origin,
}

/// The type of a parameter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ParamType {
    /// Any text.
    String,
    /// A whole number of 64 bits.
    Int,
    /// A finite number.
    Float,
    /// `true` or `false`.
    Bool,
    /// A file that exists when the run starts; relative paths count from the caller's folder.
    File,
    /// A folder that exists when the run starts; relative paths count from the caller's folder.
    Dir,
    /// JSON that satisfies this.
    Json(Schema),
}

pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

pub(crate) fn is_false(value: &bool) -> bool {
    !value
}
