//! Turns the answers of models in a swarm into actions, and the end of a swarm into results and summaries.

use std::sync::Arc;

use serde_json::json;

use super::{At, Evaluator, Made, render_failure, unknown_step};
use crate::core::swarm::action::{self, RawAction, TeamPart};
use crate::core::swarm::state::{Agent, Swarm};
use crate::core::swarm::{Part, prompt};
use crate::types::chat;
use crate::types::chat::Reply;
use crate::types::event::{self, Content, Event, Failure};
use crate::types::swarm::{Action, Answer, End, Fault, Purpose, TurnId};
use crate::types::team::{PlanOp, TeamOp, TeamReading};
use crate::types::usage::compute_cost;

/// The turns that the answer of an agent is made of which gave none (seed 001, "Convergence Detection").
const SUMMED: usize = 3;

/// The characters of each of them.
const SUMMED_CHARS: usize = 500;

/// The characters of a model's name that are kept.
const MODEL_CHARS: usize = 100;

/// What the answer of a model begins with that is to be JSON, where the provider can (seed 001, "Agent Prompt
/// Structure").
pub(crate) const PREFILL: &str = "{";

/// The outcome of a swarm whose agents are done.
pub(crate) enum Finished {
    /// This.
    Result(String),
    /// No result yet: the merging agent has to bring the only result into the form of the step.
    Merge,
}

