//! What holds for every plan in every world: runs end, as the model says; nothing that finished runs again; an
//! interruption anywhere changes nothing in the end.

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::sample::Index;
use swarmc_plan::Plan;

use super::model::{self, Ending};
use super::random::{plans, timeless, worlds};
use super::run::{Run, same};
use super::world::World;
use crate::core::graph::Graph;
use crate::core::reopen::Retry;
use crate::core::reopened_records::effective;
use crate::core::samples::graph_of;
use crate::{Event, Progress, Record, State, StepId, decide_commands};

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_run_ends_as_the_rules_say(plan in timeless(), world in worlds()) {
        let run = Run::start(&plan, world).go();
        prop_assert_eq!(ending(&plan, &run.state), model::ending(&plan, world));
    }

    #[test]
    fn a_run_with_stops_and_fail_fast_ends(plan in plans(), world in worlds()) {
        let run = Run::start(&plan, world).go();
        prop_assert!(run.finished().is_some());
        let Progress { done, total } = run.state.progress();
        prop_assert_eq!(done, total, "what has ended is all done");
    }

    #[test]
    fn the_same_world_gives_the_same_records(plan in plans(), world in worlds()) {
        let once = Run::start(&plan, world).go().records;
        prop_assert_eq!(once, Run::start(&plan, world).go().records);
    }

    #[test]
    fn a_crash_after_any_record_changes_nothing_in_the_end(
        plan in timeless(), world in worlds(), at in any::<Index>(), again in any::<Index>(),
    ) {
        let records = Run::start(&plan, world).go().records;
        let records = &records[..=at.index(records.len())];
        let records = Run::resume(&plan, world, records).go().records;
        let records = &records[..=again.index(records.len())];
        let run = Run::resume(&plan, world, records).go();
        prop_assert_eq!(ending(&plan, &run.state), model::ending(&plan, world));
    }

    #[test]
    fn a_stop_after_any_record_changes_nothing_in_the_end(
        plan in timeless(), world in worlds(), at in any::<Index>(),
    ) {
        let whole = Run::start(&plan, world).go().records.len();
        let stopped = Run::start(&plan, world).stop_at(at.index(whole) + 1).go();
        let run = Run::resume(&plan, world, &stopped.records).go();
        prop_assert_eq!(ending(&plan, &run.state), model::ending(&plan, world));
    }

    #[test]
    fn interrupted_runs_with_stops_and_fail_fast_end(
        plan in plans(), world in worlds(), at in any::<Index>(), again in any::<Index>(),
    ) {
        let whole = Run::start(&plan, world).go().records.len();
        let stopped = Run::start(&plan, world).stop_at(at.index(whole) + 1).go().records;
        let records = &stopped[..=again.index(stopped.len())];
        prop_assert!(Run::resume(&plan, world, records).go().finished().is_some());
    }

    #[test]
    fn a_run_that_goes_on_after_its_end_repeats_nothing_that_stays(
        plan in plans(), world in worlds(), kind in any::<bool>(), at in any::<Index>(),
    ) {
        let records = Run::start(&plan, world).go().records;
        let retry = Retry { failed: true, ..Retry::default() };
        let world = World { kind, ..world };
        if let Ok(run) = Run::reopen(&plan, world, &records, &retry) {
            let again = run.records.len();
            let marked: BTreeSet<StepId> = run.records[records.len()..].iter().filter_map(marked).collect();
            let before: BTreeSet<StepId> = records.iter().filter_map(succeeded).collect();
            let whole = run.go();
            prop_assert!(whole.finished().is_some());
            for started in whole.records[again..].iter().filter_map(started) {
                prop_assert!(!before.contains(started) || marked.contains(started), "{started} runs again");
            }
            let kept: BTreeSet<StepId> = effective(&whole.records).iter().filter_map(succeeded).collect();
            prop_assert!(before.difference(&marked).all(|step| kept.contains(step)), "what stays counts");
            // A kill anywhere in it changes nothing of that.
            let mut growing = State::replay(graph_of(&plan), &whole.records[..again]);
            for length in again..=whole.records.len() {
                prop_assert!(same(&State::replay(graph_of(&plan), &whole.records[..length]), &growing));
                if let Some(record) = whole.records.get(length) {
                    growing.apply(record);
                }
            }
            let cut = again + at.index(whole.records.len() + 1 - again);
            prop_assume!(cut < whole.records.len());
            let resumed = Run::resume(&plan, world, &whole.records[..cut]).go();
            prop_assert!(resumed.finished().is_some());
            for started in resumed.records[cut..].iter().filter_map(started) {
                prop_assert!(!before.contains(started) || marked.contains(started), "{started} runs again");
            }
        }
    }

    #[test]
    fn an_interruption_of_a_run_that_goes_on_after_its_end_changes_nothing(
        plan in timeless(), world in worlds(), kind in any::<bool>(), at in any::<Index>(),
    ) {
        let records = Run::start(&plan, world).go().records;
        let retry = Retry { failed: true, ..Retry::default() };
        let world = World { kind, ..world };
        if let Ok(run) = Run::reopen(&plan, world, &records, &retry) {
            let again = run.records.len();
            let whole = run.go();
            let cut = again + at.index(whole.records.len() - again);
            let resumed = Run::resume(&plan, world, &whole.records[..cut]).go();
            prop_assert_eq!(ending(&plan, &resumed.state), ending(&plan, &whole.state));
            // The whole of it can be done once more.
            if let Ok(once_more) = Run::reopen(&plan, World { kind: true, ..world }, &whole.records, &retry) {
                prop_assert!(once_more.go().finished().is_some());
            }
        }
    }

    #[test]
    fn every_prefix_of_the_records_is_a_state_that_decide_accepts(plan in plans(), world in worlds()) {
        let records = Run::start(&plan, world).go().records;
        let mut growing = State::new(graph_of(&plan));
        for length in 0..=records.len() {
            let mut state = State::new(graph_of(&plan));
            records[..length].iter().for_each(|record| state.apply(record));
            prop_assert!(same(&state, &growing));
            let Progress { done, total } = state.progress();
            prop_assert!(done <= total);
            decide_commands(&mut state, 0);
            decide_commands(&mut state, u64::MAX);
            if let Some(record) = records.get(length) {
                growing.apply(record);
            }
        }
    }

    #[test]
    fn records_of_another_plan_do_no_harm(plan in plans(), other in plans(), world in worlds()) {
        let records = Run::start(&other, world).go().records;
        let mut state = State::new(graph_of(&plan));
        for record in records {
            if !matches!(record.event, Event::RunFinished { .. }) {
                state.apply(&record);
                decide_commands(&mut state, record.at);
            }
        }
    }
}

