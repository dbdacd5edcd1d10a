//! `run --record` and `run --replay`: a replayed run is the recorded one, with nothing started, and where the two part
//! the difference is shown and nothing else.

mod acp;
mod deeds;
mod folders;
mod messages;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cli::{Place, signal};
use crate::examples::{answered, edit};
use crate::specs::{Project, specs, texts};
use serde_json::Value;

/// The secret of tests in which a model says it.
pub(crate) const SECRET: &str = "sk-very-secret-4711";

/// The folders of runs in a home, the oldest first.
fn runs(home: &Path) -> Vec<PathBuf> {
    let mut runs: Vec<PathBuf> =
        fs::read_dir(home.join("runs")).expect("there are runs").map(|run| run.expect("an entry").path()).collect();
    runs.sort();
    runs
}

/// The events of a run, without what is another in every run.
fn events(run: &Path) -> Vec<Value> {
    let journal = fs::read_to_string(run.join("journal.jsonl")).expect("a journal");
    let id = run.file_name().expect("a run has a name").to_string_lossy().into_owned();
    let journal = blank(journal.trim_end_matches('\0')).replace(&id, "RUN");
    let lines = journal.lines();
    let mut events: Vec<Value> = lines.map(|line| serde_json::from_str(line).expect("an event is JSON")).collect();
    // What was exchanged is in the journal of a run that is recorded only.
    events.retain(|event| event["event"] != "process_started" && event["event"] != "exchanged");
    for event in &mut events {
        let event = event.as_object_mut().expect("an event is an object");
        for field in ["seq", "at", "crc", "run", "commit"] {
            // The others keep their order.
            event.shift_remove(field);
        }
        // A digest of what names the run is another one in each.
        if let Some(letter) = event.get_mut("letter") {
            letter["said"].take();
        }
        if event.get("artifact").is_some_and(|artifact| artifact["kind"] == "contextpack") {
            event["artifact"]["content"].take();
        }
        // What a program puts out besides its answer is in no recording.
        if let Some(Value::Array(artifacts)) = event.get_mut("artifacts") {
            artifacts.retain(|artifact| artifact["kind"] == "prompt" || artifact["kind"] == "report");
            artifacts.iter_mut().for_each(|artifact| _ = artifact["content"].take());
        }
    }
    events
}

fn sorted(events: &[Value]) -> Vec<String> {
    let mut events: Vec<String> = events.iter().map(Value::to_string).collect();
    events.sort();
    events
}

/// What ended that was asked of somebody, in order: what follows from that is recorded in the same turn of the loop,
/// and several ends may come in one.
fn ends(events: &[Value]) -> Vec<String> {
    let asked = events.iter().filter(|event| event.get("exit").is_some() || event["event"] == "gate_answered");
    asked.map(|event| format!("{} {}", event["step"], event["attempt"])).collect()
}

/// A secret stays blank in a replay.
fn blank(text: &str) -> String {
    text.replace(SECRET, "⟦secret:SECRET_TOKEN⟧")
}

