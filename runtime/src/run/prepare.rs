//! From the order to start an attempt to the job that carries it out: everything rendered, nothing started.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use swarmc_plan::{Body, Connection, PromptBody, PromptDelivery, Provider, Recorded, Step};

use super::environment::Trouble;
use super::run_loop::Loop;
use super::scene::{failed, render, unknown};
use super::values::View;
use crate::event::{Failure, StepId};
use crate::executor::{Cancel, Job, Work};
use crate::graph::Key;

/// What an attempt turned out to need.
pub(super) enum Prepared {
    /// A thread, to start processes on.
    Job(Box<Job>),
    /// Nothing more: this is its output.
    Text(String),
}

impl Loop<'_> {
    /// Renders what an attempt of `id` needs.
    pub(super) fn prepare(&self, id: &StepId, attempt: u32) -> Result<Prepared, Failure> {
        let key = self.state.find(id).ok_or_else(|| unknown(id))?;
        let step = self.scene.step(&self.state, key);
        let view = self.scene.view(&self.state, key.frame, Some(step)).map_err(render)?;
        let renderer = &self.scene.renderer;
        let text = |template| renderer.text(template, &view).map_err(failed);
        let stdin = || step.stdin.as_ref().map(text).transpose();
        let mut provider = None;
        let work = match &step.body {
            Body::Run(command) => Work::Command { command: command.clone(), stdin: stdin()?.map(String::into_bytes) },
            Body::Prompt(body) => {
                let found = self.provider(body)?;
                provider = Some(found);
                self.agent(body, found, id, attempt, &view, stdin()?)?
            }
            Body::Value(template) if step.output.schema.is_some() => {
                Work::Text(renderer.value(template, &view).map_err(failed)?.to_string())
            }
            Body::Value(template) => Work::Text(text(template)?),
            Body::Fields(fields) => {
                let record: serde_json::Map<String, serde_json::Value> = fields
                    .iter()
                    .map(|(name, template)| Ok((name.clone(), renderer.value(template, &view).map_err(failed)?)))
                    .collect::<Result<_, Failure>>()?;
                Work::Text(serde_json::Value::Object(record).to_string())
            }
            Body::Stop { message, .. } => Work::Text(text(message)?),
            Body::Call(_) | Body::Swarm(_) | Body::Gate(_) | Body::Loop(_) => {
                return Err(render(format!("this version cannot run step `{}`", step.name)));
            }
        };
        let work = match work {
            Work::Text(text) if step.checks.is_empty() => return Ok(Prepared::Text(text)),
            work => work,
        };
        let none = Vec::new();
        let pipeline = self.scene.pipeline(&self.state, key.frame);
        let layers = [&pipeline.env, provider.map_or(&none, |provider| &provider.env), &step.env];
        let environment = self
            .surroundings
            .of_attempt(&self.folder.id, id, attempt, &layers, renderer, &view)
            .map_err(|trouble| match trouble {
                Trouble::Render(error) => failed(error),
                Trouble::Missing(message) => Failure::Spawn { message },
            })?;
        Ok(Prepared::Job(Box::new(Job {
            step: id.clone(),
            attempt,
            after: self.after(key, id, attempt, step),
            work,
            checks: step.checks.clone(),
            environment: Arc::new(environment),
            directory: self.surroundings.directory(&pipeline.name),
            timeout: step.timeout_ms.map(Duration::from_millis),
            idle: step.idle_ms.map(Duration::from_millis),
            grace: Duration::from_millis(step.grace_ms),
            max_output: usize::try_from(step.output.max_bytes).unwrap_or(usize::MAX).max(1),
            cancel: Arc::new(Cancel::default()),
        })))
    }

    /// The record that must be durable before the attempt starts: the latest of those it depends on.
    fn after(&self, key: Key, id: &StepId, attempt: u32, step: &Step) -> u64 {
        let frame = self.state.frame(key.frame);
        if frame.item.is_none() && id.iteration > 1 || attempt > 1 || step.when.is_some() {
            return self.seq;
        }
        let ended = |name: &str| self.ended.get(&(id.instance, id.within.clone(), Arc::from(name))).copied();
        let needs = match frame.item {
            Some(_) => None,
            None => step.needs.iter().filter_map(|need| ended(&need.step)).max(),
        };
        needs.unwrap_or(0).max(self.floor).max(frame.opened)
    }

    fn provider(&self, body: &PromptBody) -> Result<&Provider, Failure> {
        let agent = self.scene.plan.agent(&body.agent);
        let provider = agent.and_then(|agent| self.scene.plan.provider(&agent.provider));
        provider.ok_or_else(|| render(format!("the plan has no provider for agent `{}`", body.agent)))
    }

    fn agent(
        &self,
        body: &PromptBody,
        provider: &Provider,
        id: &StepId,
        attempt: u32,
        view: &View<'_>,
        step_stdin: Option<String>,
    ) -> Result<Work, Failure> {
        let agent = self.scene.plan.agent(&body.agent);
        let renderer = &self.scene.renderer;
        let mut prompt = renderer.text(&body.prompt, view).map_err(failed)?;
        let system = agent.and_then(|agent| agent.system.as_ref());
        let mut system = system.map(|system| renderer.text(system, view)).transpose().map_err(failed)?;
        let has_flag = matches!(&provider.connection, Connection::Exec { system_flag: Some(_), .. });
        if !has_flag && let Some(system) = system.take() {
            prompt = format!("{system}\n\n{prompt}");
        }
        if let Connection::Exec { prompt: PromptDelivery::Stdin, .. } = &provider.connection
            && let Some(data) = &step_stdin
        {
            // Both have one way in.
            prompt = format!("{prompt}\n\n{data}");
        }
        let path = self.layout.prompt(id, attempt);
        let mut files = vec![(path.clone(), prompt.clone())];
        if let Some(system) = &system {
            files.push((self.layout.system(id, attempt), system.clone()));
        }
        match &provider.connection {
            Connection::Script { answers } => recorded(answers, id, attempt, files),
            Connection::Acp { .. } | Connection::Llm { .. } => {
                let message =
                    format!("this version cannot reach provider `{}`: only `exec` and `script`", provider.name);
                Err(Failure::Spawn { message })
            }
            Connection::Exec { argv, prompt: delivery, reads, model_flag, system_flag, .. } => {
                let mut argv: Vec<OsString> = argv.iter().map(OsString::from).collect();
                if let (Some(flag), Some(model)) = (model_flag, agent.and_then(|agent| agent.model.as_ref())) {
                    argv.extend([OsString::from(flag), OsString::from(model)]);
                }
                if let (Some(flag), Some(system)) = (system_flag, &system) {
                    argv.extend([OsString::from(flag), argument(system.clone())]);
                }
                let stdin = match delivery {
                    PromptDelivery::Stdin => Some(prompt),
                    PromptDelivery::Argument => {
                        argv.push(argument(prompt));
                        step_stdin
                    }
                    PromptDelivery::File => {
                        argv.push(path.into_os_string());
                        step_stdin
                    }
                };
                let install = provider.install.clone();
                let stdin = stdin.map(String::into_bytes);
                Ok(Work::Agent { argv, stdin, reads: *reads, install, files })
            }
        }
    }
}

fn recorded(answers: &[Recorded], id: &StepId, attempt: u32, files: Vec<(PathBuf, String)>) -> Result<Work, Failure> {
    let fits = |answer: &&Recorded| {
        answer.task.as_deref().is_none_or(|task| task == &*id.name)
            && answer.iteration.is_none_or(|iteration| iteration == id.iteration)
            && answer.attempt.is_none_or(|number| number == attempt)
    };
    let Some(answer) = answers.iter().find(fits) else {
        let message = format!(
            "no recorded answer fits task `{}`, iteration {}, attempt {attempt}: add one to the provider",
            id.name, id.iteration
        );
        return Err(Failure::Agent { message });
    };
    Ok(Work::Recorded {
        text: answer.text.clone(),
        exit: answer.exit,
        delay: Duration::from_millis(answer.delay_ms),
        files,
    })
}

/// A text as one argument: no NUL, which none can hold, and no dash in front, which would make it an option.
fn argument(text: String) -> OsString {
    let text = text.replace('\0', "\u{fffd}");
    OsString::from(if text.starts_with('-') { format!("\n{text}") } else { text })
}
