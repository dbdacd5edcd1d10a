//! `<<kind:name.field | filter>>`: the value, its fields, its filters, its surrounding lines.

use serde_json::Value;
use swarmc_plan::{Directive, DirectiveKind, Filter, ParamType};

use super::{RenderError, Values};

/// The text where a task has no output.
fn placeholder(task: &str) -> String {
    format!("(No output available from task \"{task}\")")
}

/// The text that `directive` renders to.
pub(super) fn text(directive: &Directive, values: &dyn Values) -> Result<String, RenderError> {
    let (text, missed) = told(directive, values)?;
    missed.into_iter().for_each(|what| values.missed(&what));
    Ok(text)
}

/// The text that `directive` renders to, and the missing value, where nothing replaces it.
pub(super) fn told(directive: &Directive, values: &dyn Values) -> Result<(String, Option<String>), RenderError> {
    let value = value(directive, values, has_default(directive))
        .map_err(|problem| RenderError::at(&directive.origin, problem))?;
    let mut text = value.as_ref().map(plain);
    let mut raw = false;
    for filter in &directive.filters {
        text = match (filter, text) {
            // A default is a text of the spec: it is not framed as the output of a step.
            (Filter::Default(default), None) => return Ok((default.clone(), None)),
            (Filter::Json, None) => Some("null".to_owned()),
            (_, None) => None,
            // The value's own type is still known as long as nothing has cut its text.
            (Filter::Json, Some(text)) => match &value {
                Some(value) if plain(value) == text => Some(value.to_string()),
                _ => Some(Value::String(text).to_string()),
            },
            (Filter::Default(_), text) => text,
            (Filter::Raw, text) => {
                raw = true;
                text
            }
            (Filter::Tail(count), Some(text)) => Some(tail(&text, *count).to_owned()),
            (Filter::Head(count), Some(text)) => Some(lines(&text, 1, *count).to_owned()),
            (Filter::Lines(first, last), Some(text)) => Some(lines(&text, *first, *last).to_owned()),
            (Filter::Chars(count), Some(text)) => Some(chars(&text, *count).to_owned()),
        };
    }
    let step = source(directive, values);
    let renders_nothing = [
        DirectiveKind::Previous,
        DirectiveKind::Exit,
        DirectiveKind::Error,
        DirectiveKind::Log,
        DirectiveKind::Stdin,
        DirectiveKind::Param,
    ];
    let missed = (text.is_none() && !renders_nothing.contains(&directive.kind))
        .then(|| format!("{}: `{}`", directive.origin, directive.name.as_deref().unwrap_or_default()));
    let text = match (text, step) {
        (Some(text), Some(step)) if directive.wrap && !raw => wrapped(step, &text),
        (Some(text), _) => text,
        (None, Some(step)) if matches!(directive.kind, DirectiveKind::Output | DirectiveKind::Input) => {
            placeholder(step)
        }
        (None, _) => String::new(),
    };
    Ok((text, missed))
}

/// The value of a directive without filters; null where there is none.
pub(super) fn typed(directive: &Directive, values: &dyn Values) -> Result<Value, RenderError> {
    let found = value(directive, values, true).map_err(|problem| RenderError::at(&directive.origin, problem))?;
    Ok(found.unwrap_or(Value::Null))
}

/// A value's text: strings as they are, everything else as JSON.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The output of a step as a value: an object where it computed fields, else its text.
pub(super) fn output(step: &str, text: String, values: &dyn Values) -> Value {
    match values.is_record(step) {
        true => serde_json::from_str(&text).unwrap_or(Value::String(text)),
        false => Value::String(text),
    }
}

/// A parameter as a value of its type.
pub(super) fn param(text: &str, kind: &ParamType) -> Value {
    let parsed = match kind {
        ParamType::Int => text.parse::<i64>().ok().map(Value::from),
        ParamType::Float => text.parse::<f64>().ok().map(Value::from),
        ParamType::Bool => text.parse::<bool>().ok().map(Value::from),
        ParamType::Json(_) => serde_json::from_str(text).ok(),
        ParamType::String | ParamType::File | ParamType::Dir => None,
    };
    parsed.unwrap_or_else(|| Value::String(text.to_owned()))
}

