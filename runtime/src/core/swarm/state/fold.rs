//! The fold: how each event changes the state of a swarm.

use std::collections::VecDeque;
use std::sync::Arc;

use super::mailbox::take_read;
use super::spent::Used;
use super::{Agent, AgentStage, Ended, Entry, Lead, LeadStage, Past, QueuedMessage, Spent, Swarm, Timer};
use crate::types::event::{Content, Event, Reserved};
use crate::types::swarm::{Action, Answer, End, Fault, MemberMessage, Phase, Purpose, SUPERVISOR, TurnId};

impl Swarm {
    /// Applies one more event.
    pub fn apply(&mut self, event: &Event, at: u64) {
        if self.is_over {
            return;
        }
        self.note_operation(event);
        if let Some(team) = &mut self.team {
            team.feed.add(event);
        }
        match event {
            Event::PhaseEntered { phase, .. } => self.enter_phase(*phase),
            Event::AgentSpawned { agent, plays, task, brief, by, tools, items, replaces, worktree, .. }
                if !self.names.contains_key(agent) =>
            {
                self.add_agent((agent, plays), (task.clone(), brief.clone()), by.as_ref(), tools.clone());
                self.agent_added((agent, worktree.as_ref()), by.as_ref(), items, replaces.as_ref());
            }
            Event::AgentStarted { agent, .. } => {
                if let Some(index) = self.find_in_stage(agent, |stage| *stage == AgentStage::Ready)
                    && self.agents[index as usize].began.is_none()
                {
                    self.agents[index as usize].began = Some(at);
                    let deadline = at.saturating_add(self.rules.limits.timeout_ms);
                    self.agenda.timers.insert((deadline, Timer::Deadline(index)));
                    // Entered again: the decision to start it has taken it out of the queue.
                    self.enter_stage(index, AgentStage::Ready);
                }
            }
            Event::AgentFinished { agent, how, response, error, .. } => {
                if let Some(index) = self.find_in_stage(agent, |stage| *stage != AgentStage::Done) {
                    let agent = &mut self.agents[index as usize];
                    agent.end = Some(Ended { how: *how, response: response.clone(), error: error.clone() });
                    // An open turn is not settled any more: what it reserved is free again.
                    self.spent.reserve(&std::mem::take(&mut agent.reserved), &Reserved::default());
                    // No prompt needs its messages again.
                    (agent.inbox, agent.mailbox) = (Vec::new(), VecDeque::new());
                    let name = Arc::clone(&agent.name);
                    self.enter_stage(index, AgentStage::Done);
                    self.agent_left(&name, *how, error.as_deref());
                    self.wake_idle();
                }
            }
            Event::MessageSent { message, .. } => self.message_sent(message, at),
            Event::MessageReceived { agent, number, count, .. } => {
                // No event records that an idle agent woke up because no agent was left to wait for.
                if let Some(index) =
                    self.find_in_stage(agent, |stage| matches!(stage, AgentStage::Ready | AgentStage::Idle))
                {
                    let agent = &mut self.agents[index as usize];
                    let read = take_read(&mut agent.mailbox, *number, *count);
                    // A message that it has taken already does not wake it.
                    let is_fresh = !read.is_empty();
                    agent.inbox.extend(read);
                    if is_fresh {
                        self.enter_stage(index, AgentStage::Ready);
                    }
                }
            }
            Event::DataPublished { number, topic, author, data, .. } => {
                self.publish_entry(*number, topic, author, data, at)
            }
            Event::TurnStarted { turn, reserved, .. } => self.turn_started(turn, reserved.unwrap_or_default()),
            Event::TurnRejoined { turn, .. } => self.turn_rejoined(turn),
            Event::TurnEnded { turn, answer, usage, cost, model, session, .. } => {
                let used = Used { usage: *usage, cost: *cost };
                // Before the end of the turn, with which the agent enters another iteration.
                session.iter().for_each(|id| self.continue_conversation(turn, id, used.usage.unwrap_or_default()));
                match turn.purpose {
                    Purpose::Act => self.turn_ended(turn, answer, &used, model.as_deref(), at),
                    Purpose::Decompose | Purpose::Synthesize => self.lead_ended(turn, answer, &used, at),
                }
            }
            Event::ToolStarted { turn, .. } => {
                let Some(index) = self.find_current(turn) else { return };
                let called = match &self.agents[index as usize].stage {
                    AgentStage::Calling(act, _) | AgentStage::Retrying(act, _) => Some(Arc::clone(act)),
                    AgentStage::Acting(act) if act.operation().is_some() => Some(Arc::clone(act)),
                    _ => None,
                };
                if let Some(act) = called {
                    self.enter_stage(index, AgentStage::Calling(act, true));
                }
            }
            Event::ToolEnded { turn, result, fault, .. } => self.tool_ended(turn, result, *fault, at),
            Event::ActionRefused { agent, reason, .. } => {
                let wanted = |stage: &AgentStage| {
                    matches!(stage, AgentStage::Acting(_) | AgentStage::Helping(..) | AgentStage::Denied(..))
                        || stage.git_call().is_some()
                };
                if let Some(index) = self.find_in_stage(agent, wanted) {
                    let was_git = matches!(self.agents[index as usize].stage, AgentStage::Calling(..));
                    self.finish_action(index, Some(Content::Text(reason.clone())), false);
                    if was_git {
                        self.free_branch(agent);
                    }
                }
            }
            Event::AgentIdled { agent, .. } => {
                if let Some(index) = self.find_in_stage(agent, |stage| stage.acting() == Some(&Action::Idle)) {
                    let operated = !self.agents[index as usize].operated.is_empty();
                    self.finish_action(index, None, operated);
                    // What came while it was asked is what it would wait for.
                    let ttl = self.rules.ttl_ms;
                    let agent = &self.agents[index as usize];
                    if self.team.is_none()
                        && agent.stage == AgentStage::Ready
                        && agent.mailbox.iter().all(|letter| letter.is_expired(ttl, at))
                    {
                        self.enter_stage(index, AgentStage::Idle);
                    }
                }
            }
            Event::HelpRequested { agent, description, skills, .. } => {
                let asks = |stage: &AgentStage| matches!(stage.acting(), Some(Action::RequestHelp { .. }));
                if let Some(index) = self.find_in_stage(agent, asks) {
                    self.enter_stage(index, AgentStage::Helping(description.clone(), skills.clone()));
                }
            }
            Event::SwarmFinished { .. } => self.is_over = true,
            Event::Team { fact, .. } => self.apply_team(fact, at),
            // What happens outside of swarms.
            _ => {}
        }
    }

