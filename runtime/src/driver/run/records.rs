//! The records of a run: the driver appends each to the journal, and hands the records of a turn over together.
//!
//! Invariants: a record is appended before the state changes, and its time is never before that of the record before
//! it. After a failure nothing is appended any more.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::io::home::SnapshotWriter;
use crate::io::journal::{Durability, Journal};
use crate::types::event::{Event, Record};

/// The approximate number of records of one turn: so many are in memory, and the driver takes no input before they go.
const BATCH: usize = 1000;

/// The journal of a run, and what one turn of the driver has appended to it.
pub(super) struct Records {
    journal: Option<Box<dyn Journal>>,
    durability: Arc<Durability>,
    /// The number of the last record.
    pub seq: u64,
    /// The last record of the runners before this one.
    pub floor: u64,
    /// The latest time that the run knows, in milliseconds since 1970, or since its beginning where time is virtual: it
    /// never goes back.
    pub clock: u64,
    /// Records of this turn, not yet flushed.
    fresh: Vec<Record>,
    /// Why the run cannot go on.
    pub broken: Option<String>,
    time: Time,
    /// What keeps snapshots of the journal; none of a run that no runner resumes.
    pub snapshots: Option<SnapshotWriter>,
}

/// Where the time of a run comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Time {
    /// The system clock.
    System,
    /// The run itself, which advances it.
    Virtual,
}

impl Records {
    /// The records behind the record number `last`, whose time is `clock`.
    pub(super) fn new(journal: Box<dyn Journal>, last: u64, clock: u64, time: Time) -> Records {
        let durability = journal.durability();
        Records {
            journal: Some(journal),
            durability,
            seq: last,
            floor: last,
            clock,
            fresh: Vec::new(),
            broken: None,
            time,
            snapshots: None,
        }
    }

    /// The time of the run: it goes on with its clock, and never back.
    pub(super) fn now(&self) -> u64 {
        match self.time {
            Time::System => now_millis().max(self.clock),
            Time::Virtual => self.clock,
        }
    }

    /// Sets the time of the run to `due`, if it is later.
    pub(super) fn advance_clock(&mut self, due: u64) {
        self.clock = self.clock.max(due);
    }

    /// Appends an event. None if nothing can be recorded any more.
    pub(super) fn append(&mut self, event: Event) -> Option<&Record> {
        let at = self.now();
        let journal = self.journal.as_mut().filter(|_| self.broken.is_none())?;
        // Behind the check: only what is written takes a number, so that there are no gaps.
        self.seq += 1;
        self.clock = at;
        let record = Record { seq: self.seq, at, event };
        journal.append(&record);
        self.fresh.push(record);
        self.fresh.last()
    }

    /// Takes a record that is in the journal already.
    pub(super) fn adopt(&mut self, record: Record) {
        (self.seq, self.clock) = (record.seq, record.at);
        self.fresh.push(record);
    }

    /// Whether this turn has as many records as one turn may have.
    pub(super) fn is_full(&self) -> bool {
        self.fresh.len() >= BATCH
    }

    /// Whether this turn has records.
    pub(super) fn has_fresh(&self) -> bool {
        !self.fresh.is_empty()
    }

    /// Takes the records of this turn. None after a failure.
    pub(super) fn take_fresh(&mut self) -> Vec<Record> {
        let fresh = std::mem::take(&mut self.fresh);
        if self.broken.is_some() { Vec::new() } else { fresh }
    }

    /// Hands the records so far to the system.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub(super) fn flush(&mut self) -> Result<(), String> {
        let flushed = self.journal.as_mut().map_or(Ok(()), |journal| journal.flush());
        if let Some(snapshots) = self.snapshots.as_mut().filter(|_| flushed.is_ok()) {
            snapshots.note_record(self.seq);
        }
        flushed.map_err(describe_error)
    }

    /// Whether another process wrote into the journal since the last call.
    pub(super) fn take_intrusion(&mut self) -> bool {
        self.journal.as_mut().is_some_and(|journal| journal.take_intrusions() > 0)
    }

    /// Waits until the records so far are durable.
    ///
    /// # Errors
    /// They never will be.
    pub(super) fn wait_durable(&self) -> Result<(), String> {
        match &self.broken {
            Some(reason) => Err(reason.clone()),
            None => self.durability.wait(self.seq).map_err(describe_error),
        }
    }

    /// What waits on another thread until the records so far are durable. It returns whether they are.
    pub(super) fn durable_later(&self) -> impl FnOnce() -> bool + Send + 'static {
        let (durability, last) = (Arc::clone(&self.durability), self.seq);
        move || durability.wait(last).is_ok()
    }

    /// The same for a task that is in no hurry.
    pub(super) fn durable_in_time(&self) -> impl Future<Output = bool> + Send + 'static {
        let (durability, last) = (Arc::clone(&self.durability), self.seq);
        async move { durability.wait_for_sync(last).await.is_ok() }
    }

    /// Notes why the run cannot go on. False if it could not go on before.
    pub(super) fn give_up(&mut self, reason: String) -> bool {
        if self.broken.is_some() {
            return false;
        }
        self.broken = Some(reason);
        // Those who watch must not see what may not be in the journal.
        self.fresh.clear();
        true
    }

    /// Closes the journal.
    pub(super) fn close(&mut self) {
        if let Some(journal) = self.journal.take()
            && let Err(error) = journal.close()
        {
            self.broken.get_or_insert(describe_error(error));
        }
    }
}

fn describe_error(error: std::io::Error) -> String {
    format!("the journal cannot be written: {error}")
}

/// The time in milliseconds since 1970.
pub(super) fn now_millis() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
