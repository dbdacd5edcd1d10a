//! The state of an agent of a team, by the names of seed 004: derived from what it does and from its items, and recorded
//! nowhere. Table T1 of the design is the test `the_states_of_agents_are_those_of_the_seed`.

use super::plan::TeamPlan;
use super::state::{Agent, AgentStage, Swarm};
use crate::types::swarm::End;
use crate::types::team::{ItemState, Life};

/// What the state of an agent follows from.
#[derive(Clone, Copy, Debug)]
pub struct LifeFacts<'a> {
    /// The plan of its team.
    pub plan: &'a TeamPlan,
    /// Its name.
    pub name: &'a str,
    /// How it ended; none while it is there.
    pub end: Option<End>,
    /// Whether it has begun its first turn.
    pub began: bool,
    /// Whether it waits for work or a message, and takes no turn.
    pub waits: bool,
    /// Whether it waits for an approval.
    pub asks: bool,
    /// Whether it has ended a task of its own.
    pub completed: bool,
}

/// The state that follows.
pub fn derive_life(facts: &LifeFacts<'_>) -> Life {
    match facts.end {
        Some(End::Done | End::Released) => return Life::Completed,
        Some(End::Stopped) => return Life::Stopped,
        Some(End::Crashed) => return Life::Crashed,
        Some(_) => return Life::Failed,
        None => {}
    }
    let owns = |done: bool| {
        let items = facts.plan.items.iter().filter(|item| item.owner.as_deref() == Some(facts.name));
        items.filter(|item| (item.state == ItemState::Done) == done).count() > 0
    };
    match facts.waits {
        _ if facts.asks => Life::Blocked,
        _ if !facts.began => Life::Spawned,
        false => Life::Running,
        // A ready item would have begun: what is left waits for others, or does not go on.
        true if owns(false) => Life::Blocked,
        true if owns(true) || facts.completed => Life::Completed,
        true => Life::Ready,
    }
}

/// The state of an agent of a team.
pub(crate) fn life_of(swarm: &Swarm, agent: &Agent) -> Life {
    let no_plan = TeamPlan::default();
    derive_life(&LifeFacts {
        plan: swarm.team.as_ref().map_or(&no_plan, |team| &team.plan),
        name: &agent.name,
        end: agent.end.as_ref().map(|end| end.how),
        began: agent.began.is_some(),
        waits: matches!(agent.stage, AgentStage::Idle | AgentStage::Waiting),
        asks: matches!(agent.stage, AgentStage::Pending(..)),
        completed: agent.completed.is_some(),
    })
}
