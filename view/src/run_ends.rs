//! How the steps of a run ended, each with what came of it the last time that it ran.
//!
//! In: the records of a run. Out: references into them; texts that lie beside the journal are not read.

use std::collections::HashMap;

use swarmc_runtime::{Content, Event, Outcome, Record, SkipReason, StepId};

/// How the steps of a run ended.
#[derive(Debug, Default)]
pub struct RunEnds<'r> {
    /// The steps that began, or that were decided not to.
    pub steps: HashMap<&'r StepId, StepEnd<'r>>,
    /// The budgets that were spent, in words.
    pub spent: Vec<&'r str>,
}

/// The last end of a step.
#[derive(Debug, Default)]
pub struct StepEnd<'r> {
    /// The number of the record of its beginning; none where it did not run.
    pub begun: Option<u64>,
    /// The number of the record of its end; 0 where it has none.
    pub ended: u64,
    /// The output of its last attempt.
    pub output: Option<&'r Content>,
    /// What a person chose since then.
    pub answer: Option<&'r Content>,
    /// Why it failed, or did not run.
    pub reason: Option<EndReason<'r>>,
}

/// Why a step failed, or did not run.
#[derive(Clone, Copy, Debug)]
pub enum EndReason<'r> {
    /// Its last attempt failed.
    Failed(&'r Outcome),
    /// Its `when` could not be evaluated.
    Condition(&'r str),
    /// It was skipped.
    Skipped(&'r SkipReason),
}

impl<'r> RunEnds<'r> {
    /// Those that the records say.
    pub fn collect(records: &'r [Record]) -> RunEnds<'r> {
        let mut ends = RunEnds::default();
        records.iter().for_each(|record| ends.apply(record));
        ends
    }

    fn apply(&mut self, record: &'r Record) {
        match &record.event {
            Event::AttemptStarted { step, .. } | Event::Opened { step, .. } | Event::GateOpened { step, .. } => {
                self.step(step).begun.get_or_insert(record.seq);
            }
            Event::AttemptEnded { step, outcome, .. } => {
                let end = self.step(step);
                end.ended = record.seq;
                (end.output, end.answer) = (outcome.output.as_ref(), None);
                end.reason = outcome.failure.is_some().then_some(EndReason::Failed(outcome));
            }
            Event::GateAnswered { step, output, .. } => {
                let end = self.step(step);
                end.ended = record.seq;
                end.answer = output.as_ref().or(end.answer);
            }
            Event::StepSkipped { step, reason } => self.step(step).reason = Some(EndReason::Skipped(reason)),
            Event::ConditionJudged { step, error: Some(error), .. } => {
                self.step(step).reason = Some(EndReason::Condition(error));
            }
            Event::BudgetSpent { message, .. } => self.spent.push(message),
            _ => {}
        }
    }

    fn step(&mut self, step: &'r StepId) -> &mut StepEnd<'r> {
        self.steps.entry(step).or_default()
    }
}
