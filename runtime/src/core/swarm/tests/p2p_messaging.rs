//! Seed 001, "P2P Messaging".

use std::collections::BTreeSet;

use super::world::{Noise, World, id, rules, run};
use crate::core::swarm::MessageType;
use crate::core::swarm::rules::Rules;
use crate::types::event::{Content, Event};
use crate::types::swarm::{MemberMessage, PERSON};

#[test]
fn every_type_of_message_is_delivered_once_in_order() {
    let kinds = ["request", "offer", "accept", "delegation", "info"];
    let sends: Vec<String> = kinds.iter().map(|kind| format!("send mitaka {kind} x")).collect();
    let mut patient = rules("takao mitaka");
    patient.convergence.no_progress = 9;
    let over = run(patient, &format!("takao: {}; done US \n mitaka: tool a @20000; done J", sends.join("; ")));
    assert_eq!(
        over.told(&["→", "takes"]),
        "1000 takao → mitaka #1 request x\n\
         2000 takao → mitaka #2 offer x\n\
         3000 takao → mitaka #3 accept x\n\
         4000 takao → mitaka #4 delegation x\n\
         5000 takao → mitaka #5 info x\n\
         21000 mitaka takes #1 from takao\n\
         21000 mitaka takes #2 from takao\n\
         21000 mitaka takes #3 from takao\n\
         21000 mitaka takes #4 from takao\n\
         21000 mitaka takes #5 from takao"
    );
    assert_eq!(over.agent("takao").sent, 5);
}

#[test]
fn numbers_count_in_each_mailbox_for_all_senders() {
    let script = "takao: send nara info x; send mitaka info x; done \n mitaka: send nara info y; tool a; done \n nara: tool a; done";
    let over = run(rules("takao mitaka nara"), script);
    assert_eq!(
        over.told(&["→"]),
        "1000 mitaka → nara #1 info y\n1000 takao → nara #2 info x\n2000 takao → mitaka #1 info x"
    );
}

#[test]
fn a_message_wakes_who_has_no_task_and_who_is_never_needed_ends() {
    let over = run(rules("takao mitaka? nara?"), "takao: send mitaka delegation help me; done US \n *: done it");
    assert_eq!(
        over.told(&["mitaka", "nara"]),
        "0 mitaka spawned as coder for nothing\n\
         0 nara spawned as coder for nothing\n\
         1000 takao → mitaka #1 delegation help me\n\
         1000 mitaka starts\n\
         1000 mitaka takes #1 from takao\n\
         1000 mitaka asks 1.1\n\
         2000 mitaka answered 1.1\n\
         2000 mitaka ends done: it\n\
         2000 nara ends unneeded"
    );
    assert_eq!(over.told(&["over"]), "2000 over: US + it");
}

#[test]
fn what_cannot_be_sent_is_refused_with_a_reason() {
    let script =
        "takao: send absent info x; send takao info x; tool a @5000; send mitaka info x; done US \n *: done it";
    assert_eq!(
        run(rules("takao mitaka"), script).told(&["refused"]),
        "1000 takao refused: not sent: there is no agent `absent` in your team; there are mitaka\n\
         2000 takao refused: not sent: you are the receiver yourself\n\
         9000 takao refused: not sent: mitaka is done"
    );
}

#[test]
fn edges_say_who_may_write_to_whom() {
    let edge = |from: &str, to: &str| (from.into(), to.into());
    let edges = Some(BTreeSet::from([edge("takao", "mitaka")]));
    let over = run(
        Rules { edges, ..rules("takao mitaka nara") },
        "takao: send nara info x; send mitaka info x; done \n mitaka: send takao info x; tool a; done \n nara: tool a; tool a; tool a; done",
    );
    assert_eq!(
        over.told(&["→", "refused"]),
        "1000 mitaka refused: not sent: no edge leads from you to takao; you may write to no one\n\
         1000 takao refused: not sent: no edge leads from you to nara; you may write to mitaka\n\
         2000 takao → mitaka #1 info x"
    );
}

#[test]
fn who_has_sent_enough_is_refused() {
    let mut two = rules("takao mitaka");
    two.limits.messages = 2;
    two.convergence.no_progress = 9;
    let over = run(
        two,
        "takao: send mitaka info a; send mitaka info b; send mitaka info c; done \n mitaka: tool a @9000; done",
    );
    assert_eq!(over.count("→"), 2);
    let reason = "3000 takao refused: not sent: you have sent 2 messages, which is the limit; publish_data still works";
    assert_eq!(over.told(&["refused"]), reason);
}

#[test]
fn a_message_older_than_its_time_is_not_delivered() {
    let mut short = rules("takao mitaka");
    short.ttl_ms = 5_000;
    let script =
        "takao: send mitaka info old; tool a @4000; send mitaka info new; done \n mitaka: tool a @6000; tool b; done";
    assert_eq!(
        run(short, script).told(&["→", "takes"]),
        "1000 takao → mitaka #1 info old\n7000 takao → mitaka #2 info new\n9000 mitaka takes #2 from takao"
    );
}

#[test]
fn an_agent_may_be_called_what_the_supervisor_is_called() {
    let over =
        run(rules("swarm-supervisor mitaka"), "swarm-supervisor: send mitaka info x; done US \n mitaka: tool a; done");
    assert_eq!(over.told(&["→", "over"]).lines().count(), 2);
}

#[test]
fn a_message_that_was_taken_does_not_wake_an_agent_again() {
    let script = "takao: send mitaka info x @0; tool a = found @5000; done US \n mitaka: idle @0; idle @0; done J";
    let whole = run(rules("takao mitaka"), script).events;
    let is_taken = |event: &Event| matches!(event, Event::MessageReceived { .. });
    let taken = whole.iter().position(|(_, event)| is_taken(event)).expect("mitaka takes it");
    for after in taken + 1..whole.len() {
        let mut world = World::new(rules("takao mitaka"), script);
        world.noise = [(after, vec![Noise::Foreign(Box::new(whole[taken].1.clone()))])].into();
        assert_eq!(world.go().events, whole, "told again after {:?}", whole[after - 1].1);
    }
}

/// Seed 002, user messages: queued, for members too.
#[test]
fn what_a_person_writes_wakes_who_waits_and_does_not_grow_old() {
    let written = |to: &str| {
        let (payload, kind) = (Content::Text("{\"message\":\"hello\"}".to_owned()), MessageType::Info);
        let message = MemberMessage { number: 1, from: PERSON.into(), to: to.into(), kind, payload, person: true };
        Event::MessageSent { swarm: id(), message }
    };
    let mut short = rules("takao mitaka?");
    short.ttl_ms = 5_000;
    let mut world = World::new(short, "takao: tool a @20000; done US \n *: done it");
    world.drain();
    world.record(written("takao"));
    world.record(written("mitaka"));
    let over = world.go();
    let told = over.told(&["takes"]);
    assert_eq!(told, "0 mitaka takes #1 from user\n21000 takao takes #1 from user");
    assert_eq!(over.told(&["over"]).lines().count(), 1);
}
