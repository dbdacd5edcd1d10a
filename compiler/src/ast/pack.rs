//! Context packs: what a turn is given to know.

use swarmc_plan as plan;

use super::{Name, Spanned};
use crate::source::Span;
use crate::syntax::Text;

/// A pack, put together when the turn starts that reads it.
#[derive(Debug)]
pub(crate) struct ContextPack {
    pub name: Name,
    pub description: Option<String>,
    /// Tokens at most.
    pub tokens: Spanned<u32>,
    /// Tokens to aim at; never an error.
    pub min_tokens: u32,
    /// In the order written; cut from the last upwards.
    pub rules: Vec<Spanned<PackRule>>,
    pub on_overflow: plan::Overflow,
}

/// One part of a pack.
#[derive(Debug, PartialEq)]
pub(crate) enum PackRule {
    Goal(Text),
    DefinitionOfDone(Vec<Text>),
    Docs {
        path: Text,
        /// From and to, both included, from 1.
        lines: Option<Spanned<(u32, u32)>>,
    },
    Files {
        globs: Vec<Text>,
        summary: Summary,
        max: u32,
    },
    Fact {
        name: Name,
        value: Text,
    },
    /// Envelopes and outputs of these steps or members.
    Inputs(Vec<Name>),
    Artifacts {
        kind: Name,
        from: Name,
    },
    Constraint {
        name: Name,
        value: Literal,
    },
    /// The parts of another pack.
    Merge(Name),
}

/// Whether a file comes with a summary.
#[derive(Debug, PartialEq)]
pub(crate) enum Summary {
    None,
    /// By a rule.
    Rule,
    /// By an agent, which is the sole one where none is named.
    Agent(Option<Name>, Span),
}

/// A value as JSON knows it.
#[derive(Debug, PartialEq)]
pub(crate) enum Literal {
    Bool(bool),
    Number(serde_json::Number),
    Text(Text),
}
