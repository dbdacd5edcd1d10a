//! Who does the work: providers (how an agent is started) and agents.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Origin;

/// A secret: its value stays in the environment and never enters a plan, a prompt or a journal.
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    /// Where it is declared.
    pub origin: Origin,
}

/// The way a provider takes a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Connection {
    /// A command-line program, started once a turn.
    Exec {
        /// The argument vector, program first.
        argv: Vec<String>,
        /// How the prompt reaches it.
        prompt: PromptDelivery,
        /// What it prints.
        reads: Format,
        /// The flag before the agent's model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model_flag: Option<String>,
        /// The flag before the agent's system text; without it, that text stands before the prompt.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        system_flag: Option<String>,
    },
    /// Recorded answers: no process at all. The first record that fits the task and attempt answers.
    Script {
        /// The answers, in order.
        answers: Vec<Recorded>,
    },
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
}

/// An answer of a [`Connection::Script`].
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    /// Where it is declared.
    pub origin: Origin,
}

fn is_zero(value: &i32) -> bool {
    *value == 0
}

fn is_zero_ms(value: &u64) -> bool {
    *value == 0
}
