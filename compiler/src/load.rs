//! Loads the texts of other files: prompts, roles, scripts, and the files that they include.
//!
//! Paths are relative to the file that names them and stay inside the workspace. The loader reads each file once.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::cancel::Cancel;
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::files::{Entry, FileError, Files};
use crate::library;
use crate::mapped_text::MappedText;
use crate::source::{FileId, Sources, Span};
use crate::suggest;
use crate::syntax::{self, Text, Tree};
use crate::template::{Kind, Part};
use crate::text_cache::{Cache, CachedText};

/// How deep includes nest (DESIGN "Limits").
const INCLUDE_DEPTH: usize = 10;
/// The bytes of one prompt, includes and all: as many as a file may have.
const PROMPT_BYTES: usize = 16 << 20;
/// The includes of one prompt, those of included files counted too.
const INCLUDES: usize = 1000;

/// Reads files and remembers them.
pub(crate) struct Loader<'a> {
    files: &'a dyn Files,
    pub(crate) sources: Sources,
    cache: &'a Cache,
    cancel: &'a Cancel,
    /// What is known of the texts, by file.
    facts: Vec<Arc<CachedText>>,
    read: BTreeMap<String, FileId>,
    library: BTreeMap<&'static str, FileId>,
    /// The trees of specs, once they are asked for.
    trees: RefCell<BTreeMap<FileId, Arc<Tree>>>,
    /// The first file that only tests read.
    tests: usize,
}

impl<'a> Loader<'a> {
    pub(crate) fn new(files: &'a dyn Files, cache: &'a Cache, cancel: &'a Cancel) -> Loader<'a> {
        Loader {
            files,
            sources: Sources::new(),
            cache,
            cancel,
            facts: Vec::new(),
            read: BTreeMap::new(),
            library: BTreeMap::new(),
            trees: RefCell::default(),
            tests: usize::MAX,
        }
    }

    /// Whether the caller has cancelled the compilation.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// The flag itself, for checks that read it again and again.
    pub(crate) fn cancel(&self) -> &'a Cancel {
        self.cancel
    }

    /// The tree of a file that has been read.
    pub(crate) fn syntax_tree(&self, file: FileId) -> Arc<Tree> {
        if let Some(tree) = self.trees.borrow().get(&file) {
            return Arc::clone(tree);
        }
        // Spans in a tree name its file, and the caller parses its trees as the first file.
        let known = if file == FileId::new(0) { self.files.tree(self.sources.name(file)) } else { None };
        let tree = known.unwrap_or_else(|| Arc::new(syntax::parse(self.sources.text(file), file)));
        self.trees.borrow_mut().insert(file, Arc::clone(&tree));
        tree
    }

    /// The text of the file at a workspace-relative path.
    pub(crate) fn read_file(&mut self, path: &str) -> Result<FileId, FileError> {
        if let Some(&file) = self.read.get(path) {
            return Ok(file);
        }
        let text = self.files.read(path)?;
        let file = self.add_source(path, text);
        self.read.insert(path.to_owned(), file);
        Ok(file)
    }

    /// The file at a workspace-relative path, when it has been read.
    pub(crate) fn loaded_file(&self, path: &str) -> Option<FileId> {
        self.read.get(path).copied()
    }

    /// A part of the embedded library, read when it is first asked for.
    pub(crate) fn library(&mut self, name: &str) -> Option<FileId> {
        let (name, text) = library::find_part(name)?;
        if let Some(&file) = self.library.get(name) {
            return Some(file);
        }
        let file = self.add_source(name, text.into());
        self.library.insert(name, file);
        Some(file)
    }

    fn add_source(&mut self, name: &str, text: Arc<str>) -> FileId {
        self.facts.push(self.cache.cached_text(Arc::clone(&text)));
        self.sources.add(name, text)
    }

    /// What is known of the text of a file.
    pub(crate) fn facts(&self, file: FileId) -> &Arc<CachedText> {
        &self.facts[file.index()]
    }

