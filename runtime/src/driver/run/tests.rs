//! Runs of hand-built plans, end to end, with real processes.

mod agreed;
mod answers;
mod inside;
mod lent;
mod remote;
mod reused;
mod snapshots;
mod threads;
mod trees;
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use swarmc_plan::{
    Command, Directive, DirectiveKind, Effect, Exhausted, Expression, Iteration, Retry, RoundFailure, Segment, When,
};

use super::*;
use crate::types::event::{Event, Failure, Record, RunStatus, Status};
use crate::types::observer::Stream;

use world::*;

#[test]
fn an_output_flows_from_one_process_into_the_next() {
    let world = World::new();
    let mut coder = step("coder", argv(&["cat"]), &["planner"]);
    coder.stdin = Some(template(vec![Segment::Text("Plan:\n".to_owned()), output_of("planner", true)]));
    let outcome = world.start(&plan(vec![step("planner", argv(&["printf", "1. read\n2. write\n"]), &[]), coder]));
    assert_eq!((outcome.ended, outcome.failed.len()), (Ended::Succeeded, 0));
    let expected =
        "Plan:\n--- Output from task \"planner\" ---\n1. read\n2. write\n--- End output from task \"planner\" ---";
    assert_eq!(outcome.values, [expected]);
    assert_eq!(world.read(world.output("planner.txt")), "1. read\n2. write\n");
    assert_eq!(world.read(world.output("coder.txt")), expected);
    assert_eq!(world.read(world.in_run("logs/planner.1.out")), "1. read\n2. write\n");
    assert!(!world.in_run("logs/planner.1.err").exists(), "there is no file before there is output");
    assert!(matches!(world.records().last().unwrap().event, Event::RunFinished { status: RunStatus::Succeeded }));
}

#[test]
fn only_the_tail_of_a_long_output_is_kept_and_its_log_is_complete() {
    let world = World::new();
    let mut long = step("long", sh("yes é | head -c 999999; printf end"), &[]);
    long.output.max_bytes = 1001;
    let outcome = world.start(&plan(vec![long]));
    // The cut falls into a character, which is then left out.
    assert_eq!(outcome.values[0].len(), 1000);
    assert!(outcome.values[0].starts_with("\né\n") && outcome.values[0].ends_with("é\nend"));
    assert_eq!(world.output("long.txt").metadata().unwrap().len(), 1000);
    assert_eq!(world.shown("long").len(), 1_000_002);
    assert_eq!(world.in_run("logs/long.1.out").metadata().unwrap().len(), 1_000_002);
}

#[test]
fn output_above_the_inline_limit_is_an_artifact_and_any_bytes_are_text() {
    let world = World::new();
    let mut reader = step("reader", argv(&["wc", "-c"]), &["bytes"]);
    reader.stdin = Some(template(vec![output_of("bytes", false)]));
    let outcome = world.start(&plan(vec![step("bytes", sh("head -c 5000 /dev/zero; printf '\\377'"), &[]), reader]));
    assert_eq!(outcome.values[0].trim(), "5003", "the byte that is no text became U+FFFD");
    assert!(matches!(&world.ends()[0].1.output, Some(Content::Artifact { bytes: 5003, .. })));
    assert_eq!(std::fs::read(world.output("bytes.txt")).unwrap().len(), 5001, "the file has the bytes themselves");
}

#[test]
fn a_process_gets_a_clean_environment_and_runs_in_the_workspace() {
    let world = World::new();
    let mut task = step("task", sh("env | sort; pwd -P"), &[]);
    task.env = vec![
        swarmc_plan::EnvValue::Secret("TOKEN".to_owned()),
        swarmc_plan::EnvValue::Pass("ABSENT".to_owned()),
        swarmc_plan::EnvValue::Set {
            name: "GREETING".to_owned(),
            value: template(vec![Segment::Text("hel\0lo".to_owned())]),
        },
    ];
    let outcome = world.start(&plan(vec![task]));
    let lines: Vec<&str> = outcome.values[0].lines().filter(|line| !line.starts_with("_=")).collect();
    let names: Vec<&str> = lines.iter().filter_map(|line| line.split_once('=').map(|(name, _)| name)).collect();
    let ours = ["SWARM_ATTEMPT", "SWARM_INSTANCE", "SWARM_ITERATION", "SWARM_RUN", "SWARM_TASK"];
    assert_eq!(names, [&["GREETING", "LC_ALL", "PATH", "PWD"][..], &ours[..], &["TOKEN"][..]].concat());
    assert!(lines.contains(&"GREETING=hel\u{fffd}lo") && lines.contains(&"TOKEN=s3cret"));
    assert_eq!(*lines.last().unwrap(), world.workspace().canonicalize().unwrap().to_str().unwrap());
}

