//! A run that goes on after its end: which of its records still count, what runs again, and what a mended plan may
//! change.
//!
//! In: the records of a run and what is to run again. Out: the events that say so, and the state in which those steps
//! never ran. Invariant: what a step has left that does not run again is kept as it is, and the journal alone says
//! which those are: the same records come to the same state in every process.

mod plan_changes;
mod retry;

use std::sync::Arc;

use swarmc_plan::{Pipeline, Plan};

use crate::core::graph::Graph;
use crate::core::reopened_records::{Mark, Marks, effective};
use crate::core::state::State;
use crate::types::event::{Event, Record, VERSION};

/// What of a run is to run again.
#[derive(Clone, Debug, Default)]
pub struct Retry {
    /// Everything whose failure nothing handled.
    pub failed: bool,
    /// These steps besides, by name or as they are listed: `draft`, `polish/draft`, `triage[3]`.
    pub steps: Vec<String>,
    /// The plan that the run goes on with; none is the one that it has.
    pub plan: Option<Plan>,
}

/// How a run goes on.
#[derive(Debug)]
pub(crate) struct Reopened {
    /// What is recorded, the last of which has the run go on.
    pub events: Vec<Event>,
    /// The state before these.
    pub state: State,
    /// What a person should know.
    pub notices: Vec<String>,
}

/// A pipeline that runs, with its plan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Running<'a> {
    pub plan: &'a Plan,
    pub pipeline: &'a Pipeline,
    pub graph: &'a Arc<Graph>,
}

/// Decides what runs again of a run that these records are of, and goes on as `new` in place of `old`.
///
/// # Errors
/// Says in words what prevents that, and what to type.
pub(crate) fn reopen(
    run: &str,
    records: &[Record],
    (old, new): (Running<'_>, Running<'_>),
    retry: &Retry,
) -> Result<Reopened, String> {
    let changes = plan_changes::changes(old, new);
    let again = retry::find(run, records, (old.graph, new.graph), retry, &changes)?;
    changes.refuse(run, &again)?;
    let before = State::replay(Arc::clone(old.graph), records);
    let mut events: Vec<Event> = again.marks.iter().map(Mark::event).collect();
    events.extend(before.usage_events());
    let lines = events.len() as u32;
    let plan = retry.plan.as_ref().map(|plan| digest_of(&swarmc_plan::encode_plan(plan)));
    events.push(Event::RunReopened {
        version: VERSION,
        lines,
        plan,
        ran_ms: before.ran_ms(),
        requests: before.next_request().saturating_sub(1),
    });
    let marks = Marks::of(&again.marks);
    let kept: Vec<Record> = effective(records).iter().filter(|record| marks.keep(record)).cloned().collect();
    changes.refuse_letters(&kept)?;
    let mut lost = None;
    let state = State::fold_records(Arc::clone(new.graph), &kept, 1, |state, record| {
        let is_whole = matches!(&record.event, Event::AttemptEnded { outcome, .. } if outcome.failure.is_none());
        if let Some(step) = record.event.step().filter(|step| is_whole && again.stays.contains(step)) {
            let takes = state.find_step(step).is_some_and(|key| state.step(key).status().is_none());
            lost = lost.take().or_else(|| (!takes).then(|| step.label()));
        }
    });
    if let Some(lost) = lost {
        return Err(format!(
            "run `{run}` cannot continue with that spec, under which `{lost}` would not have run: restore the steps around it, \
             its `retry` and its `on-failure`, or start a new run with `swarmc run`"
        ));
    }
    if state.all_ended() {
        return Err(match again.marks.is_empty() {
            true => format!("run `{run}` has nothing to run again: {}", again.why),
            false => {
                format!("run `{run}` would end again at once: its end does not depend on the steps that run again")
            }
        });
    }
    let mut notices = again.notices;
    notices.extend(changes.notices(&again.marks, &again.finished));
    Ok(Reopened { events, state, notices })
}

/// The name of a plan in the journal.
pub(crate) fn digest_of(text: &str) -> String {
    format!("sha256:{}", crate::types::digest::digest_bytes(text.as_bytes()))
}

/// The digest of the plan that a run of these records has now, and whether it is another one than it began with.
pub(crate) fn plan_of(records: &[Record]) -> Option<(&str, bool)> {
    let later = records.iter().rev().find_map(|record| match &record.event {
        Event::RunReopened { plan: Some(plan), .. } => Some((plan.as_str(), true)),
        _ => None,
    });
    later.or_else(|| match &records.first()?.event {
        Event::RunStarted { plan, .. } => Some((plan.as_str(), false)),
        _ => None,
    })
}

/// Whether a run of these records has gone on after its end.
pub(crate) fn is_reopened(records: &[Record]) -> bool {
    records.iter().any(|record| matches!(record.event, Event::RunReopened { .. }))
}

#[cfg(test)]
mod tests;
