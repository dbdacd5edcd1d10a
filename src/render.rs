//! Diagnostics for people and machines: drawn on a terminal, plain text in a pipe, one line each, JSON, and the forms
//! of code scanning (SARIF), GitHub Actions and JUnit.
//!
//! In: a compilation and where its files lie. Out: text, with paths as the user would type them. Nothing that a spec
//! holds reaches a terminal as a control character, and no line is ever longer than a screen needs.

mod github;
mod junit;
mod sarif;

use std::fmt::Write;

use miette::{GraphicalReportHandler, GraphicalTheme};
use swarmc_compiler::{Code, Compilation, Diagnostic, FileId, Label, Levels, Report, Severity, Sources, Span};
use swarmc_view::documents;
use swarmc_view::{make_printable, same_length};

use crate::files::Workspace;
use crate::terminal::{Paint, Stream};

pub(crate) use junit::build_report as junit_report;
pub(crate) use sarif::build_log as sarif_log;

/// Lines longer than this many bytes are not drawn but quoted in part.
const LONG_LINE: usize = 400;

/// The characters shown of a long line before and after a place in it.
const AROUND: usize = 60;

/// The problems of a compilation, ready to be shown.
pub(crate) struct Problems {
    sources: Sources,
    list: Vec<(Severity, Diagnostic)>,
    /// How many more there are.
    left_out: usize,
}

impl Problems {
    pub(crate) fn new(compilation: &Compilation, workspace: &Workspace, levels: &Levels) -> Problems {
        let list: Vec<_> = compilation
            .diagnostics
            .iter()
            .filter_map(|diagnostic| Some((diagnostic.severity_in(levels)?, sanitize_diagnostic(diagnostic))))
            .collect();
        // What has no problems needs no copy of all texts.
        let sources = if list.is_empty() { Sources::new() } else { display_sources(&compilation.sources, workspace) };
        // Those of a code that is not shown are not missed.
        let is_shown = |code: &Code| list.iter().any(|(_, diagnostic)| diagnostic.code == *code);
        let left_out = compilation.left_out.iter().filter(|(code, _)| is_shown(code)).map(|(_, count)| count).sum();
        Problems { sources, list, left_out }
    }

    pub(crate) fn count_problems(&self) -> Counts {
        let count = |severity| self.list.iter().filter(|(found, _)| *found == severity).count();
        Counts {
            errors: count(Severity::Error),
            warnings: count(Severity::Warning),
            hints: count(Severity::Hint),
            left_out: self.left_out,
        }
    }

    /// Leaves out what `seen` holds already, as two specs may share a prompt.
    pub(crate) fn dedup(&mut self, seen: &mut std::collections::HashSet<String>) {
        let sources = &self.sources;
        // Each spec may rate a shared problem in its own way: the severity must not tell them apart.
        self.list.retain(|(_, diagnostic)| seen.insert(format_short(sources, Severity::Error, diagnostic)));
    }

    /// Leaves out the problems for which `hides` holds, by file, code and message; says how many.
    pub(crate) fn hide_matching(&mut self, mut hides: impl FnMut(Option<FileId>, Code, &str) -> bool) -> usize {
        let before = self.list.len();
        self.list.retain(|(_, found)| !hides(found.span().map(|span| span.file), found.code, &found.message));
        before - self.list.len()
    }

    /// With lines and labels: drawn where `stream` is a terminal, plain elsewhere.
    pub(crate) fn render_text(&self, stream: Stream) -> String {
        let paint = stream.paint();
        let drawn = stream.is_live() || paint.colour;
        let mut out = String::new();
        for (severity, diagnostic) in &self.list {
            match drawn && self.is_drawable(diagnostic) {
                true => out.push_str(&self.render_graphical(*severity, diagnostic, stream)),
                false => out.push_str(&render_plain(&self.sources, *severity, diagnostic, paint)),
            }
            out.push('\n');
        }
        out
    }

    /// One line each.
    pub(crate) fn render_short(&self) -> String {
        self.list
            .iter()
            .map(|(severity, diagnostic)| format_short(&self.sources, *severity, diagnostic) + "\n")
            .collect()
    }

    pub(crate) fn list_documents(&self) -> Vec<documents::Diagnostic> {
        self.list
            .iter()
            .map(|(severity, diagnostic)| document_diagnostic(&self.sources, *severity, diagnostic))
            .collect()
    }

