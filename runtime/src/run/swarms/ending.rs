//! How agents of a swarm end, and what the swarm comes to.

use std::sync::Arc;

use serde_json::json;
use swarmc_plan::Body;

use super::super::run_loop::Loop;
use super::super::scene::render;
use super::{Stuck, failure};
use crate::event::{Content, Failure, Outcome, StepId, Usage};
use crate::graph::Key;
use crate::swarm::prompt;
use crate::swarm::state::{Agent, Spent, Swarm};
use crate::swarm::{End, Fact, Phase};

/// The turns that the answer of an agent is made of which gave none (seed 001, "Convergence Detection").
const SUMMED: usize = 3;

/// The characters of each of them.
const SUMMED_CHARS: usize = 500;

impl Loop<'_> {
    /// An agent has come to its end.
    pub(super) fn conclude_agent(
        &mut self,
        step: &StepId,
        attempt: u32,
        key: Key,
        (agent, how, error): (u32, End, Option<String>),
    ) -> Result<(), Stuck> {
        let Some(actor) = self.state.swarm(key, attempt).and_then(|swarm| swarm.agents.get(agent as usize)) else {
            return Ok(());
        };
        let name = Arc::clone(&actor.name);
        let response = match how {
            End::Done | End::Unneeded => None,
            _ if actor.history.is_empty() => None,
            _ => Some(self.stored_text(self.summary(actor)?)?),
        };
        self.fact(step, attempt, Fact::AgentCompleted { agent: name, how, response, error });
        Ok(())
    }

    /// What the last turns of an agent came to.
    fn summary(&self, agent: &Agent) -> Result<String, Stuck> {
        let last = agent.history.len().saturating_sub(SUMMED);
        let mut lines = Vec::new();
        for past in &agent.history[last..] {
            let (iteration, label, result) = self.past(past)?;
            lines.push(format!("Iteration {iteration}: {label} → {}", prompt::cut(&result, SUMMED_CHARS)));
        }
        Ok(lines.join("\n"))
    }

    /// The swarm has come to its end.
    pub(super) fn finish_swarm(&mut self, step: &StepId, attempt: u32, key: Key) -> Result<(), Stuck> {
        let Some(swarm) = self.state.swarm(key, attempt) else { return Ok(()) };
        let result = match &swarm.merged {
            Some(merged) => self.told(merged)?,
            None => self.single(swarm)?,
        };
        let definition = self.scene.step(&self.state, key);
        let mut result = result;
        if let (Some(schema), None) = (&definition.output.schema, &swarm.merged) {
            let shape = self.scene.shapes.of(schema, self.scene.plan).map_err(|problem| Stuck(render(problem)))?;
            match shape.read(&result) {
                Ok(value) => result = value,
                // Whoever merges several results can bring one into its form.
                Err(_) if swarm.rules.merges => {
                    self.fact(step, attempt, Fact::Progress { phase: Phase::Synthesizing });
                    return Ok(());
                }
                Err(violations) => return Err(Stuck(Failure::Invalid { violations })),
            }
        }
        let usage = used(&swarm.spent);
        let metadata = metadata(swarm, self.swarm_name(key));
        if let Some(scribe) = &self.scribe {
            scribe.write(self.layout.beside_prompt(step, attempt, "swarm.json"), metadata.into_bytes());
        }
        let stored = self.stored_text(result.clone())?;
        self.fact(step, attempt, Fact::WorkflowCompleted { result: Some(stored), error: None });
        self.teams.open.remove(&(step.clone(), attempt));
        self.write_output(step, &result);
        let outcome = Outcome { output: Some(Content::Text(result)), usage, ..Outcome::default() };
        self.end(step.clone(), attempt, outcome);
        Ok(())
    }

    /// The swarm has failed.
    pub(super) fn fail_swarm(&mut self, step: &StepId, attempt: u32, why: Failure) {
        if self.teams.open.remove(&(step.clone(), attempt)).is_none() {
            return;
        }
        let error = Some(super::short(&why.to_string()));
        self.fact(step, attempt, Fact::WorkflowCompleted { result: None, error });
        let key = self.state.find(step);
        let spent = key.and_then(|key| self.state.swarm(key, attempt)).map(|swarm| swarm.spent);
        let usage = spent.as_ref().and_then(used);
        self.end(step.clone(), attempt, Outcome { usage, ..failure(why) });
    }

    fn swarm_name(&self, key: Key) -> &str {
        match &self.scene.step(&self.state, key).body {
            Body::Swarm(call) => &call.swarm,
            _ => "",
        }
    }

    /// The only result, or where nobody merges them all of them, in the order of the roster.
    fn single(&self, swarm: &Swarm) -> Result<String, Stuck> {
        let results: Vec<&Agent> = swarm.results().collect();
        let text = |agent: &Agent| match agent.end.as_ref().and_then(|end| end.response.as_ref()) {
            Some(response) => self.told(response),
            None => Ok(String::new()),
        };
        if let [one] = results.as_slice() {
            return text(one);
        }
        let parts = results.iter().map(|agent| Ok(format!("## {}\n{}", agent.name, text(agent)?)));
        Ok(parts.collect::<Result<Vec<String>, Stuck>>()?.join("\n\n"))
    }
}

/// What the turns of a swarm used, where anybody said so, with what that cost where the price of each is known.
fn used(spent: &Spent) -> Option<Usage> {
    let cost = (!spent.unpriced).then_some(spent.cost as f64 / 1e6);
    (spent.usage != Usage::default()).then_some(Usage { cost, ..spent.usage })
}

/// What the swarm was, for people and programs: each agent with its iterations, tokens, models and cost.
fn metadata(swarm: &Swarm, name: &str) -> String {
    let agents: Vec<serde_json::Value> = swarm
        .agents
        .iter()
        .map(|agent| {
            let end = agent.end.as_ref();
            json!({
                "agent": *agent.name,
                "plays": *agent.plays,
                "by": agent.by.as_deref(),
                "how": end.map(|end| end.how),
                "iterations": agent.iteration + u32::from(end.is_some_and(|end| end.how == End::Done)),
                "calls": agent.spent.calls,
                "tokens": { "input": agent.spent.usage.input, "output": agent.spent.usage.output },
                "cost_micro_usd": (!agent.spent.unpriced).then_some(agent.spent.cost),
                "models": agent.models,
                "messages_sent": agent.sent,
                "error": end.and_then(|end| end.error.as_deref()),
            })
        })
        .collect();
    let whole = json!({
        "swarm": name,
        "agents": agents,
        "calls": swarm.spent.calls,
        "tokens": { "input": swarm.spent.usage.input, "output": swarm.spent.usage.output },
        "cost_micro_usd": (!swarm.spent.unpriced).then_some(swarm.spent.cost),
    });
    format!("{whole:#}\n")
}
