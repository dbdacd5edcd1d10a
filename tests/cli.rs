//! The command line through the binary: exit codes, what goes to which stream, and that a person can stop a run.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A folder with specs in it, and a home for runs.
pub(crate) struct Place {
    folder: TempDir,
}

/// What a test did is one more case of [`crate::snapshots`].
impl Drop for Place {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            crate::snapshots::check_home(&self.home());
        }
    }
}

impl Place {
    pub(crate) fn new(spec: &str) -> Place {
        let place = Place { folder: TempDir::new().expect("a temporary folder can be made") };
        fs::create_dir(place.work()).expect("a folder can be made");
        place.write("flow.kdl", spec);
        place
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.work().join(name), text).expect("a file can be written");
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = crate::patience::swarmc();
        command.args(arguments).current_dir(self.work()).env("SWARM_HOME", self.home()).stdin(Stdio::null());
        for variable in ["CI", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "SECRET_TOKEN"] {
            command.env_remove(variable);
        }
        command
    }

    pub(crate) fn swarmc(&self, arguments: &[&str]) -> Ended {
        let ended = Ended::from(self.command(arguments).output().expect("swarmc starts"));
        crate::schema::assert_documented(arguments, &ended.out);
        ended
    }

    /// Starts a run and waits until stderr says `text`.
    pub(crate) fn until(&self, arguments: &[&str], text: &str) -> (Child, impl FnOnce() -> String) {
        let mut command = self.command(arguments);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("swarmc starts");
        let mut lines = BufReader::new(child.stderr.take().expect("stderr is piped"));
        let mut seen = String::new();
        while !seen.contains(text) {
            assert_ne!(lines.read_line(&mut seen).expect("stderr can be read"), 0, "it never said `{text}`: {seen}");
        }
        let rest = move || {
            lines.read_to_string(&mut seen).expect("stderr can be read");
            seen
        };
        (child, rest)
    }

    fn runs(&self) -> usize {
        fs::read_dir(self.home().join("runs")).map_or(0, Iterator::count)
    }
}

#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl From<Output> for Ended {
    fn from(output: Output) -> Ended {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("the output is UTF-8");
        Ended { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }
}

impl Ended {
    /// Fails unless the exit code and parts of the two streams are as expected.
    pub(crate) fn expect(self, code: i32, out: &[&str], err: &[&str]) -> Ended {
        assert_eq!(self.code, Some(code), "{self:#?}");
        for part in out {
            assert!(self.out.contains(part), "stdout lacks `{part}`: {self:#?}");
        }
        for part in err {
            assert!(self.err.contains(part), "stderr lacks `{part}`: {self:#?}");
        }
        self
    }
}

const TWO: &str = r#"
workflow two
pipeline main {
    task first { run "echo one; echo two >&2" }
    task second { run cat; stdin "got <<output:first>>" }
    result second
}
"#;

pub(crate) fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args(["-s", name, &child.id().to_string()]).status().expect("kill starts");
    assert!(sent.success());
}

#[test]
fn problems_go_to_stdout_in_every_format() {
    let place = Place::new(
        "workflow w\npipeline p {\n    task draft { run echo }\n    task b { depends-on drafd; run echo }\n}\n",
    );
    let text = place.swarmc(&["check", "flow.kdl"]).expect(1, &["error[SW101]", "help:", "1 error"], &[]);
    assert!(!text.out.contains('\x1b') && text.out.is_ascii(), "{text:#?}");
    let short =
        place.swarmc(&["check", "--format", "short"]).expect(1, &["flow.kdl:4:25: error[SW101]: "], &["1 error"]);
    assert_eq!(short.out.lines().count(), 1, "{short:#?}");
    let json = place.swarmc(&["check", "--format", "json"]).expect(1, &[], &[]);
    let json: Value = serde_json::from_str(&json.out).expect("the output is JSON");
    assert_eq!((&json["version"], &json["errors"]), (&Value::from(1), &Value::from(1)));
    assert_eq!(json["diagnostics"][0]["labels"][0]["at"]["start"]["line"], 4);
    let place = Place::new(TWO);
    place.swarmc(&["check"]).expect(0, &["no problems in 1 spec"], &[]);
}

