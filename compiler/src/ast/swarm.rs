//! The typed tree of a swarm: its members, its limits, and the edges between its members.

use swarmc_plan as plan;

use super::{Budget, Line, Name, Source, Spanned, TypeExpr};
use crate::source::Span;
use crate::syntax::Text;

/// Agents that take turns until their work is done.
#[derive(Debug)]
pub(crate) struct Swarm {
    pub name: Name,
    pub description: Option<String>,
    pub goal: Option<Text>,
    pub leader: Option<Leader>,
    pub members: Vec<Member>,
    pub groups: Vec<Group>,
    pub decompose: Option<Decompose>,
    pub limits: Limits,
    pub timeouts: Timeouts,
    pub history: History,
    pub workspace: Workspace,
    /// How long messages and workspace entries live.
    pub ttl_ms: u64,
    pub convergence: Convergence,
    pub retry: TransientRetry,
    pub spawn: Spawn,
    /// Whom the coordinator may add.
    pub spawns: Option<Spawns>,
    pub channels: Vec<Channel>,
    pub items: Vec<Item>,
    pub worktrees: Vec<Managed>,
    pub conflicts: Conflicts,
    /// None: members may message anyone.
    pub edges: Option<Edges>,
    /// None: the leader's `done` is the result.
    pub synthesize: Option<Synthesize>,
    pub budget: Option<Budget>,
    pub span: Span,
}

impl Swarm {
    /// Its leader, if that is a coordinator.
    pub(crate) fn coordinator(&self) -> Option<&Leader> {
        self.leader.as_ref().filter(|leader| leader.kind == LeaderKind::Coordinator)
    }

    /// The commands that must exit with 0 before the work of a worktree is merged.
    pub(crate) fn list_checks(&self) -> impl Iterator<Item = &Line> {
        self.worktrees.iter().flat_map(|tree| &tree.checks)
    }

    /// Who takes turns in it, as far as the spec names them.
    pub(crate) fn party_names(&self) -> impl Iterator<Item = &Name> {
        let leader = self.leader.iter().map(|leader| &leader.name);
        let members = self.members.iter().map(|member| &member.name);
        leader.chain(members).chain(self.worktrees.iter().filter_map(|tree| tree.manager.as_ref()))
    }
}

/// Who leads.
#[derive(Debug)]
pub(crate) struct Leader {
    pub kind: LeaderKind,
    pub name: Name,
    pub agent: Option<Name>,
    /// Whether the swarm declares a leader of the other kind too, which is reported.
    pub ambiguous: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeaderKind {
    /// Splits the goal, answers requests for help, and sums up.
    Supervisor,
    /// Owns the plan, and alone may spawn and stop.
    Coordinator,
}

#[derive(Debug)]
pub(crate) struct Member {
    pub name: Name,
    pub agent: Option<Name>,
    /// Its own task; without one it waits for its first message, or for its part of the goal.
    pub task: Option<Source>,
}

/// Members that are named from a list.
#[derive(Debug)]
pub(crate) struct Group {
    pub count: Spanned<u32>,
    pub agent: Option<Name>,
    pub names: NameList,
    pub span: Span,
}

/// An embedded list of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameList {
    Stations,
}

/// The leader splits the goal.
#[derive(Debug)]
pub(crate) struct Decompose {
    /// The parts at most.
    pub max: u32,
    pub span: Span,
}

#[derive(Debug)]
pub(crate) struct Limits {
    /// Members, spawned ones included.
    pub agents: u32,
    /// Turns of each member.
    pub iterations: u32,
    /// The time of each member.
    pub timeout_ms: u64,
    /// Messages that each member may send.
    pub messages: u32,
    /// Proposals for the plan that wait for an answer.
    pub proposals: u32,
    /// Items of the plan.
    pub items: u32,
    /// Entries that the summary of a team shows.
    pub summary_feed: u32,
    /// How often each may read all that another one did.
    pub context_reads: u32,
    pub span: Option<Span>,
}

#[derive(Debug)]
pub(crate) struct Timeouts {
    pub turn: TurnTimeout,
    pub decompose: TurnTimeout,
    pub synthesize: TurnTimeout,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TurnTimeout {
    pub time_ms: u64,
    /// Further attempts.
    pub retries: u32,
}

/// What a prompt shows of earlier turns; characters.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct History {
    /// How many turns count as recent.
    pub recent: u32,
    pub recent_chars: u32,
    pub older_chars: u32,
    /// The whole prompt at most; the oldest turns go first.
    pub prompt_chars: u32,
    /// The turns that stay whatever the length.
    pub keep: u32,
}

/// What a prompt shows of the shared workspace.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Workspace {
    pub per_topic: u32,
    pub entries: u32,
    /// Characters of an entry.
    pub snippet: u32,
}

/// What ends a member that gets nowhere.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Convergence {
    /// Turns in a row without progress.
    pub no_progress: u32,
    /// What counts as progress.
    pub counts: plan::ProgressRule,
    /// Permanent errors in a row.
    pub errors: u32,
}

/// The wait after an error that passes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TransientRetry {
    /// Times the number of the attempt.
    pub transient_ms: u64,
    pub max_ms: u64,
}

#[derive(Debug)]
pub(crate) struct Spawn {
    /// None: what the policy says.
    pub approval: Option<Spanned<plan::Approval>>,
    /// How often each member may ask.
    pub per_agent: u32,
    /// None: it is not written.
    pub span: Option<Span>,
}

/// The agents that the coordinator may add.
#[derive(Debug)]
pub(crate) struct Spawns {
    pub agents: Vec<Name>,
    /// How many in all.
    pub max: Spanned<u32>,
    pub span: Span,
}

/// Members that talk among themselves.
#[derive(Debug)]
pub(crate) struct Channel {
    pub name: Name,
    pub members: Vec<Name>,
    /// Whether the other agents may take part too.
    pub open: bool,
    pub span: Span,
}

/// An item of the plan.
#[derive(Debug)]
pub(crate) struct Item {
    pub name: Name,
    pub text: Option<Text>,
    pub owner: Option<Name>,
    pub priority: plan::Priority,
    pub needs: Vec<Name>,
    pub checkpoints: Vec<Text>,
    /// Patterns of the paths that it touches.
    pub scope: Vec<Spanned<String>>,
}

/// A checkout with the manager that merges it.
#[derive(Debug)]
pub(crate) struct Managed {
    pub name: Name,
    pub manager: Option<Name>,
    pub members: Vec<Name>,
    /// The branch that is moved on to what was merged.
    pub into: Option<Spanned<String>>,
    /// What must exit with 0 before a merge is committed.
    pub checks: Vec<Line>,
    pub span: Span,
}

/// When agents hear of each other's changes of files.
#[derive(Debug)]
pub(crate) struct Conflicts {
    pub notices: u32,
    pub window_ms: u64,
    /// None where the spec says nothing.
    pub span: Option<Span>,
}

#[derive(Debug)]
pub(crate) struct Synthesize {
    pub agent: Option<Name>,
    pub tier: Option<Name>,
    pub span: Span,
}

/// Who may hand over to whom.
#[derive(Debug)]
pub(crate) struct Edges {
    pub list: Vec<Edge>,
    pub span: Span,
}

#[derive(Debug)]
pub(crate) struct Edge {
    pub from: Name,
    pub to: Name,
    /// Whether it leads back too: `<->`.
    pub both: bool,
    pub kind: plan::EdgeKind,
    /// The type of what it carries.
    pub carries: Option<TypeExpr>,
    pub response: Spanned<plan::Response>,
    /// How many envelopes at most.
    pub max: Option<Spanned<u32>>,
    pub span: Span,
}
