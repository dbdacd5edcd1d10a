//! SW201 and SW210: a value read where its step cannot have run.
//!
//! A reference makes its reader wait, so this is a cycle of references alone: the one to the later-declared step can
//! only mean the round before. With rounds that is what it reads (SW210); without, it reads nothing (SW201). A `previous`
//! where nothing iterates reads nothing either (SW210).

use std::collections::BTreeSet;

use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::model::{Body, Model, Pipeline, Read, Step, find_siblings};
use crate::source::Span;
use crate::template::{Kind, Root};

pub(super) fn check(pipeline: &Pipeline<'_>, diagnostics: &mut Diagnostics) {
    for back in &pipeline.order.back {
        let step = &pipeline.steps[back.step];
        let read = &step.reads[back.read];
        let Some(target) = read.step() else { continue };
        diagnostics.set_home(Some(step.ast.name.span));
        match (read_as_previous(pipeline, back.step, read), read.root) {
            // Nothing else can be meant by it.
            (true, Root::Log) => {}
            (true, _) => diagnostics.push(previous_round(step, read, &pipeline.steps[target])),
            (false, _) => diagnostics.push(not_upstream(pipeline, back.step, read, target)),
        }
    }
    diagnostics.set_home(None);
}

/// Reports every `previous` that no pipeline of the spec has a round before for: texts may be shared.
pub(super) fn check_previous(model: &Model<'_>, diagnostics: &mut Diagnostics) {
    let mut iterated: BTreeSet<Span> = BTreeSet::new();
    let mut single: Vec<(&Pipeline<'_>, &Step<'_>, &Read, usize)> = Vec::new();
    for pipeline in &model.pipelines {
        for (index, step) in pipeline.steps.iter().enumerate() {
            for read in step.reads.iter().filter(|read| read.root == Root::Previous) {
                let Some(target) = read.step() else { continue };
                match pipeline.ast.rounds.is_some() || pipeline.has_previous_round(index, target) {
                    true => _ = iterated.insert(read.span),
                    false => single.push((pipeline, step, read, target)),
                }
            }
        }
    }
    for (pipeline, step, read, target) in single.into_iter().filter(|(_, _, read, _)| !iterated.contains(&read.span)) {
        diagnostics.set_home(Some(step.ast.name.span));
        diagnostics.push(only_round(pipeline, step, read, &pipeline.steps[target]));
    }
    diagnostics.set_home(None);
}

fn only_round(pipeline: &Pipeline<'_>, step: &Step<'_>, read: &Read, target: &Step<'_>) -> Diagnostic {
    let (reader, name) = (step.name(), target.name());
    let message = format!("`{reader}` reads what `{name}` put out in the round before, and there is only one round");
    Diagnostic::new(Code::PreviousIteration, message)
        .label(read.span, "always missing")
        .label(target.ast.name.span, format!("nothing that holds `{reader}` and `{name}` iterates"))
        .help(format!(
            "give pipeline `{}` rounds: `iterations 3`, or put both in a `loop`, or take this out",
            pipeline.ast.name.value
        ))
}

/// Whether a back reference is read as the value of the round before.
pub(crate) fn read_as_previous(pipeline: &Pipeline<'_>, reader: usize, read: &Read) -> bool {
    let repeats = |target| {
        find_siblings(&pipeline.steps, reader, target).is_some() && pipeline.has_previous_round(reader, target)
    };
    matches!(read.root, Root::Output | Root::Log)
        && (read.step() == Some(reader) && pipeline.has_previous_round(reader, reader)
            || read.step().is_some_and(repeats))
}

fn previous_round(step: &Step<'_>, read: &Read, target: &Step<'_>) -> Diagnostic {
    let name = target.name();
    let diagnostic = Diagnostic::new(
        Code::PreviousIteration,
        format!("`{}` reads what `{name}` put out in the round before", step.name()),
    )
    .label(read.span, format!("in this round, `{name}` has not run yet"))
    .label(target.ast.name.span, "runs later");
    let written = match read.directive {
        true => format!("<<previous:{name}>>"),
        false => format!("previous.{}", name.replace('-', "_")),
    };
    let (title, span, text) = rewrite_as_previous(read);
    diagnostic.help(format!("say so: `{written}`")).fix(title, span, text)
}

/// The reference with `previous` in the place of its root.
fn rewrite_as_previous(read: &Read) -> (String, Span, String) {
    let mut span = read.whole;
    // `<<` stays, and so does everything after the root.
    let skip = if read.directive { 2 } else { 0 };
    span.start += skip;
    // The fix is offered for an output only: a log of the round before is read as it is.
    span.end = span.start + "output".len() as u32;
    ("read the round before".to_owned(), span, "previous".to_owned())
}

fn not_upstream(pipeline: &Pipeline<'_>, index: usize, read: &Read, target: usize) -> Diagnostic {
    let (step, name) = (&pipeline.steps[index], pipeline.steps[target].name());
    let word = Kind::Read(read.root).as_str();
    if index == target {
        let diagnostic =
            Diagnostic::new(Code::OutputNotUpstream, format!("`{name}` reads its own {}", describe_root(read.root)))
                .label(read.span, "this very step");
        return match read.root {
            Root::Exit | Root::Error => diagnostic.help("only a repeated attempt has one before it: add `retry`"),
            Root::Log => diagnostic
                .help("a repeated attempt has one before it, and a further round: add `retry`, or `iterations`"),
            _ => diagnostic.help(format!("with `iterations`, `<<previous:{name}>>` is its value of the round before")),
        };
    }
    if find_siblings(&pipeline.steps, index, target).is_none() {
        return report_loop(step, read, &pipeline.steps[target]);
    }
    let diagnostic = Diagnostic::new(
        Code::OutputNotUpstream,
        format!("`{}` reads `{word}` of `{name}`, which runs after it", step.name()),
    )
    .label(read.span, format!("`{name}` cannot have run here"))
    .label(pipeline.steps[target].ast.name.span, format!("waits for `{}`, by what it reads", step.name()));
    diagnostic.help(match read.root {
        Root::Output if read.directive => format!(
            "read the round before with `<<previous:{name}>>` and say `iterations`, or take one of the two references out"
        ),
        Root::Log => format!(
            "with `iterations` in `{}` it is the log of the round before; or take one of the two references out",
            pipeline.ast.name.value
        ),
        _ => format!(
            "take one of the two references out, or move `{name}` and what it needs before `{}`",
            step.name()
        ),
    })
}

/// A loop and a step in it: neither has ended where the other reads it.
fn report_loop(step: &Step<'_>, read: &Read, target: &Step<'_>) -> Diagnostic {
    let (name, other, word) = (step.name(), target.name(), Kind::Read(read.root).as_str());
    let diagnostic = Diagnostic::new(
        Code::OutputNotUpstream,
        format!("`{name}` reads `{word}` of `{other}`, which has not ended there"),
    );
    match target.body {
        Body::Loop { .. } => diagnostic
            .label(read.span, format!("`{name}` is part of this loop"))
            .label(target.ast.name.span, "ends after its steps")
            .help("read a step of the loop instead"),
        _ => diagnostic
            .label(read.span, format!("`{other}` starts after `{name}`"))
            .label(target.ast.name.span, "stands in the loop")
            .help("ask after a round, in an `until` of the loop"),
    }
}

fn describe_root(root: Root) -> &'static str {
    match root {
        Root::Status => "status",
        Root::Exit => "exit code",
        Root::Error => "error",
        Root::Log => "log",
        _ => "output",
    }
}
