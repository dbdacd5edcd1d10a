//! The fold of what only a team with a coordinator knows: its plan, its channels, and what its agents are to be told.
//!
//! A notice is a message of [`SUPERVISOR`]: the fold puts it into `notices`, `decide` has it recorded, and the recorded
//! message takes it out. A notice of the type `request` wakes its receiver, one of the type `info` waits for its next turn.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::mailbox::add_posted;
use super::{AgentStage, QueuedMessage, Swarm};
use crate::core::swarm::action::TeamPart;
use crate::core::swarm::feed::Feed;
use crate::core::swarm::merge::{WorkPlace, Worktree};
use crate::core::swarm::plan::{Proposal, TeamPlan};
use crate::core::swarm::rules::Rules;
use crate::core::swarm::touch::{Conflict, Touches};
use crate::types::event::{Content, Event};
use crate::types::swarm::{Action, End, MemberMessage, MessageType, SUPERVISOR};
use crate::types::team::{ItemState, PlanOp, TeamOp, TeamReading};
use crate::types::team_fact::TeamFact;

/// What a swarm with a coordinator has besides.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Team {
    /// Its plan.
    pub(crate) plan: TeamPlan,
    /// Its channels, by name.
    pub(crate) channels: BTreeMap<Arc<str>, Channel>,
    /// What agents are to be told, in order.
    pub(in crate::core::swarm) notices: VecDeque<Notice>,
    /// Proposals of which it is not known yet whether they apply.
    pub(in crate::core::swarm) fresh: BTreeSet<u32>,
    /// When the coordinator's time to decide is over, by proposal, in milliseconds since 1970; empty without a limit.
    pub(in crate::core::swarm) deadlines: BTreeMap<u32, u64>,
    /// Proposals that the coordinator did not decide in time.
    pub(in crate::core::swarm) overdue: BTreeSet<u32>,
    /// A proposal was not decided in time, and the policy lets the swarm fail for that.
    pub(in crate::core::swarm) failed: Option<String>,
    /// How often in a row the coordinator was woken because nothing moves, and did nothing.
    pub(in crate::core::swarm) stalls: u32,
    /// Who changed which files.
    pub(crate) touches: Touches,
    /// How many agents the coordinator has added.
    pub(crate) spawned: u32,
    /// What happened last.
    pub(crate) feed: Feed,
    /// How often each agent has read all that another one did.
    pub(crate) reads: BTreeMap<Arc<str>, u32>,
    /// Its worktrees, by name.
    pub(crate) worktrees: BTreeMap<Arc<str>, Worktree>,
}

/// A channel.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub(crate) struct Channel {
    /// Who takes part.
    pub(crate) members: BTreeSet<Arc<str>>,
    /// Whether others may join.
    pub(crate) open: bool,
}

/// What an agent is to be told.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub(in crate::core::swarm) struct Notice {
    pub to: Arc<str>,
    /// Whether it wakes the agent.
    pub wakes: bool,
    pub words: String,
}

impl Channel {
    /// As the spec declares it.
    pub(crate) fn new(declared: &swarmc_plan::Group) -> Channel {
        let members = declared.members.iter().map(|name| Arc::from(&**name)).collect();
        Channel { members, open: declared.open }
    }
}

impl Notice {
    /// The type of the message that tells it.
    pub(in crate::core::swarm) fn kind(&self) -> MessageType {
        if self.wakes { MessageType::Request } else { MessageType::Info }
    }
}

impl Team {
    /// Whether a fact follows the ones before: versions and proposals are numbered.
    fn is_next(&self, fact: &TeamFact) -> bool {
        match fact {
            TeamFact::PlanUpdated { version, .. } => *version == self.plan.version + 1,
            TeamFact::PlanProposed { proposal, .. } => *proposal == self.plan.last_proposal + 1,
            _ => true,
        }
    }

