//! Tables of the scheduling rules: what happened, and what the core then orders.
//!
//! Events are `STEP started N`, `STEP ended N`, `STEP failed N`, `STEP cancelled N`, `STEP done` (started and ended,
//! first attempt), `STEP broken` (started and failed, first attempt), `STEP skipped`, `STEP dropped` (by `fail-fast`),
//! `STEP holds`, `STEP fails-when`,
//! `STEP errs`, `round holds`, `round fails`, `stop requested`, `resumed` and `at MS`; a step of another round and
//! instance is `STEP/ROUND/INSTANCE`, a round likewise.

use swarmc_plan::{Budget, Exhausted, Pipeline, RoundFailure};

use crate::core::samples::{graph, graph_of, pipeline, plan, repeated};
use crate::types::event::{AnsweredBy, Content, Event, Failure, Outcome, Record, RunStatus, SkipReason, StepId};
use crate::{Command, State, decide_commands};

fn check(pipeline: Pipeline, events: &str, expected: &str) {
    assert_eq!(commands(&mut play(pipeline, events).1), expected, "after {events:?}");
}

/// Applies the events, asking for commands in between as a driver would, and keeps the last answer.
pub(super) fn play(pipeline: Pipeline, events: &str) -> (State, Vec<Command>) {
    play_in(State::new(graph(pipeline)), events)
}

/// The same in the state of a run that has not begun.
pub(super) fn play_in(mut state: State, events: &str) -> (State, Vec<Command>) {
    let mut clock = 1_000;
    let mut seq = 0;
    let mut answer = Vec::new();
    let words = events.split(',').map(str::trim).filter(|event| !event.is_empty());
    for words in std::iter::once("").chain(words) {
        let facts = if words.is_empty() { vec![Event::run_started("run", "main")] } else { parse(words, &mut clock) };
        for event in facts {
            seq += 1;
            state.apply(&Record { seq, at: clock, event });
        }
        answer = decide_commands(&mut state, clock);
    }
    (state, answer)
}

fn parse(words: &str, clock: &mut u64) -> Vec<Event> {
    let words: Vec<&str> = words.split_whitespace().collect();
    let number = |text: &str| text.parse::<u32>().unwrap();
    let (id, within) = words[0].split_once('@').map_or((words[0], None), |(id, within)| (id, Some(within)));
    let mut parts = id.split('/');
    let name = parts.next().unwrap();
    let iteration = parts.next().map_or(1, number);
    let instance = parts.next().map_or(1, number);
    let step = StepId { within: within.map(Into::into), ..StepId::new(name, iteration, instance) };
    let attempt = words.get(2).and_then(|word| word.parse().ok()).unwrap_or(1);
    let started = Event::AttemptStarted { step: step.clone(), attempt, reserved: None, summarizer: None };
    let ended = |failure: Option<Failure>| {
        let output = failure.is_none().then(|| Content::Text(format!("{step}#{attempt}")));
        let exit = Some(i32::from(failure.is_some()));
        let outcome = Outcome { failure, output, exit, ..Outcome::default() };
        Event::AttemptEnded { step: step.clone(), attempt, outcome }
    };
    match (name, words.get(1).copied().unwrap_or_default()) {
        ("at", time) => {
            *clock = time.parse().unwrap();
            Vec::new()
        }
        ("stop", "requested") => vec![Event::StopRequested],
        ("resumed", _) => vec![Event::RunResumed],
        ("round", word) => {
            vec![Event::RoundJudged { instance, iteration, holds: word == "holds", within: step.within }]
        }
        (_, "opened") => {
            let items = words.get(2).map(|word| number(word));
            vec![Event::Opened { step, attempt: 1, items, list: None, params: None }]
        }
        (_, "concluded") => vec![ended(None)],
        (_, "asks") => vec![Event::GateOpened { step, message: Content::Text(String::new()) }],
        (_, "answered") => {
            let choice = words.get(2).map(|&word| word.to_owned());
            let output = choice.clone().map(Content::Text);
            vec![Event::GateAnswered { step, choice, output, by: AnsweredBy::Person }]
        }
        (_, "sends" | "wants" | "hears" | "takes" | "closed") => vec![super::handoffs::event(step, &words[1..])],
        (_, "says" | "changes" | "checks" | "asked" | "allowed" | "always" | "denied") => {
            vec![super::stalls::event(step, &words[1..])]
        }
        (_, "calls" | "granted" | "expired") => vec![super::timeouts::event(step, &words[1..])],
        (_, "started") => vec![started],
        (_, "ended") => vec![ended(None)],
        (_, "failed") => vec![ended(Some(Failure::Exit))],
        (_, "interrupted") => vec![ended(Some(Failure::Interrupted))],
        (_, "cancelled") => vec![ended(Some(Failure::Cancelled))],
        (_, "done") => vec![started, ended(None)],
        (_, "broken") => vec![started, ended(Some(Failure::Exit))],
        (_, "skipped") => vec![Event::StepSkipped { step, reason: SkipReason::When }],
        (_, "dropped") => vec![Event::StepSkipped { step, reason: SkipReason::FailFast }],
        (_, "holds") => vec![Event::ConditionJudged { step, holds: true, error: None }],
        (_, "fails-when") => vec![Event::ConditionJudged { step, holds: false, error: None }],
        (_, "errs") => vec![Event::ConditionJudged { step, holds: false, error: Some("no such field".to_owned()) }],
        (_, word) => panic!("unknown event `{word}`"),
    }
}

