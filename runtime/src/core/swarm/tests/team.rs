//! Seed 004: a coordinator, its plan, and the agents that work by it.

use std::collections::BTreeSet;

use super::resume::end_state;
use super::world::{World, rules, run};
use crate::core::swarm::life::life_of;
use crate::core::swarm::rules::{Coordinator, Rules};
use crate::core::swarm::state::Channel;
use crate::types::event::Event;
use crate::types::team::Life;

/// A team with the coordinator `chief` and a plan of these items: `api:a1 parser:a2<api` has two, of which the second waits
/// for the first.
pub(super) fn coordinated(roster: &str, items: &str) -> Rules {
    let item = |word: &str| {
        let (word, needs) = word.split_once('<').unwrap_or((word, ""));
        let (name, owner) = word.split_once(':').unwrap_or((word, ""));
        swarmc_plan::PlanItem {
            name: name.to_owned(),
            text: format!("do {name}"),
            owner: (!owner.is_empty()).then(|| owner.to_owned()),
            priority: swarmc_plan::Priority::Normal,
            depends_on: needs.split(',').filter(|need| !need.is_empty()).map(str::to_owned).collect(),
            checkpoints: Vec::new(),
            scope: Vec::new(),
        }
    };
    let mut rules = rules(roster);
    rules.helpers = 0;
    rules.declared.insert("chief".into());
    Rules {
        coordinator: Some(Coordinator { name: "chief".into(), plays: "planner".into() }),
        items: items.split_whitespace().map(item).collect(),
        spawns: Some(swarmc_plan::Spawns { agents: vec!["coder".to_owned()], max: 2 }),
        ..rules
    }
}

/// An operation of an agent, after two seconds: those of the coordinator take half of one, so that it waits by then.
pub(super) fn op(json: &str) -> String {
    format!("{{\"action\": {json}}} @2000")
}

pub(super) fn done(item: &str) -> String {
    op(&format!("\"item_done\", \"item\": \"{item}\", \"summary\": \"{item} stands\""))
}

/// The events that contain one of the words, without their times.
pub(super) fn list_events(world: &World, wanted: &[&str]) -> String {
    let lines = world.told(wanted);
    let words = lines.lines().map(|line| line.split_once(' ').map_or(line, |(_, words)| words));
    words.collect::<Vec<_>>().join("\n")
}

/// A script: a line for each agent, with its turns.
pub(super) fn script(lines: &[(&str, &[&str])]) -> String {
    let turn = |name: &str, turn: &str| match name {
        "chief" => format!("{} @500", turn.trim_end_matches(" @2000")),
        _ => turn.to_owned(),
    };
    let line = |(name, turns): &(&str, &[&str])| {
        let turns: Vec<String> = turns.iter().map(|it| turn(name, it)).collect();
        format!("{name}: {}\n", turns.join("; "))
    };
    lines.iter().map(line).collect()
}

/// The same swarm, interrupted after each of its events, ends the same way.
pub(super) fn interrupted(rules: impl Fn() -> Rules, script: &str) -> World {
    let whole = run(rules(), script);
    let expected = end_state(&whole);
    for after in 1..whole.events.len() {
        let mut world = World::new(rules(), script);
        world.crashes = BTreeSet::from([after]);
        assert_eq!(end_state(&world.go()), expected, "after event {after}: {:?}", whole.events[after - 1].1);
    }
    whole
}

