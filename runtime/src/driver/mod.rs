//! Drives the core: the run with real agents, the rehearsal of tests, and the simulation; and clears runs away.

mod prune;
pub(crate) mod run;
#[cfg(test)]
mod simulate;

pub use prune::{Prune, Pruned, PrunedRun, RunAge};
