//! SW101 and SW205: what a `call` gives to the parameters of the pipeline that it calls.
//!
//! Each parameter without a default gets a value, each value has a parameter, and a value whose type is known fits.

use crate::ast;
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::model::{Body, Model, Pipeline, Prose, Step};
use crate::source::Span;
use crate::suggest::did_you_mean;
use crate::syntax::Text;
use crate::template::Part;
use crate::types::{Checker, Env, Kind, Lack, Type, Use};

pub(super) fn check(model: &Model<'_>, diagnostics: &mut Diagnostics) {
    for (pipeline, known) in model.pipelines.iter().zip(&model.typing.pipelines) {
        for (index, step) in pipeline.steps.iter().enumerate() {
            let Body::Call { pipeline: Some(target), args: proses } = &step.body else { continue };
            let Some(ast::Body::Call { pipeline: name, args }) = &step.ast.body else { continue };
            let called = &model.pipelines[*target];
            diagnostics.about(Some(step.ast.name.span));
            missing(step, name.span, called, &model.typing.pipelines[*target].own_params, args, diagnostics);
            let env = known.env(&model.typing.types, index, step);
            for ((given, text), (_, prose)) in args.iter().zip(proses) {
                let position = called.ast.params.iter().position(|param| param.name.value == given.value);
                let Some(position) = position else {
                    diagnostics.push(unknown(called, given));
                    continue;
                };
                let wanted = &model.typing.pipelines[*target].own_params[position];
                let declared = called.ast.params[position].name.span;
                diagnostics.extend(unfit(&env, wanted, declared, given, text, prose));
            }
        }
        diagnostics.about(None);
    }
}

fn missing(
    step: &Step<'_>,
    call: Span,
    called: &Pipeline<'_>,
    types: &[Type],
    args: &[(ast::Name, Text)],
    diagnostics: &mut Diagnostics,
) {
    for (param, kind) in called.ast.params.iter().zip(types) {
        let name = &param.name.value;
        if param.default.is_some() || kind.lack != Lack::Never || args.iter().any(|(given, _)| given.value == *name) {
            continue;
        }
        let message = format!("`{}` calls `{}` without its parameter `{name}`", step.name(), called.ast.name.value);
        let diagnostic = Diagnostic::new(Code::TypeMismatch, message)
            .label(call, format!("`{name}=` is missing"))
            .label(param.name.span, "declared here without a default")
            .help(format!("write `call {} {name}=\"…\"`", called.ast.name.value));
        diagnostics.push(diagnostic);
    }
}

fn unknown(called: &Pipeline<'_>, given: &ast::Name) -> Diagnostic {
    let name = &called.ast.name.value;
    let known: Vec<&str> = called.ast.params.iter().map(|param| param.name.value.as_str()).collect();
    let (close, help) = did_you_mean(&given.value, &known, "its parameters are ");
    let diagnostic =
        Diagnostic::new(Code::UnknownReference, format!("pipeline `{name}` has no parameter `{}`", given.value))
            .label(given.span, "not one of its parameters")
            .label(called.ast.name.span, "declared here");
    let diagnostic = match help {
        Some(help) => diagnostic.help(help),
        None => diagnostic.help(format!("remove it, or declare it in `{name}`: `param {} type=string`", given.value)),
    };
    match close {
        Some(close) => diagnostic.unsafe_fix(format!("write `{close}`"), given.span, close),
        None => diagnostic,
    }
}

/// A value that the parameter cannot take. Text that a program wrote is read when the run has it.
fn unfit(
    env: &Env<'_>,
    wanted: &Type,
    declared: Span,
    given: &ast::Name,
    text: &Text,
    prose: &Prose,
) -> Option<Diagnostic> {
    let kind = env.types.kind(&wanted.kind);
    let literal = prose.template.parts.iter().all(|part| matches!(part, Part::Text(_)));
    let written = text.as_str();
    let (takes, example) = match kind {
        Kind::Int => ("a whole number".to_owned(), "5".to_owned()),
        Kind::Float => ("a number".to_owned(), "0.5".to_owned()),
        Kind::Bool => ("`true` or `false`".to_owned(), "true".to_owned()),
        Kind::Enum(words) => {
            let words = &words.words;
            let listed: Vec<&str> = words.iter().map(String::as_str).collect();
            (format!("one of {}", crate::suggest::list(listed.into_iter(), "and")), words.first()?.clone())
        }
        _ => return None,
    };
    let fits = if literal {
        match kind {
            Kind::Int => written.trim().parse::<i64>().is_ok(),
            Kind::Float => written.trim().parse::<f64>().is_ok(),
            Kind::Bool => matches!(written.trim(), "true" | "false"),
            Kind::Enum(words) => words.words.iter().any(|word| word == written.trim()),
            _ => true,
        }
    } else {
        // What is wrong in the text itself is said where texts are checked.
        let value = Checker::new(env, &prose.passage, Use::Text, &mut Diagnostics::default()).value(&prose.template);
        value.kind.is_text() || !value.clashes(wanted)
    };
    if fits {
        return None;
    }
    let help = match literal {
        true => format!("write `{}=\"{example}\"`", given.value),
        false => format!("give it {takes}, or declare the parameter with the type of this value"),
    };
    Some(
        Diagnostic::new(Code::TypeMismatch, format!("parameter `{}` takes {takes}", given.value))
            .label(text.span(0..written.len()), "something else")
            .label(declared, "declared here")
            .help(help),
    )
}
