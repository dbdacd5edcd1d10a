//! Where text comes from, what it may do, and where it can go.
//!
//! In: the model. Out: a graph of who hands free text to whom, with marks where strangers write, where private data is,
//! and where something can leave; and what the commands of steps do. The checks of injection and secrets ask it.

mod build;
pub(crate) mod command;
mod gates;
pub(crate) mod graph;
mod label;
mod paths;
pub(crate) mod powers;
mod propagate;
mod report;
pub(crate) mod shell;
mod sources;
mod team;

pub(crate) use build::build_graph;
pub use report::Trust;
pub(crate) use report::collect_taints;
