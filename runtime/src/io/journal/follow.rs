//! Follows a journal that another process writes: whole records, each once, in order.
//!
//! Invariant: what is not whole yet is read again the next time; nothing is written.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

use super::line;
use super::read::{decode_line, judge_settled, wrap_error};
use crate::types::error::JournalError;
use crate::types::event::Record;

/// The bytes that one look reads at most: a long journal is read in several.
const MOST: u64 = 8 * 1024 * 1024;

/// A journal as far as it was read.
#[derive(Debug)]
pub struct JournalFollower {
    path: PathBuf,
    /// Where the last whole record that was read ends, in bytes.
    end: u64,
    /// The records that were read.
    seq: u64,
}

impl JournalFollower {
    /// Nothing of the journal at `path` is read yet.
    pub(crate) fn new(path: PathBuf) -> JournalFollower {
        JournalFollower { path, end: 0, seq: 0 }
    }

    /// Whether something stands behind what was read: there may be further records. It reads a byte.
    ///
    /// # Errors
    /// It is gone, or shorter than it was.
    pub fn has_more(&self) -> Result<bool, JournalError> {
        let file = self.open()?;
        let mut first = [0];
        // The runner allocates zeros ahead of what it writes.
        let read = file.read_at(&mut first, self.end).map_err(|source| wrap_error(&self.path, source))?;
        Ok(read > 0 && first != [0])
    }

    /// The journal, which must be as long as what was read of it.
    fn open(&self) -> Result<File, JournalError> {
        let file = File::open(&self.path).map_err(|source| wrap_error(&self.path, source))?;
        let length = file.metadata().map_err(|source| wrap_error(&self.path, source))?.len();
        match length < self.end {
            true => Err(self.report_damage("it is shorter than it was")),
            false => Ok(file),
        }
    }

    /// The records that are new, as many as one look reads; none where there are no further ones yet.
    ///
    /// # Errors
    /// The journal is gone, damaged, newer than this build, or shorter than it was: another one took its place.
    pub fn poll(&mut self) -> Result<Vec<Record>, JournalError> {
        Ok(self.poll_sums()?.into_iter().map(|(record, _)| record).collect())
    }

    /// The same, each record with the checksum of its line: another journal that took the place of this one has others.
    ///
    /// # Errors
    /// As [`poll`](JournalFollower::poll).
    pub fn poll_sums(&mut self) -> Result<Vec<(Record, u32)>, JournalError> {
        let file = self.open()?;
        let start = self.end;
        let read = move || {
            let mut bytes = Vec::new();
            (&file).seek(SeekFrom::Start(start))?;
            (&file).take(MOST).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        judge_settled(&self.path.clone(), read, |bytes| self.take_records(bytes))
    }

    /// The records that are whole in `bytes`, each with its checksum; they are what follows the end.
    fn take_records(&mut self, bytes: &[u8]) -> Result<Vec<(Record, u32)>, JournalError> {
        let mut records = Vec::new();
        let mut start = 0;
        while let Some(length) = memchr::memchr(b'\n', &bytes[start..]) {
            let next = start + length + 1;
            let line = &bytes[start..next - 1];
            let decoded = match decode_line(&self.path, line, self.seq + 1, self.end) {
                Ok(decoded) => decoded,
                // What is whole ahead of it counts: the next look says what is wrong.
                Err(_) if !records.is_empty() => break,
                Err(error) => return Err(error),
            };
            match decoded {
                Ok(record) => records.push((record, line::read_sum(line).unwrap_or_default())),
                // What follows is whole, so this is no line that is just being written.
                Err(problem) if records.is_empty() && line::any_whole(&bytes[next..]) => {
                    return Err(self.report_damage(problem));
                }
                Err(_) => break,
            }
            (self.end, self.seq) = (self.end + length as u64 + 1, self.seq + 1);
            start = next;
        }
        Ok(records)
    }

    fn report_damage(&self, problem: &str) -> JournalError {
        let (path, problem) = (self.path.clone(), problem.to_owned());
        JournalError::Corrupt { path, line: self.seq + 1, byte: self.end, problem }
    }
}

#[cfg(test)]
mod tests {
    use super::super::line::encode;
    use super::*;
    use crate::types::event::{Event, StepId};

    fn record(seq: u64) -> Vec<u8> {
        let mut line = Vec::new();
        encode(&Record { seq, at: seq, event: Event::StopRequested }, &mut line);
        line
    }

    /// The journal grows by pieces that end anywhere, with zeros ahead of it as the runner allocates them.
    #[test]
    fn each_record_is_read_once_wherever_a_write_ends() {
        let folder = tempfile::TempDir::new().expect("a folder can be made");
        let path = folder.path().join("journal.jsonl");
        let all: Vec<u8> = (1..=20).flat_map(record).collect();
        for step in [1, 7, 64, 1_000] {
            let mut follower = JournalFollower::new(path.clone());
            let mut seen = Vec::new();
            for end in (0..all.len()).step_by(step).chain([all.len()]) {
                std::fs::write(&path, [&all[..end], &[0; 100]].concat()).expect("it can be written");
                seen.extend(follower.poll().expect("it is whole").into_iter().map(|record| record.seq));
            }
            assert_eq!(seen, (1..=20).collect::<Vec<u64>>(), "by {step}");
            assert!(follower.poll().expect("it is whole").is_empty());
        }
    }

    #[test]
    fn what_is_damaged_or_shorter_is_no_end() {
        let folder = tempfile::TempDir::new().expect("a folder can be made");
        let path = folder.path().join("journal.jsonl");
        let mut follower = JournalFollower::new(path.clone());
        assert!(matches!(follower.poll(), Err(JournalError::Missing { .. })));
        let mut all: Vec<u8> = (1..=3).flat_map(record).collect();
        std::fs::write(&path, &all).expect("it can be written");
        assert_eq!(follower.poll().expect("it is whole").len(), 3);
        std::fs::write(&path, record(1)).expect("it can be written");
        assert!(matches!(follower.poll(), Err(JournalError::Corrupt { .. })));
        let second = record(1).len() + 12;
        all[second] ^= 1;
        std::fs::write(&path, &all).expect("it can be written");
        // What is whole ahead of the damage counts.
        let mut follower = JournalFollower::new(path);
        assert_eq!(follower.poll().expect("the first line is whole").len(), 1);
        let found = follower.poll();
        assert!(matches!(found, Err(JournalError::Corrupt { line: 2, .. })), "{found:?}");
    }

    /// A runner writes over the zeros ahead of it while its journal is read.
    #[test]
    fn a_journal_is_whole_while_it_is_written() {
        use crate::io::journal::{FileJournal, Journal};
        let folder = tempfile::TempDir::new().expect("a folder can be made");
        let text = "x".repeat(300);
        for number in 0..30 {
            let path = folder.path().join(number.to_string());
            let mut journal = FileJournal::create(&path, |error| panic!("{error}")).expect("it can be made");
            let is_written = std::sync::atomic::AtomicBool::new(false);
            std::thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| {
                        while !is_written.load(std::sync::atomic::Ordering::Relaxed) {
                            let mut follower = JournalFollower::new(path.clone());
                            follower.poll().expect("it is whole");
                            follower.poll().expect("it is whole");
                        }
                    });
                }
                for seq in 1..=500_u64 {
                    let step = StepId::new(&text[..seq as usize * 7 % 300], 1, 1);
                    let event = Event::ConditionJudged { step, holds: true, error: None };
                    journal.append(&Record { seq, at: seq, event });
                    journal.flush().expect("it can be written");
                }
                is_written.store(true, std::sync::atomic::Ordering::Relaxed);
            });
        }
    }
}
