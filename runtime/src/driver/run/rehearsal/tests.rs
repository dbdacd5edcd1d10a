//! Plans in rehearsal: what loops, items, calls and gates see, give and do.

mod budgets;
mod timing;

use crate::types::event::Status;
use serde_json::json;
use swarmc_plan::{
    Agent, Connection, DirectiveKind, EachJoin, Exhausted, Expression, Origin, Param, ParamType, Pipeline, Provider,
    Segment, Template,
};

use super::*;
use crate::core::samples::{call, each, edge, gate, line, looped, pipeline, plan, reading, step};
use serde_json::Map;
use swarmc_plan::Step;

/// A pipeline called `main` of these steps, whose value is that of the last one.
fn main(steps: Vec<Step>) -> Pipeline {
    Pipeline { result: steps.last().map(|step| step.name.clone()).into_iter().collect(), steps, ..pipeline("") }
}

/// Gives the plan an agent that a script plays.
fn hire(plan: &mut Plan, agent: &str) {
    let connection = Connection::Script { answers: Vec::new() };
    plan.providers = vec![Provider { name: "p".to_owned(), connection, ..Provider::default() }];
    plan.agents = vec![Agent { name: agent.to_owned(), provider: "p".to_owned(), ..Agent::default() }];
}

/// A command that reads a text.
fn reads(head: &str, text: Template) -> Step {
    Step { stdin: Some(text), ..line(head) }
}

fn texts(pieces: &[Template]) -> Template {
    let mut segments = Vec::new();
    for piece in pieces {
        segments.extend(piece.segments.clone());
        segments.push(Segment::Text(";".to_owned()));
    }
    Template { segments, digest: String::new() }
}

fn expression(source: &str) -> Expression {
    Expression { source: source.to_owned(), reads: None, origin: Origin::default() }
}

/// Rehearses with commands that print what `say` makes of their name, round and standard input; `!` fails.
fn play(plan: &Plan, say: impl Fn(&StepId, &str) -> String + Sync) -> Rehearsal {
    let mut answer = |turn: &Turn<'_>| match &turn.asks {
        Asks::Command { stdin, .. } => match say(turn.step, stdin.unwrap_or_default()) {
            text if text.starts_with('!') => {
                Answer::Failure { exit: 1, output: String::new(), stderr: text[1..].to_owned() }
            }
            text => Answer::Text(text),
        },
        Asks::Agent { prompt, .. } => Answer::Text((*prompt).to_owned()),
        Asks::Check { .. } | Asks::Tool { .. } => Answer::Text(String::new()),
        Asks::Person { options, .. } => Answer::Choice { choice: options[0].clone(), fields: Map::new() },
    };
    rehearse(plan, &Options::default(), &mut answer).unwrap()
}

fn ends(rehearsal: &Rehearsal) -> String {
    let end = |(step, status): &(StepId, Status)| format!("{step} {}", status.as_str());
    rehearsal.steps.iter().map(end).collect::<Vec<_>>().join(", ")
}

#[test]
fn a_loop_goes_round_until_it_holds_and_its_last_round_is_read_from_outside() {
    let mut inner = looped("polish < start", 5, "output.review == 'round 3'", "draft \n review < draft");
    let Body::Loop(body) = &mut inner.body else { unreachable!() };
    body.steps[0].stdin = Some(texts(&[
        reading(DirectiveKind::Previous, "review"),
        reading(DirectiveKind::Output, "start"),
        reading(DirectiveKind::Iteration, ""),
    ]));
    let after = reads("after < polish", reading(DirectiveKind::Output, "review"));
    let rehearsal = play(&plan(main(vec![line("start"), inner, after])), |step, stdin| match &*step.name {
        "draft" => format!("[{stdin}]"),
        "review" => format!("round {}", step.iteration),
        _ => format!("{}{stdin}", step.name),
    });
    assert_eq!(rehearsal.values, ["afterround 3"]);
    assert_eq!(
        ends(&rehearsal),
        "start/1/1 succeeded, polish/draft/1/1 succeeded, polish/review/1/1 succeeded, polish/draft/2/1 succeeded, \
         polish/review/2/1 succeeded, polish/draft/3/1 succeeded, polish/review/3/1 succeeded, polish/1/1 succeeded, \
         after/1/1 succeeded"
    );
    let output = |name: &str, round: u32| {
        rehearsal.records.iter().find_map(|record| match &record.event {
            Event::AttemptEnded { step, outcome, .. } if *step.name == *name && step.iteration == round => {
                outcome.output.clone()
            }
            _ => None,
        })
    };
    assert_eq!(output("draft", 1), Some(Content::Text("[;start;1;]".to_owned())));
    assert_eq!(output("draft", 3), Some(Content::Text("[round 2;start;3;]".to_owned())));
    assert_eq!((rehearsal.launches, rehearsal.turns, rehearsal.faults.len()), (8, 0, 0));
}

