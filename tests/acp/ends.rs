//! How turns end that do not end well: agents that are out of order, and people and clocks that end them.

use std::fs;
use std::time::{Duration, Instant};

use super::{heard, inspected, methods, place, run, spec};
use crate::cli::{Place, signal};

/// Nobody whose command line says so is alive in the folder of a place.
fn everybody_is_gone(place: &Place) -> bool {
    let work = place.work().canonicalize().expect("it is there");
    let processes = fs::read_dir("/proc").expect("there are processes").flatten();
    !processes.into_iter().any(|process| fs::read_link(process.path().join("cwd")).is_ok_and(|cwd| cwd == work))
}

#[test]
fn agents_that_are_out_of_order_end_with_a_reason() {
    for (kind, why) in [
        ("exit", "the agent was asked for `initialize`, but it went away (it exited with 7)"),
        ("dies", "the agent was asked for its turn, but it went away (it exited with 137)"),
        ("future", "required ACP protocol version 1 but peer negotiated 2"),
        ("nonsense", "initialize.protocolVersion must be a valid ACP protocol version"),
        ("locked", "before a session: Authentication required (by Give it a key); log in with its own program first"),
        (
            "locked-later",
            "the agent wants authentication before its turn: Authentication required; log in with its own",
        ),
        ("error", "the agent was asked for its turn: Internal error: 503 Service Unavailable"),
        ("max_tokens", "the model's answer was cut off: it stopped with `max_tokens`"),
        ("max_turn_requests", "the agent stopped at its limit of model requests in one turn"),
        ("refusal", "the agent refused to continue"),
        ("cancelled", "the agent's turn was cancelled, but not by this run"),
        ("tired", "unknown variant `tired`"),
        ("long", "the agent sent a message of more than 16 MiB"),
        ("floods", "the agent does not read its input"),
    ] {
        let (place, ended) = run(kind, "", "");
        ended.expect(3, &[], &["go failed: ", why]);
        assert!(everybody_is_gone(&place), "{kind}");
        // What it tells of a turn that it did not bring to its end was used all the same.
        if ["max_tokens", "max_turn_requests", "refusal", "cancelled"].contains(&kind) {
            assert_eq!(inspected(&place)["usage"]["input"], 20, "{kind}");
        }
    }
}

#[test]
fn a_provider_says_how_one_logs_in_to_it() {
    for kind in ["locked", "locked-later"] {
        let place = place(&spec(kind, "", "").replace(kind, &format!("{kind}; login \"run `agent login`\"")));
        place.swarmc(&["run", "flow.kdl", "--headless"]).expect(3, &[], &["; run `agent login`\n"]);
    }
    // Whose way it is makes no difference; what goes wrong otherwise is nothing to log in for.
    let says = |words: &str| {
        let place = place(
            "provider p { exec cat \"said\"; reads claude-stream-json; login \"run `agent login`\" }\n\
             agent a provider=p\npipeline main { task go agent=a { prompt \"Say hello.\" } }\n",
        );
        place.write("said", &format!("{{\"type\":\"result\",\"is_error\":true,\"result\":\"{words}\"}}\n"));
        place.swarmc(&["run", "flow.kdl", "--headless"])
    };
    says("Not logged in").expect(3, &[], &["go failed: Not logged in; run `agent login`\n"]);
    says("The lamp is out").expect(3, &[], &["go failed: The lamp is out\n"]);
}

#[test]
fn an_agent_asks_for_leave_a_thousand_times_a_turn_and_no_more() {
    for agent in ["", "{ permissions skip }"] {
        let (place, ended) = run("asks-for-ever", agent, "");
        ended.expect(3, &[], &["the agent requested permission more than 1000 times in one turn"]);
        assert!(everybody_is_gone(&place));
    }
}

#[test]
fn what_waits_for_leave_is_kept_as_far_as_it_is_short() {
    // Somebody could be asked, and has not answered.
    let place = place(&spec("asks-at-length", "", ""));
    let why = "go failed: the agent requests permission with options of more than 1 MiB at once";
    place.swarmc(&["run", "flow.kdl"]).expect(3, &[], &[why]);
    assert!(everybody_is_gone(&place));
}

#[test]
fn what_no_agent_should_say_is_passed_over() {
    for (kind, answer) in [("garbage", "Heard: Say hello.\n"), ("twice", "Once.\n"), ("stranger", "mine: cancelled\n")]
    {
        let (_, ended) = run(kind, "", "");
        let ended = ended.expect(0, &[answer], &[]);
        assert!(!ended.out.contains("Twice") && !ended.out.contains("of another session"), "{ended:?}");
    }
}

