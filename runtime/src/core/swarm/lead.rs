//! What a team with a coordinator does next: carries out the operations of its agents, tells them what happened, and ends.
//!
//! In: the swarm. Out: commands, as `decide` gives them. An operation that is not allowed, or does not apply, is refused
//! with who may do it, or what would apply; the agent reads that in its next turn.

use std::sync::Arc;

use swarmc_plan::Approval;

use super::decide::{SwarmCommand, record, refuse_action};
use super::plan::TeamPlan;
use super::state::{Agent, AgentStage, Notice, Swarm, Team};
use super::{action, merge, names, proposal};
use crate::types::approval::RequestKind;
use crate::types::event::{Content, Event, can_inline};
use crate::types::swarm::{End, MemberMessage, PERSON, SUPERVISOR, WORKSPACE};
use crate::types::team::{ItemState, PlanOp, Refused, TeamOp, TeamReading};
use crate::types::team_fact::TeamFact;

/// How often in a row a coordinator is woken because nothing moves, before the swarm fails.
pub(super) const STALLS: u32 = 3;
/// The messages that an agent of a team takes for one turn at most.
pub(super) const TAKEN: usize = 10;
/// The characters of a notice at most.
const NOTICE_CHARS: usize = 1_600;
/// The characters of a change of the plan at most, as a person who must agree to it reads it; an event holds it.
const AGREED_CHARS: usize = 500;

/// The coordinator begins: the first agent of a team.
pub(super) fn spawn_coordinator(swarm: &Swarm) -> Option<SwarmCommand> {
    let coordinator = swarm.rules.coordinator.as_ref().filter(|_| swarm.agents.is_empty())?;
    Some(record(Event::AgentSpawned {
        swarm: swarm.id.clone(),
        agent: Arc::clone(&coordinator.name),
        plays: Arc::clone(&coordinator.plays),
        task: Some(swarm.goal.clone()),
        brief: Some(Content::Text(
            "coordinates the others: makes the plan, assigns its items, spawns and stops".to_owned(),
        )),
        by: None,
        tools: None,
        items: Vec::new(),
        replaces: None,
        worktree: None,
    }))
}

/// What follows from what has happened, before an agent begins a further turn.
pub(super) fn decide_team(swarm: &Swarm) -> Option<SwarmCommand> {
    let team = swarm.team.as_ref()?;
    if let Some(&id) = team.fresh.first() {
        return Some(proposal::settle_fresh(swarm, team, id));
    }
    if let Some(&id) = team.overdue.first() {
        return Some(proposal::settle_overdue(swarm, team, id));
    }
    if let Some(conflict) = team.touches.conflicts.front() {
        let (agent, with, path) = (Arc::clone(&conflict.agent), Arc::clone(&conflict.with), Arc::clone(&conflict.path));
        let fact = TeamFact::Conflict { agent, with, path, certain: conflict.certain };
        return Some(record(Event::Team { swarm: swarm.id.clone(), fact }));
    }
    team.notices.front().map(|notice| send_notice(swarm, notice))
}

pub(super) fn send_notice(swarm: &Swarm, notice: &Notice) -> SwarmCommand {
    let letters = swarm.agent(&notice.to).map_or(0, |agent| agent.letters);
    let mut limit = NOTICE_CHARS;
    let payload = loop {
        let words = super::prompt::truncate_text(&notice.words, limit);
        let payload = serde_json::json!({ "message": words }).to_string();
        if can_inline(&payload) || limit < 50 {
            break payload;
        }
        limit = limit * 3 / 4;
    };
    let message = MemberMessage {
        number: letters + 1,
        from: SUPERVISOR.into(),
        to: Arc::clone(&notice.to),
        kind: notice.kind(),
        payload: Content::Text(payload),
        person: false,
    };
    record(Event::MessageSent { swarm: swarm.id.clone(), message })
}

