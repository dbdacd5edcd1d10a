//! SW104 and SW202: a step reads a file that another step makes, and the file may not be there. The reader does not wait
//! for the maker, the maker may be skipped, or the reader works outside of the worktree in which the maker leaves the file.

use std::collections::BTreeSet;

use crate::code::{Code, Severity};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::flow::{Hop, Lazy};
use crate::model::{Made, Model, PackRule, Pipeline, Read, Step};
use crate::resolve::files::{copy_targets, files_of, lies_in};
use crate::source::{Sources, Span};
use crate::suggest::format_list;
use crate::syntax::Text;

/// The pairs of a file that is read and a step that may make it that are looked at: beyond them nothing is said.
const LOOKED_AT: usize = 1_000_000;

pub(super) fn check<'a>(
    model: &Model<'a>,
    pipeline: &Pipeline<'a>,
    sources: &Sources,
    flow: &mut Lazy<'_, 'a>,
    diagnostics: &mut Diagnostics,
) {
    let mut left = LOOKED_AT;
    let makes = |step: usize, made: &Made| !find_write_spans(model, &pipeline.steps[step], sources, made).is_empty();
    let mut inside: Vec<Vec<usize>> = vec![Vec::new(); pipeline.steps.len()];
    for (index, step) in pipeline.steps.iter().enumerate() {
        step.within.into_iter().for_each(|holder| inside[holder].push(index));
    }
    for (reader, step) in pipeline.steps.iter().enumerate() {
        let read = list_made(model, step);
        if read.is_empty() {
            continue;
        }
        let Some(rest) = left.checked_sub(pipeline.steps.len() * (1 + read.len())) else { return };
        left = rest;
        let before = find_settled_steps(pipeline, &inside, reader);
        for made in read {
            let makers: Vec<usize> = (0..pipeline.steps.len()).filter(|&step| makes(step, made)).collect();
            let Some(&first) = makers.first() else { continue };
            let settled: Vec<usize> = makers.iter().copied().filter(|&maker| before[maker]).collect();
            let places = |maker: usize| find_write_spans(model, &pipeline.steps[maker], sources, made);
            if settled.is_empty() {
                diagnostics.push(too_early(pipeline, reader, first, made, &places(first)));
            } else if step.list.is_some() || makers.iter().any(|&maker| may_have_made_before(pipeline, reader, maker)) {
                // The list may have no items then, and an earlier round may have left the file.
            } else if let Some(hops) = flow.get().find_unmade(reader, &settled, made.span) {
                diagnostics.push(may_be_unmade(pipeline, reader, &settled, made, &hops));
            } else if let [maker] = makers.as_slice()
                && has_worktree(pipeline, *maker)
                && is_apart(pipeline, reader, *maker, &before, &find_settled_steps(pipeline, &inside, *maker))
            {
                diagnostics.push(elsewhere(pipeline, reader, *maker, made, &places(*maker)));
            }
        }
    }
}

/// The files that a step reads, itself or by its packs, and that steps are to make.
fn list_made<'m>(model: &'m Model<'_>, step: &'m Step<'_>) -> Vec<&'m Made> {
    let mut made: Vec<&Made> = step.made.iter().collect();
    let mut open: Vec<usize> = step.context.iter().copied().chain(step.reads.iter().filter_map(Read::pack)).collect();
    let mut seen = BTreeSet::new();
    while let Some(pack) = open.pop() {
        if seen.insert(pack) {
            made.extend(&model.packs[pack].made);
            open.extend(model.packs[pack].rules.iter().filter_map(PackRule::merged_pack));
        }
    }
    made
}

/// Whether a round before this one may have made a file.
fn may_have_made_before(pipeline: &Pipeline<'_>, reader: usize, maker: usize) -> bool {
    pipeline.ast.rounds.is_some()
        || pipeline.steps[maker].within.is_some()
        || pipeline.has_previous_round(reader, maker)
}

fn has_worktree(pipeline: &Pipeline<'_>, step: usize) -> bool {
    pipeline.steps[step].ast.worktree.is_some()
}

/// Whether a step reads in the workspace what another one leaves in its worktree, and no step between them can hand it on.
fn is_apart(pipeline: &Pipeline<'_>, reader: usize, maker: usize, before: &[bool], earlier: &[bool]) -> bool {
    let is_between = |step: usize| before[step] && step != maker && !earlier[step];
    !has_worktree(pipeline, reader) && !(0..pipeline.steps.len()).any(is_between)
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

/// A file that none of its makers has made where all of them were skipped.
fn may_be_unmade(pipeline: &Pipeline<'_>, reader: usize, makers: &[usize], made: &Made, hops: &[Hop]) -> Diagnostic {
    let (step, path) = (pipeline.steps[reader].name(), &made.path);
    let names = format_list(makers.iter().map(|&maker| pipeline.steps[maker].name()), "and");
    let (makes, skipped) = match makers.len() {
        1 => ("makes", "can have been skipped"),
        _ => ("make", "can all have been skipped"),
    };
    let message = format!("`{step}` reads `{path}`, and {names}, which {makes} it, {skipped}");
    let first = pipeline.steps[makers[0]].name();
    let diagnostic = warn_of(message).label(made.span, "may not be there").help(format!(
        "let `{step}` run only where `{first}` has: `when \"status.{} == 'succeeded'\"`",
        first.replace('-', "_")
    ));
    hops.iter().fold(diagnostic, |diagnostic, hop| diagnostic.label(hop.span, hop.text.clone()))
}

/// A warning, and no more: a step that does not say so may write the file as well.
fn warn_of(message: String) -> Diagnostic {
    Diagnostic { severity: Some(Severity::Warning), ..Diagnostic::new(Code::OutputMayBeSkipped, message) }
}

/// A file that is made in a worktree and read outside of it.
fn elsewhere(pipeline: &Pipeline<'_>, reader: usize, maker: usize, made: &Made, places: &[Span]) -> Diagnostic {
    let (step, name, path) = (pipeline.steps[reader].name(), pipeline.steps[maker].name(), &made.path);
    let message = format!("`{step}` reads `{path}` outside of the worktree in which `{name}` makes it");
    let worktree = pipeline.steps[maker].ast.worktree.as_ref().and_then(|worktree| worktree.name.as_ref());
    let help = match worktree {
        Some(own) => format!("let `{step}` work there too: `worktree {}` in `{step}`", own.value),
        None => format!("let both work in one: `worktree {name}` in `{name}` and in `{step}`"),
    };
    let diagnostic = warn_of(message).label(made.span, "not there").help(help);
    places.iter().fold(diagnostic, |diagnostic, place| diagnostic.label(*place, "made here"))
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
