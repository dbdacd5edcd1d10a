//! A rehearsal: runs a plan in memory, with the core, conditions and templates of a run, in a time of its own.
//!
//! In: the plan, the options of a run, and a function that returns the answer of every agent, command and person. Out:
//! how it ended, what was asked, and what could not be rendered. A rehearsal starts and writes nothing; it reads files
//! only where a `<<file:…>>` says so.

mod api;
mod gates;
mod handed;
mod memory;
mod swarms;
mod virtual_time;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde_json::{Map, Value};
use swarmc_plan::{Body, Command as Line, EnvValue, Plan, Step};

use crate::core::decide::{Command, decide_commands};
use crate::core::graph::{Graph, Key};
use crate::core::state::State;
use crate::core::state::budget::Refusal;
use crate::driver::run::eval::{self, Evaluator, Made};
use crate::driver::run::{self, Options, View};
use crate::eval::render::RenderError;
use crate::types::answer::{append_instruction, compact_json, render_repair_prompt};
use crate::types::error::RunError;
use crate::types::event::{Content, Event, Failure, Outcome, Record, RunStatus, StepId, VERSION};
use crate::types::handoff::{Operation, asked_for};

pub use api::{Answer, Asks, Fault, Member, Prompted, Rehearsal, Turn};
use memory::Memory;
use virtual_time::{Pace, Said, said};

/// The records of a rehearsal at most: whatever needs more does not end in this life.
const LONGEST: u64 = 2_000_000;

/// What a turn that mends a failure is taken to read, in bytes.
const LONGEST_FIX: usize = 4096;

/// Rehearses a run of `plan`: `answer` returns the answer of every agent, command and person.
///
/// # Errors
/// The request does not fit the plan, or the rehearsal takes more than two million records.
pub fn rehearse(
    plan: &Plan,
    options: &Options,
    answer: &mut dyn FnMut(&Turn<'_>) -> Answer,
) -> Result<Rehearsal, RunError> {
    let pipeline = run::find_pipeline(plan, options.pipeline.as_deref())?;
    let params = run::resolve_params(plan, pipeline, options.params.clone())?;
    let graph = Graph::new(plan, &pipeline.name, options.task.as_deref(), 4);
    let graph = Arc::new(graph.map_err(|error| RunError::Request(error.to_string()))?);
    let stdin = options.stdin.as_ref().map(|bytes| Content::Text(String::from_utf8_lossy(bytes).into_owned()));
    let memory = Memory::default();
    let names = ("rehearsal".to_owned(), options.workspace.join("rehearsal"), options.workspace.clone());
    let evaluator = Evaluator::new(plan, &graph, params, stdin, names, Box::new(memory.clone()));
    let mut stage = FakeRun {
        evaluator,
        state: State::new(graph),
        memory,
        made: Made::default(),
        answer,
        clock: 0,
        seq: 0,
        due: BTreeMap::new(),
        gates: VecDeque::new(),
        pace: Pace::default(),
        asked: Vec::new(),
        story: Rehearsal {
            status: RunStatus::Failed,
            ends: Vec::new(),
            values: Vec::new(),
            steps: Vec::new(),
            launches: 0,
            turns: 0,
            prompts: Vec::new(),
            faults: Vec::new(),
            missing: Vec::new(),
            records: Vec::new(),
            texts: BTreeMap::new(),
        },
    };
    stage.run(pipeline.name.clone(), options.task.clone())?;
    Ok(stage.finish())
}

/// A rehearsal while it goes on.
struct FakeRun<'a, 'b> {
    evaluator: Evaluator<'a>,
    state: State,
    memory: Memory,
    /// What evaluations made that is not yet recorded.
    made: Made,
    answer: &'b mut dyn FnMut(&Turn<'_>) -> Answer,
    clock: u64,
    seq: u64,
    /// What will happen, by its time and then in the order in which it was known.
    due: BTreeMap<(u64, u64), Due>,
    /// Gates that ask.
    gates: VecDeque<StepId>,
    /// The time of the attempt that is being performed.
    pace: Pace,
    /// What the answers of the attempt that is performed ask for.
    asked: Vec<Result<Operation, String>>,
    story: Rehearsal,
}

