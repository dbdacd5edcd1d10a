//! Reads the `status.json` of an agent's folder.

use std::os::fd::BorrowedFd;

use super::tree;
use crate::types::agent_status::{AgentStatus, LONGEST};

/// Reads what the agent says of itself whose folder this is.
///
/// # Errors
/// It says nothing that can be read: says what is wrong.
pub(super) fn read_status(folder: BorrowedFd<'_>) -> Result<AgentStatus, String> {
    let bytes = tree::read(folder, "status.json", LONGEST)?;
    AgentStatus::parse_status(std::str::from_utf8(&bytes).map_err(|_| "it is no text".to_owned())?)
}
