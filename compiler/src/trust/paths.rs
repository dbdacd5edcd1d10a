//! Files as a way for text: who writes what others read.
//!
//! In: the paths and patterns that are written and read, by node. Out: a node for each that both have in common. Patterns
//! are compared with paths; two patterns meet only where one matches the other as it stands.

use std::collections::{BTreeMap, HashMap};

use super::graph::{Graph, Kind, Via};
use crate::model::{Model, Step, TemplateText, Variable};
use crate::source::{Sources, Span};
use crate::template::{Kind as Word, Part};

/// Comparisons of patterns at most: with more, a pattern meets only what is spelt like it.
const MOST: usize = 2_000_000;

/// Everything that is written and read.
#[derive(Default)]
pub(super) struct Files {
    written: BTreeMap<String, Vec<(usize, Span)>>,
    read: BTreeMap<String, Vec<(usize, Span)>>,
    /// The nodes of packs, by a node of the place and the pack.
    pub packs: HashMap<(usize, usize), usize>,
}

impl Files {
    pub(super) fn add_write(&mut self, node: usize, path: &str, span: Span) {
        self.written.entry(normalize_path(path)).or_default().push((node, span));
    }

    pub(super) fn add_read(&mut self, node: usize, path: &str, span: Span) {
        self.read.entry(normalize_path(path)).or_default().push((node, span));
    }

    /// Adds the files to the graph.
    pub(super) fn connect_files(&self, graph: &mut Graph) {
        if self.written.is_empty() || self.read.is_empty() {
            return;
        }
        let nodes: HashMap<&str, usize> = self
            .written
            .iter()
            .map(|(path, writers)| {
                let node = graph.add_node(path.as_str(), Kind::File, writers[0].1);
                writers.iter().for_each(|&(writer, span)| graph.add_edge(writer, node, span, Via::Writes));
                (path.as_str(), node)
            })
            .collect();
        let (written_patterns, read_patterns) = (list_patterns(&self.written), list_patterns(&self.read));
        let mut meet = |written: &str, read: &str| {
            // Both are keys of their maps: the callers below take them from there.
            for &(reader, span) in &self.read[read] {
                graph.add_edge(nodes[written], reader, span, Via::Reads);
            }
        };
        for path in self.read.keys().filter(|path| self.written.contains_key(*path)) {
            meet(path, path);
        }
        let budget = |own: usize, others: usize| own.saturating_mul(others) <= MOST;
        if budget(written_patterns.len(), self.read.len()) {
            for pattern in &written_patterns {
                let readers =
                    self.read.keys().filter(|path| path != pattern && fast_glob::glob_match(pattern, path.as_str()));
                readers.for_each(|path| meet(pattern, path));
            }
        }
        if budget(read_patterns.len(), self.written.len()) {
            for pattern in &read_patterns {
                // Two patterns that match each other have met above.
                let writers = self.written.keys().filter(|path| {
                    path != pattern
                        && fast_glob::glob_match(pattern, path.as_str())
                        && !(is_pattern(path) && fast_glob::glob_match(path.as_str(), pattern))
                });
                writers.for_each(|path| meet(path, pattern));
            }
        }
    }
}

fn list_patterns(map: &BTreeMap<String, Vec<(usize, Span)>>) -> Vec<&str> {
    map.keys().map(String::as_str).filter(|path| is_pattern(path)).collect()
}

fn is_pattern(path: &str) -> bool {
    path.contains(['*', '?', '[', '{'])
}

fn normalize_path(path: &str) -> String {
    path.trim_start_matches("./").to_owned()
}

/// The files that the texts of a step name, as the workspace sees them.
pub(super) fn list_named_files(model: &Model<'_>, step: &Step<'_>, sources: &Sources) -> Vec<(String, Span)> {
    let system = step.agent.and_then(|agent| model.agents[agent].system.as_ref());
    let env = step.env.iter().filter_map(|variable| match variable {
        Variable::Set(_, prose) => Some(prose),
        Variable::Pass(_) | Variable::Secret(_) => None,
    });
    let proses = step.body.template_texts().into_iter().chain(system).chain(&step.stdin).chain(env);
    proses.flat_map(|prose| in_prose(prose, sources)).collect()
}

/// The files that a text names, as the workspace sees them.
pub(super) fn in_prose(prose: &TemplateText, sources: &Sources) -> Vec<(String, Span)> {
    let files = prose.template.parts.iter().filter_map(|part| match part {
        Part::Directive(directive) if directive.kind == Word::File => directive.name.as_ref(),
        _ => None,
    });
    let path = |name: &crate::template::Spanned<String>| {
        let span = prose.passage.span(name.range.clone());
        (resolve_path(sources, span, &name.value), span)
    };
    files.map(path).collect()
}

/// A path of the workspace, written in the file of this place.
pub(super) fn resolve_path(sources: &Sources, place: Span, path: &str) -> String {
    let folder = sources.name(place.file).rsplit_once('/').map_or("", |(folder, _)| folder);
    join_path(folder, path)
}

/// A path seen from a folder of the workspace.
fn join_path(folder: &str, path: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}
