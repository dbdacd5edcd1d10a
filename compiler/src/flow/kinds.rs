//! What declared types say about the values that conditions read: truths, enums, whole numbers, fields that may be left
//! out. A value goes in; the little that formulas need of its type comes out. What the types cannot tell is free.

use super::Flow;
use super::values::{Key, Kind, Of};
use crate::ast::{self, Field, TypeExpr, TypeKind};
use crate::model::{Body, Model, Pipeline};
use crate::symbols::NameKind;
use crate::template::Root;

/// How far declared types are followed.
const DEEPEST: usize = 32;

impl<'a> Flow<'_, 'a> {
    /// What is known of a value.
    pub(super) fn value_kind(&self, key: &Key) -> Kind {
        match (key.root, &key.of) {
            (Root::Iteration | Root::Exit, _) => Kind::Int,
            (Root::Output, Of::Step(step)) if let Some(gate) = self.chosen_at(*step, key) => {
                Kind::Enum(gate.options.iter().map(|option| option.value.clone()).collect())
            }
            _ => match self.declared_type(key, key.fields.len()).map(|kind| &kind.kind) {
                Some(TypeKind::Bool) => Kind::Bool,
                Some(TypeKind::Int) => Kind::Int,
                Some(TypeKind::Enum(members)) => {
                    Kind::Enum(members.iter().map(|member| member.value.clone()).collect())
                }
                _ => Kind::Free,
            },
        }
    }

    /// The gate whose choice a value is.
    fn chosen_at(&self, step: usize, key: &Key) -> Option<&'a ast::Gate> {
        let gate = self.pipeline.steps[step].body.gate();
        gate.filter(|_| matches!(key.fields.as_slice(), [field] if field == "choice"))
    }

    /// The fields on the way to a value that may be left out, by their place.
    pub(super) fn optional_fields(&self, key: &Key) -> Vec<usize> {
        let optional = |depth: &usize| self.declared_type(key, depth + 1).is_some_and(|kind| kind.optional);
        (0..key.fields.len()).filter(optional).collect()
    }

    /// The type of the first `depth` fields of a value, where it is declared.
    fn declared_type(&self, key: &Key, depth: usize) -> Option<&'a TypeExpr> {
        let whole = match (key.root, &key.of) {
            (Root::Output, Of::Step(step)) => output_type(self.model, self.pipeline, *step, 0)?,
            (Root::Param, Of::Name(name)) => &self.find_param(name)?.kind,
            _ => return None,
        };
        key.fields[..depth].iter().try_fold(resolve_type(self.model, whole)?, |kind, name| {
            let field = record_fields(kind)?.iter().find(|field| field.name.value == *name)?;
            let inner = resolve_type(self.model, &field.kind)?;
            // The mark stands where the field is declared, or with the type that it names.
            Some(if field.kind.optional { &field.kind } else { inner })
        })
    }
}

/// The declared type of a step's output; none of a list of items.
fn output_type<'a>(model: &Model<'a>, pipeline: &Pipeline<'a>, step: usize, depth: usize) -> Option<&'a TypeExpr> {
    let resolved = &pipeline.steps[step];
    if resolved.list.is_some() || depth > DEEPEST {
        return None;
    }
    match &resolved.body {
        Body::Call { pipeline: Some(called), .. } => {
            let called = model.pipelines.get(*called)?;
            output_type(model, called, *called.result.first()?, depth + 1)
        }
        _ => resolved.ast.output.kind.as_ref(),
    }
}

fn record_fields(kind: &TypeExpr) -> Option<&[Field]> {
    match &kind.kind {
        TypeKind::Record(fields) => Some(fields),
        _ => None,
    }
}

/// The type itself, behind the names that it has.
fn resolve_type<'a>(model: &Model<'a>, kind: &'a TypeExpr) -> Option<&'a TypeExpr> {
    let mut kind = kind;
    // Names may lead in a circle.
    for _ in 0..DEEPEST {
        let TypeKind::Named(name) = &kind.kind else { return Some(kind) };
        let declared = model.tables.find_name(NameKind::Type, &name.value, true, name.span.file)?;
        kind = &model.spec.types.get(declared)?.kind;
    }
    None
}