/// A prompt of a swarm without the seconds that were left.
fn timeless(text: &str) -> String {
    let line = |line: &str| match line.strip_prefix("Left: ").and_then(|left| left.split_once(" messages, ")) {
        Some((messages, _)) => format!("Left: {messages} messages.\n"),
        None => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

/// What happened in swarms, in order, but for when turns began: those that wait for the same begin in any order.
fn swarm_events(events: &[Value]) -> Vec<String> {
    const TOLD: [&str; 13] = [
        "swarm_started",
        "phase_entered",
        "agent_spawned",
        "agent_idled",
        "agent_finished",
        "turn_ended",
        "tool_started",
        "tool_ended",
        "message_sent",
        "data_published",
        "action_refused",
        "help_requested",
        "swarm_finished",
    ];
    let of_swarms = events.iter().filter(|event| TOLD.iter().any(|told| event["event"] == *told));
    of_swarms.map(Value::to_string).collect()
}

/// Fails unless the last two runs of a home did the same.
pub(crate) fn are_alike(home: &Path) {
    let runs = runs(home);
    let [.., one, other] = runs.as_slice() else { panic!("two runs, not {runs:?}") };
    let id = |run: &Path| run.file_name().expect("a run has a name").to_string_lossy().into_owned();
    let files = |folder: PathBuf, run: &Path| -> BTreeMap<String, String> {
        let texts = if folder.exists() { texts(&folder) } else { BTreeMap::new() };
        // A digest of what names the run is another one in each.
        let texts = texts.into_iter().filter(|(name, _)| !name.ends_with(".blocks.json"));
        texts.map(|(name, text)| (name, timeless(&blank(&text)).replace(&id(run), "RUN"))).collect()
    };
    let outputs = |run: &Path| files(home.join("outputs").join(id(run)), run);
    assert_eq!(outputs(one), outputs(other));
    assert_eq!(files(one.join("prompts"), one), files(other.join("prompts"), other));
    let (one, other) = (events(one), events(other));
    assert_eq!(ends(&one), ends(&other), "what ended, in order");
    for (one, other) in swarm_events(&one).into_iter().zip(swarm_events(&other)) {
        assert_eq!(one, other, "what happened in swarms, in order");
    }
    assert_eq!(sorted(&one), sorted(&other), "what happened");
}

#[test]
fn every_example_replays_as_it_was_recorded() {
    for spec in specs(&Project::new()) {
        let project = Project::new();
        let recorded = project.swarmc(&["run", &spec, "--headless", "--record", "recorded"]);
        let replayed = project.swarmc(&["run", &spec, "--replay", "recorded"]);
        let said = String::from_utf8_lossy(&replayed.stderr);
        assert!(said.contains(", and everything is as recorded"), "{spec}: {said}");
        assert_eq!(recorded.status.code(), replayed.status.code(), "{spec}");
        are_alike(&project.home());
        let last = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).lines().last().map(str::to_owned);
        assert_eq!(last(recorded.stdout), last(replayed.stdout), "{spec}");
        let recording = texts(&project.root().join("recorded")).into_values().collect::<String>();
        let place = project.home().parent().expect("a home lies somewhere").to_string_lossy().into_owned();
        assert!(!recording.contains(&place), "no path of this machine in {recording}");
    }
}

#[test]
fn a_gate_is_answered_as_the_person_did() {
    let project = Project::new();
    let spec = "specs/release/release.kdl";
    let reason = "reason=not on a Friday";
    let (code, out, err) = answered(&project, &["run", spec, "--record", "recorded"], &["go", "hold", "--ask", reason]);
    assert_eq!(code, Some(0), "{out}\n{err}");
    let out = project.done(&["run", spec, "--replay", "recorded", "-q"]);
    assert_eq!(out, "Held back. not on a Friday\n");
    are_alike(&project.home());
    // What the person read is another text now.
    edit(&project, spec, "Publish <<param:version>>?", "Shall <<param:version>> go out?");
    let replayed = project.swarmc(&["run", spec, "--replay", "recorded", "-q"]);
    assert_eq!(replayed.status.code(), Some(3));
    let out = String::from_utf8_lossy(&replayed.stdout);
    assert!(out.contains("-Publish 0.0.0-rehearsal?\n+Shall 0.0.0-rehearsal go out?\n"), "{out}");
}

#[test]
fn an_edited_prompt_is_shown_as_a_diff_and_nothing_else() {
    let project = Project::new();
    let spec = "specs/feature/feature.kdl";
    project.done(&["run", spec, "--record", "recorded"]);
    edit(&project, "specs/feature/prompts/evaluator.md", "# Evaluate the work", "# Judge the work");
    let replayed = project.swarmc(&["run", spec, "--replay", "recorded", "-q"]);
    assert_eq!(replayed.status.code(), Some(3));
    let out = String::from_utf8_lossy(&replayed.stdout);
    let changed: Vec<&str> = out.lines().filter(|line| line.starts_with(['-', '+', '@'])).collect();
    assert_eq!(
        changed,
        ["--- recorded", "+++ now", "@@ -1,7 +1,7 @@", "-# Evaluate the work", "+# Judge the work"],
        "{out}"
    );
    let err = String::from_utf8_lossy(&replayed.stderr);
    assert!(err.contains("error: `evaluator`: the prompt differs from the recording\n"), "{err}");
    // It has ended, and is no run to go on with.
    let resumed = project.swarmc(&["resume", "last"]);
    let err = String::from_utf8_lossy(&resumed.stderr);
    assert!(resumed.status.code() == Some(2) && err.contains("is a replay"), "{err}");
    assert!(project.done(&["ps", "--all"]).contains("failed"));
}

/// An agent that keeps conversations: it says which this is, and how often it was called.
const TELLER: &str = r#"
n=$(( $(cat calls 2>/dev/null || echo 0) + 1 )); echo $n >calls
id=c-$n; if test "$1" = resume; then id=$2; fi
echo "{\"type\":\"thread.started\",\"thread_id\":\"$id\"}"
case $(cat) in
*judge*) answer='I would say that it is good.' ;;
*verdict*) answer='{\"verdict\":\"good\"}' ;;
*) answer="call $n of $id in $PWD" ;;
esac
echo "{\"type\":\"item.completed\",\"item\":{\"type\":\"agent_message\",\"text\":\"$answer\"}}"
echo "{\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":1$n,\"cached_input_tokens\":0,\"output_tokens\":2}}"
"#;