/// The item that an agent begins with its next turn.
pub(super) fn begin_item(swarm: &Swarm, index: u32) -> Option<SwarmCommand> {
    let agent = &swarm.agents[index as usize];
    let plan = &swarm.team.as_ref()?.plan;
    let item = plan.current_item(&agent.name).filter(|item| item.state == ItemState::Open)?;
    Some(move_item(swarm, agent, &item.name, (ItemState::Running, None)))
}

fn move_item(swarm: &Swarm, agent: &Agent, item: &Arc<str>, (to, note): (ItemState, Option<String>)) -> SwarmCommand {
    let (swarm, agent) = (swarm.id.clone(), Arc::clone(&agent.name));
    record(Event::Team { swarm, fact: TeamFact::ItemMoved { agent, item: Arc::clone(item), to, note } })
}

/// The command that an operation gives.
pub(super) fn operate(swarm: &Swarm, index: u32, op: TeamOp) -> SwarmCommand {
    let agent = &swarm.agents[index as usize];
    match try_operation(swarm, agent, index, op) {
        Ok(command) => command,
        Err(why) => refuse_action(swarm.id.clone(), agent, why),
    }
}

/// Whether an agent may use an operation by its part in the team: some are for the coordinator alone.
///
/// # Errors
/// It may not: who may.
pub(crate) fn check_part(swarm: &Swarm, agent: &str, name: &str) -> Result<(), String> {
    match swarm.coordinator().filter(|coordinator| ***coordinator != *agent && action::is_for_coordinator(name)) {
        Some(coordinator) => {
            Err(format!("only {coordinator} may use `{name}`: write to {coordinator}, or use `plan_propose`"))
        }
        None => Ok(()),
    }
}