/// What will happen.
enum Due {
    /// An attempt that was started ends so.
    End(StepId, u32, Box<Outcome>, Vec<Result<Operation, String>>),
    /// A person answers a gate.
    Answer(StepId, Answer),
    /// The swarm of an attempt receives an input.
    Swarm(StepId, u32, swarms::MemberInput),
}

impl FakeRun<'_, '_> {
    fn run(&mut self, pipeline: String, task: Option<String>) -> Result<(), RunError> {
        self.record(Event::RunStarted {
            version: VERSION,
            run: self.evaluator.run.clone(),
            plan: String::new(),
            pipeline,
            task,
            params: BTreeMap::new(),
            stored_params: None,
            stdin: None,
        });
        // An alarm is set once, however much else happens before it is time.
        let mut wake = None;
        while self.state.final_status().is_none() {
            let mut idle = true;
            for command in decide_commands(&mut self.state, self.clock) {
                if let Command::WakeAt(due) = command {
                    wake = Some(due);
                } else {
                    idle = false;
                    self.carry_out(command);
                }
            }
            let next = self.due.first_key_value().map(|(&(at, _), _)| at);
            if next.is_some_and(|at| at <= self.clock) {
                self.happen();
            } else if let Some(gate) = self.gates.pop_front() {
                self.ask(gate);
            } else if !idle {
                // Time passes when nothing else is left to do.
            } else if let Some(at) = next.filter(|at| wake.is_none_or(|wake| *at < wake)) {
                self.clock = at;
            } else if let Some(at) = wake.take() {
                self.clock = self.clock.max(at);
            } else {
                return Err(RunError::Request("the rehearsal is stuck".to_owned()));
            }
            if self.seq > LONGEST {
                return Err(RunError::Request(format!("the rehearsal takes more than {LONGEST} records")));
            }
        }
        Ok(())
    }

    /// The next thing that is due happens.
    fn happen(&mut self) {
        match self.due.pop_first() {
            Some((_, Due::End(step, attempt, mut outcome, asked))) => {
                self.said(&step, attempt, asked);
                self.bound(&mut outcome);
                self.record(Event::AttemptEnded { step, attempt, outcome: *outcome });
            }
            Some((_, Due::Answer(step, answer))) => self.answered(step, answer),
            Some((_, Due::Swarm(step, attempt, word))) => self.handle_member_input(&step, attempt, word),
            None => {}
        }
    }

    /// Has something happen after so many milliseconds.
    fn after(&mut self, delay: u64, due: Due) {
        let at = self.clock.saturating_add(delay);
        let order = self.due.range((at, 0)..=(at, u64::MAX)).next_back().map_or(0, |(&(_, order), _)| order + 1);
        self.due.insert((at, order), due);
    }

    fn finish(mut self) -> Rehearsal {
        let instances = 1..=self.state.graph().instances();
        self.story.status = self.state.final_status().unwrap_or(RunStatus::Failed);
        self.story.ends = instances.clone().filter_map(|instance| self.state.instance_end(instance)).collect();
        let values = instances.filter_map(|instance| self.state.instance_value(instance));
        self.story.values = values.filter_map(|value| self.evaluator.texts.load_text(value).ok()).collect();
        self.story.texts = self.memory.take();
        self.story
    }

    fn record(&mut self, event: Event) {
        self.memory.store_texts(self.made.take_texts());
        self.seq += 1;
        let step = match &event {
            Event::StepSkipped { step, .. }
            | Event::AttemptEnded { step, .. }
            | Event::GateAnswered { step, .. }
            | Event::NodeClosed { step, .. }
            | Event::ConditionJudged { step, error: Some(_), .. } => {
                self.state.find_step(step).map(|key| (key, step.clone()))
            }
            _ => None,
        };
        let record = Record { seq: self.seq, at: self.clock, event };
        // An item's frame is gone when it has settled, so what becomes of it is told by its record.
        self.state.apply(&record);
        if let Some((key, id)) = step {
            // A person decides what becomes of its failure.
            if self.state.is_asking(&id) {
                self.gates.push_back(id.clone());
            }
            let status = match self.state.find_step(&id) {
                Some(_) => self.state.step(key).status(),
                None => Some(record.event.settled_status()),
            };
            self.story.steps.extend(status.map(|status| (id, status)));
        }
        self.story.records.push(record);
    }

