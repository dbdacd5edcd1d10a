//! Real agents over the Agent Client Protocol: the example of its makers and one that calls tools, which need no model,
//! and opencode against the scripted endpoint.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};
use swarmc_endpoint::{Answer, Script};

use crate::agents::{Place, programs};
use crate::approvals::await_request;
use crate::cli;

fn done(place: &Place, spec: &str, arguments: &[&str]) -> String {
    fs::write(place.work().join("w.kdl"), spec).expect("a file can be written");
    let ended = place.swarmc(&[&["run", "w.kdl"], arguments].concat());
    let (out, err) = texts(&ended);
    let tools: Vec<Vec<String>> = place.endpoint.prompts().into_iter().map(|request| request.tools).collect();
    assert_eq!(ended.status.code(), Some(0), "{out}\n{err}\n{tools:?}");
    err + &out
}

fn texts(ended: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&ended.stdout), text(&ended.stderr))
}

/// The only run of a place, as `inspect` tells of it.
fn inspected(place: &Place) -> Value {
    serde_json::from_slice(&place.swarmc(&["inspect", "--json"]).stdout).expect("inspect writes JSON")
}

/// The texts of what was sent in the only run of a place, in order.
fn envelopes(place: &Place) -> Vec<Value> {
    let mut runs = fs::read_dir(place.home().join("runs")).expect("there are runs");
    let run = runs.next().expect("there is a run").expect("a folder can be read").path();
    let text = fs::read_to_string(run.join("journal.jsonl")).expect("a journal can be read");
    let records = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let sent = records.filter(|record| record["event"] == "sent");
    let texts = sent.filter_map(|record| record["letter"]["content"]["text"].as_str().map(str::to_owned));
    texts.map(|text| serde_json::from_str(&text).expect("an envelope is JSON")).collect()
}

const EXAMPLE: &str = r#"
POLICY
provider example { acp acp-example }
agent a provider=example PERMISSIONS
pipeline main { task go agent=a { timeout "4m"; prompt "Improve it." } }
"#;

#[test]
fn the_example_agent_takes_its_turn_and_is_given_leave_or_not() {
    for (permissions, policy, last) in [
        ("{ permissions skip }", "", ALLOWED),
        ("", "policy { tool edit auto }", ALLOWED),
        ("", "", "I understand you prefer not to make that change."),
    ] {
        let place = Place::new(programs(), Script::new());
        let spec = EXAMPLE.replace("PERMISSIONS", permissions).replace("POLICY", policy);
        let out = done(&place, &spec, &["--headless"]);
        for part in ["[Reading project files]", "[Modifying critical configuration file]", last] {
            assert!(out.contains(part), "{part}: {out}");
        }
        let step = &inspected(&place)["steps"][0];
        assert_eq!((&step["status"], &step["usage"]), (&json!("succeeded"), &Value::Null));
        assert!(place.endpoint.prompts().is_empty());
    }
}

/// The end of what the example agent says when it was given leave.
const ALLOWED: &str = "Perfect! I've successfully updated the configuration.";

/// A place with the example agent behind a script that writes down what it is told.
fn overheard(spec: &str) -> cli::Place {
    let place = cli::Place::new(&format!("provider example {{ acp sh \"example.sh\" }}\n{spec}"));
    let agent = programs().join("acp-example");
    place.write("example.sh", &format!("tee heard | exec \"{}\"\n", agent.display()));
    place
}

#[test]
fn the_example_agent_is_given_leave_from_another_terminal() {
    let place = overheard("agent a provider=example\npipeline main { task go agent=a { prompt \"Improve it.\" } }\n");
    let (mut child, rest) = place.until(&["run", "flow.kdl"], "swarmc approve");
    let listed = await_request(&place, 1);
    assert!(listed.contains("a wants tool edit") && listed.contains("/home/user/project/config.json"), "{listed}");
    place.swarmc(&["approve", "last", "1", "allow"]).expect(0, &[], &[]);
    assert!(child.wait().expect("it ends").success(), "{}", rest());
    assert!(super::output(&place).contains(ALLOWED));
    place.swarmc(&["inspect", "last", "go"]).expect(0, &["1 a wants tool edit: allow, by a person"], &[]);
}