/// Everything that asks: retries, items, sessions, checks, fallbacks, repairs, calls, rounds, instances, files.
const ALL: &str = r##"
workflow all { default main }
provider gone { exec no-such-program; prompt stdin }
provider teller { exec sh agent.sh; prompt stdin; reads codex-jsonl; resume-args resume "{session}" }
agent a provider=teller
agent b provider=gone { fallback a }
type Verdict { verdict enum good bad }
param who type=string
pipeline one {
    param what type=string
    task inner agent=a { prompt "about <<param:what>>" }
    result inner
}
pipeline main {
    parallelism 2; concurrency 32; worktree; budget calls=100
    iterations 2 exhausted=success
    until "iteration == 3"
    env MODE="<<iteration>>"
    task flaky {
        run #"n=$(cat tries 2>/dev/null || echo 0); n=$((n+1)); echo $n >tries; echo "try $n in $MODE"; echo oops >&2; test $n -gt 2"#
        retry 3 backoff="10ms"
    }
    task list { run #"printf '["x","y","z"]'"#; output list<string> }
    task each agent=a { for-each "output.list" parallel=3; prompt "item <<item>> of <<param:who>>" }
    task first agent=a { session talk; prompt "hello"; depends-on flaky }
    task second agent=a { session talk; depends-on first; prompt "again"; check "test -e agent.sh; echo checked >&2" }
    task other agent=b { prompt "who is there?" }
    task judged agent=a { prompt "judge it"; output Verdict repair=2 }
    task called { depends-on judged second; call one what="<<output:other>>" }
    task notes { depends-on called; run "date +%N >notes.txt; cat notes.txt"; writes notes.txt }
    task reader agent=a { depends-on notes; prompt "notes: <<file:notes.txt>> in <<run:dir>> of <<run:id>>" }
    task told { run cat; stdin "<<output:reader>>" }
    result told
}
"##;

fn git(folder: &Path, arguments: &[&str]) {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]);
    let output = git.args(arguments).current_dir(folder).output().expect("git starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn whatever_asks_is_answered_from_the_recording_and_nothing_is_started() {
    let place = Place::new(ALL);
    place.write("agent.sh", TELLER);
    git(&place.work(), &["init", "-q"]);
    git(&place.work(), &["add", "agent.sh"]);
    git(&place.work(), &["commit", "-qm", "an agent"]);
    let recorded = place.swarmc(&["run", "flow.kdl", "--param", "who=me", "--record", "one"]).expect(0, &[], &[]);
    // What would answer is not there any more, nor is Git's history.
    fs::remove_file(place.work().join("agent.sh")).expect("the agent is there");
    fs::remove_dir_all(place.work().join(".git")).expect("a repository is there");
    fs::create_dir(place.work().join(".git")).expect("a folder can be made");
    let replayed = place.swarmc(&["run", "flow.kdl", "--replay", "one"]);
    let replayed = replayed.expect(0, &[], &["note: replayed ", " answers, and everything is as recorded"]);
    are_alike(&place.home());
    // The results of both instances come last, without a prefix.
    let id = |run: &Path| run.file_name().expect("a name").to_string_lossy().into_owned();
    let runs = runs(&place.home());
    let last = |out: &str, run: &Path| {
        let lines: Vec<&str> = out.lines().rev().take(2).collect();
        lines.join("\n").replace(&id(run), "RUN")
    };
    assert_eq!(last(&recorded.out, &runs[0]), last(&replayed.out, &runs[1]));
    assert!(last(&replayed.out, &runs[1]).starts_with("call "), "{replayed:#?}");
    // A parameter that differs is seen where it is first used.
    let other = place.swarmc(&["run", "flow.kdl", "--replay", "one", "--param", "who=you", "-q"]);
    let other = other.expect(
        3,
        &["-item ", " of me\n", "+item ", " of you\n"],
        &["`each.1[", ": the prompt differs from the recording"],
    );
    assert_eq!(other.out.lines().count(), 7, "that and nothing else {other:#?}");
}

