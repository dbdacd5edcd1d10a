//! Types of values: what they are, what declared names mean, how they are written, and what an expression has.
//!
//! `declared` resolves what a spec says, `fit` holds what is given against it, `schema` writes it as JSON Schema, `typing` knows what each step puts out, and
//! `infer` walks expressions and texts. A type that nobody knows is [`Kind::Any`], about which nothing is ever said.

mod declared;
mod env;
mod fit;
mod infer;
mod schema;
#[cfg(test)]
mod tests;
mod typing;

use std::fmt;
use std::sync::Arc;

use crate::source::Span;

pub(crate) use declared::{Lookup, Types};
pub(crate) use env::{Env, ParamTypes, StepTypes, Workflow};
pub(crate) use infer::{Checker, Unfit, Use, Wanted};
pub(crate) use typing::{PipelineTypes, Typing, typing};

/// The type of a value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Type {
    /// What the value is where there is one.
    pub(crate) kind: Kind,
    /// Whether and how there may be none.
    pub(crate) lack: Lack,
}

/// Whether there may be no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Lack {
    /// There is one.
    Never,
    /// It may be `null`, as an item of `list<int?>`.
    Null,
    /// It may not be there at all, as an optional field: reading it is an error.
    Absent,
}

/// What a value is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    /// Nobody knows, and nothing is said about it.
    Any,
    /// `none` alone.
    None,
    /// What a program or an agent wrote, without a type.
    Text,
    String,
    Int,
    Float,
    Bool,
    File,
    Dir,
    /// One of some words.
    Enum(Arc<Words>),
    List(Arc<Type>),
    /// Texts to values.
    Map(Arc<Type>),
    Record(Arc<Record>),
    /// A declared type, by its index: looked up when it is needed, so that types may contain each other.
    Named(usize, Arc<str>),
}

/// The words of an enum, and where they are declared.
#[derive(Debug)]
pub(crate) struct Words {
    pub(crate) words: Vec<String>,
    pub(crate) span: Span,
}

impl PartialEq for Words {
    fn eq(&self, other: &Words) -> bool {
        self.words == other.words
    }
}

/// A record.
#[derive(Debug)]
pub(crate) struct Record {
    /// In declaration order.
    pub(crate) fields: Vec<Field>,
    /// Where it is declared.
    pub(crate) span: Span,
    /// How deep it nests, declared types not counted.
    pub(crate) depth: usize,
}

/// Records are equal where they are declared in one place: computed ones may share parts without end.
impl PartialEq for Record {
    fn eq(&self, other: &Record) -> bool {
        self.span == other.span && self.fields.len() == other.fields.len()
    }
}

impl Record {
    pub(crate) fn new(fields: Vec<Field>, span: Span) -> Record {
        let depth = 1 + fields.iter().map(|field| field.kind.depth()).max().unwrap_or(0);
        Record { fields, span, depth }
    }

    /// The field of this name; expressions write `_` for `-`, as in the names of steps.
    pub(crate) fn field(&self, name: &str, in_expression: bool) -> Option<&Field> {
        let plain = |field: &&Field| in_expression && env::plain(&field.name) == name;
        self.fields.iter().find(|field| field.name == name).or_else(|| self.fields.iter().find(plain))
    }
}

/// A field of a record.
#[derive(Debug, PartialEq)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) kind: Type,
    pub(crate) span: Span,
    pub(crate) limits: Limits,
    /// What it means.
    pub(crate) description: Option<String>,
    /// Where it is said that nobody may fill it in, though it is asked for.
    pub(crate) unanswered: Option<Span>,
}

/// What a value of a field must satisfy besides its type.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Limits {
    pub(crate) min: Option<serde_json::Number>,
    pub(crate) max: Option<serde_json::Number>,
    pub(crate) pattern: Option<String>,
}

impl Type {
    /// A type whose value is there.
    pub(crate) fn new(kind: Kind) -> Type {
        Type { kind, lack: Lack::Never }
    }

    pub(crate) const ANY: Type = Type { kind: Kind::Any, lack: Lack::Never };
    pub(crate) const TEXT: Type = Type { kind: Kind::Text, lack: Lack::Never };
    pub(crate) const STRING: Type = Type { kind: Kind::String, lack: Lack::Never };
    pub(crate) const INT: Type = Type { kind: Kind::Int, lack: Lack::Never };
    pub(crate) const FLOAT: Type = Type { kind: Kind::Float, lack: Lack::Never };
    pub(crate) const BOOL: Type = Type { kind: Kind::Bool, lack: Lack::Never };

