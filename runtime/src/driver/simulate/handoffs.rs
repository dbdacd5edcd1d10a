//! Tables for handoffs along edges: what happened, and what the core then orders.
//!
//! Events besides those of the other tables are `STEP sends STEP ID` (with `signal`, `required`, `optional`, `high` or
//! `answers=ID`), `STEP wants STEP ID` (to be started with that), `STEP hears ID` of a person, `STEP takes ID…` and
//! `STEP closed`. Every envelope counts as admitted.

use swarmc_plan::{EachJoin, Pipeline, Priority, Response, RoundFailure};

use super::tables::{commands, play};
use crate::core::graph::{Key, StepRef};
use crate::core::samples::{each, edge, line, looped, pipeline, repeated};
use crate::types::approval::{Request, RequestKind};
use crate::types::event::{Content, Event, InboxMessage, StepId};
use crate::types::handoff::EnvelopeKind;

pub(super) fn event(step: StepId, words: &[&str]) -> Event {
    match words[0] {
        "wants" => {
            let Event::Sent { to, letter, .. } = event(step.clone(), &[&["sends"], &words[1..]].concat()) else {
                unreachable!()
            };
            let wants = RequestKind::Node { plays: "anyone".into(), to, way: 0, letter: Box::new(letter) };
            Event::ApprovalAsked { step, attempt: 1, request: Request { id: 1, agent: "anyone".into(), wants } }
        }
        "sends" => {
            let has = |word: &str| words.contains(&word);
            let letter = InboxMessage {
                said: words.iter().find_map(|word| word.strip_prefix("says=")).map(Into::into),
                person: false,
                run: false,
                interrupts: false,
                id: words[2].into(),
                kind: if has("signal") { EnvelopeKind::Signal } else { EnvelopeKind::Handoff },
                priority: if has("high") { Priority::High } else { Priority::Normal },
                response: match (has("required"), has("optional")) {
                    (true, _) => Response::Required,
                    (_, true) => Response::Optional,
                    _ => Response::None,
                },
                answers: words.iter().find_map(|word| word.strip_prefix("answers=")).map(Into::into),
                answered_to: None,
                content: Content::Text(String::new()),
            };
            let (instance, from) = (step.instance, Some(step));
            Event::Sent { from, to: words[1].into(), instance, within: None, way: Some(0), letter }
        }
        "hears" => {
            let letter = InboxMessage {
                said: None,
                person: true,
                run: false,
                interrupts: false,
                id: words[1].into(),
                kind: EnvelopeKind::Handoff,
                priority: Priority::High,
                response: Response::None,
                answers: None,
                answered_to: None,
                content: Content::Text(String::new()),
            };
            Event::Sent { from: None, to: step.name, instance: step.instance, within: None, way: None, letter }
        }
        "takes" => Event::InputsTaken { step, inputs: words[1..].iter().map(|&id| id.into()).collect() },
        "closed" => Event::NodeClosed { step, owes: Vec::new() },
        word => panic!("unknown event `{word}`"),
    }
}

fn wired(steps: &str, edges: &str) -> Pipeline {
    Pipeline { edges: edges.lines().map(edge).collect(), ..pipeline(steps) }
}

fn check(pipeline: Pipeline, events: &str, expected: &str) {
    assert_eq!(commands(&mut play(pipeline, events).1), expected, "after {events:?}");
}

/// The ids that the next turn of `b` reads, in order.
fn inputs(pipeline: Pipeline, events: &str) -> Vec<String> {
    let (state, _) = play(pipeline, events);
    state.inputs(Key { frame: 0, step: 1 }).map(|letter| letter.id.to_string()).collect()
}

#[test]
fn a_task_that_reads_its_inbox_waits_for_its_first_envelope() {
    let pair = || wired("a prompt\n b heeds", "a -> b");
    check(pair(), "", "start a 1");
    check(pair(), "a started", "");
    check(pair(), "a started, a sends b e1", "start b 1");
    // A signal starts no turn.
    check(pair(), "a started, a sends b e1 signal", "");
}

