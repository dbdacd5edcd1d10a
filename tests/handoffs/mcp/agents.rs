//! Real agent programs as nodes: they call `send_handoff` of the MCP server of their run, as their presets tell them of it.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use swarmc_endpoint::{Answer, Script};

use super::super::{EXAMPLE, words};
use crate::agents::{Place, programs};
use crate::specs::copy;

/// An agent hands over to another one, which answers.
const SPEC: &str = r#"
workflow relay { default main }
provider p preset=PRESET
agent worker provider=p MODEL
type Plan { steps list<string> }
pipeline main {
    edges { architect -> coder carries=Plan response=required }
    task architect agent=worker { timeout "4m"; prompt "Plan the lighthouse, and hand over." }
    task coder agent=worker { timeout "4m"; prompt "Build what your inbox says:\n<<inbox>>" }
    result coder
}
"#;

/// After how long opencode takes a lock that another process left behind.
const STALE: Duration = Duration::from_secs(60);

/// The name by which a program offers one of our tools to its model.
fn offered(tools: &[String], tool: &str) -> Option<String> {
    tools.iter().find(|known| known.ends_with(tool)).cloned()
}

/// A model that hands over by the tool in the turns of both, and answers.
fn script() -> Script {
    Script::new().decide(|request| {
        let heard = request.user.iter().any(|text| text.contains("Build what your inbox says"));
        let planned = request.user.iter().any(|text| text.contains("Plan the lighthouse"));
        // The architect's further turn.
        if request.user.iter().any(|text| text.contains("It stands")) {
            return Some(Answer::text("All is built."));
        }
        let arguments = match (heard, planned) {
            // The coder.
            (true, _) => json!({ "to": "architect", "message": "It stands", "status": { "ok": true } }),
            (_, true) => json!({ "to": "coder", "message": "As drawn", "structured": { "steps": ["Dig", "Build"] } }),
            _ => return Some(Answer::text("Good.")),
        };
        if !request.results.is_empty() {
            return Some(Answer::text("All is done."));
        }
        let tool = offered(&request.tools, "send_handoff");
        Some(tool.map_or_else(|| Answer::text("There is no tool."), |tool| Answer::call(tool, arguments)))
    })
}

fn check(preset: &str, model: &str) {
    check_at(&Place::new(programs(), script()), preset, model);
}

fn check_at(place: &Place, preset: &str, model: &str) {
    let spec = SPEC.replace("PRESET", preset).replace("MODEL", model);
    fs::write(place.work().join("relay.kdl"), spec).expect("a file can be written");
    let ended = place.swarmc(&["run", "relay.kdl"]);
    let (out, err) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    let tools: Vec<Vec<String>> = place.endpoint.prompts().into_iter().map(|request| request.tools).collect();
    assert_eq!(ended.status.code(), Some(0), "{out}\n{err}\n{tools:?}");
    assert!(out.contains("All is done."), "{out}");
    let mut sent = envelopes(place);
    sent.sort_by_key(|envelope| envelope["fromNodeId"].to_string());
    let [plan, answer] = sent.as_slice() else { panic!("there are two: {sent:?}") };
    assert_eq!((&plan["fromNodeId"], &plan["toNodeId"]), (&json!("architect"), &json!("coder")));
    assert_eq!(plan["payload"]["structured"]["steps"], json!(["Dig", "Build"]));
    assert_eq!((&answer["fromNodeId"], &answer["payload"]["message"]), (&json!("coder"), &json!("It stands")));
    assert_eq!(answer["payload"]["response"]["replyTo"], plan["id"]);
    // The envelope reached the other one's model.
    let heard =
        place.endpoint.prompts().iter().any(|request| request.user.iter().any(|text| text.contains("As drawn")));
    assert!(heard);
}

/// What was sent in the only run of a place.
fn envelopes(place: &Place) -> Vec<Value> {
    let mut runs = fs::read_dir(place.home().join("runs")).expect("there are runs");
    let run = runs.next().expect("there is a run").expect("a folder can be read").path();
    let text = fs::read_to_string(run.join("journal.jsonl")).expect("a journal can be read");
    let records = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let sent = records.filter(|record| record["event"] == "sent");
    let texts = sent.filter_map(|record| record["letter"]["content"]["text"].as_str().map(str::to_owned));
    texts.map(|text| serde_json::from_str(&text).expect("an envelope is JSON")).collect()
}