#[test]
fn a_loop_that_is_exhausted_fails_unless_it_says_success() {
    let mut inner = looped("l", 2, "status.a == 'failed'", "a");
    let told = play(&plan(main(vec![inner.clone(), line("b < l:failure!")])), |_, _| "x".to_owned());
    assert_eq!(told.status, RunStatus::Succeeded);
    let told = play(&plan(main(vec![inner.clone()])), |_, _| "x".to_owned());
    assert_eq!((told.status, ends(&told).ends_with("l/1/1 failed")), (RunStatus::Failed, true));
    let Body::Loop(body) = &mut inner.body else { unreachable!() };
    body.iteration.exhausted = Exhausted::Success;
    assert_eq!(play(&plan(main(vec![inner])), |_, _| "x".to_owned()).status, RunStatus::Succeeded);
}

#[test]
fn a_failure_inside_a_loop_ends_it_at_once_and_is_the_loop_s_to_handle() {
    let steps = "a \n b < a \n clean < a:always \n c";
    let after = reads("after < l:any!", reading(DirectiveKind::Error, "l"));
    let rehearsal = play(&plan(main(vec![looped("l", 3, "", steps), after])), |step, stdin| match &*step.name {
        "a" => "!no luck".to_owned(),
        _ => stdin.to_owned(),
    });
    assert_eq!(
        ends(&rehearsal),
        "l/a/1/1 failed, l/b/1/1 skipped, l/c/1/1 skipped, l/clean/1/1 succeeded, l/1/1 failed, after/1/1 succeeded"
    );
    assert_eq!((rehearsal.status, rehearsal.values), (RunStatus::Succeeded, vec!["`a` failed: no luck".to_owned()]));
}

