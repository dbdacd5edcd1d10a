//! What a value can carry.
//!
//! In: declared types. Out: whether a value of a type, or of a field in it, can hold text that somebody made up. Only
//! such text can steer an agent or take a secret along; a number, a truth or a word of a declared list cannot.

use std::collections::HashMap;

use crate::ast::{Name, Spec, TypeExpr, TypeKind};

/// What a value can carry, from nothing to anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Label {
    /// A number, a truth, or a word of a declared list.
    Fixed,
    /// A record or a list of such values: it says more, and still no sentence.
    Structured,
    /// Free text.
    Arbitrary,
}

/// The labels of the declared types.
#[derive(Debug, Default)]
pub(crate) struct Labels<'a> {
    types: HashMap<&'a str, (&'a TypeExpr, Label)>,
}

impl<'a> Labels<'a> {
    /// Labels every declared type: one that holds free text anywhere is free text, also through others.
    pub(crate) fn new(spec: &'a Spec) -> Labels<'a> {
        let mut labels = Labels::default();
        let mut users: HashMap<&str, Vec<usize>> = HashMap::new();
        for (index, declared) in spec.types.iter().enumerate() {
            labels.types.insert(&declared.name.value, (&declared.kind, Label::Fixed));
            let mut named = Vec::new();
            names(&declared.kind, &mut named);
            named.into_iter().for_each(|name| users.entry(name).or_default().push(index));
        }
        // A label only ever rises, and a type is looked at again when one that it names has risen.
        let mut open: Vec<usize> = (0..spec.types.len()).rev().collect();
        while let Some(index) = open.pop() {
            let declared = &spec.types[index];
            let label = labels.of(&declared.kind);
            let known = labels.types.get_mut(declared.name.value.as_str()).expect("every declared type is there");
            if label > known.1 {
                known.1 = label;
                open.extend(users.get(declared.name.value.as_str()).into_iter().flatten());
            }
        }
        labels
    }

    /// What a value of this type can carry.
    pub(crate) fn of(&self, kind: &TypeExpr) -> Label {
        match &kind.kind {
            TypeKind::Int | TypeKind::Float | TypeKind::Bool | TypeKind::Enum(_) => Label::Fixed,
            TypeKind::String | TypeKind::File | TypeKind::Dir | TypeKind::Unknown => Label::Arbitrary,
            // The keys of a map are free text.
            TypeKind::Map(_) => Label::Arbitrary,
            TypeKind::List(item) => self.of(item).max(Label::Structured),
            TypeKind::Record(fields) => {
                fields.iter().map(|field| self.of(&field.kind)).max().unwrap_or(Label::Fixed).max(Label::Structured)
            }
            TypeKind::Named(name) => self.types.get(name.value.as_str()).map_or(Label::Arbitrary, |found| found.1),
        }
    }

    /// What a field of such a value can carry; of the value itself without fields.
    pub(crate) fn at(&self, kind: &'a TypeExpr, fields: &[Name]) -> Label {
        let mut kind = kind;
        for field in fields {
            // A name of a name is an error of its own; it is followed once.
            if let TypeKind::Named(name) = &kind.kind
                && let Some((declared, _)) = self.types.get(name.value.as_str())
            {
                kind = declared;
            }
            kind = match &kind.kind {
                TypeKind::Record(known) => match known.iter().find(|known| known.name.value == field.value) {
                    Some(known) => &known.kind,
                    None => return Label::Arbitrary,
                },
                TypeKind::List(item) | TypeKind::Map(item) => item,
                _ => return self.of(kind),
            };
        }
        self.of(kind)
    }

    /// The type of the items, where this is a list.
    pub(crate) fn item(&self, kind: &'a TypeExpr, fields: &[Name]) -> Option<&'a TypeExpr> {
        let mut kind = kind;
        let mut fields = fields.iter();
        loop {
            if let TypeKind::Named(name) = &kind.kind {
                kind = self.types.get(name.value.as_str())?.0;
            }
            kind = match (&kind.kind, fields.next()) {
                (TypeKind::Record(known), Some(field)) => {
                    &known.iter().find(|known| known.name.value == field.value)?.kind
                }
                (TypeKind::List(item), None) => return Some(item),
                _ => return None,
            };
        }
    }
}

/// The types that a type names.
fn names<'a>(kind: &'a TypeExpr, found: &mut Vec<&'a str>) {
    match &kind.kind {
        TypeKind::Named(name) => found.push(&name.value),
        TypeKind::List(item) | TypeKind::Map(item) => names(item, found),
        TypeKind::Record(fields) => fields.iter().for_each(|field| names(&field.kind, found)),
        _ => {}
    }
}
