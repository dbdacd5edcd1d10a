//! The messages about nodes and properties that do not belong where they stand.

use super::datum::Datum;
use super::type_text;
use super::value::is_name;
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Edit, Fix};
use crate::schema::{self, Kind, Node, Older, Property};
use crate::source::Span;
use crate::suggest::{self, Near};
use crate::syntax::{self, Name, ValueKind};

pub(super) fn report_unknown(node: &syntax::Node, parent: &'static Node, called: &str) -> Diagnostic {
    let name = &*node.name.text;
    let place = match called {
        "" => "at the top level".to_owned(),
        called => format!("in `{called}`"),
    };
    if parent.find_property(name).is_some() {
        let value = match node.entries.first().map(|entry| &entry.value.kind) {
            Some(ValueKind::String(text)) if text.is_bare() => text.as_str(),
            _ => "…",
        };
        return Diagnostic::new(
            Code::MisplacedNode,
            format!("`{name}` is a property of `{called}`, not a node in its block"),
        )
        .label(node.name.span, "a property stands on the line of its node")
        .help(format!("write `{name}={value}` before the braces: `{called} … {name}={value} {{ … }}`"));
    }
    let allowed: Vec<&str> = parent.children.iter().map(|child| child.name).collect();
    let takes = match (called, allowed.is_empty()) {
        (called, true) => format!("`{called}` takes no block: write `{}`", parent.usage_as(called)),
        ("", false) => format!("the top level takes {}", suggest::format_list(allowed.iter().copied(), "and")),
        (called, false) => format!("`{called}` takes {}", suggest::format_list(allowed.iter().copied(), "and")),
    };
    if let ("timeout", "gate" | "policy") = (name, called) {
        let (what, then, others) = match called {
            "gate" => ("OPTION", "fail", "or `fail` for the option"),
            _ => ("deny", "deny", "or `approve` or `fail` for `deny`"),
        };
        let after = match node.entries.first().map(|entry| &entry.value.kind) {
            Some(ValueKind::String(text)) => text.as_str(),
            _ => "24h",
        };
        let meant = format!("on-timeout {then} after=\"{after}\"");
        return Diagnostic::new(Code::MisplacedNode, format!("a {called} takes `on-timeout`, not `timeout`"))
            .label(node.name.span, format!("not known in a `{called}`"))
            .help(format!("write `on-timeout {what} after=\"{after}\"`, {others}"))
            .unsafe_fix(format!("write `{meant}`"), node.span, meant);
    }
    if let ("parallel" | "concurrent", "pipeline" | "loop") = (name, called) {
        return Diagnostic::new(Code::UnknownNode, format!("there is no `{name}`: tasks run at once unless one waits"))
            .label(node.name.span, "not needed")
            .help(format!("write its tasks directly in the `{called}`; `depends-on` is for those that wait"));
    }
    // What another tool calls so comes before a node of this name that belongs elsewhere.
    let habit = suggest::find_habit(name, &allowed).map(|name| Near { name, certain: false });
    if let Some(close) = habit {
        return Diagnostic::new(Code::UnknownNode, format!("there is no `{name}` {place}"))
            .label(node.name.span, "not known here")
            .help(format!("did you mean `{close}`?"))
            .write_near(node.name.span, close);
    }
    // A file of another kind takes nothing of the language, wherever that belongs.
    let other = called.is_empty() && !std::ptr::eq(parent, &schema::SPEC);
    let parents = if other { Vec::new() } else { schema::list_parents(name) };
    if !parents.is_empty() {
        let home = match parents.as_slice() {
            [""] => "at the top level".to_owned(),
            [..] => {
                let inside = parents.iter().copied().filter(|parent| !parent.is_empty());
                let top = if parents.contains(&"") { "the top level, or in " } else { "" };
                format!("in {top}{}", suggest::format_list(inside, "or"))
            }
        };
        let help = match parent.name {
            // It only names the workflow, unlike those of other tools.
            // A step of a pipeline.
            "workflow" if parents.contains(&"loop") => {
                format!("close the `workflow` before it, and write `pipeline NAME {{ {name} … }}` beside it")
            }
            "workflow" if parents.contains(&"") => format!("close the `workflow` before it: `{name}` stands beside it"),
            _ => match parents.as_slice() {
                [home] if !home.is_empty() => {
                    format!("write it in the block of the `{home}`: `{home} … {{ {name} … }}`")
                }
                _ => takes,
            },
        };
        return Diagnostic::new(Code::MisplacedNode, format!("`{name}` is not allowed {place}"))
            .label(node.name.span, format!("belongs {home}"))
            .help(help);
    }
    let diagnostic = Diagnostic::new(Code::UnknownNode, format!("there is no `{name}` {place}"));
    match suggest::find_nearest(name, allowed.iter().copied()) {
        Some(close) => diagnostic
            .label(node.name.span, "not known here")
            .help(format!("did you mean `{close}`?"))
            .write_near(node.name.span, close),
        None => diagnostic.label(node.name.span, "not known here").help(takes),
    }
}

