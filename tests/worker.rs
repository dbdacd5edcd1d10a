//! `swarmc worker`, with an engine that the test plays: what it takes, reports and keeps when it is killed.

mod engine;

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use engine::Engine;
use serde_json::json;
use swarmc_runtime::engine::{Bytes, Files, Order, ReportEvent, Variable};

use crate::cli::{Place, signal};

/// A process that runs a line of a shell.
fn order(script: &str) -> Order {
    Order {
        argv: ["sh", "-c", script].map(str::to_owned).to_vec(),
        environment: Vec::new(),
        directory: String::new(),
        stdin: None,
        talks: false,
        timeout_ms: None,
        idle_ms: None,
        orphan_ms: 60_000,
        install: None,
        files: Files::default(),
        keeps_changes: false,
    }
}

/// A worker, which is killed at the end of its test.
struct Worker(Child);

impl Worker {
    fn start(place: &Place, engine: &Engine, more: &[&str]) -> Worker {
        let arguments = ["worker", "--engine", &engine.url];
        let mut command = place.command(&[&arguments, more].concat());
        command.env("KNOWN_SECRET", "0123456789abcdef").env("OTHER", "other");
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        Worker(command.spawn().expect("it starts"))
    }

    fn kill(mut self) {
        signal(&self.0, "KILL");
        self.0.wait().expect("it ends");
    }

