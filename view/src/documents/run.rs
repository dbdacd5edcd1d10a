//! Runs, and their steps, as `swarmc ps` and `swarmc inspect` print them.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;
use swarmc_runtime::{
    AgentStatus, Blocked, Flow, Layout, Link, Pending, Reused, SkipReason, Standing, Status, StepId, Stream, Usage,
};

use super::Version;
use super::approval::Approval;
use crate::approvals::OpenRequest;
use crate::run_report::{Row, RowState};
use crate::run_summary::RunSummary;

/// What `swarmc ps --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Runs {
    /// The version of this form.
    pub version: Version,
    /// The runs, the newest first.
    pub runs: Vec<Run>,
}

impl Runs {
    /// Runs at a glance, in their order.
    pub fn new(summaries: &[RunSummary]) -> Runs {
        Runs { version: Version, runs: summaries.iter().map(Run::from).collect() }
    }
}

/// What `swarmc inspect RUN --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RunDetails {
    /// What `ps` says of it.
    #[serde(flatten)]
    pub run: Run,
    /// The version of this form.
    pub version: Version,
    /// Its folder.
    pub folder: PathBuf,
    /// Where its outputs are.
    pub outputs: PathBuf,
    /// Its steps, in the order in which they began.
    pub steps: Vec<StepFiles>,
}

/// A run at a glance.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Run {
    /// Its id.
    pub run: String,
    /// The workflow; empty where its plan cannot be read.
    pub workflow: String,
    /// The pipeline that runs; empty where its journal cannot be read.
    pub pipeline: String,
    /// Where it stands.
    pub state: RunState,
    /// When it began, in milliseconds since 1970.
    pub started_ms: u64,
    /// When it changed last, in milliseconds since 1970.
    pub changed_ms: u64,
    /// The steps that have settled in the current rounds.
    pub done: u64,
    /// The steps that there are, as far as is known.
    pub total: u64,
    /// What agents say of themselves.
    pub agents: Vec<AgentAtWork>,
    /// How agents stand.
    pub nodes: Vec<NodeConnection>,
    /// How far the plan of each swarm with a coordinator is.
    pub plans: Vec<PlanProgress>,
    /// The steps that have not begun.
    pub waiting: WaitingSteps,
    /// The gates that wait for an answer.
    pub gates: Vec<String>,
    /// What agents wait for a person to agree to.
    pub approvals: Vec<Approval>,
    /// The process that runs it.
    pub runner: Option<RunnerState>,
    /// How many processes of it live on though its runner was killed.
    pub survivors: u64,
    /// Why it cannot be read.
    pub problem: Option<String>,
}

/// Where a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// A process runs it.
    Running,
    /// It was stopped or killed, and can be resumed.
    Resumable,
    /// It has ended, and did what it should.
    Succeeded,
    /// It has ended, and failed.
    Failed,
    /// Its journal cannot be read.
    Damaged,
}

impl RunState {
    /// Whether nothing more will come of it.
    pub fn has_ended(self) -> bool {
        matches!(self, RunState::Succeeded | RunState::Failed)
    }
}

/// An agent that works by files, or reports how far it is.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AgentAtWork {
    /// Its step.
    pub step: String,
    /// What it says of itself.
    pub status: AgentStatus,
}

/// The connection of a step to its agent.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct NodeConnection {
    /// The step.
    pub step: String,
    /// Its last attempt, or the one that comes next.
    pub attempt: u32,
    /// Whether the agent is connected.
    pub state: Link,
    /// What it is doing, where a turn goes on.
    pub stream: Option<Flow>,
    /// The conversation that its provider keeps.
    pub session: Option<String>,
    /// When it last did something, in milliseconds since 1970.
    pub active_ms: u64,
    /// What it waits for, where it is idle.
    pub waits: Option<String>,
    /// The steps that could still write to it.
    pub pending: Vec<WaitedFor>,
}

/// A step that is waited for.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct WaitedFor {
    /// Its name.
    pub step: String,
    /// What it is doing.
    pub why: String,
}

/// The steps that have not begun.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WaitingSteps {
    /// How many there are.
    pub count: u64,
    /// The first 100 of them.
    pub steps: Vec<WaitingStep>,
}

/// A step that has not begun.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WaitingStep {
    /// The step.
    pub step: String,
    /// Its instance of the pipeline, from 1.
    pub instance: u32,
    /// What it waits for.
    pub waits: String,
    /// The steps that it waits for.
    pub pending: Vec<WaitedFor>,
}

