//! Who does the work: providers, tiers, agents and the servers of their tools.

use swarmc_plan as plan;

use super::{Budget, Files, Line, Name, Source, Spanned, Variable};
use crate::source::Span;
use crate::syntax::Text;

#[derive(Debug)]
pub(crate) struct Provider {
    pub name: Name,
    pub preset: Option<Name>,
    pub exec: Option<Line>,
    pub acp: Option<Line>,
    pub llm: Option<Llm>,
    pub script: Option<Script>,
    /// The key of its model: a secret, or the variable that holds it.
    pub auth: Option<Name>,
    pub rate: Option<Rate>,
    pub args: Vec<Text>,
    pub delivery: Option<Spanned<plan::PromptDelivery>>,
    pub reads: Option<Spanned<plan::Format>>,
    pub model_flag: Option<String>,
    pub system_flag: Option<String>,
    /// Words that continue a conversation, behind those of every turn; one of them is [`plan::SESSION`].
    pub resume_args: Option<Vec<Text>>,
    pub schema_flag: Option<plan::SchemaFlag>,
    /// Words that tell of the MCP server of a run.
    pub mcp_args: Option<Vec<Text>>,
    /// Words by which the command reads notices after each call of a tool.
    pub notice_args: Option<Vec<Text>>,
    /// Variables that tell of it.
    pub mcp_env: Vec<plan::McpVariable>,
    pub env: Vec<Variable>,
    pub install: Option<String>,
    pub login: Option<String>,
    /// In tokens.
    pub context_window: Option<Spanned<u64>>,
    pub price: Option<Price>,
    pub concurrency: Option<u32>,
    /// What it says it can do; none when it says nothing.
    pub provides: Option<Vec<Spanned<plan::Ability>>>,
}

impl Provider {
    /// How its agents are reached; none where only its preset says so.
    pub(crate) fn kind(&self) -> Option<plan::ProviderKind> {
        let ways = [
            (self.llm.is_some(), plan::ProviderKind::Llm),
            (self.acp.is_some(), plan::ProviderKind::Acp),
            (self.exec.is_some(), plan::ProviderKind::Exec),
            (self.script.is_some(), plan::ProviderKind::Script),
        ];
        ways.into_iter().find(|(is_written, _)| *is_written).map(|(_, kind)| kind)
    }

    /// The lines that start its programs, with their kinds: one, unless it says more than one way.
    pub(crate) fn programs(&self) -> impl Iterator<Item = (plan::ProviderKind, &Line)> {
        let exec = self.exec.iter().map(|line| (plan::ProviderKind::Exec, line));
        exec.chain(self.acp.iter().map(|line| (plan::ProviderKind::Acp, line)))
    }
}

/// A model behind an HTTP interface.
#[derive(Debug)]
pub(crate) struct Llm {
    pub kind: Spanned<plan::LlmKind>,
    pub base_url: Option<Text>,
    pub model: Option<Text>,
    pub tools: Option<Spanned<plan::ToolProtocol>>,
    pub span: Span,
}

/// What may be asked in a minute.
#[derive(Debug)]
pub(crate) struct Rate {
    pub requests: Option<Spanned<u64>>,
    pub tokens: Option<Spanned<u64>>,
    pub span: Span,
}

/// Micro-dollars for a million tokens; none is unknown, which is not zero.
#[derive(Debug)]
pub(crate) struct Price {
    pub input: Option<Spanned<u64>>,
    pub output: Option<Spanned<u64>>,
    pub cache_read: Option<Spanned<u64>>,
    pub cache_write: Option<Spanned<u64>>,
    pub span: Span,
}

/// Recorded answers.
#[derive(Debug)]
pub(crate) struct Script {
    pub answers: Vec<Answer>,
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub text: Option<Source>,
    pub task: Option<Name>,
    pub iteration: Option<u32>,
    pub attempt: Option<u32>,
    /// The turn of the attempt, from 1.
    pub turn: Option<u32>,
    /// The item of a for-each, from 0.
    pub index: Option<u32>,
    pub exit: i32,
    pub delay_ms: u64,
    pub span: Span,
}

/// A name for a provider and model, used as `tier=NAME`.
#[derive(Debug)]
pub(crate) struct Tier {
    pub name: Name,
    pub provider: Name,
    pub model: Option<Text>,
}

#[derive(Debug)]
pub(crate) struct Agent {
    pub name: Name,
    /// Another agent, whose declaration this one starts from.
    pub template: Option<Name>,
    pub provider: Option<Name>,
    pub tier: Option<Name>,
    pub model: Option<Name>,
    pub description: Option<String>,
    pub system: Option<Source>,
    /// None: the workflow's.
    pub mode: Option<Spanned<plan::Mode>>,
    pub temperature: Option<Spanned<f64>>,
    /// The tokens of an answer at most.
    pub max_output: Option<Spanned<u64>>,
    /// The tools it may use; none when it says nothing, an empty list when it may use none.
    pub tools: Option<Tools>,
    pub can: Vec<Spanned<plan::Capability>>,
    pub permissions: Option<Spanned<plan::Permissions>>,
    /// Who takes the turn when its provider cannot.
    pub fallback: Option<Name>,
    pub budget: Option<Budget>,
    /// What its workspace holds: the contract of its outbox.
    pub files: Option<Files>,
    /// The pool of workers for its turns; none: that of the pipeline.
    pub pool: Option<String>,
    /// Whether a task makes it of its template, with `model=`; nothing declares it.
    pub variant: bool,
}

/// An allow-list of tools: names of tools, of tool servers, or patterns such as `"*"`.
#[derive(Clone, Debug)]
pub(crate) struct Tools {
    pub names: Vec<Name>,
    pub span: Span,
}

/// A server of tools that speaks MCP.
#[derive(Debug)]
pub(crate) struct ToolServer {
    pub name: Name,
    pub description: Option<String>,
    pub exec: Option<Line>,
    pub url: Option<Text>,
    /// The secret that it is sent, or its variable.
    pub auth: Option<Name>,
    pub env: Vec<Variable>,
}
