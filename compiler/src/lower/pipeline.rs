//! Pipelines and their steps.

use swarmc_plan as plan;

use super::element::{Datum, Element};
use super::{absent, command, count, default, description, name, param, source, spanned, text, texts, variables, word};
use crate::ast::{self, Spanned};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::lower::value;
use crate::schema::{self, Node};
use crate::syntax::Text;

pub(super) fn pipeline(element: Element, diagnostics: &mut Diagnostics) -> Option<ast::Pipeline> {
    let name = name(&element, 0)?;
    let iterations = element.child("iterations");
    let parallelism = element.child("parallelism").and_then(|node| node.argument(0)).map(|datum| count(datum.number));
    let of_iterations = |property: &str| match iterations {
        Some(iterations) => text(iterations, property),
        None => default(schema::PIPELINE.child("iterations").expect("the table has it"), property).to_owned(),
    };
    let concurrency = concurrency(&element);
    let steps = element.children.iter().filter_map(|child| step(child, diagnostics)).collect();
    let is_step = |child: &Element| matches!(child.schema.name, "task" | "stop");
    // A step that could not be read has been reported.
    if !element.children.iter().any(is_step) && !diagnostics.covers(element.span) {
        let diagnostic = Diagnostic::new(Code::WrongValue, format!("pipeline `{}` has no task", name.value))
            .label(name.span, "nothing to run")
            .help("write `task NAME { … }` in its block, or remove it");
        diagnostics.push(diagnostic);
    }
    Some(ast::Pipeline {
        name,
        description: description(&element),
        params: element.children("param").filter_map(|child| param(child, diagnostics)).collect(),
        iterations: iterations
            .and_then(|node| node.argument(0))
            .map_or_else(|| number(&schema::PIPELINE, "iterations"), |datum| count(datum.number)),
        on_failure: match of_iterations("on-failure").as_str() {
            "continue" => plan::RoundFailure::Continue,
            _ => plan::RoundFailure::Stop,
        },
        exhausted: match of_iterations("exhausted").as_str() {
            "success" => plan::Exhausted::Success,
            _ => plan::Exhausted::Fail,
        },
        until: element.children("until").filter_map(|until| Some(until.argument(0)?.text.clone())).collect(),
        parallelism: parallelism.unwrap_or_else(|| number(&schema::PIPELINE, "parallelism")),
        concurrency,
        result: element.child("result").map(names).unwrap_or_default(),
        fail_fast: element.child("fail-fast").is_some_and(|node| node.argument(0).is_none_or(|on| on.number == 1)),
        env: variables(&element, diagnostics),
        working_dir: argument(&element, "working-dir"),
        steps,
    })
}

fn step(element: &Element, diagnostics: &mut Diagnostics) -> Option<ast::Step> {
    let body = match element.schema.name {
        "task" => body(element, diagnostics),
        "stop" => Some(ast::Body::Stop {
            status: match text(element, "status").as_str() {
                "failure" => plan::StopStatus::Failure,
                _ => plan::StopStatus::Success,
            },
            message: argument(element, "message"),
        }),
        _ => return None,
    };
    let output = element.child("output");
    let timeout = element.child("timeout");
    timeout.into_iter().for_each(|timeout| time_limit(timeout, diagnostics));
    if !matches!(body, Some(ast::Body::Prompt(_)) | None) {
        ["prefix", "suffix"].into_iter().filter_map(|node| element.child(node)).for_each(|given| {
            let diagnostic =
                Diagnostic::new(Code::MisplacedNode, format!("`{}` belongs to a `prompt`", given.schema.name))
                    .label(given.name.span, "this task has no prompt")
                    .help("remove it, or give the task a `prompt`");
            diagnostics.push(diagnostic);
        });
    }
    let when = |child: &Element| plan_when(&text(child, "when"));
    let mut of = |child: &str| element.child(child).and_then(|node| source(node, 0, diagnostics));
    let (prefix, suffix) = (of("prefix"), of("suffix"));
    if let (Some(ast::Body::Fields(fields)), Some(default)) =
        (&body, output.and_then(|output| output.property("default")))
    {
        record_default(fields, default, diagnostics);
    }
    Some(ast::Step {
        name: name(element, 0)?,
        description: description(element),
        needs: element
            .children("depends-on")
            .flat_map(|child| names(child).into_iter().map(move |step| ast::Dependency { step, when: when(child) }))
            .collect(),
        join: Spanned {
            value: match word(element, "join").as_str() {
                "any" => plan::Join::Any,
                "none-failed" => plan::Join::NoneFailed,
                _ => plan::Join::All,
            },
            span: element.child("join").map_or(element.name.span, |join| join.span),
        },
        when: argument(element, "when"),
        on_failure: match element.child("on-failure").map(|_| word(element, "on-failure")).as_deref() {
            Some("skip") => plan::OnFailure::Skip,
            _ => plan::OnFailure::Fail,
        },
        body,
        agent: element.property("agent").map(spanned),
        prefix,
        suffix,
        output_max: output.and_then(|output| output.property("max")).map_or_else(
            || {
                let output = schema::TASK.child("output").expect("the table has it");
                value::size(default(output, "max")).expect("the table's default is a size")
            },
            |max| bytes(max.number),
        ),
        output_default: output.and_then(|output| output.property("default")).map(|text| text.text.as_str().to_owned()),
        inputs: element
            .children("input")
            .filter_map(|input| Some(ast::Input { name: name(input, 0)?, from: spanned(input.property("from")?) }))
            .collect(),
        retry: retry(element.child("retry")),
        timeout_ms: timeout.and_then(|timeout| timeout.argument(0)).map(|time| bytes(time.number)),
        idle_ms: timeout.and_then(|timeout| timeout.property("idle")).map(|time| bytes(time.number)),
        grace_ms: element.child("grace").and_then(|grace| grace.argument(0)).map_or_else(
            || value::duration(absent(&schema::TASK, "grace")).expect("the table's default is a duration"),
            |time| bytes(time.number),
        ),
        checks: element.children("check").filter_map(|check| command(check, diagnostics)).collect(),
        concurrency: concurrency(element),
        reads: element.children("reads").flat_map(texts).collect(),
        writes: element.children("writes").flat_map(texts).collect(),
        env: variables(element, diagnostics),
        stdin: argument(element, "stdin"),
    })
}

