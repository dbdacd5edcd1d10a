//! Builds the requests to models in swarms: the prompts of turns, decompositions and mergers, and the agent to ask.

use std::sync::Arc;

use swarmc_plan::{Agent, Body, Connection, DirectiveKind, Provider, Recorded, Template, ToolProtocol};

use super::{Evaluator, Made, from_render_error, render_failure, unknown_step};
use crate::core::graph::Key;
use crate::core::state::State;
use crate::core::swarm::action;
use crate::core::swarm::life::life_of;
use crate::core::swarm::prompt::{self, Left, Prompt, PromptMessage, Protocol, Teammate, Turn};
use crate::core::swarm::state::{Agent as Actor, QueuedMessage, Swarm};
use crate::core::swarm::within::Unread;
use crate::driver::run::values::View;
use crate::types::chat::Tool;
use crate::types::event::Failure;
use crate::types::event::{Content, Reserved};
use crate::types::swarm::{Purpose, TurnId};
use crate::types::team::TeamReading;
use crate::types::usage::compute_price;

/// The tokens of an answer at most, where its agent says none (seed 001, "Model Tier").
pub(crate) const MAX_OUTPUT: u64 = 2048;

/// The bytes that are added to what a budget reserves for a turn, for what surrounds the prompt.
const AROUND: u64 = 256;

/// What teammates see of a task that is nothing but a context pack.
const PACKED: &str = "What its context pack says";

/// The swarm of an attempt of a step.
#[derive(Clone, Copy)]
pub(crate) struct At<'s> {
    pub state: &'s State,
    pub key: Key,
    pub attempt: u32,
}

/// A request to a model, the same for every provider.
pub(crate) struct ModelRequest {
    pub prompt: Prompt,
    pub schema: Option<serde_json::Value>,
    pub tools: Vec<Tool>,
    /// Whether the answer is one JSON object.
    pub is_json: bool,
}

impl<'s> At<'s> {
    /// The swarm, once it has started.
    pub(crate) fn swarm(self) -> Option<&'s Swarm> {
        self.state.swarm(self.key, self.attempt)
    }
}

impl ModelRequest {
    /// The bytes of all of it.
    pub(crate) fn bytes(&self) -> u64 {
        (self.prompt.system.len() + self.prompt.user.len()) as u64
    }

    fn new(prompt: Prompt) -> ModelRequest {
        ModelRequest { prompt, schema: None, tools: Vec::new(), is_json: false }
    }
}

/// A member's own task.
struct OwnTask {
    text: String,
    /// What it says without its context packs, where it has some: they are for who does it.
    brief: Option<String>,
}

impl OwnTask {
    /// What teammates see of it.
    fn visible_text(&self) -> &str {
        self.brief.as_deref().unwrap_or(&self.text)
    }
}

/// Messages as a prompt shows them.
fn show_messages<'m>(
    messages: impl Iterator<Item = &'m QueuedMessage>,
    payloads: &'m [serde_json::Value],
) -> Vec<PromptMessage<'m>> {
    let shown = messages.zip(payloads).map(|(message, payload)| {
        let (from, kind, person) = (&*message.from, message.kind.as_str(), message.person);
        PromptMessage { from, kind, payload, person }
    });
    shown.collect()
}

impl<'a> Evaluator<'a> {
    /// The request for a turn at a time, given the tools of the agent that takes it.
    pub(crate) fn build_request(
        &self,
        at: At<'_>,
        (turn, player): (&TurnId, &Agent),
        tools: (&[Tool], Protocol),
        (now, made): (u64, &Made),
    ) -> Result<ModelRequest, Failure> {
        let swarm = at.swarm().ok_or_else(|| unknown_step(&at.state.id(at.key)))?;
        match turn.purpose {
            Purpose::Act => self.build_action_request(at, swarm, (turn, player), tools, (now, made)),
            Purpose::Decompose => self.build_split_request(at, swarm, player, made),
            Purpose::Synthesize => self.build_merge_request(at, swarm, player, made),
        }
    }

