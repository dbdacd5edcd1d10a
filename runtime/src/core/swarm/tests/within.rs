//! What programs of a team do and read while their turns go on.

use super::team::coordinated;
use super::world::World;
use crate::core::swarm::state::AgentStage;
use crate::core::swarm::within::{Operated, find_unread, operate_within};
use crate::types::event::{Content, Event};
use crate::types::swarm::{Action, MessageType, TurnId};
use crate::types::team::{ItemState, TeamOp};
use crate::types::team_fact::TeamFact;

/// A team whose two members take turns that go on.
pub(super) fn working() -> World {
    let script = "chief: idle @500; done good @500\na1: idle @60000\na2: idle @60000\n";
    let mut world = World::new(coordinated("a1? a2?", "api:a1 parser:a2<api"), script);
    world.drain();
    while world.agent("a1").stage != AgentStage::Asking || world.agent("chief").stage != AgentStage::Idle {
        world.step();
    }
    world
}

fn turn(world: &World, agent: &str) -> TurnId {
    let index = world.swarm.names[agent];
    world.swarm.turn(index)
}

fn act(world: &mut World, agent: &str, action: Action) -> Result<Operated, String> {
    let came = operate_within(&world.swarm, &turn(world, agent), &action)?;
    if let Operated::Record(event) = &came {
        world.record((**event).clone());
        world.drain();
    }
    Ok(came)
}

fn item_done(item: &str) -> Action {
    Action::Operate(TeamOp::ItemDone { item: item.into(), summary: "it stands".to_owned() })
}

fn message(to: &str, words: &str) -> Action {
    let payload = Content::Text(format!("{{\"message\":\"{words}\"}}"));
    Action::SendMessage { to: to.into(), message_type: MessageType::Info, payload }
}

#[test]
fn an_operation_moves_the_team_on_while_the_turn_goes_on() {
    let mut world = working();
    assert!(matches!(act(&mut world, "a1", item_done("api")), Ok(Operated::Record(_))));
    // The item that waited for it has begun, and its owner takes a turn.
    assert_eq!(world.agent("a1").stage, AgentStage::Asking);
    assert_eq!(world.agent("a2").stage, AgentStage::Asking);
    assert_eq!(world.agent("a1").iteration, 1);
    assert!(world.swarm.may_end_silently("a1") && !world.swarm.may_end_silently("a2"));
}

#[test]
fn what_a_turn_may_not_do_is_refused_with_what_to_do_instead() {
    let mut world = working();
    let stop = TeamOp::StopAgent { agent: "a2".into(), why: "x".to_owned() };
    let post = TeamOp::Post { channel: None, message: Content::Text("{}".to_owned()) };
    for (action, why) in [
        (
            Action::Done { response: Content::Text("x".to_owned()) },
            "`done` is no tool: return it as JSON at the end of your turn",
        ),
        (Action::Idle, "`idle` is no tool: return it as JSON at the end of your turn"),
        (Action::Operate(stop), "only chief may use `stop_agent`: write to chief, or use `plan_propose`"),
        (item_done("parser"), "`parser` is a2's item, not yours"),
        (message("a9", "x"), "not sent: there is no agent `a9` in your team; there are chief, a2"),
    ] {
        assert_eq!(act(&mut world, "a1", action).unwrap_err(), why);
    }
    // The messages of a turn that goes on count.
    for _ in 0..20 {
        act(&mut world, "a1", message("a2", "again")).unwrap();
    }
    let limit = "not sent: you have sent 20 messages, which is the limit";
    assert_eq!(act(&mut world, "a1", Action::Operate(post)).unwrap_err(), limit);
    let over = TurnId { iteration: 7, ..turn(&world, "a1") };
    assert!(operate_within(&world.swarm, &over, &Action::Idle).unwrap_err().starts_with("your turn is over"));
}

#[test]
fn a_turn_that_is_repeated_does_nothing_twice() {
    let mut world = working();
    act(&mut world, "a1", message("a2", "parse() takes bytes")).unwrap();
    act(&mut world, "a1", item_done("api")).unwrap();
    world.crashes.insert(world.events.len() + 1);
    let told = Event::Team {
        swarm: super::world::id(),
        fact: TeamFact::UserTold { agent: "chief".into(), message: Content::Text("{}".to_owned()) },
    };
    world.record(told);
    world.drain();
    assert_eq!(world.agent("a1").stage, AgentStage::Asking, "its turn is taken once more");
    for done in [message("a2", "parse() takes bytes"), item_done("api")] {
        assert_eq!(act(&mut world, "a1", done), Ok(Operated::Before));
    }
    assert!(matches!(act(&mut world, "a1", message("a2", "and strings")), Ok(Operated::Record(_))));
    let team = world.swarm.team.as_ref().unwrap();
    assert_eq!(team.plan.items[0].state, ItemState::Done);
    assert_eq!(world.agent("a2").letters, 2);
}

#[test]
fn notices_are_read_once_and_again_by_a_turn_that_is_repeated() {
    let mut world = working();
    act(&mut world, "a1", item_done("api")).unwrap();
    for words in ["one", "two"] {
        act(&mut world, "a2", message("a1", words)).unwrap();
    }
    let numbers = |world: &World| {
        let unread = find_unread(&world.swarm, &turn(world, "a1"))?;
        Some((unread.messages.iter().map(|message| message.seq).collect::<Vec<_>>(), unread.is_urgent))
    };
    assert_eq!(numbers(&world), Some((vec![1, 2], true)));
    let read = |number| Event::Team {
        swarm: super::world::id(),
        fact: TeamFact::Noticed { agent: "a1".into(), number, version: 1 },
    };
    world.record(read(2));
    assert_eq!(numbers(&world), None);
    // News wait for the next call.
    let post = TeamOp::Post { channel: None, message: Content::Text("{}".to_owned()) };
    act(&mut world, "a2", Action::Operate(post)).unwrap();
    assert_eq!(numbers(&world), Some((vec![3], false)));
    world.crashes.insert(world.events.len() + 1);
    world.record(read(3));
    world.drain();
    let inbox = world.agent("a1").inbox.iter().map(|message| message.seq).collect::<Vec<_>>();
    assert_eq!((world.agent("a1").stage.clone(), inbox), (AgentStage::Asking, vec![1, 2, 3]));
}

#[test]
fn a_version_is_news_to_all_but_who_decides_it() {
    let mut world = working();
    let op = crate::types::team::PlanOp::Add {
        item: "docs".into(),
        text: "Write them".to_owned(),
        owner: None,
        priority: swarmc_plan::Priority::Normal,
        depends_on: Vec::new(),
        checkpoints: Vec::new(),
        scope: Vec::new(),
    };
    let fact = TeamFact::PlanUpdated {
        version: 2,
        agent: "chief".into(),
        ops: vec![op],
        why: "none".to_owned(),
        proposal: None,
    };
    world.record(Event::Team { swarm: super::world::id(), fact });
    let unread = find_unread(&world.swarm, &turn(&world, "a1")).expect("it knows version 1");
    assert_eq!((unread.is_newer, unread.is_urgent, unread.version, unread.last_number()), (true, true, 2, 0));
    let chief = find_unread(&world.swarm, &turn(&world, "chief"));
    assert!(chief.is_none(), "it takes no turn");
}
