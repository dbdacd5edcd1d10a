//! Says what is wrong with a value, in sentences: where it is, what is there, and what should be.

use std::collections::BTreeSet;

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{JsonType, ValidationError, Validator};
use serde_json::Value;

use super::{Misfit, TOLD};

/// The characters of one sentence at most, and of a value quoted in it.
const SENTENCE: usize = 300;
const QUOTED: usize = 60;

/// The options of an enum that are listed.
const OPTIONS: usize = 20;

/// What is wrong with `value`; only the first thing where it is `large`.
pub(super) fn find_violations(validator: &Validator, value: &Value, large: bool) -> Misfit {
    let mut misfit = Misfit { violations: Vec::new(), other_kind: false };
    let mut tell = |error: &ValidationError<'_>| {
        misfit.other_kind |= is_other_kind(error);
        let sentence = truncate_text(&describe_violation(error), SENTENCE);
        if !misfit.violations.contains(&sentence) {
            misfit.violations.push(sentence);
        }
    };
    if large {
        validator.validate(value).err().iter().for_each(tell);
        return misfit;
    }
    let mut errors = validator.iter_errors(value);
    errors.by_ref().take(TOLD).for_each(|error| tell(&error));
    if errors.next().is_some() {
        misfit.violations.push("there is more that does not fit".to_owned());
    }
    misfit
}

/// `value` without the fields that are null, should not be, and may be left out.
pub(super) fn without_nulls(validator: &Validator, mut value: Value) -> Value {
    let errors = validator.iter_errors(&value).filter(|error| error.instance().is_null());
    let paths: BTreeSet<String> = errors.map(|error| error.instance_path().as_str().to_owned()).collect();
    if paths.is_empty() {
        return value;
    }
    let mut removed = BTreeSet::new();
    for path in &paths {
        if let Some((parent, name)) = split_path(path)
            && let Some(Value::Object(fields)) = value.pointer_mut(parent)
            && fields.remove(&name).is_some()
        {
            removed.insert((parent.to_owned(), name));
        }
    }
    let missing = validator.iter_errors(&value).filter_map(|error| match error.kind() {
        ValidationErrorKind::Required { property: Value::String(name) } => {
            Some((error.instance_path().as_str().to_owned(), name.clone()))
        }
        _ => None,
    });
    let needed: Vec<(String, String)> = missing.filter(|missing| removed.contains(missing)).collect();
    for (parent, name) in needed {
        if let Some(Value::Object(fields)) = value.pointer_mut(&parent) {
            fields.insert(name, Value::Null);
        }
    }
    value
}

/// The path of what holds the last part of `path`, and the name of that part.
fn split_path(path: &str) -> Option<(&str, String)> {
    let (parent, name) = path.rsplit_once('/')?;
    Some((parent, name.replace("~1", "/").replace("~0", "~")))
}

/// `record` with what its texts say in place of those texts that do not fit.
pub(super) fn parse_text_fields(validator: &Validator, mut record: Value) -> Value {
    let errors = validator.iter_errors(&record).filter(|error| error.instance().is_string());
    let paths: Vec<String> = errors.map(|error| error.instance_path().as_str().to_owned()).collect();
    for path in &paths {
        if let Some(field) = record.pointer_mut(path)
            && let Some(value) = field.as_str().and_then(|text| serde_json::from_str(text).ok())
        {
            *field = value;
        }
    }
    record
}

/// Whether the value as a whole is of another kind than the type asks for.
fn is_other_kind(error: &ValidationError<'_>) -> bool {
    if !error.instance_path().as_str().is_empty() {
        return false;
    }
    match error.kind() {
        ValidationErrorKind::Type { .. } => true,
        // A word outside the enum is a wrong word; a list where an enum of words belongs is something else.
        ValidationErrorKind::Enum { options } => {
            let kinds = options.as_array().into_iter().flatten().map(JsonType::from);
            !kinds.into_iter().any(|kind| kind == JsonType::from(error.instance().as_ref()))
        }
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            context.iter().all(|branch| branch.iter().any(is_other_kind))
        }
        _ => false,
    }
}

fn describe_violation(error: &ValidationError<'_>) -> String {
    if let ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } = error.kind()
        && let Some(meant) = pick_alternative(error, context)
    {
        return describe_violation(meant);
    }
    let path = error.instance_path().as_str();
    let place = if path.is_empty() { String::new() } else { format!("at {path}: ") };
    format!("{place}{}", describe_problem(error))
}

