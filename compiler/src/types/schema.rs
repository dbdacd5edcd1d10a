//! Types as JSON Schema (draft 2020-12), as the plan carries them.
//!
//! Declared types become `$defs`, and what uses one refers to it. Records allow no other fields; a field is required
//! unless it is optional; a `?` elsewhere allows `null`.

use serde_json::{Map, Value, json};

use super::{Field, Kind, Lack, Limits, Type, Types};

impl Types {
    /// The schema of a value of this type; declared types are referred to as `#/$defs/NAME`.
    pub(crate) fn schema(&self, kind: &Type) -> Value {
        build_schema(kind, &Limits::default(), self)
    }

    /// The schema of a field alone.
    pub(crate) fn field_schema(&self, field: &Field) -> Value {
        add_description(build_schema(&field.kind, &field.limits, self), field.description.as_deref())
    }

    /// A text that is written for a value, as JSON: words and texts may stand without quotes.
    pub(crate) fn format_literal(&self, kind: &Type, written: &str) -> String {
        match self.underlying_kind(&kind.kind) {
            kind if kind.is_text() => match serde_json::from_str(written) {
                Ok(Value::String(_)) => written.to_owned(),
                _ => Value::String(written.to_owned()).to_string(),
            },
            _ => written.to_owned(),
        }
    }

    /// The schema of each declared type, by name.
    pub(crate) fn definitions(&self) -> Vec<(String, Value)> {
        let definition = |(name, kind, description): (&str, &Type, Option<&str>)| {
            (name.to_owned(), add_description(self.schema(kind), description))
        };
        self.iter().map(definition).collect()
    }
}

fn build_schema(kind: &Type, limits: &Limits, types: &Types) -> Value {
    let own = match &kind.kind {
        Kind::Any => json!({}),
        Kind::None => json!({ "type": "null" }),
        Kind::Text | Kind::String | Kind::File | Kind::Dir => json!({ "type": "string" }),
        Kind::Int => json!({ "type": "integer" }),
        Kind::Float => json!({ "type": "number" }),
        Kind::Bool => json!({ "type": "boolean" }),
        Kind::Enum(words) => json!({ "enum": words.words }),
        Kind::List(item) => json!({ "type": "array", "items": types.schema(item) }),
        Kind::Map(item) => json!({ "type": "object", "additionalProperties": types.schema(item) }),
        Kind::Record(record) => record_schema(&record.fields, types),
        Kind::Iter { item, .. } => json!({ "type": "array", "items": types.schema(item) }),
        Kind::Tuple(tuple) => json!({ "type": "array", "items": types.schema(&tuple.item()) }),
        Kind::Union(union) => {
            let kinds: Vec<Value> = union.kinds.iter().map(|kind| types.schema(&Type::new(kind.clone()))).collect();
            json!({ "anyOf": kinds })
        }
        // JSON pointers in references have `~` and `/` escaped; names of types have neither.
        Kind::Named(_, name) => json!({ "$ref": format!("#/$defs/{name}") }),
    };
    let own = add_limits(own, &kind.kind, limits);
    if kind.lack.has(Lack::NULL) { json!({ "anyOf": [own, { "type": "null" }] }) } else { own }
}

fn record_schema(fields: &[Field], types: &Types) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for field in fields {
        let schema = build_schema(&field.kind, &field.limits, types);
        properties.insert(field.name.clone(), add_description(schema, field.description.as_deref()));
        if field.kind.lack == Lack::NEVER {
            required.push(field.name.as_str());
        }
    }
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

fn add_description(mut schema: Value, description: Option<&str>) -> Value {
    if let (Some(object), Some(description)) = (schema.as_object_mut(), description) {
        object.insert("description".to_owned(), json!(description));
    }
    schema
}

fn add_limits(mut schema: Value, kind: &Kind, limits: &Limits) -> Value {
    let Some(object) = schema.as_object_mut() else { return schema };
    let (least, most) = match kind {
        Kind::Int | Kind::Float => ("minimum", "maximum"),
        Kind::List(_) => ("minItems", "maxItems"),
        Kind::Map(_) => ("minProperties", "maxProperties"),
        // A text: other types with limits were refused where they were read.
        _ => ("minLength", "maxLength"),
    };
    for (word, limit) in [(least, &limits.min), (most, &limits.max)] {
        if let Some(limit) = limit {
            object.insert(word.to_owned(), Value::Number(limit.clone()));
        }
    }
    if let Some(pattern) = &limits.pattern {
        object.insert("pattern".to_owned(), json!(pattern));
    }
    schema
}
