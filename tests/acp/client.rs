//! What an agent has its client do for it: files and commands, within the rights and the folder of its task.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{heard, inspected, place, spec};
use crate::approvals::await_request;
use crate::cli::{Ended, Place, signal};

/// An agent that may do everything.
const ALL: &str = "{ tools file_read file_write shell; can write-files run-commands }";

/// A place in which an agent is going to have its client do these things.
fn asks(agent: &str, task: &str, calls: &Value) -> Place {
    let place = place(&spec("client", agent, task));
    place.write("calls", &calls.to_string());
    place
}

/// What the client has answered.
fn answers(place: &Place) -> Vec<Value> {
    let answers = fs::read_to_string(place.work().join("answers")).expect("there are answers");
    answers.lines().map(|line| serde_json::from_str(line).expect("an answer is JSON")).collect()
}

/// Runs that, and gives the answers.
fn answered(place: &Place) -> (Ended, Vec<Value>) {
    let ended = place.swarmc(&["run", "flow.kdl", "--headless"]).expect(0, &["done"], &[]);
    (ended, answers(place))
}

/// The words in which something was refused.
fn refused(answer: &Value) -> &str {
    answer["error"]["message"].as_str().unwrap_or_else(|| panic!("it is not refused: {answer}"))
}

fn read(path: &str) -> Value {
    json!(["fs/read_text_file", { "path": path }])
}

fn write(path: &str, content: &str) -> Value {
    json!(["fs/write_text_file", { "path": path, "content": content }])
}

fn create(command: &str) -> Value {
    json!(["terminal/create", { "command": command }])
}

fn of(method: &str, terminal: &str) -> Value {
    json!([format!("terminal/{method}"), { "terminalId": terminal }])
}

#[test]
fn files_are_read_and_written_as_they_stand() {
    let lines = |line: u32, limit: u32| json!(["fs/read_text_file", { "path": "$CWD/notes.txt", "line": line, "limit": limit }]);
    let calls = json!([
        write("$CWD/notes.txt", "one\r\n\u{1b}two\nthree"),
        read("$CWD/notes.txt"),
        lines(2, 1),
        lines(9, 1),
        write("$CWD/new/deep/file", "é"),
        write("$CWD/notes.txt", ""),
        read("$CWD/notes.txt"),
    ]);
    let place = asks(ALL, "", &calls);
    let (ended, answers) = answered(&place);
    assert_eq!(answers[1]["result"]["content"], "one\r\n\u{1b}two\nthree");
    assert_eq!(answers[2]["result"]["content"], "\u{1b}two\n");
    assert_eq!(refused(&answers[3]), "`notes.txt` has 3 lines, and ends before line 9");
    assert_eq!(answers[6]["result"]["content"], "");
    assert_eq!(fs::read_to_string(place.work().join("new/deep/file")).expect("it is written"), "é");
    let able = &heard(&place)[0]["params"]["clientCapabilities"];
    assert_eq!(able["fs"], json!({ "readTextFile": true, "writeTextFile": true }));
    assert_eq!(able["terminal"], json!(true));
    // Whoever watches sees it, and so does whoever looks later.
    assert!(ended.err.contains("[file_write {") && ended.err.contains("[= written, which had 15 bytes]"), "{ended:?}");
    let tools = inspected(&place)["tools"].to_string();
    assert!(tools.contains("file_write") && tools.contains("notes.txt"), "{tools}");
}

#[test]
fn nothing_outside_of_the_folder_is_read_or_written() {
    let paths = [
        "/etc/passwd",
        "$CWD/../home/x",
        "$CWD/sub/../../x",
        "notes.txt",
        "$CWD/up",
        "$CWD/root/etc/passwd",
        "$CWD/loop",
        "$CWD",
        "$CWD/a\nb",
        "$CWD/fifo",
    ];
    let mut calls: Vec<Value> = paths.iter().flat_map(|path| [read(path), write(path, "x")]).collect();
    calls.push(write("$CWD/.git/hooks/post-commit", "x"));
    let place = asks(ALL, "", &json!(calls));
    symlink("../../outside", place.work().join("up")).expect("a link can be made");
    symlink("/", place.work().join("root")).expect("a link can be made");
    symlink("loop", place.work().join("loop")).expect("a link can be made");
    let made = Command::new("mkfifo").arg(place.work().join("fifo")).status().expect("mkfifo starts");
    assert!(made.success());
    let (_, answers) = answered(&place);
    let words: Vec<&str> = answers.iter().map(refused).collect();
    for (position, expected) in [
        (0, "`/etc/passwd` is outside of the working folder `"),
        (2, "goes up with `..`"),
        (4, "goes up with `..`"),
        (6, "`notes.txt` is relative: name it from the root"),
        (8, "leads out of the working folder"),
        (10, "leads out of the working folder"),
        (12, "leads through a link"),
        (14, "`.` is a folder"),
        (16, "holds control characters"),
        (18, "`fifo` is no regular file"),
        (20, "belongs to Git"),
    ] {
        assert!(words[position].contains(expected), "{position}: {}", words[position]);
    }
    assert!(!place.work().join("notes.txt").exists());
}

