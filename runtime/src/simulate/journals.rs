//! Records of every version stay readable: a journal that a released build wrote, as its lines carried it.
//!
//! A line is never edited here. A new version adds a journal; a field that is gained must be optional.

use super::build::{graph, repeated};
use crate::event::{Event, Record, RunStatus, Status};
use crate::{End, State};

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
            process = state.open().next().unwrap().process;
        }
    }
    assert_eq!(process.map(|process| (process.group, process.started)), Some((42, 7)));
    let status = |name: &str| state.read(name, 1, 1).unwrap().status.unwrap();
    assert_eq!(["a", "b", "c"].map(status), [Status::Succeeded, Status::Skipped, Status::Skipped]);
    assert_eq!((state.end(1), state.finished()), (Some(End::Succeeded), Some(RunStatus::Succeeded)));
}

#[test]
fn fields_of_later_builds_are_ignored() {
    let line = r#"{"seq":1,"at":5,"event":"stop_requested","by":"somebody"}"#;
    let record: Record = serde_json::from_str(line).unwrap();
    assert_eq!(record.event, Event::StopRequested);
}
