//! Reads a recording: reads nothing outside of its folder, whatever that holds, and reports what is wrong with its
//! line.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use super::exchange::{Exchange, RECORDING_VERSION, Text};
use super::redact::Redactions;
use super::script::Script;
use crate::types::event::{Content, Event, Record, RunStatus};
use crate::types::recording_error::RecordingError;

/// The file with the records.
pub(super) const LINES: &str = "recording.jsonl";

/// The file with the records at most, in bytes.
const LARGEST_FILE: u64 = 256 << 20;

/// A text at most, in bytes.
const LARGEST_TEXT: u64 = 64 << 20;

/// A run that was recorded, ready to be replayed.
#[derive(Debug)]
pub struct Recording {
    pub(super) folder: PathBuf,
    workflow: String,
    /// The records of its journal. Texts in files are artifacts of that name.
    pub(super) records: Vec<Record>,
    /// The exchanges, by the numbers of their records.
    pub(super) exchanges: BTreeMap<usize, Exchange>,
    pub(super) status: RunStatus,
    pub(super) values: Vec<Content>,
    pub(super) script: Script,
}

/// As much of the first line as every version has.
#[derive(Deserialize)]
struct Version {
    event: String,
    version: u64,
}

/// What a recording has beside the records: in the first line the workflow, in the last the results.
#[derive(Deserialize)]
struct Beside {
    #[serde(default)]
    workflow: String,
    #[serde(default)]
    values: Vec<Content>,
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
        // `confine` compares it with paths whose links are resolved.
        let folder = folder.canonicalize().map_err(io)?;
        let damaged = |line: usize, problem: String| RecordingError::Damaged { path: path.clone(), line, problem };
        let bytes = read(&path, LARGEST_FILE).map_err(io)?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            damaged(1 + valid.iter().filter(|&&byte| byte == b'\n').count(), "it is not UTF-8".to_owned())
        })?;
        let mut recording = Recording {
            folder,
            workflow: String::new(),
            records: Vec::new(),
            exchanges: BTreeMap::new(),
            status: RunStatus::Failed,
            values: Vec::new(),
            script: Script::default(),
        };
        for (number, line) in (1..).zip(text.lines()) {
            // Before the line itself is read: that of a newer version may have a form that is unknown here.
            if number == 1 {
                check_version(line, &path)?;
            }
            recording.read_line(line).map_err(|problem| damaged(number, problem))?;
        }
        let last = recording.records.len();
        let Some(Record { event: Event::RunFinished { status }, .. }) = recording.records.last() else {
            return Err(damaged(last.max(1), "it has no end: the last event must be `run_finished`".to_owned()));
        };
        recording.status = *status;
        recording.script = Script::new(&recording).map_err(|(number, problem)| damaged(number + 1, problem))?;
        Ok(recording)
    }

    /// Takes the next line.
    ///
    /// # Errors
    /// Says what is wrong with it.
    fn read_line(&mut self, line: &str) -> Result<(), String> {
        let mut value: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        // The names of parameters are free: none of them is a form of a text.
        let params = value.get_mut("params").filter(|_| self.records.is_empty()).map(Value::take);
        unfold(&mut value);
        if let Some(params) = params {
            value["params"] = params;
        }
        let Beside { workflow, values } = Beside::deserialize(&value).map_err(|error| error.to_string())?;
        // In the value and not in the record: so no kind of event can be forgotten.
        for file in list_files(&value) {
            confine(&self.folder, file)?;
        }
        let record = Record::deserialize(&value).map_err(|error| error.to_string())?;
        let is_start = matches!(record.event, Event::RunStarted { .. });
        match (self.records.last().map(|record| &record.event), &record.event) {
            (None, _) if !is_start => return Err("the first event must be `run_started`".to_owned()),
            (None, _) => self.workflow = workflow,
            (Some(_), _) if is_start => return Err("it begins a second time".to_owned()),
            (Some(Event::RunFinished { .. }), _) => return Err("it goes on after its end".to_owned()),
            (Some(_), Event::RunFinished { .. }) => self.values = values,
            (Some(_), Event::Exchanged { exchange, .. }) => {
                let Content::Text(exchange) = exchange else { return Err("its exchange is no JSON".to_owned()) };
                let exchange: Exchange = serde_json::from_str(exchange).map_err(|error| error.to_string())?;
                for file in exchange.files() {
                    confine(&self.folder, file)?;
                }
                self.exchanges.insert(self.records.len(), exchange);
            }
            (Some(_), _) => {}
        }
        self.records.push(record);
        Ok(())
    }

    /// How many answers it holds.
    pub(super) fn count_answers(&self) -> usize {
        self.script.asked.values().filter(|asked| asked.is_answered).count()
    }

    /// Where it lies.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The workflow that was run.
    pub fn workflow(&self) -> &str {
        &self.workflow
    }

    /// The pipeline that was run.
    pub fn pipeline(&self) -> &str {
        match self.start() {
            Event::RunStarted { pipeline, .. } => pipeline,
            _ => "",
        }
    }

    /// The one step that was run outside its pipeline.
    pub fn task(&self) -> Option<&str> {
        match self.start() {
            Event::RunStarted { task, .. } => task.as_deref(),
            _ => None,
        }
    }

    /// The parameters that it was run with, in their textual form, for a run in this workspace.
    ///
    /// # Errors
    /// They are in a file of their own, and cannot be read.
    pub fn params(
        &self,
        workspace: &Path,
        environment: &BTreeMap<OsString, OsString>,
    ) -> Result<BTreeMap<String, String>, RecordingError> {
        let Event::RunStarted { params, stored_params, .. } = self.start() else { return Ok(BTreeMap::new()) };
        // No run has begun: its id is empty here, so that these may only fill in. Blanking would find it everywhere.
        let redactions = Redactions::new(("", Path::new(""), workspace), environment, &BTreeSet::new());
        let params = match stored_params {
            None => params.clone(),
            Some(stored) => {
                let text = String::from_utf8_lossy(&self.load(stored)?).into_owned();
                serde_json::from_str(&text).unwrap_or_default()
            }
        };
        Ok(params.into_iter().map(|(name, text)| (name, redactions.fill_text(&text))).collect())
    }

    /// What was piped in, where the workflow reads it.
    ///
    /// # Errors
    /// It is a file of its own, and cannot be read.
    pub fn stdin(&self) -> Result<Option<Vec<u8>>, RecordingError> {
        match self.start() {
            Event::RunStarted { stdin, .. } => stdin.as_ref().map(|stdin| self.load(stdin)).transpose(),
            _ => Ok(None),
        }
    }

    /// The event that every recording begins with.
    fn start(&self) -> &Event {
        &self.records[0].event
    }

    /// The bytes of a text of an event as they were recorded.
    pub(super) fn load(&self, content: &Content) -> Result<Vec<u8>, RecordingError> {
        match content {
            Content::Text(text) => Ok(text.as_bytes().to_vec()),
            Content::Artifact { digest, .. } => self.load_file(digest),
        }
    }

    /// The bytes of a text of an exchange as they were recorded.
    pub(super) fn bytes(&self, text: &Text) -> Result<Vec<u8>, RecordingError> {
        match text {
            Text::Here(text) => Ok(text.as_bytes().to_vec()),
            Text::File { file } => self.load_file(file),
        }
    }

    fn load_file(&self, file: &str) -> Result<Vec<u8>, RecordingError> {
        let path = self.folder.join(file);
        // Once more: the folder may have changed since the recording was opened.
        let whole = confine(&self.folder, file).map_err(io::Error::other);
        whole.and_then(|()| read(&path, LARGEST_TEXT)).map_err(|source| RecordingError::Io { path, source })
    }
}