proptest! {
    // Each case folds as many times as it has records.
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_snapshot_at_any_cut_changes_nothing(plan in plans(), world in worlds()) {
        let run = Run::start(&plan, world).go();
        check_cuts(&graph_of(&plan), &run.records);
        let retry = Retry { failed: true, ..Retry::default() };
        if let Ok(run) = Run::reopen(&plan, World { kind: true, ..world }, &run.records, &retry) {
            check_cuts(&graph_of(&plan), &effective(&run.go().records));
        }
    }
}

/// The state is the same whether a reader folds all records, or those behind a snapshot at any of them.
pub(super) fn check_cuts(graph: &Arc<Graph>, records: &[Record]) {
    let whole = fold(State::new(Arc::clone(graph)), records).snapshot();
    let mut growing = State::new(Arc::clone(graph));
    for cut in 0..=records.len() {
        let snapshot = growing.snapshot();
        let restore = || State::restore(Arc::clone(graph), &snapshot).unwrap();
        assert_eq!(fold(restore(), &records[cut..]).snapshot(), whole, "a snapshot after {cut} records");
        let (mut restored, at) = (restore(), records.get(cut).map_or(u64::MAX, |record| record.at));
        let mut folded = fold(State::new(Arc::clone(graph)), &records[..cut]);
        assert_eq!(
            decide_commands(&mut restored, at),
            decide_commands(&mut folded, at),
            "commands after {cut} records"
        );
        records.get(cut).into_iter().for_each(|record| growing.apply(record));
    }
}

fn fold(mut state: State, records: &[Record]) -> State {
    records.iter().for_each(|record| state.apply(record));
    state
}

fn marked(record: &Record) -> Option<StepId> {
    match &record.event {
        Event::StepReopened { step, .. } => Some(step.clone()),
        _ => None,
    }
}

/// The step that did what it should.
fn succeeded(record: &Record) -> Option<StepId> {
    match &record.event {
        Event::AttemptEnded { step, outcome, .. } if outcome.failure.is_none() => Some(step.clone()),
        _ => None,
    }
}

fn started(record: &Record) -> Option<&StepId> {
    match &record.event {
        Event::AttemptStarted { step, .. } => Some(step),
        _ => None,
    }
}

fn ending(plan: &Plan, state: &State) -> Ending {
    let mut steps = std::collections::BTreeMap::new();
    for instance in 1..=plan.pipelines[0].parallelism {
        let iteration = state.iteration(instance);
        for name in state.graph().names() {
            let read = state.read_step(name, instance, iteration).unwrap();
            let id = crate::StepId::new(name, iteration, instance);
            steps.insert(id, read.status.unwrap());
        }
    }
    Ending { steps, status: state.final_status().unwrap() }
}
