//! The values that the templates of a step read, from the state of the run and its stored texts.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use swarmc_plan::{ParamType, Step};

use super::eval::{Evaluator, Made, Texts};
use crate::core::graph::Key;
use crate::core::state::{Reading, State};
use crate::eval::render::Values;
use crate::types::event::{Content, NOT_STARTED, Status, StepId};

/// The values as one step sees them, or the conditions at the end of a round.
pub(crate) struct View<'a> {
    pub evaluator: &'a Evaluator<'a>,
    pub state: &'a State,
    pub frame: u32,
    /// None for an `until`.
    pub step: Option<&'a Step>,
    pub params: Arc<Texts>,
    /// The workspace as it is in the working tree of the step, once there is one.
    pub tree: Option<PathBuf>,
    /// The attempt that it is for, from 1.
    pub attempt: u32,
    /// Where it is noted what is made, and what is missing.
    pub made: &'a Made,
}

impl View<'_> {
    fn read_step(&self, step: &str) -> Option<Reading<'_>> {
        self.state.read_from_frame(self.frame, step)
    }

    fn load_text(&self, content: Option<&Content>) -> Result<Option<String>, String> {
        content.map(|content| self.evaluator.texts.load_text(content)).transpose()
    }
}

impl Values for View<'_> {
    fn output(&self, step: &str) -> Result<Option<String>, String> {
        self.load_text(self.read_step(step).and_then(|reading| reading.output))
    }

    fn previous(&self, step: &str) -> Result<Option<String>, String> {
        self.load_text(self.state.look_back(self.frame, step).and_then(|reading| reading.output))
    }

    fn status(&self, step: &str) -> Option<Status> {
        self.read_step(step)?.status
    }

    fn exit(&self, step: &str) -> Option<i32> {
        let reading = self.read_step(step)?;
        reading.exit.or_else(|| {
            // What fails before it begins, by its texts or its `when`, has no process.
            let mut steps = self.evaluator.pipeline(self.state, self.frame).all_steps();
            let mut has_process =
                || steps.any(|known| known.name == step && known.for_each.is_none() && known.body.kind().takes_turn());
            (reading.status == Some(Status::Failed) && has_process()).then_some(NOT_STARTED)
        })
    }

    fn error(&self, step: &str) -> Result<Option<Value>, String> {
        let Some(reading) = self.read_step(step) else { return Ok(None) };
        match self.load_text(reading.errors)? {
            Some(list) => serde_json::from_str(&list).map(Some).map_err(|error| error.to_string()),
            None => Ok(reading.error.map(Value::from)),
        }
    }

    fn log(&self, step: &str) -> Result<Option<String>, String> {
        let now = self.read_step(step);
        let before = || self.state.look_back(self.frame, step).and_then(|reading| reading.log);
        // What has not ended in this round has the log of the attempt before, or of the round before.
        let log = match now {
            // One that ran and wrote nothing has an empty log.
            Some(Reading { status: Some(Status::Succeeded | Status::Failed), log: None, .. }) => {
                return Ok(Some(String::new()));
            }
            Some(reading) if reading.status.is_some() => reading.log,
            now => now.and_then(|reading| reading.log).or_else(before),
        };
        self.load_text(log)
    }

    fn is_record(&self, step: &str) -> bool {
        let scope = self.state.graph.scope(self.state.region(self.frame).scope);
        scope.find(step).is_some_and(|spot| self.evaluator.is_json(&self.state.graph, spot))
    }

    fn steps(&self) -> Vec<&str> {
        let scope = self.state.graph.scope(self.state.region(self.frame).scope);
        scope.names().map(|name| &**name).collect()
    }

    fn inputs(&self) -> Vec<(&str, &str)> {
        let inputs = self.step.iter().flat_map(|step| &step.inputs);
        inputs.map(|(port, source)| (port.as_str(), source.as_str())).collect()
    }

    fn param(&self, name: &str) -> Option<(&str, &ParamType)> {
        let pipeline = self.evaluator.pipeline(self.state, self.frame);
        let declared = pipeline.params.iter().chain(&self.evaluator.plan.params).find(|param| param.name == name)?;
        // A called pipeline has parameters of its own, and reads those of the workflow as well.
        let value = self.params.get(name).or_else(|| self.evaluator.param(name))?;
        Some((value, &declared.kind))
    }

    fn params(&self) -> Vec<&str> {
        let pipeline = self.evaluator.pipeline(self.state, self.frame);
        let declared = pipeline.params.iter().chain(&self.evaluator.plan.params).map(|param| param.name.as_str());
        declared.filter(|name| self.param(name).is_some()).collect()
    }

    fn item(&self) -> Result<Option<(Value, u32)>, String> {
        self.evaluator.item(self.state, self.frame)
    }

    fn missed(&self, what: &str) {
        self.made.note_missing(what);
    }

    fn iteration(&self) -> u32 {
        self.state.frame(self.frame).iteration
    }

    fn run(&self) -> &str {
        &self.evaluator.run
    }

    fn run_folder(&self) -> &Path {
        &self.evaluator.run_folder
    }

    fn task(&self) -> &str {
        self.step.map_or("", |step| step.name.as_str())
    }

    fn stdin(&self) -> Result<Option<String>, String> {
        self.load_text(self.evaluator.stdin.as_ref())
    }

    fn inbox(&self) -> Result<Option<String>, String> {
        let step = self.step.and_then(|step| self.state.region(self.frame).find(&step.name));
        match step {
            Some(step) => self.evaluator.render_inbox(self.state, Key { frame: self.frame, step }, 0),
            None => Ok(None),
        }
    }

    fn context(&self, name: &str) -> Result<String, String> {
        let step = self.step.and_then(|step| self.state.region(self.frame).find(&step.name));
        let step = step.ok_or_else(|| format!("there is no context pack `{name}` here"))?;
        let key = Key { frame: self.frame, step };
        self.evaluator.build_pack((self.state, key), self.attempt, name, self.made).map(|packed| packed.text.clone())
    }

    fn file(&self, path: &str) -> Result<String, String> {
        let frame = self.state.frame(self.frame);
        let step = StepId {
            name: self.task().into(),
            iteration: frame.iteration,
            instance: frame.instance,
            within: frame.path.clone(),
        };
        self.evaluator.source.file((&step, self.attempt), self.workspace(), path)
    }

    fn workspace(&self) -> &Path {
        self.tree.as_deref().unwrap_or(&self.evaluator.workspace)
    }
}
