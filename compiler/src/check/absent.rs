//! Whether a value may be missing where a step reads it with a default. No rule of its own: the types of values with a
//! default depend on it.
//!
//! In: the model, and the place of a read. Out: an answer, or none where it is not known. Conditions are followed only
//! once something asks, with a budget of their own.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;

use super::maybe_missing::may_be_missing;
use crate::cancel::Cancel;
use crate::flow::{self, Answer, Budget, Lazy, Proofs};
use crate::model::{Model, Pipeline};
use crate::source::Span;

/// The questions that are answered of one step: each looks at all that the step reads.
const MOST_QUESTIONS: usize = 500;

/// What is asked about a model.
pub(super) struct Absent<'m, 'a> {
    model: &'m Model<'a>,
    budget: Budget<'m>,
    sure: OnceCell<Vec<Answer>>,
}

/// What is asked about one of its pipelines.
pub(super) struct OfPipeline<'p, 'a> {
    pipeline: &'p Pipeline<'a>,
    absent: &'p Absent<'p, 'a>,
    asked: RefCell<Option<Asked<'p, 'a>>>,
}

/// What answers questions, once there are any.
struct Asked<'p, 'a> {
    flow: Lazy<'p, 'a>,
    proofs: Proofs<'p, 'a>,
    /// The reads of all steps, each by its step and its place.
    reads: HashMap<(usize, Span), usize>,
    /// The answers, by step and read: a text is typed more than once.
    answers: HashMap<(usize, usize), Option<bool>>,
    /// How many questions were asked of each step.
    counts: HashMap<usize, usize>,
}

impl<'m, 'a> Absent<'m, 'a> {
    pub(super) fn new(model: &'m Model<'a>, cancel: &'m Cancel) -> Absent<'m, 'a> {
        let steps = model.pipelines.iter().map(|pipeline| pipeline.steps.len()).sum();
        Absent { model, budget: Budget::new(steps, cancel), sure: OnceCell::new() }
    }

    pub(super) fn of_pipeline<'p>(&'p self, pipeline: &'p Pipeline<'a>) -> OfPipeline<'p, 'a> {
        OfPipeline { pipeline, absent: self, asked: RefCell::new(None) }
    }
}

impl OfPipeline<'_, '_> {
    /// Whether the value that a step reads at `place` may be missing there.
    pub(super) fn may_lack(&self, step: usize, place: Span) -> Option<bool> {
        let pipeline = self.pipeline;
        if !pipeline.order.cycles.is_empty() {
            return None;
        }
        let mut asked = self.asked.borrow_mut();
        let asked = asked.get_or_insert_with(|| {
            let Absent { model, budget, sure } = self.absent;
            let sure = sure.get_or_init(|| flow::check_pipeline_values(model, budget));
            let reads = pipeline.steps.iter().enumerate().flat_map(|(index, step)| {
                let expressions = step.reads.iter().enumerate().filter(|(_, read)| !read.directive);
                expressions.map(move |(position, read)| ((index, read.whole), position))
            });
            let (flow, proofs) = (Lazy::new(model, pipeline, sure, budget), Proofs::new(pipeline));
            Asked { flow, proofs, reads: reads.collect(), answers: HashMap::new(), counts: HashMap::new() }
        });
        let read = (step, *asked.reads.get(&(step, place))?);
        let Asked { flow, proofs, answers, counts, .. } = asked;
        let count = counts.entry(step).or_default();
        *answers.entry(read).or_insert_with(|| {
            *count += 1;
            if *count > MOST_QUESTIONS { None } else { may_be_missing(pipeline, read, flow, proofs) }
        })
    }
}
