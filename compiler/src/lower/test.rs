//! Tests: fakes and expectations.

use std::collections::BTreeMap;

use super::datum::{Datum, Form};
use super::element::Element;
use super::unknown::report_duplicate;
use super::{Section, argument_name, argument_names, child_argument, clamp_count, datum_name, description_text};
use crate::ast::{self, Expect, ExpectKind, Fake, Holds, Name, Spanned};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::source::Span;
use crate::test::{Count, Ending, Hold, Part, StepEnd, TeamExpected, TurnFilter};

pub(super) fn lower_test(element: &Element, diagnostics: &mut Diagnostics) -> Option<ast::Test> {
    let name = argument_name(element, 0)?;
    let expects = match element.child("expect") {
        Some(block) => block.children.iter().filter_map(|child| lower_expect(child, diagnostics)).collect(),
        None => Vec::new(),
    };
    if expects.is_empty() && !diagnostics.has_report_at(element.span) {
        let place = element.child("expect").map_or(name.span, |block| block.name.span);
        let diagnostic = Diagnostic::new(Code::WrongValue, format!("test `{}` expects nothing", name.value))
            .label(place, "nothing could make it fail")
            .help("say what must hold: `expect { status success }`");
        diagnostics.push(diagnostic);
    }
    Some(ast::Test {
        description: description_text(element),
        pipeline: element.child("pipeline").and_then(|node| self::argument_name(node, 0)),
        params: lower_params(element, diagnostics),
        stdin: child_argument(element, "stdin").map(|text| text.as_str().to_owned()),
        fakes: element.children("fake").filter_map(|node| lower_fake(node, diagnostics)).collect(),
        expects,
        span: element.span,
        name,
    })
}

fn lower_params(element: &Element, diagnostics: &mut Diagnostics) -> Vec<(Name, Name)> {
    let mut params = Vec::new();
    let mut known: BTreeMap<String, Span> = BTreeMap::new();
    for node in element.children("param") {
        if node.properties.is_empty() && !diagnostics.has_report_at(node.span) {
            let diagnostic = Diagnostic::new(Code::WrongValue, "`param` gives no value")
                .label(node.name.span, "nothing is given")
                .help("write `param NAME=VALUE`");
            diagnostics.push(diagnostic);
        }
        for (key, datum) in &node.properties {
            match known.insert(key.text.to_string(), key.span) {
                Some(first) => {
                    diagnostics.push(report_duplicate(&format!("parameter `{}`", key.text), key.span, first))
                }
                None => params.push((Spanned { value: key.text.to_string(), span: key.span }, literal_name(datum))),
            }
        }
    }
    params
}

fn lower_fake(element: &Element, diagnostics: &mut Diagnostics) -> Option<Fake> {
    let step = argument_name(element, 0)?;
    let section = Section::of(element);
    let texts: Vec<Name> =
        element.arguments.iter().filter(|(at, _)| *at > 0).map(|(_, datum)| datum_name(datum)).collect();
    let file = element.property("file");
    if let (Some(file), Some(text)) = (file, texts.first()) {
        let diagnostic = Diagnostic::new(Code::WrongValue, "`fake` takes texts or `file=`, and only one of them")
            .label(file.span, "one too many")
            .label(text.span, "the text is here already")
            .help("remove one of them");
        diagnostics.push(diagnostic);
    }
    let check = element.property("check");
    let fix = element.property("fix").filter(|fix| fix.number == 1);
    if let (Some(check), Some(fix)) = (check, fix) {
        let diagnostic = Diagnostic::new(Code::WrongValue, "a `fake` is for a check or for a fix, not both")
            .label(fix.span, "a fix")
            .label(check.span, "a check")
            .help("write a `fake` for each of them");
        diagnostics.push(diagnostic);
    }
    let tool = element.property("tool");
    if let (Some(other), Some(tool)) = (check.or(fix), tool) {
        let diagnostic = Diagnostic::new(Code::WrongValue, "a `fake` is for a tool, for a check or for a fix")
            .label(tool.span, "a tool")
            .label(other.span, "something else")
            .help("write a `fake` for each of them");
        diagnostics.push(diagnostic);
    }
    let mut fields: Vec<(Name, Name)> = Vec::new();
    let mut known: BTreeMap<String, Span> = BTreeMap::new();
    let own = element.children.iter().filter(|child| child.schema.name == "FIELD");
    for (field, datum) in own.filter_map(|child| Some((child, child.argument(0)?))) {
        let name = Spanned { value: field.name.text.to_string(), span: field.name.span };
        match known.insert(name.value.clone(), name.span) {
            Some(first) => diagnostics.push(report_duplicate(&format!("field `{}`", name.value), name.span, first)),
            None => fields.push((name, literal_name(datum))),
        }
    }
    Some(Fake {
        part: match (check, fix, tool) {
            (Some(check), ..) => Part::Check(clamp_count(check.number)),
            (None, Some(_), _) => Part::Fix,
            (None, None, Some(_)) => Part::Tool,
            (None, None, None) => Part::Body,
        },
        part_span: check.or(fix).or(tool).map_or(step.span, |datum| datum.span),
        tool: tool.map(|tool| tool.text.as_str().to_owned()),
        moment: lower_moment(element),
        texts,
        file: file.map(|file| file.text.clone()),
        exit: i32::try_from(section.number_of("exit")).unwrap_or(i32::MAX),
        exit_span: element.property("exit").map(|exit| exit.span),
        delay_ms: section.number_of("delay"),
        choice: element.property("choice").map(datum_name),
        fields,
        unchecked: section.is_set("unchecked"),
        span: element.span,
        step,
    })
}

