//! The file protocol: what lies in an inbox is there or is made, and what is copied does not land on something else.
//!
//! In go the `files` of steps and agents, out come their texts and what the steps wait for on their account.

use std::collections::BTreeMap;

use super::names::Names;
use super::{Resolver, text};
use crate::ast::{self, FileOutput, Name};
use crate::code::Code;
use crate::diagnostic::Diagnostic;
use crate::files::Entry;
use crate::load::beside;
use crate::model::{Agent, Await, Files, Prose, Step};
use crate::source::{Sources, Span};
use crate::suggest;
use crate::syntax::Text;
use crate::types::{Lookup, Type, Types};

/// What each agent leaves whether or not its `files` say so (seed 003).
const ALWAYS: &[&str] = &["summary.md", "changelog.md", "issues.md", "metadata.json", "error_report.md"];

impl<'a> Resolver<'_, 'a, '_, '_> {
    /// The texts of a file protocol; paths that lead nowhere are reported.
    pub(super) fn files(&mut self, files: &ast::Files) -> Files {
        let skill = files.skill.as_ref().and_then(|path| {
            let span = path.span(0..path.as_str().len());
            self.loader.named(path.as_str(), span, self.diagnostics)
        });
        let mut prose = |texts: &[Text]| -> Vec<Prose> {
            texts.iter().map(|text| text::inline(text, self.loader, self.diagnostics)).collect()
        };
        let (requirements, criteria, constraints) =
            (prose(&files.requirements), prose(&files.criteria), prose(&files.constraints));
        self.landing(files);
        for output in &files.outputs {
            if let Some(path) = &output.copy_to {
                self.loader.path(path.as_str(), whole(path), self.diagnostics);
            }
        }
        Files { skill, requirements, criteria, constraints, kinds: Vec::new() }
    }

    /// Two things with one place, in the inbox, the outbox or the workspace.
    fn landing(&mut self, files: &ast::Files) {
        let mut taken: BTreeMap<(&str, String), Span> = BTreeMap::new();
        let mut land = |place: (&'static str, String), span: Span| {
            let (slash, help) = match place.0 {
                "" => ("", "copy one of them to another place"),
                "outbox" => ("/", "remove one of them"),
                _ => ("/", "give one of them a `copy-to` of its own"),
            };
            let message = format!("two files of the task are called `{}{slash}{}`", place.0, place.1);
            if let Some(first) = taken.insert(place, span) {
                self.diagnostics.push(
                    Diagnostic::new(Code::DuplicateDefinition, message)
                        .label(span, "again here")
                        .label(first, "first here")
                        .help(help),
                );
            }
        };
        for input in files.inputs.iter().filter(|input| !input.reference) {
            let folder = input.copy_to.as_ref().map_or("", |folder| folder.as_str().trim_matches('/'));
            let name = plain(input.path.as_str()).rsplit('/').next().unwrap_or_default().to_owned();
            let place = if folder.is_empty() { name } else { format!("{folder}/{name}") };
            land(("inbox", place), whole(&input.path));
        }
        for output in &files.outputs {
            land(("outbox", plain(output.path.as_str())), whole(&output.path));
            if let Some(path) = &output.copy_to {
                land(("", plain(path.as_str())), whole(path));
            }
        }
    }

    /// What a step waits for because of its files, its agent's files and its packs.
    pub(super) fn awaits(
        &mut self,
        steps: &[Step<'a>],
        index: usize,
        (names, edges): (&Names, Option<&ast::Edges>),
        agents: &[Agent<'a>],
    ) -> Vec<Await> {
        let step = &steps[index];
        let mut awaits = Vec::new();
        let of_agent = step.agent.and_then(|agent| agents[agent].ast.files.as_ref());
        let mine = step.ast.files.is_some();
        self.diagnostics.about(Some(step.ast.name.span));
        for files in step.ast.files.iter().chain(of_agent) {
            let own = mine && step.ast.files.as_ref().is_some_and(|mine| std::ptr::eq(mine, files));
            for input in &files.inputs {
                match &input.from {
                    None if own || !mine => self.lies_there(&input.path, steps, agents),
                    None => {}
                    Some(from) => {
                        let Some(target) = self.maker(step, from, names, steps) else { continue };
                        self.leaves(&steps[target], &input.path, from, agents);
                        awaits.push(success(target, from.span));
                    }
                }
            }
            for name in &files.wait_for {
                awaits.extend(self.maker(step, name, names, steps).map(|target| success(target, name.span)));
            }
        }
        self.diagnostics.about(None);
        let ends = |edge: &ast::Edge, name: &Name| {
            let (from, to) = (edge.from.value.as_str(), edge.to.value.as_str());
            let (one, other) = (step.name(), name.value.as_str());
            (from, to) == (one, other) || (from, to) == (other, one)
        };
        for name in self.handed(step) {
            // What comes along an edge comes whenever it is sent.
            if edges.is_some_and(|edges| edges.list.iter().any(|edge| ends(edge, name))) {
                continue;
            }
            if let Some(target) = names.exact(&name.value).filter(|target| *target != index) {
                awaits.push(Await { step: target, when: swarmc_plan::When::Always, soft: true, span: name.span });
            }
        }
        awaits
    }

    /// The task that files come from.
    fn maker(&mut self, step: &Step<'a>, name: &Name, names: &Names, steps: &[Step<'a>]) -> Option<usize> {
        let Some(target) = names.exact(&name.value) else {
            let known: Vec<&str> = names.iter().collect();
            let (close, help) = suggest::did_you_mean(&name.value, &known, "the steps are ");
            let message = format!("there is no task `{}` beside `{}`", name.value, step.name());
            let diagnostic = Diagnostic::new(Code::UnknownReference, message)
                .label(name.span, "not a step of its pipeline")
                .help_maybe(help);
            self.diagnostics.push(match close {
                Some(close) => diagnostic.unsafe_fix(format!("write `{close}`"), name.span, close),
                None => diagnostic,
            });
            return None;
        };
        if std::ptr::eq(&raw const steps[target], step) {
            self.diagnostics.push(
                Diagnostic::new(Code::Cycle, format!("`{}` waits for its own files", step.name()))
                    .label(name.span, "the task itself")
                    .help("remove it; what the task makes lies in its `workspace/`"),
            );
            return None;
        }
        Some(target)
    }

    /// A file of the workspace, or one that a task puts there.
    fn lies_there(&mut self, path: &Text, steps: &[Step<'a>], agents: &[Agent<'a>]) {
        let wanted = if path.as_str().ends_with('/') { Entry::Folder } else { Entry::File };
        let (loader, home) = (&*self.loader, whole(path));
        let made = |path: &str| {
            steps.iter().any(|step| {
                let globs = &step.ast.writes;
                globs.iter().any(|glob| fast_glob::glob_match(glob.as_str(), path))
                    || outputs(step, agents)
                        .filter_map(|output| output.copy_to.as_ref())
                        .any(|copy| beside(&loader.sources, copy).is_some_and(|copy| lies_in(path, &copy)))
            })
        };
        self.loader.find(path.as_str().trim_end_matches('/'), wanted, home, Some(&made), self.diagnostics);
    }

    /// Reports a file that a task does not say it leaves.
    fn leaves(&mut self, maker: &Step<'a>, path: &Text, from: &Name, agents: &[Agent<'a>]) {
        let wanted = plain(path.as_str());
        let outputs: Vec<&FileOutput> = outputs(maker, agents).collect();
        let none = outputs.is_empty() && maker.ast.files.is_none();
        let covers = |output: &&FileOutput| {
            let made = plain(output.path.as_str());
            made == wanted
                || wanted.starts_with(&format!("{made}/")) && output.path.as_str().ends_with('/')
                || made.starts_with(&format!("{wanted}/"))
        };
        // Reported where it is read.
        let strays =
            path.as_str().starts_with(['/', '~']) || path.as_str().contains(['\0', '\\']) || wanted.contains("..");
        let optional = !none && ALWAYS.contains(&wanted.as_str());
        if optional || strays || wanted.is_empty() || outputs.iter().any(covers) {
            return;
        }
        let known: Vec<&str> = outputs.iter().map(|output| output.path.as_str()).collect();
        let (close, help) = suggest::did_you_mean(path.as_str(), &known, "it leaves ");
        let help = help.unwrap_or_else(|| format!("declare it there: `files {{ output \"{}\" }}`", path.as_str()));
        let span = whole(path);
        let diagnostic =
            Diagnostic::new(Code::UnknownReference, format!("task `{}` leaves no `{}`", from.value, path.as_str()))
                .label(span, "nobody makes it")
                .label(maker.ast.name.span, "its `files` do not name it")
                .help(help);
        self.diagnostics.push(match close {
            Some(close) => diagnostic.unsafe_fix(format!("write `{close}`"), span, close),
            None => diagnostic,
        });
    }
}

