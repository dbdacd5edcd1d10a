//! SW106: a file pattern of a pack, or of a task's `reads` or `writes`, matches no file. This module also looks for the
//! programs of SW107, as the same steps may make a file or a program.
//!
//! A step may make a missing file before another step needs it. So the check reports a missing file only if the first
//! steps need it, no earlier step can make it, and no task declares that it writes it. A pattern that names a folder
//! never matches a file.

mod programs;

use std::collections::{BTreeMap, BTreeSet};

use swarmc_plan::{Capability, StepKind};

use crate::ast::{self, PackRule};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::files::{Entry, FileError, Files};
use crate::ignored::Ignored;
use crate::load::{Loader, join_path};
use crate::model::{Body, Model, Pipeline, Step};
use crate::source::Span;
use crate::suggest;
use crate::syntax::Text;

/// The entries of folders that are looked at before a pattern is taken to match something: fewer than are listed of one.
const LOOKED_AT: usize = 9_999;
/// Those for all patterns together.
const LOOKED_AT_IN_ALL: usize = 100_000;
/// The files that are read to find one that is text.
const READ: usize = 16;
/// Folders of what others made, which a pattern has to name to mean them.
const ASIDE: &[&str] = &[".git/", "node_modules/", "target/"];
/// What makes a path a pattern.
const SIGNS: [char; 4] = ['*', '?', '[', '{'];

pub(crate) fn check(model: &Model<'_>, loader: &Loader<'_>, diagnostics: &mut Diagnostics) {
    let mut patterns = Patterns {
        loader,
        files: loader.workspace(),
        ignored: Ignored::new(loader.workspace()),
        made: list_written_prefixes(model, loader),
        known: BTreeMap::new(),
        looked: 0,
        told: BTreeSet::new(),
        diagnostics,
    };
    let called = model.called_pipelines();
    // The packs of steps that start before any file can be made.
    let mut early = BTreeSet::new();
    for (index, pipeline) in model.pipelines.iter().enumerate().filter(|(index, _)| model.wanted[*index]) {
        // A caller, a hook or an earlier round may have made any file before.
        let alone = !called.contains(&index) && model.spec.hooks.is_empty() && pipeline.ast.iterations <= 1;
        let plain = pipeline.ast.working_dir.is_none();
        let firsts = if alone { find_first_steps(model, pipeline) } else { Vec::new() };
        for (at, step) in pipeline.steps.iter().enumerate() {
            patterns.diagnostics.set_home(Some(step.ast.name.span));
            for (what, globs) in [("writes", &step.ast.writes), ("reads", &step.ast.reads)] {
                for glob in globs.iter().filter(|_| plain) {
                    patterns.check_folder(what, glob, glob.as_str());
                }
            }
            patterns.check_programs(model, pipeline, step, firsts.get(at) == Some(&true));
            let packs = step.context.iter().copied().chain(step.reads.iter().filter_map(|read| read.pack()));
            if firsts.get(at) == Some(&true) {
                early.extend(packs);
                step.ast.reads.iter().filter(|_| plain).for_each(|glob| patterns.check_read(glob));
            }
        }
    }
    patterns.diagnostics.set_home(None);
    for pack in model.taken_in(early) {
        for rule in &model.packs[pack].ast.rules {
            if let PackRule::Files { globs, .. } = &rule.value {
                globs.iter().for_each(|glob| patterns.check_pack_files(glob));
            }
        }
    }
}

/// The steps before which nothing ends that could make a file.
fn find_first_steps(model: &Model<'_>, pipeline: &Pipeline<'_>) -> Vec<bool> {
    let mut firsts = vec![false; pipeline.steps.len()];
    for &index in &pipeline.order.sorted {
        let step = &pipeline.steps[index];
        // An earlier round or item may have made the file.
        firsts[index] = step.within.is_none()
            && step.list.is_none()
            && step.needs.iter().all(|need| firsts[need.step] && !may_make(model, &pipeline.steps[need.step]));
    }
    firsts
}

/// A pattern that leads out of the workspace, in which nothing of it is looked for.
fn report_outside(node: &str, glob: &Text) -> Diagnostic {
    // It may lie in the workspace all the same, which is elsewhere on another machine.
    if glob.as_str().starts_with('/') {
        let message = format!("`{}` begins with `/`, so `{node}` matches no file", glob.as_str());
        return Diagnostic::new(Code::GlobMatchesNothing, message)
            .label(text_span(glob), "not relative to the workspace")
            .help(
                "patterns are relative to the workspace: write it without the folders that lead there, or remove it",
            );
    }
    let message = format!("`{}` lies outside the workspace, so `{node}` matches no file", glob.as_str());
    Diagnostic::new(Code::GlobMatchesNothing, message)
        .label(text_span(glob), "leads out of the workspace")
        .help("patterns are relative to the workspace: remove it")
}

