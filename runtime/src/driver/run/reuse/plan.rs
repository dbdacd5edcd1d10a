//! What a run with `--reuse` would do, without doing it: `swarmc plan --reuse`, and the check before `run --from`.
//!
//! In: a plan, options and the results of earlier runs. Out: for each step whether it would be reused, or why it would
//! run. The driver is that of every run, in memory: a step that would run takes the result that it had before, so that
//! the steps behind it can be looked at, and those are then uncertain. Invariant: nothing starts, no file is written, and
//! a step that is called reused is one that a run would reuse as long as no file changes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use swarmc_plan::Plan;

use super::super::driver::Driver;
use super::super::imagined::{Imagined, run_in_memory};
use super::super::prepare::Prepared;
use super::super::process_env::ProcessEnv;
use super::super::world::World;
use super::super::{Options, count_processors, reachable_pipelines};
use super::{Decision, Reuser};
use crate::core::graph::Key as At;
use crate::io::home::Home;
use crate::io::input::Input;
use crate::types::error::RunError;
use crate::types::event::{Content, Failure, Outcome, StepId, Usage};
use crate::types::reuse::Reuse;

/// The records of a look at most: one that needs more goes round without end.
const RECORDS: usize = 1_000_000;

/// The name of what stands for a run: no run has it.
const ID: &str = ".plan";

/// What a run would do with a step.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedStep {
    /// The step.
    pub step: StepId,
    /// What would become of it.
    pub fate: Fate,
}

/// What would become of a step.
#[derive(Clone, Debug, PartialEq)]
pub enum Fate {
    /// An earlier result takes its place.
    Reused {
        /// The run that made the result.
        run: String,
        /// What it used then.
        usage: Option<Usage>,
    },
    /// It runs.
    Runs {
        /// Why, in words: `its prompt changed`.
        reason: String,
        /// The prompt before and now, where that changed and the earlier one is still there.
        prompts: Option<(String, String)>,
    },
    /// It runs if what this other step gives changes.
    Depends {
        /// The other step, by name.
        on: String,
    },
}

/// A look, in the loop.
#[derive(Debug, Default)]
pub(in super::super) struct Planning {
    steps: Vec<PlannedStep>,
    /// The steps whose results may change, by pipeline, instance and name, with the first round in which they may.
    unsure: BTreeMap<(String, u32, Arc<str>), u32>,
    /// Whether a step that would run had no result before, so that what reads it was looked at without.
    is_guessed: bool,
}

/// Says what a run of `plan` would do with its steps, in the order in which they would begin.
///
/// # Errors
/// The request does not fit the plan, or earlier results cannot be read.
pub fn plan_reuse(home: &Home, plan: &Plan, options: Options) -> Result<Vec<PlannedStep>, RunError> {
    let imagined = Imagined {
        folder: home.run_folder(ID.to_owned()),
        reuse: Reuser::look(home, &plan.workflow, options.reuse.as_ref().unwrap_or(&Reuse::ANY))?,
        world: World::Planned(Box::default()),
        concurrency: count_processors(),
        records: RECORDS,
    };
    let (driver, _) = run_in_memory(plan, &options, imagined, |graph| {
        ProcessEnv::new(reachable_pipelines(plan, graph), &options.workspace, options.environment.clone())
    })?;
    if let Some(reason) = driver.records.broken {
        return Err(RunError::Request(format!("what would run cannot be told: {reason}")));
    }
    match driver.world {
        World::Planned(planning) => Ok(planning.steps),
        World::Real | World::Recorded(_) | World::Rehearsed(_) => Ok(Vec::new()),
    }
}

