//! SW304: a loop without a limit, and an `until` of a pipeline that has one round.

use crate::ast;
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::model::Pipeline;
use crate::source::Span;

/// The rounds that the fix offers.
const OFFERED: u32 = 5;

pub(super) fn check(pipeline: &Pipeline<'_>, diagnostics: &mut Diagnostics) {
    check_until(pipeline, diagnostics);
    for step in &pipeline.steps {
        let Some(ast::Body::Loop(ast::Loop { max: None, steps, .. })) = &step.ast.body else { continue };
        let name = &step.ast.name;
        // One that could not be read has been reported.
        let block = steps.first().map_or(name.span.end, |first| first.name.span.start);
        if diagnostics.has_report_at(Span { start: name.span.end, end: block.max(name.span.end), ..name.span }) {
            continue;
        }
        diagnostics.push(
            Diagnostic::new(Code::UnboundedLoop, format!("loop `{}` has no limit", name.value))
                .label(name.span, "repeats until it succeeds, at any cost")
                .help(format!("limit the rounds: `loop {} max={OFFERED}`", name.value))
                .fix(
                    format!("add `max={OFFERED}`"),
                    Span { start: name.span.end, ..name.span },
                    format!(" max={OFFERED}"),
                ),
        );
    }
}

/// An `until` is asked after a round, and another round only follows where `iterations` allows one.
fn check_until(pipeline: &Pipeline<'_>, diagnostics: &mut Diagnostics) {
    let (name, Some(until)) = (&pipeline.ast.name, pipeline.ast.until.first()) else { return };
    // A misspelt `iterations` is said once.
    if pipeline.ast.rounds.is_some() || diagnostics.has_unknown_node(name.span, None) {
        return;
    }
    let place = until.outer_span();
    let message = format!("pipeline `{}` has an `until` but no `iterations`, so it runs one round", name.value);
    diagnostics.push(
        Diagnostic::new(Code::UnboundedLoop, message)
            .label(place, "checked after the only round; if it does not hold, the pipeline fails")
            .help(format!("limit the rounds: `iterations {OFFERED}`, or `iterations 1` for one round"))
            .unsafe_fix(
                format!("write `iterations {OFFERED}`"),
                Span { start: place.end, ..place },
                format!("; iterations {OFFERED}"),
            ),
    );
}
