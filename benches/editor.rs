//! The language server as an editor drives it: the real binary, on a spec of 5,000 nodes with 500 prompts.
//!
//! A session is replayed: the spec and a prompt are opened, typed in and completed, and the task that all prompts read is
//! renamed. Said are the median and the 99th percentile of each wait; asked of them are 30 ms from a key to its problems,
//! 10 ms for a completion, 200 ms for the rename, 1 s to the first problems, and 150 MB.
//!
//! In two more workspaces, of chains of conditions and of 500 steps with 500 prompts, the task that all others read is
//! renamed where it is declared, and back; then everywhere, as an editor does that, and back. Asked are 100 ms from the last
//! of these edits to what is wrong then, and 200 MB.

#![expect(clippy::print_stdout, reason = "a bench prints")]

use std::fmt::Write as _;
use std::io::BufReader;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use lsp_server::{Message, Notification, Request, RequestId};
use serde_json::{Value, json};

#[path = "../tests/large/shapes.rs"]
#[expect(dead_code, reason = "two of them are enough here")]
mod shapes;

/// Tasks, each of five nodes; every other one has a prompt file.
const TASKS: usize = 1_000;

/// Keys in the spec, and as many in a prompt.
const KEYS: usize = 200;

fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    let spec = write(folder.path());
    let begun = Instant::now();
    let mut editor = Editor::start(folder.path());
    editor.open("flow.kdl", &spec);
    // One prompt names a step that is not there, so that the first problems are some.
    editor.problems("prompts/p998.md");
    let first = begun.elapsed();
    let prompt = std::fs::read_to_string(folder.path().join("prompts/p500.md")).expect("a prompt");
    editor.open("prompts/p500.md", &prompt);

    let (mut keys, mut completions, mut renames) = (Vec::new(), Vec::new(), Vec::new());
    for (path, text, task) in [("flow.kdl", &spec, "<<output:t500>>"), ("prompts/p500.md", &prompt, "<<output:t499>>")]
    {
        let line = text.lines().position(|line| line.contains(task)).expect("the task is read");
        let name = text.lines().nth(line).and_then(|line| line.find(task)).expect("it is there") + "<<output:".len();
        let mut typed = 0;
        // A name that is not there, sign by sign: each key changes what is wrong.
        for (number, sign) in "nobody".chars().cycle().take(KEYS).enumerate() {
            if typed == 6 {
                editor.change(path, line, name, name + typed, "");
                editor.problems(path);
                typed = 0;
            }
            let begun = Instant::now();
            editor.change(path, line, name + typed, name + typed, &sign.to_string());
            typed += 1;
            if number % 4 == 3 {
                let asked = Instant::now();
                editor.ask("textDocument/completion", editor.at(path, line, name + typed));
                completions.push(asked.elapsed());
            }
            editor.problems(path);
            keys.push(begun.elapsed());
        }
        editor.change(path, line, name, name + typed, "");
        editor.problems(path);
    }
    let line = spec.lines().position(|line| line.contains("task start ")).expect("the task is there");
    for _ in 0..20 {
        let mut params = editor.at("flow.kdl", line, 10);
        params["newName"] = "begin".into();
        let asked = Instant::now();
        let edit = editor.ask("textDocument/rename", params);
        renames.push(asked.elapsed());
        assert_eq!(edit["changes"].as_object().map(|files| files.len()), Some(TASKS / 2 + 1), "{edit}");
    }
    println!("first problems          {:8.1} ms", milliseconds(first));
    said("key to its problems", &mut keys);
    said("completion", &mut completions);
    said("rename in 500 prompts", &mut renames);
    println!("memory                  {:8.1} MB", editor.memory());
    editor.leave();
    rename_and_undo("chains", &shapes::chains_of_one(200));
    rename_and_undo("500 prompts", &shapes::prompts(500));
}

