//! How providers are reached, and the table of these kinds.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::provider::{Format, LlmKind, McpConfig, PromptDelivery, Recorded, SchemaFlag, ToolProtocol};

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
        /// The argument vector that continues a session, in place of `argv`: `SESSION` in it is the session's id.
        /// None: it cannot.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resume: Option<Vec<String>>,
        /// How it takes a JSON Schema for its answer. None: it cannot.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        schema: Option<SchemaFlag>,
        /// How the program receives the address of its run's MCP server, if its task takes part in handoffs.
        #[serde(default, skip_serializing_if = "McpConfig::is_nothing")]
        mcp: McpConfig,
    },
    /// An agent that speaks the Agent Client Protocol on its standard input and output.
    Acp {
        /// The argument vector, program first.
        argv: Vec<String>,
        /// How the program receives the address of its run's MCP server, if its task takes part in handoffs. Nothing: the
        /// session that begins its turn names it.
        #[serde(default, skip_serializing_if = "McpConfig::is_nothing")]
        mcp: McpConfig,
    },
    /// A model behind an HTTP endpoint.
    Llm {
        /// The protocol that the endpoint speaks.
        kind: LlmKind,
        /// The address; none is that of the kind's own service.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        base_url: Option<String>,
        /// The model of agents that name none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// The environment variable that holds its key, sent in the header that the kind asks for; without it, none is
        /// sent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        auth: Option<String>,
        /// How its model calls tools; none: it cannot.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tools: Option<ToolProtocol>,
    },
    /// Recorded answers: no process at all. The first record that fits the task and attempt answers.
    Script {
        /// The answers, in order.
        answers: Vec<Recorded>,
    },
}

impl Default for Connection {
    /// No answer at all.
    fn default() -> Connection {
        Connection::Script { answers: Vec::new() }
    }
}

impl Connection {
    /// Its kind.
    pub fn kind(&self) -> ProviderKind {
        match self {
            Connection::Exec { .. } => ProviderKind::Exec,
            Connection::Acp { .. } => ProviderKind::Acp,
            Connection::Llm { .. } => ProviderKind::Llm,
            Connection::Script { .. } => ProviderKind::Script,
        }
    }

    /// The argument vector of the program that takes its turns.
    pub fn program(&self) -> Option<&[String]> {
        match self {
            Connection::Exec { argv, .. } | Connection::Acp { argv, .. } => Some(argv),
            _ => None,
        }
    }

    /// The address of the endpoint. None is that of the kind's own service, or a way that has no endpoint.
    pub fn address(&self) -> Option<&str> {
        match self {
            Connection::Llm { base_url, .. } => base_url.as_deref(),
            _ => None,
        }
    }

    /// The environment variable that holds the key of the endpoint.
    pub fn key_variable(&self) -> Option<&str> {
        match self {
            Connection::Llm { auth, .. } => auth.as_deref(),
            _ => None,
        }
    }

    /// The model of agents that name none.
    pub fn model(&self) -> Option<&str> {
        match self {
            Connection::Llm { model, .. } => model.as_deref(),
            _ => None,
        }
    }

    /// The protocol that the endpoint of a model speaks.
    pub fn model_protocol(&self) -> Option<LlmKind> {
        match self {
            Connection::Llm { kind, .. } => Some(*kind),
            _ => None,
        }
    }

    /// How a model calls the tools that the runner offers.
    pub fn tool_protocol(&self) -> Option<ToolProtocol> {
        match self {
            Connection::Llm { tools, .. } => *tools,
            _ => None,
        }
    }

    /// The recorded answers, in order.
    pub fn answers(&self) -> Option<&[Recorded]> {
        match self {
            Connection::Script { answers } => Some(answers),
            _ => None,
        }
    }

    /// What the program prints, where the spec says that.
    pub fn output_format(&self) -> Option<Format> {
        match self {
            Connection::Exec { reads, .. } => Some(*reads),
            _ => None,
        }
    }

    /// How the program receives the address of its run's MCP server, where the spec says that.
    pub fn mcp_config(&self) -> Option<&McpConfig> {
        match self {
            Connection::Exec { mcp, .. } | Connection::Acp { mcp, .. } => Some(mcp),
            _ => None,
        }
    }
}

/// How the agents of a provider are reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProviderKind {
    /// A command-line program.
    Exec,
    /// An agent that speaks the Agent Client Protocol.
    Acp,
    /// A model behind an HTTP endpoint.
    Llm,
    /// Recorded answers.
    Script,
}

/// What is to be known of a kind.
struct Row {
    /// The node that a spec writes.
    name: &'static str,
    /// How it is written.
    usage: &'static str,
    is_program: bool,
    is_model: bool,
    can_resume: bool,
}

/// The kinds, in the order in which messages list them.
const KINDS: [ProviderKind; 4] = [ProviderKind::Exec, ProviderKind::Acp, ProviderKind::Llm, ProviderKind::Script];

impl ProviderKind {
    /// Every kind, in the order in which messages list them.
    pub fn all() -> impl Iterator<Item = ProviderKind> {
        KINDS.into_iter()
    }

    fn row(self) -> &'static Row {
        match self {
            ProviderKind::Exec => {
                &Row { name: "exec", usage: "exec PROGRAM ARG…", is_program: true, is_model: false, can_resume: true }
            }
            ProviderKind::Acp => {
                &Row { name: "acp", usage: "acp PROGRAM ARG…", is_program: true, is_model: false, can_resume: true }
            }
            ProviderKind::Llm => {
                &Row { name: "llm", usage: "llm KIND", is_program: false, is_model: true, can_resume: false }
            }
            ProviderKind::Script => {
                &Row { name: "script", usage: "script { … }", is_program: false, is_model: false, can_resume: true }
            }
        }
    }

    /// The node that a spec writes: `exec`.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// How the node is written: `exec PROGRAM ARG…`.
    pub fn usage(self) -> &'static str {
        self.row().usage
    }

    /// Whether a program takes its turns.
    pub fn is_program(self) -> bool {
        self.row().is_program
    }

    /// Whether the runner itself asks a model.
    pub fn is_model(self) -> bool {
        self.row().is_model
    }

    /// Whether such a provider can continue a session at all.
    pub fn can_resume(self) -> bool {
        self.row().can_resume
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_one_row_and_is_written_with_its_name() {
        let names: Vec<&str> = ProviderKind::all().map(ProviderKind::name).collect();
        assert_eq!(names, ["exec", "acp", "llm", "script"]);
        assert!(ProviderKind::all().all(|kind| kind.usage().starts_with(kind.name())));
    }
}
