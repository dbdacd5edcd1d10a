//! SW104: a file that a step makes, read by one that does not wait for it.

use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::model::{Made, Model, Pipeline, Step};
use crate::resolve::files::{copy_targets, files_of, lies_in};
use crate::source::{Sources, Span};
use crate::syntax::Text;

/// The pairs of a file that is read and a step that may make it that are looked at: beyond them nothing is said.
const LOOKED_AT: usize = 1_000_000;

pub(super) fn check(model: &Model<'_>, pipeline: &Pipeline<'_>, sources: &Sources, diagnostics: &mut Diagnostics) {
    let mut left = LOOKED_AT;
    let makes = |step: usize, made: &Made| !find_write_spans(model, &pipeline.steps[step], sources, made).is_empty();
    let mut inside: Vec<Vec<usize>> = vec![Vec::new(); pipeline.steps.len()];
    for (index, step) in pipeline.steps.iter().enumerate() {
        step.within.into_iter().for_each(|holder| inside[holder].push(index));
    }
    for (reader, step) in pipeline.steps.iter().enumerate() {
        if step.made.is_empty() {
            continue;
        }
        let late: Vec<&Made> =
            step.made.iter().filter(|made| !step.needs.iter().any(|need| makes(need.step, made))).collect();
        if late.is_empty() {
            continue;
        }
        let Some(rest) = left.checked_sub(pipeline.steps.len() * (1 + late.len())) else { return };
        left = rest;
        let before = find_settled_steps(pipeline, &inside, reader);
        for made in late {
            let mut makers = (0..pipeline.steps.len()).filter(|&step| makes(step, made));
            let Some(first) = makers.next() else { continue };
            if !before[first] && !makers.any(|maker| before[maker]) {
                let places = find_write_spans(model, &pipeline.steps[first], sources, made);
                diagnostics.push(too_early(pipeline, reader, first, made, &places));
            }
        }
    }
}

/// Where a step says that it writes the file, or that it is copied there.
fn find_write_spans(model: &Model<'_>, step: &Step<'_>, sources: &Sources, made: &Made) -> Vec<Span> {
    let whole = |text: &Text| text.span(0..text.as_str().len());
    let written = step.ast.writes.iter().filter(|glob| fast_glob::glob_match(glob.as_str(), &made.path));
    let files = files_of(step, &model.agents);
    let copied = files
        .into_iter()
        .flat_map(|files| copy_targets(files, sources))
        .filter(|(place, _)| lies_in(&made.path, place));
    written.map(whole).chain(copied.map(|(_, place)| whole(place))).collect()
}

/// The steps that have settled when this one starts: those that it needs, those that the loops around it need, and the steps
/// `inside` of them.
fn find_settled_steps(pipeline: &Pipeline<'_>, inside: &[Vec<usize>], step: usize) -> Vec<bool> {
    let mut before = vec![false; pipeline.steps.len()];
    let mut open: Vec<usize> = std::iter::successors(Some(step), |&step: &usize| pipeline.steps[step].within).collect();
    while let Some(step) = open.pop() {
        let needed = pipeline.steps[step].needs.iter().map(|need| need.step);
        let within = before[step].then(|| inside[step].iter().copied()).into_iter().flatten();
        for next in needed.chain(within).collect::<Vec<_>>() {
            if !before[next] {
                before[next] = true;
                open.push(next);
            }
        }
    }
    before
}

fn too_early(pipeline: &Pipeline<'_>, reader: usize, maker: usize, made: &Made, places: &[Span]) -> Diagnostic {
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
    places.iter().fold(diagnostic, |diagnostic, place| diagnostic.label(*place, "made here"))
}