pub(super) fn unknown_property(name: &Name, entry: &syntax::Entry, schema: &'static Node, node: &str) -> Diagnostic {
    let key = &*name.text;
    if std::ptr::eq(schema, &schema::EDGE) && matches!(key, "<" | "-" | "--") {
        return Diagnostic::new(Code::WrongValue, "an arrow is `->` or `<->`, without `=`")
            .label(name.span, "not an arrow")
            .help(format!("write `{node} <-> RECEIVER` or `{node} -> RECEIVER`"));
    }
    if schema.rest.is_some_and(|rest| matches!(rest.kind, Kind::Scalar)) {
        let word = match &entry.value.kind {
            ValueKind::String(text) => crate::syntax::quote_text(&format!("{key}={}", text.as_str())),
            ValueKind::Number(number) => format!("\"{key}={}\"", number.as_str()),
            _ => format!("\"{key}=…\""),
        };
        let diagnostic = Diagnostic::new(
            Code::UnknownNode,
            format!("`{key}=` reads as a property, and `{node}` has none of that name"),
        );
        // A shell would take it for a variable, and the command would do nothing.
        if schema::RUN.find_property(key).is_some() {
            return diagnostic
                .label(entry.span, format!("`run` has one, `{node}` has words alone"))
                .help(format!("write the command as `run` would have it, as in `{node} \"sh\" \"SCRIPT\"`"));
        }
        return diagnostic.label(entry.span, "a word with `=` needs quotes").help(format!("write `{word}`")).fix(
            "put the word in quotes",
            entry.span,
            word,
        );
    }
    if let Some(child) = schema.find_child(key).filter(|child| child.name != schema::ALLOW.name) {
        return Diagnostic::new(
            Code::MisplacedNode,
            format!("`{key}` is a node in the block of `{node}`, not a property"),
        )
        .label(entry.span, "belongs inside the braces")
        .help(format!("write `{node} … {{ {} … }}`", child.name));
    }
    let known: Vec<&str> = schema.properties.iter().map(|property: &Property| property.name).collect();
    let diagnostic = Diagnostic::new(Code::UnknownNode, format!("`{node}` has no property `{key}`"))
        .label(name.span, "not known here");
    let children: Vec<&str> = schema.children.iter().map(|child| child.name).collect();
    if let Some(child) = suggest::find_habit(key, &children) {
        return diagnostic.help(format!("`{child}` says that, in its block: `{node} … {{ {child} … }}`"));
    }
    if let ("output", "type", ValueKind::String(written)) = (schema.name, key, &entry.value.kind) {
        let written = written.as_str();
        let diagnostic =
            diagnostic.help(format!("write `{node} {written}`, or `{node} {{ FIELD TYPE }}` for a record"));
        return if is_name(written) {
            diagnostic.unsafe_fix(format!("write `{written}`"), entry.span, written)
        } else {
            diagnostic
        };
    }
    // What a model would answer, field by field.
    if schema.name == "fake" && suggest::find_nearest(key, known.iter().copied()).is_none() {
        let value = match &entry.value.kind {
            ValueKind::Bool(value) => value.to_string(),
            ValueKind::Number(number) => number.as_str().to_owned(),
            _ => "…".to_owned(),
        };
        return diagnostic.help(format!(
            "what it answers is a text, JSON where the step has a type: `{node} STEP #\"{{\"{key}\": {value}}}\"#`"
        ));
    }
    let homes = schema::list_owners(key);
    match suggest::find_nearest(key, known.iter().copied()) {
        Some(close) => diagnostic.help(format!("did you mean `{close}=`?")).write_near(name.span, close),
        None if !homes.is_empty() => {
            diagnostic.help(format!("`{key}=` belongs to {}", suggest::format_list(homes.into_iter(), "or")))
        }
        None if matches!(key, "extends" | "inherits" | "uses")
            && matches!(schema.name, "workflow" | "pipeline" | "task") =>
        {
            diagnostic.help(suggest_template(&entry.value.kind))
        }
        None if known.is_empty() => diagnostic.help(format!("it takes no properties: `{}`", schema.usage_as(node))),
        None => diagnostic.help(format!("its properties are {}", suggest::format_list(known.into_iter(), "and"))),
    }
}

