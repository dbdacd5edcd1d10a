//! Expressions and statements of minijinja as a tree of our own: owned, with the place of every part.
//!
//! `lower` makes it; its depth is bounded by what `region` and `blocks` let through, so walking it may recurse. A name
//! that the text binds is a variable here, never a root, and `and` and `or` hold all their terms in one list.

use std::ops::Range;

use super::Spanned;
use super::path::Path;

/// An expression.
#[derive(Clone, Debug)]
pub(crate) struct Expr {
    /// What it is.
    pub(crate) kind: ExprKind,
    /// From its first part to its last; brackets around it are left out.
    pub(crate) range: Range<usize>,
}

/// What an expression is. Names are boxed, as large conditions have hundreds of thousands of nodes, and few have a name.
#[derive(Clone, Debug)]
pub(crate) enum ExprKind {
    /// A value that is written out.
    Const(Const),
    /// `output.planner.steps`: a root and what follows it, written out.
    Path(Path),
    /// A name that is no root here: bound by the text, a function, or unknown.
    Variable(String),
    /// A field of something computed.
    Attribute { of: Box<Expr>, name: Box<Spanned<String>> },
    /// An item or field of something, or by a computed key.
    Item { of: Box<Expr>, index: Box<Expr> },
    /// `of[start:stop:step]`.
    Slice { of: Box<Expr>, bounds: [Option<Box<Expr>>; 3] },
    /// `not`.
    Not(Box<Expr>),
    /// Minus.
    Negative(Box<Expr>),
    /// Two terms or more; each is reached when those before it hold.
    And(Vec<Expr>),
    /// Two terms or more; each is reached when none before it holds.
    Or(Vec<Expr>),
    /// One comparison.
    Compare { left: Box<Expr>, op: Comparison, right: Box<Expr> },
    /// `a < b < c`.
    Chain { first: Box<Expr>, rest: Vec<(Comparison, Expr)> },
    /// Arithmetic.
    Arithmetic { left: Box<Expr>, op: Operator, right: Box<Expr> },
    /// `~`.
    Concat(Box<Expr>, Box<Expr>),
    /// `then if condition else otherwise`.
    Choice { condition: Box<Expr>, then: Box<Expr>, otherwise: Option<Box<Expr>> },
    /// `of | name(arguments)`; only the filter of a block has no `of`.
    Filter { of: Option<Box<Expr>>, name: Box<Spanned<String>>, arguments: Vec<Argument> },
    /// `of is name(arguments)`.
    Test { of: Box<Expr>, name: Box<Spanned<String>>, arguments: Vec<Argument> },
    /// `of(arguments)`; a method's `of` is an [`ExprKind::Attribute`], a function's an [`ExprKind::Variable`].
    Call { of: Box<Expr>, arguments: Vec<Argument> },
    /// A list or a tuple.
    List(Vec<Expr>),
    /// Keys and values.
    Map(Vec<(Expr, Expr)>),
}

/// A value that is written out.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Const {
    /// `none`.
    None,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// A text.
    Text(String),
}

/// An operator that compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    /// `==`.
    Eq,
    /// `!=`.
    Ne,
    /// `<`.
    Lt,
    /// `<=`.
    Lte,
    /// `>`.
    Gt,
    /// `>=`.
    Gte,
    /// `in`.
    In,
    /// `not in`, in a chain; alone it is a `not` of an `in`.
    NotIn,
}

impl Comparison {
    /// How two values compare; none for `in` and `not in`, which look into a list.
    pub(crate) fn compare<T: PartialOrd>(self, left: &T, right: &T) -> Option<bool> {
        match self {
            Comparison::Eq => Some(left == right),
            Comparison::Ne => Some(left != right),
            Comparison::Lt => Some(left < right),
            Comparison::Lte => Some(left <= right),
            Comparison::Gt => Some(left > right),
            Comparison::Gte => Some(left >= right),
            Comparison::In | Comparison::NotIn => None,
        }
    }
}

impl Comparison {
    /// The comparison with its sides exchanged.
    pub(crate) fn swap_sides(self) -> Comparison {
        match self {
            Comparison::Lt => Comparison::Gt,
            Comparison::Lte => Comparison::Gte,
            Comparison::Gt => Comparison::Lt,
            Comparison::Gte => Comparison::Lte,
            other => other,
        }
    }
}

/// An operator that computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    /// `+`.
    Add,
    /// `-`.
    Sub,
    /// `*`.
    Mul,
    /// `/`.
    Div,
    /// `//`.
    FloorDiv,
    /// `%`.
    Rem,
    /// `**`.
    Pow,
}

/// An argument of a filter, a test or a call.
#[derive(Clone, Debug)]
pub(crate) struct Argument {
    /// Its name, if it is given by name.
    pub(crate) name: Option<String>,
    /// Its value.
    pub(crate) value: Expr,
    /// Whether the value holds several arguments: `*list`, `**map`.
    pub(crate) spread: bool,
}

