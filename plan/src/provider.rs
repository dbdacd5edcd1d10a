//! Who does the work: providers (how an agent is started) and agents.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::connection::Connection;
use crate::{Budget, Origin};

/// A secret: its value stays in the environment, and swarmc writes it into no plan, prompt or journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Secret {
    /// Its name in the spec.
    pub name: String,
    /// The environment variable that holds it.
    pub env: String,
}

/// Environment variables of a process, on top of the runner's allow-list. Later entries win.
pub type Environment = Vec<EnvValue>;

/// One environment variable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EnvValue {
    /// Passed through from the caller's environment, when it is set there.
    Pass(String),
    /// A secret's variable, passed through; the step cannot start when it is not set.
    Secret(String),
    /// Set to a text.
    Set {
        /// The variable.
        name: String,
        /// Its value; directives are not wrapped.
        value: crate::Template,
    },
}

/// How agents are reached.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Provider {
    /// Its name.
    pub name: String,
    /// How a turn is taken.
    pub connection: Connection,
    /// Variables of its processes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Environment,
    /// How to install the program, for the message when it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub install: Option<String>,
    /// How to log in to the program, for the message when it refuses the login.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub login: Option<String>,
    /// The tokens that its model takes at most, prompt and answer together; none is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
    /// What its tokens cost; none is unknown, which is not free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// The limits of one minute, which all its agents share; none is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// How many turns of all its agents may run at once; none is no limit of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    /// What it can do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub provides: Vec<Ability>,
    /// Where it is declared.
    pub origin: Origin,
}

/// What tokens cost, in millionths of a dollar for a million of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Tokens read.
    pub input: u64,
    /// Tokens written.
    pub output: u64,
    /// Tokens read from the provider's cache; as `input` where it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<u64>,
    /// Tokens put into the provider's cache; as `input` where it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<u64>,
}

/// The limits of a provider for one minute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rate {
    /// Requests; none is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
    /// Tokens, prompts and answers together; none is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
}

/// A feature that not all providers have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ability {
    /// It takes a JSON Schema and answers accordingly.
    Schema,
    /// It calls tools.
    Tools,
    /// It continues an earlier session.
    Resume,
    /// It takes images.
    Images,
}

/// What the session's id replaces in the words of [`Connection::Exec`](crate::Connection::Exec)'s `resume`.
pub const SESSION: &str = "{session}";

/// How a command-line agent takes a JSON Schema for its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SchemaFlag {
    /// After this flag, as text.
    Inline(String),
    /// After this flag, as the path of a file.
    File(String),
}

/// What the address of a run's MCP server replaces in the words and variables of [`McpConfig`].
pub const MCP_URL: &str = "{url}";

/// What stands for the command line that prints the notices of an agent, in [`McpConfig::notices`].
pub const MCP_NOTICES: &str = "{notices}";

/// What the token of a task replaces in the variables of [`McpConfig`], and nowhere else: others can read the words of
/// a command, and files outlive it.
pub const MCP_TOKEN: &str = "{token}";

/// How a command-line agent receives the address of its run's MCP server; if empty, it does not receive it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct McpConfig {
    /// Further arguments, after the others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Variables of its process.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<McpVariable>,
    /// Further arguments for an agent of a team: by them the program runs a command after each call of a tool, and its
    /// model reads what that prints. `{notices}` in them stands for a command line that prints what others wrote to the
    /// agent meanwhile, escaped for a string of JSON.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
}

impl McpConfig {
    /// Whether it has no arguments and no variables.
    pub fn is_nothing(&self) -> bool {
        *self == McpConfig::default()
    }

    /// Whether an argument or a variable names the server.
    pub fn names_server(&self) -> bool {
        !self.args.is_empty() || !self.env.is_empty()
    }
}

/// A variable that gives a command-line agent the address of an MCP server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct McpVariable {
    /// Its name.
    pub name: String,
    /// Its value, or the content of the file that it names. A JSON object is merged into the JSON object that the
    /// variable already holds.
    pub text: String,
    /// Whether it names a file.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub file: bool,
}

/// The protocol of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LlmKind {
    /// OpenAI chat completions, and whatever is compatible with them.
    Openai,
    /// OpenAI responses.
    OpenaiResponses,
    /// Anthropic messages.
    Anthropic,
    /// Gemini.
    Gemini,
}

