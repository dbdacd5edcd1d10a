//! SW203 and SW206: fields that a value does not have.

use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::model::{Body, Pipeline, Read};
use crate::source::{Sources, Span};
use crate::suggest;
use crate::template::Root;

pub(super) fn check(pipeline: &Pipeline<'_>, sources: &Sources, diagnostics: &mut Diagnostics) {
    let of_steps = pipeline.steps.iter().flat_map(|step| &step.reads);
    for read in of_steps.chain(&pipeline.until_reads) {
        if let Some(field) = read.fields.first() {
            check_field(pipeline, read, field, sources, diagnostics);
        }
    }
}

/// The place of a read's field: it follows the name and the fields before it, each after a dot. Where it is written in
/// another way, as in `output["x"]`, the whole read.
fn place(read: &Read, position: usize, sources: &Sources) -> Span {
    let text = sources.text(read.span.file);
    let mut at = read.span.end as usize;
    for (index, field) in read.fields.iter().enumerate().take(position + 1) {
        let after =
            text.get(at..).and_then(|rest| rest.strip_prefix('.')).filter(|rest| rest.starts_with(field.as_str()));
        if after.is_none() {
            break;
        }
        let start = at + 1;
        at = start + field.len();
        if index == position {
            let byte = |at: usize| u32::try_from(at).expect("files are under 4 GiB");
            return Span::new(read.span.file, byte(start), byte(at));
        }
    }
    read.whole
}

fn check_field(pipeline: &Pipeline<'_>, read: &Read, field: &str, sources: &Sources, diagnostics: &mut Diagnostics) {
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
                    .label(place(read, 0, sources), "has no fields")
                    .help(format!("read it as a whole, without `.{field}`")),
            );
        }
        return;
    }
    let Some(step) = read.step.map(|step| &pipeline.steps[step]) else { return };
    let name = step.name();
    match &step.body {
        Body::Fields(fields) => {
            let known: Vec<&str> = fields.iter().map(|(field, _)| field.as_str()).collect();
            if !known.contains(&field) {
                let (_, help) = suggest::did_you_mean(field, &known, "its fields are ");
                diagnostics.push(
                    Diagnostic::new(Code::UnknownField, format!("the output of `{name}` has no field `{field}`"))
                        .label(place(read, 0, sources), format!("no `{field}` here"))
                        .label(step.ast.name.span, "its fields are declared here")
                        .help_maybe(help),
                );
            } else if let Some(deeper) = read.fields.get(1) {
                diagnostics.push(
                    Diagnostic::new(
                        Code::UntypedFieldAccess,
                        format!("`{name}.{field}` is text, and has no field `{deeper}`"),
                    )
                    .label(place(read, 1, sources), "text has no fields")
                    .help(format!("read it as a whole, without `.{deeper}`")),
                );
            }
        }
        Body::Missing => {}
        Body::Prompt(_) | Body::Run | Body::Script(_) | Body::Value(_) | Body::Stop(_) => diagnostics.push(
            Diagnostic::new(
                Code::UntypedFieldAccess,
                format!("the output of `{name}` is text, and has no field `{field}`"),
            )
            .label(place(read, 0, sources), "text has no fields")
            .label(step.ast.name.span, "puts out text")
            .help("read it as a whole, or compute a record: `value { FIELD \"…\" }`"),
        ),
    }
}