#[test]
fn it_begins_without_one_when_no_sender_is_left() {
    let pair = || wired("a prompt\n b heeds", "a -> b");
    check(pair(), "a done", "start b 1");
    // Its writer needs it first: the first round of a review.
    let review = || wired("b heeds\n a prompt < b", "a -> b");
    check(review(), "", "start b 1");
    // It does not wait for a step that writes to no step.
    check(wired("a prompt\n b heeds\n c prompt", "a -> b"), "a done", "start b 1");
    // It waits for a step that its writer needs.
    check(wired("a prompt < c\n b heeds\n c prompt", "a -> b"), "", "start c 1");
    check(wired("a prompt < c\n b heeds\n c prompt", "a -> b"), "c started", "");
}

#[test]
fn a_task_that_does_not_read_its_inbox_starts_with_its_dependencies() {
    check(wired("a prompt\n b prompt", "a -> b"), "", "start a 1, start b 1");
}

#[test]
fn what_arrives_after_a_turn_gives_it_another_one() {
    let pair = || wired("a prompt\n b prompt", "a -> b");
    check(pair(), "a started, b done", "");
    check(pair(), "a started, b done, a sends b e1", "start b 2");
    // What arrives in between waits for the end of the turn.
    check(pair(), "a started, b started, a sends b e1", "");
    check(pair(), "a started, b started, a sends b e1, b ended", "start b 2");
    // A command that does not read its inbox would only do the same again.
    check(wired("a prompt\n b", "a -> b"), "a started, b done, a sends b e1", "");
}

#[test]
fn its_turns_are_over_when_no_running_step_can_reach_it() {
    let pair = || wired("a prompt\n b prompt", "a -> b");
    check(pair(), "b done, a done", "close b");
    check(pair(), "b done, a done, b closed", "finish succeeded");
    // By way of another one it can still be reached.
    let chain = || wired("a prompt\n b prompt\n c prompt", "a -> c\nc -> b");
    check(chain(), "b done, c done", "");
    check(chain(), "b done, c done, a done", "close b, close c");
    // Dependants wait for that.
    let needed = || wired("a prompt\n b prompt\n c prompt < b", "a -> b");
    check(needed(), "b done, a started", "");
    check(needed(), "b done, a done", "close b");
    check(needed(), "b done, a done, b closed", "start c 1");
}

#[test]
fn steps_that_wait_for_each_other_do_not_wait_for_ever() {
    // Each could write to the other, and neither is at work.
    check(wired("a prompt\n b prompt", "a <-> b"), "a done, b done", "close a, close b");
    let pair = || wired("a heeds\n b heeds", "a <-> b");
    check(pair(), "", "start a 1");
    check(pair(), "a done", "start b 1");
}

#[test]
fn a_step_that_a_waiting_one_can_still_write_to_waits_for_it() {
    let chain = || wired("c heeds\n b heeds\n a prompt", "a -> b\nb -> c");
    check(chain(), "a done", "start b 1");
    check(chain(), "a done, b started, b sends c e1", "start c 1");
    check(chain(), "a done, b done", "close b, start c 1");
    // Those that cannot write to each other begin at once.
    let fork = || wired("a prompt\n b heeds\n c heeds\n d heeds", "a -> b\na -> c\nb -> d\nc -> d");
    check(fork(), "a done", "start b 1, start c 1");
    check(fork(), "a done, b done, c started", "");
    check(fork(), "a done, b done, c done", "close b, close c, start d 1");
}

#[test]
fn a_failed_turn_is_repeated_with_its_inputs() {
    let pair = || wired("a prompt\n b prompt retry=1", "a -> b");
    let events = "a started, b done, a sends b e1, b takes e1, b started 2, b failed 2";
    check(pair(), events, "start b 3");
    assert_eq!(inputs(pair(), events), ["e1"]);
    // The next turn counts its attempts anew, and has forgotten them.
    let next = format!("{events}, b started 3, b ended 3, a sends b e2, b takes e2, b started 4, b failed 4");
    check(pair(), &next, "start b 5");
    assert_eq!(inputs(pair(), &next), ["e2"]);
    check(pair(), &format!("{next}, b started 5, b failed 5"), "");
}

