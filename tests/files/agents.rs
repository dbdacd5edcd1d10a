//! Agents that declare `files` themselves, and those whose conversations go on in a folder of each turn.

use std::fs;
use std::path::Path;
use std::process::Command;

use swarmc_endpoint::{Answer, Script};

use super::{DONE, ends, folder, project, read};
use crate::agents::{Place as Lonely, command, programs};
use crate::cli::Place;
use crate::specs::copy;

#[test]
fn an_agent_that_declares_files_works_by_them_and_a_task_has_its_own() {
    let tasks = [
        "task theirs agent=coder { prompt \"Count.\" }",
        "task own agent=coder { prompt \"Count.\"; files { output other required=#false; requirement \"Slowly\" } }",
        "}\nprovider programs { exec \"./agent.sh\" }",
        "agent coder provider=programs { files { output count; requirement \"Count to three\" } }",
        "pipeline other { task x { value \"1\" }",
    ];
    let project = project(&tasks.join("\n"));
    let script = project.root().join("agent.sh");
    fs::write(&script, format!("#!/bin/sh\ncat >/dev/null; echo 1 2 3 >outbox/count; {DONE}\n")).expect("a script");
    fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("it can be a program");
    ends(&project, 0);
    assert_eq!(read(&project, "theirs", "outbox/count"), "1 2 3\n");
    assert!(read(&project, "theirs", "inbox/instructions.md").contains("1. Count to three"));
    assert!(read(&project, "own", "inbox/instructions.md").contains("1. Slowly"));
}

/// An agent that keeps a conversation, and finds its folder in what it is told.
const TALKER: &str = r##"
provider talker {
    exec "sh" "-c" #"""
        said() { printf '%s\n' "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"$1\",\"session_id\":\"s-1\"}"; }
        echo '{"type":"system","subtype":"init","session_id":"s-1"}'
        cat >told; F=$(sed -n 's/.*You work in the folder `\([^`]*\)`.*/\1/p' told); cp told "$F/outbox/told"
        WAIT
        echo Done. >"$F/outbox/summary.md"; echo '{"state": "completed"}' >"$F/status.json"
        if [ -z "$1" ]; then said '{\"swarm\": \"send_handoff\", \"to\": \"other\", \"message\": \"Over\"}'; else said fine; fi
        """# "talker"
    resume-args "{session}"
    reads claude-stream-json
    provides resume
}
provider local { script { answer "{\"swarm\": \"send_handoff\", \"to\": \"talk\", \"message\": \"Back to you\"}" } }
agent talker provider=talker
agent other provider=local
"##;

#[test]
fn a_second_turn_of_a_session_is_told_of_its_folder() {
    let project = project("");
    let spec = format!(
        "workflow files {{ default main }}\n{}\npipeline main {{ edges {{ talk <-> other }}\n\
         task talk agent=talker {{ session main; prompt \"Begin.\"; files }}\n\
         task other agent=other {{ prompt \"Answer\\n<<inbox>>\" }} }}\n",
        TALKER.replace("WAIT", "")
    );
    fs::write(project.root().join("spec.kdl"), spec).expect("a spec can be written");
    ends(&project, 0);
    let told = fs::read_to_string(folder(&project, "talk", 2).join("outbox/told")).expect("it was told");
    assert!(told.starts_with("--- Inbox: 1 envelope") && !told.contains("Begin."), "{told}");
    let (first, second) = (folder(&project, "talk", 1), folder(&project, "talk", 2));
    assert!(told.contains(&format!("that of your last turn lies in `{}`", first.display())), "{told}");
    assert!(told.contains(&format!("You work in the folder `{}`", second.display())), "{told}");
}

#[test]
fn an_interrupted_turn_goes_on_in_a_folder_of_its_own() {
    let wait = "[ -n \"$1\" ] || { echo waits >&2; sleep 600; }";
    let place = Place::new(&format!(
        "{}\npipeline main {{ task talk agent=talker {{ prompt \"Begin.\"; files }} }}\n",
        TALKER
            .replace("WAIT", wait)
            .replace("agent other provider=local\n", "")
            .replace("provider local {", "provider spare {")
    ));
    let (mut child, rest) = place.until(&["run", "flow.kdl"], "waits");
    place.swarmc(&["send", "last", "talk", "--interrupt", "Go on."]).expect(0, &[], &["is interrupted"]);
    assert!(child.wait().expect("it ends").success(), "{}", rest());
    let mut run = fs::read_dir(place.home().join("runs")).expect("there are runs").flatten().map(|entry| entry.path());
    let run = run.find(|path| path.is_dir()).expect("there is one");
    let told = fs::read_to_string(run.join("agents/talk/attempt-2/outbox/told")).expect("it was told");
    assert!(told.contains("Go on.") && told.contains("agents/talk/attempt-1`"), "{told}");
}

/// A model that plays everybody in `specs/files`, by commands in the folder that it finds itself in.
fn analysts() -> Script {
    let told = "test -f inbox/instructions.md";
    let collect = r#"awk -F, 'NR > 1 { printf "%s{\"id\":%s,\"region\":\"%s\",\"amount\":%s}", (NR > 2 ? "," : "{\"orders\":["), $1, $2, $3 } END { print "]}" }' inbox/orders.csv >outbox/data.json; echo orders.csv >outbox/sources.md"#;
    let validate = r#"n=$(grep -o '"id"' inbox/source_data/data.json | wc -l); echo "{\"valid\": true, \"orders\": $n, \"negative\": 0}" >outbox/verdict.json"#;
    let analyse = r#"grep -q '"valid": true' inbox/checks/verdict.json && grep -o '"region":"[a-z]*"' inbox/source_data/data.json | sort -u >outbox/report.md"#;
    let work = move |line: &str| format!("{told} && {line} && {DONE}");
    Script::new().decide(move |request| {
        let says = |text: &str| request.user.iter().any(|said| said.contains(text));
        let line = match () {
            () if !request.results.is_empty() => return Some(Answer::text("It is done.")),
            () if says("Collect the orders") => work(collect),
            () if says("Say whether every order") => work(validate),
            () if says("Sum up what was sold") => work(analyse),
            () => return None,
        };
        command(request, &line)
    })
}

/// Every agent of `specs/files` is the program of a preset, by the command that the spec itself names.
fn check_example(preset: &str) {
    let place = Lonely::new(programs(), analysts());
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    copy(&root.join("specs/files"), &place.work().join("specs/files"));
    assert!(Command::new("git").args(["init", "-q"]).arg(place.work()).status().expect("git starts").success());
    let provider = format!("analysts={preset}");
    let ended = place.swarmc(&[
        "run",
        "specs/files/files.kdl",
        "--pipeline",
        "by-agents",
        "--provider",
        &provider,
        "--headless",
    ]);
    let (out, err) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert_eq!(ended.status.code(), Some(0), "{out}\n{err}");
    let report = fs::read_to_string(place.work().join("target/files/by-agents.md")).expect("it was copied");
    assert_eq!(report, "\"region\":\"north\"\n\"region\":\"south\"\n\"region\":\"west\"\n", "{out}\n{err}");
}

#[test]
fn codex_plays_the_example_by_files() {
    check_example("codex");
}

#[test]
fn opencode_plays_the_example_by_files() {
    check_example("opencode");
}

#[test]
fn opencode_over_acp_plays_the_example_by_files() {
    check_example("opencode-acp");
}
