//! Handoffs through MCP over loopback, each journaled before it is acknowledged: 2,000 a second or better, and 99 of 100
//! within 5 ms, over HTTP and over `swarmc mcp`. A run is started, and its first task stays under way for as long as is measured.

#![expect(clippy::print_stdout, reason = "a bench prints")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

/// An inbox takes this many.
const ENVELOPES: usize = 1000;

/// A task that says how to come in, and waits.
const SPEC: &str = r#"
workflow handoffs { default main }
pipeline main {
    edges { first -> second max=1000 }
    task first { run "sh" "-c" "echo $SWARM_MCP $SWARM_SOCKET $SWARM_TOKEN >invitation; cat release" }
    task second { stdin "<<inbox>>"; run "true" }
}
"#;

/// A handoff.
const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"send_handoff","arguments":{"to":"second","message":"The parser is ready","status":{"ok":true}}}}"#;

fn main() {
    for (way, clients) in [(Way::Http, [1, 4, 16]), (Way::Stdio, [1, 4, 16])] {
        for clients in clients {
            let (times, whole) = measured(way, clients);
            let rate = times.len() as f64 / whole.as_secs_f64();
            let at = |part: usize| times[(times.len() * part / 100).min(times.len() - 1)];
            println!("{way:?}, {clients:>2} clients: {rate:>6.0} handoffs/s, median {:?}, p99 {:?}", at(50), at(99));
        }
    }
}

/// How a client of MCP reaches the run.
#[derive(Clone, Copy, Debug)]
enum Way {
    Http,
    Stdio,
}

/// How to come in.
#[derive(Clone)]
struct Invitation {
    url: String,
    socket: String,
    token: String,
}

/// The sorted times of all handoffs, and the time of all together.
fn measured(way: Way, clients: usize) -> (Vec<Duration>, Duration) {
    let folder = tempfile::tempdir().expect("a folder");
    let (child, invitation) = start(folder.path());
    // Clients begin at once: what is measured is handoffs, not the start of the servers of others.
    let begin = Arc::new(Barrier::new(clients + 1));
    let workers: Vec<_> = (0..clients)
        .map(|_| {
            let (invitation, begin) = (invitation.clone(), Arc::clone(&begin));
            thread::spawn(move || match way {
                Way::Http => over_http(&invitation, ENVELOPES / clients, &begin),
                Way::Stdio => over_stdio(&invitation, ENVELOPES / clients, &begin),
            })
        })
        .collect();
    begin.wait();
    let started = Instant::now();
    let mut times: Vec<Duration> = workers.into_iter().flat_map(|worker| worker.join().expect("a worker")).collect();
    let whole = started.elapsed();
    std::fs::write(folder.path().join("release"), "").expect("a pipe");
    let ended = child.wait_with_output().expect("swarmc ends");
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    times.sort();
    (times, whole)
}

fn start(folder: &Path) -> (Child, Invitation) {
    std::fs::write(folder.join("spec.kdl"), SPEC).expect("a spec");
    for pipe in ["invitation", "release"] {
        assert!(Command::new("mkfifo").arg(folder.join(pipe)).status().expect("mkfifo starts").success());
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_swarmc"));
    command.args(["run", "spec.kdl"]).current_dir(folder).env("SWARM_HOME", folder.join("home"));
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("swarmc starts");
    let invitation = std::fs::read_to_string(folder.join("invitation")).expect("a pipe");
    let words: Vec<String> = invitation.split_whitespace().map(str::to_owned).collect();
    let [url, socket, token] = <[String; 3]>::try_from(words).expect("an address, a socket and a token");
    (child, Invitation { url, socket, token })
}

/// Sends handoffs over one connection, one after the other; how long each took.
fn over_http(Invitation { url, token, .. }: &Invitation, count: usize, begin: &Barrier) -> Vec<Duration> {
    let (authority, path) = url.strip_prefix("http://").and_then(|rest| rest.split_once('/')).expect("an address");
    let stream = TcpStream::connect(authority).expect("the port is open");
    stream.set_nodelay(true).expect("an option");
    let mut reader = BufReader::new(stream);
    let body = CALL;
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
    begin.wait();
    (0..count).map(|_| one(&mut reader)).collect()
}

/// The same through one `swarmc mcp`.
fn over_stdio(Invitation { socket, token, .. }: &Invitation, count: usize, begin: &Barrier) -> Vec<Duration> {
    let mut server = Command::new(env!("CARGO_BIN_EXE_swarmc"));
    server.arg("mcp").env("SWARM_SOCKET", socket).env("SWARM_TOKEN", token);
    let mut server = server.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("swarmc starts");
    let mut input = server.stdin.take().expect("a pipe");
    let mut reader = BufReader::new(server.stdout.take().expect("a pipe"));
    let mut say = |line: &str| writeln!(input, "{line}").expect("a request");
    let mut hear = || {
        let mut line = String::new();
        reader.read_line(&mut line).expect("an answer");
        line
    };
    say(
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#,
    );
    hear();
    say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    let mut one = || {
        let started = Instant::now();
        say(CALL);
        let answer = hear();
        assert!(answer.contains(r#""isError":false"#), "{answer}");
        started.elapsed()
    };
    begin.wait();
    let times = (0..count).map(|_| one()).collect();
    drop(input);
    assert!(server.wait().expect("swarmc ends").success());
    times
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
