//! What editors show of a whole spec: the same texts and pictures that the command line prints.

use std::sync::Arc;

use swarmc_compiler::Compilation;

use crate::runs::LastRun;

/// Plans in words and pictures. What cannot be shown is said in words.
pub trait Views: Send + Sync {
    /// What a run would do, as `swarmc plan` says it: all pipelines and swarms, or one.
    ///
    /// # Errors
    /// There is no plan.
    fn render_plan(&self, compilation: &Compilation, name: Option<&str>) -> Result<String, String>;

    /// The same as SVG.
    ///
    /// # Errors
    /// There is no plan, nothing of that name, or too much to draw.
    fn render_graph(&self, compilation: &Compilation, name: Option<&str>) -> Result<String, String>;

    /// What the agent of a task is given; `last` finds the last run of a pipeline.
    ///
    /// # Errors
    /// There is no plan, or no such task with a prompt.
    fn render_prompt(
        &self,
        compilation: &Compilation,
        pipeline: Option<&str>,
        task: &str,
        last: &dyn Fn(&str) -> Option<Arc<LastRun>>,
    ) -> Result<String, String>;
}

/// Where nothing can be shown.
#[derive(Clone, Copy, Debug)]
pub struct NoViews;

/// Why.
const NOTHING: &str = "no part of a plan is shown here";

impl Views for NoViews {
    fn render_plan(&self, _: &Compilation, _: Option<&str>) -> Result<String, String> {
        Err(NOTHING.to_owned())
    }

    fn render_graph(&self, _: &Compilation, _: Option<&str>) -> Result<String, String> {
        Err(NOTHING.to_owned())
    }

    fn render_prompt(
        &self,
        _: &Compilation,
        _: Option<&str>,
        _: &str,
        _: &dyn Fn(&str) -> Option<Arc<LastRun>>,
    ) -> Result<String, String> {
        Err(NOTHING.to_owned())
    }
}
