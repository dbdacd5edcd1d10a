//! A run that is followed while it goes on, in this process or another.
//!
//! In: the folder of a run. Out: its report and its state, folded from the records that have come so far. Invariant: each
//! record counts once; what is not whole in the journal yet is taken the next time. Whether a runner is alive never
//! follows from records: the last of them would say so for ever.

use std::borrow::Cow;

use swarmc_runtime::{Event, JournalFollower, Record, RunFolder, State, StepId};

use crate::past::{Past, PastError};
use crate::run_report::RunReport;

/// A run that is followed.
#[derive(Debug)]
pub struct FollowedRun {
    /// Its folder.
    pub folder: RunFolder,
    /// Its plan as it is now, and its records so far.
    pub past: Past,
    /// How far it is.
    pub report: RunReport,
    /// The same, as the run itself knows it.
    pub state: State,
    journal: JournalFollower,
    last: Option<(u64, u32)>,
    /// How often its plan was read.
    pub reads: u32,
}

impl FollowedRun {
    /// Reads what there is of a run.
    ///
    /// # Errors
    /// Its plan or its journal cannot be read, or they do not match.
    pub fn open(folder: RunFolder) -> Result<FollowedRun, PastError> {
        let mut journal = folder.follow_journal();
        // Of a run with thousands of steps each of these takes long, and neither needs the other.
        let (news, plan) = run_both(|| read_all(&mut journal), || folder.read_plan());
        let (records, last) = news?;
        let plan = folder.plan_now_or(&records, || plan)?;
        let past = Past::new(&folder, plan, records)?;
        let (report, state) = run_both(
            || past.build_report(),
            || past.build_graph(&folder).map(|graph| State::replay(graph, &past.records)),
        );
        let state = state?;
        Ok(FollowedRun { folder, past, report, state, journal, last, reads: 1 })
    }

    /// Takes what came meanwhile; whether something did.
    ///
    /// # Errors
    /// The journal cannot be read any more.
    pub fn poll(&mut self) -> Result<bool, PastError> {
        let (records, last) = read_all(&mut self.journal)?;
        // Its plan may be another one, and earlier steps run again: what was folded no longer holds.
        if records.iter().any(|record| is_break(&record.event)) {
            let reads = self.reads + 1;
            *self = FollowedRun { reads, ..FollowedRun::open(self.folder.clone())? };
            return Ok(true);
        }
        let is_new = !records.is_empty();
        self.last = last.or(self.last);
        for record in records {
            self.state.apply(&record);
            self.report.apply(&record);
            self.past.records.push(record);
        }
        Ok(is_new)
    }

    /// The same run as it was after so many of its records, for who looks at it again. It is not followed.
    ///
    /// # Errors
    /// Its plan cannot be scheduled.
    pub fn rewind(&self, records: usize) -> Result<FollowedRun, PastError> {
        let past = self.past.until(records);
        let graph = past.build_graph(&self.folder)?;
        let state = State::replay(graph, &past.records);
        let report = past.build_report();
        let (folder, journal) = (self.folder.clone(), self.folder.follow_journal());
        Ok(FollowedRun { folder, past, report, state, journal, last: None, reads: 0 })
    }

    /// Takes further records of the run that this is the past of, until there are so many.
    ///
    /// # Errors
    /// Its plan cannot be scheduled.
    pub fn advance(&mut self, whole: &FollowedRun, records: usize) -> Result<(), PastError> {
        let news = whole.past.records.get(self.past.records.len()..records).unwrap_or_default();
        if news.iter().any(|record| is_break(&record.event)) {
            *self = whole.rewind(records)?;
            return Ok(());
        }
        for record in news {
            self.state.apply(record);
            self.report.apply(record);
            self.past.records.push(record.clone());
        }
        Ok(())
    }

    /// The last record: its number, and the checksum of its line, which tells it from that of another journal.
    pub fn last_line(&self) -> Option<(u64, u32)> {
        self.last
    }

    /// The steps that have not begun, each with what it waits for.
    pub fn blocked_steps(&self) -> impl Iterator<Item = (StepId, Cow<'static, str>)> {
        self.state.blocked_steps()
    }
}

/// Does two things at the same time.
fn run_both<A, B: Send>(one: impl FnOnce() -> A, other: impl FnOnce() -> B + Send) -> (A, B) {
    std::thread::scope(|scope| {
        let other = scope.spawn(other);
        (one(), other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

/// Whether what was folded before this no longer holds.
fn is_break(event: &Event) -> bool {
    matches!(event, Event::RunReopened { .. } | Event::RunResumed)
}

/// New records, and the number and checksum of the last one.
type News = (Vec<Record>, Option<(u64, u32)>);

fn read_all(journal: &mut JournalFollower) -> Result<News, PastError> {
    let (mut all, mut last) = (Vec::new(), None);
    loop {
        // One look reads a bounded piece of the journal: nothing new tells that its end is reached.
        let more = journal.poll_sums().map_err(swarmc_runtime::RunError::from)?;
        let Some((record, sum)) = more.last() else { return Ok((all, last)) };
        last = Some((record.seq, *sum));
        all.extend(more.into_iter().map(|(record, _)| record));
    }
}
