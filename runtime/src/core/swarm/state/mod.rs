//! The state of a swarm: the fold of its events.
//!
//! In: events, in order, each with its time. Out: agents, their mailboxes and histories, the workspace, and what
//! [`decide`](super::decide) has not ordered yet. Invariant: an event that does not fit (the answer of an old attempt,
//! an agent that is not there) changes nothing. No I/O, no clock, no randomness.

mod approval;
mod fold;
mod mailbox;
mod proposals;
mod resume;
mod spent;
mod team;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::rules::Rules;
use crate::core::snapshot::FromPlan;
use crate::types::event::{AttemptId, Content, Reserved};
use crate::types::swarm::{Action, End, Part, Phase, Purpose, TurnId};
use crate::types::team::TeamOp;
use crate::types::usage::{Usage, sum};

pub(crate) use mailbox::QueuedMessage;
pub(super) use team::Notice;
pub(crate) use team::{Channel, Team};

/// A swarm.
#[derive(Debug, Deserialize, Serialize)]
pub struct Swarm {
    /// The attempt that it runs as.
    pub(crate) id: AttemptId,
    #[serde(skip)]
    pub(crate) rules: FromPlan<Rules>,
    /// What names are made from.
    pub(crate) run: Box<str>,
    pub(crate) goal: Content,
    /// The phase that it entered last.
    pub(crate) phase: Option<Phase>,
    /// The tasks of the decomposition, those given away taken out.
    pub(crate) parts: VecDeque<Part>,
    /// Whether the goal was split.
    pub(crate) split: bool,
    /// How many places of the roster are taken.
    pub(crate) placed: u32,
    pub(crate) agents: Vec<Agent>,
    /// Each event finds its agents here.
    pub(crate) names: FxHashMap<Arc<str>, u32>,
    pub(crate) workspace: Workspace,
    /// The supervisor's own turn.
    pub(crate) lead: Lead,
    /// The merged result.
    pub(crate) merged: Option<Content>,
    /// Whether it is over.
    pub(crate) is_over: bool,
    pub(crate) spent: Spent,
    /// What it has besides where it has a coordinator.
    pub(crate) team: Option<Team>,
    /// What is to be decided.
    pub(super) agenda: MemberQueues,
}

/// An agent of a swarm.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Agent {
    pub(crate) name: Arc<str>,
    /// Its declared agent.
    pub(crate) plays: Arc<str>,
    pub(crate) task: Option<Content>,
    /// What teammates see of its task, if that is less.
    pub(crate) brief: Option<Content>,
    /// Who asked for it.
    pub(crate) by: Option<Arc<str>>,
    /// The tools that it may use, where those are not its player's.
    pub(crate) tools: Option<Vec<String>>,
    pub(crate) stage: AgentStage,
    /// From 1.
    pub(crate) iteration: u32,
    /// How often its model was asked, or its tool called, in this iteration: from 1.
    pub(crate) attempt: u32,
    /// How many attempts in a row failed for what may pass.
    pub(crate) failures: u32,
    /// How long it was last to wait before it tries again, in milliseconds.
    pub(super) wait: u64,
    /// Which of its player's fallbacks it asks; 0 for the player itself.
    pub(crate) taker: u32,
    /// The conversation that its program keeps, where it is one.
    pub(crate) conversation: Option<Box<Conversation>>,
    /// What was wrong with its last answer, for the turn in which it may mend that.
    pub(crate) repair: Option<String>,
    pub(crate) mailbox: VecDeque<QueuedMessage>,
    /// The number of the last message that lay in it.
    pub(crate) letters: u64,
    /// What it took out of its mailbox for this iteration.
    pub(crate) inbox: Vec<QueuedMessage>,
    pub(crate) sent: u32,
    /// How many helpers it was given.
    pub(crate) helpers: u32,
    pub(crate) history: Vec<Past>,
    /// Actions in a row that were no progress.
    pub(crate) quiet: u32,
    /// The approval of what it wants in this iteration, and whether it changed the arguments of the call.
    pub(crate) agreed: Option<Agreed>,
    /// Permanent errors of tools in a row.
    pub(crate) errors: u32,
    /// When its first iteration began, moved by the time in which no process ran it.
    pub(crate) began: Option<u64>,
    pub(crate) end: Option<Ended>,
    /// In a team: the version of the plan that its last whole turn showed; 0 before its first one.
    pub(crate) seen: u32,
    /// In a team: the version of the plan that its current turn shows.
    pub(crate) shown: u32,
    /// In a team: what its program has done by tools in the current turn.
    pub(crate) operated: Vec<Action>,
    /// In a team: how many changes of files its program has made in the current turn.
    pub(crate) touched: u32,
    /// How many of `operated` it did before its turn ended early: the turn is repeated.
    pub(crate) repeated: u32,
    /// In a team: what came of its task, once it has ended that.
    pub(crate) completed: Option<Content>,
    pub(crate) spent: Spent,
    /// The models that answered it.
    pub(crate) models: BTreeSet<String>,
    /// What its open turn reserved.
    pub(super) reserved: Reserved,
}