fn success(step: usize, span: Span) -> Await {
    Await { step, when: swarmc_plan::When::Success, soft: false, span }
}

/// What a step says it leaves in its outbox, or its agent does.
fn outputs<'s>(step: &'s Step<'_>, agents: &'s [Agent<'_>]) -> impl Iterator<Item = &'s FileOutput> {
    let of_agent = step.agent.and_then(|agent| agents[agent].ast.files.as_ref());
    step.ast.files.iter().chain(of_agent).flat_map(|files| &files.outputs)
}

/// The places in the workspace that the outputs are copied to: files, or folders that files lie in.
pub(crate) fn copies<'f>(files: &'f ast::Files, sources: &Sources) -> impl Iterator<Item = (String, &'f Text)> {
    let places = files.outputs.iter().filter_map(|output| output.copy_to.as_ref());
    places.filter_map(|place| Some((beside(sources, place)?, place)))
}

/// Whether a path is a place that something is copied to, or lies in it.
pub(crate) fn lies_in(path: &str, place: &str) -> bool {
    path.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The types of outputs, in their order.
pub(super) fn kinds(files: &ast::Files, types: &Types, lookup: &mut Lookup<'_>) -> Vec<Option<Type>> {
    files.outputs.iter().map(|output| Some(types.resolve(output.kind.as_ref()?, lookup))).collect()
}

/// A path without what does not change it.
fn plain(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    parts.join("/")
}

fn whole(path: &Text) -> Span {
    path.span(0..path.as_str().len())
}
