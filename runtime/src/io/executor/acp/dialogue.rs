//! What the runner asks of an agent in one turn, in this order: who it is, a session, settings, the prompt.
//!
//! In: what the turn needs. Out: how it ended. Invariant: no request is sent before the answers that it depends on, and
//! the prompt not before the tools of the run are listed, within bounds.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    ClientCapabilities, ContentBlock, EnvVariable, ErrorCode, FileSystemCapabilities, HttpHeader, Implementation,
    InitializeRequest, InitializeResponse, LoadSessionRequest, McpServer, McpServerHttp, McpServerStdio,
    NewSessionRequest, PromptRequest, PromptResponse, ResumeSessionRequest, SessionConfigKind, SessionConfigOption,
    SessionConfigOptionCategory, SessionConfigSelectOptions, SessionId, SessionModeState,
    SetSessionConfigOptionRequest, SetSessionModeRequest, StopReason, TextContent,
};
use agent_client_protocol::{Agent, Error, JsonRpcRequest};
use serde_json::Value;
use swarmc_plan::Mode;
use tokio::sync::Notify;

use super::client_fs::OfferedCapabilities;
use super::{Tools, steer};
use crate::io::agent_api::{SOCKET, TOKEN};
use crate::io::steering::{Steered, Steering};
use crate::io::tools::{Handed, ServerEndpoint};
use crate::types::event::{Failure, Usage};

/// The end of what is said of a program that went away.
pub(super) const GONE: &str = "it went away";

/// The bytes of an agent's own words that a message holds.
const WORDS: usize = 500;

/// What a turn begins with.
#[derive(Debug)]
pub(super) struct Opening {
    pub session: Option<String>,
    /// Whether others are to go on with its session.
    pub keeps: bool,
    pub directory: PathBuf,
    pub mode: Option<Mode>,
    pub model: Option<String>,
    pub tools: Option<Tools>,
    /// What it is to read while its turn goes on.
    pub steering: Option<Arc<Steering>>,
    /// What it may have us do for it.
    pub able: OfferedCapabilities,
    /// Other tool servers.
    pub servers: Vec<Handed>,
    pub prompt: String,
}

/// What a turn came to.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub failure: Option<Failure>,
    pub usage: Option<Usage>,
    pub session: Option<String>,
    pub text: Option<String>,
}

/// How far a turn is.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// What is under way.
    pub stage: DialogueState,
    /// The session.
    pub session: Option<SessionId>,
    /// Whether another turn can go on with it.
    pub resumes: bool,
    /// Whether it takes texts while its turn goes on.
    pub steers: bool,
    /// What became of such texts, and is not reported yet.
    pub steered: Vec<Steered>,
    /// Who is talked with.
    pub connection: Option<ConnectionTo<Agent>>,
    /// How the turn ended; an answer says itself whether it was brought to its end.
    pub ended: Option<Result<PromptResponse, Failure>>,
}

/// What is under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum DialogueState {
    /// It is asked for something before the turn.
    #[default]
    Opening,
    /// Its clients are to list the tools of the run.
    Listing,
    /// It takes the turn.
    Prompted,
}

/// What the dialogue and those who drive it both know.
#[derive(Debug, Default)]
pub(super) struct Shared {
    progress: Mutex<Progress>,
    /// Ends the wait for an agent that listed no tools.
    pub enough: Notify,
}

impl Shared {
    pub(super) fn lock_progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes how the turn ended, unless that is known already.
    pub(super) fn record_end(&self, ended: Result<PromptResponse, Failure>) {
        self.lock_progress().ended.get_or_insert(ended);
    }
}