#[test]
fn a_file_that_is_missing_too_large_or_no_text_is_not_read() {
    let calls = json!([
        read("$CWD/none"),
        read("$CWD/huge"),
        read("$CWD/binary"),
        read("$CWD/odd"),
        read("$CWD/long"),
        json!(["fs/read_text_file", { "path": "$CWD/long", "line": 3, "limit": 2 }]),
        read("$CWD/secret"),
        read("$CWD/signs"),
    ]);
    let spec = spec("client", ALL, "").replace("provider p {", "secret key env=SEA_KEY\nprovider p { env KEY=\"k\";");
    let place = place(&spec.replace("env KEY=\"k\"; ", "env key; "));
    place.write("calls", &calls.to_string());
    let file = fs::File::create(place.work().join("huge")).expect("a file can be made");
    file.set_len(1 << 40).expect("it can be sparse");
    fs::write(place.work().join("binary"), b"\x7fELF\0\0").expect("it can be written");
    fs::write(place.work().join("odd"), b"a\xff").expect("it can be written");
    place.write("long", &"0123456789abcdef\n".repeat(100_000));
    place.write("signs", &"\u{1b}".repeat(1 << 20));
    place.write("secret", "the key is sea-cow-key");
    let ended = place.command(&["run", "flow.kdl", "--headless"]).env("SEA_KEY", "sea-cow-key").output();
    Ended::from(ended.expect("swarmc starts")).expect(0, &[], &[]);
    let answers = answers(&place);
    assert_eq!((refused(&answers[0]), &answers[0]["error"]["code"]), ("there is no `none`", &json!(-32002)));
    for (position, expected) in [
        (1, "`huge` is larger than the 10485760 bytes"),
        (2, "`binary` is not text (6 bytes)"),
        (3, "`odd` is not UTF-8 (2 bytes)"),
        (4, "larger than the 1048576 bytes that are handed out at once: read fewer lines with `line` and `limit`"),
        (6, "`secret` holds a secret of this run"),
    ] {
        assert!(refused(&answers[position]).contains(expected), "{}", answers[position]);
    }
    assert_eq!(answers[5]["result"]["content"], "0123456789abcdef\n".repeat(2));
    assert_eq!(answers[7]["result"]["content"].as_str().map(str::len), Some(1 << 20));
}

#[test]
fn whoever_has_no_right_is_not_offered_it_and_told_what_to_type() {
    for (agent, able, calls) in [
        ("", [false, false, false], [Some("file_read"), Some("file_write"), Some("shell")]),
        ("{ tools file_read }", [true, false, false], [None, Some("file_write"), Some("shell")]),
        ("{ tools \"*\"; can write-files }", [true, true, false], [None, None, Some("shell")]),
        ("{ tools \"file_*\" shell; can run-commands }", [true, false, true], [None, Some("file_write"), None]),
    ] {
        let place = asks(agent, "", &json!([read("$CWD/calls"), write("$CWD/new", "x"), create("true")]));
        let (_, answers) = answered(&place);
        let told = &heard(&place)[0]["params"]["clientCapabilities"];
        let found = [&told["fs"]["readTextFile"], &told["fs"]["writeTextFile"], &told["terminal"]];
        assert_eq!(found, able.map(|able| json!(able)).each_ref(), "{agent}");
        for (answer, missing) in answers.iter().zip(calls) {
            let Some(tool) = missing else {
                assert!(answer["error"].is_null(), "{agent}: {answer}");
                continue;
            };
            let able = match tool {
                "file_write" => "; can write-files",
                "shell" => "; can run-commands",
                _ => "",
            };
            let words = refused(answer);
            assert!(words.starts_with(&format!("the tool `{tool}` is not yours to use")), "{words}");
            assert!(words.ends_with(&format!("`agent a {{ tools {tool}{able} }}`")), "{words}");
        }
    }
}

