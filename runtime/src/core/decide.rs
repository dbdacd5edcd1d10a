//! The whole scheduler: what to do now, given what happened.
//!
//! In: the state and the time. Out: commands, in the order in which they are to be carried out. Pure: the same state
//! and time give the same commands. Its cost depends on the commands it gives, not on the number of steps.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::core::graph::{Key, Kind};
use crate::core::state::State;
use crate::core::state::frame::Phase;
use crate::core::state::run_queues::{DeclarationOrder, Place};
use crate::core::swarm::SwarmCommand;
use crate::types::event::{AttemptId, Failure, RunStatus, SkipReason, StepId};

/// The commands of one kind at most in one answer, where slots do not limit them; the next answer holds more.
const BATCH: usize = 256;

/// An order, which an event answers.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Render and run an attempt, and report `AttemptStarted`, `ProcessStarted` and `AttemptEnded`.
    Start {
        /// The step.
        step: StepId,
        /// The attempt, from 1.
        attempt: u32,
    },
    /// Evaluate the step's `when`, and report `ConditionJudged`.
    Judge {
        /// The step.
        step: StepId,
    },
    /// Evaluate the conditions of `until`, and report `RoundJudged`.
    JudgeRound {
        /// The instance of the pipeline, from 1.
        instance: u32,
        /// The round, from 1.
        iteration: u32,
        /// The loop or call whose round it is; none is the pipeline that runs.
        within: Option<Arc<str>>,
    },
    /// Evaluate the list of a for-each or the parameters of a call, and report `Opened`; or, where that fails,
    /// `AttemptStarted` and `AttemptEnded`.
    Open {
        /// The step.
        step: StepId,
        /// The attempt, from 1.
        attempt: u32,
    },
    /// Put together what the inside of a loop, for-each or call left, and report `AttemptEnded`.
    Conclude {
        /// The step.
        step: StepId,
        /// The attempt, from 1.
        attempt: u32,
        /// Why it failed; none when it succeeded.
        failure: Option<Failure>,
    },
    /// Render the message of a gate, and report `GateOpened`; or, where that fails, `AttemptStarted` and
    /// `AttemptEnded`. `GateAnswered` comes when a person answers.
    Ask {
        /// The gate.
        step: StepId,
    },
    /// Record `GateAnswered` with what the gate says about an answer that did not come in time.
    TimeOut {
        /// The gate.
        step: StepId,
    },
    /// Ask a person whether a step that goes in circles goes on, and report `ApprovalAsked`, unless that is open
    /// already; `ApprovalAnswered` comes when a person answers.
    AskToGoOn {
        /// The step.
        step: StepId,
        /// The attempt that ended last.
        attempt: u32,
    },
    /// Answer a request that no person answered in time, as the policy says. Record `ApprovalAnswered` at once; for a
    /// request of a swarm that has yet to go on, record it when the swarm does.
    Expire {
        /// The number of the request.
        request: u32,
    },
    /// Record `StepSkipped`.
    Skip {
        /// The step.
        step: StepId,
        /// Why.
        reason: SkipReason,
    },
    /// End an attempt that was ordered to start, and report `AttemptEnded` with `Cancelled` (or how it ended before).
    Cancel {
        /// The step.
        step: StepId,
        /// The attempt.
        attempt: u32,
    },
    /// Record `NodeClosed`: the step waited for envelopes, and no step can write one any more.
    Close {
        /// The step.
        step: StepId,
        /// To whom it owes an answer, and who never answered it.
        owes: Vec<String>,
    },
    /// Carry out what a swarm needs done.
    Swarm {
        /// The swarm: the step that it runs as, and the attempt of that step.
        swarm: AttemptId,
        /// What it needs.
        command: Box<SwarmCommand>,
    },
    /// The time that the budget gives the run is over: record `BudgetSpent`.
    Overdue,
    /// Ask again at this time at the latest, in milliseconds since 1970.
    WakeAt(u64),
    /// Record `RunFinished`.
    Finish {
        /// How.
        status: RunStatus,
    },
}

