//! SW005, SW101 and SW205: whether a pipeline can be called, and what a `call` gives to its parameters.
//!
//! A call takes the value of one instance. Each parameter without a default gets a value, and each value has a parameter; `given` holds it against the type.

use crate::ast;
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::model::{Body, Model, Pipeline, Step, TemplateText};
use crate::source::Span;
use crate::suggest::{did_you_mean, find_closest};
use crate::types::{Lack, Type};

/// The codes that the check reports.
pub(super) const CODES: &[Code] = &[Code::WrongValue, Code::UnknownReference, Code::TypeMismatch];

pub(super) fn check(model: &Model<'_>, diagnostics: &mut Diagnostics) {
    for step in model.pipelines.iter().flat_map(|pipeline| &pipeline.steps) {
        let Body::Call { name, pipeline: Some(target), args } = &step.body else { continue };
        let called = &model.pipelines[*target];
        diagnostics.set_home(Some(step.ast.name.span));
        if let Some(span) = called.ast.instances.filter(|_| called.ast.parallelism > 1) {
            diagnostics.push(report_instances(step, name, called, span));
        }
        let known = |given: &ast::Name| called.ast.params.iter().any(|param| param.name.value == given.value);
        let others: Vec<&ast::Name> = args.iter().map(|(given, _)| *given).filter(|given| !known(given)).collect();
        let mut missing = find_missing_params(called, &model.typing.pipelines[*target].own_params, args);
        drop_misspelt(&mut missing, &others);
        missing.into_iter().for_each(|param| diagnostics.push(report_missing(step, name.span, called, param)));
        others.into_iter().for_each(|given| diagnostics.push(report_unknown(called, given)));
    }
    diagnostics.set_home(None);
}

fn report_instances(step: &Step<'_>, name: &ast::Name, called: &Pipeline<'_>, says: Span) -> Diagnostic {
    let (caller, count) = (step.name(), called.ast.parallelism);
    let what = format!("`{caller}` calls `{}`, which runs in {count} instances", name.value);
    let help = match step.ast.for_each {
        None => format!("take `parallelism` out, and write `for-each \"range({count})\"` in `{caller}`"),
        Some(_) => format!("take `parallelism` out: `{caller}` starts one for each item"),
    };
    Diagnostic::new(Code::WrongValue, what)
        .label(name.span, "a call returns the value of one instance")
        .label(says, "asked for here")
        .help(help)
}

/// The parameters that must be given and are not.
fn find_missing_params<'c>(
    called: &'c Pipeline<'_>,
    types: &[Type],
    args: &[(&ast::Name, TemplateText)],
) -> Vec<&'c ast::Param> {
    let given = |param: &ast::Param| args.iter().any(|(given, _)| given.value == param.name.value);
    let params = called.ast.params.iter().zip(types);
    let needed = params.filter(|(param, kind)| param.default.is_none() && kind.lack == Lack::NEVER && !given(param));
    needed.map(|(param, _)| param).collect()
}

/// Leaves out what is given by another name: one mistake is said once.
fn drop_misspelt(missing: &mut Vec<&ast::Param>, others: &[&ast::Name]) {
    let mut unpaired = others.len();
    for given in others {
        let names = missing.iter().map(|param| param.name.value.as_str());
        if let Some(close) = find_closest(&given.value, names).map(str::to_owned) {
            missing.retain(|param| param.name.value != close);
            unpaired -= 1;
        }
    }
    // With one of each left, the unknown name is the missing one.
    if unpaired == 1 && missing.len() == 1 {
        missing.clear();
    }
}

fn report_missing(step: &Step<'_>, call: Span, called: &Pipeline<'_>, param: &ast::Param) -> Diagnostic {
    let name = &param.name.value;
    let message = format!("`{}` calls `{}` without its parameter `{name}`", step.name(), called.ast.name.value);
    Diagnostic::new(Code::TypeMismatch, message)
        .label(call, format!("`{name}=` is missing"))
        .label(param.name.span, "declared here without a default")
        .help(format!("write `call {} {name}=\"…\"`", called.ast.name.value))
}

fn report_unknown(called: &Pipeline<'_>, given: &ast::Name) -> Diagnostic {
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
        Some(close) => diagnostic.write_near(given.span, close),
        None => diagnostic,
    }
}