/// Whether a step may leave files behind; while a gate waits, a person may.
fn may_make(model: &Model<'_>, step: &Step<'_>) -> bool {
    match step.body {
        _ if step.kind().is_some_and(StepKind::is_computed) => false,
        Body::Prompt(_) => {
            step.fixer.is_some()
                || !step.ast.checks.is_empty()
                || step.agent.is_none_or(|agent| {
                    let agent = &model.agents[agent];
                    let writes = |can: &ast::Spanned<Capability>| {
                        matches!(can.value, Capability::WriteFiles | Capability::RunCommands | Capability::Spawn)
                    };
                    let declared = !agent.ast.can.is_empty() && !agent.ast.can.iter().any(writes);
                    !declared || agent.fallback.is_some() || agent.ast.files.is_some() || step.ast.files.is_some()
                })
        }
        _ => true,
    }
}

/// What steps and agents say they write, up to the first sign of a pattern.
fn list_written_prefixes(model: &Model<'_>, loader: &Loader<'_>) -> Vec<String> {
    let mut made = Vec::new();
    let mut copied = |files: Option<&ast::Files>| {
        let outputs = files.into_iter().flat_map(|files| &files.outputs);
        let places = outputs.filter_map(|output| output.copy_to.as_ref());
        made.extend(places.filter_map(|place| join_path(source_folder(loader, place), place.as_str())));
    };
    model.agents.iter().for_each(|agent| copied(agent.ast.files.as_ref()));
    let steps = || model.pipelines.iter().flat_map(|pipeline| &pipeline.steps);
    steps().for_each(|step| copied(step.ast.files.as_deref()));
    made.extend(
        steps().flat_map(|step| &step.ast.writes).filter_map(|glob| join_path("", literal_prefix(glob.as_str()))),
    );
    made.sort();
    made.dedup();
    made
}

/// A pattern up to its first sign.
fn literal_prefix(pattern: &str) -> &str {
    pattern.find(SIGNS).map_or(pattern, |at| &pattern[..at])
}

fn source_folder<'l>(loader: &'l Loader<'_>, text: &Text) -> &'l str {
    loader.sources.name(text_span(text).file).rsplit_once('/').map_or("", |(folder, _)| folder)
}

fn text_span(text: &Text) -> Span {
    text.span(0..text.as_str().len())
}

/// Attaches the edit that writes a path or a pattern, where its characters mean nothing else in a string.
fn write_path(diagnostic: Diagnostic, span: Span, path: String) -> Diagnostic {
    match path.contains(['"', '\\', '\n']) {
        true => diagnostic,
        false => diagnostic.unsafe_fix(format!("write `{path}`"), span, path),
    }
}

/// What a pattern matches.
#[derive(Clone, Debug, PartialEq)]
enum Found {
    /// At least one file, or the check cannot tell.
    Some,
    Nothing,
    /// Files that version control leaves out, such as this one.
    Ignored(String),
    /// Files that are not text, such as this one.
    Binary(String),
}

struct Patterns<'p, 'f> {
    loader: &'p Loader<'f>,
    files: &'f dyn Files,
    ignored: Ignored<'f>,
    /// Where files are made.
    made: Vec<String>,
    known: BTreeMap<(String, bool), Found>,
    looked: usize,
    /// The places that were reported: a shared task has several pipelines.
    told: BTreeSet<Span>,
    diagnostics: &'p mut Diagnostics,
}

impl Patterns<'_, '_> {
    /// Reports a pattern that means a folder.
    fn check_folder(&mut self, node: &str, glob: &Text, pattern: &str) -> bool {
        if join_path("", pattern).is_none() && self.told.insert(text_span(glob)) {
            self.diagnostics.push(report_outside(node, glob));
            return true;
        }
        let Some(path) = join_path("", pattern).filter(|_| !pattern.contains(SIGNS)) else { return false };
        // A name with an ending is one of a file; files that are not there yet would cost time here.
        let named = path.rsplit_once('/').map_or(&*path, |(_, name)| name).contains('.');
        let is_folder = || !named && self.files.find(&path) == Ok(Entry::Folder);
        if path.is_empty() || !pattern.ends_with('/') && !is_folder() {
            return false;
        }
        if !self.told.insert(text_span(glob)) {
            return true;
        }
        let all = format!("{}/**", glob.as_str().trim_end_matches('/'));
        self.diagnostics.push(
            Diagnostic::new(
                Code::GlobMatchesNothing,
                format!("`{}` means a folder, and matches no file", glob.as_str()),
            )
            .label(text_span(glob), "matches nothing")
            .help(format!("write `{node} \"{all}\"`, which matches all files in it")),
        );
        true
    }