/// A conversation that the program of an agent keeps.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub(crate) struct Conversation {
    /// Its id.
    pub(crate) id: String,
    /// Which of the player's fallbacks talks in it; 0 for the player itself.
    pub(crate) taker: u32,
    /// What its turns have used so far, all together.
    pub(crate) used: Usage,
}

/// The approval of what an agent wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Agreed {
    /// Whether its call has other arguments than it wanted.
    pub(crate) changed: bool,
}

/// What an agent does or waits for.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub(crate) enum AgentStage {
    /// It has no task, and has received no message.
    Waiting,
    /// Its next turn may begin.
    Ready,
    /// Its turn is ordered.
    Ordered,
    /// Its model is being asked.
    Asking,
    /// Its model could not be asked; again at this time.
    Resting(u64),
    /// The driver has to carry out what it wants.
    Acting(Arc<Action>),
    /// Its tool is called, or is to be. The call, and whether that was ordered.
    Calling(Arc<Action>, bool),
    /// Its tool failed for what may pass; again at this time.
    Retrying(Arc<Action>, u64),
    /// It waits for an approval: the number of the request, and since when it waits.
    Pending(Arc<Action>, u32, u64),
    /// What it wants was denied, and why: the driver has to record that.
    Denied(Arc<Action>, String),
    /// The supervisor looks at its request for help.
    Helping(Content, Vec<String>),
    /// It has a helper, and has to receive that news.
    Informed(Arc<str>),
    /// It waits for something to happen.
    Idle,
    /// It has ended, and why it failed: the driver has to record that.
    Ending(End, Option<String>),
    /// It is done.
    Done,
}

/// Where an agent waits for a decision.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Queue {
    /// There is something to do at once.
    AtOnce,
    /// It may begin a turn.
    Ready,
    /// Nothing is to be decided.
    None,
}

impl AgentStage {
    fn queue(&self) -> Queue {
        match self {
            AgentStage::Ready => Queue::Ready,
            AgentStage::Acting(_)
            | AgentStage::Calling(_, false)
            | AgentStage::Helping(..)
            | AgentStage::Denied(..)
            | AgentStage::Informed(_)
            | AgentStage::Ending(..) => Queue::AtOnce,
            AgentStage::Waiting
            | AgentStage::Ordered
            | AgentStage::Asking
            | AgentStage::Resting(_)
            | AgentStage::Calling(_, true)
            | AgentStage::Retrying(..)
            | AgentStage::Pending(..)
            | AgentStage::Idle
            | AgentStage::Done => Queue::None,
        }
    }

    /// What the driver has to carry out, where this is that.
    pub(crate) fn acting(&self) -> Option<&Action> {
        match self {
            AgentStage::Acting(act) => Some(act),
            _ => None,
        }
    }

    /// The operation of a team that is being carried out by Git, as calls of tools are.
    pub(crate) fn git_call(&self) -> Option<&TeamOp> {
        match self {
            AgentStage::Calling(act, _) => act.operation(),
            _ => None,
        }
    }
}

/// How an agent ended.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub(crate) struct Ended {
    pub(crate) how: End,
    pub(crate) response: Option<Content>,
    pub(crate) error: Option<String>,
}

/// An iteration of the past.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub(crate) struct Past {
    pub(crate) iteration: u32,
    /// What was done; none where the answer was no action.
    pub(crate) act: Option<Arc<Action>>,
    /// Its result, if that is not in the action.
    pub(crate) result: Option<Content>,
}

/// What the team shares.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(crate) struct Workspace {
    /// The number of the last entry.
    pub(crate) last: u64,
    /// The latest entries of each topic.
    pub(crate) topics: BTreeMap<Arc<str>, VecDeque<Entry>>,
}

/// An entry of the workspace.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub(crate) struct Entry {
    pub(crate) seq: u64,
    pub(crate) author: Arc<str>,
    pub(crate) data: Content,
    pub(crate) at: u64,
}

/// What was used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize)]
pub(crate) struct Spent {
    pub(crate) calls: u64,
    pub(crate) usage: Usage,
    /// In millionths of a dollar.
    pub(crate) cost: u64,
    /// Whether the price of a turn is unknown.
    pub(crate) unpriced: bool,
    /// What open turns reserve.
    pub(crate) reserved: u64,
}

