//! Budgets of a run: what a launch reserves, and what happens where a budget refuses it.

use std::sync::Arc;
use std::time::Duration;

use super::driver::Driver;
use crate::core::state::budget::Refusal;
use crate::io::executor::{Job, Role, Work};
use crate::types::event::{self, Event, Failure, Outcome, Reserved, StepId};

impl Driver<'_> {
    /// What a job may use at most, where the budgets let it start; its time is cut to what they leave.
    pub(super) fn reserve_budget(&self, job: &mut Job) -> Result<Option<Reserved>, Refusal> {
        let Some(key) = self.state.find_step(&job.step).filter(|_| self.state.graph.has_budgets) else {
            return Ok(None);
        };
        let (mut reserved, mut summarizer) = (None, None);
        if let Work::Agent(asked) = &job.work {
            let taker = &asked.takers[0];
            let bytes = taker.prompt.len() + taker.system.as_ref().map_or(0, String::len);
            let turns = u64::from(asked.repair) + 1;
            reserved = self.evaluator.estimate_reservation(&self.state, turns, &taker.agent, bytes);
            summarizer = (job.role == Role::SumsUp).then(|| Arc::from(taker.agent.as_str()));
        }
        let wanted = reserved.unwrap_or_default();
        match &summarizer {
            Some(agent) => self.state.admit_of(key, Some(agent), &wanted)?,
            None => self.state.admit_attempt(key, &wanted)?,
        }
        if let Some(left) = self.state.time_left(key).map(Duration::from_millis) {
            job.timeout = Some(job.timeout.map_or(left, |timeout| timeout.min(left)));
        }
        Ok(reserved)
    }

    /// A budget of the run is spent: what was refused, in words that fit an event.
    pub(super) fn spend_budget(&mut self, mut message: String, graceful: bool) -> String {
        event::truncate_message(&mut message);
        // Where what runs goes on, every further launch is refused as well: it is said once.
        if !graceful || !self.state.over_budget {
            self.notices.send(message.clone());
            self.record(Event::BudgetSpent { message: message.clone(), graceful });
        }
        message
    }

    /// The budget of the run refuses a launch: the run ends.
    pub(super) fn end_over_budget(&mut self, step: StepId, attempt: u32, message: String) {
        self.spend_budget(message, false);
        self.services.agent_server.close_session(&step, attempt);
        let outcome = Outcome { failure: Some(Failure::Cancelled), ..Outcome::default() };
        self.record(Event::AttemptEnded { step, attempt, outcome });
    }

    /// The time of the run is over.
    pub(super) fn expire_run(&mut self) {
        let (_, budgets) = self.state.usage();
        let shortest = budgets.iter().filter(|(_, budget)| budget.time_ms.is_some());
        let shortest = shortest.min_by_key(|(_, budget)| budget.time_ms);
        let what = shortest.map_or("the workflow", |(what, _)| what);
        let graceful = shortest.is_some_and(|(_, budget)| budget.at_most);
        self.spend_budget(format!("the time budget of {what} is spent"), graceful);
    }
}