    pub(super) fn new(rules: &Rules) -> Option<Team> {
        rules.coordinator.as_ref()?;
        Some(Team {
            plan: TeamPlan::from_spec(&rules.items),
            channels: rules.channels.clone(),
            notices: VecDeque::new(),
            fresh: BTreeSet::new(),
            deadlines: BTreeMap::new(),
            overdue: BTreeSet::new(),
            failed: None,
            stalls: 0,
            touches: Touches::default(),
            spawned: 0,
            feed: Feed::default(),
            reads: BTreeMap::new(),
            worktrees: rules.worktrees.clone(),
        })
    }
}

impl Swarm {
    /// The name of the coordinator, in a team that has one.
    pub(crate) fn coordinator(&self) -> Option<&Arc<str>> {
        self.rules.coordinator.as_ref().map(|coordinator| &coordinator.name)
    }

    /// Whether this agent is the coordinator.
    pub(crate) fn is_coordinator(&self, name: &str) -> bool {
        self.coordinator().is_some_and(|coordinator| **coordinator == *name)
    }

    /// The part of an agent.
    pub(crate) fn part_of(&self, name: &str) -> TeamPart {
        match (&self.team, self.is_coordinator(name)) {
            (None, _) => TeamPart::None,
            (Some(_), true) => TeamPart::Lead,
            (Some(_), false) => match self.place_of(name) {
                WorkPlace::Merges(_) => TeamPart::Manager,
                WorkPlace::Workspace | WorkPlace::Worktree(_) => TeamPart::Follow,
            },
        }
    }

    /// Applies a fact of a team.
    pub(super) fn apply_team(&mut self, fact: &TeamFact, at: u64) {
        let Some(team) = &mut self.team else { return };
        // A version or a proposal out of order changes nothing.
        if !team.is_next(fact) {
            return;
        }
        let answered = team.plan.apply(fact);
        match fact {
            TeamFact::PlanUpdated { version, agent, ops, why, proposal } => {
                self.plan_updated((*version, agent), ops, why, answered.zip(*proposal));
            }
            TeamFact::PlanProposed { proposal: id, agent, .. } => {
                self.proposal_made(*id, at);
                self.finish_operation(
                    agent,
                    Some(format!("your proposal is number {id}: a message says what becomes of it")),
                );
            }
            TeamFact::ProposalRefused { proposal, agent, verdict, because } => {
                let Some(refused) = answered else { return };
                self.proposal_refused((*proposal, agent), &refused, (*verdict, because));
            }
            TeamFact::ItemMoved { agent, item, to, note, .. } => {
                if *to == ItemState::Done {
                    self.with_team(|team| team.touches.finish_item(agent, at));
                }
                self.item_moved(agent, item, *to, note.as_deref());
                match to {
                    ItemState::Done => self.worktree_changed(agent, true),
                    ItemState::Running => self.worktree_changed(agent, false),
                    ItemState::Open | ItemState::Blocked | ItemState::Failed => {}
                }
            }
            TeamFact::ItemChecked { agent, .. } | TeamFact::UserTold { agent, .. } => {
                self.finish_operation(agent, None)
            }
            TeamFact::ItemAssigned { agent, to, .. } => {
                self.finish_operation(agent, None);
                to.iter().for_each(|to| self.wake_worker(to));
            }
            TeamFact::Posted { agent, channel, message, .. } => self.deliver_post(agent, channel.as_ref(), message, at),
            TeamFact::ChannelChanged { agent, channel, joined, .. } => {
                self.with_team(|team| {
                    let members = team.channels.get_mut(channel).map(|channel| &mut channel.members);
                    members
                        .map(|members| if *joined { members.insert(Arc::clone(agent)) } else { members.remove(agent) })
                });
                self.finish_operation(agent, None);
            }
            TeamFact::AgentCompleted { agent, response, .. } => {
                let Some(index) =
                    self.find_in_stage(agent, |stage| matches!(stage.acting(), Some(Action::Done { .. })))
                else {
                    return;
                };
                self.agents[index as usize].completed = Some(response.clone());
                let words = match response {
                    Content::Text(text) => format!("{agent} has done its task: {text}"),
                    Content::Artifact { .. } => format!("{agent} has done its task"),
                };
                self.notify_coordinator(true, words);
                self.finish_action(index, None, true);
                self.worktree_changed(agent, true);
            }
            TeamFact::Touched { agent, touch } => {
                if let Some(index) = self.find_in_stage(agent, |stage| *stage == AgentStage::Asking) {
                    self.agents[index as usize].touched += 1;
                }
                self.file_touched(agent, touch, at);
            }
            TeamFact::Conflict { agent, with, path, certain } => {
                let (agent, with, path) = (Arc::clone(agent), Arc::clone(with), Arc::clone(path));
                self.conflict_found(&Conflict { agent, with, path, certain: *certain });
            }
            TeamFact::Intended { agent, text, paths } => {
                let intent = (text.clone(), paths.clone());
                self.with_team(|team| team.touches.intents.insert(Arc::clone(agent), intent));
                self.finish_operation(agent, None);
            }
            TeamFact::ContextRead { agent, what, text } => self.context_read(agent, what, text),
            TeamFact::WorktreeOpened { agent, worktree, manager, members } => {
                self.worktree_opened(worktree, manager, members);
                self.finish_operation(agent, None);
            }
            TeamFact::AgentMoved { by, agent, to } => {
                self.place_agent(agent, to.as_ref());
                self.finish_operation(by, None);
            }
            TeamFact::Integrated { agent, worktree, to, commit, files, note } => {
                self.worktree_integrated((agent, worktree), (*to, commit.as_deref()), files, note);
            }
            TeamFact::Noticed { agent, number, version } => self.take_notices(agent, *number, *version),
            TeamFact::AgentStopped { by, agent, why, .. } => {
                if let Some(index) = self.find_in_stage(agent, |stage| *stage != AgentStage::Done) {
                    self.stop_turn(index);
                    self.enter_stage(index, AgentStage::Ending(End::Stopped, Some(format!("{by} stopped it: {why}"))));
                }
                self.finish_operation(by, None);
            }
        }
    }