impl Evaluator<'_> {
    /// The text of a content.
    pub(crate) fn load_text(&self, content: &Content) -> Result<String, Failure> {
        self.texts.load_text(content).map_err(render_failure)
    }

    /// The event that ends a turn. `tools` are those of the agent, none where it is a program with tools of its own.
    pub(crate) fn build_end_event(
        &self,
        at: At<'_>,
        turn: TurnId,
        reply: Result<Reply, chat::Fault>,
        tools: Option<&[chat::Tool]>,
        made: &Made,
    ) -> Result<Event, Failure> {
        let swarm = at.swarm().ok_or_else(|| unknown_step(&at.state.id(at.key)))?;
        let player = self.player(swarm, &turn)?;
        let provider = self.plan.provider(&player.provider);
        let (usage, model, session) = match &reply {
            Ok(reply) => {
                let model = reply.model.as_deref().map(|model| prompt::inline_text(model, MODEL_CHARS));
                // An id that no event can hold is dropped: the next turn begins another conversation.
                (reply.usage, model, reply.session.clone().filter(|id| event::escaped_length(id) <= event::SESSION))
            }
            Err(_) => (None, None, None),
        };
        let price = provider.and_then(|provider| provider.price);
        let cost = usage.and_then(|usage| compute_cost(&usage, price));
        let answer = match reply {
            Err(fault) => {
                let after_ms =
                    fault.retry_after.map_or(0, |after| u64::try_from(after.as_millis()).unwrap_or(u64::MAX));
                let class = match (fault.crashed, fault.transient) {
                    (true, _) => Fault::Crashed,
                    (false, true) => Fault::Transient { after_ms },
                    (false, false) => Fault::Permanent,
                };
                Answer::Failed { message: truncate_to_event(&fault.message), fault: class }
            }
            Ok(reply) => match turn.purpose {
                // What it says after its work by tools is no action.
                Purpose::Act if swarm.may_end_silently(&turn.agent) && !reply.text.contains("\"action\"") => {
                    Answer::Acts(Action::Idle.into())
                }
                Purpose::Act => {
                    let repaired = swarm.agent(&turn.agent).is_some_and(|agent| agent.repair.is_some());
                    parse_action(reply, repaired, (tools, swarm.part_of(&turn.agent)), made)
                }
                Purpose::Decompose => {
                    let most = swarm.rules.most_parts();
                    match prompt::parse_subtasks(&reply.text, most) {
                        Ok(split) => {
                            // One event holds all parts: each gets its share of the room.
                            let room = Part::max_task_bytes(split.subtasks.len());
                            let part = |part: prompt::Subtask| Part {
                                task: made.content_within(part.task, room),
                                name: part.name.as_deref().map(Arc::from),
                            };
                            Answer::Split(split.subtasks.into_iter().map(part).collect())
                        }
                        Err(wrong) => Answer::Invalid(truncate_to_event(&wrong)),
                    }
                }
                Purpose::Synthesize => self.parse_merge(at, reply, made)?,
            },
        };
        Ok(Event::TurnEnded { swarm: swarm.id.clone(), turn, answer, usage, cost, model, session })
    }

    /// The action that a program takes by a tool while its turn goes on.
    ///
    /// # Errors
    /// There is no such tool, or it takes other arguments: says what to do instead.
    pub(crate) fn read_operation(
        &self,
        (name, arguments): (&str, serde_json::Map<String, serde_json::Value>),
        part: TeamPart,
        made: &Made,
    ) -> Result<Action, String> {
        to_action(action::read_operation(name, arguments, part)?, false, None, made)
    }

    /// The event that ends an agent, with its result.
    pub(crate) fn agent_completed(
        &self,
        (swarm, agent): (&Swarm, &Agent),
        how: End,
        error: Option<String>,
        made: &Made,
    ) -> Result<Event, Failure> {
        let response = match how {
            End::Done | End::Unneeded | End::Released => None,
            _ if agent.history.is_empty() => None,
            _ => Some(made.content(self.summarize_agent(agent)?)),
        };
        Ok(Event::AgentFinished { swarm: swarm.id.clone(), agent: Arc::clone(&agent.name), how, response, error })
    }

    /// The outcome of a swarm whose agents are done.
    pub(crate) fn conclude_swarm(&self, at: At<'_>, swarm: &Swarm) -> Result<Finished, Failure> {
        let result = match &swarm.merged {
            Some(merged) => self.load_text(merged)?,
            None => self.join_results(swarm)?,
        };
        let definition = self.step_definition(at.state, at.key);
        let (Some(schema), None) = (&definition.output.schema, &swarm.merged) else {
            return Ok(Finished::Result(result));
        };
        let shape = self.shapes.validator_for(schema, self.plan).map_err(render_failure)?;
        match shape.parse_answer(&result) {
            Ok(value) => Ok(Finished::Result(value)),
            // The agent that merges several results can bring one into its form.
            Err(_) if swarm.rules.merges => Ok(Finished::Merge),
            Err(violations) => Err(Failure::Invalid { violations }),
        }
    }

    fn parse_merge(&self, at: At<'_>, reply: Reply, made: &Made) -> Result<Answer, Failure> {
        let step = self.step_definition(at.state, at.key);
        let Some(schema) = &step.output.schema else {
            return Ok(match reply.text.trim() {
                "" => Answer::Invalid("it is empty: return the answer to the goal".to_owned()),
                text => Answer::Merged(made.content(text.to_owned())),
            });
        };
        let shape = self.shapes.validator_for(schema, self.plan).map_err(render_failure)?;
        Ok(match shape.parse_answer(&reply.text) {
            Ok(value) => Answer::Merged(made.content(value)),
            Err(violations) => Answer::Invalid(truncate_to_event(&violations.join("; "))),
        })
    }

    /// An iteration as the history shows it.
    pub(super) fn describe_iteration(
        &self,
        past: &crate::core::swarm::state::Past,
    ) -> Result<(u32, String, String), Failure> {
        let result = past.result.as_ref().map(|result| self.load_text(result)).transpose()?;
        let (label, text) = match past.act.as_deref() {
            None => ("invalid answer".to_owned(), String::new()),
            Some(Action::ToolCall { tool, .. }) => (format!("tool_call:{tool}"), String::new()),
            Some(Action::PublishData { topic, data }) => {
                ("publish_data".to_owned(), format!("{topic}: {}", self.load_text(data)?))
            }
            Some(Action::SendMessage { to, message_type, payload }) => {
                let payload = self.load_text(payload)?;
                ("send_message".to_owned(), format!("to {to} ({}): {payload}", message_type.as_str()))
            }
            Some(Action::RequestHelp { description, .. }) => ("request_help".to_owned(), self.load_text(description)?),
            Some(Action::Operate(op)) => (op.name().to_owned(), self.describe_operation(op)?),
            Some(Action::Done { response }) => ("done".to_owned(), self.load_text(response)?),
            Some(Action::Idle) => ("idle".to_owned(), "nothing".to_owned()),
        };
        let text = match result {
            Some(result) if text.is_empty() => result,
            Some(result) => format!("{text}; {result}"),
            None => text,
        };
        Ok((past.iteration, label, text))
    }

    /// An operation of a team, as the history of its agent shows it.
    fn describe_operation(&self, op: &TeamOp) -> Result<String, Failure> {
        let ops = |ops: &[PlanOp]| ops.iter().map(PlanOp::describe).collect::<Vec<_>>().join(", ");
        Ok(match op {
            TeamOp::PlanUpdate { ops: changes, why } | TeamOp::PlanPropose { ops: changes, why } => {
                format!("{}: {why}", ops(changes))
            }
            TeamOp::PlanDecide { proposal, approve, because } => {
                format!("proposal {proposal} {}: {because}", if *approve { "accepted" } else { "rejected" })
            }
            TeamOp::Assign { item, to } => format!("{item} to {}", to.as_deref().unwrap_or("no agent")),
            TeamOp::SpawnAgent { plays, name, task, .. } => {
                format!("{plays} as {}: {}", name.as_deref().unwrap_or("an agent"), self.load_text(task)?)
            }
            TeamOp::StopAgent { agent, why } => format!("{agent}: {why}"),
            TeamOp::ItemDone { item, summary } => format!("{item}: {summary}"),
            TeamOp::ItemBlocked { item, why } | TeamOp::ItemFailed { item, why } => format!("{item}: {why}"),
            TeamOp::ItemCheckpoint { item } => item.to_string(),
            TeamOp::Post { channel, message } => {
                format!("to {}: {}", channel.as_deref().unwrap_or("everybody"), self.load_text(message)?)
            }
            TeamOp::DeclareIntent { text, .. } => text.clone(),
            TeamOp::JoinChannel { channel } | TeamOp::LeaveChannel { channel } => channel.to_string(),
            TeamOp::TellUser { message } => self.load_text(message)?,
            TeamOp::Read { what: TeamReading::Plan | TeamReading::Summary { of: None } } => String::new(),
            TeamOp::Read { what: TeamReading::Summary { of: Some(of) } | TeamReading::Transcript { of } } => {
                of.to_string()
            }
            TeamOp::WorktreeOpen { worktree, manager, members, why } => {
                format!("{worktree} for {}, merged by {manager}: {why}", members.join(", "))
            }
            TeamOp::WorktreeMove { agent, to } => format!("{agent} to {}", to.as_deref().unwrap_or("the workspace")),
            TeamOp::Integrate { summary: text, .. } | TeamOp::IntegrateAbort { why: text } => text.clone(),
            TeamOp::IntegrateContinue { dropped } => {
                let parts: Vec<String> = dropped.iter().map(|it| format!("{} left out: {}", it.part, it.why)).collect();
                parts.join("; ")
            }
        })
    }

    /// What a swarm that is over was, for people and programs: each agent with its summary, iterations, tokens, models and
    /// cost, and how their results became one.
    pub(crate) fn build_swarm_metadata(&self, swarm: &Swarm, name: &str) -> Result<String, Failure> {
        let agents = swarm.agents.iter().map(|agent| self.describe_agent(agent)).collect::<Result<Vec<_>, _>>()?;
        let whole = json!({
            "swarm": name,
            "results": describe_results(swarm),
            "agents": agents,
            "calls": swarm.spent.calls,
            "tokens": { "input": swarm.spent.usage.input, "output": swarm.spent.usage.output },
            "cost_micro_usd": (!swarm.spent.unpriced).then_some(swarm.spent.cost),
        });
        Ok(format!("{whole:#}\n"))
    }

    fn describe_agent(&self, agent: &Agent) -> Result<serde_json::Value, Failure> {
        let end = agent.end.as_ref();
        let response = end.and_then(|end| end.response.as_ref());
        let summary = response.map(|response| self.load_text(response)).transpose()?;
        // A program or a script does not say which model it is: then what the plan says counts.
        let declared = self.plan.agent(&agent.plays).and_then(|player| player.model.clone());
        let models: Vec<String> = match agent.models.is_empty() {
            true => declared.into_iter().collect(),
            false => agent.models.iter().cloned().collect(),
        };
        Ok(json!({
            "agent": *agent.name,
            "plays": *agent.plays,
            "by": agent.by.as_deref(),
            "how": end.map(|end| end.how),
            "summary": summary.map(|summary| prompt::truncate_text(&summary, SUMMED_CHARS)),
            // `done` is no part of the history.
            "iterations": agent.history.len() + usize::from(end.is_some_and(|end| end.how == End::Done)),
            "calls": agent.spent.calls,
            "tokens": { "input": agent.spent.usage.input, "output": agent.spent.usage.output },
            "cost_micro_usd": (!agent.spent.unpriced).then_some(agent.spent.cost),
            "models": models,
            "messages_sent": agent.sent,
            "error": end.and_then(|end| end.error.as_deref()),
        }))
    }

    /// The results of the last turns of an agent.
    fn summarize_agent(&self, agent: &Agent) -> Result<String, Failure> {
        let last = agent.history.len().saturating_sub(SUMMED);
        let mut lines = Vec::new();
        for past in &agent.history[last..] {
            let (iteration, label, result) = self.describe_iteration(past)?;
            lines.push(format!("Iteration {iteration}: {label} → {}", prompt::truncate_text(&result, SUMMED_CHARS)));
        }
        Ok(lines.join("\n"))
    }

    /// The only result, or, without a merging agent, all results in the order of the roster.
    fn join_results(&self, swarm: &Swarm) -> Result<String, Failure> {
        let results: Vec<&Agent> = swarm.results().collect();
        let text = |agent: &Agent| match agent.end.as_ref().and_then(|end| end.response.as_ref()) {
            Some(response) => self.load_text(response),
            None => Ok(String::new()),
        };
        if let [one] = results.as_slice() {
            return text(one);
        }
        let parts = results.iter().map(|agent| Ok(format!("## {}\n{}", agent.name, text(agent)?)));
        Ok(parts.collect::<Result<Vec<String>, Failure>>()?.join("\n\n"))
    }
}

