//! Tables for requests that no person answers in time: what happened, and what the core then orders.
//!
//! Events besides those of the other tables are `STEP calls N` (the request of this number, of its first attempt),
//! `STEP granted N` (by a person) and `STEP expired N` (as the policy says).

use std::sync::Arc;

use swarmc_plan::{RequestTimeout, Unattended};

use super::tables::{commands, play_in};
use crate::core::samples::{graph_of, pipeline, plan};
use crate::types::approval::{Choice, Request, RequestKind, Verdict};
use crate::types::event::{AnsweredBy, Content, Event, StepId};
use crate::{Command, State, decide_commands};

pub(super) fn event(step: StepId, words: &[&str]) -> Event {
    let (attempt, id) = (1, words[1].parse().unwrap());
    let answer = |choice, by| {
        let verdict = Verdict { id, choice, by, because: None, arguments: None };
        Event::ApprovalAnswered { step: step.clone(), attempt, verdict }
    };
    match words[0] {
        "calls" => {
            let arguments = Content::Text("{}".to_owned());
            let wants = RequestKind::Tool { tool: "shell".into(), arguments, schema: None, fixed: false };
            Event::ApprovalAsked { step, attempt, request: Request { id, agent: "anyone".into(), wants } }
        }
        "granted" => answer(Choice::Allow, AnsweredBy::Person),
        "expired" => answer(Choice::Deny, AnsweredBy::Timeout),
        word => panic!("unknown event `{word}`"),
    }
}

/// Two tasks, whose requests wait for ten minutes.
fn pair() -> State {
    let mut plan = plan(pipeline("a prompt\n b prompt"));
    plan.policy.on_timeout = Some(RequestTimeout { then: Unattended::Deny, after_ms: 600_000 });
    State::new(graph_of(&plan))
}

fn check(events: &str, expected: &str) {
    assert_eq!(commands(&mut play_in(pair(), events).1), expected, "after {events:?}");
}

const BEGUN: &str = "a started, b started";

#[test]
fn a_request_is_answered_when_its_time_is_over_and_once() {
    let asked = format!("{BEGUN}, a calls 1");
    check(&asked, "wake 601000");
    check(&format!("{asked}, at 600999"), "");
    check(&format!("{asked}, at 601000"), "expire 1");
    check(&format!("{asked}, at 601000, at 700000"), "");
    check(&format!("{asked}, at 601000, a expired 1, at 700000"), "");
    // Without `on-timeout` in the policy no request expires.
    let mut forever = State::new(graph_of(&plan(pipeline("a prompt\n b prompt"))));
    forever = play_in(forever, &format!("{asked}, at 900000000")).0;
    assert_eq!((forever.open_requests().count(), decide_commands(&mut forever, u64::MAX)), (1, Vec::new()));
}

#[test]
fn requests_are_answered_in_the_order_in_which_they_came() {
    let asked = format!("{BEGUN}, a calls 1, at 2000, b calls 2");
    check(&asked, "");
    check(&format!("{asked}, at 601000"), "expire 1, wake 602000");
    check(&format!("{asked}, at 601000, a expired 1, at 601999"), "");
    check(&format!("{asked}, at 601000, a expired 1, at 602000"), "expire 2");
    // One at a time, so that what follows from the first answer is decided before the second one.
    check(&format!("{asked}, at 602000"), "expire 1, wake 602000");
    check(&format!("{asked}, at 602000, a expired 1"), "expire 2");
}

#[test]
fn answered_and_abandoned_requests_do_not_expire() {
    let asked = format!("{BEGUN}, a calls 1, at 2000, b calls 2");
    check(&format!("{asked}, a granted 1"), "wake 602000");
    check(&format!("{asked}, a granted 1, at 601500"), "");
    check(&format!("{asked}, b granted 2, a granted 1, at 700000"), "");
    // Its attempt has ended.
    check(&format!("{asked}, a ended, at 601500"), "");
    check(&format!("{asked}, a ended, at 602000"), "expire 2");
    // A run that is stopped answers nothing.
    check(&format!("{asked}, stop requested, at 700000"), "");
}

#[test]
fn the_time_of_a_request_is_counted_from_when_it_was_asked_across_runners() {
    let asked = format!("{BEGUN}, a calls 1");
    check(&format!("{asked}, at 500000, resumed"), "start a 1, start b 1, wake 601000");
    // It is over meanwhile: what goes on without an answer goes on first.
    check(&format!("{asked}, at 900000, resumed"), "start a 1, start b 1, wake 601000");
    check(&format!("{asked}, at 900000, resumed, a started"), "expire 1");
    // One whose answer was ordered, and not yet recorded when its runner was killed.
    check(&format!("{asked}, at 601000, resumed, a started"), "expire 1");
    check(&format!("{asked}, at 601000, a expired 1, resumed, a started"), "");
}

/// Whatever the policy says: a timeout cannot approve a failure.
#[test]
fn a_failure_without_a_decision_in_time_stays_a_failure() {
    let mut plan = plan(pipeline("a escalate \n b < a:always"));
    plan.policy.on_timeout = Some(RequestTimeout { then: Unattended::Approve, after_ms: 600_000 });
    let check = |events: &str, expected: &str| {
        let state = State::new(graph_of(&plan));
        assert_eq!(commands(&mut play_in(state, events).1), expected, "after {events:?}");
    };
    check("a broken", "wake 601000");
    check("a broken, at 601000", "time out a");
    check("a broken, at 601000, a answered", "start b 1");
    check("a broken, at 500000, resumed", "wake 601000");
    check("a broken, at 500000, a answered retry, at 601000", "");
}

#[test]
fn in_a_replay_no_request_expires() {
    let mut state = pair();
    state.paced = true;
    let (mut state, _) = play_in(state, &format!("{BEGUN}, a calls 1"));
    assert_eq!(decide_commands(&mut state, u64::MAX), Vec::<Command>::new());
    assert_eq!(state.open_requests().count(), 1);
}

/// What one decision costs does not grow with the requests that wait.
#[test]
fn a_hundred_thousand_requests_expire_one_by_one() {
    let mut state = play_in(pair(), BEGUN).0;
    let step: Arc<str> = "a".into();
    let record = |seq: u32, event| crate::Record { seq: u64::from(seq) + 10, at: 1_000, event };
    for id in 1..=100_000 {
        let event = event(StepId::new(&step, 1, 1), &["calls", &id.to_string()]);
        state.apply(&record(id, event));
    }
    for id in 1..=100_000 {
        assert_eq!(decide_commands(&mut state, 601_000).first(), Some(&Command::Expire { request: id }));
        let event = event(StepId::new(&step, 1, 1), &["expired", &id.to_string()]);
        state.apply(&record(id + 100_000, event));
    }
    assert_eq!((state.open_requests().count(), decide_commands(&mut state, u64::MAX)), (0, Vec::new()));
}
