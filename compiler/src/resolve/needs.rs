//! What a step waits for: what it says, and what its reads imply.

use swarmc_plan::When;

use crate::ast;
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::model::{Need, Read, Step};
use crate::template::Root;

/// The needs that are written.
pub(super) fn declared(
    written: Vec<(usize, &ast::Dependency)>,
    step: &ast::Step,
    diagnostics: &mut Diagnostics,
) -> Vec<Need> {
    let mut needs: Vec<Need> = Vec::new();
    for (target, dependency) in written {
        let span = dependency.step.span;
        if let Some(first) = needs.iter().find(|need| need.step == target) {
            let message = format!("`{}` depends on `{}` twice", step.name.value, dependency.step.value);
            let diagnostic = Diagnostic::new(Code::Duplicate, message)
                .label(span, "again here")
                .label(first.span, "first here")
                .help("remove one of them; `when=any` covers success and failure");
            diagnostics.push(diagnostic);
            continue;
        }
        let handles = matches!(dependency.when, When::Failure | When::Any);
        needs.push(Need { step: target, when: dependency.when, declared: true, handles, span });
    }
    needs
}

/// Adds the needs that a step's reads imply; `back` says which reads mean the round before.
pub(super) fn imply(steps: &mut [Step<'_>], back: &dyn Fn(usize, usize) -> bool) {
    let defaults: Vec<bool> = steps.iter().map(|step| step.ast.output.default.is_some()).collect();
    for (index, step) in steps.iter_mut().enumerate() {
        step.needs.retain(|need| need.declared);
        let declared = step.needs.len();
        for (position, read) in step.reads.iter().enumerate() {
            let Some(target) = read.step else { continue };
            let Some((when, handles)) = implied(read, defaults[target]) else { continue };
            if back(index, position) || target == index {
                continue;
            }
            match step.needs.iter().position(|need| need.step == target) {
                // What is written overrides what is implied.
                Some(known) if known < declared => {}
                Some(known) => {
                    step.needs[known].when = step.needs[known].when.max(when);
                    step.needs[known].handles |= handles;
                }
                None => step.needs.push(Need { step: target, when, declared: false, handles, span: read.span }),
            }
        }
    }
}

/// How the step that is read must have ended, and whether that handles its failure.
fn implied(read: &Read, has_default: bool) -> Option<(When, bool)> {
    match read.root {
        Root::Output | Root::Input if read.guarded || has_default => Some((When::Always, false)),
        Root::Output | Root::Input => Some((When::Success, false)),
        Root::Status => Some((When::Always, true)),
        Root::Exit | Root::Error => Some((When::Any, true)),
        Root::Previous | Root::Param | Root::Iteration | Root::Run | Root::Task | Root::Stdin => None,
    }
}