/// The action that a reply is.
fn parse_action(reply: Reply, repaired: bool, (tools, part): (Option<&[chat::Tool]>, TeamPart), made: &Made) -> Answer {
    let read = match reply.calls.is_empty() {
        true => action::parse_action(&reply.text, Some(PREFILL), part),
        false => action::from_calls(&reply.text, &reply.calls, part),
    };
    let action = match read {
        Ok(action) => action,
        Err(wrong) if reply.cut => {
            let wrong = format!("{wrong} (it was cut off at the limit of its tokens)");
            return Answer::Invalid(truncate_to_event(&wrong));
        }
        Err(wrong) => return Answer::Invalid(truncate_to_event(&wrong)),
    };
    to_action(action, repaired, tools, made)
        .map_or_else(|wrong| Answer::Invalid(truncate_to_event(&wrong)), |act| Answer::Acts(act.into()))
}

/// An action with its texts stored.
///
/// # Errors
/// It asks for what the agent cannot have, or is too long and may be repaired: a sentence for the model.
fn to_action(action: RawAction, repaired: bool, tools: Option<&[chat::Tool]>, made: &Made) -> Result<Action, String> {
    let store = |text: String| made.content(text);
    Ok(match action {
        RawAction::ToolCall { tool, params } => {
            Action::ToolCall { tool: Arc::from(tool), params: store(params.to_string()) }
        }
        RawAction::PublishData { topic, data } => Action::PublishData { topic: Arc::from(topic), data: store(data) },
        RawAction::SendMessage { to, kind, payload } => {
            Action::SendMessage { to: Arc::from(to), message_type: kind, payload: store(payload.to_string()) }
        }
        RawAction::RequestHelp { description, skills } => {
            let skills = match tools {
                None => skills,
                Some(tools) => action::match_skills(&skills, tools)?,
            };
            Action::RequestHelp { description: store(description), skills }
        }
        RawAction::Done { response } => match action::too_long(&response) {
            // The agent may shorten it once. After that it is cut, as a second invalid answer would lose the result.
            Some(wrong) if !repaired => return Err(wrong),
            Some(_) => Action::Done { response: store(action::cut_response(&response)) },
            None => Action::Done { response: store(response) },
        },
        RawAction::Idle => Action::Idle,
        RawAction::Operate(op) => Action::Operate(match op {
            TeamOp::Post { channel, message } => TeamOp::Post { channel, message: made.stored(message) },
            TeamOp::TellUser { message } => TeamOp::TellUser { message: made.stored(message) },
            TeamOp::SpawnAgent { plays, name, task, items, replaces, worktree } => {
                TeamOp::SpawnAgent { plays, name, task: made.stored(task), items, replaces, worktree }
            }
            op => op,
        }),
    })
}

/// A text from outside, cut to the length of an event.
pub(crate) fn truncate_to_event(words: &str) -> String {
    let mut words = words.to_owned();
    event::truncate_message(&mut words);
    words
}

/// How the results of agents became that of their swarm.
fn describe_results(swarm: &Swarm) -> &'static str {
    match (&swarm.merged, swarm.results().count()) {
        (Some(_), _) => "merged",
        (None, 0) => "none",
        (None, 1) => "single",
        (None, _) => "joined",
    }
}
