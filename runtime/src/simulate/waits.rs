//! What steps wait for that have not begun, and what those are doing that they wait for, each a table.

use std::sync::Arc;

use swarmc_plan::{EachJoin, Pipeline};

use super::build::{call, each, looped, pipeline, plan};
use super::tables::play_in;
use crate::{Graph, State};

/// What is said after these events: a line for each step that has not begun.
#[track_caller]
fn check(pipelines: Vec<Pipeline>, events: &str, expected: &[&str]) {
    let mut plan = plan(pipelines[0].clone());
    plan.pipelines = pipelines;
    let graph = Graph::new(&plan, "main", None, 4).unwrap();
    let (state, _) = play_in(State::new(Arc::new(graph)), events);
    let lines: Vec<String> = state
        .blocked()
        .map(|(step, waits)| {
            let pending = state.pending(&step, true);
            let pending: Vec<String> = pending.iter().map(|other| format!("{} {}", other.step, other.why)).collect();
            format!("{} waits for {waits}: {}", step.label(), pending.join("; "))
        })
        .collect();
    assert_eq!(lines, expected, "after {events:?}");
}

#[test]
fn a_step_waits_for_its_dependencies_until_they_have_ended() {
    let steps = || vec![pipeline("a retry=1\n b prompt\n c < a b\n d < c")];
    let d = "d waits for other steps: c it waits for other steps";
    check(steps(), "a started 1, b started 1", &["c waits for other steps: a it runs; b its turn goes on", d]);
    check(
        steps(),
        "a started 1, a failed 1, b done",
        &["c waits for other steps: a it failed, and is about to be tried again", d],
    );
    check(
        steps(),
        "a started 1, a failed 1, a started 2, b done",
        &["c waits for other steps: a it failed, and is tried again", d],
    );
    check(steps(), "a done, b done, c done, d done", &[]);
}

#[test]
fn where_as_many_run_as_may_the_others_wait_for_room() {
    let mut narrow = pipeline("a\n b\n c < b");
    narrow.concurrency = Some(1);
    check(
        vec![narrow],
        "a started 1",
        &[
            "b waits for room: as many run as may at once: ",
            "c waits for other steps: b it waits until there is room for it",
        ],
    );
}

#[test]
fn what_is_inside_of_a_step_is_known_as_far_as_it_has_begun() {
    let mut main = pipeline("a");
    main.steps.push(call("sub < a", "inner", &[]));
    main.steps.push(looped("again < sub", 2, "", "x"));
    main.steps.push(each("all < again", "[1]", None, EachJoin::All));
    let inner = Pipeline { name: "inner".to_owned(), ..pipeline("early\n late < early") };
    let rest = ["again waits for other steps: sub SUB", "all waits for other steps: again it waits for other steps"];
    let says = |sub: &str| rest.map(|line| line.replace("SUB", sub));
    let before = says("it waits for other steps");
    check(
        vec![main.clone(), inner.clone()],
        "a started 1",
        &["sub waits for other steps: a it runs", &before[0], &before[1]],
    );
    let begun = says("what is inside of it goes on");
    check(
        vec![main, inner],
        "a done, sub opened, early@sub started 1",
        &[&begun[0], &begun[1], "sub/late waits for other steps: early it runs"],
    );
}