#[test]
fn an_inbox_is_read_by_urgency_and_then_by_arrival() {
    let pair = || wired("a prompt\n b heeds", "a -> b");
    let events = "a started, a sends b e1, a sends b e2 high, a sends b e3, a sends b e4 high";
    assert_eq!(inputs(pair(), events), ["e2", "e4", "e1", "e3"]);
    // One that was begun before the runner ended reads the same, and what came since.
    let resumed = format!("{events}, b takes e2 e4 e1 e3, b started, a sends b e5, resumed");
    assert_eq!(inputs(pair(), &resumed), ["e2", "e4", "e1", "e3", "e5"]);
}

#[test]
fn an_answer_that_is_owed_at_the_end_is_a_failure() {
    let pair = || wired("a prompt\n b heeds", "a -> b required");
    let events = "a started, a sends b e1 required, b takes e1, b started";
    check(pair(), &format!("{events}, b ended, a ended"), "close a, close b (it never answered e1 from `a`)");
    let answered = format!("{events}, b sends a e2 answers=e1, b ended, a ended");
    check(pair(), &answered, "start a 2");
    check(pair(), &format!("{answered}, a takes e2, a started 2, a ended 2"), "close a, close b");
    // An optional answer is not owed.
    let asked = "a started, a sends b e1 optional, b takes e1, b started, b ended, a ended";
    check(pair(), asked, "close a, close b");
    // A step of the next round has never seen what was asked in the one before.
    let twice = || Pipeline { edges: vec![edge("a -> b required")], ..repeated("a prompt\n b heeds", 2) };
    let second = format!("{events}, b ended, a ended, a closed, b closed, round fails, a/2 started, a/2 ended");
    check(twice(), &second, "start b/2/1 1");
    check(twice(), &format!("{second}, b/2 started, b/2 ended"), "close a/2/1, close b/2/1");
    // A skipped step never answers.
    let skipped = || wired("a prompt\n b heeds when", "a -> b required");
    check(skipped(), "a started, a sends b e1 required, a ended, b skipped", "close a (`b` never answered its e1)");
}

#[test]
fn what_is_sent_to_a_step_of_a_loop_is_read_in_its_next_round() {
    let mut rounds = pipeline("");
    rounds.steps = vec![looped("again", 3, "done", "b heeds\n a prompt < b")];
    rounds.edges = vec![edge("a -> b")];
    let first = "again opened, b@again started, b@again ended, b@again closed, a@again started, a@again sends b e1, a@again ended";
    check(rounds.clone(), first, "judge round 1@again");
    check(rounds, &format!("{first}, round@again fails"), "start b/2/1@again 1");
}

#[test]
fn a_stop_ends_those_who_wait() {
    let stopped = || wired("a prompt\n b prompt\n s stop < c\n c", "a -> b");
    check(stopped(), "b done, a started, c done, s done", "cancel a 1");
    check(stopped(), "b done, a started, c done, s done, a cancelled, a skipped", "close b");
}

#[test]
fn what_a_person_writes_gives_an_agent_another_turn() {
    // Without any edge, too.
    let alone = || pipeline("a prompt\n b prompt < a");
    check(alone(), "a started, a hears e1, a ended", "start a 2");
    check(alone(), "a started, a hears e1, a ended, a takes e1, a started 2, a ended 2", "start b 1");
    // Before its first turn there is nothing to repeat.
    check(alone(), "b hears e1, a done", "start b 1");
    assert_eq!(inputs(alone(), "b hears e1, a done"), ["e1"]);
    // What a turn that goes on has read needs no other.
    check(alone(), "a started, a hears e1, a takes e1, a ended", "start b 1");
    // A node that waits is woken.
    let pair = || wired("a prompt\n b prompt", "a -> b");
    check(pair(), "a started, b done, b hears e1", "start b 2");
}

