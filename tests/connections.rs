//! How nodes stand with their agents (seed 002, "Real-time connection state"): what `ps` and `inspect` say while a run
//! goes on, and when nobody runs it any more.

use std::fs;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::specs::Project;
use crate::swarm_kills::journal;

/// `first` says its session, waits to be let go, and hands over; `second` waits for that.
const SPEC: &str = r##"
workflow connected { default main }
provider talker {
    exec sh -c "cat >/dev/null; until [ -e speak ]; do sleep 0.01; done; cat opening; until [ -e go ]; do sleep 0.01; done; cat rest"
    reads claude-stream-json
}
provider recorded { script { answer "Done." } }
agent talks provider=talker
agent reads provider=recorded
pipeline main {
    edges { first -> second }
    task first agent=talks { prompt "Talk" }
    task second agent=reads { prompt "Read:\n<<inbox>>" }
    result second
}
"##;

const OPENING: &str = "{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"ses-1\"}\n\
    {\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"Well.\"}]}}\n";

const REST: &str = "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"session_id\":\"ses-1\",\"result\":\"{\\\"swarm\\\": \\\"send_handoff\\\", \\\"to\\\": \\\"second\\\", \\\"message\\\": \\\"Go\\\"}\"}\n";

fn project() -> Project {
    let project = Project::new();
    for (name, text) in [("spec.kdl", SPEC), ("opening", OPENING), ("rest", REST)] {
        fs::write(project.root().join(name), text).expect("a file can be written");
    }
    project
}

fn begin(project: &Project) -> Child {
    let mut command = project.command(&["run", "spec.kdl"]);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("swarmc starts")
}

fn let_go(project: &Project, name: &str) {
    fs::write(project.root().join(name), "").expect("a file can be written");
}

/// What swarmc prints once `fits` holds of it.
fn until(project: &Project, arguments: &[&str], fits: impl Fn(&str) -> bool) -> String {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let output = project.swarmc(arguments);
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        if fits(&printed) {
            return printed;
        }
        assert!(Instant::now() < deadline, "swarmc {arguments:?}\n{printed}");
        std::thread::yield_now();
    }
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn required_signals_say_who_is_connected_idle_and_disconnected() {
    let project = project();
    let mut running = begin(&project);
    // It has been sent its prompt, and nothing came yet.
    let reading = until(&project, &["ps", "last"], |ps| ps.contains("first: connected, reading, active "));
    assert!(!reading.contains("session"), "{reading}");
    let waits = "second: idle, active ";
    let why = "waits for its first envelope (first: its turn goes on)";
    assert!(reading.lines().any(|line| line.contains(waits) && line.ends_with(why)), "{reading}");

    let_go(&project, "speak");
    let writing = until(&project, &["ps"], |ps| ps.contains("session ses-1"));
    assert!(writing.contains("first: connected, writing, active "), "{writing}");
    let inspected = project.done(&["inspect", "last", "first"]);
    assert!(inspected.contains("node    connected, writing, active "), "{inspected}");
    let said = json(&project.done(&["ps", "last", "--json"]));
    let [first, second] = said["runs"][0]["nodes"].as_array().expect("a list").as_slice() else {
        panic!("two nodes: {said}");
    };
    assert_eq!(
        (&first["step"], &first["state"], &first["stream"]),
        (&"first".into(), &"connected".into(), &"writing".into())
    );
    assert_eq!((&first["session"], &first["attempt"]), (&"ses-1".into(), &1.into()));
    assert!(first["active_ms"].as_u64() > said["runs"][0]["started_ms"].as_u64(), "{said}");
    assert_eq!((&second["state"], &second["waits"]), (&"idle".into(), &"its first envelope".into()));
    assert_eq!(second["pending"][0], serde_json::json!({ "step": "first", "why": "its turn goes on" }));
    let known = journal(&project).expect("there is a run").into_iter();
    let known: Vec<Value> = known.filter(|record| record["event"] == "session_known").collect();
    assert_eq!(known.len(), 1, "{known:?}");
    assert_eq!((&known[0]["session"], &known[0]["attempt"]), (&"ses-1".into(), &1.into()));

    let_go(&project, "go");
    assert!(running.wait().expect("it ends").success());
    let over = project.done(&["ps", "last"]);
    assert!(over.contains("first: over, active ") && over.contains("second: over, active "), "{over}");
    assert!(!over.contains("waits"), "{over}");
    let inspected = json(&project.done(&["inspect", "last", "first", "--json"]));
    assert_eq!(inspected["connection"]["state"], "over");
    assert_eq!(inspected["connection"]["session"], "ses-1");
    assert!(!project.done(&["ps", "--all"]).contains("first:"), "only `ps RUN` lists what is over");
}

#[test]
fn a_killed_runner_leaves_its_nodes_disconnected_with_their_sessions() {
    let project = project();
    let mut running = begin(&project);
    let_go(&project, "speak");
    until(&project, &["ps"], |ps| ps.contains("session ses-1"));
    running.kill().expect("it can be killed");
    running.wait().expect("it ends");
    let gone = project.done(&["ps", "last"]);
    assert!(gone.contains("first: disconnected, active ") && gone.contains("session ses-1"), "{gone}");
    assert!(gone.contains("second: disconnected"), "{gone}");
    let_go(&project, "go");
    project.done(&["resume", "last"]);
    assert_eq!(project.output("second"), "Done.");
}

