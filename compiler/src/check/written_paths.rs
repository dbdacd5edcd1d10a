//! Which files the steps of a pipeline write: their `writes`, the targets of their file copies, and the files of the
//! pipelines that they call.
//!
//! In: the pipelines. Out: patterns for each step, from the root of the workspace. Of a called pipeline, only those
//! steps count that run whenever all steps before them succeed, and only if they run in the caller's working tree.

use std::collections::BTreeMap;

use swarmc_plan::When;

use crate::ast;
use crate::load::join_path;
use crate::model::{Body, Model, Pipeline, Step};
use crate::resolve::files::files_of;
use crate::source::{Sources, Span};

/// The patterns that a called pipeline hands on to its caller.
const HANDED_ON: usize = 100;
/// How deep calls are followed.
const DEEP: usize = 16;

/// A pattern that a step writes.
#[derive(Clone, Debug)]
pub(super) struct Write {
    pub pattern: String,
    /// Where the step itself says so.
    pub span: Span,
    /// Where a step of the pipeline that it calls does.
    pub inner: Option<Span>,
}

/// What steps write, as far as it was asked for.
pub(super) struct Written<'m, 'a> {
    model: &'m Model<'a>,
    sources: &'m Sources,
    called: BTreeMap<usize, Vec<(String, Span)>>,
}

impl<'m, 'a> Written<'m, 'a> {
    pub(super) fn new(model: &'m Model<'a>, sources: &'m Sources) -> Written<'m, 'a> {
        Written { model, sources, called: BTreeMap::new() }
    }

    /// What a step writes, each pattern once.
    pub(super) fn list_writes(&mut self, step: &Step<'a>) -> Vec<Write> {
        let mut writes = self.declared_writes(step);
        if let Body::Call { name, pipeline: Some(callee), .. } = &step.body {
            let inner = self.of_called(*callee, 0);
            writes.extend(inner.into_iter().map(|(pattern, inner)| Write {
                pattern,
                span: name.span,
                inner: Some(inner),
            }));
        }
        writes.sort_by(|one, other| (&one.pattern, one.span).cmp(&(&other.pattern, other.span)));
        writes.dedup_by(|later, kept| later.pattern == kept.pattern);
        writes
    }

    /// What the step says itself, or its agent does.
    fn declared_writes(&self, step: &Step<'a>) -> Vec<Write> {
        let own = step.ast.writes.iter().map(|pattern| {
            let written = pattern.as_str();
            // `docs/../a` and `a` are one file; `docs/` and `docs` are not.
            let folder = if written.ends_with('/') { "/" } else { "" };
            let root = join_path("", written).map_or_else(|| written.to_owned(), |path| path + folder);
            Write { pattern: root, span: pattern.span(0..written.len()), inner: None }
        });
        let files = files_of(step, &self.model.agents).map(|files| (files, step.ast.files.is_none()));
        let copied = files.into_iter().flat_map(|(files, shared)| {
            files.outputs.iter().filter_map(move |output| {
                let span = output.copy_to.as_ref().map(|place| place.span(0..place.as_str().len()))?;
                let pattern = self.copied_to(output, span)?;
                Some(Write { pattern, span: if shared { step.ast.name.span } else { span }, inner: None })
            })
        });
        own.chain(copied).collect()
    }

    /// The file that an output becomes: where the place may be a folder, with its name. What comes of a folder is not
    /// known.
    fn copied_to(&self, output: &ast::FileOutput, span: Span) -> Option<String> {
        let (place, path) = (output.copy_to.as_ref()?.as_str(), output.path.as_str());
        let name = path.rsplit_once('/').map_or(path, |(_, name)| name);
        let whole = place.rsplit_once('/').map_or(place, |(_, last)| last).contains('.');
        let place = if whole { place.to_owned() } else { format!("{place}/{name}") };
        let home = self.sources.name(span.file);
        let plain = !name.is_empty() && !path.contains(['*', '?', '[', '{']) && !place.contains(['*', '?', '[', '{']);
        join_path(home.rsplit_once('/').map_or("", |(folder, _)| folder), &place).filter(|_| plain)
    }

    /// What a pipeline surely writes where it is called.
    fn of_called(&mut self, callee: usize, depth: usize) -> Vec<(String, Span)> {
        if let Some(known) = self.called.get(&callee) {
            return known.clone();
        }
        // Not kept: a call that is less deep sees further.
        if depth == DEEP {
            return Vec::new();
        }
        let model = self.model;
        let pipeline = &model.pipelines[callee];
        let mut found = Vec::new();
        if pipeline.ast.worktree.is_none() && pipeline.order.cycles.is_empty() {
            // A pipeline that calls itself finds this empty list.
            self.called.insert(callee, Vec::new());
            for (step, _) in pipeline.steps.iter().zip(find_unconditional(pipeline)).filter(|(_, plain)| *plain) {
                if step.ast.worktree.is_some() || found.len() >= HANDED_ON {
                    continue;
                }
                found.extend(self.declared_writes(step).into_iter().map(|write| (write.pattern, write.span)));
                if let Body::Call { pipeline: Some(inner), .. } = step.body {
                    found.extend(self.of_called(inner, depth + 1));
                }
            }
            found.truncate(HANDED_ON);
        }
        self.called.insert(callee, found.clone());
        found
    }
}

/// The steps that run whenever all those before them succeed.
fn find_unconditional(pipeline: &Pipeline<'_>) -> Vec<bool> {
    let mut plain = vec![false; pipeline.steps.len()];
    for &index in &pipeline.order.sorted {
        let step = &pipeline.steps[index];
        // The items of a list may be none, and what a loop holds comes after it in the list.
        plain[index] = step.when.is_none()
            && step.list.is_none()
            && step.within.is_none()
            && step
                .needs
                .iter()
                .all(|need| need.when == When::Always || need.when != When::Failure && plain[need.step]);
    }
    plain
}
