//! The types of the steps and parameters of a model: declared, computed from the values that they read, or text.
//!
//! This module types steps in the order of their needs, and pipelines before their callers, so that it knows the types
//! that a computed value reads. A value of a later round, or in a circle, has the type `any`.

use std::sync::Arc;

use super::lists::{list_counted, list_sizes};
use crate::ast;
use crate::diagnostic::Diagnostics;
use crate::mapped_text::MappedText;
use crate::model::{Body, Model, Pipeline, Step, TemplateText};
use crate::source::Span;
use crate::types::{
    Checker, Field, Kind, Lack, Limits, ListSizes, Lookup, ParamTypes, PipelineTypes, Record, Type, Types, Typing, Use,
    Words, Workflow,
};

/// How deep computed types nest; what goes deeper is any.
const DEEPEST: usize = 32;

/// Types a model. `lookup` finds declared types, and reports names that there are not.
pub(crate) fn infer_types(model: &Model<'_>, lookup: &mut Lookup<'_>) -> Typing {
    let types = Types::new(&model.spec.types, lookup);
    let params: Vec<Type> = model.spec.params.iter().map(|param| types.resolve(&param.kind, lookup)).collect();
    let mut typing = Typing { types, params, pipelines: Vec::new() };
    typing.pipelines.resize_with(model.pipelines.len(), PipelineTypes::default);
    for index in callees_first(&model.pipelines) {
        typing.pipelines[index] = infer_pipeline(model, &model.pipelines[index], &typing, lookup);
    }
    typing
}

