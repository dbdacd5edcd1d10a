//! The schemas of a plan as documents: complete in themselves, for a validator or a prompt, and in the strict form that
//! providers ask for which have the model keep to one.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use swarmc_plan::Schema;

/// Where references lead.
const TYPES: &str = "#/$defs/";

/// `schema` with every type that it refers to, and no other.
pub(super) fn bundle_schema(schema: &Schema, types: &BTreeMap<String, Schema>) -> Value {
    let mut used: BTreeMap<&str, &Value> = BTreeMap::new();
    let mut waiting = vec![&schema.0];
    while let Some(value) = waiting.pop() {
        match value {
            Value::Array(items) => waiting.extend(items),
            Value::Object(fields) => {
                waiting.extend(fields.values());
                let name = fields.get("$ref").and_then(Value::as_str).and_then(|path| path.strip_prefix(TYPES));
                if let Some((name, found)) = name.and_then(|name| types.get_key_value(name))
                    && used.insert(name, &found.0).is_none()
                {
                    waiting.push(&found.0);
                }
            }
            _ => {}
        }
    }
    let mut document = schema.0.clone();
    if let Value::Object(fields) = &mut document
        && !used.is_empty()
    {
        let types: Map<String, Value> =
            used.into_iter().map(|(name, found)| (name.to_owned(), found.clone())).collect();
        fields.insert("$defs".to_owned(), Value::Object(types));
    }
    document
}

/// `document` as it must be for a model that is held to it: an object at the top, every field required, those that may
/// be left out nullable. None where it has what cannot be said so: another kind at the top, or a map.
pub(super) fn make_strict(document: &Value) -> Option<Value> {
    let mut strict = document.clone();
    // A reference may not be at the top.
    let mut followed = 0;
    while let Some(name) = strict.get("$ref").and_then(Value::as_str).and_then(|path| path.strip_prefix(TYPES)) {
        let mut target = document.get("$defs")?.get(name)?.clone();
        target.as_object_mut()?.insert("$defs".to_owned(), document.get("$defs")?.clone());
        strict = target;
        followed += 1;
        if followed > 8 {
            return None;
        }
    }
    if strict.get("type") != Some(&json!("object")) {
        return None;
    }
    tighten_schema(&mut strict)?;
    Some(strict)
}

/// Makes one schema strict, and those inside it. Its depth is that of a plan, which reading bounds.
fn tighten_schema(schema: &mut Value) -> Option<()> {
    let fields = schema.as_object_mut()?;
    if let Some(properties) = fields.get("properties").and_then(Value::as_object) {
        let names: Vec<Value> = properties.keys().map(|name| json!(name)).collect();
        let required = fields.insert("required".to_owned(), Value::Array(names)).unwrap_or_default();
        let is_required = |name: &str| required.as_array().is_some_and(|all| all.iter().any(|one| one == name));
        let properties = fields.get_mut("properties")?.as_object_mut()?;
        for (name, property) in properties {
            tighten_schema(property)?;
            if !is_required(name) && !takes_null(property) {
                *property = json!({ "anyOf": [property.take(), { "type": "null" }] });
            }
        }
    }
    if fields.get("type") == Some(&json!("object")) {
        let closed = fields.get("additionalProperties") == Some(&json!(false));
        if !closed || !fields.contains_key("properties") {
            return None;
        }
    }
    if let Some(items) = fields.get_mut("items") {
        tighten_schema(items)?;
    }
    for alternative in fields.get_mut("anyOf").and_then(Value::as_array_mut).into_iter().flatten() {
        tighten_schema(alternative)?;
    }
    for (_, definition) in fields.get_mut("$defs").and_then(Value::as_object_mut).into_iter().flatten() {
        tighten_schema(definition)?;
    }
    lengths_in_words(fields);
    Some(())
}

fn takes_null(schema: &Value) -> bool {
    let null = json!("null");
    let kinds = schema.get("type");
    kinds == Some(&null)
        || kinds.and_then(Value::as_array).is_some_and(|kinds| kinds.contains(&null))
        || schema.get("anyOf").and_then(Value::as_array).is_some_and(|all| all.iter().any(takes_null))
}

/// Lengths of texts are refused by such providers, so the model is told them.
fn lengths_in_words(fields: &mut Map<String, Value>) {
    let words = [("minLength", "at least"), ("maxLength", "at most")].into_iter().filter_map(|(key, words)| {
        let limit = fields.remove(key)?;
        Some(format!("{words} {limit} characters"))
    });
    let words: Vec<String> = words.collect();
    if !words.is_empty() {
        let described = fields.get("description").and_then(Value::as_str).map(|text| format!("{text} "));
        let text = format!("{}({})", described.unwrap_or_default(), words.join(", "));
        fields.insert("description".to_owned(), Value::String(text));
    }
}

