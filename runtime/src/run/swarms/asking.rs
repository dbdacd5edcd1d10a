//! A turn of a swarm: what a model is asked, and what its answer comes to.

use std::sync::Arc;
use std::time::Duration;

use swarmc_plan::{Agent, Body, Connection, LlmKind, Provider, Recorded, ToolProtocol};

use super::super::run_loop::Loop;
use super::super::scene::{failed, render};
use super::super::values::View;
use super::{Stuck, Word, refusal, short};
use crate::event::{Content, Event, Outcome, Reserved, StepId};
use crate::graph::Key;
use crate::llm::{Call, Message, Question, Reply, Tool};
use crate::state::budget::{cost, priced};
use crate::swarm::action::{self, Action};
use crate::swarm::prompt::{self, Left, Letter, Mate, Prompt, Protocol, Turn};
use crate::swarm::state::{Agent as Actor, Swarm};
use crate::swarm::{Act, Answer, Fact, Fault, Part, Purpose, TurnId};
use crate::transient::is_transient;
use crate::{Failure, llm};

/// The randomness of turns whose agent says none (seed 001, "Model Tier").
const TEMPERATURE: f64 = 0.3;

/// The tokens of an answer at most, where its agent says none (seed 001, "Model Tier").
const MAX_OUTPUT: u64 = 2048;

/// What the answer of a model begins with that is to be JSON, where the provider can (seed 001, "Agent Prompt Structure").
const PREFILL: &str = "{";

/// The bytes that are added to what a budget reserves for a turn, for what surrounds the prompt.
const AROUND: u64 = 256;

/// How a model is asked.
enum Way {
    Model(Box<Question>),
    Recorded(Option<Recorded>),
}

