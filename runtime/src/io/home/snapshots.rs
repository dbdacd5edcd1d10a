//! A fold of a journal, kept beside it: a reader of a long journal begins with it, and reads the records behind it alone.
//!
//! ```text
//! snapshots/NAME     {"build":…,"seq":…,"at":…,"end":…,"sum":…}   where in the journal it was made
//!                    …                                            the fold, as bytes
//!                    1c291ca3                                     the checksum of all that is above
//! ```
//!
//! Invariants: the journal is the run, and a snapshot can be removed at any time; one that is damaged, of another build, or
//! of another journal counts as none. None is used of a run that was reopened: what that takes back may lie in the fold.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, BufWriter, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use serde::{Deserialize, Serialize};

use super::{RunFolder, create_private};
use crate::io::journal::{Recovered, decode_line, read_journal, recover_behind};
use crate::types::error::JournalError;
use crate::types::event::{Event, Record};

/// The records after which a snapshot is made, at least. Reading so many takes half a second, which a resumed run may take,
/// and a snapshot costs as much: that of a run which ends soon is of no use.
const LEAST: u64 = 50_000;

/// The part of a journal that may follow its last snapshot: a quarter. So a run of any length writes at most five times
/// what its last snapshot holds.
const PART: u64 = 4;

/// The folder of snapshots, in that of a run.
pub const SNAPSHOTS: &str = "snapshots";

/// The bytes ahead of a place that tell one journal from another: more than one record, as a rule.
const NEIGHBOURHOOD: u64 = 4096;

/// The checksum at the end of a snapshot: eight digits and a line feed, behind a line feed.
const TRAILER: usize = 10;

/// A place behind a record of a journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Place {
    /// The build that says so.
    build: String,
    /// The number of the record, and its time in milliseconds since 1970.
    seq: u64,
    at: u64,
    /// Where it ends, in bytes.
    end: u64,
    /// The checksum of the bytes ahead of that.
    sum: u32,
}

/// The journal of a run: a fold of its beginning, and the records that follow.
#[derive(Debug)]
pub struct JournalRead {
    /// The first record of the journal.
    pub first: Record,
    /// What was folded, as it was written; none where `records` are all of them.
    pub folded: Option<Vec<u8>>,
    /// The records behind that.
    pub records: Vec<Record>,
    /// Where the last of them ends, in bytes, and how many damaged bytes follow it.
    pub(crate) end: u64,
    pub(crate) torn: u64,
    /// Where what was folded ends.
    place: Option<Place>,
}

impl JournalRead {
    /// The records that name the plan, the parameters and the pipeline.
    pub fn headers(&self) -> &[Record] {
        if self.folded.is_some() { std::slice::from_ref(&self.first) } else { &self.records }
    }

    /// How many records were folded before.
    pub fn folded_records(&self) -> u64 {
        self.place.as_ref().map_or(0, |place| place.seq)
    }

    /// Whether so many records follow what was folded that a snapshot of all would pay.
    pub fn is_long(&self) -> bool {
        self.last().0 >= next_due(self.folded_records())
    }

    /// The number of the last record, and its time in milliseconds since 1970.
    pub fn last(&self) -> (u64, u64) {
        let folded = self.place.as_ref().map_or((0, 0), |place| (place.seq, place.at));
        self.records.last().map_or(folded, |record| (record.seq, record.at))
    }
}

impl RunFolder {
    /// The whole journal of the run; what is torn at its end is left out.
    ///
    /// # Errors
    /// It is missing, damaged, or newer than this build.
    pub fn read_journal(&self) -> Result<JournalRead, JournalError> {
        let Recovered { records, end, torn } = read_journal(&self.journal_path())?;
        Ok(JournalRead { first: records[0].clone(), folded: None, records, end, torn, place: None })
    }

    /// The journal behind the snapshot of this name; none where no snapshot fits.
    ///
    /// # Errors
    /// It is damaged behind the snapshot, or cannot be read.
    pub fn read_behind(&self, name: &str) -> Result<Option<JournalRead>, JournalError> {
        let Some((place, folded)) = read_file(&self.snapshot_path(name)) else { return Ok(None) };
        let path = self.journal_path();
        let failed = |source| JournalError::Io { path: path.clone(), source };
        let Ok(file) = File::open(&path) else { return Ok(None) };
        if place.build != own_build() || !sum_ahead(&file, place.end).is_ok_and(|sum| sum == place.sum) {
            return Ok(None);
        }
        let mut line = Vec::new();
        BufReader::new(&file).read_until(b'\n', &mut line).map_err(failed)?;
        let Ok(first) = decode_line(&path, line.strip_suffix(b"\n").unwrap_or(&line), 1, 0)? else { return Ok(None) };
        let Recovered { records, end, torn } = recover_behind(&path, (place.end, place.seq))?;
        if records.iter().any(takes_back) {
            return Ok(None);
        }
        Ok(Some(JournalRead { first, folded: Some(folded), records, end, torn, place: Some(place) }))
    }

