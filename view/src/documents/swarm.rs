//! Swarms and their agents, as `swarmc inspect` prints them.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use swarmc_runtime::Usage;
use swarmc_runtime::swarm::{End, MessageType, Phase, Purpose};
use swarmc_runtime::team::{Life, MergeState, TeamOp};

use super::Version;
use super::step::PromptPaths;

/// What the swarm of a step did.
#[derive(Debug, Serialize, JsonSchema)]
pub struct StepSwarm {
    /// The phase that it is in.
    pub phase: Option<Phase>,
    /// Its plan, where it has a coordinator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<TeamPlanDocument>,
    /// Its agents, in the order in which they were spawned.
    pub agents: Vec<SwarmAgent>,
    /// How often a model was asked.
    pub turns: u64,
    /// The entries of its workspace.
    pub entries: u64,
    /// What its turns used.
    pub usage: SwarmUsage,
}

/// The plan of a team.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TeamPlanDocument {
    /// The agent that coordinates the others.
    pub coordinator: String,
    /// The version; 0 before the coordinator has made a plan.
    pub version: u32,
    /// The items, in the order in which they were added.
    pub items: Vec<PlanItem>,
    /// The longest chain of items that are not done, the first to be done first.
    pub critical_path: Vec<String>,
    /// The agents that changed the same lines of a file, each pair and file once.
    pub conflicts: Vec<ConflictDocument>,
    /// Its worktrees, by name.
    pub worktrees: Vec<WorktreeDocument>,
    /// The proposals that wait for an answer, by number.
    pub open_proposals: Vec<u32>,
}

/// Two agents that changed the same lines of a file.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ConflictDocument {
    /// The two agents.
    pub agents: Vec<String>,
    /// The path of the file.
    pub path: String,
    /// Whether it is known that the lines are the same.
    pub certain: bool,
}

/// A worktree of a team.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WorktreeDocument {
    /// Its name.
    pub worktree: String,
    /// The agent that merges it.
    pub manager: String,
    /// The agents that work in it.
    pub members: Vec<String>,
    /// The branch that is moved on to what was merged; null: none.
    pub into: Option<String>,
    /// How far its last merge is; null before the first.
    pub merge: Option<MergeState>,
    /// The commit of that.
    pub commit: Option<String>,
    /// What came of it.
    pub note: Option<String>,
}

/// An item of a team's plan.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PlanItem {
    /// Its name.
    pub item: String,
    /// What is to be done.
    pub text: String,
    /// How far it is: `queued`, `ready`, `running`, `blocked`, `done` or `failed`.
    pub state: String,
    /// The agent that does it; null while none does.
    pub owner: Option<String>,
    /// The items that must be done first.
    pub depends_on: Vec<String>,
    /// What is to be reached on the way.
    pub checkpoints: Vec<String>,
    /// How many of them are reached.
    pub reached: usize,
    /// Patterns of the paths that it touches.
    pub scope: Vec<String>,
    /// What its owner said last of it.
    pub note: Option<String>,
}

/// What turns of a swarm used.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct SwarmUsage {
    /// Tokens read.
    pub input: u64,
    /// Tokens written.
    pub output: u64,
    /// Dollars; null where they are not known.
    pub cost: Option<f64>,
}

/// An agent of a swarm. `T` is what is said of its turns: their number, or each of them.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "SwarmAgentWith{T}")]
pub struct SwarmAgent<T = u64> {
    /// Its name.
    pub agent: String,
    /// The declared agent that it plays.
    pub plays: String,
    /// Who asked for it; null for those of the roster.
    pub by: Option<String>,
    /// How it ended; null while it goes on.
    pub how: Option<End>,
    /// Its state, where the swarm has a coordinator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<Life>,
    /// The iterations that it began.
    pub iterations: u32,
    /// The messages that it sent.
    pub sent: u32,
    /// The messages that it received.
    pub received: u32,
    /// Its turns.
    pub turns: T,
    /// What its turns used.
    pub usage: SwarmUsage,
    /// Why it failed.
    pub error: Option<String>,
    /// Its task.
    pub task: Option<String>,
    /// Its answer.
    pub response: Option<String>,
}

/// What `swarmc inspect RUN STEP AGENT --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum AgentDetails {
    /// An agent of a swarm.
    Member {
        /// The agent, with its turns.
        #[serde(flatten)]
        agent: SwarmAgent<Vec<AgentTurn>>,
        /// The version of this form.
        version: Version,
        /// The run.
        run: String,
        /// The step.
        step: String,
        /// The messages to it.
        mailbox: Vec<MailboxMessage>,
    },
    /// The agent that splits and merges, where it is none of the roster.
    Supervisor {
        /// Its name.
        agent: String,
        /// The version of this form.
        version: Version,
        /// The run.
        run: String,
        /// The step.
        step: String,
        /// Its turns.
        turns: Vec<AgentTurn>,
        /// The messages to it.
        mailbox: Vec<MailboxMessage>,
    },
}

/// A turn of a model.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AgentTurn {
    /// The iteration of its agent.
    pub iteration: u32,
    /// Its attempt within the iteration, from 1.
    pub attempt: u32,
    /// What it is for.
    pub purpose: Purpose,
    /// The action as models write it.
    pub action: Option<AgentAction>,
    /// The answer in words, where it was no action.
    pub answer: Option<String>,
    /// What came of it.
    pub results: Vec<TurnResult>,
    /// The tokens that it took.
    pub usage: Option<Usage>,
    /// What it cost, in millionths of a dollar.
    pub cost_micro_usd: Option<u64>,
    /// The model that answered, as it calls itself.
    pub model: Option<String>,
    /// The files of what it was told.
    pub paths: PromptPaths,
}

/// An action as models write it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum AgentAction {
    /// Calls a tool.
    ToolCall {
        /// Which.
        tool: String,
        /// Its parameters.
        tool_params: Value,
    },
    /// Shares something with the team.
    PublishData {
        /// Under what.
        topic: String,
        /// What.
        data: String,
    },
    /// Writes to a teammate.
    SendMessage {
        /// To whom.
        to: String,
        /// What for.
        message_type: MessageType,
        /// What.
        payload: Value,
    },
    /// Asks for a helper.
    RequestHelp {
        /// What the helper is to do.
        help_description: String,
        /// The tools that it needs.
        help_skills: Vec<String>,
    },
    /// Does something that only a team with a coordinator knows.
    Operate(TeamOp),
    /// Ends with an answer.
    Done {
        /// The answer.
        response: String,
    },
    /// Waits.
    Idle,
}

/// What came of a turn.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TurnResult {
    /// Its kind: `result`, `failed`, `refused`, `helper` or `asked`.
    pub kind: String,
    /// In words.
    pub text: String,
}

/// A message in the mailbox of an agent.
#[derive(Debug, Serialize, JsonSchema)]
pub struct MailboxMessage {
    /// Its number in the mailbox, from 1.
    pub seq: u64,
    /// The sender.
    pub from: String,
    /// The receiver.
    pub to: String,
    /// What kind of message it is.
    #[serde(rename = "type")]
    pub kind: MessageType,
    /// What it says.
    pub payload: Value,
    /// When it was sent, in milliseconds since 1970.
    pub at: u64,
    /// Whether the receiver has taken it out.
    pub received: bool,
}
