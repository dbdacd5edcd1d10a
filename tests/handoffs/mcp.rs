//! The MCP door (seed 002, communication model; issue 7, doors for agents): what it offers, to whom, and whom it
//! refuses.

mod agents;
mod models;
mod real;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use super::{err, sent};
use crate::specs::Project;

/// A task that tells the test how to come in, and then waits until the test lets it go.
const SPEC: &str = r#"
workflow doors { default main }
pipeline main {
    edges { first -> second; second -> first }
    task first {
        run "sh" "-c" "echo $SWARM_MCP $SWARM_TOKEN $SWARM_SOCKET >invitation; cat release"
    }
    task second { stdin "<<inbox>>"; run "cat" }
    result second
}
"#;

/// Nothing takes as long on the slowest machine.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);

/// What `first` is offered: a command that reads no inbox hears nobody who would help it.
const TOOLS: [&str; 6] = ["send_handoff", "send_message", "broadcast", "report_status", "read_inbox", "read_context"];

/// A run whose first task is under way, as somebody in that task sees it.
pub(super) struct McpSession {
    project: Project,
    child: Child,
    url: String,
    pub(super) token: String,
    pub(super) socket: String,
}

impl McpSession {
    pub(super) fn new() -> McpSession {
        let project = Project::new();
        fs::write(project.root().join("spec.kdl"), SPEC).expect("a spec can be written");
        for pipe in ["invitation", "release"] {
            let made = Command::new("mkfifo").arg(project.root().join(pipe)).status().expect("mkfifo starts");
            assert!(made.success());
        }
        let mut command = project.command(&["run", "spec.kdl"]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("swarmc starts");
        // Opening waits until the task writes.
        let invitation = fs::read_to_string(project.root().join("invitation")).expect("a pipe can be read");
        let mut words = invitation.split_whitespace().map(str::to_owned);
        let mut word = || words.next().expect("there are three words");
        let (url, token, socket) = (word(), word(), word());
        McpSession { project, child, url, token, socket }
    }

    pub(super) fn root(&self) -> PathBuf {
        self.project.root()
    }

    /// Lets the task go; what came of the run.
    pub(super) fn release(self) -> (Project, Output) {
        fs::write(self.project.root().join("release"), "").expect("a pipe can be written");
        let output = self.child.wait_with_output().expect("swarmc ends");
        (self.project, output)
    }

    fn port(&self) -> &str {
        let authority = self.url.strip_prefix("http://").and_then(|rest| rest.split('/').next());
        authority.and_then(|authority| authority.rsplit(':').next()).expect("an address has a port")
    }

    /// The headers of a request that is right.
    fn headers(&self) -> Vec<(String, String)> {
        let pairs = [
            ("Host", format!("127.0.0.1:{}", self.port())),
            ("Authorization", format!("Bearer {}", self.token)),
            ("Content-Type", "application/json".to_owned()),
            ("Accept", "application/json, text/event-stream".to_owned()),
        ];
        pairs.map(|(name, value)| (name.to_owned(), value)).to_vec()
    }

    /// What swarmc says from another terminal.
    pub(super) fn swarmc(&self, arguments: &[&str]) -> Output {
        self.project.swarmc(arguments)
    }

    pub(super) fn connect(&self) -> Line {
        let stream = TcpStream::connect(format!("127.0.0.1:{}", self.port())).expect("the port is open");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time-out can be set");
        Line { reader: BufReader::new(stream) }
    }

    /// The status of one request with these changes to a right one.
    fn status(&self, path: &str, changes: &[(&str, Option<&str>)], body: &[u8]) -> u16 {
        let mut headers = self.headers();
        for (name, value) in changes {
            headers.retain(|(known, _)| known != name);
            headers.extend(value.map(|value| ((*name).to_owned(), value.to_owned())));
        }
        self.connect().post(path, &headers, body).0
    }

    /// What a call of a tool gives.
    pub(super) fn call(&self, line: &mut Line, tool: &str, arguments: Value) -> Value {
        let request = json!({
            "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": tool, "arguments": arguments },
        });
        let (status, answer) = line.post("/agents/first/mcp", &self.headers(), request.to_string().as_bytes());
        assert_eq!(status, 200, "{answer}");
        let answer: Value = serde_json::from_str(&answer).expect("the answer is JSON");
        assert_eq!(answer["error"], Value::Null, "{answer}");
        answer["result"].clone()
    }
}

