//! What types mean: written types to [`Type`]s, and declared ones by index.
//!
//! A declared type may contain itself through `list`, `map` or `?`; one that does so otherwise can have no value, and is
//! reported with the circle drawn (SW301).

use std::sync::Arc;

use super::{Field, Kind, Lack, Limits, Record, Type, Words};
use crate::ast::{self, Name, TypeDef, TypeExpr, TypeKind};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::source::Span;

/// The declared types of a spec.
#[derive(Debug, Default)]
pub(crate) struct Types {
    list: Vec<Declared>,
    names: Vec<Arc<str>>,
}

#[derive(Debug)]
struct Declared {
    name: Arc<str>,
    span: Span,
    description: Option<String>,
    /// What it is; [`Kind::Named`] where it is another name for a declared type.
    kind: Type,
}

/// Finds a declared type by its name, or reports that there is none.
pub(crate) type Lookup<'l> = dyn FnMut(&Name) -> Option<usize> + 'l;

impl Types {
    /// Resolves the declarations; `lookup` gives their indices.
    pub(crate) fn new(declarations: &[TypeDef], lookup: &mut Lookup<'_>) -> Types {
        let names: Vec<Arc<str>> = declarations.iter().map(|declared| declared.name.value.as_str().into()).collect();
        let list = declarations.iter().zip(&names).map(|(declared, name)| Declared {
            name: name.clone(),
            span: declared.name.span,
            description: declared.description.clone(),
            kind: resolve_type(&declared.kind, Lack::NULL, &names, lookup),
        });
        Types { list: list.collect(), names }
    }

    /// The type that is written.
    pub(crate) fn resolve(&self, written: &TypeExpr, lookup: &mut Lookup<'_>) -> Type {
        resolve_type(written, Lack::NULL, &self.names, lookup)
    }

    /// The fields that are written, as those of a gate.
    pub(crate) fn resolve_fields(&self, written: &[ast::Field], lookup: &mut Lookup<'_>) -> Vec<Field> {
        written.iter().map(|written| resolve_field(written, &self.names, lookup)).collect()
    }

    /// What a type is behind its names.
    pub(crate) fn underlying_kind<'t>(&'t self, kind: &'t Kind) -> &'t Kind {
        let mut kind = kind;
        // As many names as there are may stand for each other; what goes round is reported elsewhere.
        for _ in 0..=self.list.len() {
            match kind {
                Kind::Named(index, _) => match self.list.get(*index) {
                    Some(declared) => kind = &declared.kind.kind,
                    None => return &Kind::Any,
                },
                kind => return kind,
            }
        }
        &Kind::Any
    }

    /// Where a declared type is declared.
    pub(crate) fn declaration_span(&self, kind: &Kind) -> Option<Span> {
        match kind {
            Kind::Named(index, _) => self.list.get(*index).map(|declared| declared.span),
            _ => None,
        }
    }