#[test]
fn items_run_in_order_and_give_the_list_of_their_successes() {
    let mut every = each("e < list", "['x', 'y', 'z']", Some(2), EachJoin::Any);
    every.stdin = Some(texts(&[reading(DirectiveKind::Item, ""), reading(DirectiveKind::Index, "")]));
    let after = Step {
        body: Body::Value(texts(&[reading(DirectiveKind::Output, "e"), reading(DirectiveKind::Error, "e")])),
        ..line("after < e")
    };
    let rehearsal = play(&plan(main(vec![line("list"), every, after])), |_, stdin| match stdin {
        "y;1;" => "!why".to_owned(),
        text => format!("<{text}>"),
    });
    assert_eq!(rehearsal.values, [r#"["<x;0;>","<z;2;>"];[{"index":1,"item":"y","message":"why"}];"#]);
    assert_eq!(
        ends(&rehearsal),
        "list/1/1 succeeded, e[0]/e/1/1 succeeded, e[1]/e/1/1 failed, e[2]/e/1/1 succeeded, e/1/1 succeeded, \
         after/1/1 succeeded"
    );
}

#[test]
fn a_for_each_needs_what_its_join_says_and_a_list() {
    let status = |list: &str, join: EachJoin, failing: &str| {
        let mut every = each("e", list, None, join);
        every.stdin = Some(reading(DirectiveKind::Item, ""));
        let rehearsal = play(&plan(main(vec![every])), |_, stdin| match stdin {
            text if failing.contains(text) => "!".to_owned(),
            text => text.to_owned(),
        });
        (rehearsal.status, rehearsal.values.concat())
    };
    let (good, bad) = (RunStatus::Succeeded, RunStatus::Failed);
    assert_eq!(status("['a', 'b']", EachJoin::All, "-"), (good, r#"["a","b"]"#.to_owned()));
    assert_eq!(status("['a', 'b']", EachJoin::All, "a-"), (bad, String::new()));
    assert_eq!(status("['a', 'b']", EachJoin::Any, "a-"), (good, r#"["b"]"#.to_owned()));
    assert_eq!(status("['a', 'b']", EachJoin::Any, "ab-").0, bad);
    assert_eq!(status("['a', 'b']", EachJoin::Settled, "ab-"), (good, "[]".to_owned()));
    assert_eq!(status("[]", EachJoin::All, "-"), (good, "[]".to_owned()));
    assert_eq!(status("'ab'", EachJoin::All, "-").0, bad);
    assert_eq!(status("nothing.there", EachJoin::All, "-").0, bad);
}

#[test]
fn an_item_is_retried_and_reads_its_own_error() {
    let mut every = each("e retry=1", "['x', 'y']", None, EachJoin::All);
    every.stdin = Some(reading(DirectiveKind::Error, "e"));
    let rehearsal = play(&plan(main(vec![every])), |_, stdin| match stdin {
        "" => "!first".to_owned(),
        text => text.to_owned(),
    });
    assert_eq!((rehearsal.values, rehearsal.launches), (vec![r#"["first","first"]"#.to_owned()], 4));
}

/// `main` calls `sub` with a parameter; `sub` goes round twice.
fn calling() -> Plan {
    let mut sub = main(vec![reads(
        "s",
        texts(&[
            reading(DirectiveKind::Param, "what"),
            reading(DirectiveKind::Iteration, ""),
            reading(DirectiveKind::Previous, "s"),
        ]),
    )]);
    sub.name = "sub".to_owned();
    sub.iteration.max = 2;
    sub.params = vec![Param {
        name: "what".to_owned(),
        kind: ParamType::String,
        optional: false,
        default: None,
        env: None,
        description: None,
        origin: Origin::default(),
    }];
    let first = call("c < a", "sub", &[("what", reading(DirectiveKind::Output, "a"))]);
    let second =
        Step { needs: line("x < c").needs, ..call("d", "sub", &[("what", reading(DirectiveKind::Output, "c"))]) };
    let mut plan = plan(main(vec![line("a"), first, second]));
    plan.pipelines.push(sub);
    plan
}

#[test]
fn a_call_is_a_function_with_parameters_rounds_and_a_value() {
    let rehearsal = play(&calling(), |step, stdin| match &*step.name {
        "a" => "A".to_owned(),
        _ => format!("({stdin})"),
    });
    assert_eq!(rehearsal.values, ["((A;2;(A;1;;););2;((A;2;(A;1;;););1;;);)"]);
    assert!(ends(&rehearsal).contains("c/s/1/1 succeeded, c/s/2/1 succeeded, c/1/1 succeeded, d/s/1/1 succeeded"));
    let mut wrong = calling();
    wrong.pipelines[1].params[0].kind = ParamType::Int;
    let told = play(&wrong, |_, _| "x".to_owned());
    assert_eq!(told.status, RunStatus::Failed);
    assert_eq!(told.faults[0].message, ":0:0: parameter `what` of `sub` must be a whole number, but is `x`");
}

#[test]
fn a_call_is_retried_as_a_whole() {
    let mut again = calling();
    again.pipelines[0].steps[1].retry.times = 1;
    let rehearsal = play(&again, |step, _| match step.within.as_deref() {
        Some("c") => "!broken".to_owned(),
        _ => "fine".to_owned(),
    });
    assert_eq!(rehearsal.status, RunStatus::Succeeded);
    assert!(ends(&rehearsal).contains("c/s/1/1 failed, c~2/s/1/1 succeeded, c~2/s/2/1 succeeded, c/1/1 succeeded"));
}

#[test]
fn a_stop_in_a_loop_ends_its_pipeline_but_not_the_caller_s() {
    let mut plan = calling();
    let mut inner = looped("l", 9, "", "x \n halt stop < x \n y < halt");
    inner.needs.clear();
    plan.pipelines[1].steps = vec![inner, line("never < l")];
    plan.pipelines[1].result = vec!["halt".to_owned()];
    let rehearsal = play(&plan, |_, _| "x".to_owned());
    assert_eq!(rehearsal.status, RunStatus::Succeeded);
    let expected = "c/l/x/1/1 succeeded, c/l/halt/1/1 succeeded, c/l/y/1/1 skipped, c.1/l";
    assert!(
        ends(&rehearsal).contains("c/never/1/1 skipped") || ends(&rehearsal).contains(expected),
        "{}",
        ends(&rehearsal)
    );
    assert!(ends(&rehearsal).ends_with("d/1/1 succeeded"), "{}", ends(&rehearsal));
}

#[test]
fn a_gate_puts_out_its_choice_and_fails_without_an_answer() {
    let mut asked = gate("g", &["approve", "reject"], None);
    let Body::Gate(body) = &mut asked.body else { unreachable!() };
    body.message = reading(DirectiveKind::Output, "a");
    asked.needs = line("x < a").needs;
    let mut after = line("after < g");
    after.when = Some(expression("output.g.choice == 'reject' and output.g.why == 'no'"));
    let plan = plan(main(vec![line("a"), asked, after]));
    let mut seen = Vec::new();
    let mut answer = |turn: &Turn<'_>| match &turn.asks {
        Asks::Person { message, .. } => {
            seen.push((*message).to_owned());
            let fields = json!({ "why": "no" }).as_object().unwrap().clone();
            Answer::Choice { choice: "reject".to_owned(), fields }
        }
        _ => Answer::Text("look".to_owned()),
    };
    let rehearsal = rehearse(&plan, &Options::default(), &mut answer).unwrap();
    assert_eq!(
        (rehearsal.status, rehearsal.values, seen),
        (RunStatus::Succeeded, vec!["look".to_owned()], vec!["look".to_owned()])
    );
    let mut unanswered = |turn: &Turn<'_>| match turn.asks {
        Asks::Person { .. } => Answer::Unanswered,
        _ => Answer::Text(String::new()),
    };
    let rehearsal = rehearse(&plan, &Options::default(), &mut unanswered).unwrap();
    assert_eq!(rehearsal.status, RunStatus::Failed);
}

#[test]
fn what_is_read_and_not_there_is_told() {
    let mut plan = plan(main(vec![
        Step { when: Some(expression("false")), ..step("a") },
        reads("b", reading(DirectiveKind::Output, "a")),
    ]));
    plan.pipelines[0].steps[1].needs = line("x < a:always").needs;
    let rehearsal = play(&plan, |_, stdin| stdin.to_owned());
    assert_eq!(rehearsal.values, ["(No output available from task \"a\")"]);
    assert_eq!(rehearsal.missing.len(), 1);
    plan.pipelines[0].steps[1].when = Some(expression("output.a == 'x'"));
    assert_eq!(play(&plan, |_, stdin| stdin.to_owned()).faults.len(), 1);
}

#[test]
fn a_hundred_thousand_items_are_a_matter_of_moments() {
    let mut every = each("e", "range(100000)", None, EachJoin::All);
    every.body = Body::Value(reading(DirectiveKind::Index, ""));
    let rehearsal = play(&plan(main(vec![every])), |_, stdin| stdin.to_owned());
    assert_eq!(rehearsal.status, RunStatus::Succeeded);
    assert!(rehearsal.values[0].ends_with(r#""99999"]"#));
}

#[test]
fn an_agent_mends_what_failed_and_the_step_runs_once_more() {
    let mut plan = plan(main(vec![line("a retry=1"), line("b < a")]));
    plan.pipelines[0].steps[0].on_failure = swarmc_plan::OnFailure::Fix("mender".to_owned());
    hire(&mut plan, "mender");
    let told = |mends: bool, works: bool| {
        let mut seen = Vec::new();
        let mut answer = |turn: &Turn<'_>| {
            seen.push(format!("{} {}", turn.step.name, turn.attempt));
            match &turn.asks {
                Asks::Agent { agent: "mender", prompt, .. } => {
                    assert!(prompt.starts_with("Task `a` failed:\n\nbroken\n\nIts command was:\n\ntrue\n"), "{prompt}");
                    if mends {
                        Answer::Text("done".to_owned())
                    } else {
                        Answer::Failure { exit: 1, output: String::new(), stderr: "no".to_owned() }
                    }
                }
                _ if turn.attempt < 3 && turn.step.name.as_ref() == "a" || !works => {
                    Answer::Failure { exit: 1, output: String::new(), stderr: "broken".to_owned() }
                }
                _ => Answer::Text("fine".to_owned()),
            }
        };
        let rehearsal = rehearse(&plan, &Options::default(), &mut answer).unwrap();
        (rehearsal.status == RunStatus::Succeeded, seen.join(", "))
    };
    assert_eq!(told(true, true), (true, "a 1, a 2, a 3, a 4, b 1".to_owned()));
    assert_eq!(told(true, false), (false, "a 1, a 2, a 3, a 4".to_owned()));
    assert_eq!(told(false, true), (false, "a 1, a 2, a 3".to_owned()));
}

#[test]
fn reports_and_requests_for_help_are_admitted_as_in_a_run() {
    let said = |plan: &Plan, lines: &str| {
        let mut answer = |turn: &Turn<'_>| match (&*turn.step.name, turn.attempt) {
            ("b", 1) => Answer::Text(format!("{lines}\ndone")),
            _ => Answer::Text("done".to_owned()),
        };
        let rehearsal = rehearse(plan, &Options::default(), &mut answer).unwrap();
        let faults: Vec<&str> = rehearsal.faults.iter().map(|fault| fault.message.as_str()).collect();
        let kinds = rehearsal.records.iter().filter_map(|record| match &record.event {
            Event::StatusReported { .. } => Some("report".to_owned()),
            Event::ApprovalAsked { .. } => Some("asked".to_owned()),
            Event::ApprovalAnswered { verdict, .. } => Some(verdict.choice.as_str().to_owned()),
            _ => None,
        });
        format!("{} | {}", kinds.collect::<Vec<_>>().join(", "), faults.join(", "))
    };
    let steps = || Pipeline { edges: vec![edge("a -> b")], ..pipeline("a prompt\n b heeds < a") };
    let report = r#"{"swarm": "report_status", "message": "half"}"#;
    let help = r#"{"swarm": "request_help", "message": "Which port?"}"#;
    let empty = r#"{"swarm": "request_help", "message": " "}"#;
    let mut denying = plan(steps());
    hire(&mut denying, "anyone");
    assert_eq!(said(&denying, &format!("{report}\n{report}")), "report | ");
    assert_eq!(said(&denying, help), "asked, deny | ");
    let problem = "`message` is empty: say what you need to know, or what a person should do";
    assert_eq!(said(&denying, empty), format!(" | a request of its agent was refused: {problem}"));
    denying.policy.unattended = swarmc_plan::Unattended::Approve;
    assert_eq!(said(&denying, help), "asked, allow | ");
}

#[test]
fn a_failed_command_keeps_both_streams_once() {
    let kept = |output: &str, stderr: &str| {
        let mut answer =
            |_: &Turn<'_>| Answer::Failure { exit: 1, output: output.to_owned(), stderr: stderr.to_owned() };
        let failing = Step { keeps_log: true, ..line("a") };
        let rehearsal = rehearse(&plan(main(vec![failing])), &Options::default(), &mut answer).unwrap();
        let ended = rehearsal.records.iter().find_map(|record| match &record.event {
            Event::AttemptEnded { outcome, .. } => Some((outcome.output.clone(), outcome.log.clone())),
            _ => None,
        });
        let (output, log) = ended.unwrap();
        assert_eq!(output, log);
        rehearsal.text(&output.unwrap()).to_owned()
    };
    assert_eq!(kept("", "broken"), "broken");
    assert_eq!(kept("half", "broken"), "half\nbroken");
}

#[test]
fn what_one_answer_hands_over_is_read_in_one_turn() {
    let steps = Pipeline { edges: vec![edge("a -> b")], ..pipeline("a prompt\n b heeds") };
    let mut plan = plan(steps);
    hire(&mut plan, "anyone");
    let line = |text: &str| format!(r#"{{"swarm": "send_handoff", "to": "b", "message": "{text}"}}"#);
    let mut seen = Vec::new();
    let mut answer = |turn: &Turn<'_>| {
        seen.push(format!("{} {}", turn.step.name, turn.attempt));
        match &*turn.step.name {
            "a" => Answer::Text(format!("{}\n{}\ndone", line("one"), line("two"))),
            _ => Answer::Text("done".to_owned()),
        }
    };
    let rehearsal = rehearse(&plan, &Options::default(), &mut answer).unwrap();
    assert_eq!((rehearsal.status, rehearsal.faults), (RunStatus::Succeeded, Vec::new()));
    assert_eq!(seen, ["a 1", "b 1"]);
}

#[test]
fn a_check_after_a_repair_knows_of_it() {
    let schema = swarmc_plan::Schema(json!({ "type": "integer" }));
    let checks = vec![swarmc_plan::Command::Shell("true".to_owned())];
    let mut asked = line("a prompt");
    asked.checks = checks;
    asked.output.schema = Some(schema);
    asked.output.repair = 1;
    let mut plan = plan(main(vec![asked]));
    hire(&mut plan, "anyone");
    let mut seen = Vec::new();
    let mut answer = |turn: &Turn<'_>| {
        seen.push((turn.repair, matches!(turn.asks, Asks::Check { .. })));
        Answer::Text(if turn.repair == 0 { "none".to_owned() } else { "7".to_owned() })
    };
    assert_eq!(rehearse(&plan, &Options::default(), &mut answer).unwrap().status, RunStatus::Succeeded);
    assert_eq!(seen, [(0, false), (1, false), (1, true)]);
}