/// A model that plays everybody in `specs/handoffs`.
fn team() -> Script {
    let over = |to: &str, message: &str| json!({ "to": to, "message": message, "status": { "ok": true } });
    let part = |to: &str, message: &str, file: &str| json!({ "to": to, "message": message, "structured": { "summary": message, "files": [file] } });
    Script::new().decide(move |request| {
        let said = request.user.join("\n");
        let says = |text: &str| said.contains(text);
        let (calls, last) = if says("Split this between the parser and the printer") {
            match says("is as planned") {
                true => (Vec::new(), "Both parts are done as planned."),
                false => (
                    vec![
                        part("parser", "Write the parser", "src/parse.rs"),
                        part("printer", "Write the printer", "src/print.rs"),
                    ],
                    "They share the type of a date.",
                ),
            }
        } else if says("You are `parser`") {
            match says("The parser has no tests") {
                true => (vec![over("reviewer", "The tests are there")], "Seven tests more."),
                false => (
                    vec![over("reviewer", "The parser is ready"), over("architect", "The parser is as planned")],
                    "The parser stands.",
                ),
            }
        } else if says("You are `printer`") {
            let calls = vec![over("reviewer", "The printer is ready"), over("architect", "The printer is as planned")];
            (calls, "The printer stands.")
        } else if says("Review what your inbox hands you") {
            match says("The parser is ready") && !says("The tests are there") {
                true => (vec![over("parser", "The parser has no tests")], "One thing is missing."),
                false => (Vec::new(), "Approved."),
            }
        } else {
            return None;
        };
        // Where a session goes on, what was handed over in earlier turns stands in it too.
        let known = request.body.to_string();
        let open = |call: &&Value| !known.contains(call["message"].as_str().expect("it says something"));
        let Some(call) = calls.iter().find(open) else { return Some(Answer::text(last)) };
        let tool = offered(&request.tools, "send_handoff");
        Some(tool.map_or_else(|| Answer::text("There is no tool."), |tool| Answer::call(tool, call.clone())))
    })
}

/// Every node of `specs/handoffs` is the program of a preset, by the command that the spec itself names.
fn check_example(preset: &str) {
    let place = Place::new(programs(), team());
    if preset.starts_with("opencode") {
        place.prepare_opencode();
    }
    let folder = place.work().join("handoffs");
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("specs/handoffs"), &folder);
    let provider = format!("recorded={preset}");
    let ended = place.swarmc(&["run", "handoffs/handoffs.kdl", "--provider", &provider, "--headless"]);
    let (out, err) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert_eq!(ended.status.code(), Some(0), "{out}\n{err}");
    assert!(out.ends_with("Approved.\n"), "{out}");
    let envelopes = envelopes(&place);
    let mut sent: Vec<String> = envelopes.iter().map(words).collect();
    sent.sort();
    // What was sent comes last: of a long output some reports keep the end alone.
    assert!(sent == EXAMPLE, "{err}\n{}", sent.join("\n"));
    // Each reached the model of its receiver.
    for envelope in &envelopes {
        let id = format!("\"id\":\"{}\"", envelope["id"].as_str().expect("an id"));
        let heard = |text: &String| text.contains(&id);
        assert!(place.endpoint.prompts().iter().any(|request| request.user.iter().any(heard)), "{envelope}");
    }
}

#[test]
fn codex_takes_part_in_the_example() {
    check_example("codex");
}

#[test]
fn opencode_takes_part_in_the_example() {
    check_example("opencode");
}

#[test]
fn opencode_over_acp_takes_part_in_the_example() {
    check_example("opencode-acp");
}

/// opencode reads what it knows of logins to MCP servers behind a lock that all its processes share. A process that is
/// killed at that leaves the lock behind, and others wait a minute for it: longer than they wait for a server.
#[test]
fn opencode_over_acp_has_the_tools_although_a_process_left_its_lock_behind() {
    let place = Place::new(programs(), script());
    place.prepare_opencode();
    place.lock_logins_of_opencode();
    let began = Instant::now();
    check_at(&place, "opencode-acp", "model=\"scripted/scripted\"");
    assert!(began.elapsed() < STALE, "it waited for the lock");
}

#[test]
fn qwen_takes_part_in_the_example() {
    check_example("qwen");
}

#[test]
fn qwen_hands_over_by_mcp() {
    check("qwen", "");
}

#[test]
fn codex_hands_over_by_mcp() {
    check("codex", "");
}

#[test]
fn opencode_hands_over_by_mcp() {
    check("opencode", "model=\"scripted/scripted\"");
}
