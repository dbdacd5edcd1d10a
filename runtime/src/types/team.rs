//! What a team with a coordinator works by: changes of its plan, the states of its items, and the operations of its
//! agents.
//!
//! An operation is what an agent asks for; an event of the swarm says what came of it. Texts are bounded where answers
//! are read (`core/swarm/action`), so that an event holds a whole operation.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swarmc_plan::Priority;

use super::content::Content;

/// A change of a team's plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum PlanOp {
    /// A further item.
    Add {
        /// Its name.
        item: Arc<str>,
        /// What is to be done.
        text: String,
        /// The agent that does it; none: the coordinator assigns it later.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        owner: Option<Arc<str>>,
        /// Its place among those that are ready.
        #[serde(default)]
        priority: Priority,
        /// The items that must be done first.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        depends_on: Vec<Arc<str>>,
        /// What is to be reached on the way, in order.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        checkpoints: Vec<String>,
        /// Patterns of the paths that it touches.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        scope: Vec<String>,
    },
    /// Another text, priority, list of checkpoints or scope; what is left out stays.
    Edit {
        /// The item.
        item: Arc<str>,
        /// What is to be done.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// Its place among those that are ready.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        priority: Option<Priority>,
        /// What is to be reached on the way; the item has reached none of them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        checkpoints: Option<Vec<String>>,
        /// Patterns of the paths that it touches.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        scope: Option<Vec<String>>,
    },
    /// The item is not needed any more; no item waits for it.
    Remove {
        /// The item.
        item: Arc<str>,
    },
    /// An item waits for another one.
    Link {
        /// The item that waits.
        item: Arc<str>,
        /// The item that must be done first.
        on: Arc<str>,
    },
    /// An item does not wait for another one any more.
    Unlink {
        /// The item that waited.
        item: Arc<str>,
        /// The item that it waited for.
        on: Arc<str>,
    },
}

impl PlanOp {
    /// The item that it changes.
    pub fn item(&self) -> &Arc<str> {
        match self {
            PlanOp::Add { item, .. }
            | PlanOp::Edit { item, .. }
            | PlanOp::Remove { item }
            | PlanOp::Link { item, .. }
            | PlanOp::Unlink { item, .. } => item,
        }
    }

    /// In a few words, such as `add api`.
    pub fn describe(&self) -> String {
        match self {
            PlanOp::Add { item, .. } => format!("add {item}"),
            PlanOp::Edit { item, .. } => format!("edit {item}"),
            PlanOp::Remove { item } => format!("remove {item}"),
            PlanOp::Link { item, on } => format!("{item} waits for {on}"),
            PlanOp::Unlink { item, on } => format!("{item} no longer waits for {on}"),
        }
    }
}

/// What an agent changed in a file of its working tree.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Touch {
    /// The path of the file in the tree.
    pub path: Arc<str>,
    /// The first and the last line that were changed, from 1; none: unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<(u32, u32)>,
    /// The lines that are new.
    pub added: u32,
    /// The lines that are gone.
    pub removed: u32,
    /// The beginning of the difference, as a unified diff; empty: unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub diff: String,
}

impl Touch {
    /// Whether two changes of one file overlap; none: unknown.
    pub fn overlaps(&self, other: &Touch) -> Option<bool> {
        let ((first, last), (other_first, other_last)) = (self.lines?, other.lines?);
        Some(first <= other_last && other_first <= last)
    }
}

/// How far an item is, as far as events say so. An open item is ready when its dependencies are done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ItemState {
    /// No agent works on it.
    #[default]
    Open,
    /// Its owner works on it.
    Running,
    /// Its owner cannot go on with it.
    Blocked,
    /// It is done.
    Done,
    /// Its owner gave it up.
    Failed,
}

/// What an agent reads of its team.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "read", rename_all = "snake_case")]
pub enum TeamReading {
    /// The plan, as it is now.
    Plan,
    /// What happened last.
    Summary {
        /// With whom; none: with all of them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        of: Option<Arc<str>>,
    },
    /// All that an agent did, turn by turn.
    Transcript {
        /// The agent.
        of: Arc<str>,
    },
}

