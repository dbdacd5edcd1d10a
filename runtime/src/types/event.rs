//! What happened in a run: the only thing that changes its state, and what the journal holds.
//!
//! Events are facts in the past tense and small: a few hundred bytes, never over [`LARGEST`]. A digest names a longer
//! text, and the words of failures are cut. Events only gain optional fields; anything else bumps [`VERSION`].

mod failure;
mod first;
mod outcome;
mod record;
mod room;
mod subject;
mod words;

pub(crate) use words::format_duration;

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::approval::{Request, Verdict};
use super::artifact::ArtifactMeta;
use super::swarm::{Answer, End, Fault, MemberMessage, Phase, TurnId};
use super::team_fact::TeamFact;

pub use super::approval::AnsweredBy;
pub use super::content::Content;
pub use super::inbox_message::{INPUTS, InboxMessage};
pub use super::step_id::{AttemptId, StepId};
pub use super::usage::{Reserved, Usage};
pub use failure::{Failure, RunStatus, SkipReason, Status};
pub use outcome::{Outcome, Reused};
pub use record::{BootId, Process, Record};
use record::{is_one, is_zero, one};
pub(crate) use room::{can_inline, escaped_length, truncate_message};

/// The version of the events that this build writes, and the newest it reads.
pub const VERSION: u32 = 1;

/// The event itself holds texts up to this many bytes; longer ones are stored as artifacts, by digest.
pub const INLINE: usize = 2048;

/// The exit code of a command that could not be started, as POSIX shells have it.
pub(crate) const NOT_STARTED: i32 = 127;

/// No event is longer than this many bytes in the journal.
pub const LARGEST: usize = 10_240;

/// What a text of an event may take as JSON, in bytes: three of them and all the rest stay below [`LARGEST`], whatever
/// has to be escaped in them.
const ROOM: usize = 2176;

/// What the path of a step's frame may take in bytes; a longer one is named by its digest.
pub(crate) const LONGEST_PATH: usize = 400;

/// What a text in a list takes besides, as JSON.
const QUOTES: usize = 3;

/// What a session's name may take as JSON, in bytes; no session has a longer one.
pub(crate) const SESSION: usize = 512;

