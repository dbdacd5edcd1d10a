//! SW503: a directive or an expression where a process would take it as a part of a command.
//!
//! Data never becomes an argument, a shell word or a path. Only what reads the run is reported: `{{.Names}}` of another
//! tool's templates, `<<EOF` and `<<` are what they are.

mod usage;

use std::ops::Range;

use self::usage::{Place, Usage};
use super::shell_words;
use crate::ast::{Body, Line, Step, Variable};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics, Edit, Fix};
use crate::model::{Model, Pipeline};
use crate::source::Span;
use crate::syntax::{Text, quote_text};
use crate::template;
use crate::trust::shell::Simple;

pub(super) fn check(model: &Model<'_>, diagnostics: &mut Diagnostics) {
    model.pipelines.iter().for_each(|pipeline| check_pipeline(pipeline, diagnostics));
    let checks = model.swarms.iter().flat_map(|swarm| swarm.ast.list_checks());
    checks.for_each(|line| check_line("check", line, None, diagnostics));
    check_providers(model, diagnostics);
}

fn check_pipeline(pipeline: &Pipeline<'_>, diagnostics: &mut Diagnostics) {
    for step in pipeline.ast.steps.iter() {
        match &step.body {
            Some(Body::Run(line)) => check_line("run", line, Some(step), diagnostics),
            Some(Body::Script(path)) => check_path("run file=", path, diagnostics),
            _ => {}
        }
        step.checks.iter().for_each(|line| check_line("check", line, Some(step), diagnostics));
        step.reads.iter().for_each(|path| check_path("reads", path, diagnostics));
        step.writes.iter().for_each(|path| check_path("writes", path, diagnostics));
    }
    if let Some(path) = &pipeline.ast.working_dir {
        check_path("working-dir", path, diagnostics);
    }
}

/// The commands of providers.
fn check_providers(model: &Model<'_>, diagnostics: &mut Diagnostics) {
    for provider in &model.spec.providers {
        provider.exec.iter().for_each(|line| check_line("exec", line, None, diagnostics));
        provider.args.iter().for_each(|word| check_text("args", word, diagnostics));
    }
}

fn check_line(node: &str, line: &Line, step: Option<&Step>, diagnostics: &mut Diagnostics) {
    let Some(step) = step else {
        return line.words.iter().for_each(|word| check_text(node, word, diagnostics));
    };
    let counts = line.words.iter().map(|word| template::list_placeholders(word.as_str()).len());
    // Few lines have any, and a line is put together from all its words.
    if counts.sum::<usize>() == 0 {
        return;
    }
    let shell = ShellLine::new(line);
    let mut place = 0;
    for (index, word) in line.words.iter().enumerate() {
        for (range, kind) in template::list_placeholders(word.as_str()) {
            let usage = shell.find_place(place).map_or(Usage::Argument, |place| place.usage);
            let mut diagnostic = report_directive(node, word, &range, kind);
            diagnostic = diagnostic.help(suggest_variable(&quote_text(&word.as_str()[range.clone()]), &usage));
            diagnostic.fix = fix_with_variable(step, &shell, Spot { word: index, range, place });
            diagnostics.push(diagnostic);
            place += 1;
        }
    }
}

fn check_text(node: &str, text: &Text, diagnostics: &mut Diagnostics) {
    for (range, kind) in template::list_placeholders(text.as_str()) {
        diagnostics.push(report_directive(node, text, &range, kind).help("write the text itself"));
    }
}

fn check_path(node: &str, path: &Text, diagnostics: &mut Diagnostics) {
    for (range, kind) in template::list_placeholders(path.as_str()) {
        let written = &path.as_str()[range.clone()];
        let diagnostic = Diagnostic::new(
            Code::UntrustedToCommand,
            format!("`{node}` takes a path as it stands, so `{written}` would be a part of its name"),
        )
        .label(path.span(range.clone()), format!("reads `{kind}` into a path"));
        diagnostics.push(diagnostic.help("write the path itself"));
    }
}

fn report_directive(node: &str, text: &Text, range: &Range<usize>, kind: &str) -> Diagnostic {
    let written = &text.as_str()[range.clone()];
    Diagnostic::new(
        Code::UntrustedToCommand,
        format!("`{node}` is not a template, so the command would receive `{written}` unchanged"),
    )
    .label(text.span(range.clone()), format!("reads `{kind}` into a command"))
}

/// How the command is given a value safely, where it uses it so.
fn suggest_variable(quoted: &str, usage: &Usage) -> String {
    match usage {
        Usage::Argument => format!(
            "pass it on standard input, `stdin {quoted}`, or in a variable, `env {NAME}={quoted}`, which the command reads as \"${NAME}\""
        ),
        Usage::Program => "the value would choose what runs: write the program itself".to_owned(),
        Usage::Script(program) if program == "eval" => format!(
            "`eval` would run the value: write the command without `eval`, and pass the value in a variable, `env {NAME}={quoted}`, which the command reads as \"${NAME}\""
        ),
        Usage::Script(program) => format!(
            "`{program}` would run the value: pass it in a variable, `env {NAME}={quoted}`, which the script reads in double quotes, as in `sh -c 'echo \"${NAME}\"'`"
        ),
        Usage::Code(program) => format!(
            "`{program}` would run the value: pass it in a variable, `env {NAME}={quoted}`, and read the variable `{NAME}` in the program"
        ),
    }
}

/// The variable in which a fix passes a value.
const NAME: &str = "VALUE";