#[test]
fn a_policy_has_people_asked_and_their_answer_holds() {
    let calls = json!([write("$CWD/one", "1"), write("$CWD/two", "2"), write("/etc/three", "3"), read("$CWD/one")]);
    let place = place(&format!("policy {{ tool file_write human }}\n{}", spec("client", ALL, "")));
    place.write("calls", &calls.to_string());
    let (mut child, rest) = place.until(&["run", "flow.kdl"], "swarmc approve");
    let listed = await_request(&place, 1);
    assert!(listed.contains("a wants tool file_write") && listed.contains("/one"), "{listed}");
    let asked = |place: &Place| inspected(place)["approvals"][0].to_string();
    assert!(asked(&place).contains("\"content\":\"1\""), "{}", asked(&place));
    assert!(!place.work().join("one").exists());
    place.swarmc(&["approve", "last", "1", "allow"]).expect(0, &[], &[]);
    await_request(&place, 2);
    place.swarmc(&["approve", "last", "2", "deny", "--because", "one is enough"]).expect(0, &[], &[]);
    assert!(child.wait().expect("it ends").success(), "{}", rest());
    let answers = answers(&place);
    assert_eq!(fs::read_to_string(place.work().join("one")).expect("it is written"), "1");
    assert!(refused(&answers[1]).contains("one is enough") && !place.work().join("two").exists(), "{answers:?}");
    // What is refused anyway is nobody's to decide.
    assert!(refused(&answers[2]).contains("outside of the working folder"));
    assert_eq!(answers[3]["result"]["content"], "1");
    assert_eq!(inspected(&place)["approvals"].as_array().map(Vec::len), Some(2));
    let denied = place_with_policy("policy { tool shell human; unattended deny }", ALL);
    let (_, answers) = answered(&denied);
    assert!(refused(&answers[0]).contains("not called"), "{answers:?}");
    let failed = place_with_policy("policy { tool \"*\" human; unattended fail }", ALL);
    let ended = failed.swarmc(&["run", "flow.kdl", "--headless"]);
    ended.expect(3, &[], &["`a` wants tool shell, which needs approval"]);
    // Whoever skips asks nobody.
    let skips = place_with_policy("policy { tool shell human }", &ALL.replace("{ ", "{ permissions skip; "));
    let (_, answers) = answered(&skips);
    assert!(answers[0]["result"]["terminalId"].is_string(), "{answers:?}");
}

#[test]
fn what_was_always_allowed_is_not_asked_again() {
    let place = place(&format!("policy {{ tool file_write human }}\n{}", spec("client", ALL, "")));
    place.write("calls", &json!([write("$CWD/one", "1"), write("$CWD/two", "2")]).to_string());
    let (mut child, rest) = place.until(&["run", "flow.kdl"], "swarmc approve");
    await_request(&place, 1);
    place.swarmc(&["approve", "last", "1", "always"]).expect(0, &[], &[]);
    assert!(child.wait().expect("it ends").success(), "{}", rest());
    assert_eq!(fs::read_to_string(place.work().join("two")).expect("it is written"), "2");
}

#[test]
fn what_is_agreed_to_waits_for_what_goes_on() {
    let place = place(&format!("policy {{ tool file_write human }}\n{}", spec("busy", ALL, "")));
    place.write("f", &"0123456789abcde\n".repeat(1 << 16));
    let (mut child, rest) = place.until(&["run", "flow.kdl"], "swarmc approve");
    await_request(&place, 1);
    place.swarmc(&["approve", "last", "1", "allow"]).expect(0, &[], &[]);
    assert!(child.wait().expect("it ends").success(), "{}", rest());
    assert_eq!(super::output(&place).trim_end(), "written: True, not read: 0");
}

#[test]
fn what_is_agreed_to_at_once_is_done_in_the_order_in_which_it_was_asked_for() {
    let place =
        place(&format!("policy {{ tool file_write human; unattended approve }}\n{}", spec("overwrites", ALL, "")));
    place.swarmc(&["run", "flow.kdl", "--headless"]).expect(0, &["in order: True"], &[]);
    assert_eq!(fs::read_to_string(place.work().join("f")).expect("it is written"), "39");
}

fn place_with_policy(policy: &str, agent: &str) -> Place {
    let place = place(&format!("{policy}\n{}", spec("client", agent, "")));
    place.write("calls", &json!([create("true")]).to_string());
    place
}

