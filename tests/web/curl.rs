//! What `curl` gets from the server: a stream that goes on behind a record, and a refusal where a process of a run asks.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::acp;
use crate::approvals::await_request;
use crate::cli::Place;
use crate::serve::{Server, records};
use crate::top::SPEC;

/// `-N` holds back nothing that has come.
fn follow(server: &Server, run: &str, last: &str) -> Command {
    let mut command = Command::new("curl");
    command.args(["-sN", "-H", &format!("Authorization: Bearer {}", server.token())]);
    command.args(["-H", &format!("Last-Event-ID: {last}")]);
    command.arg(format!("{}/api/v1/runs/{run}/events", server.url())).stdin(Stdio::null());
    command
}

#[test]
fn a_stream_goes_on_behind_its_last_event_after_the_server_was_killed() {
    super::programs();
    let place = Place::new(SPEC);
    let printed = place.work().join("printed");
    let mut run = place.command(&["run", "flow.kdl", "--json"]);
    let mut run = run.stdout(File::create(&printed).expect("a file can be made")).spawn().expect("swarmc starts");
    let server = Server::start(&place, &[]);
    let waits = server.wait("/api/v1/waits", |waits| waits["waits"].as_array().is_some_and(|waits| !waits.is_empty()));
    let name = waits["waits"][0]["run"].as_str().expect("it is of a run").to_owned();

    let mut curl = follow(&server, &name, "0").stdout(Stdio::piped()).spawn().expect("curl starts");
    let mut lines = BufReader::new(curl.stdout.take().expect("it is a pipe")).lines().map_while(Result::ok);
    let mut first: Vec<String> = Vec::new();
    while !first.last().is_some_and(|line| line.contains("\"event\":\"gate_opened\"")) {
        first.push(lines.next().expect("the gate is in the stream"));
    }
    // A server ends by `SIGKILL` here.
    drop(server);
    first.extend(lines);
    curl.wait().expect("it ends with the server");

    let server = Server::start(&place, &[]);
    let seen = records(first.into_iter());
    let (last, _) = seen.last().expect("there are records");
    let curl = follow(&server, &name, last).stdout(Stdio::piped()).spawn().expect("curl starts");
    place.write("go", "");
    place.swarmc(&["approve", &name, "human", "approve"]).expect(0, &[], &[]);
    assert!(run.wait().expect("it ends").success());
    let rest = curl.wait_with_output().expect("it ends with the run");
    assert!(rest.status.success(), "{rest:?}");
    let rest = String::from_utf8(rest.stdout).expect("it is UTF-8");
    let rest = records(rest.lines().map(str::to_owned));

    let printed = fs::read_to_string(printed).expect("it can be read");
    let mut printed: Vec<&str> = printed.lines().filter(|line| line.contains("\"type\":\"record\"")).collect();
    let data = |records: &[(String, String)]| records.iter().map(|(_, data)| data.clone()).collect::<Vec<_>>();
    assert_eq!(data(&rest), printed.split_off(seen.len()));
    assert_eq!(data(&seen), printed);
    assert!(rest.len() > 3, "{rest:?}");
}

#[test]
fn an_agent_cannot_allow_what_it_asks_for_itself() {
    super::programs();
    // The agent asks for leave, and a process of it asks the server to give that.
    let place = acp::place(&acp::spec("asks", "", "").replace("python3 \"agent.py\"", "sh \"agent.sh\""));
    place.write(
        "agent.sh",
        "(until [ -e try ]; do sleep 0.02; done\n\
         curl -s -o answer -w '%{http_code}' -X POST -H \"$(cat head)\" -H 'content-type: application/json' \\\n\
             -d '{\"choice\": \"allow\"}' \"$(cat address)\" >status.new; mv status.new status) >/dev/null &\n\
         exec python3 agent.py \"$@\"\n",
    );
    let server = Server::start(&place, &[]);
    let (mut run, rest) = place.until(&["run", "flow.kdl"], "swarmc approve");
    await_request(&place, 1);
    let path = format!("/api/v1/runs/{}/approvals/1", server.last_run());
    place.write("head", &format!("authorization: Bearer {}", server.token()));
    place.write("address", &format!("{}{path}", server.url()));
    place.write("try", "");
    let read = |name: &str| fs::read_to_string(place.work().join(name)).unwrap_or_default();
    super::until("the agent asks the server", || !read("status").is_empty());
    assert_eq!(read("status"), "403", "{}", read("answer"));
    let waits = server.read("/api/v1/waits");
    assert_eq!(waits["waits"].as_array().map(Vec::len), Some(1), "its request is open still: {waits:#}");
    // The same request of a person is taken.
    let taken = server.post(&path, &json!({ "choice": "allow" }));
    assert_eq!(taken.status, 200, "{taken:?}");
    assert!(run.wait().expect("it ends").success(), "{}", rest());
    let step: Value = serde_json::from_str(&place.swarmc(&["inspect", "last", "go", "--json"]).expect(0, &[], &[]).out)
        .expect("JSON");
    assert_eq!(step["status"], "succeeded");
}
