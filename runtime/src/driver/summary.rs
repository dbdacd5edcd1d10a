//! What `ps` shows of a run: read from its plan, its journal and its lock.

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::core::graph::Graph;
use crate::core::state::{Blocked, Progress, Standing, State, Waiting};
use crate::io::files::agent_status;
use crate::io::home::{Home, RunFolder, Runner};
use crate::io::orphan_processes::{all_marked, is_alive};
use crate::io::socket;
use crate::types::agent_status::AgentStatus;
use crate::types::error::{JournalError, RunError};
use crate::types::event::{Event, Record, RunStatus, StepId};
use crate::types::handoff::Report;

/// The living processes that carry the mark of a run, by its id; looked for where it matters.
type Marked = LazyCell<BTreeMap<String, BTreeSet<i32>>>;

/// The steps that have not begun of which it is said what they wait for. A run can have millions.
const BLOCKED: usize = 100;

/// A run at a glance.
#[derive(Clone, Debug)]
pub struct RunSummary {
    /// Its id.
    pub id: String,
    /// The workflow's name; empty when the plan cannot be read.
    pub workflow: String,
    /// The pipeline that runs; empty when the journal cannot be read.
    pub pipeline: String,
    /// Whether it runs, could, or has ended.
    pub state: RunningState,
    /// The process that runs it.
    pub runner: Option<Runner>,
    /// How many processes of it still live though no process runs it: their runner was killed.
    pub survivors: u64,
    /// When it started, in milliseconds since 1970 (UTC).
    pub started_ms: u64,
    /// When it last changed, in milliseconds since 1970 (UTC).
    pub changed_ms: u64,
    /// How many steps have settled in the current rounds, wherever they are; see [`Progress`].
    pub done: u64,
    /// How many steps there are, as far as is known.
    pub total: u64,
    /// The gates that wait for an answer.
    pub gates: Vec<String>,
    /// The requests of its agents that wait for an approval.
    pub approvals: Vec<Waiting>,
    /// What agents say of themselves now, in their `status.json` or by `report_status`, by step.
    pub agents: Vec<(String, AgentStatus)>,
    /// The connections of its nodes to their agents.
    pub nodes: Vec<Standing>,
    /// The steps that have not begun and wait: the first 100 of them.
    pub blocked: Vec<Blocked>,
    /// How many there are.
    pub blocked_count: u64,
    /// Why it cannot be read in full, where it cannot.
    pub problem: Option<String>,
}

/// Whether a run is running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunningState {
    /// A process runs it.
    Running,
    /// It was stopped or killed, and can be resumed.
    Resumable,
    /// It has ended, and did what it should.
    Succeeded,
    /// It has ended, and failed.
    Failed,
    /// No process runs it, and its journal cannot be read, so that nothing more is known.
    Damaged,
}

impl Home {
    /// Every run, the oldest first.
    ///
    /// # Errors
    /// The folder cannot be read. A single run that cannot be read is listed all the same.
    pub fn list_runs(&self) -> Result<Vec<RunSummary>, RunError> {
        let marked: Marked = LazyCell::new(all_marked);
        Ok(self.list_folders()?.iter().rev().map(|folder| RunSummary::from_folder(folder, &marked)).collect())
    }
}

impl RunSummary {
    /// That of the run in `folder`, with the living processes that carry the marks of runs.
    pub(super) fn from_folder(folder: &RunFolder, marked: &Marked) -> RunSummary {
        let changed_ms = modified_ms(&folder.journal_path()).or_else(|| modified_ms(&folder.path)).unwrap_or(0);
        let is_running = folder.is_running();
        let mut summary = RunSummary {
            id: folder.id.clone(),
            workflow: String::new(),
            pipeline: String::new(),
            state: if is_running { RunningState::Running } else { RunningState::Resumable },
            runner: if is_running { folder.find_runner() } else { None },
            survivors: 0,
            started_ms: changed_ms,
            changed_ms,
            done: 0,
            total: 0,
            gates: Vec::new(),
            approvals: Vec::new(),
            agents: Vec::new(),
            nodes: Vec::new(),
            blocked: Vec::new(),
            blocked_count: 0,
            problem: None,
        };
        if let Err(error) = summary.read_folder(folder, marked) {
            // A newer swarmc reads the journal that it wrote.
            let lost = matches!(&error, RunError::Journal(journal) if !matches!(journal, JournalError::Newer { .. }));
            if lost && summary.state == RunningState::Resumable {
                summary.state = RunningState::Damaged;
            }
            summary.problem = Some(error.to_string());
        }
        summary
    }

