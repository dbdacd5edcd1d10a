//! What an agent does while its turn goes on: operations of a program, and what it reads between two of them.
//!
//! In: the swarm, and an action that a program takes by a tool. Out: the event that it gives, as after a turn, or why it is
//! refused. An event of an agent whose turn is open is such an operation: the fold keeps it with the turn, so that a turn
//! that is repeated after a crash does nothing twice, and a replay finds it in the recording.

use std::sync::Arc;

use super::decide::{SwarmCommand, carry_out};
use super::lead::TAKEN;
use super::state::{AgentStage, QueuedMessage, Swarm};
use crate::types::event::Event;
use crate::types::swarm::{Action, MemberMessage, Purpose, TurnId};
use crate::types::team::{ItemState, Refused, TeamOp, TeamReading, Touch};
use crate::types::team_fact::TeamFact;

/// The bytes of messages that an agent reads at once while its turn goes on, but for the first one.
const NOTICE_BYTES: u64 = 8 * 1024;

/// What happens while a turn of an agent goes on.
#[derive(Clone, Debug)]
pub(crate) enum WithinTurn {
    /// It does something by a tool.
    Act(Action),
    /// It reads what others wrote meanwhile: its messages up to a number, and the plan at a version.
    Reads { number: u64, version: u32 },
    /// It changes a file.
    Touches(Touch),
}

/// What an operation comes to.
#[derive(Debug, PartialEq)]
pub(crate) enum Operated {
    /// This is to be recorded.
    Record(Box<Event>),
    /// It reads this of others.
    Read(TeamReading),
    /// The turn did it before its runner was killed.
    Before,
}

/// What waits for an agent while its turn goes on.
#[derive(Debug)]
pub(crate) struct Unread<'s> {
    /// The oldest messages, at most [`TAKEN`].
    pub(crate) messages: Vec<&'s QueuedMessage>,
    /// The version of the plan.
    pub(crate) version: u32,
    /// Whether the agent knows an older one.
    pub(crate) is_newer: bool,
    /// Whether the agent is to read it at once, and not with its next call.
    pub(crate) is_urgent: bool,
}

impl Unread<'_> {
    /// The number of the last message; 0: none.
    pub(crate) fn last_number(&self) -> u64 {
        self.messages.last().map_or(0, |message| message.seq)
    }
}

/// What the operation of a turn that goes on comes to.
///
/// # Errors
/// The turn is over, the action ends turns or needs a person, or it is refused: says what to do instead.
pub(crate) fn operate_within(swarm: &Swarm, turn: &TurnId, act: &Action) -> Result<Operated, String> {
    let Some(index) = find_open(swarm, turn) else {
        return Err("your turn is over: the run accepts no further operations from it".to_owned());
    };
    if let Some(name) = ending_name(act) {
        return Err(format!("`{name}` is no tool: return it as JSON at the end of your turn"));
    }
    let agent = &swarm.agents[index as usize];
    let is_read = matches!(act, Action::Operate(TeamOp::Read { .. }));
    if !is_read && agent.operated.iter().take(agent.repeated as usize).any(|done| is_same(done, act)) {
        return Ok(Operated::Before);
    }
    match carry_out(swarm, index, act) {
        SwarmCommand::Record(event) => match *event {
            Event::ActionRefused { reason, .. } => Err(reason),
            event => Ok(Operated::Record(Box::new(event))),
        },
        SwarmCommand::Agree { .. } => {
            Err("a person must agree to this: return it as JSON at the end of your turn".to_owned())
        }
        SwarmCommand::Read { what, .. } => Ok(Operated::Read(what)),
        SwarmCommand::Call(_) => Err("Git takes its time: return this as JSON at the end of your turn".to_owned()),
        _ => Err("this is no operation of a turn that goes on".to_owned()),
    }
}