/// The pipelines, each after those that it calls unless they call it.
fn callees_first(pipelines: &[Pipeline<'_>]) -> Vec<usize> {
    let called = |pipeline: &Pipeline<'_>| -> Vec<usize> { pipeline.called_pipelines().collect() };
    let mut seen = vec![false; pipelines.len()];
    let mut order = Vec::with_capacity(pipelines.len());
    for start in 0..pipelines.len() {
        if std::mem::replace(&mut seen[start], true) {
            continue;
        }
        // A stack of its own: a chain of calls is as long as the spec makes it, and recursion would follow it.
        let mut open = vec![(start, called(&pipelines[start]))];
        while let Some((index, rest)) = open.last_mut() {
            match rest.pop() {
                Some(next) if !std::mem::replace(&mut seen[next], true) => open.push((next, called(&pipelines[next]))),
                Some(_) => {}
                None => {
                    order.push(*index);
                    open.pop();
                }
            }
        }
    }
    order
}

fn infer_pipeline(
    model: &Model<'_>,
    pipeline: &Pipeline<'_>,
    typing: &Typing,
    lookup: &mut Lookup<'_>,
) -> PipelineTypes {
    let types = &typing.types;
    let own_params: Vec<Type> = pipeline.ast.params.iter().map(|param| types.resolve(&param.kind, lookup)).collect();
    let params = ParamTypes::new(pipeline.ast.params.iter().zip(own_params.iter().cloned()));
    let mut known = PipelineTypes { own_params, params, ..PipelineTypes::default() };
    let mut one_item = Vec::with_capacity(pipeline.steps.len());
    for step in &pipeline.steps {
        let declared = step.ast.output.kind.as_ref().map(|kind| types.resolve(kind, lookup));
        let one = declared.clone().unwrap_or_else(|| infer_body(step, typing, lookup));
        let is_free = declared.is_none() && matches!(step.body, Body::Prompt(_));
        known.steps.push(&step.ast.name, infer_output(step, one.clone(), Type::ANY), step.list.is_some(), is_free);
        if let Body::Call { name, .. } = &step.body {
            known.steps.set_called(&name.value);
        }
        one_item.push(one);
        known.declared.push(declared);
        known.items.push(Type::ANY);
        known.counted.push(Vec::new());
        known.sizes.push(ListSizes::default());
    }
    let whole = Workflow::new(&model.tables, &model.spec.params, typing, pipeline.ast.name.span.file);
    for &index in &pipeline.order.sorted {
        known.counted[index] = list_counted(pipeline, index);
        known.sizes[index] = list_sizes(pipeline, index);
        infer_step_values(&mut known, &whole, index, &pipeline.steps[index], &one_item[index]);
    }
    known.result = pipeline.result.iter().map(|&step| known.steps.output(step).clone()).reduce(Type::or);
    known
}

/// What a step puts out for one item, as far as its body alone tells.
fn infer_body(step: &Step<'_>, typing: &Typing, lookup: &mut Lookup<'_>) -> Type {
    match &step.body {
        Body::Prompt(_) | Body::Run(_) | Body::Script(_) | Body::Stop { .. } | Body::Swarm { .. } => Type::TEXT,
        Body::Call { pipeline, .. } => {
            pipeline.and_then(|pipeline| typing.pipelines[pipeline].result.clone()).unwrap_or(Type::ANY)
        }
        Body::Gate { gate, .. } => infer_decision(step.ast.name.span, gate, &typing.types, lookup),
        // What is computed is known when the types of what it reads are.
        Body::Value(_) | Body::Fields(_) | Body::Loop { .. } | Body::Missing => Type::ANY,
    }
}

/// What a gate puts out: the choice, and what was asked for besides.
fn infer_decision(span: Span, gate: &ast::Gate, types: &Types, lookup: &mut Lookup<'_>) -> Type {
    let place = gate.options.first().map_or(span, |option| option.span);
    let choice = Type::words(gate.options.iter().map(|option| option.value.as_str()), place);
    let choice = Field {
        name: "choice".to_owned(),
        kind: choice,
        span: place,
        limits: Limits::default(),
        description: None,
        unanswered: None,
    };
    let mut asked = types.resolve_fields(&gate.asks, lookup);
    if let Some(choices) = answers_itself(gate).map(Arc::new) {
        // A gate that takes its default leaves them empty.
        for field in asked.iter_mut().filter(|field| field.kind.lack != Lack::ABSENT) {
            field.kind.lack = Lack::ABSENT;
            field.unanswered = Some(Arc::clone(&choices));
        }
    }
    let fields = std::iter::once(choice).chain(asked).collect();
    Type::new(Kind::Record(Arc::new(Record::new(fields, span))))
}

/// The options that a gate takes without a person, and where it declares the first.
fn answers_itself(gate: &ast::Gate) -> Option<Words> {
    let choices = gate.headless.iter().chain(gate.on_timeout.as_ref().map(|timeout| &timeout.choice));
    let choices: Vec<_> = choices.filter(|choice| choice.value != "fail").collect();
    let span = choices.first()?.span;
    Some(Words { words: choices.into_iter().map(|choice| choice.value.clone()).collect(), span })
}

/// The type of a step's output, from its type for one item, and from that of the item.
fn infer_output(step: &Step<'_>, one: Type, item: Type) -> Type {
    match &step.ast.for_each {
        Some(each) if each.with_item => {
            let record = Type::record([("item", item, each.span), ("output", one, each.span)], each.span);
            Type::list(limit_nesting(record))
        }
        Some(_) => Type::list(one),
        None => one,
    }
}

/// Works out the item of a for-each, and what a computed value is; `one` is the type of its output for one item.
fn infer_step_values(known: &mut PipelineTypes, workflow: &Workflow<'_>, index: usize, step: &Step<'_>, one: &Type) {
    // What is wrong is reported by the check, which sees every type.
    let mut ignored = Diagnostics::default();
    if let Some(list) = &step.list
        && let Some(tree) = &list.expression.tree
    {
        let passage = MappedText::from_string(&list.text);
        let env = known.step_env(workflow, index, &step.inputs);
        let item = Checker::new(&env, &passage, Use::List, &mut ignored).infer_items(tree);
        // What is missing in a list is stored as `null`.
        let lack = if item.lack == Lack::NEVER { Lack::NEVER } else { Lack::NULL };
        known.items[index] = limit_nesting(item).with_lack(lack);
        if step.ast.for_each.as_ref().is_some_and(|each| each.with_item) {
            known.steps.set(index, infer_output(step, one.clone(), known.items[index].clone()));
        }
    }
    if known.declared[index].is_some() {
        return;
    }
    let env = known.step_env(workflow, index, &step.inputs);
    let mut value = |prose: &TemplateText| {
        let mut checker = Checker::new(&env, &prose.passage, Use::Text, &mut ignored);
        let when = step.when.as_ref().and_then(|when| when.expression.tree.as_ref());
        when.into_iter().for_each(|when| checker.assume_condition(when));
        let kind = checker.infer_value(&prose.template);
        // `a if b` without `else` is an empty text.
        let kind = if kind.lack.has(Lack::SILENT) { kind.or(Type::STRING) } else { kind };
        kind.only_null()
    };
    let one = match &step.body {
        Body::Value(prose) => value(prose),
        Body::Fields(fields) => {
            let fields = fields.iter().map(|(name, prose)| (name.value.as_str(), value(prose), name.span));
            Type::record(fields, step.ast.name.span)
        }
        _ => return,
    };
    // A text that is `null` is a text as any other.
    let lack = if one.kind.is_text() { Lack::NEVER } else { one.lack };
    let one = limit_nesting(one).with_lack(lack);
    known.steps.set(index, infer_output(step, one, known.items[index].clone()));
}

/// A type that does not nest too deeply.
fn limit_nesting(kind: Type) -> Type {
    if kind.depth() > DEEPEST { Type::ANY } else { kind.into_stored().with_lack(Lack::NEVER) }
}