/// What to do now. Every command is given once: ask again after the events that it led to are applied.
///
/// Nothing is decided before the run started and after it finished; once a stop was requested, open attempts are
/// cancelled and nothing else happens until `RunResumed`, unless everything has settled already.
pub fn decide_commands(state: &mut State, now: u64) -> Vec<Command> {
    let mut commands = Vec::new();
    if state.final_status().is_some() || state.iteration(1) == 0 {
        return commands;
    }
    // Also while the run stops: that is how open attempts end.
    cancel_steps(state, &mut commands);
    if !state.stopping {
        if !state.over_budget && !state.agenda.overdue && state.deadline().is_some_and(|deadline| deadline <= now) {
            // Once: until `BudgetSpent` is recorded, the time stays over.
            state.agenda.overdue = true;
            commands.push(Command::Overdue);
            return commands;
        }
        wake_steps(state, now, &mut commands);
        skip_steps(state, &mut commands);
        judge_steps(state, &mut commands);
        ask_about_stalled(state, &mut commands);
        close_steps(state, &mut commands);
        conclude_steps(state, &mut commands);
        start_steps(state, &mut commands);
        judge_rounds(state, &mut commands);
        drive_swarms(state, now, &mut commands);
        if commands.is_empty() {
            // As if a person had answered: an agent whose turn begins then knows all that came before.
            expire_requests(state, now, &mut commands);
        }
        set_alarm(state, &mut commands);
    }
    // Also in a run that stops: where everything has settled, nothing is left to be resumed.
    if state.all_ended() && !std::mem::replace(&mut state.agenda.finishing, true) {
        commands.push(Command::Finish { status: state.decide_status() });
    }
    commands
}

fn cancel_steps(state: &mut State, commands: &mut Vec<Command>) {
    while let Some(key) = state.agenda.cancel.pop_first() {
        commands.push(Command::Cancel { step: state.id(key), attempt: state.step(key).attempt });
    }
}

/// Queues the steps whose backoff is over, and gives up the gates that no person answered in time.
fn wake_steps(state: &mut State, now: u64, commands: &mut Vec<Command>) {
    while let Some(&(due, key)) = state.agenda.timers.first()
        && due <= now
    {
        state.agenda.timers.pop_first();
        match state.step(key).phase {
            Phase::Asking(_) => {
                state.step_mut(key).place = Place::Nowhere;
                commands.push(Command::TimeOut { step: state.id(key) });
            }
            _ => state.enqueue_ready(key),
        }
    }
}

fn skip_steps(state: &mut State, commands: &mut Vec<Command>) {
    for _ in 0..BATCH {
        let Some(key) = state.agenda.skip.pop_first() else { break };
        state.step_mut(key).place = Place::Nowhere;
        commands.push(Command::Skip { step: state.id(key), reason: state.skip_reason(key) });
    }
}

fn judge_steps(state: &mut State, commands: &mut Vec<Command>) {
    for _ in 0..BATCH {
        let Some(key) = state.agenda.judge.pop_first() else { break };
        state.step_mut(key).place = Place::Nowhere;
        commands.push(Command::Judge { step: state.id(key) });
    }
}

/// Asks a person about the steps that go in circles.
fn ask_about_stalled(state: &mut State, commands: &mut Vec<Command>) {
    while let Some(key) = state.agenda.stalled.pop_first() {
        state.step_mut(key).place = Place::Nowhere;
        commands.push(Command::AskToGoOn { step: state.id(key), attempt: state.step(key).attempt });
    }
}

/// Lets the steps go on to which no other step can write any more.
fn close_steps(state: &mut State, commands: &mut Vec<Command>) {
    while let Some(scope) = state.agenda.posts.pop_first() {
        // Which steps can write is known only when all other changes are made: it is asked once for each activation.
        let mut quiet = state.find_quiescent(scope);
        // A step that begins may write to the others.
        while !quiet.begin.is_empty() {
            quiet.begin.into_iter().for_each(|key| state.begin_step(key));
            quiet = state.find_quiescent(scope);
        }
        let skipped = quiet.unspawned.into_iter();
        commands.extend(skipped.map(|key| Command::Skip { step: state.id(key), reason: SkipReason::Unspawned }));
        commands.extend(
            quiet
                .close
                .into_iter()
                .map(|key| Command::Close { step: state.id(key), owes: state.describe_owed_answers(key) }),
        );
    }
}

fn conclude_steps(state: &mut State, commands: &mut Vec<Command>) {
    for _ in 0..BATCH {
        let Some(key) = state.agenda.conclude.pop_first() else { break };
        state.step_mut(key).place = Place::Nowhere;
        let (step, attempt) = (state.id(key), state.step(key).attempt);
        commands.push(Command::Conclude { step, attempt, failure: state.conclusion(key) });
    }
}