    /// How a model of a provider states its action: as a tool call or as JSON.
    pub(crate) fn protocol(provider: &Provider) -> Protocol {
        match provider.connection.tool_protocol() {
            _ if provider.connection.kind().is_program() => Protocol::Program,
            Some(ToolProtocol::Native) => Protocol::Native,
            Some(ToolProtocol::Schema) | None => Protocol::Json,
        }
    }

    /// Whether a program that plays this agent is a client of the MCP server of the run.
    fn offers_tools(&self, player: &Agent) -> bool {
        match self.plan.provider(&player.provider).map(|provider| &provider.connection) {
            Some(Connection::Acp { .. }) => true,
            Some(Connection::Exec { mcp, .. }) => mcp.names_server(),
            _ => false,
        }
    }

    /// How long a turn may take, in milliseconds.
    pub(crate) fn turn_timeout(swarm: &Swarm, purpose: Purpose) -> u64 {
        match purpose {
            Purpose::Act => swarm.rules.turn.after_ms,
            Purpose::Decompose => swarm.rules.decompose.after_ms,
            Purpose::Synthesize => swarm.rules.synthesize.after_ms,
        }
    }

    /// What an agent is asked for its next action.
    fn build_action_request(
        &self,
        at: At<'_>,
        swarm: &Swarm,
        (turn, player): (&TurnId, &Agent),
        (tools, protocol): (&[Tool], Protocol),
        (now, made): (u64, &Made),
    ) -> Result<ModelRequest, Failure> {
        let Some(agent) = swarm.agent(&turn.agent) else {
            return Err(render_failure(format!("there is no agent `{}`", turn.agent)));
        };
        let role = self.render_role(at, player, made)?;
        let text = |content: Option<&Content>| content.map_or(Ok(String::new()), |content| self.load_text(content));
        let (mut task, goal) = (text(agent.task.as_ref())?, self.load_text(&swarm.goal)?);
        if swarm.team.is_some() && agent.task.is_none() {
            task = "The items of the plan that are yours.".to_owned();
        }
        let tasks =
            swarm.agents.iter().map(|agent| text(agent.visible_task())).collect::<Result<Vec<String>, Failure>>()?;
        let roster: Vec<Teammate<'_>> = swarm
            .agents
            .iter()
            .zip(&tasks)
            .map(|(mate, task)| Teammate {
                name: &mate.name,
                task: if swarm.team.is_some() && mate.task.is_none() { "its items of the plan" } else { task },
                is_you: mate.name == agent.name,
                state: match &swarm.team {
                    Some(_) => life_of(swarm, mate).as_str(),
                    None => mate.end.as_ref().map_or("", |end| end.how.as_str()),
                },
            })
            .collect();
        let others = || swarm.agents.iter().filter(|mate| mate.name != agent.name && !mate.is_done());
        let may = |mate: &&Actor| swarm.may_write(&agent.name, &mate.name);
        let receivers: Vec<&str> = others().filter(may).map(|mate| &*mate.name).collect();
        let step = self.step_definition(at.state, at.key);
        let Body::Swarm(call) = &step.body else { return Err(render_failure("this step is no swarm".to_owned())) };
        let declared = self.plan.swarm(&call.swarm);
        let declared = declared.ok_or_else(|| render_failure(format!("the plan has no swarm `{}`", call.swarm)))?;
        let mut entries: Vec<(&str, &crate::core::swarm::state::Entry)> = swarm
            .workspace
            .topics
            .iter()
            .flat_map(|(topic, entries)| entries.iter().map(move |entry| (&**topic, entry)))
            .filter(|(_, entry)| entry.at.saturating_add(swarm.rules.ttl_ms) > now)
            .collect();
        // They are kept by topic; a prompt has them in the order in which they were published.
        entries.sort_by_key(|(_, entry)| entry.seq);
        let texts =
            entries.iter().map(|(_, entry)| self.load_text(&entry.data)).collect::<Result<Vec<String>, Failure>>()?;
        let shown = entries.iter().zip(&texts);
        let shown = shown.map(|((topic, entry), text)| prompt::Entry { author: &entry.author, topic, text });
        let findings = prompt::select_findings(shown.collect::<Vec<_>>(), declared.workspace);
        let past =
            agent.history.iter().map(|past| self.describe_iteration(past)).collect::<Result<Vec<_>, Failure>>()?;
        let history: Vec<Turn<'_>> =
            past.iter().map(|(iteration, label, result)| Turn { iteration: *iteration, label, result }).collect();
        let payloads = self.load_payloads(agent.inbox.iter())?;
        let inbox = show_messages(agent.inbox.iter(), &payloads);
        let limits = &swarm.rules.limits;
        let help = agent.helpers < swarm.rules.helpers && swarm.agents.len() < limits.agents as usize;
        let seconds = agent.began.map(|began| began.saturating_add(limits.timeout_ms).saturating_sub(now) / 1000);
        let spawns = swarm.rules.spawns.as_ref().map_or(&[][..], |spawns| spawns.agents.as_slice());
        let part = swarm.part_of(&agent.name);
        let channels: Vec<(&str, Vec<&str>, bool)> = swarm
            .team
            .iter()
            .flat_map(|team| &team.channels)
            .map(|(name, channel)| (&**name, channel.members.iter().map(|member| &**member).collect(), channel.open))
            .collect();
        let worktrees: Vec<prompt::TreeView<'_>> = swarm
            .team
            .iter()
            .flat_map(|team| &team.worktrees)
            .map(|(name, tree)| prompt::TreeView { name, tree })
            .collect();
        let team = swarm.team.as_ref().zip(swarm.coordinator()).map(|(team, coordinator)| prompt::TeamView {
            part,
            coordinator,
            plan: &team.plan,
            seen: agent.seen,
            calls: match protocol {
                Protocol::Program if self.offers_tools(player) => prompt::Calls::Tools,
                Protocol::Program => prompt::Calls::Command,
                Protocol::Json | Protocol::Native => prompt::Calls::Nothing,
            },
            spawns,
            channels: &channels,
            worktrees: &worktrees,
            place: swarm.place_of(&agent.name),
        });
        let view = prompt::View {
            team,
            name: &agent.name,
            task: &task,
            // A member whose task is the whole goal reads it once.
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
        let mut prompt = Prompt { system: prompt::render_system(&view), user: prompt::render_user(&view) };
        if let Some(wrong) = &agent.repair {
            prompt.user = format!("{}\n\n{}", prompt.user, prompt::build_repair_prompt(wrong, protocol));
        }
        // At the limit the action is not offered: the swarm would refuse it, and a turn would be lost.
        let can_send = agent.sent < swarm.rules.limits.messages;
        let channels: Vec<&str> = channels.iter().map(|(name, ..)| *name).collect();
        let receivers = if can_send { receivers.as_slice() } else { &[] };
        let options = action::TurnOptions { tools, receivers, help, part, spawns, channels: &channels };
        Ok(match protocol {
            Protocol::Native => ModelRequest { tools: action::list_tools(&options), ..ModelRequest::new(prompt) },
            Protocol::Program if view.team.is_some() => {
                ModelRequest { tools: action::list_operations(&options), is_json: true, ..ModelRequest::new(prompt) }
            }
            Protocol::Json | Protocol::Program => {
                ModelRequest { schema: Some(action::step_schema(&options)), is_json: true, ..ModelRequest::new(prompt) }
            }
        })
    }

    /// What waits for an agent while its turn goes on, in words.
    pub(crate) fn render_unread(&self, swarm: &Swarm, turn: &TurnId, unread: &Unread<'_>) -> Result<String, Failure> {
        let payloads = self.load_payloads(unread.messages.iter().copied())?;
        let inbox: Vec<PromptMessage<'_>> = show_messages(unread.messages.iter().copied(), &payloads);
        let shown = swarm.agent(&turn.agent).map_or(0, |agent| agent.shown);
        let plan = swarm.team.as_ref().filter(|_| unread.is_newer).map(|team| (&team.plan, shown));
        Ok(prompt::render_notices(&inbox, plan))
    }

    /// What an agent of a team reads of others: the plan, what happened last, or all that an agent did, its last turns first.
    pub(crate) fn render_reading(&self, swarm: &Swarm, reader: &str, what: &TeamReading) -> Result<String, Failure> {
        let Some(team) = &swarm.team else { return Ok(String::new()) };
        let of = match what {
            TeamReading::Plan => return Ok(prompt::render_plan(&team.plan, reader)),
            TeamReading::Summary { of } => {
                let most = swarm.rules.limits.summary_feed as usize;
                let lines = team.feed.list_lines(of.as_deref(), most);
                return Ok(if lines.is_empty() { "nothing happened yet".to_owned() } else { lines.join("\n") });
            }
            TeamReading::Transcript { of } => of,
        };
        let Some(agent) = swarm.agent(of) else { return Ok(String::new()) };
        let task = agent.task.as_ref().map(|task| self.load_text(task)).transpose()?.unwrap_or_default();
        let turns =
            agent.history.iter().map(|past| self.describe_iteration(past)).collect::<Result<Vec<_>, Failure>>()?;
        let turns: Vec<Turn<'_>> =
            turns.iter().map(|(iteration, label, result)| Turn { iteration: *iteration, label, result }).collect();
        Ok(prompt::render_transcript(&agent.name, &task, &turns))
    }

    fn load_payloads<'m>(
        &self,
        messages: impl Iterator<Item = &'m QueuedMessage>,
    ) -> Result<Vec<serde_json::Value>, Failure> {
        let payloads = messages.map(|message| {
            let text = self.load_text(&message.payload)?;
            // A person writes plain text.
            Ok(serde_json::from_str(&text).unwrap_or(serde_json::Value::String(text)))
        });
        payloads.collect()
    }

