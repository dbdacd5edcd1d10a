//! What becomes of a proposal of a team (table T2 of seed 004's design): it waits for the coordinator, applies, or is
//! refused.

use std::sync::Arc;

use swarmc_plan::{Approval, Unattended};

use super::decide::{SwarmCommand, record};
use super::lead::{can_own, send_notice};
use super::plan::Proposal;
use super::state::{Notice, Swarm, Team};
use crate::types::event::{Event, format_duration};
use crate::types::swarm::SUPERVISOR;
use crate::types::team::{PlanOp, Refused};
use crate::types::team_fact::TeamFact;

/// A proposal that is stale is refused at once; another one waits for the coordinator, or applies at once where the policy
/// accepts it.
pub(super) fn settle_fresh(swarm: &Swarm, team: &Team, id: u32) -> SwarmCommand {
    let proposal = &team.plan.proposals[&id];
    if let Err(because) = check_proposal(swarm, team, proposal) {
        return refuse_proposal(swarm, id, Refused::Stale, because);
    }
    if swarm.rules.plan_update != Approval::Coordinator {
        return apply_proposal(swarm, team, (id, proposal));
    }
    let ops: Vec<String> = proposal.ops.iter().map(PlanOp::describe).collect();
    let words = format!("{} proposes change {id} of the plan: {}; {}", proposal.by, ops.join(", "), proposal.why);
    let to = swarm.coordinator().cloned().unwrap_or_else(|| SUPERVISOR.into());
    send_notice(swarm, &Notice { to, wakes: true, words })
}

/// The coordinator did not decide a proposal in time: the policy says what becomes of it.
pub(super) fn settle_overdue(swarm: &Swarm, team: &Team, id: u32) -> SwarmCommand {
    let proposal = &team.plan.proposals[&id];
    let coordinator = swarm.coordinator().map_or(SUPERVISOR, |name| name);
    let limit = format_duration(swarm.rules.on_timeout.map_or(0, |timeout| timeout.after_ms));
    let late = format!("{coordinator} did not decide within {limit}");
    let accepts = swarm.rules.on_timeout.is_some_and(|timeout| timeout.then == Unattended::Approve);
    match accepts.then(|| check_proposal(swarm, team, proposal)) {
        Some(Ok(())) => apply_proposal(swarm, team, (id, proposal)),
        Some(Err(because)) => refuse_proposal(swarm, id, Refused::TimedOut, format!("{late}, and {because}")),
        None => refuse_proposal(swarm, id, Refused::TimedOut, late),
    }
}

/// Fails the swarm for a proposal that was not decided in time, where the policy says so.
pub(super) fn fail_overdue(swarm: &mut Swarm) -> Option<SwarmCommand> {
    let why = swarm.team.as_ref()?.failed.clone().filter(|_| !swarm.agenda.finishing)?;
    swarm.agenda.finishing = true;
    Some(SwarmCommand::Fail(why))
}

fn check_proposal(swarm: &Swarm, team: &Team, proposal: &Proposal) -> Result<(), String> {
    team.plan.check_proposal(proposal, |name| can_own(swarm, name), swarm.rules.limits.items)
}

fn apply_proposal(swarm: &Swarm, team: &Team, (id, proposal): (u32, &Proposal)) -> SwarmCommand {
    let fact = TeamFact::PlanUpdated {
        version: team.plan.version + 1,
        agent: SUPERVISOR.into(),
        ops: proposal.ops.clone(),
        why: proposal.why.clone(),
        proposal: Some(id),
    };
    record(Event::Team { swarm: swarm.id.clone(), fact })
}

fn refuse_proposal(swarm: &Swarm, id: u32, verdict: Refused, because: String) -> SwarmCommand {
    let fact = TeamFact::ProposalRefused { proposal: id, agent: Arc::from(SUPERVISOR), verdict, because };
    record(Event::Team { swarm: swarm.id.clone(), fact })
}