#[test]
fn a_failed_command_keeps_its_text_its_exit_code_and_the_tail_of_its_stderr() {
    let world = World::new();
    let outcome = world.start(&plan(vec![step("task", sh("echo partial; echo broken >&2; exit 7"), &[])]));
    assert_eq!(outcome.ended, Ended::Failed);
    assert_eq!(outcome.failed.iter().map(|step| &*step.name).collect::<Vec<_>>(), ["task"]);
    let end = &world.ends()[0].1;
    assert_eq!((&end.failure, end.exit, end.stderr.as_str()), (&Some(Failure::Exit), Some(7), "broken\n"));
    assert_eq!(end.output, Some(Content::Text("partial\nbroken".to_owned())));
}

#[test]
fn a_missing_program_and_a_missing_secret_say_what_is_missing() {
    let world = World::new();
    let mut secret = step("secret", argv(&["true"]), &[]);
    secret.env = vec![swarmc_plan::EnvValue::Secret("NOPE".to_owned())];
    world.start(&plan(vec![step("program", argv(&["./no-such-program"]), &[]), secret]));
    let messages: BTreeMap<String, Option<Failure>> =
        world.ends().into_iter().map(|(name, outcome)| (name, outcome.failure)).collect();
    let spawn = |message: &str| Some(Failure::Spawn { message: message.to_owned() });
    assert_eq!(messages["program"], spawn("`./no-such-program`: not found"));
    assert_eq!(messages["secret"], spawn("the secret variable `NOPE` is not set"));
}

#[test]
fn timeouts_end_the_whole_group() {
    let world = World::new();
    let mut slow = step("slow", sh("sleep 100 & sleep 100; echo never"), &[]);
    slow.timeout_ms = Some(100);
    let mut idle = step("idle", sh("echo one; sleep 100"), &[]);
    idle.idle_ms = Some(100);
    let outcome = world.start(&plan(vec![slow, idle]));
    assert_eq!(outcome.ended, Ended::Failed);
    let failures: BTreeMap<String, Option<Failure>> =
        world.ends().into_iter().map(|(name, outcome)| (name, outcome.failure)).collect();
    assert_eq!(failures["slow"], Some(Failure::Timeout { after_ms: 100 }));
    assert_eq!(failures["idle"], Some(Failure::Idle { after_ms: 100 }));
    assert!(
        orphan_processes::end_orphans(&outcome.run, std::iter::empty(), &BTreeSet::new()).is_none(),
        "a process outlived the run"
    );
}

#[test]
fn what_holds_the_pipe_after_its_parent_exited_is_ended() {
    let world = World::new();
    let outcome = world.start(&plan(vec![step("task", sh("sleep 100 & echo done"), &[])]));
    assert_eq!((outcome.ended, outcome.values[0].as_str()), (Ended::Succeeded, "done"));
    assert!(
        orphan_processes::end_orphans(&outcome.run, std::iter::empty(), &BTreeSet::new()).is_none(),
        "a process outlived the run"
    );
}

#[test]
fn a_large_input_meets_a_large_output_without_a_deadlock() {
    let world = World::new();
    let mut copy = step("copy", argv(&["cat"]), &["large"]);
    copy.stdin = Some(template(vec![output_of("large", false), output_of("large", false)]));
    copy.output.max_bytes = 4_000_000;
    let mut large = step("large", sh("head -c 1500000 /dev/zero | tr '\\0' x"), &[]);
    large.output.max_bytes = 2_000_000;
    let mut deaf = step("deaf", argv(&["true"]), &["large"]);
    deaf.stdin = Some(template(vec![output_of("large", false)]));
    let outcome = world.start(&plan(vec![large, deaf, copy]));
    assert_eq!((outcome.ended, outcome.values[0].len()), (Ended::Succeeded, 3_000_000));
}

