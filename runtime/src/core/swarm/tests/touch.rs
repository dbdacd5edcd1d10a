//! Table T4 of the design: who hears of a change of a file, row by row.

use super::team::{coordinated, op};
use super::within::working;
use super::world::{World, id};
use crate::types::event::Event;
use crate::types::team::Touch;
use crate::types::team_fact::TeamFact;

pub(super) fn touched(agent: &str, path: &str, lines: Option<(u32, u32)>) -> Event {
    let touch = Touch { path: path.into(), lines, added: 2, removed: 1, diff: format!("+line of {agent}") };
    Event::Team { swarm: id(), fact: TeamFact::Touched { agent: agent.into(), touch } }
}

/// The messages and conflicts that follow from changes of files, one after the other.
pub(super) fn list_notices(world: &mut World, changes: &[Event]) -> String {
    let before = world.events.len();
    for change in changes {
        world.record(change.clone());
        world.drain();
    }
    let lines = world.events[before..].iter().filter_map(|(_, event)| match event {
        Event::MessageSent { message, .. } => {
            let crate::types::event::Content::Text(text) = &message.payload else { return None };
            let payload: serde_json::Value = serde_json::from_str(text).unwrap();
            Some(format!("{} ({}): {}", message.to, message.kind.as_str(), payload["message"].as_str().unwrap()))
        }
        Event::Team { fact: TeamFact::Conflict { agent, with, path, certain }, .. } => {
            Some(format!("conflict of {agent} with {with} in {path}, certain: {certain}"))
        }
        _ => None,
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_rows_of_t4_say_who_hears_of_a_change() {
    let change = |agent, lines| touched(agent, "src/a.rs", lines);
    for (changes, told) in [
        (vec![change("a1", Some((3, 9)))], ""),
        (
            vec![change("a2", Some((3, 9))), change("a1", Some((9, 12)))],
            "conflict of a1 with a2 in src/a.rs, certain: true\n\
             a1 (request): a2 changed src/a.rs, lines 3 to 9 (+2 -1), the same lines as you: talk to a2, not to the coordinator.\n\
             +line of a2\n\
             a2 (request): a1 changed src/a.rs, lines 9 to 12 (+2 -1), the same lines as you: talk to a1, not to the coordinator.\n\
             +line of a1",
        ),
        (
            vec![change("a2", None), change("a1", Some((9, 12)))],
            "conflict of a1 with a2 in src/a.rs, certain: false\n\
             a1 (request): a2 changed src/a.rs (+2 -1), perhaps the same lines as you: talk to a2, not to the coordinator.\n\
             +line of a2\n\
             a2 (request): a1 changed src/a.rs, lines 9 to 12 (+2 -1), perhaps the same lines as you: talk to a1, not to the coordinator.\n\
             +line of a1",
        ),
        (
            vec![change("a2", Some((3, 9))), change("a1", Some((12, 12)))],
            "a2 (info): a1 changed src/a.rs, line 12 (+2 -1), apart from your lines",
        ),
        (vec![change("a2", Some((3, 9))), touched("a1", "src/b.rs", Some((3, 9)))], ""),
    ] {
        assert_eq!(list_notices(&mut working(), &changes), told);
    }
}

#[test]
fn an_agent_hears_of_one_file_of_another_once_a_turn() {
    let change = |agent| touched(agent, "src/a.rs", Some((1, 2)));
    let mut world = working();
    assert_eq!(list_notices(&mut world, &[change("a2"), change("a1")]).matches("changed").count(), 2);
    assert_eq!(list_notices(&mut world, &[change("a2"), change("a1")]).matches("changed").count(), 0);
    // However many files there are.
    let many = (0..100).flat_map(|file| ["a1", "a2"].map(|agent| touched(agent, &format!("src/{file}.rs"), None)));
    let told = list_notices(&mut world, &many.collect::<Vec<_>>());
    assert_eq!((told.matches("a1 (request)").count(), told.matches("a2 (request)").count()), (19, 19));
}

#[test]
fn what_an_agent_has_done_with_is_no_conflict() {
    let change = |agent| touched(agent, "src/a.rs", Some((1, 2)));
    let mut world = working();
    world.record(change("a1"));
    let fact = TeamFact::ItemMoved {
        agent: "a1".into(),
        item: "api".into(),
        to: crate::types::team::ItemState::Done,
        note: None,
    };
    world.clock += 1;
    world.record(Event::Team { swarm: id(), fact });
    world.drain();
    assert_eq!(list_notices(&mut world, &[change("a2")]), "");
    // Nor what was changed long ago.
    let mut world = working();
    world.record(change("a1"));
    world.clock += 31 * 60 * 1_000;
    world.record(change("a2"));
    assert!(
        world.events.iter().all(|(_, event)| !matches!(event, Event::Team { fact: TeamFact::Conflict { .. }, .. }))
    );
}

#[test]
fn who_is_to_change_a_file_hears_of_others_who_do() {
    let mut world = working();
    let fact = TeamFact::Intended {
        agent: "a2".into(),
        text: "split the parser".to_owned(),
        paths: vec!["src/**".to_owned()],
    };
    world.record(Event::Team { swarm: id(), fact });
    assert_eq!(
        list_notices(&mut world, &[touched("a1", "src/a.rs", Some((1, 2)))]),
        "a2 (info): a1 changed src/a.rs, lines 1 to 2 (+2 -1), which you are to change too\n\
         a1 (info): a2 is to change src/a.rs, too"
    );
    assert_eq!(list_notices(&mut world, &[touched("a1", "docs/a.md", None)]), "");
    // What its item says counts as well.
    let mut rules = coordinated("a1? a2?", "api:a1 parser:a2");
    rules.items[1].scope = vec!["./src/parse/*.rs".to_owned()];
    let intent = op(r#""declare_intent", "text": "define it", "paths": ["src/api.rs"]"#);
    let script = format!("chief: idle @500; done good @500\na1: {intent}; idle @60000\na2: idle @60000\n");
    let mut world = World::new(rules, &script);
    world.drain();
    while world.agent("a1").iteration < 2 {
        world.step();
    }
    assert_eq!(
        list_notices(&mut world, &[touched("a1", "src/parse/lex.rs", None)]).lines().next(),
        Some("a2 (info): a1 changed src/parse/lex.rs (+2 -1), which you are to change too")
    );
    let told = list_notices(&mut world, &[touched("a2", "src/api.rs", None)]);
    assert!(told.starts_with("a1 (info): a2 changed src/api.rs"), "{told}");
}
