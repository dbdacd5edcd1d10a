//! What can be wrong with the text of a document.
//!
//! A problem says what is wrong, what its place is and what to type, and carries the edit where one certainly helps.

use crate::source::Span;

/// Something wrong in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// What kind of wrong.
    pub kind: ProblemKind,
    /// The place.
    pub span: Span,
    /// What is wrong: lower case, no full stop, the user's text in backticks.
    pub message: String,
    /// What the place is.
    pub label: String,
    /// What to type.
    pub help: Option<String>,
    /// A second span that explains the problem, and its label.
    pub second: Option<(Span, String)>,
    /// The edit that mends it.
    pub fix: Option<Fix>,
}

/// The kinds of problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProblemKind {
    /// The text is not KDL.
    Syntax,
    /// A literal of KDL 1; always with a fix.
    V1Literal,
    /// A limit is passed, and nothing was read.
    Limit,
    /// KDL, but a habit from another notation that does not mean what it seems to.
    Habit,
}

/// An edit that mends a problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fix {
    /// What it does, as an order: "write `#true`".
    pub title: String,
    /// What is replaced; empty to insert.
    pub span: Span,
    /// By what.
    pub replacement: String,
    /// Whether the meaning is certainly the one wanted.
    pub certain: bool,
}

/// How many problems are reported for a file.
pub(super) const MAX_PROBLEMS: usize = 100;

/// The problems found so far; past a number they are no longer even described.
#[derive(Default)]
pub(super) struct Problems(Vec<Problem>);

impl Problems {
    /// Adds what `describe` gives, while there is room.
    pub(super) fn add(&mut self, describe: impl FnOnce() -> Problem) {
        if self.0.len() < MAX_PROBLEMS {
            self.0.push(describe());
        }
    }

    /// The problems by place.
    pub(super) fn into_sorted(mut self) -> Vec<Problem> {
        self.0.sort_by_key(|problem| problem.span.start);
        self.0
    }
}

impl Problem {
    pub(super) fn new(span: Span, message: impl Into<String>, label: impl Into<String>) -> Self {
        Self {
            kind: ProblemKind::Syntax,
            span,
            message: message.into(),
            label: label.into(),
            help: None,
            second: None,
            fix: None,
        }
    }

    pub(super) fn kind(mut self, kind: ProblemKind) -> Self {
        self.kind = kind;
        self
    }

    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    pub(super) fn second_label(mut self, span: Span, label: impl Into<String>) -> Self {
        self.second = Some((span, label.into()));
        self
    }

    /// Attaches the edit that certainly means what was meant.
    pub(super) fn fix(self, title: impl Into<String>, span: Span, replacement: impl Into<String>) -> Self {
        self.edit(title, span, replacement, true)
    }

    /// Attaches an edit that probably means what was meant.
    pub(super) fn unsafe_fix(self, title: impl Into<String>, span: Span, replacement: impl Into<String>) -> Self {
        self.edit(title, span, replacement, false)
    }

    /// Says to write this in the place of `span`, and attaches the edit, which probably means what was meant.
    pub(super) fn rewrite(self, span: Span, written: String) -> Self {
        let title = format!("write `{written}`");
        self.help(title.clone()).unsafe_fix(title, span, written)
    }

    fn edit(mut self, title: impl Into<String>, span: Span, replacement: impl Into<String>, certain: bool) -> Self {
        self.fix = Some(Fix { title: title.into(), span, replacement: replacement.into(), certain });
        self
    }
}
