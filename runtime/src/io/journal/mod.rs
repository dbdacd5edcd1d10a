//! The journal: every record of a run, in order, as the run's only truth.
//!
//! In: records, numbered without gaps. Out: tickets that say when a record is on disk, and on resume the records
//! again. Invariant: what was confirmed durable is read back; a damaged journal is refused, never rewritten.

mod durability;
mod file;
mod follow;
mod line;
mod memory;
mod read;

use std::io;
use std::sync::Arc;

pub(crate) use durability::Durability;
pub(crate) use file::FileJournal;
pub use follow::JournalFollower;
pub(crate) use memory::CountingJournal;
#[cfg(test)]
pub(crate) use memory::MemoryJournal;
pub(crate) use read::{Recovered, decode_line, read_journal, recover_behind};

use crate::types::event::Record;

/// Where records go. Only the run's loop appends.
pub(crate) trait Journal: Send {
    /// Takes a record; it is nowhere yet. The record's number is the ticket for [`Durability::wait`].
    fn append(&mut self, record: &Record);

    /// Writes what was appended to the system: from here on it survives this process, though not the machine.
    fn flush(&mut self) -> io::Result<()>;

    /// How often another process was found to have written here, since this was asked last: nothing of it is left.
    fn take_intrusions(&mut self) -> u32 {
        0
    }

    /// Where to wait for records to survive the machine as well.
    fn durability(&self) -> Arc<Durability>;

    /// Makes everything durable and ends the journal's own thread.
    fn close(self: Box<Self>) -> io::Result<()>;
}
