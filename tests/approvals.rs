//! Agents of swarms that need somebody's agreement, through the binary: another terminal, the policy, time, a kill.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::cli::Place;

/// A swarm in which `takao` calls a tool, asks for a helper and is done, and `mitaka` works beside it.
pub(crate) fn spec(policy: &str) -> String {
    format!(
        r##"
policy {{ tool shell human; spawn human; {policy} }}
provider recorded {{
    script {{
        answer #"{{"action": "tool_call", "tool": "shell", "tool_params": {{"command": "echo ran >> ran.txt # \u001b[2J\u202e"}}}}"# task=takao turn=1
        answer #"{{"action": "request_help", "help_description": "Look at the EU", "help_skills": ["shell"]}}"# task=takao turn=2
        answer #"{{"action": "done", "response": "takao is done"}}"# task=takao turn=3
        answer #"{{"action": "done", "response": "mitaka is done"}}"# task=mitaka turn=1
        answer #"{{"action": "done", "response": "helped"}}"#
    }}
}}
agent coder provider=recorded {{ tools shell; can run-commands spawn }}
swarm team {{
    goal "Do it"
    member takao agent=coder "The US"
    member mitaka agent=coder "Japan"
}}
pipeline main {{
    task go {{ swarm team }}
    result go
}}
"##
    )
}

/// Waits until the request of this number is listed; the list.
pub(crate) fn await_request(place: &Place, id: u32) -> String {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let listed = place.swarmc(&["approve", "last"]).expect(0, &[], &[]).out;
        if listed.contains(&format!("? {id} go: ")) {
            return listed;
        }
        assert!(Instant::now() < deadline, "request {id} is never asked: {listed}");
    }
}

/// The facts of this name, as the events of the last run say them.
fn told(place: &Place, name: &str) -> Vec<Value> {
    let runs = std::fs::read_dir(place.home().join("runs")).expect("there are runs");
    let mut runs: Vec<_> = runs.map(|run| run.expect("it can be read").path()).filter(|run| run.is_dir()).collect();
    runs.sort();
    let journal = std::fs::read_to_string(runs.last().expect("there is one").join("journal.jsonl"));
    let records = journal.expect("it has a journal");
    // One that was killed had room for more.
    let records =
        records.trim_end_matches('\0').lines().map(|line| serde_json::from_str::<Value>(line).expect("it is JSON"));
    records.filter(|record| record["event"] == name).collect()
}