    fn plan_updated(
        &mut self,
        (version, by): (u32, &Arc<str>),
        ops: &[PlanOp],
        why: &str,
        accepted: Option<(Proposal, u32)>,
    ) {
        // Who decides a version knows it.
        if let Some(index) = self.find_in_stage(by, |stage| *stage == AgentStage::Asking) {
            self.agents[index as usize].shown = version;
        }
        let edited: Vec<Arc<str>> = ops.iter().map(|op| Arc::clone(op.item())).collect();
        if let Some((accepted, id)) = accepted {
            self.proposal_decided(id);
            let words = format!("your proposal {id} is accepted: the plan is at version {version}");
            self.notify(&accepted.by, true, words);
        }
        let owners = |team: &Team, running: bool| {
            let items = edited.iter().filter_map(|name| team.plan.item(name));
            let items = items.filter(|item| !running || item.state == ItemState::Running);
            items.filter_map(|item| Some((item.owner.clone()?, Arc::clone(&item.name)))).collect::<Vec<_>>()
        };
        for (owner, item) in self.team.as_ref().map(|team| owners(team, true)).unwrap_or_default() {
            self.notify(
                &owner,
                true,
                format!("version {version} of the plan changes `{item}`, on which you work: {why}"),
            );
        }
        self.finish_operation(by, None);
        for (owner, _) in self.team.as_ref().map(|team| owners(team, false)).unwrap_or_default() {
            self.wake_worker(&owner);
        }
    }

    fn item_moved(&mut self, agent: &Arc<str>, item: &Arc<str>, to: ItemState, note: Option<&str>) {
        let Some(team) = &self.team else { return };
        let has_more = team.plan.open_items(agent).next().is_some();
        let waiting = team.plan.items.iter().filter(|other| to == ItemState::Done && other.depends_on.contains(item));
        let waiting: Vec<Arc<str>> = waiting.filter_map(|other| other.owner.clone()).collect();
        let note = note.unwrap_or_default();
        match to {
            ItemState::Running => {
                // Its decision to begin took it out of the queue.
                if let Some(index) = self.find_in_stage(agent, |stage| *stage == AgentStage::Ready) {
                    self.enter_stage(index, AgentStage::Ready);
                }
                return;
            }
            ItemState::Done => {
                let rest = if has_more { "" } else { "; it has no other item" };
                let owner_leads = self.is_coordinator(agent);
                if !owner_leads {
                    self.notify_coordinator(!has_more, format!("{agent} has done `{item}`{rest}: {note}"));
                }
            }
            ItemState::Blocked => self.notify_coordinator(true, format!("{agent} cannot go on with `{item}`: {note}")),
            ItemState::Failed => self.notify_coordinator(true, format!("{agent} gave up `{item}`: {note}")),
            ItemState::Open => {}
        }
        self.finish_operation(agent, None);
        if to == ItemState::Done {
            waiting.iter().for_each(|owner| self.wake_worker(owner));
        }
    }

