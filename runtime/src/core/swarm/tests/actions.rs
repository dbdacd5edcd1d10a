//! Seed 001, "Agent Actions": the result of each.

use super::world::{rules, run};

#[test]
fn each_action_is_carried_out_in_its_turn() {
    let script = "takao: tool search; publish findings US leads; send mitaka info look; idle; tool search; done US
                  mitaka: tool search @9000; done J";
    let over = run(rules("takao mitaka"), script);
    assert_eq!(
        over.told(&["takao calls", "publishes", "→", "idles", "ends"]),
        "1000 takao calls search 1.1\n\
         3000 takao publishes #1 findings US leads\n\
         4000 takao → mitaka #1 info look\n\
         5000 takao idles"
            .to_owned()
            + "\n5000 takao ends converged: turns 2 3 4\n11000 mitaka ends done: J"
    );
}

#[test]
fn what_is_no_action_has_one_turn_to_mend_it_and_is_then_no_progress() {
    let over = run(rules("takao"), "takao: invalid | tool search; invalid | invalid; done US");
    assert_eq!(
        over.told(&["asks", "calls", "ends"]),
        "0 takao asks 1.1\n\
         1000 takao asks 1.2\n\
         2000 takao calls search 1.1\n\
         3000 takao asks 2.1\n\
         4000 takao asks 2.2\n\
         5000 takao asks 3.1\n\
         6000 takao ends done: US"
    );
    assert_eq!(run(rules("takao"), "takao: invalid").told(&["ends"]), "6000 takao ends converged: turns 1 2 3");
}

#[test]
fn who_idles_waits_until_something_happens() {
    let busy = "mitaka: tool a; tool b; publish findings x; done J";
    let over = run(rules("takao mitaka"), &format!("takao: idle; done US \n {busy}"));
    assert_eq!(
        over.told(&["idles", "publishes", "takao asks"]),
        "0 takao asks 1.1\n1000 takao idles\n5000 mitaka publishes #1 findings x\n5000 takao asks 2.1"
    );
    // The end of another one, or a message, is something.
    let over = run(rules("takao mitaka"), "takao: idle; done US \n mitaka: tool a; done J");
    assert_eq!(over.told(&["takao asks"]), "0 takao asks 1.1\n3000 takao asks 2.1");
    let over = run(rules("takao mitaka"), "takao: idle; done US \n mitaka: tool a; send takao info x; done J");
    assert_eq!(
        over.told(&["takao asks", "takes"]),
        "0 takao asks 1.1\n3000 takao takes #1 from mitaka\n3000 takao asks 2.1"
    );
}

#[test]
fn a_message_that_came_while_it_was_asked_keeps_it_awake() {
    let over =
        run(rules("takao mitaka"), "takao: idle @5000; done US \n mitaka: send takao info x; tool a @90000; done J");
    assert_eq!(
        over.told(&["takao takes", "takao asks"]),
        "0 takao asks 1.1\n5000 takao takes #1 from mitaka\n5000 takao asks 2.1"
    );
}

#[test]
fn where_all_idle_the_first_is_roused_and_no_swarm_waits_for_ever() {
    let over = run(rules("takao mitaka"), "*: idle");
    assert_eq!(over.told(&["ends"]).lines().count(), 2);
    assert_eq!(over.count("idles"), 6);
}

#[test]
fn the_answer_of_done_is_the_result_and_nothing_is_asked_after_it() {
    let over = run(rules("takao"), "takao: done US");
    assert_eq!(over.told(&["asks", "ends"]), "0 takao asks 1.1\n1000 takao ends done: US");
}
