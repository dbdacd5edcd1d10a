//! A real model on this machine: what a typed task of one comes to.
//!
//! `tests/install-model` puts the model and its server into a cache outside the checkout; these tests call it. A model
//! this small talks nonsense: its answers' shape and what became of them is asserted, never what they say.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{LazyLock, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::cli::Place;

/// The server of a real model, on a free port of 127.0.0.1. Dropping it ends it.
pub(crate) struct Server {
    port: u16,
    child: Child,
    folder: TempDir,
    /// One model at a time: two would take turns on the processors until both are late.
    _alone: MutexGuard<'static, ()>,
}

impl Server {
    /// Starts the server, and waits until it answers.
    pub(crate) fn start() -> Server {
        static ALONE: Mutex<()> = Mutex::new(());
        // A test that failed while it held the model took no harm to it.
        let alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let installed = installed();
        let folder = TempDir::new().expect("a temporary folder can be made");
        let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let port = port.expect("there is a free port").port();
        let log = File::create(folder.path().join("log")).expect("a file can be made");
        let child = Command::new(root().join("tests/serve-model"))
            .arg(installed)
            .arg(port.to_string())
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a file can be opened twice"))
            .stderr(log)
            .spawn()
            .expect("the server starts");
        let mut server = Server { port, child, folder, _alone: alone };
        server.await_health();
        server
    }

    /// Its address, without a path.
    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    fn await_health(&mut self) {
        let end = Instant::now() + Duration::from_secs(110);
        while !self.is_healthy() {
            let ended = self.child.try_wait().expect("the server can be asked after");
            assert!(ended.is_none() && Instant::now() < end, "the server does not answer: {}", self.log());
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn is_healthy(&self) -> bool {
        let asked = TcpStream::connect(("127.0.0.1", self.port)).and_then(|mut stream| {
            stream.set_read_timeout(Some(Duration::from_secs(10)))?;
            stream.write_all(b"GET /health HTTP/1.0\r\n\r\n")?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok(answer)
        });
        asked.is_ok_and(|answer| answer.starts_with("HTTP/1.1 200"))
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It has nothing to save.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The folder with the model, installed the first time that anyone asks.
fn installed() -> PathBuf {
    static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
        let output = Command::new(root().join("tests/install-model"))
            .stderr(Stdio::inherit())
            .output()
            .expect("tests/install-model can be started");
        assert!(output.status.success(), "tests/install-model failed: it says why above");
        PathBuf::from(String::from_utf8_lossy(&output.stdout).trim_end())
    });
    FOLDER.clone()
}

#[test]
fn a_typed_task_of_a_real_model_has_its_type() {
    let server = Server::start();
    let spec = format!(
        r#"
workflow judged
provider local {{
    llm openai base-url="{}" model=smollm2
    provides schema
    price input="$0" output="$0"
}}
agent judge provider=local {{ system "You judge lamps."; temperature 0.3; max-output 200 }}
type Verdict {{
    severity enum low medium high
    approved bool
    count int min=0 max=9
}}
pipeline p {{
    task judge {{ timeout "5m"; prompt "Judge the green lamp."; output Verdict repair=2 }}
    task told {{ run cat; stdin "<<output:judge.severity>> <<output:judge.approved>>" }}
    result judge
}}
"#,
        server.url()
    );
    let place = Place::new(&spec);
    let ended = place.swarmc(&["run", "flow.kdl"]).expect(0, &[], &[]);
    let value: Value = serde_json::from_str(ended.out.lines().last().unwrap_or_default()).expect("the result is JSON");
    let fields: Vec<&String> = value.as_object().expect("the result is a record").keys().collect();
    assert_eq!(fields.len(), 3, "{value}");
    assert!(["low", "medium", "high"].contains(&value["severity"].as_str().unwrap_or_default()), "{value}");
    assert!(value["approved"].is_boolean() && value["count"].as_u64().is_some_and(|count| count <= 9), "{value}");
    let run: Value = serde_json::from_str(&place.swarmc(&["inspect", "--json"]).out).expect("inspect writes JSON");
    let step = run["steps"].as_array().and_then(|steps| steps.iter().find(|step| step["step"] == "judge"));
    let usage = &step.unwrap_or_else(|| panic!("no step `judge` in {run:#}"))["usage"];
    let tokens = |key: &str| usage[key].as_u64().unwrap_or_default();
    assert!(tokens("input") > 10 && (5..=600).contains(&tokens("output")), "{usage}");
}

/// Three agents that a schema holds to actions. What they do is up to them; what they may do is not.
#[test]
fn a_swarm_of_a_real_model_keeps_its_shape_and_its_limits() {
    let server = Server::start();
    let place = Place::new(&format!(
        r#"
workflow lamps {{ default team }}
provider local {{
    llm openai base-url="{}" model=smollm2 tools=schema
    provides schema
    context-window 8192
}}
agent keeper provider=local {{ system "You keep lamps."; max-output 96; tools file_list }}
swarm team {{
    goal "Say which lamp is lit"
    member one "Look after the red lamp"
    member two "Look after the green lamp"
    member three "Say which lamp is lit"
    limits {{ agents 4; iterations 2; messages 1 }}
    timeouts {{ turn "60s" retries=1; synthesize "60s" retries=1 }}
    history {{ recent 2 chars=400; older chars=100; prompt chars=6000 }}
    synthesize agent=keeper
}}
"#,
        server.url()
    ));
    let ended = place.swarmc(&["run", "flow.kdl", "--events"]).expect(0, &[], &[]);
    let events: Vec<Value> =
        ended.out.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect();
    let of = |kind: &str| -> Vec<&Value> { events.iter().filter(|event| event["type"] == kind).collect() };
    let spawned = of("agent_spawned").len();
    assert!((3..=4).contains(&spawned), "{ended:#?}");
    assert_eq!((of("agent_started").len(), of("agent_completed").len()), (spawned, spawned));
    for end in of("agent_completed") {
        let how = end["how"].as_str().unwrap_or_default();
        assert!(["done", "exhausted", "converged", "unreachable", "unneeded"].contains(&how), "{end}");
    }
    // A schema leaves nothing but actions; an answer that was cut off is told so, once an iteration.
    let turns = of("turn_ended");
    let acted = turns.iter().filter(|turn| turn["answer"]["acts"]["action"].is_string()).count();
    assert!(acted >= 3 && turns.len() <= spawned * 2 * 3 + 3, "{acted} of {}", turns.len());
    assert!(turns.iter().all(|turn| turn["iteration"].as_u64().is_some_and(|iteration| (1..=2).contains(&iteration))));
    let used = |key: &str| turns.iter().filter_map(|turn| turn["usage"][key].as_u64()).collect::<Vec<_>>();
    assert!(used("input").iter().all(|&tokens| tokens > 100) && used("output").iter().all(|&tokens| tokens <= 96));
    // Every message that was sent lies in a mailbox, under numbers without gaps; nobody sends more than one.
    let mut senders: Vec<&str> = of("message_sent").iter().filter_map(|sent| sent["from"].as_str()).collect();
    senders.retain(|&sender| sender != "swarm-supervisor");
    let all = senders.len();
    senders.sort_unstable();
    senders.dedup();
    assert_eq!(senders.len(), all, "nobody sends more than one");
    assert!(of("message_received").len() <= of("message_sent").len());
    let last = events.last().expect("a run says how it ended");
    assert_eq!(last["status"], "succeeded");
    assert!(last["values"][0].as_str().is_some_and(|value| !value.is_empty()), "{last}");
}