    /// A pattern of what a task reads at the beginning: from the root of the workspace.
    fn check_read(&mut self, glob: &Text) {
        let written = glob.as_str();
        if self.told.contains(&text_span(glob)) {
            return;
        }
        let (Some(pattern), Some(other)) =
            (join_path("", written), join_path(source_folder(self.loader, glob), written))
        else {
            return;
        };
        let missing = |found: &Found| *found == Found::Nothing;
        if !missing(&self.find_match(&pattern, false)) || !missing(&self.find_match(&other, false)) {
            return;
        }
        self.told.insert(text_span(glob));
        let diagnostic = self.report_no_match(&pattern, glob, "patterns are relative to the workspace");
        self.diagnostics.push(diagnostic);
    }

    /// A pattern of what a pack shows at the beginning: from the folder of its spec.
    fn check_pack_files(&mut self, glob: &Text) {
        let Some(pattern) = join_path(source_folder(self.loader, glob), glob.as_str()) else { return };
        let slash = if glob.as_str().ends_with('/') { "/" } else { "" };
        if self.check_folder("files", glob, &format!("{pattern}{slash}")) {
            return;
        }
        let diagnostic = match self.find_match(&pattern, true) {
            Found::Some => return,
            Found::Nothing => self.report_no_match(&pattern, glob, "patterns are relative to the spec"),
            Found::Ignored(path) => {
                Diagnostic::new(Code::GlobMatchesNothing, format!("`{pattern}` matches ignored files only"))
                    .label(text_span(glob), format!("`.gitignore` leaves `{path}` out"))
                    .help("begin it with the folder that is meant, name the file without `*`, or mend `.gitignore`")
            }
            Found::Binary(path) => Diagnostic::new(Code::GlobMatchesNothing, format!("`{pattern}` matches no text"))
                .label(text_span(glob), format!("`{path}` is not text"))
                .help("say which files are meant, as in `docs/**/*.md`"),
        };
        self.diagnostics.push(diagnostic);
    }

    fn report_no_match(&self, pattern: &str, glob: &Text, relative: &str) -> Diagnostic {
        let diagnostic = Diagnostic::new(Code::GlobMatchesNothing, format!("no file matches `{pattern}`"))
            .label(text_span(glob), "matches nothing");
        // As it is written, from the folder that it is relative to.
        let folder = pattern.strip_suffix(glob.as_str()).unwrap_or_default();
        match self.suggest_pattern(pattern) {
            Some(close) => {
                let written = close.strip_prefix(folder).unwrap_or(&close).to_owned();
                let diagnostic = diagnostic.help(format!("did you mean `{written}`? {relative}"));
                write_path(diagnostic, text_span(glob), written)
            }
            None => diagnostic.help(format!("{relative}; `**` stands for any folders, as in `src/**/*.rs`")),
        }
    }

    /// The pattern with the first part that is not there spelt like one that is.
    fn suggest_pattern(&self, pattern: &str) -> Option<String> {
        let parts: Vec<&str> = pattern.split('/').collect();
        let at = (0..parts.len()).find(|&at| self.files.find(&parts[..=at].join("/")).is_err())?;
        let (folder, last) = (parts[..at].join("/"), at + 1 == parts.len());
        let names = self.files.list(&folder);
        let names = names.iter().filter_map(|name| if last { Some(name.as_str()) } else { name.strip_suffix('/') });
        let close = suggest::find_closest(parts[at], names).filter(|_| !parts[at].contains(SIGNS))?;
        let mended: Vec<&str> =
            parts.iter().enumerate().map(|(index, &part)| if index == at { close } else { part }).collect();
        Some(mended.join("/"))
    }

    /// What a pattern of the workspace matches; `shown` is for eyes that want text, and what version control has.
    fn find_match(&mut self, pattern: &str, shown: bool) -> Found {
        // Another check reports interpolations in a pattern.
        let begins = literal_prefix(pattern);
        let meets = |made: &String| made.starts_with(begins) || begins.starts_with(made.as_str());
        if pattern.is_empty() || pattern.contains(['<', '$']) || self.made.iter().any(meets) {
            return Found::Some;
        }
        let key = (pattern.to_owned(), shown);
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let found = match pattern.contains(SIGNS) {
            false => match self.files.find(pattern) {
                Err(FileError::Missing | FileError::Case { .. }) => Found::Nothing,
                _ => Found::Some,
            },
            true => self.search_folders(pattern, shown),
        };
        let found = if found == Found::Nothing && self.comes_and_goes(pattern) { Found::Some } else { found };
        self.known.insert(key, found.clone());
        found
    }

