//! SW203 and SW206: fields that a value does not have.

use crate::ast::Name;
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::model::{Body, Pipeline, Read};
use crate::suggest;
use crate::template::{Part, Root};

/// How many records in records are looked through: they may be made of each other's rounds before.
const DEEPEST: usize = 16;

pub(super) fn check(pipeline: &Pipeline<'_>, diagnostics: &mut Diagnostics) {
    let of_steps = pipeline.steps.iter().flat_map(|step| step.reads.iter().map(move |read| (Some(step), read)));
    for (step, read) in of_steps.chain(pipeline.until_reads.iter().map(|read| (None, read))) {
        diagnostics.about(step.map(|step| step.ast.name.span));
        check_fields(pipeline, read, &read.fields, DEEPEST, diagnostics);
    }
    diagnostics.about(None);
}

fn check_fields(pipeline: &Pipeline<'_>, read: &Read, fields: &[Name], depth: usize, diagnostics: &mut Diagnostics) {
    let (Some(first), Some(depth)) = (fields.first(), depth.checked_sub(1)) else { return };
    let field = first.value.as_str();
    if !matches!(read.root, Root::Output | Root::Previous | Root::Input) {
        let noun = match read.root {
            Root::Param => "a parameter",
            Root::Status => "a status",
            Root::Exit => "an exit code",
            Root::Error => "an error",
            _ => "this",
        };
        // `run.id` and `task.name` are names, not fields.
        if matches!(read.root, Root::Param | Root::Status | Root::Exit | Root::Error) {
            diagnostics.push(
                Diagnostic::new(Code::UntypedFieldAccess, format!("{noun} has no fields, and so no `{field}`"))
                    .label(first.span, "has no fields")
                    .help(format!("read it as a whole, without `.{field}`")),
            );
        }
        return;
    }
    let Some(step) = read.step.map(|step| &pipeline.steps[step]) else { return };
    let name = step.name();
    match &step.body {
        Body::Fields(record) => {
            let known: Vec<&str> = record.iter().map(|(field, _)| field.as_str()).collect();
            if !known.contains(&field) {
                let (close, help) = suggest::did_you_mean(field, &known, "its fields are ");
                let diagnostic =
                    Diagnostic::new(Code::UnknownField, format!("the output of `{name}` has no field `{field}`"))
                        .label(first.span, format!("no `{field}` there"))
                        .label(step.ast.name.span, "its fields are declared here")
                        .help_maybe(help);
                diagnostics.push(match close {
                    Some(close) => diagnostic.unsafe_fix(format!("write `{close}`"), first.span, close),
                    None => diagnostic,
                });
            } else if let (Some(deeper), Some((_, prose))) =
                (fields.get(1), record.iter().find(|(known, _)| known == field))
            {
                match prose.template.parts.as_slice() {
                    // It keeps the type of what it reads.
                    [Part::Directive(directive)] if directive.filters.is_empty() => {
                        let whole = prose.passage.span(directive.range.clone());
                        if let Some(inner) = step.reads.iter().find(|read| read.whole == whole) {
                            let fields: Vec<Name> = inner.fields.iter().chain(&fields[1..]).cloned().collect();
                            check_fields(pipeline, inner, &fields, depth, diagnostics);
                        }
                    }
                    [Part::Logic(_)] => {}
                    _ => diagnostics.push(
                        Diagnostic::new(
                            Code::UntypedFieldAccess,
                            format!("`{name}.{field}` is text, and has no field `{}`", deeper.value),
                        )
                        .label(deeper.span, "text has no fields")
                        .help(format!("read it as a whole, without `.{}`", deeper.value)),
                    ),
                }
            }
        }
        Body::Missing | Body::Call { .. } | Body::Swarm { .. } | Body::Gate(_) | Body::Loop { .. } => {}
        Body::Prompt(_) | Body::Run | Body::Script(_) | Body::Value(_) | Body::Stop(_) => diagnostics.push(
            Diagnostic::new(
                Code::UntypedFieldAccess,
                format!("the output of `{name}` is text, and has no field `{field}`"),
            )
            .label(first.span, "text has no fields")
            .label(step.ast.name.span, "puts out text")
            .help("read it as a whole, or compute a record: `value { FIELD \"…\" }`"),
        ),
    }
}
