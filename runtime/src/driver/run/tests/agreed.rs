//! Tool calls that need an approval: the agent waits, an answer is recorded and used once, and no person is asked
//! twice.

use std::sync::mpsc::RecvTimeoutError;

use serde_json::json;
use swarmc_endpoint::{Answer, Endpoint, Script};
use swarmc_plan::{Approval, Capability, RequestTimeout, ToolProtocol, Unattended};

use super::lent::with_tools;
use super::world::*;
use super::*;
use crate::io::journal::{FileJournal, Journal};
use crate::types::approval::{Choice, RequestKind, Verdict};
use crate::types::event::{AnsweredBy, Failure};
use crate::types::user_request::GateAnswer;

/// A task of a model that wants to run commands, each only with a person's agreement.
fn gated(endpoint: &Endpoint) -> Plan {
    let mut plan = with_tools(endpoint, ToolProtocol::Native, &["shell"], &[Capability::RunCommands]);
    plan.policy.tools.insert("shell".to_owned(), Approval::Human);
    plan
}

/// The same, where a request waits no longer than this.
fn timed(endpoint: &Endpoint, then: Unattended, after_ms: u64) -> Plan {
    let mut plan = gated(endpoint);
    plan.policy.on_timeout = Some(RequestTimeout { then, after_ms });
    plan
}

/// A model that calls `shell` once for each line, and then answers.
fn calling(lines: &[&str]) -> Endpoint {
    let calls = lines.iter().map(|line| Answer::call("shell", json!({ "command": line })));
    Endpoint::start(Script::new().otherwise(calls.chain([Answer::text("Well.")]).collect::<Vec<_>>()))
}

fn answer(id: u32, choice: &str) -> GateAnswer {
    GateAnswer { gate: id.to_string(), choice: choice.to_owned(), ..GateAnswer::default() }
}

/// Waits until the request of this number is asked, and others see it too: a record is shown before it is written.
fn await_request(world: &World, id: u32) {
    let events = world.events.lock().unwrap();
    let is_seen = || world.state().open_requests().any(|waiting| waiting.request.id == id);
    loop {
        match events.recv_timeout(Duration::from_secs(60)) {
            Ok(Seen::Record(record)) => match &record.event {
                Event::ApprovalAsked { request, .. } if request.id == id => {
                    let patience = Instant::now() + Duration::from_secs(60);
                    while !is_seen() {
                        assert!(Instant::now() < patience, "request {id} is not written");
                        std::thread::sleep(Duration::from_millis(5));
                    }
                    return;
                }
                Event::RunFinished { .. } => panic!("it ended without asking"),
                _ => {}
            },
            Ok(_) => {}
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => panic!("request {id} is not asked"),
        }
    }
}

/// Runs a plan beside a person who does this.
fn beside(run: impl FnOnce(Control) -> Outcome + Send, person: impl FnOnce(&Control)) -> Outcome {
    let control = Control::new();
    std::thread::scope(|scope| {
        let runs = scope.spawn(|| run(control.clone()));
        let ender = control.clone();
        // A person who finds something else than expected must not leave a run that waits for ever.
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| person(&ender)));
        if let Err(problem) = done {
            ender.kill();
            std::panic::resume_unwind(problem);
        }
        runs.join().unwrap()
    })
}

fn attended(world: &World, plan: &Plan, person: impl FnOnce(&Control)) -> Outcome {
    beside(|control| world.start_with(plan, world.options(), control).unwrap(), person)
}

fn resumed(world: &World, headless: bool, person: impl FnOnce(&Control)) -> Outcome {
    let observer = || Box::new(Watcher(world.sender.clone()));
    let home = world.home();
    beside(|control| resume_run(&home, "last", environment(), headless, control, observer()).unwrap(), person)
}

fn verdicts(world: &World) -> Vec<Verdict> {
    let verdict = |record: Record| match record.event {
        Event::ApprovalAnswered { verdict, .. } => Some(verdict),
        _ => None,
    };
    world.records().into_iter().filter_map(verdict).collect()
}

fn asked(world: &World) -> usize {
    world.records().iter().filter(|record| matches!(record.event, Event::ApprovalAsked { .. })).count()
}

