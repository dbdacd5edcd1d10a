//! Context packs.

use swarmc_plan::Overflow;

use super::datum::Form;
use super::element::Element;
use super::{Section, argument_name, argument_names, argument_texts, datum_name, description_text, value};
use crate::ast::{self, Literal, PackRule, Spanned, Summary};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};

pub(super) fn lower_pack(element: &Element, diagnostics: &mut Diagnostics) -> Option<ast::ContextPack> {
    let name = argument_name(element, 0)?;
    let rules: Vec<Spanned<PackRule>> = element
        .children
        .iter()
        .filter_map(|node| Some(Spanned { value: lower_rule(node, diagnostics)?, span: node.span }))
        .collect();
    if rules.is_empty() && !diagnostics.has_report_at(element.span) {
        let diagnostic = Diagnostic::new(Code::WrongValue, format!("context pack `{}` has no rule", name.value))
            .label(name.span, "no rule in its block")
            .help("write `docs`, `files`, `goal` or another rule in its block");
        diagnostics.push(diagnostic);
    }
    let section = Section::of(element);
    let budget = section.child("budget");
    let (tokens, min_tokens) = (budget.count_of("tokens"), budget.count_of("min"));
    let written = budget.element();
    if let Some(min) = written.and_then(|node| node.property("min"))
        && min_tokens > tokens
    {
        let diagnostic = Diagnostic::new(Code::WrongValue, "a pack cannot aim at more tokens than it may have")
            .label(min.span, format!("more than {tokens}"))
            .help("lower `min=`, or raise `tokens=`");
        diagnostics.push(diagnostic);
    }
    let place = written.map(|node| node.property("tokens").map_or(node.span, |tokens| tokens.span));
    Some(ast::ContextPack {
        description: description_text(element),
        tokens: Spanned { value: tokens, span: place.unwrap_or(name.span) },
        // A pack that may hold less than the usual target aims at all it may hold.
        min_tokens: min_tokens.min(tokens),
        rules,
        on_overflow: match section.child("on-overflow").word().as_str() {
            "truncate" => Overflow::Truncate,
            "error" => Overflow::Error,
            _ => Overflow::Drop,
        },
        name,
    })
}

fn lower_rule(node: &Element, diagnostics: &mut Diagnostics) -> Option<PackRule> {
    Some(match node.schema.name {
        "goal" => PackRule::Goal(node.argument(0)?.text.clone()),
        "definition-of-done" => PackRule::DefinitionOfDone(argument_texts(node)),
        "docs" => PackRule::Docs {
            path: node.argument(0)?.text.clone(),
            lines: node.property("lines").and_then(|datum| {
                Some(Spanned { value: value::parse_line_range(datum.text.as_str())?, span: datum.span })
            }),
        },
        "files" => {
            let section = Section::of(node);
            PackRule::Files {
                globs: argument_texts(node),
                summary: lower_summary(node, diagnostics),
                max: section.count_of("max"),
            }
        }
        "fact" => PackRule::Fact { name: datum_name(node.argument(0)?), value: node.argument(1)?.text.clone() },
        "inputs" => PackRule::Inputs(argument_names(node)),
        "artifacts" => {
            PackRule::Artifacts { kind: datum_name(node.property("kind")?), from: datum_name(node.property("from")?) }
        }
        "constraint" => {
            let datum = node.argument(1)?;
            let value = match &datum.form {
                Form::Bool => Literal::Bool(datum.number == 1),
                Form::Number(number) => Literal::Number(number.clone()),
                Form::Text => Literal::Text(datum.text.clone()),
            };
            PackRule::Constraint { name: datum_name(node.argument(0)?), value }
        }
        "merge" => PackRule::Merge(datum_name(node.argument(0)?)),
        _ => return None,
    })
}

/// Whether files come with summaries, and by whom.
fn lower_summary(node: &Element, diagnostics: &mut Diagnostics) -> Summary {
    let written = node.property("summary");
    let agent = node.property("agent");
    let summary = match written.map(|datum| (datum.text.as_str(), datum.span)) {
        Some(("agent", span)) => return Summary::Agent(agent.map(datum_name), span),
        Some(("#true", _)) => Summary::Rule,
        _ => Summary::None,
    };
    if let Some(agent) = agent
        && !diagnostics.has_report_at(node.span)
    {
        let diagnostic = Diagnostic::new(Code::WrongValue, "`agent=` has no effect without `summary=agent`")
            .label(agent.span, "not used")
            .help("write `summary=agent`, or leave `agent=` out");
        diagnostics.push(match written {
            Some(written) => diagnostic.unsafe_fix("write `agent`", written.span, "agent"),
            None => diagnostic,
        });
    }
    summary
}
