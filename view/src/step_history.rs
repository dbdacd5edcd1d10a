//! What the journal tells of one step: its attempts, requests, artifacts and envelopes, and the turns of its swarm.
//!
//! In: the records of a run, in order. Out: references into them; texts that lie beside the journal are not read. The
//! report of the run says where the step stands, the history how it got there.

use std::collections::BTreeMap;
use std::sync::Arc;

use swarmc_plan::RequestTimeout;
use swarmc_runtime::artifact::ArtifactMeta;
use swarmc_runtime::swarm::{Answer, MemberMessage, TurnId};
use swarmc_runtime::{Content, Event, InboxMessage, Record, StepId, TeamFact, Usage, Verdict};

use crate::approvals::OpenRequest;

/// What the journal tells of one step.
#[derive(Debug)]
pub struct StepHistory<'r> {
    /// Its attempts, by number.
    pub attempts: BTreeMap<u32, AttemptHistory<'r>>,
    /// The requests for approval of its agents, with their answers.
    pub requests: Vec<(OpenRequest, Option<&'r Verdict>)>,
    /// Its artifacts, with the attempts that they belong to.
    pub artifacts: Vec<(u32, &'r ArtifactMeta)>,
    /// The envelopes for a step of its name, in any call, but for those that another round of it read.
    pub received: Vec<Envelope<'r>>,
    /// The envelopes that it sent.
    pub sent: Vec<Envelope<'r>>,
    /// What the agents of its swarm did in its last attempt.
    agents: BTreeMap<&'r str, AgentHistory<'r>>,
    step: StepId,
    /// What the run does with a request without an answer in time.
    on_timeout: Option<RequestTimeout>,
    /// The last attempt, and whether it goes on.
    attempt: u32,
    is_open: bool,
    /// The envelopes that the next attempt reads, and those that another round of the step read.
    taken: Vec<&'r Arc<str>>,
    taken_elsewhere: Vec<&'r Arc<str>>,
}

/// An attempt of a step.
#[derive(Debug, Default)]
pub struct AttemptHistory<'r> {
    /// The agent that sums up files in it for the attempt after it.
    pub summarizer: Option<&'r str>,
    /// What an agent that works by files left in its folder.
    pub files: Option<&'r Content>,
    /// What its agent reported last.
    pub report: Option<&'r Content>,
}

/// An envelope.
#[derive(Debug)]
pub struct Envelope<'r> {
    /// What was sent.
    pub letter: &'r InboxMessage,
    /// The call that its receiver is in.
    pub within: &'r Option<Arc<str>>,
    /// When it was sent, in milliseconds since 1970.
    pub at: u64,
    /// The attempt that read it, or that sent it.
    pub attempt: Option<u32>,
}

/// What an agent of a swarm did.
#[derive(Debug, Default)]
pub struct AgentHistory<'r> {
    /// Its turns, in order.
    pub turns: Vec<AgentTurn<'r>>,
    /// Its mailbox, by the numbers of the messages.
    pub mailbox: BTreeMap<u64, MailboxEntry<'r>>,
}

/// One turn of a model.
#[derive(Debug)]
pub struct AgentTurn<'r> {
    /// Which one.
    pub turn: &'r TurnId,
    /// How it ended; none while it goes on.
    pub end: Option<TurnEnd<'r>>,
    /// What its action led to, where that is not obvious.
    pub effects: Vec<TurnEffect<'r>>,
}

/// The end of a turn.
#[derive(Clone, Copy, Debug)]
pub struct TurnEnd<'r> {
    /// What the model answered.
    pub answer: &'r Answer,
    /// The tokens that it took.
    pub usage: Option<Usage>,
    /// What that cost in millionths of a dollar, where it is known.
    pub cost: Option<u64>,
    /// The model, as it calls itself.
    pub model: Option<&'r str>,
}