pub(super) fn commands(commands: &mut [Command]) -> String {
    let id = |step: &StepId| {
        let name = StepId { within: None, ..step.clone() };
        let name = if (step.iteration, step.instance) == (1, 1) { step.name.to_string() } else { name.to_string() };
        step.within.as_ref().map_or(name.clone(), |within| format!("{name}@{within}"))
    };
    let text = |command: &Command| match command {
        Command::Start { step, attempt } => format!("start {} {attempt}", id(step)),
        Command::Swarm { swarm, .. } => format!("swarm {}", id(&swarm.step)),
        Command::Close { step, owes } if owes.is_empty() => format!("close {}", id(step)),
        Command::Close { step, owes } => format!("close {} ({})", id(step), owes.join("; ")),
        Command::Judge { step } => format!("judge {}", id(step)),
        Command::JudgeRound { instance, iteration, within: None } => format!("judge round {iteration}/{instance}"),
        Command::JudgeRound { iteration, within: Some(within), .. } => format!("judge round {iteration}@{within}"),
        Command::Open { step, .. } => format!("open {}", id(step)),
        Command::Conclude { step, failure: None, .. } => format!("conclude {}", id(step)),
        Command::Conclude { step, failure: Some(failure), .. } => format!("conclude {} ({failure})", id(step)),
        Command::Ask { step } => format!("ask {}", id(step)),
        Command::AskToGoOn { step, .. } => format!("ask {} to go on", id(step)),
        Command::Overdue => "overdue".to_owned(),
        Command::Expire { request } => format!("expire {request}"),
        Command::TimeOut { step } => format!("time out {}", id(step)),
        Command::Skip { step, reason } => format!("skip {} ({})", id(step), because(reason)),
        Command::Cancel { step, attempt } => format!("cancel {} {attempt}", id(step)),
        Command::WakeAt(time) => format!("wake {time}"),
        Command::Finish { status: RunStatus::Succeeded } => "finish succeeded".to_owned(),
        Command::Finish { status: RunStatus::Failed } => "finish failed".to_owned(),
        Command::Finish { status: RunStatus::OverBudget } => "finish over budget".to_owned(),
    };
    commands.iter().map(text).collect::<Vec<_>>().join(", ")
}

