//! The checks, in order. Each reads the model and reports; none changes it.

mod answers;
mod command;
mod cycle;
mod made;
mod maybe_missing;
mod never_runs;
mod secrets;
mod types;
mod unused;
pub(crate) mod upstream;

use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::model::Model;
use crate::source::{FileId, Sources, Span};

/// Runs every check.
pub(crate) fn check(model: &Model<'_>, sources: &Sources, diagnostics: &mut Diagnostics) {
    // What stands in a command is read by nothing, and yet not forgotten: `unused` comes after it.
    model.pipelines.iter().for_each(|pipeline| command::check(pipeline, diagnostics));
    command::check_providers(model, diagnostics);
    unused::check(model, diagnostics);
    types::check(model, diagnostics);
    for pipeline in &model.pipelines {
        upstream::check(pipeline, diagnostics);
        cycle::check(pipeline, diagnostics);
        // Where steps wait for each other, nothing can be said of what runs before what.
        if pipeline.order.cycles.is_empty() {
            maybe_missing::check(model, pipeline, diagnostics);
            never_runs::check(pipeline, diagnostics);
            made::check(pipeline, diagnostics);
        }
    }
    if model.pipelines.is_empty() && !diagnostics.has_errors() {
        let file = FileId::new(0);
        diagnostics.push(
            Diagnostic::new(Code::WrongValue, "the spec has no pipeline, so there is nothing to run")
                .label(Span::new(file, 0, 0), "no pipeline")
                .help("write `pipeline NAME { task NAME { … } }`"),
        );
    }
    answers::check(model, diagnostics);
    maybe_missing::check_providers(model, diagnostics);
    secrets::check(sources, diagnostics);
}
