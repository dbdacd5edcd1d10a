//! SW302: a step that never runs, because of a condition that cannot hold; and SW303, where already what it waits for
//! cannot come about together.
//!
//! Steps prove things about those before them, as in SW202; where two proofs contradict each other, the step cannot
//! start. What that leaves open is asked of the conditions themselves. A step that waits for such a one is not reported
//! again.

use std::collections::BTreeMap;

use swarmc_plan::{Join, When};

use crate::ast::OnFailure;

use crate::check::{cut_off, deadlock};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::flow::{Flow, Lazy};
use crate::model::{Body, Need, Pipeline, Step};
use crate::source::Span;
use crate::stats::Runs;
use crate::template::{Fact, Status, same_name};

/// Reports the steps that never run; says how many can, and how many cannot.
pub(super) fn check<'a>(pipeline: &Pipeline<'a>, flow: &mut Lazy<'_, 'a>, diagnostics: &mut Diagnostics) -> Runs {
    let watched = find_watched_steps(pipeline);
    let mut never = vec![false; pipeline.steps.len()];
    let mut known: Vec<Known> = vec![Known::new(); pipeline.steps.len()];
    let mut position = vec![0; pipeline.steps.len()];
    for (at, &step) in pipeline.order.sorted.iter().enumerate() {
        position[step] = at;
    }
    let mut plain = vec![false; pipeline.steps.len()];
    let mut stops = cut_off::Stops::new(pipeline);
    for &index in &pipeline.order.sorted {
        let step = &pipeline.steps[index];
        if let Some(when) = step.when.as_ref().filter(|when| when.expression.constant == Some(false)) {
            never[index] = true;
            let span = when.text.span(0..when.text.as_str().len());
            diagnostics.push(
                Diagnostic::new(Code::NeverRuns, format!("step `{}` never runs", step.name()))
                    .label(span, "this is always false")
                    .help("make it depend on a value of the run, or remove the step"),
            );
            continue;
        }
        if let Some(need) = step.needs.iter().find(|need| step.is_binding(need) && ends_with(pipeline, need)) {
            never[index] = true;
            diagnostics.push(report_stopped(pipeline, step, need));
            continue;
        }
        match prove_ends(pipeline, index, &watched, &known, &position) {
            Ok(proved) => known[index] = proved,
            Err(clash) => {
                never[index] = true;
                let structural = clash.one.because != clash.other.because && !flow.get().may_start(index);
                diagnostics.push(match structural {
                    true => report_impossible(pipeline, index, flow.get()),
                    false => clash.report(pipeline, step),
                });
                continue;
            }
        }
        never[index] = waits_for_never(step, &never);
        plain[index] = runs_when_all_is_well(step, &plain);
        // The search over conditions is dear, so it is left to what nothing cheaper has decided.
        if !never[index] && !plain[index] && !flow.get().may_run(index) {
            never[index] = true;
            diagnostics.push(report_impossible(pipeline, index, flow.get()));
        }
        if !never[index]
            && let Some(stop) = stops.find_stop(pipeline, index, flow)
        {
            never[index] = true;
            diagnostics.push(cut_off::report_cut_off(pipeline, index, stop));
        }
    }
    count_runs(pipeline, &never)
}

/// Of a step that could not be read, and of those that wait for it, nothing is said.
fn count_runs(pipeline: &Pipeline<'_>, never: &[bool]) -> Runs {
    let mut unread = vec![false; never.len()];
    let mut runs = Runs { all: never.len(), ..Runs::default() };
    for &index in &pipeline.order.sorted {
        let step = &pipeline.steps[index];
        unread[index] = matches!(step.body, Body::Missing) || step.needs.iter().any(|need| unread[need.step]);
        match (unread[index], never[index]) {
            (true, _) => {}
            (false, true) => runs.never += 1,
            (false, false) => runs.can += 1,
        }
    }
    runs
}

/// Whether a step surely runs where all those before it succeed: no condition has to be looked at.
fn runs_when_all_is_well(step: &Step<'_>, plain: &[bool]) -> bool {
    let holds = |need: &Need| need.when == When::Always || (need.when != When::Failure && plain[need.step]);
    step.when.is_none() && step.needs.iter().all(holds)
}

