//! The only loop: await input → append → apply → decide → start work.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use swarmc_plan::Plan;

use crate::control::{Control, Wish};
use crate::error::RunError;
use crate::event::StepId;
use crate::home::{Home, Lock};
use crate::observer::Observer;
use crate::socket::Socket;

/// What to run, and with what.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The pipeline; the plan's default when none is named.
    pub pipeline: Option<String>,
    /// Only this step of it, outside its pipeline.
    pub task: Option<String>,
    /// Parameters in their textual form; defaults are filled in.
    pub params: BTreeMap<String, String>,
    /// What was piped into `swarmc run`.
    pub stdin: Option<Vec<u8>>,
    /// Where processes run: an absolute path.
    pub workspace: PathBuf,
    /// The caller's environment, of which processes get what the plan lets through.
    pub environment: BTreeMap<OsString, OsString>,
}

/// How this process's part of a run ended.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The run's id.
    pub run: String,
    /// How it ended.
    pub ended: Ended,
    /// The value of the pipeline's `result`, of every instance that has one, in order.
    pub values: Vec<String>,
    /// The steps whose failure failed the run, in declaration order.
    pub failed: Vec<StepId>,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It did what it should.
    Succeeded,
    /// The workflow failed.
    Failed,
    /// A person stopped it; it can be resumed.
    Stopped,
}

/// What the loop waits for.
#[derive(Debug)]
pub(crate) enum Input {
    /// A person's wish.
    Wish(Wish),
}

/// Starts a run of `plan` and sees it through to its end.
///
/// # Errors
/// The request does not fit the plan, or the environment failed. What had begun can be resumed.
pub fn start(
    home: &Home,
    plan: &Plan,
    options: Options,
    control: Control,
    observer: Box<dyn Observer>,
) -> Result<Outcome, RunError> {
    let folder = home.create()?;
    let _lock = Lock::take(&folder)?;
    let _socket = Socket::listen(&folder, control)?;
    let _ = (plan, options, observer);
    Err(RunError::Request("interim".to_owned()))
}

/// Goes on with a run that was stopped or killed.
///
/// # Errors
/// No such run, it has ended, another process has it, its journal is damaged, or the environment failed.
pub fn resume(
    home: &Home,
    run: &str,
    environment: BTreeMap<OsString, OsString>,
    control: Control,
    observer: Box<dyn Observer>,
) -> Result<Outcome, RunError> {
    let folder = home.find(run)?;
    let _lock = Lock::take(&folder)?;
    let _socket = Socket::listen(&folder, control)?;
    let _ = (environment, observer);
    Err(RunError::Request("interim".to_owned()))
}
