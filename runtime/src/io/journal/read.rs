//! Reading a journal back: every whole record, and how much of a torn tail had to be left out.
//!
//! Invariant: only what follows the last whole record may be damaged. Anything else is refused, and nothing is written.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;

use serde::Deserialize;

use super::line;
use crate::types::error::JournalError;
use crate::types::event::{Event, Record, VERSION};

/// What a journal holds.
#[derive(Debug, Default)]
pub(crate) struct Recovered {
    /// Its whole records, in order.
    pub records: Vec<Record>,
    /// Where the last of them ends, in bytes.
    pub end: u64,
    /// How many damaged bytes follow it; the zeros that a journal keeps ahead of itself do not count.
    pub torn: u64,
}

/// Reads the journal at `path`, which holds a record at least.
pub(crate) fn read_journal(path: &Path) -> Result<Recovered, JournalError> {
    let recovered = recover_behind(path, (0, 0))?;
    if !recovered.records.is_empty() {
        return Ok(recovered);
    }
    let length = std::fs::metadata(path).map_err(|source| wrap_error(path, source))?.len();
    // A run has its name only when its first record is written: a person, a program or a loss of power removed the
    // record.
    let what = match (length, recovered.torn) {
        (0, _) => "is empty".to_owned(),
        (length, 0) => format!("holds {length} zeros and nothing else"),
        (_, torn) => format!("holds {torn} damaged bytes and no whole record"),
    };
    Err(JournalError::Empty { path: path.to_owned(), what })
}

/// The records of the journal at `path` that follow its first bytes and records, so many of each.
pub(crate) fn recover_behind(path: &Path, before: (u64, u64)) -> Result<Recovered, JournalError> {
    let read = || {
        let mut bytes = Vec::new();
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(before.0))?;
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    judge_settled(path, read, |bytes| recover_records(path, bytes, before))
}

/// What `judge` makes of a part of the journal at `path` that `read` reads. Damage counts when it is read twice: a runner
/// writes over the zeros ahead of it, and a read at that moment may find a page that is written behind one that is not.
pub(super) fn judge_settled<T>(
    path: &Path,
    read: impl Fn() -> std::io::Result<Vec<u8>>,
    mut judge: impl FnMut(&[u8]) -> Result<T, JournalError>,
) -> Result<T, JournalError> {
    let read = || read().map_err(|source| wrap_error(path, source));
    let mut bytes = read()?;
    loop {
        let judged = judge(&bytes);
        if !matches!(judged, Err(JournalError::Corrupt { .. })) {
            return judged;
        }
        let again = read()?;
        if again.starts_with(trim_zeros(&bytes)) {
            return judged;
        }
        bytes = again;
    }
}

pub(super) fn wrap_error(path: &Path, source: std::io::Error) -> JournalError {
    let path = path.to_owned();
    match source.kind() {
        ErrorKind::NotFound => JournalError::Missing { path },
        _ => JournalError::Io { path, source },
    }
}

/// The bytes ahead of the zeros at their end.
fn trim_zeros(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1)]
}

/// How many lines are whole records once the CR at their end is gone; none where the first is not.
fn count_crlf_records(bytes: &[u8]) -> Option<u64> {
    let lines = bytes.split(|&byte| byte == b'\n').map_while(|line| line.strip_suffix(b"\r"));
    Some(lines.take_while(|line| line::verify(line).is_ok()).count() as u64).filter(|&records| records > 0)
}

/// The bytes of a journal for each thread that decodes a part of it, at least: a thread for fewer would not pay.
const PART: usize = 1 << 20;

/// The records of a part of a journal.
struct Part {
    records: Vec<Record>,
    /// Where the last of them ends.
    end: usize,
    /// Why no record follows; none where the part has no more lines.
    problem: Option<Result<&'static str, JournalError>>,
}