/// A step that no route reaches.
fn report_impossible<'a>(pipeline: &Pipeline<'a>, index: usize, flow: &mut Flow<'_, 'a>) -> Diagnostic {
    let step = &pipeline.steps[index];
    let bound: Vec<usize> = (0..step.needs.len()).filter(|&need| step.is_binding(&step.needs[need])).collect();
    if !flow.may_start(index) {
        if let Some(&need) = bound.iter().find(|&&need| !flow.may_hold(index, &[need])) {
            return report_unmet(pipeline, step, &step.needs[need]);
        }
        return deadlock::report_conflict(pipeline, index, &bound, flow);
    }
    let diagnostic = Diagnostic::new(Code::NeverRuns, format!("step `{}` never runs", step.name()));
    let Some(when) = &step.when else { return diagnostic.label(step.ast.name.span, "no route leads here") };
    let span = when.text.span(0..when.text.as_str().len());
    match bound.into_iter().find(|&need| !flow.agrees_with_when(index, need)) {
        Some(need) => {
            let need = &step.needs[need];
            diagnostic
                .label(
                    span,
                    format!("never true where this step can start: it needs {}", describe_need(pipeline, need)),
                )
                .label(need.span, "needed here")
                .help("take one of the two conditions out, or ask for the opposite")
        }
        None => diagnostic
            .label(span, "this cannot hold")
            .help("make its parts agree with each other and with what the step waits for, or remove the step"),
    }
}

/// A step that waits for what never happens.
fn report_unmet(pipeline: &Pipeline<'_>, step: &Step<'_>, need: &Need) -> Diagnostic {
    let name = pipeline.steps[need.step].name();
    let never = match need.when {
        When::Failure => "fails",
        When::Success => "succeeds",
        When::Any | When::Always => "runs",
    };
    Diagnostic::new(Code::NeverRuns, format!("step `{}` never runs", step.name()))
        .label(need.span, format!("`{name}` never {never}"))
        .help(format!("wait for it to end, `depends-on {name} when=always`, or remove the step"))
}

/// What a need asks for, in words.
pub(super) fn describe_need(pipeline: &Pipeline<'_>, need: &Need) -> String {
    let name = pipeline.steps[need.step].name();
    match need.when {
        When::Success => format!("`{name}` to succeed"),
        When::Failure => format!("`{name}` to fail"),
        When::Any => format!("`{name}` to run"),
        When::Always => format!("`{name}` to end"),
    }
}

/// Whether a step that needs this could start only after the end of the pipeline.
fn ends_with(pipeline: &Pipeline<'_>, need: &Need) -> bool {
    matches!(pipeline.steps[need.step].body, Body::Stop { .. }) && need.when != When::Always
}

fn report_stopped(pipeline: &Pipeline<'_>, step: &Step<'_>, need: &Need) -> Diagnostic {
    let stop = &pipeline.steps[need.step];
    let how = if need.declared { "waits for" } else { "reads" };
    Diagnostic::new(Code::NeverRuns, format!("step `{}` never runs", step.name()))
        .label(need.span, format!("{how} a `stop`"))
        .label(stop.ast.name.span, "no step starts after this one")
        .help(format!("to run where `{}` does not, write `depends-on {} when=always`", stop.name(), stop.name()))
}

/// The steps of which is known how they ended where one starts: the nearest of them, as each hands on what it knows.
const MOST_KNOWN: usize = 64;

/// How steps must have ended, by where they stand in the order of needs: only of those that a condition asks about.
type Known = BTreeMap<usize, Ends>;

/// The ways in which a step can have ended, and what says so.
#[derive(Clone, Debug)]
struct Ends {
    any_of: Vec<Status>,
    because: Span,
}

struct Clash {
    /// Where the step stands in the order of needs.
    target: usize,
    one: Ends,
    other: Ends,
}

/// The steps about which two conditions could disagree.
fn find_watched_steps(pipeline: &Pipeline<'_>) -> Vec<bool> {
    let mut watched = vec![false; pipeline.steps.len()];
    for step in &pipeline.steps {
        for need in step.needs.iter().filter(|need| need.when == When::Failure) {
            watched[need.step] = true;
        }
        for (target, _) in ends_from_when(pipeline, step) {
            watched[target] = true;
        }
    }
    watched
}

/// What the `when` of a step says about how others ended.
fn ends_from_when<'s>(pipeline: &'s Pipeline<'_>, step: &'s Step<'_>) -> Vec<(usize, Ends)> {
    let Some(when) = &step.when else { return Vec::new() };
    let because = when.text.span(0..when.text.as_str().len());
    let facts = when.expression.proves.iter().filter_map(|fact| match fact {
        Fact::Ended { step: name, any_of } => {
            let target = step
                .reads
                .iter()
                .filter_map(|read| read.step())
                .find(|&target| same_name(name, pipeline.steps[target].name()))?;
            Some((target, Ends { any_of: any_of.clone(), because }))
        }
        Fact::Defined { .. } | Fact::Repeated | Fact::NonZero(_) => None,
    });
    facts.collect()
}

