//! Copies the journal of a run that has ended into its recording, with placeholders for what differs between runs.
//!
//! In: the journal, and the texts that it refers to. Out: the folder of the recording. Invariant: what a replay comes to
//! by itself is left out, and everything else has its place in the order of the journal.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize as _;
use serde_json::{Value, json};

use super::exchange::{Attempt, Exchange, Key};
use super::read::{LINES, Recording};
use super::redact::Redactions;
use super::write::{Texts, draft, text_stem};
use crate::io::home::RunFolder;
use crate::types::content::Content;
use crate::types::error::RunError;
use crate::types::event::{Event, Record, StepId};

/// What people called steps, agents and events is the same in every run.
const NAMES: [&str; 7] = ["event", "step", "from", "to", "within", "agent", "member"];

/// The texts of an end that are in the exchanges of its attempt.
const ANSWERED: [&str; 4] = ["output", "log", "files", "artifacts"];

/// Puts the recording of a run that has ended where it belongs. Says how many answers it holds.
pub(crate) fn publish(
    run: &RunFolder,
    target: &Path,
    workflow: &str,
    redactions: &Redactions,
    values: &[String],
) -> Result<usize, RunError> {
    let draft = draft(run);
    let beside = |what: &str| {
        // Beside the target: a rename takes a folder as a whole only within one file system.
        let name = target.file_name().unwrap_or_default().to_string_lossy().into_owned();
        target.with_file_name(format!(".{name}.{what}-{}", run.id))
    };
    let (fresh, old) = (beside("new"), beside("old"));
    let io = |action: &'static str, path: &Path| RunError::io(action, path.to_owned());
    // A runner of this run that was killed while it copied has left it.
    if fresh.exists() {
        fs::remove_dir_all(&fresh).map_err(io("clear", &fresh))?;
    }
    fs::create_dir_all(&fresh).map_err(io("create", &fresh))?;
    let text = Copy { run, draft: &draft, fresh: &fresh, redactions }.copy_journal(workflow, values)?;
    let path = fresh.join(LINES);
    fs::write(&path, text).map_err(io("write", &path))?;
    // Opened before it takes the place of the old one: what cannot be read must not replace what can.
    let answers = Recording::open(&fresh).map_err(RunError::Recording)?.count_answers();
    if target.exists() {
        // A runner that was killed here has left one.
        if old.exists() {
            fs::remove_dir_all(&old).map_err(io("clear", &old))?;
        }
        // A rename does not replace a folder that holds files: the old one has to go first.
        fs::rename(target, &old).map_err(io("replace", target))?;
    }
    fs::rename(&fresh, target).map_err(io("create", target))?;
    // Neither is needed any more.
    let _ = fs::remove_dir_all(&old);
    let _ = fs::remove_dir_all(&draft);
    Ok(answers)
}

/// A recording that is copied from the journal of a run.
struct Copy<'a> {
    run: &'a RunFolder,
    draft: &'a Path,
    fresh: &'a Path,
    redactions: &'a Redactions,
}

