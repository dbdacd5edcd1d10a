//! Gates of a run: the driver opens them, and takes answers from people, or defaults if no person answers.
//!
//! The driver checks an answer against the options and fields of the gate, and records it. The person receives a
//! confirmation only when the answer is durable.

use std::borrow::Cow;

use serde_json::{Map, Value};
use swarmc_plan::{Body, Gate, GateDefault};

use super::driver::Driver;
use super::eval::{default_choice, format_gate_answer};
use super::world::World;
use crate::io::input::Reply;
use crate::types::event::{AnsweredBy, Content, Event, Outcome, StepId};
use crate::types::user_request::GateAnswer;

impl Driver<'_> {
    /// Opens a gate that the run has reached: it asks from now on, or takes its default if no person can answer.
    pub(super) fn ask_person(&mut self, step: StepId) {
        let Some(key) = self.state.find_step(&step) else { return };
        match self.evaluator.render_gate_message(&self.state, key, &self.attempts.made) {
            Ok(message) => match self.outputs.store_content(Content::Text(message)) {
                Ok(message) => self.announce_gate(step, message),
                Err(error) => self.give_up(error.to_string()),
            },
            Err(failure) => {
                self.record(Event::AttemptStarted { step: step.clone(), attempt: 1, reserved: None, summarizer: None });
                self.end_attempt(step, 1, Outcome { failure: Some(failure), ..Outcome::default() });
            }
        }
    }

    /// A step has failed, and a person decides what becomes of that.
    pub(super) fn escalate(&mut self, step: StepId) {
        let Some(key) = self.state.find_step(&step) else { return };
        let message = self.state.step(key).detail.as_ref().and_then(|detail| detail.error.clone()).unwrap_or_default();
        match self.outputs.store_content(Content::Text(format!("It failed: {}", message.trim()))) {
            Ok(message) => self.announce_gate(step, message),
            Err(error) => self.give_up(error.to_string()),
        }
    }

    fn announce_gate(&mut self, step: StepId, message: Content) {
        self.record(Event::GateOpened { step: step.clone(), message: message.clone() });
        match &mut self.world {
            World::Real => self.answer_headless(step),
            World::Recorded(_) => self.ask_recording(&step, &message),
            World::Rehearsed(rehearsing) => rehearsing.open_gate(step, message),
            World::Planned(_) => self.look_at_gate(step),
        }
    }

    /// Answers the gates that ask already, if no person can answer them any more.
    pub(super) fn answer_all_headless(&mut self) {
        let asking: Vec<StepId> = self.state.open_steps().filter(|open| open.asking).map(|open| open.step).collect();
        for step in asking {
            match self.is_gate(&step) {
                true => self.answer_headless(step),
                // It was ended before it could ask.
                false => self.escalate(step),
            }
        }
    }

    fn answer_headless(&mut self, step: StepId) {
        if self.requests.headless {
            self.take_headless(&step);
        }
    }

    /// Takes the gate's `headless` default, or else the one of its timeout, since no person will answer. False if the
    /// gate has neither.
    pub(super) fn take_headless(&mut self, step: &StepId) -> bool {
        let timeout = |gate: &Gate| gate.on_timeout.as_ref().map(|timeout| timeout.then.clone());
        let default = self.find_gate(step).and_then(|gate| gate.headless.clone().or_else(|| timeout(&gate)));
        if let Some(default) = &default {
            self.take_default(step.clone(), default, AnsweredBy::Headless);
        }
        default.is_some()
    }

    /// The time of a gate is over, and no person has answered it.
    pub(super) fn time_out(&mut self, step: StepId) {
        let default = self.find_gate(&step).and_then(|gate| gate.on_timeout.clone());
        let default = default.map_or(GateDefault::Fail, |timeout| timeout.then);
        self.take_default(step, &default, AnsweredBy::Timeout);
    }

    pub(super) fn take_default(&mut self, step: StepId, default: &GateDefault, by: AnsweredBy) {
        let choice = default_choice(Some(default));
        let output = choice.as_deref().map(|choice| format_gate_answer(choice, Map::new()));
        self.record_answer(step, choice, output, by);
    }

    pub(super) fn record_answer(
        &mut self,
        step: StepId,
        choice: Option<String>,
        output: Option<String>,
        by: AnsweredBy,
    ) {
        if let Some(rehearsing) = self.world.rehearsal() {
            // A gate that took its default must not be answered once more.
            rehearsing.drop_answer(&step);
        }
        if let Some(text) = &output {
            self.outputs.write_output(&step, text);
        }
        match output.map(|text| self.outputs.store_content(Content::Text(text))).transpose() {
            Ok(output) => {
                // Ahead of the record, whose number it notes.
                self.note_end(&step);
                self.record(Event::GateAnswered { step, choice, output, by });
            }
            Err(error) => self.give_up(error.to_string()),
        }
    }

    /// Takes a person's answer, and replies with the result.
    pub(super) fn take_persons(&mut self, answer: GateAnswer, reply: Reply) {
        let taken = self.world.admit_people().and_then(|()| self.take_answer(answer));
        match taken {
            Ok(()) => self.requests.replies.confirm(reply, String::new()),
            // The caller may have stopped waiting.
            Err(problem) => drop(reply.send(Err(problem))),
        }
    }

    /// Takes a person's answer where it fits the gate.
    pub(super) fn take_answer(&mut self, answer: GateAnswer) -> Result<(), String> {
        if self.state.is_stopping() || self.state.final_status().is_some() {
            return Err("the run is ending: resume it, and answer again".to_owned());
        }
        if let Some(waiting) = self.find_request(&answer.gate) {
            return self.take_verdict(&waiting, answer);
        }
        if answer.gate.parse().is_ok_and(|id| (1..self.state.next_request()).contains(&id)) {
            return Err(format!("approval {} is already answered, or no task waits for it any more", answer.gate));
        }
        if answer.because.is_some() || answer.arguments.is_some() {
            return Err(format!("`{}` is not a request of an agent: it takes no reason and no arguments", answer.gate));
        }
        let (step, output) = self.match_answer(&answer)?;
        // The decision about a step that failed is no output of it.
        let output = self.is_gate(&step).then_some(output);
        self.record_answer(step, Some(answer.choice), output, AnsweredBy::Person);
        Ok(())
    }

    /// The gate that is meant, and its output with this answer.
    fn match_answer(&self, answer: &GateAnswer) -> Result<(StepId, String), String> {
        let asking: Vec<StepId> = self.state.open_steps().filter(|open| open.asking).map(|open| open.step).collect();
        let fits = |step: &&StepId| is_called(step, &answer.gate);
        let step = match asking.iter().filter(fits).collect::<Vec<_>>()[..] {
            [step] => step.clone(),
            [] if asking.is_empty() => return Err(format!("no `{}` waits for an answer", answer.gate)),
            [] => {
                return Err(format!("no gate `{}` waits for an answer: there is {}", answer.gate, list_gates(&asking)));
            }
            _ => {
                return Err(format!("several gates are called `{}`: name one of {}", answer.gate, list_gates(&asking)));
            }
        };
        let gate = self.find_gate(&step).ok_or_else(|| format!("`{step}` is not a gate"))?;
        if !gate.options.contains(&answer.choice) {
            let options = gate.options.join(", ");
            return Err(format!("gate `{}` has no option `{}`: it has {options}", step.name, answer.choice));
        }
        let mut fields = Map::new();
        for (name, text) in &answer.fields {
            let Some(ask) = gate.ask.iter().find(|ask| ask.name == *name) else {
                return Err(format!("gate `{}` does not ask for `{name}`", step.name));
            };
            let shape = self.evaluator.shapes.validator_for(&ask.schema, self.evaluator.plan)?;
            let value = shape.parse_computed(Value::from(text.as_str())).map_err(|violations| {
                format!("`{name}` is not what gate `{}` asks for: {}", step.name, violations.join("; "))
            })?;
            let value = serde_json::from_str(&value).map_err(|error| error.to_string())?;
            if fields.insert(name.clone(), value).is_some() {
                return Err(format!("`{name}` is given twice"));
            }
        }
        match gate.ask.iter().find(|ask| !ask.optional && !fields.contains_key(&ask.name)) {
            Some(ask) => Err(format!("gate `{}` asks for `{}`: add `--ask {}=…`", step.name, ask.name, ask.name)),
            None => Ok((step, format_gate_answer(&answer.choice, fields))),
        }
    }

    /// What is asked about a step.
    pub(super) fn find_gate(&self, step: &StepId) -> Option<Cow<'_, Gate>> {
        self.evaluator.step_definition(&self.state, self.state.find_step(step)?).effective_gate()
    }

    pub(super) fn is_gate(&self, step: &StepId) -> bool {
        let key = self.state.find_step(step);
        key.is_some_and(|key| matches!(self.evaluator.step_definition(&self.state, key).body, Body::Gate(_)))
    }
}

/// Whether a person may mean this gate: by its name, with what it is inside of, or in full.
fn is_called(step: &StepId, word: &str) -> bool {
    *step.name == *word || step.label() == word || step.to_string() == word
}

fn list_gates(gates: &[StepId]) -> String {
    gates.iter().take(20).map(|gate| format!("`{}`", gate.label())).collect::<Vec<_>>().join(", ")
}
