//! Prepares the turns of an agent: the candidates that may take them, the prompt of each, and the transport to each.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use swarmc_plan::{Ability, Agent, Body, Connection, PromptBody, PromptDelivery, Provider, Recorded, Step};

use super::driver::Driver;
use super::eval::{from_render_error, render_failure};
use super::mcp_config;
use super::values::View;
use crate::core::graph::Key;
use crate::io::agent_api::{ToolSpec, list_member_tools, list_tools};
use crate::io::executor::{
    Acp, AgentTurn, Candidate, Model, Program, Role, Session, ToolGrant, Transport, may_pass, to_argument,
};
use crate::io::files::{FileWorkspaceSpec, describe_folder};
use crate::io::recording::Source;
use crate::io::tools::Grant;
use crate::types::answer::{self, OutputValidator};
use crate::types::chat::{Question, Tool};
use crate::types::effective_prompt::{Block, Effective};
use crate::types::event::{Failure, StepId, Usage};
use crate::types::swarm::TurnId;

/// The agents in a chain of fallbacks at most, the first one included.
const LONGEST_CHAIN: usize = 16;

/// What an agent is sent in the conversation that a crash cut off.
const AFTER_CRASH: &str = "The program that runs you was ended in the middle of your turn, and so were you. Your task and \
your folder are the same. Look at what you have done so far, go on from there, and answer as you were asked to.";

/// An attempt for which an agent is asked.
pub(super) struct Attempt<'a> {
    pub id: &'a StepId,
    pub number: u32,
    pub step: &'a Step,
    pub view: &'a View<'a>,
    /// What the step has for standard input.
    pub stdin: Option<String>,
    /// What the answer must be.
    pub shape: Option<&'a OutputValidator>,
    /// The folder that it works in, where it works by files.
    pub files: Option<&'a FileWorkspaceSpec>,
    pub role: Role,
    /// The turn of an agent of a team, and what that may call while it goes on.
    pub member: Option<(&'a TurnId, &'a [Tool])>,
}

