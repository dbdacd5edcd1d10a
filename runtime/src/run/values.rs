//! What the templates of a step read, from the state of the run and its artifacts.

use std::path::Path;

use swarmc_plan::{Body, ParamType, Step};

use super::run_loop::Loop;
use crate::event::{Content, Status};
use crate::render::Values;
use crate::state::Reading;

/// The values as one step sees them, or the conditions at the end of a round.
pub(super) struct View<'a> {
    pub run: &'a Loop<'a>,
    /// None for an `until`.
    pub step: Option<&'a Step>,
    pub instance: u32,
    pub iteration: u32,
}

impl View<'_> {
    fn read(&self, step: &str) -> Option<Reading<'_>> {
        self.run.state.read(step, self.instance, self.iteration)
    }

    fn text(&self, content: Option<&Content>) -> Result<Option<String>, String> {
        content.map(|content| self.run.folder.text(content)).transpose().map_err(|error| error.to_string())
    }
}

impl Values for View<'_> {
    fn output(&self, step: &str) -> Result<Option<String>, String> {
        self.text(self.read(step).and_then(|reading| reading.output))
    }

    fn previous(&self, step: &str) -> Result<Option<String>, String> {
        let before = self.iteration.checked_sub(1).filter(|&iteration| iteration > 0);
        let reading = before.and_then(|iteration| self.run.state.read(step, self.instance, iteration));
        self.text(reading.and_then(|reading| reading.output))
    }

    fn status(&self, step: &str) -> Option<Status> {
        self.read(step)?.status
    }

    fn exit(&self, step: &str) -> Option<i32> {
        self.read(step)?.exit
    }

    fn error(&self, step: &str) -> Option<String> {
        self.read(step)?.error.map(str::to_owned)
    }

    fn is_record(&self, step: &str) -> bool {
        self.run
            .steps
            .get(step)
            .is_some_and(|step| matches!(step.body, Body::Fields(_)) || step.output.schema.is_some())
    }

    fn steps(&self) -> Vec<&str> {
        self.run.pipeline.steps.iter().map(|step| step.name.as_str()).collect()
    }

    fn inputs(&self) -> Vec<(&str, &str)> {
        let inputs = self.step.iter().flat_map(|step| &step.inputs);
        inputs.map(|(port, source)| (port.as_str(), source.as_str())).collect()
    }

    fn param(&self, name: &str) -> Option<(&str, &ParamType)> {
        self.run.params.get(name).map(|(value, kind)| (value.as_str(), kind))
    }

    fn params(&self) -> Vec<&str> {
        self.run.params.keys().map(String::as_str).collect()
    }

    fn iteration(&self) -> u32 {
        self.iteration
    }

    fn run(&self) -> &str {
        &self.run.folder.id
    }

    fn run_folder(&self) -> &Path {
        &self.run.folder.path
    }

    fn task(&self) -> &str {
        self.step.map_or("", |step| step.name.as_str())
    }

    fn stdin(&self) -> Result<Option<String>, String> {
        self.text(self.run.stdin.as_ref())
    }

    fn workspace(&self) -> &Path {
        &self.run.surroundings.workspace
    }
}
