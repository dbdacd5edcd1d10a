//! What an event costs the pure core, from 100 to 100,000 steps: the figures of one shape should not grow.
//!
//! Every sample is a whole run, from the first record to the last, in which every attempt ends at once; after each
//! record the core is asked what to do. Items are records.

use std::collections::VecDeque;
use std::sync::Arc;

use divan::Bencher;
use divan::counter::ItemsCount;
use swarmc_plan::{
    Body, Command as Line, Effect, Exhausted, Iteration, Need, Origin, Output, Pipeline, Plan, RoundFailure, Step, When,
};
use swarmc_runtime::{Command, Content, Event, Graph, Outcome, Record, State, decide_commands};

/// A need: of which step, and how it must have ended.
type Link = (usize, When);

const STEPS: [usize; 4] = [100, 1_000, 10_000, 100_000];

fn main() {
    divan::main();
}

#[divan::bench(args = STEPS, sample_count = 20)]
fn independent(bencher: Bencher, steps: usize) {
    measure(bencher, steps, |_| Vec::new());
}

#[divan::bench(args = STEPS, sample_count = 20)]
fn chain(bencher: Bencher, steps: usize) {
    measure(bencher, steps, link);
}

/// Layers of fifty, each step needing three of the layer before.
#[divan::bench(args = STEPS, sample_count = 20)]
fn layers(bencher: Bencher, steps: usize) {
    measure(bencher, steps, |step| match step.checked_sub(50) {
        Some(_) => (0..3).map(|other| (step / 50 * 50 - 50 + (step + other * 7) % 50, When::Success)).collect(),
        None => Vec::new(),
    });
}

/// Three of four steps need a failure of one that succeeds, and are skipped.
#[divan::bench(args = STEPS, sample_count = 20)]
fn skipped(bencher: Bencher, steps: usize) {
    measure(bencher, steps, |step| if step % 4 == 0 { Vec::new() } else { vec![(step - step % 4, When::Failure)] });
}

/// What resuming costs before the first process starts.
#[divan::bench(args = STEPS, sample_count = 20)]
fn fold(bencher: Bencher, steps: usize) {
    let graph = graph(steps, link);
    let mut records = Vec::new();
    run(&mut State::new(Arc::clone(&graph)), |record| records.push(record));
    bencher
        .counter(ItemsCount::new(records.len()))
        .with_inputs(|| State::new(Arc::clone(&graph)))
        .bench_refs(|state| records.iter().for_each(|record| state.apply(record)));
}

fn link(step: usize) -> Vec<Link> {
    step.checked_sub(1).map(|before| (before, When::Success)).into_iter().collect()
}

fn measure(bencher: Bencher, steps: usize, needs: fn(usize) -> Vec<Link>) {
    let graph = graph(steps, needs);
    let records = run(&mut State::new(Arc::clone(&graph)), drop);
    bencher
        .counter(ItemsCount::new(records))
        .with_inputs(|| State::new(Arc::clone(&graph)))
        .bench_refs(|state| run(state, drop));
}

/// Runs to the end, hands every record on, and says how many there were.
fn run(state: &mut State, mut keep: impl FnMut(Record)) -> u64 {
    let mut seq = 0;
    let mut events = VecDeque::from([Event::run_started("run", "main")]);
    while let Some(event) = events.pop_front() {
        seq += 1;
        let record = Record { seq, at: 0, event };
        state.apply(&record);
        keep(record);
        for command in decide_commands(state, 0) {
            match command {
                Command::Start { step, attempt } => {
                    let output = Some(Content::Text("done".to_owned()));
                    let outcome = Outcome { output, exit: Some(0), ..Outcome::default() };
                    events.push_back(Event::AttemptStarted {
                        step: step.clone(),
                        attempt,
                        reserved: None,
                        summarizer: None,
                    });
                    events.push_back(Event::AttemptEnded { step, attempt, outcome });
                }
                Command::Skip { step, reason } => events.push_back(Event::StepSkipped { step, reason }),
                Command::Finish { status } => events.push_back(Event::RunFinished { status }),
                other => unreachable!("{other:?} is not asked for here"),
            }
        }
    }
    assert!(state.final_status().is_some(), "the run ends");
    seq
}

fn graph(steps: usize, needs: impl Fn(usize) -> Vec<Link>) -> Arc<Graph> {
    let pipeline = Pipeline {
        name: "main".to_owned(),
        iteration: Iteration {
            max: 1,
            on_failure: RoundFailure::Stop,
            exhausted: Exhausted::Fail,
            ..Iteration::default()
        },
        parallelism: 1,
        concurrency: Some(8),
        steps: (0..steps).map(|number| step(number, needs(number))).collect(),
        ..Pipeline::default()
    };
    let plan = Plan {
        version: swarmc_plan::VERSION,
        workflow: "bench".to_owned(),
        default: "main".to_owned(),
        pipelines: vec![pipeline],
        ..Plan::default()
    };
    Arc::new(Graph::new(&plan, "main", None, 8).expect("the plan is consistent"))
}

fn step(number: usize, needs: Vec<Link>) -> Step {
    let need = |(other, when)| Need {
        step: format!("step-{other}"),
        when,
        declared: true,
        effect: Effect::None,
        origin: Origin::default(),
    };
    Step {
        name: format!("step-{number}"),
        needs: needs.into_iter().map(need).collect(),
        body: Body::Run(Line::Argv(vec!["true".to_owned()])),
        output: Output { max_bytes: 102_400, ..Output::default() },
        ..Step::default()
    }
}
