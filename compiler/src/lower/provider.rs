//! Providers: a command, recorded answers, or a preset to start from.

use swarmc_plan as plan;

use super::agent::check_address;
use super::datum::Datum;
use super::element::Element;
use super::{
    Section, argument_name, argument_texts, clamp_count, datum_name, lower_command, lower_source, lower_variables,
    parse_choice, step,
};
use crate::ast::{self, Spanned};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::suggest::format_list;
use crate::syntax::Text;

pub(super) fn lower_provider(element: &Element, diagnostics: &mut Diagnostics) -> Option<ast::Provider> {
    let preset = element.property("preset").map(datum_name);
    let way = |node: &str| element.child(node);
    let named = plan::ProviderKind::all().filter_map(|kind| way(kind.name()));
    let named = named.map(|way| (way.name.span, format!("`{}`", way.schema.name)));
    let mut ways = preset.iter().map(|preset| (preset.span, "`preset=`".to_owned())).chain(named);
    let names: Vec<String> = plan::ProviderKind::all().map(|kind| format!("`{}`", kind.name())).collect();
    let (names, usages) =
        (names.join(", "), format_list(plan::ProviderKind::all().map(plan::ProviderKind::usage), "or"));
    match (ways.next(), ways.next()) {
        (None, _) => diagnostics.push(
            Diagnostic::new(Code::WrongValue, "the provider does not say how to reach its agents")
                .label(element.name.span, format!("{names} or `preset=` is missing"))
                .help(format!("write {usages} in its block, or `preset=` with the name of a preset")),
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
        name: argument_name(element, 0)?,
        preset,
        exec: way("exec").and_then(|exec| lower_command(exec, diagnostics)),
        acp: way("acp").and_then(|acp| lower_command(acp, diagnostics)),
        llm: way("llm").and_then(|node| lower_llm(node, diagnostics)),
        script: way("script").map(|script| self::lower_script(script, diagnostics)),
        auth: element.child("auth").and_then(|node| node.argument(0)).map(datum_name),
        rate: element.child("rate").map(lower_rate),
        args: element.children("args").flat_map(argument_texts).collect(),
        delivery: element.child("prompt").and_then(|how| parse_node_choice(how, parse_delivery)),
        reads: element.child("reads").and_then(|format| parse_node_choice(format, self::parse_format)),
        model_flag: lower_flag(element, "model-flag"),
        system_flag: lower_flag(element, "system-flag"),
        resume_args: lower_resume(element, diagnostics),
        schema_flag: element.child("schema-flag").and_then(schema_flag),
        mcp_args: element.child("mcp-args").map(argument_texts),
        notice_args: element.child("notice-args").map(argument_texts),
        mcp_env: element.children("mcp-env").filter_map(mcp_variable).collect(),
        env: lower_variables(element, diagnostics),
        install: lower_flag(element, "install"),
        login: lower_flag(element, "login"),
        context_window: element.child("context-window").and_then(|node| Some(lower_amount(node.argument(0)?))),
        price: element.child("price").map(lower_price),
        concurrency: step::lower_concurrency(element),
        provides: element
            .child("provides")
            .map(|node| node.arguments.iter().map(|(_, datum)| parse_choice(datum, parse_ability)).collect()),
    })
}

fn lower_llm(element: &Element, diagnostics: &mut Diagnostics) -> Option<ast::Llm> {
    if let Some(url) = element.property("base-url") {
        check_address(url, diagnostics);
    }
    let text = |property: &str| element.property(property).map(|datum| datum.text.clone());
    Some(ast::Llm {
        kind: parse_choice(element.argument(0)?, |word| match word {
            "openai-responses" => plan::LlmKind::OpenaiResponses,
            "anthropic" => plan::LlmKind::Anthropic,
            "gemini" => plan::LlmKind::Gemini,
            _ => plan::LlmKind::Openai,
        }),
        base_url: text("base-url"),
        model: text("model"),
        tools: element.property("tools").map(|datum| {
            parse_choice(datum, |word| match word {
                "schema" => plan::ToolProtocol::Schema,
                _ => plan::ToolProtocol::Native,
            })
        }),
        span: element.span,
    })
}