    /// What the lead is asked, to split the goal.
    fn build_split_request(
        &self,
        at: At<'_>,
        swarm: &Swarm,
        player: &Agent,
        made: &Made,
    ) -> Result<ModelRequest, Failure> {
        let (role, goal) = (self.render_role(at, player, made)?, self.load_text(&swarm.goal)?);
        let tasks = (0..swarm.rules.roster.len() as u32).map(|place| self.own_task(at, place, made));
        let tasks = tasks.collect::<Result<Vec<_>, Failure>>()?;
        let team = swarm.rules.roster.iter().zip(&tasks).filter_map(|(place, own)| {
            let (name, task) = (place.name.as_deref()?, own.as_ref().map_or("", OwnTask::visible_text));
            Some(Teammate { name, task, is_you: false, state: "" })
        });
        let open = swarm.rules.roster.iter().filter(|place| !place.has_task).count() as u32;
        let most = swarm.rules.parts.unwrap_or(open);
        let mut prompt = prompt::build_decompose_prompt(&role, &goal, &team.collect::<Vec<_>>(), most);
        if let Some(wrong) = &swarm.lead.repair {
            prompt.user =
                format!("{}\n\nYour last answer was not valid: {}", prompt.user, prompt::inline_text(wrong, 2_000));
        }
        Ok(ModelRequest { schema: Some(prompt::subtasks_schema(most)), ..ModelRequest::new(prompt) })
    }