/// The value; where a field may be missing, none where it is.
fn value(directive: &Directive, values: &dyn Values, optional: bool) -> Result<Option<Value>, String> {
    let name = directive.name.as_deref().unwrap_or_default();
    let text = |text: &str| Some(Value::String(text.to_owned()));
    let found = match directive.kind {
        DirectiveKind::Output => values.output(name)?.map(|text| output(name, text, values)),
        DirectiveKind::Previous => values.previous(name)?.map(|text| output(name, text, values)),
        DirectiveKind::Status => values.status(name).and_then(|status| text(status.as_str())),
        DirectiveKind::Exit => values.exit(name).map(Value::from),
        DirectiveKind::Error => values.error(name)?,
        DirectiveKind::Log => values.log(name)?.map(Value::String),
        DirectiveKind::Input => match source(directive, values) {
            Some(step) => values.output(step)?.map(|text| output(step, text, values)),
            None => return Err(format!("this step has no input `{name}`")),
        },
        DirectiveKind::Param => values.param(name).map(|(text, kind)| param(text, kind)),
        DirectiveKind::Iteration => Some(Value::from(values.iteration())),
        DirectiveKind::File => Some(Value::String(values.file(name)?)),
        DirectiveKind::Run if name == "dir" => text(&values.run_folder().to_string_lossy()),
        DirectiveKind::Run => text(values.run()),
        DirectiveKind::Task => text(values.task()),
        DirectiveKind::Stdin => values.stdin()?.map(Value::String),
        DirectiveKind::Item => values.item()?.map(|(item, _)| item),
        DirectiveKind::Index => values.item()?.map(|(_, index)| Value::from(index)),
        DirectiveKind::Inbox => values.inbox()?.map(Value::String),
        DirectiveKind::Context => Some(Value::String(values.context(name)?)),
        DirectiveKind::Shared | DirectiveKind::Team | DirectiveKind::Plan => {
            return Err("this version has no value for it".to_owned());
        }
    };
    match (found, directive.fields.as_slice()) {
        (found, []) => Ok(found),
        (None, _) => Ok(None),
        (Some(value), fields) => field(value, fields, name, optional),
    }
}

fn field(value: Value, fields: &[String], name: &str, optional: bool) -> Result<Option<Value>, String> {
    let path = fields.join(".");
    let mut value = match value {
        Value::String(text) => serde_json::from_str(&text)
            .map_err(|_| format!("`{name}` has no field `{path}`: its text is not a JSON object"))?,
        value => value,
    };
    for field in fields {
        match value.get_mut(field.as_str()) {
            Some(inner) => value = inner.take(),
            // A field may be optional in the type of the output.
            None if optional => return Ok(None),
            None => return Err(format!("`{name}` has no field `{path}`")),
        }
    }
    Ok(Some(value))
}

fn has_default(directive: &Directive) -> bool {
    directive.filters.iter().any(|filter| matches!(filter, Filter::Default(_)))
}

/// The step whose output a directive reads.
fn source<'a>(directive: &'a Directive, values: &'a dyn Values) -> Option<&'a str> {
    let name = directive.name.as_deref()?;
    match directive.kind {
        DirectiveKind::Output | DirectiveKind::Previous => Some(name),
        DirectiveKind::Input => values.inputs().into_iter().find(|(port, _)| *port == name).map(|(_, step)| step),
        _ => None,
    }
}

fn wrapped(step: &str, text: &str) -> String {
    format!("--- Output from task \"{step}\" ---\n{text}\n--- End output from task \"{step}\" ---")
}

/// The last `count` lines. A final newline ends the last line rather than beginning another.
fn tail(text: &str, count: u64) -> &str {
    if count == 0 {
        return "";
    }
    let body = text.strip_suffix('\n').unwrap_or(text);
    let mut seen = 0;
    for position in memchr::memrchr_iter(b'\n', body.as_bytes()) {
        seen += 1;
        if seen == count {
            return &text[position + 1..];
        }
    }
    text
}

/// The lines from `first` to `last`, from 1, both included, without the newline of the last one.
fn lines(text: &str, first: u64, last: u64) -> &str {
    let first = first.max(1);
    if last < first {
        return "";
    }
    let mut start = if first == 1 { Some(0) } else { None };
    for (line, position) in (1_u64..).zip(memchr::memchr_iter(b'\n', text.as_bytes())) {
        if line == last {
            return start.map_or("", |start| &text[start..position]);
        }
        if line + 1 == first {
            start = Some(position + 1);
        }
    }
    start.map_or("", |start| &text[start..])
}

fn chars(text: &str, count: u64) -> &str {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    text.char_indices().nth(count).map_or(text, |(end, _)| &text[..end])
}
