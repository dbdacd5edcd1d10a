//! Turns of a swarm: asks a model, and turns its answer into events.

use std::sync::Arc;
use std::time::Duration;

use swarmc_plan::{Agent, LlmKind, Provider, Recorded, ToolProtocol};

use super::super::attempts::begin_folder;
use super::super::driver::Driver;
use super::super::eval::{At, Evaluator, MAX_OUTPUT, ModelRequest, PREFILL, render_failure, truncate_to_event};
use super::recorded::Known;
use super::{Stuck, SwarmInput, Task};
use crate::core::graph::Key;
use crate::core::state::budget::Refusal;
use crate::core::swarm::prompt::{self, Prompt};
use crate::io::executor::Job;
use crate::io::{llm, recording};
use crate::types::chat;
use crate::types::chat::{Call, Message, Question, Reply};
use crate::types::event::Failure;
use crate::types::event::{AttemptId, Event, Outcome, StepId};
use crate::types::retry::is_transient;
use crate::types::swarm::{Answer, Fault, Purpose, TurnId};

/// The randomness of turns whose agent says none (seed 001, "Model Tier").
const TEMPERATURE: f64 = 0.3;

/// How a model is asked.
enum AskMethod {
    Model(Box<Question>),
    Recorded(Option<Recorded>),
    Program(Box<Job>),
}

impl Driver<'_> {
    /// Asks a model for a turn, once the tools of its agent are known.
    pub(super) fn ask_turn(&mut self, step: &StepId, attempt: u32, key: Key, turn: TurnId) -> Result<(), Stuck> {
        // One that is held back is ordered again by `begin_paused`.
        let Some(swarm) = self.state.swarm(key, attempt).filter(|_| !self.is_held_back(step, attempt, &turn)) else {
            return Ok(());
        };
        let player = self.evaluator.player(swarm, &turn)?;
        let plan = self.evaluator.plan;
        let provider = plan.provider(&player.provider);
        let provider =
            provider.ok_or_else(|| Stuck(render_failure(format!("the plan has no provider for `{}`", player.name))))?;
        // The swarm has ended meanwhile.
        let tools = match self.teams.tools(step, attempt, &turn.agent) {
            None => return Ok(()),
            Some(Some(tools)) => tools,
            // The lead divides and merges without tools.
            Some(None) if turn.purpose != Purpose::Act => Arc::default(),
            // A program has its own tools.
            Some(None) if is_program(provider) => Arc::default(),
            Some(None) => {
                let grant = self.build_grant(key, attempt, swarm, &turn, player)?;
                match self.known_tools(step, attempt, &turn, &grant) {
                    Known::Tools(tools) => tools,
                    Known::Later => return Ok(()),
                    Known::Nothing => {
                        let (tools, word) = (Arc::clone(&self.services.tools), turn.clone());
                        return self.launch(step, attempt, &turn, async move {
                            SwarmInput::Listed(word, tools.list(&grant).await)
                        });
                    }
                }
            }
        };
        let Some(swarm) = self.state.swarm(key, attempt) else { return Ok(()) };
        let at = At { state: &self.state, key, attempt };
        let asked = self.evaluator.build_request(
            at,
            (&turn, player),
            (&tools, Evaluator::protocol(provider)),
            (self.records.clock, &self.attempts.made),
        )?;
        let limit = Duration::from_millis(Evaluator::turn_timeout(swarm, turn.purpose));
        let reserved = self.evaluator.reserved_turn(&self.state, player, provider, asked.bytes());
        let agent = Arc::from(&*player.name);
        if let Some(reserved) = &reserved
            && let Err(refused) = self.state.admit_turn(key, &agent, reserved)
        {
            let refused = match refused {
                Refusal::Run { message, graceful: true } => Refusal::Step(self.spend_budget(message, true)),
                refused => refused,
            };
            match refused {
                Refusal::Step(message) => {
                    let message = truncate_to_event(&message);
                    let answer = Answer::Failed { message, fault: Fault::Budget };
                    let events = Event::refused_turn(&AttemptId::new(step, attempt), turn, answer);
                    events.into_iter().for_each(|event| self.record_swarm_event(event));
                }
                Refusal::Run { message, .. } => {
                    // A budget of the run is spent: the whole run ends, and not this turn alone.
                    self.close_team(step, attempt);
                    self.spend_budget(message, false);
                    let outcome = Outcome { failure: Some(Failure::Cancelled), ..Outcome::default() };
                    self.record(Event::AttemptEnded { step: step.clone(), attempt, outcome });
                }
            }
            return Ok(());
        }
        // The turn of a program writes its own.
        if self.outputs.writes_files() && (!is_program(provider) || !self.world.is_real()) {
            self.write_prompt(step, attempt, &turn, &asked.prompt);
        }
        if self.world.is_rehearsed() {
            let swarm = AttemptId::new(step, attempt);
            self.record_swarm_event(Event::TurnStarted { swarm, turn: turn.clone(), reserved });
            self.note_task(step, attempt, &turn, Task::Rehearsed);
            return Ok(self.rehearse_turn((step, attempt, key), turn, (&player.name, limit), &asked.prompt)?);
        }
        let told = (asked.prompt.system.clone(), asked.prompt.user.clone());
        let way = self.choose_way(key, attempt, &turn, (player, provider), asked)?;
        let schema = match &way {
            AskMethod::Model(question) => question.schema.as_ref().map(serde_json::Value::to_string),
            AskMethod::Recorded(_) | AskMethod::Program(_) => None,
        };
        let swarm = AttemptId::new(step, attempt);
        self.record_swarm_event(Event::TurnStarted { swarm, turn: turn.clone(), reserved });
        self.notices.warn_of_usage(&self.state);
        let question = || recording::Question {
            agent: Some(player.name.clone()),
            system: Some(told.0),
            prompt: Some(told.1),
            schema,
            ..recording::Question::default()
        };
        if !self.ask_recorded(step, attempt, &turn, question) {
            return Ok(());
        }
        let way = match way {
            AskMethod::Program(mut job) => {
                if let Err(error) = begin_folder(&job) {
                    self.give_up(error);
                    return Ok(());
                }
                // The record of its start has been made since the job was.
                job.begin_after(self.records.seq);
                self.submit_program(job, provider);
                return Ok(());
            }
            way => way,
        };
        let (models, name, word) = (Arc::clone(&self.services.models), provider.name.clone(), turn.clone());
        self.launch(
            step,
            attempt,
            &turn,
            async move { SwarmInput::Answered(word, reply(&models, &name, way, limit).await) },
        )
    }

    /// What a model answered.
    pub(super) fn handle_reply(
        &mut self,
        attempt: u32,
        key: Key,
        turn: TurnId,
        reply: Result<Reply, chat::Fault>,
    ) -> Result<(), Stuck> {
        let tools = self.teams.tools(&self.state.id(key), attempt, &turn.agent).flatten();
        let ended = self.evaluator.build_end_event(
            At { state: &self.state, key, attempt },
            turn,
            reply,
            tools.as_deref().map(Vec::as_slice),
            &self.attempts.made,
        )?;
        self.record_swarm_event(ended);
        self.notices.warn_of_usage(&self.state);
        Ok(())
    }

    fn write_prompt(&self, step: &StepId, attempt: u32, turn: &TurnId, prompt: &Prompt) {
        let path = |extension: &str| self.outputs.layout.turn_path(step, attempt, turn, extension);
        self.outputs.write(path("txt"), prompt.user.clone().into_bytes());
        self.outputs.write(path("system.txt"), prompt.system.clone().into_bytes());
    }

    fn choose_way(
        &self,
        key: Key,
        attempt: u32,
        turn: &TurnId,
        (player, provider): (&Agent, &Provider),
        asked: ModelRequest,
    ) -> Result<AskMethod, Stuck> {
        let connection = &provider.connection;
        if connection.kind().is_program() {
            let prompt = (asked.prompt, asked.tools.as_slice());
            let job = self.build_member_job(key, attempt, turn, (player, provider), prompt)?;
            return Ok(AskMethod::Program(Box::new(job)));
        }
        if let Some(answers) = connection.answers() {
            let at = At { state: &self.state, key, attempt };
            return Ok(AskMethod::Recorded(self.evaluator.recorded_turn(at, turn, answers)));
        }
        let enforced = connection.tool_protocol() == Some(ToolProtocol::Schema)
            || provider.provides.contains(&swarmc_plan::Ability::Schema);
        let needs_prefill = asked.is_json && !enforced && connection.model_protocol() == Some(LlmKind::Anthropic);
        Ok(AskMethod::Model(Box::new(Question {
            model: player.model.clone(),
            system: asked.prompt.system,
            messages: vec![Message::User(asked.prompt.user)],
            prefill: needs_prefill.then(|| PREFILL.to_owned()),
            schema: asked.schema.filter(|_| enforced),
            tools: asked.tools,
            temperature: Some(player.temperature.unwrap_or(TEMPERATURE)),
            max_output: Some(player.max_output.unwrap_or(MAX_OUTPUT)),
        })))
    }
}