/// The references that are followed from one place.
const MOST_REFERENCES: usize = 64;

/// Writes `2.0` as `2` wherever a value of the type `schema` has a whole number. As deep as the value is.
pub(super) fn write_whole(document: &Value, schema: &Value, value: &mut Value) {
    let mut schema = schema;
    for _ in 0..MOST_REFERENCES {
        let Some(reference) = schema.get("$ref").and_then(Value::as_str) else { break };
        let Some(target) = reference.strip_prefix('#').and_then(|path| document.pointer(path)) else { return };
        schema = target;
    }
    if let Some(alternatives) = schema.get("anyOf").and_then(Value::as_array) {
        // Of a value or `null`, the value.
        alternatives.iter().for_each(|schema| write_whole(document, schema, value));
        return;
    }
    match value {
        Value::Number(number) => {
            let is_whole = schema.get("type").is_some_and(|kind| kind == "integer") && number.is_f64();
            // Beyond this a number of 64 bits is not exact.
            let exact = |number: &f64| number.fract() == 0.0 && number.abs() <= 9_007_199_254_740_992.0;
            if let Some(number) = number.as_f64().filter(|number| is_whole && exact(number)) {
                *value = Value::from(number as i64);
            }
        }
        Value::Array(items) => {
            if let Some(schema) = schema.get("items") {
                items.iter_mut().for_each(|item| write_whole(document, schema, item));
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                let known = schema.get("properties").and_then(|known| known.get(name));
                if let Some(schema) = known.or_else(|| schema.get("additionalProperties")) {
                    write_whole(document, schema, field);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn types() -> BTreeMap<String, Schema> {
        let types = json!({
            "Verdict": {
                "type": "object",
                "properties": {
                    "severity": { "$ref": "#/$defs/Severity" },
                    "title": { "type": "string", "maxLength": 80, "description": "What it is." },
                    "note": { "type": "string" },
                    "replies": { "type": "array", "items": { "$ref": "#/$defs/Verdict" } },
                },
                "required": ["severity"],
                "additionalProperties": false,
            },
            "Severity": { "enum": ["low", "high"] },
            "Unused": { "type": "string" },
            "Counts": { "type": "object", "additionalProperties": { "type": "integer" } },
        });
        serde_json::from_value(types).unwrap()
    }

    #[test]
    fn a_document_holds_the_types_that_it_leads_to_and_no_other() {
        let document =
            bundle_schema(&Schema(json!({ "type": "array", "items": { "$ref": "#/$defs/Verdict" } })), &types());
        let names: Vec<&String> = document["$defs"].as_object().unwrap().keys().collect();
        assert_eq!(names, ["Severity", "Verdict"]);
        assert_eq!(super::bundle_schema(&Schema(json!({ "type": "string" })), &types()), json!({ "type": "string" }));
    }

    #[test]
    fn the_strict_form_requires_every_field_and_says_lengths_in_words() {
        let document = bundle_schema(&Schema(json!({ "$ref": "#/$defs/Verdict" })), &types());
        let strict = make_strict(&document).unwrap();
        assert_eq!(strict["required"], json!(["severity", "title", "note", "replies"]));
        assert_eq!(strict["properties"]["severity"], json!({ "$ref": "#/$defs/Severity" }));
        assert_eq!(strict["properties"]["note"], json!({ "anyOf": [{ "type": "string" }, { "type": "null" }] }));
        let title = json!({ "type": "string", "description": "What it is. (at most 80 characters)" });
        assert_eq!(strict["properties"]["title"]["anyOf"][0], title);
        assert_eq!(strict["$defs"]["Verdict"]["required"], strict["required"]);
    }

    #[test]
    fn what_no_strict_schema_can_say_has_none() {
        let check = |schema: Value| {
            assert_eq!(make_strict(&bundle_schema(&Schema(schema.clone()), &types())), None, "{schema}")
        };
        check(json!({ "type": "array", "items": { "type": "string" } }));
        check(json!({ "enum": ["a", "b"] }));
        check(json!({ "$ref": "#/$defs/Counts" }));
        check(json!({ "$ref": "#/$defs/Missing" }));
        let counts = json!({ "counts": { "$ref": "#/$defs/Counts" } });
        check(json!({ "type": "object", "properties": counts, "additionalProperties": false }));
    }
}