    fn fault(&mut self, step: Option<&StepId>, message: String) {
        self.story.faults.push(Fault { step: step.cloned(), message });
    }

    fn carry_out(&mut self, command: Command) {
        match command {
            Command::Start { step, attempt } => self.start(step, attempt),
            Command::Judge { step } => {
                let Some(key) = self.state.find_step(&step) else { return };
                let event = self.evaluator.judge_condition(&self.state, key, &self.made);
                if let Event::ConditionJudged { error: Some(error), .. } = &event {
                    self.fault(Some(&step), error.clone());
                }
                self.note_missing(Some(&step));
                self.record(event);
            }
            Command::JudgeRound { instance, iteration, within } => {
                let Some(frame) = self.state.frame_of(instance, within.as_ref()) else { return };
                let (holds, problems) = self.evaluator.judge_round(&self.state, frame, &self.made);
                problems.into_iter().for_each(|problem| self.fault(None, problem));
                self.record(Event::RoundJudged { instance, iteration, holds, within });
            }
            Command::Close { step, owes } => self.record(Event::NodeClosed { step, owes }),
            Command::Swarm { step, attempt } => self.swarm(&step, attempt),
            Command::Open { step, attempt } => self.open(step, attempt),
            Command::Conclude { step, attempt, failure } => {
                let Some(key) = self.state.find_step(&step) else { return };
                let outcome = self.evaluator.conclude_step(&self.state, key, failure);
                self.end(step, attempt, outcome);
            }
            Command::Ask { step } => {
                let Some(key) = self.state.find_step(&step) else { return };
                match self.evaluator.render_gate_message(&self.state, key, &self.made) {
                    Ok(message) => {
                        self.record(Event::GateOpened { step: step.clone(), message: Content::Text(message) });
                        self.gates.push_back(step);
                    }
                    Err(failure) => self.fails_at_once(step, 1, failure),
                }
            }
            Command::Overdue => {
                let message = "the time of the run is over".to_owned();
                self.record(Event::BudgetSpent { message });
            }
            Command::TimeOut { step } => {
                self.due.retain(|_, due| !matches!(due, Due::Answer(gate, _) if *gate == step));
                self.answered(step, Answer::Unanswered);
            }
            // A rehearsal approves every step that repeats itself.
            Command::AskToGoOn { step, attempt } => self.go_on(&step, attempt),
            // A rehearsal answers every request at once, so none expires.
            Command::WakeAt(_) | Command::Expire { .. } => {}
            Command::Skip { step, reason } => self.record(Event::StepSkipped { step, reason }),
            Command::Cancel { step, attempt } => {
                self.silence(&step, attempt);
                self.due.retain(
                    |_, due| !matches!(due, Due::End(other, number, ..) if *other == step && *number == attempt),
                );
                let outcome = Outcome::from_failure(Failure::Cancelled);
                self.record(Event::AttemptEnded { step, attempt, outcome });
            }
            Command::Finish { status } => self.record(Event::RunFinished { status }),
        }
    }

    fn open(&mut self, step: StepId, attempt: u32) {
        let Some(key) = self.state.find_step(&step) else { return };
        let opening = self.evaluator.open_step(&self.state, key, &self.made);
        self.note_missing(Some(&step));
        match opening {
            Ok(opening) => {
                let content = |text| self.memory.content(text);
                let (list, params) = (opening.list.map(content), opening.params.map(content));
                self.record(Event::Opened { step, attempt, items: opening.items, list, params });
            }
            Err(failure) => self.fails_at_once(step, attempt, failure),
        }
    }

