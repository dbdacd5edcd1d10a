//! Gates in a rehearsal: the test answers in the place of a person.

use swarmc_plan::GateDefault;

use super::Due;
use super::api::{Answer, Asks, Turn};
use crate::driver::run::driver::Driver;
use crate::driver::run::eval::format_gate_answer;
use crate::types::event::{AnsweredBy, Content, StepId};

impl Driver<'_> {
    /// Asks the test about a gate.
    pub(super) fn ask_test(&mut self, step: &StepId, message: &Content) {
        // A `stop` may have ended it before.
        let Some(key) = self.state.find_step(step).filter(|_| self.state.is_asking(step)) else { return };
        let Some(gate) = self.evaluator.step_definition(&self.state, key).effective_gate() else { return };
        let Ok(message) = self.evaluator.load_text(message) else { return };
        let item = self.evaluator.item(&self.state, key.frame).ok().flatten();
        let asks = Asks::Person { message: &message, options: &gate.options, ask: &gate.ask };
        let (attempt, repair, fixing, schema) = (1, 0, false, None);
        let turn = Turn { step, attempt, repair, fixing, schema, item: item.as_ref(), member: None, asks };
        let Some(rehearsing) = self.world.rehearsal() else { return };
        match rehearsing.ask(&turn).timed() {
            (0, answer) => self.answer_rehearsed(step.clone(), answer),
            (delay, answer) => self.schedule(delay, Due::Answer(step.clone(), answer)),
        }
    }

    /// Takes the answer of the test to a gate.
    pub(super) fn answer_rehearsed(&mut self, step: StepId, answer: Answer) {
        // It may have been answered or ended meanwhile.
        let Some(gate) = self.find_gate(&step).filter(|_| self.state.is_asking(&step)) else { return };
        match answer {
            Answer::Choice { choice, fields } => {
                if !gate.options.contains(&choice) {
                    let fault = format!("gate `{}` has no option `{choice}`", step.name);
                    if let Some(rehearsing) = self.world.rehearsal() {
                        rehearsing.note_fault(Some(&step), fault);
                    }
                }
                let output = self.is_gate(&step).then(|| format_gate_answer(&choice, fields));
                self.record_answer(step, Some(choice), output, AnsweredBy::Person);
            }
            Answer::Unanswered => {
                let timeout = gate.on_timeout.as_ref().map(|timeout| timeout.then.clone());
                let default = timeout.or_else(|| gate.headless.clone()).unwrap_or(GateDefault::Fail);
                self.take_default(step, &default, AnsweredBy::Timeout);
            }
            _ => self.record_answer(step, None, None, AnsweredBy::Person),
        }
    }
}
