//! SW107: a program of the workspace that is not there, or that may not be started.
//!
//! In go the first words of `exec`, `acp`, `run` and `check` that name a file by a relative path. What a task says that it
//! makes, and what version control leaves out, may be there by then; what anything before may have made is a warning.

use super::Patterns;
use crate::ast;
use crate::code::{Code, Severity};
use crate::diagnostic::Diagnostic;
use crate::files::FileError;
use crate::load::join_path;
use crate::model::{Model, Pipeline, Step};
use crate::syntax::Text;

/// What makes a word something else than the name of a file.
const NO_NAME: [char; 12] = ['<', '{', '$', '*', '?', '[', '~', '`', '"', '\'', '\\', '='];

impl Patterns<'_, '_> {
    /// The programs that a step starts; `first` says whether anything ran before that could make them.
    pub(super) fn check_programs(&mut self, model: &Model<'_>, pipeline: &Pipeline<'_>, step: &Step<'_>, first: bool) {
        if let Some(ast::Body::Run(line)) = &step.ast.body {
            self.check_program("run", pipeline, line, first);
        }
        // The body runs before its checks, and may make the program.
        step.ast.checks.iter().for_each(|line| self.check_program("check", pipeline, line, false));
        let agent = step.agent.map(|agent| &model.agents[agent]);
        if let Some(provider) = agent.and_then(|agent| agent.provider) {
            let provider = model.providers[provider].ast;
            for (kind, line) in provider.programs() {
                self.check_program(kind.name(), pipeline, line, first);
            }
        }
    }

    fn check_program(&mut self, node: &str, pipeline: &Pipeline<'_>, line: &ast::Line, first: bool) {
        let Some(text) = line.words.first() else { return };
        // A single word is a line for the shell.
        let written = text.as_str();
        let word = if line.words.len() == 1 { written.split_whitespace().next().unwrap_or_default() } else { written };
        // The report begins with the text, so a line with a space before its program is left out.
        if !word.contains('/') || word.starts_with('/') || word.contains(NO_NAME) || !written.starts_with(word) {
            return;
        }
        let folder = pipeline.ast.working_dir.as_ref().map_or("", Text::as_str);
        let Some(path) = join_path("", folder).and_then(|folder| join_path(&folder, word)) else { return };
        let (label, help) = match self.files.is_executable(&path) {
            Ok(true) => return,
            Ok(false) => ("not executable", (format!("type `chmod +x {path}`"), None)),
            Err(FileError::Missing | FileError::Case { .. } | FileError::Folder) => {
                ("not there", self.suggest_program(text, word, &path, folder))
            }
            Err(_) => return,
        };
        let meets = |made: &String| path.starts_with(made.as_str());
        let span = text.span(0..word.len());
        if self.diagnostics.has_report_at(span) {
            return;
        }
        if self.made.iter().any(meets) || self.comes_and_goes(&path) || !self.told.insert(span) {
            return;
        }
        let message = match label {
            "not there" => format!("`{node}` names the program `{word}`, but the workspace has no `{path}`"),
            _ => format!("`{node}` names the program `{word}`, which is not executable"),
        };
        let (help, close) = help;
        let diagnostic = Diagnostic::new(Code::MissingProgram, message).label(span, label).help(help);
        let diagnostic = match close {
            Some(close) => super::write_path(diagnostic, span, close),
            None => diagnostic,
        };
        let severity = (!first).then_some(Severity::Warning);
        self.diagnostics.push(Diagnostic { severity, ..diagnostic });
    }

    /// What to type for a program that is not there, and the path of one that is nearly called so.
    fn suggest_program(&self, text: &Text, word: &str, path: &str, folder: &str) -> (String, Option<String>) {
        let counts = match folder {
            "" => "program paths are relative to the workspace".to_owned(),
            folder => format!("program paths are relative to `{folder}`, the `working-dir` of the pipeline"),
        };
        let beside = join_path(super::source_folder(self.loader, text), word).filter(|beside| beside != path);
        if let Some(beside) = beside.filter(|beside| folder.is_empty() && self.files.is_executable(beside).is_ok()) {
            return (format!("`{beside}` lies beside the spec; {counts}: write `{beside}`"), Some(beside));
        }
        match self.suggest_pattern(path).filter(|close| self.files.is_executable(close).is_ok()) {
            Some(close) if folder.is_empty() => (format!("did you mean `{close}`?"), Some(close)),
            _ => (format!("{counts}; if a task makes it, add to that task `writes \"{path}\"`"), None),
        }
    }
}
