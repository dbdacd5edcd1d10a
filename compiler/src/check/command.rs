//! SW503: a directive or an expression where a process would take it as a part of a command.
//!
//! Data never becomes an argument, a shell word or a path. Only what reads the run is reported: `{{.Names}}` of another
//! tool's templates, `<<EOF` and `<<` are what they are.

use std::ops::Range;

use crate::ast::{Body, Line, Step, Variable};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics, Edit, Fix};
use crate::model::{Model, Pipeline};
use crate::syntax::{Text, quote_text};
use crate::template;

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
            Some(Body::Script(path)) => check_text("run file=", path, None, diagnostics),
            _ => {}
        }
        step.checks.iter().for_each(|line| check_line("check", line, Some(step), diagnostics));
        step.reads.iter().for_each(|path| check_text("reads", path, None, diagnostics));
        step.writes.iter().for_each(|path| check_text("writes", path, None, diagnostics));
    }
    if let Some(path) = &pipeline.ast.working_dir {
        check_text("working-dir", path, None, diagnostics);
    }
}

/// The commands of providers.
fn check_providers(model: &Model<'_>, diagnostics: &mut Diagnostics) {
    for provider in &model.spec.providers {
        provider.exec.iter().for_each(|line| check_line("exec", line, None, diagnostics));
        provider.args.iter().for_each(|word| check_text("args", word, None, diagnostics));
    }
}

fn check_line(node: &str, line: &Line, step: Option<&Step>, diagnostics: &mut Diagnostics) {
    line.words.iter().for_each(|word| check_text(node, word, step.map(|step| (step, line)), diagnostics));
}

fn check_text(node: &str, text: &Text, step: Option<(&Step, &Line)>, diagnostics: &mut Diagnostics) {
    let value = text.as_str();
    for (range, word) in template::list_placeholders(value) {
        let written = &value[range.clone()];
        let diagnostic = Diagnostic::new(
            Code::UntrustedToCommand,
            format!("`{node}` is not a template, so the command would receive `{written}` unchanged"),
        )
        .label(text.span(range.clone()), format!("reads `{word}` into a command"));
        diagnostics.push(match step {
            Some((step, line)) => {
                let quoted = quote_text(written);
                let mut diagnostic = diagnostic.help(format!(
                    "pass it on standard input, `stdin {quoted}`, or in a variable, `env VALUE={quoted}`, which the command reads as \"$VALUE\""
                ));
                diagnostic.fix = fix_with_variable(step, line, text, &range);
                diagnostic
            }
            None => diagnostic.help("write the text itself"),
        });
    }
}

/// Passes what stands at `range` of a word in a variable of the step. None where no shell would read it, or not as meant:
/// between single quotes, or beside a variable that is called so already.
fn fix_with_variable(step: &Step, line: &Line, text: &Text, range: &Range<usize>) -> Option<Fix> {
    const NAME: &str = "VALUE";
    if step.env.iter().any(|variable| matches!(variable, Variable::Set(name, _) if name == NAME)) {
        return None;
    }
    let (before, after) = (&text.as_str()[..range.start], &text.as_str()[range.end..]);
    let written = quote_text(&text.as_str()[range.clone()]);
    let command = match line.words.as_slice() {
        [_] if before.contains('\'') => return None,
        // Within double quotes the shell puts the value there as it is.
        [_] if before.matches('"').count() % 2 == 1 => format!("{before}${NAME}{after}"),
        [_] => format!("{before}\"${NAME}\"{after}"),
        words => {
            let word = |word: &Text| match std::ptr::eq(word, text) {
                true => format!("\"{}${NAME}{}\"", escape_shell(before), escape_shell(after)),
                false => quote_shell_word(word.as_str()),
            };
            words.iter().map(word).collect::<Vec<_>>().join(" ")
        }
    };
    let all = line.words.first()?.outer_span().to(line.words.last()?.outer_span());
    let text = format!("{}; env {NAME}={written}", quote_text(&command));
    Some(Fix { title: format!("pass it as ${NAME}"), edits: vec![Edit { span: all, text }], certain: false })
}

/// A word as a shell reads it unchanged.
pub(super) fn quote_shell_word(word: &str) -> String {
    let plain = |sign: char| sign.is_ascii_alphanumeric() || "_-./:=@%+,".contains(sign);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// A text within the double quotes of a shell.
fn escape_shell(text: &str) -> String {
    text.chars()
        .flat_map(|sign| matches!(sign, '"' | '\\' | '$' | '`').then_some('\\').into_iter().chain([sign]))
        .collect()
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
