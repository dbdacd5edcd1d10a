//! Texts of a plan, and the files and variables that hold them: what their directives name is there.

use std::collections::BTreeSet;

use super::place::Place;
use super::{Checked, Piece, Reader, Validator};
use crate::{Directive, DirectiveKind, EnvValue, Environment, FileProtocol, Filter, Pipeline, Segment, Template};

/// The bytes of an input that are copied at most.
const MOST_COPIED: u64 = 100 * 1024 * 1024;

impl<'p> Validator<'p> {
    pub(super) fn variables(&self, place: &Place<'_>, environment: &'p Environment, reader: Reader<'p>) -> Checked {
        for (index, value) in environment.iter().enumerate() {
            let place = place.index(index);
            match value {
                EnvValue::Pass(name) => place.field("pass").variable(name)?,
                EnvValue::Secret(name) => place.field("secret").variable(name)?,
                EnvValue::Set { name, value } => {
                    place.field("set").field("name").variable(name)?;
                    self.template(&place.field("set").field("value"), value, reader)?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn files(&self, place: &Place<'_>, files: &'p FileProtocol, reader: Reader<'p>) -> Checked {
        place.field("copy_max").hold(files.copied() <= MOST_COPIED, || {
            format!("{} bytes, and an input of {MOST_COPIED} is the largest that is copied", files.copied())
        })?;
        for (index, input) in files.inputs.iter().enumerate() {
            let place = place.field("inputs");
            let place = place.index(index);
            place.field("path").path(&input.path)?;
            input.copy_to.as_deref().map_or(Ok(()), |folder| place.field("copy_to").path(folder))?;
            input.from.as_deref().map_or(Ok(()), |name| place.field("from").name(name))?;
        }
        let mut seen = BTreeSet::new();
        for (index, output) in files.outputs.iter().enumerate() {
            let place = place.field("outputs");
            let place = place.index(index);
            place.field("path").path(&output.path)?;
            place.field("path").hold(seen.insert(&output.path), || format!("`{}` stands twice", output.path))?;
            output.copy_to.as_deref().map_or(Ok(()), |folder| place.field("copy_to").path(folder))?;
            output.schema.as_ref().map_or(Ok(()), |schema| self.schema(&place.field("schema"), schema))?;
        }
        let lists =
            [("requirements", &files.requirements), ("criteria", &files.criteria), ("constraints", &files.constraints)];
        for (field, texts) in lists {
            for (index, text) in texts.iter().enumerate() {
                self.template(&place.field(field).index(index), text, reader)?;
            }
        }
        files.wait_for.iter().enumerate().try_for_each(|(at, name)| place.field("wait_for").index(at).name(name))
    }

    pub(super) fn template(&self, place: &Place<'_>, template: &'p Template, reader: Reader<'p>) -> Checked {
        let segments = place.field("segments");
        let mut logic = false;
        for (index, segment) in template.segments.iter().enumerate() {
            logic |= matches!(segment, Segment::Logic(_));
            if let Segment::Directive(directive) = segment {
                self.directive(&segments.index(index).field("directive"), directive, reader)?;
            }
        }
        if logic { self.piece(place, Piece::Template(template)) } else { Ok(()) }
    }

    fn directive(&self, place: &Place<'_>, directive: &Directive, reader: Reader<'p>) -> Checked {
        use DirectiveKind as Kind;
        let plan = self.plan;
        for (index, filter) in directive.filters.iter().enumerate() {
            if let Filter::Lines(first, last) = filter {
                place.field("filters").index(index).hold((1..=*last).contains(first), || {
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
        let Some(name) = name else { return place.hold(!needed, || "names nothing".to_owned()) };
        match directive.kind {
            // One that the pipeline leaves out keeps its name: the placeholder says it.
            Kind::Output | Kind::Previous | Kind::Status | Kind::Exit | Kind::Error | Kind::Log => place.name(name),
            Kind::Input => {
                let known = reader.step.is_none_or(|step| step.inputs.contains_key(name));
                place.hold(known, || format!("this step has no input `{name}`"))
            }
            Kind::Param => {
                let of = |pipeline: &Pipeline| pipeline.params.iter().any(|param| param.name == name);
                let known = plan.params.iter().any(|param| param.name == name)
                    || reader.pipeline.map_or_else(|| plan.pipelines.iter().any(of), of);
                place.hold(known, || format!("there is no parameter `{name}`"))
            }
            Kind::Context => {
                let known = plan.packs.iter().any(|pack| pack.name == name);
                place.hold(known, || format!("there is no context pack `{name}`"))
            }
            Kind::File => place.path(name),
            Kind::Run => place.hold(["id", "dir"].contains(&name), || format!("a run has no `{name}`")),
            Kind::Task => place.hold(name == "name", || format!("a task has no `{name}`")),
            _ => Ok(()),
        }
    }
}