fn try_operation(swarm: &Swarm, agent: &Agent, index: u32, op: TeamOp) -> Result<SwarmCommand, String> {
    let (Some(team), Some(coordinator)) = (&swarm.team, swarm.coordinator()) else {
        return Err(format!("`{}` is for swarms with a coordinator, and yours has none", op.name()));
    };
    let (id, name, leads) = (swarm.id.clone(), Arc::clone(&agent.name), swarm.is_coordinator(&agent.name));
    check_part(swarm, &name, op.name())?;
    Ok(match op {
        TeamOp::PlanUpdate { ops, why } => {
            check_ops(swarm, team, &ops)?;
            // The first version is the beginning, and no change.
            if swarm.rules.plan_update == Approval::Human && team.plan.version > 0 && agent.agreed.is_none() {
                return Ok(agree_to_plan(index, &ops, &why));
            }
            let version = team.plan.version + 1;
            record(Event::Team {
                swarm: id,
                fact: TeamFact::PlanUpdated { version, agent: name, ops, why, proposal: None },
            })
        }
        TeamOp::PlanPropose { .. } if leads => return Err("you decide the plan yourself: use `plan_update`".to_owned()),
        TeamOp::PlanPropose { ops, why } => {
            let most = swarm.rules.limits.proposals as usize;
            if team.plan.proposals.len() >= most {
                return Err(format!("{most} proposals wait for {coordinator}, which is the limit: wait for an answer"));
            }
            check_ops(swarm, team, &ops)?;
            if swarm.rules.plan_update == Approval::Human && agent.agreed.is_none() {
                return Ok(agree_to_plan(index, &ops, &why));
            }
            let (proposal, base) = (team.plan.last_proposal + 1, agent.shown);
            record(Event::Team { swarm: id, fact: TeamFact::PlanProposed { proposal, agent: name, base, ops, why } })
        }
        TeamOp::PlanDecide { proposal, approve, because } => {
            let Some(wanted) = team.plan.proposals.get(&proposal) else {
                let open: Vec<String> = team.plan.proposals.keys().map(u32::to_string).collect();
                let open = if open.is_empty() { "none".to_owned() } else { open.join(", ") };
                return Err(format!("no proposal {proposal} waits; waiting are: {open}"));
            };
            if !approve {
                let verdict = Refused::Rejected;
                return Ok(record(Event::Team {
                    swarm: id,
                    fact: TeamFact::ProposalRefused { proposal, agent: name, verdict, because },
                }));
            }
            match team.plan.check_proposal(wanted, |name| can_own(swarm, name), swarm.rules.limits.items) {
                Ok(()) => record(Event::Team {
                    swarm: id,
                    fact: TeamFact::PlanUpdated {
                        version: team.plan.version + 1,
                        agent: name,
                        ops: wanted.ops.clone(),
                        why: wanted.why.clone(),
                        proposal: Some(proposal),
                    },
                }),
                Err(because) => {
                    let verdict = Refused::Stale;
                    record(Event::Team {
                        swarm: id,
                        fact: TeamFact::ProposalRefused { proposal, agent: name, verdict, because },
                    })
                }
            }
        }
        TeamOp::Assign { item, to } => {
            let found = find_item(team, &item)?;
            match (&found.state, &found.owner) {
                (ItemState::Done, _) => return Err(format!("`{item}` is done")),
                (ItemState::Running, Some(owner)) => {
                    return Err(format!("{owner} works on `{item}`: stop {owner} first, or wait"));
                }
                _ => {}
            }
            if let Some(to) = to.as_deref().filter(|to| !can_own(swarm, to)) {
                return Err(format!("`{}` is no agent that works: {}", quote(to), list_agents(swarm)));
            }
            record(Event::Team { swarm: id, fact: TeamFact::ItemAssigned { agent: name, item, to } })
        }
        TeamOp::SpawnAgent { plays, name: wanted, task, items, replaces, worktree } => {
            return spawn_agent(swarm, (index, team), (plays, wanted, task), Role { items, replaces, worktree });
        }
        TeamOp::StopAgent { agent: other, why } => match swarm.agent(&other) {
            Some(_) if other == name => return Err("you cannot stop yourself: end with `done`".to_owned()),
            Some(other) if other.is_done() => return Err(format!("{} has ended already", other.name)),
            Some(other) => record(Event::Team {
                swarm: id,
                fact: TeamFact::AgentStopped { by: name, agent: Arc::clone(&other.name), why },
            }),
            None => return Err(format!("there is no agent `{}`: {}", quote(&other), list_agents(swarm))),
        },
        TeamOp::ItemDone { item, summary } => report_item(swarm, team, agent, (&item, ItemState::Done, summary))?,
        TeamOp::ItemBlocked { item, why } => report_item(swarm, team, agent, (&item, ItemState::Blocked, why))?,
        TeamOp::ItemFailed { item, why } => report_item(swarm, team, agent, (&item, ItemState::Failed, why))?,
        TeamOp::ItemCheckpoint { item } => {
            let found = own_item(team, agent, &item)?;
            if found.reached >= found.checkpoints.len() {
                return Err(format!("`{item}` has {} checkpoints, and all are reached", found.checkpoints.len()));
            }
            record(Event::Team {
                swarm: id,
                fact: TeamFact::ItemChecked { agent: name, item, checkpoint: found.reached + 1 },
            })
        }
        TeamOp::Post { channel, message } => {
            check_post(swarm, team, agent, channel.as_ref())?;
            record(Event::Team { swarm: id, fact: TeamFact::Posted { agent: name, channel, message } })
        }
        TeamOp::DeclareIntent { text, paths } => {
            record(Event::Team { swarm: id, fact: TeamFact::Intended { agent: name, text, paths } })
        }
        TeamOp::JoinChannel { channel } => {
            let found = find_channel(team, &channel)?;
            if found.members.contains(&name) {
                return Err(format!("you take part in `{channel}` already"));
            }
            if !found.open {
                return Err(format!("`{channel}` is not open: write to {coordinator}"));
            }
            record(Event::Team { swarm: id, fact: TeamFact::ChannelChanged { agent: name, channel, joined: true } })
        }
        TeamOp::LeaveChannel { channel } => {
            if !find_channel(team, &channel)?.members.contains(&name) {
                return Err(format!("you do not take part in `{channel}`"));
            }
            record(Event::Team { swarm: id, fact: TeamFact::ChannelChanged { agent: name, channel, joined: false } })
        }
        TeamOp::Read { what } => {
            check_reading(swarm, team, agent, &what)?;
            if let TeamReading::Transcript { of } = &what
                && swarm.rules.asks_transcripts
                && agent.agreed.is_none()
            {
                return Ok(agree_to_reading(index, of));
            }
            return Ok(SwarmCommand::Read { agent: index, what });
        }
        TeamOp::WorktreeOpen { worktree, manager, members, .. } => {
            return merge::open_worktree(swarm, team, index, (&worktree, &manager, &members));
        }
        TeamOp::WorktreeMove { agent: other, to } => {
            return merge::move_agent(swarm, team, index, (&other, to.as_deref()));
        }
        op @ (TeamOp::Integrate { .. } | TeamOp::IntegrateContinue { .. } | TeamOp::IntegrateAbort { .. }) => {
            return merge::merge_worktree(swarm, team, index, &op);
        }
        TeamOp::TellUser { message } => {
            record(Event::Team { swarm: id, fact: TeamFact::UserTold { agent: name, message } })
        }
    })
}

