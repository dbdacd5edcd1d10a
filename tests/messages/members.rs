//! What people write to members of a swarm (seed 002, "User messages"; seed 001, mailboxes).

use std::fs;

use serde_json::Value;

use super::{await_file, records};
use crate::cli::{Place, signal};

/// `takao` works until it is let go, and is done then; `mitaka` is done at once.
pub(crate) const SPEC: &str = r##"
provider recorded {
    script {
        answer #"{"action": "tool_call", "tool": "shell", "tool_params": {"command": "touch working; until [ -e go ]; do sleep 0.02; done"}}"# task=takao turn=1
        answer #"{"action": "done", "response": "takao is done"}"# task=takao
        answer #"{"action": "done", "response": "mitaka is done"}"#
    }
}
agent coder provider=recorded { tools shell; can run-commands }
swarm team {
    goal "Do it"
    member takao agent=coder "The US"
    member mitaka agent=coder "Japan"
}
pipeline main {
    task go { swarm team }
    result go
}
"##;

/// The prompt of takao's last turn.
fn prompt(place: &Place) -> String {
    let told = place.swarmc(&["inspect", "last", "go", "takao", "--json"]).expect(0, &[], &[]).out;
    let told: Value = serde_json::from_str(&told).expect("it is JSON");
    let turns = told["turns"].as_array().expect("there are turns");
    let path = turns.last().and_then(|turn| turn["paths"]["prompt"].as_str()).expect("it has a prompt").to_owned();
    fs::read_to_string(path).expect("a prompt can be read")
}

fn mailbox(place: &Place, what: &str) -> Vec<Value> {
    records(place).into_iter().filter(|record| record["event"] == what).collect()
}

#[test]
fn a_member_of_a_swarm_reads_what_a_person_writes_in_its_next_turn() {
    let place = Place::new(SPEC);
    let (mut child, rest) = place.until(&["run", "flow.kdl"], "mitaka done");
    await_file(&place, "working");
    let written = place.swarmc(&["send", "last", "go/takao", "Mind the budget"]);
    written.expect(0, &[], &["the next turn of `go/takao` reads it"]);
    let now = place.swarmc(&["send", "go/takao", "-i", "And", "be quick"]);
    now.expect(0, &[], &["members of swarms cannot be interrupted: the next turn of `go/takao` reads it"]);
    for (to, problem) in [
        ("go/mitaka", "`go/mitaka` is done, and reads no more messages: you can write to `go/takao`"),
        ("go/nobody\u{1b}[2J", "swarm `go` has no agent `nobody[2J`: you can write to `go/takao`"),
        ("go", "`go` is a swarm: write to one of its members: `go/takao`"),
        ("gone/takao", "there is no `gone/takao`: you can write to `go/takao`"),
        ("go/user", "swarm `go` has no agent `user`"),
        ("go/", "swarm `go` has no agent ``"),
    ] {
        place.swarmc(&["send", "last", to, "x"]).expect(2, &[], &[problem]);
    }
    place.swarmc(&["send", "last", "go/takao", &"x".repeat(4_001)]).expect(
        2,
        &[],
        &["at most 4000 are allowed for a member"],
    );
    place.swarmc(&["send", "go/takoa", "x"]).expect(2, &[], &["swarm `go` has no agent `takoa`"]);
    place.swarmc(&["send", "gone", "x"]).expect(2, &[], &["no run `gone`", "has no step of that name", "`go`"]);
    place.swarmc(&["send", "last"]).expect(2, &[], &["name the step whose agent reads the message", "STEP TEXT"]);
    place.swarmc(&["send", "last", "go/takao", " "]).expect(2, &[], &["the message is empty"]);
    place.write("go", "");
    assert!(child.wait().expect("it ends").success());
    let said = rest();
    assert!(said.contains("a person writes to go/takao"), "{said}");
    let prompt = prompt(&place);
    assert!(prompt.contains("\n## From The Person Who Runs This\n- Mind the budget\n- And be quick\n"), "{prompt}");
    assert!(!prompt.contains("## Inbox Messages"), "{prompt}");
    let sent = mailbox(&place, "message_sent");
    assert_eq!(sent.len(), 2);
    assert_eq!((&sent[0]["from"], &sent[0]["person"], &sent[0]["number"]), (&"user".into(), &true.into(), &1.into()));
    let shown = place.swarmc(&["inspect", "last", "go", "takao"]);
    shown.expect(0, &["1 from user (info)", "Mind the budget"], &[]);
}

#[test]
fn what_a_person_wrote_to_a_member_outlives_a_runner_that_is_killed() {
    let place = Place::new(SPEC);
    let (mut child, rest) = place.until(&["run", "flow.kdl"], "mitaka done");
    await_file(&place, "working");
    place.swarmc(&["send", "last", "go/takao", "Mind the budget"]).expect(0, &[], &[]);
    signal(&child, "KILL");
    child.wait().expect("it ends");
    drop(rest);
    place.write("go", "");
    place.swarmc(&["resume", "last"]).expect(0, &[], &[]);
    assert!(prompt(&place).contains("- Mind the budget\n"), "{}", prompt(&place));
    assert_eq!((mailbox(&place, "message_sent").len(), mailbox(&place, "message_received").len()), (1, 1));
}