#[test]
fn items_are_done_in_the_order_of_their_dependencies_and_the_coordinator_ends_the_team() {
    let api = done("api");
    let parser = done("parser");
    let script = script(&[("chief", &["idle", "idle", "done all stands"]), ("a1", &[&api]), ("a2", &[&parser])]);
    let over = interrupted(|| coordinated("a1? a2?", "api:a1 parser:a2<api"), &script);
    assert_eq!(
        list_events(&over, &["spawned", "starts", " of ", "ends", "over", "→", "asks"]),
        "chief spawned as planner for the goal\n\
         a1 spawned as coder for nothing\n\
         a2 spawned as coder for nothing\n\
         chief starts\n\
         chief asks 1.1\n\
         a1 starts\n\
         api of a1 is running\n\
         a1 asks 1.1\n\
         api of a1 is done: api stands\n\
         swarm-supervisor → chief #1 request {\"message\":\"a1 has done `api`; it has no other item: api stands\"}\n\
         chief asks 2.1\n\
         a2 starts\n\
         parser of a2 is running\n\
         a2 asks 1.1\n\
         parser of a2 is done: parser stands\n\
         swarm-supervisor → chief #2 request {\"message\":\"a2 has done `parser`; it has no other item: parser stands\"}\n\
         chief asks 3.1\n\
         chief ends done: all stands\n\
         a1 ends released\n\
         a2 ends released\n\
         over: all stands"
    );
}

