//! Rehearsals (`swarmc test`): runs in memory, in which a function answers in the place of agents, commands and people.
//!
//! In: a plan, options and the function. Out: how the run went. The driver is the one of every run; this module is the
//! world around it: it answers what the driver starts and asks, and has time pass when nothing else is left to do.
//! Invariants: no process starts, and no file is written. An attempt is asked for when all is decided that follows from an
//! input, as a run starts it then; a member of a swarm is asked at once.

mod api;
mod gates;
mod jobs;
mod swarms;

use std::collections::{BTreeMap, VecDeque};

use swarmc_plan::{Body, Plan};

use super::Options;
use super::driver::Driver;
use super::eval::Made;
use super::imagined::{Imagined, run_in_memory};
use super::process_env::ProcessEnv;
use super::reuse::Reuser;
use super::world::World;
use crate::core::graph::Key;
use crate::io::home::RunFolder;
use crate::io::input::Input;
use crate::types::error::RunError;
use crate::types::event::{Content, Event, Failure, Outcome, Record, RunStatus, Status, StepId};

pub use api::{Answer, Asks, Fault, Member, Prompted, Rehearsal, Turn};

/// The records of a rehearsal at most: one that needs more goes round without end.
const RECORDS: usize = 2_000_000;

/// The agents and commands that run at once.
const CONCURRENCY: u32 = 4;

/// The id of every rehearsal: the names of helpers are made from it.
const ID: &str = "rehearsal";

/// Rehearses a run of `plan`: `answer` returns the answer of every agent, command and person. Of the workspace it reads only
/// the files that texts of the plan name with `<<file:…>>`.
///
/// # Errors
/// The request does not fit the plan, or the plan has what this version cannot run. The rehearsal takes more than two
/// million records, or nothing can happen in it any more. The system has no file descriptor left.
pub fn rehearse(
    plan: &Plan,
    options: &Options,
    answer: &mut (dyn FnMut(&Turn<'_>) -> Answer + Send),
) -> Result<Rehearsal, RunError> {
    let path = options.workspace.join(ID);
    let rehearsing = Rehearsing { answer, due: BTreeMap::new(), gates: VecDeque::new(), report: Rehearsal::empty() };
    let imagined = Imagined {
        folder: RunFolder { id: ID.to_owned(), outputs: path.join("outputs"), path },
        reuse: Reuser::default(),
        world: World::Rehearsed(Box::new(rehearsing)),
        concurrency: CONCURRENCY,
        records: RECORDS,
    };
    let (driver, texts) =
        run_in_memory(plan, options, imagined, |_| Ok(ProcessEnv::imagined(plan, &options.workspace)))?;
    let mut report = driver.finish_rehearsal()?;
    report.texts = texts.take();
    Ok(report)
}

/// The world of a rehearsal.
pub(super) struct Rehearsing<'a> {
    answer: &'a mut (dyn FnMut(&Turn<'_>) -> Answer + Send),
    /// What will happen, by its time and then in the order in which it was known.
    due: BTreeMap<(u64, u64), Due>,
    /// Gates that ask, with what they say.
    gates: VecDeque<(StepId, Content)>,
    report: Rehearsal,
}

/// What will happen.
enum Due {
    /// The driver receives these, one after another.
    Inputs(Vec<Input>),
    /// A person answers a gate.
    Answer(StepId, Answer),
}

impl Due {
    /// Whether an attempt does it, or its swarm.
    fn is_of(&self, of: &StepId, number: u32) -> bool {
        let Due::Inputs(inputs) = self else { return false };
        inputs.iter().any(|input| match input {
            Input::Said { step, attempt, .. }
            | Input::Ended { step, attempt, .. }
            | Input::Swarm { step, attempt, .. } => step == of && *attempt == number,
            _ => false,
        })
    }
}

/// A step that a record may settle.
pub(super) struct Settling {
    step: StepId,
    key: Key,
    /// How it has ended, where it is gone with the frame that it was part of.
    gone: Status,
}

impl Rehearsing<'_> {
    /// Keeps what happened.
    pub(super) fn keep_records(&mut self, records: Vec<Record>) {
        self.report.records.extend(records);
    }

    /// Asks for an answer, and counts what that would have started.
    fn ask(&mut self, turn: &Turn<'_>) -> Answer {
        match turn.asks {
            Asks::Agent { .. } => {
                self.report.launches += 1;
                self.report.turns += 1;
            }
            Asks::Command { .. } | Asks::Check { .. } => self.report.launches += 1,
            Asks::Tool { .. } | Asks::Person { .. } => {}
        }
        (self.answer)(turn)
    }

    /// A gate asks.
    pub(super) fn open_gate(&mut self, step: StepId, message: Content) {
        self.gates.push_back((step, message));
    }

    /// Notes a problem of the plan.
    pub(super) fn note_fault(&mut self, step: Option<&StepId>, message: String) {
        self.report.faults.push(Fault { step: step.cloned(), message });
    }

    /// Notes the values that were missing before `event`.
    fn note_missing(&mut self, event: &Event, made: &mut Made) {
        let missing = made.take_missing().into_iter();
        self.report.missing.extend(missing.map(|message| Fault { step: event.step().cloned(), message }));
    }

    /// Drops the answer to a gate that has another one.
    pub(super) fn drop_answer(&mut self, gate: &StepId) {
        self.due.retain(|_, due| !matches!(due, Due::Answer(step, _) if step == gate));
    }

    /// Drops what an attempt would still have done. False where it would have done nothing.
    pub(super) fn drop_attempt(&mut self, step: &StepId, attempt: u32) -> bool {
        let before = self.due.len();
        self.due.retain(|_, due| !due.is_of(step, attempt));
        self.due.len() < before
    }
}

