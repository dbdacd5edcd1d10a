//! Texts of a plan, and the files and variables that hold them: what their directives name is there.

use std::collections::BTreeSet;

use super::place::Place;
use super::{Checked, Piece, Reader, Validator};
use crate::{Directive, DirectiveKind, EnvValue, Environment, FileProtocol, Filter, Pipeline, Segment, Template};

/// The bytes of an input that are copied at most.
const MOST_COPIED: u64 = 100 * 1024 * 1024;

impl<'p> Validator<'p> {
    pub(super) fn check_variables(
        &self,
        place: &Place<'_>,
        environment: &'p Environment,
        reader: Reader<'p>,
    ) -> Checked {
        for (index, value) in environment.iter().enumerate() {
            let place = place.index(index);
            match value {
                EnvValue::Pass(name) => place.field("pass").check_variable(name)?,
                EnvValue::Secret(name) => place.field("secret").check_variable(name)?,
                EnvValue::Set { name, value } => {
                    place.field("set").field("name").check_variable(name)?;
                    self.check_template(&place.field("set").field("value"), value, reader)?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn check_files(&self, place: &Place<'_>, files: &'p FileProtocol, reader: Reader<'p>) -> Checked {
        place.field("copy_max").ensure_holds(files.copy_limit() <= MOST_COPIED, || {
            format!("{} bytes, but inputs of at most {MOST_COPIED} bytes are copied", files.copy_limit())
        })?;
        for (index, input) in files.inputs.iter().enumerate() {
            let place = place.field("inputs");
            let place = place.index(index);
            place.field("path").check_path(&input.path)?;
            input.copy_to.as_deref().map_or(Ok(()), |folder| place.field("copy_to").check_path(folder))?;
            input.from.as_deref().map_or(Ok(()), |name| place.field("from").check_name(name))?;
        }
        let mut seen = BTreeSet::new();
        for (index, output) in files.outputs.iter().enumerate() {
            let place = place.field("outputs");
            let place = place.index(index);
            place.field("path").check_path(&output.path)?;
            place
                .field("path")
                .ensure_holds(seen.insert(&output.path), || format!("`{}` is declared twice", output.path))?;
            output.copy_to.as_deref().map_or(Ok(()), |folder| place.field("copy_to").check_path(folder))?;
            output.schema.as_ref().map_or(Ok(()), |schema| self.check_schema(&place.field("schema"), schema))?;
        }
        let lists =
            [("requirements", &files.requirements), ("criteria", &files.criteria), ("constraints", &files.constraints)];
        for (field, texts) in lists {
            for (index, text) in texts.iter().enumerate() {
                self.check_template(&place.field(field).index(index), text, reader)?;
            }
        }
        files.wait_for.iter().enumerate().try_for_each(|(at, name)| place.field("wait_for").index(at).check_name(name))
    }

    pub(super) fn check_template(&self, place: &Place<'_>, template: &'p Template, reader: Reader<'p>) -> Checked {
        let segments = place.field("segments");
        let mut logic = false;
        for (index, segment) in template.segments.iter().enumerate() {
            logic |= matches!(segment, Segment::Logic(_));
            if let Segment::Directive(directive) = segment {
                self.check_directive(&segments.index(index).field("directive"), directive, reader)?;
            }
        }
        if logic { self.check_piece(place, Piece::Template(template)) } else { Ok(()) }
    }

    fn check_directive(&self, place: &Place<'_>, directive: &Directive, reader: Reader<'p>) -> Checked {
        use DirectiveKind as Kind;
        let plan = self.plan;
        for (index, filter) in directive.filters.iter().enumerate() {
            if let Filter::Lines(first, last) = filter {
                place.field("filters").index(index).ensure_holds((1..=*last).contains(first), || {
                    format!("lines {first} to {last}: they count from 1, the first before the last")
                })?;
            }
        }
        let place = place.field("name");
        let name = directive.name.as_deref();
        let needed = !matches!(
            directive.kind,
            Kind::Iteration | Kind::Stdin | Kind::Item | Kind::Index | Kind::Inbox | Kind::Team | Kind::Plan
        );
        let Some(name) = name else { return place.ensure_holds(!needed, || "names nothing".to_owned()) };
        match directive.kind {
            // One that the pipeline leaves out keeps its name: the placeholder says it.
            Kind::Output | Kind::Previous | Kind::Status | Kind::Exit | Kind::Error | Kind::Log => {
                place.check_name(name)
            }
            Kind::Input => {
                let known = reader.step.is_none_or(|step| step.inputs.contains_key(name));
                place.ensure_holds(known, || format!("this step has no input `{name}`"))
            }
            Kind::Param => {
                let of = |pipeline: &Pipeline| pipeline.params.iter().any(|param| param.name == name);
                let known = plan.params.iter().any(|param| param.name == name)
                    || reader.pipeline.map_or_else(|| plan.pipelines.iter().any(of), of);
                place.ensure_holds(known, || format!("there is no parameter `{name}`"))
            }
            Kind::Context => {
                let known = plan.packs.iter().any(|pack| pack.name == name);
                place.ensure_holds(known, || format!("there is no context pack `{name}`"))
            }
            Kind::File => place.check_path(name),
            Kind::Run => place.ensure_holds(["id", "dir"].contains(&name), || format!("a run has no `{name}`")),
            Kind::Task => place.ensure_holds(name == "name", || format!("a task has no `{name}`")),
            _ => Ok(()),
        }
    }
}
