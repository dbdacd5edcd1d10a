//! The complete log of one stream of one attempt, on disk.
//!
//! No file before there is output. A short log is handed to the scribe as a whole when the attempt ends; one that is
//! long, or has waited a moment, is opened and written as its bytes come.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::error::RunError;
use crate::executor::Scribe;
use crate::home::create_private;

/// What a log may hold back, in bytes, and for how long.
const SHORT: usize = 32 * 1024;
const MOMENT: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(super) struct Log {
    path: PathBuf,
    file: Option<File>,
    pending: Vec<u8>,
    /// When what is pending must be written.
    due: Option<Instant>,
}

impl Log {
    pub(super) fn new(path: PathBuf) -> Log {
        Log { path, file: None, pending: Vec::new(), due: None }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<(), RunError> {
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

    /// Nothing more comes; true when the scribe has it to write.
    pub(super) fn finish(self, scribe: &Scribe) -> bool {
        let waits = self.file.is_none() && !self.pending.is_empty();
        if waits {
            scribe.write(self.path, self.pending);
        }
        waits
    }

    fn open(&mut self) -> Result<(), RunError> {
        self.due = None;
        if self.file.is_none() {
            let folder = self.path.parent().expect("a log lies in a folder");
            create_private(folder, true).map_err(RunError::io("create", folder))?;
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
