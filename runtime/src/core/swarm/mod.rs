//! Swarms: agents that take turns, message each other and share a workspace until their work is done.
//!
//! A swarm is a step that runs for long, with a core of its own: `state` folds its events, `decide` is its whole supervisor. `prompt` builds what an agent is asked, `action` reads what it
//! answers, `names` names agents that the plan does not name. All of it is pure; `run/swarms` drives it.

pub(crate) mod action;
mod decide;
pub(crate) mod names;
pub(crate) mod prompt;
mod rules;
pub(crate) mod state;
#[cfg(test)]
mod tests;

pub use crate::types::swarm::{
    Action, Answer, End, Fault, MemberMessage, MessageType, PERSON, Part, Phase, Purpose, SUPERVISOR, TurnId, WORKSPACE,
};
pub(crate) use decide::expire_agent;
pub use decide::{SwarmCommand, decide_swarm};
pub use rules::Rules;
pub use state::Swarm;
