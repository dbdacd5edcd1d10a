//! The tool servers of a run, which belong to no step.
//!
//! In: the evaluator of the run. Out: its [`Toolbox`], with the variables of servers rendered. Variables may read what
//! the compiler allows: parameters, the run, piped input, files.

use std::path::Path;

use serde_json::Value;
use swarmc_plan::ParamType;

use super::eval::Evaluator;
use super::process_env::ProcessEnv;
use crate::eval::render::Values;
use crate::io::executor::ObserverHandle;
use crate::io::tools::{Limits, Toolbox, World};
use crate::types::event::Status;

/// The tools of a run.
pub(super) fn build_toolbox(
    evaluator: &Evaluator<'_>,
    process_env: &ProcessEnv,
    observer_handle: &ObserverHandle,
) -> Toolbox {
    let observer_handle = observer_handle.clone();
    let world = World {
        caller: process_env.caller(),
        allowed: &process_env.allowed_variables(),
        mark: ProcessEnv::mark(&evaluator.run),
        workspace: &evaluator.workspace,
        text: &|template| evaluator.renderer.text(template, &GlobalValues(evaluator)).map_err(|error| error.message),
        limits: Limits::default(),
        notice: Box::new(move |notice| observer_handle.send_notice(notice)),
    };
    Toolbox::new(evaluator.plan, world)
}

/// The values of a place in no step.
struct GlobalValues<'a>(&'a Evaluator<'a>);

impl Values for GlobalValues<'_> {
    fn output(&self, _: &str) -> Result<Option<String>, String> {
        Ok(None)
    }

    fn previous(&self, _: &str) -> Result<Option<String>, String> {
        Ok(None)
    }

    fn status(&self, _: &str) -> Option<Status> {
        None
    }

    fn exit(&self, _: &str) -> Option<i32> {
        None
    }

    fn log(&self, _: &str) -> Result<Option<String>, String> {
        Ok(None)
    }

    fn error(&self, _: &str) -> Result<Option<Value>, String> {
        Ok(None)
    }

    fn is_record(&self, _: &str) -> bool {
        false
    }

    fn steps(&self) -> Vec<&str> {
        Vec::new()
    }

    fn inputs(&self) -> Vec<(&str, &str)> {
        Vec::new()
    }

    fn param(&self, name: &str) -> Option<(&str, &ParamType)> {
        let declared = self.0.plan.params.iter().find(|param| param.name == name)?;
        Some((self.0.param(name)?, &declared.kind))
    }

    fn params(&self) -> Vec<&str> {
        let names = self.0.plan.params.iter().map(|param| param.name.as_str());
        names.filter(|name| self.0.param(name).is_some()).collect()
    }

    fn item(&self) -> Result<Option<(Value, u32)>, String> {
        Ok(None)
    }

    fn iteration(&self) -> u32 {
        1
    }

    fn run(&self) -> &str {
        &self.0.run
    }

    fn run_folder(&self) -> &Path {
        &self.0.run_folder
    }

    fn task(&self) -> &str {
        ""
    }

    fn stdin(&self) -> Result<Option<String>, String> {
        self.0.stdin.as_ref().map(|content| self.0.texts.load_text(content)).transpose()
    }

    fn workspace(&self) -> &Path {
        &self.0.workspace
    }
}
