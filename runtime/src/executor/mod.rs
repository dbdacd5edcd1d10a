//! What carries attempts out: threads that start processes, read them, end them, and report.
//!
//! In: a [`Job`] with everything already rendered. Out: what it put out, live to the viewer and to its logs, and one
//! report to the run's loop. Invariant: nothing a process does keeps its thread from seeing a cancellation.

mod attempt;
mod cancel;
mod capture;
mod log;
mod pool;
mod process;
mod scribe;
mod spawn;
mod tail;
mod viewer;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use swarmc_plan::{Command, Format};

pub(crate) use cancel::Cancel;
pub(crate) use pool::{Pool, Services};
pub(crate) use process::{group_ends, start_time};
pub(crate) use scribe::Scribe;
pub(crate) use viewer::Viewer;

use crate::event::StepId;

/// One attempt, ready to be carried out.
#[derive(Debug)]
pub(crate) struct Job {
    /// The step.
    pub step: StepId,
    /// The attempt, from 1.
    pub attempt: u32,
    /// The record that must be durable before anything starts.
    pub after: u64,
    /// What is done.
    pub work: Work,
    /// Commands that must exit with 0 afterwards.
    pub checks: Vec<Command>,
    /// The whole environment of its processes.
    pub environment: Arc<Vec<(OsString, OsString)>>,
    /// Where its processes run.
    pub directory: Arc<PathBuf>,
    /// The wall time at most, checks included.
    pub timeout: Option<Duration>,
    /// The time without a byte of output at most.
    pub idle: Option<Duration>,
    /// How long a process may stay after it reported its result.
    pub grace: Duration,
    /// The bytes of output kept.
    pub max_output: usize,
    /// Ends it early.
    pub cancel: Arc<Cancel>,
}

/// What an attempt does before its checks.
#[derive(Debug)]
pub(crate) enum Work {
    /// A command of the spec: what it prints is its output, also when it fails.
    Command {
        /// What is started.
        command: Command,
        /// What it reads.
        stdin: Option<Vec<u8>>,
    },
    /// A turn of a command-line agent.
    Agent {
        /// What is started.
        argv: Vec<OsString>,
        /// What it reads.
        stdin: Option<Vec<u8>>,
        /// What it prints.
        reads: Format,
        /// How to install it.
        install: Option<String>,
        /// Texts to be written before it starts, for people or for the agent itself.
        files: Vec<(PathBuf, String)>,
    },
    /// A recorded answer.
    Recorded {
        /// The text.
        text: String,
        /// The exit code.
        exit: i32,
        /// How long it takes.
        delay: Duration,
        /// Texts to be written before.
        files: Vec<(PathBuf, String)>,
    },
    /// A text that is there already, to be checked.
    Text(String),
}
