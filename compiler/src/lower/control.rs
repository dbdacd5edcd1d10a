//! The steps that decide how others go on: gates, loops and stops.

use std::collections::BTreeMap;
use std::sync::Arc;

use swarmc_plan as plan;

use super::datum::Datum;
use super::element::Element;
use super::types::{lower_field, report_second_field};
use super::{Section, argument_name, argument_names, child_argument, clamp_count, datum_name, sequence, value};
use crate::ast::{self, Name, Spanned};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::source::Span;
use crate::suggest;

/// What a gate says besides its options.
const FAIL: &str = "fail";

pub(super) fn lower_gate(element: &Element, text: &str, diagnostics: &mut Diagnostics) -> ast::Gate {
    let gate = element.argument(0).map_or("", |name| name.text.as_str());
    let options = lower_options(element, diagnostics);
    let asks = lower_asks(element, text, diagnostics);
    let mut decision = |node: &Element| {
        let choice = argument_name(node, 0)?;
        if choice.value != FAIL && !options.iter().any(|option| option.value == choice.value) {
            diagnostics.push(no_option(gate, &choice, &options));
        }
        Some(choice)
    };
    let on_timeout = element.child("on-timeout").and_then(|node| {
        let after = node.property("after")?;
        let after_ms = Spanned { value: u64::try_from(after.number).unwrap_or(u64::MAX), span: after.span };
        Some(ast::OnTimeout { choice: decision(node)?, after_ms })
    });
    let headless = element.child("headless").and_then(decision);
    ast::Gate { message: child_argument(element, "message"), options, asks, on_timeout, headless }
}

fn lower_options(element: &Element, diagnostics: &mut Diagnostics) -> Vec<Name> {
    let Some(node) = element.child("options") else {
        let word = Section::of(element).child("options").word();
        return vec![Spanned { value: word, span: element.name.span }];
    };
    let mut options: Vec<Name> = Vec::new();
    let mut known: BTreeMap<String, Span> = BTreeMap::new();
    for option in argument_names(node) {
        if option.value == FAIL {
            let diagnostic = Diagnostic::new(Code::WrongValue, "`fail` cannot be an option: it fails the gate")
                .label(option.span, "reserved")
                .help("write another word, such as `reject`");
            diagnostics.push(diagnostic);
            continue;
        }
        if let Some(first) = known.insert(option.value.clone(), option.span) {
            diagnostics.push(super::unknown::report_duplicate(
                &format!("option `{}`", option.value),
                option.span,
                first,
            ));
            continue;
        }
        options.push(option);
    }
    options
}

fn lower_asks(element: &Element, text: &str, diagnostics: &mut Diagnostics) -> Vec<ast::Field> {
    let mut asks: Vec<ast::Field> = Vec::new();
    let mut known: BTreeMap<String, ast::Name> = BTreeMap::new();
    for node in element.children("ask") {
        let Some(name) = argument_name(node, 0) else { continue };
        if let Some(first) = known.insert(name.value.replace('-', "_"), name.clone()) {
            diagnostics.push(report_second_field("given", (&name.value, name.span), (&first.value, first.span)));
            continue;
        }
        let wrong = match name.value.as_str() {
            "choice" => Some(("`choice` is reserved for the chosen option", "ask for another name")),
            written if !value::is_field(written) => {
                Some(("a field is a letter or `_`, then letters, digits, `_` and `-`", "write such a name"))
            }
            _ => None,
        };
        if let Some((label, help)) = wrong {
            let message = format!("`{}` cannot be the name of a field here", name.value);
            diagnostics.push(Diagnostic::new(Code::WrongValue, message).label(name.span, label).help(help));
            continue;
        }
        asks.push(lower_field(node, name, 1, text, diagnostics));
    }
    asks
}

fn no_option(gate: &str, choice: &Name, options: &[Name]) -> Diagnostic {
    let known: Vec<&str> = options.iter().map(|option| option.value.as_str()).chain([FAIL]).collect();
    let (close, help) = suggest::did_you_mean(&choice.value, &known, "it has ");
    let diagnostic = Diagnostic::new(Code::UnknownReference, format!("gate `{gate}` has no option `{}`", choice.value))
        .label(choice.span, "not an option")
        .help_maybe(help);
    match close {
        Some(close) => diagnostic.write_near(choice.span, close),
        None => diagnostic,
    }
}