#[test]
fn a_check_fails_the_attempt_and_retry_repeats_it() {
    let world = World::new();
    let mut task = step("task", sh("echo x >> count; wc -l < count"), &[]);
    task.checks = vec![Command::Shell("echo checked; test $(wc -l < count) -ge 3".to_owned())];
    task.retry = Retry { times: 3, backoff_ms: 1, max_backoff_ms: 2, fresh: false };
    let outcome = world.start(&plan(vec![task]));
    assert_eq!((outcome.ended, outcome.values[0].trim()), (Ended::Succeeded, "3"));
    let failures: Vec<bool> = world.ends().iter().map(|(_, outcome)| outcome.failure.is_some()).collect();
    assert_eq!(failures, [true, true, false]);
    let check = "echo checked; test $(wc -l < count) -ge 3".to_owned();
    assert_eq!(world.ends()[0].1.failure, Some(Failure::Check { line: check, exit: Some(1) }));
    assert_eq!(world.read(world.in_run("logs/task.2.out")), "2\nchecked\n");
}

#[test]
fn rounds_overwrite_the_output_and_until_ends_them() {
    let world = World::new();
    let mut plan = plan(vec![step("task", sh("echo x >> count; echo round $(wc -l < count)"), &[])]);
    plan.pipelines[0].iteration = Iteration {
        max: 5,
        until: vec![
            Expression { source: "output.missing.field".to_owned(), reads: None, origin: origin() },
            Expression { source: "output.task == 'round 3'".to_owned(), reads: None, origin: origin() },
        ],
        handles: Vec::new(),
        on_failure: RoundFailure::Stop,
        exhausted: Exhausted::Fail,
    };
    let outcome = world.start(&plan);
    assert_eq!((outcome.ended, outcome.values[0].as_str()), (Ended::Succeeded, "round 3"));
    assert_eq!(world.read(world.output("task.txt")), "round 3\n");
    assert_eq!(world.read(world.in_run("logs/task.2.1.out")), "round 2\n");
}

#[test]
fn instances_have_folders_of_their_own() {
    let world = World::new();
    let mut plan = plan(vec![step("task", sh("echo $SWARM_INSTANCE"), &[])]);
    plan.pipelines[0].parallelism = 2;
    let outcome = world.start(&plan);
    assert_eq!(outcome.values, ["1", "2"]);
    assert_eq!(world.read(world.output("main.2/task.txt")), "2\n");
}

#[test]
fn a_when_that_cannot_be_judged_fails_the_step_with_its_place() {
    let world = World::new();
    let mut guarded = step("guarded", argv(&["true"]), &[]);
    guarded.when = Some(Expression { source: "output.absent.says == 1".to_owned(), reads: None, origin: origin() });
    let mut skipped = step("skipped", argv(&["true"]), &[]);
    skipped.when = Some(Expression { source: "1 > 2".to_owned(), reads: None, origin: origin() });
    let outcome = world.start(&plan(vec![guarded, skipped]));
    assert_eq!(outcome.ended, Ended::Failed);
    let judged: BTreeMap<String, Option<String>> = world
        .records()
        .into_iter()
        .filter_map(|record| match record.event {
            Event::ConditionJudged { step, error, .. } => Some((step.name.to_string(), error)),
            _ => None,
        })
        .collect();
    assert!(judged["guarded"].as_ref().unwrap().starts_with("flow.kdl:1:1: "));
    assert_eq!(judged["skipped"], None);
}

#[test]
fn one_task_runs_alone_and_its_neighbours_are_the_placeholder() {
    let world = World::new();
    let mut coder = step("coder", argv(&["cat"]), &["planner"]);
    coder.stdin = Some(template(vec![output_of("planner", true)]));
    let plan = plan(vec![step("planner", argv(&["touch", "ran"]), &[]), coder]);
    let options = Options { task: Some("coder".to_owned()), ..world.options() };
    let outcome = world.start_with(&plan, options, Control::new()).unwrap();
    assert_eq!(outcome.values, ["(No output available from task \"planner\")"]);
    assert!(!world.workspace().join("ran").exists());
}