/// One fact.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The run exists. Always the first record.
    RunStarted {
        /// The [`VERSION`] of the events that follow.
        version: u32,
        /// The run's id.
        run: String,
        /// The digest of the plan, which lies beside the journal.
        plan: String,
        /// The pipeline that runs.
        pipeline: String,
        /// The one step that runs outside its pipeline (`run --task`).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task: Option<String>,
        /// Every parameter's value in its textual form, defaults included.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        params: BTreeMap<String, String>,
        /// Where the parameters are instead when they are too long for an event: a JSON object of them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stored_params: Option<Content>,
        /// What was piped into the run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stdin: Option<Content>,
        /// How many steps run at once where the plan leaves that open; `run.json` has it in older journals.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        concurrency: Option<u32>,
        /// The commit at which the working trees of the run begin; none where it has none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        commit: Option<String>,
    },
    /// Another process took the run over: attempts that were open have no outcome and start again, as the same attempt.
    RunResumed,
    /// A step's `when` was evaluated.
    ConditionJudged {
        /// The step.
        step: StepId,
        /// Whether it runs.
        holds: bool,
        /// Why it could not be evaluated; the step has then failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// A step will not run in this round.
    StepSkipped {
        /// The step.
        step: StepId,
        /// Why.
        reason: SkipReason,
    },
    /// An attempt began: its prompt is rendered, its process about to start.
    AttemptStarted {
        /// The step.
        step: StepId,
        /// The attempt, from 1.
        attempt: u32,
        /// What it may use at most, of the budgets that it counts for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reserved: Option<Reserved>,
        /// The agent that sums up files for the attempt after this one, which is then no try of the step's turn.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        summarizer: Option<Arc<str>>,
    },
    /// An attempt that an earlier runner had begun goes on in this one: its processes outlived that runner, or have
    /// ended since.
    AttemptRejoined {
        /// The step.
        step: StepId,
        /// The attempt.
        attempt: u32,
    },
    /// The attempt's process exists.
    ProcessStarted {
        /// The step.
        step: StepId,
        /// The attempt.
        attempt: u32,
        /// The process, so that a later runner can end it.
        process: Process,
    },
    /// The provider has said under which id it keeps the conversation of an attempt.
    SessionKnown {
        /// The step.
        step: StepId,
        /// The attempt.
        attempt: u32,
        /// The id, in the provider's words.
        session: String,
    },
    /// An attempt ended. Dropped when the attempt is not the step's current one.
    AttemptEnded {
        /// The step.
        step: StepId,
        /// The attempt.
        attempt: u32,
        /// How.
        #[serde(flatten)]
        outcome: Outcome,
    },
    /// In a run with `--reuse`, an attempt is about to begin, because no earlier result can take its place.
    ReuseMissed {
        /// The step.
        step: StepId,
        /// The attempt.
        attempt: u32,
        /// Why, in words: `its prompt changed`.
        reason: String,
    },
    /// A loop, a for-each or a call began: what it needs to know was evaluated, and the steps inside may start.
    Opened {
        /// The step.
        step: StepId,
        /// The attempt, from 1.
        attempt: u32,
        /// How many items a for-each has.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        items: Option<u32>,
        /// The list of a for-each, as JSON.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        list: Option<Content>,
        /// The parameters of a call: a JSON object of their textual forms.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        params: Option<Content>,
    },
    /// A round's `until` conditions were evaluated.
    RoundJudged {
        /// The instance of the pipeline, from 1.
        instance: u32,
        /// The round, from 1.
        iteration: u32,
        /// Whether any of them held.
        holds: bool,
        /// The loop or call whose round it is; none is the pipeline that runs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        within: Option<Arc<str>>,
    },
    /// A gate asks: it waits for an answer from now on.
    GateOpened {
        /// The gate.
        step: StepId,
        /// What the person reads.
        message: Content,
    },
    /// A gate was answered, by whomever.
    GateAnswered {
        /// The gate.
        step: StepId,
        /// The option that was chosen; none when the gate fails.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        choice: Option<String>,
        /// A JSON object of the choice and the fields that were asked; none when the gate fails.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<Content>,
        /// Who decided.
        by: AnsweredBy,
    },
    /// An agent waits for an approval from now on.
    ApprovalAsked {
        /// The step that it belongs to.
        step: StepId,
        /// The attempt of that step.
        attempt: u32,
        /// Who wants what.
        #[serde(flatten)]
        request: Request,
    },
    /// A person or a policy approved a request, or refused it.
    ApprovalAnswered {
        /// The step of the request.
        step: StepId,
        /// The attempt of that step.
        attempt: u32,
        /// What was said.
        #[serde(flatten)]
        verdict: Verdict,
    },
    /// A swarm exists: its first event.
    SwarmStarted {
        /// Which swarm.
        #[serde(flatten)]
        swarm: AttemptId,
        /// What names of agents are made from: the run's id, or the same for all where it is recorded or replayed.
        run: String,
        /// What it is to reach.
        goal: Content,
    },
    /// A swarm entered a phase.
    PhaseEntered {
        /// Which swarm.
        #[serde(flatten)]
        swarm: AttemptId,
        /// Which phase.
        phase: Phase,
    },
    /// A swarm has a further agent. The agent starts when it has something to do.
    AgentSpawned {
        /// Which swarm.
        #[serde(flatten)]
        swarm: AttemptId,
        /// Its name, which no other agent of the swarm has.
        agent: Arc<str>,
        /// Its declared agent.
        plays: Arc<str>,
        /// Its task; none: it waits for its first message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task: Option<Content>,
        /// What teammates see of its task: the text without its context packs. None: the whole task.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        brief: Option<Content>,
        /// The agent that asked for it; none for those of the roster.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Arc<str>>,
        /// The tools that it may use, if they differ from those of its declared agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tools: Option<Vec<String>>,
        /// The items of the plan that it owns from now on.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        items: Vec<Arc<str>>,
        /// The agent whose place it takes: its items and channels.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        replaces: Option<Arc<str>>,
        /// In a team: the worktree that it works in.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        worktree: Option<Arc<str>>,
    },
    /// An agent of a swarm begins its first iteration.
    AgentStarted {
        /// Which swarm.
        #[serde(flatten)]
        swarm: AttemptId,
        /// Its name.
        agent: Arc<str>,
    },
    /// An agent of a swarm waits for something to happen.
    AgentIdled {
        /// Which swarm.
        #[serde(flatten)]
        swarm: AttemptId,
        /// Its name.
        agent: Arc<str>,
    },
    /// An agent of a swarm is done.
    AgentFinished {
        /// Which swarm.
        #[serde(flatten)]
        swarm: AttemptId,
        /// Its name.
        agent: Arc<str>,
        /// How it ended.
        how: End,
        /// Its answer; if it did not give one itself, the results of its last turns.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        response: Option<Content>,
        /// Why it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// A model is asked.
    TurnStarted {
        /// Which swarm.
        #[serde(flatten)]
        swarm: AttemptId,
        /// Which turn.
        #[serde(flatten)]
        turn: TurnId,
        /// What it may use at most, of the budgets that it counts for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reserved: Option<Reserved>,
    },
    /// A turn that an earlier runner had begun goes on in this one, as in [`Event::AttemptRejoined`].
    TurnRejoined {
        /// Which swarm.
        #[serde(flatten)]
        swarm: AttemptId,
        /// Which turn.
        #[serde(flatten)]
        turn: TurnId,
    },
    /// A model answered, or did not. Dropped when the turn is not the current one.
    TurnEnded {
        /// Which swarm.
        #[serde(flatten)]
        swarm: AttemptId,
        /// Which turn.
        #[serde(flatten)]
        turn: TurnId,
        /// What came of it.
        answer: Answer,
        /// The tokens that it took.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
        /// What that cost in millionths of a dollar, where it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<u64>,
        /// The model that answered, as it calls itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// The conversation that a program keeps of it, by its id: the next turn of the agent goes on with it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<String>,
    },
    /// A tool is called.
    ToolStarted {
        /// Which swarm.
        #[serde(flatten)]
        swarm: AttemptId,
        /// The turn that calls it.
        #[serde(flatten)]
        turn: TurnId,
        /// The tool.
        tool: Arc<str>,
    },
    /// A tool answered, or failed. Dropped when the call is not the current one.
    ToolEnded {
        /// Which swarm.
        #[serde(flatten)]
        swarm: AttemptId,
        /// The turn that called it.
        #[serde(flatten)]
        turn: TurnId,
        /// What it answered, or why it failed.
        result: Content,
        /// How it failed; none when it did not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fault: Option<Fault>,
    },
    /// A message lies in the mailbox of an agent of a swarm.
    MessageSent {
        /// Which swarm.
        #[serde(flatten)]
        swarm: AttemptId,
        /// What.
        #[serde(flatten)]
        message: MemberMessage,
    },
    /// An agent took a message out of its mailbox.
    MessageReceived {
        /// Which swarm.
        #[serde(flatten)]
        swarm: AttemptId,
        /// The receiver.
        agent: Arc<str>,
        /// The sender.
        from: Arc<str>,
        /// Its number in that mailbox.
        number: u64,
        /// How many it took together, of which this is the last.
        #[serde(default = "one", skip_serializing_if = "is_one")]
        count: u64,
    },
    /// The workspace of a swarm has a new entry.
    DataPublished {
        /// Which swarm.
        #[serde(flatten)]
        swarm: AttemptId,
        /// Its number in the workspace, from 1.
        number: u64,
        /// The topic.
        topic: Arc<str>,
        /// The agent that published it.
        author: Arc<str>,
        /// What.
        data: Content,
    },
    /// What an agent of a swarm wanted is not allowed, or not possible.
    ActionRefused {
        /// Which swarm.
        #[serde(flatten)]
        swarm: AttemptId,
        /// Its name.
        agent: Arc<str>,
        /// Why, and what would be.
        reason: String,
    },
    /// An agent of a swarm asked for help.
    HelpRequested {
        /// Which swarm.
        #[serde(flatten)]
        swarm: AttemptId,
        /// Its name.
        agent: Arc<str>,
        /// What the helper is to do.
        description: Content,
        /// The tools that it needs.
        skills: Vec<String>,
    },
    /// Something happened that only a team with a coordinator knows.
    Team {
        /// Which swarm.
        #[serde(flatten)]
        swarm: AttemptId,
        /// What.
        #[serde(flatten)]
        fact: TeamFact,
    },
    /// A swarm is done.
    SwarmFinished {
        /// Which swarm.
        #[serde(flatten)]
        swarm: AttemptId,
        /// Its result; none where it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<Content>,
        /// Why it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// An envelope, or what a person wrote, lies in the inbox of a step.
    Sent {
        /// Whose turn sent it; none is a person.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<StepId>,
        /// The receiver, by name.
        to: Arc<str>,
        /// The instance of the pipeline in which the receiver is, from 1.
        instance: u32,
        /// The call in which it is; none is the pipeline that runs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        within: Option<Arc<str>>,
        /// The way that it took, by its number in the pipeline's edges; none where a person wrote.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        way: Option<usize>,
        /// What.
        letter: InboxMessage,
    },
    /// A person has appended a text to a context pack, for every attempt that reads it from then on.
    PackAppended {
        /// The name of the pack.
        pack: Arc<str>,
        /// The text.
        text: Content,
    },
    /// An agent has said how far it is.
    StatusReported {
        /// Whose turn.
        step: StepId,
        /// The attempt.
        attempt: u32,
        /// What it said: a [`Report`](crate::types::handoff::Report) as JSON.
        report: Content,
    },
    /// A turn is about to begin that reads these: they leave the inbox.
    InputsTaken {
        /// Whose turn.
        step: StepId,
        /// The ids of the envelopes, in the order in which they are read; [`INPUTS`] at most.
        inputs: Vec<Arc<str>>,
    },
    /// Something that a turn is given or has left is stored.
    ArtifactStored {
        /// Whose turn.
        step: StepId,
        /// The attempt.
        attempt: u32,
        /// What, and where.
        artifact: Box<ArtifactMeta>,
    },
    /// A step waited for further envelopes, and no step at work can write to it any more: it has ended.
    NodeClosed {
        /// The step.
        step: StepId,
        /// To whom it owes an answer, and who never answered it, in words: it has then failed.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        owes: Vec<String>,
    },
    /// A budget refused a launch, or its time is over: the run ends.
    BudgetSpent {
        /// Which, and what was wanted of it, in words.
        message: String,
        /// Whether what runs is let finish.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        graceful: bool,
    },
    /// In a run that is recorded, something was asked of the outside: an agent, a program, a tool, or a file.
    Exchanged {
        /// Whose question it is.
        step: StepId,
        /// The attempt; 0 where it is no attempt's.
        attempt: u32,
        /// What was asked and answered, as JSON with the placeholders of recordings.
        exchange: Content,
    },
    /// A person asked the run to end: no step starts, running ones are ended. The run can be resumed.
    StopRequested,
    /// The run is over.
    RunFinished {
        /// How.
        status: RunStatus,
    },
    /// A step is about to run again, in a run that goes on after its end: what the journal says of it before no longer
    /// counts. Nothing follows from it without the [`Event::RunReopened`] that names it.
    StepReopened {
        /// The step.
        step: StepId,
        /// The attempt that it goes on with, from 1.
        attempt: u32,
        /// Steps are inside of it, of which some stay as they ended: only its own end no longer counts.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        inside: bool,
    },
    /// What counts for the budgets of a run that is about to go on after its end.
    UsedBefore {
        /// The agent that used it; none is the whole run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<Arc<str>>,
        /// Turns of agents.
        calls: u64,
        /// Tokens, read and written.
        tokens: u64,
        /// Money, in millionths of a dollar.
        cost: u64,
        /// The wall time of attempts, in milliseconds.
        time_ms: u64,
    },
    /// The run goes on after its end, or with another plan: steps that failed, and what depends on them, run again.
    RunReopened {
        /// The [`VERSION`] of the events that follow.
        version: u32,
        /// How many of the lines right before it belong to it: each a [`Event::StepReopened`] or [`Event::UsedBefore`].
        lines: u32,
        /// The digest of the plan that it goes on with, which lies among the artifacts; none is the one before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        plan: Option<String>,
        /// How long it has run, in milliseconds.
        ran_ms: u64,
        /// The number of the last request for agreement.
        #[serde(default, skip_serializing_if = "is_zero")]
        requests: u32,
    },
}

#[cfg(test)]
mod tests;
