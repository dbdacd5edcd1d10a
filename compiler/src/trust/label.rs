//! Which values can carry taint.
//!
//! In: declared types. Out: whether a value of a type, or of a field in it, can hold free text. Only free text can
//! steer an agent or take a secret along; a number, a boolean or a word of a declared list cannot.

use crate::ast::{Name, Spec, TypeExpr, TypeKind};
use crate::symbols::{NameKind, Tables};

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
#[derive(Debug)]
pub(crate) struct Labels<'m> {
    tables: &'m Tables,
    /// By type.
    types: Vec<(&'m TypeExpr, Label)>,
}

impl<'m> Labels<'m> {
    /// Labels every declared type: one that holds free text anywhere is free text, also through others.
    pub(crate) fn new(spec: &'m Spec, tables: &'m Tables) -> Labels<'m> {
        let types = spec.types.iter().map(|declared| (&declared.kind, Label::Fixed)).collect();
        let mut labels = Labels { tables, types };
        let mut users: Vec<Vec<usize>> = vec![Vec::new(); spec.types.len()];
        for (index, declared) in spec.types.iter().enumerate() {
            let mut named = Vec::new();
            labels.collect_types(&declared.kind, &mut named);
            named.into_iter().for_each(|other| users[other].push(index));
        }
        // A label only ever rises, and a type is looked at again when one that it names has risen.
        let mut open: Vec<usize> = (0..spec.types.len()).rev().collect();
        while let Some(index) = open.pop() {
            let label = labels.type_label(labels.types[index].0);
            if label > labels.types[index].1 {
                labels.types[index].1 = label;
                open.extend(&users[index]);
            }
        }
        labels
    }

    /// The declared type of this name.
    fn find(&self, name: &Name) -> Option<usize> {
        self.tables
            .find_name(NameKind::Type, &name.value, true, name.span.file)
            .filter(|&index| index < self.types.len())
    }

    /// The types that a type names.
    fn collect_types(&self, kind: &TypeExpr, found: &mut Vec<usize>) {
        match &kind.kind {
            TypeKind::Named(name) => found.extend(self.find(name)),
            TypeKind::List(item) | TypeKind::Map(item) => self.collect_types(item, found),
            TypeKind::Record(fields) => fields.iter().for_each(|field| self.collect_types(&field.kind, found)),
            _ => {}
        }
    }

    /// What a value of this type can carry.
    pub(crate) fn type_label(&self, kind: &TypeExpr) -> Label {
        match &kind.kind {
            TypeKind::Int | TypeKind::Float | TypeKind::Bool | TypeKind::Enum(_) => Label::Fixed,
            TypeKind::String | TypeKind::File | TypeKind::Dir | TypeKind::Unknown => Label::Arbitrary,
            // The keys of a map are free text.
            TypeKind::Map(_) => Label::Arbitrary,
            TypeKind::List(item) => self.type_label(item).max(Label::Structured),
            TypeKind::Record(fields) => fields
                .iter()
                .map(|field| self.type_label(&field.kind))
                .max()
                .unwrap_or(Label::Fixed)
                .max(Label::Structured),
            TypeKind::Named(name) => self.find(name).map_or(Label::Arbitrary, |index| self.types[index].1),
        }
    }

    /// What a field of such a value can carry; of the value itself without fields.
    pub(crate) fn field_label(&self, kind: &'m TypeExpr, fields: &[Name]) -> Label {
        let mut kind = kind;
        for field in fields {
            // A name of a name is an error of its own; it is followed once.
            if let TypeKind::Named(name) = &kind.kind
                && let Some(index) = self.find(name)
            {
                kind = self.types[index].0;
            }
            kind = match &kind.kind {
                TypeKind::Record(known) => match known.iter().find(|known| known.name.value == field.value) {
                    Some(known) => &known.kind,
                    None => return Label::Arbitrary,
                },
                TypeKind::List(item) | TypeKind::Map(item) => item,
                _ => return self.type_label(kind),
            };
        }
        self.type_label(kind)
    }

    /// The type of the items, where this is a list.
    pub(crate) fn item(&self, kind: &'m TypeExpr, fields: &[Name]) -> Option<&'m TypeExpr> {
        let mut kind = kind;
        let mut fields = fields.iter();
        // Each turn uses up a field, so the loop ends.
        loop {
            if let TypeKind::Named(name) = &kind.kind {
                kind = self.types[self.find(name)?].0;
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
