//! The report of a swarm's agents, for people: folded from the events of its journal.
//!
//! In: events, in order. Out: a row for each agent, with its iterations, messages, tokens and cost. Text of agents is
//! hostile: [`sanitize_line`] makes one short line of it, without control characters.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use swarmc_runtime::swarm::{Answer, End, Phase, Purpose, SUPERVISOR};
use swarmc_runtime::team::{ItemState, Life};
use swarmc_runtime::{Content, Event, Usage};
use swarmc_runtime::{TeamFact, pairs};

use crate::change::SwarmChange;
use crate::documents::{StepSwarm, SwarmAgent, SwarmUsage};
use crate::printable::sanitize_line;
use crate::team_plan::Coordination;
use crate::units::{format_count, format_number};

/// The agents of one swarm.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Team {
    /// The agents, in the order in which they were spawned.
    pub mates: Vec<TeamAgent>,
    index: HashMap<Arc<str>, usize>,
    /// The phase that it is in.
    pub phase: Option<Phase>,
    /// The most iterations of an agent; 0 where the limit is unknown.
    pub iterations: u32,
    /// The entries of the workspace.
    pub entries: u64,
    /// What all of its turns used.
    pub spent: Spent,
    /// Who wrote to whom, and how often: names of agents, `#CHANNEL`, `all` for all agents, `you` for people, `the run`.
    #[serde(with = "pairs")]
    pub traffic: BTreeMap<(Arc<str>, Arc<str>), Traffic>,
    /// What it has besides where it has a coordinator.
    pub coordination: Option<Coordination>,
}

/// The messages from one to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Traffic {
    /// How many.
    pub count: u64,
    /// When the last one was sent, in milliseconds since 1970.
    pub last_ms: u64,
}

/// What was used.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub struct Spent {
    /// How often a model was asked.
    pub turns: u64,
    /// Tokens read.
    pub input: u64,
    /// Tokens written.
    pub output: u64,
    /// In millionths of a dollar; none where the price of a turn is not known.
    cost: u64,
    unpriced: bool,
}

/// One agent.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct TeamAgent {
    /// Its name.
    pub name: Arc<str>,
    /// The declared agent that it plays.
    pub plays: Arc<str>,
    /// Who asked for it; none for those of the roster.
    pub by: Option<Arc<str>>,
    /// Its task.
    pub task: Option<Content>,
    /// The iterations that it began.
    pub iterations: u32,
    /// The messages that it sent.
    pub sent: u32,
    /// The messages that it received.
    pub received: u32,
    /// What its turns used.
    pub spent: Spent,
    /// Whether it has begun.
    pub started: bool,
    /// Whether it waits for an approval.
    pub asks: bool,
    /// What it is at, in a word or two.
    doing: String,
    /// How it ended; none while it goes on.
    pub how: Option<End>,
    /// Its answer.
    pub response: Option<Content>,
    /// Why it failed.
    pub error: Option<String>,
}

impl Team {
    /// No agents yet, of a declared swarm.
    pub fn new(swarm: Option<&swarmc_plan::Swarm>) -> Team {
        let iterations = swarm.map_or(0, |swarm| swarm.limits.iterations);
        Team { iterations, coordination: swarm.and_then(Coordination::new), ..Team::default() }
    }

    /// The agent of this name.
    pub fn find_mate(&self, name: &str) -> Option<&TeamAgent> {
        self.index.get(name).map(|&index| &self.mates[index])
    }

