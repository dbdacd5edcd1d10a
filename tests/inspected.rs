//! What `inspect` shows of a step (seed 002, "UI observability requirements"): the tools that it used, its envelopes whole,
//! and its artifacts, each by its reference; and what programs see of tools and connections while a run goes on.

use std::fs;

use serde_json::{Value, json};

use crate::specs::Project;

/// `work` uses two tools, changes a file and hands over; `next` reads that.
const SPEC: &str = r##"
workflow inspected { default main }
secret key env=KEY
provider program { exec "sh" "program.sh"; reads claude-stream-json; env key }
provider recorded { script { answer "Done." } }
agent worker provider=program
agent reader provider=recorded
pipeline main {
    edges { work -> next }
    task work agent=worker { prompt "Work" }
    task next agent=reader { prompt "Read:\n<<inbox>>" }
    result next
}
"##;

/// One tool works and shows a secret, one fails with words that a terminal would obey, and much of its arguments.
fn lines() -> String {
    let used = |id: &str, name: &str, input: &Value| {
        json!({ "type": "assistant", "message": { "content": [
            { "type": "tool_use", "id": id, "name": name, "input": input },
        ] } })
    };
    let came = |id: &str, failed: bool, text: &str| {
        json!({ "type": "user", "message": { "content": [
            { "type": "tool_result", "tool_use_id": id, "is_error": failed, "content": text },
        ] } })
    };
    let handoff = json!({
        "swarm": "send_handoff", "to": "next", "message": "Go", "structured": { "deep": [1, "\u{1b}[2J\u{202e}"] },
        "status": { "ok": true, "reason": "tests-pass" },
    });
    let lines = [
        json!({ "type": "system", "subtype": "init", "session_id": "ses-1" }),
        used("t1", "Bash", &json!({ "command": "echo s3cr3t-value" })),
        came("t1", false, "s3cr3t-value"),
        used("t2", "Read", &json!({ "path": "x".repeat(9_000) })),
        came("t2", true, "\u{1b}[2Jno such file"),
        json!({ "type": "result", "subtype": "success", "is_error": false, "session_id": "ses-1", "result": handoff.to_string() }),
    ];
    lines.map(|line| line.to_string()).join("\n")
}

/// The lines that a run with this option printed.
fn run(project: &Project, option: &str) -> Vec<Value> {
    let root = project.root();
    fs::write(root.join("spec.kdl"), SPEC).expect("a spec can be written");
    fs::write(root.join("stream"), lines()).expect("a file can be written");
    fs::write(root.join("program.sh"), "cat >/dev/null\necho new > made.txt\ncat stream\n").expect("a file is written");
    let output = project.command(&["run", "spec.kdl", option]).env("KEY", "s3cr3t-value").output().expect("it starts");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{out}\n{err}");
    out.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

#[test]
fn tool_usage_events_have_arguments_an_outcome_and_a_time() {
    let project = Project::new();
    let printed = run(&project, "--events");
    let node: Value = serde_json::from_str(&project.done(&["inspect", "last", "work", "--json"])).expect("it is JSON");
    let [shell, read] = node["tools"].as_array().expect("a list").as_slice() else { panic!("two tools: {node}") };
    assert_eq!((&shell["tool"], &shell["turn"], &shell["ok"]), (&"Bash".into(), &1.into(), &true.into()));
    assert_eq!(shell["arguments"], "{\"command\":\"echo ⟦secret:KEY⟧\"}");
    assert_eq!(shell["text"], "⟦secret:KEY⟧");
    assert!(shell["at"].as_u64() > Some(1_600_000_000_000) && shell["ended_ms"].as_u64() >= shell["at"].as_u64());
    assert_eq!((&read["tool"], &read["ok"]), (&"Read".into(), &false.into()));
    let arguments = read["arguments"].as_str().expect("a text");
    assert!(arguments.ends_with("xx…") && arguments.len() == 2_003, "{}: {arguments}", arguments.len());

    let text = project.done(&["inspect", "last", "work"]);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| line.starts_with("tool ")).collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert!(lines[0].starts_with("tool    turn 1: Bash {\"command\":\"echo ⟦secret:KEY⟧\"}, ok after "), "{text}");
    assert!(lines[0].ends_with(": ⟦secret:KEY⟧") && lines[1].ends_with(": no such file"), "{text}");
    assert!(lines[1].contains(", failed after ") && !text.contains('\u{1b}'), "{text}");

    // Whoever watches has seen the same.
    let of = |kind: &str| printed.iter().filter(|line| line["type"] == kind).collect::<Vec<_>>();
    let (started, ended) = (of("tool_started"), of("tool_ended"));
    assert_eq!((started.len(), ended.len()), (2, 2), "{printed:#?}");
    assert_eq!((&started[0]["tool"], &started[0]["arguments"]), (&shell["tool"], &shell["arguments"]));
    assert_eq!((&started[0]["at"], &started[0]["step"]["name"]), (&shell["at"], &"work".into()));
    assert_eq!((&ended[1]["id"], &ended[1]["ok"], &ended[1]["attempt"]), (&"t2".into(), &false.into(), &1.into()));
    assert!(started.iter().chain(&ended).all(|line| line["seq"].is_null() && line["version"] == 1), "{started:?}");
    let journal = project.home().join("runs");
    let run = fs::read_dir(&journal).expect("there are runs").next().expect("one").expect("it can be read").path();
    let journal = fs::read_to_string(run.join("journal.jsonl")).expect("a journal can be read");
    assert!(!journal.contains("tool_started") && !journal.contains("\"connection\""), "it stands in no journal");
}