impl Loop<'_> {
    /// Asks a model for a turn, once the tools of its agent are known.
    pub(super) fn ask_turn(&mut self, step: &StepId, attempt: u32, key: Key, turn: TurnId) -> Result<(), Stuck> {
        let Some(swarm) = self.state.swarm(key, attempt) else { return Ok(()) };
        let player = self.player(swarm, &turn)?;
        let plan = self.scene.plan;
        let provider = plan.provider(&player.provider);
        let provider =
            provider.ok_or_else(|| Stuck(render(format!("the plan has no provider for `{}`", player.name))))?;
        let tools = match self.teams.tools(step, attempt, &turn.agent) {
            None => return Ok(()),
            Some(Some(tools)) => tools,
            Some(None) if turn.purpose != Purpose::Act => Arc::default(),
            Some(None) => {
                let grant = self.grant(key, attempt, swarm, &turn, player)?;
                match grant.allow.is_empty() {
                    true => Arc::default(),
                    false => {
                        let (tools, word) = (Arc::clone(&self.tools), turn.clone());
                        return self
                            .launch(step, attempt, &turn, async move { Word::Listed(word, tools.list(&grant).await) });
                    }
                }
            }
        };
        let protocol = match provider.connection {
            Connection::Llm { tools: Some(ToolProtocol::Native), .. } => Protocol::Native,
            _ => Protocol::Json,
        };
        let asked = match turn.purpose {
            Purpose::Act => self.act(key, attempt, swarm, (&turn, player), (&tools, protocol))?,
            Purpose::Decompose => self.split(key, attempt, swarm, player)?,
            Purpose::Synthesize => self.merge(key, attempt, swarm, player)?,
        };
        let limit = match turn.purpose {
            Purpose::Act => swarm.rules.turn,
            Purpose::Decompose => swarm.rules.decompose,
            Purpose::Synthesize => swarm.rules.synthesize,
        };
        let limit = Duration::from_millis(limit.after_ms);
        let bytes = (asked.prompt.system.len() + asked.prompt.user.len()) as u64;
        let reserved = self.reserved_turn(player, provider, bytes);
        let agent = Arc::from(&*player.name);
        if let Some(reserved) = &reserved
            && let Err(refused) = self.state.admit_turn(key, &agent, reserved)
        {
            match refusal(refused) {
                Ok(message) => {
                    self.fact(step, attempt, Fact::TurnStarted { turn: turn.clone(), reserved: None });
                    let answer = Answer::Failed { message, fault: Fault::Budget };
                    self.fact(step, attempt, Fact::TurnEnded { turn, answer, usage: None, cost: None, model: None });
                }
                Err(message) => {
                    self.teams.open.remove(&(step.clone(), attempt));
                    let message = short(&message);
                    self.viewer.notice(message.clone());
                    self.record(Event::BudgetSpent { message });
                    let outcome = Outcome { failure: Some(Failure::Cancelled), ..Outcome::default() };
                    self.record(Event::AttemptEnded { step: step.clone(), attempt, outcome });
                }
            }
            return Ok(());
        }
        self.write_prompt(step, attempt, &turn, &asked.prompt);
        let way = self.way(key, attempt, &turn, (player, provider), asked);
        self.fact(step, attempt, Fact::TurnStarted { turn: turn.clone(), reserved });
        self.warn();
        let (models, name, word) = (Arc::clone(&self.models), provider.name.clone(), turn.clone());
        self.launch(step, attempt, &turn, async move {
            let reply = tokio::time::timeout(limit, reply(&models, &name, way)).await;
            let late = || llm::Fault {
                message: format!("timed out after {} seconds", limit.as_secs()),
                transient: true,
                retry_after: None,
            };
            Word::Answered(word, reply.unwrap_or_else(|_| Err(late())))
        })
    }

    /// What a model answered.
    pub(super) fn replied(
        &mut self,
        step: &StepId,
        attempt: u32,
        key: Key,
        turn: TurnId,
        reply: Result<Reply, llm::Fault>,
    ) -> Result<(), Stuck> {
        let Some(swarm) = self.state.swarm(key, attempt) else { return Ok(()) };
        let player = self.player(swarm, &turn)?;
        let provider = self.scene.plan.provider(&player.provider);
        let (usage, model) = match &reply {
            Ok(reply) => (reply.usage, reply.model.as_deref().map(short)),
            Err(_) => (None, None),
        };
        let price = provider.and_then(|provider| provider.price);
        let cost = usage.and_then(|usage| cost(&usage, price));
        let answer = match reply {
            Err(fault) => {
                let after_ms =
                    fault.retry_after.map_or(0, |after| u64::try_from(after.as_millis()).unwrap_or(u64::MAX));
                let class = if fault.transient { Fault::Transient { after_ms } } else { Fault::Permanent };
                Answer::Failed { message: short(&fault.message), fault: class }
            }
            Ok(reply) => match turn.purpose {
                Purpose::Act => {
                    let repaired = swarm.agent(&turn.agent).is_some_and(|agent| agent.repair.is_some());
                    self.action(reply, repaired)?
                }
                Purpose::Decompose => {
                    let most = swarm.rules.parts.unwrap_or(swarm.rules.limits.agents);
                    match prompt::subtasks(&reply.text, most) {
                        Ok(split) => {
                            let part = |part: prompt::Subtask| {
                                let name = part.name.as_deref().map(Arc::from);
                                Ok(Part { task: self.stored_text(part.task)?, name })
                            };
                            Answer::Split(split.subtasks.into_iter().map(part).collect::<Result<_, Stuck>>()?)
                        }
                        Err(wrong) => Answer::Invalid(short(&wrong)),
                    }
                }
                Purpose::Synthesize => self.merged(key, reply)?,
            },
        };
        self.fact(step, attempt, Fact::TurnEnded { turn, answer, usage, cost, model });
        self.warn();
        Ok(())
    }

    /// The action that a reply is.
    fn action(&self, reply: Reply, repaired: bool) -> Result<Answer, Stuck> {
        let read = match reply.calls.is_empty() {
            true => action::read(&reply.text, Some(PREFILL)),
            false => action::from_calls(&reply.text, &reply.calls),
        };
        let action = match read {
            Ok(action) => action,
            Err(wrong) if reply.cut => {
                let wrong = format!("{wrong} (it was cut off at the limit of its tokens)");
                return Ok(Answer::Invalid(short(&wrong)));
            }
            Err(wrong) => return Ok(Answer::Invalid(short(&wrong))),
        };
        let store = |text: String| self.stored_text(text);
        Ok(Answer::Acts(match action {
            Action::ToolCall { tool, params } => {
                Act::ToolCall { tool: Arc::from(tool), params: store(params.to_string())? }
            }
            Action::PublishData { topic, data } => Act::PublishData { topic: Arc::from(topic), data: store(data)? },
            Action::SendMessage { to, kind, payload } => {
                Act::SendMessage { to: Arc::from(to), message_type: kind, payload: store(payload.to_string())? }
            }
            Action::RequestHelp { description, skills } => {
                Act::RequestHelp { description: store(description)?, skills }
            }
            Action::Done { response } => match action::too_long(&response) {
                Some(wrong) if !repaired => return Ok(Answer::Invalid(short(&wrong))),
                Some(_) => Act::Done { response: store(action::cut_response(&response))? },
                None => Act::Done { response: store(response)? },
            },
            Action::Idle => Act::Idle,
        }))
    }

    fn merged(&self, key: Key, reply: Reply) -> Result<Answer, Stuck> {
        let step = self.scene.step(&self.state, key);
        let Some(schema) = &step.output.schema else {
            return Ok(match reply.text.trim() {
                "" => Answer::Invalid("it is empty: return the answer to the goal".to_owned()),
                text => Answer::Merged(self.stored_text(text.to_owned())?),
            });
        };
        let shape = self.scene.shapes.of(schema, self.scene.plan).map_err(|problem| Stuck(render(problem)))?;
        Ok(match shape.read(&reply.text) {
            Ok(value) => Answer::Merged(self.stored_text(value)?),
            Err(violations) => Answer::Invalid(short(&violations.join("; "))),
        })
    }

    /// What an agent is asked for its next action.
    fn act(
        &self,
        key: Key,
        attempt: u32,
        swarm: &Swarm,
        (turn, player): (&TurnId, &Agent),
        (tools, protocol): (&[Tool], Protocol),
    ) -> Result<Asked, Stuck> {
        let Some(agent) = swarm.agent(&turn.agent) else {
            return Err(Stuck(render(format!("there is no agent `{}`", turn.agent))));
        };
        let role = self.role(key, attempt, player)?;
        let text = |content: &Option<Content>| content.as_ref().map_or(Ok(String::new()), |content| self.told(content));
        let (task, goal) = (text(&agent.task)?, self.told(&swarm.goal)?);
        let tasks = swarm.agents.iter().map(|agent| text(&agent.task)).collect::<Result<Vec<String>, Stuck>>()?;
        let roster: Vec<Mate<'_>> = swarm
            .agents
            .iter()
            .zip(&tasks)
            .map(|(mate, task)| Mate {
                name: &mate.name,
                task,
                is_you: mate.name == agent.name,
                state: mate.end.as_ref().map_or("", |end| end.how.word()),
            })
            .collect();
        let others = || swarm.agents.iter().filter(|mate| mate.name != agent.name && !mate.is_done());
        let may = |mate: &&Actor| swarm.rules.may_write(&agent.name, &mate.name);
        let receivers: Vec<&str> = others().filter(may).map(|mate| &*mate.name).collect();
        let step = self.scene.step(&self.state, key);
        let Body::Swarm(call) = &step.body else { return Err(Stuck(render("this step is no swarm".to_owned()))) };
        let declared = self.scene.plan.swarm(&call.swarm);
        let declared = declared.ok_or_else(|| Stuck(render(format!("the plan has no swarm `{}`", call.swarm))))?;
        let now = self.clock;
        let mut entries: Vec<(&str, &crate::swarm::state::Entry)> = swarm
            .workspace
            .topics
            .iter()
            .flat_map(|(topic, entries)| entries.iter().map(move |entry| (&**topic, entry)))
            .filter(|(_, entry)| entry.at.saturating_add(swarm.rules.ttl_ms) > now)
            .collect();
        entries.sort_by_key(|(_, entry)| entry.seq);
        let texts = entries.iter().map(|(_, entry)| self.told(&entry.data)).collect::<Result<Vec<String>, Stuck>>()?;
        let shown = entries.iter().zip(&texts);
        let shown = shown.map(|((topic, entry), text)| prompt::Entry { author: &entry.author, topic, text });
        let findings = prompt::findings(shown.collect::<Vec<_>>(), declared.workspace);
        let past = agent.history.iter().map(|past| self.past(past)).collect::<Result<Vec<_>, Stuck>>()?;
        let history: Vec<Turn<'_>> =
            past.iter().map(|(iteration, label, result)| Turn { iteration: *iteration, label, result }).collect();
        let payloads = agent.inbox.iter().map(|letter| {
            let text = self.told(&letter.payload)?;
            Ok(serde_json::from_str(&text).unwrap_or(serde_json::Value::String(text)))
        });
        let payloads = payloads.collect::<Result<Vec<serde_json::Value>, Stuck>>()?;
        let inbox = agent.inbox.iter().zip(&payloads);
        let inbox: Vec<Letter<'_>> =
            inbox.map(|(letter, payload)| Letter { from: &letter.from, kind: letter.kind.name(), payload }).collect();
        let limits = &swarm.rules.limits;
        let help = agent.helpers < swarm.rules.helpers && swarm.agents.len() < limits.agents as usize;
        let seconds = agent.began.map(|began| began.saturating_add(limits.timeout_ms).saturating_sub(now) / 1000);
        let view = prompt::View {
            name: &agent.name,
            task: &task,
            goal: if goal == task { "" } else { &goal },
            role: &role,
            roster: &roster,
            receivers: swarm.rules.edges.is_some().then_some(receivers.as_slice()),
            findings: &findings,
            history: &history,
            inbox: &inbox,
            iteration: agent.iteration,
            iterations: limits.iterations,
            left: Left {
                messages: Some((limits.messages.saturating_sub(agent.sent), limits.messages)),
                seconds,
                tokens: None,
            },
            tools,
            help,
            protocol,
            limits: declared.history,
        };
        let mut prompt = Prompt { system: prompt::system(&view), user: prompt::user(&view) };
        if let Some(wrong) = &agent.repair {
            prompt.user = format!("{}\n\n{}", prompt.user, prompt::repair(wrong, protocol));
        }
        let can_send = agent.sent < swarm.rules.limits.messages;
        let offer = action::Offer { tools, receivers: if can_send { &receivers } else { &[] }, help };
        Ok(match protocol {
            Protocol::Native => Asked { tools: action::tools(&offer), ..Asked::new(prompt) },
            Protocol::Json => Asked { schema: Some(action::schema(&offer)), is_json: true, ..Asked::new(prompt) },
        })
    }

    /// An iteration as the history shows it.
    pub(super) fn past(&self, past: &crate::swarm::state::Past) -> Result<(u32, String, String), Stuck> {
        let result = past.result.as_ref().map(|result| self.told(result)).transpose()?;
        let (label, text) = match &past.act {
            None => ("invalid answer".to_owned(), String::new()),
            Some(Act::ToolCall { tool, .. }) => (format!("tool_call:{tool}"), String::new()),
            Some(Act::PublishData { topic, data }) => {
                ("publish_data".to_owned(), format!("{topic}: {}", self.told(data)?))
            }
            Some(Act::SendMessage { to, message_type, payload }) => {
                let payload = self.told(payload)?;
                ("send_message".to_owned(), format!("to {to} ({}): {payload}", message_type.name()))
            }
            Some(Act::RequestHelp { description, .. }) => ("request_help".to_owned(), self.told(description)?),
            Some(Act::Done { response }) => ("done".to_owned(), self.told(response)?),
            Some(Act::Idle) => ("idle".to_owned(), "nothing".to_owned()),
        };
        let text = match result {
            Some(result) if text.is_empty() => result,
            Some(result) => format!("{text}; {result}"),
            None => text,
        };
        Ok((past.iteration, label, text))
    }

    /// What the lead is asked, to split the goal.
    fn split(&self, key: Key, attempt: u32, swarm: &Swarm, player: &Agent) -> Result<Asked, Stuck> {
        let (role, goal) = (self.role(key, attempt, player)?, self.told(&swarm.goal)?);
        let tasks = (0..swarm.rules.roster.len() as u32).map(|place| self.own_task(key, attempt, place));
        let tasks = tasks.collect::<Result<Vec<_>, Stuck>>()?;
        let team = swarm.rules.roster.iter().zip(&tasks).filter_map(|(place, task)| {
            let name = place.name.as_deref()?;
            Some(Mate { name, task: task.as_deref().unwrap_or_default(), is_you: false, state: "" })
        });
        let open = swarm.rules.roster.iter().filter(|place| !place.has_task).count() as u32;
        let most = swarm.rules.parts.unwrap_or(open);
        let mut prompt = prompt::decompose(&role, &goal, &team.collect::<Vec<_>>(), most);
        if let Some(wrong) = &swarm.lead.repair {
            prompt.user =
                format!("{}\n\nYour last answer was not valid: {}", prompt.user, prompt::inline(wrong, 2_000));
        }
        Ok(Asked { schema: Some(prompt::subtasks_schema(most)), ..Asked::new(prompt) })
    }

    /// What the merger is asked.
    fn merge(&self, key: Key, attempt: u32, swarm: &Swarm, player: &Agent) -> Result<Asked, Stuck> {
        let (role, goal) = (self.role(key, attempt, player)?, self.told(&swarm.goal)?);
        let mut texts = Vec::new();
        for agent in &swarm.agents {
            let end = agent.end.as_ref();
            let text = |content: Option<&Content>| content.map_or(Ok(String::new()), |content| self.told(content));
            let result = match end.and_then(|end| end.response.as_ref()) {
                Some(response) => self.told(response)?,
                None => end.and_then(|end| end.error.clone()).unwrap_or_default(),
            };
            texts.push((text(agent.task.as_ref())?, result));
        }
        let ended: Vec<prompt::Ended<'_>> = swarm
            .agents
            .iter()
            .zip(&texts)
            .map(|(agent, (task, result))| prompt::Ended {
                name: &agent.name,
                task,
                how: agent.end.as_ref().map_or("", |end| end.how.word()),
                result,
                files: &[],
            })
            .collect();
        let step = self.scene.step(&self.state, key);
        let chars = match &step.body {
            Body::Swarm(call) => self.scene.plan.swarm(&call.swarm).map(|swarm| swarm.history.prompt_chars),
            _ => None,
        };
        let mut prompt = prompt::synthesize(&role, &goal, &ended, chars.unwrap_or(400_000));
        let mut schema = None;
        if let Some(declared) = &step.output.schema {
            let shape = self.scene.shapes.of(declared, self.scene.plan).map_err(|problem| Stuck(render(problem)))?;
            prompt.user = crate::answer::instructed(&prompt.user, &shape);
            schema = shape.native().and_then(|schema| serde_json::from_str(schema).ok());
        }
        if let Some(wrong) = &swarm.lead.repair {
            prompt.user =
                format!("{}\n\nYour last answer was not valid: {}", prompt.user, prompt::inline(wrong, 2_000));
        }
        Ok(Asked { schema, ..Asked::new(prompt) })
    }

    /// The system text of an agent.
    fn role(&self, key: Key, attempt: u32, player: &Agent) -> Result<String, Stuck> {
        let Some(system) = &player.system else { return Ok(String::new()) };
        let step = self.scene.step(&self.state, key);
        let view = self.scene.view(&self.state, key.frame, Some(step)).map_err(|it| Stuck(render(it)))?;
        self.scene.renderer.text(system, &View { attempt, ..view }).map_err(|error| Stuck(failed(error)))
    }

    /// What a turn may use at most; none where no budget counts it.
    fn reserved_turn(&self, player: &Agent, provider: &Provider, bytes: u64) -> Option<Reserved> {
        if !self.state.graph.has_budgets {
            return None;
        }
        // Tokens never exceed bytes.
        let (read, written) = (bytes.saturating_add(AROUND), player.max_output.unwrap_or(MAX_OUTPUT));
        let cost = provider.price.map(|price| priced(read, price.input).saturating_add(priced(written, price.output)));
        Some(Reserved { calls: 1, tokens: Some(read.saturating_add(written)), cost })
    }

    fn write_prompt(&self, step: &StepId, attempt: u32, turn: &TurnId, prompt: &Prompt) {
        let Some(scribe) = &self.scribe else { return };
        let path = |extension: &str| self.layout.turn(step, attempt, turn, extension);
        scribe.write(path("txt"), prompt.user.clone().into_bytes());
        scribe.write(path("system.txt"), prompt.system.clone().into_bytes());
    }

    fn way(&self, key: Key, attempt: u32, turn: &TurnId, (player, provider): (&Agent, &Provider), asked: Asked) -> Way {
        match &provider.connection {
            Connection::Script { answers } => Way::Recorded(self.recorded_turn(key, attempt, turn, answers)),
            connection => {
                let (kind, protocol) = match connection {
                    Connection::Llm { kind, tools, .. } => (Some(*kind), *tools),
                    _ => (None, None),
                };
                let enforced =
                    protocol == Some(ToolProtocol::Schema) || provider.provides.contains(&swarmc_plan::Ability::Schema);
                let prefill =
                    (asked.is_json && !enforced && kind == Some(LlmKind::Anthropic)).then(|| PREFILL.to_owned());
                Way::Model(Box::new(Question {
                    model: player.model.clone(),
                    system: asked.prompt.system,
                    messages: vec![Message::User(asked.prompt.user)],
                    prefill,
                    schema: asked.schema.filter(|_| enforced),
                    tools: asked.tools,
                    temperature: Some(player.temperature.unwrap_or(TEMPERATURE)),
                    max_output: Some(player.max_output.unwrap_or(MAX_OUTPUT)),
                }))
            }
        }
    }

    /// The answer of a script for a turn: its `task` is the agent's name, its `turn` the iteration, from 1.
    fn recorded_turn(&self, key: Key, attempt: u32, turn: &TurnId, answers: &[Recorded]) -> Option<Recorded> {
        let swarm = self.state.swarm(key, attempt)?;
        let step = self.scene.step(&self.state, key);
        let lead = match &step.body {
            Body::Swarm(call) => self.scene.plan.swarm(&call.swarm).and_then(|swarm| swarm.lead.as_ref()),
            _ => None,
        };
        let (name, number) = match turn.purpose {
            Purpose::Act => (&*turn.agent, turn.iteration + 1),
            Purpose::Decompose => (lead.map_or(&*turn.agent, |lead| &*lead.name), 1),
            Purpose::Synthesize => (lead.map_or(&*turn.agent, |lead| &*lead.name), 1 + u32::from(swarm.split)),
        };
        let item = self.state.item(key.frame).map(|(_, _, item)| item);
        let round = self.state.frame(key.frame).iteration;
        let fits = |answer: &&Recorded| {
            answer.task.as_deref().is_none_or(|task| task == name)
                && answer.iteration.is_none_or(|iteration| iteration == round)
                && answer.attempt.is_none_or(|attempt| attempt == turn.attempt)
                && answer.index.is_none_or(|index| Some(index) == item)
                && answer.turn.is_none_or(|turn| turn == number)
        };
        answers.iter().find(fits).cloned()
    }
}

/// What is asked, whoever answers.
struct Asked {
    prompt: Prompt,
    schema: Option<serde_json::Value>,
    tools: Vec<Tool>,
    /// Whether the answer is one JSON object.
    is_json: bool,
}

impl Asked {
    fn new(prompt: Prompt) -> Asked {
        Asked { prompt, schema: None, tools: Vec::new(), is_json: false }
    }
}

async fn reply(models: &llm::Models, provider: &str, way: Way) -> Result<Reply, llm::Fault> {
    match way {
        Way::Model(question) => models.ask(provider, &question, &|_| ()).await,
        Way::Recorded(None) => {
            let message = "no recorded answer fits this turn: add one to the provider".to_owned();
            Err(llm::Fault { message, transient: false, retry_after: None })
        }
        Way::Recorded(Some(answer)) => {
            if answer.delay_ms > 0 {
                tokio::time::sleep(Duration::from_millis(answer.delay_ms)).await;
            }
            match answer.exit {
                0 => Ok(Reply { text: answer.text, calls: Vec::<Call>::new(), ..Reply::default() }),
                _ => {
                    let transient = is_transient(&answer.text);
                    Err(llm::Fault { message: answer.text, transient, retry_after: None })
                }
            }
        }
    }
}
