//! A text of an event: the text itself, or the digest that names it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A text, in the event or beside it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// The text itself, at most [`INLINE`](super::event::INLINE) bytes.
    Text(String),
    /// An artifact of the run.
    Artifact {
        /// The SHA-256 of its bytes in hexadecimal: its name under `artifacts/`.
        digest: String,
        /// Its length.
        bytes: u64,
    },
}

impl Content {
    /// The length of the text, in bytes.
    pub fn bytes(&self) -> u64 {
        match self {
            Content::Text(text) => text.len() as u64,
            Content::Artifact { bytes, .. } => *bytes,
        }
    }
}