fn because(reason: &SkipReason) -> String {
    match reason {
        SkipReason::Need { step, status } => format!("{step} {}", status.as_str()),
        SkipReason::Join => "join".to_owned(),
        SkipReason::When => "when".to_owned(),
        SkipReason::Unspawned => "unspawned".to_owned(),
        SkipReason::OnFailure => "on-failure".to_owned(),
        SkipReason::Stopped { by } => format!("stopped by {by}"),
        SkipReason::FailFast => "fail-fast".to_owned(),
        SkipReason::OverBudget => "over budget".to_owned(),
        SkipReason::Ended { by } => format!("ended by {by}"),
    }
}

// Order.

#[test]
fn steps_start_in_declaration_order_as_soon_as_their_own_needs_allow() {
    let steps = "b \n a \n c < b \n d < b a";
    check(pipeline(steps), "", "start b 1, start a 1");
    check(pipeline(steps), "b started 1, a started 1, b ended 1", "start c 1");
    check(pipeline(steps), "b started 1, a started 1, a ended 1, b ended 1", "start c 1, start d 1");
}

#[test]
fn a_pipeline_without_steps_succeeds() {
    check(pipeline(""), "", "finish succeeded");
}

#[test]
fn slots_limit_tasks_but_not_what_is_computed() {
    let mut two = pipeline("a \n v value \n b \n c");
    two.concurrency = Some(2);
    check(two.clone(), "", "start v 1, start a 1, start b 1");
    check(two, "a started 1, b started 1, v done, b ended 1", "start c 1");
}

#[test]
fn a_step_has_a_limit_of_its_own_over_all_instances() {
    let mut three = pipeline("a limit=1 \n b");
    three.parallelism = 3;
    check(three.clone(), "", "start a 1, start b 1, start b/1/2 1, start b/1/3 1");
    check(three.clone(), "a started 1, b/1/2 started 1, b/1/2 ended 1", "");
    check(three, "a started 1, a ended 1", "start a/1/2 1");
}

#[test]
fn what_no_slot_limits_comes_in_batches() {
    let many = |option: &str| (0..600).map(|number| format!("s{number} {option}\n")).collect::<String>();
    let mut state = State::new(graph(pipeline(&many("value"))));
    state.apply(&Record { seq: 1, at: 0, event: Event::run_started("run", "main") });
    let sizes = [(); 4].map(|()| decide_commands(&mut state, 0).len());
    assert_eq!(sizes, [256, 256, 88, 0]);
    let wide = format!("a\n{}", many("< a:failure"));
    assert_eq!(play(pipeline(&wide), "a done").1.len(), 256);
}

// Settling.

#[test]
fn each_condition_of_a_need_holds_for_its_ends() {
    let steps = "a \n s < a \n f < a:failure \n y < a:any \n w < a:always";
    check(pipeline(steps), "a done", "skip f (a succeeded), start s 1, start y 1, start w 1");
    check(pipeline(steps), "a broken", "skip s (a failed), start f 1, start y 1, start w 1");
    check(
        pipeline(&format!("n \n {}", steps.replacen('a', "a < n", 1))),
        "n broken, a skipped",
        "skip s (a skipped), skip f (a skipped), skip y (a skipped), start w 1",
    );
}

#[test]
fn a_need_that_cannot_hold_skips_at_once() {
    check(pipeline("a \n b \n c < a b"), "a started 1, b started 1, a failed 1", "skip c (a failed)");
}

#[test]
fn join_any_waits_for_all_and_needs_one() {
    let steps = "a \n b \n c join=any < a b";
    check(pipeline(steps), "a started 1, b started 1, a ended 1", "");
    check(pipeline(steps), "a started 1, b started 1, a ended 1, b failed 1", "start c 1");
    check(pipeline(steps), "a broken, b broken", "skip c (join)");
}

#[test]
fn join_none_failed_ignores_the_conditions_of_the_needs() {
    let steps = "z \n a < z \n b \n c join=none-failed < a:failure b:failure";
    check(pipeline(steps), "a skipped, b done", "start c 1");
    check(pipeline(steps), "b broken", "skip c (b failed)");
    check(pipeline(steps), "a skipped, b skipped", "skip c (join)");
}