/// What waits for the agent of a turn that goes on; none where nothing does.
pub(crate) fn find_unread<'s>(swarm: &'s Swarm, turn: &TurnId) -> Option<Unread<'s>> {
    let agent = &swarm.agents[find_open(swarm, turn)? as usize];
    let version = swarm.team.as_ref()?.plan.version;
    let mut bytes = 0;
    let fits = |message: &&QueuedMessage| {
        let is_first = bytes == 0;
        bytes += message.payload.bytes();
        is_first || bytes <= NOTICE_BYTES
    };
    let messages: Vec<&QueuedMessage> = agent.mailbox.iter().take(TAKEN).take_while(fits).collect();
    let is_newer = agent.shown < version;
    let is_urgent = is_newer || messages.iter().any(|message| swarm.wakes(message));
    (is_newer || !messages.is_empty()).then_some(Unread { messages, version, is_newer, is_urgent })
}

/// The action that an event of an agent is, where its turn goes on. None for what follows from others' events.
pub(crate) fn find_action(event: &Event) -> Option<(&Arc<str>, Action)> {
    Some(match event {
        Event::DataPublished { topic, author, data, .. } => {
            (author, Action::PublishData { topic: Arc::clone(topic), data: data.clone() })
        }
        Event::MessageSent { message: MemberMessage { from, to, kind, payload, person: false, .. }, .. } => {
            (from, Action::SendMessage { to: Arc::clone(to), message_type: *kind, payload: payload.clone() })
        }
        Event::AgentSpawned { agent, plays, task: Some(task), by: Some(by), items, replaces, worktree, .. } => {
            let (plays, name) = (Arc::clone(plays), Some(Arc::clone(agent)));
            let op = TeamOp::SpawnAgent {
                plays,
                name,
                task: task.clone(),
                items: items.clone(),
                replaces: replaces.clone(),
                worktree: worktree.clone(),
            };
            (by, Action::Operate(op))
        }
        Event::Team { fact, .. } => {
            let (agent, op) = find_operation(fact)?;
            (agent, Action::Operate(op))
        }
        _ => return None,
    })
}

fn find_operation(fact: &TeamFact) -> Option<(&Arc<str>, TeamOp)> {
    Some(match fact {
        TeamFact::PlanUpdated { agent, ops, why, proposal: None, .. } => {
            (agent, TeamOp::PlanUpdate { ops: ops.clone(), why: why.clone() })
        }
        TeamFact::PlanUpdated { agent, proposal: Some(proposal), .. } => {
            (agent, TeamOp::PlanDecide { proposal: *proposal, approve: true, because: String::new() })
        }
        TeamFact::PlanProposed { agent, ops, why, .. } => {
            (agent, TeamOp::PlanPropose { ops: ops.clone(), why: why.clone() })
        }
        TeamFact::ProposalRefused { proposal, agent, verdict, because } => {
            let (proposal, approve) = (*proposal, *verdict == Refused::Stale);
            (agent, TeamOp::PlanDecide { proposal, approve, because: because.clone() })
        }
        TeamFact::ItemMoved { agent, item, to, note } => {
            let (item, note) = (Arc::clone(item), note.clone().unwrap_or_default());
            let op = match to {
                ItemState::Done => TeamOp::ItemDone { item, summary: note },
                ItemState::Blocked => TeamOp::ItemBlocked { item, why: note },
                ItemState::Failed => TeamOp::ItemFailed { item, why: note },
                ItemState::Open | ItemState::Running => return None,
            };
            (agent, op)
        }
        TeamFact::ItemChecked { agent, item, .. } => (agent, TeamOp::ItemCheckpoint { item: Arc::clone(item) }),
        TeamFact::ItemAssigned { agent, item, to } => {
            (agent, TeamOp::Assign { item: Arc::clone(item), to: to.clone() })
        }
        TeamFact::Posted { agent, channel, message } => {
            (agent, TeamOp::Post { channel: channel.clone(), message: message.clone() })
        }
        TeamFact::ChannelChanged { agent, channel, joined: true } => {
            (agent, TeamOp::JoinChannel { channel: Arc::clone(channel) })
        }
        TeamFact::ChannelChanged { agent, channel, joined: false } => {
            (agent, TeamOp::LeaveChannel { channel: Arc::clone(channel) })
        }
        TeamFact::AgentStopped { by, agent, why } => {
            (by, TeamOp::StopAgent { agent: Arc::clone(agent), why: why.clone() })
        }
        TeamFact::UserTold { agent, message } => (agent, TeamOp::TellUser { message: message.clone() }),
        TeamFact::ContextRead { agent, what, .. } => (agent, TeamOp::Read { what: what.clone() }),
        TeamFact::Intended { agent, text, paths } => {
            (agent, TeamOp::DeclareIntent { text: text.clone(), paths: paths.clone() })
        }
        TeamFact::AgentCompleted { .. }
        | TeamFact::Noticed { .. }
        | TeamFact::Touched { .. }
        | TeamFact::WorktreeOpened { .. }
        | TeamFact::AgentMoved { .. }
        | TeamFact::Integrated { .. }
        | TeamFact::Conflict { .. } => return None,
    })
}

