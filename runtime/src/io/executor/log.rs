//! The complete log of one stream of one attempt, on disk.
//!
//! In: the bytes as they come. Out: a file with them, and a line in the place of those that are too many. No file
//! before there is output. When the attempt ends, the file writer gets a short log as a whole; one that is long, or has
//! waited a moment, is opened and written as its bytes come.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::io::executor::FileWriter;
use crate::io::executor::turn_artifacts::Logged;
use crate::io::home::create_private;
use crate::types::error::RunError;

/// What a log may hold back, in bytes, and for how long.
const SHORT: usize = 32 * 1024;
const MOMENT: Duration = Duration::from_millis(100);

/// The bytes of one stream of one attempt that are written down. What a CI system keeps of a job by default is some MiB
/// (GitLab: 4), and the transcript of an agent's long day some ten: an attempt that writes this much goes in circles,
/// and a usual disk still has room for many of them.
const MOST: usize = 256 * 1024 * 1024;

#[derive(Debug)]
pub(super) struct Log {
    path: PathBuf,
    file: Option<File>,
    pending: Vec<u8>,
    /// When what is pending must be written.
    due: Option<Instant>,
    /// The bytes that there is room for; none once the log says that there were more.
    room: Option<usize>,
}

impl Log {
    pub(super) fn new(path: PathBuf) -> Log {
        Log { path, file: None, pending: Vec::new(), due: None, room: Some(MOST) }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<(), RunError> {
        let Some(room) = self.room else { return Ok(()) };
        let (fits, over) = bytes.split_at(room.min(bytes.len()));
        self.accept_bytes(fits)?;
        if over.is_empty() {
            self.room = Some(room - fits.len());
            return Ok(());
        }
        self.room = None;
        let most = MOST >> 20;
        self.accept_bytes(format!("\n[the log ends here: it contains the first {most} MiB of a stream]\n").as_bytes())
    }

    fn accept_bytes(&mut self, bytes: &[u8]) -> Result<(), RunError> {
        if self.file.is_none() && self.pending.len() + bytes.len() <= SHORT {
            if self.pending.is_empty() {
                self.due = Some(Instant::now() + MOMENT);
            }
            self.pending.extend_from_slice(bytes);
            return Ok(());
        }
        self.open()?;
        self.write(bytes)
    }

    /// When [`Log::tick`] wants to be called.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Writes what has waited long enough.
    pub(super) fn tick(&mut self, now: Instant) -> Result<(), RunError> {
        if self.due.is_some_and(|due| due <= now) { self.open() } else { Ok(()) }
    }

    /// What it holds; none where nothing came.
    pub(super) fn log_content(&self) -> Option<Logged<'_>> {
        match self.file {
            Some(_) => Some(Logged::Lies(&self.path)),
            None => (!self.pending.is_empty()).then_some(Logged::Waits(&self.pending)),
        }
    }

    /// Nothing more comes; true when the file writer has it to write.
    pub(super) fn finish(self, file_writer: &FileWriter) -> bool {
        let waits = self.file.is_none() && !self.pending.is_empty();
        if waits {
            // What a killed runner left there may be an artifact by another name.
            file_writer.remove(self.path.clone());
            file_writer.write(self.path, self.pending);
        }
        waits
    }

    fn open(&mut self) -> Result<(), RunError> {
        self.due = None;
        if self.file.is_none() {
            let folder = self.path.parent().expect("a log lies in a folder");
            create_private(folder, true).map_err(RunError::io("create", folder))?;
            // What a killed runner left there may be an artifact by another name; else there is nothing.
            let _ = std::fs::remove_file(&self.path);
            self.file = Some(File::create(&self.path).map_err(RunError::io("create", &self.path))?);
            let pending = std::mem::take(&mut self.pending);
            self.write(&pending)?;
        }
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), RunError> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        file.write_all(bytes).map_err(RunError::io("write", &self.path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a log has of these pieces, with room for ten bytes.
    fn check(pieces: &[&str], expected: &str) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("logs/log");
        let mut log = Log { room: Some(10), ..Log::new(path.clone()) };
        pieces.iter().for_each(|piece| log.push(piece.as_bytes()).expect("it can be written"));
        log.open().expect("it can be written");
        assert_eq!(std::fs::read_to_string(path).expect("it is there"), expected);
    }

    #[test]
    fn one_line_stands_for_what_there_is_no_room_for() {
        let note = "\n[the log ends here: it contains the first 256 MiB of a stream]\n";
        check(&["0123456789"], "0123456789");
        check(&["01234", "56789"], "0123456789");
        check(&["01234", "56789", "a", "b"], &format!("0123456789{note}"));
        check(&["0123456789a", "b", "c"], &format!("0123456789{note}"));
        assert_eq!(Log::new(PathBuf::new()).room, Some(MOST));
    }

    #[test]
    fn a_log_that_is_open_has_an_end_too() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log");
        let mut log = Log { room: Some(SHORT + 1), ..Log::new(path.clone()) };
        let piece = vec![b'x'; SHORT];
        (0..4).for_each(|_| log.push(&piece).expect("it can be written"));
        let text = std::fs::read_to_string(path).expect("it is there");
        assert_eq!(text.lines().map(str::len).take(1).collect::<Vec<_>>(), [SHORT + 1]);
        assert_eq!(text.lines().count(), 2);
    }
}
