//! `swarmc serve`: its API, its streams, and who is refused. The client speaks HTTP itself: each request is a connection.

mod routes;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cli::{Place, signal};
use crate::top::SPEC;

/// How long something may take that happens soon.
const SOON: Duration = Duration::from_secs(60);

/// A server, which ends with this.
pub(crate) struct Server {
    child: Child,
    address: String,
    token: String,
}

/// What a server answers.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    head: String,
    body: String,
}

impl Server {
    pub(crate) fn start(place: &Place, arguments: &[&str]) -> Server {
        let arguments = [&["serve", "--listen", "127.0.0.1:0", "--specs", "."], arguments].concat();
        Server::start_by(place.command(&arguments), &place.home())
    }

    /// Starts it by a command; `home` is where its runs are.
    pub(crate) fn start_by(mut command: Command, home: &Path) -> Server {
        let log = fs::File::create(home.with_file_name("serve.log")).expect("a file can be made");
        let mut child = command.stdout(Stdio::piped()).stderr(log).spawn().expect("swarmc starts");
        let mut url = String::new();
        let stdout = child.stdout.take().expect("it is a pipe");
        BufReader::new(stdout).read_line(&mut url).expect("it says its address");
        let url = url.trim().strip_prefix("http://").unwrap_or_else(|| panic!("no address: {url}"));
        let (address, token) = url.split_once("/#t=").expect("the address holds the token");
        Server { child, address: address.to_owned(), token: token.to_owned() }
    }

