//! The end of a swarm: the results of its agents, and its own result.

use swarmc_plan::Body;

use super::super::driver::Driver;
use super::super::eval::{At, Finished, truncate_to_event};
use super::{Stuck, failure_outcome};
use crate::core::graph::Key;
use crate::core::swarm::state::Spent;
use crate::types::event::{AttemptId, Content, Event, Failure, Outcome, StepId, Usage};
use crate::types::swarm::{End, Phase};

impl Driver<'_> {
    /// Records the end of an agent.
    pub(super) fn conclude_agent(
        &mut self,
        attempt: u32,
        key: Key,
        (agent, how, error): (u32, End, Option<String>),
    ) -> Result<(), Stuck> {
        let Some(swarm) = self.state.swarm(key, attempt) else { return Ok(()) };
        let Some(agent) = swarm.agents.get(agent as usize) else { return Ok(()) };
        let ended = self.evaluator.agent_completed((swarm, agent), how, error, &self.attempts.made)?;
        self.record_swarm_event(ended);
        Ok(())
    }

    /// Records the end of the swarm.
    pub(super) fn finish_swarm(&mut self, step: &StepId, attempt: u32, key: Key) -> Result<(), Stuck> {
        let Some(swarm) = self.state.swarm(key, attempt) else { return Ok(()) };
        let result = match self.evaluator.conclude_swarm(At { state: &self.state, key, attempt }, swarm)? {
            Finished::Result(result) => result,
            Finished::Merge => {
                self.record_swarm_event(Event::PhaseEntered {
                    swarm: AttemptId::new(step, attempt),
                    phase: Phase::Synthesizing,
                });
                return Ok(());
            }
        };
        let usage = total_usage(&swarm.spent);
        let metadata = self.evaluator.build_swarm_metadata(swarm, self.swarm_name(key))?;
        let count = swarm.results().count();
        if swarm.merged.is_none() && count > 1 {
            let step = step.label();
            self.notices.send(format!(
                "`{step}`: nothing merges the results of its {count} agents, so they stand one after another; \
                 `synthesize agent=NAME` in the swarm merges them"
            ));
        }
        let path = self.outputs.layout.beside_prompt(step, attempt, "swarm.json");
        self.outputs.write(path, metadata.into_bytes());
        let stored = self.outputs.keep_text(result.clone())?;
        let swarm = AttemptId::new(step, attempt);
        self.record_swarm_event(Event::SwarmFinished { swarm, result: Some(stored), error: None });
        self.close_team(step, attempt);
        self.outputs.write_output(step, &result);
        let outcome = Outcome { output: Some(Content::Text(result)), usage, ..Outcome::default() };
        self.end_attempt(step.clone(), attempt, outcome);
        Ok(())
    }

    /// The swarm has failed.
    pub(in crate::driver::run) fn fail_swarm(&mut self, step: &StepId, attempt: u32, why: Failure) {
        if !self.close_team(step, attempt) {
            return;
        }
        let error = Some(truncate_to_event(&why.to_string()));
        self.record_swarm_event(Event::SwarmFinished { swarm: AttemptId::new(step, attempt), result: None, error });
        let key = self.state.find_step(step);
        let spent = key.and_then(|key| self.state.swarm(key, attempt)).map(|swarm| swarm.spent);
        let usage = spent.as_ref().and_then(total_usage);
        self.end_attempt(step.clone(), attempt, Outcome { usage, ..failure_outcome(why) });
    }

    fn swarm_name(&self, key: Key) -> &str {
        match &self.evaluator.step_definition(&self.state, key).body {
            Body::Swarm(call) => &call.swarm,
            _ => "",
        }
    }
}

/// The usage of a swarm's turns, if any turn reported it, with the cost if all prices are known.
fn total_usage(spent: &Spent) -> Option<Usage> {
    let cost = (!spent.unpriced).then_some(spent.cost as f64 / 1e6);
    (spent.usage != Usage::default()).then_some(Usage { cost, ..spent.usage })
}