/// A connection that is kept.
pub(super) struct Line {
    reader: BufReader<TcpStream>,
}

impl Line {
    /// Sends one request; the status and the body of the answer.
    fn post(&mut self, path: &str, headers: &[(String, String)], body: &[u8]) -> (u16, String) {
        let mut head = format!("POST {path} HTTP/1.1\r\nContent-Length: {}\r\n", body.len());
        headers.iter().for_each(|(name, value)| head.push_str(&format!("{name}: {value}\r\n")));
        // In one piece: two would wait for each other. Whoever is refused is not heard out.
        let _ = self.reader.get_mut().write_all(&[head.as_bytes(), b"\r\n", body].concat());
        self.answer()
    }

    fn answer(&mut self) -> (u16, String) {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            self.reader.read_line(&mut line).expect("an answer can be read");
            match line.trim_end() {
                "" => break,
                line => lines.push(line.to_lowercase()),
            }
        }
        let status = lines.first().and_then(|line| line.split(' ').nth(1)).and_then(|status| status.parse().ok());
        let length = lines.iter().find_map(|line| line.strip_prefix("content-length: ")).map(str::parse);
        let mut body = vec![0; length.and_then(Result::ok).unwrap_or(0)];
        self.reader.read_exact(&mut body).expect("a body can be read");
        (status.expect("an answer has a status"), String::from_utf8(body).expect("a body is a text"))
    }
}