    /// The file that an `import` names, or a report.
    pub(crate) fn resolve_import(&mut self, path: &Text, diagnostics: &mut Diagnostics) -> Option<FileId> {
        let (written, span) = (path.as_str(), path.span(0..path.as_str().len()));
        if !written.starts_with(library::PREFIX) {
            return self.resolve_file(written, span, diagnostics);
        }
        let file = self.library(written);
        if file.is_none() {
            let (close, help) = suggest::did_you_mean(written, &library::part_names(), "the library has ");
            let diagnostic = Diagnostic::new(Code::MissingFile, format!("there is no `{written}`"))
                .label(span, "not a part of the library")
                .help_maybe(help);
            diagnostics.push(match close {
                Some(close) => diagnostic.write_near(span, close),
                None => diagnostic,
            });
        }
        file
    }

    /// The file that a spec or a prompt names, or a report.
    pub(crate) fn resolve_file(&mut self, written: &str, span: Span, diagnostics: &mut Diagnostics) -> Option<FileId> {
        // The caller discards the result.
        if self.is_cancelled() {
            return None;
        }
        let path = self.resolve_path(written, span, diagnostics)?;
        match self.read_file(&path) {
            Ok(file) => Some(file),
            Err(error) => {
                diagnostics.push(self.report_unreadable(written, &path, &error, Some(span)));
                None
            }
        }
    }

    /// Reports a path that leads to nothing of the wanted kind. Gives the path when a step makes it, by `made`, which is
    /// none where no step can have made it yet.
    pub(crate) fn find_entry(
        &self,
        written: &str,
        wanted: Entry,
        span: Span,
        made: Option<&dyn Fn(&str) -> bool>,
        diagnostics: &mut Diagnostics,
    ) -> Option<String> {
        let path = self.resolve_path(written, span, diagnostics)?;
        let diagnostic = match (self.files.find(&path), wanted) {
            (Ok(Entry::Folder), Entry::File) => self.report_unreadable(written, &path, &FileError::Folder, Some(span)),
            (Ok(Entry::File), Entry::Folder) => Diagnostic::new(Code::MissingFile, format!("`{path}` is a file"))
                .label(span, "not a folder")
                .help("name the folder that it lies in"),
            (Ok(_), _) => return None,
            (Err(FileError::Missing), _) if made.is_some_and(|made| made(&path)) => return Some(path),
            (Err(FileError::Missing), Entry::File) if made.is_some() => {
                let missing = self.report_unreadable(written, &path, &FileError::Missing, Some(span));
                let help = missing.help.clone().unwrap_or_default();
                let stop = if help.ends_with('?') { "" } else { ";" };
                missing.help(format!("{help}{stop} if a task makes it, add to that task `writes \"{path}\"`"))
            }
            (Err(FileError::Missing), Entry::Folder) => {
                Diagnostic::new(Code::MissingFile, format!("there is no folder `{path}`"))
                    .label(span, "not there")
                    .help("it must be there before the first task starts, relative to the spec")
            }
            (Err(error), _) => self.report_unreadable(written, &path, &error, Some(span)),
        };
        diagnostics.push(diagnostic);
        None
    }

