//! Steps: a page of them, one with all that is known of it, and the agents of a swarm.

use std::collections::{BTreeMap, HashMap};

use swarmc_plan::{Pipeline, StepKind};
use swarmc_runtime::StepId;
use swarmc_view::documents::{StepRow, Version};
use swarmc_view::{FollowedRun, Row, RunView};

use super::{BLOCKED, last_event, reply, state_of};
use crate::Service;
use crate::documents::{StepDocument, StepLine, StepPage};
use crate::problem::Problem;
use crate::routes::{Call, PAGE, Reply};

pub(crate) fn list_steps(service: &Service, call: &Call) -> Result<Reply, Problem> {
    let states: Option<Vec<&str>> = call.query("state").map(|states| states.split(',').collect());
    let text = call.query("q").map(str::to_lowercase);
    let cursor = call.number("cursor").unwrap_or(0).max(0) as usize;
    let limit = call.number("limit").unwrap_or(PAGE).clamp(1, PAGE) as usize;
    service.store.with_run(&service.home, call.part(0), |run| {
        let fits = |state: &str, label: &str| {
            states.as_ref().is_none_or(|states| states.contains(&state))
                && text.as_ref().is_none_or(|text| label.to_lowercase().contains(text))
        };
        let mut found = 0;
        let mut steps = Vec::new();
        let mut take = |line: &dyn Fn() -> StepLine| {
            if (cursor..cursor + limit).contains(&found) {
                steps.push(line());
            }
            found += 1;
        };
        let kinds = list_kinds(run);
        let last = last_rows(run);
        for (position, row) in run.report.rows.iter().enumerate() {
            let mut label = run.report.label(&row.step);
            // An earlier round of a loop has the label of the last one.
            if last.get(&label).is_some_and(|&last| last != position) {
                label = row.step.to_string();
            }
            if fits(state_of(row), &label) {
                take(&|| describe_row(row, &label, &kinds, None));
            }
        }
        for (step, waits) in run.blocked_steps() {
            let label = run.report.label(&step);
            if fits(BLOCKED, &label) || fits("waiting", &label) && states.is_some() {
                let waits = || describe_waiting(run, &step, &waits);
                take(&|| describe_row(&Row::blocked(step.clone()), &label, &kinds, Some(waits())));
            }
        }
        let end = cursor + steps.len();
        let next = (end < found && !steps.is_empty()).then_some(end as u64);
        reply(&StepPage { version: Version, as_of: last_event(run), steps, total: found as u64, next })
    })
}

/// The last row of each label, by position.
fn last_rows(run: &FollowedRun) -> HashMap<String, usize> {
    run.report.rows.iter().enumerate().map(|(position, row)| (run.report.label(&row.step), position)).collect()
}

fn describe_row(row: &Row, label: &str, kinds: &BTreeMap<&str, &'static str>, waits: Option<String>) -> StepLine {
    let kind = kinds.get(&*row.step.name).copied().unwrap_or(StepKind::Value.label());
    StepLine { label: label.to_owned(), kind, row: StepRow::from(row), waits }
}

/// What a step waits for: the steps, where they are known.
fn describe_waiting(run: &FollowedRun, step: &StepId, waits: &str) -> String {
    let pending = run.state.list_pending(step, run.folder.is_running());
    let names: Vec<String> = pending.iter().map(|pending| pending.step.to_string()).collect();
    if names.is_empty() { waits.to_owned() } else { names.join(", ") }
}

/// What each step of the plan is, by name.
fn list_kinds(run: &FollowedRun) -> BTreeMap<&str, &'static str> {
    let steps = run.past.plan.pipelines.iter().flat_map(Pipeline::all_steps);
    steps.map(|step| (step.name.as_str(), step.body.kind().label())).collect()
}

pub(crate) fn get_step(service: &Service, call: &Call) -> Result<Reply, Problem> {
    service.store.with_run(&service.home, call.part(0), |run| {
        let view = RunView::of_followed(run);
        let step = view.find_step(call.part(1))?;
        reply(&StepDocument { label: step.label(), step: step.to_document() })
    })
}

pub(crate) fn get_agent(service: &Service, call: &Call) -> Result<Reply, Problem> {
    service.store.with_run(&service.home, call.part(0), |run| {
        let view = RunView::of_followed(run);
        reply(&view.find_step(call.part(1))?.agent_document(call.part(2))?)
    })
}
