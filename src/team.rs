//! The report of a swarm's agents, for people: folded from the events of its journal.
//!
//! In: events, in order. Out: a row for each agent, with its iterations, messages, tokens and cost. Text of agents is
//! hostile: [`sanitize_line`] makes one short line of it, without control characters.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;

use serde_json::{Value, json};
use swarmc_runtime::swarm::{Answer, End, Phase, Purpose, SUPERVISOR, SwarmEvent};
use swarmc_runtime::{Content, Usage};

use crate::terminal::{Paint, make_printable};
use crate::units::{format_count, format_number};

/// The characters of what an agent says that are shown of it.
const TOLD: usize = 100;

/// The agents of one swarm.
#[derive(Clone, Debug, Default)]
pub(crate) struct Team {
    pub(crate) mates: Vec<Mate>,
    index: HashMap<Arc<str>, usize>,
    pub(crate) phase: Option<Phase>,
    /// The most iterations of an agent; 0 where the limit is unknown.
    pub(crate) iterations: u32,
    /// The entries of the workspace.
    pub(crate) entries: u64,
    pub(crate) spent: Spent,
}

/// What was used.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spent {
    /// How often a model was asked.
    pub(crate) turns: u64,
    pub(crate) input: u64,
    pub(crate) output: u64,
    /// In millionths of a dollar; none where the price of a turn is not known.
    cost: u64,
    unpriced: bool,
}

/// One agent.
#[derive(Clone, Debug)]
pub(crate) struct Mate {
    pub(crate) name: Arc<str>,
    pub(crate) plays: Arc<str>,
    pub(crate) by: Option<Arc<str>>,
    pub(crate) task: Option<Content>,
    /// The iterations that it began.
    pub(crate) iterations: u32,
    pub(crate) sent: u32,
    pub(crate) received: u32,
    pub(crate) spent: Spent,
    pub(crate) started: bool,
    /// What it is at, in a word or two.
    doing: String,
    pub(crate) how: Option<End>,
    pub(crate) response: Option<Content>,
    pub(crate) error: Option<String>,
}

impl Team {
    pub(crate) fn new(iterations: u32) -> Team {
        Team { iterations, ..Team::default() }
    }

    pub(crate) fn find_mate(&self, name: &str) -> Option<&Mate> {
        self.index.get(name).map(|&index| &self.mates[index])
    }

