//! Decides what a swarm does next, from its state.
//!
//! In: a swarm and the time. Out: one command at a time, each given once, until there is nothing to do. Pure: the same
//! events and times give the same commands; the cost of one does not depend on the number of agents.

use std::sync::Arc;

use super::state::{Agent, AgentStage, LeadStage, Swarm, Timer};
use super::{action, lead, merge, names, proposal};
use crate::types::approval::RequestKind;
use crate::types::event::{AttemptId, Content, Event};
use crate::types::swarm::{Action, End, Fault, MemberMessage, MessageType, Phase, Purpose, SUPERVISOR, TurnId};
use crate::types::team::TeamReading;

/// What a swarm needs done, which an event answers.
#[derive(Clone, Debug, PartialEq)]
pub enum SwarmCommand {
    /// Record this event: it follows from those before.
    Record(Box<Event>),
    /// Render the task of a place of the roster, and record [`Event::AgentSpawned`].
    Spawn {
        /// The place, from 0.
        place: u32,
        /// The name of the new agent.
        name: Arc<str>,
        /// Its declared agent.
        plays: Arc<str>,
        /// Its task, where that is a part of the goal and not its own.
        task: Option<Content>,
    },
    /// Ask a model, and record [`Event::TurnStarted`] and [`Event::TurnEnded`].
    Ask(TurnId),
    /// Call a tool, and record [`Event::ToolStarted`] and [`Event::ToolEnded`]; where it is a merge, run Git, and record
    /// [`TeamFact::Integrated`](crate::types::team_fact::TeamFact::Integrated) or [`Event::ActionRefused`]. If the policy requires an
    /// approval that is missing, record [`crate::Event::ApprovalAsked`] instead: the command comes again after
    /// the approval.
    Call(TurnId),
    /// Request an approval for what an agent wants: record [`crate::Event::ApprovalAsked`], and after the answer
    /// [`crate::Event::ApprovalAnswered`].
    Agree {
        /// Which agent, from 0.
        agent: u32,
        /// What it wants.
        wants: RequestKind,
    },
    /// Put together what an agent reads of others, and record
    /// [`TeamFact::ContextRead`](crate::types::team_fact::TeamFact::ContextRead).
    Read {
        /// Which agent, from 0.
        agent: u32,
        /// What it reads.
        what: TeamReading,
    },
    /// The swarm no longer needs the answer of this turn or call: end it, and record nothing.
    Cancel(TurnId),
    /// Put together the result of an agent, and record [`Event::AgentFinished`].
    Conclude {
        /// Which agent, from 0.
        agent: u32,
        /// How it ended.
        how: End,
        /// Why it failed.
        error: Option<String>,
    },
    /// Put together the result of the swarm, and record [`Event::SwarmFinished`]; or record
    /// [`Phase::Synthesizing`], if the merging agent has to bring the only result into another form.
    Finish,
    /// Record [`Event::SwarmFinished`] without a result.
    Fail(String),
}

/// What to do next; none when everything waits for an event.
pub fn decide_swarm(swarm: &mut Swarm, now: u64) -> Option<SwarmCommand> {
    if swarm.is_over {
        return None;
    }
    if let Some(turn) = swarm.agenda.cancel.pop_front() {
        return Some(SwarmCommand::Cancel(turn));
    }
    fire_timers(swarm, now);
    if let Some(turn) = swarm.agenda.cancel.pop_front() {
        return Some(SwarmCommand::Cancel(turn));
    }
    decide_lead(swarm)
        .or_else(|| proposal::fail_overdue(swarm))
        .or_else(|| lead::decide_team(swarm))
        .or_else(|| decide_agents(swarm, now))
        .or_else(|| advance_phase(swarm, now))
}

