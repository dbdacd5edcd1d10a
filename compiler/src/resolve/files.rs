//! The file protocol: what lies in an inbox is there or is made, and what is copied does not land on something else.
//!
//! In go the `files` of steps and agents, out come their texts and what the steps wait for on their account.

use super::{Resolver, text};
use crate::ast::{self, FileOutput, Name};
use crate::code::Code;
use crate::diagnostic::Diagnostic;
use crate::files::Entry;
use crate::load::workspace_path;
use crate::model::{Agent, Await, Files, Made, Step, TemplateText};
use crate::source::{Sources, Span};
use crate::suggest;
use crate::symbols::names::Names;
use crate::syntax::Text;
use crate::types::{Lookup, Type, Types};

/// What each agent leaves whether or not its `files` say so (seed 003).
const ALWAYS: &str = "summary.md";

/// What each agent may leave besides.
const MAYBE: &[&str] = &["changelog.md", "issues.md", "metadata.json", "error_report.md", "partial"];

/// What lies in each inbox besides.
const OURS: &[&str] = &["instructions.md", "dependencies.json", "references.json"];

/// Where something of a task lands.
struct Place {
    /// `inbox/`, `outbox/`, or the workspace.
    root: &'static str,
    path: String,
    is_folder: bool,
    span: Span,
    /// Of an input, who made it, and what it was called there.
    origin: Option<(Option<String>, String)>,
}

impl Place {
    fn sort_key(&self) -> (&str, Vec<&str>) {
        (self.root, self.path.split('/').collect())
    }

    /// Whether it cannot be there beside another one that lies above it.
    fn is_in_conflict(&self, above: &Place) -> bool {
        if self.path == above.path || !above.is_folder {
            return true;
        }
        // A file that the folder has, too.
        match (&self.origin, &above.origin) {
            (Some((from, path)), Some((maker, folder))) => {
                // The caller asks only where this path begins with the other one.
                let inner = self.path[above.path.len()..].to_owned();
                from == maker && *path == format!("{folder}{inner}")
            }
            _ => false,
        }
    }
}