impl Driver<'_> {
    /// What the agent of a step is asked, and those who may answer in its place.
    pub(super) fn build_agent_turn(&self, body: &PromptBody, attempt: &Attempt<'_>) -> Result<AgentTurn, Failure> {
        let key = self.state.find_step(attempt.id).filter(|_| attempt.role == Role::Turn);
        let effective = match key {
            Some(key) => self.evaluator.build_prompt_blocks((&self.state, key), body, attempt.view)?,
            None => {
                let prompt = self.evaluator.renderer.text(&body.prompt, attempt.view).map_err(from_render_error)?;
                Effective(vec![Block::new("task", prompt)])
            }
        };
        let mut effective = effective;
        effective.0.extend(attempt.files.map(|file_workspace| Block::new("system", describe_folder(file_workspace))));
        let delta = match key.filter(|&key| self.resumes_crashed(key, attempt)) {
            Some(_) => Some(AFTER_CRASH.to_owned()),
            None => key.map(|key| self.render_delta(key, attempt)).transpose()?.flatten(),
        };
        let chain = self.fallback_chain(&body.agent);
        // The last candidate takes the prompt itself, the others copies: most agents have no fallback.
        let prompts = std::iter::repeat_n(effective, chain.len());
        let takers = chain.into_iter().zip(prompts);
        let takers = takers.map(|(name, prompt)| self.build_candidate(name, (prompt, delta.as_deref()), attempt));
        let takers = takers.collect::<Result<Vec<Candidate>, Failure>>()?;
        // Where there are fallbacks, one of them is asked instead.
        if let [Candidate { door: Transport::Closed(failure), .. }] = takers.as_slice() {
            return Err(failure.clone());
        }
        // Whatever is no try of the turn itself is asked for once.
        let repair = key.map_or(0, |key| attempt.step.most_repairs(self.evaluator.is_node(&self.state, key)));
        Ok(AgentTurn { takers, repair })
    }

    /// The agent called `first`, and its fallbacks in order, each once.
    fn fallback_chain<'a>(&'a self, first: &'a str) -> Vec<&'a str> {
        let mut chain = vec![first];
        while let Some(next) = chain.last().and_then(|last| self.evaluator.plan.agent(last)?.fallback.as_deref())
            && !chain.contains(&next)
            && chain.len() < LONGEST_CHAIN
        {
            chain.push(next);
        }
        chain
    }

    /// What a turn adds to the conversation that the step's turn before it was part of: its inputs.
    fn render_delta(&self, key: Key, attempt: &Attempt<'_>) -> Result<Option<String>, Failure> {
        let step = self.state.step(key);
        let talks = attempt.step.session.is_some() || step.interrupted.is_some();
        let goes_on = talks && self.state.had_turn(key) && attempt.number == step.earlier + 1;
        let heard = step.heard;
        if !goes_on || self.state.inputs(key).nth(heard).is_none() {
            return Ok(None);
        }
        let inbox = self.evaluator.render_inbox(&self.state, key, heard).map_err(render_failure)?;
        // The conversation knows the folder of its last turn, and this one is another.
        let folder = attempt.files.map(|file_workspace| {
            // Only behind another turn does `goes_on` hold, so that there is such a folder.
            let last = self.outputs.layout.agent_folder(attempt.id, attempt.number - 1);
            format!(
                "This turn has a folder of its own; that of your last turn lies in `{}`. {}",
                last.display(),
                describe_folder(file_workspace)
            )
        });
        Ok(inbox.map(|inbox| inbox + &folder.map_or_else(String::new, |folder| format!("\n\n{folder}"))))
    }

    fn build_candidate(
        &self,
        name: &str,
        (effective, delta): (Effective, Option<&str>),
        attempt: &Attempt<'_>,
    ) -> Result<Candidate, Failure> {
        let Attempt { view, stdin, shape, .. } = attempt;
        let agent = self.evaluator.plan.agent(name);
        let provider = agent.and_then(|agent| self.evaluator.plan.provider(&agent.provider));
        let (Some(agent), Some(provider)) = (agent, provider) else {
            return Err(render_failure(format!("the plan has no provider for agent `{name}`")));
        };
        let system = agent
            .system
            .as_ref()
            .map(|system| self.evaluator.renderer.text(system, *view))
            .transpose()
            .map_err(from_render_error)?;
        let routes = if self.world.is_rehearsed() { Routes::for_test() } else { Routes::of_provider(provider) };
        let effective = routes.place_blocks(effective, system, stdin.as_deref(), *shape);
        self.reach_candidate((agent, provider), effective, delta, attempt)
    }

    /// An agent with its prompt and its transport.
    pub(super) fn reach_candidate(
        &self,
        (agent, provider): (&Agent, &Provider),
        effective: Effective,
        delta: Option<&str>,
        attempt: &Attempt<'_>,
    ) -> Result<Candidate, Failure> {
        let Attempt { id, number, step, view, shape, role, .. } = attempt;
        let apart = effective.0.iter().find(|block| block.apart);
        let system = apart.map(|block| block.text.clone());
        let environment = self.build_environment(step, Some(provider), view, (id, *number, *role));
        let environment = environment.and_then(|environment| self.invite_member(environment, provider, attempt));
        let (environment, door) = match environment {
            Ok(environment) => {
                let door = self.build_transport(agent, provider, (&system, *shape), attempt, &environment);
                (environment, door)
            }
            // Without its secrets it cannot be reached.
            Err(failure @ Failure::Spawn { .. }) => (Arc::default(), Transport::Closed(failure)),
            Err(failure) => return Err(failure),
        };
        // Only a conversation that goes on knows the rest of the prompt.
        let delta = delta.filter(|_| door.session().is_some());
        let prompt = delta.map_or_else(|| effective.text(), str::to_owned);
        let fresh = delta.filter(|delta| *delta == AFTER_CRASH).map(|_| effective.text());
        let key = self.state.find_step(id).filter(|_| fresh.is_none());
        let cut = key.and_then(|key| self.find_cut_session(key, agent, attempt)).filter(|_| door.can_resume());
        let cut = cut.map(|session| (session, AFTER_CRASH.to_owned()));
        let (agent, login, provider) = (agent.name.clone(), provider.login.clone(), provider.name.clone());
        Ok(Candidate { agent, provider, prompt, fresh, cut, effective, system, environment, login, door })
    }

    /// Adds to the environment of a program which agent of which swarm it is, and what it needs to call the tools of its
    /// team.
    fn invite_member(
        &self,
        environment: Arc<Vec<(OsString, OsString)>>,
        provider: &Provider,
        attempt: &Attempt<'_>,
    ) -> Result<Arc<Vec<(OsString, OsString)>>, Failure> {
        let Some((turn, operations)) = attempt.member else { return Ok(environment) };
        let mut environment = Arc::unwrap_or_clone(environment);
        let swarm = format!("{}/{}", self.outputs.folder.id, attempt.id.label());
        let marks = [("SWARM_ID", swarm), ("SWARM_AGENT", turn.agent.to_string())];
        environment.extend(marks.map(|(name, value)| (OsString::from(name), OsString::from(value))));
        if !operations.is_empty() {
            let offers = list_member_tools(operations.to_vec());
            self.open_session(&mut environment, Some(provider), (attempt.id, attempt.number, Some(turn)), offers)?;
        }
        Ok(Arc::new(environment))
    }

    /// How an agent is reached, with what it is told beside the prompt and what it must answer.
    fn build_transport(
        &self,
        agent: &Agent,
        provider: &Provider,
        (system, shape): (&Option<String>, Option<&OutputValidator>),
        attempt: &Attempt<'_>,
        environment: &Arc<Vec<(OsString, OsString)>>,
    ) -> Transport {
        let (argv, delivery, reads, model_flag, system_flag, resume, schema) = match &provider.connection {
            Connection::Exec { argv, prompt, reads, model_flag, system_flag, resume, schema, mcp: _ } => {
                (argv, *prompt, *reads, model_flag, system_flag, resume, schema)
            }
            // A test answers in the place of what was recorded.
            Connection::Script { .. } if self.world.is_rehearsed() => return Transport::Recorded(Vec::new()),
            Connection::Script { answers } => {
                return recorded_transport(answers, attempt.id, self.attempt_number(attempt.id, attempt.number));
            }
            Connection::Llm { tools, .. } => {
                // Where it works is known when the attempt begins.
                let own = self.offered_operations(attempt);
                let may = !own.is_empty() || agent.tools.as_ref().is_some_and(|tools| !tools.is_empty());
                let lending = tools.filter(|_| may).map(|protocol| ToolGrant {
                    grant: Grant::new(&agent.name, agent, Path::new(""), environment),
                    protocol,
                    own,
                });
                let schema =
                    shape.and_then(OutputValidator::native).filter(|_| provider.provides.contains(&Ability::Schema));
                let question = Question {
                    model: agent.model.clone(),
                    system: system.clone().unwrap_or_default(),
                    schema: schema.and_then(|schema| serde_json::from_str(schema).ok()),
                    temperature: agent.temperature,
                    max_output: agent.max_output,
                    ..Question::default()
                };
                return Transport::Llm(Box::new(Model { question, lending }));
            }
            Connection::Acp { argv, .. } => {
                let words = argv.iter().map(OsString::from);
                return Transport::Acp(Box::new(Acp {
                    argv: words.chain(mcp_config::build_arguments(provider, environment)).collect(),
                    install: provider.install.clone(),
                    model: agent.model.clone(),
                    mode: agent.mode.or(self.evaluator.plan.mode),
                    grant: Grant::new(&agent.name, agent, Path::new(""), environment),
                    tools: mcp_config::find_run_server(provider, environment, &self.services.agent_server),
                    session: self.find_session(agent, attempt),
                    // A summary of files is no part of the conversation.
                    keeps: attempt.step.session.is_some() && attempt.role != Role::SumsUp,
                    // A turn in a team alone is sent anything while it goes on.
                    steering: attempt.member.map(|_| Arc::default()),
                }));
            }
        };
        let mut options = Vec::new();
        if let (Some(flag), Some(model)) = (model_flag, &agent.model) {
            options.extend([OsString::from(flag), OsString::from(model)]);
        }
        if let (Some(flag), Some(system)) = (system_flag, system.as_deref()) {
            options.extend([OsString::from(flag), to_argument(system)]);
        }
        options.extend(mcp_config::build_arguments(provider, environment));
        if attempt.member.is_some() {
            options.extend(mcp_config::build_notice_arguments(provider, environment));
        }
        // Beside a prompt on standard input there is no room for it; the prompt has it then.
        let stdin = attempt.stdin.clone().filter(|_| delivery != PromptDelivery::Stdin);
        Transport::Program(Box::new(Program {
            argv: argv.iter().map(OsString::from).collect(),
            resume: resume.clone(),
            options,
            schema: schema.clone(),
            delivery,
            stdin,
            reads,
            install: provider.install.clone(),
            session: self.find_session(agent, attempt),
        }))
    }

    /// What the agent of an attempt may ask of this run, as tools.
    fn offered_operations(&self, attempt: &Attempt<'_>) -> Vec<ToolSpec> {
        let key = self.state.find_step(attempt.id).filter(|_| attempt.role == Role::Turn && self.world.is_real());
        let Some(key) = key.filter(|&key| self.evaluator.is_node(&self.state, key)) else { return Vec::new() };
        list_tools(&self.evaluator.resolve_reach(&self.state, key))
    }

    /// Whether an attempt starts again after a crash of its runner, and its agent is to go on with its conversation.
    fn resumes_crashed(&self, key: Key, attempt: &Attempt<'_>) -> bool {
        // Nearly always there is none, and no key is made.
        let restarted = &self.attempts.restarted;
        !restarted.is_empty()
            && restarted.contains(&(attempt.id.clone(), attempt.number))
            && self.may_resume_cut(key, attempt)
    }

    /// Whether the agent of an attempt that has to start again can go on with its conversation, of which the attempt had told
    /// the id.
    fn may_resume_cut(&self, key: Key, attempt: &Attempt<'_>) -> bool {
        let is_live = matches!(self.evaluator.source, Source::Live) && self.world.is_real();
        let has_fallback = || match &attempt.step.body {
            Body::Prompt(body) => self.fallback_chain(&body.agent).len() > 1,
            _ => true,
        };
        is_live
            && attempt.role == Role::Turn
            && attempt.member.is_none()
            && !attempt.step.retry.fresh
            && self.state.talk_of(key).is_some_and(may_pass)
            // The conversation does not know what has arrived since.
            && self.state.fresh_inputs(key).is_empty()
            && !has_fallback()
    }

    /// The conversation of an attempt that is cut off where the attempt has to start again.
    fn find_cut_session(&self, key: Key, agent: &Agent, attempt: &Attempt<'_>) -> Option<Session> {
        let id = self.state.talk_of(key).filter(|_| self.may_resume_cut(key, attempt))?;
        let known = self.state.find_session(key, &agent.name, attempt.step.session.as_deref());
        let used = known.filter(|(known, _)| *known == id).map_or_else(Usage::default, |(_, used)| used);
        Some(Session { id: id.to_owned(), used })
    }

    /// The conversation that a turn of `agent` continues.
    fn find_session(&self, agent: &Agent, attempt: &Attempt<'_>) -> Option<Session> {
        let key = self.state.find_step(attempt.id).filter(|_| attempt.role != Role::SumsUp)?;
        let known = self.state.find_session(key, &agent.name, attempt.step.session.as_deref());
        let crashed = self.state.talk_of(key).filter(|_| self.resumes_crashed(key, attempt));
        let (id, used) = match (known, crashed) {
            // It went on with a conversation that others had begun.
            (Some((id, used)), Some(crashed)) if id == crashed => (id, used),
            (_, Some(crashed)) => (crashed, Usage::default()),
            (known, None) => known?,
        };
        // The id becomes an argument of a command: it must not look like an option, for example.
        if !may_pass(id) {
            self.notices.send(format!(
                "`{}`: its conversation starts again, because the session id of its provider contains unsupported characters",
                attempt.step.name
            ));
            return None;
        }
        Some(Session { id: id.to_owned(), used })
    }
}

