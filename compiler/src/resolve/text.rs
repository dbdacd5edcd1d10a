//! Texts with holes: where they come from, what is wrong with them, what they read.

use crate::ast::{Name, Source, Spanned};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::load::Loader;
use crate::model::{Condition, Prose, Read};
use crate::passage::Passage;
use crate::resolve::names::{self, Names};
use crate::suggest;
use crate::syntax::Text;
use crate::template::{self, Root};

/// The text of a source, includes in place; none when a file or a shared prompt is not there.
pub(super) fn passage(
    source: &Source,
    loader: &mut Loader<'_>,
    shared: &mut dyn FnMut(&Spanned<String>, &mut Diagnostics) -> Option<Passage>,
    diagnostics: &mut Diagnostics,
) -> Option<Passage> {
    let text = match source {
        Source::Inline(text) => Passage::string(text),
        Source::File(path) => {
            let file = loader.named(path.as_str(), path.span(0..path.as_str().len()), diagnostics)?;
            Passage::file(file, loader.sources.text(file))
        }
        Source::Ref(name) => return shared(name, diagnostics),
    };
    Some(loader.expand(text, diagnostics))
}

/// Scans a text and reports what is wrong with it.
pub(super) fn prose(passage: Passage, wrap: bool, diagnostics: &mut Diagnostics) -> Prose {
    let template = template::scan(passage.text());
    template.problems.iter().for_each(|wrong| diagnostics.push(passage.problem(wrong)));
    Prose { passage, template, wrap }
}

/// A text that stands in the spec.
pub(super) fn inline(text: &Text, loader: &mut Loader<'_>, diagnostics: &mut Diagnostics) -> Prose {
    let passage = loader.expand(Passage::string(text), diagnostics);
    prose(passage, false, diagnostics)
}

/// Reads a condition and reports what is wrong with it.
pub(super) fn condition(text: &Text, diagnostics: &mut Diagnostics) -> Condition {
    let expression = template::expression(text.as_str());
    let passage = Passage::string(text);
    expression.problems.iter().for_each(|wrong| diagnostics.push(passage.problem(wrong)));
    Condition { text: text.clone(), expression }
}

/// What may be read in a place.
pub(super) struct Scope<'s> {
    /// The pipeline's name, and its steps; none where no step can be read.
    pub(super) steps: Option<(&'s str, &'s Names)>,
    /// The ports of the step: what they are called, and the step behind them where it is known.
    pub(super) ports: &'s [(String, Option<usize>)],
    /// Looks a parameter up and marks it as used.
    pub(super) param: &'s mut dyn FnMut(&str) -> Result<(), Vec<String>>,
    /// What the place is, for messages: "an `env` of a provider".
    pub(super) place: &'s str,
}

/// What a text or condition reads, each name looked up.
pub(super) fn reads(
    found: &[template::Read],
    passage: &Passage,
    scope: &mut Scope<'_>,
    diagnostics: &mut Diagnostics,
) -> Vec<Read> {
    found.iter().filter_map(|read| resolved(read, passage, scope, diagnostics)).collect()
}

