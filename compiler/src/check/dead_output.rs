//! SW212 (strict): a typed output that nothing reads.

use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::model::Pipeline;
use crate::template::Root;

pub(super) fn check(pipeline: &Pipeline<'_>, diagnostics: &mut Diagnostics) {
    let mut read = vec![false; pipeline.steps.len()];
    let of_loops = pipeline.steps.iter().flat_map(|step| step.body.until_reads());
    let reads = pipeline.steps.iter().flat_map(|step| &step.reads).chain(&pipeline.until_reads).chain(of_loops);
    for found in reads {
        if let (Root::Output | Root::Input | Root::Previous, Some(step)) = (found.root, found.step()) {
            read[step] = true;
        }
    }
    pipeline.result.iter().for_each(|&step| read[step] = true);
    // Packs, files and messages hand it on.
    let awaited = pipeline.steps.iter().flat_map(|step| &step.awaits);
    awaited.for_each(|awaited| read[awaited.step] = true);
    for (step, _) in pipeline.steps.iter().zip(read).filter(|(_, read)| !read) {
        let Some(kind) = &step.ast.output.kind else { continue };
        diagnostics.set_home(Some(step.ast.name.span));
        diagnostics.push(
            Diagnostic::new(Code::DeadOutput, format!("nothing reads the typed output of `{}`", step.name()))
                .label(kind.span, "no step reads it")
                .help(format!(
                    "read it, `<<output:{}>>`, list the step in `result`, or take the type out, which costs the agent work",
                    step.name()
                )),
        );
    }
    diagnostics.set_home(None);
}
