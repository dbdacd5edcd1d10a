//! Tables for steps that repeat themselves: what happened, and what the core then orders.
//!
//! Events besides those of the other tables are `STEP says N TEXT` (its attempt ends well), `STEP changes N TEXT` (what
//! it leaves as a diff), `STEP checks N TEXT` (its attempt fails a check, with these words), `STEP asked N` (a request
//! about its attempt), and `STEP allowed N`, `STEP always N` or `STEP denied N`.

use swarmc_plan::Pipeline;

use super::tables::{commands, play};
use crate::core::samples;
use crate::core::samples::{edge, pipeline};
use crate::types::approval::{Choice, Request, RequestKind, Verdict};
use crate::types::artifact::{ArtifactKind, ArtifactMeta};
use crate::types::event::{AnsweredBy, Content, Event, Failure, Outcome, StepId};

pub(super) fn event(step: StepId, words: &[&str]) -> Event {
    let attempt = words[1].parse().unwrap();
    let text = words.get(2).copied().unwrap_or_default().to_owned();
    let answer = |choice| {
        let verdict = Verdict { id: attempt, choice, by: AnsweredBy::Person, because: None, arguments: None };
        Event::ApprovalAnswered { step: step.clone(), attempt, verdict }
    };
    match words[0] {
        "says" => {
            let outcome = Outcome { output: Some(Content::Text(text)), ..Outcome::default() };
            Event::AttemptEnded { step, attempt, outcome }
        }
        "changes" => {
            let artifact = ArtifactMeta::new(ArtifactKind::Diff, &text, Content::Text(text.clone()));
            Event::ArtifactStored { step, attempt, artifact: Box::new(artifact) }
        }
        "checks" => {
            let failure = Some(Failure::Check { line: "cargo test".to_owned(), exit: Some(101) });
            let outcome = Outcome { failure, stderr: text, ..Outcome::default() };
            Event::AttemptEnded { step, attempt, outcome }
        }
        "asked" => {
            let evidence = Content::Text(String::new());
            let wants = RequestKind::GoOn { same: crate::types::approval::Same::Output, times: 3, evidence };
            Event::ApprovalAsked { step, attempt, request: Request { id: attempt, agent: "anyone".into(), wants } }
        }
        "allowed" => answer(Choice::Allow),
        "always" => answer(Choice::Always),
        "denied" => answer(Choice::Deny),
        word => panic!("unknown event `{word}`"),
    }
}

fn pair() -> Pipeline {
    Pipeline { edges: vec![edge("a -> b")], ..pipeline("a prompt\n b prompt stall=3") }
}

fn check(pipeline: Pipeline, events: &str, expected: &str) {
    assert_eq!(commands(&mut play(pipeline, events).1), expected, "after {events:?}");
}

/// The turns of `b`, each read from the one before it on, whose attempts end as `ends` says.
fn turns(ends: &[&str]) -> String {
    let turn = |(number, end): (usize, &&str)| {
        let number = number + 1;
        let ends: Vec<String> = end.split('+').map(|end| end.replace('#', &number.to_string())).collect();
        let ends: Vec<String> = ends.iter().map(|end| format!("b {end}")).collect();
        let takes = if number > 1 { format!("b takes e{}, ", number - 1) } else { String::new() };
        format!("{takes}b started {number}, {}, a sends b e{number}", ends.join(", "))
    };
    let turns: Vec<String> = ends.iter().enumerate().map(turn).collect();
    format!("a started, {}", turns.join(", "))
}

#[test]
fn turns_that_come_to_the_same_hold_a_step_up_before_the_next_one() {
    check(pair(), &turns(&["says # A", "says # A"]), "start b 3");
    check(pair(), &turns(&["says # A", "says # A", "says # A"]), "ask b to go on");
    // No step writes to it: there is no further turn that could be wasted.
    check(pair(), "a started, b started, b says 1 A, a ended", "close b");
    // Each of these breaks the circle.
    check(pair(), &turns(&["says # A", "says # B", "says # A", "says # A"]), "start b 5");
    check(pair(), &turns(&["changes # x+says # A", "changes # y+says # A", "says # A"]), "start b 4");
    check(pair(), &turns(&["says # A", "sends a s# says=one+says # A", "says # A"]), "start b 4");
    // Envelopes that say the same are no progress, whatever their ids.
    let sends = "sends a s# says=one+says # A";
    check(pair(), &turns(&[sends, sends, sends]), "ask b to go on");
    // Without `stall` the core does not count.
    let free = || Pipeline { edges: vec![edge("a -> b")], ..pipeline("a prompt\n b prompt") };
    check(free(), &turns(&["says # A", "says # A", "says # A"]), "start b 4");
}