fn lower_moment(element: &Element) -> TurnFilter {
    let number = |property: &str| element.property(property).map(|datum| clamp_count(datum.number));
    TurnFilter {
        iteration: number("iteration"),
        attempt: number("attempt"),
        turn: number("turn"),
        index: number("index"),
    }
}

/// A value as the command line would take it.
fn literal_name(datum: &Datum) -> Name {
    let value = match &datum.form {
        Form::Number(number) => number.to_string(),
        _ => datum.text.as_str().to_owned(),
    };
    Spanned { value, span: datum.span }
}

fn lower_expect(element: &Element, diagnostics: &mut Diagnostics) -> Option<Expect> {
    let number =
        |property: &str| element.property(property).map(|datum| u64::try_from(datum.number).unwrap_or(u64::MAX));
    let kind = match element.schema.name {
        "status" => ExpectKind::Status(match element.argument(0)?.text.as_str() {
            "failure" => Ending::Failure,
            "over-budget" => Ending::OverBudget,
            _ => Ending::Success,
        }),
        "step" => {
            let status = match element.argument(1)?.text.as_str() {
                "failed" => StepEnd::Failed,
                "skipped" => StepEnd::Skipped,
                _ => StepEnd::Succeeded,
            };
            ExpectKind::Step(argument_name(element, 0)?, lower_moment(element), status)
        }
        "order" => ExpectKind::Order(lower_order(element, diagnostics)),
        "prompt" => {
            ExpectKind::Prompt(argument_name(element, 0)?, lower_moment(element), lower_holds(element, diagnostics))
        }
        "output" => {
            ExpectKind::Output(argument_name(element, 0)?, lower_moment(element), lower_holds(element, diagnostics))
        }
        "result" => ExpectKind::Result(lower_holds(element, diagnostics)),
        "rounds" => {
            let rounds = u64::try_from(element.argument(0)?.number).unwrap_or(u64::MAX);
            ExpectKind::Rounds(element.property("of").map(datum_name), rounds)
        }
        "launches" => ExpectKind::Launches(how_many(element, diagnostics)?),
        "turns" => ExpectKind::Turns(how_many(element, diagnostics)?),
        "plan" | "item" | "worktree" | "notice" => {
            let name = |property: &str| element.property(property).map(datum_name);
            let text = |property: &str| name(property).map(|name| name.value);
            let expected = match element.schema.name {
                "plan" => TeamExpected::Plan { version: clamp_count(element.property("version")?.number) },
                "item" => TeamExpected::Item {
                    item: argument_name(element, 0)?.value,
                    state: argument_name(element, 1)?.value,
                    owner: text("owner"),
                },
                "worktree" => TeamExpected::Worktree {
                    worktree: argument_name(element, 0)?.value,
                    state: argument_name(element, 1)?.value,
                },
                _ => TeamExpected::Notice { to: text("to")?, contains: text("contains")? },
            };
            let agent = name("owner").or(name("to"));
            ExpectKind::Team { of: name("of"), agent, expected }
        }
        "tokens" => ExpectKind::Tokens(number("max")?),
        "cost" => ExpectKind::Cost(number("max")?),
        _ => return None,
    };
    Some(Expect { kind, span: element.span })
}

fn lower_order(element: &Element, diagnostics: &mut Diagnostics) -> Vec<Name> {
    let steps = argument_names(element);
    if steps.len() < 2 && !diagnostics.has_report_at(element.span) {
        let diagnostic = Diagnostic::new(Code::WrongValue, "`order` needs two steps or more")
            .label(element.name.span, "one step has no order")
            .help("write `order FIRST THEN…`");
        diagnostics.push(diagnostic);
    }
    steps
}

fn lower_holds(element: &Element, diagnostics: &mut Diagnostics) -> Vec<Holds> {
    let hold = |(key, datum): &(crate::syntax::Name, Datum)| {
        let text = || literal_name(datum).value;
        let hold = match &*key.text {
            "contains" => Hold::Contains(text()),
            "lacks" => Hold::Lacks(text()),
            "matches" => Hold::Matches(text()),
            "equals" => Hold::Equals(text()),
            "snapshot" if datum.number == 1 => Hold::Snapshot,
            _ => return None,
        };
        Some(Holds { hold, span: datum.span })
    };
    let holds: Vec<Holds> = element.properties.iter().filter_map(hold).collect();
    if holds.is_empty() && !diagnostics.has_report_at(element.span) {
        let node = element.schema.name;
        let diagnostic = Diagnostic::new(Code::WrongValue, format!("`{node}` says nothing that must hold"))
            .label(element.name.span, "nothing is expected")
            .help("write `contains=`, `lacks=`, `matches=`, `equals=` or `snapshot=#true`");
        diagnostics.push(diagnostic);
    }
    holds
}

fn how_many(element: &Element, diagnostics: &mut Diagnostics) -> Option<Count> {
    let number = |datum: &Datum| u64::try_from(datum.number).unwrap_or(u64::MAX);
    match (element.argument(0), element.property("max")) {
        (Some(exactly), None) => Some(Count::Exactly(number(exactly))),
        (None, Some(most)) => Some(Count::Most(number(most))),
        _ if diagnostics.has_report_at(element.span) => None,
        _ => {
            let node = element.schema.name;
            let diagnostic =
                Diagnostic::new(Code::WrongValue, format!("`{node}` takes a number or `max=`, one of them"))
                    .label(element.name.span, "how many?")
                    .help(format!("write `{node} N` or `{node} max=N`"));
            diagnostics.push(diagnostic);
            None
        }
    }
}