/// Reports a `timeout` without a time, or one that leaves none.
fn time_limit(timeout: &Element, diagnostics: &mut Diagnostics) {
    let times = [timeout.argument(0), timeout.property("idle")];
    if times.iter().all(Option::is_none) && !diagnostics.covers(timeout.span) {
        let diagnostic = Diagnostic::new(Code::WrongValue, "`timeout` says no time")
            .label(timeout.name.span, "nothing to wait for")
            .help("write `timeout \"20m\"`, `timeout idle=\"5m\"` or both");
        diagnostics.push(diagnostic);
    }
    for time in times.into_iter().flatten().filter(|time| time.number == 0) {
        let diagnostic = Diagnostic::new(Code::WrongValue, "a time limit of zero ends every attempt at once")
            .label(time.span, "nothing can be done in this time")
            .help("write how long it may take, as in `\"20m\"`; without `timeout` there is no limit");
        diagnostics.push(diagnostic);
    }
}

/// The one body of a task.
fn body(element: &Element, diagnostics: &mut Diagnostics) -> Option<ast::Body> {
    let bodies: Vec<&Element> =
        element.children.iter().filter(|child| matches!(child.schema.name, "prompt" | "run" | "value")).collect();
    let task = element.argument(0).map_or("task", |name| name.text.as_str());
    if let [first, second, ..] = bodies.as_slice() {
        let (one, other) = (first.schema.name, second.schema.name);
        let diagnostic = Diagnostic::new(Code::WrongValue, format!("task `{task}` has a `{one}` and a `{other}`"))
            .label(second.name.span, "one body too many")
            .label(first.name.span, "first here")
            .help("make it two tasks: the second reads the first by `<<output:…>>`");
        diagnostics.push(diagnostic);
    }
    let Some(body) = bodies.first() else {
        // A body that could not be read has been reported.
        if element.argument(0).is_some() && !diagnostics.covers(element.span) {
            let diagnostic = Diagnostic::new(Code::WrongValue, format!("task `{task}` does nothing"))
                .label(element.name.span, "`prompt`, `run` or `value` is missing")
                .help("write `prompt \"…\"` for an agent, `run PROGRAM ARG…` for a command, or `value \"…\"`");
            diagnostics.push(diagnostic);
        }
        return None;
    };
    if let Some(agent) = element.property("agent")
        && body.schema.name != "prompt"
    {
        let diagnostic =
            Diagnostic::new(Code::MisplacedNode, format!("task `{task}` has an agent and no prompt for it"))
                .label(agent.span, "nothing for this agent to do")
                .label(body.name.span, format!("a `{}` needs no agent", body.schema.name))
                .help("remove `agent=`");
        diagnostics.push(diagnostic);
    }
    match body.schema.name {
        "prompt" => Some(ast::Body::Prompt(source(body, 0, diagnostics)?)),
        "run" => match body.property("file") {
            Some(file) if body.arguments.is_empty() => Some(ast::Body::Script(file.text.clone())),
            Some(file) => {
                let diagnostic =
                    Diagnostic::new(Code::WrongValue, "`run` takes a command or `file=`, and only one of them")
                        .label(file.span, "one too many")
                        .help("remove one of them");
                diagnostics.push(diagnostic);
                None
            }
            None => command(body, diagnostics).map(ast::Body::Run),
        },
        _ => computed(body, diagnostics),
    }
}