#[test]
fn implied_needs_hold_beside_a_join() {
    let steps = "a \n b \n x \n c join=any < a b ~x";
    check(pipeline(steps), "a done, b done, x started 1", "");
    check(pipeline(steps), "x broken", "skip c (x failed)");
    check(pipeline(steps), "a broken, b done, x done", "start c 1");
    check(pipeline("x \n c join=any < ~x"), "x done", "start c 1");
}

#[test]
fn a_condition_is_judged_once_the_needs_hold() {
    let steps = "a \n b when < a \n c < b";
    check(pipeline(steps), "a done", "judge b");
    check(pipeline(steps), "a done, b holds", "start b 1");
    check(pipeline(steps), "a done, b fails-when", "skip b (when)");
    check(pipeline(steps), "a done, b errs", "skip c (b failed)");
    check(pipeline(steps), "a done, b errs, c skipped", "finish failed");
}

// Attempts.

#[test]
fn failed_step_is_retried_until_its_budget_is_spent() {
    check(pipeline("draft retry=1"), "draft started 1, draft failed 1", "start draft 2");
    check(pipeline("draft retry=1"), "draft broken, draft started 2, draft failed 2", "finish failed");
    check(pipeline("draft retry=1"), "draft broken, draft started 2, draft ended 2", "finish succeeded");
}

#[test]
fn backoff_doubles_up_to_its_limit() {
    let mut slow = pipeline("a retry=9 backoff=100");
    slow.steps[0].retry.max_backoff_ms = 300;
    check(slow.clone(), "a broken", "wake 1100");
    check(slow.clone(), "a broken, at 1099", "");
    check(slow.clone(), "a broken, at 1100", "start a 2");
    check(slow.clone(), "a broken, at 1100, a started 2, a failed 2", "wake 1300");
    check(slow, "a broken, at 1100, a started 2, a failed 2, at 1300, a started 3, a failed 3", "wake 1600");
}

#[test]
fn late_results_of_old_attempts_and_rounds_are_dropped() {
    let two = "a retry=1 \n b < a";
    check(pipeline(two), "a broken, a ended 1", "");
    check(pipeline(two), "a broken, a started 2, a ended 1", "");
    check(pipeline(two), "a broken, a started 2, a ended 2, a failed 2", "");
    check(repeated("a \n b < a", 2), "a done, b done, round fails, a/1/1 done", "");
}

#[test]
fn records_that_fit_nothing_change_nothing() {
    let events = "ghost done, a/9/1 done, a/1/9 done, a/0/0 done, round/7/7 holds, a holds, a skipped, a done";
    check(pipeline("a \n b < a"), events, "");
    let (state, _) = play(pipeline("a \n b < a"), events);
    assert_eq!(state.read_step("a", 1, 1).unwrap().status, Some(crate::Status::Skipped));
}

#[test]
fn a_failure_that_counts_as_a_skip_is_recorded_as_one() {
    let steps = "a skip \n b < a:failure \n c < a:always";
    check(pipeline(steps), "a broken", "skip a (on-failure)");
    check(pipeline(steps), "a broken, a skipped", "skip b (a skipped), start c 1");
    check(pipeline(steps), "a broken, a skipped, b skipped, c done", "finish succeeded");
    check(pipeline("a when skip"), "a errs", "skip a (on-failure)");
}

// Failures.

#[test]
fn independent_steps_go_on_after_a_failure_and_the_run_fails() {
    check(pipeline("a \n b \n c < b"), "a broken, b done", "start c 1");
    check(pipeline("a \n b \n c < b"), "a broken, b done, c done", "finish failed");
}

#[test]
fn a_failure_is_handled_by_a_dependant_that_ran() {
    check(pipeline("a \n b < a:failure"), "a broken, b done", "finish succeeded");
    check(pipeline("a \n b < a:any"), "a broken, b done", "finish succeeded");
    check(pipeline("a \n b < ~a:any!"), "a broken, b done", "finish succeeded");
    check(pipeline("a \n b < a:always"), "a broken, b done", "finish failed");
    check(pipeline("a \n b when < a:failure"), "a broken, b fails-when, b skipped", "finish failed");
    check(pipeline("a \n b < a:failure"), "a broken, b broken", "finish failed");
    check(pipeline("a default=none"), "a broken", "finish succeeded");
}

