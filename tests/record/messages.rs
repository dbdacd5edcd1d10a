//! Recordings of runs whose agents people write to: a replay has the same messages arrive in the same turns, and the
//! same turns interrupted.

use std::fs;

use swarmc_endpoint::{Answer, Endpoint, Script};

use crate::cli::Place;
use crate::messages::members::SPEC as SWARM;
use crate::messages::{PLAIN, TALKER, await_file};

use super::are_alike;

const SAME: &str = ", and everything is as recorded";

fn replays(place: &Place) {
    for _ in 0..2 {
        let replayed = place.swarmc(&["run", "flow.kdl", "--replay", "r"]);
        assert!(replayed.err.contains(SAME), "{replayed:#?}");
        are_alike(&place.home());
    }
}

#[test]
fn what_was_queued_is_read_in_the_same_turn() {
    let place = Place::new(&format!("{PLAIN}\npipeline main {{ task write {{ prompt \"Begin.\" }}\nresult write }}"));
    let (mut child, rest) = place.until(&["run", "flow.kdl", "--record", "r"], "waits");
    let work = place.work().to_string_lossy().into_owned();
    let message = format!("Make it short, in {work}");
    place.swarmc(&["send", "last", "write", &message]).expect(0, &[], &["its next turn reads it"]);
    place.write("go", "");
    assert!(child.wait().expect("it ends").success(), "{}", rest());
    let recording = fs::read_to_string(place.work().join("r/recording.jsonl")).expect("a recording");
    assert!(recording.contains("\"text\":\"Make it short, in ⟦workspace⟧\""), "{recording}");
    fs::remove_file(place.work().join("go")).expect("it is there");
    replays(&place);
    // Whoever is not there any more gets nothing.
    let path = place.work().join("r/recording.jsonl");
    fs::write(&path, recording.replace("\"to\":\"write\"", "\"to\":\"other\"")).expect("it can be written");
    let number = 1 + recording.lines().position(|line| line.contains("\"event\":\"sent\"")).expect("it was sent");
    let told = format!("`other` cannot be sent now (recording.jsonl:{number}): there is no such task");
    place.swarmc(&["run", "flow.kdl", "--replay", "r"]).expect(3, &[], &["the message of a person to ", &told]);
}

#[test]
fn whoever_was_interrupted_is_interrupted_again() {
    let place = Place::new(&format!("{TALKER}\npipeline main {{ task talk {{ prompt \"Begin.\" }}\nresult talk }}"));
    let (mut child, rest) = place.until(&["run", "flow.kdl", "--record", "r"], "waits");
    place.swarmc(&["send", "last", "talk", "--interrupt", "Stop, and sing."]).expect(0, &[], &["is interrupted"]);
    assert!(child.wait().expect("it ends").success(), "{}", rest());
    replays(&place);
    let replayed = place.swarmc(&["run", "flow.kdl", "--replay", "r"]);
    let parts = ["a person interrupts talk: Stop, and sing.", "talk: interrupted after "];
    replayed.expect(0, &["went on with s-1"], &parts);
}

#[test]
fn what_a_model_heard_between_two_requests_it_has_heard() {
    let wait = "touch working; until [ -e go ]; do sleep 0.02; done";
    let call = Answer::call("shell", serde_json::json!({ "command": wait }));
    let handoff = Answer::call("send_handoff", serde_json::json!({ "to": "read", "message": "It is done" }));
    let endpoint =
        Endpoint::start(Script::new().otherwise([call, handoff, Answer::text("fine"), Answer::text("read")]));
    let place = Place::new(&format!(
        "provider p {{ llm openai base-url=\"{}\" model=scripted; provides tools }}\n\
         agent a provider=p {{ tools shell; can run-commands }}\n\
         pipeline main {{\n    edges {{ work -> read }}\n    task work agent=a {{ prompt \"Work.\" }}\n    \
         task read agent=a {{ prompt \"<<inbox>>\" }}\n    result read\n}}\n",
        endpoint.url()
    ));
    let (mut child, rest) = place.until(&["run", "flow.kdl", "--record", "r"], "work");
    await_file(&place, "working");
    place.swarmc(&["send", "last", "work", "-i", "And be quick"]).expect(0, &[], &[]);
    place.write("go", "");
    assert!(child.wait().expect("it ends").success(), "{}", rest());
    drop(endpoint);
    let recording = fs::read_to_string(place.work().join("r/recording.jsonl")).expect("a recording");
    assert!(
        recording.contains("\"event\":\"inputs_taken\"") && recording.contains("\"event\":\"sent\""),
        "{recording}"
    );
    replays(&place);
}

#[test]
fn members_of_swarms_are_not_written_to_while_a_run_is_recorded() {
    let place = Place::new(SWARM);
    let (mut child, rest) = place.until(&["run", "flow.kdl", "--record", "r"], "mitaka done");
    await_file(&place, "working");
    let problem = "the run is recorded, and recordings do not support messages to members of swarms";
    place.swarmc(&["send", "last", "go/takao", "Mind the budget"]).expect(2, &[], &[problem]);
    place.write("go", "");
    assert!(child.wait().expect("it ends").success(), "{}", rest());
    replays(&place);
}
