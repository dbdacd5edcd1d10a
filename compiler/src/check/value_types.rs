//! SW005 and SW205: values that are given where a type is declared, and are not of it: defaults, arguments of calls, and
//! computed values.
//!
//! What can only be known once the text is there is left to the run; a plain mismatch of types is not.

use crate::ast::{Name, Param, TypeExpr};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::model::{Body, Model, Pipeline, Read, Step, TemplateText};
use crate::source::Span;
use crate::suggest::did_you_mean;
use crate::template::{self, Part, Root, Statement, Template, same_name};
use crate::types::{Checker, Env, Kind, Lack, Limits, Type, Types, Unfit, Use, Wanted};

/// The codes that the check reports.
pub(super) const CODES: &[Code] = &[Code::WrongValue, Code::TypeMismatch];

pub(super) fn check(model: &Model<'_>, diagnostics: &mut Diagnostics) {
    let typing = &model.typing;
    check_params(&typing.types, &model.spec.params, &typing.params, diagnostics);
    for (pipeline, known) in model.pipelines.iter().zip(&typing.pipelines) {
        check_params(&typing.types, &pipeline.ast.params, &known.own_params, diagnostics);
        let whole = model.workflow(pipeline.ast.name.span.file);
        for (index, step) in pipeline.steps.iter().enumerate() {
            diagnostics.set_home(Some(step.ast.name.span));
            let env = &known.step_env(&whole, index, &step.inputs);
            let place = Place { pipeline, step, env, params: &model.spec.params };
            if step.ast.for_each.is_some() {
                check_list_default(&typing.types, step, diagnostics);
            }
            if let (Some(kind), Some(written)) = (&step.declared, &step.ast.output.kind) {
                check_limit(&typing.types, step, kind, written, diagnostics);
                if let Some(default) = step.ast.output.default.as_ref().filter(|_| step.ast.for_each.is_none()) {
                    let wrong = typing.types.describe_default_misfit(kind, &default.value);
                    report_default(kind, written.span, wrong, default.span, diagnostics);
                }
                check_computed(&place, kind, written, diagnostics);
            }
            check_arguments(model, &place, diagnostics);
        }
        diagnostics.set_home(None);
    }
}

/// Where values are given.
struct Place<'p> {
    pipeline: &'p Pipeline<'p>,
    step: &'p Step<'p>,
    env: &'p Env<'p>,
    /// The parameters of the workflow.
    params: &'p [Param],
}

fn check_params(types: &Types, params: &[Param], kinds: &[Type], diagnostics: &mut Diagnostics) {
    for (param, kind) in params.iter().zip(kinds) {
        if let Some(default) = &param.default {
            let wrong = types.describe_misfit(kind, &Limits::default(), &default.value, "it");
            report_default(kind, param.kind.span, wrong, default.span, diagnostics);
        }
    }
}

/// What is plainly wrong was reported where it was read.
fn report_default(kind: &Type, declared: Span, wrong: Option<String>, span: Span, diagnostics: &mut Diagnostics) {
    if let Some(wrong) = wrong.filter(|_| !diagnostics.has_report_at(span)) {
        let diagnostic = Diagnostic::new(Code::WrongValue, format!("the default is not of type `{kind}`: {wrong}"))
            .label(span, wrong)
            .label(declared, "the type")
            .help("mend the default, or the type");
        diagnostics.push(diagnostic);
    }
}

/// The default of a `for-each` stands for the outputs of all items.
fn check_list_default(types: &Types, step: &Step<'_>, diagnostics: &mut Diagnostics) {
    let Some(default) = &step.ast.output.default else { return };
    let kind = Type::list(step.declared.clone().unwrap_or(Type::ANY));
    if let Some(wrong) = types.describe_default_misfit(&kind, &default.value) {
        // Where no type is written, no item is wrong.
        let said = if step.declared.is_some() { format!("its list, `{kind}`") } else { "its list".to_owned() };
        let message = format!("the default of a `for-each` stands for {said}: {wrong}");
        let diagnostic = Diagnostic::new(Code::WrongValue, message)
            .label(default.span, wrong)
            .help("write a list, `default=\"[]\"`; of items that fail, `for-each … join=settled` leaves out those");
        diagnostics.push(diagnostic);
    }
}

