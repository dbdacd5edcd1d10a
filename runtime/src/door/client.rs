//! The other side of the socket: what `swarmc agent` says for a script.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};

use super::Offer;
use crate::handoff::Operation;

/// The variable that tells an agent's processes where the socket is.
pub const SOCKET: &str = "SWARM_SOCKET";

/// The variable that holds the token of their attempt.
pub const TOKEN: &str = "SWARM_TOKEN";

/// The variable that tells an agent's processes the address of their MCP server.
pub const MCP: &str = "SWARM_MCP";

/// The longest answer: an inbox of many envelopes.
const LONGEST: u64 = 16 * 1024 * 1024;

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
    let asked = || {
        let mut stream = through(socket, UnixStream::connect)?;
        stream.write_all(format!("{line}\n").as_bytes())?;
        let mut answer = String::new();
        BufReader::new(stream.take(LONGEST)).read_line(&mut answer)?;
        Ok(answer)
    };
    let answer =
        asked().map_err(|error: io::Error| format!("cannot reach the run at {}: {error}", socket.display()))?;
    match serde_json::from_str(&answer) {
        Ok(Told::Ok(receipt)) => Ok(receipt),
        Ok(Told::Error(problem)) => Err(problem),
        Err(_) => Err("the run has ended".to_owned()),
    }
}

/// Does something with a socket however long its path is: an address holds about 100 bytes, so that both ends go
/// through `/proc/self/fd`.
pub(super) fn through<T>(socket: &Path, act: impl FnOnce(PathBuf) -> io::Result<T>) -> io::Result<T> {
    let parts = socket.parent().zip(socket.file_name());
    let (folder, name) = parts.ok_or_else(|| io::Error::other("it is no path of a socket"))?;
    let directory = File::open(folder)?;
    act(PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd())).join(name))
}