#[test]
fn a_run_takes_the_only_spec_of_a_folder() {
    let place = Place::new(TWO);
    place.swarmc(&["run"]).expect(0, &["got one"], &["pipeline main"]);
    place.write("other.kdl", TWO);
    let many = place.swarmc(&["run"]);
    many.expect(2, &[], &["the current folder has 2 specs", "name one: there are `flow.kdl`, `other.kdl`"]);
    for name in ["flow.kdl", "other.kdl"] {
        fs::remove_file(place.work().join(name)).expect("it is there");
    }
    place.swarmc(&["run"]).expect(2, &[], &["there is no spec beneath the current folder", "swarmc init"]);
}

#[test]
fn what_is_no_spec_is_told_and_never_waited_for() {
    let place = Place::new("\u{feff}task");
    place.swarmc(&["check", "none.kdl"]).expect(1, &["none.kdl", "check its name"], &[]);
    place.swarmc(&["check", "."]).expect(2, &[], &["there is no spec beneath the current folder"]);
    fs::write(place.work().join("flow.kdl"), b"\xFF\xFEt\0a\0s\0k\0").expect("a file can be written");
    place.swarmc(&["check", "flow.kdl"]).expect(1, &["UTF-16"], &[]);
    let made = Command::new("mkfifo").arg(place.work().join("pipe.kdl")).status().expect("mkfifo starts");
    assert!(made.success());
    place.swarmc(&["check", "pipe.kdl"]).expect(1, &["error"], &[]);
    place.swarmc(&["run", "none.kdl"]).expect(1, &[], &["none.kdl"]);
}

#[test]
fn severities_follow_the_flags() {
    let place = Place::new("workflow w\nprompt unused \"text\"\npipeline p { task t { run echo } }\n");
    place.swarmc(&["check"]).expect(0, &["warning[SW103]", "1 warning"], &[]);
    place.swarmc(&["check", "--deny", "warnings"]).expect(1, &["error[SW103]"], &[]);
    place.swarmc(&["check", "--deny", "unused-definition"]).expect(1, &["error[SW103]"], &[]);
    place.swarmc(&["check", "--allow", "SW103"]).expect(0, &["no problems"], &[]);
    place.swarmc(&["check", "--allow", "SW1O3"]).expect(2, &[], &["did you mean `SW103`?"]);
}

#[test]
fn a_run_shows_task_lines_progress_and_its_result() {
    let place = Place::new(TWO);
    let run = place.swarmc(&["run", "flow.kdl"]);
    let lines = ["first  │ one\n", "first  │ two\n", "second │ got one\n", "second: succeeded"];
    let run = run.expect(0, &[], &lines);
    assert_eq!(run.out, "got one\n", "a pipe gets the result alone");
    assert!(!run.err.contains('\x1b'), "{run:#?}");
    let quiet = place.swarmc(&["run", "flow.kdl", "--quiet"]).expect(0, &[], &[]);
    assert_eq!((quiet.out.as_str(), quiet.err.as_str()), ("got one\n", ""));
    let json = place.swarmc(&["run", "flow.kdl", "--json"]).expect(0, &[], &[]);
    let lines: Vec<Value> = json.out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert!(lines.iter().all(|line| line["version"] == 1), "{json:#?}");
    assert_eq!(lines[0]["event"], "run_started");
    let last = lines.last().expect("there are lines");
    assert_eq!(
        (&last["type"], &last["status"], &last["values"][0]),
        (&"result".into(), &"succeeded".into(), &"got one".into())
    );
}

#[test]
fn a_failed_run_says_why_and_where_to_read_on() {
    let place = Place::new("workflow w\npipeline p { task t { run \"echo because >&2; exit 7\" } }\n");
    let run =
        place.swarmc(&["run", "flow.kdl"]).expect(3, &[], &["t failed: exit 7", "│ because", "log: ", "failed after"]);
    let log = run.err.lines().find_map(|line| line.trim().strip_prefix("log: ")).expect("a log is named");
    assert_eq!(fs::read_to_string(log).expect("the log can be read"), "because\n");
    // What can be done with it is said of the last run, also where it is listed no more.
    place.swarmc(&["run", "flow.kdl"]).expect(3, &[], &[]);
    let last = place.swarmc(&["ps", "--all"]).expect(0, &[], &[]).out;
    let last = last.lines().nth(1).and_then(|line| line.split_whitespace().next()).expect("two runs are listed");
    place.swarmc(&["ps"]).expect(0, &[], &[&format!("the last one failed: `swarmc resume {last} --retry-failed`")]);
}

