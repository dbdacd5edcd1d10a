//! Handoffs through the binary: the example, scripts that take part by `swarmc agent`, outsiders, and `kill -9`.

mod hostile;
mod kills;
mod mcp;
mod owed;
mod peers;
mod references;
mod refused;
mod scripts;
mod voices;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;

use crate::specs::Project;
use crate::swarm_kills::journal;

const SPEC: &str = "specs/handoffs/handoffs.kdl";

/// What is handed over in the example, whoever takes part.
const EXAMPLE: [&str; 8] = [
    "architect → parser: Write the parser",
    "architect → printer: Write the printer",
    "parser → architect: The parser is as planned",
    "parser → reviewer: The parser is ready",
    "parser → reviewer: The tests are there",
    "printer → architect: The printer is as planned",
    "printer → reviewer: The printer is ready",
    "reviewer → parser: The parser has no tests",
];

/// The records of the only run that are of one kind.
fn records(project: &Project, event: &str) -> Vec<Value> {
    let records = journal(project).expect("there is a run").into_iter();
    records.filter(|record| record["event"] == event).collect()
}

/// Who sent whom what.
fn sent(project: &Project) -> Vec<String> {
    let records = records(project, "sent");
    let words = |record: &Value| {
        let text = record["letter"]["content"]["text"].as_str().expect("it is short");
        let envelope: Value = serde_json::from_str(text).expect("an envelope is JSON");
        assert_eq!(envelope["id"], record["letter"]["id"]);
        words(&envelope)
    };
    records.iter().map(words).collect()
}

/// An envelope in a line.
fn words(envelope: &Value) -> String {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (from, to) = (word(&envelope["fromNodeId"]), word(&envelope["toNodeId"]));
    format!("{from} → {to}: {}", word(&envelope["payload"]["message"]))
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn the_example_comes_to_an_approval() {
    let project = Project::new();
    let printed = project.done(&["run", SPEC]);
    assert!(printed.ends_with("Approved: parser and printer agree, and both have tests.\n"), "{printed}");
    let mut sent = sent(&project);
    sent.sort();
    assert_eq!(sent, EXAMPLE);
    // Each is read by one turn, once.
    let taken = records(&project, "inputs_taken");
    let mut taken: Vec<&Value> = taken.iter().flat_map(|record| record["inputs"].as_array().expect("a list")).collect();
    let count = taken.len();
    taken.sort_by_key(|id| id.to_string());
    taken.dedup();
    assert_eq!((taken.len(), count), (8, 8));
    // What asks for a handoff is no part of an output.
    assert_eq!(project.output("parser"), "Seven tests more.\n");
}

/// A project with one spec.
fn scripted(spec: &str) -> Project {
    let project = Project::new();
    fs::write(project.root().join("spec.kdl"), spec).expect("a spec can be written");
    project
}

fn run(project: &Project) -> Output {
    run_in(project, &["run", "spec.kdl"])
}

/// Runs swarmc where scripts find it.
fn run_in(project: &Project, arguments: &[&str]) -> Output {
    let binary = Path::new(env!("CARGO_BIN_EXE_swarmc")).parent().expect("it lies in a folder");
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap_or_default());
    project.command(arguments).env("PATH", path).output().expect("swarmc starts")
}

