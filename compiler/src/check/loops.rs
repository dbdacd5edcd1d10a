//! SW304: a loop without a limit, and an `until` of a pipeline that has one round.

use crate::ast;
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::model::Pipeline;
use crate::source::Span;

/// The rounds that the fix offers.
const OFFERED: u32 = 5;

pub(super) fn check(pipeline: &Pipeline<'_>, diagnostics: &mut Diagnostics) {
    until(pipeline, diagnostics);
    for step in &pipeline.steps {
        let Some(ast::Body::Loop(ast::Loop { max: None, steps, .. })) = &step.ast.body else { continue };
        let name = &step.ast.name;
        // One that could not be read has been reported.
        let block = steps.first().map_or(name.span.end, |first| first.name.span.start);
        if diagnostics.covers(Span { start: name.span.end, end: block.max(name.span.end), ..name.span }) {
            continue;
        }
        diagnostics.push(
            Diagnostic::new(Code::UnboundedLoop, format!("loop `{}` has no limit", name.value))
                .label(name.span, "would go round until it succeeds, whatever that costs")
                .help(format!("say how many rounds at most: `loop {} max={OFFERED}`", name.value))
                .fix(
                    format!("add `max={OFFERED}`"),
                    Span { start: name.span.end, ..name.span },
                    format!(" max={OFFERED}"),
                ),
        );
    }
}

/// An `until` is asked after a round, and another round only follows where `iterations` allows one.
fn until(pipeline: &Pipeline<'_>, diagnostics: &mut Diagnostics) {
    let (name, Some(until)) = (&pipeline.ast.name, pipeline.ast.until.first()) else { return };
    // A misspelt `iterations` is said once.
    if pipeline.ast.rounds.is_some() || diagnostics.misnames(name.span, None) {
        return;
    }
    let place = until.place();
    let message = format!("pipeline `{}` has an `until` and no `iterations`, so one round is all it has", name.value);
    diagnostics.push(
        Diagnostic::new(Code::UnboundedLoop, message)
            .label(place, "asked after the only round, and where it does not hold the pipeline has failed")
            .help(format!("say how many rounds at most: `iterations {OFFERED}`, or `iterations 1` for the one"))
            .unsafe_fix(
                format!("write `iterations {OFFERED}`"),
                Span { start: place.end, ..place },
                format!("; iterations {OFFERED}"),
            ),
    );
}