/// What was waited for is over.
fn fire_timers(swarm: &mut Swarm, now: u64) {
    while let Some(&(due, timer)) = swarm.agenda.timers.first()
        && due <= now
    {
        swarm.agenda.timers.pop_first();
        match timer {
            Timer::Lead => {
                // A timer is not taken back when what it was for has changed: it counts only for the wait that set it.
                if swarm.lead.stage == LeadStage::Resting(due) {
                    swarm.lead.stage = LeadStage::Ready;
                }
            }
            Timer::Again(index) => match swarm.agents[index as usize].stage.clone() {
                AgentStage::Resting(_) => swarm.enter_stage(index, AgentStage::Ready),
                AgentStage::Retrying(act, _) => swarm.enter_stage(index, AgentStage::Calling(act, false)),
                _ => {}
            },
            Timer::Deadline(index) => expire_agent(swarm, index),
            Timer::Proposal(id) => swarm.expire_proposal(id),
        }
    }
}

/// The time of an agent is over.
pub(crate) fn expire_agent(swarm: &mut Swarm, index: u32) {
    let agent = &swarm.agents[index as usize];
    if agent.is_done() || matches!(agent.stage, AgentStage::Ending(..)) {
        return;
    }
    swarm.stop_turn(index);
    let error = format!("it took longer than {} seconds", swarm.rules.limits.timeout_ms / 1000);
    swarm.enter_stage(index, AgentStage::Ending(End::TimedOut, Some(error)));
}

fn decide_lead(swarm: &mut Swarm) -> Option<SwarmCommand> {
    match &swarm.lead.stage {
        LeadStage::Ready => {
            swarm.lead.stage = LeadStage::Ordered;
            Some(SwarmCommand::Ask(swarm.lead_turn()))
        }
        LeadStage::Failed(why) if !swarm.agenda.finishing => {
            let what = match swarm.lead.purpose {
                Purpose::Synthesize => "its results cannot be merged",
                Purpose::Act | Purpose::Decompose => "its goal cannot be split",
            };
            let why = format!("{what}: {why}");
            swarm.agenda.finishing = true;
            Some(SwarmCommand::Fail(why))
        }
        _ => None,
    }
}

/// What an agent has to do at once, without a turn that may begin.
pub(super) fn next_agent(swarm: &mut Swarm) -> Option<SwarmCommand> {
    let index = swarm.agenda.agents.pop_first()?;
    decide_agent(swarm, index, 0)
}

fn decide_agents(swarm: &mut Swarm, now: u64) -> Option<SwarmCommand> {
    // No agent acts before the whole roster is there: the first ones must not know less of the team.
    if swarm.phase < Some(Phase::Monitoring) {
        return None;
    }
    // A turn begins when all that follows from those before is recorded: a run that was killed in between begins its
    // turns with the same prompts.
    while let Some(index) = swarm.agenda.agents.pop_first().or_else(|| swarm.agenda.ready.pop_first()) {
        if let Some(order) = decide_agent(swarm, index, now) {
            return Some(order);
        }
    }
    None
}