/// `value "TEXT"` or `value { FIELD "TEXT" }`.
fn computed(body: &Element, diagnostics: &mut Diagnostics) -> Option<ast::Body> {
    let fields: Vec<&Element> = body.children.iter().filter(|field| field.schema.name == "FIELD").collect();
    if let Some(text) = body.argument(0) {
        if let Some(field) = fields.first() {
            let diagnostic = Diagnostic::new(Code::WrongValue, "`value` takes a text or fields, and only one of them")
                .label(field.name.span, "a field")
                .label(text.span, "the text is here already")
                .help("remove one of them");
            diagnostics.push(diagnostic);
        }
        return Some(ast::Body::Value(text.text.clone()));
    }
    let mut record: Vec<(ast::Name, Text)> = Vec::new();
    for field in fields {
        let written = &*field.name.text;
        if !is_field(written) {
            let diagnostic = Diagnostic::new(Code::WrongValue, format!("`{written}` cannot be the name of a field"))
                .label(field.name.span, "not a field's name")
                .help("a field is a letter or `_`, then letters, digits and `_`");
            diagnostics.push(diagnostic);
            continue;
        }
        if let Some((first, _)) = record.iter().find(|(name, _)| name.value == written) {
            let diagnostic = Diagnostic::new(Code::Duplicate, format!("field `{written}` is given twice"))
                .label(field.name.span, "again here")
                .label(first.span, "first here")
                .help("remove one of them");
            diagnostics.push(diagnostic);
            continue;
        }
        let text = field.argument(0)?.text.clone();
        record.push((Spanned { value: written.to_owned(), span: field.name.span }, text));
    }
    if record.is_empty() {
        if !diagnostics.covers(body.span) {
            let diagnostic = Diagnostic::new(Code::WrongValue, "`value` needs a text or fields")
                .label(body.name.span, "nothing to compute")
                .help("write `value \"…\"` or `value { FIELD \"…\" }`");
            diagnostics.push(diagnostic);
        }
        return None;
    }
    Some(ast::Body::Fields(record))
}

/// The default of a record is one: whoever reads a field of it finds it there.
fn record_default(fields: &[(ast::Name, Text)], default: &Datum, diagnostics: &mut Diagnostics) {
    let record = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(default.text.as_str());
    let lacking = |record: &serde_json::Map<String, serde_json::Value>| {
        fields.iter().find(|(name, _)| !record.contains_key(&name.value)).map(|(name, _)| name)
    };
    let diagnostic = match &record {
        Err(_) => Diagnostic::new(Code::WrongValue, "the default of a record is a JSON object")
            .label(default.span, "not a JSON object"),
        Ok(record) => match lacking(record) {
            None => return,
            Some(name) => Diagnostic::new(Code::WrongValue, format!("the default lacks the field `{}`", name.value))
                .label(default.span, format!("no `{}` in it", name.value))
                .label(name.span, "declared here"),
        },
    };
    let example: Vec<String> = fields.iter().map(|(name, _)| format!("\"{}\": \"\"", name.value)).collect();
    diagnostics.push(diagnostic.help(format!("write `default=#\"{{{}}}\"#`", example.join(", "))));
}

fn is_field(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

fn retry(element: Option<&Element>) -> plan::Retry {
    let schema: &Node = schema::TASK.child("retry").expect("the table has it");
    let millis = |property: &str| {
        element.and_then(|retry| retry.property(property)).map_or_else(
            || value::duration(default(schema, property)).expect("the table's default is a duration"),
            |datum| bytes(datum.number),
        )
    };
    plan::Retry {
        times: element.and_then(|retry| retry.argument(0)).map_or(0, |times| count(times.number)),
        backoff_ms: millis("backoff"),
        max_backoff_ms: millis("max"),
    }
}

fn plan_when(word: &str) -> plan::When {
    match word {
        "failure" => plan::When::Failure,
        "any" => plan::When::Any,
        "always" => plan::When::Always,
        _ => plan::When::Success,
    }
}

fn names(element: &Element) -> Vec<ast::Name> {
    element.arguments.iter().map(|(_, datum)| spanned(datum)).collect()
}

fn argument(element: &Element, child: &str) -> Option<Text> {
    Some(element.child(child)?.argument(0)?.text.clone())
}

fn concurrency(element: &Element) -> Option<u32> {
    Some(count(element.child("concurrency")?.argument(0)?.number))
}

fn number(parent: &Node, child: &str) -> u32 {
    absent(parent, child).parse().expect("the table's default is a number")
}

fn bytes(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
