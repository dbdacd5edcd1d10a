//! Texts as segments.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use swarmc_plan as plan;
use swarmc_plan::{DirectiveKind, Filter, Segment};

use super::{Emitter, compute_digest};
use crate::mapped_text::MappedText;
use crate::model::{Condition, TemplateText};
use crate::template::{Directive, Kind, Part, Read, Root};
use crate::text_cache::Derived;

/// The template of a plan that the text of a file was last.
struct LastEmitted(Mutex<Option<Emitted>>);

impl Derived for LastEmitted {
    fn from_text(_: &str) -> LastEmitted {
        LastEmitted(Mutex::default())
    }
}

/// What became of the text of a file that stands for itself.
struct Emitted {
    /// The path of the file, which the places of the segments name and its own paths count from.
    file: String,
    /// Whether whole texts are put between delimiters.
    wrap: bool,
    template: plan::Template,
}

/// A template of segments, with its digest.
pub(super) fn build_template(segments: Vec<Segment>) -> plan::Template {
    let mut bytes = Vec::new();
    for segment in &segments {
        // Where a piece stands is no part of the text.
        let origin = plan::Origin::default();
        let written = match segment {
            Segment::Text(_) => serde_json::to_writer(&mut bytes, segment),
            Segment::Directive(directive) => {
                serde_json::to_writer(&mut bytes, &plan::Directive { origin, ..directive.clone() })
            }
            Segment::Logic(logic) => serde_json::to_writer(
                &mut bytes,
                &plan::Expression { origin, reads: None, source: logic.source.clone() },
            ),
        };
        written.expect("segments have string keys only");
        bytes.push(b'\n');
    }
    plan::Template { digest: compute_digest(&bytes), segments }
}