/// Whether an agent may read this of others.
fn check_reading(swarm: &Swarm, team: &Team, agent: &Agent, what: &TeamReading) -> Result<(), String> {
    let of = match what {
        TeamReading::Plan | TeamReading::Summary { of: None } => return Ok(()),
        TeamReading::Summary { of: Some(of) } | TeamReading::Transcript { of } => of,
    };
    if swarm.agent(of).is_none() {
        return Err(format!("there is no agent `{}`: {}", quote(of), list_agents(swarm)));
    }
    let (limit, read) = (swarm.rules.limits.context_reads, team.reads.get(&agent.name).copied().unwrap_or(0));
    match what {
        TeamReading::Transcript { .. } if read >= limit => Err(format!(
            "you have read {read} transcripts, and {limit} is the limit: use `read_summary`, or ask {of} by `send_message`"
        )),
        _ => Ok(()),
    }
}

fn check_ops(swarm: &Swarm, team: &Team, ops: &[PlanOp]) -> Result<(), String> {
    team.plan.check_ops(ops, |name| can_own(swarm, name), swarm.rules.limits.items)
}

/// A person must agree to this change of the plan.
fn agree_to_plan(index: u32, ops: &[PlanOp], why: &str) -> SwarmCommand {
    let ops: Vec<String> = ops.iter().map(PlanOp::describe).collect();
    let words = super::prompt::truncate_text(&format!("{}: {why}", ops.join(", ")), AGREED_CHARS);
    SwarmCommand::Agree { agent: index, wants: RequestKind::Plan { change: Content::Text(words) } }
}

/// A person must agree that an agent reads all that another one did.
fn agree_to_reading(index: u32, of: &str) -> SwarmCommand {
    let arguments = Content::Text(serde_json::json!({ "agent": of }).to_string());
    let tool = TeamReading::TRANSCRIPT.into();
    SwarmCommand::Agree { agent: index, wants: RequestKind::Tool { tool, arguments, schema: None, fixed: true } }
}

/// Whether an agent of this name can own an item: it is there, or stands in the roster, and has not ended.
pub(super) fn can_own(swarm: &Swarm, name: &str) -> bool {
    match swarm.agent(name) {
        Some(agent) => !agent.is_done(),
        None => swarm.rules.declared.contains(name),
    }
}

