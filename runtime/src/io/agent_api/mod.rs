//! The server on which agents call the run while their turns go on.
//!
//! In: an agent's request, with the token that only its attempt has, or its turn in a team. Out: an [`Operation`] for the
//! driver, or a call of an action of the team, and its result. Invariants: a client without the token of an attempt under
//! way learns only that. The token identifies the
//! sender, so that no agent acts as another; a process that is known to belong to another attempt is refused.

mod client;
mod connection_limit;
mod http;
mod listed;
mod mcp;
mod socket;
mod stdio;
mod tools;

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::sync::oneshot;

use crate::io::input::{Input, Inputs};
use crate::io::reactor::Reactor;
use crate::io::socket_peer::{Owner, Processes};
use crate::io::unix::through;
use crate::types::digest::format_hex;
use crate::types::event::StepId;
use crate::types::handoff::{Operation, TAG};
use crate::types::swarm::TurnId;

pub(crate) use client::WORKER_PORT;
pub use client::{MCP, NOTICES, SOCKET, TOKEN, send_operation};
pub use connection_limit::{Place, Places};
pub use http::{bearer_token, single_header};
pub(crate) use listed::ToolsListed;
pub use stdio::serve_stdio;
pub(crate) use tools::{ToolSpec, list_member_tools, list_tools};

/// The bytes of a token: 128 bits cannot be guessed.
const TOKEN_BYTES: usize = 16;

/// How long the server accepts no connection where the system has no file for one more.
const PAUSE: Duration = Duration::from_millis(100);

const RANDOM: &str = "/dev/urandom";

/// The agent server of a run. It starts to listen when the first session opens.
#[derive(Debug)]
pub(crate) struct AgentServer {
    reception: Arc<Sessions>,
    reactor: Arc<Reactor>,
    socket: PathBuf,
    /// The port of the MCP server, once it listens.
    listening: Mutex<Option<u16>>,
    /// What processes have that a former runner started.
    former: Mutex<Former>,
}

/// What the agent server of a former runner gave to processes that go on.
#[derive(Debug, Default)]
struct Former {
    tokens: HashMap<(StepId, u32, Option<TurnId>), String>,
    port: Option<u16>,
}

/// Who may come in, and where what they say goes.
#[derive(Debug)]
struct Sessions {
    guests: Mutex<HashMap<String, Arc<Session>>>,
    inputs: Inputs,
    processes: Processes,
}

/// Whose token it is.
#[derive(Debug)]
struct Session {
    step: StepId,
    attempt: u32,
    /// Its turn, where it is an agent of a team.
    turn: Option<TurnId>,
    /// What it may ask for.
    offers: Arc<[ToolSpec]>,
    /// Whether a client of its has listed them.
    listed: Arc<ToolsListed>,
}

impl AgentServer {
    /// The agent server of a run whose folder is `folder`.
    pub(crate) fn new(folder: &Path, inputs: Inputs, reactor: Arc<Reactor>, processes: Processes) -> AgentServer {
        let reception = Sessions { guests: Mutex::default(), inputs, processes };
        AgentServer {
            reception: Arc::new(reception),
            reactor,
            socket: folder.join("agents.sock"),
            listening: Mutex::default(),
            former: Mutex::default(),
        }
    }

    /// The processes of an attempt, or of a turn in a team, have this token, and the address of these tools, from a former
    /// runner: both open again.
    pub(crate) fn expect_former(&self, of: &(StepId, u32, Option<TurnId>), token: Option<&str>, tools: Option<&str>) {
        let mut former = self.lock_former();
        former.tokens.extend(token.map(|token| (of.clone(), token.to_owned())));
        former.port = tools.and_then(http::port_of).or(former.port);
    }

    /// What the processes of an attempt, or of a turn in a team, need in their environment to come in; `offers` is what
    /// they may ask for.
    ///
    /// # Errors
    /// The socket or the port cannot be opened, or the system has no random numbers.
    pub(crate) fn open_session(
        &self,
        step: &StepId,
        attempt: u32,
        turn: Option<&TurnId>,
        offers: Vec<ToolSpec>,
    ) -> Result<Vec<(OsString, OsString)>, String> {
        let port = self.ensure_listening()?;
        let former = self.lock_former().tokens.get(&(step.clone(), attempt, turn.cloned())).cloned();
        let token = former.map_or_else(make_token, Ok)?;
        let (step, turn) = (step.clone(), turn.cloned());
        let url = http::tools_url(port, &step.name);
        let guest = Session { step, attempt, turn, offers: offers.into(), listed: Arc::default() };
        self.reception.lock_sessions().insert(token.clone(), Arc::new(guest));
        Ok(vec![
            (OsString::from(SOCKET), self.socket.clone().into_os_string()),
            (OsString::from(TOKEN), OsString::from(token)),
            (OsString::from(MCP), OsString::from(url)),
        ])
    }

    /// The tools of the attempt that has this token, and whether it has listed them.
    pub(crate) fn find_tools(&self, token: &str) -> Option<(Arc<[ToolSpec]>, Arc<ToolsListed>)> {
        self.reception.find_session(token).map(|guest| (Arc::clone(&guest.offers), Arc::clone(&guest.listed)))
    }