#[test]
fn fail_fast_starts_nothing_after_a_failure_that_nothing_can_handle() {
    let fast = |steps: &str| {
        let mut fast = pipeline(steps);
        fast.fail_fast = true;
        fast.concurrency = Some(2);
        fast
    };
    let steps = "a \n b \n c \n d < b";
    check(fast(steps), "a started 1, b started 1, a failed 1", "skip c (fail-fast)");
    check(fast(steps), "a started 1, b started 1, a failed 1, c skipped, b ended 1", "skip d (fail-fast)");
    check(fast(steps), "a broken, c skipped, b done, d skipped", "finish failed");
    check(fast("a \n b \n c \n h < a:failure"), "a started 1, b started 1, a failed 1", "start c 1");
    check(fast("a \n b \n c \n h when < a:failure"), "a broken, b done, c done, h fails-when", "skip h (when)");
    let retried = "a \n b retry=1 \n c";
    check(fast(retried), "a started 1, b started 1, a failed 1, c skipped, b failed 1", "skip b (fail-fast)");
    let later = "a \n b retry=1 backoff=9";
    check(fast(later), "a started 1, b started 1, b failed 1, a failed 1", "skip b (fail-fast)");
    check(fast(retried), "a started 1, b started 1, b failed 1, b started 2, a failed 1", "skip c (fail-fast)");
    let both = "a \n b retry=1";
    check(fast(both), "a started 1, b started 1, a failed 1, b failed 1, b dropped", "finish failed");
}

#[test]
fn fail_fast_reaches_the_other_instances() {
    let mut fast = pipeline("a \n b < a");
    fast.fail_fast = true;
    fast.parallelism = 2;
    check(fast.clone(), "a done, a/1/2 broken", "skip b/1/2 (a failed)");
    check(fast.clone(), "a/1/2 broken, a done", "skip b (fail-fast)");
    let (state, _) = play(fast.clone(), "a/1/2 broken, b/1/2 skipped, a done");
    assert_eq!((state.instance_end(1), state.instance_end(2)), (None, Some(crate::End::Unhandled)));
    let (state, _) = play(fast.clone(), "a/1/2 broken, a done, b dropped");
    assert_eq!(state.instance_end(1), Some(crate::End::Cut));
    check(fast, "a started 1, a/1/2 broken, resumed", "skip b/1/2 (a failed), start a 1");
}

// Rounds.

#[test]
fn rounds_repeat_until_a_condition_holds() {
    check(repeated("a", 3), "a done", "judge round 1/1");
    check(repeated("a", 3), "a done, round holds", "finish succeeded");
    check(repeated("a", 3), "a done, round fails", "start a/2/1 1");
    check(repeated("a", 2), "a done, round fails, a/2 done", "judge round 2/1");
    check(repeated("a", 2), "a done, round fails, a/2 done, round/2 fails", "finish failed");
    let mut lenient = repeated("a", 1);
    lenient.iteration.exhausted = Exhausted::Success;
    check(lenient, "a done, round fails", "finish succeeded");
}

#[test]
fn rounds_without_a_condition_all_run_and_succeed() {
    let mut twice = pipeline("a");
    twice.iteration.max = 2;
    check(twice.clone(), "a done", "start a/2/1 1");
    check(twice, "a done, a/2 done", "finish succeeded");
}

#[test]
fn a_failed_round_is_judged_and_ends_the_repetition() {
    check(repeated("a", 3), "a broken", "judge round 1/1");
    check(repeated("a", 3), "a broken, round fails", "finish failed");
    check(repeated("a", 3), "a broken, round holds", "finish failed");
    let mut handled = repeated("a", 3);
    handled.iteration.handles = vec!["a".to_owned()];
    check(handled.clone(), "a broken, round fails", "start a/2/1 1");
    check(handled, "a broken, round holds", "finish succeeded");
}

