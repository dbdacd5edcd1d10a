//! What a server and an editor agree on about files: pulled problems, renames, versions of texts, and what is watched.

use lsp_server::{Message, Request};
use serde_json::{Value, json};

use super::client::Client;
use super::{PROMPT, SPEC, flow, range};

#[test]
fn problems_that_are_pulled_again_are_told_once() {
    let capabilities = json!({
        "textDocument": { "diagnostic": {} }, "workspace": { "diagnostics": { "refreshSupport": true } },
    });
    let mut client = flow(capabilities);
    assert_eq!(client.capabilities["diagnosticProvider"]["workspaceDiagnostics"], true);
    client.open("flow.kdl", SPEC);
    client.open("make.md", PROMPT);
    let mut asked = json!({ "textDocument": { "uri": client.uri("make.md") } });
    let report = client.ask("textDocument/diagnostic", asked.clone()).expect("it is answered");
    assert_eq!((&report["kind"], &report["items"][0]["code"]), (&json!("full"), &json!("SW101")));
    asked["previousResultId"] = report["resultId"].clone();
    let again = client.ask("textDocument/diagnostic", asked.clone()).expect("it is answered");
    assert_eq!(again, json!({ "kind": "unchanged", "resultId": report["resultId"] }));
    // All files at once: the answer names a known result by its id.
    let all = client.ask("workspace/diagnostic", json!({ "previousResultIds": [] })).expect("it is answered");
    let items = all["items"].as_array().expect("it is a list");
    assert_eq!(items.len(), 1, "{all}");
    assert_eq!((&items[0]["uri"], &items[0]["version"]), (&json!(client.uri("make.md")), &json!(1)));
    assert_eq!((&items[0]["kind"], &items[0]["resultId"]), (&json!("full"), &report["resultId"]));
    let known = json!({ "previousResultIds": [{ "uri": client.uri("make.md"), "value": report["resultId"] }] });
    let again = client.ask("workspace/diagnostic", known.clone()).expect("it is answered");
    assert_eq!(again["items"][0]["kind"], "unchanged", "{again}");
    // The server reports once that a problem is gone.
    client.change("make.md", 2, json!([{ "text": "ok" }]));
    let mended = client.ask("workspace/diagnostic", known).expect("it is answered");
    assert_eq!((&mended["items"][0]["items"], &mended["items"][0]["version"]), (&json!([]), &json!(2)), "{mended}");
    let report = client.ask("textDocument/diagnostic", asked).expect("it is answered");
    assert_eq!((&report["kind"], &report["items"]), (&json!("full"), &json!([])));
    client.leave();
}

#[test]
fn a_file_that_is_renamed_keeps_its_name_in_specs() {
    let files = json!({ "workspace": { "fileOperations": { "willRename": true } } });
    let mut client = flow(files);
    let filters = &client.capabilities["workspace"]["fileOperations"]["willRename"]["filters"];
    assert_eq!(filters[0]["pattern"]["glob"], "**/*");
    client.open("flow.kdl", SPEC);
    let moved = |client: &Client, from: &str, to: &str| json!({ "files": [{ "oldUri": client.uri(from), "newUri": client.uri(to) }] });
    let asked = moved(&client, "make.md", "prompts/make it.md");
    let edit = client.ask("workspace/willRenameFiles", asked).expect("it is answered");
    let edits = json!([{ "range": range(5, 29, 36), "newText": "prompts/make it.md" }]);
    assert_eq!(edit["changes"][client.uri("flow.kdl")], edits, "{edit}");
    let asked = moved(&client, "README.md", "other.md");
    assert_eq!(client.ask("workspace/willRenameFiles", asked), Ok(Value::Null));
    client.leave();
}

#[test]
fn edits_say_which_texts_they_are_about() {
    let mut client = flow(json!({ "workspace": { "workspaceEdit": { "documentChanges": true } } }));
    client.open("flow.kdl", SPEC);
    client.change("flow.kdl", 7, json!([{ "text": SPEC }]));
    let mut asked = client.at("flow.kdl", 4, 10);
    asked["newName"] = json!("scheme");
    let edit = client.ask("textDocument/rename", asked).expect("it can be called so");
    let changes = edit["documentChanges"].as_array().expect("it is a list");
    let version = |path: &str| {
        let uri = json!(client.uri(path));
        let found = changes.iter().find(|change| change["textDocument"]["uri"] == uri);
        found.map(|change| change["textDocument"]["version"].clone())
    };
    // The prompt is not open: what lies on disk has no version.
    assert_eq!((version("flow.kdl"), version("make.md")), (Some(json!(7)), Some(Value::Null)), "{edit}");
    assert_eq!(edit["changes"], Value::Null);
    client.leave();
}

#[test]
fn what_specs_name_is_watched() {
    let watches = json!({ "dynamicRegistration": true, "relativePatternSupport": true });
    let mut client = flow(json!({ "workspace": { "didChangeWatchedFiles": watches } }));
    let next = |client: &mut Client, wanted: &str| -> Request {
        client.wait(|message| match message {
            Message::Request(request) if request.method == wanted => Some(request.clone()),
            _ => None,
        })
    };
    let patterns = |request: &Request| {
        let watchers = request.params["registrations"][0]["registerOptions"]["watchers"].clone();
        let list = watchers.as_array().expect("it is a list").iter();
        list.map(|watcher| watcher["globPattern"]["pattern"].as_str().unwrap_or("specs").to_owned()).collect::<Vec<_>>()
    };
    let first = next(&mut client, "client/registerCapability");
    assert_eq!(first.params["registrations"][0]["registerOptions"]["watchers"][0]["globPattern"], "**/*.kdl");
    // Once the specs of the folder are known, the folder of their prompts; they may be known at once.
    if patterns(&first) == ["specs"] {
        let second = next(&mut client, "client/registerCapability");
        assert_eq!(patterns(&second), ["specs", "*"]);
        let old = next(&mut client, "client/unregisterCapability");
        assert_eq!(old.params["unregisterations"][0]["id"], first.params["registrations"][0]["id"]);
    } else {
        assert_eq!(patterns(&first), ["specs", "*"]);
    }
    client.open("flow.kdl", &SPEC.replace("make.md", "prompts/make.md"));
    let third = next(&mut client, "client/registerCapability");
    assert!(patterns(&third).contains(&"prompts/*".to_owned()), "{:?}", third.params);
    client.leave();
}
