//! The command line of `swarmc worker`.

use std::path::PathBuf;

use clap::Args;
use swarmc_plan::DEFAULT_POOL;

/// Takes processes of runs on several machines: what their agents and commands start, for an engine.
///
/// Runs until a signal ends it. That ends no process: `swarmc shim` holds each, and a worker that starts with the same
/// `$SWARM_HOME` and pool goes on with them. Each process has the files of the run in a working tree of its own, and its
/// changes go back to the run as a patch. Secrets are variables of this program's environment; a process whose secrets
/// or program it lacks goes to another worker.
#[derive(Debug, Args)]
pub(crate) struct Worker {
    /// The address of the engine, as in `http://127.0.0.1:8080`.
    #[arg(long, value_name = "URL")]
    pub(crate) engine: String,
    /// The pool whose processes it takes.
    #[arg(long, value_name = "NAME", default_value = DEFAULT_POOL)]
    pub(crate) pool: String,
    /// How many processes go on at once; by default one for each processor.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) slots: Option<u32>,
    /// A clone of the repository of the runs. It fetches what it lacks from `origin`; without a clone it takes no process
    /// that needs files.
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
}
