//! SW302: a step before which a `stop` always ends the pipeline.
//!
//! A `stop` that is ready is decided before every other step. One that waits for nothing that a step does not wait for
//! too, and that runs wherever the step would, leaves it no time to start.

use swarmc_plan::When;

use crate::code::Code;
use crate::diagnostic::Diagnostic;
use crate::flow::Lazy;
use crate::model::{Body, Pipeline};

/// The stops of a pipeline that are looked at: the work stays linear however many there are.
const STOPS: usize = 16;
/// The questions about conditions that are asked of a pipeline.
const QUESTIONS: usize = 1000;

/// What is known of the stops of a pipeline.
pub(super) struct Stops {
    stops: Vec<Stop>,
    questions: usize,
}

struct Stop {
    step: usize,
    /// A bit for each step that it waits for.
    waits_for: u64,
    /// Which of those have settled before each step can start, by its own needs.
    settled: Vec<u64>,
}

impl Stops {
    /// Of a pipeline whose needs have no cycle.
    pub(super) fn new(pipeline: &Pipeline<'_>) -> Stops {
        let all = pipeline.steps.iter().enumerate().filter(|(_, step)| matches!(step.body, Body::Stop { .. }));
        let stops = all.take(STOPS).filter_map(|(step, _)| Stop::new(pipeline, step)).collect();
        Stops { stops, questions: 0 }
    }

    /// The stop that ends the pipeline before the step can start, whatever happens.
    pub(super) fn find_stop(
        &mut self,
        pipeline: &Pipeline<'_>,
        index: usize,
        flow: &mut Lazy<'_, '_>,
    ) -> Option<usize> {
        let is_stop = matches!(pipeline.steps[index].body, Body::Stop { .. });
        for stop in &self.stops {
            // Of two stops that are ready the first is taken.
            if stop.step == index || is_stop && stop.step > index || !stop.is_ready_before(pipeline, index) {
                continue;
            }
            let resolved = &pipeline.steps[stop.step];
            let always = resolved.when.is_none() && resolved.needs.iter().all(|need| need.when == When::Always);
            if always && resolved.within.is_none() {
                return Some(stop.step);
            }
            self.questions += 1;
            if self.questions <= QUESTIONS && flow.get().runs_with(index, stop.step) {
                return Some(stop.step);
            }
        }
        None
    }
}

impl Stop {
    fn new(pipeline: &Pipeline<'_>, step: usize) -> Option<Stop> {
        let mut needs: Vec<usize> = pipeline.steps[step].needs.iter().map(|need| need.step).collect();
        needs.sort_unstable();
        needs.dedup();
        // One bit for each has to fit into a word.
        if needs.len() > 64 {
            return None;
        }
        let bit = |step: usize| needs.binary_search(&step).map_or(0, |at| 1_u64 << at);
        let mut settled = vec![0; pipeline.steps.len()];
        // In the order of needs, so that what a step needs is worked out before it.
        for &index in &pipeline.order.sorted {
            settled[index] =
                pipeline.steps[index].needs.iter().fold(0, |all, need| all | bit(need.step) | settled[need.step]);
        }
        let waits_for = needs.iter().fold(0, |all, &need| all | bit(need));
        Some(Stop { step, waits_for, settled })
    }

    /// Whether all that it waits for has settled before the step can start.
    fn is_ready_before(&self, pipeline: &Pipeline<'_>, index: usize) -> bool {
        let around = |step: usize| std::iter::successors(Some(step), |&step: &usize| pipeline.steps[step].within);
        let within = pipeline.steps[self.step].within;
        let shares = within.is_none_or(|within| around(index).skip(1).any(|holder| holder == within));
        // Only bits of what the stop waits for are ever set, so that equal means all of them.
        shares && around(index).fold(0, |all, step| all | self.settled[step]) == self.waits_for
    }
}

pub(super) fn report_cut_off(pipeline: &Pipeline<'_>, index: usize, stop: usize) -> Diagnostic {
    let (step, stop) = (&pipeline.steps[index], &pipeline.steps[stop]);
    let place = match &stop.when {
        Some(when) => when.text.span(0..when.text.as_str().len()),
        None => stop.ast.name.span,
    };
    let label = match &stop.when {
        Some(_) => format!("`{}` ends the pipeline wherever `{}` could start", stop.name(), step.name()),
        None => "this ends the pipeline before".to_owned(),
    };
    let help = match &stop.when {
        Some(_) => format!("make the two conditions exclude each other, or let `{}` wait for it", stop.name()),
        None => format!("say when the pipeline ends early: `when \"…\"` in `{}`, or let it wait for more", stop.name()),
    };
    Diagnostic::new(Code::NeverRuns, format!("step `{}` never runs", step.name()))
        .label(step.ast.name.span, "no step starts once a `stop` is reached")
        .label(place, label)
        .help(help)
}