/// `output … max=` against the values that the type has: each of them must fit.
fn check_limit(types: &Types, step: &Step<'_>, kind: &Type, written: &TypeExpr, diagnostics: &mut Diagnostics) {
    let max = step.ast.output.max;
    // As compact JSON, which is what is kept.
    let longest = match types.underlying_kind(&kind.kind) {
        Kind::Bool => Some("false".to_owned()),
        Kind::Enum(words) => words.words.iter().max_by_key(|word| word.len()).map(|word| format!("\"{word}\"")),
        Kind::List(_) => Some("[]".to_owned()),
        Kind::Map(_) | Kind::Record(_) => Some("{}".to_owned()),
        _ => None,
    };
    if let Some(value) = longest.filter(|value| step.ast.output.limited && value.len() as u64 > max) {
        let message = format!("`{}` keeps {max} bytes, and the value `{value}` has {}", step.name(), value.len());
        let diagnostic = Diagnostic::new(Code::WrongValue, message)
            .label(written.span, format!("`{kind}`"))
            .help(format!("write `max=\"{}B\"` or more, or leave `max=` out", value.len()));
        diagnostics.push(diagnostic);
    }
}

/// The arguments of a call against the parameters of what it calls.
fn check_arguments(model: &Model<'_>, place: &Place<'_>, diagnostics: &mut Diagnostics) {
    let Body::Call { name: called, pipeline: Some(target), args } = &place.step.body else { return };
    for (Name { value: name, .. }, prose) in args {
        let mut params = model.pipelines[*target].ast.params.iter().zip(&model.typing.pipelines[*target].own_params);
        let Some((param, kind)) = params.find(|(param, _)| param.name.value == *name) else { continue };
        let nullable = param.kind.optional || param.default.is_some();
        let wanted = Wanted { kind, limits: &Limits::default(), any_as_text: true, nullable, part: false };
        let Some(unfit) = find_misfit(place, wanted, prose) else { continue };
        let message = format!("parameter `{name}` of `{}` is `{kind}`, and its value does not fit", called.value);
        let help = format!("give `{name}` a value of its type, or declare another type for it");
        diagnostics.push(report_misfit(place, wanted, prose, &unfit, message, (param.name.span, help)));
    }
}

/// A computed value against the type of the output.
fn check_computed(place: &Place<'_>, kind: &Type, written: &TypeExpr, diagnostics: &mut Diagnostics) {
    let name = place.step.name();
    match &place.step.body {
        Body::Value(prose) => {
            let nullable = kind.lack != Lack::NEVER;
            let wanted = Wanted { kind, limits: &Limits::default(), any_as_text: false, nullable, part: false };
            if let Some(unfit) = find_misfit(place, wanted, prose) {
                let message = format!("the output of `{name}` is `{kind}`, and the computed value does not fit");
                let help = "compute a value of this type, or declare another one".to_owned();
                diagnostics.push(report_misfit(place, wanted, prose, &unfit, message, (written.span, help)));
            }
        }
        Body::Fields(fields) => computed_fields(place, kind, written, fields, diagnostics),
        _ => {}
    }
}

