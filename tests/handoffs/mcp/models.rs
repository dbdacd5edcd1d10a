//! Models behind HTTP as nodes: `send_handoff` is one of their tools, called the endpoint's own way or by the schema.

use std::fs;

use serde_json::{Value, json};
use swarmc_endpoint::{Answer, Endpoint, Script};

use super::super::{err, records, sent, walk};
use crate::specs::Project;

/// Two models of which one hands over to the other.
fn spec(endpoint: &Endpoint, tools: &str) -> String {
    format!(
        r#"
workflow models {{ default main }}
provider local {{ llm openai base-url="{}" model=scripted tools={tools}; provides schema tools }}
agent worker provider=local
pipeline main {{
    edges {{ first -> second }}
    task first agent=worker {{ prompt "Hand over." }}
    task second agent=worker {{ prompt "Do it:\n<<inbox>>" }}
    result second
}}
"#,
        endpoint.url()
    )
}

fn check(tools: &str, script: Script) -> Endpoint {
    let project = Project::new();
    let endpoint = Endpoint::start(script);
    fs::write(project.root().join("spec.kdl"), spec(&endpoint, tools)).expect("a spec can be written");
    let output = project.swarmc(&["run", "spec.kdl"]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert_eq!(sent(&project), ["first → second: It is yours"]);
    assert_eq!(project.output("second"), "Done.");
    // Whoever was refused could mend it.
    let log = walk(&project.home()).into_iter().find(|path| path.ends_with("logs/first.1.err"));
    let refusals = fs::read_to_string(log.expect("there is a log")).expect("a log can be read");
    assert!(refusals.contains("no edge leads from `first` to `third`"), "{refusals}");
    assert_eq!(records(&project, "inputs_taken").len(), 1);
    let node = project.done(&["inspect", "last", "first", "--json"]);
    let node: Value = serde_json::from_str(&node).expect("inspect writes JSON");
    let [refused, taken] = node["tools"].as_array().expect("a list").as_slice() else { panic!("two calls: {node}") };
    assert_eq!((&refused["tool"], &refused["ok"]), (&"send_handoff".into(), &false.into()));
    assert!(refused["text"].as_str().is_some_and(|text| text.starts_with("no edge leads from `first`")), "{refused}");
    assert!(refused["arguments"].as_str().is_some_and(|text| text.contains("\"third\"")), "{refused}");
    assert_eq!((&taken["turn"], &taken["ok"]), (&1.into(), &true.into()));
    assert!(taken["ended_ms"].as_u64() >= taken["at"].as_u64() && taken["at"].is_u64(), "{taken}");
    endpoint
}

#[test]
fn a_model_hands_over_by_a_tool_call() {
    let endpoint = check(
        "native",
        Script::new().on("Do it", Answer::text("Done.")).on(
            "Hand over.",
            [
                Answer::call("send_handoff", json!({ "to": "third", "message": "It is yours" })),
                Answer::call("send_handoff", json!({ "to": "second", "message": "It is yours" })),
                Answer::text("It is handed over."),
            ],
        ),
    );
    let requests = endpoint.prompts();
    let tools = |text: &str| {
        let asked = requests.iter().find(|request| request.user.iter().any(|said| said.contains(text)));
        asked.expect("there was a request").tools.clone()
    };
    assert_eq!(
        tools("Hand over."),
        ["send_handoff", "send_message", "broadcast", "report_status", "request_help", "read_inbox", "read_context"]
    );
    // No edge leads away from the second.
    assert_eq!(tools("Do it"), ["report_status", "request_help", "read_inbox", "read_context"]);
}

#[test]
fn a_model_hands_over_by_a_json_step() {
    let says = |step: serde_json::Value| Answer::text(json!({ "step": step }).to_string());
    let handoff = |to: &str| json!({ "tool": "send_handoff", "arguments": { "to": to, "message": "It is yours" } });
    check(
        "schema",
        Script::new().on("Do it", says(json!({ "answer": "Done." }))).on(
            "Hand over.",
            [says(handoff("third")), says(handoff("second")), says(json!({ "answer": "It is handed over." }))],
        ),
    );
}

/// A model asks a person, goes on meanwhile, and reads the answer in a further turn.
#[test]
fn a_model_asks_a_person_for_help() {
    let project = Project::new();
    let endpoint = Endpoint::start(
        Script::new().on("Take 8080", Answer::text("I took it.")).on("Do it", Answer::text("Done.")).on(
            "Hand over.",
            [
                Answer::call("report_status", json!({ "progress": { "current_step": "asking" } })),
                Answer::call("request_help", json!({ "message": "Which port?" })),
                Answer::text("I asked."),
            ],
        ),
    );
    fs::write(project.root().join("spec.kdl"), spec(&endpoint, "native")).expect("a spec can be written");
    let child = project.command(&["run", "spec.kdl"]).spawn().expect("swarmc starts");
    let deadline = std::time::Instant::now() + super::PATIENCE;
    while !String::from_utf8_lossy(&project.swarmc(&["ps", "last"]).stdout).contains("waits for a person's help") {
        assert!(std::time::Instant::now() < deadline, "it never asks");
    }
    project.done(&["approve", "last", "1", "allow", "--because", "Take 8080"]);
    assert!(child.wait_with_output().expect("it ends").status.success());
    assert_eq!((project.output("first").as_str(), project.output("second").as_str()), ("I took it.", "Done."));
    assert_eq!(records(&project, "status_reported").len(), 1);
}