impl Driver<'_> {
    /// What happens next in a look: nothing but that the time goes on.
    pub(in super::super) fn wait_planned(&mut self) -> Option<Input> {
        if !self.fire_alarm() {
            self.give_up("a step waits for something that a plan does not have".to_owned());
        }
        None
    }

    /// Notes what would become of an attempt, and ends it: with an earlier result, or with the one that the step had
    /// before.
    pub(in super::super) fn look_at_attempt(
        &mut self,
        (step, attempt): (StepId, u32),
        prepared: Result<Prepared, Failure>,
        decision: Decision,
    ) {
        let Some(at) = self.state.find_step(&step) else { return };
        let cause = self.find_unsure(at);
        let base = self.attempts.reuse.earlier_outcome(&step);
        let is_guessed = base.is_none();
        let (fate, outcome) = match (prepared, decision) {
            (_, Decision::Take(taken)) => {
                let fate = Fate::Reused { run: taken.entry.run.clone(), usage: taken.entry.outcome.usage };
                self.note_fate(at, &step, cause, fate, false);
                return self.take_result(step, attempt, *taken);
            }
            // What is computed follows from what it reads.
            (Ok(Prepared::Text(text)), _) => {
                if cause.is_some() {
                    self.mark_unsure(at, &step);
                }
                let outcome = Outcome { output: Some(Content::Text(text)), ..Outcome::default() };
                return self.end_attempt(step, attempt, outcome);
            }
            (Err(failure), _) => {
                let reason = format!("it fails before it begins: {failure}");
                let outcome = base.unwrap_or_else(|| Outcome::from_failure(failure));
                (Fate::Runs { reason, prompts: None }, outcome)
            }
            (Ok(Prepared::Swarm(_)), _) => {
                (Fate::Runs { reason: super::SWARM.to_owned(), prompts: None }, base.unwrap_or_default())
            }
            (Ok(Prepared::Job(job)), Decision::Run(reason)) => {
                let reason = reason.unwrap_or_else(|| "it is part of another attempt".to_owned());
                let now = job.work.candidates().first().map(|candidate| candidate.prompt.clone());
                let prompts = now.and_then(|now| Some((self.earlier_prompt(&step)?, now)));
                let prompts = prompts.filter(|(before, now)| before != now);
                (Fate::Runs { reason, prompts }, base.unwrap_or_default())
            }
        };
        self.note_fate(at, &step, cause, fate, true);
        if let World::Planned(planning) = &mut self.world {
            planning.is_guessed |= is_guessed;
        }
        let output = outcome.output.or_else(|| Some(Content::Text(String::new())));
        self.end_attempt(step, attempt, Outcome { output, ..outcome });
    }

    /// A gate asks: it takes the answer that needs no person, or else its first option.
    pub(in super::super) fn look_at_gate(&mut self, step: StepId) {
        let Some(at) = self.state.find_step(&step) else { return };
        let fate = Fate::Runs { reason: "it asks a person".to_owned(), prompts: None };
        self.note_fate(at, &step, None, fate, true);
        if !self.take_headless(&step) {
            let first = self.find_gate(&step).and_then(|gate| gate.options.first().cloned());
            let default = first.map_or(swarmc_plan::GateDefault::Fail, swarmc_plan::GateDefault::Option);
            self.take_default(step, &default, crate::types::event::AnsweredBy::Headless);
        }
    }

    fn note_fate(&mut self, at: At, step: &StepId, cause: Option<String>, fate: Fate, runs: bool) {
        if runs || cause.is_some() {
            self.mark_unsure(at, step);
        }
        let World::Planned(planning) = &mut self.world else { return };
        let fate = match (fate, cause) {
            // What changed in it is known, whatever comes of the others.
            (fate @ Fate::Runs { .. }, _) if !planning.is_guessed => fate,
            (_, Some(on)) => Fate::Depends { on },
            (fate, None) => fate,
        };
        // A further attempt says nothing new.
        if planning.steps.last().is_none_or(|last| last.step != *step) {
            planning.steps.push(PlannedStep { step: step.clone(), fate });
        }
    }

    fn mark_unsure(&mut self, at: At, step: &StepId) {
        let pipeline = self.evaluator.pipeline(&self.state, at.frame).name.clone();
        // What is around it depends on it as well.
        let mut names = vec![(pipeline, step.instance, Arc::clone(&step.name))];
        let mut frame = at.frame;
        while let Some(parent) = self.state.frame(frame).parent {
            let around = self.evaluator.pipeline(&self.state, parent.frame).name.clone();
            names.push((around, step.instance, Arc::clone(&self.state.node(parent).name)));
            frame = parent.frame;
        }
        let World::Planned(planning) = &mut self.world else { return };
        for name in names {
            planning.unsure.entry(name).or_insert(step.iteration);
        }
    }

    /// A step that a step depends on, and whose result may change.
    fn find_unsure(&self, at: At) -> Option<String> {
        let World::Planned(planning) = &self.world else { return None };
        let mut seen = BTreeSet::new();
        let mut next = Some(at);
        while let Some(at) = next {
            let frame = self.state.frame(at.frame);
            let pipeline = &self.evaluator.pipeline(&self.state, at.frame).name;
            let step = self.evaluator.step_definition(&self.state, at);
            if seen.insert((pipeline, &step.name)) {
                let unsure =
                    |name: &str| planning.unsure.contains_key(&(pipeline.clone(), frame.instance, Arc::from(name)));
                if let Some(need) = step.needs.iter().find(|need| unsure(&need.step)) {
                    return Some(need.step.clone());
                }
                // The rounds before decide whether there is this one, and what it reads of them.
                let earlier = planning.unsure.iter().find(|((of, instance, _), round)| {
                    of == pipeline && *instance == frame.instance && **round < frame.iteration
                });
                if let Some(((_, _, name), _)) = earlier {
                    return Some(name.to_string());
                }
            }
            next = frame.parent;
        }
        None
    }
}
