//! Seed 001, "Phase 4: Dynamic Spawn".

use super::world::{rules, run};

const ASKS: &str = "takao: help check the EU with search file_read; done US \n *: done helped";

#[test]
fn a_helper_has_the_task_and_the_tools_asked_for_and_the_asker_hears_its_name() {
    let over = run(rules("takao"), ASKS);
    let helper = &over.swarm.agents[1].name;
    let accept = format!("{{\"agent_id\":\"{helper}\",\"message\":\"{helper} has started, and helps you\"}}");
    assert_eq!(
        over.told(&["help", "by takao", "→", "takes"]),
        format!(
            "1000 takao wants help: check the EU\n\
             1000 {helper} spawned as coder for check the EU by takao with search file_read\n\
             1000 swarm-supervisor → takao #1 accept {accept}\n\
             1000 takao takes #1 from swarm-supervisor\n\
             2000 {helper} ends done: helped\n\
             2000 over: US + helped"
        )
    );
}

#[test]
fn each_agent_may_ask_once() {
    let twice = "takao: help a; help b; done US \n *: done helped";
    let over = run(rules("takao"), twice);
    assert_eq!(
        over.told(&["refused"]),
        "2000 takao refused: no helper: you have had the one that each agent may ask for"
    );
    assert_eq!(over.swarm.agents.len(), 2);
    let mut more = rules("takao");
    more.helpers = 2;
    assert_eq!(run(more, twice).swarm.agents.len(), 3);
    let mut none = rules("takao");
    none.helpers = 0;
    assert_eq!(
        run(none, twice).told(&["refused"]).lines().next(),
        Some("1000 takao refused: no helper: this swarm has none")
    );
}

#[test]
fn helpers_count_for_the_agents_of_the_swarm() {
    let mut two = rules("takao mitaka");
    two.limits.agents = 2;
    let over = run(two, "takao: help a; done US \n *: done it");
    assert_eq!(over.told(&["refused"]), "1000 takao refused: no helper: the swarm has 2 agents, which is the limit");
}

#[test]
fn a_helper_may_ask_for_one_too_until_the_swarm_is_full() {
    let mut five = rules("takao");
    five.limits.agents = 5;
    let over = run(five, "*: help more; done it");
    assert_eq!(over.swarm.agents.len(), 5);
    assert_eq!(over.count("refused: no helper: the swarm has 5 agents"), 1);
    assert!(over.swarm.agents.iter().all(|agent| agent.helpers <= 1));
}
