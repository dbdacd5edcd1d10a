//! Prepares the job of an attempt that the core ordered: renders everything, and starts nothing.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use swarmc_plan::{
    Body, Capability, DEFAULT_POOL, EnvValue, Environment, LONG_COMMAND_MS, PackRule, Pipeline, Provider, Step,
    Survivors,
};

use super::agent::Attempt;
use super::driver::Driver;
use super::eval::file_summaries::{self, Wanted};
use super::eval::{from_render_error, render_failure, unknown_step};
use super::process_env::Trouble;
use super::values::View;
use super::{mcp_config, worktree_names};
use crate::core::graph::Key;
use crate::io::agent_api::{MCP, ToolSpec, list_tools};
use crate::io::executor::{Job, Role, Survival, Transport, Work};
use crate::io::files;
use crate::io::home::Layout;
use crate::io::shim::{self, Remote};
use crate::io::worktree::Tree;
use crate::types::answer;
use crate::types::artifact::ArtifactKind;
use crate::types::cancel::Cancel;
use crate::types::event::{Failure, StepId};
use crate::types::swarm::TurnId;

/// What an attempt turned out to need.
pub(super) enum Prepared {
    /// A thread, to start processes on.
    Job(Box<Job>),
    /// Nothing more: this is its output.
    Text(String),
    /// A swarm, which has this goal.
    Swarm(String),
}