impl TeamReading {
    /// The action that reads all that an agent did; a policy may name it like a tool.
    pub const TRANSCRIPT: &'static str = "read_transcript";

    /// The name of the action, as models write it.
    pub fn name(&self) -> &'static str {
        match self {
            TeamReading::Plan => "plan_read",
            TeamReading::Summary { .. } => "read_summary",
            TeamReading::Transcript { .. } => TeamReading::TRANSCRIPT,
        }
    }
}

/// How far the merge of a worktree is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MergeState {
    /// It lies in the folder of its manager, and is not committed: files conflict, or a check failed.
    Open,
    /// It is committed; the branch that the worktree names is to be moved on to it.
    Committed,
    /// It is at its end.
    Merged,
    /// Its manager has dropped it.
    Aborted,
}

impl MergeState {
    /// In a word, as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            MergeState::Open => "open",
            MergeState::Committed => "committed",
            MergeState::Merged => "merged",
            MergeState::Aborted => "aborted",
        }
    }
}

/// A part of a file that a merge leaves out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Dropped {
    /// Its name: the path of the file, and the number of the part, such as `src/api.rs#2`.
    pub part: String,
    /// Why.
    pub why: String,
}

/// What became of a proposal that changed nothing; an update of the plan names the proposal that it applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Refused {
    /// The coordinator, or a person, decided against it.
    Rejected,
    /// The plan has changed since, so that it does not apply any more.
    Stale,
    /// The coordinator did not decide in time, and the policy does not accept it then.
    TimedOut,
}

impl Refused {
    /// In a word, as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Refused::Rejected => "rejected",
            Refused::Stale => "stale",
            Refused::TimedOut => "timed out",
        }
    }
}

/// What an agent of a team with a coordinator asks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "operation", rename_all = "snake_case")]
pub enum TeamOp {
    /// Changes the plan.
    PlanUpdate {
        /// How.
        ops: Vec<PlanOp>,
        /// Why.
        why: String,
    },
    /// Proposes a change of the plan to the coordinator.
    PlanPropose {
        /// How.
        ops: Vec<PlanOp>,
        /// Why.
        why: String,
    },
    /// Accepts a proposal, or refuses it.
    PlanDecide {
        /// Its number.
        proposal: u32,
        /// Whether it is accepted.
        approve: bool,
        /// Why.
        because: String,
    },
    /// Gives an item to an agent, or takes it away.
    Assign {
        /// The item.
        item: Arc<str>,
        /// The agent; none: it has no owner any more.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<Arc<str>>,
    },
    /// Adds an agent.
    SpawnAgent {
        /// Its declared agent.
        plays: Arc<str>,
        /// Its name; none: one is chosen.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<Arc<str>>,
        /// What it is to do.
        task: Content,
        /// The items that it owns from then on.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        items: Vec<Arc<str>>,
        /// The agent whose place it takes, with the items of that.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        replaces: Option<Arc<str>>,
        /// The worktree that it works in.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        worktree: Option<Arc<str>>,
    },
    /// Ends an agent.
    StopAgent {
        /// Its name.
        agent: Arc<str>,
        /// Why.
        why: String,
    },
    /// An item of its own is done.
    ItemDone {
        /// The item.
        item: Arc<str>,
        /// What came of it.
        summary: String,
    },
    /// An item of its own cannot go on.
    ItemBlocked {
        /// The item.
        item: Arc<str>,
        /// What it waits for.
        why: String,
    },
    /// An item of its own cannot be done.
    ItemFailed {
        /// The item.
        item: Arc<str>,
        /// Why.
        why: String,
    },
    /// The next checkpoint of an item of its own is reached.
    ItemCheckpoint {
        /// The item.
        item: Arc<str>,
    },
    /// Writes to a channel, or to everybody.
    Post {
        /// The channel; none: everybody.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        channel: Option<Arc<str>>,
        /// What it says.
        message: Content,
    },
    /// Says what it is about to do.
    DeclareIntent {
        /// What.
        text: String,
        /// Patterns of the paths that it will touch.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        paths: Vec<String>,
    },
    /// Takes part in an open channel from now on.
    JoinChannel {
        /// The channel.
        channel: Arc<str>,
    },
    /// Takes part in a channel no longer.
    LeaveChannel {
        /// The channel.
        channel: Arc<str>,
    },
    /// Tells the person who runs this.
    TellUser {
        /// What it says.
        message: Content,
    },
    /// Reads what others did.
    Read {
        /// What of it.
        what: TeamReading,
    },
    /// Opens a worktree for members.
    WorktreeOpen {
        /// Its name.
        worktree: Arc<str>,
        /// Who merges it.
        manager: Arc<str>,
        /// Who works in it.
        members: Vec<Arc<str>>,
        /// Why.
        why: String,
    },
    /// Has a member work elsewhere.
    WorktreeMove {
        /// The member.
        agent: Arc<str>,
        /// The worktree; none: the workspace.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<Arc<str>>,
    },
    /// Merges the worktree that it is the manager of.
    Integrate {
        /// What is merged: the message of the commit.
        summary: String,
        /// The message of a commit of what the members left uncommitted; none: nothing may be left.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        commit_rest: Option<String>,
        /// Why it merges although items of the members are open.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        although_open: Option<String>,
    },
    /// Commits its open merge, whose conflicts it has resolved.
    IntegrateContinue {
        /// The parts of either side that the result leaves out.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        dropped: Vec<Dropped>,
    },
    /// Drops its open merge.
    IntegrateAbort {
        /// Why.
        why: String,
    },
}

