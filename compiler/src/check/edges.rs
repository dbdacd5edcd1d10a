//! SW005, SW205 and SW303 of edges: who can send and receive, what can be carried, and answers that all wait for.

use std::collections::HashMap;

use swarmc_plan::Response;

use crate::ast;
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::model::{Body, Pipeline, Step, Swarm};
use crate::resolve::circles;
use crate::types::{Kind, Type, Types};

pub(super) fn check(pipeline: &Pipeline<'_>, types: &Types, diagnostics: &mut Diagnostics) {
    let Some(edges) = &pipeline.ast.edges else { return };
    let steps: HashMap<&str, &Step<'_>> = pipeline.steps.iter().map(|step| (step.name(), step)).collect();
    for edge in &edges.list {
        for end in [&edge.from, &edge.to] {
            let Some(step) = steps.get(end.value.as_str()) else { continue };
            if let Some(what) = silent(step) {
                diagnostics.push(
                    Diagnostic::new(Code::WrongValue, format!("`{}` can neither send nor receive", end.value))
                        .label(end.span, format!("{what}, which takes no turn"))
                        .label(step.ast.name.span, "declared here")
                        .help("edges lead from one task with a `prompt` or a `run` to another; take this one out"),
                );
            }
        }
    }
    carried(edges, &pipeline.carries, types, diagnostics);
    answered(edges, diagnostics);
}

pub(super) fn check_swarm(swarm: &Swarm<'_>, types: &Types, diagnostics: &mut Diagnostics) {
    let Some(edges) = &swarm.ast.edges else { return };
    carried(edges, &swarm.carries, types, diagnostics);
    answered(edges, diagnostics);
}

/// What a step is that nobody can talk to.
fn silent(step: &Step<'_>) -> Option<&'static str> {
    match step.body {
        Body::Prompt(_) | Body::Run | Body::Script(_) | Body::Missing => None,
        Body::Value(_) | Body::Fields(_) => Some("a computed value"),
        Body::Stop(_) => Some("a `stop`"),
        Body::Call { .. } => Some("a call"),
        Body::Swarm { .. } => Some("a swarm"),
        Body::Gate(_) => Some("a gate"),
        Body::Loop { .. } => Some("a loop"),
    }
}

/// `payload.structured` is an object.
fn carried(edges: &ast::Edges, carries: &[Option<Type>], types: &Types, diagnostics: &mut Diagnostics) {
    for (edge, kind) in edges.list.iter().zip(carries) {
        let (Some(written), Some(kind)) = (&edge.carries, kind) else { continue };
        if matches!(types.kind(&kind.kind), Kind::Any | Kind::Record(_) | Kind::Map(_)) {
            continue;
        }
        diagnostics.push(
            Diagnostic::new(Code::TypeMismatch, format!("an edge carries records, and `{kind}` is none"))
                .label(written.span, "not a record")
                .label(edge.from.span, "hands it over")
                .help("name a declared type with fields, or leave `carries=` out: every envelope has a message"),
        );
    }
}

/// Required answers in a circle: each waits for the next one. The answer to an edge goes back along it, so `<->` alone
/// is no circle.
fn answered(edges: &ast::Edges, diagnostics: &mut Diagnostics) {
    let required: Vec<&ast::Edge> = edges
        .list
        .iter()
        .filter(|edge| edge.response.value == Response::Required && !edge.both && edge.from.value != edge.to.value)
        .collect();
    let mut index: HashMap<&str, usize> = HashMap::new();
    for end in required.iter().flat_map(|edge| [&edge.from, &edge.to]) {
        let next = index.len();
        index.entry(end.value.as_str()).or_insert(next);
    }
    let mut waits: Vec<Vec<usize>> = vec![Vec::new(); index.len()];
    for edge in &required {
        waits[index[edge.from.value.as_str()]].push(index[edge.to.value.as_str()]);
    }
    for circle in circles(&waits) {
        let on_it: Vec<&&ast::Edge> = circle
            .iter()
            .zip(circle.iter().cycle().skip(1))
            .filter_map(|(from, to)| {
                let way = |edge: &&&ast::Edge| {
                    index[edge.from.value.as_str()] == *from && index[edge.to.value.as_str()] == *to
                };
                required.iter().find(way)
            })
            .collect();
        diagnostics.push(waiting(&on_it));
    }
}

fn waiting(edges: &[&&ast::Edge]) -> Diagnostic {
    const DRAWN: usize = 6;
    let mut way: Vec<String> = edges.iter().take(DRAWN).map(|edge| format!("`{}`", edge.from.value)).collect();
    if edges.len() > DRAWN {
        way.push(format!("{} more", edges.len() - DRAWN));
    }
    way.extend(edges.first().map(|edge| format!("`{}`", edge.from.value)));
    let message = format!("everybody waits for an answer: {}", way.join(" → "));
    let label = |diagnostic: Diagnostic, edge: &&&ast::Edge| {
        let text = format!("`{}` goes on when `{}` has answered", edge.from.value, edge.to.value);
        diagnostic.label(edge.response.span, text)
    };
    let diagnostic = edges.iter().take(DRAWN).fold(Diagnostic::new(Code::Deadlock, message), label);
    diagnostic.help("write `response=optional` on one of them")
}
