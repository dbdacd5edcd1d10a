//! What happened in a rehearsal, as expectations ask for it: steps with their rounds and items, when they began and
//! ended, and what came of them.

use swarmc_compiler::{Test, TurnFilter};
use swarmc_plan::Plan;
use swarmc_runtime::{Rehearsal, SkipReason, Status, StepId};
use swarmc_view::{EndReason, RunEnds};

use super::fakes::Fakes;

/// What happened.
pub(super) struct TestOutcome<'a> {
    pub(super) plan: &'a Plan,
    pub(super) test: &'a Test,
    pub(super) rehearsal: &'a Rehearsal,
    pub(super) cast: &'a Fakes<'a>,
    /// In the order in which they ended.
    pub(super) steps: Vec<Ended<'a>>,
    /// The budgets that were spent, in words.
    pub(super) spent: Vec<&'a str>,
}

/// A step that ended.
pub(super) struct Ended<'a> {
    pub(super) step: &'a StepId,
    pub(super) status: Status,
    /// The numbers of the records of its beginning and its end; none where it did not run.
    pub(super) time: Option<(u64, u64)>,
    /// Its value.
    pub(super) value: Option<&'a str>,
    /// Why it failed or did not run.
    pub(super) why: Option<String>,
}

impl<'a> TestOutcome<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        test: &'a Test,
        rehearsal: &'a Rehearsal,
        cast: &'a Fakes<'a>,
    ) -> TestOutcome<'a> {
        let mut ends = RunEnds::collect(&rehearsal.records);
        let steps = rehearsal.steps.iter().map(|(step, status)| {
            let end = ends.steps.remove(step).unwrap_or_default();
            let time = end.begun.map(|begun| (begun, end.ended));
            let value = end.answer.or(end.output).map(|value| rehearsal.text(value));
            Ended { step, status: *status, time, value, why: end.reason.map(describe_reason) }
        });
        let steps = steps.collect();
        TestOutcome { plan, test, rehearsal, cast, steps, spent: ends.spent }
    }

    /// How a step ended then, the last time.
    pub(super) fn find_step(&self, name: &str, moment: &TurnFilter) -> Option<&Ended<'a>> {
        self.step_ends(name).filter(|ended| ended.is_at(moment)).last()
    }

    /// Why a step was asked for nothing, in a line.
    pub(super) fn describe_absence(&self, name: &str) -> String {
        match self.step_ends(name).last() {
            Some(Ended { status: Status::Skipped, why: Some(why), .. }) => format!("`{name}` was skipped: {why}\n"),
            _ => format!("`{name}` was never asked\n"),
        }
    }

    /// The ends of a step, of all rounds and items.
    pub(super) fn step_ends(&self, name: &str) -> impl Iterator<Item = &Ended<'a>> {
        self.steps.iter().filter(move |ended| *ended.step.name == *name)
    }
}

impl Ended<'_> {
    fn is_at(&self, moment: &TurnFilter) -> bool {
        let index = match item_index(self.step) {
            None => moment.index.is_none_or(|index| Some(index) == self.step.item()),
            own => moment.index == own,
        };
        index && moment.iteration.is_none_or(|iteration| iteration == self.step.iteration)
    }

    /// Which round and item, in words.
    pub(super) fn describe_place(&self) -> String {
        match self.step.item() {
            Some(index) => format!("round {}, item {index}", self.step.iteration),
            None => format!("round {}", self.step.iteration),
        }
    }
}

/// The item of a for-each that a step is: it stands inside of what has its own name, `triage[3]`.
fn item_index(step: &StepId) -> Option<u32> {
    let last = step.within.as_ref()?.rsplit('/').next()?;
    let (each, index) = last.strip_suffix(']')?.rsplit_once('[')?;
    let own = each.split(['.', '~']).next() == Some(&*step.name);
    index.parse().ok().filter(|_| own)
}

fn describe_reason(reason: EndReason<'_>) -> String {
    let skip = match reason {
        EndReason::Skipped(skip) => skip,
        EndReason::Condition(error) => return error.to_owned(),
        EndReason::Failed(outcome) => {
            let failure = outcome.failure.as_ref().map(ToString::to_string).unwrap_or_default();
            return match outcome.error() {
                Some(error) if error != failure => format!("{failure}: {error}"),
                _ => failure,
            };
        }
    };
    match skip {
        SkipReason::Need { step, status } => format!("it needs `{step}`, which {}", past_verb(*status)),
        SkipReason::Join => "none of its dependencies holds".to_owned(),
        SkipReason::When => "its `when` is false".to_owned(),
        SkipReason::Unspawned => "no task spawned it".to_owned(),
        SkipReason::OnFailure => "it failed, with `on-failure skip`".to_owned(),
        SkipReason::Stopped { by } => format!("`{by}` stopped the pipeline"),
        SkipReason::FailFast => "a failure ended the pipeline before".to_owned(),
        SkipReason::OverBudget => "the budget was spent".to_owned(),
        SkipReason::Ended { by } => format!("`{by}` failed"),
    }
}

/// How a step ended, as a verb.
pub(super) fn past_verb(status: Status) -> &'static str {
    match status {
        Status::Succeeded => "succeeded",
        Status::Failed => "failed",
        Status::Skipped => "was skipped",
    }
}