/// Brings the texts of a line into the form of the journal: `{"json": …}` is text, and `{"file": …}` an artifact.
fn unfold(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(unfold),
        Value::Object(fields) => {
            let only = (fields.len() == 1).then(|| fields.iter().next()).flatten();
            let content = match only {
                Some((name, inner)) if name == "json" => Some(serde_json::json!({ "text": inner.to_string() })),
                Some((name, Value::String(file))) if name == "file" => {
                    Some(serde_json::json!({ "artifact": { "digest": file, "bytes": 0 } }))
                }
                _ => None,
            };
            match content {
                Some(content) => *value = content,
                None => fields.values_mut().for_each(unfold),
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The files that the texts of a line lie in.
fn list_files(value: &Value) -> Vec<&str> {
    match value {
        Value::Array(items) => items.iter().flat_map(list_files).collect(),
        Value::Object(fields) => match fields.get("artifact").and_then(|artifact| artifact["digest"].as_str()) {
            Some(file) => vec![file],
            None => fields.values().flat_map(list_files).collect(),
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

/// Whether a recording is in this folder, damaged or not.
pub(super) fn is_recording(folder: &Path) -> bool {
    let mut start = [0; 256];
    let path = folder.join(LINES);
    let mut begins = || -> io::Result<usize> { File::open(&path)?.read(&mut start) };
    path.is_file()
        && begins().is_ok_and(|length| String::from_utf8_lossy(&start[..length]).contains("\"event\":\"run_started\""))
}

fn check_version(line: &str, path: &Path) -> Result<(), RecordingError> {
    match serde_json::from_str::<Version>(line) {
        Ok(Version { event, version }) if event == "run_started" && version > u64::from(RECORDING_VERSION) => {
            Err(RecordingError::Newer { path: path.to_owned(), found: version, known: RECORDING_VERSION })
        }
        // Whatever else is wrong is told by who reads the whole line.
        _ => Ok(()),
    }
}

/// Refuses the name of a text that leads out of the recording, or to what is no file.
fn confine(folder: &Path, name: &str) -> Result<(), String> {
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
    // A name without `..` can still lead out through a link.
    match path.canonicalize() {
        Ok(path) if path.starts_with(folder) => Ok(()),
        _ => Err(format!("`{}` leads out of the recording", name.escape_debug())),
    }
}

/// The bytes of a file that may be so large.
fn read(path: &Path, largest: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // A file may be larger than its metadata says, or grow: one byte too many shows it.
    File::open(path)?.take(largest + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > largest {
        true => Err(io::Error::other(format!("it is larger than {} MiB", largest >> 20))),
        false => Ok(bytes),
    }
}
