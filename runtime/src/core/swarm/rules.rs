//! The rules of a swarm from its plan: limits, the declared agent of each member, and who may write to whom.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use swarmc_plan::{
    Approval, Conflicts, Convergence, Plan, PlanItem, ProgressRule, RequestTimeout, Spawns, Swarm, SwarmLimits,
    TransientRetry, TurnLimit,
};

use super::merge::Worktree;
use super::state::Channel;
use crate::types::team::TeamReading;

/// The parts of a goal at most: one event contains all their tasks, or the digests of them.
pub(super) const PARTS: u32 = 40;

/// A swarm of a plan; never changes.
#[derive(Debug)]
pub struct Rules {
    pub(crate) limits: SwarmLimits,
    pub(crate) convergence: Convergence,
    pub(crate) retry: TransientRetry,
    /// Of a turn, of a decomposition, of a synthesis.
    pub(crate) turn: TurnLimit,
    pub(crate) decompose: TurnLimit,
    pub(crate) synthesize: TurnLimit,
    /// How long messages and entries live, in milliseconds.
    pub(crate) ttl_ms: u64,
    /// How many helpers each agent may ask for.
    pub(crate) helpers: u32,
    /// Whether a person must agree to each.
    pub(crate) gated: bool,
    /// The entries of a topic that can ever be shown.
    pub(crate) per_topic: u32,
    /// The tasks at most into which the lead splits the goal.
    pub(crate) parts: Option<u32>,
    /// The agents of the roster, groups taken apart.
    pub(crate) roster: Vec<Place>,
    /// The names that the roster says itself.
    pub(crate) declared: BTreeSet<Arc<str>>,
    /// Whether an agent merges several results.
    pub(crate) merges: bool,
    /// How many fallbacks each declared agent has, by name.
    pub(crate) fallbacks: std::collections::BTreeMap<Arc<str>, u32>,
    /// Who may write to whom, by name; none if every agent may write to every other.
    pub(crate) edges: Option<BTreeSet<(Arc<str>, Arc<str>)>>,
    /// The declared agent of the lead, if there is one.
    pub(crate) lead: Option<Arc<str>>,
    /// The declared agent that merges the results, if there is one.
    pub(crate) merger: Option<Arc<str>>,
    /// The agent that coordinates the others: such a swarm is a team.
    pub(crate) coordinator: Option<Coordinator>,
    /// The items of the first version of the team's plan.
    pub(crate) items: Vec<PlanItem>,
    /// The channels that the team begins with.
    pub(crate) channels: BTreeMap<Arc<str>, Channel>,
    /// The agents that the coordinator may add.
    pub(crate) spawns: Option<Spawns>,
    /// Who accepts changes of the team's plan.
    pub(crate) plan_update: Approval,
    /// What becomes of a proposal that the coordinator does not decide in time.
    pub(crate) on_timeout: Option<RequestTimeout>,
    /// The worktrees that the team begins with.
    pub(crate) worktrees: BTreeMap<Arc<str>, Worktree>,
    /// When agents hear of each other's changes of files.
    pub(crate) conflicts: Conflicts,
    /// Who agrees that a branch of the repository is moved.
    pub(crate) integrate: Approval,
    /// Whether a person must agree that an agent reads all that another one did.
    pub(crate) asks_transcripts: bool,
}

/// The agent that coordinates a team.
#[derive(Clone, Debug)]
pub(crate) struct Coordinator {
    /// Its name in the swarm.
    pub name: Arc<str>,
    /// Its declared agent.
    pub plays: Arc<str>,
}

/// A place of the roster.
#[derive(Debug)]
pub(crate) struct Place {
    /// The member of the plan, by position.
    pub member: u32,
    /// Its name; none: from the list of names.
    pub name: Option<Arc<str>>,
    /// Its declared agent.
    pub plays: Arc<str>,
    /// Whether it has a task of its own.
    pub has_task: bool,
}