#[test]
fn scripts_take_part_by_commands() {
    let project = scripted(
        r##"
workflow scripts { default main }
type Plan { steps list<string> }
pipeline main {
    edges { first -> second carries=Plan response=optional }
    task first {
        run "sh" "-c" #"""
            swarmc agent send-handoff --to second --message 'As agreed' --structured '{"steps": ["a"]}' --artifact report=spec.kdl &&
            swarmc agent send-handoff --to second --message 'No plan' 2>no-plan
            swarmc agent send-handoff --to second --message 'Wrong' --structured '{"steps": 1}' 2>wrong
            swarmc agent send-handoff --to third --message 'Hello' 2>nobody
            swarmc agent send-handoff --to first --message 'Hello' 2>oneself
            swarmc agent send-handoff --to second --message 'Out' --structured '{"steps": []}' --artifact ../x 2>outside; true
            """#
    }
    task second {
        stdin "<<inbox>>"
        run "sh" "-c" "cat; swarmc agent read-inbox >read; swarmc agent send-handoff --to first --message 'Done' --ok tests-pass"
    }
    result second
}
"##,
    );
    let output = run(&project);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert_eq!(sent(&project), ["first → second: As agreed", "second → first: Done"]);
    let said = |name: &str| fs::read_to_string(project.root().join(name)).expect("a file can be read");
    assert!(said("no-plan").contains("give its fields in `structured`"), "{}", said("no-plan"));
    assert!(said("wrong").contains("does not fit the type that this edge carries"), "{}", said("wrong"));
    assert!(said("nobody").contains("no edge leads from `first` to `third`: you can send to `second`"));
    assert!(said("oneself").contains("you cannot send a handoff to yourself"));
    assert!(said("outside").contains("lies outside the run"), "{}", said("outside"));
    let read: Value = serde_json::from_str(&said("read")).expect("it is JSON");
    let envelope = &read["inputs"][0];
    assert_eq!(envelope["payload"]["structured"]["steps"][0], "a");
    assert_eq!(envelope["payload"]["artifacts"][0]["ref"], "spec.kdl");
    assert_eq!(envelope["payload"]["response"]["expectation"], "optional");
}

#[test]
fn whoever_has_no_token_of_a_turn_can_do_nothing() {
    let project = scripted(
        r##"
workflow outsiders { default main }
pipeline main {
    edges { first -> second; second -> third }
    task first {
        run "sh" "-c" #"""
            echo $SWARM_TOKEN >token
            SWARM_TOKEN=00000000000000000000000000000000 swarmc agent send-handoff --to second --message x 2>guessed
            SWARM_TOKEN= swarmc agent read-inbox 2>empty
            env -u SWARM_TOKEN swarmc agent read-inbox 2>none; true
            """#
    }
    task second {
        depends-on first
        run "sh" "-c" "SWARM_TOKEN=$(cat token) swarmc agent send-handoff --to second --message x 2>over; true"
    }
    task third { depends-on second; run "true" }
}
"##,
    );
    let output = run(&project);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert!(sent(&project).is_empty());
    let said = |name: &str| fs::read_to_string(project.root().join(name)).expect("a file can be read");
    for name in ["guessed", "empty", "over"] {
        assert!(said(name).contains("SWARM_TOKEN is not valid"), "{name}: {}", said(name));
    }
    assert!(said("none").contains("SWARM_TOKEN is not set"), "{}", said("none"));
    // Nor does it stand anywhere.
    let token = said("token");
    let found = walk(&project.home())
        .into_iter()
        .find(|path| fs::read(path).is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains(token.trim())));
    assert_eq!(found, None);
}

fn walk(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder can be read").map(|entry| entry.expect("an entry").path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

#[test]
fn an_answer_that_is_owed_fails_whoever_owes_it() {
    let project = scripted(
        r##"
workflow owing { default main }
pipeline main {
    edges { first -> second response=required }
    task first { run "swarmc" "agent" "send-handoff" "--to" "second" "--message" "Well?" }
    task second { stdin "<<inbox>>"; run "cat" }
}
"##,
    );
    let output = run(&project);
    assert_eq!(output.status.code(), Some(3), "{}", err(&output));
    assert!(err(&output).contains("second failed: it never answered e"), "{}", err(&output));
}

#[test]
fn an_endless_exchange_ends() {
    let project = scripted(
        r##"
workflow endless { default main }
pipeline main {
    edges { ping <-> pong max=5 }
    task ping { stdin "<<inbox>>"; run "sh" "-c" "swarmc agent send-handoff --to pong --message ping 2>>full; true" }
    task pong { stdin "<<inbox>>"; run "sh" "-c" "swarmc agent send-handoff --to ping --message pong 2>>full; true" }
}
"##,
    );
    let output = run(&project);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert_eq!(sent(&project).len(), 10);
    let full = fs::read_to_string(project.root().join("full")).expect("a file can be read");
    assert!(full.contains("envelopes, which is the limit"), "{full}");
}

#[test]
fn handoff_delivery_is_ordered_interrupts_nobody_and_is_logged() {
    let project = scripted(
        r##"
workflow delivery { default main }
pipeline main {
    concurrency 2
    edges { first -> second }
    task first {
        timeout "60s"
        run "sh" "-c" #"""
            swarmc agent send-handoff --to second --message one
            until [ -e begun ]; do sleep 0.01; done
            swarmc agent send-handoff --to second --message two
            swarmc agent send-handoff --to second --message three
            touch all
            """#
    }
    task second {
        timeout "60s"
        stdin "<<inbox>>"
        run "sh" "-c" "cat >read-$SWARM_ATTEMPT; touch begun; until [ -e all ]; do sleep 0.01; done"
    }
}
"##,
    );
    let output = run(&project);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let read = |turn: u32| {
        let text = fs::read_to_string(project.root().join(format!("read-{turn}"))).expect("it was read");
        let envelopes = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        envelopes.map(|it| it["payload"]["message"].as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    // What comes during a turn waits for the next one.
    assert_eq!((read(1), read(2)), (vec!["one".to_owned()], vec!["two".to_owned(), "three".to_owned()]));
    let ids: Vec<Value> = records(&project, "sent").iter().map(|record| record["letter"]["id"].clone()).collect();
    let taken: Vec<Value> = records(&project, "inputs_taken").iter().map(|record| record["inputs"].clone()).collect();
    assert_eq!(taken, [Value::from(&ids[..1]), Value::from(&ids[1..])]);
}

#[test]
fn what_is_sent_in_a_pipeline_is_not_shown_of_a_task_of_that_name_in_another() {
    let project = scripted(
        r##"
workflow names { default main }
pipeline inner {
    edges { a -> b }
    task a { run "swarmc" "agent" "send-handoff" "--to" "b" "--message" "Inside" }
    task b { stdin "<<inbox>>"; run "cat" }
    result b
}
pipeline main {
    edges { a -> b kind=signal }
    task b { run "touch" "began" }
    task a {
        run "sh" "-c" "until [ -e began ]; do sleep 0.02; done; swarmc agent send-message --to b --type update --content Outside"
    }
    task deep { depends-on a; call inner }
    result deep
}
"##,
    );
    let output = run(&project);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let sent = sent(&project);
    assert_eq!(sent, ["a → b: Outside", "a → b: Inside"]);
    let node: Value =
        serde_json::from_str(&project.done(&["inspect", "last", "deep/b", "--json"])).expect("it is JSON");
    let incoming = node["incoming"].as_array().expect("a list").iter().map(|post| words(&post["envelope"]));
    assert_eq!(incoming.collect::<Vec<_>>(), ["a → b: Inside"]);
}
