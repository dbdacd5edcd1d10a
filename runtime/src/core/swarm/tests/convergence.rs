//! Seed 001, "Convergence Detection".

use swarmc_plan::ProgressRule;

use super::world::{rules, run};
use crate::core::swarm::rules::Rules;

/// The first agent's end, where what counts as progress is `counts`.
fn end(counts: ProgressRule, turns: &str) -> String {
    let mut rules = rules("takao mitaka");
    rules.convergence.counts = counts;
    let over = run(rules, &format!("takao: {turns} \n mitaka: tool a @60000; done J \n *: done helped"));
    over.told(&["takao ends"]).split_once(' ').expect("a time").1.to_owned()
}

#[test]
fn three_actions_in_a_row_without_a_tool_are_enough() {
    use ProgressRule::{Findings, Messages, Tools};
    let talk = "publish f a; send mitaka info b; publish f c; done US";
    for (counts, turns, expected) in [
        (Tools, talk, "converged: turns 1 2 3"),
        (Tools, "publish f a; publish f b; tool x; publish f c; publish f d; done US", "done: US"),
        (Tools, "publish f a; publish f b; tool x = broken; publish f c; publish f d; done US", "done: US"),
        (Tools, "publish f a; send absent info b; invalid; done US", "converged: turns 1 2 3"),
        (Tools, "help a; idle; idle; done US", "converged: turns 1 2 3"),
        (Findings, talk, "done: US"),
        (
            Findings,
            "publish f a; send mitaka info a; send mitaka info b; send mitaka info c; done US",
            "converged: turns 2 3 4",
        ),
        (Messages, "send mitaka info a; send mitaka info b; send mitaka info c; done US", "done: US"),
        (Messages, "send absent info a; send absent info b; send absent info c; done US", "converged: turns 1 2 3"),
        (Messages, "help a; help b; help c; done US", "converged: turns 1 2 3"),
    ] {
        assert_eq!(end(counts, turns), format!("takao ends {expected}"), "{counts:?}: {turns}");
    }
}

#[test]
fn three_permanent_errors_in_a_row_end_an_agent_without_a_result() {
    let tools = |turns: &str| end(ProgressRule::Tools, turns);
    let aborted = "takao ends tool_errors (consecutive tool errors): turns 1 2 3";
    assert_eq!(tools("tool a = broken; tool b = broken; tool c = broken; done US"), aborted);
    assert_eq!(
        tools("tool a = broken; tool b = broken; tool c; tool d = broken; tool e = broken; done US"),
        "takao ends done: US"
    );
    // What is no tool call does not make them fewer.
    assert_eq!(
        tools("tool a = broken; publish f x; tool b = broken; publish f y; tool c = broken; done US"),
        "takao ends tool_errors (consecutive tool errors): turns 3 4 5"
    );
    let over = run(rules("takao mitaka"), "takao: tool a = broken \n mitaka: done J");
    assert_eq!(over.told(&["over"]).split_once(' ').map(|it| it.1), Some("over: J"));
}

#[test]
fn the_last_iteration_ends_an_agent_with_what_its_last_turns_came_to() {
    let five = || {
        let mut rules = rules("takao");
        rules.limits.iterations = 5;
        rules
    };
    let over = run(five(), "takao: tool a");
    assert_eq!(over.told(&["ends"]), "9000 takao ends exhausted: turns 3 4 5");
    // The action of the last turn is not carried out.
    assert_eq!(over.count("calls"), 4);
    assert_eq!(
        run(five(), "takao: tool a; tool a; tool a; tool a; done US").told(&["ends"]),
        "9000 takao ends done: US"
    );
    let unread = run(five(), "takao: tool a; tool a; tool a; tool a; invalid");
    assert_eq!(unread.told(&["ends"]), "10000 takao ends exhausted: turns 3 4 5");
    let mut one = rules("takao");
    one.limits.iterations = 1;
    assert_eq!(run(one, "takao: publish f a").told(&["publishes", "ends"]), "1000 takao ends exhausted: turns 1");
}

#[test]
fn thresholds_are_those_of_the_swarm() {
    let mut one: Rules = rules("takao");
    (one.convergence.no_progress, one.convergence.errors) = (1, 1);
    assert_eq!(run(one, "takao: publish f a").told(&["ends"]), "1000 takao ends converged: turns 1");
}