fn list_agents(swarm: &Swarm) -> String {
    let alive = swarm.agents.iter().filter(|agent| !agent.is_done()).map(|agent| &*agent.name).take(action::TOLD);
    format!("there are {}", alive.collect::<Vec<_>>().join(", "))
}

fn quote(name: &str) -> String {
    name.chars().take(action::RECEIVER_CHARS).collect()
}

fn find_item<'t>(team: &'t Team, name: &str) -> Result<&'t super::plan::Item, String> {
    team.plan.item(name).ok_or_else(|| {
        let items: Vec<&str> = team.plan.items.iter().map(|item| &*item.name).take(action::TOLD).collect();
        format!("the plan has no item `{}`; it has {}", quote(name), items.join(", "))
    })
}

/// An item that an agent may report on.
fn own_item<'t>(team: &'t Team, agent: &Agent, name: &str) -> Result<&'t super::plan::Item, String> {
    let item = find_item(team, name)?;
    match (&item.owner, item.state) {
        (_, ItemState::Done) => Err(format!("`{name}` is done already")),
        (Some(owner), _) if *owner != agent.name => Err(format!("`{name}` is {owner}'s item, not yours")),
        (None, _) => Err(format!("`{name}` has no owner: ask the coordinator to assign it")),
        (_, ItemState::Open) => {
            let waits: Vec<&str> = team.plan.waits_for(item).map(|on| &*on.name).collect();
            match waits.is_empty() {
                true => Ok(item),
                false => Err(format!("`{name}` waits for {}", waits.join(", "))),
            }
        }
        _ => Ok(item),
    }
}

fn report_item(
    swarm: &Swarm,
    team: &Team,
    agent: &Agent,
    (item, to, note): (&Arc<str>, ItemState, String),
) -> Result<SwarmCommand, String> {
    let found = own_item(team, agent, item)?;
    Ok(move_item(swarm, agent, &found.name, (to, Some(note))))
}

fn find_channel<'t>(team: &'t Team, name: &str) -> Result<&'t super::state::Channel, String> {
    team.channels.get(name).ok_or_else(|| {
        let channels: Vec<&str> = team.channels.keys().map(|name| &**name).take(action::TOLD).collect();
        match channels.is_empty() {
            true => "your team has no channels: use `send_message` or `broadcast`".to_owned(),
            false => format!("there is no channel `{}`; there are {}", quote(name), channels.join(", ")),
        }
    })
}

fn check_post(swarm: &Swarm, team: &Team, agent: &Agent, channel: Option<&Arc<str>>) -> Result<(), String> {
    let limit = swarm.rules.limits.messages;
    if agent.sent >= limit {
        return Err(format!("not sent: you have sent {limit} messages, which is the limit"));
    }
    if let Some(name) = channel {
        let found = find_channel(team, name)?;
        if !found.members.contains(&agent.name) {
            let help = if found.open { ": use `channel_join` first" } else { "" };
            return Err(format!("not sent: you do not take part in `{name}`{help}"));
        }
    }
    match swarm.list_receivers(&agent.name, channel).is_empty() {
        true => Err("not sent: no other agent is there to read it".to_owned()),
        false => Ok(()),
    }
}

/// What an agent that is added takes over.
struct Role {
    items: Vec<Arc<str>>,
    /// The ended agent whose items it takes.
    replaces: Option<Arc<str>>,
    worktree: Option<Arc<str>>,
}

