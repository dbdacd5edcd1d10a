//! Reads a recording: reads nothing outside of its folder, whatever that holds, and reports what is wrong with its
//! line.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;

use super::line::{Header, LINES, Line, RECORDING_VERSION, Text};
use super::redact::Redactions;
use crate::types::event::RunStatus;
use crate::types::recording_error::RecordingError;

/// The file with the lines at most, in bytes.
const LARGEST_FILE: u64 = 256 << 20;

/// A text at most, in bytes.
const LARGEST_TEXT: u64 = 64 << 20;

/// A run that was recorded, ready to be replayed.
#[derive(Debug)]
pub struct Recording {
    pub(super) folder: PathBuf,
    pub(super) header: Header,
    /// All between the first line and the last.
    pub(super) lines: Vec<Line>,
    pub(super) status: RunStatus,
    pub(super) values: Vec<Text>,
}

/// As much of the first line as every version has.
#[derive(Deserialize)]
struct Version {
    kind: String,
    version: u64,
}

impl Recording {
    /// The recording in this folder.
    ///
    /// # Errors
    /// There is none, it is damaged, or newer than this build: says where.
    pub fn open(folder: &Path) -> Result<Recording, RecordingError> {
        let path = folder.join(LINES);
        if !folder.exists() {
            return Err(RecordingError::Nowhere { path: folder.to_owned() });
        }
        if !path.is_file() {
            return Err(RecordingError::NotOne { path: folder.to_owned() });
        }
        let io = |source| RecordingError::Io { path: path.clone(), source };
        let folder = folder.canonicalize().map_err(io)?;
        let damaged = |line: usize, problem: String| RecordingError::Damaged { path: path.clone(), line, problem };
        let bytes = read(&path, LARGEST_FILE).map_err(io)?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            damaged(1 + valid.iter().filter(|&&byte| byte == b'\n').count(), "it is not UTF-8".to_owned())
        })?;
        let mut lines: Vec<Line> = Vec::new();
        let (mut known, mut envelopes) = (BTreeSet::new(), BTreeSet::new());
        for (number, line) in (1..).zip(text.lines()) {
            if number == 1 {
                version(line, &path)?;
            }
            let line: Line = serde_json::from_str(line).map_err(|error| damaged(number, error.to_string()))?;
            for file in line.files() {
                confined(&folder, file).map_err(|problem| damaged(number, problem))?;
            }
            if let Some(problem) = line.problem(&mut envelopes) {
                return Err(damaged(number, problem));
            }
            match (&line, number) {
                (Line::Recording(_), 1) => {}
                (Line::Recording(_), _) => return Err(damaged(number, "it begins a second time".to_owned())),
                (Line::Began { .. }, _) => return Err(damaged(number, "it is of a run that goes on".to_owned())),
                _ if matches!(lines.last(), Some(Line::End { .. })) => {
                    return Err(damaged(number, "it goes on after its end".to_owned()));
                }
                _ if line.key().is_some_and(|key| !known.insert(key)) => {
                    return Err(damaged(number, "it is there twice".to_owned()));
                }
                _ => {}
            }
            lines.push(line);
        }
        let last = lines.len();
        let Some(Line::End { status, values }) = lines.pop() else {
            return Err(damaged(last.max(1), "it has no end: the last line must be of kind `end`".to_owned()));
        };
        if lines.is_empty() {
            return Err(damaged(1, "it has no beginning: the first line must be of kind `recording`".to_owned()));
        }
        match lines.remove(0) {
            Line::Recording(header) => Ok(Recording { folder, header, lines, status, values }),
            _ => Err(damaged(1, "the first line must be of kind `recording`".to_owned())),
        }
    }

    /// Where it lies.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The workflow that was run.
    pub fn workflow(&self) -> &str {
        &self.header.workflow
    }

    /// The pipeline that was run.
    pub fn pipeline(&self) -> &str {
        &self.header.pipeline
    }

    /// The one step that was run outside its pipeline.
    pub fn task(&self) -> Option<&str> {
        self.header.task.as_deref()
    }

    /// The parameters that it was run with, in their textual form, for a run in this workspace.
    ///
    /// # Errors
    /// One is a file of its own, and cannot be read.
    pub fn params(
        &self,
        workspace: &Path,
        environment: &BTreeMap<OsString, OsString>,
    ) -> Result<BTreeMap<String, String>, RecordingError> {
        let redactions = Redactions::new(("", Path::new(""), workspace), environment, &BTreeSet::new());
        let params = self.header.params.iter().map(|(name, text)| {
            let text = String::from_utf8_lossy(&self.bytes(text)?).into_owned();
            Ok((name.clone(), redactions.fill_text(&text)))
        });
        params.collect()
    }

    /// What was piped in, where the workflow reads it.
    ///
    /// # Errors
    /// It is a file of its own, and cannot be read.
    pub fn stdin(&self) -> Result<Option<Vec<u8>>, RecordingError> {
        self.header.stdin.as_ref().map(|text| self.bytes(text)).transpose()
    }

    /// The bytes of a text as they were recorded.
    pub(super) fn bytes(&self, text: &Text) -> Result<Vec<u8>, RecordingError> {
        match text {
            Text::Here(text) => Ok(text.as_bytes().to_vec()),
            Text::File { file } => {
                let path = self.folder.join(file);
                let whole = confined(&self.folder, file).map_err(io::Error::other);
                whole.and_then(|()| read(&path, LARGEST_TEXT)).map_err(|source| RecordingError::Io { path, source })
            }
        }
    }
}

/// Whether a recording is in this folder, damaged or not.
pub(super) fn is_recording(folder: &Path) -> bool {
    let mut start = [0; 256];
    let path = folder.join(LINES);
    let mut begins = || -> io::Result<usize> { File::open(&path)?.read(&mut start) };
    path.is_file()
        && begins().is_ok_and(|length| String::from_utf8_lossy(&start[..length]).contains("\"kind\":\"recording\""))
}

fn version(line: &str, path: &Path) -> Result<(), RecordingError> {
    match serde_json::from_str::<Version>(line) {
        Ok(Version { kind, version }) if kind == "recording" && version > u64::from(RECORDING_VERSION) => {
            Err(RecordingError::Newer { path: path.to_owned(), found: version, known: RECORDING_VERSION })
        }
        // Whatever else is wrong is told by who reads the whole line.
        _ => Ok(()),
    }
}

/// Refuses the name of a text that leads out of the recording, or to what is no file.
fn confined(folder: &Path, name: &str) -> Result<(), String> {
    let plain = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
    if !plain || name.is_empty() {
        return Err(format!("`{}` leads out of the recording", name.escape_debug()));
    }
    let path = folder.join(name);
    let meta = path.metadata().map_err(|error| format!("its text `{}`: {error}", name.escape_debug()))?;
    if !meta.is_file() {
        return Err(format!("its text `{}` is no file", name.escape_debug()));
    }
    if meta.len() > LARGEST_TEXT {
        return Err(format!("its text `{}` is larger than {} MiB", name.escape_debug(), LARGEST_TEXT >> 20));
    }
    match path.canonicalize() {
        Ok(path) if path.starts_with(folder) => Ok(()),
        _ => Err(format!("`{}` leads out of the recording", name.escape_debug())),
    }
}

/// The bytes of a file that may be so large.
fn read(path: &Path, largest: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(largest + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > largest {
        true => Err(io::Error::other(format!("it is larger than {} MiB", largest >> 20))),
        false => Ok(bytes),
    }
}
