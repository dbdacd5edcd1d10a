//! Replies to people, tasks and agents. They receive them once the records of the turn are durable.

use serde_json::Value;

use crate::io::input::{Asker, Reply, ReplyTo};
use crate::types::approval::Decision;

/// The replies of one turn of the driver.
#[derive(Debug, Default)]
pub(super) struct Replies {
    /// The callers that answered a gate or wrote to an agent, each with its confirmation.
    people: Vec<(Reply, String)>,
    /// The tasks that asked for an approval, each with the decision.
    tasks: Vec<(Asker, Decision)>,
    /// The agents that asked for an operation, each with its receipt, or why it was refused.
    agents: Vec<(ReplyTo, Result<Value, String>)>,
}

impl Replies {
    /// A person receives `words`.
    pub(super) fn confirm(&mut self, person: Reply, words: String) {
        self.people.push((person, words));
    }

    /// A task receives a decision.
    pub(super) fn decide(&mut self, task: Asker, decision: Decision) {
        self.tasks.push((task, decision));
    }

    /// An agent receives a receipt.
    pub(super) fn receipt(&mut self, agent: ReplyTo, receipt: Value) {
        self.answer(agent, Ok(receipt));
    }

    /// An agent receives a receipt, or why there is none.
    pub(super) fn answer(&mut self, agent: ReplyTo, told: Result<Value, String>) {
        self.agents.push((agent, told));
    }

    /// Whether there is nothing to tell.
    pub(super) fn is_empty(&self) -> bool {
        self.people.is_empty() && self.tasks.is_empty() && self.agents.is_empty()
    }

    /// Sends every reply, or the error in its place. After an error tasks receive no reply: they end with the run.
    pub(super) fn deliver(&mut self, durable: &Result<(), String>) {
        // Any of them may have stopped waiting.
        for (person, words) in self.people.drain(..) {
            let _ = person.send(durable.clone().map(|()| words));
        }
        for (task, decision) in self.tasks.drain(..).filter(|_| durable.is_ok()) {
            let _ = task.send(decision);
        }
        for (agent, told) in self.agents.drain(..) {
            let _ = agent.send(durable.clone().and(told));
        }
    }
}
