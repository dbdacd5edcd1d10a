//! Handoffs through MCP over loopback, each journaled before it is acknowledged: 2,000 a second or better, and 99 of 100
//! within 5 ms. A run is started, and its first task stays under way for as long as is measured.

#![expect(clippy::print_stdout, reason = "a bench prints")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// An inbox takes this many.
const ENVELOPES: usize = 1000;

/// A task that says how to come in, and waits.
const SPEC: &str = r#"
workflow handoffs { default main }
pipeline main {
    edges { first -> second max=1000 }
    task first { run "sh" "-c" "echo $SWARM_MCP $SWARM_TOKEN >invitation; cat release" }
    task second { stdin "<<inbox>>"; run "true" }
}
"#;

fn main() {
    for connections in [1, 4, 16] {
        let (times, whole) = measured(connections);
        let rate = times.len() as f64 / whole.as_secs_f64();
        let at = |part: usize| times[(times.len() * part / 100).min(times.len() - 1)];
        println!("{connections:>2} connections: {rate:>6.0} handoffs/s, median {:?}, p99 {:?}", at(50), at(99));
    }
}

/// The sorted times of all handoffs, and the time of all together.
fn measured(connections: usize) -> (Vec<Duration>, Duration) {
    let folder = tempfile::tempdir().expect("a folder");
    let (child, url, token) = start(folder.path());
    let started = Instant::now();
    let workers: Vec<_> = (0..connections)
        .map(|_| {
            let (url, token) = (url.clone(), token.clone());
            thread::spawn(move || handoffs(&url, &token, ENVELOPES / connections))
        })
        .collect();
    let mut times: Vec<Duration> = workers.into_iter().flat_map(|worker| worker.join().expect("a worker")).collect();
    let whole = started.elapsed();
    std::fs::write(folder.path().join("release"), "").expect("a pipe");
    let ended = child.wait_with_output().expect("swarmc ends");
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    times.sort();
    (times, whole)
}

fn start(folder: &Path) -> (Child, String, String) {
    std::fs::write(folder.join("spec.kdl"), SPEC).expect("a spec");
    for pipe in ["invitation", "release"] {
        assert!(Command::new("mkfifo").arg(folder.join(pipe)).status().expect("mkfifo starts").success());
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_swarmc"));
    command.args(["run", "spec.kdl"]).current_dir(folder).env("SWARM_HOME", folder.join("home"));
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("swarmc starts");
    let invitation = std::fs::read_to_string(folder.join("invitation")).expect("a pipe");
    let (url, token) = invitation.trim().split_once(' ').expect("an address and a token");
    (child, url.to_owned(), token.to_owned())
}

/// Sends handoffs over one connection, one after the other; how long each took.
fn handoffs(url: &str, token: &str, count: usize) -> Vec<Duration> {
    let (authority, path) = url.strip_prefix("http://").and_then(|rest| rest.split_once('/')).expect("an address");
    let stream = TcpStream::connect(authority).expect("the port is open");
    stream.set_nodelay(true).expect("an option");
    let mut reader = BufReader::new(stream);
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"send_handoff","arguments":{"to":"second","message":"The parser is ready","status":{"ok":true}}}}"#;
    let request = format!(
        "POST /{path} HTTP/1.1\r\nHost: {authority}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let one = |reader: &mut BufReader<TcpStream>| {
        let started = Instant::now();
        reader.get_mut().write_all(request.as_bytes()).expect("a request");
        let answer = answer(reader);
        assert!(answer.contains(r#""isError":false"#), "{answer}");
        started.elapsed()
    };
    (0..count).map(|_| one(&mut reader)).collect()
}

fn answer(reader: &mut BufReader<TcpStream>) -> String {
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).expect("an answer");
        let line = line.trim_end().to_lowercase();
        if let Some(said) = line.strip_prefix("content-length: ") {
            length = said.parse().expect("a length");
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("a body");
    String::from_utf8(body).expect("a text")
}
