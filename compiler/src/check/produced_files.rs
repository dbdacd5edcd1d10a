//! SW104: a file that a step makes, read or started by one that does not wait for it.

use crate::ast;
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::load::join_path;
use crate::model::{Made, Model, Pipeline, Step};
use crate::resolve::files::{copy_targets, files_of, lies_in};
use crate::source::{Sources, Span};
use crate::syntax::Text;

/// The pairs of a file that is read and a step that may make it that are looked at: beyond them nothing is said.
const LOOKED_AT: usize = 1_000_000;

pub(super) fn check(model: &Model<'_>, pipeline: &Pipeline<'_>, sources: &Sources, diagnostics: &mut Diagnostics) {
    let mut left = LOOKED_AT;
    let makes = |step: usize, made: &Made| !find_write_spans(model, &pipeline.steps[step], sources, made).is_empty();
    for (reader, step) in pipeline.steps.iter().enumerate() {
        let program = find_program(pipeline, step);
        if step.made.is_empty() && program.is_none() {
            continue;
        }
        let is_late = |made: &Made| !step.needs.iter().any(|need| makes(need.step, made));
        let read = step.made.iter().map(|made| (made, "reads"));
        let used = read.chain(program.iter().map(|made| (made, "starts")));
        let late: Vec<(&Made, &str)> = used.filter(|(made, _)| is_late(made)).collect();
        if late.is_empty() {
            continue;
        }
        let Some(rest) = left.checked_sub(pipeline.steps.len() * (1 + late.len())) else { return };
        left = rest;
        let before = find_settled_steps(pipeline, reader);
        for (made, uses) in late {
            let mut makers = (0..pipeline.steps.len()).filter(|&step| makes(step, made));
            let Some(first) = makers.next() else { continue };
            if !before[first] && !makers.any(|maker| before[maker]) {
                let places = find_write_spans(model, &pipeline.steps[first], sources, made);
                diagnostics.push(too_early(pipeline, (reader, uses), first, made, &places));
            }
        }
    }
}

/// The program of the workspace that a step starts, where some step says that it writes that very file.
fn find_program(pipeline: &Pipeline<'_>, step: &Step<'_>) -> Option<Made> {
    let Some(ast::Body::Run(line)) = &step.ast.body else { return None };
    let text = line.words.first()?;
    // A single word is a line for the shell.
    let written = text.as_str();
    let word = if line.words.len() == 1 { written.split_whitespace().next()? } else { written };
    if !word.contains('/') || word.starts_with('/') || !written.starts_with(word) {
        return None;
    }
    let folder = pipeline.ast.working_dir.as_ref().map_or("", Text::as_str);
    let path = join_path("", folder).and_then(|folder| join_path(&folder, word))?;
    let others = pipeline.steps.iter().filter(|other| !std::ptr::eq(*other, step));
    let mut globs = others.flat_map(|other| &other.ast.writes);
    globs
        .any(|glob| join_path("", glob.as_str()).is_some_and(|glob| glob == path))
        .then(|| Made { path, span: text.span(0..word.len()) })
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

/// The steps that have settled when this one starts.
fn find_settled_steps(pipeline: &Pipeline<'_>, step: usize) -> Vec<bool> {
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

/// `uses` says what the reader does with the file.
fn too_early(
    pipeline: &Pipeline<'_>,
    (reader, uses): (usize, &str),
    maker: usize,
    made: &Made,
    places: &[Span],
) -> Diagnostic {
    let (step, name) = (pipeline.steps[reader].name(), pipeline.steps[maker].name());
    let path = &made.path;
    let diagnostic = match reader == maker {
        true => Diagnostic::new(Code::MissingFile, format!("`{step}` reads `{path}` before it makes it"))
            .help("texts are put together before the step starts: read the file in the command itself"),
        false => Diagnostic::new(
            Code::MissingFile,
            format!("`{step}` {uses} `{path}`, and does not wait for `{name}`, which makes it"),
        )
        .help(format!("write `depends-on {name}` in `{step}`")),
    };
    let diagnostic = diagnostic.label(made.span, "not there yet");
    places.iter().fold(diagnostic, |diagnostic, place| diagnostic.label(*place, "made here"))
}
