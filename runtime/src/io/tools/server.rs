//! One MCP server: started when its tools are first needed, shared by the agents of a run, started once more when it
//! has died.
//!
//! In: calls. Out: texts, or a [`ToolFault`] in time. Invariants: its tools are asked for once, so that a server cannot
//! exchange them later; nothing it sends is held in memory beyond the bounds here.

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ClientConfig, ContentBlock,
    Implementation, PaginatedRequestParams, ResourceContents,
};
use rmcp::service::{Peer, RunningService, ServiceError};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{RoleClient, ServiceExt};
use serde_json::{Map, Value};
use swarmc_plan::{EnvValue, ToolServer, Transport};
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::ToolFault;
use super::acp_tool_servers::ServerEndpoint;
use super::guard::MESSAGE;
use super::offer::{Offered, schema};
use super::process::Process;
use crate::io::llm::build_client;
use crate::types::visible_text::short;

/// How long a server may take to start, and to tell its tools.
const START: Duration = Duration::from_secs(30);

/// How long a call may take.
const CALL: Duration = Duration::from_secs(60);

/// How long closing a connection may take.
const CLOSE: Duration = Duration::from_secs(2);

/// How often a server is started in one run: once more when it has died.
const STARTS: u32 = 2;

/// The tools of one server at most, and the pages that they come in.
const TOOLS: usize = 1_000;
const PAGES: usize = 100;

/// The characters of a tool's name at most.
const NAME: usize = 128;

/// The bytes of a result that go on.
const RESULT: usize = 16 * 1024 * 1024;

/// A server of the plan.
pub(super) struct Server {
    pub name: String,
    transport: Transport,
    /// The environment of its process, and the token that its address is sent; else what is missing.
    given: Result<Given, String>,
    /// Whether what it is given holds a secret.
    pub is_secret: bool,
    directory: PathBuf,
    limits: Limits,
    state: Mutex<State>,
}

/// What a server is given: an environment, and a token.
type Given = (Vec<(OsString, OsString)>, Option<String>);

/// How long a server may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub start: Duration,
    pub call: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { start: START, call: CALL }
    }
}

#[derive(Debug, Default)]
struct State {
    live: Option<Live>,
    /// How often it was started, or failed to.
    starts: u32,
    /// How many connections there have been.
    connections: u32,
    tools: Option<Arc<[Offered]>>,
    /// Why it is not there any more.
    gone: Option<String>,
    closed: bool,
}

/// A connection.
#[derive(Debug)]
struct Live {
    service: RunningService<RoleClient, ClientConfig>,
    process: Option<Process>,
}

/// The tools of a server, and what people should know about them.
#[derive(Debug)]
pub(super) struct Tools {
    pub tools: Arc<[Offered]>,
    pub notice: Option<String>,
}

impl Server {
    pub(super) fn new(server: &ToolServer, given: Result<Given, String>, directory: &Path, limits: Limits) -> Server {
        Server {
            name: server.name.clone(),
            transport: server.transport.clone(),
            given,
            is_secret: server.auth.is_some() || server.env.iter().any(|it| matches!(it, EnvValue::Secret(_))),
            directory: directory.to_owned(),
            limits,
            state: Mutex::default(),
        }
    }

    /// How another client than ours reaches it; else what is missing.
    pub(super) fn way(&self) -> Result<ServerEndpoint, String> {
        let (environment, _) = self.given.as_ref().map_err(Clone::clone)?;
        Ok(match &self.transport {
            Transport::Url(url) => ServerEndpoint::Address(url.clone()),
            Transport::Exec(argv) => {
                let mut words = argv.iter().cloned();
                let program = words.next().unwrap_or_default();
                // A program of the project is named as it counts from there, wherever the client works.
                let program = if program.contains('/') { self.directory.join(program) } else { program.into() };
                ServerEndpoint::Process { program, arguments: words.collect(), environment: environment.clone() }
            }
        })
    }

    /// Its tools, asked for once.
    pub(super) async fn tools(&self) -> Result<Tools, ToolFault> {
        let mut state = self.state.lock().await;
        if let Some(tools) = &state.tools {
            return Ok(Tools { tools: Arc::clone(tools), notice: None });
        }
        let (peer, connection) = self.peer(&mut state).await?;
        let listed = match timeout(self.limits.start, list(&peer)).await {
            Ok(Ok(listed)) => listed,
            Ok(Err(error)) => {
                return Err(self
                    .lost(&mut state, connection, &format!("did not list its tools: {}", told(&error)))
                    .await);
            }
            Err(_) => {
                let seconds = self.limits.start.as_secs();
                return Err(self
                    .lost(&mut state, connection, &format!("did not list its tools in {seconds} seconds: timed out"))
                    .await);
            }
        };
        let (tools, notice) = self.offered(listed);
        state.tools = Some(Arc::clone(&tools));
        Ok(Tools { tools, notice })
    }

