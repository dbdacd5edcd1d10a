//! A message in an inbox.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use swarmc_plan::{Priority, Response};

use super::content::Content;
use super::handoff::EnvelopeKind;

/// The envelopes that one turn reads at most; the others wait for the next one.
pub const INPUTS: usize = swarmc_plan::prompt_text::INPUTS;

/// Something in an inbox.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InboxMessage {
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
    /// The envelope, or the request for help, that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<Arc<str>>,
    /// The step that the answer to it goes to, where that is not its sender.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_to: Option<Arc<str>>,
    /// Whether a person wrote it, and no agent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub person: bool,
    /// Whether the run itself wrote it: what was decided, and by no person.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub run: bool,
    /// Whether a turn that is under way is to be ended for it, where that loses nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupts: bool,
    /// The digest of what it says, whatever its id and time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<Arc<str>>,
    /// The envelope as JSON; of a person or the run, the text.
    pub content: Content,
}

/// The names of people and of the run, where agents have theirs.
const PERSON: &str = "user";
const RUN: &str = "swarmc";

impl InboxMessage {
    /// Who wrote it, where no agent did.
    pub(crate) fn author(&self) -> Option<&'static str> {
        match (self.person, self.run) {
            (true, _) => Some(PERSON),
            (false, true) => Some(RUN),
            (false, false) => None,
        }
    }

    /// What it says as JSON, given its content: the envelope, or what a person or the run wrote, with who wrote it.
    ///
    /// # Errors
    /// The content is no JSON.
    pub fn to_json(&self, content: String) -> Result<Value, String> {
        match self.author() {
            Some(author) => Ok(json!({ "id": self.id, "fromNodeId": author, "payload": { "message": content } })),
            None => serde_json::from_str(&content).map_err(|error| error.to_string()),
        }
    }
}
