//! Records of every version stay readable: a journal line by line, and the journals and plans of real runs in
//! `runtime/tests/journals`.
//!
//! Nothing of them is ever edited. A new version adds journals; a field that is gained must be optional.

use std::path::Path;

use super::properties::check_cuts;
use super::run::Run;
use super::world::World;
use crate::core::samples::{graph, plan as build_plan, repeated};
use crate::io::journal;
use crate::types::digest::digest_bytes;
use crate::types::event::{Event, LARGEST, Record, RunStatus, Status};
use crate::{End, State, decide_commands};

const VERSION_1: &str = r#"
{"seq":1,"at":1000,"event":"run_started","version":1,"run":"r1","plan":"sha256:00","pipeline":"main","params":{"goal":"x"},"stdin":{"text":"in"}}
{"seq":2,"at":1001,"event":"attempt_started","step":{"name":"a","iteration":1,"instance":1},"attempt":1}
{"seq":3,"at":1002,"event":"process_started","step":{"name":"a","iteration":1,"instance":1},"attempt":1,"process":{"group":42,"started":7}}
{"seq":4,"at":1003,"event":"attempt_ended","step":{"name":"a","iteration":1,"instance":1},"attempt":1,"failure":{"cause":"exit"},"output":{"text":"half"},"exit":2,"stderr":"no such file"}
{"seq":5,"at":1004,"event":"attempt_started","step":{"name":"a","iteration":1,"instance":1},"attempt":2}
{"seq":6,"at":1005,"event":"stop_requested"}
{"seq":7,"at":1006,"event":"attempt_ended","step":{"name":"a","iteration":1,"instance":1},"attempt":2,"failure":{"cause":"cancelled"}}
{"seq":8,"at":1007,"event":"run_resumed"}
{"seq":9,"at":1008,"event":"attempt_started","step":{"name":"a","iteration":1,"instance":1},"attempt":2}
{"seq":10,"at":1009,"event":"attempt_ended","step":{"name":"a","iteration":1,"instance":1},"attempt":2,"output":{"artifact":{"digest":"00ff","bytes":4096}},"exit":0,"usage":{"input":10,"output":2,"cache_read":0,"cache_write":0},"session":"s1"}
{"seq":11,"at":1010,"event":"condition_judged","step":{"name":"b","iteration":1,"instance":1},"holds":false}
{"seq":12,"at":1011,"event":"step_skipped","step":{"name":"b","iteration":1,"instance":1},"reason":{"because":"when"}}
{"seq":13,"at":1012,"event":"step_skipped","step":{"name":"c","iteration":1,"instance":1},"reason":{"because":"need","step":"b","status":"skipped"}}
{"seq":14,"at":1013,"event":"round_judged","instance":1,"iteration":1,"holds":true}
{"seq":15,"at":1014,"event":"run_finished","status":"succeeded"}
"#;

#[test]
fn a_journal_of_version_1_is_read_folded_and_written_as_it_was() {
    let mut state = State::new(graph(repeated("a retry=1 \n b when < a \n c < b", 3)));
    let mut process = None;
    for line in VERSION_1.trim().lines() {
        let record: Record = serde_json::from_str(line).unwrap();
        assert_eq!(serde_json::to_string(&record).unwrap(), line);
        state.apply(&record);
        if let Event::ProcessStarted { .. } = record.event {
            process = state.open_steps().next().unwrap().processes.pop();
        }
    }
    assert_eq!(process.map(|process| (process.group, process.started)), Some((42, 7)));
    let status = |name: &str| state.read_step(name, 1, 1).unwrap().status.unwrap();
    assert_eq!(["a", "b", "c"].map(status), [Status::Succeeded, Status::Skipped, Status::Skipped]);
    assert_eq!((state.instance_end(1), state.final_status()), (Some(End::Succeeded), Some(RunStatus::Succeeded)));
}

#[test]
fn of_very_many_processes_of_an_attempt_the_first_and_the_latest_are_remembered() {
    let mut state = State::new(graph(repeated("a", 1)));
    let lines = VERSION_1.trim().lines().take_while(|line| !line.contains("process_started"));
    let before: Vec<Record> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
    before.iter().for_each(|record| state.apply(record));
    let step = state.open_steps().next().unwrap().step;
    for group in 1..=100 {
        let process = crate::types::event::Process { group, started: 1, boot: None, host: None };
        let event = Event::ProcessStarted { step: step.clone(), attempt: 1, process };
        state.apply(&Record { seq: 100 + group as u64, at: 2000, event });
    }
    let groups: Vec<i32> = state.open_steps().next().unwrap().processes.iter().map(|process| process.group).collect();
    assert_eq!((groups.len(), groups[0], groups[1], groups[63]), (64, 1, 38, 100));
}

#[test]
fn any_prefix_of_a_real_journal_is_a_state_that_decide_accepts_and_a_run_that_ends() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/journals");
    let mut journals = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(path.join("plan.json")).unwrap();
        let plan = swarmc_plan::read_plan(&text).unwrap();
        let lines = std::fs::read_to_string(path.join("journal.jsonl")).unwrap();
        assert!(lines.lines().all(|line| line.len() < LARGEST));
        let recovered = journal::read_journal(&path.join("journal.jsonl")).unwrap();
        assert_eq!((recovered.torn, recovered.records.len()), (0, lines.lines().count()));
        let Event::RunStarted { plan: expected, pipeline, .. } = &recovered.records[0].event else {
            panic!("{}: it begins with its start", path.display());
        };
        assert_eq!(*expected, format!("sha256:{}", digest_bytes(text.as_bytes())), "the plan is the one that ran");
        let pipeline = plan.pipeline(pipeline).unwrap();
        let plan = build_plan(pipeline.clone());
        for length in 0..recovered.records.len() {
            let records = &recovered.records[..length];
            let mut state = State::new(graph(pipeline.clone()));
            records.iter().for_each(|record| state.apply(record));
            assert_eq!(state.final_status(), None, "{}: {length} records", path.display());
            decide_commands(&mut state, 0);
            decide_commands(&mut state, u64::MAX);
            if length > 0 {
                for lazy in [false, true] {
                    let run = Run::resume(&plan, World { seed: length as u64, lazy, kind: false }, records).go();
                    assert!(run.finished().is_some(), "{}: {length} records", path.display());
                }
            }
        }
        check_cuts(&graph(pipeline.clone()), &recovered.records);
        let mut state = State::new(graph(pipeline.clone()));
        recovered.records.iter().for_each(|record| state.apply(record));
        let Some(Record { event: Event::RunFinished { status }, .. }) = recovered.records.last() else {
            panic!("{}: it ends with its end", path.display());
        };
        assert_eq!(state.final_status(), Some(*status));
        assert_eq!(decide_commands(&mut state, u64::MAX), []);
        journals += 1;
    }
    assert_eq!(journals, 6);
}

#[test]
fn fields_of_later_builds_are_ignored() {
    let line = r#"{"seq":1,"at":5,"event":"stop_requested","by":"person"}"#;
    let record: Record = serde_json::from_str(line).unwrap();
    assert_eq!(record.event, Event::StopRequested);
}
