//! Reading a journal back: every whole record, and how much of a torn tail had to be left out.
//!
//! Invariant: only what follows the last whole record may be damaged. Anything else is refused, and nothing is written.

use std::path::Path;

use serde::Deserialize;

use super::line;
use crate::error::JournalError;
use crate::event::{Record, VERSION};

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

/// Reads the journal at `path`.
pub(crate) fn read(path: &Path) -> Result<Recovered, JournalError> {
    let bytes = std::fs::read(path).map_err(|source| JournalError::Io { path: path.to_owned(), source })?;
    recover(path, &bytes)
}

fn recover(path: &Path, bytes: &[u8]) -> Result<Recovered, JournalError> {
    let filled = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    let bytes = &bytes[..filled];
    let mut recovered = Recovered::default();
    let mut start = 0;
    while start < bytes.len() {
        let next = memchr::memchr(b'\n', &bytes[start..]).map(|length| start + length + 1);
        let seq = recovered.records.len() as u64 + 1;
        let problem = match next {
            None => "it is cut short",
            Some(next) => match decode(path, &bytes[start..next - 1], seq, start as u64)? {
                Ok(record) => {
                    recovered.records.push(record);
                    start = next;
                    recovered.end = next as u64;
                    continue;
                }
                Err(problem) => problem,
            },
        };
        if next.is_some_and(|next| holds_whole_line(&bytes[next..])) {
            let problem = problem.to_owned();
            return Err(JournalError::Corrupt { path: path.to_owned(), line: seq, byte: start as u64, problem });
        }
        recovered.torn = (bytes.len() - start) as u64;
        break;
    }
    Ok(recovered)
}

/// A record, what is wrong with its line, or why the whole journal cannot be read.
fn decode(path: &Path, line: &[u8], seq: u64, byte: u64) -> Result<Result<Record, &'static str>, JournalError> {
    /// As much of a record as every version has.
    #[derive(Deserialize)]
    struct Head {
        seq: u64,
        version: Option<u32>,
    }
    let json = match line::verify(line) {
        Ok(json) => json,
        Err(problem) => return Ok(Err(problem)),
    };
    let corrupt = |problem: String| JournalError::Corrupt { path: path.to_owned(), line: seq, byte, problem };
    // The checksum holds, so this is what was written: no torn tail, but something this build does not understand.
    let head: Head = serde_json::from_slice(&json).map_err(|error| corrupt(error.to_string()))?;
    if seq == 1
        && let Some(found) = head.version
        && found > VERSION
    {
        return Err(JournalError::Newer { path: path.to_owned(), found, known: VERSION });
    }
    if head.seq != seq {
        return Err(corrupt(format!("it is record {} where record {seq} belongs", head.seq)));
    }
    serde_json::from_slice(&json).map(Ok).map_err(|error| corrupt(error.to_string()))
}

fn holds_whole_line(bytes: &[u8]) -> bool {
    bytes.split(|&byte| byte == b'\n').any(|line| line::verify(line).is_ok())
}