/// What stands in the place of a workflow that another one extends: a pipeline that is called with arguments.
fn suggest_template(written: &ValueKind) -> String {
    let call = "with `call NAME PARAM=\"VALUE\"` in a task; its `param`s are what differs";
    match written {
        ValueKind::String(text) if text.as_str().ends_with(".kdl") => {
            let path = crate::syntax::quote_text(text.as_str());
            format!("write `import {path}` at the top level, and call a pipeline of it {call}")
        }
        _ => format!("a pipeline is reused {call}"),
    }
}

pub(super) fn too_many(
    surplus: &[&syntax::Entry],
    arguments: &[(usize, Datum)],
    schema: &'static Node,
    called: &str,
) -> Diagnostic {
    let (first, last) = (surplus[0], surplus[surplus.len() - 1]);
    let count = match schema.arguments.len() {
        0 => "no arguments".to_owned(),
        1 => "one argument".to_owned(),
        count => format!("{count} arguments"),
    };
    let diagnostic = Diagnostic::new(Code::WrongValue, format!("`{called}` takes {count}"))
        .label(first.span.to(last.span), if surplus.len() == 1 { "one too many" } else { "too many" });
    let child = bare_word(first).and_then(|word| schema.find_child(word)).filter(|_| arguments.is_empty());
    if std::ptr::eq(schema, &schema::EXPECT)
        && let [step, end] = surplus
        // A child without arguments is not meant where one follows: `plan` is a step here.
        && child.is_none_or(|child| child.arguments.is_empty())
        && let (ValueKind::String(step), ValueKind::String(end)) = (&step.value.kind, &end.value.kind)
        && is_name(step.as_str())
    {
        let end = match end.as_str() {
            "skip" | "skipped" => "skipped",
            "fail" | "failed" | "failure" | "error" => "failed",
            _ => "succeeded",
        };
        let meant = format!("{{ step {} {end} }}", step.as_str());
        return diagnostic.help(format!("write `{called} {meant}`")).unsafe_fix(
            format!("write `{meant}`"),
            first.span.to(last.span),
            meant,
        );
    }
    if let Some(child) = child {
        let (open, close) = (Span { end: first.span.start, ..first.span }, Span { start: last.span.end, ..last.span });
        let mut diagnostic = diagnostic.help(format!("write `{called} {{ {} … }}`", child.name));
        let edits = [(open, "{ "), (close, " }")].map(|(span, text)| Edit { span, text: text.to_owned() }).to_vec();
        diagnostic.fix = Some(Fix { title: "put it in braces".to_owned(), edits, certain: false });
        return diagnostic;
    }
    if let Some(written) = write_type(surplus).filter(|_| takes_type(schema) && arguments.len() == 1) {
        let title = format!("write `{written}`");
        return diagnostic.help(format!("the type is a property: {title}")).unsafe_fix(
            title,
            first.span.to(last.span),
            written,
        );
    }
    let words = || arguments.iter().map(|(_, word)| word.text.as_str());
    if let (Some(Kind::Name), [_]) = (schema.arguments.last().map(|argument| argument.kind), arguments) {
        let surplus: Option<Vec<&str>> = surplus.iter().map(|entry| bare_word(entry)).collect();
        let name = surplus.map(|surplus| words().chain(surplus).collect::<Vec<_>>().join("-").to_lowercase());
        if let Some(name) = name.filter(|name| is_name(name)) {
            let span = arguments[0].1.span.to(last.span);
            return diagnostic.help(format!("a name is one word: write `{name}`")).unsafe_fix(
                format!("write `{name}`"),
                span,
                name,
            );
        }
    }
    let is_text = matches!(schema.arguments.last(), Some(argument) if matches!(argument.kind, Kind::Text | Kind::Template | Kind::Expression));
    let bare = |entry: &syntax::Entry| bare_word(entry).is_some();
    match arguments.last() {
        Some((_, text)) if is_text && text.text.is_bare() && surplus.iter().copied().all(bare) => {
            diagnostic.help("put the whole text in quotes")
        }
        None if schema.rest.is_none() && schema.arguments.is_empty() && !schema.children.is_empty() => {
            let first = schema.children.iter().take(3).map(|child| child.name);
            diagnostic.help(format!("write `{called} {{ … }}`, with {} in it", suggest::format_list(first, "or")))
        }
        _ => diagnostic.help(format!("write `{}`", schema.usage_as(called))),
    }
}

