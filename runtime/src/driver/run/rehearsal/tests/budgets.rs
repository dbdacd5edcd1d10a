//! Budgets in rehearsal: reserved before a launch, whatever runs at once.

use swarmc_plan::{Agent, Budget, Connection, Pipeline, PromptBody, Provider, Step, Template};

use super::super::*;
use crate::core::samples::{call, line, pipeline, plan};
use crate::types::event::Record;

/// Prompts of one agent, one a line, as [`line`] reads it.
fn asking(steps: &str) -> Plan {
    let mut main = pipeline(steps);
    main.steps.iter_mut().for_each(ask);
    let mut plan = plan(main);
    plan.agents = vec![Agent { name: "ada".to_owned(), provider: "p".to_owned(), ..Agent::default() }];
    let connection = Connection::Script { answers: Vec::new() };
    plan.providers = vec![Provider { name: "p".to_owned(), connection, ..Provider::default() }];
    plan
}

fn ask(step: &mut Step) {
    let prompt = Template { segments: vec![swarmc_plan::Segment::Text("x".repeat(100))], digest: String::new() };
    step.body = Body::Prompt(PromptBody { agent: "ada".to_owned(), prompt, context: Vec::new() });
}

fn play(plan: &Plan) -> Rehearsal {
    rehearse(plan, &Options::default(), &mut |_| Answer::Text("done".to_owned())).unwrap()
}

fn calls(calls: u64) -> Option<Budget> {
    Some(Budget { calls: Some(calls), ..Budget::default() })
}

fn why(rehearsal: &Rehearsal) -> String {
    let words = |record: &Record| match &record.event {
        Event::BudgetSpent { message, .. } => Some(message.clone()),
        Event::AttemptEnded { outcome, .. } => outcome.failure.as_ref().map(ToString::to_string),
        _ => None,
    };
    rehearsal.records.iter().find_map(words).unwrap_or_default()
}

#[test]
fn launches_at_once_do_not_exceed_the_budget_of_the_run() {
    let steps = "a \n b \n c \n d \n e \n f < a:always";
    let mut plan = asking(steps);
    plan.budget = calls(3);
    let rehearsal = play(&plan);
    // Those that it admitted were ordered together with the one that it refused, and are not started either.
    assert_eq!((rehearsal.status, rehearsal.turns), (RunStatus::OverBudget, 0));
    let expected = "the budget of the workflow is 3 turns of agents: 3 are used or reserved, and this may use 1 more";
    assert_eq!(why(&rehearsal), expected);
    plan.budget = calls(6);
    assert_eq!(play(&plan).status, RunStatus::Succeeded);
    plan.budget = None;
    plan.pipelines[0].budget = calls(5);
    assert_eq!((play(&plan).status, play(&plan).turns), (RunStatus::OverBudget, 5));
}

#[test]
fn what_the_run_s_budget_refuses_cannot_be_handled_and_what_an_agent_s_refuses_can() {
    let mut plan = asking("a \n b < a \n c < b:failure!");
    plan.budget = calls(1);
    assert_eq!(play(&plan).status, RunStatus::OverBudget);
    plan.budget = None;
    plan.agents[0].budget = calls(1);
    plan.pipelines[0].steps[2].body = Body::Value(Template::default());
    let rehearsal = play(&plan);
    assert_eq!((rehearsal.status, rehearsal.turns), (RunStatus::Succeeded, 1));
    assert!(why(&rehearsal).starts_with("the budget of agent `ada` is 1 turns"), "{}", why(&rehearsal));
}

#[test]
fn a_task_has_its_budget_over_all_its_attempts_and_a_call_over_all_in_it() {
    let mut plan = asking("a retry=5");
    plan.pipelines[0].steps[0].budget = calls(2).map(|budget| Budget { warn: 80, ..budget });
    let mut fails = |_: &Turn<'_>| Answer::Failure { exit: 1, output: String::new(), stderr: String::new() };
    let rehearsal = rehearse(&plan, &Options::default(), &mut fails).unwrap();
    assert_eq!((rehearsal.status, rehearsal.turns), (RunStatus::Failed, 2));
    let mut plan = asking("x \n y < x \n z < y");
    plan.pipelines[0].name = "sub".to_owned();
    plan.pipelines[0].budget = calls(2);
    plan.pipelines.insert(0, Pipeline { steps: vec![call("c", "sub", &[]), line("d < c:failure!")], ..pipeline("") });
    let rehearsal = play(&plan);
    assert_eq!((rehearsal.status, rehearsal.turns), (RunStatus::Succeeded, 2));
}

#[test]
fn tokens_are_bounded_by_bytes_and_what_an_agent_may_write() {
    let mut plan = asking("a \n b < a \n c < b");
    plan.agents[0].max_output = Some(50);
    plan.budget = Some(Budget { tokens: Some(310), ..Budget::default() });
    let rehearsal = play(&plan);
    assert_eq!((rehearsal.status, rehearsal.turns), (RunStatus::OverBudget, 2));
    let expected = "the budget of the workflow is 310 tokens: 300 are used or reserved, and this may use 150 more";
    assert_eq!(why(&rehearsal), expected);
    plan.providers[0].price = Some(swarmc_plan::Price { input: 1_000_000, output: 2_000_000, ..Default::default() });
    plan.budget = Some(Budget { cost: Some(400), ..Budget::default() });
    assert_eq!(play(&plan).turns, 2, "a turn costs 100 and 2 times 50");
}

#[test]
fn a_budget_that_proves_nothing_lets_what_runs_finish() {
    let mut plan = asking("a \n b \n c \n d < a \n e < c:always");
    let at_most = |budget: Option<Budget>| budget.map(|budget| Budget { at_most: true, ..budget });
    plan.budget = at_most(calls(3));
    let rehearsal = play(&plan);
    assert_eq!((rehearsal.status, rehearsal.turns), (RunStatus::OverBudget, 3));
    assert_eq!(why(&rehearsal), "the budget of the workflow is used up: 3 of 3 turns of agents");
    let spent = |record: &&Record| matches!(record.event, Event::BudgetSpent { graceful: true, .. });
    assert_eq!(rehearsal.records.iter().filter(spent).count(), 1, "said once");
    // What is only reserved does not count: each of the three could use 250.
    plan.agents[0].max_output = Some(150);
    plan.budget = at_most(Some(Budget { tokens: Some(240), ..Budget::default() }));
    assert_eq!(play(&plan).turns, 3);
    plan.budget.as_mut().unwrap().at_most = false;
    assert_eq!(play(&plan).turns, 0);
}