/// Takes the turn.
pub(super) async fn run_turn(connection: ConnectionTo<Agent>, opening: Opening, shared: Arc<Shared>) {
    // Others cancel the turn over it while this future waits.
    shared.lock_progress().connection = Some(connection.clone());
    let ended = match open_session(&connection, &opening, &shared).await {
        Ok(session) => {
            let steering = opening.steering.filter(|_| shared.lock_progress().steers).unwrap_or_default();
            tokio::select! {
                ended = send_prompt(&connection, session.clone(), opening.prompt, &shared) => ended,
                never = steer::deliver_notices(&connection, &session, &steering, &shared) => match never {},
            }
        }
        // The agent has done nothing yet.
        Err(message) => Err(Failure::Spawn { message }),
    };
    shared.record_end(ended);
}

/// Everything before the prompt.
async fn open_session(
    connection: &ConnectionTo<Agent>,
    opening: &Opening,
    shared: &Shared,
) -> Result<SessionId, String> {
    let OfferedCapabilities { read, write, terminal } = opening.able;
    let files = FileSystemCapabilities::new().read_text_file(read).write_text_file(write);
    let request = InitializeRequest::new(ProtocolVersion::V1)
        .client_capabilities(ClientCapabilities::new().fs(files).terminal(terminal))
        .client_info(Implementation::new("swarmc", env!("CARGO_PKG_VERSION")));
    let hello = send_request(connection, request, "`initialize`").await?;
    if hello.protocol_version != ProtocolVersion::V1 {
        return Err(format!("the agent speaks version {:?} of ACP, not 1", hello.protocol_version));
    }
    let able = &hello.agent_capabilities;
    let resumes = able.load_session || able.session_capabilities.resume.is_some();
    // Told before the turn: its work would be lost for the turns that are to go on with it.
    if (opening.keeps || opening.session.is_some()) && !resumes {
        return Err(
            "the agent cannot continue a session, because it does not support loading sessions; leave `session` out"
                .to_owned(),
        );
    }
    shared.lock_progress().resumes = resumes;
    shared.lock_progress().steers = opening.steering.is_some() && steer::is_supported(&hello);
    let servers = list_servers(&hello, opening);
    let (session, modes, options) = begin_session(connection, opening, &hello, servers).await?;
    // Ahead of the choices: from now on the agent may ask for something in this session.
    shared.lock_progress().session = Some(session.clone());
    choose_mode(connection, opening, &session, modes).await?;
    choose_model(connection, opening, &session, options).await?;
    // Some agents take a prompt before their clients have listed the tools; the model then knows none of them.
    if let Some(tools) = &opening.tools {
        shared.lock_progress().stage = DialogueState::Listing;
        tokio::select! {
            () = tools.listed.wait() => {}
            () = shared.enough.notified() => {}
        }
    }
    Ok(session)
}

type Session = (SessionId, Option<SessionModeState>, Option<Vec<SessionConfigOption>>);

/// A session: a new one, or the one that the turn goes on with.
async fn begin_session(
    connection: &ConnectionTo<Agent>,
    opening: &Opening,
    hello: &InitializeResponse,
    servers: Vec<McpServer>,
) -> Result<Session, String> {
    let cwd = opening.directory.clone();
    let Some(id) = &opening.session else {
        let made = send_request(connection, NewSessionRequest::new(cwd).mcp_servers(servers), "a session");
        let made = made.await.map_err(|message| with_ways(message, hello))?;
        return Ok((made.session_id, made.modes, made.config_options));
    };
    let (id, what) = (SessionId::new(id.as_str()), format!("its session `{id}`"));
    if hello.agent_capabilities.load_session {
        let request = LoadSessionRequest::new(id.clone(), cwd).mcp_servers(servers);
        let loaded = send_request(connection, request, &what).await.map_err(|message| with_ways(message, hello))?;
        return Ok((id, loaded.modes, loaded.config_options));
    }
    let request = ResumeSessionRequest::new(id.clone(), cwd).mcp_servers(servers);
    let resumed = send_request(connection, request, &what).await.map_err(|message| with_ways(message, hello))?;
    Ok((id, resumed.modes, resumed.config_options))
}

