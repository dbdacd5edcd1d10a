//! Turns that go in circles, through the binary: somebody is asked, from another terminal, after a kill, or nobody can
//! be.

use std::fs;
use std::process::{Child, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::specs::Project;
use crate::swarm_kills::journal;

/// Two who ask each other for ever, as far as they are let.
fn project(policy: &str, stall: &str) -> Project {
    let project = Project::new();
    let spec = format!(
        r##"
workflow circles {{ default main }}
{policy}
provider recorded {{
    script {{
        answer "What do you think?\n{{\"swarm\": \"send_handoff\", \"to\": \"pong\", \"message\": \"Your turn\"}}" task=ping
        answer "No, you.\n{{\"swarm\": \"send_handoff\", \"to\": \"ping\", \"message\": \"Your turn\"}}" task=pong
    }}
}}
agent any provider=recorded
pipeline main {{
    edges {{ ping <-> pong max=8 }}
    task ping {{ prompt "Decide"; {stall} }}
    task pong {{ prompt "Decide:\n<<inbox>>"; {stall} }}
    result ping
}}
"##
    );
    fs::write(project.root().join("spec.kdl"), spec).expect("a spec can be written");
    project
}

fn begin(project: &Project, arguments: &[&str]) -> Child {
    let mut command = project.command(arguments);
    command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("swarmc starts")
}

/// What waits for an answer once this does.
fn until(project: &Project, text: &str) -> String {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let listed = project.swarmc(&["approve", "last"]);
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        if listed.contains(text) {
            return listed;
        }
        assert!(Instant::now() < deadline, "`{text}` is never asked: {listed}");
        std::thread::yield_now();
    }
}

/// Answers as soon as whoever resumes the run listens.
fn answer(project: &Project, arguments: &[&str]) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !project.swarmc(arguments).status.success() {
        assert!(Instant::now() < deadline, "{arguments:?} is never taken");
        std::thread::yield_now();
    }
}

fn end(child: Child) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = child.wait_with_output().expect("it ends");
    (status.code(), String::from_utf8_lossy(&stderr).into_owned())
}

/// The records of one kind.
fn records(project: &Project, event: &str) -> Vec<Value> {
    let records = journal(project).expect("there is a run").into_iter();
    records.filter(|record| record["event"] == event).collect()
}

#[test]
fn somebody_is_asked_with_the_evidence_and_a_no_fails_the_step() {
    let project = project("", "");
    let running = begin(&project, &["run", "spec.kdl"]);
    let listed = until(&project, "? 1 ping: any wants to go on after 3 turns with the same result, since ");
    assert!(listed.contains("    What do you think?"), "{listed}");
    let ps = project.done(&["ps", "last"]);
    assert!(ps.contains("any wants to go on after 3 turns with the same result (approval 1)"), "{ps}");
    assert!(ps.contains("waits for a person's decision: it repeats itself"), "{ps}");
    let inspected = project.done(&["inspect", "last", "ping"]);
    assert!(inspected.contains("ping  stalled"), "{inspected}");
    assert!(
        inspected.contains("asked   1 any wants to go on after 3 turns with the same result: waits"),
        "{inspected}"
    );
    let refused = project.swarmc(&["approve", "last", "1", "allow", "--arguments", "{}"]);
    assert_eq!(refused.status.code(), Some(2), "{}", String::from_utf8_lossy(&refused.stderr));
    project.done(&["approve", "last", "1", "deny", "--because", "they are stuck"]);
    let (code, told) = end(running);
    assert_eq!(code, Some(3), "{told}");
    let why = "it repeated itself (3 turns with the same result), and a person said no: they are stuck";
    assert!(told.contains(why), "{told}");
    assert!(project.done(&["inspect", "last", "ping"]).contains(why));
}

#[test]
fn a_killed_run_still_asks_and_goes_on_when_it_may() {
    let project = project("", "");
    let mut running = begin(&project, &["run", "spec.kdl"]);
    until(&project, "? 1 ping: ");
    running.kill().expect("it can be killed");
    running.wait().expect("it ends");
    let running = begin(&project, &["resume", "last"]);
    answer(&project, &["approve", "last", "1", "always"]);
    // The other one goes in circles too, and is asked about by itself.
    until(&project, "? 2 pong: any wants to go on after 3 turns with the same result");
    project.done(&["approve", "last", "2", "allow"]);
    until(&project, "? 3 pong: ");
    project.done(&["approve", "last", "3", "always"]);
    let (code, told) = end(running);
    assert_eq!(code, Some(0), "{told}");
    assert_eq!(records(&project, "approval_asked").len(), 3);
    // Every envelope that the edge takes was sent: nothing is lost.
    assert_eq!(records(&project, "sent").len(), 16);
}

