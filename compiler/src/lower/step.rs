//! Steps: what every one of them has, and what only tasks have.

use std::sync::Arc;

use swarmc_plan as plan;

use super::datum::{Datum, Form};
use super::element::Element;
use super::policy::lower_budget;
use super::type_text::type_expr;
use super::{
    Section, argument_name, argument_names, body, child_argument, clamp_count, control, describe_misfit,
    description_text, files, literal_text, lower_command,
};
use super::{argument_texts, datum_name, lower_source, lower_variables, types};
use crate::ast::{self, Spanned};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::schema;
use crate::source::Span;
use crate::template;

/// Whether it is a step at all.
pub(super) fn is_step(element: &Element) -> bool {
    plan::StepKind::is_step_node(element.schema.name)
}

/// A step of a pipeline or a loop, or a task of the top level; `text` is that of the file. Nothing for another node.
pub(super) fn lower_step(element: &Element, text: &str, diagnostics: &mut Diagnostics) -> Option<ast::Step> {
    let body = match element.schema.name {
        "task" => body::lower_body(element, diagnostics),
        "gate" => Some(ast::Body::Gate(control::lower_gate(element, text, diagnostics))),
        "loop" => Some(ast::Body::Loop(control::lower_loop(element, text, diagnostics))),
        "stop" => Some(control::lower_stop(element)),
        _ => return None,
    };
    // What only tasks have is left out everywhere else.
    let task = match element.schema.name {
        "task" => Section::of(element),
        _ => Section::absent(&schema::TASK),
    };
    let timeout = element.child("timeout");
    timeout.into_iter().for_each(|timeout| time_limit(timeout, diagnostics));
    if !matches!(body, Some(ast::Body::Prompt(_)) | None) {
        without_prompt(element, diagnostics);
    }
    if let Some(ast::Body::Call { pipeline, .. }) = &body {
        without_attempt(element, &pipeline.value, diagnostics);
    }
    if let Some(pool) = element.property("pool") {
        without_process(element, pool, body.as_ref(), diagnostics);
    }
    let output = lower_output(element, task, body.as_ref(), text, diagnostics);
    let mut of = |child: &str| element.child(child).and_then(|node| lower_source(node, 0, diagnostics));
    let (prefix, suffix) = (of("prefix"), of("suffix"));
    let join = Section::of(element).child("join");
    let millis = |datum: &Datum| u64::try_from(datum.number).unwrap_or(u64::MAX);
    let retry = task.child("retry");
    Some(ast::Step {
        name: argument_name(element, 0)?,
        description: description_text(element),
        needs: element.children("depends-on").flat_map(lower_dependencies).collect(),
        join: Spanned {
            value: match join.word().as_str() {
                "any" => plan::Join::Any,
                "none-failed" => plan::Join::NoneFailed,
                _ => plan::Join::All,
            },
            span: join.element().map_or(element.name.span, |join| join.span),
        },
        when: child_argument(element, "when").map(Arc::new),
        on_failure: control::on_failure(element, diagnostics),
        body,
        agent: element.property("agent").map(datum_name),
        model: element.property("model").map(datum_name),
        prefix,
        suffix,
        context: lower_context(element),
        output,
        inputs: element
            .children("input")
            .filter_map(|input| {
                Some(ast::Input { name: argument_name(input, 0)?, from: datum_name(input.property("from")?) })
            })
            .collect(),
        session: element.child("session").and_then(|session| argument_name(session, 0)),
        for_each: element.child("for-each").and_then(|node| lower_for_each(node, diagnostics)),
        retry: plan::Retry {
            times: retry.element().and_then(|retry| retry.argument(0)).map_or(0, |times| clamp_count(times.number)),
            backoff_ms: retry.number_of("backoff"),
            max_backoff_ms: retry.number_of("max"),
            fresh: retry.element().and_then(|retry| retry.property("fresh")).is_some_and(|on| on.number == 1),
        },
        timeout_ms: timeout.and_then(|timeout| timeout.argument(0)).map(millis),
        idle_ms: timeout.and_then(|timeout| timeout.property("idle")).map(millis),
        grace_ms: task.child("grace").number(),
        survives: element.child("survive").map(|node| node.argument(0).is_none_or(|on| on.number == 1)),
        pool: element.property("pool").map(|pool| pool.text.as_str().to_owned()),
        stall: task.child("stall").count(),
        stalls: element.child("stall").is_some(),
        checks: element.children("check").filter_map(|check| lower_command(check, diagnostics)).collect(),
        concurrency: lower_concurrency(element),
        reads: element.children("reads").flat_map(argument_texts).collect(),
        writes: element.children("writes").flat_map(argument_texts).collect(),
        reuse: element.child("reuse").and_then(|node| node.argument(0)).map(|reuse| reuse.number != 0),
        worktree: lower_worktree(element),
        files: element.child("files").map(|node| Box::new(files::lower_files(node, diagnostics))),
        env: lower_variables(element, diagnostics),
        stdin: child_argument(element, "stdin"),
        budget: element.child("budget").map(|node| lower_budget(node, diagnostics)),
    })
}

