//! What lies in an inbox.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use swarmc_plan::{Priority, Response};

use super::Content;
use crate::handoff::EnvelopeKind;

/// The envelopes that one turn reads at most; the others wait for the next one.
pub const INPUTS: usize = 256;

/// Something in an inbox.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Letter {
    /// Its id, unique in the run.
    pub id: Arc<str>,
    /// Whether it wakes its receiver.
    pub kind: EnvelopeKind,
    /// Its place in the inbox.
    #[serde(default)]
    pub priority: Priority,
    /// Whether an answer is expected.
    #[serde(default)]
    pub response: Response,
    /// The envelope that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<Arc<str>>,
    /// The envelope as JSON; of a person, the text.
    pub content: Content,
}