#[test]
fn what_nobody_says_in_time_the_policy_says() {
    for (then, code, said) in [
        ("deny", 3, "it repeated itself (3 turns with the same result), and no person approved it in time"),
        ("fail", 3, "it repeated itself (3 turns with the same result), and no person approved it in time"),
        (
            "approve",
            0,
            "to go on after 3 turns with the same result: allow, by the policy, as no person answered in time",
        ),
    ] {
        let project = project(&format!("policy {{ on-timeout {then} after=\"100ms\" }}"), "");
        let (ended, told) = end(begin(&project, &["run", "spec.kdl"]));
        assert!(ended == Some(code) && told.contains(said), "{then}: {told}");
        assert!(records(&project, "approval_answered").iter().all(|answer| answer["by"] == "timeout"));
    }
}

#[test]
fn where_nobody_can_be_asked_the_policy_says_whether_it_goes_on() {
    for (policy, stall, code, asked, said) in [
        ("", "", 3, 1, "and it needs approval, but no person can answer"),
        ("policy { unattended approve }", "", 0, 4, ""),
        ("", "stall 0", 0, 0, ""),
        ("", "stall 5", 3, 1, "it repeated itself (5 turns with the same result)"),
    ] {
        let project = project(policy, stall);
        let ended = project.swarmc(&["run", "spec.kdl", "--headless"]);
        let told = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(code), "{policy} {stall}: {told}");
        assert!(told.contains(said), "{policy} {stall}: {told}");
        assert_eq!(records(&project, "approval_asked").len(), asked, "{policy} {stall}: {told}");
    }
}

#[test]
fn tasks_that_envelopes_wake_are_counted_and_others_where_they_say_so() {
    let project = Project::new();
    let spec = r#"
provider recorded { script { answer "Done." } }
agent any provider=recorded
pipeline main {
    edges { first -> second; second -> third; news -> fourth kind=signal }
    task first { prompt "Begin" }
    task second { prompt "Read:\n<<inbox>>" }
    task third { run cat }
    task fourth { prompt "Hear" }
    task news { prompt "Tell"; stall 4; retry 5 }
}
"#;
    fs::write(project.root().join("counted.kdl"), spec).expect("a spec can be written");
    project.done(&["plan", "counted.kdl", "-o", "plan.json"]);
    let plan = fs::read_to_string(project.root().join("plan.json")).expect("the plan can be read");
    let plan: Value = serde_json::from_str(&plan).expect("a plan is JSON");
    let steps = plan["pipelines"][0]["steps"].as_array().expect("a list").iter();
    let stalls: Vec<(&str, u64)> =
        steps.map(|step| (step["name"].as_str().unwrap_or_default(), step["stall"].as_u64().unwrap_or(0))).collect();
    assert_eq!(stalls, [("first", 0), ("second", 3), ("third", 0), ("fourth", 0), ("news", 4)]);
}

/// The word that nobody answers wakes whoever asked, which asks again: after a few times nobody is asked any more.
#[test]
fn who_asks_for_help_whenever_nobody_gives_any_comes_to_an_end() {
    for then in ["deny", "approve", "fail"] {
        let project = Project::new();
        let spec = format!(
            r##"
workflow pleas {{ default main }}
policy {{ on-timeout {then} after="100ms" }}
provider script {{
    exec sh -c "cat >/dev/null; echo turn $SWARM_ATTEMPT; echo \"{{\\\"swarm\\\": \\\"request_help\\\", \\\"message\\\": \\\"help $SWARM_ATTEMPT\\\"}}\""
    prompt stdin
}}
agent any provider=script
pipeline main {{
    edges {{ one <-> two }}
    task one agent=any {{ prompt "Go on:\n<<inbox>>" }}
    task two {{ run "cat"; stdin "<<inbox>>" }}
    result one
}}
"##
        );
        fs::write(project.root().join("spec.kdl"), spec).expect("a spec can be written");
        let (ended, said) = end(begin(&project, &["run", "spec.kdl"]));
        assert_eq!(ended, Some(0), "{then}: {said}");
        let told = "no person answered your last 3 requests in time";
        assert!(said.contains(told), "{then}: {said}");
        let answered: Vec<Value> = records(&project, "approval_answered").iter().map(|it| it["by"].clone()).collect();
        assert_eq!(answered, ["timeout"; 3], "{then}");
        assert_eq!(project.output("one").lines().next(), Some("turn 4"), "{then}");
    }
}