/// Which parts of what an agent gets are sent beside its prompt; the prompt holds the others.
pub(super) struct Routes {
    /// The system text.
    system_apart: bool,
    /// What the step has for standard input.
    data_apart: bool,
    /// The schema of the answer, where the provider can take that one.
    schema_apart: bool,
}

impl Routes {
    /// As a provider has them.
    pub(super) fn of_provider(provider: &Provider) -> Routes {
        let connection = &provider.connection;
        let is_model = connection.kind().is_model();
        Routes {
            system_apart: is_model || matches!(connection, Connection::Exec { system_flag: Some(_), .. }),
            data_apart: match connection {
                Connection::Exec { prompt, .. } => *prompt != PromptDelivery::Stdin,
                Connection::Script { .. } => true,
                Connection::Acp { .. } | Connection::Llm { .. } => false,
            },
            schema_apart: match connection {
                Connection::Llm { .. } => provider.provides.contains(&Ability::Schema),
                Connection::Exec { schema, .. } => schema.is_some(),
                Connection::Acp { .. } | Connection::Script { .. } => false,
            },
        }
    }

    /// As tests see them, whatever the provider: all but the system text in one.
    fn for_test() -> Routes {
        Routes { system_apart: true, data_apart: false, schema_apart: false }
    }

    /// Adds the parts that are not sent apart to the blocks of a prompt.
    pub(super) fn place_blocks(
        &self,
        mut effective: Effective,
        system: Option<String>,
        stdin: Option<&str>,
        shape: Option<&OutputValidator>,
    ) -> Effective {
        if let Some(role) = system {
            effective.0.insert(0, Block { apart: self.system_apart, ..Block::new("role", role) });
        }
        if let Some(data) = stdin.filter(|_| !self.data_apart) {
            effective.0.push(Block::new("inputs", data.to_owned()));
        }
        // Providers do not take the schema of every type.
        if let Some(shape) = shape.filter(|shape| !self.schema_apart || shape.native().is_none()) {
            effective.0.push(Block::new("system", answer::render_instruction(shape)));
        }
        effective
    }
}

/// The answers of a script that fit an attempt.
fn recorded_transport(answers: &[Recorded], id: &StepId, attempt: u32) -> Transport {
    let fits = |answer: &&Recorded| {
        answer.task.as_deref().is_none_or(|task| task == &*id.name)
            && answer.iteration.is_none_or(|iteration| iteration == id.iteration)
            && answer.attempt.is_none_or(|number| number == attempt)
            && answer.index.is_none_or(|index| Some(index) == id.item())
    };
    let answers: Vec<Recorded> = answers.iter().filter(fits).cloned().collect();
    if answers.is_empty() {
        let message = format!(
            "no recorded answer fits task `{}`, iteration {}, attempt {attempt}: add one to the provider",
            id.name, id.iteration
        );
        return Transport::Closed(Failure::Agent { message });
    }
    Transport::Recorded(answers)
}
