//! Swarms, edges, context packs, and the file protocol: what agents with several turns are given.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Approval, Body, Iteration, Origin, Output, Pipeline, Schema, Step, SwarmCall, Template};

/// A team of agents that work towards one goal, each in turns of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Swarm {
    /// Its name.
    pub name: String,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What it works towards, unless the step that starts it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<Template>,
    /// Who watches over it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lead: Option<Lead>,
    /// The members, in declaration order.
    pub members: Vec<Member>,
    /// The parts at most into which the lead splits the goal; none: members have tasks of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decompose: Option<u32>,
    /// What it may do at most.
    pub limits: SwarmLimits,
    /// How long each kind of turn may take, and how often it is repeated.
    pub timeouts: SwarmTimeouts,
    /// What an agent is shown of its own past.
    pub history: History,
    /// What an agent is shown of the shared workspace.
    pub workspace: WorkspaceView,
    /// How long messages and workspace entries live, in milliseconds.
    pub ttl_ms: u64,
    /// When an agent counts as done or as stuck.
    pub convergence: Convergence,
    /// How transient errors are repeated.
    pub retry: TransientRetry,
    /// How agents ask for help.
    pub spawn: Spawn,
    /// Named groups that are written to as one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub channels: Vec<Group>,
    /// Plan items, in declaration order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<PlanItem>,
    /// Working trees that members share.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub worktrees: Vec<Worktree>,
    /// Who may write to whom; empty: everybody to everybody.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edges: Vec<Edge>,
    /// Who merges the results; none: the lead's answer is the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub synthesize: Option<Synthesize>,
    /// What a run of it may use at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<crate::Budget>,
    /// Where it is declared.
    pub origin: Origin,
}

/// A swarm as the only step of a pipeline.
pub(crate) fn alone(swarm: &Swarm) -> Pipeline {
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

/// Who merges the results of a swarm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Synthesize {
    /// The agent.
    pub agent: String,
    /// The tier that stands in for the agent's own provider and model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<String>,
    /// The provider of that tier; none: the agent's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The model of that tier; none: the agent's, or with a tier the provider's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// Who watches over a swarm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Lead {
    /// Its name in the swarm.
    pub name: String,
    /// The agent.
    pub agent: String,
    /// Whether it alone may spawn and stop agents.
    #[serde(default, skip_serializing_if = "crate::is_false")]
    pub coordinator: bool,
}

/// A member of a swarm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Member {
    /// Its name; none: it is named when the swarm starts, from the list `names`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The list that names come from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub names: Option<String>,
    /// How many such members, 1 unless they are named from a list.
    pub count: u32,
    /// The agent.
    pub agent: String,
    /// Its own task; none: what the lead gives it, or its first message.
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

/// What an agent is shown of its own past.
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

/// What an agent is shown of the shared workspace.
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

/// How transient errors are repeated.
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
    /// Whose agreement a new agent needs.
    pub approval: Approval,
    /// How many one agent may ask for.
    pub per_agent: u32,
}

/// A named group of members.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// Its members, by name.
    pub members: Vec<String>,
}

/// A working tree that members share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Worktree {
    /// Its name.
    pub name: String,
    /// Who merges what the others do in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manager: Option<String>,
    /// The agent that plays a manager who is no member: the swarm starts it besides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Its members, by name.
    pub members: Vec<String>,
}

/// A piece of a swarm's plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanItem {
    /// Its name.
    pub name: String,
    /// What is to be done.
    pub text: String,
    /// Who does it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// How urgent it is.
    #[serde(default)]
    pub priority: Priority,
    /// The items that must be done first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
}

/// How urgent something is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    /// After everything else.
    Low,
    /// In its turn.
    #[default]
    Normal,
    /// Before everything else.
    High,
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
    /// What travels.
    #[serde(default)]
    pub kind: EdgeKind,
    /// What `payload.structured` must satisfy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carries: Option<Schema>,
    /// Whether the receiver must answer.
    #[serde(default)]
    pub response: Response,
    /// The envelopes each way at most, in one activation of the pipeline or swarm; none is [`Edge::MOST`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<u32>,
    /// Where it is declared.
    pub origin: Origin,
}

impl Edge {
    /// The envelopes that take an edge each way at most where it does not say: what a swarm's agent may send (seed 001).
    pub const MOST: u32 = 20;

