//! Random pipelines: every feature that the scheduler knows, in graphs small enough to read when one fails.

use proptest::prelude::*;
use proptest::sample::Index;
use swarmc_plan::{
    Body, Call, EachJoin, Effect, Exhausted, Iteration, Join, Loop, OnFailure, Pipeline, Plan, RoundFailure, Step,
    StopStatus, Template, When,
};

use super::world::World;
use crate::core::samples;

/// Plans in which no timing decides how steps end.
pub(crate) fn timeless() -> impl Strategy<Value = Plan> {
    plans().prop_map(|mut plan| {
        for pipeline in &mut plan.pipelines {
            pipeline.fail_fast = false;
            unstopped(&mut pipeline.steps);
        }
        plan
    })
}

fn unstopped(steps: &mut [Step]) {
    for step in steps {
        match &mut step.body {
            body @ Body::Stop { .. } => *body = Body::Value(Template::default()),
            Body::Loop(body) => unstopped(&mut body.steps),
            _ => {}
        }
    }
}

/// Any plans: the first pipeline runs, the others are called, and steps of any may be inside of loops.
pub(crate) fn plans() -> impl Strategy<Value = Plan> {
    let inner = (prop::collection::vec(steps(), 0..4), 1_u32..3, any::<bool>(), any::<bool>(), any::<bool>());
    let inner = inner.prop_map(|(steps, max, until, going_on, lenient)| {
        let iteration = Iteration {
            max,
            until: until.then(samples::expression).into_iter().collect(),
            on_failure: if going_on { RoundFailure::Continue } else { RoundFailure::Stop },
            exhausted: if lenient { Exhausted::Success } else { Exhausted::Fail },
            ..Iteration::default()
        };
        List { shapes: steps, iteration }
    });
    (pipelines(), prop::collection::vec(inner, 2), any::<bool>()).prop_map(|(main, lists, fail_fast)| {
        let mut plan = samples::plan(main);
        for (number, list) in lists.iter().enumerate() {
            let mut pipeline = samples::pipeline("");
            pipeline.name = format!("p{number}");
            pipeline.steps = list.steps(&pipeline.name, &lists[number + 1..], number + 1);
            pipeline.iteration = list.iteration.clone();
            pipeline.fail_fast = fail_fast;
            pipeline.concurrency = Some(2);
            plan.pipelines.push(pipeline);
        }
        let names: Vec<String> = plan.pipelines[0].steps.iter().map(|step| step.name.clone()).collect();
        for (step, name) in plan.pipelines[0].steps.iter_mut().zip(names) {
            fill(step, &name, &lists, 0);
        }
        plan
    })
}

/// Steps of a loop, or of a pipeline that is called.
#[derive(Debug)]
struct List {
    shapes: Vec<Shape>,
    iteration: Iteration,
}

impl List {
    /// Its steps, their names beginning with `prefix`; what is inside of them comes from the lists after it, of which
    /// the first is number `first`.
    fn steps(&self, prefix: &str, rest: &[List], first: usize) -> Vec<Step> {
        let mut steps: Vec<Step> = Vec::new();
        for (number, shape) in self.shapes.iter().enumerate() {
            let name = format!("{prefix}_{number}");
            let step = shape.step(&name, &steps);
            steps.push(step);
        }
        for step in &mut steps {
            let name = step.name.clone();
            fill(step, &name, rest, first);
        }
        steps
    }
}

/// Puts into a loop or call what is inside of it, from one of the lists; without one it is a command.
fn fill(step: &mut Step, name: &str, lists: &[List], first: usize) {
    let chosen = name.len() % lists.len().max(1);
    match (&mut step.body, lists.get(chosen)) {
        (Body::Loop(body), Some(list)) => {
            body.steps = list.steps(name, &lists[chosen + 1..], first + chosen + 1);
            body.iteration = Iteration { on_failure: RoundFailure::Stop, ..list.iteration.clone() };
        }
        (Body::Call(call), Some(_)) => call.pipeline = format!("p{}", first + chosen),
        (Body::Loop(_) | Body::Call(_), None) => step.body = samples::step("x").body,
        _ => {}
    }
}

/// Any pipelines, in which loops and calls are still empty.
fn pipelines() -> impl Strategy<Value = Pipeline> {
    let rounds = (1_u32..4, any::<bool>(), any::<bool>(), any::<bool>(), prop::collection::vec(any::<Index>(), 0..2));
    let limits = (1_u32..4, 1_u32..5, any::<bool>());
    (prop::collection::vec(steps(), 0..10), rounds, limits, any::<bool>()).prop_map(
        |(steps, (max, until, going_on, lenient, handles), (parallelism, concurrency, fail_fast), reversed)| {
            let mut pipeline = samples::pipeline("");
            for (number, shape) in steps.into_iter().enumerate() {
                let step = shape.step(&format!("s{number}"), &pipeline.steps);
                pipeline.steps.push(step);
            }
            if reversed {
                pipeline.steps.reverse();
            }
            pipeline.iteration.max = max;
            pipeline.iteration.until.extend(until.then(samples::expression));
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
    (any::<u64>(), any::<bool>()).prop_map(|(seed, lazy)| World { seed, lazy, kind: false })
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
    each: Option<(Option<u32>, u8)>,
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
    let each = prop::option::weighted(0.15, (prop::option::of(1_u32..3), 0_u8..3));
    let body = (0_u8..16, each);
    (needs, join, rare(), rare(), rare(), retry, limit, body).prop_map(
        |(needs, join, conditional, lenient, default, (retry, backoff), limit, (body, each))| Shape {
            each,
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
    fn step(&self, name: &str, earlier: &[Step]) -> Step {
        let mut step = samples::step(name);
        for &(index, when, declared, handles) in &self.needs {
            if earlier.is_empty() {
                break;
            }
            let name = &index.get(earlier).name;
            if step.needs.iter().all(|need| need.step != *name) {
                let effect = if handles && when != When::Success { Effect::Handles } else { Effect::None };
                step.needs.push(samples::need(name, when, declared, effect));
            }
        }
        step.join = self.join;
        step.when = self.conditional.then(samples::expression);
        step.on_failure = if self.lenient { OnFailure::Skip } else { OnFailure::Fail };
        step.output.default = self.default.then(|| "none".to_owned());
        step.retry.times = self.retry;
        step.retry.backoff_ms = self.backoff;
        step.concurrency = self.limit;
        if let Some((parallel, join)) = self.each {
            let join = [EachJoin::All, EachJoin::Any, EachJoin::Settled][usize::from(join)];
            step.for_each = samples::each("x", "[]", parallel, join).for_each;
        }
        match self.body {
            0 => step.body = samples::stop(StopStatus::Success),
            1 => step.body = samples::stop(StopStatus::Failure),
            2 | 3 => step.body = Body::Value(Template::default()),
            4 | 5 => step.body = Body::Loop(Loop::default()),
            6 => step.body = Body::Call(Call { pipeline: String::new(), params: Default::default() }),
            7 => step.body = samples::gate("x", &["yes"], Some(("yes", 1000))).body,
            _ => {}
        }
        step
    }
}
