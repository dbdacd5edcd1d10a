//! Lowers budgets, policies and hooks.

use std::collections::BTreeMap;

use swarmc_plan as plan;

use super::element::Element;
use super::provider::lower_amount;
use super::unknown::report_duplicate;
use super::{Section, clamp_count, datum_name, parse_choice};
use crate::ast::{self, Spanned};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::source::Span;

pub(super) fn lower_budget(element: &Element, diagnostics: &mut Diagnostics) -> ast::Budget {
    let of = |property: &str| element.property(property).map(lower_amount);
    let budget = ast::Budget {
        tokens: of("tokens"),
        cost: of("cost"),
        time_ms: of("time"),
        calls: element.property("calls").map(|datum| Spanned { value: clamp_count(datum.number), span: datum.span }),
        warn: Section::of(element).count_of("warn"),
        at_most: element.argument(0).is_some_and(|how| how.text.as_str() == "at-most"),
        span: element.span,
    };
    let nothing =
        budget.tokens.is_none() && budget.cost.is_none() && budget.time_ms.is_none() && budget.calls.is_none();
    if nothing && !diagnostics.has_report_at(element.span) {
        let diagnostic = Diagnostic::new(Code::WrongValue, "`budget` limits nothing")
            .label(element.name.span, "no limit")
            .help("write `tokens=`, `cost=\"$5\"`, `time=\"1h\"` or `calls=`");
        diagnostics.push(diagnostic);
    }
    for zero in [&budget.cost, &budget.time_ms].into_iter().flatten().filter(|limit| limit.value == 0) {
        let diagnostic = Diagnostic::new(Code::WrongValue, "a budget of zero lets nothing start")
            .label(zero.span, "nothing can be done with this")
            .help("write what may be spent, or remove the limit");
        diagnostics.push(diagnostic);
    }
    budget
}

pub(super) fn lower_policy(element: &Element, diagnostics: &mut Diagnostics) -> ast::Policy {
    let mut known: BTreeMap<&str, Span> = BTreeMap::new();
    for name in element.children("tool").filter_map(|tool| tool.argument(0)) {
        if let Some(first) = known.insert(name.text.as_str(), name.span) {
            diagnostics.push(report_duplicate(&format!("tool `{}`", name.text.as_str()), name.span, first));
        }
    }
    let of = |child: &str| Some(parse_choice(element.child(child)?.argument(0)?, parse_approval));
    let tool = |node: &Element| Some((datum_name(node.argument(0)?), parse_choice(node.argument(1)?, parse_approval)));
    let unattended = Section::of(element).child("unattended");
    let on_timeout = element.child("on-timeout").and_then(|node| on_timeout(node, diagnostics));
    ast::Policy {
        spawn: of("spawn"),
        tools: element.children("tool").filter_map(tool).collect(),
        plan_update: of("plan-update"),
        integrate: of("integrate"),
        unattended: Spanned {
            value: without_answer(&unattended.word()),
            span: unattended.element().map_or(element.span, |node| node.span),
        },
        on_timeout,
        span: element.span,
    }
}

fn on_timeout(node: &Element, diagnostics: &mut Diagnostics) -> Option<Spanned<plan::RequestTimeout>> {
    let (then, after) = (node.argument(0)?, node.property("after")?);
    let after_ms = u64::try_from(after.number).unwrap_or(u64::MAX);
    if after_ms == 0 {
        let diagnostic = Diagnostic::new(Code::WrongValue, "a time limit of zero answers every request at once")
            .label(after.span, "no person can answer before")
            .help("write how long a request waits, as in `\"10m\"`; without `on-timeout` it waits for ever");
        diagnostics.push(diagnostic);
    }
    let value = plan::RequestTimeout { then: without_answer(then.text.as_str()), after_ms };
    Some(Spanned { value, span: node.span })
}

/// What a word means for a request that no person answers.
fn without_answer(word: &str) -> plan::Unattended {
    match word {
        "approve" => plan::Unattended::Approve,
        "fail" => plan::Unattended::Fail,
        _ => plan::Unattended::Deny,
    }
}

pub(super) fn parse_approval(word: &str) -> plan::Approval {
    match word {
        "human" => plan::Approval::Human,
        "coordinator" => plan::Approval::Coordinator,
        _ => plan::Approval::Auto,
    }
}

pub(super) fn lower_hook(element: &Element, diagnostics: &mut Diagnostics) -> Option<ast::Hook> {
    let run = element.child("run");
    if run.is_none() && !diagnostics.has_report_at(element.span) {
        let diagnostic = Diagnostic::new(Code::WrongValue, "the hook does nothing")
            .label(element.name.span, "`run` is missing")
            .help("write `hook EVENT { run PROGRAM ARG… }`");
        diagnostics.push(diagnostic);
    }
    Some(ast::Hook {
        event: parse_choice(element.argument(0)?, |word| match word {
            "start" => plan::HookEvent::Start,
            "complete" => plan::HookEvent::Complete,
            "failure" => plan::HookEvent::Failure,
            "gate" => plan::HookEvent::Gate,
            _ => plan::HookEvent::Stop,
        }),
        body: run.and_then(|run| super::body::lower_run(run, diagnostics)),
        span: element.span,
    })
}
