//! Swarms: agents that take turns, message each other and share a workspace until their work is done.
//!
//! A swarm is a step that runs for long, with a core of its own: `state` folds its events, `decide` is its whole supervisor.
//! `prompt` builds what an agent is asked, `action` reads what it answers, `names` names agents that the plan does not name.
//! A swarm with a coordinator is a team: `plan` holds its items in versions, `lead` carries out what its agents ask for, and
//! `life` says which state each is in, `within` is what a program does while its turn goes on, and `touch` says who hears of
//! whose changes of files. `proposal` says what becomes of a change of the plan that an agent wants. All of it is pure; `run/swarms` drives it.

pub(crate) mod action;
mod decide;
pub(crate) mod feed;
mod lead;
pub(crate) mod life;
pub(crate) mod merge;
pub(crate) mod names;
pub mod plan;
pub(crate) mod prompt;
mod proposal;
mod rules;
pub(crate) mod state;
#[cfg(test)]
mod tests;
mod touch;
pub(crate) mod within;

pub use crate::types::swarm::{
    Action, Answer, End, Fault, MemberMessage, MessageType, PERSON, Part, Phase, Purpose, SUPERVISOR, TurnId, WORKSPACE,
};
pub(crate) use decide::expire_agent;
pub use decide::{SwarmCommand, decide_swarm};
pub(crate) use lead::check_part;
pub use life::{LifeFacts, derive_life};
pub use rules::Rules;
pub use state::Swarm;
