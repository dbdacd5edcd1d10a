//! The core: events go in, commands come out. Pure: no I/O, no clock, no randomness, no order of a hash map.

pub(crate) mod decide;
pub(crate) mod graph;
pub(crate) mod reopen;
pub(crate) mod reopened_records;
#[cfg(test)]
pub(crate) mod samples;
pub(crate) mod snapshot;
pub(crate) mod state;
pub mod swarm;