#[test]
fn without_items_the_first_turn_of_the_coordinator_makes_version_1() {
    let plan = op(
        r#""plan_update", "ops": [{"op": "add", "item": "api", "text": "Define it", "owner": "a1"}, {"op": "add", "item": "docs", "text": "Write them", "depends_on": ["api"]}], "why": "the beginning""#,
    );
    let assign = op(r#""assign", "item": "docs", "to": "a2""#);
    let (api, docs) = (done("api"), done("docs"));
    let script =
        script(&[("chief", &[&plan, &assign, "idle", "idle", "done good"]), ("a1", &[&api]), ("a2", &[&docs])]);
    let over = interrupted(|| coordinated("a1? a2?", ""), &script);
    assert_eq!(
        list_events(&over, &["plan v", "assigns", " is ", "over"]),
        "chief makes plan v1: add api, add docs\n\
         api of a1 is running\n\
         chief assigns docs to a2\n\
         api of a1 is done: api stands\n\
         docs of a2 is running\n\
         docs of a2 is done: docs stands\n\
         over: good"
    );
}

#[test]
fn an_item_that_gets_ready_while_its_owner_takes_a_turn_begins_after_it() {
    let (api, parser) = (done("api"), done("parser"));
    let script = script(&[
        ("chief", &["send a2 request {\"message\":\"look\"}", "idle", "idle", "done all"]),
        ("a1", &[&api]),
        ("a2", &["idle @9000", &parser]),
    ]);
    // Interrupted, the turn that is repeated begins the item.
    let over = run(coordinated("a1? a2?", "api:a1 parser:a2<api"), &script);
    assert_eq!(
        list_events(&over, &["parser of", "a2 asks", "nothing moves", "over"]),
        "a2 asks 1.1\nparser of a2 is running\na2 asks 2.1\nparser of a2 is done: parser stands\nover: all"
    );
}

#[test]
fn proposals_are_decided_by_the_coordinator_and_reach_who_made_them() {
    let propose = op(
        r#""plan_propose", "ops": [{"op": "add", "item": "tests", "text": "Write tests", "owner": "a1"}], "why": "none there""#,
    );
    let again = op(r#""plan_propose", "ops": [{"op": "add", "item": "docs", "text": "Write docs"}], "why": "too few""#);
    let (accept, reject) = (
        op(r#""plan_decide", "proposal": 1, "approve": true, "because": "right""#),
        op(r#""plan_decide", "proposal": 2, "approve": false, "because": "they stay""#),
    );
    let (api, tests) = (done("api"), done("tests"));
    let script = script(&[
        ("chief", &["idle", &accept, "idle", &reject, "idle", "idle", "done good"]),
        ("a1", &[&propose, "tool a", &api, &again, &tests, "idle"]),
    ]);
    // A message that comes during a turn is read in the turn that repeats it: interrupted, it is a turn less.
    let over = run(coordinated("a1?", "api:a1"), &script);
    assert_eq!(
        list_events(&over, &["proposes", "plan v", "proposal ", "→ a1"]),
        "a1 proposes 1 on v1: add tests\n\
         swarm-supervisor → chief #1 request {\"message\":\"a1 proposes change 1 of the plan: add tests; none there\"}\n\
         chief makes plan v2: add tests for proposal 1\n\
         swarm-supervisor → a1 #1 request {\"message\":\"your proposal 1 is accepted: the plan is at version 2\"}\n\
         a1 proposes 2 on v2: add docs\n\
         swarm-supervisor → chief #3 request {\"message\":\"a1 proposes change 2 of the plan: add docs; too few\"}\n\
         proposal 2 is rejected by chief: they stay\n\
         swarm-supervisor → a1 #2 request {\"message\":\"your proposal 2 is rejected: they stay\"}"
    );
}

#[test]
fn only_the_coordinator_changes_the_plan_and_adds_and_ends_agents() {
    for leading in [
        r#""plan_update", "ops": [{"op": "remove", "item": "api"}], "why": "x""#,
        r#""plan_decide", "proposal": 1, "approve": true, "because": "x""#,
        r#""assign", "item": "api", "to": "a2""#,
        r#""spawn_agent", "plays": "coder", "task": "help""#,
        r#""stop_agent", "agent": "a2", "why": "x""#,
        r#""tell_user", "message": "x""#,
    ] {
        let api = done("api");
        let script = script(&[("chief", &["idle", "done good"]), ("a1", &[&op(leading), &api]), ("a2", &["idle"])]);
        let over = run(coordinated("a1? a2?", "api:a1"), &script);
        let name = leading.split('"').nth(1).expect("a name");
        assert_eq!(
            list_events(&over, &["refused"]),
            format!("a1 refused: only chief may use `{name}`: write to chief, or use `plan_propose`")
        );
    }
}

#[test]
fn the_coordinator_stops_an_agent_and_spawns_one_that_replaces_it() {
    let stop = op(r#""stop_agent", "agent": "a1", "why": "it is slow""#);
    let spawn = op(r#""spawn_agent", "plays": "coder", "name": "a3", "task": "Go on", "replaces": "a1""#);
    let api = done("api");
    let script =
        script(&[("chief", &[&stop, &spawn, "idle", "done good"]), ("a1", &["tool a @60000"]), ("a3", &[&api])]);
    let over = interrupted(|| coordinated("a1?", "api:a1"), &script);
    assert_eq!(
        list_events(&over, &["stops", "spawned", "ends", " of "]),
        "chief spawned as planner for the goal\n\
         a1 spawned as coder for nothing\n\
         api of a1 is running\n\
         chief stops a1: it is slow\n\
         a1 ends stopped (chief stopped it: it is slow)\n\
         a3 spawned as coder for Go on by chief\n\
         api of a3 is running\n\
         api of a3 is done: api stands\n\
         chief ends done: good\n\
         a3 ends released"
    );
    assert_eq!(over.cancelled.len(), 1, "its turn was ended");
}

#[test]
fn what_the_coordinator_cannot_do_is_refused_with_a_reason() {
    for (wrong, why) in [
        (
            r#""spawn_agent", "plays": "planner", "task": "x""#,
            "no agent: `planner` is none of those that you may add: coder",
        ),
        (r#""spawn_agent", "plays": "coder", "name": "a1", "task": "x""#, "no agent: the name `a1` is taken"),
        (r#""spawn_agent", "plays": "coder", "name": "user", "task": "x""#, "no agent: the name `user` is taken"),
        (
            r#""spawn_agent", "plays": "coder", "task": "x", "replaces": "a1""#,
            "no agent: a1 has not ended; stop it first",
        ),
        (r#""spawn_agent", "plays": "coder", "task": "x", "items": ["api"]"#, "no agent: a1 works on `api`"),
        (r#""stop_agent", "agent": "chief", "why": "x""#, "you cannot stop yourself: end with `done`"),
        (r#""stop_agent", "agent": "b", "why": "x""#, "there is no agent `b`: there are chief, a1"),
        (r#""assign", "item": "api", "to": "chief""#, "a1 works on `api`: stop a1 first, or wait"),
        (
            r#""plan_propose", "ops": [{"op": "remove", "item": "api"}], "why": "x""#,
            "you decide the plan yourself: use `plan_update`",
        ),
        (r#""plan_decide", "proposal": 7, "approve": true, "because": "x""#, "no proposal 7 waits; waiting are: none"),
        (r#""item_done", "item": "api", "summary": "x""#, "`api` is a1's item, not yours"),
        (
            r#""channel_send", "channel": "c", "message": "x""#,
            "your team has no channels: use `send_message` or `broadcast`",
        ),
    ] {
        let api = done("api");
        let script = script(&[("chief", &[&op(wrong), "idle", "done good"]), ("a1", &[&api])]);
        let over = run(coordinated("a1?", "api:a1"), &script);
        assert_eq!(list_events(&over, &["refused"]), format!("chief refused: {why}"));
    }
}

#[test]
fn the_coordinator_does_not_end_while_an_item_is_open() {
    let api = done("api");
    let script = script(&[("chief", &["done early", "idle", "done good"]), ("a1", &[&api])]);
    let over = run(coordinated("a1?", "api:a1"), &script);
    assert_eq!(
        list_events(&over, &["refused", "over"]),
        "chief refused: not done: api is open: wait for them, or remove them by `plan_update`\nover: good"
    );
}

#[test]
fn a_team_in_which_nothing_moves_wakes_its_coordinator_and_then_fails() {
    let blocked = op(r#""item_blocked", "item": "api", "why": "there is no key""#);
    let script = script(&[("chief", &["idle"]), ("a1", &[&blocked])]);
    let over = interrupted(|| coordinated("a1?", "api:a1 parser:a1<api docs"), &script);
    let why = "`api` of a1 is blocked: there is no key; `parser` waits for api; `docs` has no owner";
    assert_eq!(over.count(&format!("nothing moves: {why}")), 3);
    assert!(
        list_events(&over, &["failed"])
            .ends_with(&format!("failed: nothing moves, and chief did nothing about it: {why}"))
    );
}

#[test]
fn an_agent_that_fails_leaves_its_items_to_the_coordinator() {
    let assign = op(r#""assign", "item": "api", "to": "a2""#);
    let api = done("api");
    let script = script(&[("chief", &["idle", &assign, "idle", "done good"]), ("a1", &["refuse"]), ("a2", &[&api])]);
    let over = interrupted(|| coordinated("a1? a2?", "api:a1"), &script);
    let told = list_events(&over, &["→ chief", "assigns", "over"]);
    assert!(
        told.contains("a1 has ended (401); its items `api` are open: assign them, or spawn an agent that replaces it"),
        "{told}"
    );
    assert!(told.contains("chief assigns api to a2") && told.ends_with("over: good"), "{told}");
}

#[test]
fn a_swarm_without_its_coordinator_fails() {
    let script = script(&[("chief", &["refuse"]), ("a1", &["tool a @60000"])]);
    let over = run(coordinated("a1?", "api:a1"), &script);
    assert!(list_events(&over, &["failed"]).ends_with("failed: its coordinator chief has ended: 401"));
}

#[test]
fn a_broadcast_is_one_event_and_wakes_nobody() {
    let (api, all) = (done("api"), op(r#""broadcast", "message": "the type is called Date""#));
    let script =
        script(&[("chief", &["idle", "done good"]), ("a1", &[&all, &api]), ("a2", &["idle"]), ("a3", &["idle"])]);
    let over = interrupted(|| coordinated("a1? a2? a3?", "api:a1"), &script);
    assert_eq!(
        list_events(&over, &["posts", "takes", "a2 asks", "a3 asks"]),
        "a1 posts to all: {\"message\":\"the type is called Date\"}\nchief takes #2 from swarm-supervisor"
    );
    assert_eq!(over.agent("a2").letters, 1, "it lies in every mailbox");
}

#[test]
fn channels_reach_their_members_and_open_ones_take_others_in() {
    let say = |channel: &str| op(&format!(r#""channel_send", "channel": "{channel}", "message": "hello""#));
    let join = |channel: &str| op(&format!(r#""channel_join", "channel": "{channel}""#));
    let rules = || {
        let mut rules = coordinated("a1? a2? a3?", "api:a1 docs:a3");
        let channel = |open| Channel { members: ["a1", "a2"].map(Into::into).into(), open };
        rules.channels = [("parser".into(), channel(false)), ("all".into(), channel(true))].into();
        rules
    };
    let (api, docs) = (done("api"), done("docs"));
    let script = script(&[
        ("chief", &["idle", "idle", "done good"]),
        ("a1", &[&say("parser"), &api]),
        ("a2", &["idle"]),
        ("a3", &[&say("parser"), &join("parser"), "tool a", &say("all"), &join("all"), &say("all"), &docs]),
    ]);
    let over = interrupted(rules, &script);
    assert_eq!(
        list_events(&over, &["posts", "refused", "joins"]),
        "a1 posts to parser: {\"message\":\"hello\"}\n\
         a3 refused: not sent: you do not take part in `parser`\n\
         a3 refused: `parser` is not open: write to chief\n\
         a3 refused: not sent: you do not take part in `all`: use `channel_join` first\n\
         a3 joins all\n\
         a3 posts to all: {\"message\":\"hello\"}"
    );
}

#[test]
fn a_task_of_its_own_begins_at_once_and_ends_with_done() {
    let docs = done("docs");
    let script = script(&[("chief", &[&docs, "idle", "done good"]), ("a1", &["tool a", "done it is written"])]);
    let over = interrupted(|| coordinated("a1", "docs:chief"), &script);
    let told = list_events(&over, &["a1 asks", "completed", "→ chief"]);
    assert_eq!(
        told,
        "a1 asks 1.1\na1 asks 2.1\na1 completed: it is written\n\
         swarm-supervisor → chief #1 request {\"message\":\"a1 has done its task: it is written\"}"
    );
}

#[test]
fn what_was_posted_gives_an_agent_no_further_turn() {
    let (api, docs) = (done("api"), done("docs"));
    let all = op(r#""broadcast", "message": "the type is called Date""#).replace("@2000", "@700");
    let script = script(&[("chief", &["idle", "idle", "done good"]), ("a1", &[&all, &api]), ("a2", &[&docs])]);
    let over = run(coordinated("a1? a2?", "api:a1 docs:a2"), &script);
    assert_eq!(list_events(&over, &["a2 asks"]), "a2 asks 1.1", "it came while a2 worked, and waits for its next item");
}

#[test]
fn the_result_is_that_of_the_coordinator_alone() {
    let mut rules = coordinated("a1?", "api:a1");
    rules.limits.iterations = 3;
    let remove = op(r#""plan_update", "ops": [{"op": "remove", "item": "api"}], "why": "no agent is left""#);
    let script = script(&[("chief", &["idle", &remove, "done good"]), ("a1", &["tool a"])]);
    let over = run(rules, &script);
    assert!(list_events(&over, &["a1 ends"]).starts_with("a1 ends exhausted"), "{}", list_events(&over, &["ends"]));
    assert_eq!(list_events(&over, &["over"]), "over: good");
}

#[test]
fn a_person_agrees_to_changes_of_the_plan_where_the_policy_says_so() {
    let propose = op(r#""plan_propose", "ops": [{"op": "add", "item": "docs", "text": "Write docs"}], "why": "none""#);
    let api = done("api");
    let script = script(&[("chief", &["idle"]), ("a1", &[&propose, &propose, &api])]);
    let rules = Rules { plan_update: swarmc_plan::Approval::Human, ..coordinated("a1?", "api:a1") };
    // The first turn is allowed, the second one denied.
    let over = run(rules, &script);
    assert_eq!(
        list_events(&over, &["proposes", "plan v", "refused"]),
        "a1 proposes 1 on v1: add docs\n\
         swarm-supervisor makes plan v2: add docs for proposal 1\n\
         a1 refused: `add docs`: the plan has an item of this name: choose another name, or use `edit`"
    );
}

/// Table T1: what happened last to an agent, and its state.
#[test]
fn the_states_of_agents_are_those_of_the_seed() {
    let api = done("api");
    let blocked = op(r#""item_blocked", "item": "docs", "why": "no key""#);
    let gated = "tool gated @2000";
    let script = script(&[
        ("chief", &["idle"]),
        ("a1", &[&api]),
        ("a2", &["tool a @9000"]),
        ("a3", &[&blocked]),
        ("a4", &["refuse @2000"]),
        ("a5", &[gated]),
        ("a6", &["idle"]),
    ]);
    let mut world =
        World::new(coordinated("a1? a2? a3? a4? a5? a6?", "api:a1 parser:a2<api docs:a3 site:a4 tests:a5"), &script);
    world.drain();
    let states = |world: &World| {
        let agents = ["chief", "a1", "a2", "a3", "a4", "a5", "a6"].map(|name| life_of(&world.swarm, world.agent(name)));
        agents.map(Life::as_str).join(" ")
    };
    assert_eq!(states(&world), "running running spawned running running running spawned");
    let ends = |(_, event): &(u64, Event)| matches!(event, Event::AgentFinished { .. });
    while !world.events.iter().any(ends) || world.approvals.is_empty() {
        world.step();
    }
    assert_eq!(states(&world), "running completed running blocked failed blocked spawned");
}

#[test]
fn a_program_that_goes_away_is_started_again_and_has_crashed_in_the_end() {
    let api = done("api");
    let script = script(&[
        ("chief", &["idle", "idle", "done the rest stands"]),
        ("a1", &[&format!("crash | crash | {}", api.trim_end_matches(" @2000"))]),
        ("a2", &["crash | crash | crash"]),
    ]);
    let mut world = World::new(coordinated("a1? a2?", "api:a1 parser:a2"), &script);
    world.drain();
    let ended = |world: &World| world.events.iter().any(|(_, event)| matches!(event, Event::AgentFinished { .. }));
    while !ended(&world) {
        world.step();
    }
    let states = ["a1", "a2"].map(|name| life_of(&world.swarm, world.agent(name)).as_str());
    assert_eq!(states, ["completed", "crashed"]);
    assert!(list_events(&world, &["has ended"]).contains("a2 has ended (it went away); its items `parser` are open"));
}

/// Table T2: a proposal that waits longer than `policy on-timeout`.
#[test]
fn a_proposal_that_the_coordinator_does_not_decide_in_time_becomes_what_the_policy_says() {
    use swarmc_plan::{RequestTimeout, Unattended};
    let propose = op(
        r#""plan_propose", "ops": [{"op": "add", "item": "docs", "text": "Write docs", "owner": "a1"}], "why": "none""#,
    );
    let (accept, api, docs) = (
        r#"{"action": "plan_decide", "proposal": 1, "approve": true, "because": "right"} @90000"#,
        done("api"),
        done("docs"),
    );
    // A turn of the coordinator takes longer than a proposal waits.
    let script =
        format!("chief: idle @500; {accept}; idle @500; done good @500\na1: {propose}; tool a @60000; {api}; {docs}\n");
    let rules =
        |then| Rules { on_timeout: Some(RequestTimeout { then, after_ms: 30_000 }), ..coordinated("a1?", "api:a1") };
    let told = |then| list_events(&interrupted(|| rules(then), &script), &["plan v", "proposal 1", "failed", "over"]);
    let late = "chief did not decide within 30s";
    let refused = format!("proposal 1 is timed out by swarm-supervisor: {late}\n");
    let heard = format!("swarm-supervisor → a1 #1 request {{\"message\":\"your proposal 1 is timed out: {late}\"}}\n");
    let answered = "chief refused: no proposal 1 waits; waiting are: none";
    assert_eq!(told(Unattended::Deny), format!("{refused}{heard}{answered}\nover: good"));
    assert_eq!(
        told(Unattended::Approve),
        format!(
            "swarm-supervisor makes plan v2: add docs for proposal 1\n\
             swarm-supervisor → a1 #1 request {{\"message\":\"your proposal 1 is accepted: the plan is at version 2\"}}\n\
             {answered}\nover: good"
        )
    );
    assert_eq!(told(Unattended::Fail), format!("{refused}failed: proposal 1 of a1: {late}"));
}
