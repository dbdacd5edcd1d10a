//! A real agent while the page is open: opencode plays a part of the example of handoffs, and the page shows what
//! `swarmc inspect` tells of it.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::json;
use swarmc_endpoint::{Answer, Script};

use super::{run, run_script};
use crate::acp::real;
use crate::agents::{self, Place};
use crate::serve::Server;

/// What the printer does, call by call: it writes its file, hands over, and waits until the page was looked at.
fn printer() -> Script {
    let script = Script::new().decide(|request| {
        let is_printer = request.user.iter().any(|text| text.contains("src/print.rs"));
        if !is_printer {
            return Some(Answer::text("A title."));
        }
        let handoff = request.tools.iter().find(|tool| tool.ends_with("send_handoff"));
        match request.results.len() {
            0 => agents::command(request, "printf 'pub fn print() {}\\n// prints dates\\n' >src/print.rs"),
            1 => {
                Some(Answer::call(handoff?.clone(), json!({ "to": "architect", "message": "The printer is as drawn" })))
            }
            2 => agents::command(request, "until [ -e go ]; do sleep 0.05; done"),
            _ => Some(Answer::text("Printed.")),
        }
    });
    script.otherwise(Answer::text("There is no tool."))
}

#[test]
fn what_the_page_shows_of_a_real_agent_is_what_inspect_tells() {
    let place = Place::new(agents::programs(), printer());
    let spec = real::handoffs(&place).replace("task printer agent=coder {", "task printer agent=printer {");
    let printer = "provider opencode preset=opencode-acp\n\
                   agent printer provider=opencode model=\"scripted/scripted\" { can write-files run-commands }\n";
    let spec = spec.replace("agent architect ", &format!("{printer}agent architect "));
    fs::write(place.work().join("w.kdl"), spec).expect("a file can be written");
    // Of what changes in a repository a diff is kept.
    for arguments in [
        &["init", "-q"][..],
        &["add", "."],
        &["-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qm", "Begin"],
    ] {
        run(Command::new("git").args(arguments).current_dir(place.work()));
    }
    let mut command = place.command(&["run", "w.kdl", "--headless", "--quiet"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("swarmc starts");
    let server = Server::start_by(place.command(&["serve", "--listen", "127.0.0.1:0"]), &place.home());
    server.wait("/api/v1/runs", |page| page["runs"].as_array().is_some_and(|runs| !runs.is_empty()));
    let name = server.last_run();
    // The others have done what they can.
    server.wait(&format!("/api/v1/runs/{name}"), |run| {
        let nodes = run["nodes"].as_array().map_or(&[][..], Vec::as_slice);
        let is = |step: &str, state: &str| nodes.iter().any(|node| node["step"] == step && node["state"] == state);
        is("printer", "connected") && ["architect", "parser", "reviewer"].iter().all(|step| !is(step, "connected"))
    });
    let inspect =
        format!("SWARM_HOME='{}' '{}' inspect --json {name}", place.home().display(), env!("CARGO_BIN_EXE_swarmc"));
    let go = place.work().join("go");
    run_script(
        "agents.mjs",
        &server,
        &name,
        &[("STEPS", "architect parser printer reviewer"), ("GO", go.to_str().expect("UTF-8")), ("INSPECT", &inspect)],
    );
    assert!(child.wait().expect("it ends").success());
}