impl Driver<'_> {
    /// Renders what an attempt of `id` needs; one in which files are `wanted` summed up needs nothing else.
    pub(super) fn prepare_attempt(&self, id: &StepId, attempt: u32, wanted: &[Wanted]) -> Result<Prepared, Failure> {
        let key = self.state.find_step(id).ok_or_else(|| unknown_step(id))?;
        let step = self.evaluator.step_definition(&self.state, key);
        let view = self
            .evaluator
            .build_view(&self.state, key.frame, Some(step), &self.attempts.made)
            .map_err(render_failure)?;
        let view = View { attempt, ..view };
        let renderer = &self.evaluator.renderer;
        let text = |template| renderer.text(template, &view).map_err(from_render_error);
        let stdin = || step.stdin.as_ref().map(text).transpose();
        let aside = match file_summaries::build_prompt_body(wanted) {
            Some(body) => Some((Role::SumsUp, body)),
            None => self
                .evaluator
                .build_fix_prompt(&self.state, key, attempt, &self.attempts.made)
                .transpose()?
                .map(|body| (Role::Mends, body)),
        };
        let role = aside.as_ref().map_or(Role::Turn, |(role, _)| *role);
        let shape_of = |schema| self.evaluator.shapes.validator_for(schema, self.evaluator.plan);
        let shape = match role {
            Role::Turn => step.output.schema.as_ref().map(shape_of).transpose(),
            Role::Mends => Ok(None),
            Role::SumsUp => shape_of(&file_summaries::answer_schema()).map(Some),
        };
        let shape = shape.map_err(|problem| render_failure(format!("step `{}`: {problem}", step.name)))?;
        let file_workspace = match role {
            Role::SumsUp => None,
            // The answer of a test is the value itself.
            _ if self.world.is_rehearsed() => None,
            role => self.file_workspace((key, id, attempt), step, &view, role == Role::Mends, shape.as_ref())?,
        };
        // What stands in a file of the outbox is no answer.
        let shape =
            shape.filter(|_| file_workspace.as_ref().is_none_or(|file_workspace| file_workspace.primary.is_none()));
        let files = file_workspace.as_ref();
        let work = match (&step.body, &aside) {
            (_, Some((_, body))) => {
                let shape = shape.as_deref();
                let attempt =
                    Attempt { id, number: attempt, step, view: &view, stdin: None, shape, files, role, member: None };
                Work::Agent(Box::new(self.build_agent_turn(body, &attempt)?))
            }
            (Body::Run(command), None) => {
                Work::Command { command: command.clone(), stdin: stdin()?.map(String::into_bytes) }
            }
            (Body::Prompt(body), None) => {
                let (stdin, shape) = (stdin()?, shape.as_deref());
                let attempt =
                    Attempt { id, number: attempt, step, view: &view, stdin, shape, files, role, member: None };
                Work::Agent(Box::new(self.build_agent_turn(body, &attempt)?))
            }
            (Body::Value(template), None) => Work::Text(match &shape {
                Some(shape) => {
                    let value = renderer.value(template, &view).map_err(from_render_error)?;
                    shape.parse_computed(value).map_err(|violations| Failure::Invalid { violations })?
                }
                None => text(template)?,
            }),
            (Body::Fields(fields), None) => {
                let record: serde_json::Map<String, serde_json::Value> = fields
                    .iter()
                    .map(|(name, template)| {
                        Ok((name.clone(), renderer.value(template, &view).map_err(from_render_error)?))
                    })
                    .collect::<Result<_, Failure>>()?;
                let record = serde_json::Value::Object(record);
                Work::Text(match &shape {
                    Some(shape) => {
                        shape.parse_computed(record).map_err(|violations| Failure::Invalid { violations })?
                    }
                    None => answer::compact_json(record),
                })
            }
            (Body::Stop { message, .. }, None) => Work::Text(text(message)?),
            (Body::Swarm(_), None) => {
                return self
                    .evaluator
                    .render_goal(super::eval::At { state: &self.state, key, attempt }, &self.attempts.made)
                    .map(Prepared::Swarm);
            }
            (Body::Call(_) | Body::Gate(_) | Body::Loop(_), None) => {
                return Err(render_failure(format!("this version cannot run step `{}`", step.name)));
            }
        };
        let work = match work {
            Work::Text(text) if step.checks.is_empty() => return Ok(Prepared::Text(text)),
            work => work,
        };
        let environment = match &work {
            // A candidate that cannot be reached has no environment. If none can be reached, nothing starts.
            Work::Agent(asked) => {
                let reached = asked.takers.iter().find(|taker| !matches!(taker.door, Transport::Closed(_)));
                reached.map_or_else(Arc::default, |taker| Arc::clone(&taker.environment))
            }
            _ => self.build_environment(step, None, &view, (id, attempt, role))?,
        };
        let pipeline = self.evaluator.pipeline(&self.state, key.frame);
        let survival = match role {
            Role::SumsUp => None,
            _ => self.find_survival(step, &work, |layout| layout.processes_folder(id, attempt)),
        };
        Ok(Prepared::Job(Box::new(Job {
            step: id.clone(),
            attempt,
            counted: self.state.attempt_number(key, attempt),
            after: self.required_record(key, id, attempt, step),
            speaks: role == Role::Turn && self.evaluator.can_operate(&self.state, key),
            keeps_log: step.keeps_log && role == Role::Turn,
            watched: role == Role::Turn && self.is_watched(key, step, &work),
            work,
            role,
            shape,
            checks: if role == Role::Turn { step.checks.clone() } else { Vec::new() },
            environment,
            stated: explicit_variables(&pipeline.env, &step.env),
            directory: self.services.process_env.pipeline_directory(&pipeline.name),
            tree: self.find_worktree(key, step, pipeline),
            file_workspace: file_workspace.map(Arc::new),
            timeout: step.timeout_ms.map(Duration::from_millis),
            idle: step.idle_ms.map(Duration::from_millis),
            grace: Duration::from_millis(step.grace_ms),
            max_output: match role {
                Role::SumsUp => file_summaries::ANSWER,
                Role::Turn | Role::Mends => usize::try_from(step.output.max_bytes).unwrap_or(usize::MAX).max(1),
            },
            survival,
            cancel: Arc::new(Cancel::default()),
        })))
    }

    /// How the processes of an attempt or a turn outlive this runner, each held in `folder`: those of agents do, and those
    /// of long commands.
    pub(super) fn find_survival(
        &self,
        step: &Step,
        work: &Work,
        folder: impl FnOnce(&Layout) -> PathBuf,
    ) -> Option<Survival> {
        if !self.world.is_real() || self.services.remote.is_none() && !shim::can_hold() {
            return None;
        }
        let survive = self.evaluator.plan.survive;
        if let Some(holder) = &self.services.remote {
            let asks_model = work.candidates().iter().any(|taker| matches!(taker.door, Transport::Llm(_)));
            // Models are asked from here.
            return (!asks_model).then(|| Survival {
                run: self.outputs.folder.path.clone(),
                folder: folder(&self.outputs.layout),
                orphan_limit: Duration::from_millis(survive.for_ms),
                epoch: 0,
                rejoins: false,
                remote: Some(Remote { holder: Arc::clone(holder), pool: self.pool_of(step, work) }),
            });
        }
        let is_agent = match work {
            Work::Command { .. } => false,
            _ if work.candidates().iter().any(|taker| taker.door.is_program()) => true,
            _ => return None,
        };
        let is_long_command =
            matches!(work, Work::Command { .. }) && step.timeout_ms.is_some_and(|timeout| timeout >= LONG_COMMAND_MS);
        let by_default = match survive.what {
            Survivors::None => false,
            Survivors::Agents => is_agent || is_long_command,
            Survivors::All => true,
        };
        step.survives.unwrap_or(by_default).then(|| Survival {
            run: self.outputs.folder.path.clone(),
            folder: folder(&self.outputs.layout),
            orphan_limit: Duration::from_millis(survive.for_ms),
            epoch: 0,
            rejoins: false,
            remote: None,
        })
    }

    /// The pool whose workers carry a step out; that of a swarm's member comes before that of its step.
    fn pool_of(&self, step: &Step, work: &Work) -> Arc<str> {
        let member = match work {
            Work::Member(member) => self.evaluator.plan.agent(&member.taker.agent),
            _ => None,
        };
        let pool = member.and_then(|member| member.pool.as_deref()).or(step.pool.as_deref());
        pool.unwrap_or(DEFAULT_POOL).into()
    }

    /// Whether what a turn changes is kept: that of an agent that can change something, and that of a command that is a
    /// node or whose diffs a pack names.
    fn is_watched(&self, key: Key, step: &Step, work: &Work) -> bool {
        let writes = |ability: &Capability| matches!(ability, Capability::WriteFiles | Capability::RunCommands);
        let (agent, changes) = match work {
            Work::Agent(asked) => {
                let door = |fits: &dyn Fn(&Transport) -> bool| asked.takers.iter().any(|taker| fits(&taker.door));
                let writer = door(&|door| match door {
                    Transport::Program(_) | Transport::Acp(_) => true,
                    Transport::Llm(model) => {
                        model.lending.as_ref().is_some_and(|lent| lent.grant.can.iter().any(writes))
                    }
                    _ => false,
                });
                // The tools of a server may do whatever that does.
                (writer, door(&|door| matches!(door, Transport::Llm(model) if model.lending.is_some())))
            }
            Work::Command { .. } => (false, true),
            _ => (false, false),
        };
        let named = |rule: &PackRule| matches!(rule, PackRule::Artifacts { kind, from } if kind == ArtifactKind::Diff.as_str() && *from == step.name);
        let is_named = || self.evaluator.plan.packs.iter().flat_map(|pack| &pack.rules).any(named);
        agent || changes && (self.evaluator.is_node(&self.state, key) || is_named())
    }

    /// The working tree that a step's processes run in, where that is not the workspace.
    pub(super) fn find_worktree(&self, key: Key, step: &Step, pipeline: &Pipeline) -> Option<Tree> {
        let trees = self.evaluator.trees.as_ref()?;
        let name = worktree_names::tree_name(&self.evaluator, &self.state, key.frame, Some(step))?;
        Some(Tree { trees: Arc::clone(trees), name, working_dir: pipeline.working_dir.clone() })
    }

    /// The whole environment of an attempt's processes.
    pub(super) fn build_environment(
        &self,
        step: &Step,
        provider: Option<&Provider>,
        view: &View<'_>,
        (id, attempt, role): (&StepId, u32, Role),
    ) -> Result<Arc<Vec<(OsString, OsString)>>, Failure> {
        let none = Vec::new();
        let pipeline = self.evaluator.pipeline(view.state, view.frame);
        let layers = [&pipeline.env, provider.map_or(&none, |provider| &provider.env), &step.env];
        let counted = self.attempt_number(id, attempt);
        let environment = self.services.process_env.of_attempt(
            &self.outputs.folder.id,
            id,
            counted,
            &layers,
            &self.evaluator.renderer,
            view,
        );
        let mut environment = environment.map_err(|trouble| match trouble {
            Trouble::Render(error) => from_render_error(error),
            Trouble::Missing(message) => Failure::Spawn { message },
        })?;
        if role != Role::SumsUp && self.evaluator.plan.files_of(step).is_some() {
            environment.push((
                OsString::from(files::WORKSPACE),
                self.outputs.layout.agent_folder(id, attempt).into_os_string(),
            ));
        }
        // Fix and summary turns get no agent token.
        let speaks =
            |key: &Key| self.world.is_real() && self.evaluator.is_node(&self.state, *key) && role == Role::Turn;
        let node = self.state.find_step(id).filter(speaks);
        if let Some(key) = node {
            let offers = list_tools(&self.evaluator.resolve_reach(&self.state, key));
            self.open_session(&mut environment, provider, (id, attempt, None), offers)?;
        }
        Ok(Arc::new(environment))
    }

    /// Adds to an environment what its processes need to call these tools of the run.
    pub(super) fn open_session(
        &self,
        environment: &mut Vec<(OsString, OsString)>,
        provider: Option<&Provider>,
        (id, attempt, turn): (&StepId, u32, Option<&TurnId>),
        offers: Vec<ToolSpec>,
    ) -> Result<(), Failure> {
        let failed = |message| Failure::Spawn { message };
        let doors = self.services.agent_server.open_session(id, attempt, turn, offers).map_err(failed)?;
        if let (Some(remote), Some((_, url))) = (&self.services.remote, doors.iter().find(|(name, _)| name == MCP)) {
            remote.serve_tools(&url.to_string_lossy());
        }
        environment.extend(doors);
        match provider {
            Some(provider) => mcp_config::configure_environment(provider, environment, &self.outputs.folder.path),
            None => Ok(()),
        }
        .map_err(failed)
    }

    /// The number of an attempt as people write it.
    pub(super) fn attempt_number(&self, id: &StepId, attempt: u32) -> u32 {
        self.state.find_step(id).map_or(attempt, |key| self.state.attempt_number(key, attempt))
    }

    /// The record that must be durable before the attempt starts: the latest of those it depends on.
    fn required_record(&self, key: Key, id: &StepId, attempt: u32, step: &Step) -> u64 {
        let frame = self.state.frame(key.frame);
        // What it reads was sent, and may have been agreed to.
        let reads = self.state.inputs(key).next().is_some();
        // Where more than its needs decides that it starts, any record so far may be among it.
        if frame.item.is_none() && id.iteration > 1 || attempt > 1 || step.when.is_some() || reads {
            return self.records.seq;
        }
        let needs = match frame.item {
            // An item starts behind the opening of its for-each.
            Some(_) => None,
            None => step.needs.iter().filter_map(|need| self.attempts.end_beside(id, &need.step)).max(),
        };
        needs.unwrap_or(0).max(self.records.floor).max(frame.opened)
    }
}

/// The variables that a pipeline and a step set, rather than pass.
pub(super) fn explicit_variables(pipeline: &Environment, step: &Environment) -> Vec<String> {
    let set = pipeline.iter().chain(step).filter_map(|value| match value {
        EnvValue::Set { name, .. } => Some(name.clone()),
        EnvValue::Pass(_) | EnvValue::Secret(_) => None,
    });
    set.collect()
}
