//! How long a value of a type can be as JSON, and how many items its lists can have.
//!
//! In: a JSON Schema and the types that it refers to. Out: bytes, or none where nothing limits them. Each declared type is
//! looked at once; one that contains itself has no limit.

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap};

use serde_json::Value;
use swarmc_plan::Schema;

/// The longest form of any number that a double or a 64-bit integer prints as.
const NUMBER: u64 = 25;
/// The most bytes that one character of a string takes in JSON: `\u0000`.
const ESCAPED: u64 = 6;
/// How deep a schema is looked into; deeper ones count as unlimited.
const DEPTH: usize = 64;

/// The declared types of a plan, with what is known of each so far.
pub(crate) struct Types<'p> {
    declared: &'p BTreeMap<String, Schema>,
    /// None inside: without limit, or being looked at.
    known: HashMap<&'p str, Option<u64>>,
    /// The bytes of all declarations, once they were counted.
    bytes: OnceCell<u64>,
}

impl<'p> Types<'p> {
    pub(crate) fn new(declared: &'p BTreeMap<String, Schema>) -> Types<'p> {
        Types { declared, known: HashMap::new(), bytes: OnceCell::new() }
    }

    /// The bytes of all declarations as JSON.
    pub(crate) fn declared_bytes(&self) -> u64 {
        *self.bytes.get_or_init(|| {
            self.declared.iter().map(|(name, schema)| name.len() as u64 + 6 + json_length(&schema.0)).sum()
        })
    }

    /// The bytes of the longest JSON that satisfies a schema.
    pub(crate) fn longest_json(&mut self, schema: &'p Value) -> Option<u64> {
        self.longest_at(schema, DEPTH)
    }

    fn longest_at(&mut self, schema: &'p Value, depth: usize) -> Option<u64> {
        let depth = depth.checked_sub(1)?;
        if let Some(name) = reference_name(schema) {
            return self.longest_named(name, depth);
        }
        if let Some(value) = schema.get("const") {
            return Some(json_length(value));
        }
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            return values.iter().map(json_length).max();
        }
        for key in ["anyOf", "oneOf"] {
            if let Some(choices) = schema.get(key).and_then(Value::as_array) {
                return self.longest_choice(choices, depth);
            }
        }
        match schema.get("type")? {
            Value::String(kind) => self.longest_of(kind, schema, depth),
            Value::Array(kinds) => kinds
                .iter()
                .try_fold(0, |longest: u64, kind| Some(longest.max(self.longest_of(kind.as_str()?, schema, depth)?))),
            _ => None,
        }
    }

    fn longest_named(&mut self, name: &str, depth: usize) -> Option<u64> {
        let (name, schema) = self.declared.get_key_value(name)?;
        if let Some(known) = self.known.get(name.as_str()) {
            return *known;
        }
        // Without limit while it is open: a type that contains itself ends here.
        self.known.insert(name, None);
        let longest = self.longest_at(&schema.0, depth);
        self.known.insert(name, longest);
        longest
    }

    fn longest_choice(&mut self, choices: &'p [Value], depth: usize) -> Option<u64> {
        choices.iter().try_fold(0, |longest: u64, choice| Some(longest.max(self.longest_at(choice, depth)?)))
    }

    fn longest_of(&mut self, kind: &str, schema: &'p Value, depth: usize) -> Option<u64> {
        let limit = |key: &str| schema.get(key).and_then(Value::as_u64);
        match kind {
            "null" => Some(4),
            "boolean" => Some(5),
            "integer" | "number" => Some(NUMBER),
            "string" => Some(limit("maxLength")?.saturating_mul(ESCAPED).saturating_add(2)),
            "array" => {
                let items = limit("maxItems")?;
                let item = self.longest_at(schema.get("items")?, depth)?;
                Some(item.saturating_add(1).saturating_mul(items).saturating_add(2))
            }
            "object" => {
                // A map has no properties of its own.
                let properties = schema.get("properties")?.as_object()?;
                if schema.get("additionalProperties").is_some_and(|more| more != &Value::Bool(false)) {
                    return None;
                }
                // The braces, and a colon and a comma for each field.
                properties.iter().try_fold(2, |sum: u64, (name, property)| {
                    let value = self.longest_at(property, depth)?;
                    Some(sum.saturating_add(value).saturating_add(json_length(&Value::from(name.as_str())) + 2))
                })
            }
            _ => None,
        }
    }