    /// The agent of an event, if the event is possible in its stage.
    pub(in crate::core::swarm) fn find_in_stage(&self, name: &str, fits: impl Fn(&AgentStage) -> bool) -> Option<u32> {
        self.names.get(name).copied().filter(|&index| fits(&self.agents[index as usize].stage))
    }

    /// The agent whose current turn this is.
    pub(in crate::core::swarm) fn find_current(&self, turn: &TurnId) -> Option<u32> {
        let &index = self.names.get(&turn.agent)?;
        let agent = &self.agents[index as usize];
        (agent.iteration == turn.iteration && agent.attempt == turn.attempt).then_some(index)
    }

    fn enter_phase(&mut self, phase: Phase) {
        // Phases only go forward; none at all is less than each of them.
        if self.phase >= Some(phase) {
            return;
        }
        self.phase = Some(phase);
        if phase == Phase::Monitoring {
            self.begin_team();
        }
        let purpose = match phase {
            Phase::Planning => Purpose::Decompose,
            Phase::Synthesizing => Purpose::Synthesize,
            Phase::Spawning | Phase::Monitoring => return,
        };
        self.lead = Lead { purpose, stage: LeadStage::Ready, attempt: 1, ..Lead::default() };
        // Its end was ordered, where the only result has to be brought into the form of the output first.
        self.agenda.finishing = false;
    }

