//! Templates of a plan → texts, at the moment a step starts.
//!
//! In: a [`Template`] or [`Expression`] and the values of the run. Out: text, or what is wrong and where. Invariant: a
//! value is data. It is put in its place once and never scanned again, whatever an agent wrote.

mod directive;
mod logic;
mod meter;

use std::fmt::Display;
use std::path::Path;

use serde_json::Value;
use swarmc_plan::{Expression, Origin, ParamType, Segment, Template};

use crate::io::workspace_file::read_file;
use crate::types::event::Status;
use logic::Logic;

/// The longest text that a template may become, in bytes.
const LONGEST: usize = 64 * 1024 * 1024;

/// What templates read. Texts may hold anything: braces, directives, NUL.
pub(crate) trait Values {
    /// The output of `step` in this round, its declared default applied; none where there is none.
    fn output(&self, step: &str) -> Result<Option<String>, String>;
    /// The output of `step` in the round before.
    fn previous(&self, step: &str) -> Result<Option<String>, String>;
    /// How `step` ended in this round.
    fn status(&self, step: &str) -> Option<Status>;
    /// The exit code of `step` in this round.
    fn exit(&self, step: &str) -> Option<i32>;
    /// Why `step` failed in this round: a text, or of a for-each a list of the items that did.
    fn error(&self, step: &str) -> Result<Option<Value>, String>;
    /// What the last attempt of `step` wrote to both streams: in this round, or, where it has not run in it, in the
    /// round before.
    fn log(&self, step: &str) -> Result<Option<String>, String>;
    /// Whether the output of `step` is a JSON object rather than text.
    fn is_record(&self, step: &str) -> bool;
    /// Every step of the pipeline.
    fn steps(&self) -> Vec<&str>;
    /// The ports of this step, with the steps behind them.
    fn inputs(&self) -> Vec<(&str, &str)>;
    /// A parameter's value in its textual form.
    fn param(&self, name: &str) -> Option<(&str, &ParamType)>;
    /// Every parameter that has a value.
    fn params(&self) -> Vec<&str>;
    /// The item of the for-each that this is for, and its position.
    fn item(&self) -> Result<Option<(Value, u32)>, String>;
    /// A value was read that is not there, and nothing replaces it.
    fn missed(&self, _what: &str) {}
    /// The number of this round, from 1.
    fn iteration(&self) -> u32;
    /// The run's id.
    fn run(&self) -> &str;
    /// The run's folder.
    fn run_folder(&self) -> &Path;
    /// The name of this step; empty in an `until`.
    fn task(&self) -> &str;
    /// What was piped into the run.
    fn stdin(&self) -> Result<Option<String>, String>;
    /// What waits in the inbox of this step; none where it has none.
    fn inbox(&self) -> Result<Option<String>, String> {
        Ok(None)
    }
    /// A context pack, as this step has it.
    fn context(&self, name: &str) -> Result<String, String> {
        Err(format!("there is no context pack `{name}` here"))
    }
    /// Where files are read.
    fn workspace(&self) -> &Path;
    /// The contents of a file of the workspace.
    fn file(&self, path: &str) -> Result<String, String> {
        read_file(self.workspace(), path)
    }
}

/// Renders templates and evaluates expressions.
pub(crate) struct Renderer {
    logic: Logic,
}

/// What is wrong with a text, and where.
#[derive(Debug)]
pub(crate) struct RenderError {
    /// For a person, with its place.
    pub message: String,
    /// Whether it is only that a value is not there.
    pub missing: bool,
}

impl RenderError {
    fn at(origin: &Origin, problem: impl Display) -> RenderError {
        RenderError { message: format!("{origin}: {problem}"), missing: false }
    }
}

impl Renderer {
    pub(crate) fn new() -> Renderer {
        Renderer { logic: Logic::new(meter::MOST) }
    }

    /// The text that `template` renders to.
    pub(crate) fn text(&self, template: &Template, values: &dyn Values) -> Result<String, RenderError> {
        if template.segments.iter().any(|segment| matches!(segment, Segment::Logic(_))) {
            return self.logic.text(&template.segments, values);
        }
        let mut text = String::new();
        for segment in &template.segments {
            match segment {
                Segment::Text(piece) => text.push_str(piece),
                Segment::Directive(directive) => text.push_str(&directive::text(directive, values)?),
                Segment::Logic(_) => unreachable!("a template with logic is rendered by minijinja"),
            }
            if text.len() > LONGEST {
                return Err(RenderError { message: too_long(), missing: false });
            }
        }
        Ok(text)
    }

    /// The value that `template` renders to: of its own type where the template is nothing but one
    /// directive or one `{{…}}`.
    pub(crate) fn value(&self, template: &Template, values: &dyn Values) -> Result<Value, RenderError> {
        match template.segments.as_slice() {
            [Segment::Directive(directive)] if directive.filters.is_empty() && !directive.wrap => {
                directive::typed(directive, values)
            }
            [Segment::Logic(logic)] if let Some(value) = self.logic.value(logic, values) => value,
            _ => self.text(template, values).map(Value::String),
        }
    }

    /// What is wrong with the grammar of `template`, where something is.
    pub(crate) fn check_template(&self, template: &Template) -> Result<(), RenderError> {
        self.logic.check_template(&template.segments)
    }

    /// What is wrong with the grammar of `expression`, where something is.
    pub(crate) fn check_expression(&self, expression: &Expression) -> Result<(), RenderError> {
        self.logic.check_expression(expression)
    }

    /// Whether `expression` is true.
    pub(crate) fn holds(&self, expression: &Expression, values: &dyn Values) -> Result<bool, RenderError> {
        self.logic.holds(expression, values)
    }

    /// What `expression` comes to.
    pub(crate) fn evaluate(&self, expression: &Expression, values: &dyn Values) -> Result<Value, RenderError> {
        self.logic.json(expression, values)
    }
}

fn too_long() -> String {
    format!("the text is longer than {} MiB", LONGEST / (1024 * 1024))
}

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;