fn computed_fields(
    place: &Place<'_>,
    kind: &Type,
    written: &TypeExpr,
    fields: &[(&Name, TemplateText)],
    diagnostics: &mut Diagnostics,
) {
    let name = place.step.name();
    let none = Limits::default();
    let record = match place.env.whole.types.underlying_kind(&kind.kind) {
        Kind::Record(record) => Some(record),
        Kind::Map(_) => None,
        Kind::Any | Kind::None => return,
        _ => {
            let message = format!("the output of `{name}` is `{kind}`, but its `value` has fields");
            let at = fields.first().map_or(place.step.ast.name.span, |(field, _)| field.span);
            let diagnostic = Diagnostic::new(Code::TypeMismatch, message)
                .label(at, "a field")
                .label(written.span, format!("`{kind}`"))
                .help("write `value \"TEXT\"`, or declare a type with these fields");
            return diagnostics.push(diagnostic);
        }
    };
    for (Name { value: field, span }, prose) in fields {
        let (one, limits) = match (record, place.env.whole.types.underlying_kind(&kind.kind)) {
            (Some(record), _) => match record.fields.iter().find(|known| known.name == *field) {
                Some(known) => (&known.kind, &known.limits),
                None => {
                    let known: Vec<&str> = record.fields.iter().map(|field| field.name.as_str()).collect();
                    let (close, help) = did_you_mean(field, &known, "its fields are ");
                    let message = format!("the output of `{name}` is `{kind}`, which has no field `{field}`");
                    let diagnostic = Diagnostic::new(Code::TypeMismatch, message)
                        .label(*span, "not one of its fields")
                        .label(written.span, format!("`{kind}`"))
                        .help_maybe(help);
                    diagnostics.push(match close {
                        Some(close) => diagnostic.write_near(*span, close),
                        None => diagnostic,
                    });
                    continue;
                }
            },
            (None, Kind::Map(item)) => (&**item, &none),
            (None, _) => continue,
        };
        let nullable = one.lack != Lack::NEVER;
        let wanted = Wanted { kind: one, limits, any_as_text: false, nullable, part: false };
        if let Some(unfit) = find_misfit(place, wanted, prose) {
            let message = format!("the field `{field}` of `{name}` is `{one}`, and the computed value does not fit");
            let declared = record.and_then(|record| record.fields.iter().find(|known| known.name == *field));
            let declared = declared.map_or(written.span, |field| field.span);
            let help = "compute a value of this type, or declare another one".to_owned();
            diagnostics.push(report_misfit(place, wanted, prose, &unfit, message, (declared, help)));
        }
    }
    let computed = |name: &str| fields.iter().any(|(field, _)| field.value == name);
    // The field that is nearly called so has been reported as unknown.
    let misspelt =
        |name: &str| fields.iter().any(|(field, _)| crate::suggest::find_closest(&field.value, [name]).is_some());
    let missing = record.into_iter().flat_map(|record| &record.fields);
    for field in missing.filter(|field| field.kind.lack == Lack::NEVER && !computed(&field.name)) {
        if misspelt(&field.name) {
            continue;
        }
        let message = format!("the output of `{name}` is `{kind}`, but its `value` lacks the field `{}`", field.name);
        let diagnostic = Diagnostic::new(Code::TypeMismatch, message)
            .label(place.step.ast.name.span, format!("`{}` is missing", field.name))
            .label(field.span, "declared here")
            .help(format!("write `{} \"…\"` in its `value`, or make the field optional", field.name));
        diagnostics.push(diagnostic);
    }
}

/// The report of what does not fit; `asked` is where the type is declared, and the help.
fn report_misfit(
    place: &Place<'_>,
    wanted: Wanted<'_>,
    prose: &TemplateText,
    unfit: &Unfit,
    message: String,
    (declared, help): (Span, String),
) -> Diagnostic {
    let kind = wanted.kind;
    let diagnostic = Diagnostic::new(Code::TypeMismatch, message)
        .label(prose.passage.span(unfit.range.clone()), unfit.said.clone())
        .label(declared, format!("`{kind}`"));
    let param = unfit.declared.as_ref().filter(|origin| origin.root == Root::Param && origin.whole);
    if let Some(param) = param.and_then(|origin| find_param(place, origin.name.as_deref()?)) {
        let name = &param.name.value;
        let written = match &kind.kind {
            Kind::Record(_) | Kind::Enum(_) => "NAME".to_owned(),
            _ => format_type(kind),
        };
        return diagnostic
            .label(param.name.span, "declared as a text")
            .help(format!("declare it with this type: `param {name} type={written}`"));
    }
    let Some(producer) = unfit.untyped.as_deref().and_then(|step| find_producer(place, step)) else {
        return diagnostic.help(help);
    };
    let name = producer.name();
    let help = format!("give the output of `{name}` this type: `output {}`", format_type(kind));
    diagnostic.label(producer.ast.name.span, "puts out text").help(help)
}

