//! Requests through the loop itself, with a client that counts in UTF-16.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use lsp_server::{Connection, ErrorCode, Message, Notification, Request, RequestId, Response};
use serde_json::{Value, json};
use swarmc_compiler::Files;

use crate::disk::Disk;
use crate::runs::{LastRun, LastStep, RunState, Runs};
use crate::server::{Exit, main_loop};

const FLOW: &str = "workflow w
provider p { exec cat }
agent a provider=p
type Verdict { ok bool }
pipeline main {
    task find-it agent=a { prompt \"x\"; output Verdict }
    task judge agent=a { prompt file=\"judge.md\" }
}
test one { fake judge y }
";
const JUDGE: &str = "😀 <<output:find-it.ok>> {{ output.find_it.ok }}\n";

/// A machine with two files and a run.
struct Machine(BTreeMap<String, String>);

impl Disk for Machine {
    fn find_workspace(&self, file: &Path) -> Option<(PathBuf, String)> {
        let path = file.strip_prefix("/w").ok()?;
        Some((PathBuf::from("/w"), path.to_str()?.to_owned()))
    }

    fn workspace_files(&self, _: &Path) -> Arc<dyn Files + Send + Sync> {
        Arc::new(self.0.clone())
    }

    fn list_specs(&self, _: &Path) -> Vec<PathBuf> {
        vec![PathBuf::from("/w/flow.kdl")]
    }

    fn workspace_runs(&self, _: &Path) -> Arc<dyn Runs> {
        Arc::new(Ran)
    }
}

struct Ran;

impl Runs for Ran {
    fn last_run(&self, _: &str, _: &str) -> Option<Arc<LastRun>> {
        let step = LastStep { status: "succeeded", output: Some("{\"ok\": true}".to_owned()), took: None };
        Some(Arc::new(LastRun {
            id: "r1".to_owned(),
            state: RunState::Succeeded,
            age: Duration::from_secs(180),
            params: BTreeMap::new(),
            steps: BTreeMap::from([("find-it".to_owned(), step)]),
        }))
    }
}

struct Client {
    connection: Connection,
    requests: i32,
}

impl Client {
    fn note(&self, method: &str, params: Value) {
        let note = Notification { method: method.to_owned(), params };
        self.connection.sender.send(note.into()).expect("the server listens");
    }

    /// The result of a request, or the message of its error; asked again while the texts change.
    fn ask(&mut self, method: &str, params: Value) -> Value {
        loop {
            let response = self.once(method, params.clone());
            match response.error {
                Some(error) if error.code == ErrorCode::ContentModified as i32 => {}
                Some(error) => return json!(error.message),
                None => return response.result.unwrap_or(Value::Null),
            }
        }
    }

    fn once(&mut self, method: &str, params: Value) -> Response {
        self.requests += 1;
        let id = RequestId::from(self.requests);
        let request = Request { id: id.clone(), method: method.to_owned(), params };
        self.connection.sender.send(request.into()).expect("the server listens");
        loop {
            let message = self.connection.receiver.recv_timeout(Duration::from_secs(60)).expect("the server answers");
            match message {
                Message::Response(response) if response.id == id => return response,
                _ => {}
            }
        }
    }

    fn open(&self, path: &str, text: &str) {
        let document = json!({ "uri": uri(path), "languageId": "x", "version": 1, "text": text });
        self.note("textDocument/didOpen", json!({ "textDocument": document }));
    }
}

fn uri(path: &str) -> String {
    format!("file:///w/{path}")
}

fn at(path: &str, line: u32, character: u32) -> Value {
    json!({ "textDocument": { "uri": uri(path) }, "position": { "line": line, "character": character } })
}

fn of(path: &str) -> Value {
    json!({ "textDocument": { "uri": uri(path) } })
}

fn within(path: &str, range: Value) -> Value {
    json!({ "textDocument": { "uri": uri(path) }, "range": range })
}

fn span(line: u32, start: u32, end: u32) -> Value {
    json!({ "start": { "line": line, "character": start }, "end": { "line": line, "character": end } })
}

/// Runs a client against a server of its own.
fn serve(client: impl FnOnce(&mut Client)) {
    let (server, connection) = Connection::memory();
    let files = [("flow.kdl", FLOW), ("judge.md", JUDGE)];
    let files = files.map(|(path, text)| (path.to_owned(), text.to_owned()));
    let thread = std::thread::spawn(move || main_loop::run(&server, Arc::new(Machine(files.into()))));
    let mut speaker = Client { connection, requests: 0 };
    let capabilities = json!({ "textDocument": { "definition": { "linkSupport": true } } });
    let answer = speaker.ask(
        "initialize",
        json!({ "capabilities": capabilities, "workspaceFolders": [{ "uri": "file:///w", "name": "w" }] }),
    );
    assert_eq!(answer["capabilities"]["positionEncoding"], "utf-16");
    speaker.note("initialized", json!({}));
    speaker.open("flow.kdl", FLOW);
    speaker.open("judge.md", JUDGE);
    client(&mut speaker);
    speaker.ask("shutdown", Value::Null);
    speaker.note("exit", Value::Null);
    assert_eq!(thread.join().expect("the server does not panic"), Exit::Clean);
}

#[test]
fn names_are_followed_and_changed_in_the_units_of_the_client() {
    serve(|client| {
        // The emoji before is two units.
        let links = client.ask("textDocument/definition", at("judge.md", 0, 13));
        assert_eq!(links[0]["originSelectionRange"], span(0, 12, 19));
        assert_eq!(links[0]["targetSelectionRange"], span(5, 9, 16));
        assert_eq!(links[0]["targetUri"], uri("flow.kdl"));
        let types = client.ask("textDocument/typeDefinition", at("judge.md", 0, 13));
        assert_eq!(types[0]["range"], span(3, 5, 12), "without links a place: {types}");
        let context = json!({ "includeDeclaration": false });
        let mut asked = at("flow.kdl", 5, 10);
        asked["context"] = context;
        let places = client.ask("textDocument/references", asked);
        assert_eq!(places[0], json!({ "uri": uri("judge.md"), "range": span(0, 12, 19) }));
        assert_eq!(places.as_array().map(Vec::len), Some(2));
        let here = client.ask("textDocument/documentHighlight", at("flow.kdl", 5, 10));
        assert_eq!(here, json!([{ "range": span(5, 9, 16), "kind": 3 }]));
        assert_eq!(client.ask("textDocument/prepareRename", at("judge.md", 0, 35)), span(0, 35, 42));
        assert_eq!(client.ask("textDocument/prepareRename", at("judge.md", 0, 0)), "there is no name here");
        let mut asked = at("flow.kdl", 5, 10);
        asked["newName"] = json!("seek-it");
        let edits = client.ask("textDocument/rename", asked.clone());
        let of_prompt = &edits["changes"][uri("judge.md")];
        assert_eq!(of_prompt[0], json!({ "range": span(0, 12, 19), "newText": "seek-it" }));
        assert_eq!(of_prompt[1], json!({ "range": span(0, 35, 42), "newText": "seek_it" }));
        asked["newName"] = json!("judge");
        let refused = client.ask("textDocument/rename", asked);
        assert!(refused.as_str().is_some_and(|why| why.contains("step `judge` is defined twice")), "{refused}");
    });
}

#[test]
fn what_is_shown_comes_with_values_of_the_last_run() {
    serve(|client| {
        let hover = client.ask("textDocument/hover", at("judge.md", 0, 21));
        let text = hover["contents"]["value"].as_str().expect("it is Markdown");
        assert!(text.starts_with("Gives `bool`\n\nLast run, 3m ago:\n\n```text\ntrue\n```"), "{text}");
        assert_eq!(hover["range"], span(0, 20, 22));
        let all = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 99, "character": 0 } });
        let mut asked = within("judge.md", all.clone());
        asked["context"] = json!({ "frameId": 1, "stoppedLocation": all });
        assert_eq!(client.ask("textDocument/inlineValue", asked), json!([{ "range": span(0, 3, 24), "text": "true" }]));
        let hints = client.ask("textDocument/inlayHint", within("judge.md", all.clone()));
        assert_eq!(hints[0]["position"], json!({ "line": 0, "character": 22 }));
        assert_eq!(hints[0]["label"][1]["value"], "bool");
        client.note("workspace/didChangeConfiguration", json!({ "settings": { "swarmc": { "inlayHints": false } } }));
        assert_eq!(client.ask("textDocument/inlayHint", within("judge.md", all)), json!([]));
    });
}

