//! How a run that is over went: its records one after the other.
//!
//! In: the whole run, and where a person wants to look. Out: the run as it was then. Logs are shown whole: no record says when a
//! line of one was written.

use std::time::{Duration, Instant};

use swarmc_view::{FollowedRun, PastError};

use super::model::Replay;

/// How long a record stands while it plays, and for how long the longest run plays.
const STEP: Duration = Duration::from_millis(100);
const STEPS: usize = 300;

/// The past of a run.
pub(super) struct PastRun {
    /// The run as it was.
    pub(super) run: FollowedRun,
    plays: bool,
    stepped: Instant,
}

impl PastRun {
    /// What is shown after a key: none for the end, where the run itself is shown.
    pub(super) fn show(
        past: Option<PastRun>,
        whole: &FollowedRun,
        replay: Replay,
    ) -> Result<Option<PastRun>, PastError> {
        let (at, plays) = past.as_ref().map_or((None, false), |past| (Some(past.at()), past.plays));
        let end = whole.past.records.len();
        let (to, plays) = match (replay, at) {
            (Replay::Leave, _) => (end, false),
            // Not before the first record: without it there is no run to show.
            (Replay::Earlier, at) => (at.unwrap_or(end).saturating_sub(1).max(1), false),
            (Replay::Later, at) => (at.map_or(end, |at| at + 1), false),
            // From the beginning, where the end is shown.
            (Replay::Play, None) => (1, true),
            (Replay::Play, Some(at)) => (at, !plays),
        };
        PastRun::show_at(past, whole, to, plays)
    }

    fn show_at(
        past: Option<PastRun>,
        whole: &FollowedRun,
        to: usize,
        plays: bool,
    ) -> Result<Option<PastRun>, PastError> {
        if to >= whole.past.records.len() {
            return Ok(None);
        }
        let run = match past {
            Some(PastRun { mut run, .. }) if run.past.records.len() <= to => {
                run.advance(whole, to)?;
                run
            }
            _ => whole.rewind(to)?,
        };
        Ok(Some(PastRun { run, plays, stepped: Instant::now() }))
    }

    /// How many records it is after.
    pub(super) fn at(&self) -> usize {
        self.run.past.records.len()
    }

    /// Whether it is time for the next record.
    pub(super) fn is_due(&self) -> bool {
        self.plays && self.stepped.elapsed() >= STEP
    }

    /// The next records, of which a long run shows several at once.
    pub(super) fn play(self, whole: &FollowedRun) -> Result<Option<PastRun>, PastError> {
        let to = self.at() + whole.past.records.len().div_ceil(STEPS).max(1);
        PastRun::show_at(Some(self), whole, to, true)
    }
}