fn decide_agent(swarm: &mut Swarm, index: u32, now: u64) -> Option<SwarmCommand> {
    let id = swarm.id.clone();
    let (ttl_ms, is_team) = (swarm.rules.ttl_ms, swarm.rules.coordinator.is_some());
    let may_begin = matches!(swarm.agents[index as usize].stage, AgentStage::Ready);
    let begins = may_begin.then(|| lead::begin_item(swarm, index)).flatten();
    let agent = &mut swarm.agents[index as usize];
    let name = Arc::clone(&agent.name);
    let order = match &agent.stage {
        AgentStage::Ready if agent.began.is_none() => record(Event::AgentStarted { swarm: id, agent: name }),
        AgentStage::Ready => {
            while agent.mailbox.front().is_some_and(|letter| letter.is_expired(ttl_ms, now)) {
                agent.mailbox.pop_front();
            }
            // What comes while a turn is repeated waits for the next iteration.
            let taken = if is_team { lead::TAKEN.saturating_sub(agent.inbox.len()) } else { 1 };
            let taken = agent.mailbox.len().min(taken);
            let letter = taken.checked_sub(1).map(|last| &agent.mailbox[last]).filter(|_| agent.attempt == 1);
            match letter {
                Some(letter) => {
                    let (from, number, count) = (Arc::clone(&letter.from), letter.seq, taken as u64);
                    record(Event::MessageReceived { swarm: id, agent: name, from, number, count })
                }
                None if agent.attempt == 1
                    && let Some(begins) = begins =>
                {
                    begins
                }
                None => {
                    swarm.enter_stage(index, AgentStage::Ordered);
                    SwarmCommand::Ask(swarm.turn(index))
                }
            }
        }
        AgentStage::Calling(act, false) => {
            let act = Arc::clone(act);
            swarm.enter_stage(index, AgentStage::Calling(act, true));
            SwarmCommand::Call(swarm.turn(index))
        }
        AgentStage::Acting(act) => {
            let act = Arc::clone(act);
            let command = carry_out(swarm, index, &act);
            if matches!(command, SwarmCommand::Call(_)) {
                swarm.enter_stage(index, AgentStage::Calling(act, true));
            }
            command
        }
        AgentStage::Helping(description, skills) => {
            let (description, skills) = (description.clone(), skills.clone());
            decide_help(swarm, index, description, skills)
        }
        AgentStage::Denied(act, why) => match &**act {
            Action::ToolCall { .. } => {
                let result = Content::Text(format!("not called: {why}"));
                let turn = swarm.turn(index);
                record(Event::ToolEnded { swarm: id, turn, result, fault: Some(Fault::Permanent) })
            }
            Action::Operate(op) => {
                let (merges, why) = (op.merges(), why.clone());
                let left = merges.then(|| merge::leave_branch(swarm, index, &why)).flatten();
                left.unwrap_or_else(|| refuse_action(id, &swarm.agents[index as usize], format!("not done: {why}")))
            }
            _ => refuse_action(id, agent, format!("no helper: {why}")),
        },
        AgentStage::Informed(helper) => {
            let text =
                serde_json::json!({ "agent_id": **helper, "message": format!("{helper} has started, and helps you") });
            let payload = Content::Text(text.to_string());
            let message = MemberMessage {
                number: agent.letters + 1,
                from: SUPERVISOR.into(),
                to: name,
                kind: MessageType::Accept,
                payload,
                person: false,
            };
            record(Event::MessageSent { swarm: id, message })
        }
        AgentStage::Ending(how, error) => SwarmCommand::Conclude { agent: index, how: *how, error: error.clone() },
        _ => return None,
    };
    Some(order)
}

pub(super) fn record(event: Event) -> SwarmCommand {
    SwarmCommand::Record(Box::new(event))
}

pub(super) fn refuse_action(swarm: AttemptId, agent: &Agent, reason: String) -> SwarmCommand {
    record(Event::ActionRefused { swarm, agent: Arc::clone(&agent.name), reason })
}

/// The order that an action gives.
pub(super) fn carry_out(swarm: &Swarm, index: u32, act: &Action) -> SwarmCommand {
    let agent = &swarm.agents[index as usize];
    let (id, name) = (swarm.id.clone(), Arc::clone(&agent.name));
    let event = match act {
        Action::PublishData { topic, data } => {
            let (topic, data) = (topic.clone(), data.clone());
            Event::DataPublished { swarm: id, number: swarm.workspace.last + 1, topic, author: name, data }
        }
        Action::SendMessage { to, message_type, payload } => match resolve_addressee(swarm, agent, to) {
            Ok(receiver) => {
                let (number, to) = (receiver.letters + 1, Arc::clone(&receiver.name));
                let (kind, payload) = (*message_type, payload.clone());
                let message = MemberMessage { number, from: name, to, kind, payload, person: false };
                Event::MessageSent { swarm: id, message }
            }
            Err(reason) => return refuse_action(id, agent, reason),
        },
        Action::RequestHelp { description, skills } => {
            let (description, skills) = (description.clone(), skills.clone());
            Event::HelpRequested { swarm: id, agent: name, description, skills }
        }
        Action::Done { response } => return lead::finish_agent(swarm, index, response.clone()),
        Action::Operate(op) => return lead::operate(swarm, index, op.clone()),
        Action::Idle => Event::AgentIdled { swarm: id, agent: name },
        // Calls have a stage of their own.
        Action::ToolCall { tool, .. } => return refuse_action(id, agent, format!("tool `{tool}` was not called")),
    };
    record(event)
}

