//! What happens in a team with a coordinator: changes of its plan, reports on its items, and messages to many.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::content::Content;
use super::swarm::SUPERVISOR;
use super::team::{ItemState, MergeState, PlanOp, Refused, TeamReading, Touch};

/// A fact of a team.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "fact", rename_all = "snake_case")]
pub enum TeamFact {
    /// The plan of a team has a further version.
    PlanUpdated {
        /// The version, one more than before. A field `version` of a record would be that of the journal.
        #[serde(rename = "plan_version")]
        version: u32,
        /// The agent that decided it.
        agent: Arc<str>,
        /// What is other than before.
        ops: Vec<PlanOp>,
        /// Why.
        why: String,
        /// The proposal that it applies.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        proposal: Option<u32>,
    },
    /// An agent of a team wants another plan.
    PlanProposed {
        /// Its number in the swarm, from 1.
        proposal: u32,
        /// The agent.
        agent: Arc<str>,
        /// The version that the agent knows.
        base: u32,
        /// How the plan is to change.
        ops: Vec<PlanOp>,
        /// Why.
        why: String,
    },
    /// A proposal changes nothing.
    ProposalRefused {
        /// Its number.
        proposal: u32,
        /// The agent that decided it, or [`SUPERVISOR`](super::swarm::SUPERVISOR) where it does not apply any more.
        agent: Arc<str>,
        /// What became of it.
        verdict: Refused,
        /// Why.
        because: String,
    },
    /// An item of a team's plan is further than before, or no further than before.
    ItemMoved {
        /// Its owner.
        agent: Arc<str>,
        /// The item.
        item: Arc<str>,
        /// How far it is.
        to: ItemState,
        /// What came of it, or why it does not go on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// An item of a team's plan has reached its next checkpoint.
    ItemChecked {
        /// Its owner.
        agent: Arc<str>,
        /// The item.
        item: Arc<str>,
        /// The checkpoint, from 1.
        checkpoint: usize,
    },
    /// An item of a team's plan has another owner.
    ItemAssigned {
        /// The agent that decided it.
        agent: Arc<str>,
        /// The item.
        item: Arc<str>,
        /// The owner; none: it has none any more.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<Arc<str>>,
    },
    /// An agent of a team wrote to a channel, or to everybody: the message lies in the mailbox of each other agent there.
    Posted {
        /// The agent.
        agent: Arc<str>,
        /// The channel; none is everybody.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        channel: Option<Arc<str>>,
        /// What it says, as JSON.
        message: Content,
    },
    /// An agent of a team takes part in a channel from now on, or no longer.
    ChannelChanged {
        /// The agent.
        agent: Arc<str>,
        /// The channel.
        channel: Arc<str>,
        /// Whether it takes part.
        joined: bool,
    },
    /// An agent of a team has done its task, and waits for another one.
    AgentCompleted {
        /// The agent.
        agent: Arc<str>,
        /// Its answer.
        response: Content,
    },
    /// The coordinator of a team ends an agent.
    AgentStopped {
        /// The coordinator.
        by: Arc<str>,
        /// The agent that ends.
        agent: Arc<str>,
        /// Why.
        why: String,
    },
    /// An agent of a team has read, while its turn goes on, what others wrote to it.
    Noticed {
        /// The agent.
        agent: Arc<str>,
        /// The number of the last message in its mailbox that it has read; 0: none.
        number: u64,
        /// The version of the plan that it knows from then on.
        #[serde(rename = "plan_version")]
        version: u32,
    },
    /// An agent of a team has changed a file.
    Touched {
        /// The agent.
        agent: Arc<str>,
        /// What it changed.
        touch: Touch,
    },
    /// Two agents of a team have changed the same lines of a file, or it is unknown which lines.
    Conflict {
        /// The agent that changed it last.
        agent: Arc<str>,
        /// The other one.
        with: Arc<str>,
        /// The path of the file.
        path: Arc<str>,
        /// Whether it is known that the lines are the same.
        certain: bool,
    },
    /// An agent of a team says what it is about to do.
    Intended {
        /// The agent.
        agent: Arc<str>,
        /// What.
        text: String,
        /// Patterns of the paths that it will touch.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        paths: Vec<String>,
    },
    /// An agent of a team has read what others did.
    ContextRead {
        /// The agent.
        agent: Arc<str>,
        /// What it read.
        what: TeamReading,
        /// The text.
        text: Content,
    },
    /// The coordinator of a team has opened a worktree.
    WorktreeOpened {
        /// The coordinator.
        agent: Arc<str>,
        /// The worktree.
        worktree: Arc<str>,
        /// Who merges it.
        manager: Arc<str>,
        /// Who works in it.
        members: Vec<Arc<str>>,
    },
    /// An agent of a team works elsewhere from now on.
    AgentMoved {
        /// The coordinator.
        by: Arc<str>,
        /// The agent.
        agent: Arc<str>,
        /// The worktree; none: the workspace.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<Arc<str>>,
    },
    /// The merge of a worktree is further than before.
    Integrated {
        /// The manager.
        agent: Arc<str>,
        /// The worktree.
        worktree: Arc<str>,
        /// How far it is.
        to: MergeState,
        /// The commit of the merge.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        commit: Option<String>,
        /// The files that conflict.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        files: Vec<String>,
        /// What came of it, in words.
        note: String,
    },
    /// The coordinator of a team tells the person who runs it.
    UserTold {
        /// The coordinator.
        agent: Arc<str>,
        /// What.
        message: Content,
    },
}

impl TeamFact {
    /// The proposal that its coordinator did not decide in time, or that the policy accepted.
    pub(crate) fn overdue_proposal(&self) -> Option<u32> {
        match self {
            TeamFact::ProposalRefused { proposal, verdict: Refused::TimedOut, .. } => Some(*proposal),
            TeamFact::PlanUpdated { proposal, agent, .. } if **agent == *SUPERVISOR => *proposal,
            _ => None,
        }
    }

    /// The agent that it is about.
    pub fn agent(&self) -> &Arc<str> {
        match self {
            TeamFact::PlanUpdated { agent, .. }
            | TeamFact::PlanProposed { agent, .. }
            | TeamFact::ProposalRefused { agent, .. }
            | TeamFact::ItemMoved { agent, .. }
            | TeamFact::ItemChecked { agent, .. }
            | TeamFact::ItemAssigned { agent, .. }
            | TeamFact::Posted { agent, .. }
            | TeamFact::ChannelChanged { agent, .. }
            | TeamFact::AgentCompleted { agent, .. }
            | TeamFact::AgentStopped { agent, .. }
            | TeamFact::Noticed { agent, .. }
            | TeamFact::Touched { agent, .. }
            | TeamFact::Conflict { agent, .. }
            | TeamFact::Intended { agent, .. }
            | TeamFact::ContextRead { agent, .. }
            | TeamFact::WorktreeOpened { agent, .. }
            | TeamFact::AgentMoved { agent, .. }
            | TeamFact::Integrated { agent, .. }
            | TeamFact::UserTold { agent, .. } => agent,
        }
    }
}
