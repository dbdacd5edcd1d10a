//! SW305 (strict): a failure that ends the run as failed, although a step after it is written for it.
//!
//! A default or a guard for what a step puts out lets its reader run when the step failed, and does not handle the
//! failure: the run goes on, and exits as failed all the same. Where the step cannot be skipped, nothing else is meant.

use crate::ast::OnFailure;
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::flow::{Lazy, can_fail};
use crate::model::{Pipeline, Read, Step};
use crate::template::Root;

pub(super) fn check(pipeline: &Pipeline<'_>, flow: &mut Lazy<'_, '_>, diagnostics: &mut Diagnostics) {
    let mut handled: Vec<bool> = pipeline.steps.iter().map(is_forgiven).collect();
    let of_loops = pipeline.steps.iter().flat_map(|step| step.body.until_reads());
    for read in pipeline.until_reads.iter().chain(of_loops) {
        if let Some(step) = read.step().filter(|_| read.root.handles_failure()) {
            handled[step] = true;
        }
    }
    for need in pipeline.steps.iter().flat_map(|step| &step.needs).filter(|need| need.handles) {
        handled[need.step] = true;
    }
    for step in &pipeline.steps {
        for read in &step.reads {
            let Some(target) = read.step().filter(|_| handles_missing(read)) else { continue };
            let producer = &pipeline.steps[target];
            // A command keeps its text, so that a guard is for its being skipped.
            let lost = !producer.keeps_output() && producer.within == step.within;
            if lost && !handled[target] && !flow.get().may_be_skipped(target) {
                handled[target] = true;
                diagnostics.set_home(Some(step.ast.name.span));
                diagnostics.push(report_unhandled(step, producer, read));
            }
        }
    }
    diagnostics.set_home(None);
}

fn is_forgiven(step: &Step<'_>) -> bool {
    !can_fail(step) || step.ast.output.default.is_some() || step.ast.on_failure != OnFailure::Fail
}

/// Whether a read says what holds where the whole value is missing.
fn handles_missing(read: &Read) -> bool {
    matches!(read.root, Root::Output | Root::Input) && read.guards_step() && read.fields.is_empty()
}

fn report_unhandled(step: &Step<'_>, producer: &Step<'_>, read: &Read) -> Diagnostic {
    let (reader, name) = (step.name(), producer.name());
    Diagnostic::new(
        Code::FailureUnhandled,
        format!("when `{name}` fails the run fails, although `{reader}` goes on without it"),
    )
    .label(producer.ast.name.span, "nothing handles its failure")
    .label(read.span, "handles a missing output")
    .help(format!(
        "say that the failure is handled: `depends-on {name} when=any` in `{reader}`, or `output default=\"…\"` or `on-failure skip` in `{name}`"
    ))
}