#[test]
fn a_command_runs_in_the_folder_with_the_environment_of_the_agent() {
    let env = json!([{ "name": "WORD", "value": "given" }, { "name": "SWARM_RUN", "value": "nobody's" }]);
    let calls = json!([
        ["terminal/create", { "command": "sh", "args": ["-c", "pwd; echo $WORD; echo err >&2; exit 3"], "cwd": "$CWD/sub", "env": env }],
        of("wait_for_exit", "$T1"),
        of("output", "$T1"),
        create("printf '%s' \"$SWARM_RUN\" | wc -c"),
        of("wait_for_exit", "$T2"),
        of("output", "$T2"),
        create("no-such-program"),
        ["terminal/create", { "command": "true", "cwd": "/etc" }],
        ["terminal/create", { "command": "true", "cwd": "$CWD/../x" }],
        ["terminal/create", { "command": "true", "cwd": "$CWD/calls" }],
        create("kill -9 $$"),
        of("wait_for_exit", "$T3"),
        of("release", "$T1"),
        of("output", "$T1"),
        of("wait_for_exit", "terminal-99"),
    ]);
    let place = asks(ALL, "", &calls);
    fs::create_dir(place.work().join("sub")).expect("a folder can be made");
    let (ended, answers) = answered(&place);
    assert_eq!(answers[1]["result"], json!({ "exitCode": 3 }));
    let output = &answers[2]["result"];
    let folder = place.work().canonicalize().expect("it is there").join("sub");
    let mut lines: Vec<&str> = output["output"].as_str().expect("a text").lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, [folder.to_str().expect("a text"), "err", "given"]);
    assert_eq!((&output["truncated"], &output["exitStatus"]["exitCode"]), (&json!(false), &json!(3)));
    // Its own mark is what its run is found by, and no agent's to change.
    assert_ne!(answers[5]["result"]["output"].as_str().map(str::trim), Some("8"));
    assert!(refused(&answers[6]).contains("`no-such-program`: not found"));
    assert!(refused(&answers[7]).contains("`/etc` is outside of the working folder"));
    assert!(refused(&answers[8]).contains("goes up with `..`"));
    assert!(refused(&answers[9]).contains("is no folder"));
    assert_eq!(answers[11]["result"], json!({ "signal": "SIGKILL" }));
    assert!(answers[12]["error"].is_null());
    for gone in [13, 14] {
        assert_eq!(refused(&answers[gone]), "there is no such terminal: it was never made, or is released");
    }
    assert!(ended.err.contains("[= no-such-program: `no-such-program`: not found]"), "{ended:?}");
}

#[test]
fn of_a_flood_the_end_is_kept_and_cut_at_a_character() {
    let flood = "yes é漢 | head -c 30000000";
    let calls = json!([
        ["terminal/create", { "command": flood, "outputByteLimit": 1000 }],
        of("wait_for_exit", "$T1"),
        of("output", "$T1"),
        create(flood),
        of("wait_for_exit", "$T2"),
        of("output", "$T2"),
        ["terminal/create", { "command": flood, "outputByteLimit": 0 }],
        of("wait_for_exit", "$T3"),
        of("output", "$T3"),
        create("yes"),
        ["terminal/output", { "terminalId": "$T4", "until": "y\ny" }],
        of("kill", "$T4"),
        of("wait_for_exit", "$T4"),
        of("output", "$T4"),
        of("release", "$T4"),
    ]);
    let place = asks(ALL, "", &calls);
    let (_, answers) = answered(&place);
    for (position, most) in [(2, 1000), (5, 1 << 20), (8, 0)] {
        let output = &answers[position]["result"];
        let text = output["output"].as_str().expect("a text");
        assert!(text.len() <= most && text.len() + 6 > most, "{position}: {}", text.len());
        assert!(!text.contains('\u{fffd}') || text.ends_with('\u{fffd}'), "{position}");
        assert_eq!(output["truncated"], json!(true));
    }
    assert_eq!(answers[12]["result"], json!({ "signal": "SIGTERM" }));
    assert_eq!(answers[13]["result"]["exitStatus"], json!({ "signal": "SIGTERM" }));
}

#[test]
fn a_turn_has_a_bounded_number_of_terminals() {
    let mut calls: Vec<Value> = (0..17).map(|_| create("true")).collect();
    calls.extend((1..=16).map(|number| of("release", &format!("$T{number}"))));
    for number in 17..=1_001 {
        calls.push(create("true"));
        calls.push(of("wait_for_exit", &format!("$T{}", number.min(1_000))));
        calls.push(of("release", &format!("$T{}", number.min(1_000))));
    }
    let place = asks(ALL, "", &json!(calls));
    let (_, answers) = answered(&place);
    assert_eq!(refused(&answers[16]), "16 terminals are open: release one of them first");
    let made = answers.iter().filter(|answer| answer["result"]["terminalId"].is_string()).count();
    assert_eq!(made, 1_000);
    assert_eq!(refused(&answers[answers.len() - 3]), "a turn makes 1000 terminals at most");
}