    /// What the merger is asked.
    fn build_merge_request(
        &self,
        at: At<'_>,
        swarm: &Swarm,
        player: &Agent,
        made: &Made,
    ) -> Result<ModelRequest, Failure> {
        let (role, goal) = (self.render_role(at, player, made)?, self.load_text(&swarm.goal)?);
        let mut texts = Vec::new();
        for agent in &swarm.agents {
            let end = agent.end.as_ref();
            let text = |content: Option<&Content>| content.map_or(Ok(String::new()), |content| self.load_text(content));
            let result = match end.and_then(|end| end.response.as_ref()) {
                Some(response) => self.load_text(response)?,
                None => end.and_then(|end| end.error.clone()).unwrap_or_default(),
            };
            texts.push((text(agent.visible_task())?, result));
        }
        let ended: Vec<prompt::Ended<'_>> = swarm
            .agents
            .iter()
            .zip(&texts)
            .map(|(agent, (task, result))| prompt::Ended {
                name: &agent.name,
                task,
                how: agent.end.as_ref().map_or("", |end| end.how.as_str()),
                result,
                files: &[],
            })
            .collect();
        let step = self.step_definition(at.state, at.key);
        let chars = match &step.body {
            Body::Swarm(call) => self.plan.swarm(&call.swarm).map(|swarm| swarm.history.prompt_chars),
            _ => None,
        };
        let mut prompt = prompt::build_synthesis_prompt(&role, &goal, &ended, chars.unwrap_or(400_000));
        let mut schema = None;
        if let Some(declared) = &step.output.schema {
            let shape = self.shapes.validator_for(declared, self.plan).map_err(render_failure)?;
            prompt.user = crate::types::answer::append_instruction(&prompt.user, &shape);
            schema = shape.native().and_then(|schema| serde_json::from_str(schema).ok());
        }
        if let Some(wrong) = &swarm.lead.repair {
            prompt.user =
                format!("{}\n\nYour last answer was not valid: {}", prompt.user, prompt::inline_text(wrong, 2_000));
        }
        Ok(ModelRequest { schema, ..ModelRequest::new(prompt) })
    }

