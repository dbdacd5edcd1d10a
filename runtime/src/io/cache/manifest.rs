//! The manifest of a run: its entries, and why other steps of it left none.
//!
//! In: `runs/RUN/reuse.jsonl`. Out: entries by key and by step. The first line names the workflow, so that the last run
//! of a workflow is found without its plan.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::entry::{Entry, Unfit, frame_line, unframe_line};
use crate::io::home::{Home, RunFolder};
use crate::types::error::RunError;
use crate::types::event::StepId;

/// A line of a manifest.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum ManifestLine {
    /// The first one.
    Head {
        /// The name of the workflow.
        workflow: String,
    },
    /// A step without an entry.
    Unfit(Unfit),
}

impl ManifestLine {
    /// As a line, with its newline.
    pub(crate) fn format_line(&self) -> String {
        frame_line(&serde_json::to_string(self).expect("a line has string keys only")) + "\n"
    }
}

/// The entries of a run.
#[derive(Debug, Default)]
pub(crate) struct Manifest {
    /// The run.
    pub run: String,
    entries: Vec<Arc<Entry>>,
    keys: HashMap<String, usize>,
    steps: HashMap<StepId, usize>,
    unfit: HashMap<StepId, Arc<str>>,
    /// How many lines are damaged, and what is wrong with the first of them.
    pub damaged: Option<(usize, String)>,
}

impl Manifest {
    /// That of a run; empty where it has none.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) fn load(folder: &RunFolder) -> Result<Manifest, RunError> {
        let path = folder.reuse_path();
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(RunError::io("read", path)(error)),
        };
        let mut manifest = Manifest { run: folder.id.clone(), ..Manifest::default() };
        // A crash, or a person, may leave bytes that are no text: only their line is lost.
        for line in String::from_utf8_lossy(&bytes).lines() {
            manifest.add_line(line);
        }
        Ok(manifest)
    }

    /// That of the newest run of `workflow` that has one.
    ///
    /// # Errors
    /// The folder of the runs, or the manifest, cannot be read.
    pub(crate) fn load_last(home: &Home, workflow: &str, apart: &str) -> Result<Option<Manifest>, RunError> {
        let folders = home.list_folders()?;
        let of_workflow = |folder: &&RunFolder| {
            folder.id != apart && read_workflow(&folder.reuse_path()).is_some_and(|found| found == workflow)
        };
        folders.iter().find(of_workflow).map(Manifest::load).transpose()
    }

    /// Whether it has no entry.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entry of this key.
    pub(crate) fn find_entry(&self, key: &str) -> Option<&Arc<Entry>> {
        self.keys.get(key).map(|&at| &self.entries[at])
    }

    /// The entry of this step.
    pub(crate) fn find_step(&self, step: &StepId) -> Option<&Arc<Entry>> {
        self.steps.get(step).map(|&at| &self.entries[at])
    }

    /// Why this step has no entry, where that is known.
    pub(crate) fn find_unfit(&self, step: &StepId) -> Option<&str> {
        self.unfit.get(step).map(|reason| &**reason)
    }

    fn add_line(&mut self, line: &str) {
        let entry = match Entry::parse_line(line) {
            Ok(entry) => entry,
            Err(problem) => {
                match unframe_line(line).ok().and_then(|line| serde_json::from_str(line).ok()) {
                    Some(ManifestLine::Head { .. }) => {}
                    Some(ManifestLine::Unfit(Unfit { step, reason })) => _ = self.unfit.insert(step, reason),
                    None => self.damaged.get_or_insert((0, problem)).0 += 1,
                }
                return;
            }
        };
        // The last one counts: a step that ran again has a later result.
        self.keys.insert(entry.key.clone(), self.entries.len());
        self.unfit.remove(&entry.step);
        self.steps.insert(entry.step.clone(), self.entries.len());
        self.entries.push(Arc::new(entry));
    }
}

/// The workflow that a manifest names in its first line.
fn read_workflow(path: &Path) -> Option<String> {
    let mut line = String::new();
    BufReader::with_capacity(512, fs::File::open(path).ok()?).read_line(&mut line).ok()?;
    match serde_json::from_str(unframe_line(line.strip_suffix('\n')?).ok()?).ok()? {
        ManifestLine::Head { workflow } => Some(workflow),
        ManifestLine::Unfit(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::entry::tests::sample;
    use super::*;

    #[test]
    fn damaged_lines_are_counted_and_left_out() {
        let root = tempfile::tempdir().expect("a folder");
        let home = Home::new(root.path().to_owned());
        let folder = home.publish(home.create().expect("a run")).expect("a run");
        let head = ManifestLine::Head { workflow: "w".to_owned() }.format_line();
        let (good, cut) = (sample("x").format_line(), sample("y").format_line());
        fs::write(folder.reuse_path(), format!("{head}{good}\n{}", &cut[..200])).expect("a manifest");
        let manifest = Manifest::load(&folder).expect("it can be read");
        assert!(manifest.find_entry(&sample("x").key).is_some() && manifest.find_entry(&sample("y").key).is_none());
        assert_eq!(manifest.damaged, Some((1, "it is cut off".to_owned())));
        let found = |workflow: &str, apart: &str| {
            Manifest::load_last(&home, workflow, apart).expect("it can be read").map(|it| it.run)
        };
        assert_eq!((found("w", ""), found("v", ""), found("w", &folder.id)), (Some(folder.id.clone()), None, None));
    }

    #[test]
    fn the_last_entry_of_a_step_counts() {
        let mut manifest = Manifest::default();
        let unfit = Unfit { step: StepId::new("a", 1, 1), reason: "it failed".into() };
        manifest.add_line(ManifestLine::Unfit(unfit).format_line().trim_end());
        assert_eq!(manifest.find_unfit(&StepId::new("a", 1, 1)), Some("it failed"));
        for text in ["x", "y"] {
            manifest.add_line(&sample(text).format_line());
        }
        assert_eq!(manifest.find_unfit(&StepId::new("a", 1, 1)), None);
        assert_eq!(manifest.find_step(&StepId::new("a", 1, 1)).map(|entry| &entry.key), Some(&sample("y").key));
    }
}
