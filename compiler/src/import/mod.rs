//! Compose files of another tool (seed 000) as specs.
//!
//! In: YAML, and the files beside it. Out: a spec that says the same, and SW705 for each thing that it could not say, at
//! its place in the YAML. Prompt files stay where they are. Nothing is dropped in silence.

mod compose;
mod convert;
mod names;
mod prompt;
mod text;
mod write;
mod yaml;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use crate::code::{Code, Severity};
use crate::diagnostic::{Diagnostic, Diagnostics, MOST};
use crate::files::Files;
use crate::source::{Sources, Span};
use compose::Said;
pub(crate) use write::escape_entry;

/// What came of a compose file.
#[derive(Debug)]
pub struct Import {
    /// The spec, formatted; none when the file could not be read as YAML or holds no task.
    pub spec: Option<String>,
    /// The compose file.
    pub sources: Sources,
    /// What was lost on the way, as errors; and as hints what is otherwise than before.
    pub diagnostics: Vec<Diagnostic>,
    /// How many tasks and pipelines the spec has.
    pub counts: (usize, usize),
}

/// Where a compose file comes from and where the spec goes.
#[derive(Clone, Copy, Debug)]
pub struct Route<'a> {
    /// The compose file, relative to the workspace.
    pub from: &'a str,
    /// The spec, relative to the workspace: what it names is named from there.
    pub to: &'a str,
    /// The preset of `std:providers` that runs the agents whose model does not tell another one.
    pub preset: &'a str,
}

/// Turns the text of a compose file into a spec.
pub fn import_compose(text: &str, route: Route<'_>, files: &dyn Files) -> Import {
    let mut sources = Sources::new();
    let file = sources.add(route.from, text);
    let mut notes = Notes::new(&sources);
    let mut spec = None;
    let mut counts = (0, 0);
    match yaml::parse(text, file) {
        Err(broken) => notes.report_loss(broken.span, broken.message, "not read from here on", None, None),
        Ok(document) => {
            for (span, what) in document.unread {
                notes.report_loss(span, what.to_owned(), "not carried over", None, None);
            }
            match document.root {
                Some(root) => {
                    let compose = compose::read_compose(&root, &mut notes);
                    let carried = convert::convert_compose(compose, route, text, files, &mut notes);
                    counts = (carried.tasks.len(), carried.pipelines.len());
                    spec = (!carried.tasks.is_empty()).then(|| write::render_spec(&carried, &notes.comments));
                }
                None => notes.report_loss(Span::new(file, 0, 0), "this file is empty".to_owned(), "empty", None, None),
            }
        }
    }
    if spec.is_none() && notes.count == 0 {
        let help = Some("a compose file has `tasks:`, by name".to_owned());
        notes.report_loss(
            Span::new(file, 0, 0),
            "there is no task here".to_owned(),
            "nothing to carry over",
            help,
            None,
        );
    }
    let diagnostics = notes.diagnostics.into_sorted();
    Import { spec, sources, diagnostics, counts }
}

/// What is said about the way from one to the other, in the YAML and in the spec.
struct Notes<'s> {
    sources: &'s Sources,
    diagnostics: Diagnostics,
    /// What was lost, by where the name of its task or pipeline stands; at 0 what belongs to none.
    comments: BTreeMap<u32, Vec<String>>,
    count: usize,
}

impl<'s> Notes<'s> {
    fn new(sources: &'s Sources) -> Notes<'s> {
        Notes { sources, diagnostics: Diagnostics::default(), comments: BTreeMap::new(), count: 0 }
    }

    /// Whether nothing more is told: only the first thousand problems are kept.
    fn is_full(&self) -> bool {
        self.count >= MOST
    }

    /// Reports something that the spec does not say.
    fn report_loss(&mut self, span: Span, message: String, label: &str, help: Option<String>, owner: Option<&Said>) {
        self.add_comment(span, &message, owner);
        let diagnostic = Diagnostic::new(Code::NotImported, message).label(span, label).help_maybe(help);
        self.diagnostics.push(diagnostic);
    }

    /// Reports the second of two where one may stand.
    fn report_duplicate(&mut self, span: Span, first: Span, message: String, owner: Option<&Said>) {
        self.add_comment(span, &message, owner);
        let diagnostic = Diagnostic::new(Code::NotImported, message)
            .label(span, "not carried over")
            .label(first, "this one is used");
        self.diagnostics.push(diagnostic);
    }

    /// Tells what is otherwise than before, and means the same.
    fn report_change(&mut self, span: Span, message: String, label: &str) {
        let diagnostic = Diagnostic::new(Code::NotImported, message).label(span, label);
        self.diagnostics.push(Diagnostic { severity: Some(Severity::Hint), ..diagnostic });
    }

    fn add_comment(&mut self, span: Span, message: &str, owner: Option<&Said>) {
        /// The characters of a comment at most.
        const LONGEST: usize = 160;
        if self.is_full() {
            return;
        }
        self.count += 1;
        let line = self.sources.position(span.file, span.start).line;
        let words: String = message.chars().map(|c| if c.is_control() { ' ' } else { c }).take(LONGEST).collect();
        let name = self.sources.name(span.file);
        let name = name.rsplit_once('/').map_or(name, |(_, name)| name);
        let comments = self.comments.entry(owner.map_or(0, |owner| owner.span.start)).or_default();
        comments.push(format!("not carried over ({name}:{line}): {words}"));
    }
}