/// How a model calls tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolProtocol {
    /// By the endpoint's own protocol.
    Native,
    /// As one step in an answer that follows a JSON Schema: a call, or the end.
    Schema,
}

/// How a prompt reaches a command-line agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PromptDelivery {
    /// On standard input, which is then closed.
    #[default]
    Stdin,
    /// As the last argument.
    Argument,
    /// In a file of the run folder, whose path is the last argument.
    File,
}

/// What a command-line agent prints on its standard output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// The answer, as text.
    #[default]
    Text,
    /// The answer, as one JSON document.
    Json,
    /// Events of Claude Code and its kin (`--output-format stream-json`).
    ClaudeStreamJson,
    /// Events of `codex exec --json`.
    CodexJsonl,
    /// Events of `opencode run --format json`.
    OpencodeJson,
    /// Events of `gemini --output-format stream-json`.
    GeminiStreamJson,
    /// Events of `pi --mode json`.
    PiJson,
    /// Events of `copilot --output-format json`.
    CopilotJsonl,
    /// The lines of `aider --no-pretty`.
    AiderText,
}

/// An answer of a `Connection::Script`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    /// The step it answers; any, when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The iteration it answers, from 1; any, when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iteration: Option<u32>,
    /// The attempt it answers, from 1; any, when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// The position from 0 of the for-each item that it answers; any, when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<u32>,
    /// The turn of that attempt that it answers: 1 is the first, 2 the first repair; any, when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u32>,
    /// The text.
    pub text: String,
    /// The exit code; anything but 0 fails the attempt.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub exit: i32,
    /// How long the answer takes, in milliseconds.
    #[serde(default, skip_serializing_if = "is_zero_ms")]
    pub delay_ms: u64,
}

/// A role that a provider plays.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Agent {
    /// Its name.
    pub name: String,
    /// The provider, by name.
    pub provider: String,
    /// The model, in the provider's own terms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its system text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<crate::Template>,
    /// The agent that takes a turn in place of this one when this one's provider cannot be reached or refuses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<String>,
    /// The tier that it was declared with, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<String>,
    /// Whether it plans or implements; none is the workflow's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// The randomness of its answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// The tokens of one answer at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output: Option<u64>,
    /// The tools that it may use; none means all tools of its provider, an empty list means no tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// The powers that it is declared to have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub can: Vec<Capability>,
    /// Whether its provider asks before it acts.
    #[serde(default, skip_serializing_if = "is_gated")]
    pub permissions: Permissions,
    /// What it may use at most, over all its turns in a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// Its inputs and outputs in the workspace of the file protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<crate::FileProtocol>,
    /// The pool whose workers carry out its turns in swarms; by default that of the step that starts the swarm. For its
    /// other turns, [`crate::Step::pool`] says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// Where it is declared.
    pub origin: Origin,
}

/// What a turn is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// To think, and to change nothing.
    Planning,
    /// To do.
    Implementation,
}

impl Mode {
    /// The text of it that agents receive.
    pub fn describe(self) -> &'static str {
        match self {
            Mode::Planning => "Mode: planning. Think, and say what should be done; change nothing.",
            Mode::Implementation => "Mode: implementation. Do what is to be done.",
        }
    }
}

/// A power of an agent, or a risk that it brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Capability {
    /// It changes files.
    WriteFiles,
    /// It starts programs.
    RunCommands,
    /// It sends data out.
    Network,
    /// It reads private data.
    PrivateData,
    /// It reads text of strangers.
    UntrustedInput,
    /// It starts further agents.
    Spawn,
}

/// Whether an agent's provider asks before it acts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Permissions {
    /// It asks, or refuses.
    #[default]
    Gated,
    /// It does not ask.
    Skip,
}

/// A server of tools that speaks the Model Context Protocol.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolServer {
    /// Its name.
    pub name: String,
    /// How it is reached.
    pub transport: Transport,
    /// The environment variable with the token that is sent to an address in the header `Authorization`; without it,
    /// none is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<String>,
    /// Variables of its process.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Environment,
    /// Where it is declared.
    pub origin: Origin,
}

/// How a tool server is reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// A process, on its standard input and output.
    Exec(Vec<String>),
    /// Streamable HTTP at this address.
    Url(String),
}

fn is_gated(permissions: &Permissions) -> bool {
    *permissions == Permissions::Gated
}

fn is_zero(value: &i32) -> bool {
    *value == 0
}

fn is_zero_ms(value: &u64) -> bool {
    *value == 0
}
