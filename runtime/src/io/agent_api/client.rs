//! The client of the agent server: how `swarmc agent` sends an operation for a script.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::ToolSpec;
use crate::io::unix::{self, Connection};
use crate::types::handoff::TAG;

/// The variable that tells an agent's processes where the socket is.
pub const SOCKET: &str = "SWARM_SOCKET";

/// The variable that holds the token of their attempt.
pub const TOKEN: &str = "SWARM_TOKEN";

/// The variable that tells an agent's processes the address of their MCP server.
pub const MCP: &str = "SWARM_MCP";

/// The operation that only asks for what others wrote to an agent of a team while its turn goes on.
pub const NOTICES: &str = "notices";

/// The longest answer: an inbox of many envelopes.
const LONGEST: u64 = 16 * 1024 * 1024;

/// How long the run may take to answer, behind all that it has to decide and to write meanwhile: what is given up after
/// that may have been taken.
const PATIENCE: Duration = Duration::from_secs(60);

/// Between two looks for a runner.
const PAUSE: Duration = Duration::from_millis(100);

/// The end of a journal that holds its last record: more than one takes.
const TAIL: u64 = 16 * 1024;

/// Beside the socket of a worker, which has no journal: the number of its port.
pub(crate) const WORKER_PORT: &str = "port";

/// How long a connection is kept for the next request.
pub(super) const IDLE: Duration = Duration::from_secs(1);

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Told {
    Ok(Value),
    Error(String),
}

/// Sends the operation `name` to the run at `socket`, for the attempt that has this token; the answer of the run.
///
/// # Errors
/// The run cannot be reached, or refuses: says why, and what to do instead.
pub fn send_operation(socket: &Path, token: &str, name: &str, arguments: Map<String, Value>) -> Result<Value, String> {
    Client::new(socket, token).send_operation(name, arguments)
}

/// A client of a run, with the token of an attempt. It keeps its connections for the next requests, for the run looks up
/// the process behind each new one.
#[derive(Debug)]
pub(super) struct Client {
    socket: PathBuf,
    token: String,
    /// Connections that wait for a request, and since when.
    idle: Mutex<Vec<(Connection, Instant)>>,
}

impl Client {
    /// A client of the run at `socket`.
    pub(super) fn new(socket: &Path, token: &str) -> Client {
        Client { socket: socket.to_owned(), token: token.to_owned(), idle: Mutex::default() }
    }

    /// Asks for an operation; what the run says to that.
    pub(super) fn send_operation(&self, name: &str, mut operation: Map<String, Value>) -> Result<Value, String> {
        operation.insert(TAG.to_owned(), name.into());
        self.exchange_line(&json!({ "token": self.token, "operation": operation }))
    }

    /// The tools that the run offers.
    pub(super) fn list_tools(&self) -> Result<Vec<ToolSpec>, String> {
        let offers = self.exchange_line(&json!({ "token": self.token }))?;
        serde_json::from_value(offers).map_err(|error| format!("the run is of another version: {error}"))
    }

    /// Tells the run that its tools have been listed.
    pub(super) fn note_listed(&self) -> Result<(), String> {
        self.exchange_line(&json!({ "token": self.token, "listed": true })).map(drop)
    }

    /// Closes the connections that no request has needed for [`IDLE`]: the run has room for few.
    pub(super) fn close_idle(&self) {
        self.lock_idle().retain(|(_, since)| since.elapsed() < IDLE);
    }

    fn exchange_line(&self, line: &Value) -> Result<Value, String> {
        let until = Instant::now() + PATIENCE;
        let failed =
            |error| format!("cannot reach the run at {}: {}", self.socket.display(), unix::late(error, PATIENCE));
        // A request is never said twice: it may have been heard.
        let kept = self.lock_idle().pop().map(|(connection, _)| connection).filter(Connection::is_open);
        let mut connection = kept.map_or_else(|| self.connect(until), Ok).map_err(failed)?;
        let answer = connection.ask(&line.to_string(), LONGEST, until).map_err(failed)?;
        let unanswered = "the run has ended, or was killed before it answered: what was asked for may have been done";
        let told = serde_json::from_str(&answer).map_err(|_| unanswered.to_owned())?;
        self.lock_idle().push((connection, Instant::now()));
        match told {
            Told::Ok(receipt) => Ok(receipt),
            Told::Error(problem) => Err(problem),
        }
    }

    /// Connects to the run. Where its runner or its worker was killed, this waits for the next one.
    fn connect(&self, until: Instant) -> io::Result<Connection> {
        loop {
            let error = match Connection::open(&self.socket, until) {
                Ok(connection) => return Ok(connection),
                Err(error) => error,
            };
            let is_closed = matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused);
            let goes_on = || self.socket.with_file_name(WORKER_PORT).exists() || self.has_unfinished_run();
            if !is_closed || Instant::now() + PAUSE >= until || !goes_on() {
                return Err(error);
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Whether the journal beside the socket does not end with the end of the run.
    fn has_unfinished_run(&self) -> bool {
        let tail = || {
            let mut journal = File::open(self.socket.with_file_name("journal.jsonl"))?;
            let start = journal.metadata()?.len().saturating_sub(TAIL);
            journal.seek(SeekFrom::Start(start))?;
            let mut tail = Vec::new();
            journal.read_to_end(&mut tail)?;
            io::Result::Ok(String::from_utf8_lossy(&tail).into_owned())
        };
        let is_end = |line: &str| line.contains(r#""event":"run_finished""#);
        tail().is_ok_and(|tail| !tail.lines().next_back().is_some_and(is_end))
    }

    fn lock_idle(&self) -> MutexGuard<'_, Vec<(Connection, Instant)>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