impl TeamOp {
    /// Its name, as models write it.
    pub fn name(&self) -> &'static str {
        match self {
            TeamOp::PlanUpdate { .. } => "plan_update",
            TeamOp::PlanPropose { .. } => "plan_propose",
            TeamOp::PlanDecide { .. } => "plan_decide",
            TeamOp::Assign { .. } => "assign",
            TeamOp::SpawnAgent { .. } => "spawn_agent",
            TeamOp::StopAgent { .. } => "stop_agent",
            TeamOp::ItemDone { .. } => "item_done",
            TeamOp::ItemBlocked { .. } => "item_blocked",
            TeamOp::ItemFailed { .. } => "item_failed",
            TeamOp::ItemCheckpoint { .. } => "item_checkpoint",
            TeamOp::Post { channel: Some(_), .. } => "channel_send",
            TeamOp::Post { channel: None, .. } => "broadcast",
            TeamOp::DeclareIntent { .. } => "declare_intent",
            TeamOp::JoinChannel { .. } => "channel_join",
            TeamOp::LeaveChannel { .. } => "channel_leave",
            TeamOp::TellUser { .. } => "tell_user",
            TeamOp::Read { what } => what.name(),
            TeamOp::WorktreeOpen { .. } => "worktree_open",
            TeamOp::WorktreeMove { .. } => "worktree_move",
            TeamOp::Integrate { .. } => "integrate",
            TeamOp::IntegrateContinue { .. } => "integrate_continue",
            TeamOp::IntegrateAbort { .. } => "integrate_abort",
        }
    }
}

impl TeamOp {
    /// Whether it is a step of a merge.
    pub fn merges(&self) -> bool {
        matches!(self, TeamOp::Integrate { .. } | TeamOp::IntegrateContinue { .. } | TeamOp::IntegrateAbort { .. })
    }
}

/// The state of an agent of a team, by the names of seed 004.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Life {
    /// It is there, and has begun no turn.
    Spawned,
    /// It has read the plan, and waits for work.
    Ready,
    /// It takes a turn, or is about to.
    Running,
    /// It cannot go on: an item is blocked or waits for others, or an approval is missing.
    Blocked,
    /// Its items are done, and it waits for another one.
    Completed,
    /// It came to an end without a result.
    Failed,
    /// Its program went away on its own, again and again.
    Crashed,
    /// The coordinator ended it.
    Stopped,
}

impl Life {
    /// In a word, as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Life::Spawned => "spawned",
            Life::Ready => "ready",
            Life::Running => "running",
            Life::Blocked => "blocked",
            Life::Completed => "completed",
            Life::Failed => "failed",
            Life::Crashed => "crashed",
            Life::Stopped => "stopped",
        }
    }
}
