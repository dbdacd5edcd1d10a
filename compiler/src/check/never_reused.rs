//! SW406 (strict): a command without `reads` in a spec whose other commands can be reused.
//!
//! Nothing is said of a spec without `reads` and `reuse`: it may well never run with `--reuse`, and `plan --reuse` says it
//! there.

use crate::ast;
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::model::{Model, Step};

pub(super) fn check(model: &Model<'_>, diagnostics: &mut Diagnostics) {
    let steps = || model.pipelines.iter().flat_map(|pipeline| &pipeline.steps);
    if !steps().any(|step| is_command(step) && says_reuse(step)) {
        return;
    }
    for step in steps().filter(|step| is_command(step) && !says_reuse(step)) {
        diagnostics.set_home(Some(step.ast.name.span));
        diagnostics.push(
            Diagnostic::new(Code::NeverReused, format!("`run --reuse` always runs `{}`", step.name()))
                .label(step.ast.name.span, "its command may read any file")
                .help("name the files that it reads: `reads \"src/**\"`; or write `reuse #true` if it reads none, `reuse #false` if it must run"),
        );
    }
    diagnostics.set_home(None);
}

fn is_command(step: &Step<'_>) -> bool {
    matches!(step.ast.body, Some(ast::Body::Run(_) | ast::Body::Script(_)))
}

/// Whether the spec says what its result depends on, or that it is never reused.
fn says_reuse(step: &Step<'_>) -> bool {
    !step.ast.reads.is_empty() || step.ast.reuse.is_some()
}
