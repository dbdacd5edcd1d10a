//! The swarms of a run: which step runs which, and when there is something to do in one.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::State;
use super::frame::Phase;
use crate::core::graph::Key;
use crate::core::swarm::{Swarm, SwarmCommand, decide_swarm, expire_agent};
use crate::types::event::{AttemptId, Event, Reserved, StepId};
use crate::types::swarm::{Purpose, TurnId};

/// A swarm of a step.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct SwarmState {
    /// The attempt of the step.
    attempt: u32,
    pub(crate) swarm: Swarm,
}

impl State {
    /// What a swarm needs done next; none when everything waits for an event.
    pub(crate) fn swarm_command(&mut self, key: Key, now: u64) -> Option<SwarmCommand> {
        let may_act = self.swarm_may_act(key);
        let swarm_state = self.swarms.get_mut(&key).filter(|_| may_act)?;
        // Where a replay decides when something is over, the time does not.
        decide_swarm(&mut swarm_state.swarm, if self.paced { 0 } else { now })
    }

    /// Whether the swarm of a step runs, and is not about to end.
    pub(crate) fn swarm_may_act(&self, key: Key) -> bool {
        self.step(key).phase == Phase::Running && !self.stopping && !self.step(key).cancelling
    }

    /// What a turn waits for has come. False when it does not wait.
    pub(crate) fn swarm_again(&mut self, key: Key, turn: &TurnId) -> bool {
        let again = self.swarms.get_mut(&key).is_some_and(|swarm_state| swarm_state.swarm.retry_turn(turn));
        if again {
            self.look_at(key);
        }
        again
    }

    /// The time of an agent is over.
    pub(crate) fn swarm_overdue(&mut self, key: Key, agent: &str) {
        if let Some(swarm_state) = self.swarms.get_mut(&key)
            && let Some(&index) = swarm_state.swarm.names.get(agent)
        {
            expire_agent(&mut swarm_state.swarm, index);
            self.look_at(key);
        }
    }

    /// The coordinator's time to decide a proposal is over.
    pub(crate) fn proposal_overdue(&mut self, key: Key, proposal: u32) {
        if let Some(swarm_state) = self.swarms.get_mut(&key) {
            swarm_state.swarm.expire_proposal(proposal);
            self.look_at(key);
        }
    }

    /// The swarm that an attempt of a step runs, once it has started.
    pub(crate) fn swarm(&self, key: Key, attempt: u32) -> Option<&Swarm> {
        self.swarms.get(&key).filter(|swarm_state| swarm_state.attempt == attempt).map(|swarm_state| &swarm_state.swarm)
    }

    /// The turns of swarms that a former process has begun, or was about to.
    pub(crate) fn open_turns(&self) -> impl Iterator<Item = (StepId, u32, TurnId)> {
        self.swarms.iter().filter(|(key, _)| self.step(**key).phase == Phase::Running).flat_map(|(&key, state)| {
            let (step, attempt) = (self.id(key), state.attempt);
            state.swarm.open_turns().into_iter().map(move |turn| (step.clone(), attempt, turn))
        })
    }

    /// Something happened in a swarm.
    pub(super) fn apply_swarm_event(&mut self, key: Key, id: &AttemptId, event: &Event, at: u64) {
        let attempt = id.attempt;
        if self.step(key).attempt != attempt || self.step(key).phase != Phase::Running {
            return;
        }
        if let Event::SwarmStarted { run, goal, .. } = event {
            if let Some(rules) = self.node(key).swarm.clone() {
                let swarm = Swarm::new(id.clone(), rules, run, goal.clone());
                self.swarms.insert(key, SwarmState { attempt, swarm });
                self.look_at(key);
            }
            return;
        }
        self.account_turn(key, event);
        if let Some(swarm_state) = self.swarms.get_mut(&key).filter(|swarm_state| swarm_state.attempt == attempt) {
            swarm_state.swarm.apply(event, at);
            self.look_at(key);
        }
    }

    /// What a turn reserves and uses counts for the budgets around the swarm.
    fn account_turn(&mut self, key: Key, event: &Event) {
        if !self.graph.has_budgets {
            return;
        }
        match event {
            Event::TurnStarted { turn, reserved, .. } => {
                if let Some((agent, before)) = self.turn_of(key, turn) {
                    // A turn that a crash cut off is asked once more, in the place of the first time: that call is made,
                    // but what it reserved is free again.
                    self.turn_used(key, &agent, &before, [Some(0), Some(0)]);
                    self.turn_reserved(key, &agent, &reserved.unwrap_or_default());
                }
            }
            Event::TurnEnded { turn, usage, cost, .. } => {
                if let Some((agent, reserved)) = self.turn_of(key, turn) {
                    let tokens = usage.map(|usage| usage.input.saturating_add(usage.output));
                    self.turn_used(key, &agent, &reserved, [tokens, *cost]);
                }
            }
            _ => {}
        }
    }

    /// The declared agent whose turn this is, with what it reserved, where it is a current one.
    fn turn_of(&self, key: Key, turn: &TurnId) -> Option<(Arc<str>, Reserved)> {
        let swarm = &self.swarms.get(&key)?.swarm;
        match turn.purpose {
            Purpose::Act => swarm.open_turn(turn),
            Purpose::Decompose | Purpose::Synthesize => swarm.open_lead(turn),
        }
    }

    /// There may be something to do in the swarm of a step.
    pub(super) fn look_at(&mut self, key: Key) {
        if self.swarms.contains_key(&key) {
            self.agenda.swarms.insert(key);
        }
    }

    pub(super) fn swarms_resumed(&mut self, gap: u64, at: u64) {
        self.swarms.values_mut().for_each(|swarm_state| swarm_state.swarm.resume_swarm(gap, at));
    }

    /// Looks at the swarms that have waited long enough.
    pub(crate) fn wake_swarms(&mut self, now: u64) {
        if self.paced {
            return;
        }
        let due = self.swarms.iter().filter(|(_, swarm_state)| swarm_state.swarm.due().is_some_and(|due| due <= now));
        let due: Vec<Key> = due.map(|(&key, _)| key).collect();
        self.agenda.swarms.extend(due);
    }

    /// When there is something to do in a swarm at the latest, in milliseconds since 1970.
    pub(crate) fn swarms_due(&self) -> Option<u64> {
        self.swarms.values().filter(|_| !self.paced).filter_map(|swarm_state| swarm_state.swarm.due()).min()
    }
}
