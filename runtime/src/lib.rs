//! Runs a plan: `plan ─► decide ─► commands ─► executors ─► events ─► journal ─► state`, round and round.
//!
//! The core (`event`, `state`, `decide`) is pure: no I/O, no clock, no randomness, no hash-map order.

mod decide;
mod event;
mod graph;
mod state;
mod stream;

pub use decide::{Command, decide};
pub use event::*;
pub use graph::{Graph, GraphError, MAX_STEPS};
pub use state::{Counts, End, Open, Reading, State};
pub use stream::{ANSWER_LIMIT, Decoder, Item, LINE_LIMIT, Report};