#[test]
fn a_person_is_asked_once_what_becomes_of_a_failure() {
    let asking = || pipeline("a escalate \n b < a:always");
    let (mut state, waits) = play(asking(), "a broken");
    assert_eq!(commands(&mut waits.clone()), "");
    assert!(state.open_steps().all(|open| open.asking && !open.running) && state.open_steps().count() == 1);
    assert_eq!(decide_commands(&mut state, 9_999_999), []);
    check(asking(), "a broken, a answered skip", "skip a (on-failure)");
    check(asking(), "a broken, a answered fail", "start b 1");
    check(asking(), "a broken, a answered", "start b 1");
    check(asking(), "a broken, a answered retry", "start a 2");
    check(asking(), "a broken, a answered retry, a started 2, a failed 2", "start b 1");
    check(asking(), "a broken, a answered retry, a started 2, a ended 2, b done", "finish succeeded");
    check(asking(), "a broken, a answered fail, b done", "finish failed");
    check(pipeline("a escalate retry=1"), "a broken, a started 2, a failed 2, a answered retry", "start a 3");
    // What ends while it waits is skipped with the rest; a resumed run goes on waiting.
    check(pipeline("a escalate \n s stop"), "a started, a failed, s done", "skip a (stopped by s)");
    check(asking(), "a broken, stop requested, resumed, a answered retry", "start a 2");
}

#[test]
fn on_failure_continue_lets_the_last_round_decide() {
    let mut going = repeated("a", 2);
    going.iteration.on_failure = RoundFailure::Continue;
    check(going.clone(), "a broken, round fails", "start a/2/1 1");
    check(going.clone(), "a broken, round fails, a/2 done, round/2 holds", "finish succeeded");
    check(going.clone(), "a broken, round fails, a/2 broken, round/2 fails", "finish failed");
    going.iteration.until = Vec::new();
    check(going.clone(), "a broken", "start a/2/1 1");
    check(going, "a broken, a/2 done", "finish succeeded");
}

#[test]
fn fail_fast_cuts_only_the_round_where_rounds_go_on() {
    let mut going = repeated("a \n b \n c", 2);
    going.iteration.on_failure = RoundFailure::Continue;
    going.fail_fast = true;
    going.concurrency = Some(1);
    check(going.clone(), "a broken", "skip b (fail-fast), skip c (fail-fast)");
    check(going, "a broken, b skipped, c skipped, round fails", "start a/2/1 1");
}

#[test]
fn a_round_that_was_cut_does_not_count_against_a_later_one() {
    let mut going = repeated("a \n b", 2);
    going.iteration.on_failure = RoundFailure::Continue;
    going.fail_fast = true;
    going.parallelism = 2;
    going.concurrency = Some(1);
    let first = "a broken, b dropped, round fails, a/1/2 broken, b/1/2 dropped, round/1/2 fails";
    let (state, _) = play(going, &format!("{first}, a/2 done, b/2 done, a/2/2 broken, round/2 holds"));
    assert_eq!((state.instance_end(1), state.instance_end(2)), (Some(crate::End::Succeeded), None));
}

#[test]
fn instances_go_round_on_their_own() {
    let mut two = repeated("a", 3);
    two.parallelism = 2;
    check(two.clone(), "a/1/2 done, round/1/2 fails", "start a/2/2 1");
    check(two.clone(), "a/1/2 done, round/1/2 holds", "");
    check(two, "a/1/2 done, round/1/2 holds, a done, round holds", "finish succeeded");
}