impl<'a> Resolver<'_, 'a, '_, '_> {
    /// The texts of a file protocol; paths that lead nowhere are reported.
    pub(super) fn resolve_files(&mut self, files: &ast::Files) -> Files {
        let skill = files.skill.as_ref().and_then(|path| {
            let span = path.span(0..path.as_str().len());
            self.loader.resolve_file(path.as_str(), span, self.diagnostics)
        });
        let mut prose = |texts: &[Text]| -> Vec<TemplateText> {
            texts.iter().map(|text| text::scan_inline(text, self.loader, self.diagnostics)).collect()
        };
        let (requirements, criteria, constraints) =
            (prose(&files.requirements), prose(&files.criteria), prose(&files.constraints));
        self.check_places(files);
        for output in &files.outputs {
            if let Some(path) = &output.copy_to {
                self.loader.resolve_path(path.as_str(), path_span(path), self.diagnostics);
            }
        }
        Files { skill, requirements, criteria, constraints, kinds: Vec::new() }
    }

    /// Two things with one place, in the inbox, the outbox or the workspace, or one where the other needs a folder.
    fn check_places(&mut self, files: &ast::Files) {
        let mut places: Vec<Place> = Vec::new();
        for input in files.inputs.iter().filter(|input| !input.reference) {
            let folder = input.copy_to.as_ref().map_or("", |folder| folder.as_str().trim_matches('/'));
            // Both ways to say where in the inbox.
            let folder = folder.strip_prefix("inbox/").unwrap_or(if folder == "inbox" { "" } else { folder });
            let source = normalize_path(input.path.as_str());
            let path = normalize_path(&format!("{folder}/{}", file_name(&source)));
            let from = input.from.as_ref().map(|from| from.value.clone());
            let is_folder = input.path.as_str().ends_with('/');
            let (span, origin) = (path_span(&input.path), Some((from, source)));
            if let Some(ours) = OURS.iter().find(|ours| lies_in(&path, ours)) {
                self.diagnostics.push(
                    Diagnostic::new(
                        Code::DuplicateDefinition,
                        format!("`inbox/{ours}` is reserved for the task's own instructions"),
                    )
                    .label(span, format!("would be `inbox/{path}`"))
                    .help("give the input a `copy-to` of its own"),
                );
                continue;
            }
            places.push(Place { root: "inbox/", path, is_folder, span, origin });
        }
        for output in &files.outputs {
            let (path, is_folder) = (normalize_path(output.path.as_str()), output.path.as_str().ends_with('/'));
            if let Some(target) = &output.copy_to {
                // A file goes into a folder under its own name.
                let into = !is_folder && target.as_str().ends_with('/');
                let path = if into {
                    normalize_path(&format!("{}/{}", target.as_str(), file_name(&path)))
                } else {
                    normalize_path(target.as_str())
                };
                places.push(Place { root: "", path, is_folder: true, span: path_span(target), origin: None });
            }
            places.push(Place { root: "outbox/", path, is_folder, span: path_span(&output.path), origin: None });
        }
        // By their names, what lies in a folder stands behind it.
        let mut order: Vec<usize> = (0..places.len()).collect();
        order.sort_by(|&one, &other| places[one].sort_key().cmp(&places[other].sort_key()).then(one.cmp(&other)));
        let mut above: Vec<usize> = Vec::new();
        for index in order {
            let place = &places[index];
            above.retain(|&other| places[other].root == place.root && lies_in(&place.path, &places[other].path));
            if let Some(&first) = above.iter().find(|&&other| place.is_in_conflict(&places[other])) {
                // The walk goes by names; a report calls that one the first which the spec has first.
                let (first, again) = (&places[first.min(index)], &places[first.max(index)]);
                self.diagnostics.push(report_conflict(first, again));
            } else {
                above.push(index);
            }
        }
    }

    /// What a step waits for because of its files, its agent's files and its packs; and the inputs that steps make.
    pub(super) fn collect_awaits(
        &mut self,
        steps: &[Step<'a>],
        index: usize,
        (names, edges): (&Names, Option<&ast::Edges>),
        agents: &[Agent<'a>],
    ) -> (Vec<Await>, Vec<Made>) {
        let step = &steps[index];
        let (mut awaits, mut made) = (Vec::new(), Vec::new());
        self.diagnostics.set_home(Some(step.ast.name.span));
        if let Some(files) = files_of(step, agents) {
            for input in &files.inputs {
                match &input.from {
                    // What may be absent need not lie in the workspace, and not outside of it either.
                    None if !input.required => {
                        self.loader.resolve_path(input.path.as_str(), path_span(&input.path), self.diagnostics);
                    }
                    None => made.extend(self.find_input(&input.path, steps, agents)),
                    Some(from) => {
                        let Some(target) = self.find_maker(step, from, names, steps) else { continue };
                        if steps[target].list.is_some() {
                            self.one_of_many(&steps[target], from);
                            continue;
                        }
                        self.check_output_file(&steps[target], input, from, agents);
                        awaits.push(await_success(target, from.span));
                    }
                }
            }
            for name in &files.wait_for {
                awaits.extend(self.find_maker(step, name, names, steps).map(|target| await_success(target, name.span)));
            }
        }
        self.diagnostics.set_home(None);
        let ends = |edge: &ast::Edge, name: &Name| {
            let (from, to) = (edge.from.value.as_str(), edge.to.value.as_str());
            let (one, other) = (step.name(), name.value.as_str());
            (from, to) == (one, other) || (from, to) == (other, one)
        };
        for name in self.list_contributors(step) {
            // What comes along an edge comes whenever it is sent.
            if edges.is_some_and(|edges| edges.list.iter().any(|edge| ends(edge, name))) {
                continue;
            }
            if let Some(target) = names.find_exact(&name.value).filter(|target| *target != index) {
                awaits.push(Await { step: target, when: swarmc_plan::When::Always, soft: true, span: name.span });
            }
        }
        (awaits, made)
    }

    /// The task that files come from.
    fn find_maker(&mut self, step: &Step<'a>, name: &Name, names: &Names, steps: &[Step<'a>]) -> Option<usize> {
        let Some(target) = names.find_exact(&name.value) else {
            let known: Vec<&str> = names.iter().filter(|known| *known != step.name()).collect();
            let (close, help) = suggest::did_you_mean(&name.value, &known, "the steps are ");
            let message = format!("there is no task `{}` beside `{}`", name.value, step.name());
            let diagnostic = Diagnostic::new(Code::UnknownReference, message)
                .label(name.span, "not a step of its pipeline")
                .help_maybe(help);
            self.diagnostics.push(match close {
                Some(close) => diagnostic.write_near(name.span, close),
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

    /// Reports that files come from a task that has several turns at once.
    fn one_of_many(&mut self, maker: &Step<'a>, from: &Name) {
        self.diagnostics.push(
            Diagnostic::new(
                Code::WrongValue,
                format!("`{0}` uses `for-each`, so an input cannot take files from `{0}`", from.value),
            )
            .label(from.span, "not one task")
            .label(maker.ast.name.span, "with `for-each`")
            .help("let a later task collect the files, and name that task"),
        );
    }

    /// Looks for a file of the workspace; gives it where a task is to put it there.
    fn find_input(&mut self, path: &Text, steps: &[Step<'a>], agents: &[Agent<'a>]) -> Option<Made> {
        let wanted = if path.as_str().ends_with('/') { Entry::Folder } else { Entry::File };
        let (loader, home) = (&*self.loader, path_span(path));
        let across = self.made_across_calls().to_vec();
        let made = |path: &str| {
            across.iter().any(|glob| fast_glob::glob_match(glob, path))
                || steps.iter().any(|step| {
                    let globs = &step.ast.writes;
                    globs.iter().any(|glob| fast_glob::glob_match(glob.as_str(), path))
                        || declared_outputs(step, agents)
                            .filter_map(|output| output.copy_to.as_ref())
                            .any(|copy| workspace_path(&loader.sources, copy).is_some_and(|copy| lies_in(path, &copy)))
                })
        };
        let found =
            self.loader.find_entry(path.as_str().trim_end_matches('/'), wanted, home, Some(&made), self.diagnostics);
        found.map(|path| Made { path, span: home })
    }

    /// Reports a file that a task does not say it leaves, or says it may leave out.
    fn check_output_file(&mut self, maker: &Step<'a>, input: &ast::FileInput, from: &Name, agents: &[Agent<'a>]) {
        let path = &input.path;
        let wanted = normalize_path(path.as_str());
        let outputs: Vec<&FileOutput> = declared_outputs(maker, agents).collect();
        let none = files_of(maker, agents).is_none();
        let is_folder = path.as_str().ends_with('/');
        if let Some((what, output)) =
            outputs.iter().find_map(|output| Some((other_kind(output, &wanted, is_folder)?, output)))
        {
            self.diagnostics.push(kinds_differ(path, from, what, output));
            return;
        }
        let covers = |output: &&FileOutput| {
            let made = normalize_path(output.path.as_str());
            made == wanted
                || wanted.starts_with(&format!("{made}/")) && output.path.as_str().ends_with('/')
                || made.starts_with(&format!("{wanted}/"))
        };
        // Reported where it is read.
        let strays =
            path.as_str().starts_with(['/', '~']) || path.as_str().contains(['\0', '\\']) || wanted.contains("..");
        if strays || wanted.is_empty() || !none && wanted == ALWAYS {
            return;
        }
        let mut covering = outputs.iter().copied().filter(covers).peekable();
        if let Some(first) = covering.peek().copied() {
            if input.required && covering.all(|output| !output.required) {
                self.diagnostics.push(may_be_absent(path, from, Some(first)));
            }
            return;
        }
        if !none && MAYBE.iter().any(|maybe| lies_in(&wanted, maybe)) {
            if input.required {
                self.diagnostics.push(may_be_absent(path, from, None));
            }
            return;
        }
        let known: Vec<&str> = outputs.iter().map(|output| output.path.as_str()).collect();
        let (close, help) = suggest::did_you_mean(path.as_str(), &known, "it leaves ");
        let help = help.unwrap_or_else(|| format!("declare it there: `files {{ output \"{}\" }}`", path.as_str()));
        let span = path_span(path);
        let diagnostic =
            Diagnostic::new(Code::UnknownReference, format!("task `{}` leaves no `{}`", from.value, path.as_str()))
                .label(span, "no task makes it")
                .label(maker.ast.name.span, "its `files` do not name it")
                .help(help);
        self.diagnostics.push(match close {
            Some(close) => diagnostic.write_near(span, close),
            None => diagnostic,
        });
    }
}

/// A file without which there is no turn, and that its task may leave out.
fn may_be_absent(path: &Text, from: &Name, output: Option<&FileOutput>) -> Diagnostic {
    let (task, name) = (&from.value, path.as_str());
    let message = format!("task `{task}` may leave out `{name}`, but this task cannot start without it");
    let diagnostic = Diagnostic::new(Code::OutputMayBeSkipped, message).label(path_span(path), "may be absent");
    let leave = "write `required=#false` on this input: the runner then tells the agent that the file is missing";
    match output {
        Some(output) => diagnostic
            .label(path_span(&output.path), "`required=#false`")
            .help(format!("{leave}; or remove `required=#false` there")),
        None => diagnostic
            .label(from.span, "may leave it out")
            .help(format!("{leave}; or declare it there: `files {{ output \"{name}\" }}`")),
    }
}

fn await_success(step: usize, span: Span) -> Await {
    Await { step, when: swarmc_plan::When::Success, soft: false, span }
}

/// The files by which a step works: its own, or else those of its agent.
pub(crate) fn files_of<'s>(step: &'s Step<'_>, agents: &'s [Agent<'_>]) -> Option<&'s ast::Files> {
    step.ast.files.as_deref().or_else(|| agents[step.agent?].ast.files.as_ref())
}

/// What a step leaves in its outbox.
fn declared_outputs<'s>(step: &'s Step<'_>, agents: &'s [Agent<'_>]) -> impl Iterator<Item = &'s FileOutput> {
    files_of(step, agents).into_iter().flat_map(|files| &files.outputs)
}

/// What an output is, where an input of that name takes it for the other: a file or a folder.
fn other_kind(output: &FileOutput, wanted: &str, is_folder: bool) -> Option<&'static str> {
    let (made, whole) = (normalize_path(output.path.as_str()), output.path.as_str().ends_with('/'));
    match (made == wanted, is_folder) {
        (true, true) if !whole => Some("a file"),
        (true, false) if whole => Some("a folder"),
        (false, false) if made.starts_with(&format!("{wanted}/")) => Some("a folder"),
        _ => None,
    }
}

fn kinds_differ(path: &Text, from: &Name, what: &str, output: &FileOutput) -> Diagnostic {
    let (span, bare) = (path_span(path), path.as_str().trim_end_matches('/'));
    let right = if what == "a folder" { format!("{bare}/") } else { bare.to_owned() };
    let diagnostic = Diagnostic::new(
        Code::UnknownReference,
        format!("`{bare}` of task `{}` is {what}, but this input reads another kind", from.value),
    )
    .label(span, if what == "a folder" { "a file" } else { "a folder, by its final `/`" })
    .label(path_span(&output.path), what)
    .help(format!("write `input \"{right}\"`"));
    // A name without quotes holds no `/`.
    let text = if path.is_bare() { format!("\"{right}\"") } else { right.clone() };
    diagnostic.fix(format!("write `{right}`"), span, text)
}

/// Two that cannot both be there.
fn report_conflict(first: &Place, again: &Place) -> Diagnostic {
    let help = match first.root {
        "" => "copy one of them to another place",
        "outbox/" => "remove one of them",
        _ => "give one of them a `copy-to` of its own",
    };
    let (root, path) = (first.root, if first.path.len() < again.path.len() { &first.path } else { &again.path });
    let message = match first.path == again.path || first.origin.is_some() && first.is_folder != again.is_folder {
        true => format!("two files of the task are called `{root}{}`", first.path.as_str().max(&again.path)),
        false => format!("`{root}{path}` is a file of the task, and a folder for another one"),
    };
    Diagnostic::new(Code::DuplicateDefinition, message)
        .label(again.span, "again here")
        .label(first.span, "first here")
        .help(help)
}

/// The places in the workspace that the outputs are copied to: files, or folders that files lie in.
pub(crate) fn copy_targets<'f>(files: &'f ast::Files, sources: &Sources) -> impl Iterator<Item = (String, &'f Text)> {
    let places = files.outputs.iter().filter_map(|output| output.copy_to.as_ref());
    places.filter_map(|place| Some((workspace_path(sources, place)?, place)))
}

/// Whether a path is a place that something is copied to, or lies in it.
pub(crate) fn lies_in(path: &str, place: &str) -> bool {
    path.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The types of outputs, in their order.
pub(super) fn output_types(files: &ast::Files, types: &Types, lookup: &mut Lookup<'_>) -> Vec<Option<Type>> {
    files.outputs.iter().map(|output| Some(types.resolve(output.kind.as_ref()?, lookup))).collect()
}

/// A path without what does not change it.
fn normalize_path(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    parts.join("/")
}

/// The last name of a plain path.
fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn path_span(path: &Text) -> Span {
    path.span(0..path.as_str().len())
}
