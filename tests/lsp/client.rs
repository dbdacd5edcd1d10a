//! A small editor for tests: it starts the server, sends messages, and waits for those that it wants.

use std::io::{BufReader, Read, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use lsp_server::{Message, Notification, Request, RequestId, Response};
use serde_json::{Value, json};

/// As long as anything may take on a machine with much else to do.
const LONG: Duration = Duration::from_secs(60);

/// An editor, and the server that it has started.
pub(super) struct Client {
    pub(super) process: Child,
    pub(super) input: Option<ChildStdin>,
    pub(super) messages: Receiver<Message>,
    /// What has come while something else was waited for.
    pub(super) kept: Vec<Message>,
    pub(super) requests: i32,
    pub(super) folder: tempfile::TempDir,
    /// What the server said about itself.
    pub(super) capabilities: Value,
}

impl Client {
    /// A server in a new folder with these files, before `initialize`.
    pub(super) fn bare(files: &[(&str, &str)]) -> Client {
        let folder = tempfile::tempdir().expect("what the test needs is there");
        for (path, text) in files {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().expect("what the test needs is there"))
                .expect("what the test needs is there");
            std::fs::write(path, text).expect("what the test needs is there");
        }
        let mut process = crate::patience::swarmc()
            .arg("lsp")
            // What others have run or cached is not seen, and nothing is left behind.
            .env("SWARM_HOME", folder.path().join(".swarm"))
            .env("XDG_CACHE_HOME", folder.path().join(".cache"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("what the test needs is there");
        let (sender, messages) = channel();
        let mut output = BufReader::new(process.stdout.take().expect("what the test needs is there"));
        std::thread::spawn(move || {
            while let Ok(Some(message)) = Message::read(&mut output) {
                let _ = sender.send(message);
            }
        });
        let input = process.stdin.take();
        Client { process, input, messages, kept: Vec::new(), requests: 0, folder, capabilities: Value::Null }
    }

    /// A server that knows its client.
    pub(super) fn new(files: &[(&str, &str)], capabilities: Value) -> Client {
        let mut client = Client::bare(files);
        let folder = client.uri("");
        let folders = json!([{ "uri": folder, "name": "here" }]);
        client.initialize(json!({ "processId": null, "rootUri": folder, "capabilities": capabilities,
            "workspaceFolders": folders }));
        client
    }

    pub(super) fn initialize(&mut self, params: Value) {
        self.capabilities =
            self.ask("initialize", params).expect("what the test needs is there")["capabilities"].clone();
        self.tell("initialized", json!({}));
    }

    pub(super) fn uri(&self, path: &str) -> String {
        format!("file://{}", self.folder.path().join(path).display()).trim_end_matches('/').to_owned()
    }

    pub(super) fn write(&self, path: &str, text: &str) {
        std::fs::write(self.folder.path().join(path), text).expect("what the test needs is there");
    }

    pub(super) fn raw(&mut self, bytes: &[u8]) {
        // A server that has left takes nothing more.
        let _ = self.input.as_mut().expect("what the test needs is there").write_all(bytes);
    }

    pub(super) fn send(&mut self, message: impl Into<Message>) {
        message
            .into()
            .write(self.input.as_mut().expect("what the test needs is there"))
            .expect("what the test needs is there");
    }

    pub(super) fn tell(&mut self, method: &str, params: Value) {
        self.send(Notification::new(method.to_owned(), params));
    }

    /// Sends a request without waiting for its answer.
    pub(super) fn begin(&mut self, method: &str, params: Value) -> i32 {
        self.requests += 1;
        self.send(Request { id: self.requests.into(), method: method.to_owned(), params });
        self.requests
    }

    /// The answer to a request: its result, or the code of its error.
    pub(super) fn answer(&mut self, id: i32) -> Result<Value, i32> {
        let id = RequestId::from(id);
        let response = self.wait(|message| match message {
            Message::Response(response) if response.id == id => Some(response.clone()),
            _ => None,
        });
        match response {
            Response { error: Some(error), .. } => Err(error.code),
            Response { result, .. } => Ok(result.unwrap_or_default()),
        }
    }

    pub(super) fn ask(&mut self, method: &str, params: Value) -> Result<Value, i32> {
        let id = self.begin(method, params);
        self.answer(id)
    }

    /// Waits for a message; those before it are kept.
    pub(super) fn wait<T>(&mut self, mut wanted: impl FnMut(&Message) -> Option<T>) -> T {
        if let Some((at, found)) = self.kept.iter().enumerate().find_map(|(at, one)| Some((at, wanted(one)?))) {
            self.kept.remove(at);
            return found;
        }
        let end = Instant::now() + LONG;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let message = self.messages.recv_timeout(left).unwrap_or_else(|error| panic!("{error}; {:?}", self.kept));
            match wanted(&message) {
                Some(found) => return found,
                None => self.kept.push(message),
            }
        }
    }

    pub(super) fn open(&mut self, path: &str, text: &str) {
        let document = json!({ "uri": self.uri(path), "languageId": "kdl", "version": 1, "text": text });
        self.tell("textDocument/didOpen", json!({ "textDocument": document }));
    }

    pub(super) fn change(&mut self, path: &str, version: i32, changes: Value) {
        let document = json!({ "uri": self.uri(path), "version": version });
        self.tell("textDocument/didChange", json!({ "textDocument": document, "contentChanges": changes }));
    }

    /// Waits until the problems of a file are these codes.
    pub(super) fn problems(&mut self, path: &str, codes: &[&str]) -> Vec<Value> {
        let uri = self.uri(path);
        self.wait(|message| {
            let Message::Notification(Notification { method, params }) = message else { return None };
            if method != "textDocument/publishDiagnostics" || params["uri"] != uri.as_str() {
                return None;
            }
            let found = params["diagnostics"].as_array().expect("what the test needs is there").clone();
            (found
                .iter()
                .map(|problem| problem["code"].as_str().expect("what the test needs is there"))
                .eq(codes.iter().copied()))
            .then_some(found)
        })
    }

    /// The words of a message that the server logs.
    pub(super) fn log(&mut self) -> String {
        self.wait(|message| match message {
            Message::Notification(log) if log.method == "window/logMessage" => {
                Some(log.params["message"].as_str().expect("what the test needs is there").to_owned())
            }
            _ => None,
        })
    }

    pub(super) fn at(&self, path: &str, line: u32, character: u32) -> Value {
        json!({ "textDocument": { "uri": self.uri(path) }, "position": { "line": line, "character": character } })
    }

    /// Waits for the end: the exit code, and what stands on standard error.
    pub(super) fn end(mut self) -> (i32, String) {
        drop(self.input.take());
        let mut said = String::new();
        self.process
            .stderr
            .take()
            .expect("what the test needs is there")
            .read_to_string(&mut said)
            .expect("what the test needs is there");
        (self.process.wait().expect("what the test needs is there").code().expect("it ends by itself"), said)
    }

    pub(super) fn leave(mut self) {
        assert_eq!(self.ask("shutdown", Value::Null), Ok(Value::Null));
        self.tell("exit", Value::Null);
        assert_eq!(self.end(), (0, String::new()));
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
