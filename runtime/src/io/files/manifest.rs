//! What was collected of an agent's folder: recorded with the end of its attempt, read by those that depend on it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::paths::lies_in;
use crate::types::agent_status::AgentStatus;

/// What an agent left in its folder.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgentFiles {
    /// The folder, from that of the run.
    pub folder: String,
    /// What its `status.json` said at the end; none where that was none.
    #[serde(default)]
    pub status: Option<AgentStatus>,
    /// The files that it was given.
    #[serde(default)]
    pub inbox: Vec<KeptFile>,
    /// The files that it left in its `outbox/`.
    #[serde(default)]
    pub outbox: Vec<KeptFile>,
    /// What was copied to the workspace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub copied: Vec<String>,
    /// What was wrong, where something was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
}

/// A file that was kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KeptFile {
    /// Its path in `inbox/` or `outbox/`.
    pub path: String,
    /// Its length.
    pub bytes: u64,
    /// The SHA-256 of its bytes in hexadecimal.
    pub digest: String,
}

impl AgentFiles {
    /// The files of the outbox that are, or lie in, `path`.
    pub(super) fn files_under<'f>(&'f self, path: &'f str) -> impl Iterator<Item = &'f KeptFile> {
        self.outbox.iter().filter(move |kept| lies_in(&kept.path, path))
    }
}
