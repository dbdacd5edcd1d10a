//! SW308: a step that joins several guarded ones with `all`: one that is not needed skips it.
//!
//! Only where a route exists on which some of them are needed and others are not, and on which the step's own `when`
//! holds. Steps that share a guard, and joins whose own `when` asks for all of them, are right.

use swarmc_plan::When;

use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::flow::Lazy;
use crate::model::{Need, Pipeline, Step};

/// The guarded steps of one join that are looked at.
const COMPARED: usize = 16;

pub(super) fn check<'a>(pipeline: &Pipeline<'a>, flow: &mut Lazy<'_, 'a>, diagnostics: &mut Diagnostics) {
    for (index, step) in pipeline.steps.iter().enumerate() {
        let guarded: Vec<usize> = (0..step.needs.len())
            .filter(|&need| step.is_binding(&step.needs[need]) && is_guarded(pipeline, &step.needs[need]))
            .take(COMPARED)
            .collect();
        if guarded.len() < 2 {
            continue;
        }
        let steps: Vec<usize> = guarded.iter().map(|&need| step.needs[need].step).collect();
        // One that never runs has been reported.
        if flow.get().may_run(index) && flow.get().guards_differ(index, &steps) {
            diagnostics.set_home(Some(step.ast.name.span));
            diagnostics.push(report_guarded_join(pipeline, step, &guarded));
        }
    }
    diagnostics.set_home(None);
}

/// Whether a need is for a step that its own condition may skip.
fn is_guarded(pipeline: &Pipeline<'_>, need: &Need) -> bool {
    let step = &pipeline.steps[need.step];
    let asks = step.when.as_ref().is_some_and(|when| when.expression.constant.is_none());
    asks && matches!(need.when, When::Success | When::Any)
}

fn report_guarded_join(pipeline: &Pipeline<'_>, step: &Step<'_>, guarded: &[usize]) -> Diagnostic {
    let needs: Vec<&Need> = guarded.iter().map(|&need| &step.needs[need]).collect();
    let names: Vec<&str> = needs.iter().map(|need| pipeline.steps[need.step].name()).collect();
    let list = crate::suggest::format_list(names.iter().copied(), "and");
    let message = format!("`{}` is skipped as soon as one of {list} is not needed", step.name());
    let mut diagnostic = Diagnostic::new(Code::GuardedJoin, message).label(needs[0].span, "needs all of them");
    for need in &needs {
        let needed = &pipeline.steps[need.step];
        if let Some(when) = &needed.when {
            let span = when.text.span(0..when.text.as_str().len());
            diagnostic = diagnostic.label(span, format!("`{}` runs when this holds", needed.name()));
        }
    }
    let Some(read) = needs.iter().find(|need| !need.declared) else {
        return diagnostic
            .help("to run after the ones that ran, write `join none-failed`; to run in any case, `when=always`");
    };
    if read.span != needs[0].span {
        diagnostic = diagnostic.label(read.span, "needs it too, as it reads it");
    }
    suggest_default(diagnostic, pipeline, step, read)
}

/// Says how a step goes on without a value that it reads.
pub(super) fn suggest_default(
    diagnostic: Diagnostic,
    pipeline: &Pipeline<'_>,
    step: &Step<'_>,
    need: &Need,
) -> Diagnostic {
    let name = pipeline.steps[need.step].name();
    let help = format!("to go on without it, give a default: `<<output:{name} | default:\"…\">>`");
    let diagnostic = diagnostic.help(help);
    match step.reads.iter().find(|read| read.span == need.span && !read.directive) {
        Some(read) => diagnostic.give_default(read.whole),
        None => diagnostic,
    }
}
