//! Proposals of a team that wait for its coordinator, and the end of their time (table T2 of seed 004's design).

use std::sync::Arc;

use swarmc_plan::Unattended;

use super::{Swarm, Timer};
use crate::core::swarm::plan::Proposal;
use crate::types::team::Refused;

impl Swarm {
    /// A proposal waits: for as long as the policy says, where it sets a limit.
    pub(super) fn proposal_made(&mut self, id: u32, at: u64) {
        let limit = self.rules.on_timeout.map(|timeout| timeout.after_ms);
        let Some(team) = &mut self.team else { return };
        team.fresh.insert(id);
        if let Some(limit) = limit {
            let due = at.saturating_add(limit);
            team.deadlines.insert(id, due);
            self.agenda.timers.insert((due, Timer::Proposal(id)));
        }
    }

    /// A proposal is decided: it waits no longer.
    pub(super) fn proposal_decided(&mut self, id: u32) {
        let Some(team) = &mut self.team else { return };
        team.fresh.remove(&id);
        team.overdue.remove(&id);
        if let Some(due) = team.deadlines.remove(&id) {
            self.agenda.timers.remove(&(due, Timer::Proposal(id)));
        }
    }

    pub(super) fn proposal_refused(
        &mut self,
        (id, by): (u32, &Arc<str>),
        refused: &Proposal,
        (verdict, because): (Refused, &str),
    ) {
        self.proposal_decided(id);
        let fails = self.rules.on_timeout.is_some_and(|timeout| timeout.then == Unattended::Fail);
        if let Some(team) = self.team.as_mut().filter(|_| fails && verdict == Refused::TimedOut) {
            team.failed = Some(format!("proposal {id} of {}: {because}", refused.by));
        }
        let word = verdict.as_str();
        self.notify(&refused.by, true, format!("your proposal {id} is {word}: {because}"));
        let result = (verdict == Refused::Stale).then(|| format!("proposal {id} is stale: {because}"));
        self.finish_operation(by, result);
    }

    /// The time to decide a proposal is over.
    pub(in crate::core) fn expire_proposal(&mut self, id: u32) {
        if let Some(team) = self.team.as_mut().filter(|team| team.plan.proposals.contains_key(&id)) {
            team.overdue.insert(id);
        }
    }

    /// The time in which no process ran the swarm does not count.
    pub(super) fn delay_deadlines(&mut self, gap: u64) {
        let Some(team) = &mut self.team else { return };
        for (&id, due) in &mut team.deadlines {
            self.agenda.timers.remove(&(*due, Timer::Proposal(id)));
            *due = due.saturating_add(gap);
            self.agenda.timers.insert((*due, Timer::Proposal(id)));
        }
    }
}
