//! The environment of processes: the folder that they run in, and the variables that they get.
//!
//! Invariant: a variable of the caller's environment passes only if the allow-list or the plan names it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use swarmc_plan::{EnvValue, Environment, Pipeline, Plan};

use crate::eval::render::{RenderError, Renderer, Values};
use crate::io::process::is_allowed;
use crate::io::shim::{PASSED, SECRET};
use crate::io::socket_peer::MARK;
use crate::types::error::RunError;
use crate::types::event::StepId;

/// The world around a run's processes.
#[derive(Debug)]
pub(super) struct ProcessEnv {
    /// Where files are read.
    pub workspace: PathBuf,
    /// Where the processes of each pipeline run, by its name.
    directories: BTreeMap<String, Arc<PathBuf>>,
    caller: BTreeMap<OsString, OsString>,
    allowed: Vec<(OsString, OsString)>,
    place: Place,
}

/// Where the processes of attempts run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Here,
    /// On other machines: what they are passed is there.
    Remote,
    /// In a rehearsal none runs.
    Nowhere,
}

/// Why an environment cannot be made.
pub(super) enum Trouble {
    /// A text cannot be rendered.
    Render(RenderError),
    /// A secret is not there.
    Missing(String),
}

impl ProcessEnv {
    pub(super) fn new<'a>(
        pipelines: impl IntoIterator<Item = &'a Pipeline>,
        workspace: &Path,
        caller: BTreeMap<OsString, OsString>,
    ) -> Result<ProcessEnv, RunError> {
        let workspace = workspace.canonicalize().map_err(RunError::io("enter", workspace))?;
        let mut directories = BTreeMap::new();
        for pipeline in pipelines {
            let directory = working_folder(pipeline, &workspace)?;
            directories.insert(pipeline.name.clone(), Arc::new(directory));
        }
        let allowed = caller.iter().filter(|(name, _)| is_allowed(name));
        let allowed = allowed.map(|(name, value)| (name.clone(), value.clone())).collect();
        Ok(ProcessEnv { workspace, directories, caller, allowed, place: Place::Here })
    }

    /// The same where processes of attempts run on other machines.
    pub(super) fn remote(self) -> ProcessEnv {
        ProcessEnv { place: Place::Remote, ..self }
    }

    /// The world of a rehearsal: no folder is looked at, no variable passes, and secrets are blank.
    pub(super) fn imagined(plan: &Plan, workspace: &Path) -> ProcessEnv {
        let mut caller = BTreeMap::new();
        super::blank_secrets(plan, &mut caller);
        let directory = Arc::new(workspace.to_owned());
        let directories = plan.pipelines.iter().map(|pipeline| (pipeline.name.clone(), Arc::clone(&directory)));
        ProcessEnv {
            workspace: workspace.to_owned(),
            directories: directories.collect(),
            caller,
            allowed: Vec::new(),
            place: Place::Nowhere,
        }
    }

    /// Where the processes of a pipeline run.
    pub(super) fn pipeline_directory(&self, pipeline: &str) -> Arc<PathBuf> {
        let directory = self.directories.get(pipeline);
        directory.map_or_else(|| Arc::new(self.workspace.clone()), Arc::clone)
    }

    /// The whole environment of an attempt: the allow-list, then `layers` in order, then what names the attempt, with
    /// its number as people write it.
    pub(super) fn of_attempt(
        &self,
        run: &str,
        step: &StepId,
        counted: u32,
        layers: &[&Environment],
        renderer: &Renderer,
        values: &dyn Values,
    ) -> Result<Vec<(OsString, OsString)>, Trouble> {
        let is_remote = self.place == Place::Remote;
        let mut environment = if is_remote { Vec::new() } else { self.allowed.clone() };
        for entry in layers.iter().copied().flatten() {
            let (name, value) = match entry {
                EnvValue::Pass(name) if is_remote => (PASSED, OsString::from(name)),
                EnvValue::Secret(name) if is_remote => (SECRET, OsString::from(name)),
                EnvValue::Pass(name) => match self.caller.get(OsStr::new(name)) {
                    Some(value) => (name.as_str(), value.clone()),
                    None => continue,
                },
                EnvValue::Secret(name) => match self.caller.get(OsStr::new(name)) {
                    Some(value) => (name.as_str(), value.clone()),
                    None => return Err(Trouble::Missing(format!("the secret variable `{name}` is not set"))),
                },
                EnvValue::Set { name, value } => {
                    let text = renderer.text(value, values).map_err(Trouble::Render)?;
                    // No variable can hold a NUL, and an agent may have written one.
                    (name.as_str(), OsString::from(text.replace('\0', "\u{fffd}")))
                }
            };
            environment.push((OsString::from(name), value));
        }
        // No process reads the rest.
        if self.place == Place::Nowhere {
            return Ok(environment);
        }
        let within = step.within.as_ref().map(|within| ("SWARM_WITHIN", within.to_string()));
        let marks = [
            (MARK, run.to_owned()),
            ("SWARM_TASK", step.name.to_string()),
            ("SWARM_ITERATION", step.iteration.to_string()),
            ("SWARM_INSTANCE", step.instance.to_string()),
            ("SWARM_ATTEMPT", counted.to_string()),
        ];
        // Behind the layers: of two variables with one name, a process sees the last.
        environment
            .extend(marks.into_iter().chain(within).map(|(name, value)| (OsString::from(name), OsString::from(value))));
        Ok(environment)
    }

    /// The caller's whole environment.
    pub(super) fn caller(&self) -> &BTreeMap<OsString, OsString> {
        &self.caller
    }

    /// What every process gets of the caller's environment.
    pub(super) fn allowed_variables(&self) -> Vec<(OsString, OsString)> {
        self.allowed.clone()
    }

    /// By which processes of a run are known that belong to no attempt.
    pub(super) fn mark(run: &str) -> (OsString, OsString) {
        (OsString::from(MARK), OsString::from(run))
    }

    /// The environment of a hook: the allow-list, and what happened.
    pub(super) fn of_hook(&self, run: &str, facts: Vec<(&str, String)>) -> Vec<(OsString, OsString)> {
        let facts = facts.into_iter().chain([(MARK, run.to_owned())]);
        let facts = facts.map(|(name, value)| (OsString::from(name), OsString::from(value)));
        self.allowed.iter().cloned().chain(facts).collect()
    }
}

fn working_folder(pipeline: &Pipeline, workspace: &Path) -> Result<PathBuf, RunError> {
    let Some(path) = &pipeline.working_dir else {
        return Ok(workspace.to_owned());
    };
    // Resolved: a link may lead out of the workspace.
    let directory = workspace.join(path).canonicalize().map_err(RunError::io("enter", path))?;
    match directory.starts_with(workspace) {
        true => Ok(directory),
        false => Err(RunError::Request(format!("the working folder `{path}` lies outside the workspace"))),
    }
}
