//! Seed 001, "Lifecycle": decompose, spawn, iterate, synthesize.

use super::world::{led, rules, run};
use crate::core::swarm::rules::Rules;

#[test]
fn a_roster_with_tasks_is_spawned_iterates_and_is_done() {
    let over = run(rules("takao mitaka"), "takao: tool search; done US \n mitaka: done Japan");
    assert_eq!(
        over.told(&[""]),
        "0 phase spawning\n\
         0 takao spawned as coder for the task of takao\n\
         0 mitaka spawned as coder for the task of mitaka\n\
         0 phase monitoring\n\
         0 takao starts\n\
         0 takao asks 1.1\n\
         0 mitaka starts\n\
         0 mitaka asks 1.1\n\
         1000 mitaka answered 1.1\n\
         1000 mitaka ends done: Japan\n\
         1000 takao answered 1.1\n\
         1000 takao calls search 1.1\n\
         2000 takao hears found\n\
         2000 takao asks 2.1\n\
         3000 takao answered 2.1\n\
         3000 takao ends done: US\n\
         3000 over: US + Japan"
    );
}

#[test]
fn the_lead_splits_the_goal_and_each_without_a_task_gets_a_part() {
    let script = "split: split the US, Japan for mitaka, Korea \n *: done it \n merge: merged all";
    let over = run(led("takao? mitaka? nara"), script);
    assert_eq!(
        over.told(&["phase", "spawned", "split", "merge"]),
        "0 phase planning\n\
         0 swarm-supervisor asks split.1\n\
         1000 swarm-supervisor answered split.1\n\
         1000 phase spawning\n\
         1000 takao spawned as coder for the US\n\
         1000 mitaka spawned as coder for Japan\n\
         1000 nara spawned as coder for the task of nara\n"
            .to_owned()
            + &format!("1000 {} spawned as coder for Korea\n", over.swarm.agents[3].name)
            + "1000 phase monitoring\n\
               2000 phase synthesizing\n\
               2000 swarm-supervisor asks merge.1\n\
               3000 swarm-supervisor answered merge.1"
    );
    assert_eq!(over.told(&["over"]), "3000 over: all");
}

#[test]
fn parts_are_capped_by_the_agents_of_the_swarm() {
    let mut few = led("");
    few.limits.agents = 3;
    let over = run(few, "split: split a, b, c, d, e \n *: done it \n merge: merged all");
    assert_eq!(over.count("spawned as chief"), 3);
    assert_eq!(over.told(&["over"]), "3000 over: all");
}

#[test]
fn names_are_those_of_the_run_and_stand_in_no_other_place() {
    let once = run(rules("takao * * *"), "*: done it");
    let names: Vec<&str> = once.swarm.agents.iter().map(|agent| &*agent.name).collect();
    let again = run(rules("takao * * *"), "*: done it");
    assert_eq!(names, again.swarm.agents.iter().map(|agent| &*agent.name).collect::<Vec<_>>());
    assert_eq!(once.swarm.names.len(), 4);
}

#[test]
fn a_single_result_is_returned_without_a_synthesis() {
    let merges = |roster: &str| Rules { merges: true, merger: Some("chief".into()), ..rules(roster) };
    let one = run(merges("takao"), "takao: done US");
    assert_eq!(one.told(&["phase synthesizing", "over"]), "1000 over: US");
    // Who failed has no result.
    let left = run(merges("takao mitaka"), "takao: done US \n mitaka: refuse");
    assert_eq!(left.told(&["phase synthesizing", "over"]), "1000 over: US");
    let two = run(merges("takao mitaka"), "*: done US \n merge: merged both");
    assert_eq!(two.told(&["phase synthesizing", "over"]), "1000 phase synthesizing\n2000 over: both");
}

#[test]
fn a_swarm_without_any_result_fails_and_says_why() {
    let over = run(rules("takao mitaka"), "*: refuse");
    assert_eq!(over.told(&["failed"]), "1000 failed: no agent came to a result: takao: 401; mitaka: 401");
    assert_eq!(run(rules(""), "").told(&["failed"]), "0 failed: it has no agents");
}

#[test]
fn no_agent_acts_before_the_whole_roster_is_there() {
    let over = run(rules("takao mitaka nara"), "*: done it");
    let lines = over.told(&["spawned", "starts"]);
    let kinds: Vec<bool> = lines.lines().map(|line| line.contains("starts")).collect();
    assert!(kinds.is_sorted(), "{lines}");
}

#[test]
fn what_was_used_is_counted_for_each_agent_and_the_whole() {
    let over = run(
        led("takao mitaka"),
        "split: split a \n takao: tool search; done US \n mitaka: done J \n * : done \n merge: merged x",
    );
    let spent = over.agent("takao").spent;
    assert_eq!((spent.calls, spent.usage.input, spent.usage.output, spent.cost), (2, 200, 20, 14));
    let whole = over.swarm.spent;
    assert_eq!((whole.calls, whole.usage.input, whole.cost, whole.reserved), (6, 600, 42, 0));
    assert_eq!(over.agent("takao").models.iter().collect::<Vec<_>>(), ["m1"]);
}
