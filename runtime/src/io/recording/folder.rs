//! Folders of agents that work by files, in a recording: what lay in them when a turn began, and what was collected.
//!
//! Invariant: nothing in such a line leads out of the folder that it is laid out in.

use std::collections::BTreeMap;

use super::exchange::{Exchange, FOLDER, Text};
use super::replay::Replay;
use super::words;
use super::write::{Recorder, Texts, blank_failure};
use crate::io::files::{AgentFiles, Collected, Laying, Provided, Remains, find_path_problem};
use crate::types::digest::file_name;
use crate::types::divergence::Difference;
use crate::types::error::RunError;
use crate::types::event::StepId;

impl Recorder {
    /// What was collected of an agent's folder.
    pub(crate) fn folder(&self, of: (&StepId, u32), given: &Provided, collected: &Collected) -> Result<(), RunError> {
        // Apart: files of one name may lie in the inbox and in the outbox.
        let (inbox, outbox) = (self.texts(of, "given-".into()), self.texts(of, "outbox-".into()));
        let text = |texts: &Texts<'_>, path: &str, bytes: &[u8]| -> Result<(String, Text), RunError> {
            Ok((self.redactions.blank_text(path), texts.text(&file_name(path), bytes)?))
        };
        let told_texts = given.told.iter().map(|(path, text_of)| text(&inbox, path, text_of.as_bytes()));
        let files = collected.files.iter().map(|(path, bytes)| text(&outbox, path, bytes));
        let blank = |laying: &Laying| Laying { source: self.redactions.blank_text(&laying.source), ..laying.clone() };
        let exchange = Exchange::Files {
            inputs: given.inputs.iter().map(blank).collect(),
            told: told_texts.collect::<Result<_, RunError>>()?,
            left: collected.left.as_ref().map(|left| Box::new(self.blanked(left))),
            files: files.collect::<Result<_, RunError>>()?,
            failure: collected.failure.as_ref().map(|failure| blank_failure(failure, &self.redactions)),
        };
        self.put(of, &exchange);
        Ok(())
    }

    fn blanked(&self, left: &AgentFiles) -> AgentFiles {
        changed(left, |value| self.redactions.blank_json(value))
    }
}

impl Replay {
    /// What lay in the folder of an attempt.
    ///
    /// # Errors
    /// The recording does not hold that, or cannot be read.
    pub(crate) fn folder(&self, step: &StepId, attempt: u32) -> Result<Remains, RunError> {
        let found = self.exchange((step.clone(), attempt), FOLDER);
        let Some((number, Exchange::Files { inputs, told, left, files, failure })) = found else {
            let place = format!("the folder of {}", words(step, attempt));
            return Err(self.diverged(step, attempt, place, Difference::Missing));
        };
        let filled = |laying: &Laying| Laying { source: self.redactions.fill_text(&laying.source), ..laying.clone() };
        let bytes = |text: &Text| -> Result<Vec<u8>, RunError> {
            Ok(self.redactions.fill(&self.recording.bytes(text).map_err(RunError::Recording)?))
        };
        let told = told.iter().map(|(path, text)| Ok((path.clone(), self.text(text)?)));
        let files = files.iter().map(|(path, text)| Ok((self.redactions.fill_text(path), bytes(text)?)));
        let fill = |left: &AgentFiles| changed(left, |value| self.redactions.fill_json(&value.to_string()));
        let remains = Remains {
            given: Provided {
                inputs: inputs.iter().map(filled).collect(),
                told: told.collect::<Result<_, RunError>>()?,
            },
            left: left.as_deref().map(fill),
            files: files.collect::<Result<BTreeMap<_, _>, RunError>>()?,
            failure: failure.as_ref().map(|failure| self.filled(failure)),
        };
        // A placeholder for a folder may lead out of this one.
        match find_path_problem(remains.given.told.keys(), remains.left.as_ref(), remains.files.keys()) {
            None => Ok(remains),
            Some(problem) => Err(self.damaged(number, problem)),
        }
    }

    /// Holds what an agent is told by files against what it was told then.
    ///
    /// # Errors
    /// It is something else.
    pub(crate) fn tells(
        &self,
        (step, attempt): (&StepId, u32),
        then: &BTreeMap<String, String>,
        now: Result<&BTreeMap<String, String>, &String>,
    ) -> Result<(), RunError> {
        let place = words(step, attempt);
        let differs = |what: String, recorded: Option<String>, now: Option<String>| {
            Err(self.diverged(step, attempt, place.clone(), Difference::Text { what, recorded, now }))
        };
        let now = match now {
            Ok(now) => now,
            Err(problem) => {
                return differs(format!("its input ({problem})"), Some(String::new()), Some(String::new()));
            }
        };
        // Of both: a file that is new is a difference as well as one that is gone.
        let mut paths: Vec<&String> = then.keys().chain(now.keys()).collect();
        paths.sort();
        paths.dedup();
        for path in paths {
            let blank = |text: Option<&String>| text.map(|text| self.redactions.blank_text(text));
            let (recorded, now) = (blank(then.get(path)), blank(now.get(path)));
            if recorded != now {
                return differs(format!("its `{path}`"), recorded, now);
            }
        }
        Ok(())
    }
}

/// What was collected, with its texts changed.
fn changed(left: &AgentFiles, change: impl Fn(&serde_json::Value) -> serde_json::Value) -> AgentFiles {
    let value = serde_json::to_value(left).map(|value| change(&value));
    value.and_then(serde_json::from_value).unwrap_or_else(|_| left.clone())
}