#[test]
fn lenses_are_counted_when_they_are_seen() {
    serve(|client| {
        let lenses = client.ask("textDocument/codeLens", of("flow.kdl"));
        let lenses = lenses.as_array().expect("it is a list");
        let commands: Vec<&str> = lenses.iter().filter_map(|lens| lens["command"]["command"].as_str()).collect();
        assert_eq!(commands, ["swarmc.run", "swarmc.plan", "swarmc.inspect", "swarmc.test"]);
        assert!(lenses.iter().any(|lens| lens["command"]["title"] == "last run: ok 3m ago"));
        let argument = json!({ "uri": uri("flow.kdl"), "workspace": "/w", "path": "flow.kdl", "name": "main" });
        assert!(lenses.iter().any(|lens| lens["command"]["arguments"] == json!([argument])));
        let open = lenses.iter().filter(|lens| lens["command"].is_null()).nth(1).expect("there is one");
        let resolved = client.ask("codeLens/resolve", open.clone());
        assert_eq!(resolved["command"]["title"], "2 references");
        assert_eq!(resolved["command"]["arguments"][0], uri("flow.kdl"));
    });
}

#[test]
fn tokens_are_told_whole_in_part_and_by_what_has_changed() {
    serve(|client| {
        let whole = client.ask("textDocument/semanticTokens/full", of("judge.md"));
        // `<<`, `output`, `find-it`, `ok`, `>>` after an emoji of two units.
        let numbers: Vec<u64> = whole["data"].as_array().into_iter().flatten().filter_map(Value::as_u64).collect();
        let lengths: Vec<u64> = numbers.chunks(5).map(|token| token[2]).collect();
        assert_eq!(lengths, [2, 6, 7, 2, 2, 2, 6, 7, 2, 2]);
        assert_eq!(numbers[..10], [0, 3, 2, 14, 0, 0, 2, 6, 9, 0]);
        let change = json!({ "range": span(0, 0, 0), "text": "One\n" });
        let document = json!({ "uri": uri("judge.md"), "version": 2 });
        client.note("textDocument/didChange", json!({ "textDocument": document, "contentChanges": [change] }));
        let mut asked = of("judge.md");
        asked["previousResultId"] = whole["resultId"].clone();
        let delta = client.ask("textDocument/semanticTokens/full/delta", asked.clone());
        assert_eq!(delta["edits"], json!([{ "start": 0, "deleteCount": 5, "data": [1, 3, 2, 14, 0] }]));
        // Of what it does not know, all is told.
        let anew = client.ask("textDocument/semanticTokens/full/delta", asked);
        assert_eq!(anew["data"].as_array().map(Vec::len), Some(50));
        let part = client.ask("textDocument/semanticTokens/range", within("judge.md", span(1, 12, 19)));
        assert_eq!(part["data"], json!([1, 12, 7, 7, 0]));
    });
}

