//! Journals in memory with room for so many records: one that counts them, for a rehearsal, whose world keeps them; and
//! one that keeps them, for tests of the driver.

use std::io;
use std::sync::Arc;
#[cfg(test)]
use std::sync::{Mutex, PoisonError};

use super::{Durability, Journal};
use crate::types::event::Record;

/// Counts records, and takes `room` at most.
pub(crate) struct CountingJournal {
    count: usize,
    room: usize,
    durability: Arc<Durability>,
}

impl CountingJournal {
    pub(crate) fn new(room: usize) -> CountingJournal {
        CountingJournal { count: 0, room, durability: Durability::new(None) }
    }
}

impl Journal for CountingJournal {
    fn append(&mut self, _: &Record) {
        self.count += 1;
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.count > self.room {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        self.durability.note_written(self.count as u64);
        Ok(())
    }

    fn durability(&self) -> Arc<Durability> {
        Arc::clone(&self.durability)
    }

    fn close(mut self: Box<Self>) -> io::Result<()> {
        self.flush()
    }
}

/// Keeps what was flushed in a list that others can read.
#[cfg(test)]
pub(crate) struct MemoryJournal {
    counting: CountingJournal,
    pending: Vec<Record>,
    records: Arc<Mutex<Vec<Record>>>,
}

#[cfg(test)]
impl MemoryJournal {
    /// A journal that holds `room` records at most, and the list it keeps them in.
    pub(crate) fn new(room: usize) -> (MemoryJournal, Arc<Mutex<Vec<Record>>>) {
        let records = Arc::new(Mutex::new(Vec::new()));
        let counting = CountingJournal::new(room);
        (MemoryJournal { counting, pending: Vec::new(), records: Arc::clone(&records) }, records)
    }
}

#[cfg(test)]
impl Journal for MemoryJournal {
    fn append(&mut self, record: &Record) {
        self.counting.append(record);
        self.pending.push(record.clone());
    }

    fn flush(&mut self) -> io::Result<()> {
        self.counting.flush()?;
        self.records.lock().unwrap_or_else(PoisonError::into_inner).append(&mut self.pending);
        Ok(())
    }

    fn durability(&self) -> Arc<Durability> {
        self.counting.durability()
    }

    fn close(mut self: Box<Self>) -> io::Result<()> {
        self.flush()
    }
}