/// Renames the task `start`, and back: what is wrong is asked for directly after the edits.
fn rename_and_undo(what: &str, files: &shapes::Workspace) {
    let folder = tempfile::tempdir().expect("a folder");
    // What an editor opens belongs to the repository that it lies in.
    std::fs::create_dir(folder.path().join(".git")).expect("a folder");
    for (path, text) in files {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().expect("it lies in a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }
    let spec = &files["flow.kdl"];
    let mut editor = Editor::start(folder.path());
    for (path, text) in files {
        editor.open(path, text);
    }
    let line = spec.lines().position(|line| line.contains("task start ")).expect("the task is there");
    let mut alone = Vec::new();
    let mut everywhere = Vec::new();
    editor.wrong("flow.kdl");
    for _ in 0..10 {
        for (end, text) in [(14, "begin"), (14, "start")] {
            editor.change("flow.kdl", line, 9, end, text);
            let begun = Instant::now();
            let wrong = editor.wrong("flow.kdl");
            alone.push(begun.elapsed());
            assert_eq!(wrong > 0, text == "begin", "{what}: {wrong}");
        }
    }
    for _ in 0..5 {
        for name in ["begin", "start"] {
            let mut params = editor.at("flow.kdl", line, 10);
            params["newName"] = name.into();
            let edit = editor.ask("textDocument/rename", params);
            let changes = edit["changes"].as_object().expect("it is renamed").clone();
            for (uri, edits) in &changes {
                editor.edits(uri, edits);
            }
            let begun = Instant::now();
            assert_eq!(editor.wrong("flow.kdl"), 0, "{what}: all are renamed");
            everywhere.push(begun.elapsed());
        }
    }
    println!("\n{what}");
    said("renamed, and undone", &mut alone);
    said("renamed everywhere", &mut everywhere);
    println!("memory                  {:8.1} MB", editor.memory());
    editor.leave();
}

/// Writes the spec and its prompts.
fn write(folder: &Path) -> String {
    // What an editor opens belongs to the repository that it lies in.
    std::fs::create_dir(folder.join(".git")).expect("a folder");
    std::fs::create_dir(folder.join("prompts")).expect("a folder");
    let mut spec = String::from(
        "workflow flow\nprovider local { exec cat }\nagent coder provider=local\npipeline build {\n    task start { run ls }\n",
    );
    for task in 0..TASKS {
        let _ = writeln!(spec, "    task t{task} {{");
        if task % 2 == 0 {
            let read = match task {
                0 => "start".to_owned(),
                998 => "nobody".to_owned(),
                _ => format!("t{}", task - 1),
            };
            let prose = "Say what you find, and where it stands.\n".repeat(20);
            let prompt = format!(
                "# Task {task}\n\nGo on with what   there is: <<output:{read}>> of <<output:start>>\n\n{prose}"
            );
            std::fs::write(folder.join(format!("prompts/p{task}.md")), prompt).expect("a prompt");
            let _ = writeln!(spec, "        prompt file=\"prompts/p{task}.md\"");
        } else {
            let _ = writeln!(spec, "        prompt \"Go on with <<output:t{}>>\"", task - 1);
        }
        spec.push_str(
            "        timeout \"10m\"\n        retry 2 backoff=\"5s\"\n        description \"One of many\"\n    }\n",
        );
    }
    spec.push_str("}\n");
    std::fs::write(folder.join("flow.kdl"), &spec).expect("a spec");
    spec
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

fn said(what: &str, times: &mut [Duration]) {
    times.sort();
    let at = |part: usize| milliseconds(times[(times.len() * part / 100).min(times.len() - 1)]);
    println!("{what:<23} {:8.1} ms, 99th percentile {:.1} ms, of {}", at(50), at(99), times.len());
}

/// Whose problems a message tells.
fn told(message: &Message) -> Option<String> {
    match message {
        Message::Notification(one) if one.method == "textDocument/publishDiagnostics" => {
            Some(one.params["uri"].as_str()?.to_owned())
        }
        _ => None,
    }
}

/// An editor.
struct Editor {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    folder: String,
    requests: i32,
    version: i32,
    /// The files whose problems were told while something else was waited for.
    told: Vec<String>,
}

impl Editor {
    fn start(folder: &Path) -> Editor {
        let mut process = Command::new(env!("CARGO_BIN_EXE_swarmc"))
            .arg("lsp")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let input = process.stdin.take().expect("it is piped");
        let output = BufReader::new(process.stdout.take().expect("it is piped"));
        let folder = format!("file://{}", folder.display());
        let mut editor = Editor { process, input, output, folder, requests: 0, version: 1, told: Vec::new() };
        let watches = json!({ "workspace": { "didChangeWatchedFiles": { "dynamicRegistration": true } } });
        editor.ask("initialize", json!({ "processId": null, "rootUri": editor.folder, "capabilities": watches }));
        editor.tell("initialized", json!({}));
        editor
    }

    fn send(&mut self, message: impl Into<Message>) {
        message.into().write(&mut self.input).expect("it takes messages");
    }

    fn tell(&mut self, method: &str, params: Value) {
        self.send(Notification::new(method.to_owned(), params));
    }

    fn next(&mut self) -> Message {
        Message::read(&mut self.output).expect("it is the protocol").expect("it goes on")
    }

    /// The result of a request.
    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.requests += 1;
        let id = RequestId::from(self.requests);
        self.send(Request { id: id.clone(), method: method.to_owned(), params });
        loop {
            match self.next() {
                Message::Response(response) if response.id == id => {
                    assert!(response.error.is_none(), "{method}: {:?}", response.error);
                    return response.result.unwrap_or_default();
                }
                message => self.told.extend(told(&message)),
            }
        }
    }

    /// Waits for the problems of a file.
    fn problems(&mut self, path: &str) {
        let uri = self.uri(path);
        while !self.told.contains(&uri) {
            let message = self.next();
            self.told.extend(told(&message));
        }
        self.told.clear();
    }

    fn uri(&self, path: &str) -> String {
        format!("{}/{path}", self.folder)
    }

    fn open(&mut self, path: &str, text: &str) {
        let document = json!({ "uri": self.uri(path), "languageId": "kdl", "version": 1, "text": text });
        self.tell("textDocument/didOpen", json!({ "textDocument": document }));
    }

    fn change(&mut self, path: &str, line: usize, from: usize, to: usize, text: &str) {
        self.version += 1;
        let range = json!({ "start": { "line": line, "character": from }, "end": { "line": line, "character": to } });
        let document = json!({ "uri": self.uri(path), "version": self.version });
        let changes = json!([{ "range": range, "text": text }]);
        self.tell("textDocument/didChange", json!({ "textDocument": document, "contentChanges": changes }));
    }

    /// Makes the edits of a rename in a file, as one change.
    fn edits(&mut self, uri: &str, edits: &Value) {
        self.version += 1;
        let mut changes: Vec<Value> = edits.as_array().expect("a list").clone();
        // From the end, so that the places of those before stay.
        let place = |change: &Value| {
            (change["range"]["start"]["line"].as_u64(), change["range"]["start"]["character"].as_u64())
        };
        changes.sort_by_key(|change| std::cmp::Reverse(place(change)));
        let changes: Vec<Value> =
            changes.iter().map(|change| json!({ "range": change["range"], "text": change["newText"] })).collect();
        let document = json!({ "uri": uri, "version": self.version });
        self.tell("textDocument/didChange", json!({ "textDocument": document, "contentChanges": changes }));
    }

    /// How many errors a file has now.
    fn wrong(&mut self, path: &str) -> usize {
        let uri = self.uri(path);
        let report = self.ask("textDocument/diagnostic", json!({ "textDocument": { "uri": uri } }));
        let items = report["items"].as_array().expect("a full report");
        items.iter().filter(|item| item["severity"] == 1).count()
    }

    fn at(&self, path: &str, line: usize, character: usize) -> Value {
        json!({ "textDocument": { "uri": self.uri(path) }, "position": { "line": line, "character": character } })
    }

    /// The most that it has held, in MB.
    fn memory(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap_or_default();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = peak.and_then(|peak| peak.trim().trim_end_matches(" kB").parse::<f64>().ok());
        kib.unwrap_or(f64::NAN) * 1.024 / 1_000.0
    }

    fn leave(mut self) {
        self.ask("shutdown", Value::Null);
        self.tell("exit", Value::Null);
        assert!(self.process.wait().is_ok_and(|status| status.success()), "it ends well");
    }
}