#[test]
fn values_of_the_round_before_stay_readable() {
    let (state, _) = play(repeated("a \n b < a", 9), "a done, b done, round fails, a/2 done");
    let output = |name: &str, round: u32| state.read_step(name, 1, round).and_then(|reading| reading.output.cloned());
    assert_eq!(output("a", 2), Some(Content::Text("a/2/1#1".to_owned())));
    assert_eq!(output("a", 1), Some(Content::Text("a/1/1#1".to_owned())));
    assert_eq!(output("b", 2), None);
    assert_eq!(output("b", 1), Some(Content::Text("b/1/1#1".to_owned())));
    assert_eq!(state.read_step("a", 1, 0), None);
    assert_eq!(state.read_step("a", 1, 3), None);
    assert_eq!(state.read_step("a", 2, 1), None);
}

#[test]
fn a_default_stands_in_for_the_output_of_a_failed_or_skipped_step() {
    let steps = "a default=none \n b default=nothing < a \n c retry=1";
    let (state, _) = play(pipeline(steps), "a broken, b skipped, c broken");
    let read = |name: &str| state.read_step(name, 1, 1).unwrap();
    assert_eq!(read("a").output, Some(&Content::Text("none".to_owned())));
    assert_eq!(read("b").output, Some(&Content::Text("nothing".to_owned())));
    assert_eq!((read("a").exit, read("a").error), (Some(1), Some("it exited with 1")));
    assert_eq!((read("c").status, read("c").error), (None, Some("it exited with 1")), "a retry reads its own error");
}

#[test]
fn the_value_is_the_first_result_that_succeeded() {
    let mut listed = pipeline("a \n b default=x \n c");
    listed.result = vec!["b".to_owned(), "c".to_owned(), "a".to_owned()];
    let (state, _) = play(listed, "a done, b broken, c done");
    assert_eq!(state.instance_value(1), Some(&Content::Text("c/1/1#1".to_owned())));
    assert_eq!(state.instance_value(2), None);
}

// Stops.

#[test]
fn a_ready_stop_is_decided_before_other_steps_start() {
    let steps = "a \n b < a \n v value < a \n s stop when < a";
    check(pipeline(steps), "a done", "judge s");
    check(pipeline(steps), "a done, s holds", "start s 1");
    check(pipeline(steps), "a done, s fails-when", "skip s (when), start v 1, start b 1");
    check(pipeline("a \n s stop"), "", "start s 1");
    check(pipeline("s stop when \n t stop \n a"), "", "judge s");
    check(pipeline("s stop when \n t stop \n a"), "s fails-when", "skip s (when), start t 1");
}

#[test]
fn a_stop_cancels_what_runs_and_skips_the_rest() {
    let steps = "a \n b \n w retry=1 backoff=9 \n s stop < a \n c < b:always \n d < s";
    let before = "a started 1, b started 1, w broken, a ended 1, s started 1";
    check(pipeline(steps), &format!("{before}, s ended 1"), "cancel b 1, skip w (stopped by s), skip d (stopped by s)");
    let after = format!("{before}, s ended 1, w skipped, d skipped, b cancelled 1");
    check(pipeline(steps), &after, "skip b (stopped by s)");
    check(pipeline(steps), &format!("{after}, b skipped"), "skip c (stopped by s)");
    check(pipeline(steps), &format!("{after}, b skipped, c skipped"), "finish succeeded");
}

#[test]
fn what_was_ordered_and_did_not_start_is_cancelled_too() {
    check(pipeline("a \n b \n s stop < a"), "a done, s done", "cancel b 1");
    check(pipeline("a \n b \n s stop < a"), "a done, s done, b cancelled 1", "skip b (stopped by s)");
    // Also where the time of the run is over by then.
    let mut timed = plan(pipeline("a \n b \n s stop < a"));
    timed.budget = Some(Budget { time_ms: Some(5_000), ..Budget::default() });
    let (mut state, _) = play_in(State::new(graph_of(&timed)), "a done");
    for (seq, event) in (9..).zip(parse("s done", &mut 9_000)) {
        state.apply(&Record { seq, at: 9_000, event });
    }
    assert_eq!(commands(&mut decide_commands(&mut state, 9_000)), "cancel b 1, overdue");
    check(pipeline("a \n b \n c < a"), "a done, stop requested", "cancel b 1, cancel c 1");
    check(pipeline("a \n b \n c < a"), "a done, stop requested, b cancelled 1, c cancelled 1", "");
}