/// The process that runs a run.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct RunnerState {
    /// Its process id.
    pub pid: i32,
    /// Whether it does nothing until it gets `SIGCONT`.
    pub stopped: bool,
}

/// A step with the paths of its files.
#[derive(Debug, Serialize, JsonSchema)]
pub struct StepFiles {
    /// The step.
    #[serde(flatten)]
    pub row: StepRow,
    /// The paths of its last attempt.
    pub paths: StepPaths,
}

/// The files of an attempt, those that there are.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct StepPaths {
    /// What the step put out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<PathBuf>,
    /// What its agent was told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<PathBuf>,
    /// What its agent was told before that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<PathBuf>,
    /// What its process wrote to standard output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdout: Option<PathBuf>,
    /// What its process wrote to standard error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stderr: Option<PathBuf>,
    /// The folder of an agent that works by files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<PathBuf>,
}

impl StepPaths {
    /// The files that an attempt of a step has: its output where `is_last`.
    pub fn find(layout: &Layout, step: &StepId, attempt: u32, is_last: bool) -> StepPaths {
        let existing = |path: PathBuf| Some(path).filter(|path| path.exists());
        StepPaths {
            output: existing(layout.output_path(step)).filter(|_| is_last),
            prompt: existing(layout.prompt_path(step, attempt)),
            system: existing(layout.system_path(step, attempt)),
            stdout: existing(layout.log_path(step, attempt, Stream::Stdout)),
            stderr: existing(layout.log_path(step, attempt, Stream::Stderr)),
            folder: existing(layout.agent_folder(step, attempt)),
        }
    }

    /// Each path with its word.
    pub fn list(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let all = [
            ("output", &self.output),
            ("prompt", &self.prompt),
            ("system", &self.system),
            ("stdout", &self.stdout),
            ("stderr", &self.stderr),
            ("folder", &self.folder),
        ];
        all.into_iter().filter_map(|(kind, path)| Some((kind, path.as_deref()?)))
    }
}

/// A step of one instance in one round.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct StepRow {
    /// Its name.
    pub step: String,
    /// The round, from 1.
    pub iteration: u32,
    /// The instance of the pipeline, from 1.
    pub instance: u32,
    /// The loop, item or call that it is inside of.
    pub within: Option<String>,
    /// Where it stands.
    pub status: StepStatus,
    /// Why it did not succeed, in words.
    pub reason: Option<String>,
    /// Why it was skipped, as the journal has it.
    pub skip: Option<SkipReason>,
    /// Its last attempt; 0 where none began.
    pub attempts: u32,
    /// When it began, in milliseconds since 1970.
    pub started_ms: Option<u64>,
    /// When it ended, in milliseconds since 1970.
    pub ended_ms: Option<u64>,
    /// The exit code of its last attempt.
    pub exit: Option<i32>,
    /// The end of its standard error.
    pub stderr: String,
    /// What its turns used.
    pub usage: Option<Usage>,
    /// The conversation that its provider keeps.
    pub session: Option<String>,
    /// The agent that took the last turn in place of its own.
    pub fallback: Option<String>,
    /// The further turns in which answers were mended.
    pub repairs: u32,
    /// The earlier result that its last attempt took.
    pub reused: Option<Reused>,
    /// Why no earlier result took the place of its last attempt, in a run that looks for one.
    pub missed: Option<String>,
}

/// Where a step stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepStatus {
    /// It did what it should.
    Succeeded,
    /// It failed.
    Failed,
    /// It did not run, or its failure counts as if it had not.
    Skipped,
    /// It is at work.
    Running,
    /// It is between two attempts.
    Retrying,
    /// It is between two turns.
    Idle,
    /// It repeats itself, and waits for a decision.
    Stalled,
    /// It is a gate without an answer, or has not begun.
    Waiting,
    /// A stop ended it.
    Cancelled,
}

impl RunState {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            RunState::Running => "running",
            RunState::Resumable => "resumable",
            RunState::Succeeded => "succeeded",
            RunState::Failed => "failed",
            RunState::Damaged => "damaged",
        }
    }
}

impl StepStatus {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            StepStatus::Succeeded => "succeeded",
            StepStatus::Failed => "failed",
            StepStatus::Skipped => "skipped",
            StepStatus::Running => "running",
            StepStatus::Retrying => "retrying",
            StepStatus::Idle => "idle",
            StepStatus::Stalled => "stalled",
            StepStatus::Waiting => "waiting",
            StepStatus::Cancelled => "cancelled",
        }
    }
}

