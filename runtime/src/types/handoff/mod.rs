//! Handoffs between the agents of a pipeline (seed 002): what agents may send, and what of it is refused.
//!
//! In: what an agent asks for, over any transport. Out: an [`Envelope`] in its receiver's inbox, or the reason why
//! there is none. Invariant: no handoff goes without an edge, and what agents wrote is data.

mod answer_lines;
mod command_line;
mod envelope;
mod message;
mod operation;
mod report;

use schemars::{Schema, schema_for};

pub(crate) use answer_lines::{OperationLine, read_operation_lines};
pub use command_line::{Flag, FlagKind};
pub use envelope::{
    Artifact, ENVELOPE_LIMIT, Envelope, EnvelopeKind, Handoff, MESSAGE_LIMIT, Meta, Payload, Reply, Verdict,
};
pub(crate) use message::Receivers;
pub use message::{Broadcast, Message, MessageKind};
pub use operation::{Access, HelpRequest, OPERATIONS, Operation, OperationSpec, Reading};
pub(crate) use operation::{Reach, TAG};
pub use report::Report;

/// What waits in an inbox at most.
pub(crate) const INBOX: usize = 1_000;

/// The JSON Schema (draft 2020-12) of an [`Envelope`].
pub fn envelope_schema() -> Schema {
    schema_for!(Envelope)
}

/// The JSON Schema (draft 2020-12) of a [`Handoff`].
pub fn handoff_schema() -> Schema {
    schema_for!(Handoff)
}