#[test]
fn an_envelope_comes_to_the_example_agent_and_its_answer_goes_on_to_the_next_node() {
    let spec = r##"
type Part { name string }
agent a provider=example { permissions skip }
pipeline main {
    edges {
        first -> go carries=Part
        second -> last
    }
    task first {
        run "SWARMC" "agent" "send-handoff" "--to" "go" "--message" "The hull is ready" "--structured" #"{"name": "hull"}"#
    }
    task go agent=a { depends-on first; timeout "4m"; prompt "Paint it." }
    task second { env SAID="<<output:go>>"; run "sh" "-c" #"SWARMC agent send-handoff --to last --message "$SAID""# }
    task last { depends-on second; stdin "<<inbox>>"; run "cat" }
    result last
}
"##;
    let place = overheard(&spec.replace("SWARMC", env!("CARGO_BIN_EXE_swarmc")));
    let ended = place.swarmc(&["run", "flow.kdl"]).expect(0, &[], &[]);
    assert!(ended.err.lines().any(|line| line.starts_with("last") && line.contains(ALLOWED)), "{ended:?}");
    let told = super::heard(&place).into_iter().find(|message| message["method"] == "session/prompt");
    let told = told.expect("it is prompted")["params"]["prompt"][0]["text"].as_str().unwrap_or_default().to_owned();
    for part in ["The hull is ready", "hull", "Paint it."] {
        assert!(told.contains(part), "{part}: {told}");
    }
}

/// A model that runs a command when it is first asked, and answers then.
fn worker() -> Script {
    Script::new()
        .decide(|request| {
            let offered = request.tools.iter().any(|tool| tool == "bash");
            (request.results.is_empty() && offered)
                .then(|| Answer::call("bash", json!({ "command": "echo sea-cow >cow.txt", "description": "says it" })))
        })
        .otherwise(Answer::text("All is well."))
}

const OPENCODE: &str = r#"
provider p preset=opencode-acp
agent keeper provider=p model="scripted/scripted"
pipeline main { task go { timeout "4m"; prompt "Write of a sea cow." } }
"#;

#[test]
fn opencode_uses_its_tools_and_answers() {
    let place = Place::new(programs(), worker());
    let out = done(&place, OPENCODE, &["--headless"]);
    assert!(out.ends_with("All is well.\n"), "{out}");
    assert_eq!(fs::read_to_string(place.work().join("cow.txt")).expect("it is written"), "sea-cow\n");
    let step = inspected(&place)["steps"][0].clone();
    assert!(step["session"].as_str().is_some_and(|session| session.starts_with("ses_")), "{step}");
    assert!(step["usage"]["input"].as_u64() > Some(0), "{step}");
    assert_eq!(step["usage"]["at_least"], true, "it tells of its last request alone: {step}");
}

#[test]
fn opencode_writes_files_through_us_where_it_may() {
    let script = Script::new().decide(|request| {
        let offered = request.tools.iter().any(|tool| tool == "write");
        let cow = json!({ "filePath": "cow.txt", "content": "sea-cow\n" });
        (request.results.is_empty() && offered).then(|| Answer::call("write", cow))
    });
    let place = Place::new(programs(), script.otherwise(Answer::text("It is written.")));
    let agent = "{ tools file_read file_write shell; can write-files run-commands }";
    let spec = OPENCODE
        .replace("preset=opencode-acp", "preset=opencode-acp { env OPENCODE_PERMISSION=#\"{\"edit\":\"ask\"}\"# }");
    let spec = spec.replace("model=\"scripted/scripted\"", &format!("model=\"scripted/scripted\" {agent}"));
    let out = done(&place, &format!("policy {{ tool edit auto }}\n{spec}"), &["--headless"]);
    assert!(out.contains("[file_write {") && out.ends_with("It is written.\n"), "{out}");
    assert_eq!(fs::read_to_string(place.work().join("cow.txt")).expect("it is written"), "sea-cow\n");
}

#[test]
fn opencode_goes_on_with_its_session() {
    let script = Script::new()
        .on("Name its captain", Answer::text("Ada."))
        .on("Name a ship", Answer::text("Terra Nova."))
        .otherwise(Answer::text("A title."));
    let place = Place::new(programs(), script);
    let spec = r#"
provider p preset=opencode-acp
agent keeper provider=p model="scripted/scripted"
pipeline p {
    task first { session watch; timeout "4m"; prompt "Name a ship." }
    task second { session watch; depends-on first; timeout "4m"; prompt "Name its captain." }
}
"#;
    let out = done(&place, spec, &[]);
    assert!(out.contains("Ada.") && out.matches("Terra Nova.").count() == 1, "{out}");
    let requests = place.endpoint.prompts();
    let second = requests.iter().find(|request| request.user.iter().any(|text| text.contains("Name its captain")));
    let second = second.expect("it was asked").body["messages"].to_string();
    assert!(second.contains("Name a ship.") && second.contains("Terra Nova."), "it knows what was said: {second}");
    let run = inspected(&place);
    assert_eq!(run["steps"][0]["session"], run["steps"][1]["session"]);
}

/// Copies the example of handoffs into a place; its spec, without the tests in it.
pub(crate) fn handoffs(place: &Place) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("specs/handoffs");
    for (path, text) in crate::specs::texts(&root) {
        let file = place.work().join(&path);
        fs::create_dir_all(file.parent().expect("a file lies in a folder")).expect("a folder can be made");
        fs::write(file, text).expect("a file can be written");
    }
    // What the parser hands over.
    fs::create_dir_all(place.work().join("src")).expect("a folder can be made");
    fs::write(place.work().join("src/parse.rs"), "").expect("a file can be written");
    let spec = fs::read_to_string(root.join("handoffs.kdl")).expect("it is a text");
    spec.split("\ntest ").next().expect("there is a first part").to_owned()
}