/// The MCP servers that a session begins with.
fn list_servers(hello: &InitializeResponse, opening: &Opening) -> Vec<McpServer> {
    let knows_http = hello.agent_capabilities.mcp_capabilities.http;
    let own = opening.tools.as_ref().filter(|tools| !tools.is_configured);
    let own = own.and_then(|tools| own_server(tools, knows_http));
    let others = opening.servers.iter().filter_map(|server| match &server.way {
        // The protocol has texts alone.
        ServerEndpoint::Process { program, arguments, environment } => {
            let pairs = environment.iter().filter_map(|(name, value)| Some((name.to_str()?, value.to_str()?)));
            let env = pairs.map(|(name, value)| EnvVariable::new(name, value)).collect();
            Some(McpServer::Stdio(McpServerStdio::new(&server.name, program).args(arguments.clone()).env(env)))
        }
        ServerEndpoint::Address(url) => knows_http.then(|| McpServer::Http(McpServerHttp::new(&server.name, url))),
    });
    own.into_iter().chain(others).collect()
}

/// The server of the run.
fn own_server(tools: &Tools, knows_http: bool) -> Option<McpServer> {
    if knows_http {
        let header = HttpHeader::new("Authorization", format!("Bearer {}", tools.token));
        return Some(McpServer::Http(McpServerHttp::new("swarm", &tools.url).headers(vec![header])));
    }
    // An agent without HTTP starts this program as its server, which reaches the run over the socket.
    let program = std::env::current_exe().ok()?;
    let env = vec![EnvVariable::new(SOCKET, &tools.socket), EnvVariable::new(TOKEN, &tools.token)];
    Some(McpServer::Stdio(McpServerStdio::new("swarm", program).args(vec!["mcp".to_owned()]).env(env)))
}

/// Has it work in the mode that the plan says, where it has one of that name; else in the one that asks for leave,
/// which agents call `default`. Some begin in another one, and decide there by themselves what the policy is to decide.
async fn choose_mode(
    connection: &ConnectionTo<Agent>,
    opening: &Opening,
    session: &SessionId,
    modes: Option<SessionModeState>,
) -> Result<(), String> {
    let Some(modes) = modes else { return Ok(()) };
    let names: &[&str] = match opening.mode {
        Some(Mode::Planning) => &["planning", "plan", "default"],
        Some(Mode::Implementation) => &["implementation", "default"],
        None => &["default"],
    };
    let offered = |name: &&&str| modes.available_modes.iter().any(|mode| *mode.id.0 == ***name);
    let Some(name) = names.iter().find(offered) else { return Ok(()) };
    if *modes.current_mode_id.0 != **name {
        send_request(connection, SetSessionModeRequest::new(session.clone(), *name), &format!("its mode `{name}`"))
            .await?;
    }
    Ok(())
}

/// Has it use the model that the plan names. What it costs and what it can do hang on that: no other will do.
async fn choose_model(
    connection: &ConnectionTo<Agent>,
    opening: &Opening,
    session: &SessionId,
    options: Option<Vec<SessionConfigOption>>,
) -> Result<(), String> {
    let Some(model) = &opening.model else { return Ok(()) };
    let is_model = |option: &SessionConfigOption| option.category == Some(SessionConfigOptionCategory::Model);
    // The protocol leaves it to the agent to say the category.
    let option = options.into_iter().flatten().find(|option| is_model(option) || *option.id.0 == *"model");
    let Some(option) = option else {
        return Err(format!(
            "the agent does not support choosing `{model}`: leave `model` out, and set it in `args` of its \
             provider or in the agent's own settings"
        ));
    };
    let (current, names) = match &option.kind {
        SessionConfigKind::Select(select) => (Some(&select.current_value), list_values(&select.options)),
        _ => (None, Vec::new()),
    };
    if !names.iter().any(|name| name == model) {
        let known: Vec<String> = names.iter().take(10).map(|name| format!("`{}`", shorten_text(name))).collect();
        return Err(format!("the agent has no model `{model}`: it has {}", known.join(", ")));
    }
    if current.is_none_or(|current| *current.0 != **model) {
        let request = SetSessionConfigOptionRequest::new(session.clone(), option.id.clone(), model.as_str());
        send_request(connection, request, &format!("its model `{model}`")).await?;
    }
    Ok(())
}