/// Of several alternatives the one that was probably meant: it complains about something inside the value, or is not the
/// one that only takes null.
fn pick_alternative<'a>(
    error: &ValidationError<'_>,
    context: &'a [Vec<ValidationError<'static>>],
) -> Option<&'a ValidationError<'static>> {
    let here = error.instance_path().as_str().len();
    let first = context.iter().filter_map(|branch| branch.first());
    let inside = first.clone().find(|inner| inner.instance_path().as_str().len() > here);
    let only_null = |inner: &ValidationError<'_>| {
        matches!(inner.kind(), ValidationErrorKind::Type { kind: TypeKind::Single(JsonType::Null) })
    };
    inside.or_else(|| first.clone().find(|inner| !only_null(inner)))
}

fn describe_problem(error: &ValidationError<'_>) -> String {
    let value = error.instance().as_ref();
    let quoted = quote_value(value);
    match error.kind() {
        ValidationErrorKind::Type { kind: TypeKind::Single(kind) } => {
            format!("{quoted} is not {}", describe_type(*kind))
        }
        ValidationErrorKind::Type { kind: TypeKind::Multiple(kinds) } => {
            let kinds: Vec<&str> = kinds.into_iter().map(describe_type).collect();
            format!("{quoted} is not {}", kinds.join(" or "))
        }
        ValidationErrorKind::Enum { options } => format!("{quoted} is none of {}", join_options(options)),
        ValidationErrorKind::Constant { expected_value } => format!("{quoted} is not {}", quote_value(expected_value)),
        ValidationErrorKind::Required { property } => format!("the field {property} is missing"),
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => match unexpected.as_slice() {
            [one] => format!("there is no field {} in this type", quote_value(&Value::from(one.as_str()))),
            many => {
                let names: Vec<String> = many.iter().map(|name| quote_value(&Value::from(name.as_str()))).collect();
                format!("there are no fields {} in this type", names.join(", "))
            }
        },
        ValidationErrorKind::MinLength { limit } => {
            format!("{quoted} has {} characters, at least {limit} are needed", value_length(value))
        }
        ValidationErrorKind::MaxLength { limit } => {
            format!("{quoted} has {} characters, at most {limit} are allowed", value_length(value))
        }
        ValidationErrorKind::MinItems { limit } => {
            format!("the list has {} items, at least {limit} are needed", value_length(value))
        }
        ValidationErrorKind::MaxItems { limit } => {
            format!("the list has {} items, at most {limit} are allowed", value_length(value))
        }
        ValidationErrorKind::Minimum { limit } => format!("{quoted} is less than {limit}"),
        ValidationErrorKind::Maximum { limit } => format!("{quoted} is more than {limit}"),
        ValidationErrorKind::ExclusiveMinimum { limit } => format!("{quoted} is not more than {limit}"),
        ValidationErrorKind::ExclusiveMaximum { limit } => format!("{quoted} is not less than {limit}"),
        ValidationErrorKind::Pattern { pattern } => format!("{quoted} does not match the pattern {pattern}"),
        ValidationErrorKind::Format { format } => format!("{quoted} is no {format}"),
        ValidationErrorKind::UniqueItems => "the list has an item twice".to_owned(),
        _ => format!("{quoted} does not fit: {}", error.masked()),
    }
}

fn describe_type(kind: JsonType) -> &'static str {
    match kind {
        JsonType::Null => "null",
        JsonType::Boolean => "true or false",
        JsonType::Integer => "a whole number",
        JsonType::Number => "a number",
        JsonType::String => "a string",
        JsonType::Array => "a list",
        JsonType::Object => "an object",
    }
}

/// A value as a sentence shows it; of lists and objects only what they are.
fn quote_value(value: &Value) -> String {
    match value {
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        Value::String(text) => Value::from(truncate_text(text, QUOTED)).to_string(),
        value => truncate_text(&value.to_string(), QUOTED),
    }
}

fn join_options(options: &Value) -> String {
    let options = options.as_array().map_or(&[][..], Vec::as_slice);
    let shown = options.iter().take(OPTIONS).map(|option| match option {
        Value::String(text) => text.clone(),
        option => option.to_string(),
    });
    let shown: Vec<String> = shown.collect();
    let more = if options.len() > OPTIONS { ", …" } else { "" };
    format!("{}{more}", shown.join(", "))
}

fn value_length(value: &Value) -> usize {
    match value {
        Value::String(text) => text.chars().count(),
        Value::Array(items) => items.len(),
        _ => 0,
    }
}

/// The first characters of `text`, and that there are more.
fn truncate_text(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