/// Adds an agent, once a person agrees where the spec asks for that.
fn spawn_agent(
    swarm: &Swarm,
    (index, team): (u32, &Team),
    (plays, wanted, task): (Arc<str>, Option<Arc<str>>, Content),
    Role { items, replaces, worktree }: Role,
) -> Result<SwarmCommand, String> {
    let Some(spawns) = &swarm.rules.spawns else {
        return Err("no agent: this swarm declares no `spawns`".to_owned());
    };
    if !spawns.agents.iter().any(|agent| **agent == *plays) {
        return Err(format!(
            "no agent: `{}` is none of those that you may add: {}",
            quote(&plays),
            spawns.agents.join(", ")
        ));
    }
    let most = swarm.rules.limits.agents as usize;
    if team.spawned >= spawns.max {
        return Err(format!("no agent: you have added {}, which is the limit", spawns.max));
    }
    if swarm.agents.len() >= most {
        return Err(format!("no agent: the swarm has {most} agents, which is the limit"));
    }
    if let Some(former) = &replaces {
        match swarm.agent(former) {
            Some(agent) if agent.is_done() => {}
            Some(_) => return Err(format!("no agent: {former} has not ended; stop it first")),
            None => return Err(format!("no agent: there is no agent `{}` to replace", quote(former))),
        }
    }
    if let Some(tree) = &worktree {
        merge::find_worktree(team, tree).map_err(|why| format!("no agent: {why}"))?;
    }
    for item in &items {
        let found = find_item(team, item)?;
        match (found.state, &found.owner) {
            (ItemState::Done, _) => return Err(format!("no agent: `{item}` is done")),
            (ItemState::Running, Some(owner)) => return Err(format!("no agent: {owner} works on `{item}`")),
            _ => {}
        }
    }
    let taken = |name: &str| {
        swarm.names.contains_key(name)
            || swarm.rules.declared.contains(name)
            || [SUPERVISOR, WORKSPACE, PERSON].contains(&name)
    };
    if let Some(name) = wanted.as_deref().filter(|name| taken(name)) {
        return Err(format!("no agent: the name `{name}` is taken"));
    }
    let agent = &swarm.agents[index as usize];
    if swarm.rules.gated && agent.agreed.is_none() {
        let wants = RequestKind::Spawn { plays, task, tools: Vec::new() };
        return Ok(SwarmCommand::Agree { agent: index, wants });
    }
    let name = wanted.unwrap_or_else(|| names::pick_name(&swarm.run, swarm.agents.len() as u32, taken).into());
    Ok(record(Event::AgentSpawned {
        swarm: swarm.id.clone(),
        agent: name,
        plays,
        task: Some(task),
        brief: None,
        by: Some(Arc::clone(&agent.name)),
        tools: None,
        items,
        replaces,
        worktree,
    }))
}

/// What the last word of an agent comes to: that of the coordinator ends the swarm.
pub(super) fn finish_agent(swarm: &Swarm, index: u32, response: Content) -> SwarmCommand {
    let agent = &swarm.agents[index as usize];
    let (id, name) = (swarm.id.clone(), Arc::clone(&agent.name));
    let Some(team) = &swarm.team else {
        return record(Event::AgentFinished {
            swarm: id,
            agent: name,
            how: End::Done,
            response: Some(response),
            error: None,
        });
    };
    let leads = swarm.is_coordinator(&name);
    let open: Vec<&str> = match leads {
        true => team.plan.items.iter().filter(|item| item.state != ItemState::Done).map(|item| &*item.name).collect(),
        false => team
            .plan
            .open_items(&name)
            .filter(|item| item.state == ItemState::Running)
            .map(|item| &*item.name)
            .collect(),
    };
    if !open.is_empty() {
        let help = match leads {
            true => "wait for them, or remove them by `plan_update`",
            false => "use `item_done`, `item_blocked` or `item_failed` for each",
        };
        let open: Vec<&str> = open.into_iter().take(action::TOLD).collect();
        return refuse_action(id, agent, format!("not done: {} is open: {help}", open.join(", ")));
    }
    if leads
        && let unmerged = merge::list_unmerged(swarm, team)
        && !unmerged.is_empty()
    {
        let words = format!("not done: {}: wait for the manager, or stop it", unmerged.join("; "));
        return refuse_action(id, agent, words);
    }
    match leads {
        true => record(Event::AgentFinished {
            swarm: id,
            agent: name,
            how: End::Done,
            response: Some(response),
            error: None,
        }),
        false => record(Event::Team { swarm: id, fact: TeamFact::AgentCompleted { agent: name, response } }),
    }
}

