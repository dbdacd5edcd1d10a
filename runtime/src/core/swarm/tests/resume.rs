//! A swarm that is interrupted after any of its events ends the same way.

use std::collections::BTreeSet;

use super::world::{World, led, rules, run};
use crate::core::swarm::rules::Rules;
use crate::types::event::Event;

/// The outcome of a swarm, however often it was interrupted: of each agent its end, iterations, messages, helpers and
/// tokens, then the mailboxes, the workspace, and the result.
pub(super) fn end_state(world: &World) -> String {
    let agents = world.swarm.agents.iter().map(|agent| {
        let end = agent.end.as_ref();
        let (counts, history) =
            ((agent.iteration, agent.sent, agent.helpers, agent.letters, agent.taker), &agent.history);
        format!("{} {:?} {counts:?} {:?} {history:?}\n", agent.name, end, agent.spent)
    });
    let agents: String = agents.collect();
    let entries = format!("{:?}", world.swarm.workspace.topics);
    let told = world.told(&["→", "publishes", "hears", "over: ", "failed: ", "wants help", "spawned", "phase"]);
    format!("{agents}{entries}\n{:?}\n{told}", world.swarm.spent)
}

fn interrupted(rules: impl Fn() -> Rules, script: &str) {
    let whole = run(rules(), script);
    let expected = end_state(&whole);
    for after in 1..whole.events.len() {
        let mut world = World::new(rules(), script);
        world.crashes = BTreeSet::from([after]);
        assert_eq!(end_state(&world.go()), expected, "after event {after}: {:?}", whole.events[after - 1].1);
    }
    // And after each of them.
    let mut world = World::new(rules(), script);
    world.crashes = (1..whole.events.len() * 2).collect();
    assert_eq!(end_state(&world.go()), expected);
}

#[test]
fn after_any_fact() {
    let script = "split: invalid | 503 | split a, b for mitaka, c
        takao: 429 | tool search = 503 | 503 | found; publish findings US leads; send mitaka request look; help check it with web; tool a = broken; done US
        mitaka: tool a; invalid | send takao info x; tool b = 503 | broken; done J
        nara: send takao info y; tool a @5000; publish findings z; publish findings v; publish findings w
        *: tool a; done helped
        merge: 503 | invalid | merged all";
    interrupted(|| led("takao? mitaka? nara"), script);
}

#[test]
fn while_an_agent_is_replaced_waits_or_runs_out_of_time() {
    let fallbacks = || {
        let mut rules = rules("takao mitaka nara?");
        rules.fallbacks.insert("coder".into(), 1);
        rules
    };
    interrupted(fallbacks, "takao: 429 | 429 | 429 | tool a; done US \n mitaka: tool a = found @700000 \n nara: done");
    interrupted(|| rules("takao"), "takao: idle; tool a; idle; idle; done US");
    interrupted(|| rules("takao mitaka"), "takao: idle; done US \n mitaka: tool a; publish findings x; done J");
}

#[test]
fn what_another_process_makes_of_the_facts_is_what_this_one_knew() {
    let script =
        "takao: 429 | tool search = 503 | found; idle; send mitaka info x; done US \n mitaka: tool a; idle; done J";
    let mut world = World::new(rules("takao mitaka"), script);
    world.crashes = BTreeSet::from([usize::MAX]);
    let world = world.go();
    let replayed = world.replayed();
    assert_eq!(format!("{:?}", replayed.agents), format!("{:?}", world.swarm.agents));
    assert_eq!((replayed.phase, replayed.spent, replayed.is_over), (world.swarm.phase, world.swarm.spent, true));
}

#[test]
fn a_wait_that_was_asked_for_is_kept_by_the_next_runner() {
    for (script, expected) in [
        ("takao: later 100000 | done US", "101000 takao asks 1.2"),
        ("takao: later 100000 | done US \n split: later 100000 | split a", "101000 swarm-supervisor asks split.2"),
    ] {
        let led = || if script.contains("split") { led("takao?") } else { rules("takao") };
        let whole = run(led(), script);
        assert!(whole.told(&["asks"]).contains(expected), "{}", whole.told(&["asks"]));
        for after in 1..whole.events.len() {
            let mut world = World::new(led(), script);
            world.crashes = BTreeSet::from([after]);
            let told = world.go().told(&["asks"]);
            assert!(told.contains(expected), "after event {after}: {told}");
        }
    }
}

#[test]
fn time_without_a_runner_does_not_count() {
    let mut world = World::new(rules("takao"), "takao: tool a = found @500000; done US");
    world.drain();
    world.swarm = world.replayed();
    world.clock = 10_000_000;
    world.swarm.resume_swarm(10_000_000, world.clock);
    assert_eq!(world.swarm.due(), Some(10_600_000));
}

#[test]
fn what_follows_from_an_answer_is_recorded_before_a_turn_begins_again() {
    let script = "takao: done US @5000 \n mitaka: done J";
    let whole = run(rules("takao mitaka"), script);
    let answered = |event: &Event| matches!(event, Event::TurnEnded { turn, .. } if &*turn.agent == "mitaka");
    let after = whole.events.iter().position(|(_, event)| answered(event)).expect("it answers") + 1;
    let mut world = World::new(rules("takao mitaka"), script);
    world.crashes = BTreeSet::from([after]);
    let world = world.go();
    let place = |wanted: &dyn Fn(&Event) -> bool| {
        let found = world.events[after..].iter().position(|(_, event)| wanted(event));
        found.expect("it is recorded after the crash")
    };
    let ends = place(&|event| matches!(event, Event::AgentFinished { agent, .. } if &**agent == "mitaka"));
    let begins = place(&|event| matches!(event, Event::TurnStarted { turn, .. } if &*turn.agent == "takao"));
    assert!(ends < begins, "{:?}", &world.events[after..]);
}