/// A loop; its steps nest as deep as the parser lets blocks nest.
pub(super) fn lower_loop(element: &Element, text: &str, diagnostics: &mut Diagnostics) -> ast::Loop {
    let steps = sequence::lower_steps(element, text, diagnostics);
    if !sequence::has_step(element) && !diagnostics.has_report_at(element.span) {
        let name = element.argument(0).map_or("", |name| name.text.as_str());
        let diagnostic = Diagnostic::new(Code::WrongValue, format!("loop `{name}` has no task"))
            .label(element.argument(0).map_or(element.name.span, |name: &Datum| name.span), "nothing to repeat")
            .help("write `task NAME { … }` in its block, or remove it");
        diagnostics.push(diagnostic);
    }
    ast::Loop {
        max: element.property("max").map(|datum| Spanned { value: clamp_count(datum.number), span: datum.span }),
        exhausted: parse_exhausted(&Section::of(element).word_of("exhausted")),
        until: element.children("until").filter_map(|until| Some(Arc::new(until.argument(0)?.text.clone()))).collect(),
        steps,
    }
}

pub(super) fn parse_exhausted(word: &str) -> plan::Exhausted {
    match word {
        "success" => plan::Exhausted::Success,
        // The table lets only two words through.
        _ => plan::Exhausted::Fail,
    }
}

pub(super) fn lower_stop(element: &Element) -> ast::Body {
    let status = match Section::of(element).word_of("status").as_str() {
        "failure" => plan::StopStatus::Failure,
        _ => plan::StopStatus::Success,
    };
    ast::Body::Stop { status, message: child_argument(element, "message") }
}

/// Why the step cannot run once more, where that is what its failure leads to.
fn report_unrepeatable(element: &Element, node: &Element, word: &str) -> Option<Diagnostic> {
    let has = |names: &[&str]| element.children.iter().any(|child| names.contains(&child.schema.name));
    let kind = element.children.iter().find_map(|child| plan::StepKind::in_task(child.schema.name));
    let repeats = element.schema.name == "task" && !kind.is_some_and(plan::StepKind::is_computed);
    let (fits, for_whom) = match word {
        "fix" => (
            repeats && !has(&["for-each"]) && !kind.is_some_and(plan::StepKind::is_container),
            "a single prompt or command",
        ),
        "escalate" => (repeats, "a step that can run again: a prompt, a command, a call or a for-each"),
        _ => return None,
    };
    if fits {
        return None;
    }
    let name = element.argument(0).map_or(element.schema.name, |name| name.text.as_str());
    let help = match (element.schema.name, word) {
        ("loop", _) => format!("write it in the step of `{name}` that fails, or let another round mend it"),
        ("task", "fix") if has(&["for-each"]) => {
            "write `retry` or `check`, which apply to each item, or give each item to a pipeline with `call`".to_owned()
        }
        ("task", "fix") if kind == Some(plan::StepKind::Call) => {
            format!("write it in the step of the pipeline that `{name}` calls")
        }
        _ => format!("remove it, or write a step with `depends-on {name} when=failure`"),
    };
    Some(
        Diagnostic::new(Code::WrongValue, format!("`on-failure {word}` is for {for_whom}"))
            .label(node.span, format!("`{name}` is not one"))
            .help(help),
    )
}

/// What a failure of the step means, with what only `fix` has.
pub(super) fn on_failure(element: &Element, diagnostics: &mut Diagnostics) -> ast::OnFailure {
    let Some(node) = element.child("on-failure") else { return ast::OnFailure::Fail };
    let agent = node.property("agent").map(datum_name);
    let word = node.argument(0).map_or("", |word| word.text.as_str());
    if let Some(diagnostic) = report_unrepeatable(element, node, word) {
        diagnostics.push(diagnostic);
        return ast::OnFailure::Fail;
    }
    match (word, agent) {
        ("fix", Some(agent)) => return ast::OnFailure::Fix(agent),
        ("fix", None) if !diagnostics.has_report_at(node.span) => {
            let diagnostic = Diagnostic::new(Code::WrongValue, "`on-failure fix` does not say who mends it")
                .label(node.span, "`agent=` is missing")
                .help("write `on-failure fix agent=NAME`");
            diagnostics.push(diagnostic);
        }
        (_, Some(agent)) => {
            let diagnostic = Diagnostic::new(Code::WrongValue, format!("`on-failure {word}` needs no agent"))
                .label(agent.span, "nothing for this agent to do")
                .help("write `on-failure fix agent=…`, or remove `agent=`");
            diagnostics.push(diagnostic);
        }
        _ => {}
    }
    match word {
        "skip" => ast::OnFailure::Skip,
        "escalate" => ast::OnFailure::Escalate(node.span),
        _ => ast::OnFailure::Fail,
    }
}