    fn deliver_post(&mut self, from: &Arc<str>, channel: Option<&Arc<str>>, message: &Content, at: u64) {
        let receivers = self.list_receivers(from, channel);
        for index in receivers {
            let receiver = &mut self.agents[index as usize];
            receiver.letters += 1;
            let message = QueuedMessage {
                seq: receiver.letters,
                from: Arc::clone(from),
                kind: MessageType::Info,
                payload: message.clone(),
                at,
                person: false,
                posted: true,
                left_out: 0,
            };
            add_posted(&mut receiver.mailbox, message);
        }
        if let Some(index) = self.find_in_stage(from, is_operating) {
            self.agents[index as usize].sent += 1;
        }
        self.finish_operation(from, None);
    }

    /// Who receives what an agent writes to a channel, or to everybody.
    pub(in crate::core::swarm) fn list_receivers(&self, from: &Arc<str>, channel: Option<&Arc<str>>) -> Vec<u32> {
        let members = channel.and_then(|name| self.team.as_ref()?.channels.get(name)).map(|channel| &channel.members);
        let hears = |name: &Arc<str>| match channel {
            Some(_) => members.is_some_and(|members| members.contains(name)),
            None => self.may_write(from, name),
        };
        let others = (0..).zip(&self.agents).filter(|(_, agent)| agent.name != *from && !agent.is_done());
        others.filter(|(_, agent)| hears(&agent.name)).map(|(index, _)| index).collect()
    }