impl Emitter<'_, '_, '_> {
    /// A text; `back` says which outputs are read as those of the round before.
    pub(super) fn emit_text(&self, prose: &TemplateText, back: &dyn Fn(&str) -> bool) -> plan::Template {
        let (reads, span) = (&prose.template.reads, prose.passage.span(0..0));
        let other = |read: &Read| read.root == Root::Output && read.name.as_deref().is_some_and(back);
        // The same in every plan: a file as it is, with no name in it that this plan spells otherwise.
        let Some(facts) = prose.passage.facts().filter(|_| self.model.renames.is_empty() && !reads.iter().any(other))
        else {
            return self.emit_segments(prose, back);
        };
        let file = self.loader.sources.name(span.file);
        // A panic leaves either the older template or the newer one there, and both are whole.
        let mut emitted = facts.derived::<LastEmitted>().0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*emitted {
            Some(known) if known.file == file && known.wrap == prose.wrap => known.template.clone(),
            _ => {
                let template = self.emit_segments(prose, back);
                *emitted = Some(Emitted { file: file.to_owned(), wrap: prose.wrap, template: template.clone() });
                template
            }
        }
    }

    fn emit_segments(&self, prose: &TemplateText, back: &dyn Fn(&str) -> bool) -> plan::Template {
        let text = prose.passage.text();
        let mut segments: Vec<Segment> = Vec::new();
        let mut plain = String::new();
        for part in &prose.template.parts {
            let segment = match part {
                Part::Text(range) => {
                    plain.push_str(&text[range.clone()]);
                    continue;
                }
                Part::Escape => continue,
                Part::Directive(directive) => match self.emit_directive(directive, prose, back) {
                    Some(directive) => Segment::Directive(directive),
                    None => continue,
                },
                Part::Logic(range) => {
                    Segment::Logic(self.emit_expression(&prose.passage, range.clone(), &prose.template.reads, back))
                }
            };
            if !plain.is_empty() {
                segments.push(Segment::Text(std::mem::take(&mut plain)));
            }
            segments.push(segment);
        }
        if !plain.is_empty() {
            segments.push(Segment::Text(plain));
        }
        build_template(segments)
    }

    pub(super) fn emit_condition(&self, condition: &Condition, back: &dyn Fn(&str) -> bool) -> plan::Expression {
        let passage = MappedText::from_string(&condition.text);
        self.emit_expression(&passage, 0..passage.text().len(), &condition.expression.reads, back)
    }

    /// A piece of logic, its back references saying `previous` and its parameters named as the plan names them, and what
    /// it reads.
    fn emit_expression(
        &self,
        passage: &MappedText,
        range: Range<usize>,
        reads: &[Read],
        back: &dyn Fn(&str) -> bool,
    ) -> plan::Expression {
        let text = passage.text();
        let mut source = String::new();
        let mut names = plan::Reads::new();
        let mut copied = range.start;
        // Reads are sorted by place.
        let first = reads.partition_point(|read| read.whole.start < range.start);
        let inside = reads[first..]
            .iter()
            .take_while(|read| read.whole.start < range.end)
            .filter(|read| !read.via_directive && read.whole.end <= range.end);
        for read in inside {
            let renamed = self.find_rename(passage, read.root, &read.range, &read.whole);
            let back = read.root == Root::Output && read.name.as_deref().is_some_and(back);
            let kind = if back { DirectiveKind::Previous } else { directive_kind(read.root) };
            let name = renamed.map(|(name, _)| name).or(read.name.as_ref());
            names.entry(kind).or_default().extend(name.cloned());
            let word = Kind::Read(read.root).as_str();
            if read.whole.start < copied || !text[read.whole.start..].starts_with(word) {
                continue;
            }
            let root = read.whole.start + word.len();
            let named = renamed.filter(|_| !back).map(|(name, fields)| {
                (format!("[\"{name}\"]"), after_name(text, crate::resolve::text::name_end(read, passage, *fields)))
            });
            let (name, behind) = named.unwrap_or_else(|| (String::new(), root));
            let steps: Vec<usize> =
                read.steps.iter().map(|end| after_name(text, *end)).filter(|end| *end > behind).collect();
            source.push_str(&text[copied..read.whole.start]);
            source.push_str(&"(".repeat(steps.len()));
            source.push_str(if back { Kind::Read(Root::Previous).as_str() } else { word });
            source.push_str(&name);
            copied = behind;
            // What is missing has no fields, where a default follows or a test asks; elsewhere asking for one fails.
            for end in steps {
                source.push_str(&text[copied..end]);
                source.push_str(" | default({}))");
                copied = end;
            }
        }
        source.push_str(&text[copied..range.end]);
        plan::Expression { source, reads: Some(names), origin: self.to_origin(passage.span(range)) }
    }

    /// What the plan calls a parameter, where that is not what the text says, and how many fields belong to the name.
    fn find_rename(
        &self,
        passage: &MappedText,
        root: Root,
        name: &Range<usize>,
        whole: &Range<usize>,
    ) -> Option<&(String, usize)> {
        if !matches!(root, Root::Param | Root::Context) || self.model.renames.is_empty() {
            return None;
        }
        self.model.renames.get(&(passage.home(name.start), passage.span(whole.clone())))
    }

    fn emit_directive(
        &self,
        directive: &Directive,
        prose: &TemplateText,
        back: &dyn Fn(&str) -> bool,
    ) -> Option<plan::Directive> {
        let name = directive.name.as_ref().map(|name| name.value.clone());
        let kind = match directive.kind {
            Kind::Read(Root::Output) if name.as_deref().is_some_and(back) => DirectiveKind::Previous,
            Kind::Read(root) => directive_kind(root),
            Kind::File => DirectiveKind::File,
            Kind::Include => return None,
        };
        let name = match (kind, &directive.name) {
            (DirectiveKind::File, Some(path)) => {
                let span = prose.passage.span(path.range.clone());
                let home = self.loader.sources.name(span.file);
                let folder = home.rsplit_once('/').map_or("", |(folder, _)| folder);
                crate::load::join_path(folder, &path.value)
            }
            _ => name,
        };
        let place = directive.name.as_ref().map_or(&directive.range, |name| &name.range);
        let (name, in_name) = match self.find_rename(&prose.passage, Root::Param, place, &directive.range) {
            Some((renamed, fields)) if matches!(kind, DirectiveKind::Param | DirectiveKind::Context) => {
                (Some(renamed.clone()), *fields)
            }
            _ => (name, 0),
        };
        let filters: Vec<Filter> = directive.filters.iter().map(|filter| filter.value.clone()).collect();
        let is_value = matches!(kind, DirectiveKind::Output | DirectiveKind::Previous | DirectiveKind::Input);
        let whole =
            directive.fields.is_empty() && !filters.iter().any(|filter| matches!(filter, Filter::Raw | Filter::Json));
        Some(plan::Directive {
            kind,
            name,
            fields: directive.fields.iter().skip(in_name).map(|field| field.value.clone()).collect(),
            filters,
            wrap: prose.wrap && is_value && whole,
            origin: self.to_origin(prose.passage.span(directive.range.clone())),
        })
    }
}

fn directive_kind(root: Root) -> DirectiveKind {
    match root {
        Root::Output => DirectiveKind::Output,
        Root::Previous => DirectiveKind::Previous,
        Root::Status => DirectiveKind::Status,
        Root::Exit => DirectiveKind::Exit,
        Root::Error => DirectiveKind::Error,
        Root::Log => DirectiveKind::Log,
        Root::Input => DirectiveKind::Input,
        Root::Param => DirectiveKind::Param,
        Root::Iteration => DirectiveKind::Iteration,
        Root::Run => DirectiveKind::Run,
        Root::Task => DirectiveKind::Task,
        Root::Stdin => DirectiveKind::Stdin,
        Root::Item => DirectiveKind::Item,
        Root::Index => DirectiveKind::Index,
        Root::Context => DirectiveKind::Context,
        Root::Inbox => DirectiveKind::Inbox,
        Root::Shared => DirectiveKind::Shared,
        Root::Team => DirectiveKind::Team,
        Root::Plan => DirectiveKind::Plan,
    }
}

/// Where a name or field in an expression ends: behind the bracket of `param["goal"]`.
fn after_name(text: &str, end: usize) -> usize {
    let gap = text[end..].len() - text[end..].trim_start().len();
    match text[end + gap..].starts_with(']') {
        true => end + gap + 1,
        false => end,
    }
}