/// The records in `bytes`, which follow so many bytes and records of the journal.
fn recover_records(path: &Path, bytes: &[u8], before: (u64, u64)) -> Result<Recovered, JournalError> {
    let bytes = trim_zeros(bytes);
    let mut recovered = Recovered { end: before.0, ..Recovered::default() };
    for part in decode_parts(path, bytes, before) {
        recovered.records.extend(part.records);
        recovered.end = before.0 + part.end as u64;
        let Some(problem) = part.problem else { continue };
        let (problem, start, seq) = (problem?, part.end, before.1 + recovered.records.len() as u64 + 1);
        if let Some(records) = count_crlf_records(&bytes[start..]).filter(|_| recovered.end == 0) {
            return Err(JournalError::Converted { path: path.to_owned(), records });
        }
        if line::any_whole(&bytes[start + 1..]) {
            let (byte, problem) = (recovered.end, problem.to_owned());
            return Err(JournalError::Corrupt { path: path.to_owned(), line: seq, byte, problem });
        }
        recovered.torn = (bytes.len() - start) as u64;
        break;
    }
    Ok(recovered)
}

/// Decodes a journal, a long one in as many parts as there are processors.
fn decode_parts(path: &Path, bytes: &[u8], before: (u64, u64)) -> Vec<Part> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let size = bytes.len().div_ceil(processors).max(PART);
    let mut parts = Vec::new();
    let (mut start, mut seq) = (0, before.1 + 1);
    while start < bytes.len() {
        let least = (start + size).min(bytes.len());
        let end = memchr::memchr(b'\n', &bytes[least..]).map_or(bytes.len(), |length| least + length + 1);
        parts.push((start..end, seq));
        seq += memchr::memchr_iter(b'\n', &bytes[start..end]).count() as u64;
        start = end;
    }
    let decode =
        |(range, seq): (Range<usize>, u64)| decode_part(path, &bytes[..range.end], range.start, (before.0, seq));
    std::thread::scope(|scope| {
        let mut parts = parts.into_iter();
        let first = parts.next();
        let others: Vec<_> = parts
            .map(|part| {
                let thread = std::thread::Builder::new().spawn_scoped(scope, {
                    let part = part.clone();
                    move || decode(part)
                });
                (part, thread)
            })
            .collect();
        let mut decoded: Vec<Part> = first.map(decode).into_iter().collect();
        for (part, thread) in others {
            // Where the system has no thread left, this one does it.
            let done = thread.ok().and_then(|thread| thread.join().ok());
            decoded.push(done.unwrap_or_else(|| decode(part)));
        }
        decoded
    })
}

/// Decodes the records from `start` on, of which the first has the number `seq`; `before` bytes of the journal come first.
fn decode_part(path: &Path, bytes: &[u8], start: usize, (before, mut seq): (u64, u64)) -> Part {
    let mut part = Part { records: Vec::new(), end: start, problem: None };
    while part.end < bytes.len() {
        let Some(length) = memchr::memchr(b'\n', &bytes[part.end..]) else {
            part.problem = Some(Ok("it is cut short"));
            break;
        };
        match decode_line(path, &bytes[part.end..part.end + length], seq, before + part.end as u64) {
            Ok(Ok(record)) => part.records.push(record),
            Ok(Err(problem)) => part.problem = Some(Ok(problem)),
            Err(error) => part.problem = Some(Err(error)),
        }
        if part.problem.is_some() {
            break;
        }
        part.end += length + 1;
        seq += 1;
    }
    part
}

/// As much of a record as every version has.
#[derive(Deserialize)]
struct Head {
    seq: u64,
    version: Option<u32>,
}