fn lower_rate(element: &Element) -> ast::Rate {
    let of = |property: &str| element.property(property).map(lower_amount);
    ast::Rate { requests: of("requests"), tokens: of("tokens"), span: element.span }
}

fn lower_price(element: &Element) -> ast::Price {
    let of = |property: &str| element.property(property).map(lower_amount);
    ast::Price {
        input: of("input"),
        output: of("output"),
        cache_read: of("cache-read"),
        cache_write: of("cache-write"),
        span: element.span,
    }
}

fn parse_ability(word: &str) -> plan::Ability {
    match word {
        "schema" => plan::Ability::Schema,
        "tools" => plan::Ability::Tools,
        "resume" => plan::Ability::Resume,
        _ => plan::Ability::Images,
    }
}

/// The number of a value, with its place.
pub(super) fn lower_amount(datum: &Datum) -> Spanned<u64> {
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
fn lower_resume(element: &Element, diagnostics: &mut Diagnostics) -> Option<Vec<Text>> {
    let node = element.child("resume-args")?;
    let words = argument_texts(node);
    if words.iter().any(|word| word.as_str() == plan::SESSION) {
        return Some(words);
    }
    if !diagnostics.has_report_at(node.span) {
        let diagnostic = Diagnostic::new(Code::WrongValue, "`resume-args` does not say which conversation")
            .label(node.span, format!("no `{}` among them", plan::SESSION))
            .help(format!("write `resume-args \"--resume\" \"{}\"`", plan::SESSION));
        diagnostics.push(diagnostic);
    }
    None
}

fn lower_script(element: &Element, diagnostics: &mut Diagnostics) -> ast::Script {
    let answers = element.children("answer").map(|answer| self::lower_answer(answer, diagnostics)).collect();
    ast::Script { answers }
}

fn lower_answer(element: &Element, diagnostics: &mut Diagnostics) -> ast::Answer {
    let number = |property: &str| element.property(property).map(|datum| clamp_count(datum.number));
    let section = Section::of(element);
    ast::Answer {
        text: lower_source(element, 0, diagnostics),
        task: element.property("task").map(datum_name),
        iteration: number("iteration"),
        attempt: number("attempt"),
        turn: number("turn"),
        index: number("index"),
        exit: i32::try_from(section.number_of("exit")).unwrap_or(i32::MAX),
        delay_ms: section.number_of("delay"),
        span: element.span,
    }
}

fn lower_flag(element: &Element, child: &str) -> Option<String> {
    Some(element.child(child)?.argument(0)?.text.as_str().to_owned())
}

/// What the argument of a node says, with the place of the node.
fn parse_node_choice<T>(element: &Element, read: fn(&str) -> T) -> Option<Spanned<T>> {
    let datum = element.argument(0)?;
    Some(Spanned { value: read(datum.text.as_str()), span: element.span })
}

pub(crate) fn parse_delivery(word: &str) -> plan::PromptDelivery {
    match word {
        "argument" => plan::PromptDelivery::Argument,
        "file" => plan::PromptDelivery::File,
        _ => plan::PromptDelivery::Stdin,
    }
}

pub(crate) fn parse_format(word: &str) -> plan::Format {
    match word {
        "json" => plan::Format::Json,
        "claude-stream-json" => plan::Format::ClaudeStreamJson,
        "codex-jsonl" => plan::Format::CodexJsonl,
        "opencode-json" => plan::Format::OpencodeJson,
        "gemini-stream-json" => plan::Format::GeminiStreamJson,
        "pi-json" => plan::Format::PiJson,
        "copilot-jsonl" => plan::Format::CopilotJsonl,
        "aider-text" => plan::Format::AiderText,
        _ => plan::Format::Text,
    }
}
