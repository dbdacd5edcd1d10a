//! The other side of the socket: what `swarmc agent` says for a script.

use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use super::Offer;
use crate::handoff::Operation;
use crate::unix;

/// The variable that tells an agent's processes where the socket is.
pub const SOCKET: &str = "SWARM_SOCKET";

/// The variable that holds the token of their attempt.
pub const TOKEN: &str = "SWARM_TOKEN";

/// The variable that tells an agent's processes the address of their MCP server.
pub const MCP: &str = "SWARM_MCP";

/// The longest answer: an inbox of many envelopes.
const LONGEST: u64 = 16 * 1024 * 1024;

/// How long the run may take to answer, behind all that it has to decide and to write meanwhile: what is given up after
/// that may have been taken.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Told {
    Ok(Value),
    Error(String),
}

/// Asks the run at `socket` for something, as whoever has this token; what it says to that.
///
/// # Errors
/// The run cannot be reached, or refuses: says why, and what to do instead.
pub fn ask(socket: &Path, token: &str, operation: &Operation) -> Result<Value, String> {
    say(socket, &json!({ "token": token, "operation": operation }))
}

/// The tools that the run at `socket` offers to whoever has this token.
pub(super) fn offers(socket: &Path, token: &str) -> Result<Vec<Offer>, String> {
    let offers = say(socket, &json!({ "token": token }))?;
    serde_json::from_value(offers).map_err(|error| format!("the run is of another version: {error}"))
}

/// Tells the run at `socket` that a client of whoever has this token has listed its tools.
pub(super) fn note_listed(socket: &Path, token: &str) -> Result<(), String> {
    say(socket, &json!({ "token": token, "listed": true })).map(drop)
}

fn say(socket: &Path, line: &Value) -> Result<Value, String> {
    let answer = unix::ask(socket, &line.to_string(), LONGEST, PATIENCE)
        .map_err(|error| format!("cannot reach the run at {}: {error}", socket.display()))?;
    match serde_json::from_str(&answer) {
        Ok(Told::Ok(receipt)) => Ok(receipt),
        Ok(Told::Error(problem)) => Err(problem),
        Err(_) => Err("the run has ended".to_owned()),
    }
}
