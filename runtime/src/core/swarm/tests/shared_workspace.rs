//! Seed 001, "Shared Workspace".

use super::world::{rules, run};

#[test]
fn entries_are_numbered_over_all_topics() {
    let over = run(
        rules("takao mitaka"),
        "takao: publish findings a; tool x; publish plans b; done \n mitaka: publish findings c; done",
    );
    assert_eq!(
        over.told(&["publishes"]),
        "1000 mitaka publishes #1 findings c\n1000 takao publishes #2 findings a\n4000 takao publishes #3 plans b"
    );
}

#[test]
fn the_last_of_each_topic_are_kept() {
    let turns: Vec<String> = (0..8).map(|number| format!("publish findings {number}; tool x")).collect();
    let over = run(rules("takao"), &format!("takao: publish plans p; tool x; {}; done", turns.join("; ")));
    let seqs = |topic: &str| over.swarm.workspace.topics[topic].iter().map(|entry| entry.seq).collect::<Vec<_>>();
    assert_eq!(seqs("findings"), [5, 6, 7, 8, 9]);
    assert_eq!(seqs("plans"), [1]);
    assert_eq!(over.swarm.workspace.last, 9);
}
