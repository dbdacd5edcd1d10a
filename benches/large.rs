//! Specs of thousands of tasks whose conditions depend on each other in every way: the time and the memory of `swarmc check`
//! with every rule on, and of the language server from the text to its problems, in a folder that the editor names. The
//! limits are 1 s and 200 MB each.
//!
//! `cargo bench --profile dist --bench large -- 500` takes as many tasks, 5,000 without a number.

#![expect(clippy::print_stdout, reason = "a bench prints")]

use std::io::BufReader;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use lsp_server::{Message, Notification, Request, RequestId};
use serde_json::json;

#[path = "../tests/large/shapes.rs"]
mod shapes;

/// Tasks, when no number is given.
const TASKS: usize = 5_000;

fn main() {
    let tasks = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(TASKS);
    println!("{tasks} tasks             check              language server");
    for (name, files) in shapes::shapes(tasks).into_iter().chain([("prompts", shapes::prompts(tasks))]) {
        let folder = tempfile::tempdir().expect("a folder");
        // What an editor opens belongs to the repository that it lies in.
        std::fs::create_dir(folder.path().join(".git")).expect("a folder");
        for (path, text) in &files {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().expect("it lies in a folder")).expect("a folder");
            std::fs::write(path, text).expect("a file");
        }
        let (check, checked) = check(folder.path());
        let (open, opened) = serve(folder.path(), &files["flow.kdl"]);
        println!(
            "{name:<24} {:6.0} ms {checked:6.0} MB   {:6.0} ms {opened:6.0} MB",
            milliseconds(check),
            milliseconds(open)
        );
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

/// The time of a check, and its memory in MB.
fn check(folder: &Path) -> (Duration, f64) {
    let begun = Instant::now();
    let mut process = Command::new(env!("CARGO_BIN_EXE_swarmc"))
        .args(["check", "--profile", "audit", "flow.kdl"])
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let mut memory = 0.0_f64;
    while process.try_wait().expect("it ends").is_none() {
        memory = memory.max(peak(&process));
        std::thread::sleep(Duration::from_millis(1));
    }
    (begun.elapsed(), memory)
}

/// The time from the text of a spec to its problems, and the memory in MB.
fn serve(folder: &Path, text: &str) -> (Duration, f64) {
    let mut process = Command::new(env!("CARGO_BIN_EXE_swarmc"))
        .arg("lsp")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut input = process.stdin.take().expect("it is piped");
    let mut output = BufReader::new(process.stdout.take().expect("it is piped"));
    let root = format!("file://{}", folder.display());
    let uri = format!("{root}/flow.kdl");
    let mut send = |message: Message| message.write(&mut input).expect("it takes messages");
    let mut wait = |wanted: i32| loop {
        match Message::read(&mut output).expect("it is the protocol").expect("it goes on") {
            Message::Response(response) if response.id == RequestId::from(wanted) => break,
            _ => {}
        }
    };
    let request = |id: i32, method: &str, params| Request { id: id.into(), method: method.to_owned(), params }.into();
    let notice = |method: &str, params| Notification::new(method.to_owned(), params).into();
    send(request(1, "initialize", json!({ "processId": null, "rootUri": root, "capabilities": {} })));
    wait(1);
    send(notice("initialized", json!({})));
    let begun = Instant::now();
    let document = json!({ "uri": uri, "languageId": "kdl", "version": 1, "text": text });
    send(notice("textDocument/didOpen", json!({ "textDocument": document })));
    send(request(2, "textDocument/diagnostic", json!({ "textDocument": { "uri": uri } })));
    wait(2);
    let time = begun.elapsed();
    let memory = peak(&process);
    send(request(3, "shutdown", json!(null)));
    wait(3);
    send(notice("exit", json!(null)));
    process.wait().expect("it ends");
    (time, memory)
}

/// The most that a process has held, in MB.
fn peak(process: &Child) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = peak.and_then(|peak| peak.trim().trim_end_matches(" kB").parse::<f64>().ok());
    kib.unwrap_or_default() * 1.024 / 1_000.0
}
