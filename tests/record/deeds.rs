//! Recordings of runs in which agents hand over: a replay has the same envelopes arrive in the same turns, whoever was
//! faster, whoever was killed, and whatever somebody did to the recording is told.

use std::fs;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::cli::{Ended, Place};
use crate::examples::edit;
use crate::specs::{Project, texts};

use super::are_alike;

const SPEC: &str = "specs/handoffs/handoffs.kdl";

const SAME: &str = ", and everything is as recorded";

/// swarmc with these arguments, where its processes find it.
fn command(place: &Place, arguments: &[&str]) -> Command {
    let binary = Path::new(env!("CARGO_BIN_EXE_swarmc")).parent().expect("it lies in a folder");
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap_or_default());
    let mut command = place.command(arguments);
    command.env("PATH", path);
    command
}

fn swarmc(place: &Place, arguments: &[&str]) -> Ended {
    Ended::from(command(place, arguments).output().expect("swarmc starts"))
}

/// Two coders hand over while others do, and fail once; a third reads what comes when it comes.
const RACE: &str = r##"
workflow race { default main }
pipeline main {
    concurrency 4
    edges { one -> reader max=9; two -> reader max=9; reader -> one; reader -> two }
    task one {
        retry 2 backoff="1ms"
        run "sh" "-c" #"""
            for n in 1 2 3; do swarmc agent send-handoff --to reader --message "one $n of $SWARM_ATTEMPT" >/dev/null; done
            test $SWARM_ATTEMPT != 1 || exit 1; echo one
            """#
    }
    task two {
        run "sh" "-c" #"""
            for n in 1 2 3; do swarmc agent send-handoff --to reader --message "two $n" --priority high >/dev/null; done
            swarmc agent send-handoff --to nobody --message x 2>/dev/null; echo two
            """#
    }
    task reader { retry 1 backoff="1ms"; stdin "<<inbox>>"; run "sh" "-c" "cat; echo; pwd; test $SWARM_ATTEMPT != 1" }
    result reader
}
"##;

#[test]
fn a_race_of_those_who_hand_over_replays_as_it_was() {
    for round in 0..4 {
        let place = Place::new(RACE);
        swarmc(&place, &["run", "flow.kdl", "--record", "r"]).expect(0, &[], &[]);
        let recording = texts(&place.work().join("r")).into_values().collect::<String>();
        assert!(!recording.contains(&*place.work().to_string_lossy()), "{recording}");
        assert!(!recording.contains("SWARM_TOKEN") && !recording.contains("agents.sock"), "{recording}");
        for _ in 0..3 {
            let replayed = place.swarmc(&["run", "flow.kdl", "--replay", "r"]);
            assert!(replayed.err.contains(SAME), "round {round}: {replayed:#?}\n{recording}");
            are_alike(&place.home());
        }
    }
}

#[test]
fn an_edited_prompt_of_one_node_is_a_diff_and_nothing_else() {
    let project = Project::new();
    project.done(&["run", SPEC, "--record", "recorded"]);
    edit(&project, "specs/handoffs/prompts/reviewer.md", "Hand back what is not good enough", "Hand back what is bad");
    let replayed = project.swarmc(&["run", SPEC, "--replay", "recorded", "-q"]);
    assert_eq!(replayed.status.code(), Some(3));
    let out = String::from_utf8_lossy(&replayed.stdout);
    let changed: Vec<&str> = out.lines().filter(|line| line.starts_with(['-', '+', '@'])).collect();
    assert_eq!(changed.len(), 5, "{out}");
    assert_eq!((changed[0], changed[1]), ("--- recorded", "+++ now"), "{out}");
    assert!(
        changed[3].starts_with("-Hand back what is not") && changed[4].starts_with("+Hand back what is bad"),
        "{out}"
    );
    let err = String::from_utf8_lossy(&replayed.stderr);
    assert!(err.contains("error: `reviewer`: the prompt differs from the recording\n"), "{err}");
    // Nobody can hand over any more what was handed over then.
    edit(&project, "specs/handoffs/prompts/reviewer.md", "Hand back what is bad", "Hand back what is not good enough");
    edit(&project, SPEC, "carries=Assignment response=required", "response=required max=1");
    project.done(&["run", SPEC, "--replay", "recorded", "-q"]);
    edit(&project, SPEC, "parser <-> reviewer max=6", "parser <-> reviewer max=1");
    let replayed = project.swarmc(&["run", SPEC, "--replay", "recorded", "-q"]);
    let err = String::from_utf8_lossy(&replayed.stderr);
    let told = "error: the envelope of `parser` (attempt 2) to `reviewer` cannot be sent now (recording.jsonl:";
    assert!(
        err.contains(told) && err.contains("): you have sent `reviewer` 1 envelopes, which is the limit\n"),
        "{err}"
    );
}

/// A lead that has a helper started, if somebody agrees.
fn spawning(policy: &str) -> Place {
    Place::new(&format!(
        r##"
{policy}
provider local {{
    script {{
        answer #"{{"swarm": "spawn_node", "to": "helper", "message": "Look at the EU"}}"# task=lead attempt=1
        answer "the lead goes on" task=lead
        answer #"{{"swarm": "send_handoff", "to": "lead", "message": "The EU it is"}}"# task=helper
        answer "summed up" task=last
    }}
}}
agent lead provider=local {{ can spawn }}
agent helper provider=local
pipeline main {{
    edges {{ lead -> helper kind=spawn response=required; helper -> lead }}
    task lead agent=lead {{ prompt "Plan." }}
    task helper agent=helper {{ prompt "Help.\n<<inbox>>" }}
    task last agent=helper {{ depends-on lead; prompt "Sum up:\n<<output:helper | default:nothing>>" }}
    result last
}}
"##
    ))
}

/// Answers as soon as there is something to answer.
fn answer(place: &Place, arguments: &[&str]) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while place.swarmc(arguments).code != Some(0) {
        assert!(Instant::now() < deadline, "{arguments:?} is never taken");
        std::thread::yield_now();
    }
}

fn replays(place: &Place) {
    for _ in 0..2 {
        let replayed = place.swarmc(&["run", "flow.kdl", "--replay", "r"]);
        assert!(replayed.err.contains(SAME), "{replayed:#?}");
        are_alike(&place.home());
    }
}

#[test]
fn who_is_started_and_who_is_not_is_as_somebody_said() {
    for said in [["allow", "--because=do"], ["deny", "--because=no need"]] {
        let place = spawning("policy { spawn human }");
        let (mut child, rest) = place.until(&["run", "flow.kdl", "--record", "r"], "1 allow|always|deny");
        answer(&place, &["approve", "last", "1", said[0], said[1]]);
        assert!(child.wait().expect("it ends").success(), "{}", rest());
        replays(&place);
    }
    // Where nobody had said it in time, nobody is waited for.
    for then in ["approve", "deny"] {
        let place = spawning(&format!("policy {{ spawn human; on-timeout {then} after=\"300ms\" }}"));
        place.swarmc(&["run", "flow.kdl", "--record", "r"]).expect(0, &[], &["as no person answered in time"]);
        replays(&place);
    }
    // Where the policy said it, it says it again, with somebody there or not.
    for unattended in ["approve", "deny"] {
        let place = spawning(&format!("policy {{ spawn human; unattended {unattended} }}"));
        place.swarmc(&["run", "flow.kdl", "--record", "r", "--headless"]).expect(0, &[], &[]);
        replays(&place);
    }
    let place = spawning("");
    place.swarmc(&["run", "flow.kdl", "--record", "r"]).expect(0, &[], &[]);
    replays(&place);
}

/// An attempt that a killed runner had begun is told of where it begins once more: what it asked for before stays
/// asked.
#[test]
fn what_a_killed_turn_asked_for_is_in_the_recording() {
    let swarmc = env!("CARGO_BIN_EXE_swarmc");
    let ask = format!(
        "{swarmc} agent spawn-node --to helper --message 'Look at the EU'; \
         {swarmc} agent request-help --message 'Which port?'; echo >>asked; until [ -e go ]; do sleep 0.02; done"
    );
    let place = Place::new(&format!(
        r##"
policy {{ spawn human }}
provider program {{ exec "sh" "-c" "cat >prompt; if [ ! -e go ]; then {ask}; fi; echo planned" }}
provider other {{ exec "sh" "-c" "cat >prompt; echo helped" }}
agent lead provider=program {{ can spawn }}
agent helper provider=other
pipeline main {{
    edges {{ lead -> helper kind=spawn; helper -> lead }}
    task lead agent=lead {{ prompt "Plan."; survive #false }}
    task helper agent=helper {{ prompt "Help.\n<<inbox>>" }}
    result lead
}}
"##
    ));
    let asked = |times: usize| {
        let deadline = Instant::now() + Duration::from_secs(60);
        while fs::read_to_string(place.work().join("asked")).unwrap_or_default().lines().count() < times {
            assert!(Instant::now() < deadline, "it is never asked");
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    let (mut child, rest) = place.until(&["run", "flow.kdl", "--record", "r"], "wants help");
    asked(1);
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
    drop(rest);
    let (mut child, rest) = place.until(&["resume", "last"], "resumed");
    asked(2);
    answer(&place, &["approve", "last", "1", "allow"]);
    answer(&place, &["approve", "last", "2", "allow", "--because", "8080"]);
    place.write("go", "");
    assert!(child.wait().expect("it ends").success(), "{}", rest());
    for _ in 0..2 {
        let listed = |what: &str| place.swarmc(&["inspect", "last", what]).expect(0, &[], &[]).out;
        let (lead, helper) = (listed("lead"), listed("helper"));
        assert!(lead.contains("a person says: 8080") && helper.contains("Look at the EU"), "{lead}\n{helper}");
        place.swarmc(&["run", "flow.kdl", "--replay", "r"]).expect(0, &[], &[SAME]);
    }
}

#[test]
fn whoever_goes_in_circles_goes_on_or_not_as_somebody_said() {
    const CIRCLES: &str = r##"
provider recorded {
    script {
        answer "You?\n{\"swarm\": \"send_handoff\", \"to\": \"pong\", \"message\": \"Your turn\"}" task=ping
        answer "No, you.\n{\"swarm\": \"send_handoff\", \"to\": \"ping\", \"message\": \"Your turn\"}" task=pong
    }
}
agent any provider=recorded
pipeline main {
    edges { ping <-> pong max=8 }
    task ping { prompt "Decide" }
    task pong { prompt "Decide:\n<<inbox>>"; stall 0 }
    result pong
}
"##;
    let place = Place::new(CIRCLES);
    let (child, rest) = place.until(&["run", "flow.kdl", "--record", "r"], "1 allow|always|deny");
    answer(&place, &["approve", "last", "1", "allow"]);
    answer(&place, &["approve", "last", "2", "deny", "--because", "enough"]);
    let ended = child.wait_with_output().expect("it ends");
    assert_eq!(ended.status.code(), Some(3), "{}", rest());
    replays(&place);
    for (then, code) in [("approve", 0), ("deny", 3)] {
        let place = Place::new(&format!("policy {{ on-timeout {then} after=\"100ms\" }}\n{CIRCLES}"));
        place.swarmc(&["run", "flow.kdl", "--record", "r"]).expect(code, &[], &["as no person answered in time"]);
        replays(&place);
    }
    let place = Place::new(&format!("policy {{ unattended approve }}\n{CIRCLES}"));
    place.swarmc(&["run", "flow.kdl", "--record", "r", "--headless"]).expect(0, &[], &[]);
    replays(&place);
}

/// Somebody who says how far it is, tells everybody, and needs help.
const ASKER: &str = r##"
provider recorded {
    script {
        answer file="asker.md" task=asker attempt=1
        answer "Thank you." task=asker
        answer "Noted."
    }
}
agent any provider=recorded
pipeline main {
    edges { asker -> one; asker -> two }
    task asker agent=any { prompt "Do it" }
    task one agent=any { prompt "Read:\n<<inbox>>" }
    task two agent=any { prompt "Read:\n<<inbox>>" }
    result asker
}
"##;

#[test]
fn what_agents_report_and_ask_people_for_is_in_the_recording() {
    let place = |policy: &str| {
        let place = Place::new(&format!("{policy}\n{ASKER}"));
        place.write(
            "asker.md",
            "{\"swarm\": \"report_status\", \"progress\": {\"steps_completed\": 1, \"total_steps\": 2}}\n\
             {\"swarm\": \"broadcast\", \"type\": \"update\", \"content\": \"Begun\"}\n\
             {\"swarm\": \"report_status\", \"message\": \"Nearly there\"}\n\
             {\"swarm\": \"request_help\", \"message\": \"Which port?\"}\n",
        );
        place
    };
    for said in [["allow", "--because=8080"], ["deny", "--because=find out"]] {
        let place = place("");
        let (mut child, rest) = place.until(&["run", "flow.kdl", "--record", "r"], "wants help");
        answer(&place, &["approve", "last", "1", said[0], said[1]]);
        assert!(child.wait().expect("it ends").success(), "{}", rest());
        let recording = fs::read_to_string(place.work().join("r/recording.jsonl")).expect("a recording");
        for kind in ["\"event\":\"status_reported\"", "\"wants\":\"help\"", "\"event\":\"approval_answered\""] {
            assert!(recording.contains(kind), "{kind}: {recording}");
        }
        replays(&place);
        for (from, to, expected) in [
            ("Nearly there", "x".repeat(5_000), "`message` has 5000 characters"),
            ("Which port?", "x".repeat(5_000), "a request for help must have from 1 to 4000 characters"),
        ] {
            fs::write(place.work().join("r/recording.jsonl"), recording.replacen(from, &to, 1)).expect("it is written");
            let damaged = place.swarmc(&["run", "flow.kdl", "--replay", "r"]).expect(2, &[], &[expected]);
            assert!(damaged.err.contains("the recording is damaged: "), "{damaged:#?}");
        }
    }
    for then in ["approve", "deny"] {
        let place = place(&format!("policy {{ on-timeout {then} after=\"300ms\" }}"));
        place.swarmc(&["run", "flow.kdl", "--record", "r"]).expect(0, &[], &["as no person answered in time"]);
        replays(&place);
    }
    for unattended in ["approve", "deny"] {
        let place = place(&format!("policy {{ unattended {unattended} }}"));
        place.swarmc(&["run", "flow.kdl", "--record", "r", "--headless"]).expect(0, &[], &[]);
        replays(&place);
    }
}

#[test]
fn what_turns_changed_and_what_they_said_of_folders_is_in_the_recording() {
    let place = Place::new(
        r##"
secret key env=SECRET_TOKEN
provider local { script { answer "read" } }
agent any provider=local
context-pack changes { goal "Look"; artifacts kind=diff from=writer; inputs writer }
pipeline main {
    edges { writer -> reader }
    task writer {
        env key
        run "sh" "-c" #"""
            echo "in $PWD" >notes.txt
            swarmc agent send-handoff --to reader --artifact notes.txt \
                --message "See $PWD/notes.txt with $SECRET_TOKEN in $SWARM_RUN"
            """#
    }
    task reader agent=any { depends-on writer; prompt "Look:\n<<inbox>>" context=changes }
    result reader
}
"##,
    );
    let mut recorded = command(&place, &["run", "flow.kdl", "--record", "r"]);
    let recorded = recorded.env("SECRET_TOKEN", super::SECRET).output().expect("swarmc starts");
    assert!(recorded.status.success(), "{recorded:?}");
    let recording = texts(&place.work().join("r")).into_values().collect::<String>();
    assert!(!recording.contains(super::SECRET) && !recording.contains(&*place.work().to_string_lossy()), "{recording}");
    assert!(recording.contains("See ⟦workspace⟧/notes.txt with ⟦secret:SECRET_TOKEN⟧ in ⟦id⟧"), "{recording}");
    assert!(recording.contains("\"kind\":\"diff\"") && recording.contains("+in ⟦workspace⟧"), "{recording}");
    fs::remove_file(place.work().join("notes.txt")).expect("it was written");
    replays(&place);
    assert!(!place.work().join("notes.txt").exists(), "nothing is started");
}

/// Starts swarmc, and kills it a while later.
fn killed(project: &Project, arguments: &[&str], most: Duration) {
    let mut command = project.command(arguments);
    let mut child: Child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("swarmc starts");
    let fraction = f64::from(RandomState::new().build_hasher().finish() as u32) / f64::from(u32::MAX);
    std::thread::sleep(most.mul_f64(fraction));
    child.kill().expect("a child can be killed");
    child.wait().expect("a child can be waited for");
}

#[test]
fn a_run_that_is_killed_and_resumed_has_one_recording() {
    let project = Project::new();
    let started = Instant::now();
    project.done(&["run", SPEC, "--record", "recorded"]);
    let duration = started.elapsed();
    for _ in 0..6 {
        let project = Project::new();
        killed(&project, &["run", SPEC, "--record", "recorded"], duration);
        for _ in 0..2 {
            killed(&project, &["resume", "last"], duration);
        }
        // It may have ended, or never begun.
        let resumed = project.swarmc(&["resume", "last"]);
        if !project.root().join("recorded").exists() {
            let err = String::from_utf8_lossy(&resumed.stderr).into_owned();
            assert!(!project.home().join("runs").exists() || err.contains("no run "), "{err}");
            continue;
        }
        for _ in 0..2 {
            let replayed = project.swarmc(&["run", SPEC, "--replay", "recorded"]);
            let err = String::from_utf8_lossy(&replayed.stderr);
            let recording = fs::read_to_string(project.root().join("recorded/recording.jsonl")).expect("a recording");
            assert!(err.contains(SAME), "{err}\n{recording}");
        }
        // A turn that starts again may read at once what the reviewer misses, which saves a message: none is there
        // twice.
        let recording = fs::read_to_string(project.root().join("recorded/recording.jsonl")).expect("a recording");
        let lines = recording.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let mut sent: Vec<String> = lines
            .filter(|line| line["event"] == "sent" && line["from"].is_object())
            .map(|line| {
                let envelope = &line["letter"]["content"]["json"];
                format!("{} to {}: {}", line["from"], envelope["toNodeId"], envelope["payload"])
            })
            .collect();
        assert!((7..=8).contains(&sent.len()), "{sent:#?}");
        let all = sent.len();
        sent.sort();
        sent.dedup();
        assert_eq!(sent.len(), all, "{sent:#?}");
    }
}

/// In a recording of a run that was killed, what a turn sent may stand before its beginning. Nobody's time is over
/// then: a replay that waited for the end of the hour that the budget gives had nobody left to write to.
#[test]
fn what_was_sent_before_its_turn_began_anew_is_replayed() {
    let project = Project::new();
    project.done(&["run", SPEC, "--record", "recorded"]);
    let path = project.root().join("recorded/recording.jsonl");
    let recording = fs::read_to_string(&path).expect("a recording");
    let mut lines: Vec<&str> = recording.lines().collect();
    let find_line = |event: &str, step: &str, lines: &[&str]| {
        let found = lines.iter().position(|line| {
            let line: Value = serde_json::from_str(line).expect("a line is JSON");
            line["event"] == event && line[step]["name"] == "parser"
        });
        found.expect("it is there")
    };
    let (first, second) = (find_line("attempt_started", "step", &lines), find_line("sent", "from", &lines));
    let line = lines.remove(first);
    // Behind the first envelope that it sent, which has moved up.
    lines.insert(second, line);
    fs::write(&path, lines.join("\n") + "\n").expect("a recording can be written");
    let replayed = project.swarmc(&["run", SPEC, "--replay", "recorded"]);
    let err = String::from_utf8_lossy(&replayed.stderr);
    assert!(first < second && err.contains(SAME), "{err}");
}

#[test]
fn damaged_handoffs_are_told_with_their_line() {
    let place = Place::new(
        r##"
workflow w
provider local {
    script {
        answer "{\"swarm\": \"send_handoff\", \"to\": \"two\", \"message\": \"Hello\"}" task=one
        answer "done"
    }
}
agent any provider=local
pipeline p {
    edges { one -> two }
    task one agent=any { prompt "Begin" }
    task two agent=any { prompt "<<inbox>>" }
}
"##,
    );
    place.swarmc(&["run", "flow.kdl", "--record", "r", "-q"]).expect(0, &[], &[]);
    let path = place.work().join("r/recording.jsonl");
    let whole = fs::read_to_string(&path).expect("a recording");
    let lines: Vec<&str> = whole.lines().collect();
    let at = lines.iter().position(|line| line.contains("\"event\":\"sent\"")).expect("something was sent");
    let number = at + 1;
    let with = |line: &str| {
        let mut changed: Vec<&str> = lines.clone();
        changed[at] = line;
        format!("{}\n", changed.join("\n"))
    };
    let long = "x".repeat(5_000);
    let vast = "x".repeat(1 << 20);
    for (from, to, code, expected) in [
        // What no recording can hold is told before anything happens.
        ("\"id\":\"e", "\"id\":\"x", 2, "an id of an envelope is `e` and a number"),
        ("\"fromNodeId\":\"one\"", "\"fromNodeId\":\"two\"", 2, "does not name its sender `one`"),
        ("\"createdAt\":\"2", "\"createdAt\":\"x", 2, "has no valid time"),
        ("\"message\":\"Hello\"", "\"message\":\"\"", 2, "is empty"),
        ("\"message\":\"Hello\"", &format!("\"message\":\"{vast}\""), 2, "is too long"),
        ("\"message\":\"Hello\"", "\"message\":\"Hello\",\"more\":1", 2, "unknown field `more`"),
        // What this workflow cannot hand over, when it would.
        ("\"toNodeId\":\"two\"", "\"toNodeId\":\"three\"", 3, "no edge leads from `one` to `three`"),
        ("\"toNodeId\":\"two\"", "\"toNodeId\":\"one\"", 3, "you cannot send a handoff to yourself"),
        ("\"message\":\"Hello\"", &format!("\"message\":\"{long}\""), 3, "`message` has 5000 characters"),
        (
            "\"message\":\"Hello\"",
            "\"message\":\"Hello\",\"artifacts\":[{\"type\":\"file\",\"ref\":\"../x\"}]",
            3,
            "`../x` lies outside the run",
        ),
    ] {
        assert!(lines[at].contains(from), "`{from}` is not in {}", lines[at]);
        fs::write(&path, with(&lines[at].replacen(from, to, 1))).expect("it can be written");
        let ended = place.swarmc(&["run", "flow.kdl", "--replay", "r"]);
        let ended = ended.expect(code, &[], &[expected]);
        assert!(ended.err.contains(&format!("recording.jsonl:{number}")), "{ended:#?}");
    }
    fs::write(&path, with(&format!("{}\n{}", lines[at], lines[at]))).expect("it can be written");
    let twice = format!("recording.jsonl:{}: envelope `", number + 1);
    place.swarmc(&["run", "flow.kdl", "--replay", "r"]).expect(2, &[], &[&twice, "is there twice"]);
    // A flood is refused where the edge takes no more.
    let id = lines[at].split("\"id\":\"e").nth(1).and_then(|rest| rest.split('"').next()).expect("it has an id");
    let flood: Vec<String> = (0..10_000)
        .map(|more| lines[at].replace(&format!("\"id\":\"e{id}\""), &format!("\"id\":\"e{}\"", 1_000 + more)))
        .collect();
    fs::write(&path, with(&flood.join("\n"))).expect("it can be written");
    let most = format!("(recording.jsonl:{}): you have sent `two` 20 envelopes, which is the limit", number + 20);
    place.swarmc(&["run", "flow.kdl", "--replay", "r"]).expect(3, &[], &[&most]);
}