#[test]
fn a_stopped_run_ends_its_processes_and_goes_on_when_resumed() {
    let world = World::new();
    let first = step("first", sh("echo x >> first; echo kept"), &[]);
    let second = step("second", sh("echo x >> second; test -e go || sleep 100; cat go"), &["first"]);
    let plan = plan(vec![first, second]);
    let control = Control::new();
    let outcome = std::thread::scope(|scope| {
        let run = scope.spawn(|| world.start_with(&plan, world.options(), control.clone()).unwrap());
        // The process has lived for a moment when its record comes.
        loop {
            if let Seen::Record(record) = world.events.lock().unwrap().recv().unwrap()
                && matches!(&record.event, Event::ProcessStarted { step, .. } if &*step.name == "second")
            {
                break;
            }
        }
        let folder = world.home().find("last").unwrap();
        assert!(folder.is_running());
        assert!(matches!(world.resume(&folder.id), Err(RunError::Busy { .. })));
        crate::io::socket::request_stop(&folder).unwrap();
        run.join().unwrap()
    });
    assert_eq!(outcome.ended, Ended::Stopped);
    assert_eq!((world.home().find("last").unwrap().is_running(), world.state().final_status()), (false, None));
    std::fs::write(world.workspace().join("go"), "gone on").unwrap();
    let resumed = world.resume(&outcome.run).unwrap();
    assert_eq!((resumed.ended, resumed.values), (Ended::Succeeded, vec!["gone on".to_owned()]));
    assert_eq!(world.read(world.workspace().join("first")), "x\n", "what finished does not run again");
    assert_eq!(world.read(world.workspace().join("second")), "x\nx\n");
    assert!(matches!(world.resume("last"), Err(RunError::Ended { status: RunStatus::Succeeded, .. })));
    assert_eq!(world.state().progress(), crate::Progress { done: 2, total: 2 });
}

#[test]
fn a_run_can_be_resumed_from_any_prefix_of_its_journal() {
    let world = World::new();
    let plan = plan(vec![
        step("a", sh("echo a >> ran; echo a"), &[]),
        step("b", sh("echo b >> ran; echo b"), &["a"]),
        step("c", sh("echo c >> ran; echo c"), &["b"]),
    ]);
    let outcome = world.start(&plan);
    let folder = world.home().find(&outcome.run).unwrap();
    let journal = std::fs::read(folder.journal_path()).unwrap();
    let ends: Vec<usize> =
        journal.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1).collect();
    for (records, &end) in ends.iter().enumerate().map(|(at, end)| (at + 1, end)).filter(|(at, _)| *at < ends.len()) {
        std::fs::remove_file(world.workspace().join("ran")).unwrap_or_default();
        // A runner that was killed may not have written the outputs, and a torn line follows what is whole.
        std::fs::remove_dir_all(&folder.outputs).unwrap_or_default();
        std::fs::write(folder.journal_path(), &journal[..end + 5]).unwrap();
        let finished: Vec<String> = world.ends().into_iter().map(|(name, _)| name).collect();
        let resumed = world.resume(&outcome.run).unwrap();
        assert_eq!((resumed.ended, &resumed.values), (Ended::Succeeded, &outcome.values), "after {records} records");
        let ran = std::fs::read_to_string(world.workspace().join("ran")).unwrap_or_default();
        let expected: String = ["a", "b", "c"]
            .iter()
            .filter(|name| !finished.contains(&(**name).to_owned()))
            .map(|name| format!("{name}\n"))
            .collect();
        assert_eq!(ran, expected, "after {records} records");
        assert!(["a", "b", "c"].iter().all(|name| folder.outputs.join(format!("{name}.txt")).exists()));
        assert!(world.notices().iter().any(|notice| notice.contains("5 damaged bytes")));
    }
}

#[test]
fn a_clock_that_is_put_back_delays_nothing() {
    let world = World::new();
    let mut task = step("task", sh("echo x >> count; test $(wc -l < count) = 2"), &[]);
    task.retry = Retry { times: 1, backoff_ms: 20, max_backoff_ms: 20, fresh: false };
    let outcome = world.start(&plan(vec![task]));
    let folder = world.home().find(&outcome.run).unwrap();
    let records = folder.read_records().unwrap();
    // The first attempt ended in an hour from now, as this clock has it.
    std::fs::remove_file(folder.journal_path()).unwrap();
    let mut journal = Box::new(FileJournal::create(&folder.journal_path(), |error| panic!("{error}")).unwrap());
    for record in &records[..3] {
        journal.append(&Record { at: record.at + 3_600_000, ..record.clone() });
    }
    journal.close().unwrap();
    std::fs::write(world.workspace().join("count"), "x\n").unwrap();
    let started = Instant::now();
    assert_eq!(world.resume(&outcome.run).unwrap().ended, Ended::Succeeded);
    assert!(started.elapsed() < Duration::from_secs(60));
    assert!(folder.read_records().unwrap().is_sorted_by_key(|record| record.at));
}