/// What to do when no turn may begin: end with the coordinator, or wake it because nothing moves.
pub(super) fn monitor_team(swarm: &mut Swarm) -> Option<SwarmCommand> {
    let coordinator = Arc::clone(swarm.coordinator()?);
    let leader = swarm.agent(&coordinator)?;
    if let Some(end) = leader.end.clone() {
        return end_team(swarm, &coordinator, (end.how, end.error));
    }
    let asleep = swarm.agenda.done as usize + swarm.agenda.idle.len() + swarm.agenda.waiting.len();
    if asleep < swarm.agents.len() || leader.stage != AgentStage::Idle || swarm.agenda.finishing {
        return None;
    }
    let team = swarm.team.as_ref()?;
    let why = describe_waiting(&team.plan, swarm);
    if team.stalls >= STALLS {
        swarm.agenda.finishing = true;
        return Some(SwarmCommand::Fail(format!("nothing moves, and {coordinator} did nothing about it: {why}")));
    }
    Some(send_notice(swarm, &Notice { to: coordinator, wakes: true, words: format!("nothing moves: {why}") }))
}

fn end_team(swarm: &mut Swarm, coordinator: &str, (how, error): (End, Option<String>)) -> Option<SwarmCommand> {
    if swarm.agenda.finishing {
        return None;
    }
    if how != End::Done {
        swarm.agenda.finishing = true;
        let why = error.unwrap_or_else(|| how.as_str().to_owned());
        return Some(SwarmCommand::Fail(format!("its coordinator {coordinator} has ended: {why}")));
    }
    if (swarm.agenda.done as usize) < swarm.agents.len() {
        for index in 0..swarm.agents.len() as u32 {
            let agent = &swarm.agents[index as usize];
            if !agent.is_done() && !matches!(agent.stage, AgentStage::Ending(..)) {
                swarm.stop_turn(index);
                swarm.enter_stage(index, AgentStage::Ending(End::Released, None));
            }
        }
        return super::decide::next_agent(swarm);
    }
    swarm.agenda.finishing = true;
    Some(SwarmCommand::Finish)
}

/// Why nothing moves, in words.
fn describe_waiting(plan: &TeamPlan, swarm: &Swarm) -> String {
    if plan.version == 0 {
        return "the team has no plan yet; make one by `plan_update`".to_owned();
    }
    let open = plan.items.iter().filter(|item| item.state != ItemState::Done);
    let lines: Vec<String> = open
        .take(action::TOLD)
        .map(|item| {
            let waits: Vec<&str> = plan.waits_for(item).map(|on| &*on.name).collect();
            let owner = item.owner.as_deref();
            let note = item.note.as_deref().unwrap_or_default();
            match (item.state, owner) {
                (_, None) => format!("`{}` has no owner", item.name),
                (_, Some(owner)) if !can_own(swarm, owner) => {
                    format!("`{}` belongs to {owner}, who has ended", item.name)
                }
                (ItemState::Blocked, Some(owner)) => format!("`{}` of {owner} is blocked: {note}", item.name),
                (ItemState::Failed, Some(owner)) => format!("`{}` of {owner} has failed: {note}", item.name),
                (_, Some(_)) if !waits.is_empty() => format!("`{}` waits for {}", item.name, waits.join(", ")),
                (_, Some(owner)) => format!("{owner} has `{}` and waits", item.name),
            }
        })
        .collect();
    let unmerged = swarm.team.as_ref().map(|team| merge::list_unmerged(swarm, team)).unwrap_or_default();
    let lines: Vec<String> = lines.into_iter().chain(unmerged).collect();
    match lines.is_empty() {
        true => "every item is done; end with `done`".to_owned(),
        false => lines.join("; "),
    }
}