    /// The files, for questions that this page has no answer to.
    pub(crate) fn workspace(&self) -> &'a dyn Files {
        self.files
    }

    /// The text of a file whose contents are not part of the plan; none where there is none, which others report.
    pub(crate) fn peek_text(&self, written: &str, span: Span) -> Option<Arc<str>> {
        self.files.read(&self.workspace_path(written, span)?).ok()
    }

    /// A path as the workspace sees it, written in the file of `span`; none when it leads out of it.
    pub(crate) fn workspace_path(&self, written: &str, span: Span) -> Option<String> {
        path_from(self.sources.name(span.file), written)
    }

    /// A path as the workspace sees it, or a report when it leads out of it.
    pub(crate) fn resolve_path(&self, written: &str, span: Span, diagnostics: &mut Diagnostics) -> Option<String> {
        let home = self.sources.name(span.file);
        let folder = home.rsplit_once('/').map_or("", |(folder, _)| folder);
        let path = join_path(folder, written);
        if path.is_none() {
            diagnostics.push(
                Diagnostic::new(Code::MissingFile, format!("`{written}` lies outside the workspace"))
                    .label(span, "leads out of the workspace")
                    .help("paths are relative to the file that names them: move the file into the workspace"),
            );
        }
        path
    }

    /// A file that cannot be read; without a span for the spec itself.
    pub(crate) fn report_unreadable(
        &self,
        written: &str,
        path: &str,
        error: &FileError,
        span: Option<Span>,
    ) -> Diagnostic {
        let place = |diagnostic: Diagnostic, label: &str| match span {
            Some(span) => diagnostic.label(span, label),
            None => diagnostic,
        };
        let diagnostic = |message: String, label: &str| place(Diagnostic::new(Code::MissingFile, message), label);
        match error {
            FileError::Missing => {
                let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
                let names = self.files.list(folder);
                let names: Vec<&str> = names.iter().map(String::as_str).filter(|name| !name.ends_with('/')).collect();
                let missing = diagnostic(format!("there is no file `{path}`"), "not there");
                match suggest::find_nearest(name, names.iter().copied()) {
                    Some(close) => {
                        let written_folder =
                            written.rsplit_once('/').map_or(String::new(), |(folder, _)| format!("{folder}/"));
                        let right = format!("{written_folder}{close}");
                        let missing = missing.help(format!("did you mean `{right}`?"));
                        // What stands there is the path as it is, where its characters mean nothing else.
                        let plain = |sign: char| sign.is_ascii_alphanumeric() || "._-/".contains(sign);
                        let title = format!("write `{right}`");
                        let quoted = |span: Span| self.sources.slice(span) == format!("\"{written}\"");
                        match span.filter(|_| right.chars().all(plain)) {
                            Some(span) if self.sources.slice(span) == written => {
                                missing.edit(title, span, right, close.certain)
                            }
                            Some(span) if quoted(span) => {
                                missing.edit(title, span, format!("\"{right}\""), close.certain)
                            }
                            _ => missing,
                        }
                    }
                    None if span.is_none() => missing.help("check its name, and the folder you are in"),
                    None => missing.help("paths are relative to the file that names them"),
                }
            }
            FileError::Case { actual } => diagnostic(format!("there is no file `{path}`"), "differs in case")
                .help(format!("the file is called `{actual}`; some systems distinguish upper and lower case")),
            FileError::Outside => {
                diagnostic(format!("`{path}` lies outside the workspace"), "leads out of the workspace")
                    .help("a link that leaves the workspace is not followed: copy the file into it")
            }
            FileError::Folder => diagnostic(format!("`{path}` is a folder"), "not a file").help("name a file in it"),
            FileError::TooLarge { bytes } => {
                let message = format!("`{path}` has {bytes} bytes, and a file may have 16 MiB");
                place(Diagnostic::new(Code::InputLimits, message), "too large")
                    .help("split it, or read it at run time, by a task with `run`")
            }
            FileError::NotText { offset, looks_like } => {
                let is = looks_like.map_or(String::new(), |name| format!(" (it looks like {name})"));
                diagnostic(format!("`{path}` is not UTF-8 text{is}"), "not text")
                    .help(format!("byte {offset} is the first that is not UTF-8: save the file as UTF-8"))
            }
            FileError::Refused { message } => {
                diagnostic(format!("`{path}` cannot be read: {message}"), "not readable").help("mend its permissions")
            }
        }
    }

    /// A text with everything that it includes in place.
    pub(crate) fn expand_includes(&mut self, passage: MappedText, diagnostics: &mut Diagnostics) -> MappedText {
        if !passage.mentions_include() {
            return passage;
        }
        let mut expansion = Expansion {
            loader: self,
            diagnostics,
            chain: vec![passage.span(0..0).file],
            bytes: 0,
            includes: 0,
            full: false,
        };
        expansion.expand_passage(&passage)
    }

    /// Says that what is read from here on is read for tests.
    pub(crate) fn only_tests_from_here(&mut self) {
        self.tests = self.sources.files().count();
    }

    /// The files that were read, by path, without those that only tests read.
    pub(crate) fn list_files(&self) -> impl Iterator<Item = (&str, FileId)> {
        let read = self.read.iter().map(|(path, &file)| (path.as_str(), file));
        read.filter(|(_, file)| file.index() < self.tests)
    }
}

struct Expansion<'l, 'a, 'd> {
    loader: &'l mut Loader<'a>,
    diagnostics: &'d mut Diagnostics,
    /// The files that are open, outermost first.
    chain: Vec<FileId>,
    bytes: usize,
    includes: usize,
    /// Whether a limit on the two was reported.
    full: bool,
}