    /// The address for a browser.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        stream.set_read_timeout(Some(SOON)).expect("it can be set");
        // Version 1.0 has no pieces, and the connection ends with the answer.
        let mut head = format!("{method} {path} HTTP/1.0\r\n");
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if !headers.iter().any(|(name, _)| *name == "host") {
            head.push_str(&format!("host: {}\r\n", self.address));
        }
        head.push_str(&format!("content-length: {}\r\n\r\n{body}", body.len()));
        stream.write_all(head.as_bytes()).expect("it reads");
        stream
    }

    fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut bytes = Vec::new();
        self.send(method, path, headers, body).read_to_end(&mut bytes).expect("it answers");
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head: {text}"));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        Answer { status, head: head.to_lowercase(), body: body.to_owned() }
    }

    fn bearer(&self) -> String {
        format!("Bearer {}", self.token)
    }

    fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &[("authorization", &self.bearer())], "")
    }

    /// A document that must be there.
    pub(crate) fn read(&self, path: &str) -> Value {
        let answer = self.get(path);
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        serde_json::from_str(&answer.body).expect("it is JSON")
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        let headers = [("authorization", &*self.bearer()), ("content-type", "application/json")];
        self.ask("POST", path, &headers, &body.to_string())
    }

    /// The lines of a stream, as they come.
    fn follow(&self, path: &str, last: Option<&str>) -> impl Iterator<Item = String> + use<> {
        let bearer = self.bearer();
        let mut headers = vec![("authorization", &*bearer)];
        headers.extend(last.map(|last| ("last-event-id", last)));
        let lines = BufReader::new(self.send("GET", path, &headers, "")).lines();
        lines.map_while(Result::ok).skip_while(|line| !line.is_empty()).skip(1)
    }

    /// Waits until a document says something.
    pub(crate) fn wait(&self, path: &str, says: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + SOON;
        loop {
            let document = self.read(path);
            if says(&document) {
                return document;
            }
            assert!(Instant::now() < deadline, "{path} never says it: {document:#}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The newest run.
    pub(crate) fn last_run(&self) -> String {
        self.read("/api/v1/runs")["runs"][0]["run"].as_str().expect("there is a run").to_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The records in the lines of a stream.
pub(crate) fn records(lines: impl Iterator<Item = String>) -> Vec<(String, String)> {
    let (mut found, mut id) = (Vec::new(), String::new());
    for line in lines {
        if let Some(next) = line.strip_prefix("id: ") {
            next.clone_into(&mut id);
        } else if let Some(data) = line.strip_prefix("data: ").filter(|_| !id.is_empty()) {
            found.push((std::mem::take(&mut id), data.to_owned()));
        }
    }
    found
}

#[test]
fn a_run_of_another_process_is_shown_answered_and_followed() {
    let place = Place::new(SPEC);
    let (mut child, _) = place.until(&["run", "flow.kdl"], "human");
    let server = Server::start(&place, &[]);
    let run = server.last_run();
    let of = |path: &str| format!("/api/v1/runs/{run}{path}");

    let snapshot = server.read(&of(""));
    assert_eq!((&snapshot["state"], &snapshot["workflow"]), (&json!("running"), &json!("flow")));
    let steps = server.read(&of("/steps?state=waiting"));
    let labels: Vec<&str> =
        steps["steps"].as_array().unwrap().iter().map(|step| step["label"].as_str().unwrap()).collect();
    assert_eq!(labels, ["human", "review"]);
    assert_eq!(steps["steps"][1]["waits"], "build, human");
    let boxes = server.read(&of("/graph"));
    assert_eq!(boxes["boxes"]["step"], json!(["plan", "build", "human", "review"]));
    let states = server.read(&of("/graph/states"));
    let state = |step: &str| states["boxes"][format!("n_main__{step}")]["state"].clone();
    assert_eq!(
        [state("plan"), state("build"), state("human"), state("review")],
        ["succeeded", "running", "waiting", "pending"]
    );
    let build = server.read(&of("/steps/build"));
    let log = build["tries"][0]["paths"]["prompt"].as_str().expect("it has a prompt");
    let log = log.strip_prefix(snapshot["folder"].as_str().expect("a folder")).expect("it lies in the folder");
    let log = server.get(&of(&format!("/files{log}?offset=-4")));
    assert_eq!((log.status, &*log.body), (200, "uild"), "{log:?}");
    assert!(
        log.head.contains("content-range: bytes ")
            && log.head.contains("content-disposition: attachment")
            && log.head.contains("policy: sandbox"),
        "{log:?}"
    );

    // The question of the gate has no character that a terminal or a browser obeys.
    let waits = server.read("/api/v1/waits");
    let wait = &waits["waits"][0];
    assert_eq!((&wait["kind"], &wait["choices"]), (&json!("gate"), &json!(["approve", "hold"])));
    assert!(!wait["lines"][0].as_str().unwrap().contains('\u{1b}'), "{wait:#}");
    let gate = wait["key"].as_str().unwrap().replace('/', "%2F");
    let wrong = server.post(&of(&format!("/gates/{gate}")), &json!({ "choice": "aprove" }));
    assert_eq!(wrong.status, 409);
    assert!(wrong.body.contains("did you mean `approve`?"), "{wrong:?}");
    let answered = server.post(&of(&format!("/gates/{gate}")), &json!({ "choice": "approve" }));
    assert_eq!(answered.status, 200, "{answered:?}");
    let people = place.home().join("runs").join(&run).join("people.jsonl");
    assert!(fs::read_to_string(people).expect("it is written down").contains("\"route\":\"answerGate\""));
    let again = server.post(&of(&format!("/gates/{gate}")), &json!({ "choice": "hold" }));
    assert_eq!(again.status, 409, "{again:?}");
    assert!(place.swarmc(&["inspect", &run, "human"]).out.contains("human"));

    place.write("go", "");
    assert!(child.wait().expect("it ends").success());
    // The lines are those of the run itself, and a client that has them all must not come back.
    let streamed = records(server.follow(&of("/events?from=0"), None));
    let printed = place.swarmc(&["events", &run]).out;
    assert_eq!(streamed.iter().map(|(_, line)| format!("{line}\n")).collect::<String>(), printed);
    let (middle, last) = (&streamed[streamed.len() / 2].0, &streamed.last().unwrap().0);
    let rest = records(server.follow(&of("/events"), Some(middle)));
    assert_eq!(rest, streamed[streamed.len() / 2 + 1..]);
    let bearer = server.bearer();
    let over = server.ask("GET", &of("/events"), &[("authorization", &bearer), ("last-event-id", last)], "");
    assert_eq!(over.status, 204);
    // An event of another journal is none of this one.
    let other = format!("{}-00000000", last.split('-').next().unwrap());
    assert!(server.follow(&of("/events"), Some(&other)).any(|line| line == "event: reset"));
}

#[test]
fn strangers_other_sites_and_queries_with_tokens_are_refused() {
    let place = Place::new("workflow w\npipeline p { task a { run echo } }\n");
    place.swarmc(&["run", "flow.kdl"]).expect(0, &[], &[]);
    let server = Server::start(&place, &["--allow-host", "runs.example"]);
    let bearer = server.bearer();
    let (token, json_type) = (("authorization", &*bearer), ("content-type", "application/json"));
    let refused = |path: &str, headers: &[(&str, &str)]| server.ask("GET", path, headers, "").status;
    assert_eq!(refused("/api/v1/health", &[]), 401);
    assert_eq!(refused(&format!("/api/v1/health?token={}", server.token), &[]), 401);
    assert_eq!(refused("/api/v1/health", &[("authorization", "Bearer 0")]), 401);
    assert_eq!(refused("/api/v1/health", &[token, ("host", "evil.test")]), 403);
    assert_eq!(refused("/", &[("host", "evil.test")]), 403);
    assert_eq!(refused("/api/v1/health", &[token, ("origin", "http://evil.test")]), 403);
    assert_eq!(refused("/api/v1/health", &[token, ("sec-fetch-site", "cross-site")]), 403);
    assert_eq!(refused("/api/v1/health", &[token, ("host", "runs.example")]), 200);
    let run = server.last_run();
    let stop = format!("/api/v1/runs/{run}/stop");
    let simple = server.ask("POST", &stop, &[token, ("content-type", "text/plain")], "{}");
    assert_eq!(simple.status, 415);
    let long = format!("\"{}\"", "x".repeat(1024 * 1024));
    assert_eq!(server.ask("POST", &stop, &[token, json_type], &long).status, 413);
    assert_eq!(server.ask("DELETE", &stop, &[token], "").status, 405);
    for path in ["../plan.json", "..%2F..%2Fserve", "/etc/passwd", "%00", "logs"] {
        let answer = server.get(&format!("/api/v1/runs/{run}/files/{path}"));
        assert_eq!(answer.status, 404, "{path}: {answer:?}");
    }
    std::os::unix::fs::symlink("/etc/hostname", place.home().join("runs").join(&run).join("out")).expect("a link");
    assert_eq!(server.get(&format!("/api/v1/runs/{run}/files/out")).status, 404);
    let log = fs::read_to_string(place.home().with_file_name("serve.log")).expect("it has a log");
    assert!(log.contains("refused (403) GET /api/v1/health from 127.0.0.1:"), "{log}");
    // The token is a file that only its owner reads, and goes with the server.
    let page = server.ask("GET", "/", &[], "");
    assert!(page.head.contains("content-security-policy: default-src 'none'") && page.status == 200, "{page:?}");
    signal(&server.child, "TERM");
    let port = server.address.split(':').nth(1).unwrap().to_owned();
    let file = place.home().join("serve").join(format!("{port}.token"));
    let deadline = Instant::now() + SOON;
    while file.exists() {
        assert!(Instant::now() < deadline, "the token outlives the server");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_process_of_a_run_changes_nothing() {
    let place = Place::new(
        r#"
        workflow w
        pipeline p {
            task ask { run sh "-c" "curl -s -o answer.txt -w '%{http_code}' -X POST -H \"$(cat head)\" -H 'content-type: application/json' -d '{}' \"$(cat address)\" >status.txt" }
            gate human { message "Go on?"; options yes no; on-timeout no after="24h" }
            task last { when "output.human.choice == 'yes'"; run echo }
        }
        "#,
    );
    let server = Server::start(&place, &[]);
    place.write("head", &format!("authorization: {}", server.bearer()));
    place.write("address", &format!("{}/api/v1/runs/last/stop", server.url()));
    let (mut child, _) = place.until(&["run", "flow.kdl"], "ask: started");
    let read = |name: &str| fs::read_to_string(place.work().join(name)).unwrap_or_default();
    let deadline = Instant::now() + SOON;
    while read("status.txt").is_empty() {
        assert!(Instant::now() < deadline, "the task never asks");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(read("status.txt"), "403", "{}", read("answer.txt"));
    assert!(read("answer.txt").contains("swarmc agent request-help"));
    let stopped = server.post("/api/v1/runs/last/stop", &json!({}));
    assert_eq!(stopped.status, 200, "{stopped:?}");
    assert_eq!(child.wait().expect("it ends").code(), Some(4));
}

#[test]
fn submitted_runs_outlive_the_server_wait_in_a_queue_and_go_on() {
    let place = Place::new(
        r#"
        workflow w { default p }
        param name type=string
        pipeline p { task a { run sh "-c" "until [ -e go ]; do sleep 0.02; done; cat"; stdin "<<param:name>>" }; result a }
        "#,
    );
    place.write("wrong.kdl", "workflow w\npipeline p { task a { depends-on b; run echo } }\n");
    let server = Server::start(&place, &["--runs", "1"]);
    let submit = |body: Value| server.post("/api/v1/runs", &body);
    let wrong = submit(json!({ "spec": "wrong.kdl" }));
    assert_eq!(wrong.status, 422);
    let wrong: Value = serde_json::from_str(&wrong.body).expect("it is JSON");
    assert_eq!(wrong["diagnostics"]["diagnostics"][0]["code"], "SW101", "{wrong:#}");
    assert_eq!(submit(json!({ "spec": "../flow.kdl" })).status, 404);
    assert_eq!(submit(json!({ "spec": "flow.kdl" })).status, 409, "a parameter is missing");
    let first = submit(json!({ "spec": "flow.kdl", "params": { "name": "Ada; touch x" } }));
    assert_eq!(first.status, 202, "{first:?}");
    let first: Value = serde_json::from_str(&first.body).expect("it is JSON");
    let run = first["run"].as_str().expect("it begins at once").to_owned();
    let headers =
        [("authorization", &*server.bearer()), ("content-type", "application/json"), ("idempotency-key", "twice")];
    let body = json!({ "spec": "flow.kdl", "params": { "name": "Bea" } }).to_string();
    let second = server.ask("POST", "/api/v1/runs", &headers, &body);
    let again = server.ask("POST", "/api/v1/runs", &headers, &body);
    assert!(second.body.contains("\"queued\":") && second.body == again.body, "{second:?} {again:?}");
    assert_eq!(server.read("/api/v1/runs")["queued"].as_array().map(Vec::len), Some(1));
    // The end of the server ends nothing, and forgets nothing.
    signal(&server.child, "KILL");
    drop(server);
    let server = Server::start(&place, &["--runs", "2"]);
    let page = server.wait("/api/v1/runs", |page| page["runs"].as_array().map(Vec::len) == Some(2));
    assert_eq!(page["queued"], json!([]));
    place.write("go", "");
    server.wait(&format!("/api/v1/runs/{run}"), |run| run["state"] == "succeeded");
    let output = place.home().join("outputs").join(&run).join("a.txt");
    assert_eq!(fs::read_to_string(output).expect("it has an output").trim(), "Ada; touch x");
}

#[test]
fn a_run_whose_runner_was_killed_goes_on_from_the_server() {
    let place = Place::new(
        r#"
        workflow w
        pipeline p {
            task first { run sh "-c" "echo once >>first.txt" }
            task second { depends-on first; run sh "-c" "until [ -e go ]; do sleep 0.02; done" }
        }
        "#,
    );
    let server = Server::start(&place, &[]);
    let (mut child, _) = place.until(&["run", "flow.kdl"], "second");
    let run = server.last_run();
    let lines = server.follow(&format!("/api/v1/runs/{run}/events"), None);
    signal(&child, "KILL");
    child.wait().expect("it ends");
    let begun = Instant::now();
    let gone = lines.take_while(|line| !line.contains("\"state\":\"gone\"")).count();
    assert!(begun.elapsed() < Duration::from_secs(10), "`gone` came after {gone} lines");
    let state = server.read(&format!("/api/v1/runs/{run}"));
    assert_eq!(state["state"], "resumable");
    let resumed = server.post(&format!("/api/v1/runs/{run}/resume"), &json!({}));
    assert_eq!(resumed.status, 200, "{resumed:?}");
    place.write("go", "");
    server.wait(&format!("/api/v1/runs/{run}"), |run| run["state"] == "succeeded");
    assert_eq!(fs::read_to_string(place.work().join("first.txt")).expect("it ran"), "once\n");
}

#[test]
fn a_task_of_seed_001_runs_the_workflow_for_its_query() {
    let place = Place::new(
        r##"
        workflow w { default plain }
        param query type=string
        param language type=string default="en"
        provider p { script { answer #"{"action": "done", "response": "found"}"# } }
        agent a provider=p
        swarm team { goal "<<param:query>>"; member one agent=a "Do it" }
        pipeline plain { task say { run cat; stdin "<<param:query>> <<param:language>>" }; result say }
        pipeline deep { task go { swarm team }; result go }
        "##,
    );
    let server = Server::start(&place, &[]);
    let post = |body: Value| {
        let answer = server.post("/api/v1/tasks", &body);
        assert_eq!(answer.status, 202, "{answer:?}");
        serde_json::from_str::<Value>(&answer.body).expect("it is JSON")
    };
    let task = post(json!({ "query": "Compare", "session_id": "s", "context": { "language": "de", "other": 1 } }));
    let path = format!("/api/v1/tasks/{}", task["task_id"].as_str().expect("it has an id"));
    let done = server.wait(&path, |task| task["status"] == "succeeded");
    let run = done["workflow_id"].as_str().expect("it has a run");
    let said = fs::read_to_string(place.home().join("outputs").join(run).join("say.txt")).expect("it has an output");
    assert_eq!(said.trim(), "Compare de");
    let task = post(json!({ "query": "Compare", "context": { "force_swarm": true } }));
    let path = format!("/api/v1/tasks/{}", task["task_id"].as_str().expect("it has an id"));
    let done = server.wait(&path, |task| task["status"] == "succeeded");
    let run = server.read(&format!("/api/v1/runs/{}", done["workflow_id"].as_str().expect("it has a run")));
    assert_eq!((&run["pipeline"], &run["swarms"]), (&json!("deep"), &json!(["go"])));
    assert_eq!(server.get("/api/v1/tasks/task-99").status, 404);
}

#[test]
fn a_server_that_only_reads_has_no_route_that_changes_something() {
    let place = Place::new("workflow w\npipeline p { task a { run echo } }\n");
    let server = Server::start(&place, &["--read-only"]);
    assert_eq!(server.post("/api/v1/runs", &json!({ "spec": "flow.kdl" })).status, 405);
    assert_eq!(server.post("/api/v1/runs/last/stop", &json!({})).status, 404);
    assert!(!server.read("/api/v1/openapi.json").to_string().contains("\"post\":"));
    let exposed = place.swarmc(&["serve", "--listen", "0.0.0.0:0"]);
    exposed.expect(2, &[], &["can be reached from other machines", "--behind-tls"]);
    let mut taken = place.command(&["serve", "--listen", &server.address]);
    let taken = taken.output().expect("swarmc starts");
    assert!(String::from_utf8_lossy(&taken.stderr).contains("another program may have the port"), "{taken:?}");
}

/// A client that reads slowly gets every record, and holds up no one.
#[test]
fn a_slow_client_loses_no_record() {
    let tasks: String = (0..300).map(|number| format!("    task t{number} {{ run echo }}\n")).collect();
    let place = Place::new(&format!("workflow w\npipeline p {{\n{tasks}}}\n"));
    let server = Server::start(&place, &[]);
    let mut child = place.command(&["run", "flow.kdl", "--quiet"]).spawn().expect("swarmc starts");
    server.wait("/api/v1/runs", |page| page["runs"].as_array().is_some_and(|runs| !runs.is_empty()));
    let run = server.last_run();
    let bearer = server.bearer();
    let mut stream =
        server.send("GET", &format!("/api/v1/runs/{run}/events?from=0"), &[("authorization", &bearer)], "");
    assert!(child.wait().expect("it ends").success());
    let mut text = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let read = stream.read(&mut piece).expect("it is sent");
        if read == 0 {
            break;
        }
        text.extend_from_slice(&piece[..read]);
        std::thread::sleep(Duration::from_micros(500));
    }
    let text = String::from_utf8(text).expect("it is UTF-8");
    let seen = records(text.lines().map(str::to_owned)).len();
    assert_eq!(seen, place.swarmc(&["events", &run]).out.lines().count());
}
