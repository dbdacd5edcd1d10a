//! Random pipelines: every feature that the scheduler knows, in graphs small enough to read when one fails.

use proptest::prelude::*;
use proptest::sample::Index;
use swarmc_plan::{Body, Effect, Exhausted, Join, OnFailure, Pipeline, RoundFailure, Step, StopStatus, Template, When};

use super::build;
use super::world::World;

/// Pipelines in which no timing decides how steps end.
pub(crate) fn timeless() -> impl Strategy<Value = Pipeline> {
    pipelines().prop_map(|mut pipeline| {
        pipeline.fail_fast = false;
        for step in &mut pipeline.steps {
            if matches!(step.body, Body::Stop { .. }) {
                step.body = Body::Value(Template::default());
            }
        }
        pipeline
    })
}

/// Any pipelines.
pub(crate) fn pipelines() -> impl Strategy<Value = Pipeline> {
    let rounds = (1_u32..4, any::<bool>(), any::<bool>(), any::<bool>(), prop::collection::vec(any::<Index>(), 0..2));
    let limits = (1_u32..4, 1_u32..5, any::<bool>());
    (prop::collection::vec(steps(), 0..10), rounds, limits, any::<bool>()).prop_map(
        |(steps, (max, until, going_on, lenient, handles), (parallelism, concurrency, fail_fast), reversed)| {
            let mut pipeline = build::pipeline("");
            for (number, shape) in steps.into_iter().enumerate() {
                let step = shape.step(number, &pipeline.steps);
                pipeline.steps.push(step);
            }
            if reversed {
                pipeline.steps.reverse();
            }
            pipeline.iteration.max = max;
            pipeline.iteration.until.extend(until.then(build::expression));
            pipeline.iteration.on_failure = if going_on { RoundFailure::Continue } else { RoundFailure::Stop };
            pipeline.iteration.exhausted = if lenient { Exhausted::Success } else { Exhausted::Fail };
            if !pipeline.steps.is_empty() {
                let name = |index: &Index| index.get(&pipeline.steps).name.clone();
                pipeline.iteration.handles = handles.iter().map(name).collect();
            }
            pipeline.parallelism = parallelism;
            pipeline.concurrency = Some(concurrency);
            pipeline.fail_fast = fail_fast;
            pipeline
        },
    )
}

pub(crate) fn worlds() -> impl Strategy<Value = World> {
    (any::<u64>(), any::<bool>()).prop_map(|(seed, lazy)| World { seed, lazy })
}

#[derive(Debug)]
struct Shape {
    needs: Vec<(Index, When, bool, bool)>,
    join: Join,
    conditional: bool,
    lenient: bool,
    default: bool,
    retry: u32,
    backoff: u64,
    limit: Option<u32>,
    body: u8,
}

fn steps() -> impl Strategy<Value = Shape> {
    let when = prop_oneof![
        4 => Just(When::Success), 2 => Just(When::Failure), 2 => Just(When::Any), 2 => Just(When::Always)
    ];
    let join = prop_oneof![3 => Just(Join::All), 1 => Just(Join::Any), 1 => Just(Join::NoneFailed)];
    let needs = prop::collection::vec((any::<Index>(), when, prop::bool::weighted(0.7), any::<bool>()), 0..4);
    let rare = || prop::bool::weighted(0.15);
    let retry = (prop_oneof![2 => Just(0_u32), 1 => 1_u32..3], prop_oneof![Just(0_u64), Just(7_u64)]);
    let limit = prop::option::weighted(0.2, 1_u32..3);
    (needs, join, rare(), rare(), rare(), retry, limit, 0_u8..12).prop_map(
        |(needs, join, conditional, lenient, default, (retry, backoff), limit, body)| Shape {
            needs,
            join,
            conditional,
            lenient,
            default,
            retry,
            backoff,
            limit,
            body,
        },
    )
}

impl Shape {
    fn step(self, number: usize, earlier: &[Step]) -> Step {
        let mut step = build::step(&format!("s{number}"));
        for (index, when, declared, handles) in self.needs {
            if earlier.is_empty() {
                break;
            }
            let name = &index.get(earlier).name;
            if step.needs.iter().all(|need| need.step != *name) {
                let effect = if handles && when != When::Success { Effect::Handles } else { Effect::None };
                step.needs.push(build::need(name, when, declared, effect));
            }
        }
        step.join = self.join;
        step.when = self.conditional.then(build::expression);
        step.on_failure = if self.lenient { OnFailure::Skip } else { OnFailure::Fail };
        step.output.default = self.default.then(|| "none".to_owned());
        step.retry.times = self.retry;
        step.retry.backoff_ms = self.backoff;
        step.concurrency = self.limit;
        match self.body {
            0 => step.body = build::stop(StopStatus::Success),
            1 => step.body = build::stop(StopStatus::Failure),
            2 | 3 => step.body = Body::Value(Template::default()),
            _ => {}
        }
        step
    }
}
