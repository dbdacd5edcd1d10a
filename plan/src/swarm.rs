//! Swarms, edges, context packs, and the file protocol.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Approval, Body, Conflicts, Group, Iteration, Origin, Output, Pipeline, PlanItem, Schema, Spawns, Step, SwarmCall,
    Template, Worktree,
};

/// A team of agents that work towards one goal, each in turns of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Swarm {
    /// Its name.
    pub name: String,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its goal; the step that starts it may set another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<Template>,
    /// Its leader.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lead: Option<Lead>,
    /// The members, in declaration order.
    pub members: Vec<Member>,
    /// The parts at most into which the leader splits the goal; without it, members have tasks of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decompose: Option<u32>,
    /// What it may do at most.
    pub limits: SwarmLimits,
    /// How long each kind of turn may take, and how often it is tried again.
    pub timeouts: SwarmTimeouts,
    /// What an agent's prompt shows of its earlier turns.
    pub history: History,
    /// What an agent's prompt shows of the shared workspace.
    pub workspace: WorkspaceView,
    /// How long messages and workspace entries live, in milliseconds.
    pub ttl_ms: u64,
    /// When an agent counts as done or as stuck.
    pub convergence: Convergence,
    /// The waits after transient errors.
    pub retry: TransientRetry,
    /// How agents ask for help.
    pub spawn: Spawn,
    /// Whom the coordinator may add.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spawns: Option<Spawns>,
    /// Named groups that receive messages together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub channels: Vec<Group>,
    /// Plan items, in declaration order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<PlanItem>,
    /// Working trees that members share.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub worktrees: Vec<Worktree>,
    /// When agents of a team hear of each other's changes of files.
    #[serde(default)]
    pub conflicts: Conflicts,
    /// Which member may write to which one; if empty, every member to every other one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edges: Vec<Edge>,
    /// The agent that merges the results; without it, the leader's answer is the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub synthesize: Option<Synthesize>,
    /// What a run of it may use at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<crate::Budget>,
    /// Where it is declared.
    pub origin: Origin,
}

/// A swarm as the only step of a pipeline.
pub(crate) fn wrap_swarm(swarm: &Swarm) -> Pipeline {
    let step = Step {
        name: swarm.name.clone(),
        description: swarm.description.clone(),
        body: Body::Swarm(SwarmCall { swarm: swarm.name.clone(), goal: None }),
        // 100 KB, as for every step that says nothing (seed 000).
        output: Output { max_bytes: 102_400, repair: 1, ..Output::default() },
        origin: swarm.origin.clone(),
        ..Step::default()
    };
    Pipeline {
        name: swarm.name.clone(),
        description: swarm.description.clone(),
        parallelism: 1,
        iteration: Iteration { max: 1, ..Iteration::default() },
        result: vec![swarm.name.clone()],
        steps: vec![step],
        budget: swarm.budget.clone(),
        origin: swarm.origin.clone(),
        ..Pipeline::default()
    }
}

/// The agent that merges the results of a swarm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Synthesize {
    /// The agent.
    pub agent: String,
}

/// The leader of a swarm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Lead {
    /// Its name in the swarm.
    pub name: String,
    /// The agent.
    pub agent: String,
    /// Whether only it may spawn and stop agents.
    #[serde(default, skip_serializing_if = "crate::is_false")]
    pub coordinator: bool,
}

/// A member of a swarm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Member {
    /// Its name; without it, the swarm names it at the start, from the list `names`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The list that names come from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub names: Option<String>,
    /// How many such members; 1 unless their names come from a list.
    pub count: u32,
    /// The agent.
    pub agent: String,
    /// Its own task; without it, the task from the leader, or its first message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<Template>,
    /// Where it is declared.
    pub origin: Origin,
}

/// What a swarm may do at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SwarmLimits {
    /// Agents, spawned ones included.
    pub agents: u32,
    /// Turns of one agent.
    pub iterations: u32,
    /// Wall time of one agent, in milliseconds.
    pub timeout_ms: u64,
    /// Messages that one agent sends.
    pub messages: u32,
    /// Proposals for the plan that wait for an answer.
    #[serde(default = "default_proposals")]
    pub proposals: u32,
    /// Items of the plan, those that are done included.
    #[serde(default = "default_items")]
    pub items: u32,
    /// Entries that the summary of a team shows to an agent.
    #[serde(default = "default_summary_feed")]
    pub summary_feed: u32,
    /// How often one agent reads all that another one did.
    #[serde(default = "default_context_reads")]
    pub context_reads: u32,
}