#[test]
fn turns_that_change_the_same_hold_a_step_up_whatever_they_say() {
    let ends = ["changes # x+says # A", "changes # x+says # B", "changes # x+says # C"];
    check(pair(), &turns(&ends), "ask b to go on");
    check(pair(), &turns(&["says # A", "says # B", "says # C"]), "start b 4");
}

#[test]
fn attempts_that_fail_the_same_check_hold_a_step_up_while_there_are_more() {
    let retried = || pipeline("a prompt stall=2 retry=3");
    let first = "a started, a checks 1 one";
    check(retried(), first, "start a 2");
    check(retried(), &format!("{first}, a started 2, a checks 2 one"), "ask a to go on");
    // Other words after another change are progress; after none they are not.
    check(retried(), &format!("{first}, a started 2, a changes 2 x, a checks 2 two"), "start a 3");
    check(retried(), &format!("{first}, a started 2, a checks 2 two"), "ask a to go on");
    // Some other failure is not that of a check.
    check(retried(), "a started, a failed, a started 2, a failed 2", "start a 3");
    // The last attempt fails the step in any case.
    check(pipeline("a prompt stall=2 retry=1"), &format!("{first}, a started 2, a checks 2 one"), "finish failed");
}

#[test]
fn a_step_that_may_go_on_begins_to_count_anew_and_one_that_may_not_has_failed() {
    let circle = turns(&["says # A", "says # A", "says # A"]);
    let asked = format!("{circle}, b asked 3");
    check(pair(), &asked, "");
    let allowed = format!("{asked}, b allowed 3");
    check(pair(), &allowed, "start b 4");
    let again = |from: u32| format!("b takes e{}, b started {from}, b says {from} A, a sends b e{from}", from - 1);
    check(pair(), &format!("{allowed}, {}, {}", again(4), again(5)), "start b 6");
    check(pair(), &format!("{allowed}, {}, {}, {}", again(4), again(5), again(6)), "ask b to go on");
    let always = format!("{asked}, b always 3");
    check(pair(), &format!("{always}, {}, {}, {}", again(4), again(5), again(6)), "start b 7");
    check(pair(), &format!("{asked}, b denied 3, a ended"), "finish failed");
    let (state, _) = play(pair(), &format!("{asked}, b denied 3"));
    let error = state.read_step("b", 1, 1).and_then(|reading| reading.error.map(str::to_owned));
    assert_eq!(error.as_deref(), Some("it repeated itself (3 turns with the same result), and a person said no"));
    // A failed attempt is followed by the next one.
    let failed = "a started, a checks 1 x, a started 2, a checks 2 x, a asked 2, a allowed 2";
    check(pipeline("a prompt stall=2 retry=3"), failed, "start a 3");
}

#[test]
fn rounds_that_come_to_the_same_hold_a_step_up_before_the_next_one() {
    let rounds = |steps: &str| samples::repeated(steps, 9);
    let round = |number: u32, end: &str| format!("a/{number} started, a/{number} {end}, round/{number} fails");
    let three = |end: &str| (1..=3).map(|number| round(number, end)).collect::<Vec<_>>().join(", ");
    check(rounds("a prompt stall=3"), &three("says 1 A"), "ask a/4/1 to go on");
    check(rounds("a prompt"), &three("says 1 A"), "start a/4/1 1");
    let asked = format!("{}, a/4 asked 1", three("says 1 A"));
    check(rounds("a prompt stall=3"), &format!("{asked}, a/4 allowed 1"), "start a/4/1 1");
    check(rounds("a prompt stall=3"), &format!("{asked}, a/4 denied 1"), "judge round 4/1");
}

#[test]
fn a_killed_run_asks_once_and_a_person_s_message_breaks_the_circle() {
    let circle = turns(&["says # A", "says # A", "says # A"]);
    check(pair(), &format!("{circle}, resumed"), "ask b to go on, start a 1");
    let (state, answer) = play(pair(), &format!("{circle}, b asked 3, resumed"));
    assert_eq!(state.open_requests().count(), 1, "{answer:?}");
    let heard = circle.strip_suffix("a sends b e3").expect("it ends so");
    check(pair(), &format!("{heard}b hears e3"), "start b 4");
    // The same if a person was asked already: the run no longer needs the answer.
    check(pair(), &format!("{circle}, b asked 3, b hears e9"), "start b 4");
    let (state, _) = play(pair(), &format!("{circle}, b asked 3, b hears e9"));
    assert_eq!(state.open_requests().count(), 0);
    // A step that is held up is at work: steps that wait for its messages go on waiting.
    let mut ring = pair();
    ring.edges = vec![edge("a <-> b")];
    check(ring, &format!("{circle}, b asked 3, a ended"), "");
}
