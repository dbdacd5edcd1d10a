//! What people write to agents of a running run (seed 002, "User messages (interrupt vs queue)"), through the binary.

pub(crate) mod members;

use std::fs;
use std::time::{Duration, Instant};

use serde_json::Value;
use swarmc_endpoint::{Answer, Endpoint, Script};

use crate::cli::{Place, signal};

/// An agent whose program keeps a conversation: its first turn says what session it is, and waits for ever; a further
/// one tells what it was sent.
pub(crate) const TALKER: &str = r##"
provider talker {
    exec "sh" "-c" #"""
        said() { printf '%s\n' "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"$1\",\"session_id\":\"s-1\"}"; }
        echo '{"type":"system","subtype":"init","session_id":"s-1"}'
        if [ -z "$1" ]; then cat >first.txt; echo waits >&2; sleep 600
        else cat >second.txt; said "went on with $1"; fi
        """# "talker"
    resume-args "{session}"
    reads claude-stream-json
    provides resume
}
agent talker provider=talker { system "You talk." }
"##;

/// An agent that waits for the file `go`, and answers with what it was told; it keeps no conversation.
pub(crate) const PLAIN: &str = r##"
provider plain { exec "sh" "-c" "echo waits >&2; until [ -e go ]; do sleep 0.02; done; cat" }
agent plain provider=plain
"##;

fn records(place: &Place) -> Vec<Value> {
    let runs = fs::read_dir(place.home().join("runs")).expect("there are runs");
    let mut runs: Vec<_> = runs.map(|run| run.expect("it can be read").path()).filter(|run| run.is_dir()).collect();
    runs.sort();
    let journal = fs::read_to_string(runs.last().expect("there is one").join("journal.jsonl")).expect("a journal");
    // The last line may still be written.
    journal.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

pub(crate) fn await_file(place: &Place, name: &str) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !place.work().join(name).exists() {
        assert!(Instant::now() < deadline, "{name} never comes");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn users_can_queue_a_message_for_the_next_turn() {
    let place = Place::new(&format!("{PLAIN}\npipeline main {{ task write {{ prompt \"Begin.\" }}\nresult write }}"));
    let (mut child, rest) = place.until(&["run", "flow.kdl"], "waits");
    let sent = place.swarmc(&["send", "last", "write", "Make", "it short"]);
    sent.expect(0, &[], &["`write` is working: its next turn reads it"]);
    place.write("go", "");
    assert!(child.wait().expect("it ends").success());
    let said = rest();
    assert!(said.contains("a person writes to write: Make it short"), "{said}");
    let shown = place.swarmc(&["logs", "last", "write"]).out;
    let second = "Begin.\n\n--- Message from the person who runs this ---\nMake it short\n--- End of message ---";
    assert!(shown.contains(second), "{shown}");
    let node: Value =
        serde_json::from_str(&place.swarmc(&["inspect", "last", "write", "--json"]).out).expect("it is JSON");
    assert_eq!(
        (&node["incoming"][0]["envelope"]["fromNodeId"], &node["incoming"][0]["read_in"]),
        (&"user".into(), &2.into())
    );
    assert_eq!(node["incoming"][0]["envelope"]["payload"]["message"], "Make it short");
}

#[test]
fn a_message_wakes_a_node_that_is_idle() {
    let spec = r##"
provider slow { exec "sh" "-c" "cat >/dev/null; touch working; until [ -e go ]; do sleep 0.02; done; echo done" }
provider quick { exec "cat" }
agent slow provider=slow
agent quick provider=quick
pipeline main {
    edges { slow -> quick }
    task slow agent=slow { prompt "Work." }
    task quick agent=quick { prompt "Read." }
    result quick
}
"##;
    let place = Place::new(spec);
    let (mut child, rest) = place.until(&["run", "flow.kdl"], "quick: waits for envelopes");
    place.swarmc(&["send", "last", "quick", "Are you there?"]).expect(0, &[], &["the next turn of `quick` reads it"]);
    let deadline = Instant::now() + Duration::from_secs(60);
    let taken = |record: &Value| record["event"] == "attempt_ended" && record["attempt"] == 2;
    while !records(&place).iter().any(taken) {
        assert!(Instant::now() < deadline, "it takes no turn");
    }
    place.write("go", "");
    assert!(child.wait().expect("it ends").success(), "{}", rest());
    place.swarmc(&["inspect", "last", "quick"]).expect(0, &["user (turn 2): Are you there?"], &[]);
}

#[test]
fn users_can_interrupt_a_node_which_goes_on_in_its_conversation() {
    let place = Place::new(&format!("{TALKER}\npipeline main {{ task talk {{ prompt \"Begin.\" }}\nresult talk }}"));
    let (mut child, rest) = place.until(&["run", "flow.kdl"], "waits");
    let sent = place.swarmc(&["send", "last", "talk", "--interrupt", "Stop, and sing."]);
    sent.expect(0, &[], &["`talk` is interrupted, and goes on with it"]);
    assert!(child.wait().expect("it ends").success(), "{}", rest());
    let outputs = place.home().join("outputs");
    let output = fs::read_dir(outputs).expect("there are some").flatten().next().expect("there is one").path();
    assert_eq!(fs::read_to_string(output.join("talk.txt")).expect("it answered"), "went on with s-1");
    let second = fs::read_to_string(place.work().join("second.txt")).expect("it was asked again");
    assert_eq!(second, "--- Message from the person who runs this ---\nStop, and sing.\n--- End of message ---");
    let said = rest();
    for part in ["a person interrupts talk: Stop, and sing.", "talk: interrupted after "] {
        assert!(said.contains(part), "{part}: {said}");
    }
    // Both are facts of the log, and the whole prompt is kept for whoever looks later.
    let records = records(&place);
    let sent = records.iter().find(|record| record["event"] == "sent").expect("it is recorded");
    assert_eq!((&sent["letter"]["person"], &sent["letter"]["interrupts"]), (&true.into(), &true.into()));
    let ended = records.iter().find(|record| record["event"] == "attempt_ended").expect("it is recorded");
    assert_eq!((&ended["failure"]["cause"], &ended["session"]), (&"interrupted".into(), &"s-1".into()));
    let node: Value =
        serde_json::from_str(&place.swarmc(&["inspect", "last", "talk", "--json"]).out).expect("it is JSON");
    assert_eq!(node["prompts"][1]["effective"]["delta"], true, "{node}");
}

/// What an interrupted turn had read has been said in its conversation; another one is told all of it.
#[test]
fn an_interrupted_turn_that_fails_is_tried_again_with_all_that_it_has_read() {
    let spec = r##"
provider talker {
    exec "sh" "-c" #"""
        told() { printf '%s\n' "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"done\",\"session_id\":\"$1\"}"; }
        if [ -n "$1" ]; then cat >second.txt; exit 1; fi
        if [ -e first.txt ]; then cat >third.txt; told s-2; exit; fi
        echo '{"type":"system","subtype":"init","session_id":"s-1"}'
        cat >first.txt; echo waits >&2; sleep 600
        """# "talker"
    resume-args "{session}"
    reads claude-stream-json
    provides resume
}
provider asker { script { answer "{\"swarm\": \"send_handoff\", \"to\": \"talk\", \"message\": \"the EU first\"}" } }
agent talker provider=talker
agent asker provider=asker
pipeline main {
    edges { ask -> talk }
    task ask agent=asker { prompt "Ask." }
    task talk agent=talker { retry 1; prompt "Begin.\n<<inbox>>" }
    result talk
}
"##;
    let place = Place::new(spec);
    let (mut child, rest) = place.until(&["run", "flow.kdl"], "waits");
    place.swarmc(&["send", "last", "talk", "-i", "Be brief"]).expect(0, &[], &["`talk` is interrupted"]);
    assert!(child.wait().expect("it ends").success(), "{}", rest());
    let read = |name: &str| fs::read_to_string(place.work().join(name)).expect("it was asked");
    assert!(read("first.txt").contains("the EU first"));
    assert!(!read("second.txt").contains("the EU first") && read("second.txt").contains("Be brief"));
    assert!(read("third.txt").contains("the EU first") && read("third.txt").contains("Be brief"));
}

/// Another agent mends what failed: there is nothing to interrupt, and nothing that it has not read is lost.
#[test]
fn who_mends_a_task_is_not_interrupted_for_it() {
    let spec = r##"
provider coder { exec "sh" "-c" "cat >told.txt; test -e ok" }
provider mender {
    exec "sh" "-c" #"""
        echo '{"type":"system","subtype":"init","session_id":"m-1"}'
        cat >/dev/null; echo waits >&2; until [ -e go ]; do sleep 0.02; done; touch ok
        printf '%s\n' '{"type":"result","subtype":"success","is_error":false,"result":"mended","session_id":"m-1"}'
        """# "mender"
    resume-args "{session}"
    reads claude-stream-json
    provides resume
}
agent coder provider=coder
agent mender provider=mender
pipeline main { task work agent=coder { on-failure fix agent=mender; prompt "Work." }
result work }
"##;
    let place = Place::new(spec);
    let (mut child, rest) = place.until(&["run", "flow.kdl"], "waits");
    place.swarmc(&["send", "last", "work", "-i", "Mind the EU"]).expect(0, &[], &["its next turn reads it"]);
    place.write("go", "");
    assert!(child.wait().expect("it ends").success(), "{}", rest());
    let told = fs::read_to_string(place.work().join("told.txt")).expect("it was asked");
    assert!(told.contains("Work.") && told.contains("Mind the EU"), "{told}");
}

#[test]
fn what_cannot_be_interrupted_reads_it_after_its_turn() {
    let place = Place::new(&format!("{PLAIN}\npipeline main {{ task write {{ prompt \"Begin.\" }}\nresult write }}"));
    let (mut child, rest) = place.until(&["run", "flow.kdl"], "waits");
    let sent = place.swarmc(&["send", "last", "write", "-i", "Now!"]);
    sent.expect(0, &[], &["reads it as soon as it can be interrupted, or else in its next turn"]);
    place.write("go", "");
    assert!(child.wait().expect("it ends").success(), "{}", rest());
    place.swarmc(&["inspect", "last", "write"]).expect(0, &["user (turn 2): Now!"], &[]);
}

#[test]
fn an_interrupt_outlives_a_runner_that_is_killed() {
    let place = Place::new(&format!(
        "{TALKER}\npipeline main {{ task talk {{ prompt \"Begin.\"; survive #false }}\nresult talk }}"
    ));
    let (mut child, rest) = place.until(&["run", "flow.kdl"], "waits");
    place.swarmc(&["send", "last", "talk", "Later"]).expect(0, &[], &["its next turn reads it"]);
    signal(&child, "KILL");
    child.wait().expect("it ends");
    drop(rest);
    fs::remove_file(place.work().join("first.txt")).expect("it was asked");
    let (mut child, rest) = place.until(&["resume", "last"], "waits");
    await_file(&place, "first.txt");
    let first = fs::read_to_string(place.work().join("first.txt")).expect("it was asked again");
    assert!(first.contains("Begin.") && first.contains("\nLater\n"), "{first}");
    place.swarmc(&["send", "last", "talk", "-i", "Now"]).expect(0, &[], &["is interrupted"]);
    assert!(child.wait().expect("it ends").success(), "{}", rest());
}

#[test]
fn a_model_hears_it_between_two_requests() {
    let wait = "touch working; until [ -e go ]; do sleep 0.02; done";
    let call = Answer::call("shell", serde_json::json!({ "command": wait }));
    let script = Script::new().otherwise([call, Answer::text("fine")]);
    let endpoint = Endpoint::start(script);
    let place = Place::new(&format!(
        "provider p {{ llm openai base-url=\"{}\" model=scripted; provides tools }}\n\
         agent a provider=p {{ tools shell; can run-commands }}\n\
         pipeline main {{ task work {{ prompt \"Work.\" }}\nresult work }}\n",
        endpoint.url()
    ));
    let (mut child, rest) = place.until(&["run", "flow.kdl"], "work");
    await_file(&place, "working");
    let sent = place.swarmc(&["send", "last", "work", "-i", "And be quick"]);
    sent.expect(0, &[], &["as soon as it can be interrupted"]);
    place.write("go", "");
    assert!(child.wait().expect("it ends").success(), "{}", rest());
    let prompts = endpoint.prompts();
    assert_eq!(prompts.len(), 2, "no further turn is needed");
    assert_eq!(prompts[1].user, ["Work.", "And be quick"]);
    place.swarmc(&["inspect", "last", "work"]).expect(0, &["user (turn 1): And be quick"], &[]);
}

#[test]
fn messages_that_nobody_would_read_are_refused_with_what_to_do() {
    let spec = format!(
        "{PLAIN}\npipeline main {{\n\
         task first {{ run \"true\" }}\n\
         task early {{ depends-on first; prompt \"Begin.\"}}\n\
         task each {{ for-each \"[1, 2]\"; prompt \"Do <<item>>.\" }}\n\
         loop polish max=2 {{ task draft {{ prompt \"Draft.\" }}\nuntil \"true\" }}\n}}"
    );
    let place = Place::new(&spec);
    let (mut child, rest) = place.until(&["run", "flow.kdl"], "waits");
    for (to, text, problem) in [
        ("nobody", "x", "there is no `nobody`: you can write to `draft`, `early`"),
        ("first", "x", "`first` reads no messages: it has no agent"),
        ("each", "x", "`each` is not a single agent: it contains other steps"),
        ("polish", "x", "`polish` is not a single agent"),
        ("early", "  ", "the message is empty"),
    ] {
        place.swarmc(&["send", "last", to, text]).expect(2, &[], &[problem]);
    }
    let mut long = place.command(&["send", "last", "early"]);
    place.write("long.txt", &"x".repeat(70_000));
    long.stdin(fs::File::open(place.work().join("long.txt")).expect("it can be read"));
    let ended = crate::cli::Ended::from(long.output().expect("swarmc starts"));
    ended.expect(2, &[], &["at most 65536 are allowed"]);
    place.swarmc(&["send", "last", "polish/draft", "Hello"]).expect(0, &[], &[]);
    place.write("go", "");
    assert!(child.wait().expect("it ends").success(), "{}", rest());
    place.swarmc(&["send", "last", "early", "x"]).expect(2, &[], &["has ended: it accepts no messages"]);
}

/// The session that its own agent has begun is not that of the agent which takes its turn.
#[test]
fn a_fallback_that_keeps_no_conversation_is_not_interrupted() {
    let spec = r##"
provider first {
    exec "sh" "-c" #"""
        cat >/dev/null
        echo '{"type":"system","subtype":"init","session_id":"s-1"}'
        echo '{"type":"result","subtype":"error","is_error":true,"result":"API Error: 529 overloaded","session_id":"s-1"}'
        """# "first"
    resume-args "{session}"
    reads claude-stream-json
    provides resume
}
provider second { exec "sh" "-c" "cat >>told.txt; echo waits >&2; until [ -e go ]; do sleep 0.02; done; echo done" }
agent first provider=first { fallback second }
agent second provider=second
pipeline main { task work agent=first { prompt "Work." }
result work }
"##;
    let place = Place::new(spec);
    let (mut child, rest) = place.until(&["run", "flow.kdl"], "waits");
    let sent = place.swarmc(&["send", "last", "work", "-i", "Mind the EU"]);
    sent.expect(0, &[], &["reads it as soon as it can be interrupted, or else in its next turn"]);
    place.write("go", "");
    assert!(child.wait().expect("it ends").success(), "{}", rest());
    let failed = |record: &Value| !record["failure"].is_null();
    assert!(!records(&place).iter().any(failed), "its turn has come to its end");
    place.swarmc(&["inspect", "last", "work"]).expect(0, &["user (turn 2): Mind the EU"], &[]);
}

/// Seed 002: packs can be appended to while the run goes on. A replay appends the same at the same point.
#[test]
fn a_person_appends_to_a_context_pack() {
    let spec = r##"
provider slow { exec "sh" "-c" "cat >/dev/null; touch working; until [ -e go ]; do sleep 0.02; done; echo done" }
provider quick { exec "cat" }
agent slow provider=slow
agent quick provider=quick
context-pack base { constraint offline #true }
context-pack impl { merge base }
context-pack other { constraint small #true }
pipeline main {
    task slow agent=slow { prompt "Work." }
    task quick agent=quick { depends-on slow; prompt "Read." context=impl }
    task beside agent=quick { depends-on slow; prompt "Read." context=other }
    result quick
}
"##;
    let place = Place::new(spec);
    let (mut child, rest) = place.until(&["run", "flow.kdl", "--record", "recorded"], "slow: started");
    place.swarmc(&["send", "last", "context:none", "x"]).expect(2, &[], &["it has `context:base`, `context:impl`"]);
    let limit = "x".repeat(4_001);
    place.swarmc(&["send", "last", "context:impl", &limit]).expect(2, &[], &["may have 4000 characters"]);
    let said = ["each attempt that begins from now on and reads `impl` reads it"];
    place.swarmc(&["send", "last", "context:impl", "Keep the API"]).expect(0, &[], &said);
    // What a merged pack has gained, the pack that merges it has as well.
    place.swarmc(&["send", "last", "context:base", "Use", "no network"]).expect(0, &[], &[]);
    place.write("go", "");
    assert!(child.wait().expect("it ends").success());
    let lines = rest();
    assert!(lines.contains("a person appends to impl: Keep the API"), "{lines}");
    let prompt = |step: &str| place.swarmc(&["logs", "last", step]).out;
    let appended = r#""appended":["Keep the API","Use no network"]"#;
    assert!(prompt("quick").contains(appended) && !prompt("beside").contains("appended"), "{}", prompt("quick"));
    let replayed = place.swarmc(&["run", "flow.kdl", "--replay", "recorded"]);
    replayed.expect(0, &[appended], &[", and everything is as recorded"]);
}