    /// Calls a tool of it.
    pub(super) async fn call(&self, tool: &str, arguments: Map<String, Value>) -> Result<String, ToolFault> {
        let (peer, connection) = self.peer(&mut *self.state.lock().await).await?;
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let name = &self.name;
        // A call that no task waits for any more is cancelled at the server.
        match timeout(self.limits.call, peer.call_tool_once(params)).await {
            Err(_) => {
                let seconds = self.limits.call.as_secs();
                Err(ToolFault::judged(format!("`{name}.{tool}` timed out: no result came in {seconds} seconds")))
            }
            Ok(Ok(CallToolResponse::Complete(result))) => match (text(&result), result.is_error) {
                (text, Some(true)) if text.is_empty() => Err(ToolFault::lasting(format!("`{name}.{tool}` failed"))),
                (text, Some(true)) => Err(ToolFault::judged(text)),
                (text, _) if text.is_empty() => Ok("[the tool gave nothing]".to_owned()),
                (text, _) => Ok(text),
            },
            Ok(Ok(_)) => Err(ToolFault::lasting(format!("`{name}.{tool}` requests input, which this run cannot give"))),
            Ok(Err(error)) if is_gone(&error) => {
                let mut state = self.state.lock().await;
                let what = format!("went away during the call of `{tool}`, which may have done its work");
                Err(self.lost(&mut state, connection, &what).await)
            }
            Ok(Err(error)) => Err(ToolFault::judged(format!("`{name}.{tool}`: {}", told(&error)))),
        }
    }

    /// Ends it for good.
    pub(super) async fn close(&self) {
        let mut state = self.state.lock().await;
        state.closed = true;
        if let Some(live) = state.live.take() {
            live.end().await;
        }
    }

    /// The connection and its number; made where there is none.
    async fn peer(&self, state: &mut State) -> Result<(Peer<RoleClient>, u32), ToolFault> {
        if let Some(live) = &state.live {
            if !live.service.is_closed() && !live.service.peer().is_transport_closed() {
                return Ok((live.service.peer().clone(), state.connections));
            }
            // It died between two calls.
            self.lost(state, state.connections, "went away").await;
        }
        let name = &self.name;
        if state.closed {
            return Err(ToolFault::lasting(format!("tool server `{name}`: the run is ending")));
        }
        if state.starts >= STARTS {
            let why = state.gone.as_deref().unwrap_or("it went away");
            return Err(ToolFault::lasting(format!("tool server `{name}` is not started again: {why}")));
        }
        let started = timeout(self.limits.start, self.start()).await;
        // A caller that gave up waiting before has not tried it.
        state.starts += 1;
        match started {
            Ok(Ok(live)) => {
                let peer = live.service.peer().clone();
                state.live = Some(live);
                state.connections += 1;
                Ok((peer, state.connections))
            }
            Ok(Err(problem)) => Err(self.failed(state, format!("did not start: {problem}"))),
            Err(_) => {
                let seconds = self.limits.start.as_secs();
                Err(self.failed(state, format!("did not start: it timed out after {seconds} seconds")))
            }
        }
    }

    async fn start(&self) -> Result<Live, String> {
        let (environment, token) = self.given.as_ref().map_err(Clone::clone)?;
        let config =
            ClientConfig::new(ClientCapabilities::default(), Implementation::new("swarmc", env!("CARGO_PKG_VERSION")));
        match &self.transport {
            Transport::Exec(argv) => {
                let argv: Vec<OsString> = argv.iter().map(OsString::from).collect();
                let (process, (stdout, stdin)) = Process::start(&argv, environment, &self.directory)?;
                let transport = AsyncRwTransport::new(stdout, stdin).with_max_line_length(MESSAGE * 2);
                match config.serve(transport).await {
                    Ok(service) => Ok(Live { service, process: Some(process) }),
                    Err(error) => {
                        let heard = process.heard.clone();
                        let ended = blocking(move || process.end()).await;
                        let what = heard.problem().or(ended).unwrap_or_else(|| error.to_string());
                        Err(with(what, heard.said()))
                    }
                }
            }
            Transport::Url(url) => {
                let base = reqwest::Url::parse(url).map_err(|error| format!("`{url}` is not an address: {error}"))?;
                let client = build_client(&base).map_err(|error| format!("no HTTP client can be made: {error}"))?;
                let mut http = StreamableHttpClientTransportConfig::with_uri(url.as_str());
                http.auth_header = token.clone();
                http.max_sse_event_size = MESSAGE;
                http.max_json_response_size = MESSAGE;
                let service = config.serve(StreamableHttpClientTransport::with_client(client, http)).await;
                service.map(|service| Live { service, process: None }).map_err(|error| chain(&error))
            }
        }
    }

    /// Ends the connection; says why it is of no use, and what comes next.
    async fn lost(&self, state: &mut State, connection: u32, what: &str) -> ToolFault {
        let mut what = what.to_owned();
        // Another call may have noticed before, and begun afresh.
        let own = connection == state.connections;
        if let Some(live) = state.live.take_if(|_| own) {
            let heard = live.process.as_ref().map(|process| process.heard.clone());
            let ended = live.end().await;
            let problem = heard.as_ref().and_then(|heard| heard.problem()).or(ended);
            if let Some(problem) = problem {
                what = format!("{what}: {}", with(problem, heard.and_then(|heard| heard.said())));
            }
        }
        self.failed(state, what)
    }