impl Driver<'_> {
    /// What happens next in a rehearsal.
    pub(super) fn wait_rehearsed(&mut self) -> Option<Input> {
        let (now, alarm) = (self.records.clock, self.queue.alarm.map(|alarm| alarm.due));
        let rehearsing = self.world.rehearsal()?;
        let next = rehearsing.due.first_key_value().map(|(&(at, _), _)| at);
        // A gate is asked last of all that happens at one time, as any of that may end it.
        if next.is_none_or(|at| at > now)
            && let Some((gate, message)) = rehearsing.gates.pop_front()
        {
            self.ask_test(&gate, &message);
            return None;
        }
        // At the same time the alarm comes first: an answer at the very limit is too late.
        if let Some(at) = next.filter(|&at| at <= now || alarm.is_none_or(|alarm| at < alarm)) {
            let due = rehearsing.due.pop_first();
            self.records.advance_clock(at);
            return match due?.1 {
                Due::Inputs(inputs) => {
                    let mut inputs = inputs.into_iter();
                    let first = inputs.next();
                    self.queue.held.extend(inputs);
                    first
                }
                Due::Answer(gate, answer) => {
                    self.answer_rehearsed(gate, answer);
                    None
                }
            };
        }
        if !self.fire_alarm() {
            self.give_up("the rehearsal is stuck".to_owned());
            // No thread reports their ends, for which the loop would wait.
            self.attempts.open.clear();
        }
        None
    }

    /// Has something happen after so many milliseconds.
    fn schedule(&mut self, delay: u64, due: Due) {
        let at = self.records.clock.saturating_add(delay);
        if let Some(Rehearsing { due: all, .. }) = self.world.rehearsal() {
            // Behind what happens at the same time and was known before.
            let order = all.range((at, 0)..=(at, u64::MAX)).next_back().map_or(0, |(&(_, order), _)| order + 1);
            all.insert((at, order), due);
        }
    }

    /// Ends an attempt of a rehearsal early. False where it has not begun, or this is no rehearsal.
    pub(super) fn cancel_rehearsed(&mut self, step: &StepId, attempt: u32) -> bool {
        if !self.world.rehearsal().is_some_and(|rehearsing| rehearsing.drop_attempt(step, attempt)) {
            return false;
        }
        self.requests.forget_attempt(step, attempt);
        self.attempts.close(step, attempt);
        self.end_attempt(step.clone(), attempt, Outcome::from_failure(Failure::Cancelled));
        true
    }

    /// In a rehearsal, notes what an event that is about to be recorded says of the plan, and finds the step that it may
    /// settle.
    pub(super) fn note_event(&mut self, event: &Event) -> Option<Settling> {
        let rehearsing = self.world.rehearsal()?;
        rehearsing.note_missing(event, &mut self.attempts.made);
        let step = match event {
            Event::StepSkipped { step, .. }
            | Event::AttemptEnded { step, .. }
            | Event::GateAnswered { step, .. }
            | Event::NodeClosed { step, .. }
            | Event::ConditionJudged { step, error: Some(_), .. } => step,
            _ => return None,
        };
        let key = self.state.find_step(step)?;
        let body = &self.evaluator.step_definition(&self.state, key).body;
        let is_computed = matches!(body, Body::Value(_) | Body::Fields(_));
        match event {
            Event::ConditionJudged { error: Some(error), .. } => rehearsing.note_fault(Some(step), error.clone()),
            Event::AttemptEnded { outcome: Outcome { failure: Some(failure), .. }, .. } => match failure {
                Failure::Render { .. } => rehearsing.note_fault(Some(step), failure.to_string()),
                // A computed value of the wrong type is a mistake of the plan.
                Failure::Invalid { .. } if is_computed => rehearsing.note_fault(Some(step), failure.to_string()),
                _ => {}
            },
            _ => {}
        }
        Some(Settling { step: step.clone(), key, gone: event.settled_status() })
    }

    /// Notes how a step ended, where its record has settled it.
    pub(super) fn note_settled(&mut self, Settling { step, key, gone }: Settling) {
        // The frame of an item is gone when the item has settled.
        let status = match self.state.find_step(&step) {
            Some(_) => self.state.step(key).status(),
            None => Some(gone),
        };
        if let Some(rehearsing) = self.world.rehearsal() {
            rehearsing.report.steps.extend(status.map(|status| (step, status)));
        }
    }

    /// How the rehearsal went.
    fn finish_rehearsal(self) -> Result<Rehearsal, RunError> {
        if let Some(reason) = self.records.broken {
            let is_long = self.records.seq > RECORDS as u64;
            let endless = format!("the rehearsal takes more than {RECORDS} records");
            return Err(RunError::Request(if is_long { endless } else { reason }));
        }
        let instances = 1..=self.state.graph().instances();
        let values = super::load_values(&self.state, &*self.outputs.texts)?;
        let ends = instances.filter_map(|instance| self.state.instance_end(instance)).collect();
        let status = self.state.final_status().unwrap_or(RunStatus::Failed);
        let report = match self.world {
            World::Rehearsed(rehearsing) => rehearsing.report,
            World::Real | World::Recorded(_) | World::Planned(_) => Rehearsal::empty(),
        };
        Ok(Rehearsal { status, ends, values, ..report })
    }
}

#[cfg(test)]
mod tests;