    fn add_agent(
        &mut self,
        (name, plays): (&Arc<str>, &Arc<str>),
        (task, brief): (Option<Content>, Option<Content>),
        by: Option<&Arc<str>>,
        tools: Option<Vec<String>>,
    ) {
        let index = u32::try_from(self.agents.len()).expect("agents are limited");
        // An agent of a team begins when there is a plan, and something in it for the agent.
        let stage = match (&self.team, &task) {
            (Some(_), _) => AgentStage::Idle,
            (None, Some(_)) => AgentStage::Ready,
            (None, None) => AgentStage::Waiting,
        };
        self.names.insert(Arc::clone(name), index);
        self.agents.push(Agent {
            name: Arc::clone(name),
            plays: Arc::clone(plays),
            task,
            brief,
            by: by.cloned(),
            tools,
            stage: AgentStage::Waiting,
            iteration: 1,
            attempt: 1,
            failures: 0,
            wait: 0,
            taker: 0,
            conversation: None,
            repair: None,
            mailbox: VecDeque::new(),
            letters: 0,
            inbox: Vec::new(),
            sent: 0,
            helpers: 0,
            history: Vec::new(),
            quiet: 0,
            agreed: None,
            errors: 0,
            began: None,
            end: None,
            seen: 0,
            shown: 0,
            operated: Vec::new(),
            touched: 0,
            repeated: 0,
            completed: None,
            spent: Spent::default(),
            models: std::collections::BTreeSet::new(),
            reserved: Reserved::default(),
        });
        // By this way alone it comes into the queues.
        self.enter_stage(index, stage);
        match by {
            Some(by) => {
                if let Some(asker) = self.find_in_stage(by, |stage| matches!(stage, AgentStage::Helping(..))) {
                    self.agents[asker as usize].helpers += 1;
                    self.enter_stage(asker, AgentStage::Informed(Arc::clone(name)));
                }
            }
            None if self.is_coordinator(name) => {}
            None => {
                // Before the place counts as taken: which part it has depends on it.
                if let Some(part) = self.next_part() {
                    self.parts.remove(part);
                }
                self.placed += 1;
            }
        }
    }

    fn message_sent(&mut self, sent: &MemberMessage, at: u64) {
        let Some(&to) = self.names.get(&sent.to) else { return };
        let is_supervisor = *sent.from == *SUPERVISOR && !sent.person;
        if !is_supervisor && !sent.person && !self.names.contains_key(&sent.from) {
            return;
        }
        let receiver = &mut self.agents[to as usize];
        if sent.number != receiver.letters + 1 {
            return;
        }
        receiver.letters = sent.number;
        if !receiver.is_done() {
            let (from, payload) = (Arc::clone(&sent.from), sent.payload.clone());
            receiver.mailbox.push_back(QueuedMessage {
                seq: sent.number,
                from,
                kind: sent.kind,
                payload,
                at,
                person: sent.person,
                posted: false,
                left_out: 0,
            });
            let receiver = &self.agents[to as usize];
            if matches!(receiver.stage, AgentStage::Idle | AgentStage::Waiting)
                && receiver.mailbox.back().is_some_and(|message| self.wakes(message))
            {
                self.enter_stage(to, AgentStage::Ready);
            }
        }
        // No action of an agent ends with what a person writes.
        if sent.person {
            return;
        }
        if is_supervisor && self.team.is_some() {
            return self.notice_sent(sent);
        }
        if is_supervisor
            && let Some(asker) = self.find_in_stage(&sent.to, |stage| matches!(stage, AgentStage::Informed(_)))
        {
            let result = Content::Text("the supervisor has answered: see the inbox".to_owned());
            return self.finish_action(asker, Some(result), false);
        }
        let writes = |stage: &AgentStage| matches!(stage.acting(), Some(Action::SendMessage { .. }));
        if let Some(from) = self.find_in_stage(&sent.from, writes) {
            self.agents[from as usize].sent += 1;
            self.coordinator_acted(&sent.from);
            self.finish_action(from, None, self.rules.is_progress(false, true));
        }
    }

