//! Types as an editor sees them: declared ones once, fields as symbols.

use std::collections::BTreeMap;

use super::{Shape, ShapeId, ShapeKind, Symbol, SymbolId, SymbolKind};
use crate::source::Span;
use crate::types::{Kind, Lack, Type, Types};

/// How deep a value is looked into.
const DEEPEST: usize = 32;

/// Shapes while they are gathered.
#[derive(Debug, Default)]
pub(super) struct Shapes {
    pub(super) list: Vec<Shape>,
    /// By declared type and whether it may be missing.
    named: BTreeMap<(usize, bool), ShapeId>,
    /// Records by where they are declared, and whether they may be missing: computed ones share parts.
    records: BTreeMap<(Span, usize, bool), ShapeId>,
    /// The simple ones by what they are called.
    plain: BTreeMap<String, ShapeId>,
    /// Fields by where they are declared: a record that may be missing has those of the one that may not.
    fields: BTreeMap<(Span, String), SymbolId>,
}

impl Shapes {
    /// The shape of a type; its fields become symbols.
    pub(super) fn shape_of(
        &mut self,
        kind: &Type,
        types: &Types,
        declared: &[SymbolId],
        symbols: &mut Vec<Symbol>,
    ) -> ShapeId {
        self.add_shape(kind, types, declared, symbols, 0)
    }

    /// Recursion is bounded by [`DEEPEST`].
    fn add_shape(
        &mut self,
        kind: &Type,
        types: &Types,
        declared: &[SymbolId],
        symbols: &mut Vec<Symbol>,
        depth: usize,
    ) -> ShapeId {
        let optional = kind.lack != Lack::NEVER;
        let known = match &kind.kind {
            Kind::Named(index, _) => self.named.get(&(*index, optional)),
            Kind::Record(record) if !record.written => self.records.get(&(record.span, record.fields.len(), optional)),
            _ => None,
        };
        if let Some(&known) = known {
            return known;
        }
        let inner = |shapes: &mut Shapes, symbols: &mut Vec<Symbol>, kind: &Type| {
            shapes.add_shape(kind, types, declared, symbols, depth + 1)
        };
        let text = kind.to_string();
        match &kind.kind {
            _ if depth > DEEPEST => self.add_simple("any".to_owned(), ShapeKind::Plain, optional),
            Kind::Named(index, _) => {
                let id = self.push(text, ShapeKind::Plain, optional);
                self.list[id.0 as usize].declared = declared.get(*index).copied();
                // Before its fields, which may be of this very type.
                self.named.insert((*index, optional), id);
                let behind = Type { kind: types.underlying_kind(&kind.kind).clone(), lack: Lack::NEVER };
                let behind = inner(self, symbols, &behind);
                let behind = self.list[behind.0 as usize].kind.clone();
                self.list[id.0 as usize].kind = behind;
                id
            }
            Kind::List(item) => {
                let item = inner(self, symbols, item);
                self.add_simple(text, ShapeKind::List(item), optional)
            }
            Kind::Map(item) => {
                let item = inner(self, symbols, item);
                self.add_simple(text, ShapeKind::Map(item), optional)
            }
            Kind::Record(record) if !record.written => {
                let id = self.push(text, ShapeKind::Plain, optional);
                self.records.insert((record.span, record.fields.len(), optional), id);
                let mut fields = Vec::with_capacity(record.fields.len());
                for field in &record.fields {
                    let shape = inner(self, symbols, &field.kind);
                    let id = SymbolId(u32::try_from(symbols.len()).unwrap_or(u32::MAX));
                    let known = *self.fields.entry((field.span, field.name.clone())).or_insert(id);
                    fields.push(known);
                    if known != id {
                        continue;
                    }
                    symbols.push(Symbol {
                        kind: SymbolKind::Field,
                        name: field.name.clone(),
                        span: field.span,
                        whole: field.span,
                        within: None,
                        doc: field.description.clone(),
                        shape: Some(shape),
                    });
                }
                self.list[id.0 as usize].kind = ShapeKind::Record(fields);
                id
            }
            Kind::Enum(words) => self.add_simple(text, ShapeKind::Words(words.words.clone()), optional),
            Kind::Bool => self.add_simple(text, ShapeKind::Bool, optional),
            _ => self.add_simple(text, ShapeKind::Plain, optional),
        }
    }

    /// A shape that is the same wherever it is called so, except for its words.
    fn add_simple(&mut self, text: String, kind: ShapeKind, optional: bool) -> ShapeId {
        if matches!(kind, ShapeKind::Plain | ShapeKind::Bool) {
            if let Some(&known) = self.plain.get(&text) {
                return known;
            }
            let id = self.push(text.clone(), kind, optional);
            self.plain.insert(text, id);
            return id;
        }
        self.push(text, kind, optional)
    }

    fn push(&mut self, text: String, kind: ShapeKind, optional: bool) -> ShapeId {
        let id = ShapeId(u32::try_from(self.list.len()).unwrap_or(u32::MAX));
        self.list.push(Shape { text, kind, optional, declared: None });
        id
    }
}
