//! Actions of agents that need an approval (issue 6: "permission `gated`", "spawn approval=human").

use super::world::{World, rules};
use crate::core::swarm::rules::Rules;
use crate::types::approval::Choice;
use crate::types::swarm::End;

const CALLS: &str = "takao: tool gated; done US \n mitaka: tool a; done Japan";

/// A swarm in which a person says this, after so many milliseconds.
fn when(rules: Rules, script: &str, says: (Choice, u64)) -> World {
    let mut world = World::new(rules, script);
    world.says = Some(says);
    world.go()
}

fn gated(roster: &str) -> Rules {
    Rules { gated: true, helpers: 2, ..rules(roster) }
}

#[test]
fn an_agent_that_asks_waits_and_the_others_do_not() {
    let over = when(rules("takao mitaka"), CALLS, (Choice::Allow, 3_600_000));
    assert_eq!(over.told(&["mitaka ends"]), "3000 mitaka ends done: Japan");
    // An hour is longer than an agent has, and is not its own.
    assert_eq!(
        over.told(&["takao calls", "takao hears", "takao ends"]),
        "3601000 takao calls gated 1.1\n3602000 takao hears found\n3603000 takao ends done: US"
    );
    assert_eq!(over.agent("takao").began, Some(3_600_000));
}

#[test]
fn the_time_of_an_agent_goes_on_when_it_is_answered() {
    let mut slow = rules("takao");
    slow.limits.timeout_ms = 5_000;
    let over = when(slow, "takao: tool gated = found @4500; done US", (Choice::Allow, 60_000));
    let end = over.agent("takao").end.as_ref().map(|end| end.how);
    assert_eq!((end, over.clock), (Some(End::TimedOut), 65_000));
}

#[test]
fn a_denied_call_is_a_failed_one_whose_reason_the_agent_reads() {
    let over = when(rules("takao mitaka"), CALLS, (Choice::Deny, 0));
    let told = "1000 takao hears not called: a person said no\n2000 takao ends done: US";
    assert_eq!(over.told(&["takao calls", "takao hears", "takao ends"]), told);
    let stubborn = when(rules("takao"), "takao: tool gated", (Choice::Deny, 0));
    let end = stubborn.agent("takao").end.as_ref().map(|end| end.how);
    assert_eq!((end, stubborn.agent("takao").history.len()), (Some(End::ToolErrors), 3));
}

#[test]
fn a_call_that_is_repeated_is_not_asked_for_again() {
    let over = when(rules("takao"), "takao: tool gated = 503 | found; tool gated; done US", (Choice::Allow, 100));
    assert_eq!(over.count("calls gated"), 3);
    assert_eq!(over.approvals.len(), 4, "two requests and two answers: {:?}", over.approvals);
}

#[test]
fn a_helper_comes_after_an_approval() {
    let over = when(gated("takao"), "takao: help a; done US \n *: done helped", (Choice::Allow, 700_000));
    assert_eq!(over.count("spawned as coder for a by takao"), 1);
    assert_eq!(over.told(&["over"]), "702000 over: US + helped");
    let denied = when(gated("takao"), "takao: help a; done US \n *: done helped", (Choice::Deny, 0));
    assert_eq!(denied.told(&["refused"]), "1000 takao refused: no helper: a person said no");
    assert_eq!((denied.swarm.agents.len(), denied.agent("takao").helpers), (1, 0));
}

#[test]
fn no_person_is_asked_for_what_is_not_possible_and_two_approvals_do_not_exceed_the_limit() {
    let mut full = gated("takao mitaka");
    full.limits.agents = 2;
    let over = when(full, "takao: help a; done US \n mitaka: done Japan", (Choice::Allow, 0));
    assert_eq!((over.approvals.len(), over.count("refused: no helper: the swarm has 2 agents")), (0, 1));
    let mut tight = gated("takao mitaka");
    tight.limits.agents = 3;
    let asks = "takao: help a; done US \n mitaka: help b; done Japan \n *: done helped";
    let over = when(tight, asks, (Choice::Allow, 5_000));
    assert_eq!((over.approvals.len(), over.swarm.agents.len()), (4, 3));
    assert_eq!(over.count("refused: no helper: the swarm has 3 agents"), 1);
}

#[test]
fn a_request_outlives_the_runner_of_the_swarm() {
    let calm = when(rules("takao mitaka"), CALLS, (Choice::Allow, 10_000));
    let mut world = World::new(rules("takao mitaka"), CALLS);
    world.says = Some((Choice::Allow, 10_000));
    world.drain();
    while world.approvals.is_empty() {
        world.step();
    }
    // No process ran it for an hour; the same request is open, and nothing asks once more.
    world.swarm = world.replayed();
    world.clock += 3_600_000;
    world.swarm.resume_swarm(3_600_000, world.clock);
    let over = world.go();
    assert_eq!(over.approvals.len(), 2, "{:?}", over.approvals);
    assert_eq!((over.agent("takao").began, over.clock), (Some(3_600_000), 3_603_000));
    let results = |world: &World| world.told(&["over"]).split_once(' ').map(|(_, result)| result.to_owned());
    assert_eq!(results(&over), results(&calm));
}
