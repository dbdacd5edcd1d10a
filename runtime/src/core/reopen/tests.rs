//! Tests what runs again: each simulates a run to its end, and checks what is ordered when the run goes on.

use swarmc_plan::{EachJoin, Step};

use super::*;
use crate::core::samples::{each, graph_of, looped, pipeline, plan};
use crate::types::event::{Content, Failure, Outcome, RunStatus, StepId};
use crate::{Command, decide_commands};

fn id(text: &str) -> StepId {
    let (within, name) = text.rsplit_once('/').map_or((None, text), |(within, name)| (Some(within), name));
    let (name, iteration) = name.split_once('#').map_or((name, 1), |(name, round)| (name, round.parse().unwrap()));
    StepId { within: within.map(Into::into), ..StepId::new(name, iteration, 1) }
}

/// Records of a run: `STEP ok`, `STEP broken`, `STEP opened N`, `STEP skipped`, `round WITHIN`, and its end.
fn story(words: &[&str]) -> Vec<Record> {
    let mut events = vec![Event::run_started("run", "main")];
    for line in words {
        let words: Vec<&str> = line.split_whitespace().collect();
        let step = id(words[0]);
        let number = |index: usize| words.get(index).map_or(1, |word| word.parse().unwrap());
        let started = |attempt| Event::AttemptStarted { step: step.clone(), attempt, reserved: None, summarizer: None };
        let ended = |attempt, failure: Option<Failure>| {
            let output = Some(Content::Text(format!("{attempt}")));
            Event::AttemptEnded {
                step: step.clone(),
                attempt,
                outcome: Outcome { failure, output, ..Outcome::default() },
            }
        };
        match words[1] {
            "ok" => events.extend([started(number(2)), ended(number(2), None)]),
            "broken" => events.extend([started(number(2)), ended(number(2), Some(Failure::Exit))]),
            "concluded" => events.push(ended(1, None)),
            "collapsed" => events.push(ended(1, Some(Failure::Inside { message: String::new() }))),
            "opened" => {
                let items = words.get(2).map(|_| number(2));
                events.push(Event::Opened { step: step.clone(), attempt: 1, items, list: None, params: None });
            }
            "skipped" => {
                let reason = crate::SkipReason::Need { step: "x".to_owned(), status: crate::Status::Failed };
                events.push(Event::StepSkipped { step: step.clone(), reason });
            }
            "ended-early" => {
                let reason = crate::SkipReason::Ended { by: "x".to_owned() };
                events.push(Event::StepSkipped { step: step.clone(), reason });
            }
            "goes-round" => events.push(Event::RoundJudged {
                instance: 1,
                iteration: step.iteration,
                holds: false,
                within: Some(step.name.clone()),
            }),
            other => panic!("{other}"),
        }
    }
    events.push(Event::RunFinished { status: RunStatus::Failed });
    (1..).zip(events).map(|(seq, event)| Record { seq, at: 1_000, event }).collect()
}

fn of(steps: Vec<Step>) -> Plan {
    let mut main = pipeline("");
    main.steps = steps;
    plan(main)
}

fn lines(text: &str) -> Plan {
    plan(pipeline(text))
}

/// What is ordered first when a run goes on, in words.
fn again(old: &Plan, new: &Plan, words: &[&str], steps: &[&str]) -> Result<String, String> {
    let (old_graph, new_graph) = (graph_of(old), graph_of(new));
    let former = Running { plan: old, pipeline: &old.pipelines[0], graph: &old_graph };
    let later = Running { plan: new, pipeline: &new.pipelines[0], graph: &new_graph };
    let later = if std::ptr::eq(old, new) { former } else { later };
    let steps: Vec<String> = steps.iter().map(|step| (*step).to_owned()).collect();
    let retry = Retry { failed: steps.is_empty(), steps, plan: (!std::ptr::eq(old, new)).then(|| new.clone()) };
    let mut records = story(words);
    let Reopened { events, mut state, .. } = reopen("run", &records, (former, later), &retry)?;
    for event in events {
        let record = Record { seq: records.len() as u64 + 1, at: 2_000, event };
        state.apply(&record);
        records.push(record);
    }
    let replayed = State::replay(Arc::clone(&new_graph), &records);
    assert_eq!(state.counts(), replayed.counts(), "the journal alone says where the run stands");
    let commands = decide_commands(&mut state, 2_000).into_iter().filter_map(|command| match command {
        Command::Start { step, attempt } => Some(format!("{}#{}~{attempt}", step.label(), step.iteration)),
        Command::Open { step, attempt } => Some(format!("open {}~{attempt}", step.label())),
        Command::Conclude { step, .. } => Some(format!("conclude {}", step.label())),
        Command::Finish { .. } => Some("finish".to_owned()),
        _ => None,
    });
    Ok(commands.collect::<Vec<_>>().join(", "))
}

