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

/// The bytes that are kept of a line without an end; more than one of [`LINE`] characters has.
const LONGEST: usize = 4 * LINE;

/// The tail of a log.
#[derive(Default)]
pub(crate) struct LogTail {
    path: PathBuf,
    at: u64,
    /// A line that has no end yet.
    begun: Vec<u8>,
    format: Option<Format>,
    events: Option<AgentLog>,
    lines: VecDeque<String>,
}

impl LogTail {
    /// Nothing of a log is read yet, which may hold events of this format.
    pub(crate) fn new(path: PathBuf, format: Option<Format>) -> LogTail {
        LogTail { path, format, events: format.map(AgentLog::new), ..LogTail::default() }
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
        let has_gap = length - self.at > LOOK;
        if has_gap {
            let skipped = length - self.at - LOOK;
            self.at = length - LOOK;
            // The bytes behind the gap do not go on with the line that had begun.
            self.begun.clear();
            self.events = self.format.map(AgentLog::new);
            self.push_line(&format!("… {} are not shown: swarmc logs has all", swarmc_view::format_size(skipped)));
        }
        let mut bytes = Vec::new();
        if file.seek(SeekFrom::Start(self.at)).is_err() || file.take(LOOK).read_to_end(&mut bytes).is_err() {
            return false;
        }
        self.at += bytes.len() as u64;
        // Behind a gap the first line lacks its beginning.
        let from = if has_gap { memchr::memchr(b'\n', &bytes).map_or(0, |end| end + 1) } else { 0 };
        match &mut self.events {
            Some(events) => {
                let text = events.read_bytes(&bytes[from..]);
                self.begun.extend_from_slice(text.as_bytes());
            }
            None => self.begun.extend_from_slice(&bytes[from..]),
        }
        let mut begun = std::mem::take(&mut self.begun);
        let whole = memchr::memrchr(b'\n', &begun).map_or(0, |end| end + 1);
        let rest = begun.split_off(whole);
        for line in begun.split_inclusive(|&byte| byte == b'\n') {
            self.push_line(&String::from_utf8_lossy(line.strip_suffix(b"\n").unwrap_or(line)));
        }
        // A progress bar may never end its line.
        self.begun = rest[rest.len().saturating_sub(LONGEST)..].to_vec();
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

/// A line as a terminal would show it: what stands behind a carriage return takes the place of what stood ahead of it.
fn clean_line(line: &str) -> String {
    let line = line.trim_end_matches('\r');
    let shown: String = line.rsplit('\r').next().unwrap_or(line).chars().take(LINE).collect();
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

    #[test]
    fn a_line_without_an_end_stays_small() {
        let folder = tempfile::TempDir::new().expect("a folder can be made");
        let path = folder.path().join("log");
        let mut tail = LogTail::new(path.clone(), None);
        let mut text = String::new();
        for percent in 0..100 {
            text.push_str(&format!("\r{percent:4} % {}", "#".repeat(1_000)));
            std::fs::write(&path, &text).expect("it can be written");
            assert!(tail.poll());
        }
        assert!(tail.begun.len() <= LONGEST && tail.count() == 1, "{}", tail.begun.len());
        assert!(tail.line(0).starts_with("  99 % #"), "{}", tail.line(0));
    }

    #[test]
    fn events_behind_a_gap_begin_with_a_whole_line() {
        let folder = tempfile::TempDir::new().expect("a folder can be made");
        let path = folder.path().join("log");
        let said = |text: &str| {
            format!(
                "{{\"type\":\"assistant\",\"message\":{{\"content\":[{{\"type\":\"text\",\"text\":\"{text}\"}}]}}}}\n"
            )
        };
        let mut tail = LogTail::new(path.clone(), Some(Format::ClaudeStreamJson));
        let first = said("one");
        std::fs::write(&path, &first[..first.len() / 2]).expect("it can be written");
        assert!(tail.poll());
        std::fs::write(&path, first + &said(&"x".repeat(300_000)) + &said("two")).expect("it can be written");
        assert!(tail.poll());
        let shown: Vec<String> = (0..tail.count()).map(|number| tail.line(number)).collect();
        assert!(shown[0].contains("are not shown") && shown[1..] == ["two"], "{shown:?}");
    }
}
