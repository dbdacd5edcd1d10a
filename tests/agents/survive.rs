//! Real agents whose runner is killed in the middle of their turn: one conversation, whatever ends first.

use std::fs;
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

fn check_conversation(preset: &str, kills: usize) {
    let place = Place::new(programs(), worker());
    place.prepare_opencode();
    let spec = format!(
        "provider p preset={preset}\nagent keeper provider=p model=\"scripted/scripted\" {{ can write-files run-commands }}\n\
         pipeline main {{ task go {{ timeout \"4m\"; prompt \"Work.\" }}\nresult go }}\n"
    );
    fs::write(place.work().join("w.kdl"), spec).expect("a file can be written");
    let effects = || fs::read_to_string(place.work().join("effects")).unwrap_or_default();
    let journal = || -> String {
        let runs = fs::read_dir(place.home().join("runs")).into_iter().flatten().flatten();
        runs.map(|run| fs::read_to_string(run.path().join("journal.jsonl")).unwrap_or_default()).collect()
    };
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
    // Others of its requests, such as one for a title, offer no tools.
    let begun = place.endpoint.prompts().into_iter().filter(|it| it.results.is_empty() && !it.tools.is_empty()).count();
    assert_eq!(begun, 1, "the model was asked to begin once");
}

#[test]
fn opencode_goes_on_while_its_runner_is_killed() {
    check_conversation("opencode", 3);
}

#[test]
fn opencode_over_acp_goes_on_while_its_runner_is_killed() {
    check_conversation("opencode-acp", 3);
}
