//! SW304: a loop without a limit.

use crate::ast;
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::model::Pipeline;
use crate::source::Span;

/// The rounds that the fix offers.
const OFFERED: u32 = 5;

pub(super) fn check(pipeline: &Pipeline<'_>, diagnostics: &mut Diagnostics) {
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