    /// The system text of an agent.
    fn render_role(&self, at: At<'_>, player: &Agent, made: &Made) -> Result<String, Failure> {
        let Some(system) = &player.system else { return Ok(String::new()) };
        let step = self.step_definition(at.state, at.key);
        let view = self.build_view(at.state, at.key.frame, Some(step), made).map_err(render_failure)?;
        self.renderer.text(system, &View { attempt: at.attempt, ..view }).map_err(from_render_error)
    }

    /// What a turn may use at most; none where no budget counts it.
    pub(crate) fn reserved_turn(
        &self,
        state: &State,
        player: &Agent,
        provider: &Provider,
        bytes: u64,
    ) -> Option<Reserved> {
        if !state.graph.has_budgets {
            return None;
        }
        // Tokens never exceed bytes.
        let (read, written) = (bytes.saturating_add(AROUND), player.max_output.unwrap_or(MAX_OUTPUT));
        let cost = provider
            .price
            .map(|price| compute_price(read, price.input).saturating_add(compute_price(written, price.output)));
        Some(Reserved { calls: 1, tokens: Some(read.saturating_add(written)), cost })
    }

    /// The answer of a script for a turn: its `task` is the agent's name, its `turn` the iteration, from 1.
    pub(crate) fn recorded_turn(&self, at: At<'_>, turn: &TurnId, answers: &[Recorded]) -> Option<Recorded> {
        let (name, number) = self.name_turn(at, turn)?;
        let item = at.state.id(at.key).item();
        let round = at.state.frame(at.key.frame).iteration;
        let fits = |answer: &&Recorded| {
            answer.task.as_deref().is_none_or(|task| *task == *name)
                && answer.iteration.is_none_or(|iteration| iteration == round)
                && answer.attempt.is_none_or(|attempt| attempt == turn.attempt)
                && answer.index.is_none_or(|index| Some(index) == item)
                && answer.turn.is_none_or(|turn| turn == number)
        };
        answers.iter().find(fits).cloned()
    }

    /// Whose turn it is as fakes and recorded answers name it, and which of theirs, from 1.
    pub(crate) fn name_turn(&self, at: At<'_>, turn: &TurnId) -> Option<(Arc<str>, u32)> {
        let lead = match &self.step_definition(at.state, at.key).body {
            Body::Swarm(call) => self.plan.swarm(&call.swarm).and_then(|swarm| swarm.lead.as_ref()),
            _ => None,
        };
        let leads = || lead.map_or_else(|| Arc::clone(&turn.agent), |lead| Arc::from(&*lead.name));
        Some(match turn.purpose {
            Purpose::Act => (Arc::clone(&turn.agent), turn.iteration),
            Purpose::Decompose => (leads(), 1),
            Purpose::Synthesize => (leads(), 1 + u32::from(at.swarm()?.split)),
        })
    }