/// Communication model: both tools, over HTTP.
#[test]
fn an_agent_hands_over_and_reads_its_inbox_over_http() {
    let guest = McpSession::new();
    let line = &mut guest.connect();
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    let (status, tools) = line.post("/agents/first/mcp", &guest.headers(), request.to_string().as_bytes());
    assert_eq!(status, 200, "{tools}");
    let tools: Value = serde_json::from_str(&tools).expect("the answer is JSON");
    let tools = tools["result"]["tools"].as_array().expect("there are tools");
    let names: Vec<&Value> = tools.iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, TOOLS);
    assert!(tools.iter().all(|tool| tool["_meta"]["anthropic/alwaysLoad"] == true));
    assert_eq!(tools[0]["inputSchema"]["properties"]["to"]["enum"], json!(["second"]));

    let receipt = guest.call(
        line,
        "send_handoff",
        json!({
            "to": "second", "message": "As agreed", "structured": { "key": "value" },
            "artifacts": [{ "type": "report", "ref": "spec.kdl" }], "status": { "ok": true, "reason": "tests-pass" },
            "priority": "normal",
        }),
    );
    assert_eq!((&receipt["isError"], &receipt["structuredContent"]["to"]), (&json!(false), &json!("second")));
    let inbox = guest.call(line, "read_inbox", json!({}));
    assert_eq!(inbox["structuredContent"], json!({ "inputs": [], "waiting": [] }));
    let (project, output) = guest.release();
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert_eq!(sent(&project), ["first → second: As agreed"]);
    assert!(project.output("second").contains(r#""structured":{"key":"value"}"#), "{}", project.output("second"));
}

/// What is refused can be read and mended.
#[test]
fn a_handoff_that_is_refused_is_a_result_that_says_why() {
    let guest = McpSession::new();
    let line = &mut guest.connect();
    let long = "x".repeat(4001);
    for (tool, arguments, why) in [
        ("send_handoff", json!({ "to": "third", "message": "m" }), "you can send to `second`"),
        ("send_handoff", json!({ "to": "first", "message": "m" }), "you cannot send a handoff to yourself"),
        ("send_handoff", json!({ "to": "second" }), "missing field `message`"),
        ("send_handoff", json!({ "to": "second", "summary": "m" }), "unknown field `summary`"),
        ("send_handoff", json!({ "to": "second", "message": "" }), "`message` is empty"),
        ("send_handoff", json!({ "to": "second", "message": " \n\t\u{a0}" }), "`message` is empty"),
        ("send_handoff", json!({ "to": "second", "message": long }), "at most 4000 are allowed"),
        ("send_handoff", json!({ "to": "second", "message": "m", "structured": { "t": "x".repeat(70_000) } }), "65536"),
        (
            "send_handoff",
            json!({ "to": "second", "message": "m", "artifacts": [{ "type": "file", "ref": "/etc/passwd" }] }),
            "lies outside the run",
        ),
        ("read_inbox", json!({ "of": "second" }), "takes no arguments"),
        ("spawn_node", json!({ "to": "second", "message": "m" }), "no edge lets `first` spawn `second`"),
        ("read_context", json!({}), "your turn has no context pack"),
        ("read_context", json!({ "reference": "artifact://diff/0123456789abcdef" }), "there is no such reference"),
        ("send", json!({}), "there are `send_handoff`, `spawn_node`, `send_message`, `broadcast`, `report_status`,"),
    ] {
        let result = guest.call(line, tool, arguments.clone());
        let text = result["content"][0]["text"].as_str().expect("there is a text");
        assert!(result["isError"] == true && text.contains(why), "{arguments}: {text}");
    }
    let (project, output) = guest.release();
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert_eq!(sent(&project), Vec::<String>::new());
}

/// An outsider can do nothing on the port, and a node cannot speak for another.
#[test]
fn whoever_is_not_the_node_is_refused() {
    let guest = McpSession::new();
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }).to_string();
    let list = list.as_bytes();
    let (own, port) = ("/agents/first/mcp", guest.port().to_owned());
    let ours = format!("http://127.0.0.1:{port}");
    let (rebound, elsewhere) = (format!("evil.example:{port}"), format!("127.0.0.1:{port}1"));
    let guessed = format!("Bearer {}", "0".repeat(32));
    let basic = format!("Basic {}", guest.token);
    let cut = format!("Bearer {}", &guest.token[1..]);
    for (path, change, status) in [
        (own, ("Accept-Language", Some("de")), 200),
        (own, ("Host", Some(format!("localhost:{port}").as_str())), 200),
        (own, ("Origin", Some(ours.as_str())), 200),
        (own, ("Authorization", None), 401),
        (own, ("Authorization", Some("Bearer ")), 401),
        (own, ("Authorization", Some(guessed.as_str())), 401),
        (own, ("Authorization", Some(cut.as_str())), 401),
        (own, ("Authorization", Some(basic.as_str())), 401),
        (own, ("Host", Some("evil.example")), 403),
        (own, ("Host", Some(rebound.as_str())), 403),
        (own, ("Host", Some(elsewhere.as_str())), 403),
        (own, ("Host", None), 400),
        (own, ("Origin", Some("http://evil.example")), 403),
        (own, ("Origin", Some("https://127.0.0.1")), 403),
        (own, ("Origin", Some("null")), 403),
        // The token is right, the node is not.
        ("/agents/second/mcp", ("Accept-Language", Some("de")), 403),
        ("/agents/first/../second/mcp", ("Accept-Language", Some("de")), 403),
        ("/agents/", ("Accept-Language", Some("de")), 404),
        ("/", ("Accept-Language", Some("de")), 404),
        // Nothing is told before the token is right.
        ("/", ("Authorization", None), 401),
        (own, ("Content-Type", Some("text/plain")), 415),
        (own, ("Accept", Some("text/html")), 406),
    ] {
        // Without a host a request of HTTP/1.1 is none, to us it has a wrong one.
        let found = guest.status(path, &[change], list);
        assert!(found == status || status == 400 && found == 403, "{path} {change:?}: {found}, not {status}");
    }
    let (project, output) = guest.release();
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    // The token stands nowhere.
    let path = project.home();
    let kept = super::walk(&path).into_iter().filter_map(|path| fs::read(path).ok());
    assert!(kept.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).all(|text| !text.contains("Bearer ")));
}