    fn publish_entry(&mut self, seq: u64, topic: &Arc<str>, author: &Arc<str>, data: &Content, at: u64) {
        if seq != self.workspace.last + 1 {
            return;
        }
        self.workspace.last = seq;
        let entries = self.workspace.topics.entry(Arc::clone(topic)).or_default();
        entries.push_back(Entry { seq, author: Arc::clone(author), data: data.clone(), at });
        if entries.len() > self.rules.per_topic as usize {
            entries.pop_front();
        }
        let publishes = |stage: &AgentStage| matches!(stage.acting(), Some(Action::PublishData { .. }));
        if let Some(index) = self.find_in_stage(author, publishes) {
            self.finish_action(index, None, self.rules.is_progress(true, false));
        }
        self.wake_idle();
    }

    /// Something happened that agents who wait may want to know. Agents of a team wait for work or a message.
    fn wake_idle(&mut self) {
        if self.team.is_some() {
            return;
        }
        // The other stage takes it out of the set, so that this ends.
        while let Some(index) = self.agenda.idle.first().copied() {
            self.enter_stage(index, AgentStage::Ready);
        }
    }

    fn turn_started(&mut self, turn: &TurnId, reserved: Reserved) {
        if turn.purpose != Purpose::Act {
            let open = matches!(self.lead.stage, LeadStage::Ready | LeadStage::Ordered | LeadStage::Resting(_));
            if open && turn.purpose == self.lead.purpose && turn.attempt == self.lead.attempt {
                self.lead.stage = LeadStage::Asking;
                let before = std::mem::replace(&mut self.lead.reserved, reserved);
                self.spent.reserve(&before, &reserved);
            }
            return;
        }
        // No other event records that a wait is over, or that an agent woke up.
        let open = |stage: &AgentStage| {
            matches!(stage, AgentStage::Ready | AgentStage::Ordered | AgentStage::Resting(_) | AgentStage::Idle)
        };
        if let Some(index) = self.find_current(turn).filter(|&index| open(&self.agents[index as usize].stage)) {
            let before = std::mem::replace(&mut self.agents[index as usize].reserved, reserved);
            self.spent.reserve(&before, &reserved);
            self.agents[index as usize].touched = 0;
            if let Some(team) = &self.team {
                self.agents[index as usize].shown = team.plan.version;
            }
            self.enter_stage(index, AgentStage::Asking);
        }
    }

