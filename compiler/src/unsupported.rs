//! What the language has and this build cannot run yet: reported (SW005), so that nothing of a spec is silently left out.
//! A construct leaves this list when it is resolved and emitted.

use crate::ast::{Agent, Body, Pipeline, Spec, Step};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::source::{Sources, Span};

/// Reports every use of what cannot run yet.
pub(crate) fn report(spec: &Spec, sources: &Sources, diagnostics: &mut Diagnostics) {
    let mut found: Vec<(Span, &str)> = Vec::new();
    // What nobody uses of the library does no harm.
    let own = |span: Span| !sources.name(span.file).starts_with("std:");
    found.extend(spec.packs.iter().map(|pack| (pack.name.span, "context-pack")));
    found.extend(spec.swarms.iter().map(|swarm| (swarm.name.span, "swarm")));
    spec.agents.iter().filter(|agent| own(agent.name.span)).for_each(|agent| agent_parts(agent, &mut found));
    for pipeline in &spec.pipelines {
        pipeline_parts(pipeline, &mut found);
        let mut open: Vec<&Step> = pipeline.steps.iter().chain(&spec.tasks).collect();
        while let Some(step) = open.pop() {
            step_parts(step, &mut found);
            if let Some(Body::Loop(body)) = &step.body {
                open.extend(&body.steps);
            }
        }
    }
    for (span, what) in found {
        let what = if what.contains(' ') { what.to_owned() } else { format!("`{what}`") };
        diagnostics.push(
            Diagnostic::new(Code::WrongValue, format!("{what} is not supported yet"))
                .label(span, "cannot run yet")
                .help("remove it"),
        );
    }
}

fn agent_parts<'s>(agent: &'s Agent, found: &mut Vec<(Span, &'s str)>) {
    found.extend(agent.files.iter().map(|files| (files.span, "files")));
}

fn pipeline_parts<'s>(pipeline: &'s Pipeline, found: &mut Vec<(Span, &'s str)>) {
    found.extend(pipeline.edges.iter().map(|edges| (edges.span, "edges")));
}

fn step_parts<'s>(step: &'s Step, found: &mut Vec<(Span, &'s str)>) {
    let whole = step.name.span;
    match &step.body {
        Some(Body::Swarm { swarm, .. }) => found.push((swarm.span, "swarm")),
        Some(Body::Gate(gate)) if !gate.asks.is_empty() => found.push((whole, "ask")),
        _ => {}
    }
    found.extend(step.context.iter().map(|context| (context.span, "context")));
    found.extend(step.files.iter().map(|files| (files.span, "files")));
}