#[test]
fn a_file_has_a_shape() {
    serve(|client| {
        let symbols = client.ask("textDocument/documentSymbol", of("flow.kdl"));
        let names: Vec<&str> =
            symbols.as_array().into_iter().flatten().filter_map(|symbol| symbol["name"].as_str()).collect();
        assert_eq!(names, ["w", "p", "a", "Verdict", "main", "one"]);
        assert_eq!(symbols[4]["children"][1]["name"], "judge");
        let found = client.ask("workspace/symbol", json!({ "query": "find" }));
        assert_eq!((&found[0]["name"], &found[0]["containerName"]), (&json!("find-it"), &json!("main")));
        let links = client.ask("textDocument/documentLink", of("flow.kdl"));
        assert_eq!(links[0]["target"], uri("judge.md"));
        let folds = client.ask("textDocument/foldingRange", of("flow.kdl"));
        assert_eq!((&folds[0]["startLine"], &folds[0]["endLine"]), (&json!(4), &json!(6)));
        let mut asked = of("judge.md");
        asked["positions"] = json!([{ "line": 0, "character": 13 }, { "line": 9, "character": 9 }]);
        let grown = client.ask("textDocument/selectionRange", asked);
        assert_eq!(grown.as_array().map(Vec::len), Some(2));
        assert_eq!((&grown[0]["range"], &grown[0]["parent"]["range"]), (&span(0, 12, 19), &span(0, 12, 22)));
        let items = client.ask("textDocument/prepareCallHierarchy", at("judge.md", 0, 13));
        assert_eq!(items[0]["name"], "find-it");
        let fed = client.ask("callHierarchy/outgoingCalls", json!({ "item": items[0] }));
        assert_eq!((&fed[0]["to"]["name"], &fed[0]["fromRanges"][0]), (&json!("judge"), &span(5, 9, 16)));
        let feeders = client.ask("callHierarchy/incomingCalls", json!({ "item": fed[0]["to"] }));
        assert_eq!(feeders[0]["from"]["name"], "find-it");
        assert_eq!(client.ask("textDocument/linkedEditingRange", at("flow.kdl", 5, 10)), Value::Null);
    });
}

#[test]
fn files_that_are_not_ours_get_no_answers() {
    serve(|client| {
        client.open("layout.kdl", "layout { pane }\n");
        client.open("README.md", "See <<output:find-it>>.\n");
        for file in ["layout.kdl", "README.md", "gone.md"] {
            assert_eq!(client.ask("textDocument/hover", at(file, 0, 8)), Value::Null, "{file}");
            for method in ["textDocument/documentLink", "textDocument/foldingRange", "textDocument/codeLens"] {
                let answer = client.ask(method, of(file));
                assert!(answer.is_null() || answer == json!([]), "{method} of {file}: {answer}");
            }
            let tokens = client.ask("textDocument/semanticTokens/full", of(file));
            assert!(tokens.is_null() || tokens["data"] == json!([]), "{file}: {tokens}");
        }
    });
}
