//! SW203, SW204, SW205, SW206 and SW214: values that are read as something they are not.

use super::given_values::list_values;
use crate::ast::Name;
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::mapped_text::MappedText;
use crate::model::{Body, Condition, Files, Model, Pipeline, Step, TemplateText, Variable};
use crate::template::{Expr, Part, Template, same_name};
use crate::types::{Checker, Env, Kind, PipelineTypes, Type, Use};

/// The codes that the check reports.
pub(super) const CODES: &[Code] = &[
    Code::UnknownField,
    Code::OptionalFieldUnguarded,
    Code::TypeMismatch,
    Code::UntypedFieldAccess,
    Code::TemplateError,
    Code::FreeTextCompared,
];

pub(super) fn check(model: &Model<'_>, diagnostics: &mut Diagnostics) {
    for (pipeline, known) in model.pipelines.iter().zip(&model.typing.pipelines) {
        let whole = model.workflow(pipeline.ast.name.span.file);
        for (index, step) in pipeline.steps.iter().enumerate() {
            diagnostics.set_home(Some(step.ast.name.span));
            check_step(model, &known.step_env(&whole, index, &step.inputs), step, diagnostics);
        }
        diagnostics.set_home(None);
        let env = known.until_env(&whole);
        pipeline.until.iter().for_each(|until| check_condition(&env, until, diagnostics));
        check_results(pipeline, known, diagnostics);
    }
    let nothing = PipelineTypes::default();
    for swarm in &model.swarms {
        let mut check_outside = |name: &Name, prose: &TemplateText| {
            diagnostics.set_home(Some(name.span));
            check_text(&nothing.until_env(&model.workflow(name.span.file)), prose, None, diagnostics);
        };
        swarm.goal.iter().for_each(|goal| check_outside(&swarm.ast.name, goal));
        for (written, member) in swarm.ast.members.iter().zip(&swarm.members) {
            member.task.iter().for_each(|task| check_outside(&written.name, task));
        }
        for agent in swarm.list_players().into_iter().map(|agent| &model.agents[agent]) {
            agent.template_texts().for_each(|prose| check_outside(&agent.ast.name, prose));
        }
    }
    for pack in &model.packs {
        diagnostics.set_home(Some(pack.ast.name.span));
        let env = nothing.until_env(&model.workflow(pack.ast.name.span.file));
        pack.template_texts().for_each(|prose| check_text(&env, prose, None, diagnostics));
    }
    diagnostics.set_home(None);
}

fn check_step(model: &Model<'_>, env: &Env<'_>, step: &Step<'_>, diagnostics: &mut Diagnostics) {
    let when = step.when.as_ref().and_then(|when| when.expression.tree.as_ref());
    step.when.iter().for_each(|when| check_condition(env, when, diagnostics));
    if let Some(list) = &step.list
        && let Some(tree) = &list.expression.tree
    {
        let passage = MappedText::from_string(&list.text);
        let mut checker = Checker::new(env, &passage, Use::List, diagnostics);
        when.into_iter().for_each(|when| checker.assume_condition(when));
        checker.infer_items(tree);
    }
    if let Body::Loop { until, .. } = &step.body {
        until.iter().for_each(|until| check_condition(env, until, diagnostics));
    }
    let of_env = step.env.iter().filter_map(|variable| match variable {
        Variable::Set(_, prose) => Some(prose),
        Variable::Pass(_) | Variable::Secret(_) => None,
    });
    let of_files = step.files.iter().flat_map(Files::template_texts);
    let values = list_values(model, step);
    for prose in step.body.template_texts() {
        let nullable = values.iter().any(|(value, nullable)| *nullable && std::ptr::eq(*value, prose));
        check_value(env, prose, (when, nullable), diagnostics);
        if let Body::Value(_) | Body::Fields(_) = step.body {
            Checker::new(env, &prose.passage, Use::Text, diagnostics).check_stored(&prose.template);
        }
    }
    for prose in step.stdin.iter().chain(of_files).chain(of_env) {
        check_text(env, prose, when, diagnostics);
    }
    if let Some(agent) = step.agent.map(|agent| &model.agents[agent]) {
        // What an imported agent says is read in its own module.
        let whole = model.workflow(agent.ast.name.span.file);
        let env = Env { whole, item: env.item.clone(), ..*env };
        agent.template_texts().for_each(|prose| check_text(&env, prose, when, diagnostics));
    }
}

