//! Which records of a run still count after it went on past its end: those of steps that ran again do not.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::types::event::{Event, Record, StepId};

/// The records that count: all of them, but for those of steps that ran again after the end of the run.
pub fn effective(records: &[Record]) -> Cow<'_, [Record]> {
    let is_about = |record: &Record| {
        matches!(record.event, Event::RunReopened { .. } | Event::StepReopened { .. } | Event::UsedBefore { .. })
    };
    if !records.iter().any(is_about) {
        return Cow::Borrowed(records);
    }
    let mut kept: Vec<&Record> = Vec::with_capacity(records.len());
    let mut batch: Vec<&Record> = Vec::new();
    for record in records {
        match &record.event {
            Event::StepReopened { .. } | Event::UsedBefore { .. } => batch.push(record),
            Event::RunReopened { lines, .. } => {
                // A runner may have been killed before it had recorded all of a batch: only the last one counts.
                batch.drain(..batch.len().saturating_sub(*lines as usize));
                let marks: Vec<Mark> = batch.iter().filter_map(|record| Mark::read(&record.event)).collect();
                let marks = Marks::of(&marks);
                kept.retain(|record| marks.keep(record));
                kept.append(&mut batch);
                kept.push(record);
            }
            _ => {
                batch.clear();
                kept.push(record);
            }
        }
    }
    Cow::Owned(kept.into_iter().cloned().collect())
}

/// A step that runs again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub step: StepId,
    /// The attempt that it goes on with.
    pub attempt: u32,
    /// Some of what is inside of it stays.
    pub inside: bool,
}

impl Mark {
    pub(crate) fn event(&self) -> Event {
        Event::StepReopened { step: self.step.clone(), attempt: self.attempt, inside: self.inside }
    }

    pub(crate) fn read(event: &Event) -> Option<Mark> {
        match event {
            Event::StepReopened { step, attempt, inside } => {
                Some(Mark { step: step.clone(), attempt: *attempt, inside: *inside })
            }
            _ => None,
        }
    }
}

/// The steps that run again, by id.
pub(crate) struct Marks<'a> {
    steps: HashMap<&'a StepId, &'a Mark>,
    /// The rounds that hold them: instance, path and number.
    rounds: HashSet<(u32, Option<&'a Arc<str>>, u32)>,
}

impl<'a> Marks<'a> {
    pub(crate) fn of(marks: &'a [Mark]) -> Marks<'a> {
        let round = |mark: &'a Mark| (mark.step.instance, mark.step.within.as_ref(), mark.step.iteration);
        Marks {
            steps: marks.iter().map(|mark| (&mark.step, mark)).collect(),
            rounds: marks.iter().map(round).collect(),
        }
    }

    /// Whether a record of before still counts.
    pub(crate) fn keep(&self, record: &Record) -> bool {
        match &record.event {
            Event::RunFinished { .. } | Event::BudgetSpent { .. } => false,
            Event::RoundJudged { instance, iteration, within, .. } => {
                !self.rounds.contains(&(*instance, within.as_ref(), *iteration))
            }
            event => match event.step().and_then(|step| self.steps.get(step)) {
                None => true,
                Some(mark) if !mark.inside => false,
                Some(mark) => match event {
                    Event::AttemptEnded { attempt, .. } => *attempt != mark.attempt,
                    Event::StepSkipped { .. } | Event::NodeClosed { .. } => false,
                    _ => true,
                },
            },
        }
    }
}
