//! What a record changed in a run, as far as the live display shows it.
//!
//! In: nothing; [`RunReport::apply`](crate::RunReport::apply) makes the values. Out: references into the record, and
//! numbers of rows of the report that the record was applied to.

use std::sync::Arc;

use swarmc_runtime::swarm::{End, MemberMessage, Phase};
use swarmc_runtime::team::{ItemState, MergeState, PlanOp, Refused};
use swarmc_runtime::{Content, InboxMessage, Request, StepId, Verdict};

use crate::approvals::OpenRequest;

/// What a record changed. A `row` is the number of a row of the report.
#[derive(Debug)]
pub enum Change<'r> {
    /// The run began.
    RunStarted {
        /// The pipeline that runs.
        pipeline: &'r str,
        /// The one task of it that runs alone.
        task: Option<&'r str>,
    },
    /// Another process goes on with the run.
    RunResumed,
    /// The run goes on after its end, or with another plan.
    RunReopened,
    /// An agent waits for an approval.
    RequestAsked {
        /// The step whose agent asks.
        step: &'r StepId,
        /// Who wants what.
        request: &'r Request,
    },
    /// A request has its answer.
    RequestAnswered {
        /// What was asked.
        request: Box<OpenRequest>,
        /// The answer.
        verdict: &'r Verdict,
    },
    /// A person wrote to an agent of a swarm.
    AgentMessaged {
        /// The step that is the swarm.
        step: &'r StepId,
        /// The agent.
        agent: &'r str,
    },
    /// A person, or the run itself, wrote to a step.
    StepMessaged {
        /// The step, by name.
        to: &'r str,
        /// What.
        letter: &'r InboxMessage,
    },
    /// A person appended to a context pack.
    PackAppended {
        /// The pack, by name.
        pack: &'r str,
        /// What.
        text: &'r Content,
    },
    /// A person is asked: by a gate, or what becomes of a step that failed.
    QuestionAsked {
        /// The step.
        step: &'r StepId,
        /// What the person reads.
        message: &'r Content,
    },
    /// A person decided that a failed step goes on.
    QuestionAnswered {
        /// The row of the step.
        row: usize,
        /// What was chosen.
        choice: &'r str,
    },
    /// A turn ended so that the next one reads what a person wrote.
    Interrupted {
        /// The row of the step.
        row: usize,
    },
    /// An agent begins to sum up files for the attempt after this one.
    SummaryStarted {
        /// The row of the step.
        row: usize,
        /// The agent.
        agent: &'r str,
    },
    /// The files are summed up.
    SummaryEnded {
        /// The row of the step.
        row: usize,
    },
    /// An attempt failed, and a person decides what becomes of the step: the record of the question follows.
    Escalated {
        /// The row of the step.
        row: usize,
    },
    /// A step changed in another way: its row says how.
    Step {
        /// The row of the step.
        row: usize,
    },
    /// Something happened in a swarm.
    Swarm {
        /// The step that is the swarm.
        step: &'r StepId,
        /// What.
        change: SwarmChange<'r>,
    },
}

/// What changed in a swarm.
#[derive(Debug)]
pub enum SwarmChange<'r> {
    /// It entered a phase.
    PhaseEntered(Phase),
    /// An agent was spawned to help another one.
    HelperSpawned {
        /// The helper.
        agent: &'r str,
        /// The agent that it helps.
        by: &'r str,
        /// Its task.
        task: Option<&'r Content>,
    },
    /// An agent began its first iteration.
    AgentStarted {
        /// The agent.
        agent: &'r str,
    },
    /// An agent wrote to another one.
    MessageSent {
        /// What, and to whom.
        message: &'r MemberMessage,
    },
    /// An agent published a finding in the workspace of the swarm.
    DataPublished {
        /// The agent.
        author: &'r str,
        /// The topic.
        topic: &'r str,
        /// What.
        data: &'r Content,
    },
    /// The plan of the team has a further version.
    PlanUpdated {
        /// The version.
        version: u32,
        /// The agent that decided it.
        agent: &'r str,
        /// What is other than before.
        ops: &'r [PlanOp],
        /// Why.
        why: &'r str,
    },
    /// An agent wants another plan.
    PlanProposed {
        /// The number of the proposal.
        proposal: u32,
        /// The agent.
        agent: &'r str,
        /// How the plan is to change.
        ops: &'r [PlanOp],
        /// Why.
        why: &'r str,
    },
    /// A proposal changes nothing.
    ProposalRefused {
        /// Its number.
        proposal: u32,
        /// What became of it.
        verdict: Refused,
        /// Why.
        because: &'r str,
    },
    /// An item of the plan is further, or no further.
    ItemMoved {
        /// Its owner.
        agent: &'r str,
        /// The item.
        item: &'r str,
        /// How far it is.
        to: ItemState,
        /// What came of it, or why it does not go on.
        note: Option<&'r str>,
    },
    /// An agent wrote to a channel, or to everybody.
    Posted {
        /// The agent.
        agent: &'r str,
        /// The channel.
        channel: Option<&'r str>,
        /// What.
        message: &'r Content,
    },
    /// Two agents of a team changed the same lines of a file.
    Conflict {
        /// The agent that changed it last.
        agent: &'r str,
        /// The other one.
        with: &'r str,
        /// The path of the file.
        path: &'r str,
        /// Whether it is known that the lines are the same.
        certain: bool,
    },
    /// A team has a further worktree.
    WorktreeOpened {
        /// Its name.
        worktree: &'r str,
        /// Who merges it.
        manager: &'r str,
        /// Who works in it.
        members: &'r [Arc<str>],
    },
    /// An agent of a team works elsewhere from now on.
    AgentMoved {
        /// The agent.
        agent: &'r str,
        /// The worktree; none: the workspace.
        to: Option<&'r str>,
    },
    /// The merge of a worktree of a team is further.
    Integrated {
        /// The manager.
        agent: &'r str,
        /// The worktree.
        worktree: &'r str,
        /// How far it is.
        to: MergeState,
        /// What came of it.
        note: &'r str,
    },
    /// An agent of a team says what it is about to do.
    Intended {
        /// The agent.
        agent: &'r str,
        /// What.
        text: &'r str,
    },
    /// The coordinator tells the person who runs the team.
    UserTold {
        /// The coordinator.
        agent: &'r str,
        /// What.
        message: &'r Content,
    },
    /// An agent is done.
    AgentFinished {
        /// The agent.
        agent: &'r str,
        /// How it ended.
        how: End,
        /// Why it failed.
        error: Option<&'r str>,
    },
}