    /// Whether every place is on a line that fits a screen: drawing shows whole lines.
    fn is_drawable(&self, diagnostic: &Diagnostic) -> bool {
        diagnostic.labels.iter().chain(&diagnostic.trace).all(|label| {
            let file = self.sources.file(label.span.file);
            let first = file.position(label.span.start as usize).line;
            let last = file.position(label.span.end as usize).line;
            // One line more on each side, which `with_context_lines` draws as well.
            last - first < 40 && (first.saturating_sub(1)..=last + 1).all(|line| file.line(line).len() <= LONG_LINE)
        })
    }

    fn render_graphical(&self, severity: Severity, diagnostic: &Diagnostic, stream: Stream) -> String {
        let theme = match stream.paint().colour {
            true => GraphicalTheme::unicode(),
            false => GraphicalTheme::unicode_nocolor(),
        };
        let (columns, _) = stream.size();
        let handler = GraphicalReportHandler::new_themed(theme)
            .with_links(false)
            .with_context_lines(1)
            .with_width(columns.clamp(40, 120));
        let mut out = String::new();
        match handler.render_report(&mut out, &Report::new(diagnostic, &self.sources).with_severity(severity)) {
            Ok(()) => out,
            // A picture that cannot be drawn must not hide the problem.
            Err(_) => render_plain(&self.sources, severity, diagnostic, stream.paint()),
        }
    }
}

/// The sources as they may be shown: under names as the user would type them, without control characters.
pub(crate) fn display_sources(sources: &Sources, workspace: &Workspace) -> Sources {
    let mut shown = Sources::new();
    for file in sources.files() {
        // The spans count bytes of the source, so what replaces its control characters must be as long.
        shown.add(workspace.display_path(sources.name(file)), &*same_length(sources.text(file)));
    }
    shown
}

/// Something that does not hold, with the place that says it.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) span: Span,
    pub(crate) message: &'a str,
    /// What the place is.
    pub(crate) label: &'a str,
    /// What was found instead, in lines.
    pub(crate) notes: &'a str,
    /// What to type.
    pub(crate) help: Option<&'a str>,
}

/// `FILE:LINE:COLUMN: failed: message`, the place with a mark, what was found, and the help.
pub(crate) fn render_finding(sources: &Sources, found: Place<'_>, paint: Paint) -> String {
    let place = format_place(sources, found.span);
    let line = |line: &str| truncate_words(&make_printable(line));
    let mut out = paint.red(&format!("{place}: failed: {}", line(&found.message.replace('\n', " "))));
    out.push('\n');
    let label = Label { span: found.span, text: line(found.label) };
    render_snippet(&mut out, sources, &label, "^", false);
    for note in found.notes.lines() {
        let note = line(note);
        let note = match note.as_bytes().first() {
            Some(b'-') => paint.red(&note),
            Some(b'+') => paint.green(&note),
            _ => note,
        };
        let _ = writeln!(out, "    {note}");
    }
    if let Some(help) = found.help {
        let _ = writeln!(out, "  help: {}", line(help));
    }
    out
}

/// How many problems there are of each severity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) errors: usize,
    pub(crate) warnings: usize,
    pub(crate) hints: usize,
    /// How many more there are.
    pub(crate) left_out: usize,
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.errors += other.errors;
        self.warnings += other.warnings;
        self.hints += other.hints;
        self.left_out += other.left_out;
    }
}

/// `2 errors, 1 warning`; behind a thousand, `and 7 more`.
pub(crate) fn count_line(counts: Counts, paint: Paint) -> String {
    let Counts { errors, warnings, hints, left_out } = counts;
    let plural = |count: usize, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
    let parts: Vec<String> = [
        (errors > 0).then(|| paint.red(&plural(errors, "error"))),
        (warnings > 0).then(|| paint.yellow(&plural(warnings, "warning"))),
        (hints > 0).then(|| paint.cyan(&plural(hints, "hint"))),
    ]
    .into_iter()
    .flatten()
    .collect();
    let more = if left_out > 0 { format!(" and {left_out} more, which are not shown") } else { String::new() };
    if parts.is_empty() { "no problems".to_owned() } else { parts.join(", ") + &more }
}

/// `FILE:LINE:COLUMN: error[SW201]: message`.
fn format_short(sources: &Sources, severity: Severity, diagnostic: &Diagnostic) -> String {
    let head = format!("{}[{}]: {}", severity.as_str(), diagnostic.code.id(), diagnostic.message.replace('\n', " "));
    match diagnostic.span() {
        Some(span) => format!("{}: {head}", format_place(sources, span)),
        None => head,
    }
}

fn format_place(sources: &Sources, span: Span) -> String {
    let position = sources.position(span.file, span.start);
    format!("{}:{}:{}", sources.name(span.file), position.line, position.column)
}