#[track_caller]
fn check(plan: &Plan, words: &[&str], expected: &str) {
    assert_eq!(again(plan, plan, words, &[]).as_deref(), Ok(expected));
}

#[test]
fn what_failed_runs_again_under_the_next_attempt_and_what_it_skipped_follows() {
    let plan = lines("a\n b < a\n c < b\n d < a\n e < d");
    check(&plan, &["a ok", "b broken", "c skipped", "d ok", "e ok"], "b#1~2");
    let plan = lines("a retry=1\n b < a");
    check(&plan, &["a broken", "a broken 2", "b skipped"], "a#1~3");
}

#[test]
fn what_ran_since_it_failed_is_undone_and_what_handled_a_failure_keeps_it() {
    let plan = lines("a\n b < a\n tidy < b:always");
    check(&plan, &["a ok", "b broken", "tidy ok"], "b#1~2");
    // Its failure was handled: only the other one runs again.
    let plan = lines("a\n rescue < a:failure!\n b < rescue");
    check(&plan, &["a broken", "rescue ok", "b broken"], "b#1~2");
}

#[test]
fn a_loop_goes_on_in_the_round_that_failed() {
    let plan = of(vec![looped("polish", 3, "false", "draft\n test < draft"), looped("last < polish", 1, "", "z")]);
    let words = [
        "polish opened",
        "polish.1/x skipped",
        "polish/draft ok",
        "polish/test ok",
        "polish#1 goes-round",
        "polish/draft#2 ok",
        "polish/test#2 broken",
        "polish collapsed",
        "last skipped",
    ];
    check(&plan, &words, "polish/test#2~2");
    assert_eq!(again(&plan, &plan, &words, &["draft"]).as_deref(), Ok("polish/draft#2~2"));
    assert_eq!(again(&plan, &plan, &words, &["polish"]).as_deref(), Ok("open polish~2"));
}

#[test]
fn items_that_finished_stay_whatever_the_order_and_the_limit() {
    let mut tail = pipeline("sum < triage").steps;
    let mut steps = vec![each("triage", "[]", Some(1), EachJoin::All)];
    steps.append(&mut tail);
    let plan = of(steps);
    let words = [
        "triage opened 4",
        "triage[0]/triage broken",
        "triage[1]/triage ok",
        "triage[2]/triage broken",
        "triage[3]/triage ok",
        "triage collapsed",
        "sum skipped",
    ];
    check(&plan, &words, "triage[0]#1~2");
    assert_eq!(again(&plan, &plan, &words, &["triage[1]"]).as_deref(), Ok("triage[1]#1~2"));
}

#[test]
fn a_mended_plan_may_change_what_has_not_finished() {
    let old = lines("a\n b < a\n c < b");
    let words = ["a ok", "b broken", "c skipped"];
    assert_eq!(again(&old, &lines("a\n b retry=3 < a\n c < b"), &words, &[]).as_deref(), Ok("b#1~2"));
    assert_eq!(again(&old, &lines("a\n b < a\n extra\n c < b extra"), &words, &[]).as_deref(), Ok("b#1~2, extra#1~1"));
    assert_eq!(again(&old, &lines("a\n d < a"), &words, &[]).as_deref(), Ok("d#1~1"), "what failed may be gone");
    let refused = |new: &str| again(&old, &lines(new), &words, &[]).unwrap_err();
    let changed = refused("z\n a retry=2 < z\n b < a\n c < b");
    assert!(changed.contains("`a` at ") && changed.contains("needs") && changed.contains("--retry STEP"), "{changed}");
    let gone = refused("b\n c < b");
    assert!(gone.contains("`a` is gone"), "{gone}");
    let both = again(&old, &lines("a retry=2\n b < a\n c < b"), &words, &["a"]);
    assert_eq!(both.as_deref(), Ok("a#1~2"), "what runs again as well may be another one");
}

