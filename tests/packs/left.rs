//! What every turn of an agent leaves (seed 002, token efficiency and observability): artifacts of the node that made
//! them, which others can be referred to, and the diff of what it changed.

use std::fs;
use std::os::unix::fs::MetadataExt as _;

use serde_json::Value;

use super::{folder, inspected, plain, write};
use crate::specs::Project;

/// The artifacts that `inspect` lists for a step: their kind, turn and text.
fn listed(project: &Project, step: &str) -> Vec<(String, u64, String)> {
    let node = inspected(project, step);
    let artifacts = node["artifacts"].as_array().expect("a list").iter().map(|artifact| {
        let path = artifact["path"].as_str().expect("it lies in a file");
        let text = fs::read_to_string(path).expect("an artifact can be read");
        assert_eq!(artifact["bytes"], text.len(), "{artifact}");
        let kind = artifact["kind"].as_str().expect("a kind").to_owned();
        (kind, artifact["turn"].as_u64().expect("a number"), text)
    });
    artifacts.collect()
}

/// An agent that says something, uses a tool, writes a file, and complains.
const AGENT: &str = r#"
workflow left { default main }
provider claude { exec "sh" "claude.sh"; reads claude-stream-json }
agent coder provider=claude
context-pack of-maker { goal "Look"; artifacts kind=log from=maker; artifacts kind=report from=maker; inputs maker }
pipeline main {
    task maker agent=coder { prompt "Make it." }
    task reader { depends-on maker; stdin "<<context:of-maker>>"; run "cat" }
    result reader
}
"#;

const SCRIPT: &str = r#"
cat >/dev/null
echo '{"type":"assistant","message":{"content":[{"type":"text","text":"I look first."}]}}'
echo '{"type":"assistant","message":{"content":[{"type":"tool_use","id":"1","name":"Write","input":{}}]}}'
echo made >made.txt
echo 'no tests here' >&2
echo '{"type":"result","subtype":"success","is_error":false,"result":"It is made."}'
"#;

#[test]
fn artifacts_of_a_turn_are_those_of_the_node_that_made_them() {
    let project = plain(AGENT);
    write(&project.root(), "claude.sh", SCRIPT);
    project.done(&["run", "spec.kdl"]);
    let left = listed(&project, "maker");
    let of = |kind: &str| -> Vec<&str> {
        left.iter().filter(|(found, turn, _)| found == kind && *turn == 1).map(|(.., text)| text.as_str()).collect()
    };
    assert_eq!(of("prompt"), ["Make it."]);
    assert_eq!(of("report"), ["It is made."]);
    let [out, complaint] = of("log")[..] else { panic!("two logs: {left:?}") };
    assert!(out.contains(r#""type":"tool_use""#) && complaint == "no tests here\n", "{left:?}");
    // What was said and which tools were called, and nothing of how a program writes that.
    let [transcript] = of("transcript")[..] else { panic!("one transcript: {left:?}") };
    assert!(transcript.starts_with("--- Prompt ---\nMake it.\n--- Answer ---\nI look first."), "{transcript}");
    assert!(transcript.contains("[Write]\n") && !transcript.contains("\"type\""), "{transcript}");
    // Whoever has them in a pack made none of them.
    let read = listed(&project, "reader");
    assert_eq!(read.iter().map(|(kind, ..)| kind.as_str()).collect::<Vec<_>>(), ["contextpack"]);
    let pack = project.output("reader");
    let known = inspected(&project, "maker");
    for artifact in known["artifacts"].as_array().expect("a list") {
        let wanted = artifact["kind"] == "log" || artifact["kind"] == "report";
        let reference = artifact["ref"].as_str().expect("a reference");
        assert_eq!(pack.contains(reference), wanted, "{reference}: {pack}");
    }
}

#[test]
fn the_diff_of_an_agent_without_edges_is_taken_whatever_it_says() {
    let project = plain(AGENT);
    write(&project.root(), "claude.sh", SCRIPT);
    project.done(&["run", "spec.kdl"]);
    let node = inspected(&project, "maker");
    let [diff] = &node["diffs"].as_array().expect("a list")[..] else { panic!("one diff: {node}") };
    assert_eq!((&diff["files"], &diff["added"]), (&1.into(), &1.into()));
    // A command changes what it is told to.
    assert_eq!(inspected(&project, "reader")["diffs"], Value::Array(Vec::new()));
}

#[test]
fn a_long_log_is_stored_once_and_one_that_is_too_long_is_told() {
    let project = plain(
        r#"
workflow long { default main }
provider program { exec "sh" "-c" "cat >/dev/null; yes line | head -c $BYTES" }
agent coder provider=program
pipeline main {
    task long agent=coder { env BYTES="1000000"; prompt "Say much." }
    task longer agent=coder { env BYTES="17000000"; prompt "Say more." }
}
"#,
    );
    let output = project.swarmc(&["run", "spec.kdl"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let left = listed(&project, "long");
    let (.., log) = left.iter().find(|(kind, ..)| kind == "log").expect("it is listed");
    assert_eq!(log.len(), 1_000_000);
    let found = fs::metadata(folder(&project).join("logs/long.1.out")).expect("there is a log");
    assert_eq!(found.nlink(), 2, "the artifact is its second name");
    assert!(
        said.contains("`longer`: its log has 16 MiB and is not stored as an artifact: at most 16 MiB are allowed"),
        "{said}"
    );
    let kinds: Vec<String> = listed(&project, "longer").into_iter().map(|(kind, ..)| kind).collect();
    assert!(!kinds.contains(&"log".to_owned()) && kinds.contains(&"report".to_owned()), "{kinds:?}");
}
