//! The connection states of a run's nodes: connected, idle, disconnected (seed 002, "Real-time connection
//! state").
//!
//! In: the state, the records for their times, and the activities from the process that runs it. Out: a [`Standing`]
//! for each node of the current rounds that has begun, or waits for an envelope.

use std::collections::HashMap;

use serde::{Serialize, Serializer};

use super::State;
use super::frame::Phase;
use super::pending::Pending;
use crate::core::graph::Key;
use crate::types::activity::{Activity, Flow};
use crate::types::event::{Record, StepId};
use crate::types::telemetry::{Link, TelemetryKind};

/// The connection of a node to its agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Standing {
    /// The step.
    #[serde(serialize_with = "label")]
    pub step: StepId,
    /// Its last attempt, or the one that comes next.
    pub attempt: u32,
    /// Whether the agent is connected.
    pub state: Link,
    /// What its agent is doing, where a turn goes on.
    pub stream: Option<Flow>,
    /// Under which id its provider keeps the conversation of that attempt, where that is known.
    pub session: Option<String>,
    /// When it last did something, in milliseconds since 1970 (UTC).
    pub active_ms: u64,
    /// What it waits for, where it is idle.
    pub waits: Option<&'static str>,
    /// Whom it waits for, each with what that is doing, where it waits for envelopes.
    pub pending: Vec<Pending>,
}

fn label<S: Serializer>(step: &StepId, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&step.label())
}

impl State {
    /// The connections of its nodes: the steps that agents take, and those that edges lead to or away from. The state
    /// was made of `records`; the process that runs the run reports `activities`, and they are none where no process
    /// does.
    pub fn list_standings(&self, records: &[Record], activities: Option<&[Activity]>) -> Vec<Standing> {
        let live: HashMap<(&StepId, u32), &Activity> =
            activities.unwrap_or_default().iter().map(|pulse| ((&pulse.step, pulse.attempt), pulse)).collect();
        let mut standings: Vec<Standing> = self
            .nodes()
            .filter_map(|key| {
                let (runs, waits) = self.connection_state(key)?;
                let (step, attempt) = (self.id(key), self.step(key).attempt);
                let pulse = live.get(&(&step, attempt)).filter(|_| runs);
                let state = match (activities, runs, waits) {
                    _ if self.final_status().is_some() => Link::Over,
                    (Some(_), true, _) => Link::Connected,
                    (Some(_), false, Some(_)) => Link::Idle,
                    _ => Link::Disconnected,
                };
                let idle = state == Link::Idle;
                let pending = if idle { self.list_pending(&step, true) } else { Vec::new() };
                Some(Standing {
                    attempt,
                    state,
                    stream: pulse.map(|pulse| pulse.stream),
                    session: self.talk_of(key).map(str::to_owned),
                    active_ms: pulse.map_or(0, |pulse| pulse.active_ms),
                    waits: waits.filter(|_| idle),
                    pending,
                    step,
                })
            })
            .collect();
        let mut last: HashMap<StepId, u64> = standings.iter().map(|standing| (standing.step.clone(), 0)).collect();
        for record in records {
            if let Some(at) = record.event.step().and_then(|step| last.get_mut(step)) {
                *at = record.at;
            }
        }
        for standing in &mut standings {
            let at = last.get(&standing.step).copied().filter(|&at| at > 0).or(self.began).unwrap_or_default();
            standing.active_ms = standing.active_ms.max(at);
        }
        standings
    }

    /// The connection of a node of a run that goes on, as far as its journal shows: its attempt, and the signal of
    /// that. None where the step has not begun, or is no node.
    pub(crate) fn find_connection(&self, step: &StepId) -> Option<(u32, TelemetryKind)> {
        let key = self.find_step(step).filter(|&key| self.is_node(key))?;
        let (runs, waits) = self.connection_state(key)?;
        let state = match (runs, waits) {
            (true, _) => Link::Connected,
            (false, Some(_)) => Link::Idle,
            (false, None) => Link::Disconnected,
        };
        let (session, waits) = (self.talk_of(key).map(str::to_owned), waits.map(str::to_owned));
        // A turn begins with what its agent is sent.
        let stream = runs.then_some(Flow::Reading);
        Some((self.step(key).attempt, TelemetryKind::Connection { state, stream, session, waits }))
    }

    /// The steps that agents take, and those that edges lead to or away from.
    fn nodes(&self) -> impl Iterator<Item = Key> {
        let frames = (0..).zip(&self.frames);
        let keys = frames.flat_map(|(frame, found)| (0..found.steps.len() as u32).map(move |step| Key { frame, step }));
        keys.filter(|&key| self.is_node(key))
    }

    pub(super) fn is_node(&self, key: Key) -> bool {
        let node = self.node(key);
        let (scope, spot) = self.address(key);
        let sends = || self.graph.scope(self.region(scope).scope).ways.edges_from(spot).next().is_some();
        node.agent.is_some() || node.swarm.is_some() || node.wired || sends()
    }

    /// Whether a turn of a step goes on, and else what it waits for; nothing of either when it has ended, and no answer
    /// at all when it has not begun.
    fn connection_state(&self, key: Key) -> Option<(bool, Option<&'static str>)> {
        let step = self.step(key);
        match step.phase {
            Phase::Running => Some((true, None)),
            Phase::Listening => Some((false, Some("its first envelope"))),
            Phase::Idle if self.waits_for_help(key) => Some((false, Some("a person's help"))),
            Phase::Idle => Some((false, Some("envelopes"))),
            Phase::Asking(_) => Some((false, Some("a person"))),
            Phase::Stalled => Some((false, Some("a person's decision: it repeats itself"))),
            Phase::Resting(_) => Some((false, Some("its next attempt"))),
            Phase::Ready if step.started => Some((false, Some("its turn"))),
            Phase::Settled(_) if step.started => Some((false, None)),
            // The steps inside of it have connections of their own.
            Phase::Inside | Phase::Concluding => None,
            Phase::Waiting | Phase::Judging | Phase::Skipping(_) | Phase::Ready | Phase::Settled(_) => None,
        }
    }
}
