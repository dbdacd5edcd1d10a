//! Context packs, diffs and effective prompts through the binary (seed 002).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::specs::{Project, only, texts};

mod left;
mod summed;

/// A swarm with a pack in the task of one member, and nothing else in that of another.
const TEAM: &str = r##"
workflow packed { default team }
provider p { script { answer #"{"action": "done", "response": "x"}"# } }
agent a provider=p
context-pack lore { constraint lamps-are-old #true }
swarm team {
    goal "Light the lamps"
    member one "Light the first. <<context:lore>>"
    member two "<<context:lore>>"
    member three "Light the third."
}
"##;

#[test]
fn a_pack_in_the_task_of_a_member_is_for_that_member_alone() {
    let project = plain(TEAM);
    project.done(&["run", "spec.kdl"]);
    let prompts = texts(&folder(&project).join("prompts"));
    let of = |name: &str| {
        let mut own = prompts.values().filter(|prompt| prompt.contains(&format!("- **{name} (you)**")));
        own.next().unwrap_or_else(|| panic!("{name}: {prompts:#?}"))
    };
    for (name, packs) in [("one", 1), ("two", 1), ("three", 0)] {
        assert_eq!(of(name).matches("lampsAreOld").count(), packs, "{}", of(name));
    }
    let team = "- one: \"Light the first.\"\n- two: \"What its context pack says\"\n- **three (you)**";
    assert!(of("three").contains(team), "{}", of("three"));
}

/// A project with one spec, in a repository with a commit.
fn repository(spec: &str) -> Project {
    let project = plain(spec);
    let root = project.root();
    fs::remove_dir_all(root.join(".git")).expect("a folder can be removed");
    fs::remove_dir_all(root.join("specs")).expect("a folder can be removed");
    git(&root, &["init", "--quiet"]);
    git(&root, &["add", "-A"]);
    git(&root, &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", "One"]);
    project
}

fn plain(spec: &str) -> Project {
    let project = Project::new();
    write(&project.root(), "spec.kdl", spec);
    write(&project.root(), "kept.txt", "one\ntwo\n");
    project
}

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().expect("a file lies in a folder")).expect("a folder can be made");
    fs::write(path, text).expect("a file can be written");
}

fn git(root: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git").args(arguments).current_dir(root).output().expect("git starts");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn folder(project: &Project) -> PathBuf {
    only(&project.home().join("runs"))
}

/// The artifacts of a kind that the only run has journaled, with their texts.
fn artifacts(project: &Project, kind: &str) -> Vec<(Value, String)> {
    let folder = folder(project);
    let journal = fs::read_to_string(folder.join("journal.jsonl")).expect("a journal can be read");
    let records = journal.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let stored = records.flat_map(|mut record| match (record["artifact"].take(), record["artifacts"].take()) {
        (_, Value::Array(left)) => left,
        (stored, _) => vec![stored],
    });
    let stored = stored.filter(|artifact| artifact["kind"] == kind);
    let text = |artifact: &Value| {
        let digest = artifact["content"]["artifact"]["digest"].as_str().expect("it is stored").to_owned();
        fs::read_to_string(folder.join("artifacts").join(digest)).expect("an artifact can be read")
    };
    stored.map(|artifact| (artifact.clone(), text(&artifact))).collect()
}

/// The pack in a prompt.
fn packed(prompt: &str) -> Value {
    let line = prompt.lines().skip_while(|line| !line.starts_with("--- Context pack ")).nth(1);
    serde_json::from_str(line.expect("there is a pack")).expect("a pack is JSON")
}

fn inspected(project: &Project, step: &str) -> Value {
    let printed = project.done(&["inspect", "last", step, "--json"]);
    serde_json::from_str(&printed).expect("it is JSON")
}

const PACKED: &str = r#"
workflow packed { default main; mode planning; docs-root docs }
param goal type=string default="dates"
provider local { script { answer "done" task=plan; answer "{\"swarm\": \"send_handoff\", \"to\": \"next\", \"message\": \"Over\"}" task=work; answer "ok" } }
agent one provider=local
context-pack base {
    goal "not this one"
    constraint offline #true
    fact database postgres
}
context-pack impl {
    budget tokens=2000
    goal "Implement <<param:goal>>"
    definition-of-done "tests pass" "docs updated"
    docs "docs/PLAN.md" lines="2-3"
    files "src/**/*.rs" summary=#true max=5
    inputs plan
    constraint no-new-dependencies #true
    merge base
}
pipeline main {
    edges { work -> next }
    task plan { prompt "Plan" }
    task work { prompt "Work" context=impl }
    task next { prompt "Go on:\n<<context:base>>\n<<inbox>>" }
}
"#;

fn packed_project() -> Project {
    let project = plain(PACKED);
    let root = project.root();
    write(&root, "docs/PLAN.md", "# Plan\nfirst\nsecond\nthird\n");
    write(&root, "src/dates.rs", "//! Reads dates. Well.\npub fn parse() {}\n");
    write(&root, "src/deep/more.rs", "struct More;\n");
    write(&root, ".gitignore", "made/\n");
    write(&root, "src/made/no.rs", "struct No;\n");
    write(&root, "Cargo.toml", "[package]\n");
    project
}

#[test]
fn context_pack_structure() {
    let project = packed_project();
    project.done(&["run", "spec.kdl"]);
    let pack = packed(&project.prompt("Work"));
    let fields: Vec<&str> = pack.as_object().expect("an object").keys().map(String::as_str).collect();
    let expected = [
        "packId",
        "runId",
        "nodeId",
        "createdAt",
        "goal",
        "definitionOfDone",
        "globalMode",
        "nodeMode",
        "docsRoot",
        "docRefs",
        "repoFacts",
        "relevantFiles",
        "inputs",
        "artifacts",
        "constraints",
    ];
    assert_eq!(fields, expected);
    assert_eq!((&pack["goal"], &pack["nodeId"]), (&Value::from("Implement dates"), &Value::from("work")));
    assert_eq!(pack["definitionOfDone"], serde_json::json!(["tests pass", "docs updated"]));
    assert_eq!((&pack["globalMode"], &pack["nodeMode"]), (&Value::from("PLANNING"), &Value::from("INTERACTIVE")));
    assert_eq!(pack["docRefs"], serde_json::json!([{ "path": "docs/PLAN.md", "excerpt": "first\nsecond\n" }]));
    assert_eq!(
        pack["repoFacts"],
        serde_json::json!({ "language": "rust", "packageManager": "cargo", "database": "postgres" })
    );
    assert_eq!(
        pack["relevantFiles"],
        serde_json::json!([
            { "path": "src/dates.rs", "summary": "Reads dates; declares parse" },
            { "path": "src/deep/more.rs", "summary": "declares More" },
        ])
    );
    assert_eq!(pack["constraints"], serde_json::json!({ "noNewDependencies": true, "offline": true }));
    // What has no envelope is named by where it is stored.
    let reports = artifacts(&project, "report");
    assert_eq!(reports[0].1, "done");
    let reference = format!("artifact://report/{}", reports[0].0["id"].as_str().unwrap_or_default());
    assert_eq!(pack["inputs"], serde_json::json!([{ "payloadId": reference, "from": "plan", "message": "done" }]));
}

#[test]
fn context_pack_rules_every_pack_is_stored_and_referenced_by_context_ref() {
    let project = packed_project();
    project.done(&["run", "spec.kdl"]);
    let pack = packed(&project.prompt("Work"));
    let stored = artifacts(&project, "contextpack");
    let names: Vec<&str> = stored.iter().filter_map(|(kept, _)| kept["pack"].as_str()).collect();
    assert_eq!(names, ["impl", "base"]);
    assert_eq!(serde_json::from_str::<Value>(&stored[0].1).expect("it is JSON"), pack);
    let reference = format!("contextpack://pack/{}", pack["packId"].as_str().expect("an id"));
    let node = inspected(&project, "work");
    assert_eq!(node["outgoing"][0]["envelope"]["contextRef"], reference.as_str());
    let refs: Vec<&str> =
        node["artifacts"].as_array().expect("a list").iter().filter_map(|it| it["ref"].as_str()).collect();
    assert!(refs.contains(&reference.as_str()), "{refs:?}");
    // A pack that a text names stands where it says.
    let next = project.prompt("Go on:");
    assert_eq!(packed(&next)["goal"], "not this one");
}

#[test]
fn context_pack_rules_over_budget_is_said_in_the_log_and_in_the_pack() {
    let project = plain(
        r#"
workflow small { default main }
provider local { script { answer "ok" } }
agent one provider=local
context-pack small {
    budget tokens=600
    goal "Build it"
    files "src/*.rs" max=200
    on-overflow truncate
}
context-pack strict { budget tokens=600; files "src/*.rs" max=200; on-overflow error }
pipeline main { task work { prompt "Work" context=small } }
pipeline other { task work { prompt "Work" context=strict } }
"#,
    );
    (0..200).for_each(|number| write(&project.root(), &format!("src/file-{number:03}.rs"), "fn x() {}"));
    project.done(&["run", "spec.kdl"]);
    let pack = packed(&project.prompt("Work"));
    let files = pack["relevantFiles"].as_array().expect("a list").len();
    assert!((10..100).contains(&files), "{files}");
    let omitted = pack["meta"]["omitted"][0].as_str().expect("it says so").to_owned();
    assert_eq!(omitted, format!("`files src/*.rs`: {} of 200, over the budget", 200 - files));
    assert_eq!(artifacts(&project, "contextpack")[0].0["omitted"][0], omitted.as_str());
    assert!(project.done(&["inspect", "last", "work"]).contains("over the budget"));
    let output = project.swarmc(&["run", "spec.kdl", "--pipeline", "other"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("context pack `strict` has") && said.contains("its budget allows 600"), "{said}");
}

#[test]
fn token_efficiency_the_full_effective_prompt_is_logged() {
    let project = packed_project();
    project.done(&["run", "spec.kdl"]);
    let prompts = folder(&project).join("prompts");
    let prompt = fs::read_to_string(prompts.join("work.1.txt")).expect("a prompt can be read");
    let blocks = fs::read_to_string(prompts.join("work.1.blocks.json")).expect("blocks can be read");
    let blocks: Value = serde_json::from_str(&blocks).expect("they are JSON");
    let names: Vec<&str> =
        blocks["blocks"].as_array().expect("a list").iter().filter_map(|block| block["name"].as_str()).collect();
    assert_eq!(names, ["mode", "pack", "task", "system"]);
    assert_eq!((&blocks["prompt"]["bytes"], &blocks["delta"]), (&Value::from(prompt.len()), &Value::Bool(false)));
    assert!(prompt.starts_with("Mode: planning."), "{prompt}");
    let sum: u64 =
        blocks["blocks"].as_array().expect("a list").iter().filter_map(|block| block["bytes"].as_u64()).sum();
    assert_eq!(sum + 2 * 3, prompt.len() as u64);
}

/// A node that changes files, and hands over.
const CHANGING: &str = r##"
workflow changing { default main }
provider shell { exec "sh" "-c" #"cat >/dev/null; echo three >>kept.txt; echo new >made.txt; echo '{"swarm": "send_handoff", "to": "next", "message": "Over"}'"# }
provider local { script { answer "ok" } }
agent coder provider=shell
agent reviewer provider=local
context-pack review { budget tokens=2000; goal "Review"; artifacts kind=diff from=work }
pipeline main {
    edges { work -> next }
    task work agent=coder { prompt "Work" }
    task next agent=reviewer { prompt "Review\n<<inbox>>" }
    task last agent=reviewer { prompt "Last" context=review }
}
"##;

#[test]
fn diffs_produced_by_the_node_in_a_repository() {
    let project = repository(CHANGING);
    let root = project.root();
    fs::write(root.join("dirty.txt"), "before\n").expect("a file can be written");
    let objects = git(&root, &["count-objects"]);
    project.done(&["run", "spec.kdl"]);
    let diffs = artifacts(&project, "diff");
    assert_eq!(diffs.len(), 1);
    let (kept, text) = &diffs[0];
    assert_eq!((&kept["files"], &kept["added"], &kept["removed"]), (&2.into(), &2.into(), &0.into()), "{text}");
    assert!(text.contains("+++ b/kept.txt\n@@ -1,2 +1,3 @@\n one\n two\n+three\n"), "{text}");
    assert!(text.contains("--- /dev/null\n+++ b/made.txt\n@@ -0,0 +1 @@\n+new\n") && !text.contains("dirty"), "{text}");
    // The index and the repository are as they were.
    assert_eq!(git(&root, &["diff", "--cached", "--name-only"]), "");
    assert_eq!(git(&root, &["count-objects"]), objects);
    // It is what the reader of the pack is pointed to.
    let reference = format!("artifact://diff/{}", kept["id"].as_str().unwrap_or_default());
    let pack = packed(&project.prompt("--- Context pack \"review\""));
    assert_eq!(pack["artifacts"], serde_json::json!([{ "id": reference, "kind": "diff", "from": "work" }]));
    assert_eq!(inspected(&project, "work")["diffs"][0]["ref"], reference.as_str());
    // It can be applied.
    fs::write(root.join("kept.txt"), "one\ntwo\n").expect("a file can be written");
    fs::remove_file(root.join("made.txt")).expect("a file can be removed");
    write(&project.home(), "it.diff", text);
    git(&root, &["apply", &project.home().join("it.diff").to_string_lossy()]);
    assert_eq!(fs::read_to_string(root.join("kept.txt")).expect("a file"), "one\ntwo\nthree\n");
}

#[test]
fn diffs_produced_by_the_node_in_a_worktree() {
    let project = repository(
        r##"
workflow trees { default main }
pipeline main {
    edges { edit -> next }
    task edit { worktree; run "sh" "-c" "echo three >>kept.txt; echo new >made.txt" }
    task next { depends-on edit; run "true" }
}
"##,
    );
    project.done(&["run", "spec.kdl"]);
    let (kept, text) = artifacts(&project, "diff").remove(0);
    assert_eq!((&kept["files"], &kept["added"], &kept["removed"]), (&2.into(), &2.into(), &0.into()), "{text}");
    assert!(text.contains("+++ b/made.txt") && text.contains("+three\n"), "{text}");
}

#[test]
fn token_efficiency_long_outputs_are_stored_and_referenced() {
    let project = plain(
        r##"
workflow long { default main }
provider local { script { answer "ok" } }
agent one provider=local
context-pack brief { budget tokens=2000; goal "Go on"; inputs long }
pipeline main {
    task long { run "sh" "-c" "seq 1 9000" }
    task next agent=one { prompt "Go on." context=brief }
}
"##,
    );
    project.done(&["run", "spec.kdl"]);
    let pack = packed(&project.prompt("Go on."));
    let (kept, text) = artifacts(&project, "report").remove(0);
    let reference = format!("artifact://report/{}", kept["id"].as_str().unwrap_or_default());
    assert!(text.contains("\n4567\n") && text.trim_end().ends_with("9000"), "all of it is stored");
    assert_eq!((&pack["inputs"][0]["payloadId"], &pack["inputs"][0]["from"]), (&reference.into(), &"long".into()));
    let message = pack["inputs"][0]["message"].as_str().expect("a summary");
    assert!(message.chars().count() <= 200 && message.starts_with("1\n2\n"), "{message}");
}

#[test]
fn what_is_not_in_a_document_is_said() {
    let project = packed_project();
    write(&project.root(), "spec.kdl", &PACKED.replace("lines=\"2-3\"", "lines=\"3-9\""));
    project.done(&["run", "spec.kdl"]);
    let pack = packed(&project.prompt("Work"));
    assert_eq!(pack["docRefs"][0]["excerpt"], "second\nthird\n");
    assert_eq!(pack["meta"]["omitted"][0], "`docs docs/PLAN.md`: lines 3-9 are requested, but it has 4");
}

#[test]
fn diffs_produced_by_the_node_where_there_is_no_git() {
    let project = plain(CHANGING);
    project.done(&["run", "spec.kdl"]);
    let (kept, text) = artifacts(&project, "diff").remove(0);
    assert_eq!((&kept["files"], &kept["added"], &kept["removed"]), (&2.into(), &2.into(), &0.into()), "{text}");
    assert!(text.contains("+++ b/kept.txt\n@@ -1,2 +1,3 @@\n one\n two\n+three\n"), "{text}");
}

#[test]
fn two_turns_at_once_in_one_tree_say_so() {
    let project = repository(
        r##"
workflow both { default main }
pipeline main {
    concurrency 2
    edges { left -> last; right -> last }
    task left { run "sh" "-c" "echo a >left.txt; mkfifo meet; echo x >meet" }
    task right { run "sh" "-c" "echo b >right.txt; until [ -p meet ]; do :; done; cat meet" }
    task last { depends-on left right; run "true" }
}
"##,
    );
    project.done(&["run", "spec.kdl"]);
    for (name, other) in [("left", "right"), ("right", "left")] {
        let node = inspected(&project, name);
        assert_eq!(node["diffs"][0]["with"], serde_json::json!([other]), "{node}");
    }
}

#[test]
fn send_prompt_deltas_when_session_continuity_is_active() {
    let project = plain(
        r##"
workflow talking { default main }
provider talker {
    exec "sh" "-c" #"""
        said() { printf '%s\n' "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"$1\",\"session_id\":\"s-1\"}"; }
        echo '{"type":"system","subtype":"init","session_id":"s-1"}'
        if [ -z "$1" ]; then cat >first.txt; said '{\"swarm\": \"send_handoff\", \"to\": \"other\", \"message\": \"Over\"}'
        else cat >second.txt; echo "$1" >session.txt; said fine; fi
        """# "talker"
    resume-args "{session}"
    reads claude-stream-json
    provides resume
}
provider local { script { answer "{\"swarm\": \"send_handoff\", \"to\": \"talk\", \"message\": \"Back to you\"}" } }
agent talker provider=talker { system "You talk." }
agent other provider=local
pipeline main {
    edges { talk <-> other }
    task talk agent=talker { session main; prompt "Begin." }
    task other agent=other { prompt "Answer\n<<inbox>>" }
}
"##,
    );
    project.done(&["run", "spec.kdl"]);
    let read = |name: &str| fs::read_to_string(project.root().join(name)).expect("a file can be read");
    assert!(read("first.txt").starts_with("You talk.\n\nBegin."), "{}", read("first.txt"));
    let second = read("second.txt");
    assert!(second.starts_with("--- Inbox: 1 envelope") && second.contains("Back to you"), "{second}");
    assert!(!second.contains("Begin.") && read("session.txt") == "s-1\n", "{second}");
    // What is sent is what is new; all of it is logged.
    let prompts = folder(&project).join("prompts");
    let logged = |name: &str| fs::read_to_string(prompts.join(name)).expect("it is logged");
    assert_eq!(logged("talk.2.txt"), second);
    let full = logged("talk.2.full.txt");
    assert!(full.starts_with("You talk.\n\nBegin.") && full.contains("Back to you"), "{full}");
    let node = inspected(&project, "talk");
    assert_eq!(node["prompts"][1]["effective"]["delta"], true, "{node}");
}

#[test]
fn ui_observability_requirements() {
    let project = Project::new();
    project.done(&["run", "specs/handoffs/handoffs.kdl"]);
    let node = inspected(&project, "parser");
    let sent: Vec<&str> = node["outgoing"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|post| post["envelope"]["payload"]["message"].as_str())
        .collect();
    assert_eq!(sent.len(), 3, "{sent:?}");
    let read = |place: usize| (&node["incoming"][place]["read_in"], &node["incoming"][place]["envelope"]["fromNodeId"]);
    assert_eq!(read(0), (&1.into(), &"architect".into()));
    assert_eq!(read(1), (&2.into(), &"reviewer".into()));
    assert_eq!(node["incoming"][0]["envelope"]["kind"], "handoff");
    assert_eq!(node["prompts"].as_array().map(Vec::len), Some(2));
    assert_eq!(node["prompts"][0]["effective"]["version"], 1);
    assert!(node["tools"].is_array() && node["diffs"].is_array());
    assert_eq!(node["pending"], serde_json::json!([]));
    let text = project.done(&["inspect", "last", "parser"]);
    for part in [
        "from    e",
        "architect (turn 1): Write the parser",
        "to      e",
        "pack    contextpack://pack/",
        "blocks  turn 2:",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn ui_observability_requirements_hold_for_every_turn_of_an_attempt() {
    let project = plain(
        r##"
type Verdict { ok bool }
provider gone { exec "no-such-agent"; reads codex-jsonl }
provider claude { exec "sh" "claude.sh"; reads claude-stream-json }
agent first provider=gone { fallback second }
agent second provider=claude { system "You judge." }
pipeline main {
    task judge agent=first { prompt "Judge."; output Verdict repair=1 }
}
"##,
    );
    let tool = r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"1","name":"Read","input":{}}]}}"#;
    let answer = r#"{"type":"result","subtype":"success","is_error":false,"result":"ANSWER"}"#;
    let script = format!(
        "cat >/dev/null\necho '{tool}'\ntest -e second && echo '{}' || echo '{}'\ntouch second\n",
        answer.replace("ANSWER", r#"{\"ok\": true}"#),
        answer.replace("ANSWER", "Yes."),
    );
    write(&project.root(), "claude.sh", &script);
    project.done(&["run", "spec.kdl"]);
    let node = inspected(&project, "judge");
    let turns: Vec<String> = node["prompts"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|prompt| {
            let path = prompt["paths"]["prompt"].as_str().expect("it has a prompt");
            let told = fs::read_to_string(path).expect("it is logged");
            let name = prompt["effective"]["blocks"]
                .as_array()
                .and_then(|blocks| blocks.last())
                .map_or(&Value::Null, |block| &block["name"]);
            assert!(told.contains("Judge."), "{told}");
            format!("{} {} {} {name}", prompt["turn"], prompt["fallback"], prompt["repair"])
        })
        .collect();
    assert_eq!(turns.len(), 3, "{turns:?}");
    assert_eq!(turns.iter().map(|turn| &turn[..5]).collect::<Vec<_>>(), ["1 0 0", "1 1 0", "1 1 1"]);
    assert!(turns[2].ends_with("\"repair\""), "{turns:?}");
    let tools: Vec<&Value> = node["tools"].as_array().expect("a list").iter().map(|tool| &tool["tool"]).collect();
    assert_eq!(tools, ["Read", "Read"]);
    let text = project.done(&["inspect", "last", "judge"]);
    for part in ["blocks  turn 1: ", "blocks  turn 1, fallback 1: ", "blocks  turn 1, fallback 1, repair 1: "] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn packs_are_replayed_as_they_were_built() {
    let project = packed_project();
    // What envelopes say of themselves is another in every run.
    write(&project.root(), "spec.kdl", &PACKED.replace("edges { work -> next }", "").replace("\\n<<inbox>>", ""));
    project.done(&["run", "spec.kdl", "--record", "recorded"]);
    write(&project.root(), "src/dates.rs", "//! Something else.\n");
    write(&project.root(), "src/new.rs", "//! New.\n");
    project.done(&["run", "spec.kdl", "--replay", "recorded"]);
    // Another goal is another question.
    let output = project.swarmc(&["run", "spec.kdl", "--replay", "recorded", "--param", "goal=times"]);
    assert_ne!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn the_pack_of_a_turn_that_begins_again_is_the_one_in_its_prompt() {
    let project = plain(&format!(
        r###"
workflow again {{ default main }}
provider program {{
    exec "sh" "-c" ##"""
        cat >/dev/null; touch began; until [ -e go ]; do sleep 0.02; done
        {} agent send-handoff --to next --message Over >&2; echo done
        """##
}}
provider local {{ script {{ answer "ok" }} }}
agent one provider=program
agent other provider=local
context-pack impl {{ goal "Do it"; files "*.txt" summary=#true }}
pipeline main {{
    edges {{ work -> next }}
    task work agent=one {{ prompt "Work" context=impl; survive #false }}
    task next agent=other {{ prompt "Go on:\n<<inbox>>" }}
}}
"###,
        env!("CARGO_BIN_EXE_swarmc")
    ));
    let root = project.root();
    let begin = |arguments: &[&str]| {
        let mut command = project.command(arguments);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("swarmc starts");
        let deadline = Instant::now() + Duration::from_secs(60);
        while fs::remove_file(root.join("began")).is_err() {
            assert!(Instant::now() < deadline, "{arguments:?} never begins");
            std::thread::sleep(Duration::from_millis(10));
        }
        child
    };
    let mut child = begin(&["run", "spec.kdl"]);
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
    // What the pack says is another thing by now.
    write(&root, "more.txt", "three\n");
    let mut child = begin(&["resume", "last"]);
    write(&root, "go", "");
    assert!(child.wait().expect("it ends").success());
    let pack = packed(&project.prompt("Work"));
    assert_eq!(pack["relevantFiles"].as_array().map(Vec::len), Some(2), "{pack}");
    let stored: Vec<Value> =
        artifacts(&project, "contextpack").into_iter().map(|(kept, _)| kept["id"].clone()).collect();
    assert!(stored.len() == 2 && stored[0] != stored[1] && stored[1] == pack["packId"], "{stored:?}");
    let reference = format!("contextpack://pack/{}", pack["packId"].as_str().expect("an id"));
    assert_eq!(inspected(&project, "work")["outgoing"][0]["envelope"]["contextRef"], reference.as_str());
}
