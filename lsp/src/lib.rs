//! The language server of swarmc: what an editor asks about specs and the prompts that they refer to.
//!
//! `ide` answers in offsets and plain data over one immutable snapshot; `server` speaks the protocol, keeps the open
//! documents, and is the only part that knows either. What lies on disk comes through [`Disk`].

mod disk;
pub mod ide;
mod runs;
mod server;
mod views;

pub use disk::Disk;
pub use runs::{LastRun, LastStep, NoRuns, RunState, Runs};
pub use server::{Exit, serve};
pub use views::{NoViews, Views};