#[test]
fn of_a_flood_of_tools_the_first_thousand_are_told() {
    let project = Project::new();
    let root = project.root();
    let used =
        r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"tID","name":"Bash","input":{}}]}}"#;
    let mut stream: Vec<String> = (1..=1_050).map(|id| used.replace("ID", &id.to_string())).collect();
    stream.push(r#"{"type":"result","subtype":"success","is_error":false,"result":"Done."}"#.to_owned());
    fs::write(root.join("stream"), stream.join("\n")).expect("a file can be written");
    let spec = "provider program { exec \"sh\" \"-c\" \"cat >/dev/null; cat stream\"; reads claude-stream-json }\n\
        agent worker provider=program\n\
        pipeline main { task work agent=worker { prompt \"Work\" } }\n";
    fs::write(root.join("spec.kdl"), spec).expect("a spec can be written");
    let printed = project.done(&["run", "spec.kdl", "--events"]);
    assert_eq!(printed.matches("\"tool_started\"").count(), 1_000);
    let text = project.done(&["inspect", "last", "work"]);
    let lines: Vec<&str> = text.lines().filter(|line| line.trim_start().starts_with("tool ")).collect();
    assert_eq!(lines.len(), 1_000);
    assert!(lines[999].ends_with("Bash {} (what it used further is not listed)"), "{}", lines[999]);
    assert!(lines[998].ends_with("Bash {}"), "{}", lines[998]);
}

#[test]
fn real_time_connection_state_is_in_the_stream_of_events() {
    for option in ["--events", "--json"] {
        let project = Project::new();
        let printed = run(&project, option);
        let of = |name: &str| -> Vec<String> {
            let lines = printed.iter().filter(|line| line["type"] == "connection" && line["step"]["name"] == *name);
            let word = |value: &Value| value.as_str().unwrap_or("-").to_owned();
            let fields = ["state", "stream", "session"];
            lines.map(|line| fields.map(|field| word(&line[field])).join(" ")).collect()
        };
        let work = of("work");
        assert_eq!(work.first().map(String::as_str), Some("connected reading -"), "{work:?}");
        assert!(work.iter().any(|line| line.starts_with("connected writing ")), "{work:?}");
        assert_eq!(work.last().map(String::as_str), Some("disconnected - ses-1"), "{work:?}");
        assert!(work.windows(2).all(|pair| pair[0] != pair[1]), "only what changes is told: {work:?}");
        let next = of("next");
        assert_eq!(next.last().map(String::as_str), Some("disconnected - -"), "{next:?}");
        assert_eq!(printed.last().expect("there are lines")["type"], "result", "that stays the last line");
    }
}