/// A command as a line of a shell.
struct ShellLine<'a> {
    line: &'a Line,
    text: String,
    /// The places of its directives; none where there are more than [`MOST_PLACES`].
    places: Vec<Range<usize>>,
    commands: Vec<Simple>,
}

/// The most directives of a command that are looked at one by one: a fix of each holds the whole line.
const MOST_PLACES: usize = 50;

/// A directive of a command: where it stands in which word, and which it is of all.
struct Spot {
    word: usize,
    range: Range<usize>,
    place: usize,
}

impl ShellLine<'_> {
    fn new(line: &Line) -> ShellLine<'_> {
        let text = match line.words.as_slice() {
            [single] => single.as_str().to_owned(),
            words => shell_words::write_line(words),
        };
        let mut places: Vec<_> = template::list_placeholders(&text).into_iter().map(|(range, _)| range).collect();
        if places.len() > MOST_PLACES {
            places.clear();
        }
        let commands = if places.is_empty() { Vec::new() } else { usage::parse_line(&text, &places) };
        ShellLine { line, text, places, commands }
    }

    fn find_place(&self, place: usize) -> Option<Place> {
        Some(usage::find_place(&self.commands, self.places.get(place)?))
    }
}

/// Passes a value in a variable of the step. None where no shell would read it, or not as meant: between single quotes,
/// where the command would run it, or beside a variable that is called so already.
fn fix_with_variable(step: &Step, shell: &ShellLine<'_>, spot: Spot) -> Option<Fix> {
    if step.env.iter().any(|variable| matches!(variable, Variable::Set(name, _) if name == NAME)) {
        return None;
    }
    let (first, last) = (shell.line.words.first()?.outer_span(), shell.line.words.last()?.outer_span());
    let word = &shell.line.words[spot.word];
    let setting = format!("; env {NAME}={}", quote_text(&word.as_str()[spot.range.clone()]));
    let edits = match shell.find_place(spot.place)? {
        Place { usage: Usage::Argument, quoted: Some(quoted) } => {
            let line = quote_text(&write_variable(&shell.text, shell.places.get(spot.place)?, quoted));
            vec![Edit { span: first.to(last), text: format!("{line}{setting}") }]
        }
        Place { usage: Usage::Script(_), .. } if is_shell_script(shell.line, spot.word) => {
            let places: Vec<_> =
                template::list_placeholders(word.as_str()).into_iter().map(|(range, _)| range).collect();
            let inside = usage::find_place(&usage::parse_line(word.as_str(), &places), &spot.range);
            let Place { usage: Usage::Argument, quoted: Some(quoted) } = inside else { return None };
            let script = quote_text(&write_variable(word.as_str(), &spot.range, quoted));
            match spot.word + 1 == shell.line.words.len() {
                true => vec![Edit { span: word.outer_span(), text: format!("{script}{setting}") }],
                false => vec![
                    Edit { span: word.outer_span(), text: script },
                    Edit { span: Span { start: last.end, ..last }, text: setting },
                ],
            }
        }
        Place { .. } => return None,
    };
    Some(Fix { title: format!("pass it as ${NAME}"), edits, certain: false })
}

/// Whether a word is the script of `sh -c`, which gets the variables of the step: what `sudo` or `docker` starts may not.
fn is_shell_script(line: &Line, word: usize) -> bool {
    let Some([program, flags @ ..]) = line.words.get(..word) else { return false };
    matches!(program.as_str().rsplit('/').next(), Some("sh" | "bash" | "dash" | "zsh" | "ksh"))
        && flags.iter().all(|flag| flag.as_str().starts_with('-'))
        && !shell_words::has_shell_words(&line.words)
}

/// A line with the variable in this place; between double quotes the shell puts the value there as it is.
fn write_variable(line: &str, place: &Range<usize>, quoted: bool) -> String {
    let (before, after) = (&line[..place.start], &line[place.end..]);
    let continues = after.starts_with(|sign: char| sign.is_ascii_alphanumeric() || sign == '_');
    match quoted {
        true if continues => format!("{before}${{{NAME}}}{after}"),
        true => format!("{before}${NAME}{after}"),
        false => format!("{before}\"${NAME}\"{after}"),
    }
}

/// A word as a shell reads it unchanged.
pub(super) fn quote_shell_word(word: &str) -> String {
    let plain = |sign: char| sign.is_ascii_alphanumeric() || "_-./:=@%+,".contains(sign);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// A word with directives, between double quotes that a shell takes away.
pub(super) fn quote_template_word(word: &str) -> String {
    let mut written = String::from('"');
    let mut end = 0;
    for (range, _) in template::list_placeholders(word) {
        written.push_str(&escape_shell(&word[end..range.start]));
        written.push_str(&word[range.clone()]);
        end = range.end;
    }
    written + &escape_shell(&word[end..]) + "\""
}

/// A text within the double quotes of a shell.
fn escape_shell(text: &str) -> String {
    escape_signs(text, &['"', '\\', '$', '`'])
}

/// The same, in which the shell replaces variables.
pub(super) fn quote_with_variables(text: &str) -> String {
    format!("\"{}\"", escape_signs(text, &['"', '\\', '`']))
}

fn escape_signs(text: &str, signs: &[char]) -> String {
    text.chars().flat_map(|sign| signs.contains(&sign).then_some('\\').into_iter().chain([sign])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_the_shell() {
        assert_eq!(["a-b", "it's", ""].map(quote_shell_word), ["a-b", "'it'\\''s'", "''"]);
        assert_eq!(escape_shell("a\"$b`\\"), "a\\\"\\$b\\`\\\\");
    }
}
