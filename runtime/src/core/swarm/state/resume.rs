//! What a swarm does after a time in which no process ran it, and which of its turns wait.

use super::{AgentStage, LeadStage, Swarm, Timer};
use crate::types::swarm::{Purpose, TurnId};

impl Swarm {
    /// Another process took the run over, after a time in which no process ran it: open turns and calls begin again.
    pub(crate) fn resume_swarm(&mut self, gap: u64, at: u64) {
        // Both were orders to the former process.
        self.agenda.finishing = false;
        self.agenda.cancel.clear();
        for index in 0..self.agents.len() as u32 {
            let agent = &mut self.agents[index as usize];
            if let Some(began) = agent.began.as_mut().filter(|_| agent.end.is_none()) {
                let limit = self.rules.limits.timeout_ms;
                // The time is the key of a timer: the old one goes before the time changes.
                self.agenda.timers.remove(&(began.saturating_add(limit), Timer::Deadline(index)));
                *began = began.saturating_add(gap);
                // The time of one that waits for an approval stands still.
                if !matches!(agent.stage, AgentStage::Pending(..)) {
                    self.agenda.timers.insert((began.saturating_add(limit), Timer::Deadline(index)));
                }
            }
            let latest = at.saturating_add(agent.wait);
            match agent.stage.clone() {
                AgentStage::Ordered | AgentStage::Asking => {
                    self.agents[index as usize].repeat_turn();
                    self.enter_stage(index, AgentStage::Ready);
                }
                AgentStage::Calling(act, true) => self.enter_stage(index, AgentStage::Calling(act, false)),
                // A clock that was wrong must not make an agent wait longer than it was told to.
                AgentStage::Resting(due) if due > latest => self.enter_stage(index, AgentStage::Resting(latest)),
                AgentStage::Retrying(act, due) if due > latest => {
                    self.enter_stage(index, AgentStage::Retrying(act, latest))
                }
                AgentStage::Pending(act, id, since) => {
                    self.enter_stage(index, AgentStage::Pending(act, id, since.saturating_add(gap)));
                }
                // What was ordered and not recorded is ordered again.
                stage @ (AgentStage::Ready
                | AgentStage::Acting(_)
                | AgentStage::Calling(_, false)
                | AgentStage::Helping(..)
                | AgentStage::Denied(..)
                | AgentStage::Informed(_)
                | AgentStage::Ending(..)) => self.enter_stage(index, stage),
                AgentStage::Waiting
                | AgentStage::Resting(_)
                | AgentStage::Retrying(..)
                | AgentStage::Idle
                | AgentStage::Done => {}
            }
        }
        self.delay_deadlines(gap);
        let latest = at.saturating_add(self.lead.wait);
        match self.lead.stage {
            LeadStage::Ordered | LeadStage::Asking => self.lead.stage = LeadStage::Ready,
            LeadStage::Resting(due) if due > latest => self.rest_lead(latest),
            _ => {}
        }
    }

    /// The turns that a former process has begun, or was about to: their programs may go on.
    pub(crate) fn open_turns(&self) -> Vec<TurnId> {
        let is_open =
            |stage: &AgentStage| matches!(stage, AgentStage::Ready | AgentStage::Ordered | AgentStage::Asking);
        let agents = (0..).zip(&self.agents).filter(|(_, agent)| is_open(&agent.stage));
        let is_led = matches!(self.lead.stage, LeadStage::Ready | LeadStage::Ordered | LeadStage::Asking);
        let lead = is_led.then(|| self.lead_turn());
        agents.map(|(index, _)| self.turn(index)).chain(lead).collect()
    }

    /// A turn goes on that [`Swarm::resume_swarm`] has had begin again: what it reserved is still reserved, and it was
    /// shown what it was shown.
    pub(super) fn turn_rejoined(&mut self, turn: &TurnId) {
        if turn.purpose != Purpose::Act {
            let is_begun = matches!(self.lead.stage, LeadStage::Ready | LeadStage::Ordered);
            if is_begun && turn.purpose == self.lead.purpose && turn.attempt == self.lead.attempt {
                self.lead.stage = LeadStage::Asking;
            }
            return;
        }
        let is_begun = |stage: &AgentStage| matches!(stage, AgentStage::Ready | AgentStage::Ordered);
        if let Some(index) = self.find_current(turn).filter(|&index| is_begun(&self.agents[index as usize].stage)) {
            self.enter_stage(index, AgentStage::Asking);
        }
    }

    /// What this turn waits for has come: it is to be ordered, once more where it was. Nothing but what
    /// [`decide`](crate::core::swarm::next) has ordered changes.
    pub(crate) fn retry_turn(&mut self, turn: &TurnId) -> bool {
        if turn.purpose != Purpose::Act {
            let waits = matches!(self.lead.stage, LeadStage::Ordered | LeadStage::Resting(_));
            let current = waits && self.lead.purpose == turn.purpose && self.lead.attempt == turn.attempt;
            if current {
                self.lead.stage = LeadStage::Ready;
            }
            return current;
        }
        let Some(index) = self.find_current(turn) else { return false };
        match self.agents[index as usize].stage.clone() {
            AgentStage::Ordered | AgentStage::Resting(_) => self.enter_stage(index, AgentStage::Ready),
            AgentStage::Retrying(act, _) => self.enter_stage(index, AgentStage::Calling(act, false)),
            _ => return false,
        }
        true
    }

    /// The turns that wait for their time.
    pub(crate) fn resting_turns(&self) -> Vec<TurnId> {
        let rests = |stage: &AgentStage| matches!(stage, AgentStage::Resting(_) | AgentStage::Retrying(..));
        let agents = (0..).zip(&self.agents).filter(|(_, agent)| rests(&agent.stage));
        let lead = matches!(self.lead.stage, LeadStage::Resting(_)).then(|| self.lead_turn());
        agents.map(|(index, _)| self.turn(index)).chain(lead).collect()
    }
}
