//! A journal that keeps its records in memory and has room for so many, for rehearsals and for tests of the driver.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use super::{Durability, Journal};
use crate::types::event::Record;

/// Keeps what was flushed in a list that others can read.
pub(crate) struct MemoryJournal {
    pending: Vec<Record>,
    records: Arc<Mutex<Vec<Record>>>,
    /// The number of records it has room for.
    room: usize,
    durability: Arc<Durability>,
}

impl MemoryJournal {
    /// A journal that holds `room` records at most, and the list it keeps them in.
    pub(crate) fn new(room: usize) -> (MemoryJournal, Arc<Mutex<Vec<Record>>>) {
        let records = Arc::new(Mutex::new(Vec::new()));
        let journal = MemoryJournal {
            pending: Vec::new(),
            records: Arc::clone(&records),
            room,
            durability: Durability::new(None),
        };
        (journal, records)
    }
}

impl Journal for MemoryJournal {
    fn append(&mut self, record: &Record) {
        self.pending.push(record.clone());
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        if records.len() + self.pending.len() > self.room {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        records.append(&mut self.pending);
        self.durability.note_written(records.len() as u64);
        Ok(())
    }

    fn durability(&self) -> Arc<Durability> {
        Arc::clone(&self.durability)
    }

    fn close(mut self: Box<Self>) -> io::Result<()> {
        self.flush()
    }
}