/// What an action of an agent led to.
#[derive(Clone, Copy, Debug)]
pub enum TurnEffect<'r> {
    /// A tool answered.
    Result(&'r Content),
    /// A tool failed.
    Failed(&'r Content),
    /// It was refused, for this reason.
    Refused(&'r str),
    /// This helper was spawned.
    Spawned(&'r str),
    /// An approval was requested, with this number.
    Requested(u32),
}

/// A message in the mailbox of an agent.
#[derive(Debug)]
pub struct MailboxEntry<'r> {
    /// What was sent.
    pub sent: &'r MemberMessage,
    /// When, in milliseconds since 1970.
    pub at: u64,
    /// Whether the agent took it out.
    pub received: bool,
}

impl<'r> StepHistory<'r> {
    /// What the records of a run tell of `step`; the run treats requests without an answer in time as `on_timeout` says.
    pub(crate) fn collect(records: &'r [Record], step: &StepId, on_timeout: Option<RequestTimeout>) -> StepHistory<'r> {
        let mut history = StepHistory {
            attempts: BTreeMap::new(),
            requests: Vec::new(),
            artifacts: Vec::new(),
            received: Vec::new(),
            sent: Vec::new(),
            agents: BTreeMap::new(),
            step: step.clone(),
            on_timeout,
            attempt: 0,
            is_open: false,
            taken: Vec::new(),
            taken_elsewhere: Vec::new(),
        };
        records.iter().for_each(|record| history.apply(record));
        let (received, elsewhere) = (&mut history.received, &history.taken_elsewhere);
        received.retain(|known| known.attempt.is_some() || !elsewhere.contains(&&known.letter.id));
        history
    }

    /// What an agent of its swarm did; nothing of one that did nothing.
    pub fn agent(&self, name: &str) -> Option<&AgentHistory<'r>> {
        self.agents.get(name)
    }

    /// The turns of the agents of its swarm, by the names of the agents.
    pub fn turns(&self) -> impl Iterator<Item = (&'r str, &'r TurnId)> {
        self.agents.iter().flat_map(|(name, agent)| agent.turns.iter().map(|turn| (*name, turn.turn)))
    }

    /// The request of this number, with its answer.
    pub fn find_request(&self, id: u32) -> Option<&(OpenRequest, Option<&'r Verdict>)> {
        self.requests.iter().rev().find(|(asked, _)| asked.request.id == id)
    }

    fn apply(&mut self, record: &'r Record) {
        self.apply_envelope(record);
        if let Some((step, attempt, artifacts)) = stored_artifacts(&record.event)
            && *step == self.step
        {
            self.artifacts.extend(artifacts.iter().map(|artifact| (attempt, artifact)));
        }
        match &record.event {
            Event::AttemptStarted { step, attempt, summarizer, .. } if *step == self.step => {
                self.attempts.entry(*attempt).or_default().summarizer = summarizer.as_deref();
            }
            Event::AttemptEnded { step, attempt, outcome } if *step == self.step => {
                let known = self.attempts.entry(*attempt).or_default();
                known.files = outcome.files.as_deref().or(known.files);
            }
            Event::StatusReported { step, attempt, report } if *step == self.step => {
                self.attempts.entry(*attempt).or_default().report = Some(report);
            }
            Event::ApprovalAsked { step, request, .. } if *step == self.step => {
                self.add_effect(&request.agent, TurnEffect::Requested(request.id));
                let (step, request, since, on_timeout) = (step.clone(), request.clone(), record.at, self.on_timeout);
                self.requests.push((OpenRequest { step, request, since, on_timeout }, None));
            }
            Event::ApprovalAnswered { step, verdict, .. } if *step == self.step => {
                let asked = self.requests.iter_mut().rev().find(|(asked, _)| asked.request.id == verdict.id);
                asked.into_iter().for_each(|(_, answer)| *answer = Some(verdict));
            }
            event if event.swarm().is_some_and(|swarm| swarm.step == self.step) => {
                self.apply_swarm(event, record.at);
            }
            _ => {}
        }
    }

    fn apply_envelope(&mut self, record: &'r Record) {
        let (step, at) = (&self.step, record.at);
        match &record.event {
            Event::Sent { from: Some(from), within, letter, .. } if from == step => {
                self.sent.push(Envelope { letter, within, at, attempt: Some(self.attempt) });
            }
            Event::Sent { to, instance, within, letter, .. } if *to == step.name && *instance == step.instance => {
                self.received.push(Envelope { letter, within, at, attempt: None });
            }
            // A turn that goes on has read them.
            Event::InputsTaken { step: by, inputs } if by == step && self.is_open => {
                inputs.iter().for_each(|id| self.mark_read(id));
            }
            Event::InputsTaken { step: by, inputs } if by == step => self.taken.extend(inputs),
            Event::InputsTaken { step: by, inputs } if by.name == step.name => self.taken_elsewhere.extend(inputs),
            Event::AttemptStarted { step: by, attempt, .. } | Event::AttemptRejoined { step: by, attempt }
                if by == step =>
            {
                (self.attempt, self.is_open) = (*attempt, true);
                std::mem::take(&mut self.taken).into_iter().for_each(|id| self.mark_read(id));
            }
            Event::AttemptEnded { step: by, .. } if by == step => self.is_open = false,
            // The process of the attempt is gone: what is taken from now on is for the next one.
            Event::RunResumed | Event::RunReopened { .. } => self.is_open = false,
            _ => {}
        }
    }

    /// The last attempt has read an envelope.
    fn mark_read(&mut self, id: &Arc<str>) {
        if let Some(known) = self.received.iter_mut().find(|known| known.letter.id == *id) {
            known.attempt = Some(self.attempt);
        }
    }

    fn apply_swarm(&mut self, event: &'r Event, at: u64) {
        match event {
            Event::SwarmStarted { .. } => self.agents.clear(),
            Event::TurnStarted { turn, .. } => {
                let turns = &mut self.agents.entry(&turn.agent).or_default().turns;
                // One that a killed run left open is taken again.
                turns.retain(|known| known.turn != turn || known.end.is_some());
                turns.push(AgentTurn { turn, end: None, effects: Vec::new() });
            }
            Event::TurnEnded { turn, answer, usage, cost, model, .. } => {
                let agent = self.agents.get_mut(&*turn.agent);
                let known = agent.and_then(|agent| agent.turns.iter_mut().rev().find(|known| known.turn == turn));
                if let Some(known) = known {
                    known.end = Some(TurnEnd { answer, usage: *usage, cost: *cost, model: model.as_deref() });
                }
            }
            Event::ToolEnded { turn, result, fault: None, .. } => {
                self.add_effect(&turn.agent, TurnEffect::Result(result));
            }
            Event::ToolEnded { turn, result, .. } => self.add_effect(&turn.agent, TurnEffect::Failed(result)),
            Event::ActionRefused { agent, reason, .. } => self.add_effect(agent, TurnEffect::Refused(reason)),
            Event::AgentSpawned { agent, by: Some(by), .. } => self.add_effect(by, TurnEffect::Spawned(agent)),
            Event::Team { fact: TeamFact::Noticed { agent, number, .. }, .. } => self.mark_received(agent, 0, *number),
            Event::MessageSent { message: sent, .. } => {
                let entry = MailboxEntry { sent, at, received: false };
                self.agents.entry(&sent.to).or_default().mailbox.insert(sent.number, entry);
            }
            Event::MessageReceived { agent, number, count, .. } => {
                self.mark_received(agent, number.saturating_sub(count.saturating_sub(1)), *number);
            }
            _ => {}
        }
    }

    /// An agent has read its messages from one number to another.
    fn mark_received(&mut self, agent: &str, first: u64, last: u64) {
        let mailbox = self.agents.get_mut(agent).map(|agent| &mut agent.mailbox);
        // `range_mut` panics for a range that ends before it begins.
        let read = mailbox.into_iter().filter(|_| first <= last).flat_map(|mailbox| mailbox.range_mut(first..=last));
        read.for_each(|(_, entry)| entry.received = true);
    }

    fn add_effect(&mut self, agent: &str, effect: TurnEffect<'r>) {
        if let Some(turn) = self.agents.get_mut(agent).and_then(|agent| agent.turns.last_mut()) {
            turn.effects.push(effect);
        }
    }
}

/// The artifacts that an event stores, with the step and the attempt that they belong to.
pub(crate) fn stored_artifacts(event: &Event) -> Option<(&StepId, u32, &[ArtifactMeta])> {
    match event {
        Event::ArtifactStored { step, attempt, artifact } => Some((step, *attempt, std::slice::from_ref(&**artifact))),
        Event::AttemptEnded { step, attempt, outcome } => Some((step, *attempt, outcome.artifacts.as_slice())),
        _ => None,
    }
}
