//! Tasks that are only there when another one has them started (seed 002, "Spawn command routing"), through the binary.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::cli::{Place, signal};

/// A lead that has a helper started, with a payload; the helper answers it.
fn spec(policy: &str, lead: &str) -> Place {
    Place::new(&format!(
        r##"
{policy}
type Question {{ region string }}
provider local {{
    script {{
        answer #"{lead}"# task=lead attempt=1
        answer "the lead goes on" task=lead
        answer #"{{"swarm": "send_handoff", "to": "lead", "message": "The EU it is"}}"# task=helper
        answer "nobody called" task=last
    }}
}}
agent lead provider=local {{ can spawn }}
agent helper provider=local
pipeline main {{
    edges {{ lead -> helper kind=spawn carries=Question response=required; helper -> lead }}
    task lead agent=lead {{ prompt "Plan." }}
    task helper agent=helper {{ prompt "Help.\n<<inbox>>" }}
    task last agent=helper {{ depends-on lead; prompt "Sum up:\n<<output:helper | default:nothing>>" }}
    result last
}}
"##
    ))
}

const SPAWN: &str =
    r#"{"swarm": "spawn_node", "to": "helper", "message": "Look at the EU", "structured": {"region": "EU"}}"#;

fn inspected(place: &Place, step: &str) -> Value {
    serde_json::from_str(&place.swarmc(&["inspect", "last", step, "--json"]).expect(0, &[], &[]).out).expect("JSON")
}

fn await_request(place: &Place) -> String {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let listed = place.swarmc(&["approve", "last"]);
        if listed.out.contains("? 1 lead: ") {
            return listed.out;
        }
        assert!(Instant::now() < deadline, "it is never asked: {listed:?}");
    }
}

#[test]
fn a_spawn_request_is_a_payload_which_becomes_a_node() {
    let place = spec("", SPAWN);
    place.swarmc(&["run", "flow.kdl"]).expect(0, &[], &["helper: "]);
    let helper = inspected(&place, "helper");
    let first = &helper["incoming"][0]["envelope"];
    assert_eq!((&first["fromNodeId"], &first["payload"]["structured"]["region"]), (&"lead".into(), &"EU".into()));
    assert_eq!(first["payload"]["response"]["expectation"], "required");
    let answer = &inspected(&place, "lead")["incoming"][0]["envelope"];
    assert_eq!(answer["payload"]["response"]["replyTo"], first["id"]);
}

