//! Which step, and which agent of its swarm, a word means.
//!
//! In: words that people type, and a run that was read back. Out: whether a word names a step, and the agent that
//! `STEP/AGENT` names. A word may be the name of a step, its name with what it is inside of, or its whole id: so one word can
//! mean several steps.

use std::collections::HashSet;

use swarmc_plan::{Body, Pipeline, Step};
use swarmc_runtime::StepId;
use swarmc_runtime::swarm::SUPERVISOR;

use crate::past::Past;
use crate::run_report::RunReport;

/// Whether a word means this step: its name, its name with what it is inside of, or its whole id.
pub fn matches_step(report: &RunReport, step: &StepId, word: &str) -> bool {
    *step.name == *word || step.label() == word || report.label(step) == word || step.to_string() == word
}

/// Whether a word names a step of the run, which need not have begun.
pub fn has_step(past: &Past, word: &str) -> bool {
    let name = declared_name(word);
    if !all_steps(past).any(|step| step.name == name) {
        // The id of a step ends with numbers.
        return word.contains('/') && past.build_report().rows.iter().any(|row| row.step.to_string() == word);
    }
    true
}

/// The steps of a run that begin or have begun, as one names them.
pub fn list_steps(past: &Past) -> Vec<String> {
    let mut names: Vec<String> = past.pipeline().all_steps().map(|step| step.name.clone()).collect();
    let report = past.build_report();
    names.extend(report.rows.iter().map(|row| report.label(&row.step)));
    let mut seen = HashSet::new();
    names.retain(|name| seen.insert(name.clone()));
    names
}

/// The step and the agent that `STEP/AGENT` names; the whole word is a step where it names no agent of a swarm.
pub fn split_agent<'w>(past: &Past, word: &'w str) -> (&'w str, Option<&'w str>) {
    match word.rsplit_once('/') {
        Some((step, agent)) if find_swarm(past, step).is_some() && !agent.is_empty() => {
            (step, Some(resolve_agent(past, step, agent)))
        }
        _ => (word, None),
    }
}

/// The agent that a name means in the swarm of a step: a supervisor has a name of its own in the spec; a coordinator is an
/// agent like the others.
pub fn resolve_agent<'w>(past: &Past, step: &str, name: &'w str) -> &'w str {
    let swarm = find_swarm(past, step).and_then(|swarm| past.plan.swarms.iter().find(|found| found.name == *swarm));
    let is_lead =
        swarm.and_then(|swarm| swarm.lead.as_ref()).is_some_and(|lead| !lead.coordinator && lead.name == name);
    if is_lead { SUPERVISOR } else { name }
}

/// The name of the swarm that a step runs.
fn find_swarm<'p>(past: &'p Past, step: &str) -> Option<&'p String> {
    let name = declared_name(step);
    all_steps(past).find_map(|step| match &step.body {
        Body::Swarm(call) if step.name == name => Some(&call.swarm),
        _ => None,
    })
}

fn all_steps(past: &Past) -> impl Iterator<Item = &Step> {
    past.plan.pipelines.iter().flat_map(Pipeline::all_steps)
}

/// The name of a step without what it is inside of, and without its number: `draft` of `polish/draft` and `draft[2]`.
fn declared_name(label: &str) -> &str {
    let name = label.rsplit('/').next().unwrap_or_default();
    name.split(['[', '.', '~']).next().unwrap_or_default()
}