    /// An attempt has started this process group.
    pub(crate) fn register_process(&self, step: &StepId, attempt: u32, group: i32) {
        self.reception.processes.add(group, (step.clone(), attempt));
    }

    /// An attempt is over: its tokens open nothing any more.
    pub(crate) fn close_session(&self, step: &StepId, attempt: u32) {
        self.reception.processes.remove(step, attempt);
        self.reception.lock_sessions().retain(|_, guest| guest.step != *step || guest.attempt != attempt);
    }

    /// A turn in a team is over: its token opens nothing any more.
    pub(crate) fn close_turn(&self, step: &StepId, attempt: u32, turn: &TurnId) {
        let is_other =
            |guest: &Session| guest.step != *step || guest.attempt != attempt || guest.turn.as_ref() != Some(turn);
        self.reception.lock_sessions().retain(|_, guest| is_other(guest));
    }

    /// Starts to listen, where it does not yet; the port of the MCP server.
    fn ensure_listening(&self) -> Result<u16, String> {
        let mut listening = self.listening.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(port) = *listening {
            return Ok(port);
        }
        let failed = |error: std::io::Error| format!("cannot listen on {}: {error}", self.socket.display());
        // A killed runner leaves its socket behind, and the lock of the run shows that no other process listens.
        let _ = std::fs::remove_file(&self.socket);
        let listener = through(&self.socket, UnixListener::bind).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let closed = |error: std::io::Error| format!("cannot listen on a port of 127.0.0.1: {error}");
        let former = self.lock_former().port;
        // Where another program has taken the port meanwhile, agents come in by the socket.
        let (web, port) = http::bind(former.unwrap_or(0)).or_else(|_| http::bind(0)).map_err(closed)?;
        let handle = self.reactor.handle()?;
        let _entered = handle.enter();
        let listener = tokio::net::UnixListener::from_std(listener).map_err(failed)?;
        let web = tokio::net::TcpListener::from_std(web).map_err(closed)?;
        handle.spawn(socket::serve(listener, Arc::clone(&self.reception)));
        handle.spawn(http::serve(web, port, Arc::clone(&self.reception)));
        *listening = Some(port);
        Ok(port)
    }

    fn lock_former(&self) -> MutexGuard<'_, Former> {
        self.former.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn make_token() -> Result<String, String> {
    let mut random = [0; TOKEN_BYTES];
    let read = File::open(RANDOM).and_then(|mut file| file.read_exact(&mut random));
    read.map_err(|error| format!("cannot read {RANDOM}: {error}"))?;
    Ok(format_hex(&random))
}

impl Drop for AgentServer {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.socket);
    }
}

impl Sessions {
    /// Sends a call for the attempt, or the turn in a team, that has this token.
    async fn send_call(&self, token: &str, name: &str, arguments: Map<String, Value>) -> Result<Value, String> {
        let guest = self.find_session(token).ok_or_else(describe_unknown_token)?;
        let (hearer, heard) = oneshot::channel();
        let (step, attempt) = (guest.step.clone(), guest.attempt);
        let said = match &guest.turn {
            None => {
                let operation = Ok(Operation::from_call(name, arguments)?);
                Input::Said { step, attempt, operation, hearer: Some(hearer) }
            }
            Some(turn) => Input::Calls { step, attempt, turn: turn.clone(), name: name.to_owned(), arguments, hearer },
        };
        let ending = || "the run is ending".to_owned();
        self.inputs.send(said).map_err(|_| ending())?;
        heard.await.map_err(|_| ending())?
    }

    /// Sends an operation that stands as JSON, its name in the field `swarm`.
    async fn send_operation(&self, token: &str, mut operation: Value) -> Result<Value, String> {
        let name = operation.get(TAG).and_then(Value::as_str).map(str::to_owned);
        match (name, operation.as_object_mut()) {
            (Some(name), Some(arguments)) => {
                arguments.remove(TAG);
                self.send_call(token, &name, std::mem::take(arguments)).await
            }
            _ => Err(format!("an operation is an object whose field `{TAG}` has its name")),
        }
    }

    /// Notes that a client of the attempt that has this token knows its tools.
    fn note_listed(&self, token: &str) {
        if let Some(guest) = self.find_session(token) {
            guest.listed.mark_listed();
        }
    }

    /// Tells people that a process of one attempt has shown the token of another; returns the answer to that process.
    fn reject_foreign_token(&self, owner: &Owner, guest: &Session) -> String {
        let (own, other) = (owner.0.label(), guest.step.label());
        let why = format!("{TOKEN} belongs to `{other}`, but this process belongs to `{own}`: use its own token");
        let (step, attempt) = owner.clone();
        // A run that has ended no longer listens.
        let _ = self.inputs.send(Input::Said { step, attempt, operation: Err(why.clone()), hearer: None });
        why
    }

    /// Whose token it is.
    fn find_session(&self, token: &str) -> Option<Arc<Session>> {
        self.lock_sessions().get(token).map(Arc::clone)
    }

    fn lock_sessions(&self) -> MutexGuard<'_, HashMap<String, Arc<Session>>> {
        self.guests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn describe_unknown_token() -> String {
    format!("{TOKEN} is not valid: it does not belong to a running turn")
}