fn default_proposals() -> u32 {
    10
}

fn default_items() -> u32 {
    200
}

fn default_summary_feed() -> u32 {
    20
}

fn default_context_reads() -> u32 {
    3
}

/// A time limit with repetitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TurnLimit {
    /// In milliseconds.
    pub after_ms: u64,
    /// Further attempts.
    pub retries: u32,
}

/// How long each kind of turn may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SwarmTimeouts {
    /// A member's turn.
    pub turn: TurnLimit,
    /// Splitting the goal.
    pub decompose: TurnLimit,
    /// Merging the results.
    pub synthesize: TurnLimit,
}

/// What an agent's prompt shows of its earlier turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct History {
    /// The last turns that are shown in full.
    pub recent: u32,
    /// The characters of each of them at most.
    pub recent_chars: u64,
    /// The characters of each older turn at most.
    pub older_chars: u64,
    /// The characters of the prompt at most.
    pub prompt_chars: u64,
    /// The turns that are kept when the prompt is too long.
    pub keep: u32,
}

/// What an agent's prompt shows of the shared workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkspaceView {
    /// Entries of one topic at most.
    pub per_topic: u32,
    /// Entries in all at most.
    pub entries: u32,
    /// Characters of one entry at most.
    pub snippet: u64,
}

/// When an agent counts as done or as stuck.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Convergence {
    /// Turns in a row without progress.
    pub no_progress: u32,
    /// What counts as progress.
    #[serde(default, skip_serializing_if = "ProgressRule::is_tools")]
    pub counts: ProgressRule,
    /// Errors in a row.
    pub errors: u32,
}

/// What counts as progress of an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProgressRule {
    /// Calling tools.
    #[default]
    Tools,
    /// Calling tools and publishing.
    Findings,
    /// Calling tools, publishing, and writing to others.
    Messages,
}

impl ProgressRule {
    fn is_tools(&self) -> bool {
        *self == ProgressRule::Tools
    }
}

/// The waits after transient errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TransientRetry {
    /// The first wait, in milliseconds.
    pub backoff_ms: u64,
    /// The longest wait, in milliseconds.
    pub max_backoff_ms: u64,
}

/// How agents ask for help.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Spawn {
    /// Who must approve a new agent.
    pub approval: Approval,
    /// How many one agent may ask for.
    pub per_agent: u32,
}

/// A permission to send.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Edge {
    /// The sender.
    pub from: String,
    /// The receiver.
    pub to: String,
    /// Whether the receiver may send back.
    #[serde(default, skip_serializing_if = "crate::is_false")]
    pub both: bool,
    /// What it carries.
    #[serde(default)]
    pub kind: EdgeKind,
    /// What `payload.structured` must satisfy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carries: Option<Schema>,
    /// Whether the receiver must answer.
    #[serde(default)]
    pub response: Response,
    /// The envelopes each way at most, in one activation of the pipeline or swarm; by default [`Edge::MOST`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<u32>,
    /// Where it is declared.
    pub origin: Origin,
}

impl Edge {
    /// The default of `max`: as many envelopes as an agent of a swarm may send messages (seed 001).
    pub const MOST: u32 = 20;

    /// The envelopes each way at most.
    pub fn max_envelopes(&self) -> u32 {
        self.max.unwrap_or(Edge::MOST)
    }

    /// Whether an envelope along it gives a step a further turn; one that starts the first turn does not.
    pub fn wakes_step(&self, step: &str) -> bool {
        self.kind == EdgeKind::Handoff || self.kind == EdgeKind::Spawn && self.from == step
    }

    /// Whether a step can receive envelopes along it: handoffs, or answers.
    pub fn leads_to(&self, step: &str) -> bool {
        self.receivers().any(|receiver| receiver == step)
    }

    /// The steps that can receive envelopes along it.
    pub fn receivers(&self) -> impl Iterator<Item = &str> {
        let answered = self.both || self.response != Response::None;
        [Some(&self.to), Some(&self.from).filter(|_| answered)].into_iter().flatten().map(String::as_str)
    }
}

/// What an edge carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EdgeKind {
    /// Work.
    #[default]
    Handoff,
    /// News.
    Signal,
    /// The first payload of its receiver, which starts only when the sender asks for it.
    Spawn,
}

/// Whether the receiver of an envelope answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Response {
    /// No answer is expected.
    #[default]
    None,
    /// The receiver may answer.
    Optional,
    /// The receiver must answer.
    Required,
}

