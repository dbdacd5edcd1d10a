//! What an editor shows of the last run: how it went, and what steps said then.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The runs of a workspace, as far as they lie on this machine.
pub trait Runs: Send + Sync {
    /// The newest run of a pipeline of a workflow in this workspace.
    fn last_run(&self, workflow: &str, pipeline: &str) -> Option<Arc<LastRun>>;
}

/// A run, as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastRun {
    /// Its id.
    pub id: String,
    /// How it stands.
    pub state: RunState,
    /// How long ago it last changed.
    pub age: Duration,
    /// What its parameters were.
    pub params: BTreeMap<String, String>,
    /// The steps that have ended, those in loops in their last round; without those in items and calls.
    pub steps: BTreeMap<String, LastStep>,
}

/// How a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunState {
    /// It runs.
    Running,
    /// It was stopped, and can be resumed.
    Resumable,
    /// It did what it should.
    Succeeded,
    /// It failed.
    Failed,
}

/// A step of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastStep {
    /// `succeeded`, `failed` or `skipped`.
    pub status: &'static str,
    /// The beginning of its output, at most some thousand bytes; none where it has none.
    pub output: Option<String>,
    /// How long its last attempt took.
    pub took: Option<Duration>,
}

impl RunState {
    /// In a word: `ok`, `failed`.
    pub fn as_str(self) -> &'static str {
        match self {
            RunState::Running => "running",
            RunState::Resumable => "stopped",
            RunState::Succeeded => "ok",
            RunState::Failed => "failed",
        }
    }
}

/// Runs that are asked for each pipeline once.
pub(crate) struct Remembered<'r> {
    runs: &'r dyn Runs,
    known: Mutex<Known>,
}

/// The last runs, or that there are none, by workflow and pipeline.
type Known = BTreeMap<(String, String), Option<Arc<LastRun>>>;

impl Remembered<'_> {
    /// Those of `runs`.
    pub(crate) fn new(runs: &dyn Runs) -> Remembered<'_> {
        Remembered { runs, known: Mutex::default() }
    }
}

impl Runs for Remembered<'_> {
    fn last_run(&self, workflow: &str, pipeline: &str) -> Option<Arc<LastRun>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (workflow.to_owned(), pipeline.to_owned());
        known.entry(key).or_insert_with(|| self.runs.last_run(workflow, pipeline)).clone()
    }
}

/// Where no runs are known.
#[derive(Clone, Copy, Debug)]
pub struct NoRuns;

impl Runs for NoRuns {
    fn last_run(&self, _: &str, _: &str) -> Option<Arc<LastRun>> {
        None
    }
}
