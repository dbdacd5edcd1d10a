//! Parameters that texts read: those of the pipeline, of the spec, and of what it imports (`param.lib.goal`).

use crate::ast;
use crate::diagnostic::Diagnostic;
use crate::mapped_text::MappedText;
use crate::model::{ParamRef, Uses};
use crate::source::FileId;
use crate::symbols::names::Names;
use crate::symbols::{NameKind, Tables};
use crate::template;

/// What a text can read.
pub(super) struct Params<'p> {
    pub(super) tables: &'p Tables,
    /// The parameters of the pipeline, and the file that it stands in; none where there is no pipeline.
    pub(super) inner: Option<(&'p Names, FileId)>,
    /// The parameters of the whole spec, as the plan has them.
    pub(super) outer: &'p [ast::Param],
    /// The context packs of the whole spec.
    pub(super) packs: &'p [ast::ContextPack],
    pub(super) uses: &'p mut Uses,
}

impl Params<'_> {
    /// The parameter that a read of `param` names, marked as used, and how many of the fields belong to its name; or
    /// what is wrong.
    pub(super) fn resolve_param(
        &mut self,
        read: &template::Read,
        passage: &MappedText,
        exact: bool,
        spelt: &dyn Fn(&str) -> String,
    ) -> Result<(ParamRef, usize), Box<Diagnostic>> {
        let name = read.name.as_deref().unwrap_or_default();
        let home = passage.home(read.range.start);
        let inner = self.inner.map(|(names, file)| (names.find(name, exact), file));
        let inner = inner.and_then(|(index, file)| Some((index?, file)));
        // In the module of the pipeline its own parameters come first.
        if let Some((index, _)) = inner.filter(|(_, file)| self.tables.modules.is_same_module(*file, home)) {
            return Ok((self.use_inner(index), 0));
        }
        if let Some(index) = self.tables.find_name(NameKind::Param, name, exact, home) {
            self.uses.params[index] = true;
            return Ok((ParamRef::Spec(index), 0));
        }
        // A text of an import may read what belongs to the pipeline that uses it, after all of its own file.
        if let Some((index, _)) = inner {
            return Ok((self.use_inner(index), 0));
        }
        let field = read.fields.first().filter(|_| self.tables.is_alias(name, exact, home));
        if let Some(field) = field {
            if let Some(index) = self.tables.find_qualified(NameKind::Param, name, field, exact, home) {
                self.uses.params[index] = true;
                return Ok((ParamRef::Spec(index), 1));
            }
            let places = super::text::locate_fields(read, passage);
            let span = places.first().map_or(passage.span(read.range.clone()), |field| field.span);
            let alias = self.tables.declared_alias(name, exact, home);
            let last = |name: &str| spelt(name.rsplit('.').next().unwrap_or(name));
            return Err(Box::new(self.tables.unknown_name(
                NameKind::Param,
                &format!("{alias}.{field}"),
                span,
                home,
                &last,
                &[],
            )));
        }
        let also: Vec<&str> = self.inner.into_iter().flat_map(|(names, _)| names.iter()).collect();
        let span = passage.span(read.range.clone());
        Err(Box::new(self.tables.unknown_name(NameKind::Param, name, span, home, spelt, &also)))
    }

    /// The name in the plan of a parameter of the spec, where it is another than the text says.
    pub(super) fn plan_name(&self, found: ParamRef, fields: usize, name: &str) -> Option<String> {
        let ParamRef::Spec(index) = found else { return None };
        let in_plan = &self.outer[index].name.value;
        (fields > 0 || !template::same_name(in_plan, name)).then(|| in_plan.clone())
    }

    fn use_inner(&mut self, index: usize) -> ParamRef {
        let own = self.uses.pipeline_params.last_mut().expect("the pipeline's own are being resolved");
        own[index] = true;
        ParamRef::Pipeline(index)
    }
}