fn list_values(options: &SessionConfigSelectOptions) -> Vec<String> {
    match options {
        SessionConfigSelectOptions::Ungrouped(options) => options.iter().map(|it| it.value.0.to_string()).collect(),
        SessionConfigSelectOptions::Grouped(groups) => {
            groups.iter().flat_map(|group| &group.options).map(|it| it.value.0.to_string()).collect()
        }
        _ => Vec::new(),
    }
}

/// The turn itself.
async fn send_prompt(
    connection: &ConnectionTo<Agent>,
    session: SessionId,
    prompt: String,
    shared: &Shared,
) -> Result<PromptResponse, Failure> {
    let blocks = vec![ContentBlock::Text(TextContent::new(prompt))];
    // What it says from here on belongs to the turn.
    shared.lock_progress().stage = DialogueState::Prompted;
    let response = connection.send_request(PromptRequest::new(session, blocks)).block_task().await;
    response.map_err(|error| Failure::Agent { message: describe_refusal(&error, "its turn") })
}

/// Why a turn that stopped so has failed.
pub(super) fn describe_stop(reason: StopReason) -> Option<&'static str> {
    match reason {
        StopReason::EndTurn => None,
        StopReason::MaxTokens => Some("the model's answer was cut off: it stopped with `max_tokens`"),
        StopReason::MaxTurnRequests => Some("the agent stopped at its limit of model requests in one turn"),
        StopReason::Refusal => Some("the agent refused to continue"),
        StopReason::Cancelled => Some("the agent's turn was cancelled, but not by this run"),
        _ => Some("the agent stopped for an unknown reason"),
    }
}

/// Asks for something; why it was refused, otherwise.
async fn send_request<R: JsonRpcRequest>(
    connection: &ConnectionTo<Agent>,
    request: R,
    what: &str,
) -> Result<R::Response, String> {
    connection.send_request(request).block_task().await.map_err(|error| describe_refusal(&error, what))
}

/// Words for a request that was refused.
fn describe_refusal(error: &Error, what: &str) -> String {
    if agent_client_protocol::is_incoming_transport_closed(error)
        || agent_client_protocol::is_connection_terminated(error)
    {
        return format!("the agent was asked for {what}, but {GONE}");
    }
    let mut words = shorten_text(&error.message);
    // Some keep a program of their own, and say so when that has ended.
    if error.data.as_ref().is_some_and(|data| data["restartable"] == true) {
        return format!("the agent was asked for {what}, but {GONE}: {words}");
    }
    let detail = match &error.data {
        Some(Value::String(text)) => Some(text.as_str()),
        Some(data) => ["details", "message", "error"].iter().find_map(|key| data.get(key)?.as_str()),
        None => None,
    };
    // Some agents repeat the message as its detail.
    if let Some(detail) = detail.filter(|detail| !words.contains(detail)) {
        words.push_str(&format!(": {}", shorten_text(detail)));
    }
    match error.code == ErrorCode::AuthRequired {
        true => format!("the agent wants authentication before {what}: {words}"),
        false => format!("the agent was asked for {what}: {words}"),
    }
}

/// Adds to the message of an agent that requires a login which ways of login it offers.
fn with_ways(message: String, hello: &InitializeResponse) -> String {
    // By the words of `describe_refusal`: the error code is gone by here.
    if !message.contains("authentication") || hello.auth_methods.is_empty() {
        return message;
    }
    let ways: Vec<String> = hello.auth_methods.iter().take(5).map(|method| shorten_text(method.name())).collect();
    format!("{message} (by {})", ways.join(", "))
}

/// What an agent says, cut to what a message holds.
fn shorten_text(text: &str) -> String {
    let text: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.len() > WORDS {
        true => format!("{}…", &text[..text.floor_char_boundary(WORDS)]),
        false => text,
    }
}
