//! Lowers the body of a task: each task has exactly one.

use std::collections::HashMap;

use swarmc_plan::StepKind;

use super::datum::Datum;
use super::element::Element;
use super::types::report_second_field;
use super::{datum_name, lower_command, lower_source, value};
use crate::ast::{self, Spanned};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::suggest::format_list;
use crate::syntax::Text;

/// The one body of a task.
pub(super) fn lower_body(element: &Element, diagnostics: &mut Diagnostics) -> Option<ast::Body> {
    let bodies: Vec<&Element> = element.children.iter().filter(|child| is_body(child)).collect();
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
        if element.argument(0).is_some() && !diagnostics.has_report_at(element.span) {
            let diagnostic = Diagnostic::new(Code::WrongValue, format!("task `{task}` does nothing"))
                .label(
                    element.name.span,
                    format!("{} is missing", format_list(StepKind::in_tasks().map(StepKind::name), "or")),
                )
                .help("write `prompt \"…\"` for an agent, `run PROGRAM ARG…` for a command, or `value \"…\"`");
            diagnostics.push(diagnostic);
        }
        return None;
    };
    let given = ["agent", "model"].into_iter().find_map(|name| Some((name, element.property(name)?)));
    if let Some((property, value)) = given
        && StepKind::in_task(body.schema.name) != Some(StepKind::Prompt)
    {
        let article = if property == "agent" { "an" } else { "a" };
        let message = format!("task `{task}` has {article} {property} and no prompt for it");
        let diagnostic = Diagnostic::new(Code::MisplacedNode, message)
            .label(value.span, format!("nothing for this {property} to do"))
            .label(body.name.span, format!("a `{}` needs no {property}", body.schema.name))
            .help(format!("remove `{property}=`"));
        diagnostics.push(diagnostic);
    }
    match StepKind::in_task(body.schema.name)? {
        StepKind::Prompt => Some(ast::Body::Prompt(lower_source(body, 0, diagnostics)?)),
        StepKind::Run => lower_run(body, diagnostics),
        StepKind::Call => Some(ast::Body::Call {
            pipeline: datum_name(body.argument(0)?),
            args: body
                .properties
                .iter()
                .map(|(key, datum)| (Spanned { value: key.text.to_string(), span: key.span }, datum.text.clone()))
                .collect(),
        }),
        StepKind::Swarm => Some(ast::Body::Swarm {
            swarm: datum_name(body.argument(0)?),
            goal: body.property("goal").map(|goal| goal.text.clone()),
        }),
        StepKind::Value => lower_value(body, diagnostics),
        // They are nodes of a pipeline, and no bodies of a task.
        StepKind::Gate | StepKind::Loop | StepKind::Stop => None,
    }
}

/// Whether a child of a task says what it does.
fn is_body(child: &Element) -> bool {
    StepKind::in_task(child.schema.name).is_some()
}

/// A command, or a script file.
pub(super) fn lower_run(element: &Element, diagnostics: &mut Diagnostics) -> Option<ast::Body> {
    match element.property("file") {
        Some(file) if element.arguments.is_empty() => Some(ast::Body::Script(file.text.clone())),
        Some(file) => {
            let diagnostic = Diagnostic::new(Code::WrongValue, "`run` takes a command or `file=`, not both")
                .label(file.span, "one too many")
                .help("remove one of them");
            diagnostics.push(diagnostic);
            None
        }
        None => lower_command(element, diagnostics).map(ast::Body::Run),
    }
}

/// `value "TEXT"` or `value { FIELD "TEXT" }`.
fn lower_value(body: &Element, diagnostics: &mut Diagnostics) -> Option<ast::Body> {
    let fields: Vec<&Element> = body.children.iter().filter(|field| field.schema.name == "FIELD").collect();
    if let Some(text) = body.argument(0) {
        if let Some(field) = fields.first() {
            let diagnostic = Diagnostic::new(Code::WrongValue, "`value` takes a text or fields, not both")
                .label(field.name.span, "a field")
                .label(text.span, "the text is here already")
                .help("remove one of them");
            diagnostics.push(diagnostic);
        }
        return Some(ast::Body::Value(text.text.clone()));
    }
    let mut record: Vec<(ast::Name, Text)> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    for field in fields {
        let written = &*field.name.text;
        if !value::is_field(written) {
            let diagnostic = Diagnostic::new(Code::WrongValue, format!("`{written}` cannot be the name of a field"))
                .label(field.name.span, "not a field's name")
                .help("a field is a letter or `_`, then letters, digits, `_` and `-`");
            diagnostics.push(diagnostic);
            continue;
        }
        // As an expression calls it.
        let place = known.entry(written.replace('-', "_")).or_insert(record.len());
        if let Some((first, _)) = record.get(*place) {
            let first = (first.value.as_str(), first.span);
            diagnostics.push(report_second_field("given", (written, field.name.span), first));
            continue;
        }
        let text = field.argument(0)?.text.clone();
        record.push((Spanned { value: written.to_owned(), span: field.name.span }, text));
    }
    if record.is_empty() {
        if !diagnostics.has_report_at(body.span) {
            let diagnostic = Diagnostic::new(Code::WrongValue, "`value` needs a text or fields")
                .label(body.name.span, "nothing to compute")
                .help("write `value \"…\"` or `value { FIELD \"…\" }`");
            diagnostics.push(diagnostic);
        }
        return None;
    }
    Some(ast::Body::Fields(record))
}

/// Checks that the default of a record is a record with every field, so that each field can be read.
pub(super) fn record_default(fields: &[(ast::Name, Text)], default: &Datum, diagnostics: &mut Diagnostics) {
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