#[test]
fn an_artifact_is_printed_by_the_reference_that_inspect_shows() {
    let project = Project::new();
    run(&project, "--events");
    let text = project.done(&["inspect", "last", "work"]);
    let line = text.lines().map(str::trim).find(|line| line.starts_with("diff ")).expect("there is a diff");
    let words: Vec<&str> = line.split_whitespace().collect();
    let reference = words[1];
    let diff = project.done(&["inspect", "last", reference]);
    assert!(diff.contains("+++ b/made.txt\n") && diff.contains("\n+new\n"), "{diff}");
    assert_eq!(words[2..5].join(" "), format!("({} bytes, turn", diff.len()), "{line}");
    let whole: Value = serde_json::from_str(&project.done(&["inspect", "last", reference, "--json"])).expect("JSON");
    assert_eq!((&whole["ref"], &whole["kind"]), (&reference.into(), &"diff".into()));
    assert_eq!(whole["of"], json!([{ "step": "work", "turn": 1 }]));
    assert_eq!((whole["text"].as_str(), whole["bytes"].as_u64()), (Some(diff.as_str()), Some(diff.len() as u64)));

    // Also what every turn leaves.
    for kind in ["prompt", "transcript", "log"] {
        let named = |line: &&str| line.contains(&format!(" artifact://{kind}/"));
        let line = text.lines().find(named).unwrap_or_else(|| panic!("there is a {kind}: {text}"));
        let printed = project.done(&["inspect", "last", line.split_whitespace().nth(1).expect("a reference")]);
        assert!(!printed.is_empty(), "{line}");
    }

    for wrong in ["artifact://diff/0123456789abcdef", "contextpack://pack/x", "artifact://../../plan.json"] {
        let output = project.swarmc(&["inspect", "last", wrong]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("has no artifact `") && said.contains(reference), "{said}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn incoming_and_outgoing_handoffs_are_shown_as_raw_envelope_data() {
    let project = Project::new();
    run(&project, "--events");
    let sent = project.done(&["inspect", "last", "work", "--raw"]);
    assert!(sent.starts_with('e') && sent.contains(" (sent in turn 1)\n{\n"), "{sent}");
    for part in
        ["\"kind\": \"handoff\"", "\"reason\": \"tests-pass\"", "\"deep\": [", "\"toNodeId\": \"next\"", "\"meta\""]
    {
        assert!(sent.contains(part), "{part}: {sent}");
    }
    assert!(!sent.contains('\u{1b}') && !sent.contains('\u{202e}'), "no terminal obeys it: {sent}");
    let came = project.done(&["inspect", "last", "next", "--raw"]);
    assert!(came.contains(" (read in turn 1)\n{\n"), "{came}");
    assert_eq!(came.split_once('\n').map(|(_, rest)| rest), sent.split_once('\n').map(|(_, rest)| rest));
    let wrong = project.swarmc(&["inspect", "last", "work", "--raw", "--json"]);
    assert_eq!(wrong.status.code(), Some(2));
}

/// A step that is not there: each step is offered once, however often it ran, and those that have not begun as well.
#[test]
fn an_unknown_step_is_answered_with_each_step_once() {
    let place = crate::cli::Place::new(
        r#"
        pipeline p {
            loop polish max=3 exhausted=success {
                until "output.draft == 'never'"
                task draft { run echo }
                task review { run echo }
            }
            task after { depends-on polish; run sh "-c" "exit 1" }
            task last { depends-on after; run echo }
        }
        "#,
    );
    place.swarmc(&["run", "flow.kdl"]).expect(3, &[], &[]);
    for word in ["nothing-like-it", "draft[9]"] {
        let ended = place.swarmc(&["inspect", "last", word]).expect(2, &[], &[word]);
        for name in ["draft", "review", "after", "last"] {
            let quoted =
                ended.err.matches(&format!("`{name}`")).count() + ended.err.matches(&format!("/{name}`")).count();
            assert!(quoted <= 2, "{word}: {name} {quoted}: {}", ended.err);
        }
        assert!(ended.err.contains("`last`") || ended.err.contains("did you mean"), "{}", ended.err);
    }
}