/// A bundle of context, built when a turn starts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ContextPack {
    /// Its name.
    pub name: String,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its tokens at most; none is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// The tokens that it aims for at least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_tokens: Option<u64>,
    /// What it holds, in declaration order; rules are cut from the last upwards.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<PackRule>,
    /// What happens when it is too large.
    #[serde(default)]
    pub on_overflow: Overflow,
    /// Where it is declared.
    pub origin: Origin,
}

/// The default of `max` for the files of a rule of a context pack.
pub const PACK_FILES: u32 = 100;

/// The files at most that an agent sums up in one turn (`summary=agent` of a context pack).
pub const SUMMED_FILES: usize = 20;

/// The bytes at most that it receives of each file, from the beginning; the path and the frame count.
pub const SUMMED_BYTES: usize = 4096;

/// A part of a context pack.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PackRule {
    /// The goal of the work.
    Goal(Template),
    /// Conditions that must hold at the end, one text each.
    DefinitionOfDone(Vec<Template>),
    /// An excerpt of a document.
    Docs {
        /// Relative to the workspace.
        path: String,
        /// From this line to that one, both from 1, both included; by default all lines.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lines: Option<(u64, u64)>,
    },
    /// Files, as paths or with their summaries.
    Files {
        /// Patterns of paths relative to the workspace.
        globs: Vec<String>,
        /// Whether each comes with a summary.
        summary: bool,
        /// The agent that sums them up; without it, a rule does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
        /// The files at most.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max: Option<u32>,
    },
    /// A fact about the repository.
    Fact {
        /// Its name.
        name: String,
        /// Its value.
        value: String,
    },
    /// What these steps or members have sent; those that do not exist where the pack is read are left out.
    Inputs(Vec<String>),
    /// Artifacts of a step or member.
    Artifacts {
        /// `diff`, `log`, `prompt`, `transcript`, `contextpack` or `report`.
        kind: String,
        /// The step or member.
        from: String,
    },
    /// A constraint on the work.
    Constraint {
        /// Its name.
        name: String,
        /// Its value.
        value: serde_json::Value,
    },
    /// The rules of another pack, by its name, in this place.
    Merge(String),
}

/// What happens to a pack that is too large.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Overflow {
    /// Whole parts are left out.
    #[default]
    Drop,
    /// Parts are cut.
    Truncate,
    /// The turn fails.
    Error,
}

/// The inputs and outputs of an agent in its workspace of files.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileProtocol {
    /// The text of `SKILL.md`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill: Option<String>,
    /// The files in `inbox/`, in declaration order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<FileInput>,
    /// The size of the largest input that is copied, in bytes; for a larger one the agent receives the path. By default
    /// [`FileProtocol::COPIED`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy_max: Option<u64>,
    /// The files that are expected in `outbox/`, in declaration order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<FileOutput>,
    /// The requirements in `inbox/instructions.md`, one text each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requirements: Vec<Template>,
    /// The success criteria in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub criteria: Vec<Template>,
    /// The constraints in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constraints: Vec<Template>,
    /// The steps that must have succeeded first, whether or not their files are copied. They are needs of the step too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wait_for: Vec<String>,
}

impl FileProtocol {
    /// The default of `copy_max`: 1 MB.
    pub const COPIED: u64 = 1024 * 1024;

    /// The size of the largest input that is copied, in bytes.
    pub fn copy_limit(&self) -> u64 {
        self.copy_max.unwrap_or(FileProtocol::COPIED)
    }
}

/// A file, or with a final `/` a folder, in `inbox/`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileInput {
    /// Its path: in the outbox of `from`, or relative to the workspace.
    pub path: String,
    /// What it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The step whose outbox holds it; by default it is in the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The folder of the inbox for it; by default the inbox itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy_to: Option<String>,
    /// Whether the agent receives only its path, without a copy.
    #[serde(default, skip_serializing_if = "crate::is_false")]
    pub reference: bool,
    /// Whether it may be absent: then it is left out, and the instructions say so.
    #[serde(default, skip_serializing_if = "crate::is_false")]
    pub optional: bool,
}

/// A file, or with a final `/` a folder, that is expected in `outbox/`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileOutput {
    /// Its name.
    pub path: String,
    /// What it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether its absence is a failure.
    pub required: bool,
    /// What its JSON must satisfy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Schema>,
    /// Where it is copied when it is collected, relative to the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy_to: Option<String>,
}