pub(super) fn lower_concurrency(element: &Element) -> Option<u32> {
    Some(clamp_count(element.child("concurrency")?.argument(0)?.number))
}

pub(super) fn lower_worktree(element: &Element) -> Option<ast::Worktree> {
    let node = element.child("worktree")?;
    Some(ast::Worktree { name: argument_name(node, 0), span: node.span })
}

fn lower_dependencies(node: &Element) -> Vec<ast::Dependency> {
    let when = match Section::of(node).word_of("when").as_str() {
        "failure" => plan::When::Failure,
        "any" => plan::When::Any,
        "always" => plan::When::Always,
        _ => plan::When::Success,
    };
    argument_names(node).into_iter().map(|step| ast::Dependency { step, when }).collect()
}

/// The packs of `context` nodes, and of the prompt.
fn lower_context(element: &Element) -> Vec<ast::Name> {
    let of_prompt = element.child("prompt").and_then(|prompt| prompt.property("context")).map(datum_name);
    element.children("context").flat_map(argument_names).chain(of_prompt).collect()
}

/// Whether a text is the path of a JSON file rather than an expression that reads a field `json`.
fn names_file(text: &str) -> bool {
    let first = text.split(['.', '/']).next().unwrap_or_default();
    text.ends_with(".json") && template::list_roots().all(|root| root != first)
}

fn lower_for_each(node: &Element, diagnostics: &mut Diagnostics) -> Option<ast::ForEach> {
    let list = match (node.argument(0), node.property("file")) {
        (Some(list), None) if names_file(list.text.as_str()) => {
            let path = list.text.as_str();
            diagnostics.push(
                Diagnostic::new(Code::WrongValue, "`for-each` takes an expression, and this is the path of a file")
                    .label(list.span, "a path")
                    .help(format!("write `for-each file=\"{path}\"`"))
                    .fix("write `file=`", Span { end: list.span.start, ..list.span }, "file="),
            );
            ast::EachList::File(list.text.clone())
        }
        (Some(list), None) => ast::EachList::Expression(Arc::new(list.text.clone())),
        (None, Some(file)) => ast::EachList::File(file.text.clone()),
        (list, file) => {
            // What does not fit has been reported.
            if !diagnostics.has_report_at(node.span) {
                let (message, place) = match (list, file) {
                    (Some(_), Some(file)) => ("`for-each` takes a list or a file, not both", file.span),
                    _ => ("`for-each` has no list", node.name.span),
                };
                diagnostics.push(
                    Diagnostic::new(Code::WrongValue, message)
                        .label(place, if file.is_some() { "one too many" } else { "no list" })
                        .help("write `for-each \"output.STEP\"`, or `for-each file=\"LIST.json\"`"),
                );
            }
            return None;
        }
    };
    Some(ast::ForEach {
        list,
        parallel: node.property("parallel").map(|datum| Spanned { value: clamp_count(datum.number), span: datum.span }),
        join: match Section::of(node).word_of("join").as_str() {
            "any" => plan::EachJoin::Any,
            "settled" => plan::EachJoin::Settled,
            _ => plan::EachJoin::All,
        },
        with_item: Section::of(node).is_set("with-item"),
        span: node.span,
    })
}

/// Reports what belongs to a prompt in a task that has none.
fn without_prompt(element: &Element, diagnostics: &mut Diagnostics) {
    for given in ["prefix", "suffix", "context", "session"].into_iter().filter_map(|node| element.child(node)) {
        let diagnostic = Diagnostic::new(Code::MisplacedNode, format!("`{}` belongs to a `prompt`", given.schema.name))
            .label(given.name.span, "this task has no prompt")
            .help("remove it, or give the task a `prompt`");
        diagnostics.push(diagnostic);
    }
}

