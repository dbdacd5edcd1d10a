//! Recordings of runs whose agents speak ACP: a turn is one answer, and the agent is not started to replay it.

use std::fs;

use crate::cli::Place;

use super::are_alike;

const SAME: &str = ", and everything is as recorded";

/// A place with the script that plays the agents.
fn place(spec: &str) -> Place {
    let place = Place::new(spec);
    place.write("agent.py", include_str!("../acp/agent.py"));
    place
}

/// Records a run, whose output holds `said`, and replays it: nobody hears anything then.
fn replays(place: &Place, said: &str) {
    place.swarmc(&["run", "flow.kdl", "--record", "r"]).expect(0, &[said], &[]);
    let heard = || fs::read_to_string(place.work().join("heard")).expect("it was asked");
    let before = heard();
    for _ in 0..2 {
        place.swarmc(&["run", "flow.kdl", "--replay", "r"]).expect(0, &[said], &[SAME]);
        assert_eq!(heard(), before, "the agent is not started");
    }
}

#[test]
fn a_conversation_replays_turn_by_turn() {
    let place = place(
        "provider p { acp python3 \"agent.py\" load }\nagent a provider=p\npipeline main {\n\
         task first { session talk; prompt \"Name a ship.\" }\n\
         task second { session talk; depends-on first; prompt \"Name its captain.\" }\n result second\n}\n",
    );
    replays(&place, "Heard: Name its captain.");
    are_alike(&place.home());
    // Another question is another answer, which the recording does not have.
    place.write(
        "flow.kdl",
        &fs::read_to_string(place.work().join("flow.kdl")).expect("a spec").replace("captain", "master"),
    );
    place.swarmc(&["run", "flow.kdl", "--replay", "r"]).expect(3, &["-Name its captain.", "+Name its master."], &[]);
}

#[test]
fn what_an_agent_hands_over_by_its_tools_arrives_again() {
    let place = place(
        "provider p { acp python3 \"agent.py\" relay }\nagent a provider=p\npipeline main {\n\
         edges { first -> second }\n task first agent=a { prompt \"Hand over.\" }\n\
         task second { stdin \"<<inbox>>\"; run \"cat\" }\n result second\n}\n",
    );
    replays(&place, "From an agent");
    are_alike(&place.home());
}

/// Whom it had asked for leave, and what was said to that, is within its answer.
#[test]
fn whoever_asked_for_leave_is_not_asked_again() {
    let place = place(
        "policy { tool edit human; unattended approve }\nprovider p { acp python3 \"agent.py\" asks }\nagent a provider=p\n\
         pipeline main { task go { prompt \"Go.\" } }\n",
    );
    let recorded = place.command(&["run", "flow.kdl", "--headless", "--record", "r"]).output().expect("swarmc starts");
    assert!(String::from_utf8_lossy(&recorded.stderr).contains("a wants tool edit: allow, by the policy"));
    let replayed = place.swarmc(&["run", "flow.kdl", "--replay", "r"]).expect(0, &["chosen: id-allow_once"], &[SAME]);
    assert!(!replayed.err.contains("wants tool edit"), "{replayed:?}");
}
