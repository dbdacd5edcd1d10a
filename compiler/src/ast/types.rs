//! Types as they are written.

use super::{Name, Spanned};
use crate::source::Span;

/// A declared type: `type NAME { FIELD TYPE }` or `type NAME enum A B`.
#[derive(Debug)]
pub(crate) struct TypeDef {
    pub name: Name,
    /// A record or an enum; [`TypeKind::Unknown`] where it could not be read.
    pub kind: TypeExpr,
    /// The comment above it.
    pub description: Option<String>,
    pub span: Span,
}

/// A type where it is used.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TypeExpr {
    pub kind: TypeKind,
    /// Whether a `?` says that the value may be missing.
    pub optional: bool,
    /// The type with its `?`; of an inline record, its block with the node that holds it.
    pub span: Span,
}

/// What a value is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TypeKind {
    String,
    Int,
    Float,
    Bool,
    /// A file that exists; parameters only.
    File,
    /// A folder that exists; parameters only.
    Dir,
    /// One of these words, at least one, each once.
    Enum(Vec<Name>),
    List(Box<TypeExpr>),
    /// Texts to values.
    Map(Box<TypeExpr>),
    /// A declared type.
    Named(Name),
    /// Fields in declaration order, at least one, each name once.
    Record(Vec<Field>),
    /// It could not be read, and a report says why.
    Unknown,
}

/// A field of a record, or what a gate asks for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Field {
    /// Sent exactly as declared.
    pub name: Name,
    pub kind: TypeExpr,
    /// Of a number its value, of a text its characters, of a list or map its entries.
    pub min: Option<Spanned<serde_json::Number>>,
    /// As `min`.
    pub max: Option<Spanned<serde_json::Number>>,
    /// A regular expression that a text matches somewhere.
    pub pattern: Option<Name>,
    /// The comment above it.
    pub description: Option<String>,
}
