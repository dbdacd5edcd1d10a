//! Why a run could not go on: the environment failed, not the workflow.

use std::io;
use std::path::PathBuf;

use crate::types::divergence::Divergence;
use crate::types::event::RunStatus;
use crate::types::recording_error::RecordingError;

/// The environment failed, or was asked for something that is not there. Reads well after "failed to …:".
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A file or folder of `$SWARM_HOME` could not be used.
    #[error("cannot {action} `{path}`: {source}", path = path.display())]
    Io {
        /// What was tried, as a verb: `create`, `read`, `lock`.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// The journal of a run cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The run had to stop, since what happens can no longer be recorded.
    #[error("run `{run}` stopped: {reason}; once that is fixed, type `swarmc resume {run}`")]
    Interrupted {
        /// The run, which can be resumed.
        run: String,
        /// What failed.
        reason: String,
    },
    /// No run has this id.
    #[error("no run `{id}` in `{home}`: `swarmc ps --all` lists the runs", home = home.display())]
    UnknownRun {
        /// What was asked for.
        id: String,
        /// Where it was looked for.
        home: PathBuf,
    },
    /// Several runs have an id that begins so.
    #[error("`{id}` is the beginning of several runs: {}", candidates.join(", "))]
    AmbiguousRun {
        /// What was asked for.
        id: String,
        /// The ids that begin so.
        candidates: Vec<String>,
    },
    /// Another process has the run.
    #[error("run `{run}` is being run by another process")]
    Busy {
        /// The run.
        run: String,
    },
    /// The run is over.
    #[error("run `{run}` has ended ({}", match status {
        RunStatus::Succeeded => "it succeeded): there is nothing to resume".to_owned(),
        RunStatus::Failed => format!("it failed): `swarmc resume {run} --retry-failed` runs the failed steps again"),
        RunStatus::OverBudget => {
            format!("its budget was spent): `swarmc resume {run} --with SPEC` continues with a spec that has a larger budget")
        }
    })]
    Ended {
        /// The run.
        run: String,
        /// How it ended.
        status: RunStatus,
    },
    /// The run is not running, so it cannot be asked to stop.
    #[error("run `{run}` is not running")]
    NotRunning {
        /// The run.
        run: String,
    },
    /// The plan beside a journal cannot be used.
    #[error("the plan of run `{run}` cannot be used: {reason}")]
    Plan {
        /// The run.
        run: String,
        /// Why.
        reason: String,
    },
    /// A recording cannot be read.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// The run has ended, and its recording could not be put where it belongs.
    #[error("run `{run}` has ended, and its recording could not be written: {source}")]
    Unrecorded {
        /// The run.
        run: String,
        /// Why.
        source: Box<RunError>,
    },
    /// The run is a replay, and asked something that its recording does not hold.
    #[error("{0}")]
    Diverged(Box<Divergence>),
    /// What was asked for does not fit the plan.
    #[error("{0}")]
    Request(String),
}

impl RunError {
    /// For `map_err`: what was tried, on which path.
    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> RunError {
        let path = path.into();
        move |source| RunError::Io { action, path, source }
    }
}

/// Why a journal cannot be read. Nothing of it has been changed.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// It could not be opened or read.
    #[error("cannot read journal `{path}`: {source}", path = path.display())]
    Io {
        /// The journal.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A line is damaged, and whole lines follow it.
    #[error("journal `{path}` is damaged at line {line} (byte {byte}): {problem}; the {} before it can be read; it was left \
        as it is", format_count(line - 1), path = path.display())]
    Corrupt {
        /// The journal.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// Where the line begins, from 0.
        byte: u64,
        /// What is wrong with it.
        problem: String,
    },
    /// It was written by a newer swarmc.
    #[error("journal `{path}` has version {found}, but this swarmc reads up to {known}: update swarmc",
        path = path.display())]
    Newer {
        /// The journal.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The newest that this build reads.
        known: u32,
    },
    /// It is not there. Every run has one before it has a name.
    #[error("journal `{path}` is not there: it was deleted or moved away", path = path.display())]
    Missing {
        /// Where it was.
        path: PathBuf,
    },
    /// Not one whole record is in it.
    #[error("journal `{path}` {what}: what the run had recorded is lost", path = path.display())]
    Empty {
        /// The journal.
        path: PathBuf,
        /// What it holds in the place of records.
        what: String,
    },
    /// Its lines end in CRLF, so that no checksum holds.
    #[error("journal `{path}` was converted: its lines end in CRLF; type `sed -i 's/\\r$//' '{path}'`, after which {} can be \
        read", format_count(*records), path = path.display())]
    Converted {
        /// The journal.
        path: PathBuf,
        /// The records that are whole without that.
        records: u64,
    },
}

fn format_count(count: u64) -> String {
    if count == 1 { "1 record".to_owned() } else { format!("{count} records") }
}
