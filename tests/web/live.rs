//! The page while a run goes on: one of ten thousand steps, one whose process is killed, one without any network.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use super::{ASKS, programs, run, run_script, until, workshop};
use crate::cli::Place;
use crate::serve::Server;

/// The steps of the large run.
const STEPS: usize = 10_000;
const COLUMNS: usize = 100;

/// A run of ten thousand steps of which some take their time. It asks each browser two things, and has an agent that reads
/// messages until the file `go` is there.
fn large() -> String {
    let mut spec = String::from(
        r##"
policy { tool shell human }
provider recorded {
    script {
        answer #"{"action": "tool_call", "tool": "shell", "tool_params": {"command": "echo ran"}}"# turn=1
        answer #"{"action": "done", "response": "over"}"#
    }
}
provider slow { exec "sh" "-c" "cat >/dev/null; until [ -e go ]; do sleep 0.05; done; echo done" }
agent coder provider=recorded { tools shell; can run-commands }
agent slow provider=slow
swarm team {
    goal "Do it"
    member chromium agent=coder "Call it"
    member firefox agent=coder "Call it"
}
param word type=string default="word"
pipeline main {
    concurrency 8
    task go { swarm team }
    task build agent=slow { prompt "Build" }
    gate chromium { message "Publish it?"; options approve hold; on-timeout hold after="24h" }
    gate firefox { message "Publish it?"; options approve hold; on-timeout hold after="24h" }
    result build
"##,
    );
    for browser in ["chromium", "firefox"] {
        let when = format!("when \"output.{browser}.choice == 'approve'\"");
        spec.push_str(&format!("    task after-{browser} {{ {when}; run \"true\" }}\n"));
    }
    for number in 0..STEPS - 6 {
        let (row, column) = (number / COLUMNS, number % COLUMNS);
        let work = if number % 10 == 0 { "run \"sleep\" \"0.3\"" } else { "value \"<<param:word>>\"" };
        let after = match row.checked_sub(1) {
            None => String::new(),
            Some(above) => format!("depends-on t{above}-{column} t{above}-{}; ", (column + 3) % COLUMNS),
        };
        spec.push_str(&format!("    task t{row}-{column} {{ {after}{work} }}\n"));
    }
    spec.push_str("}\n");
    spec
}

/// Says what a browser took, past what the harness captures of tests.
fn say(figures: &str) {
    std::io::stderr().write_all(figures.as_bytes()).expect("stderr takes it");
}

#[test]
fn a_run_of_ten_thousand_steps_is_panned_and_steered_in_two_browsers_while_it_goes_on() {
    let place = Place::new(&large());
    let server = Server::start(&place, &[]);
    let mut command = place.command(&["run", "flow.kdl", "--quiet"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("swarmc starts");
    server.wait("/api/v1/waits", |waits| waits["waits"].as_array().is_some_and(|waits| waits.len() == 4));
    let name = server.last_run();
    for browser in ["chromium", "firefox"] {
        say(&run_script("live.mjs", &server, &name, &[("BROWSER", browser)]));
    }
    let shown = |arguments: &[&str]| place.swarmc(&[&["inspect", &name], arguments].concat()).expect(0, &[], &[]).out;
    let (go, messages) = (shown(&["go"]), shown(&["build", "--raw"]));
    for browser in ["chromium", "firefox"] {
        assert!(go.contains(&format!("{browser} wants tool shell: allow, by a person")), "{go}");
        assert!(messages.contains(&format!("A word from {browser}")), "{messages}");
        assert!(shown(&[browser]).contains("approve"), "{}", shown(&[browser]));
    }
    place.write("go", "");
    assert!(child.wait().expect("it ends").success());
}

#[test]
fn the_page_says_that_a_runner_was_killed_and_resumes_its_run() {
    let place = Place::new(
        r#"
        pipeline p {
            task first { run sh "-c" "echo once >>first.txt" }
            task second { depends-on first; run sh "-c" "until [ -e go ]; do sleep 0.02; done" }
        }
        "#,
    );
    let server = Server::start(&place, &[]);
    let (mut child, _) = place.until(&["run", "flow.kdl"], "second");
    let name = server.last_run();
    say(&run_script("killed.mjs", &server, &name, &[("RUNNER", &child.id().to_string())]));
    assert!(!child.wait().expect("it was killed").success());
    place.write("go", "");
    server.wait(&format!("/api/v1/runs/{name}"), |run| run["state"] == "succeeded");
    assert_eq!(fs::read_to_string(place.work().join("first.txt")).expect("it ran"), "once\n");
}

/// In a namespace of its own there is no network but the loopback device.
#[test]
fn the_page_works_where_there_is_no_network() {
    programs();
    let place = Place::new(ASKS);
    let (mut child, _) = place.until(&["run", "flow.kdl"], "wants tool shell");
    let script = r#"
        ip link set lo up || exit
        "$SWARMC" serve --listen 127.0.0.1:0 >"$URL" &
        trap "kill $!" EXIT
        until [ -s "$URL" ]; do sleep 0.05; done
        SERVER=$(sed 's/\/#t=.*//' "$URL") TOKEN=$(sed 's/.*#t=//' "$URL") RUN=$(ls "$SWARM_HOME/runs") node steer.mjs
        "#;
    let folder = workshop();
    let mut command = Command::new("unshare");
    command.args(["--net", "--map-root-user", "sh", "-c", script]).current_dir(folder.path());
    command.env("SWARMC", env!("CARGO_BIN_EXE_swarmc")).env("SWARM_HOME", place.home());
    run(command.env("URL", folder.path().join("url")));
    let waits = place.swarmc(&["approve", "last"]).expect(0, &[], &[]).out;
    assert!(!waits.contains("wants tool") && !waits.contains("human"), "{waits}");
    place.write("go", "");
    assert!(child.wait().expect("it ends").success());
    until("the run is over", || place.swarmc(&["inspect", "last", "human"]).out.contains("approve"));
}