/// A turn of the supervisor.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(crate) struct Lead {
    pub(crate) purpose: Purpose,
    pub(crate) stage: LeadStage,
    pub(crate) attempt: u32,
    /// How many attempts failed.
    pub(crate) failures: u32,
    /// How long it was last to wait before it tries again, in milliseconds.
    pub(super) wait: u64,
    pub(crate) taker: u32,
    pub(crate) repair: Option<String>,
    pub(super) reserved: Reserved,
}

/// Where the supervisor's turn stands.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub(crate) enum LeadStage {
    /// There is none.
    #[default]
    Nothing,
    Ready,
    Ordered,
    Asking,
    Resting(u64),
    /// It failed for good.
    Failed(String),
}

/// What is to be decided, kept in order so that no decision looks at every agent.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(super) struct MemberQueues {
    /// Agents for which there is something to do at once.
    pub(super) agents: BTreeSet<u32>,
    /// Agents that may begin a turn.
    pub(super) ready: BTreeSet<u32>,
    /// Agents that wait for something to happen.
    pub(super) idle: BTreeSet<u32>,
    /// Agents that wait for their first message.
    pub(super) waiting: BTreeSet<u32>,
    pub(super) timers: BTreeSet<(u64, Timer)>,
    /// Turns and calls whose answers the swarm no longer needs.
    pub(super) cancel: VecDeque<TurnId>,
    /// How many agents are done.
    pub(super) done: u32,
    /// Whether its end was ordered.
    pub(super) finishing: bool,
}

impl MemberQueues {
    fn queue_mut(&mut self, queue: Queue) -> Option<&mut BTreeSet<u32>> {
        match queue {
            Queue::AtOnce => Some(&mut self.agents),
            Queue::Ready => Some(&mut self.ready),
            Queue::None => None,
        }
    }
}

/// The agent or lead of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
pub(super) enum Timer {
    /// The supervisor may try again.
    Lead,
    /// An agent may try again.
    Again(u32),
    /// An agent's time is over.
    Deadline(u32),
    /// The coordinator's time to decide a proposal is over.
    Proposal(u32),
}

impl Swarm {
    /// The swarm of a run, before anything has happened in it.
    pub fn new(id: AttemptId, rules: Arc<Rules>, run: &str, goal: Content) -> Swarm {
        let team = Team::new(&rules);
        Swarm {
            id,
            rules: rules.into(),
            team,
            run: run.into(),
            goal,
            phase: None,
            parts: VecDeque::new(),
            split: false,
            placed: 0,
            agents: Vec::new(),
            names: FxHashMap::default(),
            workspace: Workspace::default(),
            lead: Lead::default(),
            merged: None,
            is_over: false,
            spent: Spent::default(),
            agenda: MemberQueues::default(),
        }
    }

    /// The agent of this name.
    pub(crate) fn agent(&self, name: &str) -> Option<&Agent> {
        self.names.get(name).map(|&agent| &self.agents[agent as usize])
    }

    /// The program of an agent keeps a conversation: another one than before, or one turn more of it.
    pub(super) fn continue_conversation(&mut self, turn: &TurnId, id: &str, used: Usage) {
        let Some(index) = self.find_current(turn).filter(|_| turn.purpose == Purpose::Act) else { return };
        let agent = &mut self.agents[index as usize];
        let before = agent.conversation.take().filter(|before| before.id == id);
        let used = before.map_or(used, |before| sum(before.used, used));
        agent.conversation = Some(Box::new(Conversation { id: id.to_owned(), taker: agent.taker, used }));
    }

    /// When something is to be decided at the latest, in milliseconds since 1970.
    pub(crate) fn due(&self) -> Option<u64> {
        self.agenda.timers.first().map(|&(due, _)| due)
    }

    /// The agents that have something to give, in the order of the roster.
    pub(crate) fn results(&self) -> impl Iterator<Item = &Agent> {
        // Of a team, what its coordinator says is the result.
        let counts = |agent: &&Agent| self.team.is_none() || self.is_coordinator(&agent.name);
        let ended = self.agents.iter().filter(|agent| agent.end.as_ref().is_some_and(|end| end.how.has_result()));
        ended.filter(counts)
    }

