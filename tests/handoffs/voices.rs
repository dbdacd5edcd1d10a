//! What nodes say beside handing over (seed 003, status file and message passing; issue 7, doors for agents): through
//! MCP, the command, the socket and lines of an answer; what bad input gets; and that a kill loses nothing of it.

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::hostile::Socket;
use super::mcp::McpSession;
use super::{err, records, run, run_in, scripted, sent};
use crate::specs::Project;

fn out(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn read(project: &Project, name: &str) -> String {
    fs::read_to_string(project.root().join(name)).expect("a file can be read")
}

/// Starts a run of which the scripts find swarmc.
fn start(project: &Project, arguments: &[&str]) -> Child {
    let binary = Path::new(env!("CARGO_BIN_EXE_swarmc")).parent().expect("it lies in a folder");
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap_or_default());
    let mut command = project.command(arguments);
    command.env("PATH", path).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("swarmc starts")
}

fn kill(mut child: Child) {
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
}

fn until(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "it never came to: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Seed 003, status file: progress and metrics of a node that has no files.
#[test]
fn what_a_node_reports_is_shown_by_ps_and_inspect() {
    let guest = McpSession::new();
    let line = &mut guest.connect();
    let progress = json!({ "current_step": "analyzing_data", "steps_completed": 3, "total_steps": 5 });
    let metrics = json!({ "files_processed": 12, "outputs_generated": 4 });
    let receipt = guest.call(line, "report_status", json!({ "progress": progress, "metrics": metrics }));
    assert_eq!(receipt["structuredContent"], json!({ "reports": 1 }), "{receipt}");
    // The same again is nothing new.
    guest.call(line, "report_status", json!({ "progress": progress, "metrics": metrics }));
    let ps = out(&guest.swarmc(&["ps", "last"]));
    let shown = "first: running 3/5 analyzing_data (files_processed 12, outputs_generated 4); connected";
    assert!(ps.contains(shown), "{ps}");
    let ps: Value = serde_json::from_str(&out(&guest.swarmc(&["ps", "--json"]))).expect("it is JSON");
    let agent = &ps["runs"][0]["agents"][0];
    assert_eq!((&agent["step"], &agent["status"]["progress"]), (&json!("first"), &progress), "{ps}");
    let told = json!({ "swarm": "report_status", "message": "Half way\u{1b}[2J" });
    assert_eq!(Socket::new(&guest).asks(&guest.token, &told)["ok"], json!({ "reports": 2 }));
    let ps = out(&guest.swarmc(&["ps", "last"]));
    assert!(ps.contains("first: running Half way") && !ps.contains('\u{1b}'), "{ps}");
    let (project, output) = guest.release();
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert_eq!(records(&project, "status_reported").len(), 2);
    let inspected = out(&project.swarmc(&["inspect", "last", "first"]));
    assert!(inspected.contains("report  Half way") && !inspected.contains('\u{1b}'), "{inspected}");
    let node: Value =
        serde_json::from_str(&out(&project.swarmc(&["inspect", "last", "first", "--json"]))).expect("it is JSON");
    assert_eq!(node["tries"][0]["report"], json!({ "message": "Half way\u{1b}[2J" }), "{node}");
}

/// Seed 003, message passing: the types, whichever door they come through, as files for a receiver that has some.
#[test]
fn messages_come_through_commands_and_lines_and_are_files_for_whoever_has_files() {
    let project = scripted(
        r##"
workflow messages { default main }
provider recorded {
    script {
        answer "Asked.\n{\"swarm\": \"send_message\", \"to\": \"reader\", \"type\": \"question\", \"content\": {\"message\": \"Which?\", \"n\": 7}}" task=writer
    }
}
agent any provider=recorded
pipeline main {
    edges { script -> reader; writer <-> reader; news -> reader kind=signal }
    task script {
        depends-on news
        run "sh" "-c" #"""
            swarmc agent send-message --to reader --type data_ready --content '{"message": "There", "rows": 3}' >receipt
            swarmc agent send-message --to reader --type update --content 'Half way'
            swarmc agent send-message --to writer --type update --content 'News' 2>nobody; true
            """#
    }
    task news { run "swarmc" "agent" "send-message" "--to" "reader" "--type" "update" "--content" "Only news" }
    task writer agent=any { depends-on news; prompt "Ask" }
    task reader {
        stdin "<<inbox>>"
        run "sh" "-c" #"""
            cat >>shown; swarmc agent read-inbox >>inbox
            cd "$SWARM_WORKSPACE"; cat messages/* >>"$OLDPWD/messages"
            echo '{"state": "completed"}' >status.json; echo read >outbox/summary.md
            """#
        files { }
    }
    result reader
}
"##,
    );
    let output = run(&project);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let mut said = sent(&project);
    said.sort();
    // News go as a signal where there is an edge for it, and else as the edge has it.
    let all =
        ["news → reader: Only news", "script → reader: Half way", "script → reader: There", "writer → reader: Which?"];
    assert_eq!(said, all);
    let kind = |from: &str, at: usize| {
        let sent = records(&project, "sent").into_iter().filter(|sent| sent["from"]["name"] == from);
        sent.map(|sent| sent["letter"]["kind"].clone()).nth(at).expect("it was sent")
    };
    assert_eq!((kind("news", 0), kind("script", 1)), (json!("signal"), json!("handoff")));
    let receipt: Value = serde_json::from_str(&read(&project, "receipt")).expect("it is JSON");
    assert_eq!(receipt["to"], "reader");
    assert!(read(&project, "nobody").contains("no edge leads from `script` to `writer`: you can send to `reader`"));
    let messages = read(&project, "messages");
    let messages: Vec<Value> = serde_json::Deserializer::from_str(&messages)
        .into_iter()
        .map(|message| message.expect("a message is JSON"))
        .collect();
    let of = |from: &str| messages.iter().find(|message| message["from"] == from).expect("it came").clone();
    assert_eq!((&of("script")["type"], &of("script")["content"]["rows"]), (&json!("data_ready"), &json!(3)));
    assert_eq!((&of("writer")["type"], &of("writer")["content"]["n"]), (&json!("question"), &json!(7)));
    assert_eq!((&of("news")["type"], &of("news")["content"]["message"]), (&json!("update"), &json!("Only news")));
    // Whatever its edge is, and wherever it is shown.
    let half = messages.iter().find(|message| message["content"]["message"] == "Half way").expect("it came");
    assert_eq!(half["type"], "update");
    let shown = read(&project, "shown");
    let half = shown.lines().find(|line| line.contains("Half way")).expect("it is shown");
    assert!(half.contains(r#""meta":{"priority":"normal","type":"update"}"#), "{half}");
    let inbox = read(&project, "inbox");
    assert!(inbox.contains(r#""type":"question""#) && inbox.contains(r#""type":"update""#), "{inbox}");
    // What asks for it is no part of an output.
    assert_eq!(project.output("writer"), "Asked.\n");
}

#[test]
fn a_broadcast_reaches_everybody_whom_one_may_write_to() {
    let project = scripted(
        r##"
workflow broadcasts { default main }
type Plan { steps list<string> }
pipeline main {
    edges { first -> second max=2; first -> third max=2; first -> fourth carries=Plan; fifth <-> second }
    task first {
        run "sh" "-c" #"""
            swarmc agent broadcast --type data_ready --content 'It is there' >receipt
            swarmc agent broadcast --type update --content 'News'
            swarmc agent broadcast --type update --content 'More news' 2>full
            printf '%04001d' 0 | swarmc agent broadcast --type data_ready --content - 2>long; true
            """#
    }
    task second { stdin "<<inbox>>"; run "cat" }
    task third { stdin "<<inbox>>"; run "sh" "-c" "swarmc agent broadcast --type update --content x 2>alone; cat" }
    task fourth { run "true" }
    task fifth { run "true" }
    result second
}
"##,
    );
    let output = run(&project);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let expected =
        ["first → second: It is there", "first → third: It is there", "first → second: News", "first → third: News"];
    assert_eq!(sent(&project), expected);
    let receipt: Value = serde_json::from_str(&read(&project, "receipt")).expect("it is JSON");
    let to: Vec<&Value> = receipt["sent"].as_array().expect("a list").iter().map(|sent| &sent["to"]).collect();
    assert_eq!(to, ["second", "third"]);
    assert_eq!(receipt["refused"][0]["to"], "fourth");
    let why = receipt["refused"][0]["reason"].as_str().expect("a reason");
    assert!(why.contains("this edge carries a type"), "{why}");
    let full = read(&project, "full");
    assert!(full.contains("no message was sent: to `fourth`: this edge carries a type"), "{full}");
    assert!(full.contains("to `second`: you have sent `second` 2 envelopes, which is the limit"), "{full}");
    assert!(read(&project, "long").contains("at most 4000 are allowed"), "{}", read(&project, "long"));
    assert!(read(&project, "alone").contains("there is no receiver: no edge leads from `third` to a task"));
}

/// Of many that could not be written to a few are named, and all are looked at.
#[test]
fn a_broadcast_that_many_refuse_says_so_in_short() {
    let names: Vec<String> = (1..=21).map(|number| format!("n{number:02}")).collect();
    let edges: String = names.iter().map(|name| format!("first -> {name} carries=Plan; ")).collect();
    let tasks: String = names.iter().map(|name| format!("    task {name} {{ run \"true\" }}\n")).collect();
    let project = scripted(&format!(
        r##"
workflow broadcasts {{ default main }}
type Plan {{ steps list<string> }}
pipeline main {{
    edges {{ {edges}first -> other max=1 }}
    task first {{
        run "sh" "-c" #"""
            swarmc agent broadcast --type data_ready --content 'One' >receipt
            swarmc agent broadcast --type data_ready --content 'Two' 2>refused; true
            """#
    }}
    task other {{ run "true" }}
{tasks}
    result first
}}
"##
    ));
    let output = run(&project);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let receipt: Value = serde_json::from_str(&read(&project, "receipt")).expect("it is JSON");
    assert_eq!((receipt["refused"].as_array().map(Vec::len), &receipt["more"]), (Some(20), &json!(1)), "{receipt}");
    let refused = read(&project, "refused");
    for part in ["no message was sent: to `n01`: this edge carries a type", "; and 2 more"] {
        assert!(refused.contains(part), "{part}: {refused}");
    }
}

/// One that asks a person in its first turn, and says in its second what it was told.
const ASKER: &str = r##"
workflow asking { default main }
policy { unattended UNATTENDED }
provider recorded {
    script {
        answer "I need help.\n{\"swarm\": \"request_help\", \"message\": \"Which port?\"}" task=asker attempt=1
        answer "Thank you." task=asker
        answer "Noted."
    }
}
agent any provider=recorded
pipeline main {
    edges { asker -> other }
    task asker agent=any { prompt "Do it" }
    task other agent=any { prompt "Read:\n<<inbox>>" }
    result asker
}
"##;

fn asker() -> Project {
    scripted(&ASKER.replace("UNATTENDED", "deny"))
}

/// Waits until the request is listed; the list.
fn listed(project: &Project) -> String {
    let list = || out(&project.swarmc(&["approve", "last"]));
    until("a request", || list().contains("wants help"));
    list()
}

#[test]
fn a_person_answers_a_request_for_help_and_the_node_takes_a_further_turn() {
    let project = asker();
    let child = start(&project, &["run", "spec.kdl"]);
    let list = listed(&project);
    for part in ["? 1 asker: any wants help, since ", "\n    Which port?\n", " 1 allow|deny"] {
        assert!(list.contains(part), "{part}: {list}");
    }
    until("an idle node", || out(&project.swarmc(&["ps", "last"])).contains("waits for a person's help"));
    for (arguments, why) in [
        (&["always"][..], "any wants help cannot be answered with `always`"),
        (&["allow", "--arguments", "{}"], "approval 1 is for help, which takes no arguments"),
    ] {
        let refused = project.swarmc(&[&["approve", "last", "1"], arguments].concat());
        assert!(refused.status.code() == Some(2) && err(&refused).contains(why), "{why}: {}", err(&refused));
    }
    project.done(&["approve", "last", "1", "allow", "--because", "Take 8080"]);
    assert!(child.wait_with_output().expect("it ends").status.success());
    assert_eq!(project.output("asker"), "Thank you.");
    let inspected = out(&project.swarmc(&["inspect", "last", "asker"]));
    for part in [
        "asked   1 any wants help: allow, by a person: Take 8080",
        "To your request for help (Which port?): a person says: Take 8080",
    ] {
        assert!(inspected.contains(part), "{part}: {inspected}");
    }
    let node: Value =
        serde_json::from_str(&out(&project.swarmc(&["inspect", "last", "asker", "--json"]))).expect("it is JSON");
    let prompt = node["prompts"][1]["paths"]["prompt"].as_str().expect("a second prompt");
    let prompt = fs::read_to_string(prompt).expect("it is kept");
    assert!(prompt.contains("a person says: Take 8080"), "{prompt}");
    assert_eq!(
        (&node["approvals"][0]["wants"], &node["approvals"][0]["message"]),
        (&json!("help"), &json!("Which port?"))
    );
}

/// Killed while somebody is asked, and again when that was answered and the node has not read it: the request is one,
/// and so is the answer.
#[test]
fn a_request_for_help_outlives_runners_that_are_killed() {
    let project = asker();
    let child = start(&project, &["run", "spec.kdl"]);
    until("an idle node", || out(&project.swarmc(&["ps", "last"])).contains("waits for a person's help"));
    kill(child);
    let child = start(&project, &["resume", "last"]);
    until("a runner", || out(&project.swarmc(&["ps", "last"])).contains("running"));
    listed(&project);
    until("an answer", || project.swarmc(&["approve", "last", "1", "deny", "--because", "Ask Ann"]).status.success());
    kill(child);
    let ended = run_in(&project, &["resume", "last"]);
    // It may have ended before it was killed.
    assert!(ended.status.success() || err(&ended).contains("ended"), "{}", err(&ended));
    assert_eq!((records(&project, "approval_asked").len(), records(&project, "approval_answered").len()), (1, 1));
    let letters = records(&project, "sent");
    assert_eq!(letters.len(), 1);
    assert_eq!(letters[0]["letter"]["answers"], "approval-1");
    assert_eq!(
        letters[0]["letter"]["content"]["text"],
        "To your request for help (Which port?): a person said no: Ask Ann"
    );
    assert_eq!(project.output("asker"), "Thank you.");
}

/// Where nobody can be asked whoever asks hears so at once, and nobody waits.
#[test]
fn help_of_nobody_is_what_the_policy_says() {
    for (policy, asked, told) in [
        ("deny", 1, Some("no person can answer: go on without help")),
        ("fail", 1, Some("wants help, which needs approval, but no person can answer")),
        ("approve", 1, None),
    ] {
        let project = scripted(&ASKER.replace("UNATTENDED", policy));
        let output = run_in(&project, &["run", "spec.kdl", "--headless"]);
        assert_eq!(output.status.code(), Some(0), "{policy}: {}", err(&output));
        assert_eq!(project.output("asker"), "I need help.\n", "{policy}");
        assert_eq!(records(&project, "approval_answered").len(), asked);
        assert!(sent(&project).is_empty());
        let said = err(&output);
        assert!(told.is_none_or(|told| said.contains(told)), "{policy}: {said}");
        assert_eq!(told.is_some(), said.contains("a request of its agent was refused"), "{policy}: {said}");
    }
}

/// Where nobody answers in time whoever asked hears so, in its inbox, as it would hear an answer.
#[test]
fn help_that_nobody_gives_in_time_is_what_the_policy_says() {
    for (then, told) in [
        ("deny", "no person answered in time: go on without help, or say in your answer what is missing"),
        ("fail", "no person answered in time: go on without help, or say in your answer what is missing"),
        ("approve", "no person answered in time: go on"),
    ] {
        let timeout = format!("deny; on-timeout {then} after=\"300ms\"");
        let project = scripted(&ASKER.replace("UNATTENDED", &timeout));
        let output = run_in(&project, &["run", "spec.kdl"]);
        assert_eq!(output.status.code(), Some(0), "{then}: {}", err(&output));
        assert!(err(&output).contains("› the run writes to asker: To your"), "{then}: {}", err(&output));
        assert_eq!(project.output("asker"), "Thank you.", "{then}");
        let letters = records(&project, "sent");
        let told = format!("To your request for help (Which port?): {told}");
        assert_eq!((letters.len(), &letters[0]["letter"]["content"]["text"]), (1, &json!(told)), "{then}");
        assert_eq!(records(&project, "approval_answered")[0]["by"], "timeout");
    }
}

/// A run that was killed while it waited is resumed where nobody can answer: it goes on.
#[test]
fn a_run_that_waits_for_help_ends_when_nobody_can_give_it() {
    let project = asker();
    let child = start(&project, &["run", "spec.kdl"]);
    until("an idle node", || out(&project.swarmc(&["ps", "last"])).contains("waits for a person's help"));
    kill(child);
    let output = run_in(&project, &["resume", "last", "--headless"]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert_eq!(project.output("asker"), "I need help.\n");
}

/// Floods, what is too long, of the wrong type, or of somebody else.
#[test]
fn what_nodes_should_not_say_is_refused_with_words() {
    let guest = McpSession::new();
    let socket = &mut Socket::new(&guest);
    let message = |more: Value| {
        let mut message = json!({ "swarm": "send_message", "to": "second", "type": "data_ready", "content": "c" });
        message.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        message
    };
    for (operation, why) in [
        (message(json!({ "from": "second" })), "unknown field `from`"),
        (message(json!({ "id": "e1" })), "unknown field `id`"),
        (message(json!({ "to": "first" })), "you cannot send a handoff to yourself"),
        (message(json!({ "to": "nobody\u{1b}[2J" })), "no edge leads from `first` to `nobody[2J`"),
        (message(json!({ "type": "order" })), "unknown variant `order`"),
        (message(json!({ "content": [1] })), "`content` is neither an object nor a text"),
        (message(json!({ "content": 7 })), "`content` is neither an object nor a text"),
        (message(json!({ "content": "" })), "`message` is empty"),
        (message(json!({ "content": "x".repeat(4001) })), "at most 4000 are allowed"),
        (message(json!({ "content": { "message": "m", "x": "x".repeat(70_000) } })), "at most 65536 are allowed"),
        (message(json!({ "type": "answer", "reply_to": "e1" })), "no envelope `e1` from `second` waits"),
        (json!({ "swarm": "broadcast", "type": "update", "content": "c", "to": "second" }), "unknown field `to`"),
        (json!({ "swarm": "broadcast", "content": "c" }), "missing field `type`"),
        (json!({ "swarm": "report_status" }), "the report is empty"),
        (json!({ "swarm": "report_status", "state": "completed" }), "unknown field `state`"),
        (json!({ "swarm": "report_status", "progress": 3 }), "invalid type"),
        (json!({ "swarm": "report_status", "progress": { "steps_completed": -1 } }), "invalid value"),
        (json!({ "swarm": "report_status", "progress": { "total_steps": 0 } }), "there are 0 steps"),
        (
            json!({ "swarm": "report_status", "progress": { "steps_completed": 6, "total_steps": 5 } }),
            "6 of 5 steps are done",
        ),
        (json!({ "swarm": "report_status", "metrics": { "x": "x".repeat(70_000) } }), "at most 65536 are allowed"),
        (json!({ "swarm": "request_help", "message": "Well?" }), "you cannot receive an answer: `first`"),
        (json!({ "swarm": "request_help", "message": " \n" }), "`message` is empty"),
        (json!({ "swarm": "request_help", "message": "x".repeat(4001) }), "at most 4000 are allowed"),
        (json!({ "swarm": "request_help", "to": "user" }), "unknown field `to`"),
    ] {
        let told = socket.asks(&guest.token, &operation);
        assert!(told["error"].as_str().is_some_and(|error| error.contains(why)), "{operation}: {told}");
        assert!(!told.to_string().contains("\\u001b"), "{told}");
    }
    // A flood of reports: what is refused is not written.
    for number in 0..1_010 {
        let told = socket.asks(&guest.token, &json!({ "swarm": "report_status", "message": number.to_string() }));
        let expected = number < 1_000;
        assert_eq!(told["ok"].is_object(), expected, "{number}: {told}");
        assert_eq!(told.to_string().contains("1000 times in this turn, which is the limit"), !expected, "{told}");
    }
    // Of messages an edge takes as many as of handoffs: it is one door.
    for number in 0..25 {
        let told = socket.asks(&guest.token, &message(json!({ "content": number.to_string() })));
        assert_eq!(told["ok"].is_object(), number < 20, "{number}: {told}");
    }
    let (project, output) = guest.release();
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert_eq!(records(&project, "status_reported").len(), 1_000);
    assert_eq!(sent(&project).len(), 20);
    // What was refused is written down, so much of it, and shows no terminal anything to obey.
    let node: Value =
        serde_json::from_str(&out(&project.swarmc(&["inspect", "last", "first", "--json"]))).expect("it is JSON");
    let refused = node["refused"].as_array().expect("a list");
    assert!(refused.len() > 15 && refused[0]["turn"] == 1, "{refused:?}");
    let shown = out(&project.swarmc(&["inspect", "last", "first"]));
    assert!(shown.contains("    refused turn 1: no edge leads from `first` to `nobody[2J`"), "{shown}");
}

/// A flood of requests: three wait at once, and the same is one request.
#[test]
fn nobody_is_asked_for_help_more_than_a_few_times_at_once() {
    let line = |text: &str| format!(r#"{{\"swarm\": \"request_help\", \"message\": \"{text}\"}}\n"#);
    let flood: String = ["a", "a", "b", "c", "d", "e"].map(line).concat();
    let spec = ASKER.replace("UNATTENDED", "deny").replace(&line("Which port?").replace("\\n", ""), &flood);
    assert!(spec.contains("\\\"e\\\""), "{spec}");
    let project = scripted(&spec);
    let child = start(&project, &["run", "spec.kdl"]);
    until("an idle node", || out(&project.swarmc(&["ps", "last"])).contains("waits for a person's help"));
    assert_eq!(records(&project, "approval_asked").len(), 3);
    for id in ["2", "1", "3"] {
        until("an answer", || project.swarmc(&["approve", "last", id, "allow"]).status.success());
    }
    assert!(child.wait_with_output().expect("it ends").status.success());
    // Whatever turn reads it, each answer is read once.
    let letters: Vec<Value> =
        records(&project, "sent").iter().map(|record| record["letter"]["answers"].clone()).collect();
    assert_eq!(letters, ["approval-2", "approval-1", "approval-3"]);
    let read: usize =
        records(&project, "inputs_taken").iter().map(|it| it["inputs"].as_array().map_or(0, Vec::len)).sum();
    assert_eq!(read, 3);
}

/// Killed after a message, a broadcast and a report were acknowledged, and before anybody has read them.
#[test]
fn what_was_acknowledged_is_not_lost_and_not_doubled_by_a_kill() {
    let project = scripted(
        r##"
workflow killed { default main }
pipeline main {
    edges { first -> second; first -> third }
    task first {
        run "sh" "-c" #"""
            swarmc agent send-message --to second --type data_ready --content 'One' >one &&
            swarmc agent broadcast --type data_ready --content 'All' >all &&
            swarmc agent report-status --done 1 --total 2 --metric files=3 --message 'Half way' &&
            echo told >>told; until [ -e go ]; do sleep 0.02; done
            """#
    }
    task second { stdin "<<inbox>>"; run "cat" }
    task third { stdin "<<inbox>>"; run "cat" }
    result second
}
"##,
    );
    let child = start(&project, &["run", "spec.kdl"]);
    until("told", || project.root().join("told").exists());
    kill(child);
    let ids = (read(&project, "one"), read(&project, "all"));
    let child = start(&project, &["resume", "last"]);
    until("told again", || read(&project, "told").lines().count() == 2);
    let ps = out(&project.swarmc(&["ps", "last"]));
    assert!(ps.contains("first: running 1/2 (files 3): Half way; connected"), "{ps}");
    fs::write(project.root().join("go"), "").expect("a file can be written");
    assert!(child.wait_with_output().expect("it ends").status.success());
    assert_eq!((read(&project, "one"), read(&project, "all")), ids, "the same receipts");
    let mut sent = sent(&project);
    sent.sort();
    assert_eq!(sent, ["first → second: All", "first → second: One", "first → third: All"]);
    assert_eq!(records(&project, "status_reported").len(), 1);
    let read: usize =
        records(&project, "inputs_taken").iter().map(|it| it["inputs"].as_array().map_or(0, Vec::len)).sum();
    assert_eq!(read, 3);
}

/// What ends early waits for nobody's help: a `stop`, `fail-fast`, and a budget that is spent.
#[test]
fn a_pipeline_that_ends_early_waits_for_no_help() {
    let until = "run \"sh\" \"-c\" \"until [ -e asked ]; do sleep 0.02; done; test ! -e fail\"";
    for (rules, end, code, fails) in
        [("", "stop enough status=success { depends-on late }", 0, false), ("fail-fast", "", 3, true)]
    {
        let more = format!("edges {{ asker -> other }}\n    {rules}\n    task late {{ {until} }}\n    {end}");
        let project = scripted(&ASKER.replace("UNATTENDED", "deny").replace("edges { asker -> other }", &more));
        if fails {
            fs::write(project.root().join("fail"), "").expect("a file can be written");
        }
        let child = start(&project, &["run", "spec.kdl"]);
        listed(&project);
        fs::write(project.root().join("asked"), "").expect("a file can be written");
        let ended = child.wait_with_output().expect("it ends");
        assert_eq!(ended.status.code(), Some(code), "{rules}{end}");
        assert!(records(&project, "approval_answered").is_empty());
    }
}

/// A recording holds messages as it holds handoffs.
#[test]
fn what_is_recorded_is_replayed() {
    let spec = r##"
workflow recorded { default main }
provider recorded {
    script {
        answer "Well.\n{\"swarm\": \"broadcast\", \"type\": \"data_ready\", \"content\": {\"n\": 1}}\n{\"swarm\": \"report_status\", \"message\": \"Half way\"}" task=first
        answer "Done."
    }
}
agent any provider=recorded
pipeline main {
    edges { first -> second; first -> third }
    task first agent=any { prompt "Begin" }
    task second agent=any { prompt "Read:\n<<inbox>>" }
    task third agent=any { prompt "Read:\n<<inbox>>" }
    result second
}
"##;
    let project = scripted(spec);
    let output = run_in(&project, &["run", "spec.kdl", "--record", "tape"]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let was = sent(&project);
    assert_eq!(was.len(), 2);
    fs::rename(project.home(), project.root().join("before")).expect("a folder can be moved");
    let output = run_in(&project, &["run", "spec.kdl", "--replay", "tape"]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert_eq!(sent(&project), was);
}

/// The same two over MCP, where what is refused is a result that a model can read.
#[test]
fn an_agent_writes_messages_over_mcp() {
    let guest = McpSession::new();
    let line = &mut guest.connect();
    let message = json!({ "to": "second", "type": "data_ready", "content": { "message": "There", "rows": 3 } });
    let receipt = guest.call(line, "send_message", message);
    assert_eq!((&receipt["isError"], &receipt["structuredContent"]["to"]), (&json!(false), &json!("second")));
    let receipt = guest.call(line, "broadcast", json!({ "type": "question", "content": { "message": "All there?" } }));
    assert_eq!(receipt["structuredContent"]["sent"][0]["to"], "second", "{receipt}");
    for (tool, arguments, why) in [
        (
            "send_message",
            json!({ "to": "third", "type": "update", "content": "c" }),
            "no edge leads from `first` to `third`",
        ),
        ("send_message", json!({ "to": "second", "type": "news", "content": "c" }), "unknown variant `news`"),
        ("broadcast", json!({ "type": "answer", "content": [] }), "neither an object nor a text"),
        ("report_status", json!({ "metrics": 3 }), "invalid type"),
        ("request_help", json!({ "message": "Which?" }), "you cannot receive an answer"),
    ] {
        let refused = guest.call(line, tool, arguments.clone());
        assert_eq!(refused["isError"], true, "{tool} {arguments}: {refused}");
        let words = refused["content"][0]["text"].as_str().expect("it says why");
        assert!(words.contains(why), "{tool} {arguments}: {words}");
    }
    let (project, output) = guest.release();
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert_eq!(sent(&project), ["first → second: There", "first → second: All there?"]);
    let envelope = |record: &Value| -> Value {
        let text = record["letter"]["content"]["text"].as_str().expect("it is short");
        serde_json::from_str(text).expect("an envelope is JSON")
    };
    let second: Vec<Value> = records(&project, "sent").iter().map(envelope).collect();
    assert_eq!(second[0]["payload"]["structured"]["rows"], 3);
    assert_eq!(second[1]["payload"]["response"]["expectation"], "optional");
}