/// The short line, the places with their text in ASCII marks, the help and the fix.
fn render_plain(sources: &Sources, severity: Severity, diagnostic: &Diagnostic, paint: Paint) -> String {
    let head = format_short(sources, severity, diagnostic);
    let mut out = match severity {
        Severity::Error => paint.red(&head),
        Severity::Warning => paint.yellow(&head),
        Severity::Hint => paint.cyan(&head),
    };
    out.push('\n');
    for (index, label) in diagnostic.all_labels().iter().enumerate() {
        let elsewhere = label.span.file != diagnostic.labels[0].span.file;
        render_snippet(&mut out, sources, label, if index == 0 { "^" } else { "-" }, elsewhere);
    }
    if let Some(help) = &diagnostic.help {
        let _ = writeln!(out, "  help: {}", help.replace('\n', "\n        "));
    }
    out
}

/// The line of a label, cut around it, and below it marks with the label's text.
fn render_snippet(out: &mut String, sources: &Sources, label: &Label, mark: &str, elsewhere: bool) {
    let file = sources.file(label.span.file);
    let position = file.position(label.span.start as usize);
    let end = file.position(label.span.end as usize);
    let line = file.line(position.line);
    let start = line.char_indices().nth(position.column - 1).map_or(line.len(), |(at, _)| at);
    let length = if end.line == position.line { end.column - position.column } else { usize::MAX };
    let stop = line[start..].char_indices().nth(length).map_or(line.len(), |(at, _)| start + at);

    let from = line[..start].char_indices().rev().nth(AROUND).map_or(0, |(at, _)| at);
    let shown_stop = line[start..stop].char_indices().nth(AROUND * 2).map_or(stop, |(at, _)| start + at);
    let until = line[shown_stop..].char_indices().nth(AROUND).map_or(line.len(), |(at, _)| shown_stop + at);
    let (before, after) =
        (if from > 0 { "..." } else { "" }, if until < line.len() || shown_stop < stop { "..." } else { "" });
    let number = position.line.to_string();
    let indent = " ".repeat(number.len());
    // A tab stays one, so that the marks stand below their place at any width of it.
    let gap: String = line[from..start].chars().map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
    // An empty place, such as the end of a line, has one mark all the same.
    let marks = mark.repeat(line[start..shown_stop].chars().count().max(1));
    if elsewhere {
        let _ = writeln!(out, "  {indent} --> {}:{}:{}", file.name(), position.line, position.column);
    }
    let _ = writeln!(out, "  {number} | {before}{}{after}", &line[from..until]);
    let text = label.text.replace('\n', " ");
    let _ = writeln!(out, "  {indent} | {}{gap}{marks} {text}", " ".repeat(before.len()));
}

fn document_diagnostic(sources: &Sources, severity: Severity, diagnostic: &Diagnostic) -> documents::Diagnostic {
    let label = |label: &Label| documents::Label { at: document_span(sources, label.span), text: label.text.clone() };
    let edit = |edit: &swarmc_compiler::Edit| documents::Edit {
        at: document_span(sources, edit.span),
        text: edit.text.clone(),
    };
    documents::Diagnostic {
        code: diagnostic.code.id().to_owned(),
        name: diagnostic.code.name().to_owned(),
        severity: match severity {
            Severity::Error => documents::Severity::Error,
            Severity::Warning => documents::Severity::Warning,
            Severity::Hint => documents::Severity::Hint,
        },
        message: diagnostic.message.clone(),
        labels: diagnostic.labels.iter().map(label).collect(),
        flow: diagnostic.trace.iter().map(label).collect(),
        help: diagnostic.help.clone(),
        fix: diagnostic.fix.as_ref().map(|fix| documents::Fix {
            title: fix.title.clone(),
            certain: fix.certain,
            edits: fix.edits.iter().map(edit).collect(),
        }),
    }
}

/// Offsets are bytes from 0, lines and columns count from 1, columns in characters.
pub(crate) fn document_span(sources: &Sources, span: Span) -> documents::Span {
    let end = |offset: u32| {
        let position = sources.position(span.file, offset);
        documents::Position { offset, line: position.line, column: position.column }
    };
    documents::Span { file: sources.name(span.file).to_owned(), start: end(span.start), end: end(span.end) }
}

/// The diagnostic without control characters, and with overlong words cut.
fn sanitize_diagnostic(diagnostic: &Diagnostic) -> Diagnostic {
    let clean =
        |text: &str| text.split('\n').map(|line| truncate_words(&make_printable(line))).collect::<Vec<_>>().join("\n");
    let mut diagnostic = diagnostic.clone();
    diagnostic.message = clean(&diagnostic.message);
    diagnostic.help = diagnostic.help.as_deref().map(clean);
    for label in diagnostic.labels.iter_mut().chain(&mut diagnostic.trace) {
        label.text = clean(&label.text);
    }
    diagnostic
}

