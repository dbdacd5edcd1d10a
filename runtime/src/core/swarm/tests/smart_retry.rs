//! Seed 001, "Smart Retry": 5 seconds times the attempt, at most 30; what may pass never counts.

use super::world::{led, rules, run};
use crate::core::swarm::rules::Rules;

#[test]
fn a_tool_that_fails_for_what_may_pass_is_called_again_ever_later() {
    let results = "503 | 429 | 503 | 503 | 503 | 503 | 503 | found";
    let over = run(rules("takao"), &format!("takao: tool search = {results}; done US"));
    // After 5, 10, 15, 20, 25, 30 and again 30 seconds.
    assert_eq!(
        over.told(&["calls", "ends"]),
        "1000 takao calls search 1.1\n\
         7000 takao calls search 1.2\n\
         18000 takao calls search 1.3\n\
         34000 takao calls search 1.4\n\
         55000 takao calls search 1.5\n\
         81000 takao calls search 1.6\n\
         112000 takao calls search 1.7\n\
         143000 takao calls search 1.8\n\
         145000 takao ends done: US"
    );
    assert_eq!(over.agent("takao").history.len(), 1, "it was one iteration");
}

#[test]
fn what_may_pass_does_not_count_and_what_stays_does() {
    let turn = "tool a = 503 | 503 | broken";
    let over =
        run(rules("takao"), &format!("takao: {turn}; {turn}; tool a = 503 | found; {turn}; {turn}; {turn}; done"));
    assert_eq!(
        over.told(&["ends"]).split_once(' ').map(|it| it.1),
        Some("takao ends tool_errors (consecutive tool errors): turns 4 5 6")
    );
    let over = run(rules("takao"), &format!("takao: {turn}; {turn}; tool a = 503 | found; {turn}; {turn}; done US"));
    assert_eq!(over.told(&["ends"]).split_once(' ').map(|it| it.1), Some("takao ends done: US"));
}

#[test]
fn a_model_that_fails_for_what_may_pass_is_asked_again() {
    let over = run(rules("takao"), "takao: 429 | 503 | done US");
    assert_eq!(over.told(&["asks"]), "0 takao asks 1.1\n6000 takao asks 1.2\n17000 takao asks 1.3");
    // A longer wait that the other side asks for is kept to.
    let over = run(rules("takao"), "takao: later 20000 | later 1 | done US");
    assert_eq!(over.told(&["asks"]), "0 takao asks 1.1\n21000 takao asks 1.2\n32000 takao asks 1.3");
    // Waits begin anew in the next iteration.
    let over = run(rules("takao"), "takao: 429 | 429 | tool a; 429 | done US");
    assert_eq!(over.told(&["asks 2"]), "19000 takao asks 2.1\n25000 takao asks 2.2");
}

#[test]
fn a_model_that_fails_for_good_is_not_asked_again() {
    let over = run(rules("takao"), "takao: refuse | done US");
    assert_eq!(over.told(&["asks", "ends"]), "0 takao asks 1.1\n1000 takao ends unreachable (401)");
    let over = run(rules("takao"), "takao: tool a; refuse");
    assert_eq!(over.told(&["ends"]), "3000 takao ends unreachable (401): turns 1");
}

#[test]
fn fallbacks_stand_in_one_after_the_other() {
    let with = |count: u32| {
        let mut rules = rules("takao");
        rules.fallbacks.insert("coder".into(), count);
        rules
    };
    let over = run(with(2), "takao: refuse | refuse | done US");
    assert_eq!(
        over.told(&["asks", "ends"]),
        "0 takao asks 1.1\n1000 takao asks 1.2\n2000 takao asks 1.3\n3000 takao ends done: US"
    );
    assert_eq!(over.agent("takao").taker, 2);
    assert_eq!(run(with(1), "takao: refuse").told(&["ends"]), "2000 takao ends unreachable (401)");
    // Each has its own retries, and its own waits.
    let over = run(with(1), "takao: 429 | 429 | 429 | 429 | done US");
    assert_eq!(
        over.told(&["asks"]),
        "0 takao asks 1.1\n6000 takao asks 1.2\n17000 takao asks 1.3\n18000 takao asks 1.4\n24000 takao asks 1.5"
    );
    // A budget is everybody's.
    assert_eq!(run(with(1), "takao: budget").told(&["ends"]), "1000 takao ends over_budget (the budget is spent)");
}

#[test]
fn the_supervisor_has_its_fallbacks_too() {
    let with = |count: u32| {
        let mut rules: Rules = led("");
        rules.fallbacks.insert("chief".into(), count);
        rules
    };
    let over = run(with(1), "split: refuse | split a \n *: done A");
    assert_eq!(over.told(&["split", "over"]).lines().count(), 5);
    let over = run(with(0), "split: refuse");
    assert_eq!(over.told(&["failed"]), "1000 failed: its goal cannot be split: 401");
    let over = run(with(0), "split: split a, b \n *: done A \n merge: refuse");
    assert_eq!(over.told(&["failed"]), "3000 failed: its results cannot be merged: 401");
}
