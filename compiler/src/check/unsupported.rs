//! SW706: what the language has and this version cannot run.
//!
//! The plan itself says what that is, in the words with which a run would refuse it. It is found in the plan, so what is
//! wrong in the text hides it: each of these has one message alone.

use swarmc_plan::Plan;

use crate::bounds::place;
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::source::Sources;

pub(crate) fn check(plan: &Plan, sources: &Sources, diagnostics: &mut Diagnostics) {
    for problem in plan.find_unsupported() {
        let diagnostic = Diagnostic::new(Code::CannotRun, problem.message);
        let diagnostic = match place::find_span(&problem.origin, sources) {
            Some(span) => diagnostic.label(span, "cannot be run"),
            None => diagnostic,
        };
        diagnostics.push(diagnostic.help(problem.help));
    }
}
