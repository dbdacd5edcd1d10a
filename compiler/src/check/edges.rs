//! SW005 and SW205 of edges: which steps and members can send and receive, and which types an edge can carry.
//!
//! In: the edges of a pipeline or a swarm; both ends of each edge exist. Out: diagnostics.

use std::collections::HashMap;

use swarmc_plan::{EdgeKind, Response, StepKind};

use crate::ast;
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::model::{Pipeline, Step, Swarm};
use crate::template::Root;
use crate::types::{Kind, Type, Types};

/// The codes that the check reports.
pub(super) const CODES: &[Code] = &[Code::WrongValue, Code::TypeMismatch];

pub(super) fn check(pipeline: &Pipeline<'_>, types: &Types, diagnostics: &mut Diagnostics) {
    let Some(edges) = &pipeline.ast.edges else { return };
    let steps: HashMap<&str, &Step<'_>> = pipeline.steps.iter().map(|step| (step.name(), step)).collect();
    for edge in &edges.list {
        for end in [&edge.from, &edge.to] {
            let Some(step) = steps.get(end.value.as_str()) else { continue };
            if let Some(what) = silent_kind(step) {
                diagnostics.push(
                    Diagnostic::new(Code::WrongValue, format!("`{}` can neither send nor receive", end.value))
                        .label(end.span, format!("{what}, which takes no turn"))
                        .label(step.ast.name.span, "declared here")
                        .help("edges lead from one task with a `prompt` or a `run` to another; take this one out"),
                );
            }
        }
    }
    for edge in edges.list.iter().filter(|edge| edge.kind != EdgeKind::Spawn) {
        let ends = edge.both.then_some(&edge.from).into_iter().chain([&edge.to]);
        for end in ends {
            let Some(step) = steps.get(end.value.as_str()).filter(|step| step.list.is_some()) else { continue };
            diagnostics.push(
                Diagnostic::new(
                    Code::WrongValue,
                    format!("`{}` uses `for-each`, so it cannot receive messages", end.value),
                )
                .label(end.span, "not one task")
                .label(step.ast.name.span, "with `for-each`")
                .help("take the edge out, or the `for-each`"),
            );
        }
    }
    for edge in edges.list.iter().filter(|edge| !edge.both && edge.response.value != Response::None) {
        let Some(step) = steps.get(edge.from.value.as_str()).filter(|step| step.list.is_some()) else { continue };
        diagnostics.push(
            Diagnostic::new(
                Code::WrongValue,
                format!("`{}` uses `for-each`, so it cannot receive answers", step.name()),
            )
            .label(edge.response.span, "answers are expected")
            .label(step.ast.name.span, "with `for-each`")
            .help("take `response=` out, or the `for-each`"),
        );
    }
    for edge in edges.list.iter().filter(|edge| edge.response.value == Response::Required) {
        let ends = edge.both.then_some(&edge.from).into_iter().chain([&edge.to]);
        let deaf = ends.filter_map(|end| Some((end, steps.get(end.value.as_str()).filter(|step| !can_receive(step))?)));
        if edge.kind == EdgeKind::Signal {
            diagnostics.push(
                Diagnostic::new(
                    Code::WrongValue,
                    "a signal gives its receiver no turn, so it cannot require an answer",
                )
                .label(edge.response.span, "with `kind=signal`")
                .help("write `response=optional`, or take `kind=signal` out"),
            );
            continue;
        }
        for (end, step) in deaf {
            diagnostics.push(
                Diagnostic::new(
                    Code::WrongValue,
                    format!("`{}` has to answer, but does not read its inbox", end.value),
                )
                .label(end.span, "an envelope gives it no turn")
                .label(step.ast.name.span, "declared here")
                .help("give it `stdin \"<<inbox>>\"`, or write `response=optional`"),
            );
        }
    }
    for edge in edges.list.iter().filter(|edge| edge.kind == EdgeKind::Spawn) {
        if edge.both {
            diagnostics.push(
                Diagnostic::new(Code::WrongValue, "a spawn leads one way only")
                    .label(edge.span, "`<->` with `kind=spawn`")
                    .help(format!(
                        "write `{from} -> {to} kind=spawn`, and `{from} <-> {to}` for later handoffs",
                        from = edge.from.value,
                        to = edge.to.value
                    )),
            );
        }
        let ends = [&edge.from, &edge.to].map(|end| steps.get(end.value.as_str()).filter(|step| step.agent.is_none()));
        // A step that takes no turn has been reported above.
        for step in ends.into_iter().flatten().filter(|step| silent_kind(step).is_none()) {
            diagnostics.push(
                Diagnostic::new(
                    Code::WrongValue,
                    format!("`{}` has no agent, and only agents can spawn or be spawned", step.name()),
                )
                .label(step.ast.name.span, "a command")
                .label(edge.span, "`kind=spawn`")
                .help("give it a `prompt`, or take the edge out"),
            );
        }
        let each = steps.get(edge.to.value.as_str()).filter(|step| step.list.is_some());
        if let Some(step) = each {
            diagnostics.push(
                Diagnostic::new(
                    Code::WrongValue,
                    format!("`{}` uses `for-each`, so it cannot be spawned", step.name()),
                )
                .label(step.ast.name.span, "with `for-each`")
                .label(edge.span, "`kind=spawn`")
                .help("take the edge out, or the `for-each`"),
            );
        }
    }
    check_payloads(edges, &pipeline.carries, types, diagnostics);
}

pub(super) fn check_swarm(swarm: &Swarm<'_>, types: &Types, diagnostics: &mut Diagnostics) {
    let Some(edges) = &swarm.ast.edges else { return };
    for edge in edges.list.iter().filter(|edge| edge.kind == EdgeKind::Spawn) {
        diagnostics.push(
            Diagnostic::new(Code::WrongValue, "members of a swarm are there from the start")
                .label(edge.span, "`kind=spawn` is for tasks of a pipeline")
                .help("take it out; `spawn` in the swarm says who may spawn further agents"),
        );
    }
    check_payloads(edges, &swarm.carries, types, diagnostics);
}

/// The kind of a step that takes no messages; none where the step takes them.
fn silent_kind(step: &Step<'_>) -> Option<&'static str> {
    step.kind().filter(|kind| !kind.takes_turn()).map(StepKind::noun)
}

/// Whether an envelope gives a step a turn; steps that take none have a diagnostic of their own.
fn can_receive(step: &Step<'_>) -> bool {
    step.kind() != Some(StepKind::Run) || step.files.is_some() || step.reads.iter().any(|read| read.root == Root::Inbox)
}

/// `payload.structured` is an object.
fn check_payloads(edges: &ast::Edges, carries: &[Option<Type>], types: &Types, diagnostics: &mut Diagnostics) {
    for (edge, kind) in edges.list.iter().zip(carries) {
        let (Some(written), Some(kind)) = (&edge.carries, kind) else { continue };
        if matches!(types.underlying_kind(&kind.kind), Kind::Any | Kind::Record(_) | Kind::Map(_)) {
            continue;
        }
        diagnostics.push(
            Diagnostic::new(Code::TypeMismatch, format!("an edge carries records, but `{kind}` is not one"))
                .label(written.span, "not a record")
                .label(edge.from.span, "the sender")
                .help("name a declared type with fields, or leave `carries=` out: every envelope has a message"),
        );
    }
}