    fn fails_at_once(&mut self, step: StepId, attempt: u32, failure: Failure) {
        self.record(Event::AttemptStarted { step: step.clone(), attempt, reserved: None, summarizer: None });
        self.end(step, attempt, Outcome::from_failure(failure));
    }

    fn end(&mut self, step: StepId, attempt: u32, mut outcome: Outcome) {
        self.bound(&mut outcome);
        if let Some(failure @ Failure::Render { .. }) = &outcome.failure {
            self.fault(Some(&step), failure.to_string());
        }
        self.record(Event::AttemptEnded { step, attempt, outcome });
    }

    /// Keeps an event small, as a run would.
    fn bound(&self, outcome: &mut Outcome) {
        outcome.limit_size();
        for text in [&mut outcome.output, &mut outcome.errors, &mut outcome.log] {
            if let Some(Content::Text(long)) = text.take_if(|text| matches!(text, Content::Text(_))) {
                *text = Some(self.memory.content(long));
            }
        }
    }

    fn start(&mut self, step: StepId, attempt: u32) {
        let Some(key) = self.state.find_step(&step) else { return };
        let definition = self.evaluator.step_definition(&self.state, key);
        let mut reserved = None;
        if let Some(Ok(body)) = self.evaluator.build_fix_prompt(&self.state, key, attempt, &self.made) {
            reserved = self.evaluator.estimate_reservation(&self.state, 1, &body.agent, LONGEST_FIX);
        } else if let Body::Prompt(body) = &definition.body {
            let bytes = self.prompt_bytes(key, definition);
            let turns = definition.output.schema.as_ref().map_or(1, |_| u64::from(definition.output.repair) + 1);
            reserved = self.evaluator.estimate_reservation(&self.state, turns, &body.agent, bytes);
        }
        let refused = self.state.admit_attempt(key, &reserved.unwrap_or_default()).err();
        if let Some(Refusal::Run(message)) = refused {
            self.record(Event::BudgetSpent { message });
            let outcome = Outcome::from_failure(Failure::Cancelled);
            return self.record(Event::AttemptEnded { step, attempt, outcome });
        }
        self.take_inputs(&step);
        self.made.take_packs().into_iter().for_each(|event| self.record(event));
        self.record(Event::AttemptStarted { step: step.clone(), attempt, reserved, summarizer: None });
        if let Some(Refusal::Step(message)) = refused {
            return self.end(step, attempt, Outcome::from_failure(Failure::Budget { message }));
        }
        if matches!(definition.body, Body::Swarm(_)) {
            return self.begin_swarm(step, attempt, key);
        }
        self.pace = Pace::default();
        let outcome = self.perform(&step, attempt, definition);
        self.note_missing(Some(&step));
        let outcome = outcome.unwrap_or_else(Outcome::from_failure);
        match &definition.body {
            Body::Prompt(_) | Body::Run(_) if !matches!(outcome.failure, Some(Failure::Render { .. })) => {
                let (delay, outcome) = match self.pace.late(definition) {
                    Some((delay, failure)) => (delay, Outcome::from_failure(failure)),
                    None => (self.pace.total, outcome),
                };
                let asked = std::mem::take(&mut self.asked);
                self.after(delay, Due::End(step, attempt, Box::new(outcome), asked));
            }
            _ => self.end(step, attempt, outcome),
        }
    }

    /// How long the prompt of a step is; one that cannot be rendered fails its attempt later.
    fn prompt_bytes(&mut self, key: Key, step: &Step) -> usize {
        let (Body::Prompt(body), Ok(view)) =
            (&step.body, self.evaluator.build_view(&self.state, key.frame, Some(step), &self.made))
        else {
            return 0;
        };
        let system = self.evaluator.plan.agent(&body.agent).and_then(|agent| agent.system.as_ref());
        let texts = [Some(&body.prompt), system, step.stdin.as_ref()].into_iter().flatten();
        let bytes =
            texts.filter_map(|text| self.evaluator.renderer.text(text, &view).ok()).map(|text| text.len()).sum();
        // The attempt itself tells what is missing.
        self.made.take_missing();
        bytes
    }