    /// The part of the goal that the next place of the roster takes: the part with its name, else the first part that
    /// is not meant for a later place.
    pub(super) fn next_part(&self) -> Option<usize> {
        if self.parts.is_empty() {
            return None;
        }
        let place = self.rules.roster.get(self.placed as usize);
        if place.is_some_and(|place| place.has_task) {
            return None;
        }
        let name = place.and_then(|place| place.name.as_deref());
        let mine = self.parts.iter().position(|part| name.is_some() && part.name.as_deref() == name);
        let later = self.rules.roster.iter().skip(self.placed as usize + 1);
        let later: BTreeSet<&str> = later.filter(|it| !it.has_task).filter_map(|place| place.name.as_deref()).collect();
        mine.or_else(|| {
            self.parts.iter().position(|part| part.name.as_deref().is_none_or(|name| !later.contains(name)))
        })
    }

    /// The declared agent that takes this turn, with what it reserved, where it is a current one.
    pub(crate) fn open_turn(&self, turn: &TurnId) -> Option<(Arc<str>, Reserved)> {
        let agent = self.agent(&turn.agent)?;
        // In a replay its start is what says that a wait is over.
        let asked = matches!(
            agent.stage,
            AgentStage::Ready | AgentStage::Ordered | AgentStage::Asking | AgentStage::Resting(_) | AgentStage::Idle
        );
        let current = asked && agent.iteration == turn.iteration && agent.attempt == turn.attempt;
        current.then(|| (Arc::clone(&agent.plays), agent.reserved))
    }

    /// The same of a turn of the supervisor.
    pub(crate) fn open_lead(&self, turn: &TurnId) -> Option<(Arc<str>, Reserved)> {
        let lead = &self.lead;
        let asked = !matches!(lead.stage, LeadStage::Nothing | LeadStage::Failed(_));
        let player = match lead.purpose {
            Purpose::Synthesize => self.rules.merger.clone(),
            Purpose::Act | Purpose::Decompose => self.rules.lead.clone(),
        };
        let current = asked && lead.purpose == turn.purpose && lead.attempt == turn.attempt;
        player.filter(|_| current).map(|player| (player, lead.reserved))
    }

    /// The turn that an agent takes, or took last.
    pub(crate) fn turn(&self, agent: u32) -> TurnId {
        let agent = &self.agents[agent as usize];
        TurnId {
            agent: Arc::clone(&agent.name),
            purpose: Purpose::Act,
            iteration: agent.iteration,
            attempt: agent.attempt,
        }
    }

    pub(super) fn lead_turn(&self) -> TurnId {
        TurnId {
            agent: crate::types::swarm::SUPERVISOR.into(),
            purpose: self.lead.purpose,
            iteration: 1,
            attempt: self.lead.attempt,
        }
    }

    /// Moves an agent on.
    pub(super) fn enter_stage(&mut self, index: u32, stage: AgentStage) {
        let agent = &mut self.agents[index as usize];
        // It leaves the queues of the old stage first: both stages may use one queue.
        match &agent.stage {
            AgentStage::Idle => _ = self.agenda.idle.remove(&index),
            AgentStage::Waiting => _ = self.agenda.waiting.remove(&index),
            AgentStage::Resting(due) | AgentStage::Retrying(_, due) => {
                self.agenda.timers.remove(&(*due, Timer::Again(index)));
            }
            _ => {}
        }
        match &stage {
            AgentStage::Idle => _ = self.agenda.idle.insert(index),
            AgentStage::Waiting => _ = self.agenda.waiting.insert(index),
            AgentStage::Resting(due) | AgentStage::Retrying(_, due) => {
                self.agenda.timers.insert((*due, Timer::Again(index)));
            }
            AgentStage::Done => {
                self.agenda.done += 1;
                if let Some(deadline) = agent.began.map(|began| began.saturating_add(self.rules.limits.timeout_ms)) {
                    self.agenda.timers.remove(&(deadline, Timer::Deadline(index)));
                }
            }
            _ => {}
        }
        // A stage that has a queue enters it anew: the decision that led to it has taken the agent out.
        let (before, after) = (agent.stage.queue(), stage.queue());
        if before != after
            && let Some(queue) = self.agenda.queue_mut(before)
        {
            queue.remove(&index);
        }
        if let Some(queue) = self.agenda.queue_mut(after) {
            queue.insert(index);
        }
        agent.stage = stage;
    }
}

impl Agent {
    /// What teammates see of its task.
    pub(crate) fn visible_task(&self) -> Option<&Content> {
        self.brief.as_ref().or(self.task.as_ref())
    }

    /// Its turn is to be taken once more: what it has done counts as done.
    pub(super) fn repeat_turn(&mut self) {
        self.repeated = u32::try_from(self.operated.len()).unwrap_or(u32::MAX);
    }

    /// Whether it is done.
    pub(crate) fn is_done(&self) -> bool {
        self.stage == AgentStage::Done
    }
}
