//! Seed 001, "Configuration": what a swarm may do at most.

use super::world::{led, rules, run};

#[test]
fn no_more_agents_than_the_swarm_may_have() {
    let mut three = rules("* * * * *");
    three.limits.agents = 3;
    assert_eq!(run(three, "*: done it").swarm.agents.len(), 3);
    let mut three = led("a? b?");
    three.limits.agents = 3;
    let over = run(three, "split: split p, q, r, s \n *: help more; done it \n merge: merged all");
    assert_eq!((over.swarm.agents.len(), over.count("refused: no helper")), (3, 3));
}

#[test]
fn twenty_five_iterations_and_twenty_messages() {
    let over = run(rules("takao"), "takao: tool a");
    assert_eq!((over.count("asks"), over.count("calls")), (25, 24));
    let mut talkative = rules("takao mitaka");
    talkative.convergence.counts = swarmc_plan::ProgressRule::Messages;
    let over = run(talkative, "takao: send mitaka info x \n mitaka: tool a");
    assert_eq!(over.count("→"), 20);
    assert_eq!(over.count("takes"), 20);
}
