//! SW005 and SW205: values that are given where a type is declared, and are not of it: defaults, and arguments of calls.
//!
//! What can only be known once the text is there is left to the run; a plain mismatch of types is not.

use crate::ast::Param;
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::model::{Body, Model, Prose, Step};
use crate::source::Span;
use crate::template::Part;
use crate::types::{Checker, Env, Type, Types, Use, Workflow};

pub(super) fn check(model: &Model<'_>, diagnostics: &mut Diagnostics) {
    let typing = &model.typing;
    parameters(&typing.types, &model.spec.params, &typing.params, diagnostics);
    for (pipeline, known) in model.pipelines.iter().zip(&typing.pipelines) {
        parameters(&typing.types, &pipeline.ast.params, &known.own_params, diagnostics);
        let whole = Workflow::new(model, typing, pipeline.ast.name.span.file);
        for (index, step) in pipeline.steps.iter().enumerate() {
            diagnostics.about(Some(step.ast.name.span));
            if let (Some(kind), Some(default), Some(written)) =
                (&step.declared, &step.ast.output.default, &step.ast.output.kind)
            {
                defaulted(&typing.types, kind, written.span, &default.value, default.span, diagnostics);
            }
            arguments(model, &known.env(&whole, index, step), step, diagnostics);
        }
        diagnostics.about(None);
    }
}

fn parameters(types: &Types, params: &[Param], kinds: &[Type], diagnostics: &mut Diagnostics) {
    for (param, kind) in params.iter().zip(kinds) {
        if let Some(default) = &param.default {
            defaulted(types, kind, param.kind.span, &default.value, default.span, diagnostics);
        }
    }
}

/// What is plainly wrong was reported where it was read.
fn defaulted(types: &Types, kind: &Type, declared: Span, text: &str, span: Span, diagnostics: &mut Diagnostics) {
    if diagnostics.covers(span) {
        return;
    }
    if let Some(wrong) = types.misfit(kind, text) {
        let diagnostic = Diagnostic::new(Code::WrongValue, format!("the default is not of type `{kind}`: {wrong}"))
            .label(span, wrong)
            .label(declared, "the type")
            .help("mend the default, or the type");
        diagnostics.push(diagnostic);
    }
}

/// The arguments of a call against the parameters of what it calls.
fn arguments(model: &Model<'_>, env: &Env<'_>, step: &Step<'_>, diagnostics: &mut Diagnostics) {
    let Body::Call { pipeline: Some(target), args } = &step.body else { return };
    let (types, called) = (&model.typing.types, &model.pipelines[*target]);
    for (name, prose) in args {
        let mut params = called.ast.params.iter().zip(&model.typing.pipelines[*target].own_params);
        let Some((param, kind)) = params.find(|(param, _)| param.name.value == *name) else { continue };
        let given = match says(env, step, prose) {
            Given::Text => types.misfit(kind, prose.passage.text()),
            Given::Value(given) => (!types.accepts(kind, &given)).then(|| format!("it is `{given}`")),
        };
        let Some(wrong) = given else { continue };
        let message = format!("parameter `{name}` of `{}` is `{kind}`, and not what it gets", called.ast.name.value);
        let diagnostic = Diagnostic::new(Code::TypeMismatch, message)
            .label(prose.passage.span(0..prose.passage.text().len()), wrong)
            .label(param.name.span, format!("`{kind}`"))
            .help(format!("give `{name}` a value of its type, or declare another type for it"));
        diagnostics.push(diagnostic);
    }
}

/// What an argument is.
enum Given {
    /// Text as it stands.
    Text,
    /// A value that the run works out.
    Value(Type),
}

fn says(env: &Env<'_>, step: &Step<'_>, prose: &Prose) -> Given {
    if prose.template.parts.iter().all(|part| matches!(part, Part::Text(_))) {
        return Given::Text;
    }
    // What is wrong within it is reported with the other texts.
    let mut ignored = Diagnostics::default();
    let mut checker = Checker::new(env, &prose.passage, Use::Text, &mut ignored);
    let when = step.when.as_ref().and_then(|when| when.expression.tree.as_ref());
    when.into_iter().for_each(|when| checker.assume(when));
    Given::Value(checker.value(&prose.template))
}