#[test]
fn an_interrupted_turn_is_followed_by_another_which_counts_its_attempts_anew() {
    let alone = || pipeline("a prompt retry=1\n b prompt < a");
    let events = "a started, a failed, a started 2, a hears e1, a interrupted 2";
    check(alone(), events, "start a 3");
    check(alone(), &format!("{events}, a takes e1, a started 3, a failed 3"), "start a 4");
    check(alone(), &format!("{events}, a takes e1, a started 3, a ended 3"), "start b 1");
    // A run that ends ends it for good.
    check(alone(), "a started, a hears e1, stop requested, a cancelled", "");
}

#[test]
fn a_task_that_is_spawned_is_there_when_it_is_asked_for() {
    let pair = || wired("a prompt\n b heeds\n c prompt < b", "a -> b spawn");
    check(pair(), "", "start a 1");
    check(pair(), "a started, a sends b e1", "start b 1");
    // No step spawned it: the core skips it, and with it the steps that need it.
    check(pair(), "a started, a ended", "skip b (unspawned)");
    // A prompt that does not read the inbox waits as well.
    check(wired("a prompt\n b prompt", "a -> b spawn"), "", "start a 1");
    // The core waits for a step that a waiting step could still spawn.
    let chain = || wired("a prompt\n b prompt\n c prompt", "a -> b\nb -> c spawn");
    check(chain(), "b done", "");
    check(chain(), "b done, a done", "skip c (unspawned), close b");
}

#[test]
fn who_was_asked_for_in_a_round_can_be_asked_for_in_the_next_one() {
    let mut rounds = repeated("a prompt\n c\n b heeds < c", 3);
    rounds.iteration.on_failure = RoundFailure::Continue;
    rounds.edges = vec![edge("a -> b spawn")];
    let check = |events: &str, asked_for: bool, waiting: usize| {
        let (state, _) = play(rounds.clone(), events);
        assert_eq!(
            (state.is_asked_for(0, "b"), state.open_requests().count()),
            (asked_for, waiting),
            "after {events:?}"
        );
    };
    let first = "a started, a wants b e1, c broken";
    check(first, true, 1);
    // What it needs has failed: the request to start it is void.
    check(&format!("{first}, b skipped, a ended"), false, 0);
    check(&format!("{first}, b skipped, a ended, round fails"), false, 0);
}

#[test]
fn what_runs_for_each_item_is_not_run_again_by_an_answer() {
    let items = || {
        let steps = vec![each("a", "[]", None, EachJoin::All), line("b heeds")];
        Pipeline { steps, ..wired("", "a -> b optional") }
    };
    let events = "a opened 1, a@a[0] started, a@a[0] sends b e1 optional, a@a[0] ended, b takes e1, b started, \
                  b sends a e2 answers=e1, a concluded";
    check(items(), events, "");
    check(items(), &format!("{events}, b ended"), "close b");
}

#[test]
fn who_is_spawned_is_there_for_its_round() {
    let b = StepRef { region: 0, step: 1 };
    let rounds = |kind: &str| Pipeline { edges: vec![edge(kind)], ..repeated("a prompt\n b heeds", 3) };
    // An envelope left from the round before spawns no step.
    let left = "a started, b skipped, a sends b e1, a ended, round fails";
    for (kind, starts) in [("a -> b spawn", "start a/2/1 1"), ("a -> b", "start a/2/1 1, start b/2/1 1")] {
        let (state, mut ordered) = play(rounds(kind), left);
        assert_eq!(commands(&mut ordered), starts, "{kind}");
        assert_eq!(state.waiting_for(0, b) == 0, kind.ends_with("spawn"));
    }
    // Nor can anything be sent to it for the next one.
    for (kind, takes) in [("a -> b spawn", false), ("a -> b", true)] {
        let (state, _) = play(rounds(kind), "a started, b skipped");
        assert_eq!(state.may_receive(0, b), takes, "{kind}");
    }
}