/// Whether a program takes the turns.
pub(super) fn is_program(provider: &Provider) -> bool {
    Evaluator::protocol(provider) == prompt::Protocol::Program
}

async fn reply(models: &llm::Models, provider: &str, way: AskMethod, longest: Duration) -> Result<Reply, chat::Fault> {
    match way {
        AskMethod::Model(question) => models.ask_within(longest, provider, &question).await,
        // The pool carries it out.
        AskMethod::Program(_) => {
            Err(chat::Fault { message: String::new(), transient: false, retry_after: None, crashed: false })
        }
        AskMethod::Recorded(None) => {
            let message = "no recorded answer fits this turn: add one to the provider".to_owned();
            Err(chat::Fault { message, transient: false, retry_after: None, crashed: false })
        }
        AskMethod::Recorded(Some(answer)) => {
            let delay = Duration::from_millis(answer.delay_ms);
            tokio::time::sleep(delay.min(longest)).await;
            // After the pause: an answer that is too late takes the whole time of its turn.
            if delay > longest {
                return Err(chat::Fault::late(longest));
            }
            match answer.exit {
                0 => Ok(Reply { text: answer.text, calls: Vec::<Call>::new(), ..Reply::default() }),
                _ => {
                    let transient = is_transient(&answer.text);
                    Err(chat::Fault { message: answer.text, transient, retry_after: None, crashed: false })
                }
            }
        }
    }
}
