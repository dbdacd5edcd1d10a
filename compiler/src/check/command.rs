//! SW503: a directive or an expression where a process would take it as a part of a command.
//!
//! Data never becomes an argument, a shell word or a path. Only what reads the run is reported: `{{.Names}}` of another
//! tool's templates, `<<EOF` and `<<` are what they are.

use crate::ast::{Body, Line, Step};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::model::{Model, Pipeline};
use crate::syntax::Text;
use crate::template::{self, Kind, Part};

pub(super) fn check(pipeline: &Pipeline<'_>, diagnostics: &mut Diagnostics) {
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
pub(super) fn check_providers(model: &Model<'_>, diagnostics: &mut Diagnostics) {
    for provider in &model.spec.providers {
        provider.exec.iter().for_each(|line| check_line("exec", line, None, diagnostics));
        provider.args.iter().for_each(|word| check_text("args", word, None, diagnostics));
    }
}

fn check_line(node: &str, line: &Line, step: Option<&Step>, diagnostics: &mut Diagnostics) {
    line.words.iter().for_each(|word| check_text(node, word, step, diagnostics));
}

fn check_text(node: &str, text: &Text, step: Option<&Step>, diagnostics: &mut Diagnostics) {
    let value = text.as_str();
    if !value.contains("<<") && !value.contains("{{") && !value.contains("{%") {
        return;
    }
    let template = template::scan(value);
    let directives = template.parts.iter().filter_map(|part| match part {
        Part::Directive(directive) => Some((directive.range.clone(), directive.kind.word())),
        Part::Text(_) | Part::Escape | Part::Logic(_) => None,
    });
    let expressions = template.parts.iter().filter_map(|part| match part {
        Part::Logic(range) => {
            let inside = |read: &&template::Read| {
                !read.via_directive && range.start <= read.whole.start && read.whole.end <= range.end
            };
            let read = template.reads.iter().filter(inside).find(|read| read.name.is_some())?;
            Some((range.clone(), Kind::Read(read.root).word()))
        }
        Part::Text(_) | Part::Escape | Part::Directive(_) => None,
    });
    for (range, word) in directives.chain(expressions) {
        let written = &value[range.clone()];
        let diagnostic = Diagnostic::new(
            Code::UntrustedToCommand,
            format!("`{node}` is never a template, and `{written}` would reach the command as it stands"),
        )
        .label(text.span(range), format!("reads `{word}` into a command"));
        diagnostics.push(match step {
            Some(_) => diagnostic.help(format!(
                "pass it on standard input, `stdin \"{}\"`, or in a variable, `env VALUE=\"{}\"`, which the command reads as \"$VALUE\"",
                written.escape_default(),
                written.escape_default()
            )),
            None => diagnostic.help("write the text itself"),
        });
    }
}