/// A record, what is wrong with its line, or why the whole journal cannot be read.
pub(crate) fn decode_line(
    path: &Path,
    line: &[u8],
    seq: u64,
    byte: u64,
) -> Result<Result<Record, &'static str>, JournalError> {
    let json = match line::verify(line) {
        Ok(json) => json,
        Err(problem) => return Ok(Err(problem)),
    };
    let corrupt = |problem: String| JournalError::Corrupt { path: path.to_owned(), line: seq, byte, problem };
    // The checksum holds, so this is what was written: no torn tail, but something this build does not understand.
    let record = serde_json::from_slice::<Record>(&json);
    let (found, version) = match &record {
        Ok(Record { seq, event: Event::RunStarted { version, .. } | Event::RunReopened { version, .. }, .. }) => {
            (*seq, Some(*version))
        }
        Ok(record) => (record.seq, None),
        // The number of its version says more than what it lacks.
        Err(_) => {
            let head: Head = serde_json::from_slice(&json).map_err(|error| corrupt(error.to_string()))?;
            (head.seq, head.version)
        }
    };
    if let Some(found) = version
        && found > VERSION
    {
        return Err(JournalError::Newer { path: path.to_owned(), found, known: VERSION });
    }
    if found != seq {
        return Err(corrupt(format!("it is record {found} where record {seq} belongs")));
    }
    record.map(Ok).map_err(|error| corrupt(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::journal::{FileJournal, Journal};
    use crate::types::event::StepId;

    /// A journal of so many records on disk, closed unless it is to look like that of a killed process.
    fn journal(path: &Path, records: u64, close: bool) -> Vec<Record> {
        let mut journal = FileJournal::create(path, |error| panic!("{error}")).unwrap();
        let step = StepId::new("täsk", 1, 1);
        let records: Vec<Record> = (1..=records)
            .map(|seq| {
                let event = match seq {
                    1 => Event::run_started("20261122-014233-k3f9", "main"),
                    _ => Event::AttemptStarted {
                        step: step.clone(),
                        attempt: seq as u32,
                        reserved: None,
                        summarizer: None,
                    },
                };
                Record { seq, at: 1000 + seq, event }
            })
            .collect();
        for record in &records {
            journal.append(record);
            journal.flush().unwrap();
        }
        journal.durability().wait(records.len() as u64).unwrap();
        if close {
            Box::new(journal).close().unwrap();
        }
        records
    }

    #[test]
    fn a_journal_is_read_back_whether_it_was_closed_or_not() {
        let folder = tempfile::tempdir().unwrap();
        for (name, close) in [("closed", true), ("killed", false)] {
            let path = folder.path().join(name);
            let records = journal(&path, 40, close);
            let recovered = read_journal(&path).unwrap();
            assert_eq!((recovered.records, recovered.torn), (records, 0), "{name}");
            assert_eq!(recovered.end == path.metadata().unwrap().len(), close, "zeros lie ahead until it is closed");
        }
    }

    #[test]
    fn what_another_process_writes_behind_the_end_is_taken_away() {
        use std::io::{Seek, SeekFrom, Write};
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let record = |seq| Record { seq, at: 1000, event: Event::run_started("20261122-014233-k3f9", "main") };
        let mut journal = FileJournal::create(&path, |error| panic!("{error}")).unwrap();
        let mut append = |seq| {
            journal.append(&record(seq));
            journal.flush().unwrap();
            journal.take_intrusions()
        };
        assert_eq!(append(1), 0);
        let mut forged = Vec::new();
        line::encode(&Record { event: Event::StopRequested, ..record(2) }, &mut forged);
        let end = read_journal(&path).unwrap().end;
        for (place, seq) in [(SeekFrom::Start(end), 2), (SeekFrom::End(0), 3)] {
            let mut file = std::fs::File::options().write(true).open(&path).unwrap();
            file.seek(place).unwrap();
            file.write_all(&forged).unwrap();
            assert_eq!(append(seq), 1, "{place:?}");
        }
        assert_eq!(append(4), 0);
        assert_eq!(read_journal(&path).unwrap().records, [1, 2, 3, 4].map(record));
        // Also behind the last record, in a journal with zeros and in one that is too short for them.
        for (name, records) in [("long.jsonl", 9), ("short.jsonl", 1)] {
            let path = folder.path().join(name);
            let mut journal = FileJournal::create(&path, |error| panic!("{error}")).unwrap();
            (1..=records).for_each(|seq| journal.append(&record(seq)));
            journal.flush().unwrap();
            let mut file = std::fs::File::options().append(true).open(&path).unwrap();
            file.write_all(&forged).unwrap();
            Box::new(journal).close().unwrap();
            assert_eq!(read_journal(&path).unwrap().records, (1..=records).map(record).collect::<Vec<_>>(), "{name}");
        }
    }

    #[test]
    fn torn_at_any_byte_it_goes_on_after_the_last_whole_record() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let records = journal(&path, 4, true);
        let whole = std::fs::read(&path).unwrap();
        for length in 0..whole.len() {
            let lines = memchr::memchr_iter(b'\n', &whole[..length]).count();
            let end = memchr::memrchr(b'\n', &whole[..length]).map_or(0, |last| last + 1);
            // As it is cut, with the zeros that a lost block leaves, and with garbage.
            for (garbage, torn) in [("", length - end), ("\0\0\0\0", length - end), ("\0\u{7f}", length - end + 2)] {
                let bytes = [&whole[..length], garbage.as_bytes()].concat();
                let recovered = recover_records(&path, &bytes, (0, 0)).unwrap();
                assert_eq!(recovered.records, records[..lines], "cut at {length}");
                assert_eq!((recovered.end, recovered.torn), (end as u64, torn as u64), "cut at {length}");
            }
            if length % 11 > 0 {
                continue;
            }
            std::fs::write(&path, &whole[..length]).unwrap();
            let next = Record { seq: lines as u64 + 1, at: 9, event: Event::RunResumed };
            let mut resumed =
                FileJournal::append_to(&path, end as u64, lines as u64, |error| panic!("{error}")).unwrap();
            resumed.append(&next);
            Box::new(resumed).close().unwrap();
            assert_eq!(read_journal(&path).unwrap().records, [&records[..lines], &[next]].concat(), "cut at {length}");
        }
    }

    #[test]
    fn a_journal_of_several_parts_is_read_as_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let mut journal = FileJournal::create(&path, |error| panic!("{error}")).unwrap();
        let text = "x".repeat(1000);
        let event = |seq: u64| match seq {
            1 => Event::run_started("20261122-014233-k3f9", "main"),
            _ => Event::ConditionJudged { step: StepId::new(&text, 1, 1), holds: true, error: None },
        };
        let records: Vec<Record> = (1..=2200).map(|seq| Record { seq, at: 1000 + seq, event: event(seq) }).collect();
        records.iter().for_each(|record| journal.append(record));
        journal.flush().unwrap();
        Box::new(journal).close().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        assert!(bytes.len() > 2 * PART);
        assert_eq!(read_journal(&path).unwrap().records, records);
        for at in [10, bytes.len() / 2, bytes.len() - 2000] {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            let line = bytes[..at].iter().filter(|&&byte| byte == b'\n').count() as u64 + 1;
            match recover_records(&path, &damaged, (0, 0)) {
                Err(JournalError::Corrupt { line: found, .. }) => assert_eq!(found, line),
                other => panic!("{other:?}"),
            }
            let torn = recover_records(&path, &bytes[..at], (0, 0)).unwrap();
            assert_eq!(torn.records.len() as u64, line - 1);
            assert_eq!(torn.end + torn.torn, at as u64);
        }
    }

    #[test]
    fn a_flipped_byte_before_a_whole_line_is_refused_with_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        journal(&path, 4, true);
        let whole = std::fs::read(&path).unwrap();
        let starts: Vec<usize> =
            std::iter::once(0).chain(memchr::memchr_iter(b'\n', &whole).map(|at| at + 1)).collect();
        for position in 0..starts[3] {
            let mut damaged = whole.clone();
            damaged[position] ^= 0x11;
            let line = starts.iter().filter(|&&start| start <= position).count();
            match recover_records(&path, &damaged, (0, 0)) {
                Err(JournalError::Corrupt { line: found, byte, .. }) => {
                    assert_eq!((found, byte), (line as u64, starts[line - 1] as u64), "byte {position}");
                }
                other => panic!("byte {position}: {other:?}"),
            }
        }
        let mut damaged = whole.clone();
        damaged[starts[3] + 20] ^= 0x11;
        assert_eq!(
            recover_records(&path, &damaged, (0, 0)).unwrap().records.len(),
            3,
            "damage in the last line is a torn tail"
        );
    }

    #[test]
    fn a_newer_version_and_a_gap_say_so() {
        let line = |json: &str| {
            let body = &json[1..];
            format!("{{\"crc\":\"{:08x}\",{body}\n", crc32fast::hash(body.as_bytes()))
        };
        let newer = line(r#"{"seq":1,"at":1,"event":"run_begun","version":99,"what":"ever"}"#);
        let error = recover_records(Path::new("j"), newer.as_bytes(), (0, 0)).unwrap_err().to_string();
        assert_eq!(error, "journal `j` has version 99, but this swarmc reads up to 1: update swarmc");
        let gap = line(r#"{"seq":2,"at":1,"event":"run_resumed"}"#);
        let error = recover_records(Path::new("j"), gap.as_bytes(), (0, 0)).unwrap_err().to_string();
        assert!(error.contains("line 1 (byte 0): it is record 2 where record 1 belongs"), "{error}");
    }

    /// Both are read; what they are judged to be, and how often something was read.
    fn judge_both(first: &[u8], second: &[u8]) -> (Result<usize, JournalError>, usize) {
        let reads = std::cell::Cell::new(0);
        let read = || {
            reads.set(reads.get() + 1);
            Ok(if reads.get() == 1 { first.to_owned() } else { second.to_owned() })
        };
        let path = Path::new("j");
        let judged = judge_settled(path, read, |bytes| Ok(recover_records(path, bytes, (0, 0))?.records.len()));
        (judged, reads.get())
    }

    #[test]
    fn damage_counts_when_it_is_read_twice() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        journal(&path, 4, true);
        let whole = std::fs::read(&path).unwrap();
        // The third line was still zeros when it was read, and the fourth one was there.
        let lines: Vec<&[u8]> = whole.split_inclusive(|&byte| byte == b'\n').collect();
        let early = [lines[0], lines[1], &vec![0; lines[2].len()], lines[3]].concat();
        assert!(matches!(judge_both(&whole, b""), (Ok(4), 1)));
        assert!(matches!(judge_both(&early, &whole), (Ok(4), 2)));
        let grown = [&early, &[b'x'; 9][..], &[0; 9]].concat();
        for damaged in [&early, &grown] {
            let found = judge_both(&early, damaged);
            assert!(matches!(found, (Err(JournalError::Corrupt { line: 3, .. }), 2)), "{found:?}");
        }
    }

    #[test]
    fn waiting_threads_share_syncs_and_all_get_through() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = FileJournal::create(&folder.path().join("j"), |error| panic!("{error}")).unwrap();
        let durability = journal.durability();
        std::thread::scope(|scope| {
            for seq in 1..=200 {
                journal.append(&Record { seq, at: seq, event: Event::RunResumed });
                journal.flush().unwrap();
                let durability = &durability;
                scope.spawn(move || durability.wait(seq).unwrap());
            }
        });
        Box::new(journal).close().unwrap();
        assert_eq!(read_journal(&folder.path().join("j")).unwrap().records.len(), 200);
    }

    #[test]
    fn a_journal_that_is_gone_says_how() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let written = journal(&path, 3, true).len();
        let whole = std::fs::read(&path).unwrap();
        let said = |bytes: Option<&[u8]>| {
            bytes.map_or_else(|| std::fs::remove_file(&path), |bytes| std::fs::write(&path, bytes)).unwrap();
            let error = read_journal(&path).unwrap_err().to_string();
            error.replace(&path.display().to_string(), "J")
        };
        assert_eq!(said(Some(b"")), "journal `J` is empty: what the run had recorded is lost");
        assert_eq!(
            said(Some(&[0; 9])),
            "journal `J` holds 9 zeros and nothing else: what the run had recorded is lost"
        );
        let torn = &whole[..7];
        let lost = "journal `J` holds 7 damaged bytes and no whole record: what the run had recorded is lost";
        assert_eq!(said(Some(torn)), lost);
        let text = String::from_utf8(whole.clone()).unwrap();
        let text = text.trim_end_matches('\0').replace('\n', "\r\n");
        let converted = format!(
            "journal `J` was converted: its lines end in CRLF; type `sed -i 's/\\r$//' 'J'`, after which {written} records \
             can be read"
        );
        assert_eq!(said(Some(text.as_bytes())), converted);
        assert_eq!(said(None), "journal `J` is not there: it was deleted or moved away");
    }
}