/// Each node's token opens its own address only, and only while its turn goes on.
#[test]
fn the_token_of_a_turn_that_is_over_opens_nothing() {
    let project = Project::new();
    let spec = r#"
workflow doors { default main }
pipeline main {
    edges { first -> second; second -> third }
    task first { run "sh" "-c" "echo $SWARM_MCP $SWARM_TOKEN >first" }
    task second {
        depends-on first
        run "sh" "-c" "echo $SWARM_MCP $SWARM_TOKEN >second; cat first second >invitation; cat release"
    }
    task third { depends-on second; run "true" }
}
"#;
    fs::write(project.root().join("spec.kdl"), spec).expect("a spec can be written");
    for pipe in ["invitation", "release"] {
        assert!(Command::new("mkfifo").arg(project.root().join(pipe)).status().expect("mkfifo starts").success());
    }
    let mut command = project.command(&["run", "spec.kdl"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("swarmc starts");
    let invitation = fs::read_to_string(project.root().join("invitation")).expect("a pipe can be read");
    let words: Vec<&str> = invitation.split_whitespace().collect();
    let [first, old, second, token] = words[..] else { panic!("{invitation}") };
    let guest = |url: &str, token: &str| {
        let (url, token) = (url.to_owned(), token.to_owned());
        let idle = Command::new("true").spawn().expect("it starts");
        let guest = McpSession { project: Project::new(), child: idle, url, token, socket: String::new() };
        let path = guest.url.find("/agents").map(|at| guest.url[at..].to_owned()).expect("an address has a path");
        let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }).to_string();
        guest.status(&path, &[], list.as_bytes())
    };
    assert_eq!(guest(first, old), 401, "its turn is over");
    assert_eq!(guest(first, token), 403, "the other's token");
    assert_eq!(guest(second, token), 200);
    fs::write(project.root().join("release"), "").expect("a pipe can be written");
    let output = child.wait_with_output().expect("swarmc ends");
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
}

#[test]
fn what_is_too_much_is_not_read() {
    let guest = McpSession::new();
    let own = "/agents/first/mcp";
    assert_eq!(guest.status(own, &[], &vec![b'x'; 10 * 1024 * 1024]), 413);
    assert_eq!(guest.status(own, &[("Authorization", None)], &vec![b'x'; 10 * 1024 * 1024]), 401);
    // Without a length.
    let mut line = guest.connect();
    let stream = line.reader.get_mut();
    let mut head = format!("POST {own} HTTP/1.1\r\nTransfer-Encoding: chunked\r\n");
    guest.headers().iter().for_each(|(name, value)| head.push_str(&format!("{name}: {value}\r\n")));
    stream.write_all(format!("{head}\r\n").as_bytes()).expect("a request can be sent");
    let piece = [format!("{:x}\r\n", 64 * 1024).into_bytes(), vec![b'x'; 64 * 1024], b"\r\n".to_vec()].concat();
    for _ in 0..160 {
        if stream.write_all(&piece).is_err() {
            break;
        }
    }
    assert_eq!(line.answer().0, 413);
    // What is no JSON, no JSON-RPC, or too deep.
    let deep = [b"[".repeat(100_000), b"]".repeat(100_000)].concat();
    for body in [&b""[..], b"{", b"[]", b"null", b"{\"jsonrpc\":\"2.0\"}", &deep] {
        let status = guest.status(own, &[], body);
        assert!((400..500).contains(&status), "{status}");
    }
    // Whoever only connects is not waited for.
    let mut silent = guest.connect();
    assert_eq!(silent.reader.read(&mut [0; 1]).expect("the connection is closed in order"), 0);
    let (_, output) = guest.release();
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
}

/// Handoff delivery: a flood fills the inbox, and no more.
#[test]
fn ten_thousand_handoffs_end_in_a_full_inbox() {
    let guest = McpSession::new();
    let line = &mut guest.connect();
    let (mut taken, mut full) = (0, 0);
    for number in 0..10_000 {
        let result = guest.call(line, "send_handoff", json!({ "to": "second", "message": format!("number {number}") }));
        match result["isError"] == true {
            false => taken += 1,
            true => {
                let text = result["content"][0]["text"].as_str().expect("there is a text");
                assert!(text.contains("which is the limit") || text.contains("is full"), "{text}");
                full += 1;
            }
        }
    }
    assert!((1..=1000).contains(&taken) && full == 10_000 - taken, "{taken} were taken, {full} were not");
    let (project, output) = guest.release();
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert_eq!(sent(&project).len(), taken);
}