fn takes_type(schema: &Node) -> bool {
    schema.find_property("type").is_some_and(|property| matches!(property.kind, Kind::Type))
}

/// The property of the type that words behind a name are; none where they are no type.
fn write_type(words: &[&syntax::Entry]) -> Option<String> {
    let words: Option<Vec<&str>> = words.iter().map(|word| bare_word(word)).collect();
    match words.as_deref()? {
        [word] if type_text::begins_type(word) => Some(format!("type={word}")),
        ["enum", words @ ..] => Some(format!("type=\"enum {}\"", words.join(" "))),
        _ => None,
    }
}

/// Whether a value is the sign that begins a text of several lines in YAML.
pub(super) fn opens_block(entry: &syntax::Entry) -> bool {
    entry.name.is_none() && bare_word(entry).is_some_and(|word| matches!(word, "|" | "|-" | "|+" | ">" | ">-" | ">+"))
}

pub(super) fn report_block(node: &str, sign: Span) -> Diagnostic {
    Diagnostic::new(Code::Syntax, "a text of several lines is not written as in YAML")
        .label(sign, "begins a text in YAML")
        .help(format!("write `{node} \"\"\"`, then the lines, then `\"\"\"` on a line of its own"))
}

/// A number or a truth value behind a type, which has no words: what is meant is a default. None where it is no such one.
pub(super) fn report_default(
    entry: &syntax::Entry,
    before: &[(usize, Datum)],
    schema: &Node,
    called: &str,
) -> Option<Diagnostic> {
    let written = match &entry.value.kind {
        ValueKind::Number(number) => number.as_str().to_owned(),
        ValueKind::Bool(on) => format!("#{on}"),
        _ => return None,
    };
    let [(_, kind)] = before else { return None };
    let kind = kind.text.as_str();
    schema
        .find_property("default")
        .filter(|_| matches!(schema.arguments, [only] if matches!(only.kind, Kind::Type)))?;
    if kind.starts_with("enum") {
        return None;
    }
    let meant = format!("default={written}");
    let message = format!("`{written}` stands behind the type `{kind}` of `{called}`, which takes no words");
    Some(
        Diagnostic::new(Code::WrongValue, message)
            .label(entry.span, "no part of the type")
            .help(format!("a default is written `{meant}`"))
            .unsafe_fix(format!("write `{meant}`"), entry.span, meant),
    )
}

/// A word without quotes.
fn bare_word(entry: &syntax::Entry) -> Option<&str> {
    match &entry.value.kind {
        ValueKind::String(text) if text.is_bare() => Some(text.as_str()),
        _ => None,
    }
}

/// An older spelling of `name`.
pub(super) fn report_deprecated(older: &Older, name: &str, span: Span) -> Diagnostic {
    let message = format!("`{}` is deprecated since edition {}", older.name, older.since);
    Diagnostic::new(Code::Deprecated, message)
        .label(span, format!("an older spelling of `{name}`"))
        .help(format!("write `{name}`"))
        .fix(format!("write `{name}`"), span, name)
}

pub(super) fn report_duplicate(what: &str, again: Span, first: Span) -> Diagnostic {
    Diagnostic::new(Code::Duplicate, format!("{what} is given twice"))
        .label(again, "again here")
        .label(first, "first here")
        .help("remove one of them")
}

pub(super) fn report_annotation(annotation: &Name) -> Diagnostic {
    Diagnostic::new(Code::WrongValue, format!("the annotation `({})` means nothing here", annotation.text))
        .label(annotation.span, "a KDL type annotation")
        .help("remove it")
}
