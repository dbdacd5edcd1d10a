//! The notices about one attempt that people should read, such as that its agent has started no tools.
//!
//! In: the path of the file with the tools that the attempt used, which grows. Out: the text of each notice in it, in order.
//! Bounded: a look reads so many bytes, and the last notices stay.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use swarmc_runtime::{Signal, TelemetryKind};

/// The bytes that one look reads at most. A line is shorter: it holds texts of 2,000 bytes.
const LOOK: u64 = 256 * 1024;

/// The notices that stay.
const MOST: usize = 20;

/// The notices of an attempt so far.
#[derive(Default)]
pub(super) struct NoticeTail {
    path: PathBuf,
    at: u64,
    texts: Vec<String>,
}

impl NoticeTail {
    /// Nothing is read yet.
    pub(super) fn new(path: PathBuf) -> NoticeTail {
        NoticeTail { path, ..NoticeTail::default() }
    }

    /// Whether it is of this file.
    pub(super) fn is_of(&self, path: &Path) -> bool {
        self.path == path
    }

    /// Reads what is new; whether a notice is.
    pub(super) fn poll(&mut self) -> bool {
        let Ok(mut file) = File::open(&self.path) else { return false };
        let mut bytes = Vec::new();
        if file.seek(SeekFrom::Start(self.at)).is_err() || file.take(LOOK).read_to_end(&mut bytes).is_err() {
            return false;
        }
        // What has no end yet is read the next time.
        bytes.truncate(memchr::memrchr(b'\n', &bytes).map_or(0, |end| end + 1));
        self.at += bytes.len() as u64;
        let before = self.texts.len();
        self.texts.extend(bytes.split(|byte| *byte == b'\n').filter_map(read_notice));
        let is_new = self.texts.len() > before;
        self.texts.drain(..self.texts.len().saturating_sub(MOST));
        is_new
    }

    /// Their texts.
    pub(super) fn texts(&self) -> &[String] {
        &self.texts
    }
}

fn read_notice(line: &[u8]) -> Option<String> {
    match serde_json::from_slice(line).ok()? {
        Signal { sign: TelemetryKind::Notice { text }, .. } => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notices_are_read_as_they_come_and_tools_are_not() {
        let folder = tempfile::TempDir::new().expect("a folder can be made");
        let path = folder.path().join("tools.jsonl");
        let mut tail = NoticeTail::new(path.clone());
        assert!(!tail.poll());
        let step = r#""step":{"name":"a","iteration":1,"instance":1},"attempt":1"#;
        let tool = format!(r#"{{"at":1,{step},"type":"tool_started","id":"1","tool":"Bash","arguments":""}}"#);
        let notice = |text: &str| format!(r#"{{"at":1,{step},"type":"notice","text":"{text}"}}"#);
        std::fs::write(&path, format!("{tool}\n{}\nbroken\n{}", notice("one"), notice("two"))).expect("it is written");
        assert!(tail.poll());
        assert_eq!(tail.texts(), ["one"], "the second has no end yet");
        std::fs::write(&path, format!("{tool}\n{}\nbroken\n{}\n", notice("one"), notice("two")))
            .expect("it is written");
        assert!(tail.poll() && !tail.poll());
        assert_eq!(tail.texts(), ["one", "two"]);
    }
}