/// Waits until it is later than this, in milliseconds since 1970.
fn await_time(at: u64) {
    let now = || std::time::UNIX_EPOCH.elapsed().expect("it is later than 1970").as_millis();
    while now() <= u128::from(at) {
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn agents_of_a_swarm_are_answered_from_another_terminal() {
    let place = Place::new(&spec(""));
    let (mut child, rest) = place.until(&["run", "flow.kdl"], "mitaka done");
    let listed = await_request(&place, 1);
    for part in ["takao wants tool shell, since ", r"ran.txt # \u001b[2J\u{202e}", "1 allow|always|deny"] {
        assert!(listed.contains(part), "{part}: {listed}");
    }
    assert!(!listed.contains(['\u{1b}', '\u{202e}']), "{listed}");
    place.swarmc(&["ps"]).expect(0, &["takao wants tool shell (approval 1)"], &[]);
    let ps: Value = serde_json::from_str(&place.swarmc(&["ps", "--json"]).expect(0, &[], &[]).out).expect("it is JSON");
    let asked = &ps["runs"][0]["approvals"][0];
    assert_eq!((&asked["id"], &asked["agent"], &asked["tool"]), (&1.into(), &"takao".into(), &"shell".into()));
    let step = place.swarmc(&["inspect", "last", "go", "--json"]).expect(0, &[], &[]).out;
    let step: Value = serde_json::from_str(&step).expect("it is JSON");
    assert_eq!(step["approvals"][0]["choices"], serde_json::json!(["allow", "always", "deny"]));
    place.swarmc(&["approve", "last", "1"]).expect(2, &[], &["give the answer", "1 allow|always|deny"]);
    place.swarmc(&["approve", "last", "1", "alow"]).expect(2, &[], &["did you mean `allow`?"]);
    place.swarmc(&["approve", "last", "2", "allow"]).expect(2, &[], &["no `2` waits"]);
    let unfit = ["approve", "last", "1", "allow", "--arguments", r#"{"command": 7}"#];
    place.swarmc(&unfit).expect(2, &[], &["`shell` cannot take them"]);
    assert!(!place.work().join("ran.txt").exists());
    place.swarmc(&["approve", "go/mitaka", "allow"]).expect(2, &[], &["no `go/mitaka` waits"]);
    // Without a run the last one is meant; an agent stands for the request that it waits with.
    place.swarmc(&["approve"]).expect(0, &[&listed[..listed.find("since").unwrap_or(0)]], &[]);
    place.swarmc(&["approve", "go/takao"]).expect(2, &[], &["give the answer", "go/takao allow|always|deny"]);
    let other = ["approve", "go/takao", "allow", "--arguments", r#"{"command": "echo other >> ran.txt"}"#];
    place.swarmc(&other).expect(0, &[], &["approval 1 of run"]);
    let listed = await_request(&place, 2);
    assert!(listed.contains("takao wants a helper") && listed.contains("Look at the EU"), "{listed}");
    place.swarmc(&["approve", "2", "deny", "not"]).expect(2, &[], &["`not` is one argument too many", "--because"]);
    place.swarmc(&["approve", "--because", "not now"]).expect(2, &[], &["say what is answered"]);
    place.swarmc(&["approve", "2", "deny", "--because", "not now"]).expect(0, &[], &[]);
    let (status, told) = (child.wait().expect("it ends"), rest());
    assert!(status.success(), "{told}");
    for line in
        ["? go: takao wants tool shell", "allow, by a person, with other arguments", "deny, by a person: not now"]
    {
        assert!(told.contains(line), "{line}: {told}");
    }
    assert_eq!(std::fs::read_to_string(place.work().join("ran.txt")).expect("it ran"), "other\n");
    let seen =
        ["asked   1 tool shell: allow, by a person", "no helper: a person said no: not now", "with these arguments"];
    place.swarmc(&["inspect", "last", "go", "takao"]).expect(0, &seen, &[]);
    let step = place.swarmc(&["inspect", "last", "go", "--json"]).expect(0, &[], &[]).out;
    let step: Value = serde_json::from_str(&step).expect("it is JSON");
    assert_eq!(step["approvals"][0]["answer"]["arguments"]["command"], "echo other >> ran.txt");
    place.swarmc(&["approve", "last", "1", "allow"]).expect(2, &[], &["has ended: nothing waits"]);
}

#[test]
fn where_nobody_can_be_asked_the_policy_answers() {
    for (policy, code, ran, parts) in [
        ("", 0, false, ["takao wants tool shell: deny, by the policy", "takao wants a helper: deny"]),
        ("unattended approve", 0, true, ["takao wants tool shell: allow, by the policy", "was spawned to help takao"]),
        ("unattended fail", 3, false, ["`takao` wants tool shell, which needs approval", "go: failed"]),
    ] {
        let place = Place::new(&spec(policy));
        place.swarmc(&["run", "flow.kdl", "--headless"]).expect(code, &[], &parts);
        assert_eq!(place.work().join("ran.txt").exists(), ran, "{policy}");
        let mut ci = place.command(&["run", "flow.kdl", "--events"]);
        let ended = ci.env("CI", "1").output().expect("swarmc starts");
        let events = String::from_utf8(ended.stdout).expect("the output is UTF-8");
        let asked = events.lines().find(|line| line.contains(r#""type":"approval_asked""#)).expect("it is told");
        assert!(asked.contains(r#""agent_id":"takao""#) && asked.contains(r#""tool":"shell""#), "{asked}");
        assert!(events.contains(r#""by":"policy""#), "{events}");
    }
}

#[test]
fn a_killed_run_asks_the_same_and_what_was_answered_is_not_asked_again() {
    let place = Place::new(&spec(""));
    let kill = |(mut child, _): (std::process::Child, _)| -> () {
        child.kill().expect("it runs");
        child.wait().expect("it ends");
    };
    let first = place.until(&["run", "flow.kdl"], "swarmc approve");
    await_request(&place, 1);
    kill((first.0, ()));
    let ended = place.swarmc(&["approve", "last", "1", "allow"]);
    assert!(ended.code == Some(2) && ended.err.contains("still waits then"), "{ended:?}");
    let second = place.until(&["resume"], "1 allow|always|deny");
    place.swarmc(&["approve", "last", "1", "allow"]).expect(0, &[], &[]);
    await_request(&place, 2);
    kill((second.0, ()));
    let (mut child, rest) = place.until(&["resume"], "2 allow|always|deny");
    place.swarmc(&["approve", "last", "2", "always"]).expect(0, &[], &[]);
    let (status, said) = (child.wait().expect("it ends"), rest());
    assert!(status.success() && said.contains("was spawned to help takao"), "{said}");
    assert_eq!(std::fs::read_to_string(place.work().join("ran.txt")).expect("it ran"), "ran\n");
    let ids = |name: &str| told(&place, name).iter().map(|record| record["id"].as_u64()).collect::<Vec<_>>();
    assert_eq!((ids("approval_asked"), ids("approval_answered")), (vec![Some(1), Some(2)], vec![Some(1), Some(2)]));
    // Whoever resumes it with nobody there has it decided.
    let third = place.until(&["run", "flow.kdl"], "swarmc approve");
    await_request(&place, 1);
    kill((third.0, ()));
    let alone = place.swarmc(&["resume", "--headless"]);
    assert!(alone.code == Some(0) && alone.err.contains("takao wants tool shell: deny, by the policy"), "{alone:?}");
}

#[test]
fn what_nobody_answers_in_time_the_policy_answers_and_says_so_in_a_replay() {
    for (then, code, ran, parts) in [
        (
            "deny",
            0,
            false,
            ["takao wants tool shell: deny, by the policy, as no person answered in time", "a helper: deny"],
        ),
        (
            "approve",
            0,
            true,
            ["takao wants tool shell: allow, by the policy, as no person", "was spawned to help takao"],
        ),
        ("fail", 3, false, ["needs approval, but no person answered in time", "go: failed"]),
    ] {
        let place = Place::new(&spec(&format!("on-timeout {then} after=\"300ms\"")));
        place.swarmc(&["run", "flow.kdl", "--record", "r"]).expect(code, &[], &parts);
        assert_eq!(place.work().join("ran.txt").exists(), ran, "{then}");
        for (asked, answered) in told(&place, "approval_asked").iter().zip(told(&place, "approval_answered")) {
            let at = |record: &Value| record["at"].as_u64().expect("a time");
            assert!(answered["by"] == "timeout" && at(&answered) >= at(asked) + 300, "{asked} {answered}");
        }
        let seen =
            format!("asked   1 takao wants tool shell: {}", if ran { "allow, by the policy" } else { "deny, by" });
        place.swarmc(&["inspect", "last", "go"]).expect(0, &[&seen], &[]);
        for more in [&[][..], &["--headless"]] {
            let replayed = place.swarmc(&[&["run", "flow.kdl", "--replay", "r"][..], more].concat());
            replayed.expect(code, &[], &["everything is as recorded"]);
            assert!(told(&place, "approval_answered").iter().all(|verdict| verdict["by"] == "timeout"), "{then}");
        }
    }
}

#[test]
fn whoever_looks_is_told_what_becomes_of_a_request_and_when() {
    let place = Place::new(&spec("on-timeout deny after=\"1h\""));
    let (mut child, rest) = place.until(&["run", "flow.kdl"], "mitaka done");
    let listed = await_request(&place, 1);
    assert!(listed.contains("s, denied in 59m ") && listed.contains("s by `policy on-timeout`"), "{listed}");
    place.swarmc(&["ps"]).expect(0, &["takao wants tool shell (approval 1, denied in 59m "], &[]);
    let ps: Value = serde_json::from_str(&place.swarmc(&["ps", "--json"]).expect(0, &[], &[]).out).expect("it is JSON");
    let asked = &ps["runs"][0]["approvals"][0];
    let due = asked["since_ms"].as_u64().expect("a time") + 3_600_000;
    assert_eq!((&asked["on_timeout"]["then"], &asked["on_timeout"]["at_ms"]), (&"deny".into(), &due.into()));
    for arguments in [&["inspect", "last", "go"][..], &["inspect", "last", "go", "takao"]] {
        place.swarmc(arguments).expect(0, &["tool shell: waits for an answer, denied in 59m "], &[]);
    }
    place.swarmc(&["approve", "last", "1", "allow"]).expect(0, &[], &[]);
    await_request(&place, 2);
    let again = place.swarmc(&["approve", "last", "1", "deny"]);
    again.expect(2, &[], &["approval 1 is already answered: allow, by a person", "inspect"]);
    place.swarmc(&["approve", "last", "2", "deny"]).expect(0, &[], &[]);
    assert!(child.wait().expect("it ends").success(), "{}", rest());
}

/// The time of a request is counted from when it was asked: killing its runner gives nobody longer.
#[test]
fn a_killed_run_answers_what_nobody_answered_meanwhile() {
    for (then, code, part) in [
        ("deny", 0, "takao wants tool shell: deny, by the policy, as no person answered in time"),
        ("fail", 3, "which needs approval, but no person answered in time"),
    ] {
        let place = Place::new(&spec(&format!("on-timeout {then} after=\"2s\"")));
        let (mut child, _) = place.until(&["run", "flow.kdl"], "takao wants tool shell, ");
        child.kill().expect("it runs");
        child.wait().expect("it ends");
        let asked = told(&place, "approval_asked")[0]["at"].as_u64().expect("a time");
        await_time(asked + 2_000);
        place.swarmc(&["resume"]).expect(code, &[], &[part]);
        let (resumed, answered) = (told(&place, "run_resumed"), told(&place, "approval_answered"));
        assert_eq!((&answered[0]["id"], &answered[0]["by"]), (&1.into(), &"timeout".into()));
        let at = |record: &Value| record["at"].as_u64().expect("a time");
        assert!(at(&answered[0]) < at(&resumed[0]) + 2_000, "{resumed:?} {answered:?}");
        // Whoever comes too late hears what was said.
        let late = place.swarmc(&["approve", "last", "1", "allow"]);
        late.expect(2, &[], &["has ended: nothing waits"]);
    }
}

#[test]
fn whoever_answers_too_late_hears_what_was_said() {
    let place = Place::new(&spec("on-timeout deny after=\"1s\""));
    let (mut child, _) = place.until(&["run", "flow.kdl"], "takao wants a helper");
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    let late = place.swarmc(&["approve", "last", "1", "allow"]);
    let said = "approval 1 is already answered: deny, by the policy, as no person answered in time";
    late.expect(2, &[], &[said, "swarmc send", "on-timeout"]);
    // The other one is no longer anybody's either.
    let asked = told(&place, "approval_asked")[1]["at"].as_u64().expect("a time");
    await_time(asked + 1_000);
    place.swarmc(&["approve", "last"]).expect(0, &["denied at once by `policy on-timeout`"], &[]);
    place.swarmc(&["resume"]).expect(0, &[], &["takao wants a helper: deny, by the policy, as no person"]);
}

/// A swarm that has yet to go on fails for it when it does, and not before.
#[test]
fn a_swarm_that_waits_for_its_turn_fails_then_for_what_nobody_answered() {
    const FIRST: &str =
        "if test -e second; then touch begun; until test -e release; do sleep 0.1; done; else touch second; exit 1; fi";
    let first = format!("concurrency 1\n    task first {{ run \"{FIRST}\"; retry 1 backoff=\"1s\" }}\n    task go");
    let place = Place::new(&spec("on-timeout fail after=\"1s\"").replace("task go", &first));
    let (mut child, _) = place.until(&["run", "flow.kdl"], "takao wants tool shell, ");
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    await_time(told(&place, "approval_asked")[0]["at"].as_u64().expect("a time") + 1_000);
    let mut resumed =
        place.command(&["resume"]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
    let deadline = Instant::now() + Duration::from_secs(60);
    while !place.work().join("begun").exists() {
        assert!(
            Instant::now() < deadline && resumed.try_wait().expect("it runs").is_none(),
            "the first task never begins"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
    place.write("release", "");
    let ended = resumed.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(ended.status.code() == Some(3) && said.contains("but no person answered in time"), "{said}");
    assert_eq!(told(&place, "approval_asked").len(), 1, "it does not go on as if it had been refused");
}
