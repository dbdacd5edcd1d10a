//! Which run, step and agent the words of `approve`, `logs`, `inspect` and `send` mean.
//!
//! In: the words, in the order of the command line. Out: the run, and the words behind it. Without a run they are about
//! the last one. What the last run has by that name counts before the beginning of an id. `STEP/AGENT` is an agent of a
//! swarm.

use miette::{IntoDiagnostic, miette};
use swarmc_plan::{Body, Pipeline, Step};
use swarmc_runtime::swarm::SUPERVISOR;
use swarmc_runtime::{Home, RunError, RunFolder, StepId};
use swarmc_view::{Past, RunReport};

use crate::home::read_past;
use crate::load::did_you_mean;

/// The run that the words mean, and the words that are not the run.
pub(crate) struct Target {
    pub(crate) folder: RunFolder,
    pub(crate) rest: Vec<String>,
}

/// Takes the run from the front of the words: its id, the beginning of it, or `last`. Without one it is the last run;
/// `names` says whether a word names something of that run, beside its steps and agents.
///
/// # Errors
/// There is no run, or the first word is neither a run nor something of the last one.
pub(crate) fn find_target(
    home: &Home,
    words: &[&Option<String>],
    names: impl Fn(&Past, &str) -> bool,
) -> miette::Result<Target> {
    let mut rest: Vec<String> = words.iter().copied().flatten().cloned().collect();
    let newest = home.list_folders().into_diagnostic()?.into_iter().next();
    let Some(last) = newest else {
        return Err(miette!(help = "start one with `swarmc run SPEC`", "there are no runs"));
    };
    let Some(word) = rest.first() else { return Ok(Target { folder: last, rest }) };
    let found = home.find(word);
    let is_full = |folder: &RunFolder| word == "last" || folder.id == *word;
    let past = match &found {
        Ok(folder) if is_full(folder) => None,
        // A run that cannot be read has no names.
        _ => read_past(&last).ok(),
    };
    if past
        .as_ref()
        .is_some_and(|past| has_step(past, word) || split_agent(past, word).1.is_some() || names(past, word))
    {
        return Ok(Target { folder: last, rest });
    }
    match found {
        Ok(folder) => {
            rest.remove(0);
            Ok(Target { folder, rest })
        }
        Err(error @ RunError::UnknownRun { .. }) => {
            let steps = past.as_ref().map(list_steps).unwrap_or_default();
            let help = did_you_mean(word, steps.iter().map(String::as_str));
            Err(miette!(help = format!("the last run, `{}`, has no step of that name: {help}", last.id), "{error}"))
        }
        Err(error) => Err(error).into_diagnostic(),
    }
}

/// The step and the agent that `STEP/AGENT` names; the whole word is a step where it names no agent of a swarm.
pub(crate) fn split_agent<'w>(past: &Past, word: &'w str) -> (&'w str, Option<&'w str>) {
    match word.rsplit_once('/') {
        Some((step, agent)) if find_swarm(past, step).is_some() && !agent.is_empty() => {
            (step, Some(resolve_agent(past, step, agent)))
        }
        _ => (word, None),
    }
}

/// The agent that a name means in the swarm of a step: a supervisor has a name of its own in the spec; a coordinator is an
/// agent like the others.
pub(crate) fn resolve_agent<'w>(past: &Past, step: &str, name: &'w str) -> &'w str {
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

/// Whether a word means this step: its name, its name with what it is inside of, or its whole id.
pub(crate) fn matches_step(report: &RunReport, step: &StepId, word: &str) -> bool {
    *step.name == *word || step.label() == word || report.label(step) == word || step.to_string() == word
}

/// Refuses the words that a command has no use for.
pub(crate) fn refuse_more(rest: &[String], most: usize, usage: &str) -> miette::Result<()> {
    match rest.get(most) {
        Some(word) => Err(miette!(help = usage.to_owned(), "`{word}` is one argument too many")),
        None => Ok(()),
    }
}

/// The steps of a run that begin or have begun, as one names them.
pub(crate) fn list_steps(past: &Past) -> Vec<String> {
    let mut names: Vec<String> = past.pipeline().all_steps().map(|step| step.name.clone()).collect();
    let report = past.build_report();
    names.extend(report.rows.iter().map(|row| report.label(&row.step)));
    let mut seen = std::collections::HashSet::new();
    names.retain(|name| seen.insert(name.clone()));
    names
}

/// Whether a word names a step of the run, which need not have begun.
fn has_step(past: &Past, word: &str) -> bool {
    let name = declared_name(word);
    if !all_steps(past).any(|step| step.name == name) {
        // The id of a step ends with numbers.
        return word.contains('/') && past.build_report().rows.iter().any(|row| row.step.to_string() == word);
    }
    true
}

fn all_steps(past: &Past) -> impl Iterator<Item = &Step> {
    past.plan.pipelines.iter().flat_map(Pipeline::all_steps)
}

/// The name of a step without what it is inside of, and without its number: `draft` of `polish/draft` and `draft[2]`.
fn declared_name(label: &str) -> &str {
    let name = label.rsplit('/').next().unwrap_or_default();
    name.split(['[', '.', '~']).next().unwrap_or_default()
}