#[test]
fn a_stop_says_how_its_pipeline_ends_unless_a_failure_came_first() {
    check(pipeline("s stop=failure"), "s done", "finish failed");
    check(pipeline("a \n b \n s stop < b"), "a broken, b done, s done", "finish failed");
    check(pipeline("a \n s stop < a:failure"), "a broken, s done", "finish succeeded");
    let steps = "a \n b \n s stop < b";
    check(pipeline(steps), "a started 1, b done, s done, a failed 1", "finish succeeded");
    check(pipeline("s stop \n t stop=failure"), "s done, t done", "finish succeeded");
    check(pipeline("s stop \n a when"), "s done, a errs", "skip a (stopped by s)");
    let mut rounds = repeated("a \n s stop < a", 5);
    rounds.result = vec!["s".to_owned()];
    check(rounds.clone(), "a done, s done", "finish succeeded");
    assert_eq!(play(rounds, "a done, s done").0.instance_value(1), Some(&Content::Text("s/1/1#1".to_owned())));
}

#[test]
fn a_stop_ends_its_own_instance_only() {
    let mut two = pipeline("a \n s stop when \n b < a");
    two.parallelism = 2;
    let events = "s holds, s/1/2 fails-when, s done, s/1/2 skipped, a skipped, a/1/2 done";
    check(two, events, "start b/1/2 1");
}

// Interruptions.

#[test]
fn a_person_s_stop_cancels_and_leaves_the_run_to_be_resumed() {
    let steps = "a \n b retry=1 backoff=9 \n c < a";
    check(pipeline(steps), "a started 1, b started 1, stop requested", "cancel a 1, cancel b 1");
    check(pipeline(steps), "a started 1, b started 1, stop requested, a cancelled 1", "");
    check(pipeline(steps), "a started 1, b broken, stop requested, a cancelled 1, at 5000", "");
    check(pipeline(steps), "a started 1, stop requested, a cancelled 1, resumed", "start a 1, start b 1");
    check(pipeline(steps), "a started 1, stop requested, a ended 1, b cancelled 1", "");
    check(pipeline(steps), "a started 1, stop requested, a ended 1, b cancelled 1, resumed", "start b 1, start c 1");
    check(pipeline("a"), "a started 1, stop requested, a ended 1", "finish succeeded");
}

#[test]
fn a_cancellation_that_nothing_explains_ends_the_run_as_a_person_would() {
    check(pipeline("a \n b"), "a started 1, b started 1, a cancelled 1", "cancel b 1");
    check(
        pipeline("a \n b"),
        "a started 1, b started 1, a cancelled 1, b cancelled 1, resumed",
        "start a 1, start b 1",
    );
}

#[test]
fn a_state_that_was_only_folded_counts_the_slots_of_open_attempts() {
    let mut one = pipeline("a limit=1 \n b");
    one.parallelism = 2;
    one.concurrency = Some(3);
    let (whole, _) = play(one.clone(), "a started 1, b started 1");
    assert_eq!(whole.agenda.busy, 3);
    let mut folded = State::new(graph(one));
    let mut seq = 0;
    for words in ["", "a started 1", "b started 1"] {
        for event in if words.is_empty() { vec![Event::run_started("run", "main")] } else { parse(words, &mut 0) } {
            seq += 1;
            folded.apply(&Record { seq, at: 0, event });
        }
    }
    assert_eq!(commands(&mut decide_commands(&mut folded, 0)), "start b/1/2 1");
}

#[test]
fn resuming_repeats_open_attempts_as_the_same_attempt() {
    check(pipeline("a retry=3"), "a broken, a started 2, resumed", "start a 2");
    check(pipeline("a \n b"), "a started 1, b done, resumed", "start a 1");
    let limited = pipeline("a retry=1 backoff=100");
    check(limited, "at 900000, a broken, at 5, resumed", "wake 105");
}