/// Whether an agent asks once more for what it has done. The name that was chosen for an agent is no part of the wish.
fn is_same(done: &Action, act: &Action) -> bool {
    let (Action::Operate(TeamOp::SpawnAgent { name, .. }), Action::Operate(TeamOp::SpawnAgent { name: None, .. })) =
        (done, act)
    else {
        return done == act;
    };
    let mut named = act.clone();
    if let Action::Operate(TeamOp::SpawnAgent { name: wanted, .. }) = &mut named {
        wanted.clone_from(name);
    }
    *done == named
}

/// The name of an action that ends a turn, and so is no operation of one that goes on.
fn ending_name(act: &Action) -> Option<&'static str> {
    match act {
        Action::PublishData { .. } | Action::SendMessage { .. } | Action::Operate(_) => None,
        Action::ToolCall { .. } => Some("tool_call"),
        Action::RequestHelp { .. } => Some("request_help"),
        Action::Done { .. } => Some("done"),
        Action::Idle => Some("idle"),
    }
}

/// The agent of a turn that goes on, in a team.
fn find_open(swarm: &Swarm, turn: &TurnId) -> Option<u32> {
    let index = swarm.find_current(turn).filter(|_| turn.purpose == Purpose::Act && swarm.team.is_some())?;
    (swarm.agents[index as usize].stage == AgentStage::Asking && !swarm.is_over).then_some(index)
}

impl Swarm {
    /// Keeps what an agent does while its turn goes on.
    pub(super) fn note_operation(&mut self, event: &Event) {
        if self.team.is_none() {
            return;
        }
        let is_open = |stage: &AgentStage| *stage == AgentStage::Asking;
        if let Some((agent, act)) = find_action(event)
            && let Some(index) = self.find_in_stage(agent, is_open)
        {
            let counts = matches!(act, Action::SendMessage { .. } | Action::Operate(TeamOp::Post { .. }));
            let name = Arc::clone(agent);
            let agent = &mut self.agents[index as usize];
            agent.sent += u32::from(counts);
            agent.operated.push(act);
            self.coordinator_acted(&name);
        }
    }

    /// An agent reads, within its turn, what waits for it. A turn that is repeated reads it at its beginning.
    pub(super) fn take_notices(&mut self, agent: &str, number: u64, version: u32) {
        let Some(index) = self.find_in_stage(agent, |stage| *stage == AgentStage::Asking) else { return };
        let agent = &mut self.agents[index as usize];
        agent.shown = agent.shown.max(version);
        while agent.mailbox.front().is_some_and(|message| message.seq <= number) {
            agent.inbox.extend(agent.mailbox.pop_front());
        }
    }

    /// Whether the turn of an agent may end without an action: it has done something by tools, and nothing that it has
    /// begun is open.
    pub(crate) fn may_end_silently(&self, agent: &str) -> bool {
        let (Some(&index), Some(team)) = (self.names.get(agent), &self.team) else { return false };
        let agent = &self.agents[index as usize];
        let mut own = team.plan.items.iter().filter(|item| item.owner.as_ref() == Some(&agent.name)).peekable();
        let has_items = own.peek().is_some();
        let is_at_work = own.any(|item| item.state == ItemState::Running);
        let has_task = agent.task.is_some() && agent.completed.is_none() && !has_items;
        !agent.operated.is_empty() && !is_at_work && (!has_task || self.is_coordinator(&agent.name))
    }
}