fn check_condition(env: &Env<'_>, condition: &Condition, diagnostics: &mut Diagnostics) {
    if let Some(tree) = &condition.expression.tree {
        let passage = MappedText::from_string(&condition.text);
        Checker::new(env, &passage, Use::Condition, diagnostics).check_condition(tree);
    }
}

fn check_text(env: &Env<'_>, prose: &TemplateText, when: Option<&Expr>, diagnostics: &mut Diagnostics) {
    check_value(env, prose, (when, false), diagnostics);
}

/// Checks a text that may be a value, and `null`.
fn check_value(
    env: &Env<'_>,
    prose: &TemplateText,
    (when, nullable): (Option<&Expr>, bool),
    diagnostics: &mut Diagnostics,
) {
    if !says_something(&prose.template) {
        return;
    }
    let mut checker = Checker::new(env, &prose.passage, Use::Text, diagnostics);
    when.into_iter().for_each(|when| checker.assume_condition(when));
    match nullable {
        true => checker.infer_nullable(&prose.template),
        false => checker.infer_template(&prose.template),
    }
}

/// Whether a text holds anything whose type matters.
fn says_something(template: &Template) -> bool {
    template.parts.iter().any(|part| match part {
        Part::Logic(_) => true,
        Part::Directive(directive) => !directive.fields.is_empty() || !directive.filters.is_empty(),
        Part::Text(_) | Part::Escape => false,
    })
}

/// All steps of a `result` have one type.
fn check_results(pipeline: &Pipeline<'_>, known: &PipelineTypes, diagnostics: &mut Diagnostics) {
    let Some((&first, rest)) = pipeline.result.split_first() else { return };
    let one = known.steps.output(first);
    let written = |position: usize| pipeline.ast.result.get(position).map(|name| name.span);
    for (position, &step) in rest.iter().enumerate() {
        let other = known.steps.output(step);
        if !one.is_disjoint(other) {
            continue;
        }
        let (first, step) = (&pipeline.steps[first], &pipeline.steps[step]);
        let message = match find_difference(one, other) {
            Some((field, one, other)) => format!(
                "field `{field}` of the result is `{one}` by `{}` and `{other}` by `{}`",
                first.name(),
                step.name()
            ),
            None => format!("the result is `{one}` by `{}` and `{other}` by `{}`", first.name(), step.name()),
        };
        let help = match one.to_string() == other.to_string() {
            true => {
                "all steps of a `result` have one type: declare it once, `type NAME { … }`, and write `output NAME`"
            }
            false => "all steps of a `result` have one type: give them the same `output`",
        };
        let diagnostic = Diagnostic::new(Code::TypeMismatch, message)
            .label(written(position + 1).unwrap_or(step.ast.name.span), format!("`{other}`"))
            .label(written(0).unwrap_or(first.ast.name.span), format!("`{one}`"))
            .help(help);
        diagnostics.push(diagnostic);
        return;
    }
}

/// The first field that two records have of different types: those of their names alone look alike.
fn find_difference<'t>(one: &'t Type, other: &'t Type) -> Option<(&'t str, &'t Type, &'t Type)> {
    let (Kind::Record(one), Kind::Record(other)) = (&one.kind, &other.kind) else { return None };
    let pairs = one.fields.iter().filter_map(|field| {
        let same = other.fields.iter().find(|known| same_name(&known.name, &field.name))?;
        Some((field.name.as_str(), &field.kind, &same.kind))
    });
    let mut different = pairs.filter(|(_, one, other)| one.to_string() != other.to_string());
    different.next()
}
