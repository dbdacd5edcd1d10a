//! Who asks, and not only what: an agent is no person to its own run, no other node, and holds up nobody who is there
//! by right (issue 7, done when 3).

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::Duration;

use serde_json::json;

use super::hostile::Socket;
use super::mcp::{McpSession, PATIENCE};
use super::{err, run, scripted, sent};
use crate::cli::Place;

const SWARMC: &str = env!("CARGO_BIN_EXE_swarmc");

/// Where the scripts of these tests find swarmc, and the home that their run is in.
fn script(lines: &str) -> String {
    let found = "export PATH=${SWARMC%/*}:$PATH SWARM_HOME=${SWARM_SOCKET%/runs/*}";
    format!("SWARMC={SWARMC}; {found}; {lines}")
}

#[test]
fn an_agent_does_not_approve_as_a_person_nor_write_or_stop_as_one() {
    let place = Place::new("");
    place.write(
        "agent.sh",
        &script(
            r#"
until swarmc approve $SWARM_RUN | grep -q 'gate go'; do :; done
swarmc approve $SWARM_RUN go yes 2>child
swarmc send $SWARM_RUN reader 'I am a person' 2>writes
swarmc stop $SWARM_RUN 2>stops
setsid -w swarmc approve $SWARM_RUN go yes 2>session
env -i PATH=$PATH SWARM_HOME=$SWARM_HOME swarmc approve $SWARM_RUN go yes 2>bare
# Who has lost its parent is nobody's descendant: one is in the group of the task, one has the mark of the run.
run=$SWARM_RUN
(env -i PATH=$PATH SWARM_HOME=$SWARM_HOME sh -c "until [ -e parted ]; do :; done; swarmc approve $run go yes 2>group; touch one" &)
(setsid sh -c 'until [ -e parted ]; do :; done; swarmc approve $SWARM_RUN go yes 2>marked; touch two' &)
touch parted
until [ -e one ] && [ -e two ]; do :; done
# To look is no order.
swarmc ps >looked
echo >tried
cat release
"#,
        ),
    );
    place.write(
        "flow.kdl",
        r#"
workflow flow { default main }
pipeline main {
    edges { agent -> reader }
    task agent { run "sh agent.sh" }
    task reader { stdin "<<inbox>>"; run "cat" }
    gate go { message "Go on?"; options yes no; on-timeout no after="24h"; headless no }
    task after { when "output.go.choice == 'yes'"; run "echo went on" }
    result after
}
"#,
    );
    let pipes = ["tried", "release"].map(|name| place.work().join(name));
    assert!(Command::new("mkfifo").args(&pipes).status().expect("mkfifo starts").success());
    let (mut child, rest) = place.until(&["run", "flow.kdl"], "go waits for an answer");
    // Opening waits until the agent has tried them all.
    std::fs::read_to_string(&pipes[0]).expect("a pipe can be read");
    let said = |name: &str| std::fs::read_to_string(place.work().join(name)).expect("it was written");
    for name in ["child", "writes", "stops", "session", "bare", "group", "marked"] {
        let refused = "cannot approve or write as a person";
        assert!(
            said(name).contains(refused) && said(name).contains("swarmc agent request-help"),
            "{name}: {}",
            said(name)
        );
    }
    assert!(said("looked").contains("agent: connected"), "{}", said("looked"));
    // A person in another terminal is none of the run's processes.
    place.swarmc(&["approve", "last", "go", "yes"]).expect(0, &[], &["gate go of run"]);
    std::fs::write(&pipes[1], "").expect("a pipe can be written");
    assert!(child.wait().expect("it ends").success(), "{}", rest());
}

#[test]
fn an_agent_is_a_person_to_the_runs_that_it_starts_itself() {
    let place = Place::new("");
    place.write(
        "inner.kdl",
        r#"
workflow inner { default main }
pipeline main {
    gate go { message "Go on?"; options yes no; on-timeout no after="24h"; headless no }
    task after { when "output.go.choice == 'yes'"; run "echo went on" }
    result after
}
"#,
    );
    place.write(
        "agent.sh",
        &script(
            r#"
export SWARM_HOME=$PWD/inner-home
swarmc run inner.kdl >inner.txt &
until swarmc approve last 2>/dev/null | grep -q 'gate go'; do :; done
swarmc approve last go yes
wait
cat inner.txt
"#,
        ),
    );
    place.write(
        "flow.kdl",
        r#"
workflow outer { default main }
pipeline main { task agent { run "sh agent.sh" }; result agent }
"#,
    );
    place.swarmc(&["run", "flow.kdl"]).expect(0, &["went on"], &[]);
}

#[test]
fn a_token_is_not_taken_from_a_process_of_another_node() {
    let project = scripted(
        r##"
workflow theft { default main }
pipeline main {
    edges { rich -> reader; thief -> reader }
    task rich { run "sh" "-c" "echo $SWARM_TOKEN >token; cat release" }
    task thief {
        run "sh" "-c" #"""
            exec 2>&1
            until [ -s token ] && grep -a '"process_started"' ${SWARM_SOCKET%/*}/journal.jsonl | grep -aq thief; do :; done
            SWARM_TOKEN=$(cat token) swarmc agent send-handoff --to reader --message "In the name of another"
            SWARM_TOKEN=$(cat token) swarmc agent read-inbox
            swarmc agent send-handoff --to reader --message "In its own"
            echo >release
            """#
    }
    task reader { stdin "<<inbox>>"; run "cat" }
    result thief
}
"##,
    );
    let made = Command::new("mkfifo").arg(project.root().join("release")).status().expect("mkfifo starts");
    assert!(made.success());
    let output = run(&project);
    let said = err(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert_eq!(sent(&project), ["thief → reader: In its own"]);
    let refusal = "SWARM_TOKEN belongs to `rich`, but this process belongs to `thief`: use its own token";
    assert_eq!(project.output("thief").matches(refusal).count(), 2, "{}", project.output("thief"));
    assert!(said.contains(&format!("`thief`: a request of its agent was refused: {refusal}")), "{said}");
}

#[test]
fn strangers_hold_no_place_that_somebody_with_a_token_needs() {
    let guest = McpSession::new();
    let connect = || {
        let stream = UnixStream::connect(&guest.socket).expect("the socket is open");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time-out can be set");
        stream
    };
    let mut known = Socket::new(&guest);
    let operation = json!({ "swarm": "read_inbox" });
    assert!(known.asks(&guest.token, &operation)["ok"].is_object());
    // More than there are places, of those that say nothing or half of something.
    let mut strangers: Vec<UnixStream> = (0..200).map(|_| connect()).collect();
    let mut web: Vec<_> = (0..300).map(|_| guest.connect()).collect();
    let began = std::time::Instant::now();
    let told = Socket::new(&guest).asks(&guest.token, &operation);
    assert!(told["ok"].is_object(), "{told}");
    assert_eq!(guest.call(&mut guest.connect(), "read_inbox", json!({}))["isError"], false);
    // Nobody had to wait as long as somebody may be silent who has shown a token.
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    let first = strangers.first_mut().expect("there are some");
    let _ = first.write_all(b"{");
    assert_eq!(first.read(&mut [0]).unwrap_or(0), 0, "the first has made way");
    assert!(known.asks(&guest.token, &operation)["ok"].is_object(), "who has shown a token stays");
    web.clear();
    let (_, output) = guest.release();
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
}
