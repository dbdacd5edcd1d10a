//! `run --record` and `run --replay`: a replayed run is the recorded one, with nothing started, and where the two part the
//! difference is shown and nothing else.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::examples::{answered, edit};
use crate::specs::{Project, specs, texts};
use serde_json::Value;

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
    let lines = journal.trim_end_matches('\0').lines();
    let mut events: Vec<Value> = lines.map(|line| serde_json::from_str(line).expect("an event is JSON")).collect();
    events.retain(|event| event["event"] != "process_started");
    for event in &mut events {
        let event = event.as_object_mut().expect("an event is an object");
        for field in ["seq", "at", "crc", "run"] {
            event.remove(field);
        }
    }
    events
}

fn sorted(events: &[Value]) -> Vec<String> {
    let mut events: Vec<String> = events.iter().map(Value::to_string).collect();
    events.sort();
    events
}

/// What ended, in order.
fn ends(events: &[Value]) -> Vec<&Value> {
    events.iter().filter(|event| event["event"] == "attempt_ended" || event["event"] == "gate_answered").collect()
}

/// Fails unless the last two runs of a home did the same.
fn are_alike(home: &Path) {
    let runs = runs(home);
    let [.., one, other] = runs.as_slice() else { panic!("two runs, not {runs:?}") };
    let id = |run: &Path| run.file_name().expect("a run has a name").to_string_lossy().into_owned();
    let files = |folder: PathBuf, run: &Path| -> BTreeMap<String, String> {
        let texts = if folder.exists() { texts(&folder) } else { BTreeMap::new() };
        texts.into_iter().map(|(name, text)| (name, text.replace(&id(run), "RUN"))).collect()
    };
    let outputs = |run: &Path| files(home.join("outputs").join(id(run)), run);
    assert_eq!(outputs(one), outputs(other));
    assert_eq!(files(one.join("prompts"), one), files(other.join("prompts"), other));
    let (one, other) = (events(one), events(other));
    assert_eq!(ends(&one), ends(&other), "what ended, in order");
    assert_eq!(sorted(&one), sorted(&other), "what happened");
}

#[test]
fn every_example_replays_as_it_was_recorded() {
    for spec in specs(&Project::new()) {
        let project = Project::new();
        let recorded = project.swarmc(&["run", &spec, "--headless", "--record", "recorded"]);
        let replayed = project.swarmc(&["run", &spec, "--replay", "recorded"]);
        let said = String::from_utf8_lossy(&replayed.stderr);
        assert!(said.contains(", and all is as it was recorded"), "{spec}: {said}");
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
