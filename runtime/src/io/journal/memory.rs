//! A journal that keeps its records in memory and has room for so many, for rehearsals and for tests of the driver.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use super::{Durability, Journal};
use crate::types::event::Record;

/// Keeps what was flushed in a list that others can read, or only counts it.
pub(crate) struct MemoryJournal {
    pending: Vec<Record>,
    records: Option<Arc<Mutex<Vec<Record>>>>,
    /// How many records it was given.
    count: usize,
    /// The number of records it has room for.
    room: usize,
    durability: Arc<Durability>,
}

impl MemoryJournal {
    /// A journal that holds `room` records at most, and the list it keeps them in.
    pub(crate) fn new(room: usize) -> (MemoryJournal, Arc<Mutex<Vec<Record>>>) {
        let records = Arc::new(Mutex::new(Vec::new()));
        let journal = MemoryJournal { records: Some(Arc::clone(&records)), ..MemoryJournal::counting(room) };
        (journal, records)
    }

    /// A journal that counts `room` records at most, for a driver that keeps them itself.
    pub(crate) fn counting(room: usize) -> MemoryJournal {
        MemoryJournal { pending: Vec::new(), records: None, count: 0, room, durability: Durability::new(None) }
    }
}

impl Journal for MemoryJournal {
    fn append(&mut self, record: &Record) {
        self.count += 1;
        if self.records.is_some() {
            self.pending.push(record.clone());
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.count > self.room {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        if let Some(records) = &self.records {
            records.lock().unwrap_or_else(PoisonError::into_inner).append(&mut self.pending);
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
