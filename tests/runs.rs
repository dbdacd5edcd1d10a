//! Runs that meet a hostile world, through the binary: full disks, kills at bad moments, processes that will not go.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::cli::{Ended, Place, signal};

/// What a process that gets TERM is given before it gets KILL: nothing here may take as long.
const GRACE: Duration = Duration::from_secs(5);

/// Where the only run lies.
fn run(place: &Place) -> PathBuf {
    let runs = fs::read_dir(place.home().join("runs")).expect("there are runs");
    let mut runs = runs.map(|entry| entry.expect("an entry can be read").path());
    let run = runs.next().expect("there is a run");
    assert_eq!(runs.next(), None, "there is one run only");
    run
}

/// The journal's lines, without the zeros that a killed runner leaves.
fn journal(place: &Place) -> Vec<String> {
    let text = fs::read_to_string(run(place).join("journal.jsonl")).expect("the journal is text");
    text.trim_end_matches('\0').lines().map(str::to_owned).collect()
}

fn records(place: &Place) -> Vec<Value> {
    journal(place).iter().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
}

fn file(place: &Place, name: &str) -> String {
    fs::read_to_string(place.work().join(name)).unwrap_or_else(|error| panic!("`{name}`: {error}"))
}

/// Whether the process whose number a task wrote into `name` is alive; one that nobody reaps is not.
fn lives(place: &Place, name: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", file(place, name).trim())).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

#[test]
fn a_full_disk_stops_the_run_with_the_reason_and_it_goes_on_once_there_is_room() {
    // Either the journal or a log meets the limit first.
    for (rounds, output, limit) in [(150, "", 64), (3, "head -c 100000 /dev/zero", 64)] {
        let place = Place::new(&format!(
            "pipeline p {{\n    iterations {rounds}\n    task t {{ run \"echo $SWARM_ITERATION >>effects; {output}\" }}\n}}\n"
        ));
        crate::patience::begin();
        let mut limited = Command::new("sh");
        let line = format!("ulimit -f {limit}; exec \"$@\"");
        limited.args(["-c", &line, "sh", env!("CARGO_BIN_EXE_swarmc"), "run", "flow.kdl", "-q"]);
        limited.current_dir(place.work()).env("SWARM_HOME", place.home()).stdin(Stdio::null());
        let stopped = Ended::from(limited.output().expect("sh starts"));
        let stopped = stopped.expect(2, &[], &["File too large", "once that is fixed, type `swarmc resume "]);
        assert!(!stopped.err.contains("panic"), "{stopped:#?}");
        let before = file(&place, "effects").lines().count();
        assert!(before > 0 && before < rounds, "it stopped in the middle: {before} of {rounds}");
        place.swarmc(&["resume", "-q"]).expect(0, &[], &[]);
        let effects = file(&place, "effects");
        let mut rounds_run: Vec<u32> = effects.lines().map(|line| line.parse().expect("a number")).collect();
        assert!(rounds_run.is_sorted() && rounds_run.len() <= rounds + 1, "one attempt at most is repeated");
        rounds_run.dedup();
        assert_eq!(rounds_run.len(), rounds);
    }
}

#[test]
fn events_stay_small_whatever_is_in_them_and_nothing_of_it_is_lost() {
    let check = format!("exit 3 # {}", "\"".repeat(9000)).replace('"', "\\\"");
    let spec = format!(
        r#"
param big type=string
pipeline p {{
    task control {{ run "printf '\\001%.0s' $(seq 2000); printf '\\002%.0s' $(seq 2000) >&2; exit 1" }}
    task checked {{ run echo ok; check "{check}" }}
    task kill {{ depends-on control checked when=any; run "test -e killed || {{ touch killed; kill -9 $PPID; }}" }}
    task whole {{ depends-on kill; run cat; stdin "<<param:big>><<output:control | default:none>>" }}
    result whole
}}
"#
    );
    let place = Place::new(&spec);
    let big = "\u{1}\"".repeat(20_000);
    place.write("params.json", &serde_json::json!({ "big": big }).to_string());
    assert_eq!(place.swarmc(&["run", "flow.kdl", "-q", "--params", "params.json"]).code, None, "it was killed");
    let resumed = place.swarmc(&["resume", "-q"]).expect(0, &[], &[]);
    // What a failed command wrote on both streams, in the order in which it was read.
    let rest = resumed.out.strip_prefix(&big).expect("the parameter comes first");
    let counts = ['\u{1}', '\u{2}', '\n'].map(|wanted| rest.chars().filter(|&sign| sign == wanted).count());
    assert_eq!((rest.len(), counts), (4001, [2000, 2000, 1]));
    let longest = journal(&place).iter().map(String::len).max();
    assert!(longest.is_some_and(|longest| longest < 8192), "{longest:?}");
}

#[test]
fn a_kill_during_a_backoff_neither_repeats_an_attempt_nor_forgets_the_pause() {
    let place = Place::new(
        "pipeline p {\n    task t { retry 2 backoff=\"700ms\"; run \"echo $SWARM_ATTEMPT >>effects; test $SWARM_ATTEMPT = 2\" }\n}\n",
    );
    let (mut child, rest) = place.until(&["run", "flow.kdl"], "attempt 1 of 3 failed");
    while !journal(&place).iter().any(|line| line.contains("attempt_ended")) {} // It is shown first.
    child.kill().expect("a child can be killed");
    child.wait().expect("a child can be waited for");
    rest();
    place.swarmc(&["resume"]).expect(0, &[], &["t: attempt 2 started"]);
    assert_eq!(file(&place, "effects"), "1\n2\n");
    let records = records(&place);
    let at = |event: &str, attempt: u32| {
        let found = records.iter().find(|record| record["event"] == event && record["attempt"] == attempt);
        found.and_then(|record| record["at"].as_u64()).expect("the record is there")
    };
    assert!(at("attempt_started", 2) >= at("attempt_ended", 1) + 700, "{records:#?}");
}

#[test]
fn what_leaves_its_group_is_not_waited_for_and_ends_with_the_run() {
    // It keeps the task's standard output open, too.
    let place = Place::new(
        "pipeline p {\n    task t { run \"setsid sh -c 'echo $$ >pid; exec sleep 600' & until test -s pid; do :; done; echo out\" }\n\
         task next { run cat; stdin \"<<output:t>>!\" }\n}\n",
    );
    let started = Instant::now();
    place.swarmc(&["run", "flow.kdl"]).expect(0, &[], &["next │ out!\n", "1 process left by the run: ended"]);
    assert!(started.elapsed() < GRACE, "{:?}", started.elapsed());
    assert!(!lives(&place, "pid"));
}

#[test]
fn what_outlived_a_killed_runner_is_ended_before_its_task_starts_again() {
    // In its own session it is in no process group that the journal knows.
    let place = Place::new(
        "pipeline p {\n    task t { run \"test -e pid && exec cut -d ' ' -f 3 /proc/$(cat pid)/stat; \
         setsid sh -c 'echo $$ >pid; exec sleep 600' & until test -s pid; do :; done; kill -9 $PPID; sleep 600\" \n\
         on-failure skip }\n}\n",
    );
    assert_eq!(place.swarmc(&["run", "flow.kdl"]).code, None, "it was killed");
    assert!(lives(&place, "pid"), "it outlived the runner");
    let resumed = place.swarmc(&["resume"]).expect(0, &[], &["left by the last runner: ended"]);
    assert!(!resumed.err.contains("│ S\n"), "the survivor was still there: {resumed:#?}");
    assert!(!lives(&place, "pid"));
}

#[test]
fn every_signal_stops_and_a_second_one_waits_for_nobody() {
    let spec = "pipeline p {\n    task t { run \"echo ready >&2; while :; do sleep 0.01; done\" }\n}\n";
    for name in ["INT", "TERM", "HUP"] {
        let place = Place::new(spec);
        let (mut child, rest) = place.until(&["run", "flow.kdl"], "│ ready");
        signal(&child, name);
        assert_eq!(child.wait().expect("swarmc ends").code(), Some(4), "{name}");
        assert!(rest().contains("resume with: swarmc resume"), "{name}");
    }
    let place = Place::new(&spec.replace("echo ready", "trap '' TERM; echo ready"));
    let (mut child, rest) = place.until(&["run", "flow.kdl"], "│ ready");
    let started = Instant::now();
    signal(&child, "INT");
    signal(&child, "TERM");
    assert_eq!(child.wait().expect("swarmc ends").code(), Some(4));
    assert!(started.elapsed() < GRACE, "{:?}", started.elapsed());
    assert!(rest().contains("killing running tasks"));
    let ended = records(&place).pop().expect("there are records");
    assert_eq!((&ended["event"], &ended["failure"]["cause"]), (&"attempt_ended".into(), &"cancelled".into()));
}

#[test]
fn a_run_that_fails_without_a_failed_step_says_why() {
    let place = Place::new(
        "pipeline p {\n    iterations 2\n    until \"output.t == 'enough'\"\n    task t { run echo more }\n}\n",
    );
    place.swarmc(&["run", "flow.kdl"]).expect(3, &[], &["p: no `until` held in 2 rounds"]);
    let place = Place::new("pipeline p {\n    stop bad status=failure { message \"no\" }\n}\n");
    place.swarmc(&["run", "flow.kdl"]).expect(3, &[], &["p: `bad` ended it as failed: no\n"]);
}

#[test]
fn an_agent_reads_the_data_of_its_task_behind_the_prompt() {
    let place = Place::new(
        "provider c { exec cat; prompt stdin }\nagent a provider=c\n\
         pipeline p {\n    task t { prompt \"judge this:\"; stdin \"the data\" }\n}\n",
    );
    place.swarmc(&["run", "flow.kdl"]).expect(0, &[], &["t │ judge this:\nt │ \nt │ the data\n"]);
}

#[test]
fn computed_values_and_arguments_keep_their_types() {
    let place = Place::new(
        r#"
workflow w { default main }
type Verdict { ok bool }
pipeline inner {
    param count type=int
    param verdict type=Verdict
    param notes type="list<int>"
    param kind type="enum bug feature" default=bug
    task twice { value "{{ param.count * 2 }}" }
    task all { for-each "param.notes"; value "{{ item + param.count }}" }
    task told { run cat; stdin "{% if param.verdict.ok %}<<param:kind>>{% endif %}{{ output.all }}"; output max="1KB" }
    task both { value { twice "<<output:twice>>"; told "<<output:told>>" } }
    result both
}
pipeline main {
    task four { value "{{ 2 * 2 }}" }
    task more { value "{{ [output.four + 1, 7] }}" }
    task text { run echo 4 }
    task same { value "<<output:text>>" }
    task written { call inner count="5" verdict="{\"ok\": true}" notes="[1, 2]" kind=feature }
    task computed { call inner count="<<output:four>>" verdict="{{ {'ok': true} }}" notes="<<output:more>>" }
    task both {
        value "{{ output.written.twice + 1 }} {{ output.written.told }} {{ output.computed.twice + 1 }} {{ output.computed.told }} {{ output.same == '4' }}"
    }
    result both
}
"#,
    );
    place.swarmc(&["run", "flow.kdl", "-q"]).expect(0, &["11 feature[6,7] 9 bug[9,11] true\n"], &[]);
}

#[test]
fn an_argument_that_is_not_of_its_type_fails_the_call_that_gives_it() {
    let place = Place::new(
        r#"
workflow w { default main }
type Verdict { ok bool }
pipeline inner { param verdict type=Verdict; task show { run cat; stdin "<<param:verdict.ok>>" }; result show }
pipeline main { task say { run echo fine }; task ask { call inner verdict="<<output:say | tail:1>>" } }
"#,
    );
    let told = "parameter `verdict` of `inner` is not of its type: ";
    let ended = place.swarmc(&["run", "flow.kdl"]).expect(3, &[], &["ask: failed", told]);
    assert!(!ended.err.contains("show: started"), "{ended:#?}");
}

#[test]
fn what_a_stop_says_is_shown_at_the_end() {
    let place = Place::new(
        r#"
workflow w { default main }
pipeline sub {
    task a { run "exit 3"; on-failure skip }
    stop bad status=failure { when "status.a == 'skipped'"; message "No luck." }
}
pipeline main {
    task c { call sub; on-failure skip }
    loop l max=2 {
        depends-on c when=always
        task x { run "true" }
        stop enough { when "output.x == ''"; message "Nothing\nto do." }
    }
    task late { depends-on c l; run echo late }
}
pipeline failing { parallelism 2; stop no status=failure { message "one\ntwo" } }
pipeline listed { stop done { message "That is it." }; result done }
"#,
    );
    let ended = place.swarmc(&["run", "flow.kdl"]);
    let ended = ended.expect(
        0,
        &[],
        &["main: `enough` ended it:\n  Nothing\n  to do.\n", "`bad` ended it as failed: No luck."],
    );
    assert!(!ended.err.contains("sub: "), "{ended:#?}");
    place.swarmc(&["run", "flow.kdl", "-q", "--pipeline", "failing"]).expect(
        3,
        &[],
        &["failing.1: `no` ended it as failed:\n  one\n  two\n", "failing.2: "],
    );
    let ended = place.swarmc(&["run", "flow.kdl", "--pipeline", "listed"]).expect(0, &["That is it.\n"], &[]);
    assert!(!ended.err.contains("ended it"), "it is shown once: {ended:#?}");
}

#[test]
fn what_a_pipeline_says_of_itself_holds_also_where_it_is_called() {
    let place = Place::new(
        r#"
workflow w { default main }
provider rec { script { answer "ok" } }
agent a provider=rec
pipeline rounds {
    iterations 5
    until "output.n == '3'"
    task n { run "echo x >>count; wc -l <count" }
    result n
}
pipeline alone {
    concurrency 1
    task one { run "mkdir held && echo >>done && rmdir held" }
    task two { run "mkdir held && echo >>done && rmdir held" }
}
pipeline quick {
    fail-fast
    task fails { run "exit 1" }
    task later { depends-on fails when=failure; run "echo >>done; exit 1" }
    task last { depends-on later; run "echo >>done" }
}
pipeline place {
    working-dir inner
    env GREETING="hello"
    task where { run "echo $GREETING $(basename $(pwd))" }
    result where
}
pipeline cheap {
    param list type=list<string>
    budget calls=1
    task each { for-each "param.list" parallel=1; prompt "a" }
}
pipeline main {
    task a { call rounds }
    task b { call alone }
    task c { for-each "range(2)"; call alone }
    task d { depends-on b c; call quick; on-failure skip }
    task e { call place }
    task f { call cheap list="{{ ['a', 'b'] }}"; on-failure skip }
    task g { depends-on d f when=always; run "wc -l <done; cat"; stdin "<<output:a>> <<output:e>>" }
    result g
}
"#,
    );
    fs::create_dir(place.work().join("inner")).expect("the workspace can be written");
    let told = "1 of 2 items failed, first item 1: the budget of pipeline `cheap` is 1 ";
    place.swarmc(&["run", "flow.kdl"]).expect(0, &["7\n3 hello inner\n"], &[told]);
}

#[test]
fn ps_counts_what_is_inside_and_knows_the_last_run_of_a_second() {
    let place = Place::new(
        r#"
workflow w { default main }
pipeline sub { task one { value "a" }; task two { value "<<output:one>>" }; result two }
pipeline main {
    loop rounds max=3 { task a { value "<<iteration>>" }; until "output.a == 2" }
    task each { for-each "range(3)"; call sub }
    task none { for-each "range(0)"; call sub }
    gate last { message "?"; options ok; on-timeout ok after="24h" }
}
"#,
    );
    let count = |run: &str| {
        let ps: Value =
            serde_json::from_str(&place.swarmc(&["ps", "--all", "--json"]).expect(0, &[], &[]).out).unwrap();
        let runs = ps["runs"].as_array().expect("a list").clone();
        let position = runs.iter().position(|summary| summary["run"] == run).expect("it is listed");
        (position, runs[position]["done"].as_u64(), runs[position]["total"].as_u64())
    };
    let started = |text: &str| text.split("run ").nth(1).and_then(|rest| rest.split(':').next()).unwrap().to_owned();
    let (child, rest) = place.until(&["run", "flow.kdl"], "swarmc approve");
    place.swarmc(&["approve", "last"]).expect(
        0,
        &["? gate last, since ", ", `on-timeout` answers `ok` in 23h 59m"],
        &[],
    );
    let inspected: Value =
        serde_json::from_str(&place.swarmc(&["inspect", "last", "--json"]).expect(0, &[], &[]).out).unwrap();
    let first = inspected["run"].as_str().expect("a name").to_owned();
    assert_eq!(count(&first), (0, Some(8), Some(9)), "1 in the loop, 6 in calls, 1 for nothing, and the gate");
    for number in 0..3 {
        let ended = place.swarmc(&["run", "flow.kdl", "--task", "each"]).expect(0, &[], &[]);
        assert_eq!(count(&started(&ended.err)).0, 0, "run {number} is the newest");
    }
    place.swarmc(&["approve", &first, "last", "ok"]).expect(0, &[], &[]);
    let mut child = child;
    assert!(child.wait().expect("it ends").success(), "{}", rest());
    assert_eq!(count(&first), (3, Some(9), Some(9)));
}

#[test]
fn a_person_decides_what_becomes_of_a_failure() {
    let place = Place::new(
        r##"
workflow w { default main }
pipeline sub { task inner { run "test -e there" }; task out { value "<<output:inner | raw>>ok" }; result out }
pipeline main {
    task one { run "echo no >&2; exit 3"; on-failure escalate }
    task two { call sub; retry 1; on-failure escalate }
    task three { run "exit 4"; on-failure escalate }
    task after {
        depends-on one when=failure
        depends-on two
        depends-on three when=always
        value "<<error:one>>, <<output:two>>, <<status:three>>"
    }
    result after
}
"##,
    );
    let waiting = || {
        let ps = place.swarmc(&["ps", "--json"]).expect(0, &[], &[]).out;
        let ps: Value = serde_json::from_str(&ps).expect("it is JSON");
        let gates = ps["runs"][0]["gates"].as_array().into_iter().flatten();
        gates.map(|gate| gate.as_str().expect("a name").to_owned()).collect::<std::collections::BTreeSet<_>>()
    };
    let until = |names: &[&str]| {
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while waiting() != names.iter().map(|name| (*name).to_owned()).collect() {
            assert!(std::time::Instant::now() < deadline, "{:?} wait", waiting());
        }
    };
    let (mut child, rest) = place.until(&["run", "flow.kdl"], "swarmc approve");
    until(&["one", "three", "two"]);
    let wrong = place.swarmc(&["approve", "last", "three", "ignore"]);
    assert!(wrong.code == Some(2) && wrong.err.contains("there are `retry`, `skip`, `fail`"), "{wrong:?}");
    place.write("there", "");
    place.swarmc(&["approve", "last", "two", "retry"]).expect(0, &[], &[]);
    place.swarmc(&["approve", "last", "three", "skip"]).expect(0, &[], &[]);
    // Once more is once: the second failure is one.
    place.swarmc(&["approve", "last", "one", "retry"]).expect(0, &[], &[]);
    let (status, told) = (child.wait().expect("it ends"), rest());
    assert!(status.success(), "{told}");
    let outputs = place.home().join("outputs");
    let run = std::fs::read_dir(outputs).expect("there is one").next().expect("there is one").expect("it can be read");
    let text = std::fs::read_to_string(run.path().join("after.txt")).expect("it has run");
    assert_eq!(text, "no\n, ok, skipped");
    for line in ["? one waits for an answer", "It failed: no", "retry|skip|fail", "✗ one: failed after"] {
        assert!(told.contains(line), "{line}: {told}");
    }
    // Nobody is there, or in time: what failed has failed.
    let timed = "policy { on-timeout approve after=\"300ms\" }\npipeline main {\n\
                 task one { run \"exit 3\"; on-failure escalate }\ntask two { depends-on one; run \"true\" }\n}\n";
    place.write("timed.kdl", timed);
    place.swarmc(&["run", "timed.kdl"]).expect(3, &[], &["? one waits for an answer", "one: failed"]);
    place.write("timed.kdl", &timed.replace("300ms", "1h"));
    let (mut child, _) = place.until(&["run", "timed.kdl"], "swarmc approve");
    place.swarmc(&["approve", "last"]).expect(0, &["? gate one, since ", "fails the gate in 59m 5"], &[]);
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    std::fs::remove_file(place.work().join("there")).expect("it is there");
    let alone = place.swarmc(&["run", "flow.kdl", "--headless"]);
    assert_eq!(alone.code, Some(3), "{alone:?}");
    let killed = place.until(&["run", "flow.kdl"], "swarmc approve");
    let (mut child, _) = killed;
    until(&["one", "three", "two"]);
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    let (mut child, rest) = place.until(&["resume"], "swarmc approve");
    until(&["one", "three", "two"]);
    for name in ["one", "two", "three"] {
        place.swarmc(&["approve", "last", name, "fail"]).expect(0, &[], &[]);
    }
    assert_eq!(child.wait().expect("it ends").code(), Some(3), "{}", rest());
}

#[test]
fn a_journal_that_is_gone_is_told_with_what_is_left() {
    let place = Place::new(
        "pipeline p { task a { run \"echo one; echo two >&2\" }\n task b { depends-on a; run \"exit 1\" } }\n",
    );
    place.swarmc(&["run", "flow.kdl", "-q"]).expect(3, &[], &[]);
    let run = crate::specs::only(&place.home().join("runs"));
    let (journal, id) =
        (run.join("journal.jsonl"), run.file_name().expect("a run has a name").to_string_lossy().into_owned());
    let whole = fs::read_to_string(&journal).expect("there is a journal");
    let converted = whole.trim_end_matches('\0').replace('\n', "\r\n");
    let zeros = "\0".repeat(whole.len());
    let words = |text: &str| text.split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ");
    for (text, problem) in [
        (None, "is not there: it was deleted or moved away"),
        (Some(""), "is empty"),
        (Some(zeros.as_str()), "zeros and nothing else"),
        (Some(converted.as_str()), "its lines end in CRLF; type `sed -i"),
    ] {
        text.map_or_else(|| fs::remove_file(&journal), |text| fs::write(&journal, text)).expect("it can be changed");
        for arguments in [["resume", &id], ["inspect", &id], ["logs", &id]] {
            let ended = place.swarmc(&arguments).expect(2, &[], &[]);
            let said = words(&ended.err);
            assert!(said.contains(problem) && said.contains("logs in `") && said.contains("swarmc prune"), "{said}");
            if arguments[0] == "logs" {
                assert_eq!(ended.out, "a.1.err │ two\na.1.out │ one\n");
            }
        }
        let listed = place.swarmc(&["ps"]).expect(0, &["damaged", &id], &[]);
        assert!(words(&listed.out).contains(problem), "{listed:#?}");
        place.swarmc(&["resume"]).expect(2, &[], &["no run can be resumed"]);
    }
    // What the message says mends it.
    let mended = Command::new("sed").args(["-i", "s/\\r$//"]).arg(&journal).status().expect("sed starts");
    assert!(mended.success());
    place.swarmc(&["ps", "--all"]).expect(0, &["failed", &id], &[]);
}

/// A run whose task sleeps, and writes the number of its process first.
const ASLEEP: &str =
    "workflow w { default main }\npipeline main { task t { run \"echo $$ > pid; exec sleep 600\" } }\n";

/// Starts a run of it, and waits until the task sleeps and the journal says so.
fn asleep(place: &Place) -> std::process::Child {
    // Whoever tests in the background has some signals ignored, which stay so.
    let mut command = Command::new("env");
    command.args(["--default-signal", env!("CARGO_BIN_EXE_swarmc"), "run", "flow.kdl"]).current_dir(place.work());
    command.env("SWARM_HOME", place.home()).env_remove("CI").stdin(Stdio::null()).stderr(Stdio::null());
    let child = command.spawn().expect("env starts");
    let deadline = Instant::now() + Duration::from_secs(60);
    let begun = |journal: String| journal.contains("\"event\":\"process_started\"");
    let runs = || fs::read_dir(place.home().join("runs")).into_iter().flatten().flatten();
    while !runs().any(|run| fs::read_to_string(run.path().join("journal.jsonl")).is_ok_and(begun)) {
        assert!(Instant::now() < deadline, "the task never began");
        std::thread::sleep(Duration::from_millis(10));
    }
    child
}

#[test]
fn what_a_killed_runner_left_is_listed_and_ended() {
    let place = Place::new(ASLEEP);
    let mut runner = asleep(&place);
    runner.kill().expect("it is ours");
    let ps = place.swarmc(&["ps"]).expect(0, &["resumable", ", 1 process of it still runs: `swarmc stop "], &[]);
    assert!(lives(&place, "pid"), "{ps:?}");
    let listed: Value = serde_json::from_str(&place.swarmc(&["ps", "--json"]).expect(0, &[], &[]).out).expect("JSON");
    assert_eq!((&listed["runs"][0]["survivors"], &listed["runs"][0]["runner"]), (&1.into(), &Value::Null));
    place.swarmc(&["stop", "last"]).expect(0, &[], &["1 process that outlived the runner of "]);
    assert!(!lives(&place, "pid"));
    assert!(!place.swarmc(&["ps"]).expect(0, &["resumable"], &[]).out.contains("still runs"));
    place.swarmc(&["stop", "last"]).expect(2, &[], &["not running"]);
    runner.wait().expect("it was killed");
}

#[test]
fn a_run_is_found_right_after_its_runner_was_killed() {
    let place = Place::new("pipeline main { task t { run \"[ -e again ] || { touch again; exec sleep 600; }\" } }\n");
    let mut runner = place.command(&["run", "flow.kdl"]).stderr(Stdio::null()).spawn().expect("swarmc starts");
    let deadline = Instant::now() + Duration::from_secs(60);
    while !place.work().join("again").exists() {
        assert!(Instant::now() < deadline, "the task never began");
        std::thread::sleep(Duration::from_millis(5));
    }
    runner.kill().expect("it is ours");
    // The system may not have ended it yet.
    place.swarmc(&["resume"]).expect(0, &[], &[]);
    runner.wait().expect("it was killed");
}

#[test]
fn a_runner_that_is_stopped_is_listed_as_that() {
    let place = Place::new(ASLEEP);
    let mut runner = asleep(&place);
    signal(&runner, "STOP");
    let deadline = Instant::now() + Duration::from_secs(60);
    let word = format!(", its runner is stopped: `kill -CONT {}` lets it go on", runner.id());
    while !place.swarmc(&["ps"]).expect(0, &["running"], &[]).out.contains(&word) {
        assert!(Instant::now() < deadline, "it is never listed as stopped");
    }
    signal(&runner, "CONT");
    signal(&runner, "USR1");
    assert_eq!(runner.wait().expect("it ends").code(), Some(4), "it can be resumed");
    assert!(!lives(&place, "pid"));
}

#[test]
fn a_signal_that_would_end_the_runner_leaves_nothing_behind() {
    for name in ["QUIT", "USR1", "USR2", "ALRM", "XCPU"] {
        let place = Place::new(ASLEEP);
        let mut runner = asleep(&place);
        signal(&runner, name);
        assert_eq!(runner.wait().expect("it ends").code(), Some(4), "{name}");
        assert!(!lives(&place, "pid"), "{name}");
        place.swarmc(&["ps"]).expect(0, &["resumable"], &[]);
    }
}

#[test]
fn a_system_that_is_full_is_waited_for_and_fails_nothing() {
    let tasks: String =
        (0..150).map(|task| format!("    task t{task} {{ run sh \"-c\" \"sleep 0.05; echo done\" }}\n")).collect();
    let place = Place::new(&format!("pipeline main {{\n    concurrency 100\n{tasks}}}\n"));
    for (files, said) in [(256, "16 processes run at once, not 100"), (64, "4 processes run at once, not 100")] {
        let mut command = Command::new("sh");
        let line = format!("ulimit -n {files}; exec '{}' run flow.kdl", env!("CARGO_BIN_EXE_swarmc"));
        command.args(["-c", &line]).current_dir(place.work()).env("SWARM_HOME", place.home()).stdin(Stdio::null());
        let ended = Ended::from(command.output().expect("sh starts")).expect(0, &[], &[said, "(`ulimit -n`)"]);
        assert_eq!(ended.err.matches("run at once, not").count(), 1, "{}", ended.err);
    }
}

#[test]
fn a_result_whose_steps_were_all_skipped_is_said() {
    let place = Place::new(
        r#"
param deep type=bool default=#false
pipeline p {
    task draft { run echo draft }
    task summary { depends-on draft; when "param.deep"; run echo summary }
    task publish { depends-on summary; run echo published }
    result publish summary
}
"#,
    );
    let shown = place.swarmc(&["run", "flow.kdl"]);
    shown.expect(0, &[], &["no result: summary was skipped: its `when` is false"]);
    let json = place.swarmc(&["run", "flow.kdl", "--json"]).expect(0, &[], &[]);
    let last: Value = serde_json::from_str(json.out.lines().last().expect("a line")).expect("JSON");
    assert_eq!(last["values"], serde_json::json!([]));
    let skipped = &last["skipped_results"][0];
    assert_eq!((&skipped["step"], &skipped["instance"]), (&"summary".into(), &1.into()));
    let full = place.swarmc(&["run", "flow.kdl", "--param", "deep=true", "--json"]).expect(0, &[], &[]);
    assert!(full.out.contains(r#""skipped_results":[]"#), "{}", full.out);
    assert!(!place.swarmc(&["run", "flow.kdl", "--param", "deep=true"]).err.contains("no result"));
}
