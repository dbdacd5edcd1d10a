//! What `ps` says of a run: read from its plan, its journal and its lock.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use swarmc_plan::{OnFailure, Step};

use crate::error::RunError;
use crate::event::{Event, Failure, Record, RunStatus, StepId};
use crate::home::RunFolder;

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
    /// When it started, in milliseconds since 1970 (UTC).
    pub started_ms: u64,
    /// When it last changed, in milliseconds since 1970 (UTC).
    pub changed_ms: u64,
    /// How many steps have settled in the current round of each instance.
    pub done: usize,
    /// How many steps a round has, over all instances.
    pub total: usize,
    /// The gates that wait for an answer.
    pub gates: Vec<String>,
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
}

impl RunSummary {
    pub(super) fn of(folder: &RunFolder) -> RunSummary {
        let changed_ms = modified(&folder.journal_path()).or_else(|| modified(&folder.path)).unwrap_or(0);
        let mut summary = RunSummary {
            id: folder.id.clone(),
            workflow: String::new(),
            pipeline: String::new(),
            state: if folder.is_running() { RunningState::Running } else { RunningState::Resumable },
            started_ms: changed_ms,
            changed_ms,
            done: 0,
            total: 0,
            gates: Vec::new(),
            problem: None,
        };
        if let Err(error) = summary.read(folder) {
            summary.problem = Some(error.to_string());
        }
        summary
    }

    fn read(&mut self, folder: &RunFolder) -> Result<(), RunError> {
        let plan = folder.plan()?;
        self.workflow.clone_from(&plan.workflow);
        let records = folder.records()?;
        let Some(Record { at, event: Event::RunStarted { pipeline, task, .. }, .. }) = records.first() else {
            return Ok(());
        };
        self.started_ms = *at;
        self.changed_ms = records.last().map_or(*at, |record| record.at);
        self.pipeline.clone_from(pipeline);
        let Some(pipeline) = plan.pipeline(pipeline) else {
            return Ok(());
        };
        self.total = if task.is_some() { 1 } else { pipeline.steps.len() * pipeline.parallelism as usize };
        let attempts: BTreeMap<&str, u32> =
            pipeline.steps.iter().map(|step| (step.name.as_str(), attempts(step))).collect();
        self.done = settled(&records, &attempts);
        self.gates = asking(&records);
        if let Some(Record { event: Event::RunFinished { status }, .. }) = records.last()
            && self.state == RunningState::Resumable
        {
            self.state = match status {
                RunStatus::Succeeded => RunningState::Succeeded,
                RunStatus::Failed | RunStatus::OverBudget => RunningState::Failed,
            };
        }
        Ok(())
    }
}

/// The attempts of a step at most: the turn that mends, and the attempt after it, included.
fn attempts(step: &Step) -> u32 {
    step.retry.times + if matches!(step.on_failure, OnFailure::Fix(_)) { 3 } else { 1 }
}

/// The gates that asked and were neither answered nor skipped.
fn asking(records: &[Record]) -> Vec<String> {
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

/// How many steps have settled in the last round that each of them reached, not counting rounds that others left.
fn settled(records: &[Record], attempts: &BTreeMap<&str, u32>) -> usize {
    // A failed attempt under `on-failure skip` and the skip that follows it are one step.
    let mut rounds: BTreeMap<u32, (u32, BTreeSet<&str>)> = BTreeMap::new();
    for record in records {
        let (step, settled) = match &record.event {
            Event::AttemptEnded { step, attempt, outcome } => {
                let last = attempts.get(&*step.name).is_none_or(|&attempts| *attempt >= attempts);
                let settled = match &outcome.failure {
                    None => true,
                    Some(Failure::Cancelled) => false,
                    Some(_) => last,
                };
                (step, settled)
            }
            Event::StepSkipped { step, .. } | Event::GateAnswered { step, .. } => (step, true),
            Event::ConditionJudged { step, error: Some(_), .. } => (step, true),
            _ => continue,
        };
        if step.within.is_some() {
            continue;
        }
        let (iteration, names) = rounds.entry(step.instance).or_default();
        if step.iteration > *iteration {
            (*iteration, *names) = (step.iteration, BTreeSet::new());
        }
        if settled && step.iteration == *iteration {
            names.insert(&step.name);
        }
    }
    rounds.values().map(|(_, names)| names.len()).sum()
}

fn modified(path: &Path) -> Option<u64> {
    let time: SystemTime = std::fs::metadata(path).ok()?.modified().ok()?;
    u64::try_from(time.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok()
}