    fn failed(&self, state: &mut State, what: String) -> ToolFault {
        let next = if state.starts < STARTS { "; the next call starts it once more" } else { "" };
        let message = format!("tool server `{}` {what}{next}", self.name);
        state.gone = Some(format!("it {what}"));
        ToolFault::judged(message)
    }

    /// Its tools as they are offered, without those that cannot be.
    fn offered(&self, (listed, more): (Vec<rmcp::model::Tool>, bool)) -> (Arc<[Offered]>, Option<String>) {
        let mut names = HashSet::new();
        let mut left = Vec::new();
        let mut tools = Vec::new();
        for tool in listed {
            let name = tool.name.into_owned();
            let is_plain = !name.is_empty() && name.chars().count() <= NAME && !name.chars().any(char::is_control);
            let parameters = schema(Value::Object((*tool.input_schema).clone()));
            match parameters.filter(|_| is_plain && names.insert(name.clone())) {
                Some(parameters) => {
                    let description = tool.description.map(|text| text.into_owned()).unwrap_or_default();
                    tools.push(Offered { name, description, parameters });
                }
                None => left.push(short(&name)),
            }
        }
        let mut notices = Vec::new();
        if more {
            notices.push(format!("it has more than {TOOLS} tools, of which the first {TOOLS} count"));
        }
        if let Some(first) = left.first() {
            notices.push(format!(
                "{} of its tools are left out, such as `{first}`: their names or schemas cannot be used",
                left.len()
            ));
        }
        let notice = (!notices.is_empty()).then(|| format!("tool server `{}`: {}", self.name, notices.join("; ")));
        (tools.into(), notice)
    }
}

impl Live {
    /// Ends the connection and the process; says how the process ended if it did so by itself.
    async fn end(self) -> Option<String> {
        let Live { mut service, process } = self;
        // Whatever became of the connection, the process is next.
        let _ = service.close_with_timeout(CLOSE).await;
        drop(service);
        blocking(move || process?.end()).await
    }
}

async fn blocking(work: impl FnOnce() -> Option<String> + Send + 'static) -> Option<String> {
    tokio::task::spawn_blocking(work).await.ok().flatten()
}

/// All its tools, page by page, up to [`TOOLS`]; and whether there are more.
async fn list(peer: &Peer<RoleClient>) -> Result<(Vec<rmcp::model::Tool>, bool), ServiceError> {
    let mut tools = Vec::new();
    let mut cursor = None;
    for _ in 0..PAGES {
        let params = cursor.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
        let page = peer.list_tools(params).await?;
        tools.extend(page.tools);
        cursor = page.next_cursor;
        if cursor.is_none() || tools.len() > TOOLS {
            break;
        }
    }
    let more = tools.len() > TOOLS || cursor.is_some();
    tools.truncate(TOOLS);
    Ok((tools, more))
}

/// What a result says, as text.
fn text(result: &CallToolResult) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut room = RESULT;
    for block in &result.content {
        let part = match block {
            ContentBlock::Text(text) => text.text.clone(),
            ContentBlock::Image(image) => format!("[a picture, {}, not shown]", short(&image.mime_type)),
            ContentBlock::Audio(audio) => format!("[a sound, {}, not played]", short(&audio.mime_type)),
            ContentBlock::ResourceLink(link) => format!("[a resource: {}]", short(&link.uri)),
            ContentBlock::Resource(resource) => match &resource.resource {
                ResourceContents::TextResourceContents { text, .. } => text.clone(),
                _ => "[a resource that is no text]".to_owned(),
            },
            _ => "[something that is no text]".to_owned(),
        };
        let part = &part[..part.floor_char_boundary(room)];
        room -= part.len();
        parts.push(part.to_owned());
        if room == 0 {
            break;
        }
    }
    match &result.structured_content {
        Some(value) if parts.is_empty() => value.to_string(),
        _ => parts.join("\n"),
    }
}

/// Whether the other side is gone.
fn is_gone(error: &ServiceError) -> bool {
    matches!(error, ServiceError::TransportClosed | ServiceError::TransportSend(_) | ServiceError::Cancelled { .. })
}

fn told(error: &ServiceError) -> String {
    match error {
        ServiceError::McpError(error) => format!("{} (error {})", error.message, error.code.0),
        ServiceError::TransportClosed => "the connection closed".to_owned(),
        error => chain(error),
    }
}

/// An error with what is behind it.
fn chain(error: &dyn std::error::Error) -> String {
    let mut told = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let next = error.to_string();
        if !told.contains(&next) {
            told = format!("{told}: {next}");
        }
        source = error.source();
    }
    told
}

fn with(what: String, said: Option<String>) -> String {
    said.map_or(what.clone(), |said| format!("{what}; it said: {said}"))
}
