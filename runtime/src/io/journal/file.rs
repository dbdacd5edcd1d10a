//! The journal in a file: the driver writes lines, and ahead of them lie zeros that are already allocated, but for the
//! first few.
//!
//! Overwriting allocated, written space costs an `fdatasync` no change of the file's size, which is the expensive part
//! of it. Invariant: the file is whole lines, then possibly part of one, then zeros. Only this process writes it: bytes
//! behind its end before a write come from another process; they are removed and reported.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use super::durability::Sync;
use super::{Durability, Journal, line};
use crate::types::event::Record;

/// Up to this length no zeros are written ahead: a run of one short step writes less, and would only take them away again.
const SHORTEST: u64 = 1024;

/// How many zeros are written ahead at first, which is enough for a few steps, and later.
const FIRST_STEP: u64 = 16 * 1024;
const STEP: u64 = 512 * 1024;

/// How far behind the end of the journal is looked for what another process wrote: a record begins there, or is none.
const LOOK: usize = 64;

/// The journal of a run, in `journal.jsonl` of its folder.
#[derive(Debug)]
pub(crate) struct FileJournal {
    file: File,
    /// Lines that were appended, but not yet written.
    pending: Vec<u8>,
    /// The number of the last record in `pending` or the file.
    last: u64,
    /// Where the next byte goes.
    end: u64,
    /// How far the file is filled, zeros included.
    allocated: u64,
    /// How often another process has written here without a report yet.
    intrusions: u32,
    durability: Arc<Durability>,
    background: JoinHandle<()>,
}

impl FileJournal {
    /// Creates the journal at `path`; `failed` is told when something could not be made durable in the background.
    pub(crate) fn create(path: &Path, failed: impl FnOnce(io::Error) + Send + 'static) -> io::Result<FileJournal> {
        let file = File::options().read(true).write(true).create_new(true).open(path)?;
        let sync = sync_file(&file)?;
        FileJournal::new(file, 0, 0, sync, failed)
    }

    /// The same, with `sync` in the place of `fdatasync`.
    pub(crate) fn create_kept(
        path: &Path,
        sync: Sync,
        failed: impl FnOnce(io::Error) + Send + 'static,
    ) -> io::Result<FileJournal> {
        let file = File::options().read(true).write(true).create_new(true).open(path)?;
        FileJournal::new(file, 0, 0, sync, failed)
    }

    /// Goes on with the journal at `path` after its first `end` bytes, which hold `last` records: what lies behind
    /// them, a torn line or zeros, is cut off.
    pub(crate) fn append_to(
        path: &Path,
        end: u64,
        last: u64,
        failed: impl FnOnce(io::Error) + Send + 'static,
    ) -> io::Result<FileJournal> {
        let file = File::options().read(true).write(true).open(path)?;
        let sync = sync_file(&file)?;
        FileJournal::append_kept(file, (end, last), sync, failed)
    }

    /// The same, with `sync` in the place of `fdatasync`.
    pub(crate) fn append_kept(
        file: File,
        (end, last): (u64, u64),
        sync: Sync,
        failed: impl FnOnce(io::Error) + Send + 'static,
    ) -> io::Result<FileJournal> {
        // A resumed run must not find a torn line in the middle of its journal.
        file.set_len(end)?;
        FileJournal::new(file, end, last, sync, failed)
    }

    fn new(
        file: File,
        end: u64,
        last: u64,
        sync: Sync,
        failed: impl FnOnce(io::Error) + Send + 'static,
    ) -> io::Result<FileJournal> {
        let durability = Durability::new(Some(sync));
        durability.note_written(last);
        let background = durability.start(failed);
        Ok(FileJournal { file, pending: Vec::new(), last, end, allocated: end, intrusions: 0, durability, background })
    }

    /// Takes away what another process wrote behind the end: it would be held for records of this run.
    fn remove_foreign_bytes(&mut self) -> io::Result<()> {
        let (length, names) = look_at(&self.file)?;
        // Its records would be gone with this process, although each write succeeds.
        if names == 0 {
            return Err(io::Error::other("it was deleted"));
        }
        let mut next = [0; LOOK];
        let read = self.file.read_at(&mut next, self.end)?;
        // Behind the end lie our zeros alone. A longer file was appended to; looking through all zeros would cost too
        // much.
        if next[..read].iter().any(|&byte| byte != 0) || length > self.allocated.max(self.end) {
            self.intrusions += 1;
            self.file.set_len(self.end)?;
            self.allocated = self.end;
        }
        Ok(())
    }

    /// Fills the file with zeros ahead of its end. A disk that has no room for them may still have room for records.
    fn allocate(&mut self) {
        let step = if self.allocated < FIRST_STEP { FIRST_STEP } else { STEP };
        let target = (self.end / step + 1) * step;
        let zeros = vec![0; usize::try_from(target - self.end).unwrap_or(0)];
        match self.file.write_all_at(&zeros, self.end) {
            Ok(()) => self.allocated = target,
            // What there is of them would be held for what another process wrote.
            Err(_) => _ = self.file.set_len(self.end),
        }
    }
}

/// The length of a file, and how many names it has. Its times are not asked for: Linux would then give the next write a time
/// of its own, and each sync would write the inode as well.
fn look_at(file: &File) -> io::Result<(u64, u64)> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{AtFlags, StatxFlags, statx};
        // Old containers refuse the call.
        if let Ok(found) = statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::SIZE | StatxFlags::NLINK) {
            return Ok((found.stx_size, u64::from(found.stx_nlink)));
        }
    }
    let found = file.metadata()?;
    Ok((found.len(), found.nlink()))
}

fn sync_file(file: &File) -> io::Result<Sync> {
    let file = file.try_clone()?;
    Ok(Box::new(move || file.sync_data()))
}

impl Journal for FileJournal {
    fn append(&mut self, record: &Record) {
        line::encode(record, &mut self.pending);
        self.last = record.seq;
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        self.remove_foreign_bytes()?;
        self.file.write_all_at(&self.pending, self.end)?;
        self.end += self.pending.len() as u64;
        // After the write: what failed stays, and is written again by the next flush.
        self.pending.clear();
        if self.end > self.allocated.max(SHORTEST) {
            self.allocate();
        }
        self.durability.note_written(self.last);
        Ok(())
    }

    fn take_intrusions(&mut self) -> u32 {
        std::mem::take(&mut self.intrusions)
    }

    fn durability(&self) -> Arc<Durability> {
        Arc::clone(&self.durability)
    }

    fn close(mut self: Box<Self>) -> io::Result<()> {
        let flushed = self.flush();
        let synced = self.durability.close();
        // Zeros, or what another process has written since. The zeros are ours to take away only when nothing half-written
        // lies among them.
        let is_longer = look_at(&self.file).map_or(true, |(length, _)| length > self.end);
        let trimmed = if flushed.is_ok() && is_longer { self.file.set_len(self.end) } else { Ok(()) };
        if self.background.join().is_err() {
            return Err(io::Error::other("the journal's thread panicked"));
        }
        flushed.and(synced).and(trimmed)
    }
}
