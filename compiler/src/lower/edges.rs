//! Edges: `a -> b`, where the node's name is the sender.

use swarmc_plan as plan;

use super::datum::Datum;
use super::element::Element;
use super::type_text::type_expr;
use super::{Section, clamp_count, datum_name, value};
use crate::ast::{self, Spanned};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::source::Span;

pub(super) fn lower_edges(element: &Element, diagnostics: &mut Diagnostics) -> ast::Edges {
    let nodes = element.children.iter().filter(|child| child.schema.name == "SENDER");
    ast::Edges { list: nodes.filter_map(|node| lower_edge(node, diagnostics)).collect(), span: element.span }
}

fn lower_edge(node: &Element, diagnostics: &mut Diagnostics) -> Option<ast::Edge> {
    let from = Spanned { value: node.name.text.to_string(), span: node.name.span };
    if !value::is_name(&from.value) {
        let diagnostic = Diagnostic::new(Code::WrongValue, format!("`{}` is not the name of a sender", from.value))
            .label(node.name.span, "not a name")
            .help("write `SENDER -> RECEIVER`");
        diagnostics.push(diagnostic);
        return None;
    }
    let (Some(arrow), Some(to)) = (node.argument(0), node.argument(1).map(datum_name)) else {
        if !diagnostics.has_report_at(node.span) {
            diagnostics.push(report_half_edge(&from, node.argument(0)));
        }
        return None;
    };
    let both = match arrow.text.as_str() {
        "->" => false,
        "<->" => true,
        written => {
            diagnostics.push(not_an_arrow(&from.value, written, arrow.span, &to.value));
            return None;
        }
    };
    if from.value == to.value {
        let diagnostic = Diagnostic::new(Code::WrongValue, format!("`{}` cannot hand over to itself", from.value))
            .label(to.span, "the sender itself")
            .help("remove the edge");
        diagnostics.push(diagnostic);
    }
    let section = Section::of(node);
    let response = match section.word_of("response").as_str() {
        "optional" => plan::Response::Optional,
        "required" => plan::Response::Required,
        _ => plan::Response::None,
    };
    Some(ast::Edge {
        from,
        to,
        both,
        kind: match section.word_of("kind").as_str() {
            "signal" => plan::EdgeKind::Signal,
            "spawn" => plan::EdgeKind::Spawn,
            _ => plan::EdgeKind::Handoff,
        },
        carries: node.property("carries").map(|datum| type_expr(datum, &[], false, diagnostics)),
        response: Spanned { value: response, span: node.property("response").map_or(node.span, |datum| datum.span) },
        max: node.property("max").map(|datum| Spanned { value: clamp_count(datum.number), span: datum.span }),
        span: node.span,
    })
}

/// An edge that lacks its receiver, its arrow, or both.
fn report_half_edge(from: &ast::Name, given: Option<&Datum>) -> Diagnostic {
    let name = &from.value;
    let report = |message: String| Diagnostic::new(Code::WrongValue, message);
    match given.map(|datum| (datum.text.as_str(), datum.span)) {
        Some((arrow @ ("->" | "<->"), span)) => report(format!("the edge from `{name}` has no receiver"))
            .label(span, "no receiver after it")
            .help(format!("write `{name} {arrow} RECEIVER`")),
        Some((to, span)) if value::is_name(to) => report(format!("there is no arrow between `{name}` and `{to}`"))
            .label(span, "the receiver, without an arrow")
            .help(format!("write `{name} -> {to}`, or `{name} <-> {to}` for both ways"))
            .unsafe_fix("write `->`", Span { end: span.start, ..span }, "-> "),
        _ => report(format!("the edge from `{name}` has no receiver"))
            .label(from.span, "an arrow and a receiver are missing")
            .help(format!("write `{name} -> RECEIVER`")),
    }
}

fn not_an_arrow(from: &str, written: &str, span: Span, to: &str) -> Diagnostic {
    let diagnostic =
        Diagnostic::new(Code::WrongValue, format!("`{written}` is not an arrow")).label(span, "not `->` or `<->`");
    match written {
        "=>" | "-->" | "→" | "to" | "~>" | ">" | "➜" | "➔" => {
            diagnostic.help(format!("write `{from} -> {to}`")).fix("write `->`", span, "->")
        }
        "<=>" | "<-->" | "↔" | "--" | "<>" | "=" => {
            diagnostic.help(format!("write `{from} <-> {to}`")).fix("write `<->`", span, "<->")
        }
        "<-" | "<=" | "<--" | "←" => diagnostic.help(format!("the sender comes first: write `{to} -> {from}`")),
        _ => diagnostic.help(format!("write `{from} -> RECEIVER`, or `{from} <-> RECEIVER` for both ways")),
    }
}