    /// A list of these.
    pub(crate) fn list(item: Type) -> Type {
        Type::new(Kind::List(Arc::new(item)))
    }

    /// An enum that the language itself declares, or that stands at `span`.
    pub(crate) fn words<'w>(words: impl IntoIterator<Item = &'w str>, span: Span) -> Type {
        let words = words.into_iter().map(str::to_owned).collect();
        Type::new(Kind::Enum(Arc::new(Words { words, span })))
    }

    /// A record of fields that are always there.
    pub(crate) fn record<'n>(fields: impl IntoIterator<Item = (&'n str, Type, Span)>, span: Span) -> Type {
        let field = |(name, kind, span): (&str, Type, Span)| Field {
            name: name.to_owned(),
            kind,
            span,
            limits: Limits::default(),
            description: None,
            unanswered: None,
        };
        Type::new(Kind::Record(Arc::new(Record::new(fields.into_iter().map(field).collect(), span))))
    }

    /// How deep it nests, declared types not counted.
    pub(crate) fn depth(&self) -> usize {
        match &self.kind {
            Kind::List(item) | Kind::Map(item) => 1 + item.depth(),
            Kind::Record(record) => record.depth,
            _ => 0,
        }
    }

    /// Whether no value is of both types, as far as is known.
    pub(crate) fn clashes(&self, other: &Type) -> bool {
        match (&self.kind, &other.kind) {
            (Kind::Any | Kind::None, _) | (_, Kind::Any | Kind::None) => false,
            (one, other) if one == other => false,
            (one, other) if one.is_text() && other.is_text() => false,
            (one, other) if one.is_number() && other.is_number() => false,
            (Kind::List(one), Kind::List(other)) | (Kind::Map(one), Kind::Map(other)) => one.clashes(other),
            _ => true,
        }
    }

    /// The same, lacking at most so.
    pub(crate) fn lacking(self, lack: Lack) -> Type {
        Type { lack, ..self }
    }

    /// The type of a value that is one or the other.
    pub(crate) fn or(self, other: Type) -> Type {
        let lack = self.lack.max(other.lack);
        let kind = match (self.kind, other.kind) {
            (one, other) if one == other => one,
            (Kind::Int, Kind::Float) | (Kind::Float, Kind::Int) => Kind::Float,
            (one, other) if one.is_text() && other.is_text() => Kind::String,
            _ => Kind::Any,
        };
        Type { kind, lack }
    }
}

impl Kind {
    /// Whether its values are texts.
    pub(crate) fn is_text(&self) -> bool {
        matches!(self, Kind::Text | Kind::String | Kind::File | Kind::Dir | Kind::Enum(_))
    }

    /// Whether its values are numbers.
    pub(crate) fn is_number(&self) -> bool {
        matches!(self, Kind::Int | Kind::Float)
    }
}

impl fmt::Display for Type {
    /// As the language writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)?;
        f.write_str(if self.lack == Lack::Never { "" } else { "?" })
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Any => f.write_str("any"),
            Kind::None => f.write_str("none"),
            Kind::Text => f.write_str("text"),
            Kind::String => f.write_str("string"),
            Kind::Int => f.write_str("int"),
            Kind::Float => f.write_str("float"),
            Kind::Bool => f.write_str("bool"),
            Kind::File => f.write_str("file"),
            Kind::Dir => f.write_str("dir"),
            Kind::Enum(words) => {
                const SHOWN: usize = 8;
                write!(f, "enum {}", words.words[..words.words.len().min(SHOWN)].join(" "))?;
                f.write_str(if words.words.len() > SHOWN { " …" } else { "" })
            }
            Kind::List(item) => write!(f, "list<{item}>"),
            Kind::Map(item) => write!(f, "map<{item}>"),
            Kind::Record(record) => {
                const SHOWN: usize = 4;
                let names: Vec<&str> = record.fields.iter().take(SHOWN).map(|field| field.name.as_str()).collect();
                let more = if record.fields.len() > SHOWN { " …" } else { "" };
                write!(f, "{{ {}{more} }}", names.join(" "))
            }
            Kind::Named(_, name) => f.write_str(name),
        }
    }
}