/// The same tools for clients that start a process.
#[test]
fn an_agent_hands_over_over_standard_input_and_output() {
    let guest = McpSession::new();
    let requests = [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" },
        } }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" }),
        json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {
            "name": "send_handoff", "arguments": { "to": "second", "message": "Over a pipe" },
        } }),
        json!({ "jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": {
            "name": "send_handoff", "arguments": { "to": "third", "message": "m" },
        } }),
    ];
    let mut child = mcp(&guest, &guest.token).spawn().expect("swarmc starts");
    let (mut stdin, stdout) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
    let mut lines = BufReader::new(stdout).lines();
    let mut answers = Vec::new();
    for request in requests {
        stdin.write_all(format!("{request}\n").as_bytes()).expect("a request can be sent");
        if request["id"].is_number() {
            let line = lines.next().expect("there is an answer").expect("it is a text");
            answers.push(serde_json::from_str::<Value>(&line).expect("it is JSON"));
        }
    }
    drop(stdin);
    assert!(child.wait().expect("it ends with its input").success());
    assert_eq!(answers[0]["result"]["serverInfo"]["name"], "swarm");
    assert_eq!(answers[1]["result"]["tools"][0]["inputSchema"]["properties"]["to"]["enum"], json!(["second"]));
    assert_eq!(answers[2]["result"]["structuredContent"]["to"], "second");
    assert_eq!(answers[3]["result"]["isError"], true);
    // Whoever has no token is told so, and not as MCP.
    let refused = mcp(&guest, "guessed").output().expect("swarmc starts");
    assert_eq!((refused.status.code(), refused.stdout.len()), (Some(2), 0));
    assert!(err(&refused).contains("SWARM_TOKEN is not valid"), "{}", err(&refused));
    let (project, output) = guest.release();
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert_eq!(sent(&project), ["first → second: Over a pipe"]);
}

/// `swarmc mcp` as a client in the task starts it.
fn mcp(guest: &McpSession, token: &str) -> Command {
    let mut command = guest.project.command(&["mcp"]);
    command.env("SWARM_SOCKET", &guest.socket).env("SWARM_TOKEN", token);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The schemas of what agents send and receive hold for the example of seed 002.
#[test]
fn the_envelope_of_the_seed_fits_the_published_schema() {
    let project = Project::new();
    let validator = |of: &str| {
        let schema: Value = serde_json::from_str(&project.done(&["schema", of])).expect("a schema is JSON");
        jsonschema::validator_for(&schema).expect("it is a schema")
    };
    let envelope = json!({
        "kind": "handoff",
        "id": "payload-uuid",
        "fromNodeId": "node-a",
        "toNodeId": "node-b",
        "createdAt": "2026-01-01T00:00:00Z",
        "payload": {
            "message": "Short human-readable summary",
            "structured": { "key": "value" },
            "artifacts": [
                { "type": "diff", "ref": "artifact://diff/123" },
                { "type": "log", "ref": "artifact://log/456" },
            ],
            "status": { "ok": true, "reason": "tests-pass" },
            "response": { "expectation": "optional", "replyTo": "node-a" },
        },
        "contextRef": "contextpack://pack/789",
        "meta": { "priority": "normal" },
    });
    let valid = validator("envelope");
    assert!(valid.is_valid(&envelope));
    for required in ["kind", "id", "fromNodeId", "toNodeId", "createdAt", "payload"] {
        let mut less = envelope.clone();
        less.as_object_mut().expect("an object").remove(required);
        assert!(!valid.is_valid(&less), "{required} is required");
    }
    assert!(validator("handoff").is_valid(&json!({ "to": "node-b", "message": "Short human-readable summary" })));
    assert!(!validator("handoff").is_valid(&json!({ "to": "node-b" })));
}

/// Where swarmc lies, for the PATH of those who start it.
fn binary() -> PathBuf {
    let binary = PathBuf::from(env!("CARGO_BIN_EXE_swarmc"));
    binary.parent().expect("it lies in a folder").to_owned()
}