#[test]
fn races_end_as_they_did() {
    // What is slow ends first in no replay by itself: nothing takes time there.
    let place = Place::new(
        "pipeline p {\n    task slow { run \"until test -e go; do sleep 0.01; done; echo slow\" }\n    \
         task quick { run \"echo quick\" }\n    \
         task go { depends-on quick; run \"touch go\" }\n    \
         stop bad status=failure { depends-on slow; message \"enough\" }\n    task endless { run \"sleep 600\" }\n    \
         concurrency 4\n}\n",
    );
    place.swarmc(&["run", "flow.kdl", "--record", "r"]).expect(3, &[], &["`bad` ended it as failed: enough"]);
    for _ in 0..5 {
        let err = place.swarmc(&["run", "flow.kdl", "--replay", "r"]).expect(3, &[], &["everything is as recorded"]);
        assert!(err.err.contains("`bad` ended it as failed: enough"), "{err:#?}");
        are_alike(&place.home());
    }
    // Without the failure nothing ends the endless one.
    edit_file(&place, "flow.kdl", "stop bad status=failure { depends-on slow; message \"enough\" }", "");
    let told = ["error: `endless` was ended from outside in the recording, but continues now\n"];
    place.swarmc(&["run", "flow.kdl", "--replay", "r", "-q"]).expect(3, &[], &told);
}

fn edit_file(place: &Place, name: &str, from: &str, to: &str) {
    let text = fs::read_to_string(place.work().join(name)).expect("the file is there");
    assert!(text.contains(from), "`{from}` is not in {text}");
    place.write(name, &text.replacen(from, to, 1));
}

const CHAIN: &str = "workflow w\nsecret key env=SECRET_TOKEN\npipeline p {\n    \
    task one { env key; run \"printenv >seen; grep TOKEN seen; pwd\" }\n    \
    task two { depends-on one; run cat; stdin \"<<output:one>> ⟦run⟧\" }\n    result two\n}\n";

#[test]
fn secrets_and_folders_are_blank_in_a_recording_and_not_needed_for_a_replay() {
    let place = Place::new(CHAIN);
    let mut recorded = place.command(&["run", "flow.kdl", "--record", "r", "-q"]);
    let recorded = recorded.env("SECRET_TOKEN", "s3cr3t-token").output().expect("swarmc starts");
    assert!(String::from_utf8_lossy(&recorded.stdout).contains("s3cr3t-token"), "{recorded:?}");
    let recording = texts(&place.work().join("r")).into_values().collect::<String>();
    assert!(!recording.contains("s3cr3t") && !recording.contains(&*place.work().to_string_lossy()), "{recording}");
    assert!(recording.contains("SECRET_TOKEN=⟦secret:SECRET_TOKEN⟧\n⟦workspace⟧"), "{recording}");
    let replayed = place.swarmc(&["run", "flow.kdl", "--replay", "r", "-q"]).expect(0, &[], &[]);
    let work = place.work().canonicalize().expect("the folder is there");
    assert_eq!(replayed.out, format!("SECRET_TOKEN=⟦secret:SECRET_TOKEN⟧\n{} ⟦run⟧\n", work.display()));
}

