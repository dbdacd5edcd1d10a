//! Snapshots: texts in files beside a spec, which a test compares with what it finds.
//!
//! `snapshots/SPEC.TEST.STEP.txt` holds what a step is asked the first time, `….STEP.2.txt` the second time. Nothing is
//! written unless that is asked for, and then only for tests in which everything else holds.

use std::collections::BTreeSet;
use std::path::PathBuf;

use miette::miette;
use swarmc_compiler::Files;

use crate::change::Change;
use crate::files::Workspace;

/// The snapshots of a spec.
pub(super) struct Snapshots {
    folder: PathBuf,
    /// The folder as a person would type it.
    shown: String,
    /// The spec, without its ending.
    spec: String,
    /// The folder in the workspace.
    inside: String,
    workspace: Workspace,
    update: bool,
    /// What the test that goes on looked at.
    open: Vec<Change>,
    names: BTreeSet<String>,
    /// What is to be written.
    pub(super) changes: Vec<Change>,
    /// What nothing looks at any more.
    pub(super) stale: Vec<PathBuf>,
}

/// How a text compares with its snapshot.
pub(super) enum Taken {
    Same,
    /// There is none in this file.
    New(String),
    /// This file says this.
    Other(String, String),
}

impl Snapshots {
    /// Those of a spec.
    ///
    /// # Errors
    /// The folder is a link that leads out of the workspace.
    pub(super) fn new(workspace: &Workspace, spec: &str, update: bool) -> miette::Result<Snapshots> {
        let (folder, file) = spec.rsplit_once('/').unwrap_or(("", spec));
        let inside = if folder.is_empty() { "snapshots".to_owned() } else { format!("{folder}/snapshots") };
        let (place, shown) = (workspace.root.join(&inside), workspace.display_path(&inside));
        if place.canonicalize().is_ok_and(|real| !real.starts_with(&workspace.root)) {
            return Err(miette!("`{shown}` leads out of the workspace"));
        }
        Ok(Snapshots {
            folder: place,
            shown,
            spec: file.strip_suffix(".kdl").unwrap_or(file).to_owned(),
            inside,
            workspace: Workspace { root: workspace.root.clone() },
            update,
            open: Vec::new(),
            names: BTreeSet::new(),
            changes: Vec::new(),
            stale: Vec::new(),
        })
    }

    /// Compares a text with its snapshot; where that is to be written, it is the same.
    pub(super) fn compare_text(&mut self, test: &str, part: &str, text: &str) -> Taken {
        let dot = if part.is_empty() { "" } else { "." };
        let name = format!("{}.{test}{dot}{part}.txt", self.spec);
        let path = self.folder.join(&name);
        let shown = format!("{}/{name}", self.shown);
        // The workspace is another folder elsewhere.
        let text = format!("{}\n", text.replace(&*self.workspace.root.to_string_lossy(), "$WORKSPACE"));
        let before = self.workspace.read(&format!("{}/{name}", self.inside)).ok().map(|text| text.to_string());
        let is_new = self.names.insert(name);
        match before {
            Some(before) if before == text => Taken::Same,
            before if self.update => {
                // Several expectations may look at one file, which is written once.
                if is_new {
                    let before = before.unwrap_or_default();
                    self.open.push(Change { path, shown, before, after: text });
                }
                Taken::Same
            }
            Some(before) => Taken::Other(shown, before),
            None => Taken::New(shown),
        }
    }

    /// A test is over: where all of it holds, what it looked at is written, and the rest of its files goes.
    pub(super) fn finish_test(&mut self, test: &str, holds: bool) {
        let (open, names) = (std::mem::take(&mut self.open), std::mem::take(&mut self.names));
        // A test that fails may not reach all of its snapshots, so nothing tells which are stale.
        if !holds || !self.update {
            return;
        }
        self.changes.extend(open);
        let prefix = format!("{}.{test}.", self.spec);
        let files = std::fs::read_dir(&self.folder).into_iter().flatten().filter_map(Result::ok);
        let mut stale: Vec<PathBuf> = files
            .filter_map(|file| file.file_name().into_string().ok())
            .filter(|name| name.starts_with(&prefix) && name.ends_with(".txt") && !names.contains(name))
            .map(|name| self.folder.join(name))
            .collect();
        stale.sort();
        self.stale.extend(stale);
    }

    /// Removes what nothing looks at any more.
    pub(super) fn remove_stale(&self) -> miette::Result<()> {
        for path in &self.stale {
            std::fs::remove_file(path).map_err(|error| miette!("cannot remove `{}`: {error}", path.display()))?;
        }
        Ok(())
    }
}