impl From<RowState> for StepStatus {
    fn from(state: RowState) -> StepStatus {
        match state {
            RowState::Running => StepStatus::Running,
            RowState::Waiting => StepStatus::Retrying,
            RowState::Idle => StepStatus::Idle,
            RowState::Stalled => StepStatus::Stalled,
            RowState::Asking | RowState::Blocked => StepStatus::Waiting,
            RowState::Cancelled => StepStatus::Cancelled,
            RowState::Ended(Status::Succeeded) => StepStatus::Succeeded,
            RowState::Ended(Status::Failed) => StepStatus::Failed,
            RowState::Ended(Status::Skipped) => StepStatus::Skipped,
        }
    }
}

/// How far the plan of a swarm with a coordinator is.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PlanProgress {
    /// The step that runs the swarm.
    pub step: String,
    /// In a few words, such as `plan v3: 2 of 5 items done`.
    pub progress: String,
}

impl From<&RunSummary> for Run {
    fn from(run: &RunSummary) -> Run {
        Run {
            run: run.id.clone(),
            workflow: run.workflow.clone(),
            pipeline: run.pipeline.clone(),
            state: run.state,
            started_ms: run.started_ms,
            changed_ms: run.changed_ms,
            done: run.done,
            total: run.total,
            agents: run
                .agents
                .iter()
                .map(|(step, status)| AgentAtWork { step: step.clone(), status: status.clone() })
                .collect(),
            nodes: run.nodes.iter().map(NodeConnection::from).collect(),
            plans: run
                .plans
                .iter()
                .map(|(step, progress)| PlanProgress { step: step.clone(), progress: progress.clone() })
                .collect(),
            waiting: WaitingSteps {
                count: run.blocked_count,
                steps: run.blocked.iter().map(WaitingStep::from).collect(),
            },
            gates: run.gates.clone(),
            approvals: run.approvals.iter().map(|waiting| Approval::from(&OpenRequest::from(waiting))).collect(),
            runner: run.runner.map(|runner| RunnerState { pid: runner.pid, stopped: runner.stopped }),
            survivors: run.survivors,
            problem: run.problem.clone(),
        }
    }
}

impl From<&Standing> for NodeConnection {
    fn from(node: &Standing) -> NodeConnection {
        NodeConnection {
            step: node.step.label(),
            attempt: node.attempt,
            state: node.state,
            stream: node.stream,
            session: node.session.clone(),
            active_ms: node.active_ms,
            waits: node.waits.map(str::to_owned),
            pending: node.pending.iter().map(WaitedFor::from).collect(),
        }
    }
}

impl From<&Pending> for WaitedFor {
    fn from(pending: &Pending) -> WaitedFor {
        WaitedFor { step: pending.step.to_string(), why: pending.why.to_string() }
    }
}

impl From<&Blocked> for WaitingStep {
    fn from(blocked: &Blocked) -> WaitingStep {
        WaitingStep {
            step: blocked.step.label(),
            instance: blocked.step.instance,
            waits: blocked.waits.to_string(),
            pending: blocked.pending.iter().map(WaitedFor::from).collect(),
        }
    }
}

impl From<&Row> for StepRow {
    fn from(row: &Row) -> StepRow {
        let is_over = matches!(row.state, RowState::Cancelled | RowState::Ended(_));
        StepRow {
            step: row.step.name.to_string(),
            iteration: row.step.iteration,
            instance: row.step.instance,
            within: row.step.within.as_deref().map(str::to_owned),
            status: row.state.into(),
            reason: Some(row.reason()).filter(|reason| !reason.is_empty()),
            skip: row.skip.as_deref().cloned(),
            attempts: row.attempt,
            started_ms: (row.state != RowState::Blocked).then_some(row.started_ms),
            ended_ms: is_over.then_some(row.ended_ms),
            exit: row.exit,
            stderr: row.stderr.to_string(),
            usage: row.usage.as_deref().copied(),
            session: row.session.as_deref().map(str::to_owned),
            fallback: row.fallback.as_deref().map(str::to_owned),
            repairs: row.repairs,
            reused: row.reused.as_deref().cloned(),
            missed: row.missed.as_deref().map(str::to_owned),
        }
    }
}
