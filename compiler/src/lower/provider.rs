//! Providers: a command, recorded answers, or a preset to start from.

use swarmc_plan as plan;

use super::datum::Datum;
use super::element::Element;
use super::{Section, agent, choice, command, count, name, source, spanned, texts, variables};
use crate::ast::{self, Spanned};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::syntax::Text;

pub(super) fn provider(element: &Element, diagnostics: &mut Diagnostics) -> Option<ast::Provider> {
    let preset = element.property("preset").map(spanned);
    let way = |node: &str| element.child(node);
    let named = ["exec", "acp", "llm", "script"].into_iter().filter_map(way);
    let named = named.map(|way| (way.name.span, format!("`{}`", way.schema.name)));
    let mut ways = preset.iter().map(|preset| (preset.span, "`preset=`".to_owned())).chain(named);
    match (ways.next(), ways.next()) {
        (None, _) => diagnostics.push(
            Diagnostic::new(Code::WrongValue, "the provider says no way to reach its agents")
                .label(element.name.span, "`exec`, `acp`, `llm`, `script` or `preset=` is missing")
                .help(
                    "write `exec PROGRAM ARG…`, `acp PROGRAM ARG…`, `llm KIND` or `script { … }` in its block, or \
                     `preset=` with the name of a preset",
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
        exec: way("exec").and_then(|exec| command(exec, diagnostics)),
        acp: way("acp").and_then(|acp| command(acp, diagnostics)),
        llm: way("llm").and_then(llm),
        script: way("script").map(|script| self::script(script, diagnostics)),
        args: element.children("args").flat_map(texts).collect(),
        delivery: element.child("prompt").and_then(|how| whole(how, delivery)),
        reads: element.child("reads").and_then(|format| whole(format, self::format)),
        model_flag: flag(element, "model-flag"),
        system_flag: flag(element, "system-flag"),
        resume_args: with_place(element, "resume-args", &["{session}"], diagnostics),
        session_args: with_place(element, "session-args", &["{session}"], diagnostics),
        schema_args: with_place(element, "schema-args", &["{schema}", "{schema-file}"], diagnostics),
        env: variables(element, diagnostics),
        headers: agent::headers(element, diagnostics),
        install: flag(element, "install"),
        context_window: element.child("context-window").and_then(|node| Some(amount(node.argument(0)?))),
        price: element.child("price").map(price),
        provides: element
            .child("provides")
            .map(|node| node.arguments.iter().map(|(_, datum)| choice(datum, ability)).collect()),
    })
}

fn llm(element: &Element) -> Option<ast::Llm> {
    let text = |property: &str| element.property(property).map(|datum| datum.text.clone());
    Some(ast::Llm {
        kind: choice(element.argument(0)?, |word| match word {
            "anthropic" => ast::LlmKind::Anthropic,
            _ => ast::LlmKind::OpenAi,
        }),
        base_url: text("base-url"),
        model: text("model"),
        key: element.property("key").map(spanned),
        span: element.span,
    })
}

fn price(element: &Element) -> ast::Price {
    let of = |property: &str| element.property(property).map(amount);
    ast::Price {
        input: of("input"),
        output: of("output"),
        cache_read: of("cache-read"),
        cache_write: of("cache-write"),
        span: element.span,
    }
}

fn ability(word: &str) -> ast::Ability {
    match word {
        "schema" => ast::Ability::Schema,
        "tools" => ast::Ability::Tools,
        "resume" => ast::Ability::Resume,
        _ => ast::Ability::Images,
    }
}

/// The number of a value, with its place.
pub(super) fn amount(datum: &Datum) -> Spanned<u64> {
    Spanned { value: u64::try_from(datum.number).unwrap_or(u64::MAX), span: datum.span }
}

/// Arguments, one of which holds one of these places for a value.
fn with_place(element: &Element, child: &str, places: &[&str], diagnostics: &mut Diagnostics) -> Option<Vec<Text>> {
    let node = element.child(child)?;
    let words = texts(node);
    if !words.iter().any(|word| places.iter().any(|place| word.as_str().contains(place)))
        && !diagnostics.covers(node.span)
    {
        let shown = crate::suggest::list(places.iter().copied(), "or");
        let diagnostic =
            Diagnostic::new(Code::WrongValue, format!("`{child}` has no place for the value that it hands over"))
                .label(node.span, format!("no {shown} in it"))
                .help(format!("write `{child} \"--flag\" \"{}\"`", places[0]));
        diagnostics.push(diagnostic);
        return None;
    }
    Some(words)
}

fn script(element: &Element, diagnostics: &mut Diagnostics) -> ast::Script {
    let answers = element.children("answer").map(|answer| self::answer(answer, diagnostics)).collect();
    ast::Script { answers }
}

fn answer(element: &Element, diagnostics: &mut Diagnostics) -> ast::Answer {
    let number = |property: &str| element.property(property).map(|datum| count(datum.number));
    let section = Section::of(element);
    ast::Answer {
        text: source(element, 0, diagnostics),
        task: element.property("task").map(spanned),
        iteration: number("iteration"),
        attempt: number("attempt"),
        exit: i32::try_from(section.number_of("exit")).unwrap_or(i32::MAX),
        delay_ms: section.number_of("delay"),
    }
}

fn flag(element: &Element, child: &str) -> Option<String> {
    Some(element.child(child)?.argument(0)?.text.as_str().to_owned())
}

/// What the argument of a node says, with the place of the node.
fn whole<T>(element: &Element, read: fn(&str) -> T) -> Option<Spanned<T>> {
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
