//! Context packs.

use swarmc_plan::Overflow;

use super::datum::Form;
use super::element::Element;
use super::{Section, description, name, names, spanned, texts, value};
use crate::ast::{self, Literal, PackRule, Spanned, Summary};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};

pub(super) fn pack(element: &Element, diagnostics: &mut Diagnostics) -> Option<ast::ContextPack> {
    let name = name(element, 0)?;
    let rules: Vec<Spanned<PackRule>> = element
        .children
        .iter()
        .filter_map(|node| Some(Spanned { value: rule(node, diagnostics)?, span: node.span }))
        .collect();
    if rules.is_empty() && !diagnostics.covers(element.span) {
        let diagnostic = Diagnostic::new(Code::WrongValue, format!("context pack `{}` holds nothing", name.value))
            .label(name.span, "nothing to know")
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
        description: description(element),
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

fn rule(node: &Element, diagnostics: &mut Diagnostics) -> Option<PackRule> {
    Some(match node.schema.name {
        "goal" => PackRule::Goal(node.argument(0)?.text.clone()),
        "definition-of-done" => PackRule::DefinitionOfDone(texts(node)),
        "docs" => PackRule::Docs {
            path: node.argument(0)?.text.clone(),
            lines: node
                .property("lines")
                .and_then(|datum| Some(Spanned { value: value::lines(datum.text.as_str())?, span: datum.span })),
        },
        "files" => {
            let section = Section::of(node);
            PackRule::Files { globs: texts(node), summary: summary(node, diagnostics), max: section.count_of("max") }
        }
        "fact" => PackRule::Fact { name: spanned(node.argument(0)?), value: node.argument(1)?.text.clone() },
        "inputs" => PackRule::Inputs(names(node)),
        "artifacts" => {
            PackRule::Artifacts { kind: spanned(node.property("kind")?), from: spanned(node.property("from")?) }
        }
        "constraint" => {
            let datum = node.argument(1)?;
            let value = match &datum.form {
                Form::Bool => Literal::Bool(datum.number == 1),
                Form::Number(number) => Literal::Number(number.clone()),
                Form::Text => Literal::Text(datum.text.clone()),
            };
            PackRule::Constraint { name: spanned(node.argument(0)?), value }
        }
        "merge" => PackRule::Merge(spanned(node.argument(0)?)),
        _ => return None,
    })
}

/// Whether files come with summaries, and by whom.
fn summary(node: &Element, diagnostics: &mut Diagnostics) -> Summary {
    let written = node.property("summary");
    let agent = node.property("agent");
    let summary = match written.map(|datum| (datum.text.as_str(), datum.span)) {
        Some(("agent", span)) => return Summary::Agent(agent.map(spanned), span),
        Some(("#true", _)) => Summary::Rule,
        _ => Summary::None,
    };
    if let Some(agent) = agent
        && !diagnostics.covers(node.span)
    {
        let diagnostic = Diagnostic::new(Code::WrongValue, "`agent=` says who sums files up, and nobody is to")
            .label(agent.span, "asked for nothing")
            .help("write `summary=agent`, or leave `agent=` out");
        diagnostics.push(match written {
            Some(written) => diagnostic.unsafe_fix("write `agent`", written.span, "agent"),
            None => diagnostic,
        });
    }
    summary
}