#[test]
fn nobody_is_there_who_was_not_asked_for() {
    let place = spec("", "no help needed");
    place.swarmc(&["run", "flow.kdl"]).expect(0, &["nobody called"], &["helper: skipped: no task spawned it"]);
    // Nor can anything be handed over to who is not there.
    let place = spec("", r#"{"swarm": "send_handoff", "to": "helper", "message": "Hello"}"#);
    place.swarmc(&["run", "flow.kdl"]).expect(0, &[], &["no edge leads from `lead` to `helper`"]);
    // What is spawned is of the edge's type, as everything that is handed over.
    let place = spec("", r#"{"swarm": "spawn_node", "to": "helper", "message": "Look"}"#);
    place.swarmc(&["run", "flow.kdl"]).expect(0, &[], &["this edge carries a type", "skipped: no task spawned it"]);
    let place = spec("", r#"{"swarm": "spawn_node", "to": "last", "message": "Look"}"#);
    let refused = "no edge lets `lead` spawn `last`: you can spawn `helper`";
    place.swarmc(&["run", "flow.kdl"]).expect(0, &[], &[refused]);
}

#[test]
fn the_runtime_spawns_only_after_approval() {
    let place = spec("policy { spawn human }", SPAWN);
    let (mut child, rest) = place.until(&["run", "flow.kdl"], "1 allow|always|deny");
    let listed = await_request(&place);
    for part in ["lead wants task helper", "agent  helper", "\"message\": \"Look at the EU\""] {
        assert!(listed.contains(part), "{part}: {listed}");
    }
    // Its turn is over, and what it asked for waits, also for a runner that is killed meanwhile.
    signal(&child, "KILL");
    child.wait().expect("it ends");
    drop(rest);
    let (mut child, rest) = place.until(&["resume", "last"], "1 allow|always|deny");
    place.swarmc(&["approve", "last", "1", "allow"]).expect(0, &[], &["approval 1 of run"]);
    assert!(child.wait().expect("it ends").success(), "{}", rest());
    let helper = inspected(&place, "helper");
    assert_eq!(helper["incoming"][0]["envelope"]["payload"]["message"], "Look at the EU");
    assert_eq!(helper["incoming"].as_array().map(Vec::len), Some(1));
}

/// What the lead was told in its second turn.
fn second_prompt(place: &Place) -> String {
    let run = fs::read_dir(place.home().join("runs")).expect("there are runs").flatten().map(|run| run.path());
    let run = run.filter(|path| path.is_dir()).last().expect("there is one");
    fs::read_to_string(run.join("prompts/lead.2.txt")).expect("it had another turn")
}

#[test]
fn whoever_asked_hears_that_it_was_denied() {
    let place = spec("policy { spawn human }", SPAWN);
    let (mut child, rest) = place.until(&["run", "flow.kdl"], "1 allow|always|deny");
    await_request(&place);
    place.swarmc(&["approve", "last", "1", "deny", "--because", "we know the EU"]).expect(0, &[], &[]);
    assert!(child.wait().expect("it ends").success(), "{}", rest());
    let said = "`helper` was not started: a person said no: we know the EU";
    let told = &inspected(&place, "lead")["incoming"][0]["envelope"];
    assert_eq!((&told["payload"]["message"], &told["fromNodeId"]), (&said.into(), &"user".into()));
    let prompt = second_prompt(&place);
    assert!(prompt.contains(&format!("--- Message from the person who runs this ---\n{said}\n")), "{prompt}");
}

/// A lead whose turn goes on after it has asked, until there is a file `go`; what it was told lies in `receipts`.
fn patient() -> Place {
    let ask = format!("{} agent spawn-node --to helper --message 'Look at the EU'", env!("CARGO_BIN_EXE_swarmc"));
    Place::new(&format!(
        r##"
policy {{ spawn human }}
provider program {{
    exec "sh" "-c" "cat >prompt; {ask} >>receipts; until [ -e go ]; do sleep 0.02; done; echo planned"
}}
agent lead provider=program {{ can spawn }}
pipeline main {{
    edges {{ lead -> helper kind=spawn; helper -> lead }}
    task lead agent=lead {{ prompt "Plan."; survive #false }}
    task helper agent=lead {{ prompt "Help.\n<<inbox>>" }}
    result lead
}}
"##
    ))
}

/// What the lead was told, once that is so many receipts.
fn receipts(place: &Place, count: usize) -> String {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let receipts = fs::read_to_string(place.work().join("receipts")).unwrap_or_default();
        if receipts.matches('}').count() == count {
            return receipts;
        }
        assert!(Instant::now() < deadline, "it does not ask {count} times: {receipts}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_denied_spawn_is_not_asked_for_again_when_its_turn_begins_again() {
    let place = patient();
    let (mut child, rest) = place.until(&["run", "flow.kdl"], "1 allow|always|deny");
    receipts(&place, 1);
    place.swarmc(&["approve", "last", "1", "deny", "--because", "we know the EU"]).expect(0, &[], &[]);
    signal(&child, "KILL");
    child.wait().expect("it ends");
    drop(rest);
    let (mut child, rest) = place.until(&["resume", "last"], "resumed");
    let receipts = receipts(&place, 2);
    let listed = place.swarmc(&["approve", "last"]);
    assert!(!listed.out.contains("lead"), "it is asked again: {listed:?}");
    let mut told = receipts.split_inclusive('}').map(str::trim);
    assert_eq!(told.next(), told.next(), "the same receipt");
    place.write("go", "");
    assert!(child.wait().expect("it ends").success(), "{}", rest());
    // The turn that began again has read why.
    let prompt = fs::read_to_string(place.work().join("prompt")).expect("it was asked");
    assert!(prompt.contains("a person said no: we know the EU"), "{prompt}");
    assert_eq!(inspected(&place, "lead")["approvals"].as_array().map(Vec::len), Some(1));
}

#[test]
fn where_nobody_can_be_asked_the_policy_decides() {
    let place = spec("policy { spawn human; unattended deny }", SPAWN);
    let ended = place.swarmc(&["run", "flow.kdl", "--headless"]);
    let said = "`helper` is not started: it needs approval, but no person can answer";
    ended.expect(0, &["nobody called"], &["helper: skipped: no task spawned it", said]);
    let place = spec("policy { spawn human; unattended approve }", SPAWN);
    place.swarmc(&["run", "flow.kdl", "--headless"]).expect(0, &[], &["lead wants task helper"]);
    assert_eq!(inspected(&place, "helper")["incoming"][0]["envelope"]["payload"]["message"], "Look at the EU");
}

#[test]
fn nobody_writes_to_a_task_that_nobody_has_had_started() {
    let place = patient();
    let (mut child, rest) = place.until(&["run", "flow.kdl"], "1 allow|always|deny");
    await_request(&place);
    place.swarmc(&["send", "last", "helper", "Look twice"]).expect(
        2,
        &[],
        &["`helper` has not started: no task has spawned it"],
    );
    // Nor is it named among those whom one can write to.
    place.swarmc(&["send", "last", "helpr", "Look twice"]).expect(2, &[], &["you can write to `lead`"]);
    place.swarmc(&["approve", "last", "1", "allow"]).expect(0, &[], &[]);
    // It has its first envelope, and no further request waits for the lead.
    place.write("go", "");
    assert!(child.wait().expect("it ends").success(), "{}", rest());
    assert_eq!(inspected(&place, "helper")["incoming"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_spawn_request_that_nobody_answers_in_time_is_the_policy_s() {
    let place = spec("policy { spawn human; on-timeout deny after=\"300ms\" }", SPAWN);
    let ended = place.swarmc(&["run", "flow.kdl"]);
    let said = ["lead wants task helper: deny, by the policy, as no person answered in time", "helper: skipped"];
    ended.expect(0, &["nobody called"], &said);
    let told = "`helper` was not started: no person approved it in time";
    // No person has said so.
    let first = &inspected(&place, "lead")["incoming"][0]["envelope"];
    assert_eq!((&first["payload"]["message"], &first["fromNodeId"]), (&told.into(), &"swarmc".into()));
    let prompt = second_prompt(&place);
    assert!(prompt.contains(&format!("--- Message from swarmc, which runs this ---\n{told}\n")), "{prompt}");
    let place = spec("policy { spawn human; on-timeout approve after=\"300ms\" }", SPAWN);
    place.swarmc(&["run", "flow.kdl"]).expect(0, &[], &["lead wants task helper: allow, by the policy, as no person"]);
    assert_eq!(inspected(&place, "helper")["incoming"][0]["envelope"]["payload"]["message"], "Look at the EU");
    assert_eq!(inspected(&place, "lead")["approvals"][0]["answer"]["by"], "timeout");
}

/// Only what is refused in time wakes whoever asked to ask again: what the policy grants goes on for as long as it is
/// asked.
#[test]
fn spawns_that_the_policy_grants_in_time_are_granted_every_time() {
    let numbers = 1..=5;
    let edges: String = numbers.clone().map(|it| format!("lead -> h{it} kind=spawn; h{it} -> lead\n")).collect();
    let tasks: String =
        numbers.map(|it| format!("task h{it} agent=helper {{ prompt \"Work:\\n<<inbox>>\" }}\n")).collect();
    let place = Place::new(&format!(
        r##"
workflow w {{ default main }}
policy {{ spawn human; on-timeout approve after="100ms" }}
provider leads {{
    exec sh -c "cat >/dev/null; echo \"{{\\\"swarm\\\": \\\"spawn_node\\\", \\\"to\\\": \\\"h$SWARM_ATTEMPT\\\", \\\"message\\\": \\\"Go\\\"}}\""
    prompt stdin
}}
provider helps {{ script {{ answer "{{\"swarm\": \"send_handoff\", \"to\": \"lead\", \"message\": \"Done\"}}" }} }}
agent lead provider=leads {{ can spawn }}
agent helper provider=helps
pipeline main {{
    edges {{
        {edges}
    }}
    task lead agent=lead {{ prompt "Have them started:\n<<inbox>>" }}
    {tasks}
}}
"##
    ));
    place.swarmc(&["run", "flow.kdl"]).expect(0, &[], &["✓ h5: succeeded"]);
}

/// Nobody hears of it twice, or it would ask for as long as it hears of it.
#[test]
fn what_the_policy_denies_wakes_nobody_who_asks_in_every_turn() {
    for (unattended, why) in [
        ("deny", "`helper` is not started: it needs approval, but no person can answer"),
        ("fail", "`lead` wants task helper, which needs approval, but no person can answer"),
    ] {
        let place = spec(&format!("policy {{ spawn human; unattended {unattended} }}"), SPAWN);
        let file = place.work().join("flow.kdl");
        let every_turn =
            fs::read_to_string(&file).expect("it was written").replace(" task=lead attempt=1", " task=lead");
        fs::write(&file, every_turn).expect("it can be written");
        place.swarmc(&["run", "flow.kdl", "--headless"]).expect(0, &["nobody called"], &[why]);
        assert_eq!(inspected(&place, "lead")["incoming"].as_array().map(Vec::len), Some(0), "{unattended}");
    }
}

#[test]
fn one_turn_asks_for_so_many_tasks_and_no_more() {
    let ask = SPAWN.replace("Look", "Look again");
    let turn: Vec<String> = (0..25).map(|number| ask.replace("again", &number.to_string())).collect();
    let place = spec("policy { spawn human; unattended deny }", "");
    let file = place.work().join("flow.kdl");
    let flood = fs::read_to_string(&file).expect("it was written");
    let flood = flood.replace("answer #\"\"# task=lead", "answer file=\"turn.md\" task=lead");
    fs::write(&file, flood).expect("it can be written");
    place.write("turn.md", &turn.join("\n"));
    place.swarmc(&["run", "flow.kdl", "--headless"]).expect(0, &["nobody called"], &[]);
    let run = fs::read_dir(place.home().join("runs")).expect("there are runs").flatten().map(|run| run.path());
    let run = run.filter(|path| path.is_dir()).last().expect("there is one");
    let journal = fs::read_to_string(run.join("journal.jsonl")).expect("it has a journal");
    assert_eq!(journal.matches("approval_asked").count(), 20, "{journal}");
}

/// Nobody is asked for ever about a task that has been skipped meanwhile.
#[test]
fn a_request_for_a_task_that_has_settled_is_over() {
    let place = Place::new(&format!(
        r##"
policy {{ spawn human }}
provider local {{ script {{ answer #"{SPAWN}"# task=lead attempt=1; answer "gone on" }} }}
agent lead provider=local {{ can spawn }}
pipeline main {{
    edges {{ lead -> helper kind=spawn }}
    task lead agent=lead {{ prompt "Plan." }}
    task first {{ run "sh" "-c" "until [ -e go ]; do sleep 0.02; done; false" }}
    task last {{ run "sh" "-c" "until [ -e end ]; do sleep 0.02; done" }}
    task helper agent=lead {{ depends-on first; prompt "Help." }}
    result lead
}}
"##
    ));
    let (mut child, rest) = place.until(&["run", "flow.kdl"], "1 allow|always|deny");
    await_request(&place);
    place.write("go", "");
    let deadline = Instant::now() + Duration::from_secs(60);
    while place.swarmc(&["approve", "last"]).out.contains("? 1 lead: ") {
        assert!(Instant::now() < deadline, "it is asked for still");
        std::thread::sleep(Duration::from_millis(10));
    }
    place.swarmc(&["approve", "last", "1", "allow"]).expect(2, &[], &["nothing"]);
    place.write("end", "");
    assert_eq!(child.wait().expect("it ends").code(), Some(3), "{}", rest());
}