    /// Ends it as a person does; what it says.
    fn stop(mut self) -> String {
        signal(&self.0, "TERM");
        let mut said = String::new();
        std::io::Read::read_to_string(&mut self.0.stderr.take().expect("it is piped"), &mut said).expect("it is text");
        assert!(self.0.wait().expect("it ends").success(), "{said}");
        said
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn git(folder: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=a", "-c", "user.email=a@example.org"]).args(arguments).current_dir(folder);
    let ended = command.output().expect("git starts");
    assert!(ended.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&ended.stderr));
    String::from_utf8(ended.stdout).expect("it is text").trim().to_owned()
}

/// A repository with one commit, as the workspace; the commit.
fn repository(place: &Place) -> String {
    let work = place.work();
    git(&work, &["init", "--quiet"]);
    place.write("old.txt", "one\ntwo\n");
    place.write(".gitignore", "*.log\n");
    git(&work, &["add", "-A"]);
    git(&work, &["commit", "--quiet", "-m", "first"]);
    git(&work, &["rev-parse", "HEAD"])
}

/// What is left of processes in the home.
fn left(place: &Place) -> usize {
    let names = fs::read_dir(place.home().join("worker/default")).into_iter().flatten().flatten();
    names.filter(|entry| entry.file_name().len() == 32).count()
}

#[test]
fn a_process_is_started_read_in_order_and_reported_to_its_end() {
    let (place, engine) = (Place::new(""), Engine::start());
    let _worker = Worker::start(&place, &engine, &["--slots", "8"]);
    let script = "read line; echo \"$line $GIVEN $OTHER $KNOWN_SECRET\"; echo problem >&2; seq 200000; exit 3";
    let given = |name: &str, variable| (name.to_owned(), variable);
    let of = engine.offer(
        "run/a.1/1",
        1,
        Order {
            environment: vec![
                given("GIVEN", Variable::Set("given".to_owned())),
                given("OTHER", Variable::Passed),
                given("KNOWN_SECRET", Variable::Secret),
            ],
            stdin: Some(Bytes::Text("hello\n".to_owned())),
            ..order(script)
        },
    );
    let (line, patch) = engine.wait_end(&of);
    assert_eq!((&line["ended"]["exit"], patch), (&json!(3), None));
    let numbers: String = (1..=200_000).map(|number| format!("{number}\n")).collect();
    let expected = format!("hello given other 0123456789abcdef\n{numbers}");
    assert!(engine.output(&of, 0) == expected.into_bytes(), "standard output differs");
    assert_eq!(engine.output(&of, 1), b"problem\n");
    let first = engine.lock().seen[&of].reports[0].fact.clone();
    assert!(matches!(first, ReportEvent::Lives { .. }), "{first:?}");
    engine.wait("the engine hears of its end", |state| (state.over == [of.clone()]).then_some(()));
    // Its folder goes with the answer to that.
    engine.wait("its folder is removed", |_| (left(&place) == 0).then_some(()));
}

#[test]
fn what_cannot_be_started_here_is_refused_with_the_reason() {
    let (place, engine) = (Place::new(""), Engine::start());
    let _worker = Worker::start(&place, &engine, &["--slots", "8"]);
    let refuse = |number: u64, order: Order| {
        let of = engine.offer(&format!("run/a.1/{number}"), number, order);
        engine.wait("it is refused", |state| {
            state.refused.iter().find(|(refused, _)| *refused == of).map(|(_, why)| why.clone())
        })
    };
    let absent = Order { argv: vec!["no-such-program".to_owned()], install: Some("get it".to_owned()), ..order("") };
    assert_eq!(refuse(1, absent), "`no-such-program`: not found; install it with `get it`");
    let secret = Order { environment: vec![("ABSENT".to_owned(), Variable::Secret)], ..order("true") };
    assert!(refuse(2, secret).contains("`ABSENT` is not set"));
    let files = Files { commit: Some("0".repeat(40)), patches: Vec::new() };
    assert!(refuse(3, Order { files, ..order("true") }).contains("--workspace"));
    assert!(refuse(4, Order { directory: "../..".to_owned(), ..order("true") }).contains("outside"));
    assert!(engine.lock().seen.is_empty(), "nothing is reported of them");
    assert_eq!(left(&place), 0);
}

#[test]
fn a_process_that_counts_no_more_is_ended_and_leaves_its_place() {
    let (place, engine) = (Place::new(""), Engine::start());
    let _worker = Worker::start(&place, &engine, &["--slots", "1"]);
    let of = engine.offer("run/a.1/1", 1, order("echo $$; exec sleep 1000"));
    engine.wait("it has put something out", |state| (state.seen.get(&of)?.reports.len() > 1).then_some(()));
    let pid = String::from_utf8(engine.output(&of, 0)).expect("it is a number");
    engine.change(|state| {
        state.fenced.push(of.clone());
        state.end(&of);
    });
    let next = engine.offer("run/a.1/1", 2, order("echo next"));
    engine.wait_end(&next);
    assert!(!Path::new("/proc").join(pid.trim()).exists(), "{pid} lives");
    let over = engine.offer("over/a.1/1", 3, order("echo $$; exec sleep 1000"));
    // Its run is over: the push is refused.
    engine.wait("it is over", |state| state.over.contains(&over).then_some(()));
}

#[test]
fn changes_come_back_as_a_patch_on_the_files_that_it_found() {
    let (place, engine) = (Place::new(""), Engine::start());
    let commit = repository(&place);
    let work = place.work();
    let _worker = Worker::start(&place, &engine, &["--workspace", work.to_str().expect("it is text")]);
    let files = Files { commit: Some(commit.clone()), patches: Vec::new() };
    let script = "echo three >> old.txt; mkdir new; printf 'a\\0b' > new/bytes; echo x > some.log; git commit -q --allow-empty -m x; echo y > 'a b'";
    let order_of = |script: &str, files: &Files| Order { files: files.clone(), keeps_changes: true, ..order(script) };
    let first = engine.offer("run/a.1/1", 1, order_of(script, &files));
    let (line, patch) = engine.wait_end(&first);
    assert_eq!(line["ended"]["refused"], json!(null), "{line}");
    let patch = patch.expect("it changed something");
    assert_eq!(patch.paths, ["a b", "new/bytes", "old.txt"]);
    // The next one finds them, and nothing else of the former.
    let files = Files { patches: vec![patch.digest.clone()], ..files };
    let script = "cat old.txt; ls; cat 'a b' new/bytes | tr '\\0' 0; rm -r new; sed -i s/one/ONE/ old.txt";
    let second = engine.offer("run/b.1/1", 2, order_of(script, &files));
    let (_, patch) = engine.wait_end(&second);
    let found = String::from_utf8(engine.output(&second, 0)).expect("it is text");
    assert_eq!(found, "one\ntwo\nthree\na b\nflow.kdl\nnew\nold.txt\ny\na0b");
    assert_eq!(patch.as_ref().map(|patch| &*patch.paths), Some(&["new/bytes".to_owned(), "old.txt".to_owned()][..]));
    // Both apply in order to a clone of its own.
    let clone = place.home().join("clone");
    git(&work, &["clone", "--quiet", ".", clone.to_str().expect("it is text")]);
    for digest in [&files.patches[0], &patch.expect("it is there").digest] {
        let path = place.home().join("patch");
        fs::write(&path, engine.object(digest)).expect("it can be written");
        git(&clone, &["apply", "--binary", path.to_str().expect("it is text")]);
    }
    assert_eq!(fs::read_to_string(clone.join("old.txt")).expect("it is there"), "ONE\ntwo\nthree\n");
    assert!(!clone.join("new").exists());
    // One that changes nothing has no patch, and the workspace itself is as it was.
    let third = engine.offer("run/c.1/1", 3, order_of("true", &files));
    assert_eq!(engine.wait_end(&third).1, None);
    assert_eq!(git(&work, &["status", "--porcelain", "--untracked-files=no"]), "");
}

#[test]
fn the_value_of_a_secret_does_not_leave_in_a_patch() {
    let (place, engine) = (Place::new(""), Engine::start());
    let commit = repository(&place);
    let work = place.work();
    let _worker = Worker::start(&place, &engine, &["--workspace", work.to_str().expect("it is text")]);
    let of = engine.offer(
        "run/a.1/1",
        1,
        Order {
            environment: vec![("KNOWN_SECRET".to_owned(), Variable::Secret)],
            files: Files { commit: Some(commit), patches: Vec::new() },
            keeps_changes: true,
            ..order("echo $KNOWN_SECRET > key.txt")
        },
    );
    let (line, patch) = engine.wait_end(&of);
    let why = line["ended"]["refused"].as_str().expect("it is refused");
    assert!(patch.is_none() && why.contains("`KNOWN_SECRET`") && !why.contains("0123"), "{line}");
}

#[test]
fn a_worker_that_starts_again_goes_on_with_what_it_had() {
    let (place, engine) = (Place::new(""), Engine::start());
    let worker = Worker::start(&place, &engine, &["--slots", "8"]);
    let work = place.work();
    let script = format!(
        "cd {}; echo start >> effects; n=0; until [ -e go ]; do n=$((n+1)); echo line $n; sleep 0.005; done; echo last $n; echo $n > count",
        work.display()
    );
    let of = engine.offer("run/a.1/1", 1, order(&script));
    // It is killed again and again, wherever it is.
    let mut worker = worker;
    for round in 1..=6_usize {
        engine.wait("it goes on", |state| (state.seen.get(&of)?.reports.len() > round * 5).then_some(()));
        worker.kill();
        worker = Worker::start(&place, &engine, &["--slots", "8"]);
    }
    place.write("go", "");
    let (line, _) = engine.wait_end(&of);
    assert_eq!(line["ended"]["exit"], json!(0));
    assert_eq!(fs::read_to_string(work.join("effects")).expect("it is there"), "start\n");
    let count: u32 = fs::read_to_string(work.join("count")).expect("it is there").trim().parse().expect("a number");
    let lines: String = (1..=count).map(|number| format!("line {number}\n")).collect();
    let output = String::from_utf8(engine.output(&of, 0)).expect("it is text");
    assert_eq!(output, format!("{lines}last {count}\n"));
    let state = engine.lock();
    let lives =
        state.seen[&of].reports.iter().filter(|report| matches!(report.fact, ReportEvent::Lives { .. })).count();
    assert_eq!(lives, 1);
    let workers: std::collections::BTreeSet<&str> = state.asks.iter().map(|ask| &*ask.worker).collect();
    assert_eq!(workers.len(), 1, "{workers:?}");
    drop(state);
    engine.wait("the engine hears of its end", |state| (state.over == [of.clone()]).then_some(()));
    assert_eq!(worker.stop(), "worker: goes on with 1 process of a former worker\n");
}

#[test]
fn a_process_that_is_talked_with_hears_each_line_once_whoever_is_killed() {
    let (place, engine) = (Place::new(""), Engine::start());
    let mut worker = Worker::start(&place, &engine, &["--slots", "8"]);
    let of = engine.offer("run/a.1/1", 1, Order { talks: true, ..order("cat; echo over") });
    let mut expected = String::new();
    for round in 0..20 {
        let text = format!("word {round}\n");
        engine.say(&of, &[json!({ "write": text })]);
        expected.push_str(&text);
        if round % 3 == 1 {
            worker.kill();
            worker = Worker::start(&place, &engine, &["--slots", "8"]);
        }
    }
    engine.say(&of, &[json!("close")]);
    engine.wait_end(&of);
    assert_eq!(String::from_utf8(engine.output(&of, 0)).expect("it is text"), expected + "over\n");
    worker.stop();
}

#[test]
fn an_engine_that_is_away_is_told_of_once_and_loses_nothing() {
    let (place, engine) = (Place::new(""), Engine::start());
    let worker = Worker::start(&place, &engine, &["--slots", "8"]);
    let work = place.work();
    let script = format!("cd {}; echo one; until [ -e go ]; do sleep 0.01; done; echo two; touch done", work.display());
    let of = engine.offer("run/a.1/1", 1, order(&script));
    engine.wait("it has begun", |state| (state.seen.get(&of)?.reports.len() > 1).then_some(()));
    engine.change(|state| state.is_down = true);
    place.write("go", "");
    while !work.join("done").exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    engine.change(|state| state.is_down = false);
    engine.wait_end(&of);
    assert_eq!(engine.output(&of, 0), b"one\ntwo\n");
    engine.wait("the engine hears of its end", |state| state.over.contains(&of).then_some(()));
    let said = worker.stop();
    assert_eq!(said.matches("does not answer").count(), 1, "{said}");
    assert_eq!(said.matches("answers again").count(), 1, "{said}");
}

#[test]
fn a_process_calls_its_run_through_its_worker_on_the_same_addresses_after_a_kill() {
    let (place, engine) = (Place::new(""), Engine::start());
    let worker = Worker::start(&place, &engine, &["--slots", "8"]);
    let set = |name: &str, value: &str| (name.to_owned(), Variable::Set(value.to_owned()));
    let swarmc = crate::patience::swarmc();
    let swarmc = swarmc.get_program().to_str().expect("it is text");
    // Its configuration has the address, too.
    let script = format!(
        "echo $SWARM_MCP $0; read line; test \"$line\" = $SWARM_MCP && {swarmc} agent call notices '{{}}'; echo $?"
    );
    let url = "http://127.0.0.1:1/agents/a/mcp";
    let mut order = Order {
        environment: vec![
            set("SWARM_SOCKET", "/nowhere/agents.sock"),
            set("SWARM_TOKEN", "0123456789abcdef"),
            set("SWARM_MCP", url),
        ],
        talks: true,
        ..order(&script)
    };
    order.argv.push(url.to_owned());
    let of = engine.offer("run/a.1/1", 1, order);
    engine.wait("it says its address", |state| (state.seen.get(&of)?.reports.len() > 1).then_some(()));
    let said = String::from_utf8(engine.output(&of, 0)).expect("it is text");
    let (here, word) = said.trim().split_once(' ').expect("two words");
    assert!(here == word && here != url, "{said}");
    worker.kill();
    let _worker = Worker::start(&place, &engine, &["--slots", "8"]);
    engine.say(&of, &[json!({ "write": format!("{url}\n") }), json!("close")]);
    engine.wait("it calls", |state| state.requests.iter().any(|(from, _)| *from == of).then_some(()));
    engine.wait_end(&of);
    let requests = std::mem::take(&mut engine.lock().requests);
    let (from, request) = &requests[0];
    assert!(*from == of && !request.is_tools, "{request:?}");
    let body: serde_json::Value = serde_json::from_slice(&engine.unpack(request.body.clone())).expect("it is JSON");
    assert_eq!(body["token"], json!("0123456789abcdef"));
}

#[test]
fn a_request_without_a_token_or_too_long_is_not_passed_on() {
    let (place, engine) = (Place::new(""), Engine::start());
    let _worker = Worker::start(&place, &engine, &["--slots", "8"]);
    let set = |name: &str, value: &str| (name.to_owned(), Variable::Set(value.to_owned()));
    let order = Order {
        environment: vec![set("SWARM_TOKEN", "0123456789abcdef"), set("SWARM_MCP", "http://127.0.0.1:1/agents/a/mcp")],
        talks: true,
        ..order("echo $SWARM_MCP; cat")
    };
    let of = engine.offer("run/a.1/1", 1, order);
    engine.wait("it says its address", |state| (state.seen.get(&of)?.reports.len() > 1).then_some(()));
    let url = String::from_utf8(engine.output(&of, 0)).expect("it is text");
    let address = url.trim().trim_start_matches("http://").split('/').next().expect("an address").to_owned();
    let ask = |token: &str, length: usize| {
        use std::io::{Read as _, Write as _};
        let mut stream = std::net::TcpStream::connect(&address).expect("it listens");
        let head = format!(
            "POST /agents/a/mcp HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).expect("it listens");
        // One that is refused is not read to its end.
        let _ = stream.write_all(&vec![b'x'; length]);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).lines().next().unwrap_or_default().to_owned()
    };
    assert_eq!(ask("wrong", 10), "HTTP/1.1 401 Unauthorized");
    assert!(engine.lock().requests.is_empty());
    assert_eq!(ask("0123456789abcdef", 10), "HTTP/1.1 200 OK");
    assert_eq!(engine.lock().requests[0].1.path, "/agents/a/mcp");
    let answer = ask("0123456789abcdef", (1 << 20) + 1);
    assert!(answer.is_empty() || answer == "HTTP/1.1 413 Payload Too Large", "{answer}");
    assert_eq!(engine.lock().requests.len(), 1);
    engine.say(&of, &[json!("close")]);
    engine.wait_end(&of);
}
