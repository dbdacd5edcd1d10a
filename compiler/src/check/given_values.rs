//! The texts of a step that are values of a declared type: arguments of its call, and what it computes.

use crate::model::{Body, Model, Step, TemplateText};
use crate::types::{Kind, Lack};

/// The values of a step, each with whether it may be `null`.
pub(super) fn list_values<'m>(model: &'m Model<'_>, step: &'m Step<'_>) -> Vec<(&'m TemplateText, bool)> {
    let types = &model.typing.types;
    match (&step.body, &step.declared) {
        (Body::Call { pipeline: Some(target), args, .. }, _) => {
            let params = &model.pipelines[*target].ast.params;
            let takes_null = |name: &str| {
                let param = params.iter().find(|param| param.name.value == name)?;
                Some(param.kind.optional || param.default.is_some())
            };
            args.iter().filter_map(|(name, text)| Some((text, takes_null(&name.value)?))).collect()
        }
        (Body::Value(text), Some(kind)) => vec![(text, kind.lack != Lack::NEVER)],
        (Body::Fields(fields), Some(kind)) => {
            let takes_null = |name: &str| match types.underlying_kind(&kind.kind) {
                Kind::Record(record) => record.find_field(name, false).map(|field| field.kind.lack != Lack::NEVER),
                Kind::Map(item) => Some(item.lack != Lack::NEVER),
                _ => None,
            };
            fields.iter().filter_map(|(name, text)| Some((text, takes_null(&name.value)?))).collect()
        }
        _ => Vec::new(),
    }
}