    /// The envelopes each way at most.
    pub fn most(&self) -> u32 {
        self.max.unwrap_or(Edge::MOST)
    }

    /// Whether what comes by it gives a step a further turn: what begins its first one does not.
    pub fn wakes(&self, step: &str) -> bool {
        self.kind == EdgeKind::Handoff || self.kind == EdgeKind::Spawn && self.from == step
    }

    /// Whether an envelope may come to a step by it: what is handed over, or an answer to that.
    pub fn leads_to(&self, step: &str) -> bool {
        self.receivers().any(|receiver| receiver == step)
    }

    /// The steps that an envelope may come to by it.
    pub fn receivers(&self) -> impl Iterator<Item = &str> {
        let answered = self.both || self.response != Response::None;
        [Some(&self.to), Some(&self.from).filter(|_| answered)].into_iter().flatten().map(String::as_str)
    }
}

/// What travels along an edge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EdgeKind {
    /// Work.
    #[default]
    Handoff,
    /// News.
    Signal,
    /// The first payload of its receiver, which is only there when it is asked for.
    Spawn,
}

/// Whether an envelope must be answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Response {
    /// It is not.
    #[default]
    None,
    /// It may be.
    Optional,
    /// It must be.
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

/// The files of a rule of a context pack at most, where it does not say.
pub const PACK_FILES: u32 = 100;

/// The files that an agent sums up in one turn at most (`summary=agent` of a context pack).
pub const SUMMED_FILES: usize = 20;

/// What it is given of each of them at most, in bytes, with the path and what is around the text: the beginning of it.
pub const SUMMED_BYTES: usize = 4096;

/// A part of a context pack.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PackRule {
    /// What is worked towards.
    Goal(Template),
    /// When it is reached, a text each.
    DefinitionOfDone(Vec<Template>),
    /// An excerpt of a document.
    Docs {
        /// Relative to the workspace.
        path: String,
        /// From this line to that one, both from 1, both included; none is all of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lines: Option<(u64, u64)>,
    },
    /// Files, as paths or with their summaries.
    Files {
        /// Patterns of paths relative to the workspace.
        globs: Vec<String>,
        /// Whether each comes with a summary.
        summary: bool,
        /// The agent that sums them up; none is a rule.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
        /// The files at most.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max: Option<u32>,
    },
    /// Something that is known of the repository.
    Fact {
        /// What.
        name: String,
        /// Its value.
        value: String,
    },
    /// What these steps or members handed over; those that there are not where the pack is read are left out.
    Inputs(Vec<String>),
    /// Artifacts of a step or member.
    Artifacts {
        /// `diff`, `log`, `prompt`, `transcript`, `contextpack` or `report`.
        kind: String,
        /// The step or member.
        from: String,
    },
    /// Something to hold to.
    Constraint {
        /// What.
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

/// What an agent finds and leaves in its workspace of files.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileProtocol {
    /// The text of `SKILL.md`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill: Option<String>,
    /// What lies in `inbox/`, in declaration order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<FileInput>,
    /// The bytes of an input that are copied at most; of a larger one the path is given. None is
    /// [`FileProtocol::COPIED`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy_max: Option<u64>,
    /// What is expected in `outbox/`, in declaration order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<FileOutput>,
    /// What `inbox/instructions.md` says is required, a text each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requirements: Vec<Template>,
    /// What it says counts as success.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub criteria: Vec<Template>,
    /// What it says holds for the work.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constraints: Vec<Template>,
    /// The steps that must have succeeded first, whether or not their files are copied. They are needs of the step too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wait_for: Vec<String>,
}

impl FileProtocol {
    /// The bytes of an input that are copied at most where it does not say: 1 MB.
    pub const COPIED: u64 = 1024 * 1024;

    /// The bytes of an input that are copied at most.
    pub fn copied(&self) -> u64 {
        self.copy_max.unwrap_or(FileProtocol::COPIED)
    }
}

/// A file, or with a final `/` a folder, that lies in `inbox/`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileInput {
    /// Its path: in the outbox of `from`, or relative to the workspace.
    pub path: String,
    /// What it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The step in whose outbox it lies; none: the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The folder of the inbox for it; none: the inbox itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy_to: Option<String>,
    /// Whether its path alone is given, and nothing is copied.
    #[serde(default, skip_serializing_if = "crate::is_false")]
    pub reference: bool,
    /// Whether it may be absent: it is left out then, and the agent is told so.
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