#[test]
fn a_turn_that_takes_too_long_is_ended_by_the_protocol_and_else_by_force() {
    for (kind, limit, why) in [
        ("mute", "timeout \"1s\"", "took longer than 1s"),
        ("mute", "timeout \"4m\" idle=\"1s\"", "it printed nothing for 1s"),
        // Long enough to have begun.
        ("silent", "timeout \"10s\"", "took longer than 10s"),
        ("silent", "timeout \"4m\" idle=\"10s\"", "it printed nothing for 10s"),
        ("deaf", "timeout \"1s\"; grace \"1s\"", "took longer than 1s"),
    ] {
        let (place, ended) = run(kind, "", limit);
        ended.expect(3, &[], &[why]);
        assert!(everybody_is_gone(&place), "{kind}");
        assert_eq!(methods(&place).contains(&"session/cancel".to_owned()), kind == "silent", "{kind}");
    }
}

#[test]
fn a_person_ends_a_turn_and_all_who_take_part_in_it() {
    let place = place(&spec("silent", "", ""));
    let (mut child, rest) = place.until(&["run", "flow.kdl"], "go: started");
    let deadline = Instant::now() + Duration::from_secs(60);
    while !place.work().join("pids").exists() {
        assert!(Instant::now() < deadline, "it never begins");
    }
    signal(&child, "INT");
    assert_eq!(child.wait().expect("it ends").code(), Some(4), "{}", rest());
    assert_eq!(heard(&place).last().expect("it heard something")["method"], "session/cancel");
    assert!(everybody_is_gone(&place));
    // Whoever neither hears nor ends is ended, at the second wish at once.
    let place = super::place(&spec("deaf", "", ""));
    let (mut child, _) = place.until(&["run", "flow.kdl"], "go: started");
    while !methods(&place).contains(&"session/prompt".to_owned()) {
        assert!(Instant::now() < deadline, "it never begins");
    }
    let started = Instant::now();
    signal(&child, "INT");
    signal(&child, "TERM");
    assert_eq!(child.wait().expect("it ends").code(), Some(4));
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    assert!(everybody_is_gone(&place));
}

#[test]
fn a_person_interrupts_a_turn_which_goes_on_in_its_session() {
    let place = place(&spec("talks", "", ""));
    let (mut child, rest) = place.until(&["run", "flow.kdl"], "go: started");
    let deadline = Instant::now() + Duration::from_secs(60);
    while !place.work().join("pids").exists() {
        assert!(Instant::now() < deadline, "it never begins");
    }
    let sent = place.swarmc(&["send", "last", "go", "--interrupt", "Stop, and sing."]);
    sent.expect(0, &[], &["`go` is interrupted, and goes on with it"]);
    assert!(child.wait().expect("it ends").success(), "{}", rest());
    let methods = methods(&place);
    assert_eq!(methods[3..], ["session/cancel", "initialize", "session/load", "session/prompt"]);
    assert_eq!(
        super::output(&place).trim_end(),
        "Heard: --- Message from the person who runs this ---\nStop, and sing.\n--- End of message ---"
    );
}

#[test]
fn a_request_that_nobody_answers_ends_with_its_turn() {
    let place = place(&spec("asks", "", "timeout \"2s\""));
    place.swarmc(&["run", "flow.kdl"]).expect(3, &[], &["took longer than 2s"]);
    let answer = heard(&place).into_iter().find(|message| message["id"] == "p1").expect("it is answered");
    assert_eq!(answer["result"]["outcome"]["outcome"], "cancelled");
    place.swarmc(&["approve", "last"]).expect(2, &[], &["nothing waits"]);
}

#[test]
fn a_program_that_is_not_there_is_said_to_be_so() {
    let spec = "provider p preset=claude-acp\nagent a provider=p\npipeline main { task go { prompt \"Go.\" } }\n";
    let place = Place::new(spec);
    let mut command = place.command(&["run", "flow.kdl"]);
    let ended = command.env("PATH", "/nonexistent").output().expect("swarmc starts");
    let err = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(2), "{err}");
    assert!(err.contains("`claude-agent-acp`") && err.contains("npm install -g @agentclientprotocol/claude-agent-acp"));
}