impl Expansion<'_, '_, '_> {
    /// Recursion is bounded by [`INCLUDE_DEPTH`].
    fn expand_passage(&mut self, passage: &MappedText) -> MappedText {
        if !passage.mentions_include() {
            self.bytes += passage.text().len();
            return passage.clone();
        }
        let template = passage.template();
        let mut whole = MappedText::empty(passage.span(0..0));
        let mut copied = 0;
        for part in &template.parts {
            let Part::Directive(directive) = part else { continue };
            let (Kind::Include, Some(name)) = (directive.kind, &directive.name) else { continue };
            // Counted first: `resolve_include` holds the sum against the limit.
            self.bytes += directive.range.start - copied;
            whole.append(passage, copied..directive.range.start);
            copied = directive.range.end;
            let span = passage.span(name.range.clone());
            // The scan of the whole text reports problems, but does not see this directive any more.
            for problem in template.problems.iter().filter(|problem| directive.range.contains(&problem.range.start)) {
                self.diagnostics.push(passage.report_problem(problem));
            }
            if let Some(file) = self.resolve_include(&name.value, span) {
                let text = MappedText::from_file(file, self.loader.facts(file), passage.home(name.range.start))
                    .trim_line_breaks();
                self.chain.push(file);
                let text = self.expand_passage(&text);
                self.chain.pop();
                whole.append(&text, 0..text.text().len());
                whole.add_include(file, passage.span(directive.range.clone()));
            }
        }
        self.bytes += passage.text().len() - copied;
        whole.append(passage, copied..passage.text().len());
        whole
    }

    /// The file of an include, when it may be put in place.
    fn resolve_include(&mut self, written: &str, span: Span) -> Option<FileId> {
        let last = written.rsplit_once('/').map_or(written, |(_, last)| last);
        let written = if last.contains('.') { written.to_owned() } else { format!("{written}.md") };
        let file = self.loader.resolve_file(&written, span, self.diagnostics)?;
        self.includes += 1;
        let limit = |message: String, label: &str, help: &str| {
            Diagnostic::new(Code::InputLimits, message).label(span, label).help(help)
        };
        let diagnostic = if self.chain.contains(&file) {
            limit(
                format!("`{written}` includes itself"),
                "closes the circle",
                "remove one of the includes in the circle",
            )
        // The chain begins with the prompt itself, which is no include.
        } else if self.chain.len() > INCLUDE_DEPTH {
            limit(format!("includes nest deeper than {INCLUDE_DEPTH}"), "one too deep", "include the text directly")
        } else if self.includes <= INCLUDES && self.bytes <= PROMPT_BYTES {
            return Some(file);
        } else if !self.full {
            self.full = true;
            limit(
                format!("the prompt has more than {INCLUDES} includes, or more than 16 MiB"),
                "the one too many",
                "include less: each include counts as often as it is reached",
            )
        } else {
            return None;
        };
        self.diagnostics.push(diagnostic);
        None
    }
}

/// A path as the workspace sees it, written in the file `home`; none when it leads out of the workspace.
pub fn path_from(home: &str, written: &str) -> Option<String> {
    join_path(home.rsplit_once('/').map_or("", |(folder, _)| folder), written)
}

/// A path of the workspace, written in the file that it counts from; none when it leads out of it.
pub(crate) fn workspace_path(sources: &Sources, path: &Text) -> Option<String> {
    path_from(sources.name(path.span(0..0).file), path.as_str())
}

/// A path of the workspace, written from a folder of it; none when it leads out of it.
pub fn join_path(folder: &str, written: &str) -> Option<String> {
    // A shell or another system would find these outside of the workspace.
    if written.starts_with(['/', '\\', '~']) {
        return None;
    }
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in written.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_in_the_workspace() {
        assert_eq!(join_path("specs/a", "../b/./c.md").as_deref(), Some("specs/b/c.md"));
        assert_eq!(join_path("", "c.md").as_deref(), Some("c.md"));
        for outside in ["../c.md", "/etc/passwd", "a/../../c.md", "~/c"] {
            assert_eq!(join_path("", outside), None, "{outside}");
        }
    }
}
