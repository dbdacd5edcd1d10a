//! The types of values, of declared names and of expressions.
//!
//! `declared` resolves the types of a spec, `fit` compares values with them, `schema` writes them as JSON Schema,
//! `typing` holds the types of all steps, and `infer` walks expressions and texts. An unknown type is [`Kind::Any`],
//! which no check reports.

mod declared;
mod env;
mod fit;
mod infer;
mod schema;
mod signature;
#[cfg(test)]
mod tests;
mod typing;
mod union;

use std::fmt;
use std::sync::Arc;

use crate::source::Span;

pub(crate) use declared::{Lookup, Types};
pub(crate) use env::{Env, ListSizes, ParamTypes, StepTypes, Workflow};
pub(crate) use infer::{Checker, Filled, Unfit, Use, Wanted, find_filled, path_key};
pub(crate) use typing::{PipelineTypes, Typing};
pub(crate) use union::{Classes, Form, Tuple, Union, unite_kinds};

/// The type of a value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Type {
    /// What the value is where there is one.
    pub(crate) kind: Kind,
    /// Whether and how there may be none.
    pub(crate) lack: Lack,
}

/// Whether there may be no value, and what stands in its place: any of three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lack(u8);

impl Lack {
    /// There is a value.
    pub(crate) const NEVER: Lack = Lack(0);
    /// It may be `null`, as an item of `list<int?>`.
    pub(crate) const NULL: Lack = Lack(1);
    /// It may be the undefined value that `a if b` gives without `else`: text shows it as nothing.
    pub(crate) const SILENT: Lack = Lack(2);
    /// It may not be there at all, as an optional field: reading it is an error.
    pub(crate) const ABSENT: Lack = Lack(4);
    /// All of them.
    pub(crate) const ALL: Lack = Lack(7);

    /// Whether one of `other` is among them.
    pub(crate) fn has(self, other: Lack) -> bool {
        self.0 & other.0 != 0
    }

    /// These and the others.
    pub(crate) fn union(self, other: Lack) -> Lack {
        Lack(self.0 | other.0)
    }

    /// These without the others.
    pub(crate) fn without(self, other: Lack) -> Lack {
        Lack(self.0 & !other.0)
    }
}

/// What a value is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    /// An unknown value, which no check reports.
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
    /// A list whose items are known one by one.
    Tuple(Arc<Tuple>),
    /// What slices and some filters give instead of a list: it can be gone through.
    Iter {
        item: Arc<Type>,
        /// Whether its length is known.
        sized: bool,
    },
    /// One of several.
    Union(Arc<Union>),
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
    /// How many types it is made of.
    size: usize,
    /// Whether an expression writes it out.
    pub(crate) written: bool,
}

/// Records are equal where they are declared in one place: computed ones may share parts without end.
impl PartialEq for Record {
    fn eq(&self, other: &Record) -> bool {
        // Those of a list that a file holds have one place, and may differ in what they have. Their parts are compared
        // by size alone, since comparing what is shared without end has no end.
        let outline = |field: &Field| (std::mem::discriminant(&field.kind.kind), field.kind.size());
        let alike = |(own, other): (&Field, &Field)| own.name == other.name && outline(own) == outline(other);
        // A test of a field leaves those records that have it.
        let lacks = |(own, other): (&Field, &Field)| own.kind.lack == other.kind.lack;
        self.span == other.span
            && self.fields.len() == other.fields.len()
            && self.fields.iter().zip(&other.fields).all(lacks)
            && (!self.written || self.fields.iter().zip(&other.fields).all(alike))
    }
}

impl Record {
    pub(crate) fn new(fields: Vec<Field>, span: Span) -> Record {
        let depth = 1 + fields.iter().map(|field| field.kind.depth()).max().unwrap_or(0);
        let size = fields.iter().fold(1, |size: usize, field| size.saturating_add(field.kind.size()));
        Record { fields, span, depth, size, written: false }
    }

    /// A record that an expression writes out.
    pub(crate) fn from_fields(fields: Vec<Field>, span: Span) -> Record {
        Record { written: true, ..Record::new(fields, span) }
    }

    /// The same with these fields.
    pub(crate) fn with_fields(&self, fields: Vec<Field>) -> Record {
        Record { fields, ..*self }
    }