    fn read_folder(&mut self, folder: &RunFolder, marked: &Marked) -> Result<(), RunError> {
        self.workflow.clone_from(&folder.read_plan()?.workflow);
        let records = folder.read_records()?;
        let plan = folder.plan_now(&records)?;
        let Some(Record { at, event: Event::RunStarted { pipeline, task, .. }, .. }) = records.first() else {
            return Ok(());
        };
        self.started_ms = *at;
        self.changed_ms = records.last().map_or(*at, |record| record.at);
        self.pipeline.clone_from(pipeline);
        let Some(pipeline) = plan.pipeline(pipeline) else {
            return Ok(());
        };
        let graph = Graph::new(&plan, &pipeline.name, task.as_deref(), folder.concurrency());
        let graph = graph.map_err(|error| RunError::Request(error.to_string()))?;
        let state = State::replay(Arc::new(graph), &records);
        let Progress { done, total } = state.progress();
        (self.done, self.total) = (done, total);
        self.gates = list_open_gates(&records);
        if self.state == RunningState::Running {
            let layout = folder.layout(pipeline);
            let open = state.open_steps().filter(|open| open.running);
            let status = open.filter_map(|open| {
                let status = agent_status(&layout.agent_folder(&open.step, open.attempt));
                let report = state.last_report(&open.step).and_then(|report| folder.read_text(report).ok());
                let report: Option<Report> = report.and_then(|text| serde_json::from_str(&text).ok());
                let status = match report {
                    Some(report) => Some(report.merge_into(status)),
                    None => status,
                };
                Some((open.step.label(), status?))
            });
            self.agents = status.collect();
        }
        self.nodes = list_standings(folder, &state, &records);
        let (mut blocked, is_run) = (state.blocked_steps(), self.state == RunningState::Running);
        let first = blocked.by_ref().take(BLOCKED);
        let first = first.map(|(step, waits)| Blocked { waits, pending: state.list_pending(&step, is_run), step });
        self.blocked = first.collect();
        self.blocked_count = self.blocked.len() as u64 + blocked.count() as u64;
        self.approvals = state.open_requests().filter(|_| state.final_status().is_none()).cloned().collect();
        if let Some(Record { event: Event::RunFinished { status }, .. }) = records.last()
            && self.state == RunningState::Resumable
        {
            self.state = match status {
                RunStatus::Succeeded => RunningState::Succeeded,
                RunStatus::Failed | RunStatus::OverBudget => RunningState::Failed,
            };
        }
        if self.state == RunningState::Resumable {
            let recorded =
                state.open_steps().flat_map(|open| open.processes).filter(is_alive).map(|process| process.group);
            let mut living = marked.get(&folder.id).cloned().unwrap_or_default();
            living.extend(recorded);
            self.survivors = living.len() as u64;
        }
        Ok(())
    }
}

/// The connections of a run's nodes to their agents, in the state that its records give: as the process that runs it
/// reports them, or else from its journal.
pub fn list_standings(folder: &RunFolder, state: &State, records: &[Record]) -> Vec<Standing> {
    let activities = match folder.is_running() {
        // One that ends at this moment has nothing more to say.
        true => Some(socket::activities(folder).unwrap_or_default()),
        false => None,
    };
    state.list_standings(records, activities.as_deref())
}

/// The gates that asked and were neither answered nor skipped.
fn list_open_gates(records: &[Record]) -> Vec<String> {
    let mut asking: Vec<&StepId> = Vec::new();
    for record in records {
        match &record.event {
            Event::GateOpened { step, .. } => asking.push(step),
            Event::GateAnswered { step, .. } | Event::StepSkipped { step, .. } => asking.retain(|open| *open != step),
            Event::RunFinished { .. } => asking.clear(),
            _ => {}
        }
    }
    asking.into_iter().map(StepId::label).collect()
}

fn modified_ms(path: &Path) -> Option<u64> {
    let time: SystemTime = std::fs::metadata(path).ok()?.modified().ok()?;
    u64::try_from(time.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok()
}