#[test]
fn a_damaged_journal_and_a_changed_plan_are_refused_untouched() {
    let world = World::new();
    let outcome = world.start(&plan(vec![step("a", argv(&["false"]), &[])]));
    let folder = world.home().find(&outcome.run).unwrap();
    let whole = std::fs::read(folder.journal_path()).unwrap();
    let mut damaged = whole.clone();
    let second = damaged.iter().position(|&byte| byte == b'\n').unwrap() + 1;
    damaged[second + 30] ^= 1;
    std::fs::write(folder.journal_path(), &damaged).unwrap();
    let error = world.resume(&outcome.run).unwrap_err().to_string();
    assert!(error.contains(&format!("damaged at line 2 (byte {second})")), "{error}");
    assert_eq!(std::fs::read(folder.journal_path()).unwrap(), damaged);
    std::fs::write(folder.journal_path(), &whole[..second]).unwrap();
    std::fs::write(folder.plan_path(), world.read(folder.plan_path()).replace("false", "true")).unwrap();
    assert!(matches!(world.resume(&outcome.run), Err(RunError::Plan { .. })));
}

#[test]
fn the_digest_of_a_plan_is_that_of_its_text_however_it_is_written() {
    let world = World::new();
    let plan = plan(vec![step("only", argv(&["true"]), &[])]);
    // As another build may write it.
    let text = swarmc_plan::write_plan(&plan);
    assert_ne!(text, swarmc_plan::encode_plan(&plan));
    let observer = Box::new(Watcher(world.sender.clone()));
    let outcome = start_in(&world.home(), (&plan, &text), world.options(), Control::new(), observer, None).unwrap();
    let folder = world.home().find(&outcome.run).unwrap();
    let records = folder.read_records().unwrap();
    let Event::RunStarted { plan: digest, .. } = &records[0].event else { panic!("it starts") };
    assert_eq!(*digest, digest_of(&text));
    assert_eq!(folder.plan_of(&records).unwrap().0, text);
}

#[test]
fn a_run_whose_journal_is_full_stops_with_the_reason_and_ends_its_processes() {
    let world = World::new();
    let plan = plan(vec![
        step("sleeper", sh("sleep 100"), &[]),
        step("first", sh("echo one"), &[]),
        step("second", sh("echo two"), &["first"]),
    ]);
    // Room for the run's start and the first two attempts' starts.
    let (journal, records) = crate::io::journal::MemoryJournal::new(3);
    let (folder, outcome) = world.start_in(&plan, Box::new(journal));
    let error = outcome.unwrap_err();
    let expected = format!(
        "run `{0}` stopped: the journal cannot be written: no storage space; once that is fixed, type `swarmc resume {0}`",
        folder.id
    );
    assert_eq!(error.to_string(), expected);
    assert_eq!(records.lock().unwrap().len(), 3);
    assert!(
        orphan_processes::end_orphans(&folder.id, std::iter::empty(), &BTreeSet::new()).is_none(),
        "a process outlived the run"
    );
}

/// Never gets anything done while its step runs.
struct Stuck(Receiver<()>);

impl Observer for Stuck {
    fn recorded(&mut self, _: &Record) {
        let _ = self.0.recv();
    }
    fn output(&mut self, _: &StepId, _: u32, _: Stream, _: &[u8]) {}
    fn notice(&mut self, _: &str) {}
}

#[test]
fn an_observer_that_is_stuck_holds_nothing_up() {
    let world = World::new();
    let (stuck, receiver) = channel();
    let plan =
        plan(vec![step("much", sh("head -c 50000000 /dev/zero"), &[]), step("after", sh("touch done"), &["much"])]);
    let (home, options) = (world.home(), world.options());
    std::thread::scope(|scope| {
        let run = scope.spawn(|| start_run(&home, &plan, options, Control::new(), Box::new(Stuck(receiver))).unwrap());
        let finished = |record: &Record| matches!(record.event, Event::RunFinished { .. });
        // The whole run goes through to the end of its journal, although the observer has not seen its first record.
        while !world.home().find("last").is_ok_and(|run| run.read_records().is_ok_and(|all| all.iter().any(finished))) {
            std::thread::yield_now();
        }
        assert!(world.workspace().join("done").exists());
        drop(stuck);
        assert_eq!(run.join().unwrap().ended, Ended::Succeeded);
    });
}