fn resolved(
    read: &template::Read,
    passage: &Passage,
    scope: &mut Scope<'_>,
    diagnostics: &mut Diagnostics,
) -> Option<Read> {
    let span = passage.span(read.range.clone());
    let mut step = None;
    // A reference without a name (`{{ output }}`) reads nothing in particular, or has been reported.
    let name = read.name.as_deref();
    match (read.root, name) {
        (Root::Output | Root::Previous | Root::Status | Root::Exit | Root::Error, Some(name)) => {
            let Some((pipeline, steps)) = scope.steps else {
                diagnostics.push(no_steps(scope.place, read.root, span));
                return None;
            };
            match find(steps, name, read.via_directive) {
                Some(index) => step = Some(index),
                None => {
                    diagnostics.push(unknown_step(name, pipeline, steps, span, !read.via_directive));
                    return None;
                }
            }
        }
        (Root::Input, Some(name)) => {
            let known: Vec<&str> = scope.ports.iter().map(|(port, _)| port.as_str()).collect();
            let port = scope.ports.iter().find(|(port, _)| match read.via_directive {
                true => port == name,
                false => template::same_name(port, name),
            });
            match port {
                Some((_, target)) => step = Some((*target)?),
                None => {
                    let (close, help) = suggest::did_you_mean(name, &known, "its inputs are ");
                    let help = help.unwrap_or_else(|| format!("declare it in the task: `input {name} from=STEP`"));
                    let diagnostic = Diagnostic::new(Code::UnknownReference, format!("the task has no input `{name}`"))
                        .label(span, "not an input of this task")
                        .help(help);
                    diagnostics.push(fixed(diagnostic, close, span, !read.via_directive));
                    return None;
                }
            }
        }
        (Root::Param, Some(name)) => {
            if let Err(known) = (scope.param)(name) {
                let known: Vec<&str> = known.iter().map(String::as_str).collect();
                let (close, help) = suggest::did_you_mean(name, &known, "the parameters are ");
                let help = help.unwrap_or_else(|| format!("declare it: `param {name} type=string`"));
                let diagnostic = Diagnostic::new(Code::UnknownReference, format!("there is no parameter `{name}`"))
                    .label(span, "not a parameter")
                    .help(help);
                diagnostics.push(fixed(diagnostic, close, span, !read.via_directive));
                return None;
            }
        }
        _ => {}
    }
    Some(Read {
        root: read.root,
        step,
        name: read.name.clone(),
        fields: fields(read, passage),
        span,
        whole: passage.span(read.whole.clone()),
        guarded: read.guarded,
        directive: read.via_directive,
        in_when: false,
        assumes: read.assumes.clone(),
    })
}

/// The fields of a read, each with its place: after the name, in order.
fn fields(read: &template::Read, passage: &Passage) -> Vec<Name> {
    let mut at = read.range.end;
    let mut fields = Vec::new();
    for field in &read.fields {
        let found = passage.text().get(at..read.whole.end).and_then(|rest| rest.find(field.as_str()));
        let range = found.map_or(read.range.clone(), |found| at + found..at + found + field.len());
        at = range.end;
        fields.push(Spanned { value: field.clone(), span: passage.span(range) });
    }
    fields
}

/// In expressions `_` stands for `-`.
fn find(names: &Names, name: &str, exact: bool) -> Option<usize> {
    match exact {
        true => names.exact(name),
        false => names.same(name),
    }
}

/// A reference to a step that is not there.
pub(super) fn unknown_step(
    name: &str,
    pipeline: &str,
    steps: &Names,
    span: crate::source::Span,
    expression: bool,
) -> Diagnostic {
    let known: Vec<&str> = steps.iter().collect();
    let (close, help) = suggest::did_you_mean(name, &known, "its steps are ");
    let diagnostic =
        Diagnostic::new(Code::UnknownReference, format!("there is no step `{name}` in pipeline `{pipeline}`"))
            .label(span, "not a step of this pipeline")
            .help_maybe(help);
    fixed(diagnostic, close, span, expression)
}

fn fixed(diagnostic: Diagnostic, close: Option<&str>, span: crate::source::Span, expression: bool) -> Diagnostic {
    match close {
        Some(close) => {
            let close = if expression { names::plain(close) } else { close.to_owned() };
            diagnostic.unsafe_fix(format!("write `{close}`"), span, close)
        }
        None => diagnostic,
    }
}

fn no_steps(place: &str, root: Root, span: crate::source::Span) -> Diagnostic {
    Diagnostic::new(
        Code::BadDirective,
        format!("{place} cannot read `{}`: it is the same for every step", template::Kind::Read(root).word()),
    )
    .label(span, "reads a step")
    .help("write it where it is used, in the `env`, `stdin` or `prompt` of a task")
}
