//! The whole scheduler: what to do now, given what happened.
//!
//! In: the state and the time. Out: commands, in the order in which they are to be carried out. Pure: the same state
//! and time give the same commands. Its cost depends on the commands it gives, not on the number of steps.

use std::collections::BTreeSet;

use crate::event::{RunStatus, SkipReason, StepId};
use crate::graph::Key;
use crate::state::State;
use crate::state::agenda::Place;
use crate::state::round::Phase;

/// The commands of one kind at most in one answer, where slots do not limit them; the next answer holds more.
const BATCH: usize = 256;

/// An order, which an event answers.
#[derive(Clone, Debug, PartialEq, Eq)]
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
pub fn decide(state: &mut State, now: u64) -> Vec<Command> {
    let mut commands = Vec::new();
    if state.finished().is_some() || state.iteration(1) == 0 {
        return commands;
    }
    cancel(state, &mut commands);
    if !state.stopping {
        wake(state, now);
        skip(state, &mut commands);
        judge(state, &mut commands);
        start(state, &mut commands);
        judge_rounds(state, &mut commands);
        set_alarm(state, &mut commands);
    }
    if state.all_ended() && !std::mem::replace(&mut state.agenda.finishing, true) {
        commands.push(Command::Finish { status: state.verdict() });
    }
    commands
}

fn cancel(state: &mut State, commands: &mut Vec<Command>) {
    while let Some(key) = state.agenda.cancel.pop_first() {
        commands.push(Command::Cancel { step: state.id(key), attempt: state.step(key).attempt });
    }
}

/// Queues the steps whose backoff is over.
fn wake(state: &mut State, now: u64) {
    while let Some(&(due, key)) = state.agenda.timers.first()
        && due <= now
    {
        state.agenda.timers.pop_first();
        state.line_up(key);
    }
}

fn skip(state: &mut State, commands: &mut Vec<Command>) {
    for _ in 0..BATCH {
        let Some(key) = state.agenda.skip.pop_first() else { break };
        state.step_mut(key).place = Place::Nowhere;
        commands.push(Command::Skip { step: state.id(key), reason: state.skip_reason(key) });
    }
}

fn judge(state: &mut State, commands: &mut Vec<Command>) {
    for _ in 0..BATCH {
        let Some(key) = state.agenda.judge.pop_first() else { break };
        state.step_mut(key).place = Place::Nowhere;
        commands.push(Command::Judge { step: state.id(key) });
    }
}

/// Stops first, one at a time in each instance; then, where none is open, what is computed at once, and tasks while
/// there are slots.
fn start(state: &mut State, commands: &mut Vec<Command>) {
    let mut from = Key { instance: 0, step: 0 };
    while let Some(&key) = state.agenda.stops.range(from..).next() {
        let earlier = state.instance(key.instance).stops.range(..key.step).next().is_some();
        if !earlier {
            order(state, key, commands);
        }
        let Some(next) = after(key.instance) else { break };
        from = next;
    }
    let mut from = Key { instance: 0, step: 0 };
    for _ in 0..BATCH {
        let Some(key) = first_free(state, &state.agenda.values, from) else { break };
        order(state, key, commands);
        from = key;
    }
    let mut from = Key { instance: 0, step: 0 };
    while state.agenda.busy < state.graph.concurrency {
        let Some(key) = first_free(state, &state.agenda.tasks, from) else { break };
        order(state, key, commands);
        from = key;
    }
}

/// The first queued step from `from` on whose instance no `stop` holds up.
fn first_free(state: &State, queue: &BTreeSet<Key>, mut from: Key) -> Option<Key> {
    loop {
        let key = *queue.range(from..).next()?;
        if state.instance(key.instance).stops.is_empty() {
            return Some(key);
        }
        from = after(key.instance)?;
    }
}

fn after(instance: u32) -> Option<Key> {
    Some(Key { instance: instance.checked_add(1)?, step: 0 })
}

fn order(state: &mut State, key: Key, commands: &mut Vec<Command>) {
    state.order(key);
    debug_assert!(matches!(state.step(key).phase, Phase::Ready | Phase::Resting(_)), "only ready steps are queued");
    commands.push(Command::Start { step: state.id(key), attempt: state.step(key).attempt });
}

fn judge_rounds(state: &mut State, commands: &mut Vec<Command>) {
    while let Some(instance) = state.agenda.rounds.pop_first() {
        let iteration = state.instance(instance).iteration;
        commands.push(Command::JudgeRound { instance: instance + 1, iteration });
    }
}

fn set_alarm(state: &mut State, commands: &mut Vec<Command>) {
    let due = state.agenda.timers.first().map(|&(due, _)| due);
    if due != std::mem::replace(&mut state.agenda.alarm, due)
        && let Some(due) = due
    {
        commands.push(Command::WakeAt(due));
    }
}
