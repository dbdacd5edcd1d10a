//! Runs on several machines. An engine keeps their records and queues; [`types::engine`](crate::types::engine) has the
//! messages.
//!
//! - `client`: the calls of the engine, over HTTP
//! - `worker`: takes processes of a pool, has shims hold them, and reports
//! - `holder`: the driver's end of processes that workers hold
//! - `mirror`: the folder of a run, kept in the engine, and copied from it
//!
//! Invariant: whatever is called again changes nothing more, so that every call may be made until it succeeds.

mod client;
mod holder;
mod local;
mod mirror;
mod objects;
mod relay;
mod tree;
mod worker;

pub(crate) use client::{CallError, Client};
pub(crate) use holder::{Holder, Notices, Place, RunHolder};
pub use local::{Engine, Mirror};
pub(crate) use local::{LocalRun, pass_orders_on};
pub(crate) use mirror::{Copied, Keeper, copy_new, keeping};
pub(crate) use objects::Objects;
pub(crate) use tree::RunTree;
pub use worker::{WorkerOptions, WorkerStop, serve_worker};