/// Shortens words of more than 200 characters.
fn truncate_words(line: &str) -> String {
    let short = |word: &str| match word.char_indices().nth(200) {
        None => word.to_owned(),
        Some(_) => {
            let tail = word.char_indices().rev().nth(9).map_or(0, |(at, _)| at);
            let head: String = word.chars().take(100).collect();
            format!("{head}...{}", &word[tail..])
        }
    };
    line.split(' ').map(short).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(text: &str) -> Sources {
        let mut sources = Sources::new();
        sources.add("flow.kdl", text);
        sources
    }

    fn diagnostic(sources: &Sources, labels: &[(&str, &str)]) -> Diagnostic {
        let file = sources.files().next().unwrap();
        let span = |needle: &str| {
            let start = sources.text(file).find(needle).unwrap();
            Span::new(file, start as u32, (start + needle.len()) as u32)
        };
        Diagnostic {
            code: Code::UnknownReference,
            message: "unknown step `drafd`".to_owned(),
            labels: labels
                .iter()
                .map(|(needle, text)| Label { span: span(needle), text: (*text).to_owned() })
                .collect(),
            trace: Vec::new(),
            help: Some("did you mean `draft`?".to_owned()),
            home: None,
            fix: None,
            severity: None,
        }
    }

    #[test]
    fn plain_text_shows_the_place_and_the_help() {
        let sources = sources("pipeline release {\n    task draft\n\ttask review { depends-on drafd }\n}\n");
        let diagnostic = diagnostic(&sources, &[("drafd", "no step has this name"), ("draft", "this one is similar")]);
        insta::assert_snapshot!(render_plain(&sources, Severity::Error, &diagnostic, Paint::NONE), @r"
        flow.kdl:3:27: error[SW101]: unknown step `drafd`
          3 | 	task review { depends-on drafd }
            | 	                         ^^^^^ no step has this name
          2 |     task draft
            |          ----- this one is similar
          help: did you mean `draft`?
        ");
    }

    #[test]
    fn a_long_line_is_cut_around_the_place() {
        let text = format!("{} drafd {}", "x".repeat(100_000), "é".repeat(100_000));
        let sources = sources(&text);
        let diagnostic = diagnostic(&sources, &[("drafd", "here")]);
        let shown = render_plain(&sources, Severity::Error, &diagnostic, Paint::NONE);
        assert!(shown.lines().all(|line| line.chars().count() < 200), "{shown}");
        assert!(shown.contains("xx drafd éé"));
    }

    #[test]
    fn a_place_at_the_end_or_over_several_lines_has_marks() {
        let sources = sources("task {\n  a\n");
        let file = sources.files().next().unwrap();
        for (start, end) in [(11, 11), (0, 11), (5, 8)] {
            let label = Label { span: Span::new(file, start, end), text: "here".to_owned() };
            let mut out = String::new();
            render_snippet(&mut out, &sources, &label, "^", false);
            assert!(out.contains("^ here"), "{out}");
        }
    }

    #[test]
    fn json_has_offsets_lines_and_columns() {
        let sources = sources("größe drafd");
        let document = document_diagnostic(&sources, Severity::Warning, &diagnostic(&sources, &[("drafd", "here")]));
        assert_eq!(document.severity, documents::Severity::Warning);
        let at = &document.labels[0].at;
        assert_eq!(at.start, documents::Position { offset: 8, line: 1, column: 7 });
        assert_eq!(at.end, documents::Position { offset: 13, line: 1, column: 12 });
    }

    #[test]
    fn endless_words_are_cut() {
        assert_eq!(truncate_words("there is no `name`"), "there is no `name`");
        let long = format!("there is no `{}` in it", "é".repeat(5000));
        assert_eq!(truncate_words(&long), format!("there is no `{}...{}` in it", "é".repeat(99), "é".repeat(9)));
    }

    #[test]
    fn the_count_line_is_english() {
        assert_eq!(
            count_line(Counts { errors: 2, warnings: 1, hints: 3, left_out: 0 }, Paint::NONE),
            "2 errors, 1 warning, 3 hints"
        );
        assert_eq!(count_line(Counts { warnings: 2, ..Counts::default() }, Paint::NONE), "2 warnings");
        let more = Counts { errors: 1000, left_out: 7, ..Counts::default() };
        assert_eq!(count_line(more, Paint::NONE), "1000 errors and 7 more, which are not shown");
        assert_eq!(count_line(Counts::default(), Paint::NONE), "no problems");
    }
}