    /// Renders what an attempt needs, and asks for the answer.
    fn perform(&mut self, id: &StepId, attempt: u32, step: &Step) -> Result<Outcome, Failure> {
        let key = self.state.find_step(id).ok_or_else(|| eval::unknown_step(id))?;
        let item = self.evaluator.item(&self.state, key.frame).map_err(eval::render_failure)?;
        let fixing = self.evaluator.build_fix_prompt(&self.state, key, attempt, &self.made).transpose()?;
        let schema = step.output.schema.as_ref().filter(|_| fixing.is_none());
        let shape = schema.map(|schema| self.evaluator.shapes.validator_for(schema, self.evaluator.plan)).transpose();
        let shape = shape.map_err(|problem| eval::render_failure(format!("step `{}`: {problem}", step.name)))?;
        let view =
            self.evaluator.build_view(&self.state, key.frame, Some(step), &self.made).map_err(eval::render_failure)?;
        let view = View { attempt, ..view };
        let renderer = &self.evaluator.renderer;
        let failed = |error: RenderError| eval::from_render_error(error);
        let stdin = step.stdin.as_ref().map(|text| renderer.text(text, &view)).transpose().map_err(failed)?;
        let pipeline = self.evaluator.pipeline(&self.state, key.frame);
        for value in pipeline.env.iter().chain(&step.env) {
            if let EnvValue::Set { value, .. } = value {
                renderer.text(value, &view).map_err(failed)?;
            }
        }
        let computed = |value: Value| match &shape {
            Some(shape) => shape.parse_computed(value).map_err(|violations| Failure::Invalid { violations }),
            None => Ok(match value {
                Value::String(text) => text,
                other => other.to_string(),
            }),
        };
        let done = |text: String| Outcome { output: Some(Content::Text(text)), exit: Some(0), ..Outcome::default() };
        let asked = match (&fixing, &step.body) {
            (Some(body), _) | (None, Body::Prompt(body)) => Some(body),
            (None, _) => None,
        };
        let (agent, system, prompt) = match &step.body {
            Body::Value(template) => {
                let value = match shape.is_some() {
                    true => renderer.value(template, &view).map_err(failed)?,
                    false => Value::String(renderer.text(template, &view).map_err(failed)?),
                };
                return invalid_is_a_fault(&mut self.story, id, computed(value)).map(done);
            }
            Body::Fields(fields) => {
                let fields = fields.iter().map(|(name, template)| Ok((name.clone(), renderer.value(template, &view)?)));
                let record = fields.collect::<Result<Map<_, _>, RenderError>>().map_err(failed)?;
                let text = match shape {
                    Some(_) => invalid_is_a_fault(&mut self.story, id, computed(Value::Object(record)))?,
                    None => compact_json(Value::Object(record)),
                };
                return Ok(done(text));
            }
            Body::Stop { message, .. } => return Ok(done(renderer.text(message, &view).map_err(failed)?)),
            _ if let Some(body) = asked => {
                let agent = self.evaluator.plan.agent(&body.agent);
                let agent =
                    agent.ok_or_else(|| eval::render_failure(format!("the plan has no agent `{}`", body.agent)))?;
                let mut prompt = match fixing.is_none() {
                    true => self.evaluator.build_prompt_blocks((&self.state, key), body, &view)?.text(),
                    false => renderer.text(&body.prompt, &view).map_err(failed)?,
                };
                let system =
                    agent.system.as_ref().map(|text| renderer.text(text, &view)).transpose().map_err(failed)?;
                if let Some(data) = &stdin {
                    prompt = format!("{prompt}\n\n{data}");
                }
                if let Some(shape) = &shape {
                    prompt = append_instruction(&prompt, shape);
                }
                (Some(agent), system, prompt)
            }
            Body::Prompt(_) | Body::Run(_) => (None, None, String::new()),
            Body::Call(_) | Body::Swarm(_) | Body::Gate(_) | Body::Loop(_) => {
                return Err(eval::render_failure(format!("`{}` cannot be rehearsed", step.name)));
            }
        };
        if let Some(agent) = agent {
            let (agent, prompt) = (agent.name.clone(), prompt.clone());
            self.story.prompts.push(Prompted { step: id.clone(), attempt, agent, prompt });
        }
        let speaks = fixing.is_none() && self.evaluator.can_operate(&self.state, key);
        let mut repair = 0;
        let mut again = prompt.clone();
        loop {
            self.story.launches += 1;
            self.story.turns += u64::from(agent.is_some());
            let asks = match (agent, &step.body) {
                (Some(agent), _) => Asks::Agent { agent: &agent.name, system: system.as_deref(), prompt: &again },
                (None, Body::Run(command)) => Asks::Command { command, stdin: stdin.as_deref() },
                (None, _) => return Err(eval::unknown_step(id)),
            };
            let fixing = fixing.is_some();
            let turn = Turn { step: id, attempt, repair, fixing, schema, item: item.as_ref(), member: None, asks };
            let keeps_text = agent.is_none() && shape.is_none();
            let said = said((self.answer)(&turn), &mut self.pace);
            let log = (step.keeps_log && agent.is_none()).then(|| Content::Text(said.log()));
            let Said { mut text, exit, stderr } = said;
            if self.pace.late(step).is_some() {
                // It was ended before, and what it would have said is not heard.
                return Ok(Outcome::default());
            }
            if exit != 0 {
                let output = keeps_text.then_some(Content::Text(text));
                let failure = Some(Failure::Exit);
                return Ok(Outcome { failure, exit: Some(exit), stderr, output, log, ..Outcome::default() });
            }
            if speaks {
                let (asked, rest) = asked_for(&text, [&*prompt, &again].into_iter().chain(system.as_deref()));
                self.asked.extend(asked);
                text = rest;
            }
            let read = shape.as_ref().map(|shape| (shape, shape.parse_answer(&text)));
            let text = match (read, agent) {
                (None, _) => text,
                (Some((_, Ok(text))), _) => text,
                (Some((shape, Err(violations))), Some(_)) if repair < step.output.repair => {
                    again = render_repair_prompt(&prompt, &text, &violations, shape);
                    repair += 1;
                    continue;
                }
                (Some((_, Err(violations))), _) => return Err(Failure::Invalid { violations }),
            };
            let failed = if fixing { None } else { self.check(&turn, step) };
            return Ok(match failed {
                None => Outcome { log, ..done(text) },
                Some(outcome) => Outcome { output: keeps_text.then_some(Content::Text(text)), log, ..outcome },
            });
        }
    }