    fn turn_ended(&mut self, turn: &TurnId, answer: &Answer, used: &Used, model: Option<&str>, at: u64) {
        let asked = |stage: &AgentStage| matches!(stage, AgentStage::Ready | AgentStage::Ordered | AgentStage::Asking);
        let Some(index) = self.find_current(turn).filter(|&index| asked(&self.agents[index as usize].stage)) else {
            return;
        };
        let last = self.rules.limits.iterations;
        let retries = self.rules.turn.retries;
        let agent = &mut self.agents[index as usize];
        self.spent.settle(&std::mem::take(&mut agent.reserved), used);
        agent.spent.settle(&Reserved::default(), used);
        agent.models.extend(model.map(str::to_owned));
        match answer {
            Answer::Acts(act) => {
                (agent.repair, agent.failures) = (None, 0);
                // No turn would read the result of an action in the last iteration: it is not carried out.
                if !matches!(**act, Action::Done { .. } | Action::Operate(_)) && agent.iteration >= last {
                    agent.history.push(Past { iteration: agent.iteration, act: Some(Arc::clone(act)), result: None });
                    return self.enter_stage(index, AgentStage::Ending(End::Exhausted, None));
                }
                agent.attempt = 1;
                match **act {
                    Action::ToolCall { .. } => {
                        agent.quiet = 0;
                        self.enter_stage(index, AgentStage::Calling(Arc::clone(act), false));
                    }
                    _ => self.enter_stage(index, AgentStage::Acting(Arc::clone(act))),
                }
            }
            // Once in an iteration: a second invalid answer ends it without an action.
            Answer::Invalid(wrong) if agent.repair.is_none() => {
                agent.repair = Some(wrong.clone());
                agent.attempt += 1;
                self.enter_stage(index, AgentStage::Ready);
            }
            Answer::Invalid(wrong) => self.came_to(index, None, Some(Content::Text(wrong.clone())), false),
            // No retry helps against a budget that is spent.
            Answer::Failed { fault: Fault::Budget, message } => {
                self.enter_stage(index, AgentStage::Ending(End::OverBudget, Some(message.clone())));
            }
            Answer::Failed { message, fault } => {
                agent.failures += 1;
                agent.attempt += 1;
                agent.repeat_turn();
                let fallbacks = self.rules.fallbacks.get(&agent.plays).copied().unwrap_or(0);
                let stage = match fault.pause() {
                    Some(after_ms) if agent.failures <= retries => {
                        // The provider's own pause counts where it is longer.
                        agent.wait = self.rules.backoff(agent.failures).max(after_ms);
                        AgentStage::Resting(at.saturating_add(agent.wait))
                    }
                    _ if agent.taker < fallbacks => {
                        // A fallback has all the retries for itself.
                        (agent.taker, agent.failures) = (agent.taker + 1, 0);
                        AgentStage::Ready
                    }
                    _ if *fault == Fault::Crashed => AgentStage::Ending(End::Crashed, Some(message.clone())),
                    _ => AgentStage::Ending(End::Unreachable, Some(message.clone())),
                };
                self.enter_stage(index, stage);
            }
            // An agent's own turn does not ask for these.
            Answer::Split(_) | Answer::Merged(_) => {}
        }
    }

    fn tool_ended(&mut self, turn: &TurnId, result: &Content, fault: Option<Fault>, at: u64) {
        let Some(index) = self.find_current(turn) else { return };
        let act = match &self.agents[index as usize].stage {
            AgentStage::Calling(act, _) => Arc::clone(act),
            AgentStage::Denied(act, _) if matches!(**act, Action::ToolCall { .. }) => Arc::clone(act),
            _ => return,
        };
        let agent = &mut self.agents[index as usize];
        match fault {
            Some(Fault::Transient { after_ms }) => {
                agent.failures += 1;
                agent.attempt += 1;
                agent.wait = self.rules.backoff(agent.failures).max(after_ms);
                let due = at.saturating_add(agent.wait);
                self.enter_stage(index, AgentStage::Retrying(act, due));
            }
            Some(Fault::Permanent | Fault::Crashed | Fault::Budget) => {
                agent.errors += 1;
                let stuck = agent.errors >= self.rules.convergence.errors;
                self.came_to(index, Some(act), Some(result.clone()), true);
                // After `came_to`, which has chosen another stage.
                if stuck {
                    self.enter_stage(
                        index,
                        AgentStage::Ending(End::ToolErrors, Some("consecutive tool errors".to_owned())),
                    );
                }
            }
            None => {
                agent.errors = 0;
                self.came_to(index, Some(act), Some(result.clone()), true);
            }
        }
    }

    /// What an agent wanted was carried out, or refused.
    pub(super) fn finish_action(&mut self, index: u32, result: Option<Content>, progress: bool) {
        let act = match &self.agents[index as usize].stage {
            AgentStage::Acting(act) | AgentStage::Denied(act, _) => Some(Arc::clone(act)),
            AgentStage::Calling(act, _) if act.operation().is_some() => Some(Arc::clone(act)),
            AgentStage::Helping(description, skills) => {
                Some(Action::RequestHelp { description: description.clone(), skills: skills.clone() }.into())
            }
            AgentStage::Informed(helper) => {
                let description = Content::Text(format!("{helper} helps"));
                Some(Action::RequestHelp { description, skills: Vec::new() }.into())
            }
            _ => None,
        };
        self.came_to(index, act, result, progress);
    }