#[test]
fn waiting_and_synchronization() {
    // There are no join nodes: whoever reads what several hand over waits for it, and it is shown for whom and why.
    let project = project();
    let talks = "task TASK agent=talks { prompt \"Talk\" }";
    let spec = SPEC
        .replace("until [ -e speak ]; do sleep 0.01; done; cat opening; ", "")
        .replace("edges { first -> second }", "concurrency 2\n    edges { left -> second; right -> second }")
        .replace(
            &talks.replace("TASK", "first"),
            &["left", "right"].map(|task| talks.replace("TASK", task)).join("\n"),
        );
    fs::write(project.root().join("spec.kdl"), spec).expect("a spec can be written");
    let mut running = begin(&project);
    let pending = |said: &str| {
        let said: Value = serde_json::from_str(said).unwrap_or_default();
        let nodes = said["runs"][0]["nodes"].as_array().cloned().unwrap_or_default();
        let second = nodes.into_iter().find(|node| node["step"] == "second").unwrap_or_default();
        let pending = second["pending"].as_array().cloned().unwrap_or_default();
        (second["waits"].clone(), Value::from(pending))
    };
    let expected = serde_json::json!([
        { "step": "left", "why": "its turn goes on" },
        { "step": "right", "why": "its turn goes on" },
    ]);
    until(&project, &["ps", "last", "--json"], |said| pending(said) == ("its first envelope".into(), expected.clone()));
    let_go(&project, "go");
    assert!(running.wait().expect("it ends").success());
    assert_eq!(project.output("second"), "Done.");
    let read =
        journal(&project).expect("there is a run").into_iter().filter(|record| record["event"] == "inputs_taken");
    let read: usize = read.map(|record| record["inputs"].as_array().map_or(0, Vec::len)).sum();
    assert_eq!(read, 2);
}

/// `a` fails, and is tried again; `b` works; a called pipeline has begun. All wait to be let go.
const FAN_IN: &str = r##"
workflow waiting { default main }
pipeline inner {
    task early { run "until [ -e go ]; do sleep 0.01; done" }
    task late { depends-on early; run echo late }
    result late
}
pipeline main {
    concurrency 4
    task a { retry 1; run "if [ ! -e failed ]; then touch failed; exit 1; fi; until [ -e go ]; do sleep 0.01; done" }
    task b { run "until [ -e go ]; do sleep 0.01; done" }
    gate leave { message "May it?"; options yes; on-timeout yes after="24h" }
    task c { depends-on a b leave; run echo together }
    task d { depends-on c; run echo after }
    task e { depends-on d; run echo last }
    task f { depends-on e; run echo never }
    task sub { call inner }
    result c sub
}
"##;

#[test]
fn a_step_that_waits_for_its_dependencies_is_listed_with_what_they_are_doing() {
    let project = Project::new();
    fs::write(project.root().join("spec.kdl"), FAN_IN).expect("a spec can be written");
    let mut running = begin(&project);
    let why = "c: waits for other steps (a: it failed, and is tried again; b: it runs; leave: it waits for a person)";
    let ps = until(&project, &["ps"], |ps| ps.contains(why) && ps.contains("and 2 more"));
    let lines: Vec<&str> = ps.lines().filter(|line| line.contains("wait")).map(str::trim).collect();
    assert!(lines.contains(&"d: waits for other steps (c: it waits for other steps)"), "{ps}");
    let run = ps.lines().nth(1).and_then(|line| line.split_whitespace().next()).expect("a run is listed");
    assert!(lines.contains(&format!("and 2 more wait: swarmc inspect {run} STEP").as_str()), "{ps}");
    let all = project.done(&["ps", "last"]);
    assert!(all.contains("    sub/late: waits for other steps (early: it runs)"), "{all}");

    let inspected = project.done(&["inspect", "last", "c"]);
    let lines: Vec<&str> = inspected.lines().map(str::trim).collect();
    assert_eq!(lines[0].split_whitespace().collect::<Vec<_>>(), ["c", "waiting"], "{inspected}");
    assert!(lines.contains(&"waits   for a: it failed, and is tried again"), "{inspected}");
    assert!(lines.contains(&"waits   for leave: it waits for a person"), "{inspected}");
    let said = json(&project.done(&["inspect", "last", "sub/late", "--json"]));
    assert_eq!((&said["status"], &said["attempts"], &said["started_ms"]), (&"waiting".into(), &0.into(), &Value::Null));
    assert_eq!(said["pending"], serde_json::json!([{ "step": "early", "why": "it runs" }]));
    let said = json(&project.done(&["ps", "last", "--json"]))["runs"][0]["waiting"].clone();
    assert_eq!(said["count"], 5, "{said}");
    let first = serde_json::json!([
        { "step": "a", "why": "it failed, and is tried again" },
        { "step": "b", "why": "it runs" },
        { "step": "leave", "why": "it waits for a person" },
    ]);
    assert_eq!((&said["steps"][0]["step"], &said["steps"][0]["pending"]), (&"c".into(), &first));

    running.kill().expect("it can be killed");
    running.wait().expect("it ends");
    let left = project.done(&["inspect", "last", "c"]);
    assert!(left.contains("waits   for b: it had begun when the run was ended"), "{left}");
    let_go(&project, "go");
    let output = project.swarmc(&["approve", "last", "leave", "yes"]);
    assert!(!output.status.success(), "nobody runs it");
    let nothing = project.swarmc(&["inspect", "last", "g"]);
    assert_eq!(nothing.status.code(), Some(2));
}
