//! Swarms in a rehearsal: the test answers in the place of models and tools.

use std::time::Duration;

use super::Due;
use super::api::{Answer, Asks, Member, Prompted, Turn};
use crate::core::graph::Key;
use crate::core::swarm::prompt::Prompt;
use crate::driver::run::driver::Driver;
use crate::driver::run::eval::{At, render_failure, unknown_step};
use crate::io::input::{Input, SwarmInput};
use crate::io::tools::{self, Grant};
use crate::types::chat::{Fault, Reply, ToolFault};
use crate::types::event::{Failure, StepId};
use crate::types::retry::is_transient;
use crate::types::swarm::TurnId;

impl Driver<'_> {
    /// Asks the test for the answer to a turn of the member that `agent` plays.
    pub(in crate::driver::run) fn rehearse_turn(
        &mut self,
        (step, attempt, key): (&StepId, u32, Key),
        turn: TurnId,
        (agent, limit): (&str, Duration),
        prompt: &Prompt,
    ) -> Result<(), Failure> {
        if let Some(rehearsing) = self.world.rehearsal() {
            let (step, agent, prompt) = (step.clone(), agent.to_owned(), prompt.user.clone());
            rehearsing.report.prompts.push(Prompted { step, attempt, agent, prompt });
        }
        let asks = Asks::Agent { agent, system: Some(&prompt.system), prompt: &prompt.user };
        let (delay, answer) = self.ask_member((step, attempt, key), &turn, asks)?.timed();
        let most = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        let (delay, reply) = match read_answer(answer) {
            _ if delay > most => (most, Err(Fault::late(limit))),
            Ok(text) => (delay, Ok(Reply { text, ..Reply::default() })),
            Err(message) => {
                let transient = is_transient(&message);
                (delay, Err(Fault { message, transient, retry_after: None, crashed: false }))
            }
        };
        self.schedule_report(step, attempt, delay, SwarmInput::Answered(turn, reply));
        Ok(())
    }

    /// Asks the test for the result of a call of a tool.
    pub(in crate::driver::run) fn rehearse_call(
        &mut self,
        (step, attempt, key): (&StepId, u32, Key),
        turn: TurnId,
        grant: &Grant,
        (tool, arguments): (&str, &str),
    ) -> Result<(), Failure> {
        // The test is not asked: in a run the call would fail before it reaches a tool.
        let (delay, result) = match tools::permitted(self.evaluator.plan, grant, tool) {
            Ok(()) => {
                let asks = Asks::Tool { tool, arguments };
                let (delay, answer) = self.ask_member((step, attempt, key), &turn, asks)?.timed();
                (delay, read_answer(answer))
            }
            Err(problem) => (0, Err(problem)),
        };
        let result = result.map_err(|message| ToolFault { transient: is_transient(&message), message });
        self.schedule_report(step, attempt, delay, SwarmInput::Called(turn, result));
        Ok(())
    }

    /// Has a swarm receive something after so many milliseconds.
    pub(in crate::driver::run) fn schedule_report(
        &mut self,
        step: &StepId,
        attempt: u32,
        delay: u64,
        word: SwarmInput,
    ) {
        let report = Input::Swarm { step: step.clone(), attempt, word: Box::new(word) };
        self.schedule(delay, Due::Inputs(vec![report]));
    }

    fn ask_member(
        &mut self,
        (step, attempt, key): (&StepId, u32, Key),
        turn: &TurnId,
        asks: Asks<'_>,
    ) -> Result<Answer, Failure> {
        let named = self.evaluator.name_turn(At { state: &self.state, key, attempt }, turn);
        let (name, number) = named.ok_or_else(|| unknown_step(step))?;
        let item = self.evaluator.item(&self.state, key.frame).map_err(render_failure)?;
        let member = Some(Member { name: &name, turn: number, attempt: turn.attempt });
        let (repair, fixing, schema) = (0, false, None);
        let turn = Turn { step, attempt, repair, fixing, schema, item: item.as_ref(), member, asks };
        self.world.rehearsal().map(|rehearsing| rehearsing.ask(&turn)).ok_or_else(|| unknown_step(step))
    }
}

/// What was said, or why nothing was.
fn read_answer(answer: Answer) -> Result<String, String> {
    match answer {
        Answer::Text(text) => Ok(text),
        Answer::Json(value) => Ok(value.to_string()),
        Answer::Failure { output, stderr, .. } => Err(if stderr.is_empty() { output } else { stderr }),
        Answer::Choice { .. } | Answer::Unanswered | Answer::After(..) => Err("no choice is asked for here".to_owned()),
    }
}
