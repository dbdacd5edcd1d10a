//! Evaluates what a plan says: its expressions and templates, its context packs, and the plan itself when it is read.

pub(crate) mod load;
pub mod pack;
pub(crate) mod render;
