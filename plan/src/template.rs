//! Prompts and other texts with directives and expressions, as the runtime renders them.
//!
//! Invariant: a rendered value is data. It is put in place of its segment and never scanned again.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Origin;

/// A text made of segments.
///
/// Without a [`Segment::Logic`] the rendered segments are concatenated. With one, the concatenation in which the Nth
/// directive (from 0) is replaced by `{{ directive(N) }}` is a minijinja template.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Template {
    /// The pieces, in order.
    pub segments: Vec<Segment>,
    /// `sha256:` and the digest of the segments in hexadecimal: changes when, and only when, the text does.
    pub digest: String,
}

impl Template {
    /// Whether a directive of it reads such a value.
    pub fn reads_kind(&self, kind: DirectiveKind) -> bool {
        self.segments.iter().any(|segment| segment.reads_kind(kind))
    }

    /// The same text without the directives that read such a value, and without a digest; none where it has none.
    pub fn without_kind(&self, kind: DirectiveKind) -> Option<Template> {
        let segments = || self.segments.iter().filter(|segment| !segment.reads_kind(kind)).cloned().collect();
        self.reads_kind(kind).then(|| Template { segments: segments(), digest: String::new() })
    }
}

/// A piece of a [`Template`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Segment {
    /// Literal text.
    Text(String),
    /// A value.
    Directive(Directive),
    /// A minijinja expression, block or comment, delimiters included; or a whole `raw` region.
    Logic(Expression),
}

impl Segment {
    fn reads_kind(&self, kind: DirectiveKind) -> bool {
        matches!(self, Segment::Directive(found) if found.kind == kind)
    }
}

/// A minijinja source with its place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Expression {
    /// The source text.
    pub source: String,
    /// What it reads; without it, it may read everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reads: Option<Reads>,
    /// Its place.
    pub origin: Origin,
}

/// What an expression reads, by kind: the names of steps, ports and parameters as it writes them, `_` for `-`; no names
/// where the kind takes none.
pub type Reads = BTreeMap<DirectiveKind, BTreeSet<String>>;

/// `<<kind:name.field | filter>>`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Directive {
    /// What is read.
    pub kind: DirectiveKind,
    /// The step, port, parameter or path; none for `iteration` and `stdin`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Fields of the value, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<String>,
    /// The filters of the value, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub filters: Vec<Filter>,
    /// Whether the text is put between `--- Output from task "x" ---` lines.
    #[serde(default, skip_serializing_if = "crate::is_false")]
    pub wrap: bool,
    /// Its place.
    pub origin: Origin,
}

/// The bytes of both streams of a command that its log keeps: the end of them.
pub const LOG: usize = 64 * 1024;

/// What a directive reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DirectiveKind {
    /// A step's output in this iteration.
    Output,
    /// A step's output in the round before; nothing in the first round.
    Previous,
    /// `succeeded`, `failed` or `skipped`.
    Status,
    /// A step's exit code.
    Exit,
    /// Why a step failed: the tail of its stderr, or the runner's words.
    Error,
    /// What a command's last attempt wrote to both of its streams: in this round, or, where it has not run in it, in
    /// the round before.
    Log,
    /// The output of the step behind a port of this step.
    Input,
    /// A parameter.
    Param,
    /// The number of this round, from 1.
    Iteration,
    /// A file's contents at that moment; the path is relative to the workspace.
    File,
    /// `id` or `dir` of this run.
    Run,
    /// `name` of this step.
    Task,
    /// What was piped into `swarmc run`.
    Stdin,
    /// The item of a for-each.
    Item,
    /// The position of the item, from 0.
    Index,
    /// A context pack.
    Context,
    /// The messages that arrived for this agent since its last turn.
    Inbox,
    /// The entries of a topic of the swarm's workspace.
    Shared,
    /// The roster of the swarm.
    Team,
    /// The plan items of the swarm.
    Plan,
}

/// A filter that is applied to a value before it is inserted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Filter {
    /// The last N lines.
    Tail(u64),
    /// The first N lines.
    Head(u64),
    /// Lines from A to B, both from 1, both included.
    Lines(u64, u64),
    /// The first N characters.
    Chars(u64),
    /// As a JSON value.
    Json,
    /// Without the surrounding lines.
    Raw,
    /// This text, if there is no value.
    Default(String),
}
