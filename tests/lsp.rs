//! The language server as an editor meets it: the real binary over its standard input and output.

mod client;
mod workspace;

use std::time::{Duration, Instant};

use lsp_server::Message;
use serde_json::{Value, json};

use client::Client;

const SPEC: &str = "\
workflow flow
provider local { exec cat }
agent coder provider=local
pipeline build {
    task plan { prompt \"Plan\" }
    task make { prompt file=\"make.md\" }
}
";

/// The emoji is one character, two units of UTF-16 and four bytes.
const PROMPT: &str = "😀 <<output:plan>> and <<output:plam>>\n";

fn flow(capabilities: Value) -> Client {
    Client::new(&[("flow.kdl", SPEC), ("make.md", PROMPT)], capabilities)
}

fn range(line: u32, from: u32, to: u32) -> Value {
    json!({ "start": { "line": line, "character": from }, "end": { "line": line, "character": to } })
}

#[test]
fn positions_count_what_both_sides_know() {
    let check = |offered: &[&str], chosen: &str, from: u32| {
        let mut client = flow(json!({ "general": { "positionEncodings": offered } }));
        assert_eq!(client.capabilities["positionEncoding"], chosen);
        client.open("flow.kdl", SPEC);
        client.open("make.md", PROMPT);
        let problems = client.problems("make.md", &["SW101"]);
        assert_eq!(problems[0]["range"], range(0, from, from + 4), "{chosen}");
        // The same place the other way round: the definition of what stands there.
        let at = client.at("make.md", 0, from - 20);
        let found = client.ask("textDocument/definition", at).expect("what the test needs is there");
        assert_eq!(found[0]["range"], range(4, 9, 13), "{chosen}: {found}");
        // An edit behind the emoji.
        client.change("make.md", 2, json!([{ "range": range(0, from, from + 4), "text": "plan" }]));
        client.problems("make.md", &[]);
        client.leave();
    };
    check(&["utf-16", "utf-8"], "utf-8", 34);
    check(&[], "utf-16", 32);
    check(&["utf-16", "utf-32"], "utf-16", 32);
    check(&["utf-32"], "utf-32", 31);
}

#[test]
fn problems_come_as_one_types() {
    let mut client = flow(json!({ "textDocument": { "publishDiagnostics": { "versionSupport": true } } }));
    client.open("flow.kdl", SPEC);
    client.problems("make.md", &["SW101"]);
    client.change("flow.kdl", 2, json!([{ "range": range(4, 9, 13), "text": "plam" }]));
    let problem = client.problems("make.md", &["SW101"]).remove(0);
    assert!(problem["message"].as_str().expect("what the test needs is there").contains("`plan`"), "{problem}");
    // Several changes in one message, each after the one before it.
    let changes = json!([{ "range": range(4, 9, 13), "text": "x" }, { "range": range(4, 10, 10), "text": "y {" }]);
    client.change("flow.kdl", 3, changes);
    let problems = client.wait(|message| match message {
        Message::Notification(one) if one.params["version"] == 3 => one.params["diagnostics"].as_array().cloned(),
        _ => None,
    });
    assert!(!problems.is_empty(), "a brace is open");
    // The whole text at once.
    client.change("flow.kdl", 4, json!([{ "text": SPEC }]));
    client.problems("flow.kdl", &[]);
    client.leave();
}

#[test]
fn problems_are_pulled_by_clients_that_do() {
    let capabilities = json!({
        "textDocument": { "diagnostic": {} }, "workspace": { "diagnostics": { "refreshSupport": true } },
    });
    let mut client = flow(capabilities);
    client.open("flow.kdl", SPEC);
    let params = json!({ "textDocument": { "uri": client.uri("make.md") } });
    let report = client.ask("textDocument/diagnostic", params).expect("what the test needs is there");
    assert_eq!(report["kind"], "full");
    assert_eq!(report["items"][0]["code"], "SW101");
    // What is wrong elsewhere has changed: the client is asked to ask.
    let method = client.wait(|message| match message {
        Message::Request(request) => Some(request.method.clone()),
        _ => None,
    });
    assert_eq!(method, "workspace/diagnostic/refresh");
    client.leave();
}

/// Neovim 0.11 pulls, and knows no refresh: a prompt that it opens before its spec is found would stay without
/// problems.
#[test]
fn problems_are_told_to_clients_that_cannot_be_told_to_pull_again() {
    let mut client = flow(json!({ "textDocument": { "diagnostic": {} } }));
    assert_eq!(client.capabilities["diagnosticProvider"], Value::Null);
    client.open("flow.kdl", SPEC);
    client.problems("make.md", &["SW101"]);
    client.leave();
}

#[test]
fn names_are_completed_found_and_renamed_across_files() {
    let mut client = flow(json!({}));
    client.open("flow.kdl", SPEC);
    client.open("make.md", "Do <<output:pl");
    let at = client.at("make.md", 0, 14);
    let found = client.ask("textDocument/completion", at).expect("what the test needs is there");
    let items = if found.is_array() { &found } else { &found["items"] };
    assert!(
        items.as_array().expect("what the test needs is there").iter().any(|item| item["label"] == "plan"),
        "{found}"
    );
    client.change("make.md", 2, json!([{ "text": "Do <<output:plan>>" }]));
    let mut at = client.at("make.md", 0, 13);
    at["newName"] = "scheme".into();
    let edit = client.ask("textDocument/rename", at.clone()).expect("what the test needs is there");
    let edits = |path: &str| &edit["changes"][client.uri(path)];
    assert_eq!(edits("make.md"), &json!([{ "range": range(0, 12, 16), "newText": "scheme" }]));
    assert_eq!(edits("flow.kdl"), &json!([{ "range": range(4, 9, 13), "newText": "scheme" }]));
    // A name that is none is refused in words.
    at["newName"] = "a b".into();
    assert_eq!(client.ask("textDocument/rename", at), Err(-32803));
    client.leave();
}

#[test]
fn commands_show_plans_pictures_prompts_and_pages() {
    let mut client = flow(json!({}));
    client.open("flow.kdl", SPEC);
    client.open("make.md", "Do <<output:plan>> as {{ task.name }}");
    let ask = |client: &mut Client, command: &str, argument: Value| {
        client.ask("workspace/executeCommand", json!({ "command": command, "arguments": [argument] }))
    };
    let (spec, prompt) = (client.uri("flow.kdl"), client.uri("make.md"));
    let plan =
        ask(&mut client, "swarmc.plan", json!({ "uri": spec, "name": "build" })).expect("what the test needs is there");
    assert!(plan.as_str().expect("what the test needs is there").contains("pipeline build"), "{plan}");
    let graph = ask(&mut client, "swarmc.graph", json!({ "uri": prompt })).expect("what the test needs is there");
    assert!(graph.as_str().expect("what the test needs is there").starts_with("<svg"), "{graph}");
    let known = "# make, as agent coder receives it\n\n## Prompt\n\nDo <<output:plan>> as {{ task.name }}\n";
    for about in [
        json!({ "uri": spec, "name": "make" }),
        json!({ "uri": prompt, "position": { "line": 0, "character": 1 } }),
        json!({ "uri": spec, "position": { "line": 5, "character": 20 } }),
    ] {
        assert_eq!(ask(&mut client, "swarmc.prompt", about), Ok(json!(known)));
    }
    let page = ask(&mut client, "swarmc.explain", json!("SW101")).expect("what the test needs is there");
    assert!(page.as_str().expect("what the test needs is there").contains("SW101"), "{page}");
    for (command, argument) in [
        ("swarmc.prompt", json!({ "uri": spec, "name": "nobody" })),
        ("swarmc.graph", json!({ "uri": spec, "name": "nobody" })),
        ("swarmc.plan", json!({ "uri": client.uri("other.md") })),
        ("swarmc.plan", json!(7)),
        ("swarmc.explain", json!("SW999")),
        ("swarmc.run", json!({ "uri": spec })),
    ] {
        assert_eq!(ask(&mut client, command, argument), Err(-32803), "{command}");
    }
    client.leave();
}

#[test]
fn wrong_requests_get_an_error_and_the_server_goes_on() {
    let mut client = Client::bare(&[("flow.kdl", SPEC)]);
    let at = client.at("flow.kdl", 0, 0);
    assert_eq!(client.ask("textDocument/hover", at), Err(-32002), "before initialize");
    assert_eq!(client.ask("shutdown", Value::Null), Err(-32002));
    assert_eq!(client.ask("initialize", json!("hello")), Err(-32602));
    let folder = client.uri("");
    client.initialize(json!({ "processId": null, "rootUri": folder, "capabilities": {} }));
    assert_eq!(
        client.ask("initialize", json!({ "processId": null, "rootUri": null, "capabilities": {} })),
        Err(-32600)
    );
    assert_eq!(client.ask("textDocument/nothing", json!({})), Err(-32601));
    assert_eq!(client.ask("textDocument/hover", json!({ "position": 7 })), Err(-32602));
    client.open("flow.kdl", SPEC);
    let mut at = client.at("flow.kdl", 0, 0);
    at["position"]["line"] = (-1).into();
    assert_eq!(client.ask("textDocument/hover", at), Err(-32602));
    let outside = client.at("flow.kdl", 4_000_000_000, 4_000_000_000);
    assert!(client.ask("textDocument/definition", outside).is_ok());
    let elsewhere = json!({ "textDocument": { "uri": "untitled:1" }, "position": { "line": 0, "character": 0 } });
    assert_eq!(client.ask("textDocument/hover", elsewhere), Ok(Value::Null));
    // JSON that is no message, and a notification that nobody knows.
    client.raw(b"Content-Length: 2\r\n\r\n[]");
    assert!(client.log().contains("invalid message"));
    client.tell("$/unknown", json!({}));
    client.tell("textDocument/didOpen", json!({ "textDocument": 1 }));
    assert!(client.log().contains("`textDocument/didOpen` cannot be read"));
    client.leave();
}

#[test]
fn edits_outside_and_versions_out_of_order_change_what_they_say() {
    let mut client = flow(json!({}));
    client.open("flow.kdl", SPEC);
    client.open("make.md", "");
    client.change("make.md", 5, json!([{ "range": range(900, 7, 7), "text": "<<output:plan>> <<output:" }]));
    // From behind to before is nothing, at its start.
    let backwards = json!({ "start": { "line": 0, "character": 99 }, "end": { "line": 0, "character": 0 } });
    client.change("make.md", 3, json!([{ "range": backwards, "text": "nobody>>" }]));
    assert!(client.log().contains("version 3"), "an older number is told");
    // What was told of the text before may still come.
    while client.problems("make.md", &["SW101"])[0]["range"] != range(0, 25, 31) {}
    // A file that is not open; and a change that cannot be read, after which the file on disk counts.
    client.change("other.md", 1, json!([{ "text": "x" }]));
    assert!(client.log().contains("not open"));
    client.change("make.md", 6, json!([{ "range": { "start": { "line": -1 } }, "text": "x" }]));
    assert!(client.log().contains("open the file again"));
    while !client.problems("make.md", &["SW101"])[0]["message"].as_str().is_some_and(|it| it.contains("`plam`")) {}
    client.leave();
}

#[test]
fn what_is_not_wanted_any_more_is_refused() {
    let mut client = flow(json!({}));
    client.open("flow.kdl", SPEC);
    client.problems("make.md", &["SW101"]);
    // Both threads are kept busy by a spec that takes its time, so that nothing is answered before it is cancelled.
    client.open("big.kdl", &big(3_000));
    let symbols = json!({ "query": "" });
    let busy: Vec<i32> = (0..3).map(|_| client.begin("workspace/symbol", symbols.clone())).collect();
    let at = client.at("flow.kdl", 5, 10);
    let hover = client.begin("textDocument/hover", at.clone());
    client.tell("$/cancelRequest", json!({ "id": hover }));
    assert_eq!(client.answer(hover), Err(-32800));
    let stale = client.begin("textDocument/hover", at.clone());
    client.change("flow.kdl", 2, json!([{ "range": range(0, 0, 0), "text": "// new\n" }]));
    assert_eq!(client.answer(stale), Err(-32801));
    for id in busy {
        let _ = client.answer(id);
    }
    // Cancelling what is done, or never was, is nothing.
    client.tell("$/cancelRequest", json!({ "id": 999 }));
    assert!(client.ask("textDocument/hover", at).is_ok());
    client.leave();
}

/// A spec that takes a while.
fn big(tasks: usize) -> String {
    let mut spec = String::from("workflow big\nprovider local { exec cat }\nagent a provider=local\npipeline p {\n");
    for number in 0..tasks {
        spec.push_str(&format!("    task t{number} {{ prompt \"Do <<output:t{}>>\" }}\n", number.saturating_sub(1)));
    }
    spec.replace("<<output:t0>>\" }\n    task t1 ", "it\" }\n    task t1 ") + "}\n"
}

#[test]
fn ten_thousand_edits_in_a_burst_are_one() {
    let mut client = flow(json!({}));
    client.open("flow.kdl", SPEC);
    client.open("make.md", PROMPT);
    client.problems("make.md", &["SW101"]);
    let begun = Instant::now();
    for version in 0..10_000 {
        let text = if version % 2 == 0 { "{ x <<output:" } else { "" };
        let end = if version % 2 == 0 { 0 } else { 13 };
        client.change("flow.kdl", 2 + version, json!([{ "range": range(3, 0, end), "text": text }]));
    }
    let at = client.at("flow.kdl", 4, 10);
    let found = client.ask("textDocument/definition", at).expect("what the test needs is there");
    assert_eq!(found[0]["range"], range(4, 9, 13));
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    let status =
        std::fs::read_to_string(format!("/proc/{}/status", client.process.id())).expect("what the test needs is there");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("what the test needs is there");
    let kib: u64 = peak.trim().trim_end_matches(" kB").parse().expect("what the test needs is there");
    assert!(kib < 300 << 10, "{kib} KiB");
    client.leave();
}

#[test]
fn large_texts_of_all_kinds_get_an_answer() {
    let mut client = flow(json!({}));
    client.open("flow.kdl", SPEC);
    let mebibyte = 1 << 20;
    for (path, piece) in [("make.md", "<<output:no>> {{ x "), ("a.kdl", "pipeline { "), ("b.kdl", "task a { \"")] {
        let text = piece.repeat(mebibyte / piece.len());
        client.open(path, &text);
        let at = client.at(path, 0, 500_000);
        assert!(client.ask("textDocument/hover", at.clone()).is_ok(), "{path}");
        assert!(client.ask("textDocument/completion", at).is_ok(), "{path}");
        let params = json!({ "textDocument": { "uri": client.uri(path) } });
        client.tell("textDocument/didClose", params);
    }
    client.leave();
}

#[test]
fn files_of_other_programs_get_nothing() {
    let zellij = "layout {\n    pane split_direction=\"vertical\" {\n        pane\n    }\n}\nkeybinds { normal { } }\n";
    let mut client = Client::new(&[("zellij.kdl", zellij), ("notes.md", "<<output:nothing>>")], json!({}));
    client.open("zellij.kdl", zellij);
    client.open("notes.md", "<<output:nothing>>");
    let document = json!({ "textDocument": { "uri": client.uri("zellij.kdl") } });
    for method in ["textDocument/hover", "textDocument/definition", "textDocument/completion"] {
        let at = client.at("zellij.kdl", 1, 6);
        let answer = client.ask(method, at).expect("what the test needs is there");
        let items = if answer.is_object() { &answer["items"] } else { &answer };
        assert!(items.is_null() || items == &json!([]), "{method}: {answer}");
    }
    let format = json!({ "textDocument": document["textDocument"], "options": { "tabSize": 4, "insertSpaces": true } });
    assert_eq!(client.ask("textDocument/formatting", format), Ok(json!([])));
    let told = |message: &Message| matches!(message, Message::Notification(_));
    assert!(!client.kept.iter().any(told), "{:?}", client.kept);
    client.leave();
}

#[test]
fn files_on_disk_are_followed() {
    let capabilities = json!({ "workspace": { "didChangeWatchedFiles": { "dynamicRegistration": true } } });
    let mut client = flow(capabilities);
    let registered = client.wait(|message| match message {
        Message::Request(request) if request.method == "client/registerCapability" => Some(request.params.clone()),
        _ => None,
    });
    assert_eq!(registered["registrations"][0]["method"], "workspace/didChangeWatchedFiles");
    // The specs of the folder are judged before any is open.
    client.problems("make.md", &["SW101"]);
    let touched = |client: &mut Client, path: &str| {
        let change = json!({ "uri": client.uri(path), "type": 2 });
        client.tell("workspace/didChangeWatchedFiles", json!({ "changes": [change] }));
    };
    client.write("make.md", "<<output:plan>>");
    touched(&mut client, "make.md");
    client.problems("make.md", &[]);
    // A file that becomes a folder, and is a file again.
    std::fs::remove_file(client.folder.path().join("make.md")).expect("what the test needs is there");
    std::fs::create_dir(client.folder.path().join("make.md")).expect("what the test needs is there");
    touched(&mut client, "make.md");
    let problem = client.wait(|message| match message {
        Message::Notification(one) if one.params["diagnostics"][0].is_object() => {
            Some(one.params["diagnostics"][0]["message"].as_str().expect("what the test needs is there").to_owned())
        }
        _ => None,
    });
    assert!(problem.contains("folder"), "{problem}");
    std::fs::remove_dir(client.folder.path().join("make.md")).expect("what the test needs is there");
    client.write("make.md", "ok");
    touched(&mut client, "make.md");
    client.problems("flow.kdl", &[]);
    client.leave();
}

#[test]
fn the_settings_of_the_workspace_are_followed() {
    let capabilities = json!({ "workspace": { "didChangeWatchedFiles": { "dynamicRegistration": true } } });
    let spec = SPEC.replace("agent coder", "provider spare { exec cat }\nagent coder");
    let files = [("a/flow.kdl", spec.as_str()), ("a/make.md", ""), ("b/flow.kdl", &spec), ("b/make.md", "")];
    let mut client = Client::new(&files, capabilities);
    let severity = |problems: Vec<Value>| problems[0]["severity"].as_u64().expect("a problem says how bad it is");
    for folder in ["a", "b"] {
        assert_eq!(severity(client.problems(&format!("{folder}/flow.kdl"), &["SW103"])), 2);
    }
    // On disk, for one workspace of the two.
    client.write("a/swarmc.kdl", "deny SW103\n");
    let change = json!({ "uri": client.uri("a/swarmc.kdl"), "type": 1 });
    client.tell("workspace/didChangeWatchedFiles", json!({ "changes": [change] }));
    assert_eq!(severity(client.problems("a/flow.kdl", &["SW103"])), 1);
    // In the editor, wrong at first.
    client.open("a/swarmc.kdl", "allov SW103\n");
    assert_eq!(severity(client.problems("a/flow.kdl", &["SW103"])), 2);
    let problem = client.problems("a/swarmc.kdl", &["SW003"]).remove(0);
    assert_eq!(problem["range"], range(0, 0, 5));
    client.change("a/swarmc.kdl", 2, json!([{ "range": range(0, 4, 5), "text": "w" }]));
    client.problems("a/flow.kdl", &[]);
    client.problems("a/swarmc.kdl", &[]);
    // What is not saved is gone with the document.
    let params = json!({ "textDocument": { "uri": client.uri("a/swarmc.kdl") } });
    client.tell("textDocument/didClose", params);
    assert_eq!(severity(client.problems("a/flow.kdl", &["SW103"])), 1);
    let told = |message: &Message| matches!(message, Message::Notification(one) if one.params["uri"].as_str().is_some_and(|uri| uri.contains("/b/")));
    assert!(!client.kept.iter().any(told), "{:?}", client.kept);
    client.leave();
}

#[test]
fn a_code_leads_to_its_page() {
    let capabilities = json!({ "textDocument": { "publishDiagnostics": { "codeDescriptionSupport": true } } });
    let mut client = flow(capabilities);
    let problem = client.problems("make.md", &["SW101"]).remove(0);
    let link = problem["codeDescription"]["href"].as_str().expect("the code has a link");
    let path = link.strip_prefix("file://").expect("it is a file");
    assert!(path.ends_with("/SW101.md"), "{path}");
    let page = std::fs::read_to_string(path).expect("the page is there");
    assert!(page.starts_with("# SW101"), "{page}");
    client.leave();
    // Nothing is written for editors that would not open it.
    let mut client = flow(json!({}));
    let problem = client.problems("make.md", &["SW101"]).remove(0);
    assert_eq!(problem["codeDescription"], Value::Null);
    assert!(!client.folder.path().join(".cache").exists());
    client.leave();
}

/// Runs a pipeline of the folder as a person would, and says whether it succeeded.
fn run(client: &Client, folder: &str, arguments: &[&str]) -> bool {
    let mut command = crate::patience::swarmc();
    command.arg("run").args(arguments).arg("-q").current_dir(client.folder.path().join(folder));
    command.env("SWARM_HOME", client.folder.path().join(".swarm")).stdin(std::process::Stdio::null());
    command.output().expect("the program starts").status.success()
}

#[test]
fn the_last_run_is_shown_where_its_values_are_read() {
    let spec = "\
workflow flow
param goal type=string default=\"all\"
provider local { exec cat }
agent coder provider=local
pipeline build {
    task plan { run \"printf 'plan of %s' $GOAL; test $GOAL != none\"; env GOAL=\"<<param:goal>>\" }
    task long { run \"seq 3000\" }
    task make { depends-on plan long; prompt file=\"make.md\" }
}
";
    let prompt = "For <<param:goal>>: <<output:plan>> <<output:long>> <<status:plan>>\n";
    let files = [("a/flow.kdl", spec), ("a/make.md", prompt), ("b/flow.kdl", spec), ("b/make.md", prompt)];
    let mut client = Client::new(&files, json!({}));
    client.open("a/flow.kdl", spec);
    client.open("a/make.md", prompt);
    let hover = |client: &mut Client, character: u32| {
        let at = client.at("a/make.md", 0, character);
        let found = client.ask("textDocument/hover", at).expect("a hover");
        found["contents"]["value"].as_str().expect("it is Markdown").to_owned()
    };
    let (param, plan, long, status) = (6, 21, 37, 53);
    assert!(!hover(&mut client, plan).contains("Last run"), "nothing was run yet");
    // A run of the same workflow in another workspace is not this one's.
    assert!(run(&client, "b", &["flow.kdl", "--param", "goal=elsewhere"]));
    assert!(!hover(&mut client, plan).contains("Last run"));
    assert!(run(&client, "a", &["flow.kdl", "--param", "goal=speed"]));
    let shown = hover(&mut client, plan);
    assert!(shown.contains("Last run") && shown.contains("plan of speed"), "{shown}");
    assert!(hover(&mut client, param).contains("```text\nspeed\n```"));
    assert!(hover(&mut client, status).contains("succeeded"));
    // Of a long output the beginning is shown.
    let shown = hover(&mut client, long);
    assert!(shown.contains("\n1\n2\n3\n") && !shown.contains("2999"), "{shown}");
    // The newest one counts, whatever came of it: the step that failed, and what never ran after it.
    assert!(!run(&client, "a", &["flow.kdl", "--param", "goal=none"]));
    assert!(hover(&mut client, status).contains("failed"));
    let document = json!({ "textDocument": { "uri": client.uri("a/flow.kdl") } });
    let lenses = client.ask("textDocument/codeLens", document).expect("lenses");
    let titles: Vec<String> = lenses
        .as_array()
        .expect("a list")
        .clone()
        .into_iter()
        .map(|lens| match lens["command"]["title"].as_str() {
            Some(title) => title.to_owned(),
            None => {
                let resolved = client.ask("codeLens/resolve", lens).expect("a lens");
                resolved["command"]["title"].as_str().expect("a title").to_owned()
            }
        })
        .collect();
    assert!(titles.iter().any(|title| title.starts_with("last run: failed")), "{titles:?}");
    let end = prompt.len() as u32;
    let values = json!({
        "textDocument": { "uri": client.uri("a/make.md") }, "range": range(0, 0, end),
        "context": { "frameId": 0, "stoppedLocation": range(0, 0, 0) },
    });
    let values = client.ask("textDocument/inlineValue", values).expect("values");
    assert!(values.to_string().contains("none"), "{values}");
    client.leave();
}

#[test]
fn an_open_spec_whose_file_becomes_a_folder_is_still_the_text_that_is_open() {
    let mut client = flow(json!({}));
    client.open("flow.kdl", SPEC);
    client.problems("make.md", &["SW101"]);
    let file = client.folder.path().join("flow.kdl");
    std::fs::remove_file(&file).expect("what the test needs is there");
    std::fs::create_dir(&file).expect("what the test needs is there");
    let change = json!({ "uri": client.uri("flow.kdl"), "type": 3 });
    client.tell("workspace/didChangeWatchedFiles", json!({ "changes": [change] }));
    let at = client.at("flow.kdl", 4, 10);
    assert_eq!(
        client.ask("textDocument/definition", at.clone()).expect("what the test needs is there")[0]["range"],
        range(4, 9, 13)
    );
    let params = json!({ "textDocument": { "uri": client.uri("flow.kdl") } });
    client.tell("textDocument/didClose", params);
    client.problems("make.md", &[]);
    assert_eq!(client.ask("textDocument/definition", at), Ok(Value::Null));
    client.leave();
}

#[test]
fn without_watching_files_are_looked_at_when_one_is_saved_or_opened() {
    let mut client = flow(json!({}));
    client.open("flow.kdl", SPEC);
    client.problems("make.md", &["SW101"]);
    client.write("make.md", "<<output:plan>>");
    let saved = json!({ "textDocument": { "uri": client.uri("flow.kdl") } });
    client.tell("textDocument/didSave", saved);
    client.problems("make.md", &[]);
    client.write("make.md", "<<output:plum>>");
    client.open("notes.md", "");
    client.problems("make.md", &["SW101"]);
    client.leave();
}

#[test]
fn folders_come_and_go() {
    let mut client = Client::bare(&[("one/flow.kdl", SPEC), ("one/make.md", PROMPT), ("two/flow.kdl", SPEC)]);
    let folder = |client: &Client, name: &str| json!({ "uri": client.uri(name), "name": name });
    let folders = json!([folder(&client, "one")]);
    client.initialize(json!({ "processId": null, "rootUri": null, "capabilities": {}, "workspaceFolders": folders }));
    client.problems("one/make.md", &["SW101"]);
    let event = json!({ "added": [folder(&client, "two")], "removed": [] });
    client.tell("workspace/didChangeWorkspaceFolders", json!({ "event": event }));
    client.wait(|message| match message {
        Message::Notification(one) if one.params["uri"] == client_uri(&one.params, "two/flow.kdl") => Some(()),
        _ => None,
    });
    client.leave();
}

/// The address itself where it ends in this path.
fn client_uri(params: &Value, path: &str) -> String {
    params["uri"].as_str().filter(|uri| uri.ends_with(path)).unwrap_or_default().to_owned()
}

#[test]
fn a_file_keeps_the_name_that_the_editor_has_for_it() {
    let mut client = Client::bare(&[("real/flow.kdl", SPEC), ("real/make.md", PROMPT)]);
    std::os::unix::fs::symlink("real", client.folder.path().join("link")).expect("what the test needs is there");
    client.initialize(json!({ "processId": null, "rootUri": null, "capabilities": {} }));
    client.open("link/make.md", PROMPT);
    client.open("link/flow.kdl", SPEC);
    client.problems("link/make.md", &["SW101"]);
    let at = client.at("link/make.md", 0, 14);
    let found = client.ask("textDocument/definition", at).expect("what the test needs is there");
    assert_eq!(found[0]["uri"], client.uri("link/flow.kdl"));
    client.leave();
}

#[test]
fn the_exit_code_says_how_it_ended() {
    // An editor that dies.
    let client = flow(json!({}));
    assert_eq!(client.end(), (1, String::new()));
    let client = Client::bare(&[]);
    assert_eq!(client.end(), (1, String::new()));
    // In the middle of a message.
    let mut client = flow(json!({}));
    client.raw(b"Content-Length: 100\r\n\r\n{");
    assert_eq!(client.end(), (1, String::new()));
    // `exit` without `shutdown`, and requests after it.
    let mut client = flow(json!({}));
    client.tell("exit", Value::Null);
    assert_eq!(client.end().0, 1);
    let mut client = Client::bare(&[]);
    client.tell("exit", Value::Null);
    assert_eq!(client.end().0, 1);
    let mut client = flow(json!({}));
    assert_eq!(client.ask("shutdown", Value::Null), Ok(Value::Null));
    assert_eq!(client.ask("shutdown", Value::Null), Ok(Value::Null));
    let at = client.at("flow.kdl", 0, 0);
    assert_eq!(client.ask("textDocument/hover", at), Err(-32600));
    client.tell("exit", Value::Null);
    assert_eq!(client.end().0, 0);
}

#[test]
fn what_is_not_the_protocol_ends_it_with_a_word() {
    let check = |bytes: &[u8], word: &str| {
        for begun in [true, false] {
            let mut client = if begun { flow(json!({})) } else { Client::bare(&[]) };
            client.raw(bytes);
            let (code, said) = client.end();
            assert_eq!(code, 2, "{word}");
            assert!(said.contains(word), "{said}");
        }
    };
    check(b"Content-Length: 5\r\n\r\n{\"a\":", "not JSON");
    check(b"Content-Length: 99999999999999\r\n\r\n{}", "is not a valid length of a message");
    check(b"Content-Length: 18446744073709551615\r\n\r\n{}", "is not a valid length of a message");
    check(b"hello\r\n\r\n", "is not a header");
    check(b"Content-Type: x\r\n\r\n{}", "without `Content-Length`");
    check(&[b'x'; 100_000], "a header without an end");
}