    /// What a swarm step's goal is: its own, or the swarm's.
    pub(crate) fn render_goal(&self, at: At<'_>, made: &Made) -> Result<String, Failure> {
        let step = self.step_definition(at.state, at.key);
        let Body::Swarm(call) = &step.body else { return Err(unknown_step(&at.state.id(at.key))) };
        let swarm = self.plan.swarm(&call.swarm);
        let swarm = swarm.ok_or_else(|| render_failure(format!("the plan has no swarm `{}`", call.swarm)))?;
        let Some(goal) = call.goal.as_ref().or(swarm.goal.as_ref()) else { return Ok(String::new()) };
        let view = self.build_view(at.state, at.key.frame, Some(step), made).map_err(render_failure)?;
        self.renderer.text(goal, &View { attempt: at.attempt, ..view }).map_err(from_render_error)
    }

    /// The stored task of a place of the roster: its own task, else its part of the goal. And the shorter text that the
    /// others see, if there is one.
    pub(crate) fn task_of(
        &self,
        at: At<'_>,
        place: u32,
        part: Option<Content>,
        made: &Made,
    ) -> Result<(Option<Content>, Option<Content>), Failure> {
        match self.own_task(at, place, made)? {
            None => Ok((part, None)),
            Some(own) => Ok((Some(made.content(own.text)), own.brief.map(|brief| made.content(brief)))),
        }
    }

    /// The task that the plan gives a place of the roster.
    fn own_task(&self, at: At<'_>, place: u32, made: &Made) -> Result<Option<OwnTask>, Failure> {
        let step = self.step_definition(at.state, at.key);
        let Body::Swarm(call) = &step.body else { return Ok(None) };
        let (Some(swarm), Some(rules)) = (self.plan.swarm(&call.swarm), &at.state.node(at.key).swarm) else {
            return Ok(None);
        };
        let member = rules.roster.get(place as usize).and_then(|place| swarm.members.get(place.member as usize));
        let Some(task) = member.and_then(|member| member.task.as_ref()) else { return Ok(None) };
        let view = self.build_view(at.state, at.key.frame, Some(step), made).map_err(render_failure)?;
        let view = View { attempt: at.attempt, ..view };
        let text = |task: &Template| self.renderer.text(task, &view).map_err(from_render_error);
        let brief = task.without_kind(DirectiveKind::Context).map(|task| text(&task)).transpose()?;
        let brief = brief.map(|brief| if brief.trim().is_empty() { PACKED.to_owned() } else { brief });
        Ok(Some(OwnTask { text: text(task)?, brief }))
    }

    /// The declared agent that takes a turn: the one of the member or the lead, or one of its fallbacks.
    pub(crate) fn player(&self, swarm: &Swarm, turn: &TurnId) -> Result<&'a Agent, Failure> {
        let (name, taker) = match turn.purpose {
            Purpose::Act => {
                let agent = swarm.agent(&turn.agent);
                (agent.map(|agent| &agent.plays), agent.map_or(0, |agent| agent.taker))
            }
            Purpose::Decompose => (swarm.rules.lead.as_ref(), swarm.lead.taker),
            Purpose::Synthesize => (swarm.rules.merger.as_ref(), swarm.lead.taker),
        };
        let plan = self.plan;
        let first = name.and_then(|name| plan.agent(name));
        let mut chain = std::iter::successors(first, |agent| plan.agent(agent.fallback.as_deref()?));
        let player = chain.nth(taker as usize).or(first);
        player.ok_or_else(|| render_failure(format!("the plan has no agent for `{}`", turn.agent)))
    }
}