/// Reports what belongs to an attempt in a task that calls `pipeline`: its steps have attempts, and it has none.
fn without_attempt(element: &Element, pipeline: &str, diagnostics: &mut Diagnostics) {
    let mut report = |name: &str, span: Span, help: String| {
        let message = format!("a task that calls a pipeline takes no `{name}`");
        let diagnostic =
            Diagnostic::new(Code::MisplacedNode, message).label(span, "belongs to the steps of that").help(help);
        diagnostics.push(diagnostic);
    };
    for check in element.children("check") {
        let help = format!("write it in a task of `{pipeline}`, or in one behind the call: `task … {{ run … }}`");
        report("check", check.name.span, help);
    }
    if let Some(timeout) = element.child("timeout") {
        let help = format!("write it in the tasks of `{pipeline}`, or as `budget time=\"…\"` in that pipeline");
        report("timeout", timeout.name.span, help);
    }
    let typed = element.child("output").filter(|output| output.argument(0).is_some() || !output.children.is_empty());
    if let Some(output) = typed {
        let help = format!("give the type to the task whose output is the `result` of `{pipeline}`");
        report("output TYPE", output.name.span, help);
    }
}

/// Reports a pool of a task that starts no process of its own.
fn without_process(element: &Element, pool: &Datum, body: Option<&ast::Body>, diagnostics: &mut Diagnostics) {
    if body.is_none_or(|body| body.kind().takes_slot().is_some()) || element.child("check").is_some() {
        return;
    }
    let help = match body {
        Some(ast::Body::Call { .. }) => "name the pool in the pipeline that it calls: `pool NAME`",
        _ => "remove it: the runner computes the value",
    };
    let diagnostic = Diagnostic::new(Code::MisplacedNode, "`pool=` belongs to a task with a process or an agent")
        .label(pool.span, "this task starts none")
        .help(help);
    diagnostics.push(diagnostic);
}

/// `output TYPE max= default= repair=`, or with fields in its block.
fn lower_output(
    element: &Element,
    task: Section<'_>,
    body: Option<&ast::Body>,
    text: &str,
    diagnostics: &mut Diagnostics,
) -> ast::Output {
    let section = task.child("output");
    let node = element.child("output");
    let written = node.and_then(|node| node.argument(0));
    let words: Vec<&Datum> =
        node.iter().flat_map(|node| &node.arguments).filter(|(at, _)| *at > 0).map(|(_, datum)| datum).collect();
    let record = node.and_then(|node| types::lower_record(node, text, diagnostics));
    let kind = match (written, record) {
        (Some(written), Some(fields)) => {
            let diagnostic = Diagnostic::new(Code::WrongValue, "`output` takes a type or fields, not both")
                .label(written.span, "one too many")
                .label(fields.span, "the fields")
                .help("remove one of them");
            diagnostics.push(diagnostic);
            Some(fields)
        }
        (Some(written), None) => Some(type_expr(written, &words, false, diagnostics)),
        (None, record) => record,
    };
    let default = node.and_then(|node| node.property("default"));
    let stands_for_list = element.child("for-each").is_some();
    if let Some(default) = default {
        super::report_literal_directive(default, diagnostics);
        match (&kind, body) {
            // It stands for the outputs of all items.
            _ if stands_for_list => {}
            (Some(kind), _) => typed_default(kind, default, diagnostics),
            (None, Some(ast::Body::Fields(fields))) => body::record_default(fields, default, diagnostics),
            (None, _) if default.form != Form::Text => {
                let quoted = format!("\"{}\"", default.text.as_str());
                let diagnostic = Diagnostic::new(Code::WrongValue, "the default of a text is a text")
                    .label(default.span, "not a text")
                    .help(format!("write `{quoted}`"))
                    .unsafe_fix("put it in quotes", default.span, quoted);
                diagnostics.push(diagnostic);
            }
            (None, _) => {}
        }
    }
    let plain = |default: &Datum| match &kind {
        Some(kind) if !stands_for_list => literal_text(kind, default),
        _ => default.text.as_str().to_owned(),
    };
    let default = default.map(|default| Spanned { value: plain(default), span: default.span });
    ast::Output {
        max: section.number_of("max"),
        limited: node.is_some_and(|node| node.property("max").is_some()),
        default,
        repair: section.count_of("repair"),
        span: node.map(|node| node.span),
        kind,
    }
}

fn typed_default(kind: &ast::TypeExpr, default: &Datum, diagnostics: &mut Diagnostics) {
    if let Some(expected) = describe_misfit(kind, &literal_text(kind, default)) {
        let diagnostic = Diagnostic::new(Code::WrongValue, format!("the default is not {expected}"))
            .label(default.span, format!("not {expected}"))
            .label(kind.span, "the type")
            .help("mend the default, or the type");
        diagnostics.push(diagnostic);
    }
}

/// Reports a `timeout` without a time, or one that leaves none.
fn time_limit(timeout: &Element, diagnostics: &mut Diagnostics) {
    let times = [timeout.argument(0), timeout.property("idle")];
    if times.iter().all(Option::is_none) && !diagnostics.has_report_at(timeout.span) {
        let diagnostic = Diagnostic::new(Code::WrongValue, "`timeout` has no time")
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
