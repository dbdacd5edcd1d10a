//! Prepares the folder of an agent whose step says `files`: renders everything, and creates nothing.

use std::sync::Arc;

use swarmc_plan::{Body, Command, FileInput, FileOutput, FileProtocol, Step, Template};

use super::driver::Driver;
use super::eval::{from_render_error, render_failure};
use super::values::View;
use crate::core::graph::Key;
use crate::io::files::{AgentFiles, Brief, FileWorkspaceSpec, Given, Maker, Wanted, messages};
use crate::types::answer::OutputValidator;
use crate::types::event::{Failure, StepId};

impl Driver<'_> {
    /// The folder of an attempt; none where its step does not work by files. `shape` is what the step's output must be.
    pub(super) fn file_workspace(
        &self,
        (key, id, attempt): (Key, &StepId, u32),
        step: &Step,
        view: &View<'_>,
        mends: bool,
        shape: Option<&Arc<OutputValidator>>,
    ) -> Result<Option<FileWorkspaceSpec>, Failure> {
        let Some(files) = self.evaluator.plan.files_of(step) else { return Ok(None) };
        let text = |template: &Template| self.evaluator.renderer.text(template, view).map_err(from_render_error);
        let texts = |templates: &[Template]| templates.iter().map(text).collect::<Result<Vec<String>, Failure>>();
        let asked = match &step.body {
            Body::Prompt(body) => text(&body.prompt)?,
            Body::Run(Command::Shell(line)) => format!("Run `{line}`."),
            Body::Run(Command::Argv(words) | Command::Script { argv: words, .. }) => {
                format!("Run `{}`.", words.join(" "))
            }
            _ => String::new(),
        };
        // What people call the task stands first, and the whole of it behind.
        let (objective, context) = match &step.description {
            Some(description) => (description.clone(), asked),
            None => (asked, self.evaluator.plan.description.clone().unwrap_or_default()),
        };
        let brief = Brief {
            task: step.name.clone(),
            objective,
            context,
            requirements: texts(&files.requirements)?,
            criteria: texts(&files.criteria)?,
            constraints: texts(&files.constraints)?,
        };
        let folder = self.outputs.layout.agent_folder(id, attempt);
        let name = folder.strip_prefix(&self.outputs.folder.path).unwrap_or(&folder).to_string_lossy().into_owned();
        let node = self.state.node(key);
        let tries = attempt.saturating_sub(self.state.step(key).earlier);
        let after_mending = node.fix_attempt().is_some_and(|fixing| tries == fixing + 1);
        let primary = shape.filter(|_| !mends && is_value(files));
        Ok(Some(FileWorkspaceSpec {
            run: self.outputs.folder.path.clone(),
            workspace: self.services.process_env.workspace.clone(),
            skill: files.skill.clone(),
            brief,
            inputs: files.inputs.iter().map(|input| self.resolve_input(input, view)).collect::<Result<_, Failure>>()?,
            outputs: files.outputs.iter().map(|output| self.resolve_output(output)).collect::<Result<_, Failure>>()?,
            copied: files.copy_limit(),
            wait_for: files.wait_for.clone(),
            messages: self.collect_messages(key, step)?,
            primary: primary.map(Arc::clone),
            mends,
            mended: after_mending.then(|| self.outputs.layout.agent_folder(id, attempt - 1)),
            folder,
            name,
        }))
    }

    /// What the turn reads of its inbox, as files.
    fn collect_messages(&self, key: Key, step: &Step) -> Result<Option<messages::TurnMessages>, Failure> {
        if !self.evaluator.is_node(&self.state, key) {
            return Ok(None);
        }
        let texts = self
            .state
            .inputs(key)
            .map(|letter| Ok((letter.author(), self.evaluator.texts.load_text(&letter.content)?)));
        let texts = texts.collect::<Result<Vec<(Option<&str>, String)>, String>>().map_err(render_failure)?;
        let found = messages::message_files(&step.name, texts.iter().map(|(author, text)| (*author, text.as_str())));
        Ok(Some(messages::TurnMessages { found, receivers: self.evaluator.message_receivers(&self.state, key) }))
    }

    fn resolve_input(&self, input: &FileInput, view: &View<'_>) -> Result<Given, Failure> {
        let from = match &input.from {
            None => None,
            Some(from) => {
                let left = view.state.read_from_frame(view.frame, from).and_then(|reading| reading.files);
                let left = match left {
                    Some(left) => {
                        let text = self.evaluator.texts.load_text(left).map_err(render_failure)?;
                        serde_json::from_str(&text).map_err(|error| render_failure(error.to_string()))?
                    }
                    None if input.optional => AgentFiles::default(),
                    None => return Err(render_failure(format!("`{from}` left no files for `{}`", input.path))),
                };
                Some(Maker { agent: from.clone(), left: Arc::new(left) })
            }
        };
        let folder = input.copy_to.as_deref().unwrap_or_default().trim_matches('/');
        // Both ways to say where in the inbox.
        let folder = folder.strip_prefix("inbox/").unwrap_or(if folder == "inbox" { "" } else { folder });
        Ok(Given {
            path: input.path.clone(),
            description: input.description.clone(),
            folder: folder.to_owned(),
            reference: input.reference,
            optional: input.optional,
            from,
        })
    }

    fn resolve_output(&self, output: &FileOutput) -> Result<Wanted, Failure> {
        let shape =
            output.schema.as_ref().map(|schema| self.evaluator.shapes.validator_for(schema, self.evaluator.plan));
        Ok(Wanted {
            path: output.path.clone(),
            description: output.description.clone(),
            required: output.required,
            shape: shape.transpose().map_err(render_failure)?,
            copy_to: output.copy_to.clone(),
        })
    }
}

/// Whether the first output is where the value of a typed step stands.
pub(super) fn is_value(files: &FileProtocol) -> bool {
    files.outputs.first().is_some_and(|output| output.required && output.path.ends_with(".json"))
}
