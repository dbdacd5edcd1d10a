//! `docs/plan.md`: the JSON of a plan, object by object, from the schema that its types give.

use std::collections::BTreeSet;
use std::fmt::Write;

use serde_json::{Map, Value};

const HEAD: &str = "# The plan\n\n<!-- Generated from plan/src by `tests/run bless`. -->\n\n\
`swarmc plan SPEC -o plan.json` writes it, `swarmc run plan.json` runs it, `swarmc schema plan` prints its JSON Schema \
(draft 2020-12). It is self-contained: prompts, types and computed bounds are in it, and every part that a run may report \
has its place in the spec. The same spec gives the same bytes.\n\n\
`version` increases on breaking changes; swarmc refuses a newer version. A field with `?` may be left out: it is then \
nothing, empty or `false`, if no other default is given. `[X]` is a list, in the order of the spec, `{X}` a map. Most \
parts of a spec also have `name`, `description?` and `origin` ([Origin](#origin)), the place where they are declared.\n\n\
swarmc checks a plan from a file for everything that the compiler guarantees: names are unique and resolve, nothing waits for itself, \
counts and times are in their ranges, commands name a program, paths stay in their folder, expressions, templates and \
JSON Schemas can be read. swarmc refuses a plan with errors before anything starts, and reports the place as a JSON pointer.\n";

/// The fields that most objects have, which the top of the page explains.
const PLAIN: [(&str, &str); 3] =
    [("name", "Its name."), ("description", "What it is for."), ("origin", "Where it is declared.")];

/// The page.
pub(super) fn render_page(schema: &Value) -> String {
    let mut out = HEAD.to_owned();
    let defs = &schema["$defs"];
    let mut named = vec!["Plan".to_owned()];
    let mut seen = BTreeSet::from(["Plan".to_owned()]);
    let mut next = 0;
    while let Some(name) = named.get(next).cloned() {
        next += 1;
        let of = if name == "Plan" { schema } else { &defs[name.as_str()] };
        let _ = writeln!(out, "\n## {name}\n\n{}\n", description_line(of));
        write_fields(&mut out, of, 0);
        // What is named first stands first.
        visit_references(of, &mut |found| {
            if seen.insert(found.to_owned()) {
                named.push(found.to_owned());
            }
        });
    }
    let all: BTreeSet<String> = defs.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect();
    seen.remove("Plan");
    assert_eq!(seen, all, "everything is on the page");
    // Comments in the code link to its types; here they are headings.
    // The top says once in which order lists are.
    out.replace("[`", "`").replace("`]", "`").replace(", in declaration order", "")
}

fn description_line(schema: &Value) -> String {
    schema["description"].as_str().unwrap_or_default().replace('\n', " ")
}

/// What a field says of itself; nothing where it has a type of its own, whose section says it, and no more than a few
/// words to add.
fn field_line(field: &Value) -> String {
    const FEW: usize = 12;
    let line = description_line(field);
    let plain = line.split_whitespace().count() <= FEW && describe_kind(field).contains("](#");
    if plain { String::new() } else { line }
}

/// The fields of an object, or the forms of which it is one.
fn write_fields(out: &mut String, schema: &Value, depth: usize) {
    let indent = "  ".repeat(depth);
    let required: BTreeSet<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        if PLAIN.contains(&(name.as_str(), description_line(field).as_str())) {
            continue;
        }
        let optional = if required.contains(name.as_str()) { "" } else { "?" };
        let default = match &field["default"] {
            Value::Null => String::new(),
            default => format!(", default `{default}`"),
        };
        let _ = writeln!(out, "{indent}- `{name}{optional}`: {}{default}. {}", describe_kind(field), field_line(field));
        write_fields(out, field, depth + 1);
    }
    for form in schema["oneOf"].as_array().into_iter().flatten() {
        match &form["const"] {
            Value::Null => form_of(out, form, depth),
            word => _ = writeln!(out, "{indent}- `{word}`: {}", description_line(form)),
        }
    }
    if schema["enum"].is_array() {
        let words: Vec<String> =
            schema["enum"].as_array().into_iter().flatten().map(|word| format!("`{word}`")).collect();
        let _ = writeln!(out, "{indent}- one of {}", words.join(", "));
    }
}

/// One of several forms: an object with its single field, or a bare value.
fn form_of(out: &mut String, form: &Value, depth: usize) {
    let indent = "  ".repeat(depth);
    match form["properties"].as_object() {
        Some(fields) if fields.len() == 1 => {
            for (name, field) in fields {
                let said = [description_line(form), description_line(field)].join(" ");
                let _ = writeln!(out, "{indent}- `{{\"{name}\": …}}`, {}. {}", describe_kind(field), said.trim());
                write_fields(out, field, depth + 1);
            }
        }
        Some(_) => {
            let _ = writeln!(out, "{indent}- an object. {}", description_line(form));
            write_fields(out, form, depth + 1);
        }
        None => {
            let _ = writeln!(out, "{indent}- {}. {}", describe_kind(form), description_line(form));
        }
    }
}

/// What a value may be, in words.
fn describe_kind(schema: &Value) -> String {
    if let Some(name) = reference_name(schema) {
        return format!("[{name}](#{})", name.to_lowercase());
    }
    if let Some(kinds) = schema["anyOf"].as_array() {
        return join_kinds(kinds.iter().map(describe_kind));
    }
    if schema["oneOf"].is_array() {
        return "one of these".to_owned();
    }
    if !schema["const"].is_null() {
        return format!("`{}`", schema["const"]);
    }
    match &schema["type"] {
        Value::String(name) => describe_type(name, schema),
        Value::Array(names) => {
            let names: Vec<String> =
                names.iter().filter_map(Value::as_str).map(|name| describe_type(name, schema)).collect();
            join_kinds(names.into_iter())
        }
        _ => "any value".to_owned(),
    }
}

/// Kinds of which a value has one; `null` is what a field has that is left out.
fn join_kinds(kinds: impl Iterator<Item = String>) -> String {
    kinds.filter(|kind| kind != "null").collect::<Vec<_>>().join(" or ")
}

fn describe_type(name: &str, schema: &Value) -> String {
    match name {
        "array" => match schema["prefixItems"].as_array() {
            Some(items) => format!("[{}]", items.iter().map(describe_kind).collect::<Vec<_>>().join(", ")),
            None => format!("[{}]", describe_kind(&schema["items"])),
        },
        "object" if schema["additionalProperties"].is_object() => {
            format!("{{{}}}", describe_kind(&schema["additionalProperties"]))
        }
        other => other.to_owned(),
    }
}

fn reference_name(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.strip_prefix("#/$defs/")
}

/// Every definition that a schema names, in order.
fn visit_references(schema: &Value, found: &mut impl FnMut(&str)) {
    if let Some(name) = reference_name(schema) {
        found(name);
    }
    let inner: Vec<&Value> = match schema {
        Value::Object(fields) => inner_schemas(fields),
        Value::Array(items) => items.iter().collect(),
        _ => Vec::new(),
    };
    inner.into_iter().for_each(|inner| visit_references(inner, found));
}

fn inner_schemas(fields: &Map<String, Value>) -> Vec<&Value> {
    fields.iter().filter(|(key, _)| *key != "$defs").map(|(_, value)| value).collect()
}