#[test]
fn a_command_that_prints_nothing_has_no_log_and_no_result() {
    let place = Place::new("workflow w\npipeline p { task t { run \"true\" }; result t }\n");
    assert_eq!(place.swarmc(&["run", "flow.kdl"]).expect(0, &[], &[]).out, "");
    place.swarmc(&["logs", "last", "t"]).expect(0, &[], &["`t` printed nothing"]);
}

#[test]
fn lines_of_steps_are_folded_on_demand() {
    let place = Place::new(
        "workflow w\npipeline p {\n    task good { run \"seq 7\" }\n    \
         task bad { depends-on good; run \"seq 100 130; echo because >&2; exit 7\" }\n}\n",
    );
    let full = place.swarmc(&["run", "flow.kdl", "--logs", "full"]).expect(3, &[], &["good │ 7\n", "bad  │ 100\n"]);
    let tail = place.swarmc(&["run", "flow.kdl", "--logs=tail"]).expect(3, &[], &["lines before: swarmc logs 2"]);
    assert!(!tail.err.contains("good │") && !tail.err.contains("│ 100\n"), "{tail:#?}");
    assert_eq!(tail.err.lines().filter(|line| line.starts_with("bad  │")).count(), 1 + 20, "{tail:#?}");
    let none = place.swarmc(&["run", "flow.kdl", "--logs", "none"]).expect(3, &[], &["bad failed: exit 7", "log: "]);
    assert!(!none.err.contains('│') && none.err.contains("good: succeeded"), "{none:#?}");
    assert!([full, tail, none].iter().all(|run| run.out.is_empty()), "no result, and no line of a step");
    let resumed = place.swarmc(&["resume", "--retry-failed", "--logs", "none"]).expect(3, &[], &["bad failed: exit 7"]);
    assert!(!resumed.err.contains('│'), "{resumed:#?}");
    for other in ["--quiet", "--json", "--events"] {
        place.swarmc(&["run", "flow.kdl", "--logs", "tail", other]).expect(2, &[], &["cannot be used with"]);
    }
}

