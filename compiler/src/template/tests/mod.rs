//! What texts and conditions say, as tables; and that no text does harm.
//!
//! Everything goes through the `check` functions here, which show parts, reads, facts and problems as short texts.

mod any;
mod directives;
mod logic;
mod reads;

use swarmc_plan::Filter;

use super::*;

/// The parts, reads and problems of a text, a line each.
fn check_parts(text: &str, expected: &str) {
    assert_eq!(parts(text), expected, "parts of {text:?}");
}

fn check_reads(text: &str, expected: &str) {
    let template = scan(text);
    assert_eq!(problems(text, &template.problems), Vec::<String>::new(), "problems of {text:?}");
    assert_eq!(reads(&template.reads), expected, "reads of {text:?}");
}

/// The text at each problem, its message, and the text after its fix.
fn check_problems(text: &str, expected: &[&str]) {
    assert_eq!(problems(text, &scan(text).problems), expected, "problems of {text:?}");
}

/// What holds when a condition does, after what it reads.
fn check_condition(text: &str, expected: &str) {
    let expression = parse_expression(text);
    assert_eq!(problems(text, &expression.problems), Vec::<String>::new(), "problems of {text:?}");
    let constant = expression.constant.map_or(String::new(), |truth| format!(" always {truth}"));
    let said = format!("{} proves {}{constant}", reads(&expression.reads), facts(&expression.proves));
    assert_eq!(said, expected, "condition {text:?}");
}

fn check_condition_problems(text: &str, expected: &[&str]) {
    assert_eq!(problems(text, &parse_expression(text).problems), expected, "problems of {text:?}");
}

fn parts(text: &str) -> String {
    let show = |part: &Part| match part {
        Part::Text(range) => format!("{:?}", &text[range.clone()]),
        Part::Escape => "\\".to_owned(),
        Part::Logic(range) => text[range.clone()].to_owned(),
        Part::Directive(directive) => {
            let fields = directive.fields.iter().map(|field| format!(".{}", field.value)).collect::<String>();
            let filters = directive.filters.iter().map(|filter| format!(" | {}", filter_text(&filter.value)));
            let name = directive.name.as_ref().map_or(String::new(), |name| format!(" {}", name.value));
            format!("<{}{name}{fields}{}>", directive.kind.as_str(), filters.collect::<String>())
        }
    };
    scan(text).parts.iter().map(show).collect::<Vec<_>>().join(" ")
}

fn filter_text(filter: &Filter) -> String {
    match filter {
        Filter::Tail(count) => format!("tail {count}"),
        Filter::Head(count) => format!("head {count}"),
        Filter::Lines(from, to) => format!("lines {from} {to}"),
        Filter::Chars(count) => format!("chars {count}"),
        Filter::Json => "json".to_owned(),
        Filter::Raw => "raw".to_owned(),
        Filter::Default(text) => format!("default {text:?}"),
    }
}

/// `output.x.f`, with `?` where a missing value does no harm, and what is assumed.
fn reads(reads: &[Read]) -> String {
    let show = |read: &Read| {
        let names = read.name.iter().chain(&read.fields).map(|name| format!(".{name}")).collect::<String>();
        let guarded = if read.guarded { "?" } else { "" };
        let assumes = if read.assumes.is_empty() { String::new() } else { format!(" if {}", facts(&read.assumes)) };
        format!("{}{names}{guarded}{assumes}", read.root.as_str())
    };
    reads.iter().map(show).collect::<Vec<_>>().join(", ")
}

fn facts(facts: &[Fact]) -> String {
    let show = |fact: &Fact| match fact {
        Fact::Repeated => "repeated".to_owned(),
        Fact::NonZero(_) => unreachable!("left out"),
        Fact::Defined { root, name, fields, .. } => {
            let fields = fields.iter().map(String::as_str);
            let names = name.as_deref().into_iter().chain(fields).map(|name| format!(".{name}")).collect::<String>();
            format!("{}{names}", root.as_str())
        }
        Fact::Ended { step, any_of } => {
            let words: Vec<&str> = any_of.iter().map(|status| status.as_str()).collect();
            format!("{step} {}", words.join("/"))
        }
    };
    let numbers = |fact: &&Fact| matches!(fact, Fact::NonZero(_));
    facts.iter().filter(|fact| !numbers(fact)).map(show).collect::<Vec<_>>().join(" + ")
}

fn problems(text: &str, problems: &[Problem]) -> Vec<String> {
    let show = |problem: &Problem| {
        let at = &text[problem.range.clone()];
        let mut fixed = text.to_owned();
        let fixed = problem.fix.as_ref().map_or(String::new(), |fix| {
            fixed.replace_range(fix.range.clone(), &fix.text);
            format!(" -> {fixed}")
        });
        format!("{} at {at:?}: {}{fixed}", problem.code.id(), problem.message)
    };
    problems.iter().map(show).collect()
}