fn prove_ends(
    pipeline: &Pipeline<'_>,
    index: usize,
    watched: &[bool],
    known: &[Known],
    position: &[usize],
) -> Result<Known, Clash> {
    let step = &pipeline.steps[index];
    let mut proved = Known::new();
    for need in step.needs.iter().filter(|need| step.is_binding(need)) {
        if watched[need.step] {
            merge_ends(
                &mut proved,
                position[need.step],
                Ends { any_of: satisfying_ends(pipeline, need), because: need.span },
            )?;
        }
        // After `when=always` the other may have been skipped, and then what it needed need not have come true.
        if need.when != When::Always {
            for (&target, ends) in &known[need.step] {
                merge_ends(&mut proved, target, Ends { any_of: ends.any_of.clone(), because: need.span })?;
            }
        }
    }
    for (target, ends) in ends_from_when(pipeline, step) {
        merge_ends(&mut proved, position[target], ends)?;
    }
    // The keys are positions in the order of needs, so the first is the farthest away.
    while proved.len() > MOST_KNOWN {
        proved.pop_first();
    }
    Ok(proved)
}

/// The ways to end that satisfy a need.
fn satisfying_ends(pipeline: &Pipeline<'_>, need: &Need) -> Vec<Status> {
    let producer = &pipeline.steps[need.step];
    // Its failure counts as a skip, and a computed text has nothing that fails.
    let fails = producer.ast.on_failure != OnFailure::Skip;
    let all = match need.when {
        When::Success => vec![Status::Succeeded],
        When::Failure => vec![Status::Failed],
        When::Any => vec![Status::Succeeded, Status::Failed],
        When::Always => vec![Status::Succeeded, Status::Failed, Status::Skipped],
    };
    all.into_iter().filter(|status| fails || *status != Status::Failed).collect()
}

fn merge_ends(known: &mut Known, target: usize, ends: Ends) -> Result<(), Clash> {
    let before = known.get(&target).cloned();
    let any_of: Vec<Status> = match &before {
        Some(before) => before.any_of.iter().copied().filter(|status| ends.any_of.contains(status)).collect(),
        None => ends.any_of.clone(),
    };
    if any_of.is_empty() {
        return Err(Clash { target, one: before.unwrap_or_else(|| ends.clone()), other: ends });
    }
    known.insert(target, Ends { any_of, because: ends.because });
    Ok(())
}

impl Clash {
    fn report(&self, pipeline: &Pipeline<'_>, step: &Step<'_>) -> Diagnostic {
        let target = &pipeline.steps[pipeline.order.sorted[self.target]];
        let name = target.name();
        let says = |ends: &Ends| match ends.any_of.as_slice() {
            [] => format!("`{name}` cannot end like this"),
            some => format!("needs `{name}` to have {}", describe_ends(some)),
        };
        let diagnostic = Diagnostic::new(Code::NeverRuns, format!("step `{}` never runs", step.name()))
            .label(self.other.because, says(&self.other));
        let diagnostic = match self.one.because == self.other.because {
            true => diagnostic,
            false => diagnostic.label(self.one.because, says(&self.one)),
        };
        match &target.ast.on_failure {
            OnFailure::Skip => {
                diagnostic.help(format!("`{name}` says `on-failure skip`, so it never counts as failed"))
            }
            OnFailure::Fail | OnFailure::Fix(_) | OnFailure::Escalate(_) => {
                diagnostic.help("no end satisfies both: take one of the conditions out")
            }
        }
    }
}

fn describe_ends(ends: &[Status]) -> String {
    ends.iter()
        .map(|status| match status {
            Status::Succeeded => "succeeded",
            Status::Failed => "failed",
            Status::Skipped => "been skipped",
        })
        .collect::<Vec<_>>()
        .join(" or ")
}

/// Whether a step needs one to run that never does.
fn waits_for_never(step: &Step<'_>, never: &[bool]) -> bool {
    let dead = |need: &&Need| never[need.step] && need.when != When::Always;
    step.needs.iter().filter(|need| step.is_binding(need)).any(|need| dead(&need))
        || (step.ast.join.value != Join::All
            && step.needs.iter().any(|need| need.declared)
            && step.needs.iter().filter(|need| need.declared).all(|need| dead(&need)))
        || matches!(step.body, Body::Missing)
}