    /// Applies an event of this time; what people are told of it.
    pub(crate) fn apply<'r>(&mut self, event: &'r Event, at: u64) -> Option<SwarmChange<'r>> {
        self.update(event);
        self.count_message(event, at);
        Some(match event {
            Event::PhaseEntered { phase, .. } => SwarmChange::PhaseEntered(*phase),
            Event::AgentSpawned { agent, by: Some(by), task, .. } => {
                SwarmChange::HelperSpawned { agent, by, task: task.as_ref() }
            }
            Event::AgentStarted { agent, .. } => SwarmChange::AgentStarted { agent },
            Event::MessageSent { message, .. } if !message.person => SwarmChange::MessageSent { message },
            Event::Team { fact: TeamFact::PlanUpdated { version, agent, ops, why, .. }, .. } => {
                SwarmChange::PlanUpdated { version: *version, agent, ops, why }
            }
            Event::Team { fact: TeamFact::PlanProposed { proposal, agent, ops, why, .. }, .. } => {
                SwarmChange::PlanProposed { proposal: *proposal, agent, ops, why }
            }
            Event::Team { fact: TeamFact::ProposalRefused { proposal, verdict, because, .. }, .. } => {
                SwarmChange::ProposalRefused { proposal: *proposal, verdict: *verdict, because }
            }
            Event::Team { fact: TeamFact::ItemMoved { agent, item, to, note, .. }, .. } => {
                SwarmChange::ItemMoved { agent, item, to: *to, note: note.as_deref() }
            }
            Event::Team { fact: TeamFact::Posted { agent, channel, message, .. }, .. } => {
                SwarmChange::Posted { agent, channel: channel.as_deref(), message }
            }
            Event::Team { fact: TeamFact::Conflict { agent, with, path, certain }, .. } => {
                SwarmChange::Conflict { agent, with, path, certain: *certain }
            }
            Event::Team { fact: TeamFact::WorktreeOpened { worktree, manager, members, .. }, .. } => {
                SwarmChange::WorktreeOpened { worktree, manager, members }
            }
            Event::Team { fact: TeamFact::AgentMoved { agent, to, .. }, .. } => {
                SwarmChange::AgentMoved { agent, to: to.as_deref() }
            }
            Event::Team { fact: TeamFact::Integrated { agent, worktree, to, note, .. }, .. } => {
                SwarmChange::Integrated { agent, worktree, to: *to, note }
            }
            Event::Team { fact: TeamFact::Intended { agent, text, .. }, .. } => SwarmChange::Intended { agent, text },
            Event::Team { fact: TeamFact::UserTold { agent, message, .. }, .. } => {
                SwarmChange::UserTold { agent, message }
            }
            Event::DataPublished { author, topic, data, .. } => SwarmChange::DataPublished { author, topic, data },
            Event::AgentFinished { agent, how, error, .. } => {
                SwarmChange::AgentFinished { agent, how: *how, error: error.as_deref() }
            }
            _ => return None,
        })
    }

    fn update(&mut self, event: &Event) {
        if let Some(coordination) = &mut self.coordination {
            coordination.apply(event);
        }
        match event {
            Event::PhaseEntered { phase, .. } => self.phase = Some(*phase),
            Event::AgentSpawned { agent, plays, task, by, .. } => {
                self.index.insert(Arc::clone(agent), self.mates.len());
                self.mates.push(TeamAgent {
                    name: Arc::clone(agent),
                    plays: Arc::clone(plays),
                    by: by.clone(),
                    task: task.clone(),
                    iterations: 0,
                    sent: 0,
                    received: 0,
                    spent: Spent::default(),
                    started: false,
                    asks: false,
                    doing: String::new(),
                    how: None,
                    response: None,
                    error: None,
                });
            }
            Event::DataPublished { author, .. } => {
                self.entries += 1;
                self.update_mate(author, "published");
            }
            Event::MessageSent { message: sent, .. } if !sent.person => {
                if let Some(mate) = self.update_mate(&sent.from, "wrote") {
                    mate.sent += 1;
                }
            }
            Event::TurnEnded { usage, cost, answer, turn, .. } => {
                self.spent.add(*usage, *cost);
                if let Some(mate) = self.update_mate(&turn.agent, "acts") {
                    mate.spent.add(*usage, *cost);
                    match answer {
                        Answer::Failed { .. } => mate.doing = "failed to be asked, again soon".to_owned(),
                        Answer::Invalid(_) => mate.doing = "answered wrongly".to_owned(),
                        _ => {}
                    }
                }
            }
            event => self.mate_did(event),
        }
    }

    fn count_message(&mut self, event: &Event, at: u64) {
        let ends = match event {
            Event::MessageSent { message, .. } if message.person => (Arc::from("you"), Arc::clone(&message.to)),
            // A team has no supervisor: what comes by its name comes from the run.
            Event::MessageSent { message, .. } if self.coordination.is_some() && *message.from == *SUPERVISOR => {
                (Arc::from("the run"), Arc::clone(&message.to))
            }
            Event::MessageSent { message, .. } => (Arc::clone(&message.from), Arc::clone(&message.to)),
            Event::Team { fact: TeamFact::Posted { agent, channel, .. }, .. } => {
                let to = channel.as_ref().map_or_else(|| "all".to_owned(), |channel| format!("#{channel}"));
                (Arc::clone(agent), Arc::from(to))
            }
            _ => return,
        };
        let traffic = self.traffic.entry(ends).or_default();
        (traffic.count, traffic.last_ms) = (traffic.count + 1, at);
    }

    fn mate_did(&mut self, event: &Event) {
        let Some(mate) = event.agent().and_then(|agent| self.index.get(agent)).map(|&index| &mut self.mates[index])
        else {
            return;
        };
        match event {
            Event::AgentStarted { .. } => mate.started = true,
            Event::AgentFinished { how, response, error, .. } => {
                (mate.how, mate.response, mate.error) = (Some(*how), response.clone(), error.clone());
            }
            Event::MessageReceived { count, .. } => mate.received += *count as u32,
            Event::TurnStarted { turn, .. } if turn.purpose == Purpose::Act => {
                // A turn that a killed run left open is taken again, in the same iteration.
                mate.iterations = mate.iterations.max(turn.iteration);
                "thinks".clone_into(&mut mate.doing);
            }
            Event::ToolStarted { tool, .. } => mate.doing = format!("calls {}", sanitize_line(tool)),
            Event::ToolEnded { .. } => "read a result".clone_into(&mut mate.doing),
            Event::AgentIdled { .. } => "waits".clone_into(&mut mate.doing),
            Event::HelpRequested { .. } => "asked for help".clone_into(&mut mate.doing),
            Event::ActionRefused { .. } => "was refused".clone_into(&mut mate.doing),
            Event::Team { fact: TeamFact::Posted { .. }, .. } => {
                mate.sent += 1;
                "wrote".clone_into(&mut mate.doing);
            }
            Event::Team { fact: TeamFact::ItemMoved { item, to: ItemState::Running, .. }, .. } => {
                mate.doing = format!("works on {}", sanitize_line(item));
            }
            Event::Team { fact: TeamFact::ItemMoved { item, .. }, .. } => {
                mate.doing = format!("reported on {}", sanitize_line(item))
            }
            Event::Team { fact: TeamFact::PlanUpdated { .. }, .. } => "changed the plan".clone_into(&mut mate.doing),
            Event::Team { fact: TeamFact::PlanProposed { .. }, .. } => "proposed a change".clone_into(&mut mate.doing),
            _ => {}
        }
    }

    /// The state of an agent, where the swarm has a coordinator.
    pub fn life(&self, mate: &TeamAgent) -> Option<Life> {
        self.coordination.as_ref().map(|coordination| coordination.life(mate))
    }

    /// An agent waits for an approval from now on, or no longer.
    pub(crate) fn set_asking(&mut self, name: &str, asks: bool) {
        if let Some(&index) = self.index.get(name) {
            self.mates[index].asks = asks;
        }
    }

    /// What an agent is at now.
    pub fn set_doing(&mut self, name: &str, doing: &str) {
        self.update_mate(name, doing);
    }

    fn update_mate(&mut self, name: &str, doing: &str) -> Option<&mut TeamAgent> {
        let mate = self.index.get(name).map(|&index| &mut self.mates[index])?;
        doing.clone_into(&mut mate.doing);
        Some(mate)
    }

    /// The totals of the swarm, in a few words.
    pub fn summarize(&self) -> String {
        let sent: u32 = self.mates.iter().map(|mate| mate.sent).sum();
        let mut text =
            format!("{}, {}", format_count(self.mates.len() as u64, "agent"), format_count(self.spent.turns, "turn"));
        if sent > 0 {
            let _ = write!(text, ", {}", format_count(sent.into(), "message"));
        }
        if let Some(coordination) = &self.coordination {
            let _ = write!(text, ", {}", coordination.summarize());
        }
        text + &self.spent.describe()
    }

    /// The lines of those that are at work, for a terminal.
    pub fn active_lines(&self) -> impl Iterator<Item = String> {
        let open = self.mates.iter().filter(|mate| mate.started && mate.how.is_none());
        let width = open.clone().map(|mate| mate.name.len()).max().unwrap_or(0).min(24);
        open.map(move |mate| format!("  {:<width$}  {}  {}", mate.name, self.describe_counts(mate), mate.doing))
    }

    fn describe_counts(&self, mate: &TeamAgent) -> String {
        let mut text = format!("{:>2} of {}", mate.iterations, self.iterations);
        if mate.sent > 0 {
            let _ = write!(text, ", {} sent", mate.sent);
        }
        text + &mate.spent.describe()
    }

    /// It as `inspect` prints it, with its agents; `read` has the texts that lie beside the journal.
    pub fn to_document(&self, read: impl Fn(&Content) -> String) -> StepSwarm {
        StepSwarm {
            phase: self.phase,
            plan: self.coordination.as_ref().map(Coordination::to_document),
            agents: self
                .mates
                .iter()
                .map(|mate| SwarmAgent { state: self.life(mate), ..mate.to_document(mate.spent.turns, &read) })
                .collect(),
            turns: self.spent.turns,
            entries: self.entries,
            usage: self.spent.to_document(),
        }
    }
}

