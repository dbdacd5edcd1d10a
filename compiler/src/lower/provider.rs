//! Providers: a command, recorded answers, or a preset to start from.

use swarmc_plan as plan;

use super::agent::address;
use super::datum::Datum;
use super::element::Element;
use super::{Section, choice, command, count, name, source, spanned, step, texts, variables};
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
        llm: way("llm").and_then(|node| llm(node, diagnostics)),
        script: way("script").map(|script| self::script(script, diagnostics)),
        auth: element.child("auth").and_then(|node| node.argument(0)).map(spanned),
        rate: element.child("rate").map(rate),
        args: element.children("args").flat_map(texts).collect(),
        delivery: element.child("prompt").and_then(|how| whole(how, delivery)),
        reads: element.child("reads").and_then(|format| whole(format, self::format)),
        model_flag: flag(element, "model-flag"),
        system_flag: flag(element, "system-flag"),
        resume_args: resume(element, diagnostics),
        schema_flag: element.child("schema-flag").and_then(schema_flag),
        mcp_args: element.child("mcp-args").map(texts),
        mcp_env: element.children("mcp-env").filter_map(mcp_variable).collect(),
        env: variables(element, diagnostics),
        install: flag(element, "install"),
        login: flag(element, "login"),
        context_window: element.child("context-window").and_then(|node| Some(amount(node.argument(0)?))),
        price: element.child("price").map(price),
        concurrency: step::concurrency(element),
        provides: element
            .child("provides")
            .map(|node| node.arguments.iter().map(|(_, datum)| choice(datum, ability)).collect()),
    })
}

fn llm(element: &Element, diagnostics: &mut Diagnostics) -> Option<ast::Llm> {
    if let Some(url) = element.property("base-url") {
        address(url, diagnostics);
    }
    let text = |property: &str| element.property(property).map(|datum| datum.text.clone());
    Some(ast::Llm {
        kind: choice(element.argument(0)?, |word| match word {
            "openai-responses" => plan::LlmKind::OpenaiResponses,
            "anthropic" => plan::LlmKind::Anthropic,
            "gemini" => plan::LlmKind::Gemini,
            _ => plan::LlmKind::Openai,
        }),
        base_url: text("base-url"),
        model: text("model"),
        tools: element.property("tools").map(|datum| {
            choice(datum, |word| match word {
                "schema" => plan::ToolProtocol::Schema,
                _ => plan::ToolProtocol::Native,
            })
        }),
        span: element.span,
    })
}

fn rate(element: &Element) -> ast::Rate {
    let of = |property: &str| element.property(property).map(amount);
    ast::Rate { requests: of("requests"), tokens: of("tokens"), span: element.span }
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

fn ability(word: &str) -> plan::Ability {
    match word {
        "schema" => plan::Ability::Schema,
        "tools" => plan::Ability::Tools,
        "resume" => plan::Ability::Resume,
        _ => plan::Ability::Images,
    }
}

/// The number of a value, with its place.
pub(super) fn amount(datum: &Datum) -> Spanned<u64> {
    Spanned { value: u64::try_from(datum.number).unwrap_or(u64::MAX), span: datum.span }
}

fn schema_flag(element: &Element) -> Option<plan::SchemaFlag> {
    let flag = element.argument(0)?.text.as_str().to_owned();
    Some(match Section::of(element).word_of("as").as_str() {
        "file" => plan::SchemaFlag::File(flag),
        _ => plan::SchemaFlag::Inline(flag),
    })
}

fn mcp_variable(element: &Element) -> Option<plan::McpVariable> {
    let text = |position: usize| Some(element.argument(position)?.text.as_str().to_owned());
    let file = Section::of(element).word_of("as") == "file";
    Some(plan::McpVariable { name: text(0)?, text: text(1)?, file })
}

/// The words that continue a conversation; without a place for its id they do not.
fn resume(element: &Element, diagnostics: &mut Diagnostics) -> Option<Vec<Text>> {
    let node = element.child("resume-args")?;
    let words = texts(node);
    if words.iter().any(|word| word.as_str() == plan::SESSION) {
        return Some(words);
    }
    if !diagnostics.covers(node.span) {
        let diagnostic = Diagnostic::new(Code::WrongValue, "`resume-args` does not say which conversation")
            .label(node.span, format!("no `{}` among them", plan::SESSION))
            .help(format!("write `resume-args \"--resume\" \"{}\"`", plan::SESSION));
        diagnostics.push(diagnostic);
    }
    None
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
        turn: number("turn"),
        index: number("index"),
        exit: i32::try_from(section.number_of("exit")).unwrap_or(i32::MAX),
        delay_ms: section.number_of("delay"),
        span: element.span,
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