/// The agent that receives a message, or why no agent does.
fn resolve_addressee<'s>(swarm: &'s Swarm, from: &Agent, to: &Arc<str>) -> Result<&'s Agent, String> {
    let limit = swarm.rules.limits.messages;
    if from.sent >= limit {
        return Err(format!("not sent: you have sent {limit} messages, which is the limit; publish_data still works"));
    }
    if *from.name == **to {
        return Err("not sent: you are the receiver yourself".to_owned());
    }
    let Some(receiver) = swarm.agent(to) else {
        let others =
            swarm.agents.iter().map(|agent| &*agent.name).filter(|name| *name != &*from.name).take(action::TOLD);
        let others: Vec<&str> = others.collect();
        let words: String = to.chars().take(action::RECEIVER_CHARS).collect();
        return Err(format!("not sent: there is no agent `{words}` in your team; there are {}", others.join(", ")));
    };
    if !swarm.may_write(&from.name, &receiver.name) {
        let edges = swarm.rules.edges.iter().flatten().filter(|(sender, _)| **sender == *from.name);
        let may: Vec<&str> = edges.map(|(_, to)| &**to).take(action::TOLD).collect();
        let may = if may.is_empty() { "no one".to_owned() } else { may.join(", ") };
        return Err(format!("not sent: no edge leads from you to {to}; you may write to {may}"));
    }
    if receiver.is_done() {
        return Err(format!("not sent: {to} is done"));
    }
    Ok(receiver)
}

/// What the supervisor does about a request for help.
fn decide_help(swarm: &Swarm, index: u32, description: Content, skills: Vec<String>) -> SwarmCommand {
    let agent = &swarm.agents[index as usize];
    let (limit, most) = (swarm.rules.helpers, swarm.rules.limits.agents as usize);
    if agent.helpers >= limit {
        let reason = match limit {
            0 => "no helper: this swarm has none".to_owned(),
            1 => "no helper: you have had the one that each agent may ask for".to_owned(),
            limit => format!("no helper: you have had the {limit} that each agent may ask for"),
        };
        return refuse_action(swarm.id.clone(), agent, reason);
    }
    if swarm.agents.len() >= most {
        return refuse_action(
            swarm.id.clone(),
            agent,
            format!("no helper: the swarm has {most} agents, which is the limit"),
        );
    }
    if swarm.rules.gated && agent.agreed.is_none() {
        let plays = Arc::clone(&agent.plays);
        return SwarmCommand::Agree {
            agent: index,
            wants: RequestKind::Spawn { plays, task: description, tools: skills },
        };
    }
    let taken = |name: &str| swarm.names.contains_key(name);
    let name = names::pick_name(&swarm.run, swarm.agents.len() as u32, taken);
    record(Event::AgentSpawned {
        swarm: swarm.id.clone(),
        agent: name.into(),
        plays: Arc::clone(&agent.plays),
        task: Some(description),
        brief: None,
        by: Some(Arc::clone(&agent.name)),
        tools: Some(skills),
        items: Vec::new(),
        replaces: None,
        worktree: None,
    })
}