#[test]
fn a_call_waits_for_a_person_and_is_made_or_fails_as_that_one_says() {
    let world = World::new();
    let endpoint = calling(&["echo one >> ran", "echo two >> ran", "echo three >> ran"]);
    let outcome = attended(&world, &gated(&endpoint), |control| {
        await_request(&world, 1);
        let state = world.state();
        let waiting = state.open_requests().next().unwrap();
        assert!(matches!(&waiting.request.wants, RequestKind::Tool { tool, .. } if **tool == *"shell"), "{waiting:?}");
        let problem = |given: GateAnswer| control.answer(given).unwrap_err();
        assert_eq!(problem(answer(2, "allow")), "no `2` waits for an answer");
        assert_eq!(problem(answer(1, "yes")), "approval 1 has no option `yes`: it has allow, always, deny");
        let other = |text: &str| GateAnswer { arguments: Some(text.to_owned()), ..answer(1, "allow") };
        let unfit = problem(other(r#"{"command": 7}"#));
        assert!(unfit.starts_with("`shell` cannot take them: "), "{unfit}");
        assert!(!world.workspace().join("ran").exists(), "nothing runs before a person agrees");
        control.answer(answer(1, "allow")).unwrap();
        await_request(&world, 2);
        let because = Some("  not \u{1b}[2J now ".to_owned());
        control.answer(GateAnswer { because, ..answer(2, "deny") }).unwrap();
        await_request(&world, 3);
        let arguments = Some(r#"{"command": "echo other >> ran; echo said"}"#.to_owned());
        control.answer(GateAnswer { arguments, ..answer(3, "allow") }).unwrap();
    });
    assert_eq!((outcome.ended, outcome.values), (Ended::Succeeded, vec!["Well.".to_owned()]));
    assert_eq!(world.read(world.workspace().join("ran")), "one\nother\n");
    let results: Vec<String> = endpoint.prompts()[3].results.clone();
    assert!(results[1].contains("not called: a person said no: not "), "{results:?}");
    assert!(results[2].contains("with these arguments: {\"command\":\"echo other") && results[2].ends_with("\nsaid"));
    let by = AnsweredBy::Person;
    assert!(verdicts(&world).iter().all(|verdict| verdict.by == by) && verdicts(&world).len() == 3);
}

#[test]
fn always_is_for_the_same_tool_of_the_same_agent() {
    let world = World::new();
    let endpoint = calling(&["echo one >> ran", "echo two >> ran"]);
    let mut plan = gated(&endpoint);
    let run = swarmc_plan::Command::Shell("echo $SWARM_GATE >> told".to_owned());
    plan.hooks = vec![swarmc_plan::Hook { event: swarmc_plan::HookEvent::Gate, run, origin: origin() }];
    let outcome = attended(&world, &plan, |control| {
        await_request(&world, 1);
        control.answer(answer(1, "always")).unwrap();
    });
    assert_eq!(outcome.ended, Ended::Succeeded);
    assert_eq!(world.read(world.workspace().join("told")), "1\n", "who is not asked is not told");
    assert_eq!(world.read(world.workspace().join("ran")), "one\ntwo\n");
    let said: Vec<_> = verdicts(&world).iter().map(|verdict| (verdict.choice, verdict.by)).collect();
    assert_eq!(said, [(Choice::Always, AnsweredBy::Person), (Choice::Allow, AnsweredBy::Earlier)]);
}

#[test]
fn a_resumed_run_goes_on_with_the_same_requests() {
    for headless in [false, true] {
        let world = World::new();
        let call = |line: &str| Answer::call("shell", json!({ "command": line }));
        let (one, two) = (call("echo one >> ran"), call("echo two >> ran"));
        // The conversation begins anew with the attempt: the model calls the same again.
        let answers = [one.clone(), two.clone(), one, two, Answer::text("Well.")];
        let endpoint = Endpoint::start(Script::new().otherwise(answers));
        let stopped = attended(&world, &gated(&endpoint), |control| {
            await_request(&world, 1);
            control.answer(answer(1, "allow")).unwrap();
            await_request(&world, 2);
            control.stop();
        });
        assert_eq!((stopped.ended, asked(&world)), (Ended::Stopped, 2));
        assert_eq!(world.state().open_requests().count(), 1, "the second is open still");
        let outcome = resumed(&world, headless, |control| {
            while !headless && control.answer(answer(2, "deny")).is_err() {
                std::thread::yield_now();
            }
        });
        assert_eq!((outcome.ended, asked(&world)), (Ended::Succeeded, 2), "headless: {headless}");
        assert_eq!(world.read(world.workspace().join("ran")), "one\none\n", "an attempt that begins anew calls again");
        let last = verdicts(&world).pop().unwrap();
        let by = if headless { AnsweredBy::Policy } else { AnsweredBy::Person };
        assert_eq!((last.id, last.choice, last.by), (2, Choice::Deny, by));
    }
}

#[test]
fn the_time_of_the_step_runs_while_a_person_is_asked() {
    let world = World::new();
    let endpoint = calling(&["echo one >> ran"]);
    let mut plan = gated(&endpoint);
    plan.pipelines[0].steps[0].timeout_ms = Some(1_500);
    let outcome = attended(&world, &plan, |_| ());
    assert_eq!(outcome.ended, Ended::Failed);
    assert_eq!(world.ends()[0].1.failure, Some(Failure::Timeout { after_ms: 1_500 }));
    assert!(world.state().open_requests().next().is_none() && !world.workspace().join("ran").exists());
}

#[test]
fn the_policy_answers_what_no_person_answers_in_time() {
    for (then, ended, choice) in [
        (Unattended::Deny, Ended::Succeeded, Choice::Deny),
        (Unattended::Approve, Ended::Succeeded, Choice::Allow),
        (Unattended::Fail, Ended::Failed, Choice::Deny),
    ] {
        let world = World::new();
        let endpoint = calling(&["echo one >> ran"]);
        let outcome = attended(&world, &timed(&endpoint, then, 50), |_| ());
        assert_eq!(outcome.ended, ended, "{then:?}");
        let said: Vec<_> = verdicts(&world).iter().map(|verdict| (verdict.choice, verdict.by)).collect();
        assert_eq!(said, [(choice, AnsweredBy::Timeout)], "{then:?}");
        assert_eq!(world.workspace().join("ran").exists(), then == Unattended::Approve);
        let at = |fits: fn(&Event) -> bool| world.records().iter().find(|record| fits(&record.event)).unwrap().at;
        let asked = at(|event| matches!(event, Event::ApprovalAsked { .. }));
        assert!(at(|event| matches!(event, Event::ApprovalAnswered { .. })) >= asked + 50);
        match then {
            Unattended::Deny => {
                let results = &endpoint.prompts()[1].results;
                assert!(results[0].contains("not called: no person approved it in time"), "{results:?}");
            }
            Unattended::Approve => {}
            Unattended::Fail => {
                let Some(Failure::Agent { message }) = &world.ends()[0].1.failure else { panic!("{:?}", world.ends()) };
                assert!(message.ends_with("needs approval, but no person answered in time"), "{message}");
            }
        }
    }
}

#[test]
fn a_second_answer_is_refused() {
    let world = World::new();
    let endpoint = calling(&["echo one >> ran", "echo two >> ran"]);
    let outcome = attended(&world, &timed(&endpoint, Unattended::Deny, 3_600_000), |control| {
        await_request(&world, 1);
        control.answer(answer(1, "allow")).unwrap();
        await_request(&world, 2);
        let late = control.answer(answer(1, "deny")).unwrap_err();
        assert_eq!(late, "approval 1 is already answered, or no task waits for it any more");
        control.answer(answer(2, "allow")).unwrap();
    });
    assert_eq!(outcome.ended, Ended::Succeeded);
    assert!(verdicts(&world).iter().all(|verdict| verdict.by == AnsweredBy::Person));
}

/// Has all that happened in the last run have happened so much earlier.
fn age(world: &World, by_ms: u64) {
    let path = world.home().find("last").unwrap().journal_path();
    let records = world.records();
    std::fs::remove_file(&path).unwrap();
    let mut journal = FileJournal::create(&path, |error| panic!("{error}")).unwrap();
    for record in records {
        journal.append(&Record { at: record.at - by_ms, ..record });
    }
    Box::new(journal).close().unwrap();
}

#[test]
fn the_time_of_a_request_goes_on_while_the_run_is_stopped() {
    for (then, headless, ended, by) in [
        (Unattended::Deny, false, Ended::Succeeded, AnsweredBy::Timeout),
        (Unattended::Deny, true, Ended::Succeeded, AnsweredBy::Timeout),
        (Unattended::Fail, false, Ended::Failed, AnsweredBy::Timeout),
    ] {
        let world = World::new();
        let call = Answer::call("shell", json!({ "command": "echo one >> ran" }));
        let endpoint = Endpoint::start(Script::new().otherwise([call.clone(), call, Answer::text("Well.")]));
        let stopped = attended(&world, &timed(&endpoint, then, 3_600_000), |control| {
            await_request(&world, 1);
            control.stop();
        });
        assert_eq!((stopped.ended, verdicts(&world).len()), (Ended::Stopped, 0));
        age(&world, 7_200_000);
        let outcome = resumed(&world, headless, |_| ());
        let said: Vec<_> = verdicts(&world).iter().map(|verdict| (verdict.id, verdict.choice, verdict.by)).collect();
        assert_eq!((outcome.ended, said), (ended, vec![(1, Choice::Deny, by)]), "{then:?}, headless: {headless}");
        assert_eq!(asked(&world), 1, "the request is the same one");
    }
}