    /// Whether what the pattern matches is made and thrown away as one works, so that it may be missing here.
    fn comes_and_goes(&mut self, pattern: &str) -> bool {
        let aside = ASIDE.iter().any(|folder| pattern.starts_with(folder));
        aside || self.ignored.is_ignored(&pattern.replace("**", "x").replace(SIGNS, "x"), false)
    }

    /// Looks for a file that the pattern matches.
    fn search_folders(&mut self, pattern: &str, shown: bool) -> Found {
        let folder = literal_prefix(pattern).rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
        // A pattern that names an ignored folder means the files in it.
        let sieve = shown && (folder.is_empty() || !self.ignored.is_ignored(&folder, true));
        // A pattern with a file extension may match files that are not text.
        let last = pattern.rsplit_once('/').map_or(pattern, |(_, last)| last);
        let texts = shown && !last.contains('.');
        let most = LOOKED_AT.min(LOOKED_AT_IN_ALL.saturating_sub(self.looked));
        let (mut looked, mut read) = (0, 0);
        let (mut ignored, mut binary) = (None, None);
        let mut open = vec![folder];
        while let Some(folder) = open.pop() {
            for name in self.files.list(&folder) {
                looked += 1;
                self.looked += 1;
                // The rest may hold a match, and a wrong report is worse than none.
                if looked > most {
                    return Found::Some;
                }
                let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
                match path.strip_suffix('/') {
                    Some(_) if ASIDE.contains(&name.as_str()) => continue,
                    Some(folder) => {
                        open.push(folder.to_owned());
                        continue;
                    }
                    None if !fast_glob::glob_match(pattern, &path) => continue,
                    None => {}
                }
                if sieve && self.ignored.is_ignored(&path, false) {
                    ignored.get_or_insert(path);
                } else if texts && read < READ && matches!(self.files.read(&path), Err(FileError::NotText { .. })) {
                    read += 1;
                    binary.get_or_insert(path);
                } else {
                    return Found::Some;
                }
            }
        }
        binary.map(Found::Binary).or(ignored.map(Found::Ignored)).unwrap_or(Found::Nothing)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::compile;

    /// Files of which those that end in `.png` are no text.
    struct Pictures(BTreeMap<String, String>);

    impl Files for Pictures {
        fn read(&self, path: &str) -> Result<Arc<str>, FileError> {
            match path.ends_with(".png") {
                true => Err(FileError::NotText { offset: 0, looks_like: None }),
                false => self.0.read(path),
            }
        }

        fn find(&self, path: &str) -> Result<Entry, FileError> {
            self.0.find(path)
        }

        fn list(&self, path: &str) -> Vec<String> {
            self.0.list(path)
        }
    }

    fn found(globs: &str, others: &[&str]) -> Vec<String> {
        let spec = format!(
            "provider p {{ exec cat }}\nagent a\ncontext-pack c {{ files {globs} }}\n\
             pipeline m {{ task t {{ prompt x; context c }} }}\n"
        );
        let files = others.iter().map(|path| ((*path).to_owned(), String::new()));
        let files = Pictures(files.chain([("spec.kdl".to_owned(), spec)]).collect());
        compile("spec.kdl", &files).diagnostics.into_iter().map(|found| found.message).collect()
    }

    #[test]
    fn a_pattern_that_matches_no_text_is_reported_unless_it_says_so() {
        assert_eq!(found("\"art/**\"", &["art/a.png", "art/b/c.png"]), ["`art/**` matches no text"]);
        assert_eq!(found("\"art/**\"", &["art/a.png", "art/read.md"]), [""; 0]);
        assert_eq!(found("\"art/**/*.png\" \"art/a.png\"", &["art/a.png"]), [""; 0]);
    }

    #[test]
    fn a_large_folder_is_taken_to_hold_what_is_looked_for() {
        let paths: Vec<String> = (0..=LOOKED_AT).map(|index| format!("many/{index}.txt")).collect();
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        assert_eq!(found("\"many/*.md\"", &paths), [""; 0]);
        assert_eq!(found("\"many/*.md\"", &paths[..10]), ["no file matches `many/*.md`"]);
    }
}