    /// Runs the checks of a step until one fails.
    fn check(&mut self, turn: &Turn<'_>, step: &Step) -> Option<Outcome> {
        for (command, number) in step.checks.iter().zip(1..) {
            self.story.launches += 1;
            let asks = Asks::Check { command, number };
            let turn = Turn { asks, schema: None, ..*turn };
            let said = said((self.answer)(&turn), &mut self.pace);
            if said.exit != 0 {
                let line = match command {
                    Line::Argv(words) | Line::Script { argv: words, .. } => words.join(" "),
                    Line::Shell(line) => line.clone(),
                };
                let stderr = if said.stderr.is_empty() { said.text } else { said.stderr };
                let failure = Some(Failure::Check { line, exit: Some(said.exit) });
                return Some(Outcome { failure, exit: Some(0), stderr, ..Outcome::default() });
            }
        }
        None
    }

    fn note_missing(&mut self, step: Option<&StepId>) {
        let missing = self.made.take_missing();
        self.story.missing.extend(missing.into_iter().map(|message| Fault { step: step.cloned(), message }));
    }
}

/// What a computed value of the wrong type is: a mistake of the plan.
fn invalid_is_a_fault(
    story: &mut Rehearsal,
    step: &StepId,
    computed: Result<String, Failure>,
) -> Result<String, Failure> {
    if let Err(failure) = &computed {
        story.faults.push(Fault { step: Some(step.clone()), message: failure.to_string() });
    }
    computed
}

#[cfg(test)]
mod budgets;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod timing;