/// A statement of a text, or an interpolation in it.
#[derive(Clone, Debug)]
pub(crate) enum Statement {
    /// `{{ … }}`.
    Emit(Expr),
    /// The directive at this index of the parts.
    Directive(usize),
    /// Text as it stands, between directives and what else is computed.
    Text(Range<usize>),
    /// `{% for … %}`; `otherwise` is its `{% else %}`.
    For { target: Target, list: Expr, filter: Option<Expr>, body: Vec<Statement>, otherwise: Vec<Statement> },
    /// `{% if … %}`; an `{% elif %}` is an `if` in `otherwise`.
    If { condition: Expr, then: Vec<Statement>, otherwise: Vec<Statement> },
    /// `{% with … %}`: each value sees the names before it.
    With { assignments: Vec<(Target, Expr)>, body: Vec<Statement> },
    /// `{% set … = … %}`.
    Set { target: Target, value: Expr },
    /// `{% set … %}…{% endset %}`.
    Capture { target: Target, filter: Option<Expr>, body: Vec<Statement> },
    /// `{% filter … %}`.
    Filter { filter: Expr, body: Vec<Statement> },
    /// `{% autoescape … %}`.
    AutoEscape { enabled: Expr, body: Vec<Statement> },
    /// `{% do … %}`.
    Do(Expr),
}

/// What a statement binds.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    /// A name.
    Name(Spanned<String>),
    /// The items of a list, each to its target.
    Items(Vec<Target>),
    /// A field of a namespace.
    Field(Expr),
}

/// Whether a filter gives another value for one that is missing.
pub(crate) fn is_default(filter: &str) -> bool {
    matches!(filter, "default" | "d")
}

impl Expr {
    /// The path, if the expression is one.
    pub(crate) fn as_path(&self) -> Option<&Path> {
        match &self.kind {
            ExprKind::Path(path) => Some(path),
            _ => None,
        }
    }

    /// The expressions that it is made of.
    pub(crate) fn child_expressions(&self) -> Vec<&Expr> {
        let mut parts: Vec<&Expr> = Vec::new();
        match &self.kind {
            ExprKind::Const(_) | ExprKind::Path(_) | ExprKind::Variable(_) => {}
            ExprKind::Attribute { of, .. } | ExprKind::Not(of) | ExprKind::Negative(of) => parts.push(of),
            ExprKind::Item { of, index } => parts.extend([&**of, &**index]),
            ExprKind::Slice { of, bounds } => {
                parts.push(of);
                parts.extend(bounds.iter().flatten().map(|bound| &**bound));
            }
            ExprKind::And(terms) | ExprKind::Or(terms) | ExprKind::List(terms) => parts.extend(terms),
            ExprKind::Compare { left, right, .. }
            | ExprKind::Arithmetic { left, right, .. }
            | ExprKind::Concat(left, right) => parts.extend([&**left, &**right]),
            ExprKind::Chain { first, rest } => {
                parts.push(first);
                parts.extend(rest.iter().map(|(_, expr)| expr));
            }
            ExprKind::Choice { condition, then, otherwise } => {
                parts.extend([&**condition, &**then]);
                parts.extend(otherwise.as_deref());
            }
            ExprKind::Filter { of, arguments, .. } => {
                parts.extend(of.as_deref());
                parts.extend(arguments.iter().map(|argument| &argument.value));
            }
            ExprKind::Test { of, arguments, .. } | ExprKind::Call { of, arguments } => {
                parts.push(of);
                parts.extend(arguments.iter().map(|argument| &argument.value));
            }
            ExprKind::Map(items) => parts.extend(items.iter().flat_map(|(key, value)| [key, value])),
        }
        parts
    }

    /// What is counted, of `LIST | length`.
    pub(crate) fn as_length(&self) -> Option<&Expr> {
        match &self.kind {
            ExprKind::Filter { of, name, .. } if matches!(name.value.as_str(), "length" | "count") => of.as_deref(),
            _ => None,
        }
    }

    /// Whether it is a path without fields.
    pub(crate) fn is_bare_path(&self) -> bool {
        self.as_path().is_some_and(|path| path.fields().is_empty())
    }

    /// The text, if the expression is one that is written out.
    pub(crate) fn as_text(&self) -> Option<&str> {
        match &self.kind {
            ExprKind::Const(Const::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// The items, if the expression is a list that is written out.
    pub(crate) fn as_items(&self) -> Option<&[Expr]> {
        match &self.kind {
            ExprKind::List(items) => Some(items),
            _ => None,
        }
    }
}

impl Const {
    /// Whether it holds as a condition.
    pub(crate) fn is_true(&self) -> bool {
        match self {
            Const::None => false,
            Const::Bool(truth) => *truth,
            Const::Int(number) => *number != 0,
            Const::Float(number) => *number != 0.0,
            Const::Text(text) => !text.is_empty(),
        }
    }
}