    /// The agents in whose mailbox an event puts a message, before it is applied.
    pub fn find_receivers(&self, event: &Event) -> Vec<Arc<str>> {
        match event {
            Event::MessageSent { message, .. } => vec![Arc::clone(&message.to)],
            Event::Team { fact: TeamFact::Posted { agent, channel, .. }, .. } => {
                let receivers = self.list_receivers(agent, channel.as_ref()).into_iter();
                receivers.map(|index| Arc::clone(&self.agents[index as usize].name)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Whether an agent may write to another one: to and from the coordinator everybody may.
    pub(crate) fn may_write(&self, from: &Arc<str>, to: &Arc<str>) -> bool {
        self.is_coordinator(from) || self.is_coordinator(to) || self.rules.may_write(from, to)
    }

    /// A message of the supervisor was recorded: it was the next notice, or says to the coordinator that nothing
    /// moves.
    pub(super) fn notice_sent(&mut self, sent: &MemberMessage) {
        let Some(team) = &mut self.team else { return };
        // The notice of a proposal goes out before all others.
        if team.fresh.pop_first().is_some() {
            return;
        }
        match team.notices.front() {
            Some(notice) if notice.to == sent.to => _ = team.notices.pop_front(),
            Some(_) => {}
            None => team.stalls += 1,
        }
    }

    /// Whether a message wakes its receiver.
    pub(in crate::core::swarm) fn wakes(&self, message: &QueuedMessage) -> bool {
        let is_news = message.posted || message.kind == MessageType::Info && *message.from == *SUPERVISOR;
        self.team.is_none() || message.person || !is_news
    }

    /// An agent of a team has ended: what it had begun is open again, and the coordinator hears of it.
    pub(super) fn agent_left(&mut self, name: &Arc<str>, how: End, error: Option<&str>) {
        let Some(team) = &mut self.team else { return };
        team.plan.release_items(name);
        let open: Vec<String> = team.plan.open_items(name).map(|item| format!("`{}`", item.name)).collect();
        let shared = team.channels.values().filter(|channel| channel.members.contains(name));
        let peers: BTreeSet<Arc<str>> = shared.flat_map(|channel| channel.members.iter().cloned()).collect();
        team.channels.values_mut().for_each(|channel| _ = channel.members.remove(name));
        if how == End::Released || self.is_coordinator(name) {
            return;
        }
        let items = match open.is_empty() {
            true => String::new(),
            false => {
                format!("; its items {} are open: assign them, or spawn an agent that replaces it", open.join(", "))
            }
        };
        let why = error.unwrap_or(how.as_str());
        let unmanaged = self.describe_unmanaged(name);
        self.notify_coordinator(how != End::Stopped, format!("{name} has ended ({why}){items}{unmanaged}"));
        self.wake_managers();
        if how == End::Stopped {
            let told: Vec<&Arc<str>> =
                peers.iter().filter(|peer| *peer != name && !self.is_coordinator(peer)).collect();
            for peer in told {
                self.notify(peer, false, format!("{name} was stopped"));
            }
        }
    }

    /// Where this is the coordinator, it did something about what does not move.
    pub(in crate::core::swarm) fn coordinator_acted(&mut self, agent: &str) {
        if self.is_coordinator(agent) {
            self.with_team(|team| team.stalls = 0);
        }
    }

    /// An agent has done what it wanted.
    pub(in crate::core::swarm) fn finish_operation(&mut self, agent: &Arc<str>, result: Option<String>) {
        self.coordinator_acted(agent);
        if let Some(index) = self.find_in_stage(agent, is_operating) {
            self.finish_action(index, result.map(Content::Text), true);
        }
    }

    /// An agent has read what others did; all that one of them did it reads a few times.
    fn context_read(&mut self, agent: &Arc<str>, what: &TeamReading, text: &Content) {
        let version = self.team.as_ref().map_or(0, |team| team.plan.version);
        match what {
            TeamReading::Transcript { .. } => {
                self.with_team(|team| *team.reads.entry(Arc::clone(agent)).or_default() += 1);
            }
            TeamReading::Plan => {
                if let Some(&index) = self.names.get(agent) {
                    self.agents[index as usize].shown = version;
                }
            }
            TeamReading::Summary { .. } => {}
        }
        self.coordinator_acted(agent);
        if let Some(index) = self.find_in_stage(agent, is_operating) {
            self.finish_action(index, Some(text.clone()), true);
        }
    }

    /// The coordinator has added an agent.
    pub(super) fn agent_added(
        &mut self,
        (name, worktree): (&Arc<str>, Option<&Arc<str>>),
        by: Option<&Arc<str>>,
        items: &[Arc<str>],
        replaces: Option<&Arc<str>>,
    ) {
        let Some(team) = &mut self.team else { return };
        team.plan.add_owner(name, items, replaces);
        if let Some(former) = replaces {
            let rules = &self.rules.channels;
            for (channel, declared) in rules.iter().filter(|(_, channel)| channel.members.contains(former)) {
                let members = &mut team.channels.entry(Arc::clone(channel)).or_insert_with(|| declared.clone()).members;
                members.insert(Arc::clone(name));
            }
        }
        if let Some(by) = by {
            team.spawned += 1;
            self.finish_operation(by, None);
        }
        if let Some(former) = replaces {
            self.replace_in_worktrees(former, name);
        }
        if worktree.is_some() {
            self.place_agent(name, worktree);
        }
        if self.phase >= Some(crate::types::swarm::Phase::Monitoring) {
            self.wake_worker(name);
        }
    }

    /// The whole roster is there: the coordinator begins, and everybody who has something to do.
    pub(super) fn begin_team(&mut self) {
        if self.team.is_none() {
            return;
        }
        for index in 0..self.agents.len() as u32 {
            let name = Arc::clone(&self.agents[index as usize].name);
            match self.is_coordinator(&name) {
                true => self.enter_stage(index, AgentStage::Ready),
                false => self.wake_worker(&name),
            }
        }
    }

    /// What an agent of a team does after an action: it goes on, or waits for work or a message.
    pub(super) fn next_team_stage(
        &mut self,
        index: u32,
        act: Option<&Action>,
        refused: bool,
        operated: bool,
    ) -> AgentStage {
        let agent = &self.agents[index as usize];
        if agent.quiet >= self.rules.convergence.no_progress {
            let name = Arc::clone(&agent.name);
            self.agents[index as usize].quiet = 0;
            if !self.is_coordinator(&name) {
                let turns = self.rules.convergence.no_progress;
                self.notify_coordinator(true, format!("{name} took {turns} turns without progress, and waits"));
            }
            return self.idle_unless_written(index);
        }
        let goes_on = refused
            || match act {
                None | Some(Action::ToolCall { .. } | Action::Operate(TeamOp::Read { .. })) => true,
                // An item that came to be ready during the turn is none that the agent waits with.
                Some(Action::Idle) => operated && self.has_work(index) || self.has_new_item(&agent.name),
                Some(_) if self.is_coordinator(&agent.name) || self.has_open_merge(&agent.name) => true,
                Some(_) => self.has_work(index),
            };
        match goes_on {
            true => AgentStage::Ready,
            false => {
                self.agents[index as usize].quiet = 0;
                self.idle_unless_written(index)
            }
        }
    }

    fn idle_unless_written(&self, index: u32) -> AgentStage {
        match self.agents[index as usize].mailbox.iter().any(|message| self.wakes(message)) {
            true => AgentStage::Ready,
            false => AgentStage::Idle,
        }
    }

    /// Whether an agent has an item to work on, or a task that it has not ended.
    pub(crate) fn has_work(&self, index: u32) -> bool {
        let agent = &self.agents[index as usize];
        let Some(team) = self.team.as_ref().filter(|team| team.plan.version > 0) else { return false };
        let owns = team.plan.items.iter().any(|item| item.owner.as_ref() == Some(&agent.name));
        let task = agent.task.is_some() && agent.completed.is_none() && !owns && !self.is_coordinator(&agent.name);
        task || team.plan.current_item(&agent.name).is_some()
    }

    /// Whether an agent has an item that it has not begun, and may.
    fn has_new_item(&self, name: &str) -> bool {
        let item = self.team.as_ref().and_then(|team| team.plan.current_item(name));
        item.is_some_and(|item| item.state == ItemState::Open)
    }

    /// An agent that waits begins a turn, where it has something to do.
    pub(super) fn wake_worker(&mut self, name: &str) {
        let waits = |stage: &AgentStage| matches!(stage, AgentStage::Idle | AgentStage::Waiting);
        let Some(index) = self.find_in_stage(name, waits) else { return };
        if self.phase >= Some(crate::types::swarm::Phase::Monitoring) && self.has_work(index) {
            self.enter_stage(index, AgentStage::Ready);
        }
    }

    /// The turn of an agent that is under way outside has no use any more.
    pub(in crate::core::swarm) fn stop_turn(&mut self, index: u32) {
        let stage = &self.agents[index as usize].stage;
        if matches!(stage, AgentStage::Ordered | AgentStage::Asking | AgentStage::Calling(_, true)) {
            let turn = self.turn(index);
            self.agenda.cancel.push_back(turn);
        }
    }

    pub(in crate::core::swarm) fn notify_coordinator(&mut self, wakes: bool, words: String) {
        if let Some(coordinator) = self.coordinator().cloned() {
            self.notify(&coordinator, wakes, words);
        }
    }

    pub(in crate::core::swarm) fn notify(&mut self, to: &Arc<str>, wakes: bool, words: String) {
        if self.agent(to).is_some_and(|agent| !agent.is_done()) {
            self.with_team(|team| team.notices.push_back(Notice { to: Arc::clone(to), wakes, words }));
        }
    }

    fn with_team<T>(&mut self, change: impl FnOnce(&mut Team) -> T) -> Option<T> {
        self.team.as_mut().map(change)
    }
}

fn is_operating(stage: &AgentStage) -> bool {
    match stage {
        AgentStage::Acting(act) | AgentStage::Denied(act, _) | AgentStage::Calling(act, _) => act.operation().is_some(),
        _ => false,
    }
}