    /// Whether it is small enough to be part of computed types.
    pub(crate) fn is_small(&self) -> bool {
        self.size <= union::LARGEST && self.depth <= union::DEEPEST
    }

    /// The field of this name; expressions write `_` for `-`, as in the names of steps.
    pub(crate) fn find_field(&self, name: &str, in_expression: bool) -> Option<&Field> {
        let plain = |field: &&Field| in_expression && env::normalize_name(&field.name) == name;
        self.fields.iter().find(|field| field.name == name).or_else(|| self.fields.iter().find(plain))
    }
}

/// A field of a record.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) kind: Type,
    pub(crate) span: Span,
    pub(crate) limits: Limits,
    /// What it means.
    pub(crate) description: Option<String>,
    /// The choices with which a gate that asks for the field may answer itself, which leaves the field empty.
    pub(crate) unanswered: Option<Arc<Words>>,
}

impl Field {
    /// A field of which nothing is known but its type.
    pub(crate) fn new(name: &str, kind: Type, span: Span) -> Field {
        let limits = Limits::default();
        Field { name: name.to_owned(), kind, span, limits, description: None, unanswered: None }
    }
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
        Type { kind, lack: Lack::NEVER }
    }

    pub(crate) const ANY: Type = Type { kind: Kind::Any, lack: Lack::NEVER };
    pub(crate) const TEXT: Type = Type { kind: Kind::Text, lack: Lack::NEVER };
    pub(crate) const STRING: Type = Type { kind: Kind::String, lack: Lack::NEVER };
    pub(crate) const INT: Type = Type { kind: Kind::Int, lack: Lack::NEVER };
    pub(crate) const FLOAT: Type = Type { kind: Kind::Float, lack: Lack::NEVER };
    pub(crate) const BOOL: Type = Type { kind: Kind::Bool, lack: Lack::NEVER };

    /// A list of these.
    pub(crate) fn list(item: Type) -> Type {
        Type::new(Kind::List(Arc::new(item.limit_depth())))
    }

    /// An enum that the language itself declares, or that stands at `span`.
    pub(crate) fn words<'w>(words: impl IntoIterator<Item = &'w str>, span: Span) -> Type {
        let words = words.into_iter().map(str::to_owned).collect();
        Type::new(Kind::Enum(Arc::new(Words { words, span })))
    }

    /// A record of fields that are always there.
    pub(crate) fn record<'n>(fields: impl IntoIterator<Item = (&'n str, Type, Span)>, span: Span) -> Type {
        let fields = fields.into_iter().map(|(name, kind, span)| Field::new(name, kind, span)).collect();
        Type::new(Kind::Record(Arc::new(Record::new(fields, span))))
    }

    /// Whether no value is of both types, as far as is known.
    pub(crate) fn is_disjoint(&self, other: &Type) -> bool {
        match (&self.kind, &other.kind) {
            (Kind::Any | Kind::None, _) | (_, Kind::Any | Kind::None) => false,
            (one, other) if one == other => false,
            (one, other) if one.is_text() && other.is_text() => false,
            (one, other) if one.is_number() && other.is_number() => false,
            (Kind::List(one), Kind::List(other)) | (Kind::Map(one), Kind::Map(other)) => one.is_disjoint(other),
            _ => true,
        }
    }

    /// The same, lacking at most so.
    pub(crate) fn with_lack(self, lack: Lack) -> Type {
        Type { lack, ..self }
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
        f.write_str(if self.lack == Lack::NEVER { "" } else { "?" })
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
            Kind::Iter { item, .. } => write!(f, "list<{item}>"),
            Kind::Tuple(tuple) => match tuple.items.split_first() {
                Some((first, rest)) => {
                    write!(f, "list<{}>", rest.iter().fold(first.clone(), |kind, item| kind.or(item.clone())))
                }
                None => f.write_str("list<any>"),
            },
            Kind::Union(union) => {
                let kinds: Vec<String> = union.kinds.iter().map(Kind::to_string).collect();
                f.write_str(&kinds.join(" or "))
            }
            Kind::Named(_, name) => f.write_str(name),
        }
    }
}
