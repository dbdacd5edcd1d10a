//! What `swarmc check --format json` prints.

use schemars::JsonSchema;
use serde::Serialize;

use super::Version;
use super::stats::CheckStats;

/// What `swarmc check --format json` prints. New fields may come without another version.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Check {
    /// The version of this form.
    pub version: Version,
    /// The problems, spec by spec, in the order of their places.
    pub diagnostics: Vec<Diagnostic>,
    /// How many of them are errors.
    pub errors: usize,
    /// How many are warnings.
    pub warnings: usize,
    /// How many are hints.
    pub hints: usize,
    /// How many more there are: a thousand problems of a code are listed of a spec.
    pub left_out: usize,
    /// How many more a baseline knows, which are not listed.
    pub known: usize,
    /// With `--since`: how many specs were left out, as nothing that they read has changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unchanged: Option<usize>,
    /// With `--stats`: what was looked at and proved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stats: Option<CheckStats>,
}

/// A problem.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Diagnostic {
    /// Its code; `swarmc explain CODE` says more.
    #[schemars(regex(pattern = "^SW[0-9]{3}$"))]
    pub code: String,
    /// The name of its code.
    pub name: String,
    /// How bad it is, after the flags had their say.
    pub severity: Severity,
    /// What is wrong.
    pub message: String,
    /// Where, the place itself first. Empty only when there is no text, as for a missing spec.
    pub labels: Vec<Label>,
    /// How one thing leads to another, the first cause first.
    pub flow: Vec<Label>,
    /// What to type.
    pub help: Option<String>,
    /// Edits that mend it.
    pub fix: Option<Fix>,
}

/// How bad a problem is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The spec has no plan.
    Error,
    /// The spec has a plan, and it does something else than it seems to.
    Warning,
    /// Something could be better.
    Hint,
}

/// A place with what it is.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Label {
    /// The place.
    pub at: Span,
    /// What this place is.
    pub text: String,
}

/// Edits that belong together.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Fix {
    /// What they do, as an order.
    pub title: String,
    /// Whether the meaning is certainly the one wanted; otherwise a person should look.
    pub certain: bool,
    /// None overlaps another.
    pub edits: Vec<Edit>,
}

/// The replacement of a place.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Edit {
    /// What is replaced; empty to insert.
    pub at: Span,
    /// By what.
    pub text: String,
}

/// A range of a file.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Span {
    /// The file, as one would type it in the folder that swarmc ran in.
    pub file: String,
    /// The first character.
    pub start: Position,
    /// The one after the last.
    pub end: Position,
}

/// A place between two characters.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Position {
    /// In bytes, from 0.
    pub offset: u32,
    /// From 1.
    #[schemars(range(min = 1))]
    pub line: usize,
    /// In characters, from 1.
    #[schemars(range(min = 1))]
    pub column: usize,
}
