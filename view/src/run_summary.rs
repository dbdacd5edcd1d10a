//! A run at a glance, as `ps` shows it.
//!
//! In: the plan of a run, its journal, its lock and what its processes say of themselves. Out: a [`RunSummary`]. A run that
//! cannot be read has one too, which says why.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use swarmc_runtime::handoff::Report;
use swarmc_runtime::{
    AgentStatus, Blocked, Home, JournalError, LeftProcesses, Open, Progress, Record, RunAge, RunError, RunFolder,
    RunStatus, Runner, Standing, State, Waiting, activities, agent_status,
};

use crate::documents::RunState;
use crate::follow::FollowedRun;
use crate::past::{Past, PastError};
use crate::team_plan::Coordination;

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
    pub state: RunState,
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
    /// How far the plan of each swarm with a coordinator is, by step, such as `plan v3: 2 of 5 items done`.
    pub plans: Vec<(String, String)>,
    /// The connections of its nodes to their agents.
    pub nodes: Vec<Standing>,
    /// The steps that have not begun and wait: the first 100 of them.
    pub blocked: Vec<Blocked>,
    /// How many there are.
    pub blocked_count: u64,
    /// Why it cannot be read in full, where it cannot.
    pub problem: Option<String>,
}

/// Every run, the oldest first. A single run that cannot be read is listed all the same.
///
/// # Errors
/// The folder of the runs cannot be read.
pub fn list_runs(home: &Home) -> Result<Vec<RunSummary>, RunError> {
    let left = LeftProcesses::default();
    Ok(home.list_folders()?.iter().rev().map(|folder| RunSummary::read(folder, &left)).collect())
}

impl RunSummary {
    /// That of the run in `folder`, with the living processes that runs left.
    pub fn read(folder: &RunFolder, left: &LeftProcesses) -> RunSummary {
        let mut summary = RunSummary::begin(folder);
        if let Err(error) = summary.read_folder(folder, left) {
            // A newer swarmc reads the journal that it wrote.
            let lost = matches!(&error, RunError::Journal(journal) if !matches!(journal, JournalError::Newer { .. }));
            if lost && summary.state == RunState::Resumable {
                summary.state = RunState::Damaged;
            }
            summary.problem = Some(error.to_string());
        }
        summary
    }

    /// That of a run that is followed.
    pub fn of_followed(run: &FollowedRun, left: &LeftProcesses) -> RunSummary {
        let mut summary = RunSummary::begin(&run.folder);
        summary.fill((&run.folder, &run.past, &run.state), left);
        summary
    }

    /// What is known of a run before its plan and its journal are read.
    fn begin(folder: &RunFolder) -> RunSummary {
        let changed_ms = modified_ms(&folder.journal_path()).or_else(|| modified_ms(&folder.path)).unwrap_or(0);
        let is_running = folder.is_running();
        RunSummary {
            id: folder.id.clone(),
            workflow: String::new(),
            pipeline: String::new(),
            state: if is_running { RunState::Running } else { RunState::Resumable },
            runner: if is_running { folder.find_runner() } else { None },
            survivors: 0,
            started_ms: changed_ms,
            changed_ms,
            done: 0,
            total: 0,
            gates: Vec::new(),
            approvals: Vec::new(),
            agents: Vec::new(),
            plans: Vec::new(),
            nodes: Vec::new(),
            blocked: Vec::new(),
            blocked_count: 0,
            problem: None,
        }
    }

    /// When it last changed, and whether it has ended.
    pub fn age(&self) -> RunAge {
        RunAge { changed_ms: self.changed_ms, has_ended: self.state.has_ended() }
    }

    fn read_folder(&mut self, folder: &RunFolder, left: &LeftProcesses) -> Result<(), RunError> {
        let past = match Past::read(folder) {
            Ok(past) => past,
            Err(error) => {
                self.workflow = folder.read_plan()?.workflow;
                return match error {
                    PastError::Run(error) => Err(error),
                    // One that was killed before it had begun.
                    PastError::Mismatch { .. } | PastError::NoPipeline { .. } => Ok(()),
                    PastError::Graph(error) => Err(RunError::Request(error.to_string())),
                };
            }
        };
        let graph = past.build_graph(folder).map_err(|error| RunError::Request(error.to_string()))?;
        let state = State::replay(graph, &past.records);
        self.fill((folder, &past, &state), left);
        Ok(())
    }

    fn fill(&mut self, (folder, past, state): (&RunFolder, &Past, &State), left: &LeftProcesses) {
        self.workflow.clone_from(&past.plan.workflow);
        self.pipeline.clone_from(&past.pipeline().name);
        if let (Some(first), Some(last)) = (past.records.first(), past.records.last()) {
            (self.started_ms, self.changed_ms) = (first.at, last.at);
        }
        let Progress { done, total } = state.progress();
        (self.done, self.total) = (done, total);
        let is_running = self.state == RunState::Running;
        if is_running {
            self.agents = list_agents(folder, past, state);
        }
        let teams = Coordination::collect(&past.plan, &past.records);
        self.plans = teams.into_iter().map(|(step, team)| (step.label(), team.summarize())).collect();
        self.nodes = list_standings(folder, state, &past.records);
        let mut blocked = state.blocked_steps();
        let first = blocked.by_ref().take(BLOCKED);
        let first = first.map(|(step, waits)| Blocked { waits, pending: state.list_pending(&step, is_running), step });
        self.blocked = first.collect();
        self.blocked_count = self.blocked.len() as u64 + blocked.count() as u64;
        match state.final_status() {
            // What is still open of a run that has ended needs no answer any more.
            Some(status) if !is_running => {
                self.state = match status {
                    RunStatus::Succeeded => RunState::Succeeded,
                    RunStatus::Failed | RunStatus::OverBudget => RunState::Failed,
                };
            }
            Some(_) => {}
            None => {
                let asking = state.open_steps().filter(|open| open.asking);
                self.gates = asking.map(|open| open.step.label()).collect();
                self.approvals = state.open_requests().cloned().collect();
            }
        }
        if self.state == RunState::Resumable {
            self.survivors = left.count(&folder.id, state.open_steps().flat_map(|open| open.processes));
        }
    }
}

/// What the agents that are at work say of themselves: in their files, or by their last report.
fn list_agents(folder: &RunFolder, past: &Past, state: &State) -> Vec<(String, AgentStatus)> {
    let layout = folder.layout(past.pipeline());
    let status = |Open { step, attempt, .. }: Open| {
        let status = agent_status(&layout.agent_folder(&step, attempt));
        let report = state.last_report(&step).and_then(|report| folder.read_text(report).ok());
        let report: Option<Report> = report.and_then(|text| serde_json::from_str(&text).ok());
        let status = match report {
            Some(report) => Some(report.merge_into(status)),
            None => status,
        };
        Some((step.label(), status?))
    };
    state.open_steps().filter(|open| open.running).filter_map(status).collect()
}

/// The connections of a run's nodes to their agents, in the state that its records give: as the process that runs it
/// reports them, or else from its journal.
pub fn list_standings(folder: &RunFolder, state: &State, records: &[Record]) -> Vec<Standing> {
    let activities = match folder.is_running() {
        // One that ends at this moment has nothing more to say.
        true => Some(activities(folder).unwrap_or_default()),
        false => None,
    };
    state.list_standings(records, activities.as_deref())
}

fn modified_ms(path: &Path) -> Option<u64> {
    let time: SystemTime = std::fs::metadata(path).ok()?.modified().ok()?;
    u64::try_from(time.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok()
}
