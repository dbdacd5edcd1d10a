//! The end of the log of one attempt, as far as a screen shows it.
//!
//! In: the path of a log that grows. Out: its last lines, safe for a terminal. Bounded, however much a task prints: of what
//! came since the last look only the end is read, and that something is left out is said.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use swarmc_plan::Format;
use swarmc_view::make_printable;

use crate::agent_log::AgentLog;

/// The bytes that one look reads at most.
const LOOK: u64 = 256 * 1024;

/// The lines that are kept, and the characters of one.
const LINES: usize = 10_000;
const LINE: usize = 2_000;

/// The tail of a log.
#[derive(Default)]
pub(crate) struct LogTail {
    path: PathBuf,
    at: u64,
    begun: Vec<u8>,
    events: Option<AgentLog>,
    lines: VecDeque<String>,
}

impl LogTail {
    /// Nothing of a log is read yet, which may hold events of this format.
    pub(crate) fn new(path: PathBuf, format: Option<Format>) -> LogTail {
        LogTail { path, events: format.map(AgentLog::new), ..LogTail::default() }
    }

    /// Whether it is of this log.
    pub(crate) fn is_of(&self, path: &Path) -> bool {
        self.path == path
    }

    /// Reads what is new; whether something is.
    pub(crate) fn poll(&mut self) -> bool {
        let Ok(mut file) = File::open(&self.path) else { return false };
        let length = file.metadata().map_or(0, |metadata| metadata.len());
        if length <= self.at {
            return false;
        }
        if length - self.at > LOOK {
            let skipped = length - self.at - LOOK;
            self.at = length - LOOK;
            // The bytes behind the gap do not go on with the line that had begun.
            self.begun.clear();
            self.push_line(&format!("… {} are not shown: swarmc logs has all", swarmc_view::format_size(skipped)));
        }
        let mut bytes = Vec::new();
        if file.seek(SeekFrom::Start(self.at)).is_err() || file.take(LOOK).read_to_end(&mut bytes).is_err() {
            return false;
        }
        self.at += bytes.len() as u64;
        match &mut self.events {
            Some(events) => {
                let text = events.read_bytes(&bytes);
                self.begun.extend_from_slice(text.as_bytes());
            }
            None => self.begun.extend_from_slice(&bytes),
        }
        let mut begun = std::mem::take(&mut self.begun);
        let whole = memchr::memrchr(b'\n', &begun).map_or(0, |end| end + 1);
        let rest = begun.split_off(whole);
        for line in begun.split_inclusive(|&byte| byte == b'\n') {
            self.push_line(&String::from_utf8_lossy(line.strip_suffix(b"\n").unwrap_or(line)));
        }
        self.begun = rest;
        true
    }

    /// How many lines there are, with one that has no end yet.
    pub(crate) fn count(&self) -> usize {
        self.lines.len() + usize::from(!self.begun.is_empty())
    }

    /// The line of this number, from 0.
    pub(crate) fn line(&self, number: usize) -> String {
        match self.lines.get(number) {
            Some(line) => line.clone(),
            None => clean_line(&String::from_utf8_lossy(&self.begun)),
        }
    }

    /// The path of the log.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The last lines, of so many bytes at most.
    pub(crate) fn text(&self, most: usize) -> String {
        let mut bytes = 0;
        let fits = |number: &usize| {
            bytes += self.line(*number).len() + 1;
            bytes <= most
        };
        let mut numbers: Vec<usize> = (0..self.count()).rev().take_while(fits).collect();
        numbers.reverse();
        numbers.into_iter().map(|number| self.line(number) + "\n").collect()
    }

    fn push_line(&mut self, line: &str) {
        if self.lines.len() == LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(clean_line(line));
    }
}

fn clean_line(line: &str) -> String {
    let shown: String = line.trim_end_matches('\r').chars().take(LINE).collect();
    make_printable(&shown).replace('\t', "    ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_floods_is_shown_from_its_end() {
        let folder = tempfile::TempDir::new().expect("a folder can be made");
        let path = folder.path().join("log");
        let mut tail = LogTail::new(path.clone(), None);
        assert!(!tail.poll());
        std::fs::write(&path, "one\n\u{1b}[2Jtwo\nthr").expect("it can be written");
        assert!(tail.poll() && tail.count() == 3);
        assert!(!tail.line(1).contains('\u{1b}') && tail.line(2) == "thr", "{:?}", tail.lines);
        let flood = "x".repeat(99) + "\n";
        std::fs::write(&path, format!("one\ntwo\nthree\n{}last\n", flood.repeat(20_000))).expect("it can be written");
        assert!(tail.poll());
        assert!(tail.lines.iter().any(|line| line.contains("are not shown")), "{}", tail.lines.len());
        assert_eq!((tail.lines.back().map(String::as_str), tail.lines.len() <= LINES), (Some("last"), true));
    }
}
