//! Seed 001, "Temporal Timeouts".

use super::world::{led, rules, run};

#[test]
fn a_turn_may_take_90_seconds_and_is_repeated_twice() {
    let over = run(rules("takao"), "takao: done US @90000");
    assert_eq!(over.told(&["ends"]), "90000 takao ends done: US");
    let over = run(rules("takao"), "takao: done US @90001");
    assert_eq!(
        over.told(&["asks", "ends"]),
        "0 takao asks 1.1\n95000 takao asks 1.2\n195000 takao asks 1.3\n285000 takao ends unreachable (timed out)"
    );
}

#[test]
fn the_lead_is_repeated_three_times() {
    let over = run(led(""), "split: split a @600001");
    assert_eq!(
        over.told(&["asks split", "failed"]),
        "0 swarm-supervisor asks split.1\n\
         605000 swarm-supervisor asks split.2\n\
         1215000 swarm-supervisor asks split.3\n\
         1830000 swarm-supervisor asks split.4\n\
         2430000 failed: its goal cannot be split: timed out"
    );
    let over = run(
        led(""),
        "split: invalid | invalid | invalid | split a, b \n *: done it \n merge: 503 | 503 | 503 | merged all",
    );
    assert_eq!(over.told(&["over"]), "39000 over: all");
    let over = run(led(""), "split: invalid | invalid | invalid | invalid | split a");
    assert_eq!(over.told(&["failed"]), "4000 failed: its goal cannot be split: it is no action");
}

#[test]
fn an_agent_has_ten_minutes_from_its_first_turn_on() {
    let error = "(it took longer than 600 seconds)";
    // While its model is asked, its tool called, or it waits to try again.
    let over = run(rules("takao mitaka"), "takao: tool a = found @700000 \n mitaka: done J");
    assert_eq!(over.told(&["takao ends"]), format!("600000 takao ends timed_out {error}"));
    assert_eq!(over.cancelled.len(), 1);
    assert_eq!(over.told(&["over"]), "600000 over: J");
    let over = run(rules("takao mitaka"), "takao: tool a = 503 \n mitaka: done J");
    assert_eq!(over.told(&["takao ends"]), format!("600000 takao ends timed_out {error}"));
    let mut patient = rules("takao mitaka");
    patient.limits.iterations = 100_000;
    let over = run(patient, "takao: tool a = found @80000 \n mitaka: done J");
    assert_eq!(over.told(&["takao ends"]), format!("600000 takao ends timed_out {error}: turns 5 6 7"));
    // Who never began has all of its time.
    let over = run(
        rules("takao mitaka?"),
        "takao: tool a @80000 = x @80000; tool b @80000 = x @80000; send mitaka info x @80000; done \n mitaka: tool a @80000 = x @80000; tool b @80000 = x @80000; done J @80000",
    );
    assert_eq!(over.told(&["mitaka ends"]), "800000 mitaka ends done: J");
}

#[test]
fn who_idles_does_not_outlive_its_time() {
    let over = run(
        rules("takao mitaka"),
        "takao: idle; done US \n mitaka: tool a = found @599500; tool a = found @80000; done J",
    );
    assert_eq!(over.told(&["takao ends"]), "600000 takao ends timed_out (it took longer than 600 seconds): turns 1");
}