impl Copy<'_> {
    /// The lines of the recording. Copies the texts that they name.
    fn copy_journal(&self, workflow: &str, values: &[String]) -> Result<String, RunError> {
        let records = self.run.read_records()?;
        let exchanges = self.read_exchanges(&records)?;
        let mut text = String::new();
        for (number, record) in records.iter().enumerate() {
            let exchange = exchanges.get(&number);
            let counts = match &record.event {
                Event::Exchanged { .. } => exchange.is_some(),
                Event::ArtifactStored { artifact, .. } => artifact.kind.is_recorded(),
                // A replay starts no process, and their numbers differ in each run.
                Event::ProcessStarted { .. } => false,
                _ => true,
            };
            if !counts {
                continue;
            }
            let mut line = serde_json::to_value(record).expect("records have string keys only");
            let texts = self.texts_of(record);
            match &record.event {
                Event::Exchanged { .. } => {
                    line["exchange"] = json!({ "json": exchange });
                    exchange.into_iter().flat_map(Exchange::files).try_for_each(|file| self.copy_file(file))?;
                }
                Event::AttemptEnded { .. } => {
                    if let Value::Object(fields) = &mut line {
                        ANSWERED.iter().for_each(|name| _ = fields.remove(*name));
                    }
                    self.blank(&mut line, "", &texts)?;
                }
                Event::RunStarted { params, .. } => {
                    // What parameters are called is free: a map of them may look like a text.
                    line["params"].take();
                    self.blank(&mut line, "", &texts)?;
                    let blank =
                        |(name, value): (&String, &String)| (name.clone(), json!(self.redactions.blank_text(value)));
                    line["params"] = Value::Object(params.iter().map(blank).collect());
                }
                _ => self.blank(&mut line, "", &texts)?,
            }
            if number == 0 {
                line["workflow"] = json!(workflow);
            }
            if let Event::RunFinished { .. } = &record.event {
                let text = |(number, value): (u32, &String)| {
                    let text = texts.text(&format!("value-{number}"), value.as_bytes())?;
                    Ok(as_content(serde_json::to_value(text).unwrap_or_default()))
                };
                line["values"] = (1..).zip(values).map(text).collect::<Result<Value, RunError>>()?;
            }
            text.push_str(&format!("{line}\n"));
        }
        Ok(text)
    }

    /// The exchanges that count, by the numbers of their records: of an attempt that a later runner took up again, only
    /// what that asked, but for the files in its texts.
    fn read_exchanges(&self, records: &[Record]) -> Result<BTreeMap<usize, Exchange>, RunError> {
        let mut exchanges: BTreeMap<usize, Exchange> = BTreeMap::new();
        let mut last: BTreeMap<Attempt, BTreeMap<Key, usize>> = BTreeMap::new();
        for (number, record) in records.iter().enumerate() {
            match &record.event {
                Event::AttemptStarted { step, attempt, .. } => {
                    let known = last.entry((step.clone(), *attempt)).or_default();
                    known.retain(|_, number| {
                        let is_void = exchanges.get(number).is_some_and(Exchange::is_of_attempt);
                        is_void.then(|| exchanges.remove(number));
                        !is_void
                    });
                }
                Event::Exchanged { step, attempt, exchange } => {
                    let path = self.run.journal_path();
                    let exchange: Exchange = serde_json::from_str(&self.run.read_text(exchange)?)
                        .map_err(|error| RunError::io("read", path)(std::io::Error::other(error)))?;
                    let known = last.entry((step.clone(), *attempt)).or_default();
                    // A later runner asked the same again: the last answer is the one that the run went on with.
                    if let Some(before) = known.insert(exchange.key(), number) {
                        exchanges.remove(&before);
                    }
                    exchanges.insert(number, exchange);
                }
                _ => {}
            }
        }
        Ok(exchanges)
    }

    /// Where the texts of a record go.
    fn texts_of(&self, record: &Record) -> Texts<'_> {
        let (step, attempt) = match &record.event {
            Event::AttemptStarted { step, attempt, .. }
            | Event::AttemptRejoined { step, attempt }
            | Event::AttemptEnded { step, attempt, .. }
            | Event::ApprovalAsked { step, attempt, .. }
            | Event::ApprovalAnswered { step, attempt, .. }
            | Event::StatusReported { step, attempt, .. }
            | Event::ArtifactStored { step, attempt, .. } => (step.clone(), *attempt),
            event => match event.swarm() {
                Some(swarm) => (swarm.step.clone(), swarm.attempt),
                None => (event.step().cloned().unwrap_or_else(|| StepId::new("run", 1, 1)), 1),
            },
        };
        let part = format!("{}.", record.seq);
        let stem = text_stem((&step, attempt));
        Texts { folder: self.fresh, redactions: self.redactions, stem, part: part.into() }
    }

    /// Puts placeholders into a line, and long texts of it into files. `name` is that of the field.
    fn blank(&self, value: &mut Value, name: &str, texts: &Texts<'_>) -> Result<(), RunError> {
        if let Some(content) = read_content(value) {
            let text = self.run.read_text(&content)?;
            // An envelope is blanked text by text: once escaped, a value in it would not be found.
            let inner = serde_json::from_str(&text).ok().filter(|inner: &Value| name == "content" && inner.is_object());
            *value = match inner {
                Some(inner) => json!({ "json": self.redactions.blank_json(&inner) }),
                None => as_content(serde_json::to_value(texts.text(name, text.as_bytes())?).unwrap_or_default()),
            };
            return Ok(());
        }
        match value {
            Value::String(text) => *text = self.redactions.blank_text(text),
            Value::Array(items) => items.iter_mut().try_for_each(|item| self.blank(item, name, texts))?,
            Value::Object(fields) => {
                for (name, value) in fields.iter_mut().filter(|(name, _)| !NAMES.contains(&name.as_str())) {
                    self.blank(value, name, texts)?;
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
        Ok(())
    }

    fn copy_file(&self, name: &str) -> Result<(), RunError> {
        let (from, to) = (self.draft.join(name), self.fresh.join(name));
        // Exchanges share the texts that hardly change between turns.
        if to.exists() {
            return Ok(());
        }
        let folder = to.parent().expect("a text lies in a folder");
        fs::create_dir_all(folder).map_err(RunError::io("create", folder))?;
        fs::copy(&from, &to).map_err(RunError::io("copy", &from))?;
        Ok(())
    }
}

/// A text of an event.
fn read_content(value: &Value) -> Option<Content> {
    let fields = value.as_object().filter(|fields| fields.len() == 1)?;
    fields.keys().any(|name| name == "text" || name == "artifact").then(|| Content::deserialize(value).ok()).flatten()
}

/// A text of an event, in the form of recordings.
fn as_content(text: Value) -> Value {
    if text.is_string() { json!({ "text": text }) } else { text }
}