#[test]
fn a_loop_that_had_too_few_rounds_goes_on_where_the_mended_plan_has_more() {
    let with = |max| of(vec![looped("polish", max, "false", "draft")]);
    let words = [
        "polish opened",
        "polish/draft ok",
        "polish#1 goes-round",
        "polish/draft#2 ok",
        "polish#2 goes-round",
        "polish collapsed",
    ];
    let old = with(2);
    assert_eq!(again(&old, &old, &words, &[]).as_deref(), Ok("open polish~2"), "it begins anew");
    assert_eq!(again(&old, &with(4), &words, &[]).as_deref(), Ok("polish/draft#3~1"));
}

#[test]
fn what_does_not_count_any_more_counts_again_only_with_the_whole_of_a_batch() {
    let plan = lines("a\n b < a");
    let mut records = story(&["a ok", "b broken"]);
    let mark = Event::StepReopened { step: id("a"), attempt: 2, inside: false };
    // A runner was killed before it had recorded the rest.
    records.push(Record { seq: 7, at: 2_000, event: mark });
    assert_eq!(State::replay(graph_of(&plan), &records).final_status(), Some(RunStatus::Failed));
    let mark = Event::StepReopened { step: id("b"), attempt: 2, inside: false };
    let goes_on = Event::RunReopened { version: VERSION, lines: 1, plan: None, ran_ms: 5, requests: 0 };
    records.extend((8..).zip([mark, goes_on]).map(|(seq, event)| Record { seq, at: 2_000, event }));
    let state = State::replay(graph_of(&plan), &records);
    assert_eq!((state.final_status(), state.counts().succeeded), (None, 1));
}

#[test]
fn a_run_with_nothing_to_run_again_says_so() {
    let plan = lines("a\n b < a");
    let error = |steps: &[&str]| again(&plan, &plan, &["a ok", "b ok"], steps).unwrap_err();
    assert!(error(&[]).contains("no step of it failed"), "{}", error(&[]));
    assert!(error(&["c"]).contains("has not reached a step `c`"), "{}", error(&["c"]));
}

#[test]
fn attempts_are_counted_on_where_a_step_was_skipped_in_between() {
    let plan = lines("a\n b < a\n c < b");
    let graph = graph_of(&plan);
    let running = Running { plan: &plan, pipeline: &plan.pipelines[0], graph: &graph };
    let named = |steps: &[&str]| Retry {
        failed: steps.is_empty(),
        steps: steps.iter().map(|step| (*step).to_owned()).collect(),
        plan: None,
    };
    let mut records = story(&["a ok", "b ok", "c ok"]);
    let mut add = |events: Vec<Event>| {
        for event in events {
            records.push(Record { seq: records.len() as u64 + 1, at: 2_000, event });
        }
        records.clone()
    };
    let first = reopen("run", &story(&["a ok", "b ok", "c ok"]), (running, running), &named(&["b"])).unwrap();
    add(first.events);
    // The second attempt of `b` fails, and so `c` does not begin.
    let mut later: Vec<Event> = story(&["b broken 2", "c skipped"]).into_iter().map(|record| record.event).collect();
    later.remove(0);
    let all = add(later);
    let again = reopen("run", &all, (running, running), &named(&[])).unwrap();
    let marks: Vec<(String, u32)> =
        again.events.iter().filter_map(Mark::read).map(|mark| (mark.step.label(), mark.attempt)).collect();
    assert_eq!(marks, [("b".to_owned(), 3), ("c".to_owned(), 2)]);
}