#[test]
fn what_the_recording_lacks_and_what_is_never_asked_for_is_told() {
    let place =
        Place::new("workflow w\npipeline p { task one { run \"echo 1\" }; task two { run \"echo 2\" }; result one }\n");
    place.swarmc(&["run", "flow.kdl", "--record", "r"]).expect(0, &[], &["note: recorded 2 answers in `"]);
    edit_file(&place, "flow.kdl", "task two { run \"echo 2\" }", "task three { run \"echo 3\" }");
    let missing = ["error: `three` is not in the recording\n", "help: record again with"];
    place.swarmc(&["run", "flow.kdl", "--replay", "r", "-q"]).expect(3, &[], &missing);
    edit_file(&place, "flow.kdl", "task three { run \"echo 3\" };", "");
    let unasked =
        ["note: the recording contains answers that the run never requested: `two`\n", "note: replayed 1 answer\n"];
    place.swarmc(&["run", "flow.kdl", "--replay", "r"]).expect(0, &["1\n"], &unasked);
    edit_file(&place, "flow.kdl", "echo 1", "echo 1; echo");
    let command = ["--- recorded\n+++ now\n@@ -1 +1 @@\n-echo 1\n", "+echo 1; echo\n"];
    place.swarmc(&["run", "flow.kdl", "--replay", "r", "-q"]).expect(3, &command, &["`one`: the command differs"]);
    // What is computed asks nobody, and is seen in the result.
    place.write(
        "flow.kdl",
        "workflow w\npipeline p { task one { run \"echo 1\" }; task sum { value \"<<output:one>>!\" }; result sum }\n",
    );
    let result = place.swarmc(&["run", "flow.kdl", "--replay", "r", "-q"]);
    result.expect(3, &["-1\n", "+1!\n"], &["the run: its result differs from the recording"]);
}

#[test]
fn a_run_that_is_stopped_and_resumed_has_one_recording() {
    let place = Place::new(
        "pipeline p {\n    task first { run \"echo first >>log; cat log\" }\n    \
         task wait { depends-on first; run \"test -e flag || sleep 600; echo waited\" }\n    result first wait\n}\n",
    );
    let (mut child, rest) = place.until(&["run", "flow.kdl", "--record", "r"], "wait: started");
    signal(&child, "INT");
    assert_eq!(child.wait().expect("swarmc ends").code(), Some(4));
    assert!(rest().contains("is written when the run is resumed and ends"));
    assert!(!place.work().join("r").exists());
    place.write("flag", "");
    place.swarmc(&["resume"]).expect(0, &[], &["note: recorded 2 answers in `"]);
    place.swarmc(&["run", "flow.kdl", "--replay", "r"]).expect(
        0,
        &["first\n"],
        &["replayed 2 answers, and everything is"],
    );
    assert_eq!(fs::read_to_string(place.work().join("log")).expect("the log is there"), "first\n");
}

#[test]
fn a_recording_takes_the_place_of_nothing_but_a_recording() {
    let place = Place::new("pipeline p { task t { run \"date +%N >now; cat now\" } }");
    fs::create_dir(place.work().join("full")).expect("a folder can be made");
    place.write("full/keep", "");
    let refused = ["cannot record into", "something else is in it"];
    place.swarmc(&["run", "flow.kdl", "--record", "full"]).expect(2, &[], &refused);
    place.swarmc(&["run", "flow.kdl", "--record", "flow.kdl"]).expect(2, &[], &["it is no folder"]);
    assert!(!place.work().join("now").exists(), "nothing has run");
    for _ in 0..2 {
        place.swarmc(&["run", "flow.kdl", "--record", "new/deep", "-q"]).expect(0, &[], &[]);
        let replayed = place.swarmc(&["run", "flow.kdl", "--replay", "new/deep", "-q"]).expect(0, &[], &[]);
        assert_eq!(replayed.out, fs::read_to_string(place.work().join("now")).expect("it ran"));
    }
    let left: Vec<PathBuf> =
        fs::read_dir(place.work().join("new")).expect("it is there").flatten().map(|entry| entry.path()).collect();
    assert_eq!(left, [place.work().join("new/deep")], "nothing is left beside it");
    let both = ["cannot be used with"];
    place.swarmc(&["run", "flow.kdl", "--record", "a", "--replay", "new/deep"]).expect(2, &[], &both);
}

