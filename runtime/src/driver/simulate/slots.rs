//! How many steps run at once: commands, agents, and whatever has a limit of its own.

use swarmc_plan::{Agent, Pipeline, Plan, Provider};

use super::tables::{commands, play_in};
use crate::core::samples::{graph_of, pipeline, plan};
use crate::types::event::{Event, Record};
use crate::{Command, State};

/// What holds steps back that could begin, where agents are those of a provider with this limit.
fn held_back(mut pipeline: Pipeline, concurrency: Option<u32>, limit: Option<u32>, expected: (&str, &[&str])) {
    pipeline.concurrency = concurrency;
    let agent = Agent { name: "anyone".to_owned(), provider: "slow".to_owned(), ..Agent::default() };
    let provider = Provider { name: "slow".to_owned(), concurrency: limit, ..Provider::default() };
    let plan = Plan { agents: vec![agent], providers: vec![provider], ..plan(pipeline) };
    let (mut state, answer) = play_in(State::new(graph_of(&plan)), "");
    assert_eq!(commands(&mut answer.clone()), expected.0);
    for (seq, command) in (2..).zip(answer) {
        let Command::Start { step, attempt } = command else { continue };
        let event = Event::AttemptStarted { step, attempt, reserved: None, summarizer: None };
        state.apply(&Record { seq, at: 1_000, event });
    }
    let blocked: Vec<String> = state.blocked_steps().map(|(step, waits)| format!("{}: {waits}", step.name)).collect();
    assert_eq!(blocked, expected.1);
}

#[test]
fn agents_take_no_slots_of_commands_and_what_is_held_back_is_told_the_limit() {
    let mixed = || pipeline("c \n d \n e \n f \n g \n a prompt \n b prompt limit=1");
    let four = "start c 1, start d 1, start e 1, start f 1";
    held_back(
        mixed(),
        None,
        None,
        (
            &format!("{four}, start a 1, start b 1"),
            &["g: a free slot: 4 commands may run at once, one for each processor"],
        ),
    );
    let stopped = "a free slot: provider `slow` has `concurrency 1`";
    let commands = "g: a free slot: 4 commands may run at once, one for each processor";
    held_back(mixed(), None, Some(1), (&format!("{four}, start a 1"), &[commands, &format!("b: {stopped}")]));
    let declared = "a free slot: pipeline `main` has `concurrency 5`";
    held_back(
        mixed(),
        Some(5),
        None,
        (&format!("{four}, start g 1"), &[&format!("a: {declared}"), &format!("b: {declared}")]),
    );
    let mut twice = pipeline("b limit=1");
    twice.parallelism = 2;
    held_back(twice, None, None, ("start b 1", &["b: a free slot: it has `concurrency 1`"]));
    let many: String = (0..17).map(|number| format!("a{number} prompt\n")).collect();
    let started: Vec<String> = (0..16).map(|number| format!("start a{number} 1")).collect();
    held_back(pipeline(&many), None, None, (&started.join(", "), &["a16: a free slot: 16 agents may run at once"]));
}
