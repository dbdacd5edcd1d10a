//! Fields and items by a computed key.

use super::super::{Classes, Field, Kind, Lack, Record, Type};
use super::Checker;
use super::expr::{Walk, make_absent};
use crate::template::Expr;

impl Checker<'_> {
    /// Goes on to a field or an item by a computed key: which one, and whether there is one, the run knows.
    pub(super) fn walk_index(&mut self, walk: &mut Walk, index: &Expr) {
        let key = self.type_of(index);
        self.choice_used(index);
        let types = self.env.whole.types;
        let words = match types.underlying_kind(&key.kind) {
            Kind::Enum(words) => Some(words.words.clone()),
            _ => self.list_words(index),
        };
        let whole = Classes::INT.union(Classes::BOOL).union(Classes::FLOAT);
        let mut items = Vec::new();
        let mut wrong = None;
        for kind in types.possible_kinds(&walk.kind.kind) {
            let takes = match &kind {
                Kind::Map(_) => Classes::TEXT.union(whole),
                Kind::Record(_) => Classes::TEXT,
                kind if kind.item_type().is_some() => whole,
                _ => Classes::ALL,
            };
            match (&kind, self.find_misfit(&key, takes)) {
                (Kind::Any, _) => items.push(Type::ANY),
                (Kind::None, _) => items.push(make_absent(&Type::ANY)),
                // Nothing is in it, wherever it is looked for.
                (Kind::Tuple(tuple), _) if tuple.items.is_empty() => wrong = wrong.or(Some((kind.clone(), false))),
                (kind, None) if kind.item_type().is_some() => {
                    items.push(make_absent(&kind.item_type().unwrap_or(Type::ANY)));
                }
                (Kind::Map(item), None) if **item == Type::ANY => items.push(Type::ANY),
                (Kind::Map(item), None) => items.push(make_absent(item)),
                (Kind::Record(record), None) => items.push(field_of_words(record, words.as_deref())),
                (_, found) => wrong = wrong.or(Some((kind.clone(), found.is_some()))),
            }
        }
        let Some((kind, by_key)) = wrong else {
            walk.kind = items.into_iter().reduce(Type::or).unwrap_or(Type::ANY);
            walk.key = self.index_key(walk.key.as_deref(), index);
            walk.place = index.range.clone();
            walk.root = None;
            return;
        };
        let shown = self.clip_source(index);
        walk.kind.kind = kind;
        match by_key {
            true => self.wrong_index(walk, index, &shown),
            false => self.walk_field(walk, &format!("`{shown}`"), Some(0), &index.range),
        }
        // What is certainly missing is reported where it is needed.
        if !walk.kind.lack.has(Lack::ABSENT) {
            walk.kind = Type::ANY;
        }
    }
}

/// The field of a record that one of these words names, or any text.
fn field_of_words(record: &Record, words: Option<&[String]>) -> Type {
    let named: Option<Vec<&Field>> =
        words.and_then(|words| words.iter().map(|word| record.find_field(word, false)).collect());
    match named {
        Some(fields) => fields.into_iter().map(|field| field.kind.clone()).reduce(Type::or),
        None => record.fields.iter().map(|field| make_absent(&field.kind)).reduce(Type::or),
    }
    .unwrap_or(Type::ANY)
}