    /// Applies an event.
    pub(crate) fn apply(&mut self, fact: &SwarmEvent) {
        match fact {
            SwarmEvent::WorkflowStarted { .. } => *self = Team::new(self.iterations),
            SwarmEvent::Progress { phase } => self.phase = Some(*phase),
            SwarmEvent::AgentSpawned { agent, plays, task, by, .. } => {
                self.index.insert(Arc::clone(agent), self.mates.len());
                self.mates.push(Mate {
                    name: Arc::clone(agent),
                    plays: Arc::clone(plays),
                    by: by.clone(),
                    task: task.clone(),
                    iterations: 0,
                    sent: 0,
                    received: 0,
                    spent: Spent::default(),
                    started: false,
                    doing: String::new(),
                    how: None,
                    response: None,
                    error: None,
                });
            }
            SwarmEvent::WorkspaceUpdated { author, .. } => {
                self.entries += 1;
                self.update_mate(author, "published");
            }
            SwarmEvent::MessageSent(sent) if !sent.person => {
                if let Some(mate) = self.update_mate(&sent.from, "wrote") {
                    mate.sent += 1;
                }
            }
            SwarmEvent::TurnEnded { usage, cost, answer, turn, .. } => {
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
            fact => self.mate_did(fact),
        }
    }

    fn mate_did(&mut self, fact: &SwarmEvent) {
        let Some(mate) = self.index.get(fact.agent()).map(|&index| &mut self.mates[index]) else { return };
        match fact {
            SwarmEvent::AgentStarted { .. } => mate.started = true,
            SwarmEvent::AgentCompleted { how, response, error, .. } => {
                (mate.how, mate.response, mate.error) = (Some(*how), response.clone(), error.clone());
            }
            SwarmEvent::MessageReceived { .. } => mate.received += 1,
            SwarmEvent::TurnStarted { turn, .. } if turn.purpose == Purpose::Act => {
                mate.iterations = mate.iterations.max(turn.iteration.saturating_add(1));
                "thinks".clone_into(&mut mate.doing);
            }
            SwarmEvent::ToolStarted { tool, .. } => mate.doing = format!("calls {}", sanitize_line(tool)),
            SwarmEvent::ToolEnded { .. } => "read a result".clone_into(&mut mate.doing),
            SwarmEvent::Idled { .. } => "waits".clone_into(&mut mate.doing),
            SwarmEvent::HelpRequested { .. } => "asked for help".clone_into(&mut mate.doing),
            SwarmEvent::Refused { .. } => "was refused".clone_into(&mut mate.doing),
            _ => {}
        }
    }

    /// What an agent is at now.
    pub(crate) fn set_doing(&mut self, name: &str, doing: &str) {
        self.update_mate(name, doing);
    }

    fn update_mate(&mut self, name: &str, doing: &str) -> Option<&mut Mate> {
        let mate = self.index.get(name).map(|&index| &mut self.mates[index])?;
        doing.clone_into(&mut mate.doing);
        Some(mate)
    }

    /// The totals of the swarm, in a few words.
    pub(crate) fn summarize(&self) -> String {
        let sent: u32 = self.mates.iter().map(|mate| mate.sent).sum();
        let mut text =
            format!("{}, {}", format_count(self.mates.len() as u64, "agent"), format_count(self.spent.turns, "turn"));
        if sent > 0 {
            let _ = write!(text, ", {}", format_count(sent.into(), "message"));
        }
        text + &self.spent.describe()
    }

    /// The lines of those that are at work, for a terminal.
    pub(crate) fn active_lines(&self) -> impl Iterator<Item = String> {
        let open = self.mates.iter().filter(|mate| mate.started && mate.how.is_none());
        let width = open.clone().map(|mate| mate.name.len()).max().unwrap_or(0).min(24);
        open.map(move |mate| format!("  {:<width$}  {}  {}", mate.name, self.describe_counts(mate), mate.doing))
    }

    fn describe_counts(&self, mate: &Mate) -> String {
        let mut text = format!("{:>2} of {}", mate.iterations, self.iterations);
        if mate.sent > 0 {
            let _ = write!(text, ", {} sent", mate.sent);
        }
        text + &mate.spent.describe()
    }

    /// An event as one line; `live` where the live lines show the working agents anyway.
    pub(crate) fn format_event(&self, fact: &SwarmEvent, label: &str, paint: Paint, live: bool) -> Option<String> {
        let text = |content: &Option<Content>| match content {
            Some(Content::Text(text)) => format!(": {}", sanitize_line(text)),
            Some(Content::Artifact { .. }) | None => String::new(),
        };
        Some(match fact {
            SwarmEvent::Progress { .. } if live => return None,
            SwarmEvent::Progress { phase } => format!("  {label}: {}", describe_phase(*phase)),
            SwarmEvent::AgentSpawned { agent, by: Some(by), task, .. } => {
                format!("  {label}: {agent} was spawned to help {by}{}", text(task))
            }
            SwarmEvent::AgentStarted { .. } if live => return None,
            SwarmEvent::AgentStarted { agent } => {
                let mate = self.find_mate(agent)?;
                format!("  {label}: {agent} started{}", text(&mate.task))
            }
            SwarmEvent::AgentCompleted { agent, how, error, .. } => {
                let mate = self.find_mate(agent)?;
                let error = error.as_deref().map(|error| format!(": {}", sanitize_line(error))).unwrap_or_default();
                let sign = match (how, how.has_result()) {
                    (_, true) => paint.green("✓"),
                    (End::Unneeded, _) => paint.dim("-"),
                    _ => paint.red("✗"),
                };
                let how = how.as_str().replace('_', " ");
                format!("{sign} {label}: {agent} {how} after {}{error}", mate.came_to())
            }
            _ => return None,
        })
    }

    pub(crate) fn to_json(&self) -> Value {
        json!({
            "phase": self.phase,
            "agents": self.mates.iter().map(Mate::to_json).collect::<Vec<_>>(),
            "turns": self.spent.turns,
            "entries": self.entries,
            "usage": self.spent.to_json(),
        })
    }
}

impl Team {
    /// What its turns have used so far, where any said so.
    pub(crate) fn total_usage(&self) -> Option<Usage> {
        let Spent { input, output, cost, .. } = self.spent;
        let known = (cost > 0).then_some(cost as f64 / 1e6);
        (input > 0 || output > 0 || cost > 0).then(|| Usage { input, output, cost: known, ..Usage::default() })
    }
}

impl Mate {
    /// How far it came.
    pub(crate) fn came_to(&self) -> String {
        let mut text = format_count(self.iterations.into(), "iteration");
        if self.sent > 0 {
            let _ = write!(text, ", {} sent", format_count(self.sent.into(), "message"));
        }
        text + &self.spent.describe()
    }

    pub(crate) fn to_json(&self) -> Value {
        json!({
            "agent": &*self.name, "plays": &*self.plays, "by": self.by.as_deref(), "how": self.how,
            "iterations": self.iterations, "sent": self.sent, "received": self.received, "turns": self.spent.turns,
            "usage": self.spent.to_json(), "error": self.error,
        })
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
    pub(crate) fn describe(&self) -> String {
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

    fn to_json(self) -> Value {
        let cost = (!self.unpriced && self.turns > 0).then_some(self.cost as f64 / 1e6);
        json!({ "input": self.input, "output": self.output, "cost": cost })
    }
}

/// A phase, in a word.
pub(crate) fn describe_phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Planning => "planning",
        Phase::Spawning => "spawning",
        Phase::Monitoring => "monitoring",
        Phase::Synthesizing => "synthesizing",
    }
}

/// Makes one short line without control characters from text that may be hostile.
pub(crate) fn sanitize_line(text: &str) -> String {
    let mut line = String::new();
    let mut length = 0;
    // Each word is shown by itself: no return carries the reader back over what came before.
    for word in text.split_whitespace() {
        let word = make_printable(word);
        let apart = usize::from(length > 0);
        let room = TOLD.saturating_sub(length + apart);
        if word.chars().count() > room {
            line.extend(std::iter::repeat_n(' ', apart).chain(word.chars().take(room)).chain(['…']));
            return line;
        }
        line.extend(std::iter::repeat_n(' ', apart).chain(word.chars()));
        length += apart + word.chars().count();
    }
    line
}

/// The agents that merge and split, in words for people.
pub(crate) fn is_supervisor(name: &str) -> bool {
    name == SUPERVISOR
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_agents_say_is_one_short_line_that_no_terminal_obeys() {
        assert_eq!(sanitize_line("two\nlines\tand  more"), "two lines and more");
        assert_eq!(sanitize_line("✓ real\r\x1b[2Jfake \u{202e}gnp"), "✓ real fake \u{fffd}gnp");
        assert_eq!(sanitize_line(&"x".repeat(1 << 20)).chars().count(), TOLD + 1);
        assert_eq!(sanitize_line(&"word ".repeat(1000)).chars().filter(|&c| c == '…').count(), 1);
    }
}