/// A type as a declaration says it.
fn format_type(kind: &Type) -> String {
    let written = kind.to_string();
    let plain = written.trim_end_matches('?');
    match &kind.kind {
        Kind::Record(_) => "{ FIELD TYPE }".to_owned(),
        Kind::List(_) | Kind::Map(_) => format!("\"{plain}\""),
        _ => plain.to_owned(),
    }
}

/// The parameter of this name, of the pipeline or of the workflow.
fn find_param<'p>(place: &Place<'p>, name: &str) -> Option<&'p Param> {
    let mut known = place.pipeline.ast.params.iter().chain(place.params);
    known.find(|param| same_name(&param.name.value, name))
}

/// What does not fit. What is wrong within it is reported with the other texts.
fn find_misfit(place: &Place<'_>, wanted: Wanted<'_>, prose: &TemplateText) -> Option<Unfit> {
    let mut ignored = Diagnostics::default();
    let mut checker = Checker::new(place.env, &prose.passage, Use::Text, &mut ignored);
    let when = place.step.when.as_ref().and_then(|when| when.expression.tree.as_ref());
    when.into_iter().for_each(|when| checker.assume_condition(when));
    let unfit = checker.find_unfit(wanted, &prose.template)?;
    if let Some(origin) = &unfit.declared {
        // The `when` of the step may have asked what the text says.
        let same = |name: Option<&str>| match (name, origin.name.as_deref()) {
            (Some(one), Some(other)) => same_name(one, other),
            (one, other) => one == other,
        };
        // The words of a list that is written out are known.
        let of_list = place.step.list.as_ref().and_then(|list| list.expression.tree.as_ref());
        if origin.root == Root::Item && of_list.is_none_or(|list| list.as_path().is_none()) {
            return None;
        }
        let asked = |read: &Read| read.in_when && read.root == origin.root && same(read.name.as_deref());
        return (!place.step.reads.iter().any(asked)).then_some(unfit);
    }
    // What a text says that the spec put together is known when it is there.
    match &unfit.untyped {
        Some(step) => find_producer(place, step).is_some().then_some(unfit),
        None => Some(unfit),
    }
}

/// How many steps that hand on a text are followed: each is looked up among all steps.
const MOST_HANDED_ON: usize = 10;

/// The step of this name, or behind the port of this name, if a program or an agent writes its text; a `value` that hands
/// on the text of another step has the text of that.
fn find_producer<'p>(place: &Place<'p>, name: &str) -> Option<&'p Step<'p>> {
    let steps = &place.pipeline.steps;
    let find = |name: &str| steps.iter().find(|step| same_name(step.name(), name));
    let port = place.step.inputs.iter().find(|(port, _)| same_name(port, name)).map(|(_, step)| *step);
    let mut step = find(name).or_else(|| steps.get(port?))?;
    for _ in 0..MOST_HANDED_ON {
        match &step.body {
            Body::Value(prose) if step.ast.output.kind.is_none() => step = find(handed_on(&prose.template)?)?,
            _ => break,
        }
    }
    let writes_text = step.kind().is_some_and(swarmc_plan::StepKind::takes_turn) && step.ast.output.kind.is_none();
    writes_text.then_some(step)
}

/// The step whose output is all that there is of a text.
fn handed_on(template: &Template) -> Option<&str> {
    match (template.parts.as_slice(), template.logic.as_slice()) {
        ([Part::Directive(directive)], _) if directive.filters.is_empty() && directive.fields.is_empty() => {
            let name = directive.name.as_ref()?;
            (directive.kind == template::Kind::Read(Root::Output)).then_some(name.value.as_str())
        }
        ([Part::Logic(_)], [Statement::Emit(expr)]) => {
            let path = expr.as_path().filter(|path| path.root == Root::Output && path.fields().is_empty())?;
            path.name()
        }
        _ => None,
    }
}
