//! Tests of time in a rehearsal: it passes only where answers take time, limits act as in a run, and no test waits.

use serde_json::Map;
use swarmc_plan::{Command as Line, Step};

use super::super::*;
use crate::core::samples::{gate, line, pipeline, plan};
use crate::types::event::Record;

/// Rehearses steps whose commands take so many milliseconds.
fn play(steps: Vec<Step>, takes: impl Fn(&StepId, u32) -> u64 + Sync) -> Rehearsal {
    let plan = plan(swarmc_plan::Pipeline { steps, ..pipeline("") });
    let mut answer = |turn: &Turn<'_>| {
        let said = match &turn.asks {
            Asks::Person { options, .. } => Answer::Choice { choice: options[0].clone(), fields: Map::new() },
            _ => Answer::Text("done".to_owned()),
        };
        Answer::After(takes(turn.step, turn.attempt), Box::new(said))
    };
    rehearse(&plan, &Options::default(), &mut answer).unwrap()
}

/// The ends of steps, each with its time.
fn ends(rehearsal: &Rehearsal) -> String {
    let end = |record: &Record| match &record.event {
        Event::AttemptEnded { step, attempt, outcome } => {
            let word = outcome.failure.as_ref().map_or("done".to_owned(), ToString::to_string);
            Some(format!("{} {} {attempt} {word}", record.at, step.name))
        }
        Event::GateAnswered { step, choice, .. } => {
            Some(format!("{} {} {}", record.at, step.name, choice.as_deref().unwrap_or("fail")))
        }
        _ => None,
    };
    rehearsal.records.iter().filter_map(end).collect::<Vec<_>>().join(", ")
}

fn limited(head: &str, timeout: Option<u64>, idle: Option<u64>) -> Step {
    Step { timeout_ms: timeout, idle_ms: idle, ..line(head) }
}

#[test]
fn who_is_quicker_ends_first_and_what_waits_begins_then() {
    let steps = vec![line("slow"), line("quick"), line("after < quick"), line("last < slow")];
    let told = play(steps, |step, _| if &*step.name == "slow" { 100 } else { 10 });
    assert_eq!(ends(&told), "10 quick 1 done, 20 after 1 done, 100 slow 1 done, 110 last 1 done");
}

#[test]
fn what_takes_too_long_is_ended_and_tried_again() {
    let steps = vec![limited("a retry=1 backoff=50", Some(100), None), line("b < a")];
    let told = play(steps, |step, attempt| if &*step.name == "a" && attempt == 1 { 101 } else { 100 });
    assert_eq!(ends(&told), "100 a 1 it took longer than 100ms, 250 a 2 done, 350 b 1 done");
    let told = play(vec![limited("a", Some(100), Some(30))], |_, _| 1000);
    assert_eq!(ends(&told), "30 a 1 it printed nothing for 30ms");
    assert_eq!(told.status, RunStatus::Failed);
}

#[test]
fn an_answer_comes_before_the_gate_gives_up_or_not_at_all() {
    let steps = || vec![gate("g", &["yes", "no"], Some(("no", 1000))), line("a"), line("b < g")];
    assert_eq!(
        ends(&play(steps(), |step, _| if &*step.name == "g" { 999 } else { 0 })),
        "0 a 1 done, 999 g yes, 999 b 1 done"
    );
    assert_eq!(
        ends(&play(steps(), |step, _| if &*step.name == "g" { 1001 } else { 0 })),
        "0 a 1 done, 1000 g no, 1000 b 1 done"
    );
    assert_eq!(ends(&play(steps(), |_, _| u64::MAX / 4)).split(", ").next(), Some("1000 g no"));
}

#[test]
fn a_stop_ends_what_would_have_gone_on() {
    let steps = vec![line("long"), gate("g", &["yes"], None), line("short"), line("halt stop < short")];
    let told = play(steps, |step, _| if &*step.name == "short" { 5 } else { 1_000_000 });
    assert!(ends(&told).starts_with("5 short 1 done, 5 halt 1 done"), "{}", ends(&told));
    assert!(told.records.iter().all(|record| record.at <= 5), "{}", ends(&told));
    assert_eq!(told.status, RunStatus::Succeeded);
}

#[test]
fn checks_are_asked_in_order_until_one_fails() {
    let check = |line: &str| Line::Shell(line.to_owned());
    let checked = Step { checks: vec![check("one"), check("two"), check("three")], ..line("a retry=1") };
    let plan = plan(swarmc_plan::Pipeline { steps: vec![checked], ..pipeline("") });
    let mut asked = Vec::new();
    let mut answer = |turn: &Turn<'_>| match &turn.asks {
        Asks::Check { command: Line::Shell(line), number } => {
            asked.push(format!("{line} {number} {}", turn.attempt));
            match (*number, turn.attempt) {
                (2, 1) => Answer::Failure { exit: 3, output: "told".to_owned(), stderr: String::new() },
                _ => Answer::Text(String::new()),
            }
        }
        _ => Answer::Text("done".to_owned()),
    };
    let told = rehearse(&plan, &Options::default(), &mut answer).unwrap();
    assert_eq!((told.status, told.launches), (RunStatus::Succeeded, 7));
    assert_eq!(asked, ["one 1 1", "two 2 1", "one 1 2", "two 2 2", "three 3 2"]);
    let first = told.records.iter().find_map(|record| match &record.event {
        Event::AttemptEnded { outcome, .. } => Some(outcome.clone()),
        _ => None,
    });
    let first = first.unwrap();
    assert_eq!(first.failure, Some(Failure::Check { line: "two".to_owned(), exit: Some(3) }));
    assert_eq!((first.stderr.as_str(), first.output), ("told", Some(Content::Text("done".to_owned()))));
}

#[test]
fn what_was_ended_before_it_answered_is_not_checked() {
    let checks = vec![Line::Shell("one".to_owned())];
    let checked = Step { checks, ..limited("a retry=1", Some(100), None) };
    let plan = plan(swarmc_plan::Pipeline { steps: vec![checked], ..pipeline("") });
    let mut asked = Vec::new();
    let mut answer = |turn: &Turn<'_>| {
        asked.push((turn.attempt, matches!(turn.asks, Asks::Check { .. })));
        let delay = if turn.attempt == 1 { 101 } else { 0 };
        Answer::After(delay, Box::new(Answer::Text("done".to_owned())))
    };
    let told = rehearse(&plan, &Options::default(), &mut answer).unwrap();
    assert_eq!((told.status, told.launches), (RunStatus::Succeeded, 3));
    assert_eq!(asked, [(1, false), (2, false), (2, true)]);
}
