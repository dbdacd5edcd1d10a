//! Swarms: agents that take turns, message each other and share a workspace until their work is done.
//!
//! `prompt` makes what an agent is asked, `action` reads what it answers, `names` names agents that nobody named. All of
//! it is pure.

pub(crate) mod action;
pub(crate) mod names;
pub(crate) mod prompt;