    /// An iteration is over.
    fn came_to(&mut self, index: u32, act: Option<Arc<Action>>, result: Option<Content>, progress: bool) {
        let agent = &mut self.agents[index as usize];
        agent.quiet = if progress { 0 } else { agent.quiet + 1 };
        let refused = result.is_some() && !progress;
        agent.history.push(Past { iteration: agent.iteration, act: act.clone(), result });
        agent.inbox.clear();
        let operated = !std::mem::take(&mut agent.operated).is_empty();
        agent.repeated = 0;
        agent.seen = agent.shown;
        agent.iteration += 1;
        (agent.attempt, agent.failures, agent.repair, agent.agreed) = (1, 0, None, None);
        let stage = if self.team.is_none() && agent.quiet >= self.rules.convergence.no_progress {
            AgentStage::Ending(End::Converged, None)
        } else if agent.iteration > self.rules.limits.iterations {
            AgentStage::Ending(End::Exhausted, None)
        } else if self.team.is_some() {
            self.next_team_stage(index, act.as_deref(), refused, operated)
        } else {
            AgentStage::Ready
        };
        self.enter_stage(index, stage);
    }

    fn lead_ended(&mut self, turn: &TurnId, answer: &Answer, used: &Used, at: u64) {
        let lead = &mut self.lead;
        let asked = matches!(lead.stage, LeadStage::Ready | LeadStage::Ordered | LeadStage::Asking);
        if !asked || turn.purpose != lead.purpose || turn.attempt != lead.attempt {
            return;
        }
        self.spent.settle(&std::mem::take(&mut lead.reserved), used);
        let (limit, player) = match lead.purpose {
            Purpose::Synthesize => (self.rules.synthesize, &self.rules.merger),
            Purpose::Act | Purpose::Decompose => (self.rules.decompose, &self.rules.lead),
        };
        let fallbacks = player.as_ref().and_then(|player| self.rules.fallbacks.get(player)).copied().unwrap_or(0);
        let (message, wait) = match answer {
            Answer::Split(parts) if lead.purpose == Purpose::Decompose => {
                lead.stage = LeadStage::Nothing;
                self.parts = parts.iter().cloned().collect();
                self.split = true;
                return;
            }
            Answer::Merged(result) if lead.purpose == Purpose::Synthesize => {
                lead.stage = LeadStage::Nothing;
                self.merged = Some(result.clone());
                return;
            }
            Answer::Invalid(wrong) => {
                lead.repair = Some(wrong.clone());
                (wrong.clone(), Some(0))
            }
            Answer::Failed { message, fault } => {
                (message.clone(), fault.pause().map(|after_ms| self.rules.backoff(lead.failures + 1).max(after_ms)))
            }
            Answer::Acts(_) | Answer::Split(_) | Answer::Merged(_) => return,
        };
        lead.failures += 1;
        lead.attempt += 1;
        lead.stage = match wait {
            // An invalid answer needs no pause: the provider itself works.
            Some(0) if lead.failures <= limit.retries => LeadStage::Ready,
            Some(wait) if lead.failures <= limit.retries => {
                lead.wait = wait;
                return self.rest_lead(at.saturating_add(wait));
            }
            _ if lead.taker < fallbacks && !matches!(answer, Answer::Failed { fault: Fault::Budget, .. }) => {
                (lead.taker, lead.failures) = (lead.taker + 1, 0);
                LeadStage::Ready
            }
            _ => LeadStage::Failed(message),
        };
    }

    /// The supervisor tries again at this time.
    pub(super) fn rest_lead(&mut self, due: u64) {
        self.agenda.timers.insert((due, Timer::Lead));
        self.lead.stage = LeadStage::Resting(due);
    }
}
