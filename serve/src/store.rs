//! The runs that were looked at last, folded: a run is read once, and then only what is new of it.
//!
//! In: the name of a run. Out: the run as it is now. Invariant: at most [`MOST`] runs stay in memory; each is read by one
//! request at a time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use swarmc_runtime::{Home, LeftProcesses, RunError, RunFolder};
use swarmc_view::{FollowedRun, PastError, RunSummary};

use crate::problem::Problem;

/// The runs that stay in memory; those that go on stay besides, up to the second number.
const KEPT: usize = 8;
const MOST: usize = 64;

/// The runs that are known at a glance at most; where there are more, all are read anew.
const GLANCES: usize = 10_000;

/// What tells whether a journal has changed: its length, and when it was written.
#[derive(Clone, Copy, Debug, PartialEq)]
struct JournalStamp(u64, SystemTime);

impl JournalStamp {
    fn of(folder: &RunFolder) -> Option<JournalStamp> {
        let metadata = std::fs::metadata(folder.journal_path()).ok()?;
        Some(JournalStamp(metadata.len(), metadata.modified().ok()?))
    }
}

/// A run that is read when it is first asked for.
type Slot = Arc<Mutex<Option<Followed>>>;

/// A run, and what was made of its plan.
#[derive(Debug)]
pub(crate) struct Followed {
    pub run: FollowedRun,
    /// The picture of its plan and the tag of that, with the reading of the plan that they come from.
    pub picture: Option<(u32, Arc<Picture>)>,
}

/// A picture of a plan, as JSON, and the tag by which a client asks whether it has changed.
#[derive(Debug)]
pub(crate) struct Picture {
    pub json: String,
    pub tag: String,
}

/// The runs in memory, in the order in which they were last asked for.
#[derive(Debug, Default)]
pub(crate) struct Store {
    runs: Mutex<Vec<(String, Slot)>>,
    /// The runs that no process ran when they were read, by id, each with the state of its journal.
    summaries: Mutex<HashMap<String, (JournalStamp, RunSummary)>>,
}

impl Store {
    /// Gives a run as it is now to `read`.
    ///
    /// # Errors
    /// There is no such run, or it cannot be read.
    pub(crate) fn with_run<T>(
        &self,
        home: &Home,
        id: &str,
        read: impl FnOnce(&FollowedRun) -> Result<T, Problem>,
    ) -> Result<T, Problem> {
        self.with_slot(home, id, |followed| read(&followed.run))
    }

    /// The same, with what was made of its plan.
    ///
    /// # Errors
    /// As [`with_run`](Store::with_run).
    pub(crate) fn with_slot<T>(
        &self,
        home: &Home,
        id: &str,
        read: impl FnOnce(&mut Followed) -> Result<T, Problem>,
    ) -> Result<T, Problem> {
        let folder = find_folder(home, id)?;
        let slot = self.find_slot(home, &folder.id);
        let mut slot = lock(&slot);
        let followed = match slot.take() {
            Some(mut followed) => followed.run.poll().map(|_| followed),
            None => FollowedRun::open(folder).map(|run| Followed { run, picture: None }),
        };
        let followed = slot.insert(followed.map_err(|error| describe_unreadable(id, &error))?);
        read(followed)
    }

    /// A run at a glance. One that no process runs is read once for each state of its journal.
    pub(crate) fn summarize(&self, home: &Home, folder: &RunFolder, left: &LeftProcesses) -> RunSummary {
        if folder.is_running() {
            let followed = self.with_run(home, &folder.id, |run| Ok(RunSummary::of_followed(run, left)));
            // One that cannot be read says why.
            return followed.unwrap_or_else(|_| RunSummary::read(folder, left));
        }
        let stamp = JournalStamp::of(folder);
        let known = lock(&self.summaries).get(&folder.id).filter(|(before, _)| Some(*before) == stamp).cloned();
        if let Some((_, summary)) = known {
            return summary;
        }
        let summary = RunSummary::read(folder, left);
        // What of it still lives changes by itself.
        if let Some(stamp) = stamp.filter(|_| summary.survivors == 0) {
            let mut summaries = lock(&self.summaries);
            if summaries.len() >= GLANCES {
                summaries.clear();
            }
            summaries.insert(folder.id.clone(), (stamp, summary.clone()));
        }
        summary
    }

    fn find_slot(&self, home: &Home, id: &str) -> Slot {
        let mut runs = lock(&self.runs);
        let known = runs.iter().position(|(known, _)| known == id).map(|position| runs.remove(position).1);
        let slot = known.unwrap_or_default();
        runs.push((id.to_owned(), Arc::clone(&slot)));
        // Runs that go on are looked at by each list: the oldest one that does not go on makes way.
        if runs.len() > KEPT {
            let goes_on = |id: &str| home.find(id).is_ok_and(|folder| folder.is_running());
            let place = runs.iter().position(|(id, _)| !goes_on(id));
            if let Some(place) = place.or((runs.len() > MOST).then_some(0)) {
                runs.remove(place);
            }
        }
        slot
    }
}

/// The folder of a run: by its whole id, or `last`.
///
/// # Errors
/// There is no such run.
pub(crate) fn find_folder(home: &Home, id: &str) -> Result<RunFolder, Problem> {
    match home.find(id) {
        Ok(folder) if folder.id == id || id == "last" => Ok(folder),
        Ok(_) | Err(RunError::UnknownRun { .. }) => Err(Problem::not_found(format!("there is no run `{id}`"))),
        Err(error) => Err(Problem::not_found(error.to_string())),
    }
}

fn describe_unreadable(id: &str, error: &PastError) -> Problem {
    Problem::internal(format!("run `{id}` cannot be read: {error}"))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
