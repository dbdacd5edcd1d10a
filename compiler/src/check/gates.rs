//! SW306: a gate has no default, so it waits for ever when no person answers.

use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::model::Pipeline;
use crate::source::Span;

pub(super) fn check(pipeline: &Pipeline<'_>, diagnostics: &mut Diagnostics) {
    for (index, step) in pipeline.steps.iter().enumerate() {
        let Some(gate) = step.body.gate() else { continue };
        if gate.on_timeout.is_some() || gate.headless.is_some() {
            continue;
        }
        let name = &step.ast.name;
        // A misspelt `on-timeout` already has a diagnostic.
        if diagnostics.has_unknown_node(name.span, pipeline.steps.get(index + 1).map(|next| next.ast.name.span)) {
            continue;
        }
        let diagnostic =
            Diagnostic::new(Code::UnattendedGate, format!("gate `{}` waits for ever if no person answers", name.value))
                .label(name.span, "neither `on-timeout` nor `headless`");
        diagnostics.push(match gate.options.last() {
            Some(last) => diagnostic
                .help(format!(
                    "add a default, an option or `fail`: `on-timeout {} after=\"24h\"`; and `headless {}` for unattended runs",
                    last.value, last.value
                ))
                .unsafe_fix(
                    "fail without an answer in a day",
                    Span { start: last.span.end, ..last.span },
                    "; on-timeout fail after=\"24h\"",
                ),
            None => diagnostic.help("add a default: `on-timeout fail after=\"24h\"`"),
        });
    }
}