#[test]
fn damaged_and_hostile_recordings_are_told_with_their_line() {
    let place = Place::new("workflow w\npipeline p { task t { run \"printf 'a\\nb\\n'\" } }\n");
    place.swarmc(&["run", "flow.kdl", "--record", "r", "-q"]).expect(0, &[], &[]);
    let path = place.work().join("r/recording.jsonl");
    let whole = fs::read_to_string(&path).expect("a recording");
    let replay = |expected: &str| {
        place.swarmc(&["run", "flow.kdl", "--replay", "r"]).expect(2, &[], &[expected]);
    };
    let file = "texts/t.1.1.answer.txt";
    assert!(whole.contains(file), "{whole}");
    std::os::unix::fs::symlink("../flow.kdl", place.work().join("r/link")).expect("a link can be made");
    let made = Command::new("mkfifo").arg(place.work().join("r/pipe")).status().expect("mkfifo starts");
    assert!(made.success());
    let deep = format!("\"answer\":{}", "[".repeat(100_000));
    for (from, to, expected) in [
        ("\"version\":1", "\"version\":2", "has version 2, but this swarmc reads up to 1: update swarmc"),
        ("\"workflow\":\"w\"", "\"workflow\":\"v\"", "is a recording of workflow `v`, but this workflow is `w`"),
        ("\"pipeline\":\"p\"", "\"pipeline\":\"q\"", "the recording is of pipeline `q`, which no longer exists"),
        ("\"kind\":\"command\"", "\"kind\":\"wish\"", "recording.jsonl:3: unknown variant `wish`"),
        (file, "../flow.kdl", "recording.jsonl:3: `../flow.kdl` leads out of the recording"),
        (file, "/etc/passwd", "recording.jsonl:3: `/etc/passwd` leads out of the recording"),
        (file, "link", "recording.jsonl:3: `link` leads out of the recording"),
        (file, "texts", "recording.jsonl:3: its text `texts` is no file"),
        (file, "texts/gone", "recording.jsonl:3: its text `texts/gone`: No such file"),
        (file, "pipe", "recording.jsonl:3: its text `pipe` is no file"),
        ("\"event\":\"run_finished\"", "\"event\":\"run_finished", "recording.jsonl:5: "),
        ("\"answer\":", &deep, "recording.jsonl:3: recursion limit exceeded"),
    ] {
        assert!(whole.contains(from), "`{from}` is not in {whole}");
        fs::write(&path, whole.replacen(from, to, 1)).expect("it can be written");
        replay(expected);
    }
    let lines: Vec<&str> = whole.lines().collect();
    for (text, expected) in [
        (String::new(), "recording.jsonl:1: it has no end"),
        (format!("{}\n{}\n", lines[0], lines[1]), "recording.jsonl:2: it has no end"),
        (format!("{whole}{}\n", lines[1]), "recording.jsonl:6: it goes on after its end"),
        (format!("{}\n{}\n", lines[1], lines[2]), "recording.jsonl:1: the first event must be"),
        (format!("{}\n{}\n", lines[0], whole), "recording.jsonl:2: it begins a second time"),
        (format!("{}\n{}\n{}\n{}\n", lines[0], lines[2], lines[2], lines[4]), "recording.jsonl:3: it is there twice"),
    ] {
        fs::write(&path, text).expect("it can be written");
        replay(expected);
    }
    fs::write(&path, b"{\"kind\":\xff").expect("it can be written");
    replay("recording.jsonl:1: it is not UTF-8");
    fs::remove_file(&path).expect("it is there");
    replay("`r` is not a recording");
    place.swarmc(&["run", "flow.kdl", "--replay", "none"]).expect(2, &[], &["there is no folder `none`"]);
}

/// As a runner leaves it that is killed while it puts its recording in the place of another one.
#[test]
fn what_a_killed_runner_left_beside_a_recording_is_in_nobodys_way() {
    let place = Place::new(
        "workflow w { default main }\npipeline main {\n\
         task one { run \"sh\" \"-c\" \"mkdir -p .r.old-$SWARM_RUN/x .r.new-$SWARM_RUN/x\" }\nresult one\n}\n",
    );
    for _ in 0..2 {
        place.swarmc(&["run", "flow.kdl", "--record", "r"]).expect(0, &[], &[]);
        let mut names: Vec<String> = fs::read_dir(place.work())
            .expect("it is there")
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        assert_eq!(names, ["flow.kdl", "r"]);
    }
}
