//! Providers: a command, recorded answers, or a preset to start from.

use swarmc_plan as plan;

use super::element::Element;
use super::{command, count, default, name, source, spanned, texts, variables};
use crate::ast::{self, Spanned};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::lower::value;

pub(super) fn provider(element: &Element, diagnostics: &mut Diagnostics) -> Option<ast::Provider> {
    let preset = element.property("preset").map(spanned);
    let exec = element.child("exec");
    let script = element.child("script");
    let ways = [
        preset.as_ref().map(|preset| (preset.span, "`preset=`")),
        exec.map(|exec| (exec.name.span, "`exec`")),
        script.map(|script| (script.name.span, "`script`")),
    ];
    let mut ways = ways.into_iter().flatten();
    match (ways.next(), ways.next()) {
        (None, _) => diagnostics.push(
            Diagnostic::new(Code::WrongValue, "the provider says no way to reach its agents")
                .label(element.name.span, "`exec`, `script` or `preset=` is missing")
                .help(
                    "write `exec PROGRAM ARG…` or `script { … }` in its block, or `preset=` with the name of a preset",
                ),
        ),
        (Some((first, one)), Some((second, other))) => diagnostics.push(
            Diagnostic::new(
                Code::WrongValue,
                format!("a provider has one way to reach its agents, not {one} and {other}"),
            )
            .label(second, "one too many")
            .label(first, "first here")
            .help("remove one of them, or declare two providers"),
        ),
        _ => {}
    }
    Some(ast::Provider {
        name: name(element, 0)?,
        preset,
        exec: exec.and_then(|exec| command(exec, diagnostics)),
        script: script.map(|script| self::script(script, diagnostics)),
        args: element.children("args").flat_map(texts).collect(),
        delivery: element.child("prompt").and_then(|how| choice(how, delivery)),
        reads: element.child("reads").and_then(|format| choice(format, self::format)),
        model_flag: flag(element, "model-flag"),
        system_flag: flag(element, "system-flag"),
        env: variables(element, diagnostics),
        install: flag(element, "install"),
    })
}

fn script(element: &Element, diagnostics: &mut Diagnostics) -> ast::Script {
    let answers = element.children("answer").map(|answer| self::answer(answer, diagnostics)).collect();
    ast::Script { answers }
}

fn answer(element: &Element, diagnostics: &mut Diagnostics) -> ast::Answer {
    let number = |property: &str| element.property(property).map(|datum| datum.number);
    let delay = number("delay").map(|millis| u64::try_from(millis).unwrap_or(u64::MAX));
    let exit = number("exit").and_then(|exit| i32::try_from(exit).ok());
    ast::Answer {
        text: source(element, 0, diagnostics),
        task: element.property("task").map(spanned),
        iteration: number("iteration").map(count),
        attempt: number("attempt").map(count),
        exit: exit.unwrap_or_else(|| default(element.schema, "exit").parse().expect("the table's default is a number")),
        delay_ms: delay.unwrap_or_else(|| {
            value::duration(default(element.schema, "delay")).expect("the table's default is a duration")
        }),
    }
}

fn flag(element: &Element, child: &str) -> Option<String> {
    Some(element.child(child)?.argument(0)?.text.as_str().to_owned())
}

fn choice<T>(element: &Element, read: fn(&str) -> T) -> Option<Spanned<T>> {
    let datum = element.argument(0)?;
    Some(Spanned { value: read(datum.text.as_str()), span: element.span })
}

pub(crate) fn delivery(word: &str) -> plan::PromptDelivery {
    match word {
        "argument" => plan::PromptDelivery::Argument,
        "file" => plan::PromptDelivery::File,
        _ => plan::PromptDelivery::Stdin,
    }
}

pub(crate) fn format(word: &str) -> plan::Format {
    match word {
        "json" => plan::Format::Json,
        "claude-stream-json" => plan::Format::ClaudeStreamJson,
        "codex-jsonl" => plan::Format::CodexJsonl,
        "opencode-json" => plan::Format::OpencodeJson,
        "gemini-stream-json" => plan::Format::GeminiStreamJson,
        "pi-json" => plan::Format::PiJson,
        _ => plan::Format::Text,
    }
}