/// From one phase to the next.
fn advance_phase(swarm: &mut Swarm, now: u64) -> Option<SwarmCommand> {
    let id = swarm.id.clone();
    let enter = |phase| Some(record(Event::PhaseEntered { swarm: id, phase }));
    match swarm.phase {
        None if swarm.rules.parts.is_some() => enter(Phase::Planning),
        None => enter(Phase::Spawning),
        Some(Phase::Planning) if swarm.split => enter(Phase::Spawning),
        Some(Phase::Planning) => None,
        Some(Phase::Spawning) => spawn_next(swarm).or_else(|| enter(Phase::Monitoring)),
        Some(Phase::Monitoring) => monitor_agents(swarm, now),
        Some(Phase::Synthesizing) => {
            let done = swarm.merged.is_some() && !std::mem::replace(&mut swarm.agenda.finishing, true);
            done.then_some(SwarmCommand::Finish)
        }
    }
}

/// Spawns the next agent of the roster, or one for a part of the goal that no agent of the roster takes.
fn spawn_next(swarm: &Swarm) -> Option<SwarmCommand> {
    if let Some(coordinator) = lead::spawn_coordinator(swarm) {
        return Some(coordinator);
    }
    let (rules, placed) = (&swarm.rules, swarm.placed);
    let place = rules.roster.get(placed as usize);
    if place.is_none() && swarm.parts.is_empty() || swarm.agents.len() >= rules.limits.agents as usize {
        return None;
    }
    let taken = |name: &str| swarm.names.contains_key(name) || rules.declared.contains(name);
    let name = place.and_then(|place| place.name.clone());
    let name = name.unwrap_or_else(|| names::pick_name(&swarm.run, placed, taken).into());
    let plays = match place {
        Some(place) => Arc::clone(&place.plays),
        // Members without a place use the agents of the roster in turn; without a roster, the agent of the lead.
        None => {
            let open: Vec<&Arc<str>> =
                rules.roster.iter().filter(|place| !place.has_task).map(|it| &it.plays).collect();
            match open.is_empty() {
                false => Arc::clone(open[placed as usize % open.len()]),
                true => Arc::clone(rules.lead.as_ref()?),
            }
        }
    };
    let task = swarm.next_part().map(|part| swarm.parts[part].task.clone());
    Some(SwarmCommand::Spawn { place: placed, name, plays, task })
}

fn monitor_agents(swarm: &mut Swarm, now: u64) -> Option<SwarmCommand> {
    if swarm.team.is_some() {
        return lead::monitor_team(swarm);
    }
    let agenda = &mut swarm.agenda;
    if (agenda.done as usize) < swarm.agents.len() {
        // When no agent is left to wait for, idle agents wake up; then agents that never had a task end as unneeded.
        let asleep = agenda.done as usize + agenda.idle.len() + agenda.waiting.len();
        if asleep < swarm.agents.len() {
            return None;
        }
        if let Some(index) = agenda.idle.first().copied() {
            swarm.enter_stage(index, AgentStage::Ready);
        } else if let Some(index) = agenda.waiting.first().copied() {
            swarm.enter_stage(index, AgentStage::Ending(End::Unneeded, None));
        }
        return decide_agents(swarm, now);
    }
    if agenda.finishing {
        return None;
    }
    match swarm.results().count() {
        0 => {
            swarm.agenda.finishing = true;
            Some(SwarmCommand::Fail(describe_failures(swarm)))
        }
        2.. if swarm.rules.merges => {
            let swarm = swarm.id.clone();
            Some(record(Event::PhaseEntered { swarm, phase: Phase::Synthesizing }))
        }
        _ => {
            swarm.agenda.finishing = true;
            Some(SwarmCommand::Finish)
        }
    }
}

/// Why no agent produced a result, in words.
fn describe_failures(swarm: &Swarm) -> String {
    let told = swarm.agents.iter().take(action::TOLD).map(|agent| {
        let error = agent.end.as_ref().and_then(|end| end.error.as_deref());
        format!("{}: {}", agent.name, error.unwrap_or("it was never needed"))
    });
    let told: Vec<String> = told.collect();
    match told.is_empty() {
        true => "it has no agents".to_owned(),
        false => format!("no agent came to a result: {}", told.join("; ")),
    }
}