#[test]
fn much_at_once_is_answered_in_order_and_too_much_is_refused() {
    for kind in ["hurried", "hurried-at-length"] {
        let place = place(&spec(kind, ALL, ""));
        place.write("f", &"x".repeat(1 << 20));
        let ended = place.swarmc(&["run", "flow.kdl", "--headless"]);
        let ended = ended.expect(0, &["read, then: too many requests at once: wait for the answers"], &[]);
        assert!(!ended.err.contains("│ 0 read"), "{ended:?}");
    }
}

/// Whoever carries this variable with this value.
fn marked(place: &Place) -> usize {
    let work = place.work().canonicalize().expect("it is there");
    let processes = fs::read_dir("/proc").expect("there are processes").flatten();
    let sleeps = processes.filter(|process| {
        fs::read_link(process.path().join("cwd")).is_ok_and(|cwd| cwd == work)
            && fs::read(process.path().join("cmdline")).is_ok_and(|line| line.starts_with(b"sleep\0"))
    });
    sleeps.count()
}

/// Waits until so many commands run.
fn await_commands(place: &Place, count: usize) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while marked(place) != count {
        assert!(Instant::now() < deadline, "there are {} commands, not {count}", marked(place));
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn commands_end_with_their_turn() {
    // One that nobody waits for, one in the background of another, one that hears no TERM.
    let calls =
        json!([create("sleep 600"), create("sleep 600 & sleep 600"), create("trap '' TERM; sleep 600; sleep 600")]);
    let place = asks(ALL, "", &calls);
    answered(&place);
    assert_eq!(marked(&place), 0);
    // One that is waited for, until the time of the task is over.
    let place = asks(ALL, "timeout \"3s\"", &json!([create("sleep 600"), of("wait_for_exit", "$T1")]));
    place.swarmc(&["run", "flow.kdl"]).expect(3, &[], &["took longer than 3s"]);
    assert_eq!(marked(&place), 0);
    // One that prints keeps the turn from being taken for silent; one that does not does not.
    let calls = json!([create("for i in 1 2 3 4 5 6; do echo $i; sleep 0.5; done"), of("wait_for_exit", "$T1")]);
    let place = asks(ALL, "timeout \"4m\" idle=\"2s\"", &calls);
    answered(&place);
    let place = asks(ALL, "timeout \"4m\" idle=\"2s\"", &json!([create("sleep 600"), of("wait_for_exit", "$T1")]));
    place.swarmc(&["run", "flow.kdl"]).expect(3, &[], &["it printed nothing for 2s"]);
    assert_eq!(marked(&place), 0);
}

#[test]
fn commands_end_when_a_person_ends_the_run_and_when_a_killed_run_is_resumed() {
    let calls = json!([create("sleep 600"), create("env -i sleep 600"), of("wait_for_exit", "$T1")]);
    let place = asks(ALL, "", &calls);
    let (mut child, rest) = place.until(&["run", "flow.kdl"], "go: started");
    await_commands(&place, 2);
    signal(&child, "INT");
    assert_eq!(child.wait().expect("it ends").code(), Some(4), "{}", rest());
    assert_eq!(marked(&place), 0);
    let place = asks(ALL, "", &calls);
    let (mut child, rest) = place.until(&["run", "flow.kdl"], "go: started");
    await_commands(&place, 2);
    let journal = || {
        let run =
            fs::read_dir(place.home().join("runs")).expect("there are runs").flatten().next().expect("there is one");
        fs::read_to_string(run.path().join("journal.jsonl")).expect("it has a journal")
    };
    let deadline = Instant::now() + Duration::from_secs(60);
    // Its agent, the shim of that, and both commands.
    while journal().matches("process_started").count() < 4 {
        assert!(Instant::now() < deadline, "its commands are never written down");
        std::thread::sleep(Duration::from_millis(10));
    }
    signal(&child, "KILL");
    assert!(!child.wait().expect("it ends").success(), "{}", rest());
    // The next turn asks for nothing.
    place.write("calls", "[]");
    place.swarmc(&["resume", "last"]).expect(0, &["done"], &["left by the last runner: ended"]);
    assert_eq!(marked(&place), 0);
}
