//! Drives the core: the run with real agents, the rehearsal of tests, and the simulation; and what people see of runs.

mod prune;
pub(crate) mod run;
#[cfg(test)]
mod simulate;
mod summary;

pub use prune::{Prune, Pruned, PrunedRun};
pub use summary::{RunSummary, RunningState, list_standings};
