//! Real agents whose runner is killed in the middle of their turn: one conversation, whatever ends first.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::json;
use swarmc_endpoint::{Answer, Script};

use super::{Place, programs};

/// Works until the file `go` is there, and notes when it starts and ends.
fn worker() -> Script {
    let work = "echo start >>effects; until [ -e go ]; do sleep 0.05; done; echo done >>effects";
    Script::new()
        .decide(move |request| {
            let offered = request.tools.iter().any(|tool| tool == "bash");
            (request.results.is_empty() && offered)
                .then(|| Answer::call("bash", json!({ "command": work, "description": "works" })))
        })
        .otherwise(Answer::text("All is well."))
}

/// A place with a spec whose agent is opencode by this preset.
fn prepare_place(preset: &str, settings: &str) -> Place {
    let place = Place::new(programs(), worker());
    place.prepare_opencode();
    let spec = format!(
        "{settings}provider p preset={preset}\nagent keeper provider=p model=\"scripted/scripted\" {{ can write-files run-commands }}\n\
         pipeline main {{ task go {{ timeout \"4m\"; prompt \"Work.\" }}\nresult go }}\n"
    );
    fs::write(place.work().join("w.kdl"), spec).expect("a file can be written");
    place
}

fn read_effects(place: &Place) -> String {
    fs::read_to_string(place.work().join("effects")).unwrap_or_default()
}

fn read_journals(place: &Place) -> String {
    let runs = fs::read_dir(place.home().join("runs")).into_iter().flatten().flatten();
    runs.map(|run| fs::read_to_string(run.path().join("journal.jsonl")).unwrap_or_default()).collect()
}

/// The conversations that were begun. Other requests of the agent, such as one for a title, offer no tools.
fn count_conversations(place: &Place) -> usize {
    place.endpoint.prompts().into_iter().filter(|it| it.results.is_empty() && !it.tools.is_empty()).count()
}

/// Starts the run, and kills its runner once the agent is at work.
fn kill_at_work(place: &Place) {
    let mut command = place.command(&["run", "w.kdl", "--headless"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("swarmc starts");
    wait_until(|| !read_effects(place).is_empty());
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
}

#[track_caller]
fn wait_until(holds: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(100);
    while !holds() {
        assert!(Instant::now() < deadline, "it never holds");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The processes of an agent, by the run that their environment names.
fn list_processes(place: &Place) -> Vec<String> {
    let runs = fs::read_dir(place.home().join("runs")).into_iter().flatten().flatten();
    let marks: Vec<Vec<u8>> =
        runs.map(|run| format!("SWARM_RUN={}\0", run.file_name().to_string_lossy()).into_bytes()).collect();
    let processes = fs::read_dir("/proc").expect("it is there").flatten();
    let is_marked = |process: &fs::DirEntry| {
        let environment = fs::read(process.path().join("environ")).unwrap_or_default();
        marks.iter().any(|mark| environment.windows(mark.len()).any(|part| part == mark))
    };
    processes.filter(is_marked).map(|process| process.file_name().to_string_lossy().into_owned()).collect()
}

fn has_file(folder: &Path, name: &str) -> bool {
    fs::read_dir(folder).into_iter().flatten().flatten().any(|entry| match entry.path().is_dir() {
        true => has_file(&entry.path(), name),
        false => entry.file_name() == name,
    })
}

#[test]
fn opencode_that_ended_while_no_runner_was_there_is_read() {
    let place = prepare_place("opencode", "");
    kill_at_work(&place);
    fs::write(place.work().join("go"), "").expect("a file can be written");
    // What its shim writes last.
    wait_until(|| has_file(&place.home().join("runs"), "exit"));
    let ended = place.swarmc(&["resume", "last", "--headless"]);
    let (out, err) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert_eq!(ended.status.code(), Some(0), "{out}\n{err}");
    assert!(out.contains("All is well.") && err.contains("ended meanwhile, and read"), "{out}\n{err}");
    assert_eq!((read_effects(&place).as_str(), count_conversations(&place)), ("start\ndone\n", 1));
}

#[test]
fn opencode_is_ended_where_no_runner_comes_back() {
    let place = prepare_place("opencode", "workflow w { survive agents for=\"5s\" }\n");
    kill_at_work(&place);
    assert!(!list_processes(&place).is_empty());
    wait_until(|| list_processes(&place).is_empty());
    assert_eq!(read_effects(&place), "start\n", "its work was cut off");
}

fn check_conversation(preset: &str, kills: usize) {
    let place = prepare_place(preset, "");
    let (effects, journal) = (|| read_effects(&place), || read_journals(&place));
    let mut arguments = vec!["run", "w.kdl", "--headless"];
    for kill in 0..kills {
        let mut command = place.command(&arguments);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("swarmc starts");
        let deadline = Instant::now() + Duration::from_secs(200);
        while effects().is_empty() || journal().matches("attempt_rejoined").count() < kill {
            assert!(Instant::now() < deadline && child.try_wait().expect("it can be asked").is_none(), "{}", journal());
            std::thread::sleep(Duration::from_millis(10));
        }
        child.kill().expect("it can be killed");
        child.wait().expect("it ends");
        arguments = vec!["resume", "last", "--headless"];
    }
    fs::write(place.work().join("go"), "").expect("a file can be written");
    let ended = place.swarmc(&arguments);
    let (out, err) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert_eq!(ended.status.code(), Some(0), "{out}\n{err}");
    assert!(out.contains("All is well."), "{out}\n{err}");
    assert_eq!(effects(), "start\ndone\n");
    assert_eq!(journal().matches("\"event\":\"attempt_rejoined\"").count(), kills);
    assert_eq!(count_conversations(&place), 1, "the model was asked to begin once");
}

#[test]
fn opencode_goes_on_while_its_runner_is_killed() {
    check_conversation("opencode", 3);
}

#[test]
fn opencode_over_acp_goes_on_while_its_runner_is_killed() {
    check_conversation("opencode-acp", 3);
}
