//! The state of a local run, kept beside its journal while the run goes on: a runner that resumes a long run folds its last
//! records alone.
//!
//! ```text
//!  journal ──► fold ──► snapshots/state ──► resume ◄── the records behind it
//!                ▲            │
//!                └────────────┘   the next snapshot begins with the last
//! ```
//!
//! Invariant: a snapshot is a fold of records, and never what a runner has in memory, which has given its commands already.

use std::io;
use std::sync::Arc;

use swarmc_plan::Plan;

use super::swarms::files::{FileLengths, SwarmFiles};
use super::{build_graph, find_pipeline};
use crate::core::graph::Graph;
use crate::core::state::State;
use crate::io::home::{JournalRead, RunFolder};
use crate::types::error::{JournalError, RunError};
use crate::types::event::Event;

/// The name of its snapshots.
const STATE: &str = "state";

/// A run as its runners have left it.
pub(super) struct Former {
    /// Its journal: all of it, or what follows a snapshot.
    pub read: JournalRead,
    /// The plan that its records are about.
    pub plan: Plan,
    pub graph: Arc<Graph>,
    pub state: State,
    /// The files of its swarms ahead of the records that were read.
    pub files: SwarmFiles,
    lengths: FileLengths,
}

impl Former {
    /// Reads a run from its snapshot on.
    ///
    /// # Errors
    /// Its journal or its plan cannot be read, or do not match.
    pub(super) fn read(folder: &RunFolder) -> Result<Former, RunError> {
        if let Some(read) = folder.read_behind(STATE)?
            && let Some(former) = Former::fold(folder, read)?
        {
            return Ok(former);
        }
        Former::read_all(folder)
    }

    /// Reads all of a run.
    ///
    /// # Errors
    /// As [`Former::read`].
    pub(super) fn read_all(folder: &RunFolder) -> Result<Former, RunError> {
        let former = Former::fold(folder, folder.read_journal()?)?;
        Ok(former.expect("without a snapshot there is none that does not fit"))
    }

    /// None where the snapshot does not fit.
    fn fold(folder: &RunFolder, read: JournalRead) -> Result<Option<Former>, RunError> {
        let Event::RunStarted { pipeline, task, .. } = &read.first.event else { return Err(report_other(folder)) };
        let (_, plan) = folder.plan_of(read.headers())?;
        let found = find_pipeline(&plan, Some(pipeline))?;
        let graph = Arc::new(build_graph(&plan, found, task.as_deref(), folder.concurrency(read.headers()))?);
        let (state, files, lengths) = match &read.folded {
            None => {
                let state = State::replay(Arc::clone(&graph), &read.records);
                (state, SwarmFiles::default(), FileLengths::default())
            }
            Some(folded) => {
                let Some((mut state, lengths)) = restore(&graph, folded) else { return Ok(None) };
                let Some(files) = lengths.read(folder) else { return Ok(None) };
                read.records.iter().for_each(|record| state.apply(record));
                (state, files, lengths)
            }
        };
        Ok(Some(Former { read, plan, graph, state, files, lengths }))
    }

    /// Keeps a snapshot of it. False where none can be kept.
    pub(super) fn keep(&mut self, folder: &RunFolder) -> Result<bool, RunError> {
        let Event::RunStarted { pipeline, .. } = &self.read.first.event else { return Ok(false) };
        let layout = folder.layout(find_pipeline(&self.plan, Some(pipeline))?);
        self.lengths.add(folder, &layout, &self.read.records)?;
        let written = folder.write_snapshot(STATE, &self.read, |mut file| {
            serde_json::to_writer(&mut file, &self.lengths)?;
            file.write_all(b"\n")?;
            serde_json::to_writer(file, &self.state).map_err(io::Error::from)
        });
        written.map_err(RunError::io("write", folder.journal_path()))
    }
}

/// The first record is another one than that of the start.
pub(super) fn report_other(folder: &RunFolder) -> RunError {
    let what = "does not begin with the start of a run".to_owned();
    JournalError::Empty { path: folder.journal_path(), what }.into()
}

fn restore(graph: &Arc<Graph>, folded: &[u8]) -> Option<(State, FileLengths)> {
    let (lengths, state) = std::str::from_utf8(folded).ok()?.split_once('\n')?;
    let lengths = serde_json::from_str(lengths).ok()?;
    Some((State::restore(Arc::clone(graph), state).ok()?, lengths))
}

/// Makes a snapshot of a run, which may go on meanwhile. False where there will be no more: it cannot be kept, or the run was
/// reopened.
pub(super) fn keep_state(folder: &RunFolder) -> bool {
    // Without it the run goes on as well; its disk may be full.
    Former::read(folder).and_then(|mut former| former.keep(folder)).unwrap_or(false)
}