/// What an envelope says, in a line.
fn said(envelope: &Value) -> String {
    let part = |pointer: &str| envelope.pointer(pointer).and_then(Value::as_str).unwrap_or("?");
    format!("{} -> {}: {}", part("/fromNodeId"), part("/toNodeId"), part("/payload/message"))
}

fn everybody_succeeded(place: &Place) {
    let run = inspected(place);
    let steps = run["steps"].as_array().expect("there are steps");
    assert!(steps.iter().all(|step| step["status"] == "succeeded"), "{run}");
}

/// The example of handoffs, with its printer played by opencode and its reviewer by the example agent.
#[test]
fn real_agents_take_part_in_the_example_of_handoffs() {
    let script = Script::new().decide(|request| {
        let is_printer = request.user.iter().any(|text| text.contains("src/print.rs"));
        if !is_printer {
            return Some(Answer::text("A title."));
        }
        if !request.results.is_empty() {
            return Some(Answer::text("Printed."));
        }
        let tool = request.tools.iter().find(|tool| tool.ends_with("send_handoff"))?.clone();
        Some(Answer::call(tool, json!({ "to": "architect", "message": "The printer is as drawn" })))
    });
    let place = Place::new(programs(), script.otherwise(Answer::text("There is no tool.")));
    let spec = handoffs(&place);
    let agents = "provider opencode preset=opencode-acp\nprovider example { acp acp-example }\n\
                  agent printer provider=opencode model=\"scripted/scripted\"\n\
                  agent reviewer provider=example {";
    let spec = spec.replace("agent reviewer provider=recorded {", agents);
    let spec = spec.replace("task printer agent=coder {", "task printer agent=printer {");
    done(&place, &spec, &["--headless"]);
    let sent = envelopes(&place);
    for line in ["printer -> architect: The printer is as drawn", "parser -> reviewer: The parser is ready"] {
        assert!(sent.iter().any(|envelope| said(envelope) == line), "{line}: {sent:?}");
    }
    everybody_succeeded(&place);
}

/// A place with an agent that does what its prompt orders (the file says how), made of the kits of both protocols.
fn errands() -> Place {
    let place = Place::new(programs(), Script::new());
    let agent = place.home().with_file_name("agent");
    fs::create_dir(&agent).expect("a folder can be made");
    fs::write(agent.join("errands.mjs"), include_str!("errands.mjs")).expect("a file can be written");
    symlink(programs().join("../sdk/node_modules"), agent.join("node_modules")).expect("a link can be made");
    place
}