    /// The schema of a field, through references and optional values; none where there is no such field.
    pub(crate) fn field_schema(&self, schema: &'p Value, name: &str) -> Option<&'p Value> {
        let object = self.resolve_schema(schema)?;
        let properties = object.get("properties").and_then(Value::as_object);
        // In expressions `_` may stand for `-`.
        let found = properties.and_then(|properties| {
            let same = || properties.iter().find(|(key, _)| crate::template::same_name(key, name));
            properties.get(name).or_else(|| same().map(|(_, property)| property))
        });
        // Each value of a map has this schema, whatever its key is.
        found.or_else(|| object.get("additionalProperties").filter(|more| more.is_object()))
    }

    /// The schema of the items of a list, and how many there can be.
    pub(crate) fn item_schema(&self, schema: &'p Value) -> Option<(&'p Value, Option<u64>)> {
        let list = self.resolve_schema(schema)?;
        Some((list.get("items")?, list.get("maxItems").and_then(Value::as_u64)))
    }

    /// Behind references, and beside `null`.
    fn resolve_schema(&self, schema: &'p Value) -> Option<&'p Value> {
        let mut schema = schema;
        for _ in 0..DEPTH {
            schema = if let Some(name) = reference_name(schema) {
                &self.declared.get(name)?.0
            } else if let Some(choices) = schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array)
            {
                let null = Value::from("null");
                let mut others = choices.iter().filter(|choice| choice.get("type") != Some(&null));
                let only = others.next()?;
                if others.next().is_some() {
                    return None;
                }
                only
            } else {
                return Some(schema);
            };
        }
        None
    }
}

fn reference_name(schema: &Value) -> Option<&str> {
    schema.get("$ref")?.as_str()?.strip_prefix("#/$defs/")
}

/// The bytes of a value as JSON.
fn json_length(value: &Value) -> u64 {
    value.to_string().len() as u64
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn types() -> BTreeMap<String, Schema> {
        let verdict = json!({
            "type": "object",
            "properties": {
                "approved": { "type": "boolean" },
                "severity": { "enum": ["low", "high"] },
                "note": { "anyOf": [{ "type": "string", "maxLength": 10 }, { "type": "null" }] },
            },
            "additionalProperties": false,
        });
        let tree = json!({ "type": "object", "properties": { "next": { "$ref": "#/$defs/Tree" } } });
        BTreeMap::from([("Verdict".to_owned(), Schema(verdict)), ("Tree".to_owned(), Schema(tree))])
    }

    #[test]
    fn the_longest_value_is_written_out() {
        let declared = types();
        let longest = |schema: Value| {
            let schema: &'static Value = Box::leak(Box::new(schema));
            let declared: &'static _ = Box::leak(Box::new(declared.clone()));
            Types::new(declared).longest_json(schema)
        };
        assert_eq!(longest(json!({ "type": "boolean" })), Some(5));
        assert_eq!(longest(json!({ "enum": ["a", "long"] })), Some(6));
        let text = "{\"approved\":false,\"severity\":\"high\",\"note\":}".len() as u64 + 62;
        assert!((text..text + 4).contains(&longest(json!({ "$ref": "#/$defs/Verdict" })).unwrap()));
        assert_eq!(longest(json!({ "type": "array", "maxItems": 3, "items": { "type": "null" } })), Some(17));
        for endless in [json!({ "type": "string" }), json!({ "$ref": "#/$defs/Tree" }), json!({ "type": "object" })] {
            assert_eq!(longest(endless.clone()), None, "{endless}");
        }
    }

    #[test]
    fn a_type_that_contains_itself_twice_is_looked_at_once() {
        let name = |index: usize| format!("T{index}");
        let twice = |index: usize| {
            let next = json!({ "$ref": format!("#/$defs/{}", name(index + 1)) });
            Schema(json!({ "type": "object", "properties": { "a": next.clone(), "b": next } }))
        };
        let mut declared: BTreeMap<String, Schema> = (0..30).map(|index| (name(index), twice(index))).collect();
        declared.insert(name(30), Schema(json!({ "type": "boolean" })));
        let first = json!({ "$ref": "#/$defs/T0" });
        assert!(Types::new(&declared).longest_json(&first).is_some_and(|bytes| bytes > 1 << 30));
    }
}