    /// Keeps a fold of all that was read, which `write` writes. False where none can be kept.
    ///
    /// # Errors
    /// It cannot be written, and what was there is as it was; or the journal cannot be read.
    pub fn write_snapshot(
        &self,
        name: &str,
        read: &JournalRead,
        write: impl FnOnce(&mut dyn io::Write) -> io::Result<()>,
    ) -> io::Result<bool> {
        if read.records.iter().any(takes_back) {
            return Ok(false);
        }
        let (seq, at) = read.last();
        let sum = sum_ahead(&File::open(self.journal_path())?, read.end)?;
        let place = Place { build: own_build().to_owned(), seq, at, end: read.end, sum };
        let path = self.snapshot_path(name);
        create_private(&self.path.join(SNAPSHOTS), true)?;
        let draft = path.with_extension("draft");
        let written = (|| {
            let file = File::options().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
            let mut file = Summed { file: BufWriter::new(file), sum: crc32fast::Hasher::new() };
            serde_json::to_writer(&mut file, &place)?;
            file.write_all(b"\n")?;
            write(&mut file)?;
            let sum = file.sum.finalize();
            // It need not survive a crash of the machine: its checksum tells whether it has.
            write!(file.file, "\n{sum:08x}\n")?;
            file.file.flush()?;
            fs::rename(&draft, &path)
        })();
        if written.is_err() {
            let _ = fs::remove_file(&draft);
        }
        written.map(|()| true)
    }

    /// Removes all snapshots of the run.
    pub fn remove_snapshots(&self) {
        // What stays behind is removed with the run.
        let _ = fs::remove_dir_all(self.path.join(SNAPSHOTS));
    }

    fn snapshot_path(&self, name: &str) -> PathBuf {
        self.path.join(SNAPSHOTS).join(name)
    }
}

/// Makes a snapshot; false where there will be no more of them.
type Write = Box<dyn FnMut() -> bool + Send>;

/// Has snapshots of a run made while it goes on, by a thread of its own. It waits for the one that is being made when it
/// is dropped.
pub struct SnapshotWriter {
    /// The number of the record with which the next one is due.
    due: u64,
    /// Until the thread is started, with the first of them.
    write: Option<Write>,
    thread: Option<(SyncSender<()>, JoinHandle<()>)>,
}

impl SnapshotWriter {
    /// `write` makes them, of a run whose last snapshot holds so many records.
    pub fn new(last: u64, write: impl FnMut() -> bool + Send + 'static) -> SnapshotWriter {
        SnapshotWriter { due: next_due(last), write: Some(Box::new(write)), thread: None }
    }

    /// The journal has record number `seq`.
    pub fn note_record(&mut self, seq: u64) {
        if seq < self.due {
            return;
        }
        self.due = next_due(seq);
        if let Some(write) = self.write.take() {
            self.thread = start_thread(write);
        }
        if let Some((wake, _)) = &self.thread {
            // One that is still at work takes in what came meanwhile with the next one.
            let _ = wake.try_send(());
        }
    }
}

impl std::fmt::Debug for SnapshotWriter {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("SnapshotWriter").field("due", &self.due).finish_non_exhaustive()
    }
}

impl Drop for SnapshotWriter {
    fn drop(&mut self) {
        if let Some((wake, thread)) = self.thread.take() {
            drop(wake);
            // A panic in it has cost a snapshot.
            let _ = thread.join();
        }
    }
}

/// None where the system has no room for one more thread: then there are no snapshots.
fn start_thread(mut write: Write) -> Option<(SyncSender<()>, JoinHandle<()>)> {
    let (wake, due) = sync_channel(1);
    let name = "snapshots".to_owned();
    let thread = std::thread::Builder::new().name(name).spawn(move || while due.recv().is_ok() && write() {});
    Some((wake, thread.ok()?))
}

fn next_due(seq: u64) -> u64 {
    seq + LEAST.max(seq / PART)
}

/// Whether a record may take back what was folded before it.
fn takes_back(record: &Record) -> bool {
    matches!(record.event, Event::RunReopened { .. } | Event::StepReopened { .. } | Event::UsedBefore { .. })
}

/// The place and the fold of a file that is whole.
fn read_file(path: &Path) -> Option<(Place, Vec<u8>)> {
    let mut bytes = fs::read(path).ok()?;
    let length = bytes.len().checked_sub(TRAILER)?;
    let digits = bytes[length..].strip_prefix(b"\n")?.strip_suffix(b"\n")?;
    let sum = u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    bytes.truncate(length);
    if crc32fast::hash(&bytes) != sum {
        return None;
    }
    let line = memchr::memchr(b'\n', &bytes)?;
    let place = serde_json::from_slice(&bytes[..line]).ok()?;
    bytes.drain(..=line);
    Some((place, bytes))
}

/// The checksum of the bytes of a journal ahead of a place.
fn sum_ahead(file: &File, end: u64) -> io::Result<u32> {
    let start = end.saturating_sub(NEIGHBOURHOOD);
    let mut bytes = vec![0; (end - start) as usize];
    file.read_exact_at(&mut bytes, start)?;
    Ok(crc32fast::hash(&bytes))
}

/// What no other build says of itself: a snapshot is no format to keep.
fn own_build() -> &'static str {
    static BUILD: OnceLock<String> = OnceLock::new();
    BUILD.get_or_init(|| {
        let meta = std::env::current_exe().and_then(fs::metadata);
        let program = meta.map_or((0, 0, 0), |meta| (meta.len(), meta.mtime(), meta.mtime_nsec()));
        format!("{} {program:?}", env!("CARGO_PKG_VERSION"))
    })
}

/// A file, and the checksum of what was written into it.
struct Summed {
    file: BufWriter<File>,
    sum: crc32fast::Hasher,
}

impl io::Write for Summed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.file.write(bytes)?;
        self.sum.update(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
