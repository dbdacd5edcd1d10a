//! Gates in a rehearsal: the function that answers is asked in the place of a person.

use serde_json::Map;
use swarmc_plan::Body;

use super::api::{Answer, Asks, Turn};
use super::{Due, FakeRun};
use crate::driver::run::eval;
use crate::types::event::{AnsweredBy, Content, Event, StepId};

impl FakeRun<'_, '_> {
    /// Asks the person behind a gate.
    pub(super) fn ask(&mut self, step: StepId) {
        // A `stop` may have ended it before.
        let Some(key) = self.state.find_step(&step).filter(|_| self.state.is_asking(&step)) else { return };
        let definition = self.evaluator.step_definition(&self.state, key);
        let Some(gate) = definition.effective_gate() else { return };
        let is_gate = matches!(definition.body, Body::Gate(_));
        let message = if is_gate {
            self.evaluator.render_gate_message(&self.state, key, &self.made)
        } else {
            Ok("It failed.".to_owned())
        };
        let Ok(message) = message else { return };
        let item = self.evaluator.item(&self.state, key.frame).ok().flatten();
        let asks = Asks::Person { message: &message, options: &gate.options, ask: &gate.ask };
        let (attempt, repair, fixing, schema) = (1, 0, false, None);
        let item = item.as_ref();
        let turn = Turn { step: &step, attempt, repair, fixing, schema, item, member: None, asks };
        match (self.answer)(&turn).timed() {
            (0, answer) => self.answered(step, answer),
            (delay, answer) => self.after(delay, Due::Answer(step, answer)),
        }
    }

    /// Records the answer to a gate, or its timeout.
    pub(super) fn answered(&mut self, step: StepId, answer: Answer) {
        let Some(key) = self.state.find_step(&step).filter(|_| self.state.is_asking(&step)) else { return };
        let definition = self.evaluator.step_definition(&self.state, key);
        let Some(gate) = definition.effective_gate() else { return };
        let (choice, fields, by) = match answer {
            Answer::Choice { choice, fields } => (Some(choice), fields, AnsweredBy::Person),
            Answer::Unanswered => {
                let default = gate.on_timeout.as_ref().map(|timeout| &timeout.then).or(gate.headless.as_ref());
                (eval::default_choice(default), Map::new(), AnsweredBy::Timeout)
            }
            _ => (None, Map::new(), AnsweredBy::Person),
        };
        if let Some(choice) = choice.as_ref().filter(|choice| !gate.options.contains(choice)) {
            self.fault(Some(&step), format!("gate `{}` has no option `{choice}`", step.name));
        }
        let output = choice.as_ref().filter(|_| matches!(definition.body, Body::Gate(_)));
        let output = output.map(|choice| Content::Text(eval::format_gate_answer(choice, fields)));
        self.record(Event::GateAnswered { step, choice, output, by });
    }
}