    /// Each declared type: its name, what it is, and its description.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Type, Option<&str>)> {
        self.list.iter().map(|declared| (&*declared.name, &declared.kind, declared.description.as_deref()))
    }

    /// Reports types that can have no value (SW301): those that contain themselves other than through `list`, `map` or
    /// `?`. Each circle is reported once.
    pub(crate) fn check_founded(&self, diagnostics: &mut Diagnostics) {
        let held: Vec<Vec<(usize, Span)>> =
            self.list.iter().map(|declared| required_types(&declared.kind, declared.span)).collect();
        // 0: not looked at, 1: being looked at, 2: done.
        let mut state = vec![0_u8; self.list.len()];
        for start in 0..self.list.len() {
            if state[start] != 0 {
                continue;
            }
            state[start] = 1;
            let mut path: Vec<(usize, usize)> = vec![(start, 0)];
            while let Some((index, next)) = path.last_mut() {
                let Some(&(inner, _)) = held[*index].get(*next) else {
                    state[*index] = 2;
                    path.pop();
                    continue;
                };
                *next += 1;
                match state.get(inner) {
                    Some(0) => {
                        state[inner] = 1;
                        path.push((inner, 0));
                    }
                    Some(1) => {
                        let from = path.iter().position(|(index, _)| *index == inner).unwrap_or(0);
                        diagnostics.push(self.unfounded_type(&path[from..], &held));
                    }
                    _ => {}
                }
            }
        }
    }

    fn unfounded_type(&self, circle: &[(usize, usize)], held: &[Vec<(usize, Span)>]) -> Diagnostic {
        let names: Vec<&str> = circle.iter().map(|(index, _)| &*self.list[*index].name).collect();
        let first = names[0];
        let message = match names.as_slice() {
            [name] => format!("type `{name}` contains itself, so no value has it"),
            names => format!(
                "types {} contain each other, so no value has them",
                crate::suggest::format_list(names.iter().copied(), "and")
            ),
        };
        let mut diagnostic = Diagnostic::new(Code::Cycle, message);
        for (position, (index, next)) in circle.iter().enumerate() {
            // The place has moved on past the type that it led to.
            let (inner, span) = held[*index][next - 1];
            let name = &self.list[inner].name;
            let text = if position + 1 == circle.len() {
                format!("and this `{name}` again")
            } else {
                format!("this needs a `{name}`")
            };
            diagnostic = diagnostic.label(span, text);
        }
        diagnostic.help(format!("let one of them be optional or a list: `{first}?` or `list<{first}>`"))
    }
}

/// The declared types of which a value needs one, each with the field that says so.
fn required_types(kind: &Type, span: Span) -> Vec<(usize, Span)> {
    match (&kind.kind, kind.lack) {
        (Kind::Named(index, _), Lack::NEVER) => vec![(*index, span)],
        (Kind::Record(record), _) => {
            record.fields.iter().flat_map(|field| required_types(&field.kind, field.span)).collect()
        }
        _ => Vec::new(),
    }
}

/// A written type; `lack` is what its `?` means in its place. How deep types nest is bounded where they are read.
fn resolve_type(written: &TypeExpr, lack: Lack, names: &[Arc<str>], lookup: &mut Lookup<'_>) -> Type {
    let kind = match &written.kind {
        TypeKind::String => Kind::String,
        TypeKind::Int => Kind::Int,
        TypeKind::Float => Kind::Float,
        TypeKind::Bool => Kind::Bool,
        TypeKind::File => Kind::File,
        TypeKind::Dir => Kind::Dir,
        TypeKind::Enum(words) => {
            let words = words.iter().map(|word| word.value.clone()).collect();
            Kind::Enum(Arc::new(Words { words, span: written.span }))
        }
        TypeKind::List(item) => Kind::List(Arc::new(resolve_type(item, Lack::NULL, names, lookup))),
        TypeKind::Map(item) => Kind::Map(Arc::new(resolve_type(item, Lack::NULL, names, lookup))),
        TypeKind::Named(name) => match lookup(name).and_then(|index| Some((index, names.get(index)?))) {
            Some((index, name)) => Kind::Named(index, name.clone()),
            None => Kind::Any,
        },
        TypeKind::Record(fields) => {
            let fields = fields.iter().map(|written| resolve_field(written, names, lookup)).collect();
            Kind::Record(Arc::new(Record::new(fields, written.span)))
        }
        TypeKind::Unknown => Kind::Any,
    };
    Type { kind, lack: if written.optional { lack } else { Lack::NEVER } }
}

fn resolve_field(written: &ast::Field, names: &[Arc<str>], lookup: &mut Lookup<'_>) -> Field {
    Field {
        name: written.name.value.clone(),
        kind: resolve_type(&written.kind, Lack::ABSENT, names, lookup),
        span: written.name.span,
        limits: Limits {
            min: written.min.as_ref().map(|min| min.value.clone()),
            max: written.max.as_ref().map(|max| max.value.clone()),
            pattern: written.pattern.as_ref().map(|pattern| pattern.value.clone()),
        },
        description: written.description.clone(),
        unanswered: None,
    }
}