#[test]
fn statuses_are_readable_in_conditions_and_a_handled_failure_fails_nothing() {
    let world = World::new();
    let mut report = step("report", argv(&["cat"]), &["flaky"]);
    report.needs[0].when = When::Any;
    report.needs[0].effect = Effect::Handles;
    report.when = Some(Expression {
        source: "status.flaky == 'failed' and exit.flaky == 3 and error.flaky == 'oh\\n'".to_owned(),
        reads: None,
        origin: origin(),
    });
    report.stdin = Some(template(vec![Segment::Directive(Directive {
        kind: DirectiveKind::Status,
        name: Some("flaky".to_owned()),
        fields: Vec::new(),
        filters: Vec::new(),
        wrap: false,
        origin: origin(),
    })]));
    let outcome = world.start(&plan(vec![step("flaky", sh("echo oh >&2; exit 3"), &[]), report]));
    assert_eq!((outcome.ended, outcome.values[0].as_str()), (Ended::Succeeded, Status::Failed.as_str()));
}

/// A journal whose disk is slow with some events: it waits until something has happened too early, or for a while.
struct Slow {
    journal: crate::io::journal::MemoryJournal,
    slow: fn(&Event) -> bool,
    waits: bool,
    happened: Box<dyn FnMut() -> bool + Send>,
    too_early: Arc<AtomicBool>,
}

impl Slow {
    /// The journal, and whether `happened` was true while an event that is `slow` was not written yet.
    fn new(slow: fn(&Event) -> bool, happened: impl FnMut() -> bool + Send + 'static) -> (Slow, Arc<AtomicBool>) {
        let (journal, _) = crate::io::journal::MemoryJournal::new(usize::MAX);
        let too_early = Arc::new(AtomicBool::new(false));
        let slow =
            Slow { journal, slow, waits: false, happened: Box::new(happened), too_early: Arc::clone(&too_early) };
        (slow, too_early)
    }
}

impl Journal for Slow {
    fn append(&mut self, record: &Record) {
        self.waits |= (self.slow)(&record.event);
        self.journal.append(record);
    }

    fn flush(&mut self) -> std::io::Result<()> {
        let deadline = Instant::now() + Duration::from_millis(500);
        while self.waits && Instant::now() < deadline {
            self.waits = !(self.happened)();
            self.too_early.fetch_or(!self.waits, Ordering::SeqCst);
            std::thread::yield_now();
        }
        self.waits = false;
        self.journal.flush()
    }

    fn durability(&self) -> Arc<crate::io::journal::Durability> {
        self.journal.durability()
    }

    fn close(self: Box<Self>) -> std::io::Result<()> {
        Box::new(self.journal).close()
    }
}

#[test]
fn an_envelope_is_written_before_the_first_turn_that_reads_it_begins() {
    let world = World::new();
    let line = r#"{"swarm": "send_handoff", "to": "reader", "message": "Read this"}"#;
    let mut reader = step("reader", sh("touch begun; cat"), &[]);
    reader.stdin = Some(crate::core::samples::reading(DirectiveKind::Inbox, ""));
    let writer = vec![("writer", answers::script(vec![answers::said(line, None, None)]))];
    let mut plan = answers::with_agents(vec![answers::ask("writer", "writer", &[]), reader], writer);
    plan.pipelines[0].edges = vec![crate::core::samples::edge("writer -> reader")];
    let begun = world.workspace().join("begun");
    let found = begun.clone();
    let (journal, too_early) = Slow::new(|event| matches!(event, Event::Sent { .. }), move || found.exists());
    let outcome = world.start_in(&plan, Box::new(journal)).1.unwrap();
    assert!(outcome.values[0].contains("Read this") && begun.exists(), "{outcome:?}");
    assert!(!too_early.load(Ordering::SeqCst), "its process began while the envelope was nowhere");
}

#[test]
fn a_record_is_shown_after_it_is_written() {
    let mut world = World::new();
    let (sender, shown) = channel();
    world.sender = sender;
    let ended = |event: &Event| matches!(event, Event::AttemptEnded { .. });
    let is_shown = move || shown.try_iter().any(|seen| matches!(seen, Seen::Record(record) if ended(&record.event)));
    let (journal, too_early) = Slow::new(ended, is_shown);
    let plan = plan(vec![step("only", argv(&["true"]), &[])]);
    assert_eq!(world.start_in(&plan, Box::new(journal)).1.unwrap().ended, Ended::Succeeded);
    assert!(!too_early.load(Ordering::SeqCst), "a person would act on what the journal does not have");
}