/// The agents of the example of handoffs, each with its errands.
const TEAM: &str = r##"
policy { tool send_handoff auto }
provider errands { acp node "../agent/errands.mjs" }
agent architect provider=errands {
    system #"""
        unless "fromNodeId" call send_handoff {"to": "parser", "message": "Write it", "structured": {"summary": "Parse", "files": ["src/parse.rs"]}}
        unless "fromNodeId" call send_handoff {"to": "printer", "message": "Write it", "structured": {"summary": "Print", "files": ["src/print.rs"]}}
        """#
}
agent parser provider=errands {
    system #"""
        where "Write it" call send_handoff {"to": "reviewer", "message": "The parser is ready", "artifacts": [{"type": "file", "ref": "src/parse.rs"}]}
        where "Write it" call send_handoff {"to": "architect", "message": "The parser is as planned", "status": {"ok": true}}
        where "has no tests" call send_handoff {"to": "reviewer", "message": "The tests are there"}
        """#
}
agent printer provider=errands {
    system #"""
        call send_handoff {"to": "reviewer", "message": "The printer is ready"}
        call send_handoff {"to": "architect", "message": "The printer is as planned", "status": {"ok": true}}
        """#
}
agent reviewer provider=errands {
    system #"""
        where "The parser is ready" call send_handoff {"to": "parser", "message": "The parser has no tests", "status": {"ok": false}}
        unless "The parser is ready" say Approved: both have tests.
        """#
}
"##;

#[test]
fn agents_that_call_tools_play_every_node_of_the_example_of_handoffs() {
    let place = errands();
    let spec = handoffs(&place);
    let (before, rest) = spec.split_once("provider recorded {").expect("its agents are recorded");
    let (_, after) = rest.split_once("// What every coder").expect("packs stand behind its agents");
    let after = after.replace("task parser agent=coder", "task parser agent=parser");
    let after = after.replace("task printer agent=coder", "task printer agent=printer");
    let out = done(&place, &format!("{before}{TEAM}//{after}"), &["--headless"]);
    assert!(out.ends_with("Approved: both have tests.\n"), "{out}");
    let sent = envelopes(&place);
    let mut lines: Vec<String> = sent.iter().map(said).collect();
    lines.sort();
    assert_eq!(
        lines,
        [
            "architect -> parser: Write it",
            "architect -> printer: Write it",
            "parser -> architect: The parser is as planned",
            "parser -> reviewer: The parser is ready",
            "parser -> reviewer: The tests are there",
            "printer -> architect: The printer is as planned",
            "printer -> reviewer: The printer is ready",
            "reviewer -> parser: The parser has no tests",
        ]
    );
    everybody_succeeded(&place);
    // What is not said in an envelope is referred to: the pack that its sender was given.
    let printer = place.swarmc(&["inspect", "last", "printer", "--json"]).stdout;
    let printer: Value = serde_json::from_slice(&printer).expect("inspect writes JSON");
    let pack = printer["artifacts"][0]["ref"].as_str().filter(|pack| pack.starts_with("contextpack://pack/"));
    let pack = pack.expect("it was given a pack");
    let of_printer: Vec<&Value> = sent.iter().filter(|envelope| envelope["fromNodeId"] == "printer").collect();
    assert!(of_printer.iter().all(|envelope| envelope["contextRef"] == pack), "{pack}: {of_printer:?}");
    let calls: Vec<&Value> = printer["tools"].as_array().expect("a list").iter().map(|call| &call["tool"]).collect();
    assert_eq!(calls, ["send_handoff", "send_handoff"], "what it says of its calls is kept");
}

const SLIP: &str = r##"
POLICY
provider errands { acp node "../agent/errands.mjs" }
agent courier provider=errands {
    system #"""
        call send_handoff {"to": "nobody", "message": "For nobody"}
        call send_handoff {"to": "last", "message": "For the last"}
        """#
}
pipeline main {
    edges { first -> last }
    task first agent=courier { timeout "4m"; prompt "Take it there." }
    task last { stdin "<<inbox>>"; run cat }
    result first
}
"##;

#[test]
fn a_call_without_an_edge_comes_back_as_an_error_that_names_the_edges_and_one_without_leave_is_not_made() {
    let no_edge = "no edge leads from `first` to `nobody`: you can send to `last`";
    for (policy, why, arrived) in [
        ("policy { tool send_handoff auto }", no_edge, vec!["first -> last: For the last"]),
        ("", "it was not given leave", vec![]),
    ] {
        let place = errands();
        let out = done(&place, &SLIP.replace("POLICY", policy), &["--headless"]);
        assert!(out.contains(&format!("send_handoff: {why}\n")), "{out}");
        assert_eq!(envelopes(&place).iter().map(said).collect::<Vec<_>>(), arrived);
    }
}