impl Team {
    /// What its turns have used so far, where any said so.
    pub fn total_usage(&self) -> Option<Usage> {
        let Spent { input, output, cost, .. } = self.spent;
        let known = (cost > 0).then_some(cost as f64 / 1e6);
        (input > 0 || output > 0 || cost > 0).then(|| Usage { input, output, cost: known, ..Usage::default() })
    }
}

impl TeamAgent {
    /// What it is at, in a word or two.
    pub fn doing(&self) -> &str {
        &self.doing
    }

    /// How far it came.
    pub fn came_to(&self) -> String {
        let mut text = format_count(self.iterations.into(), "iteration");
        if self.sent > 0 {
            let _ = write!(text, ", {} sent", format_count(self.sent.into(), "message"));
        }
        text + &self.spent.describe()
    }

    /// It as `inspect` prints it, with what is said of its turns; `read` has the texts that lie beside the journal.
    pub fn to_document<T>(&self, turns: T, read: impl Fn(&Content) -> String) -> SwarmAgent<T> {
        SwarmAgent {
            agent: self.name.to_string(),
            plays: self.plays.to_string(),
            by: self.by.as_deref().map(str::to_owned),
            how: self.how,
            state: None,
            iterations: self.iterations,
            sent: self.sent,
            received: self.received,
            turns,
            usage: self.spent.to_document(),
            error: self.error.clone(),
            task: self.task.as_ref().map(&read),
            response: self.response.as_ref().map(&read),
        }
    }
}

