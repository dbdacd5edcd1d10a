//! Rehearsing a plan that `check` let pass, and what it must not die of.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use swarmc_plan::{Bound, Pipeline, Plan};
use swarmc_runtime::{Event, Failure, Options, Rehearsal, rehearse};

use super::answers::{MOODS, Mood, Script};

/// The rehearsals after which a step that never ran is taken for one that cannot.
pub(super) const PATIENCE: u64 = 1200;

/// What became of the rehearsals of a plan.
#[derive(Debug)]
pub(super) struct Trial {
    /// Why one of them failed, for a reason that stands in the plan.
    pub failure: Option<String>,
    /// Steps that never ran, as `pipeline/step`.
    pub idle: BTreeSet<String>,
}

/// Rehearses every pipeline of a plan at least `least` times, and on until every step ran once or `patience` is over.
pub(super) fn trial(plan: &Plan, words: &[String], workspace: &Path, least: u64, patience: u64) -> Trial {
    let mut trial = Trial { failure: None, idle: BTreeSet::new() };
    for pipeline in &plan.pipelines {
        let mut idle: BTreeSet<&str> = pipeline.all_steps().map(|step| step.name.as_str()).collect();
        for seed in 0..patience.max(least) {
            if seed >= least && idle.is_empty() {
                break;
            }
            let mood = MOODS[usize::try_from(seed).expect("a small number") % MOODS.len()];
            let script = Script { plan, seed, mood, words };
            match once(&script, pipeline, workspace) {
                Ok(rehearsal) => started(&rehearsal).iter().for_each(|step| _ = idle.remove(step.as_str())),
                Err(failure) => {
                    trial.failure = Some(format!("pipeline `{}`, seed {seed}: {failure}", pipeline.name));
                    return trial;
                }
            }
        }
        trial.idle.extend(idle.into_iter().map(|step| format!("{}/{step}", pipeline.name)));
    }
    trial
}

fn once(script: &Script<'_>, pipeline: &Pipeline, workspace: &Path) -> Result<Rehearsal, String> {
    let params = script.plan.params.iter().chain(&pipeline.params);
    let params: BTreeMap<String, String> =
        params.filter_map(|param| Some((param.name.clone(), script.param(param)?))).collect();
    let options = Options {
        pipeline: Some(pipeline.name.clone()),
        params,
        workspace: workspace.to_path_buf(),
        ..Options::default()
    };
    let rehearsal = rehearse(script.plan, &options, &mut |turn| script.answer(turn));
    let rehearsal = rehearsal.map_err(|error| error.to_string())?;
    match reason(&rehearsal, script.mood).or_else(|| excess(script.plan, &pipeline.name, &rehearsal)) {
        Some(reason) => Err(reason),
        None => Ok(rehearsal),
    }
}

/// Why a rehearsal failed, where the answers are not to blame.
fn reason(rehearsal: &Rehearsal, mood: Mood) -> Option<String> {
    // A file that a task of the run would write is not there.
    let fault = rehearsal.faults.iter().find(|fault| !fault.message.contains("No such file"));
    if let Some(fault) = fault.or(rehearsal.missing.first()) {
        let step = fault.step.as_ref().map(|step| format!("{step}: ")).unwrap_or_default();
        return Some(format!("{step}{}", fault.message));
    }
    rehearsal.records.iter().find_map(|record| match &record.event {
        Event::AttemptEnded { step, outcome, .. } => match &outcome.failure {
            Some(failure @ Failure::Invalid { .. }) if mood.garble == 0 => Some(format!("{step}: {failure}")),
            _ => None,
        },
        _ => None,
    })
}

/// What goes beyond the bounds that the plan has for it.
fn excess(plan: &Plan, pipeline: &str, rehearsal: &Rehearsal) -> Option<String> {
    let bounds = plan.bounds.get(pipeline)?;
    let counted = [("launches", rehearsal.launches, &bounds.launches), ("turns", rehearsal.turns, &bounds.turns)];
    counted.into_iter().find_map(|(what, used, bound)| match bound {
        Bound::Most(most) if used > *most => Some(format!("{used} {what} where the plan has a bound of {most}")),
        _ => None,
    })
}

/// The names of the steps that were begun.
fn started(rehearsal: &Rehearsal) -> BTreeSet<String> {
    let begun = rehearsal.records.iter().filter_map(|record| match &record.event {
        Event::AttemptStarted { step, .. } | Event::Opened { step, .. } | Event::GateOpened { step, .. } => {
            Some(step.name.to_string())
        }
        _ => None,
    });
    begun.collect()
}
