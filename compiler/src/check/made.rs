//! SW104: a file that a step makes, read by one that does not wait for it.

use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::model::{Made, Pipeline};

pub(super) fn check(pipeline: &Pipeline<'_>, diagnostics: &mut Diagnostics) {
    for (reader, step) in pipeline.steps.iter().enumerate() {
        if step.made.is_empty() {
            continue;
        }
        let late: Vec<&Made> =
            step.made.iter().filter(|made| !step.needs.iter().any(|need| makes(pipeline, need.step, made))).collect();
        if late.is_empty() {
            continue;
        }
        let before = before(pipeline, reader);
        for made in late {
            let mut makers = (0..pipeline.steps.len()).filter(|&step| makes(pipeline, step, made));
            let Some(first) = makers.next() else { continue };
            if !before[first] && !makers.any(|maker| before[maker]) {
                diagnostics.push(too_early(pipeline, reader, first, made));
            }
        }
    }
}

/// Whether a step says that it writes the file.
fn makes(pipeline: &Pipeline<'_>, step: usize, made: &Made) -> bool {
    pipeline.steps[step].ast.writes.iter().any(|glob| fast_glob::glob_match(glob.as_str(), &made.path))
}

/// The steps that have settled when this one starts.
fn before(pipeline: &Pipeline<'_>, step: usize) -> Vec<bool> {
    let mut before = vec![false; pipeline.steps.len()];
    let mut open = vec![step];
    while let Some(step) = open.pop() {
        for need in &pipeline.steps[step].needs {
            if !before[need.step] {
                before[need.step] = true;
                open.push(need.step);
            }
        }
    }
    before
}

fn too_early(pipeline: &Pipeline<'_>, reader: usize, maker: usize, made: &Made) -> Diagnostic {
    let (step, name) = (pipeline.steps[reader].name(), pipeline.steps[maker].name());
    let path = &made.path;
    let diagnostic = match reader == maker {
        true => Diagnostic::new(Code::MissingFile, format!("`{step}` reads `{path}` before it makes it"))
            .help("texts are put together before the step starts: read the file in the command itself"),
        false => Diagnostic::new(
            Code::MissingFile,
            format!("`{step}` reads `{path}`, and does not wait for `{name}`, which makes it"),
        )
        .help(format!("write `depends-on {name}` in `{step}`")),
    };
    let diagnostic = diagnostic.label(made.span, "not there yet");
    pipeline.steps[maker].ast.writes.iter().fold(diagnostic, |diagnostic, glob| {
        match fast_glob::glob_match(glob.as_str(), path) {
            true => diagnostic.label(glob.span(0..glob.as_str().len()), "made here"),
            false => diagnostic,
        }
    })
}