/// Stops first, one at a time in each pipeline; then, where none is open, what takes no slot, and tasks while there
/// are slots.
fn start_steps(state: &mut State, commands: &mut Vec<Command>) {
    let mut from = None;
    while let Some(turn) = next(&state.agenda.stops, from.as_ref()) {
        let scope = state.frame(turn.key.frame).scope;
        let earlier = state.frame(scope).stops.first().is_some_and(|first| *first < turn);
        // An earlier `stop` may end the pipeline first, and one further out ends this pipeline as well.
        if !earlier && state.held_by(turn.key.frame).is_none_or(|holder| holder == scope) {
            order_step(state, turn.key, commands);
        }
        // Further stops of this pipeline wait for the first: the next pipeline's are behind all of it.
        let Some(behind) = DeclarationOrder::behind_frame(&state.frame(scope).rank) else { break };
        from = Some(behind);
    }
    let mut from = None;
    for _ in 0..BATCH {
        let Some(turn) = first_free(state, &state.agenda.values, from) else { break };
        order_step(state, turn.key, commands);
        from = Some(turn);
    }
    let mut from = None;
    while state.agenda.busy < state.graph.concurrency {
        let Some(turn) = first_free(state, &state.agenda.tasks, from) else { break };
        order_step(state, turn.key, commands);
        from = Some(turn);
    }
}

fn next(queue: &BTreeSet<DeclarationOrder>, from: Option<&DeclarationOrder>) -> Option<DeclarationOrder> {
    match from {
        Some(from) => queue.range(from..).next().cloned(),
        None => queue.first().cloned(),
    }
}

/// The first queued step from `from` on that no `stop` holds up.
fn first_free(
    state: &State,
    queue: &BTreeSet<DeclarationOrder>,
    mut from: Option<DeclarationOrder>,
) -> Option<DeclarationOrder> {
    loop {
        let turn = next(queue, from.as_ref())?;
        match state.held_by(turn.key.frame) {
            None => return Some(turn),
            // Jumps over everything that the `stop` holds up, however much that is.
            Some(scope) => from = Some(DeclarationOrder::behind_frame(&state.frame(scope).rank)?),
        }
    }
}

fn order_step(state: &mut State, key: Key, commands: &mut Vec<Command>) {
    state.mark_ordered(key);
    debug_assert!(
        matches!(state.step(key).phase, Phase::Ready | Phase::Listening | Phase::Resting(_)),
        "only ready steps are queued"
    );
    let (step, attempt) = (state.id(key), state.step(key).attempt);
    commands.push(match state.node(key).kind {
        Kind::Task | Kind::Value | Kind::Stop(_) => Command::Start { step, attempt },
        Kind::Loop(_) | Kind::Each { .. } | Kind::Call(_) => Command::Open { step, attempt },
        Kind::Gate(_) => Command::Ask { step },
    });
}

fn judge_rounds(state: &mut State, commands: &mut Vec<Command>) {
    while let Some(number) = state.agenda.rounds.pop_first() {
        let frame = state.frame(number);
        let (instance, iteration, within) = (frame.instance, frame.iteration, frame.path.clone());
        commands.push(Command::JudgeRound { instance, iteration, within });
    }
}

/// Has each swarm do one thing.
fn drive_swarms(state: &mut State, now: u64, commands: &mut Vec<Command>) {
    // What is due in a swarm puts it in the queue that is emptied below.
    state.wake_swarms(now);
    for key in std::mem::take(&mut state.agenda.swarms) {
        if let Some(command) = state.swarm_command(key, now) {
            // What it needs besides depends on what comes of this.
            state.agenda.swarms.insert(key);
            let swarm = AttemptId::new(&state.id(key), state.step(key).attempt);
            commands.push(Command::Swarm { swarm, command: Box::new(command) });
        }
    }
}

/// Has the request answered whose time is over, one at a time.
fn expire_requests(state: &mut State, now: u64, commands: &mut Vec<Command>) {
    commands.extend(state.expire_next(now).map(|request| Command::Expire { request }));
}

fn set_alarm(state: &mut State, commands: &mut Vec<Command>) {
    let deadline = state.deadline().filter(|_| !state.over_budget && !state.all_ended());
    let due = [state.next_pause(), deadline, state.swarms_due(), state.requests_due()].into_iter().flatten().min();
    // Most changes leave the next moment as it is: the driver has that alarm already.
    if due != std::mem::replace(&mut state.agenda.alarm, due)
        && let Some(due) = due
    {
        commands.push(Command::WakeAt(due));
    }
}