impl Rules {
    /// What `plan` says of one of its swarms.
    pub fn new(plan: &Plan, swarm: &Swarm) -> Rules {
        let places = swarm.members.iter().enumerate().flat_map(|(position, member)| {
            let place = move |_| Place {
                member: position as u32,
                name: member.name.as_deref().map(Arc::from),
                plays: Arc::from(&*member.agent),
                has_task: member.task.is_some(),
            };
            (0..member.count.max(1)).map(place)
        });
        let roster: Vec<Place> = places.collect();
        let coordinator = swarm
            .lead
            .as_ref()
            .filter(|lead| lead.coordinator)
            .map(|lead| Coordinator { name: Arc::from(&*lead.name), plays: Arc::from(&*lead.agent) });
        // A coordinator is an agent of the team, and its own result is that of the swarm: nothing is split or merged.
        let lead = swarm.lead.as_ref().filter(|lead| !lead.coordinator).map(|lead| Arc::from(&*lead.agent));
        let merger = swarm.synthesize.as_ref().map(|merge| Arc::from(&*merge.agent)).or_else(|| lead.clone());
        let spawned = swarm.spawns.iter().flat_map(|spawns| &spawns.agents).map(|agent| Arc::from(&**agent));
        let others = coordinator.iter().map(|coordinator| Arc::clone(&coordinator.plays)).chain(spawned);
        let members = roster.iter().map(|place| Arc::clone(&place.plays));
        let played = members.chain(lead.clone()).chain(merger.clone()).chain(others);
        let fallbacks = played.map(|agent| (Arc::clone(&agent), count_fallbacks(plan, &agent))).collect();
        let pairs = swarm.edges.iter().flat_map(|edge| {
            let (from, to): (Arc<str>, Arc<str>) = (Arc::from(&*edge.from), Arc::from(&*edge.to));
            let back = edge.both.then(|| (Arc::clone(&to), Arc::clone(&from)));
            std::iter::once((from, to)).chain(back)
        });
        Rules {
            limits: swarm.limits,
            convergence: swarm.convergence,
            retry: swarm.retry,
            turn: swarm.timeouts.turn,
            decompose: swarm.timeouts.decompose,
            synthesize: swarm.timeouts.synthesize,
            ttl_ms: swarm.ttl_ms,
            // In a team only the coordinator adds agents.
            helpers: if coordinator.is_some() { 0 } else { swarm.spawn.per_agent },
            gated: match swarm.spawn.approval {
                Approval::Auto => false,
                Approval::Human => true,
                Approval::Coordinator => coordinator.is_none(),
            },
            per_topic: swarm.workspace.per_topic,
            parts: swarm.decompose.map(|parts| parts.min(swarm.limits.agents).min(PARTS)),
            merges: merger.is_some() && coordinator.is_none(),
            edges: (!swarm.edges.is_empty()).then(|| pairs.collect()),
            declared: roster
                .iter()
                .filter_map(|place| place.name.clone())
                .chain(coordinator.iter().map(|coordinator| Arc::clone(&coordinator.name)))
                .collect(),
            roster,
            fallbacks,
            lead,
            merger,
            coordinator,
            items: swarm.items.clone(),
            channels: swarm.channels.iter().map(|channel| (Arc::from(&*channel.name), Channel::new(channel))).collect(),
            spawns: swarm.spawns.clone(),
            plan_update: plan.policy.plan_update,
            on_timeout: plan.policy.on_timeout,
            worktrees: swarm.worktrees.iter().map(|tree| (Arc::from(&*tree.name), Worktree::new(tree))).collect(),
            conflicts: swarm.conflicts,
            integrate: plan.policy.integrate,
            asks_transcripts: plan.policy.tools.get(TeamReading::TRANSCRIPT) == Some(&Approval::Human),
        }
    }

    /// The parts at most into which the goal can be split.
    pub(crate) fn most_parts(&self) -> u32 {
        self.parts.unwrap_or(self.limits.agents).min(PARTS)
    }

    /// Whether `from` may write to `to`. The supervisor may write to everybody, and helpers, who stand in no edge, only
    /// where everybody may.
    pub(crate) fn may_write(&self, from: &Arc<str>, to: &Arc<str>) -> bool {
        self.edges.as_ref().is_none_or(|edges| edges.contains(&(Arc::clone(from), Arc::clone(to))))
    }

    /// The wait after so many failures in a row, in milliseconds: the first one times their number, up to its limit.
    pub(crate) fn backoff(&self, failures: u32) -> u64 {
        self.retry.backoff_ms.saturating_mul(u64::from(failures)).min(self.retry.max_backoff_ms)
    }

    /// Whether an action other than a tool call counts as progress.
    pub(crate) fn is_progress(&self, publishes: bool, writes: bool) -> bool {
        match self.convergence.counts {
            ProgressRule::Tools => false,
            ProgressRule::Findings => publishes,
            ProgressRule::Messages => publishes || writes,
        }
    }
}

/// How many fallbacks an agent has, one after the other.
fn count_fallbacks(plan: &Plan, agent: &str) -> u32 {
    let mut chain = std::iter::successors(plan.agent(agent), |agent| plan.agent(agent.fallback.as_deref()?));
    // The compiler refuses a circle; a plan from elsewhere must not hang.
    chain.by_ref().take(plan.agents.len()).count().saturating_sub(1) as u32
}