#[test]
fn parameters_and_secrets_are_checked_before_anything_starts() {
    let spec = "workflow w\nparam count type=int\nsecret token env=SECRET_TOKEN\n\
                pipeline p { task t { env TOKEN=\"x\"; run \"echo $N\"; env N=\"<<param:count>>\" } }\n";
    let place = Place::new(&spec.replace("env TOKEN=\"x\"; ", "").replace("secret token env=SECRET_TOKEN\n", ""));
    place.swarmc(&["run", "flow.kdl"]).expect(2, &[], &["parameter `count` is missing: add `--param count=NUMBER`"]);
    place.swarmc(&["run", "flow.kdl", "--param", "cuont=1"]).expect(2, &[], &["did you mean `count`?"]);
    place.swarmc(&["run", "flow.kdl", "--param", "count=x"]).expect(2, &[], &["takes a whole number"]);
    place.swarmc(&["run", "flow.kdl", "--task", "tt"]).expect(2, &[], &["the only one is `t`"]);
    place.swarmc(&["run", "flow.kdl", "--pipeline", "q"]).expect(2, &[], &["no pipeline `q`"]);
    assert_eq!(place.runs(), 0);
    place.write("params.json", r#"{ "count": 3 }"#);
    place.swarmc(&["run", "flow.kdl", "--params", "params.json"]).expect(0, &[], &["t │ 3\n"]);
    let place = Place::new(
        "workflow w\nsecret token env=SECRET_TOKEN\npipeline p { task t { env token; run \"printenv > seen; grep TOKEN seen\" } }\n",
    );
    place.swarmc(&["run", "flow.kdl"]).expect(2, &[], &["SECRET_TOKEN", "`token`"]);
    assert_eq!(place.runs(), 0);
    let given = place.command(&["run", "flow.kdl"]).env("SECRET_TOKEN", "value").output().expect("swarmc starts");
    Ended::from(given).expect(0, &[], &["SECRET_TOKEN=value"]);
}

#[test]
fn processes_of_a_run_find_it_from_any_folder() {
    let place = Place::new("workflow w\npipeline p { task t { run \"cd / && printenv SWARM_HOME\" } }\n");
    let given = place.command(&["run", "flow.kdl"]).env("SWARM_HOME", "kept").output().expect("swarmc starts");
    let home = place.work().join("kept").display().to_string();
    Ended::from(given).expect(0, &[&home], &[]);
}

#[test]
fn standard_input_is_read_only_by_workflows_that_use_it() {
    let place = Place::new(TWO);
    let mut command = place.command(&["run", "flow.kdl"]);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().expect("swarmc starts");
    // The pipe stays open: reading it would never end.
    let open = child.stdin.take();
    assert!(child.wait().expect("swarmc ends").success());
    drop(open);

    let place = Place::new("workflow w\npipeline p { task t { run cat; stdin \"<<stdin>>!\" } }\n");
    let mut command = place.command(&["run", "flow.kdl", "-q"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("swarmc starts");
    child.stdin.take().expect("stdin is piped").write_all(b"from outside").expect("stdin takes a text");
    Ended::from(child.wait_with_output().expect("swarmc ends")).expect(0, &["from outside!"], &[]);
}

#[test]
fn a_reader_that_goes_away_ends_nothing() {
    let place = Place::new("workflow w\npipeline p { task t { run \"seq 200000; touch done\" } }\n");
    // The lines of tasks are on standard error, as events on standard output.
    for (arguments, out) in [(&["run", "flow.kdl"][..], false), (&["run", "flow.kdl", "--json"], true)] {
        let mut child = place.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
        match out {
            true => drop(child.stdout.take()),
            false => drop(child.stderr.take()),
        }
        let run = Ended::from(child.wait_with_output().expect("swarmc ends")).expect(0, &[], &[]);
        assert!(!run.err.contains("panic"), "{run:#?}");
        fs::remove_file(place.work().join("done")).expect("the task came to its end");
    }
}

#[test]
fn the_first_interrupt_stops_and_the_run_can_be_resumed() {
    // The second time the flag is there, and nothing waits.
    let spec = "workflow w\npipeline p {\n    task first { run \"echo first >>log\" }\n    \
                task wait { depends-on first; run \"test -e flag || sleep 600\" }\n    \
                task last { depends-on wait; run echo end }\n    result last\n}\n";
    let place = Place::new(spec);
    let (mut child, rest) = place.until(&["run", "flow.kdl"], "wait: started");
    let listed = place.swarmc(&["ps", "--json"]).expect(0, &["\"state\":\"running\""], &[]);
    let listed: Value = serde_json::from_str(&listed.out).expect("JSON");
    let run = listed["runs"][0]["run"].as_str().expect("a run is listed").to_owned();
    place.swarmc(&["resume", &run]).expect(2, &[], &["another process"]);
    place.swarmc(&["prune", &run]).expect(2, &[], &["another process"]);
    signal(&child, "INT");
    assert_eq!(child.wait().expect("swarmc ends").code(), Some(4));
    let said = rest();
    assert!(said.contains(&format!("resume with: swarmc resume {run}")), "{said}");

    place.swarmc(&["ps"]).expect(0, &["resumable", &run], &[]);
    place.swarmc(&["prune", "--older-than", "0s"]).expect(0, &["deleted 0 runs", "kept 1 older run"], &[]);
    place.write("flag", "");
    place.swarmc(&["resume"]).expect(0, &["end\n"], &["resumed"]);
    assert_eq!(fs::read_to_string(place.work().join("log")).expect("the log is there"), "first\n");
    place.swarmc(&["resume", &run]).expect(2, &[], &["has ended"]);
}

#[test]
fn another_process_can_stop_a_run() {
    let place = Place::new("workflow w\npipeline p { task wait { run sleep 600 } }\n");
    let (mut child, rest) = place.until(&["run", "flow.kdl"], "wait: started");
    place.swarmc(&["stop"]).expect(0, &[], &["is stopping"]);
    assert_eq!(child.wait().expect("swarmc ends").code(), Some(4));
    assert!(rest().contains("resume with"));
    place.swarmc(&["stop"]).expect(2, &[], &["no run is running"]);
}

#[test]
fn an_indented_spec_is_found_and_other_documents_are_left_alone() {
    let place = Place::new("// Text.\n  workflow w\n  pipeline p {\n    task a { run echo hi }\n  }\n");
    place.write("layout.kdl", "layout {\n    workflow {\n        pipeline x\n    }\n}\n");
    place.swarmc(&["check"]).expect(0, &["no problems in 1 spec"], &[]);
    assert_eq!(place.swarmc(&["run", "-q"]).expect(0, &[], &[]).out, "hi\n");
}

#[test]
fn the_log_of_an_agent_is_what_it_said_and_did() {
    let events = concat!(
        r#"{"type":"item.completed","item":{"id":"a","type":"agent_message","text":"I look.\u001b[2J"}}"#,
        "\n",
        r#"{"type":"item.completed","item":{"id":"b","type":"command_execution","command":"ls -l","exit_code":0}}"#,
        "\n",
        r#"{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":1}}"#,
        "\n",
    );
    let place = Place::new(
        "workflow w\nprovider p { exec cat events.jsonl; reads codex-jsonl }\nagent a provider=p\n\
         pipeline main { task look { prompt \"Look.\" } }\n",
    );
    place.write("events.jsonl", events);
    place.swarmc(&["run", "-q"]).expect(0, &[], &[]);
    let said = place.swarmc(&["logs", "last", "look"]).expect(0, &[], &[]).out;
    assert_eq!(said, "I look.\u{1b}[2J\n[command_execution ls -l]\n");
    place.swarmc(&["logs"]).expect(0, &["look │ I look.", "look │ [command_execution ls -l]\n"], &[]);
    assert_eq!(place.swarmc(&["logs", "last", "look", "--raw"]).expect(0, &[], &[]).out, events);
}

#[test]
fn a_finished_run_can_be_read_and_cleared_away() {
    let place = Place::new(TWO);
    place.swarmc(&["run", "flow.kdl", "-q"]).expect(0, &[], &[]);
    place.swarmc(&["ps"]).expect(0, &[], &["--all"]);
    place.swarmc(&["ps", "--all"]).expect(0, &["succeeded", "2/2", "two (main)"], &[]);
    place.swarmc(&["logs"]).expect(0, &["first  │ one\n", "first  │ two\n", "second │ got one\n"], &[]);
    let one = place.swarmc(&["logs", "last", "first", "-f"]).expect(0, &[], &[]);
    assert_eq!(one.out, "one\ntwo\n");
    place.swarmc(&["logs", "second"]).expect(0, &["got one"], &[]);
    place.swarmc(&["logs", "last", "thrid"]).expect(2, &[], &["no task `thrid`"]);
    place.swarmc(&["inspect"]).expect(0, &["first", "succeeded", "stdout", "logs/first.1.out (4 bytes)"], &[]);
    let inspected = place.swarmc(&["inspect", "--json"]).expect(0, &[], &[]);
    let inspected: Value = serde_json::from_str(&inspected.out).expect("JSON");
    assert_eq!((&inspected["version"], &inspected["steps"][1]["step"]), (&1.into(), &"second".into()));
    assert!(Path::new(inspected["steps"][0]["paths"]["stdout"].as_str().expect("a path")).exists());
    place.swarmc(&["logs", "thrid"]).expect(2, &[], &["no run `thrid`", "has no step of that name"]);
    place.swarmc(&["inspect", "scond"]).expect(2, &[], &["no run `scond`", "did you mean `second`?"]);
    place.swarmc(&["inspect", "first"]).expect(0, &["first  succeeded", "logs/first.1.out (4 bytes)"], &[]);
    place.swarmc(&["inspect", "last", "first", "a", "b"]).expect(2, &[], &["unexpected argument"]);
    place.swarmc(&["inspect", "first", "a", "b"]).expect(2, &[], &["`b` is one argument too many"]);
    place.swarmc(&["inspect", "--raw"]).expect(2, &[], &["name the step whose envelopes to print"]);
    place.swarmc(&["prune"]).expect(0, &["deleted 0 runs"], &[]);
    place.swarmc(&["prune", "last", "--dry-run"]).expect(0, &["would delete 1 run"], &[]);
    place.swarmc(&["prune", "--outputs", "--older-than", "0s"]).expect(0, &["outputs of 1 run"], &[]);
    assert_eq!(place.runs(), 1);
    place.swarmc(&["prune", "--older-than", "0s"]).expect(0, &["deleted 1 run"], &[]);
    assert_eq!(place.runs(), 0);
    for command in ["approve", "logs", "inspect", "send"] {
        place.swarmc(&[command]).expect(2, &[], &["there are no runs", "swarmc run SPEC"]);
    }
}

#[test]
fn a_failure_that_counts_as_skipped_is_said_and_counted_once() {
    let place = Place::new("pipeline main { task lint { run \"exit 1\"; on-failure skip }; task build { run echo } }");
    let run = place.swarmc(&["run", "flow.kdl"]).expect(0, &[], &["- lint: skipped: exit 1"]);
    assert_eq!(run.err.matches("- lint: skipped").count(), 1, "{run:#?}");
    place.swarmc(&["ps", "--all"]).expect(0, &["2/2"], &[]);
}

#[test]
fn one_task_runs_outside_its_pipeline() {
    let place = Place::new(TWO);
    let run = place.swarmc(&["run", "flow.kdl", "--task", "second"]);
    let run = run.expect(0, &["(No output available from task \"first\")"], &["task second of pipeline main"]);
    assert!(!run.err.contains("first: started"), "{run:#?}");
}

#[test]
fn a_run_without_a_record_stands_in_nobody_s_way() {
    let place = Place::new(TWO);
    let folder = place.home().join("runs/20990101-000000-bbbb");
    fs::create_dir_all(&folder).expect("a folder can be made");
    fs::write(folder.join("journal.jsonl"), "").expect("a file can be written");
    let plan = place.swarmc(&["plan", "flow.kdl", "-o", "-"]).expect(0, &[], &[]);
    fs::write(folder.join("plan.json"), plan.out).expect("a file can be written");
    place.swarmc(&["ps"]).expect(0, &["damaged", "is empty"], &[]);
    place.swarmc(&["resume", "last"]).expect(2, &[], &["is empty", "no outputs of its tasks are left"]);
    place.swarmc(&["resume"]).expect(2, &[], &["no run can be resumed"]);
    place.swarmc(&["prune", "last"]).expect(0, &["deleted 1 run"], &[]);
}

#[test]
fn a_plan_is_shown_written_and_run() {
    let place = Place::new(TWO);
    place.swarmc(&["plan", "flow.kdl"]).expect(
        0,
        &["after first succeeded (read at flow.kdl:5", "one run uses at most"],
        &[],
    );
    place.swarmc(&["plan", "flow.kdl", "-o", "plan.json"]).expect(0, &[], &["wrote `plan.json`"]);
    let plan = fs::read_to_string(place.work().join("plan.json")).expect("the plan was written");
    assert_eq!(place.swarmc(&["plan", "flow.kdl", "-o", "-"]).out, plan);
    fs::remove_file(place.work().join("flow.kdl")).expect("the spec can be removed");
    place.swarmc(&["run", "plan.json"]).expect(0, &["got one\n"], &[]);
    let newer = plan.replacen(&format!("\"version\": {}", swarmc_plan::VERSION), "\"version\": 99", 1);
    place.write("plan.json", &newer);
    place.swarmc(&["run", "plan.json"]).expect(2, &[], &["version 99", "update swarmc"]);
    place.write("plan.json", "{");
    place.swarmc(&["run", "plan.json"]).expect(2, &[], &["malformed"]);
}

#[test]
fn a_committed_plan_is_held_against_its_spec() {
    let place = Place::new(TWO);
    let check = ["plan", "flow.kdl", "--check", "plan.json"];
    place.swarmc(&check).expect(2, &[], &["there is no plan `plan.json`", "`swarmc plan flow.kdl -o plan.json`"]);
    place.swarmc(&["plan", "flow.kdl", "-o", "plan.json"]).expect(0, &[], &["wrote"]);
    let same = place.swarmc(&check).expect(0, &[], &[]);
    assert_eq!((same.out.as_str(), same.err.as_str()), ("", ""));

    place.write("flow.kdl", &TWO.replace("got", "had"));
    let changed = ["error[SW703]", "`flow.kdl` changed, and with it step `second`", "1 error", "-o plan.json"];
    place.swarmc(&check).expect(1, &[], &changed);
    place.write("flow.kdl", &format!("\n{TWO}"));
    place.swarmc(&check).expect(1, &[], &["only positions moved"]);
    place.write("flow.kdl", "pipeline p { task t }\n");
    place.swarmc(&check).expect(1, &[], &["error[SW"]);

    place.write("flow.kdl", TWO);
    for (text, said) in [("{", "malformed"), ("[]", "malformed"), ("{\"version\": 99}", "update swarmc")] {
        place.write("plan.json", text);
        place.swarmc(&check).expect(2, &[], &["cannot use the plan `plan.json`", said]);
    }
    place.swarmc(&["plan", "plan.json", "--check", "plan.json"]).expect(2, &[], &["is a plan already"]);
    place.swarmc(&["plan", "flow.kdl", "--check", "."]).expect(2, &[], &["cannot read the plan `.`"]);
    place.swarmc(&["plan", "flow.kdl", "--check", "a", "-o", "b"]).expect(2, &[], &["cannot be used with"]);
}

#[test]
fn what_init_writes_runs_and_is_never_overwritten() {
    let full = Place::new("");
    full.swarmc(&["init", "flow.kdl"]).expect(2, &[], &["`flow.kdl` is a file, not a folder"]);
    let place = Place::new("");
    place.swarmc(&["init", "hello"]).expect(0, &["swarmc run hello/workflow.kdl"], &[]);
    place.swarmc(&["check", "hello/workflow.kdl"]).expect(0, &["no problems"], &[]);
    let run = place.swarmc(&["run", "hello/workflow.kdl"]).expect(
        0,
        &["Write a short report on the files of this folder."],
        &[],
    );
    assert!(run.out.contains("--- Output from task \"files\" ---"), "{run:#?}");
    place.swarmc(&["init", "hello"]).expect(2, &[], &["not overwriting"]);
}

#[test]
fn the_rest_answers() {
    let place = Place::new(TWO);
    place.swarmc(&["--version"]).expect(0, &[concat!("swarmc ", env!("CARGO_PKG_VERSION"))], &[]);
    place.swarmc(&["explain", "output-not-upstream"]).expect(0, &["# SW201 output-not-upstream", "```kdl ok"], &[]);
    place.swarmc(&["explain"]).expect(0, &["SW601"], &[]);
    let mut doctor = place.command(&["doctor"]);
    let with_key = doctor.env("OPENAI_API_KEY", "k").env_remove("GEMINI_API_KEY").output().expect("swarmc starts");
    let told =
        ["runs are kept in", "claude-code", "OPENAI_API_KEY is set", "GEMINI_API_KEY is not set", "127.0.0.1:8080"];
    Ended::from(with_key).expect(0, &told, &[]);
    place.swarmc(&["completions", "zsh"]).expect(0, &["#compdef swarmc"], &[]);
    place.swarmc(&["man"]).expect(0, &[".TH swarmc"], &[]);
    place.swarmc(&["plan"]).expect(2, &[], &["Usage: swarmc plan"]);
    let schema = place.swarmc(&["schema", "plan"]).expect(0, &[], &[]);
    let schema: Value = serde_json::from_str(&schema.out).expect("JSON");
    assert_eq!(schema["title"], "Plan");
}

#[test]
fn a_home_that_cannot_be_written_is_named() {
    let place = Place::new(TWO);
    fs::write(place.home(), "a file").expect("a file can be written");
    let refused = place.swarmc(&["run", "flow.kdl"]).expect(2, &[], &["cannot create", "home"]);
    assert_eq!(refused.err.matches("os error").count(), 1, "{refused:#?}");
    place.swarmc(&["doctor"]).expect(2, &["cannot be kept"], &[]);
}

#[test]
fn json_has_the_fields_that_its_page_shows() {
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/json.md")).expect("the page is there");
    let mut shown = page.split("```json\n").skip(1).map(|rest| {
        let block = rest.split("```").next().expect("a block ends");
        serde_json::from_str::<Value>(block).expect("each block is JSON")
    });
    let place = Place::new("pipeline main { task draft { run echo hello }; result draft }");
    place.write("changed.kdl", "pipeline main { task draft { run echo hello }; result draft }");
    place.swarmc(&["run", "changed.kdl", "--record", "recorded"]).expect(0, &[], &[]);
    place.write("changed.kdl", "pipeline main { task draft { run echo goodbye }; result draft }");
    place.write("wrong.kdl", "pipeline main { taks draft { run echo }; task draft { run echo } }");
    let mut same = |arguments: &[&str], code: i32, kind: Option<&str>| {
        let out = place.swarmc(arguments).expect(code, &[], &[]).out;
        let mut documents = out.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        let real = documents.find(|document| kind.is_none_or(|kind| document["type"] == kind)).expect("it was printed");
        let shown = shown.next().expect("a block for each");
        let (real, shown) = (fields(&real), fields(&shown));
        assert_eq!(real, shown, "{arguments:?}");
    };
    same(&["check", "wrong.kdl", "--format", "json"], 1, None);
    place.write("counted.kdl", crate::stats::FLOW);
    same(&["check", "counted.kdl", "--stats", "--format", "json"], 0, None);
    same(&["run", "flow.kdl", "--json"], 0, Some("output"));
    same(&["run", "flow.kdl", "--json"], 0, Some("result"));
    same(&["run", "changed.kdl", "--replay", "recorded", "--json"], 3, Some("divergence"));
    place.write("stream", STREAM);
    place.write(
        "agent.kdl",
        "provider program { exec \"sh\" \"-c\" \"cat >/dev/null; cat stream\"; reads claude-stream-json }\n\
         agent worker provider=program\npipeline main { task draft agent=worker { prompt \"Draft\" } }",
    );
    for kind in ["connection", "tool_started", "tool_ended"] {
        same(&["run", "agent.kdl", "--json"], 0, Some(kind));
    }
    place.swarmc(&["run", "flow.kdl"]).expect(0, &[], &[]);
    same(&["ps", "--all", "--json"], 0, None);
    place.swarmc(&["run", "flow.kdl"]).expect(0, &[], &[]);
    same(&["inspect", "--json"], 0, None);
    same(&["doctor", "--json"], 0, None);
    place.write(
        "tested.kdl",
        "pipeline main { task draft { run echo } }\ntest one { fake draft; expect { step draft failed } }",
    );
    same(&["test", "tested.kdl", "--format", "json"], 3, None);
    assert_eq!(shown.next(), None, "every block was compared");
}

/// What a program prints that uses a tool.
const STREAM: &str = r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"1","name":"Bash","input":{}}]}}
{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"1","content":"hello"}]}}
{"type":"result","subtype":"success","is_error":false,"result":"Done."}
"#;

/// The paths of all fields, looking into the first element of a list.
fn fields(value: &Value) -> std::collections::BTreeSet<String> {
    let below =
        |key: &str, value: &Value| fields(value).into_iter().map(|path| format!("{key}.{path}")).collect::<Vec<_>>();
    match value {
        Value::Object(members) => members
            .iter()
            .flat_map(|(key, value)| std::iter::once(key.clone()).chain(below(key, value)).collect::<Vec<_>>())
            .collect(),
        Value::Array(items) => items.first().map(fields).unwrap_or_default(),
        _ => std::collections::BTreeSet::new(),
    }
}