impl Spent {
    fn add(&mut self, usage: Option<Usage>, cost: Option<u64>) {
        self.turns += 1;
        if let Some(usage) = usage {
            self.input = self.input.saturating_add(usage.input);
            self.output = self.output.saturating_add(usage.output);
        }
        match cost {
            Some(cost) => self.cost = self.cost.saturating_add(cost),
            None => self.unpriced = true,
        }
    }

    /// Tokens and cost as the end of a sentence; empty without counted tokens.
    pub fn describe(&self) -> String {
        match (self.input, self.output) {
            (0, 0) => String::new(),
            (input, output) => {
                format!(", {} tokens{}", format_number(input.saturating_add(output)), self.describe_price())
            }
        }
    }

    fn describe_price(&self) -> String {
        let known = self.cost > 0 || !self.unpriced;
        if !known {
            return String::new();
        }
        let more = if self.unpriced { " or more" } else { "" };
        format!(", ${}.{:04}{more}", self.cost / 1_000_000, self.cost % 1_000_000 / 100)
    }

    fn to_document(self) -> SwarmUsage {
        // The price of some turns would pass for that of all.
        let cost = (!self.unpriced && self.turns > 0).then_some(self.cost as f64 / 1e6);
        SwarmUsage { input: self.input, output: self.output, cost }
    }
}

/// A phase, in a word.
pub fn describe_phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Planning => "planning",
        Phase::Spawning => "spawning",
        Phase::Monitoring => "monitoring",
        Phase::Synthesizing => "synthesizing",
    }
}

/// The agents that merge and split, in words for people.
pub fn is_supervisor(name: &str) -> bool {
    name == SUPERVISOR
}
