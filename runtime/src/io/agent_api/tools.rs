//! The operations of an agent as tools, for whatever offers tools to models: the MCP server of a run, `swarmc mcp`, and
//! our own turns with models.
//!
//! In: the table of operations, and the nodes that a node may send to. Out: names, descriptions and JSON Schemas.
//! Invariant: a schema holds nothing that a client might not know: no references, no formats of integers, no `null` for
//! what may be left out.

use schemars::generate::SchemaSettings;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::types::chat;
use crate::types::handoff::{ENVELOPE_LIMIT, MESSAGE_LIMIT, OPERATIONS, OperationSpec, Reach};

/// A tool, as models see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ToolSpec {
    /// What it is called by.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub parameters: Value,
    /// Whether it changes nothing.
    pub reads: bool,
}

impl ToolSpec {
    /// The tool as our own turns with models offer it.
    pub(crate) fn tool(&self) -> chat::Tool {
        let ToolSpec { name, description, parameters, .. } = self.clone();
        chat::Tool { name, description, parameters }
    }
}

/// The tools of a program that takes a turn in a team.
pub(crate) fn list_member_tools(operations: Vec<chat::Tool>) -> Vec<ToolSpec> {
    let spec = |chat::Tool { name, description, mut parameters }: chat::Tool| {
        make_optional(&mut parameters);
        simplify_schema(&mut parameters);
        ToolSpec { name, description, parameters, reads: false }
    };
    operations.into_iter().map(spec).collect()
}

/// What may be null may be left out: strict modes require every field, and tools do not. It is as deep as our own types
/// are.
fn make_optional(schema: &mut Value) {
    let is_null = |one: &Value| one["type"] == "null";
    let nullable = |value: &Value| value["anyOf"].as_array().is_some_and(|all| all.iter().any(is_null));
    match schema {
        Value::Array(parts) => parts.iter_mut().for_each(make_optional),
        Value::Object(object) => {
            let properties = object.get("properties").and_then(Value::as_object);
            let optional = properties.into_iter().flatten().filter(|(_, value)| nullable(value));
            let optional: Vec<String> = optional.map(|(name, _)| name.clone()).collect();
            if let Some(required) = object.get_mut("required").and_then(Value::as_array_mut) {
                required.retain(|name| !optional.iter().any(|known| name == known));
            }
            object.values_mut().for_each(make_optional);
        }
        _ => {}
    }
}

/// The tools of a node that may reach these.
pub(crate) fn list_tools(reach: &Reach) -> Vec<ToolSpec> {
    OPERATIONS.iter().filter(|spec| reach.allows(spec.access)).map(|spec| build_tool(spec, reach)).collect()
}

fn build_tool(spec: &OperationSpec, reach: &Reach) -> ToolSpec {
    let limits = format!(
        "It is on disk when this returns its id. At most {MESSAGE_LIMIT} characters of message and {} KB in all: write \
         what is longer into a file, and name that in `artifacts`.",
        ENVELOPE_LIMIT / 1024
    );
    let targets = reach.targets(spec.access);
    let description = spec.instructions.replace("{limits}", &limits).replace("{to}", &join_alternatives(targets));
    ToolSpec {
        name: spec.name.to_owned(),
        description,
        parameters: build_schema(spec, targets),
        reads: spec.is_read_only,
    }
}

/// The schema of what an operation takes, with the tasks that `to` can name.
fn build_schema(spec: &OperationSpec, targets: &[String]) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = (spec.arguments)(settings.into_generator()).to_value();
    simplify_schema(&mut schema);
    if let Some(object) = schema.as_object_mut() {
        object.remove("title");
        object.remove("description");
        let properties = object.entry("properties").or_insert_with(|| json!({}));
        if let Some(to) = properties.get_mut("to") {
            to["enum"] = json!(targets);
            to["description"] = json!(format!("The receiver: {}.", join_alternatives(targets)));
        }
    }
    schema
}

/// Takes out of a schema of ours what some clients stumble over. It is as deep as our own types are.
fn simplify_schema(schema: &mut Value) {
    match schema {
        Value::Array(parts) => parts.iter_mut().for_each(simplify_schema),
        Value::Object(object) => {
            object.remove("format");
            object.remove("default");
            let alternatives = object.get("anyOf").and_then(Value::as_array);
            let real = alternatives.map(|all| all.iter().filter(|one| one["type"] != "null").cloned().collect());
            let real: Vec<Value> = real.unwrap_or_default();
            if let [Value::Object(only)] = real.as_slice() {
                object.remove("anyOf");
                for (key, value) in only {
                    // What the field is for says more than what its type is.
                    object.entry(key.clone()).or_insert_with(|| value.clone());
                }
            }
            if let Some(kinds) = object.get_mut("type").and_then(Value::as_array_mut) {
                kinds.retain(|kind| kind != "null");
                if let [only] = kinds.as_slice() {
                    let only = only.clone();
                    object.insert("type".to_owned(), only);
                }
            }
            if let Some(choices) = object.get_mut("enum").and_then(Value::as_array_mut) {
                choices.retain(|choice| !choice.is_null());
            }
            let constants = object.get("oneOf").and_then(Value::as_array);
            let constants = constants.and_then(|all| all.iter().map(|one| one.get("const").cloned()).collect());
            if let Some(constants) = constants {
                object.remove("oneOf");
                object.insert("type".to_owned(), json!("string"));
                object.insert("enum".to_owned(), Value::Array(constants));
            }
            object.values_mut().for_each(simplify_schema);
        }
        _ => {}
    }
}

fn join_alternatives(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match names.as_slice() {
        [.., last] if names.len() > 1 => format!("{} or {last}", names[..names.len() - 1].join(", ")),
        names => names.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::handoff::{Access, Operation};

    fn receivers() -> Reach {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        Reach { receivers: names(&["parser", "printer", "tester"]), spawns: names(&["helper"]), asks: true }
    }

    /// All values of a key in a schema.
    fn found<'a>(value: &'a Value, key: &str, all: &mut Vec<&'a Value>) {
        match value {
            Value::Array(parts) => parts.iter().for_each(|part| found(part, key, all)),
            Value::Object(object) => {
                all.extend(object.get(key));
                object.values().for_each(|part| found(part, key, all));
            }
            _ => {}
        }
    }

    #[test]
    fn schemas_hold_nothing_that_clients_stumble_over() {
        for offer in list_tools(&receivers()) {
            for key in ["format", "$ref", "$defs", "$schema", "default", "oneOf", "anyOf", "const"] {
                let mut all = Vec::new();
                found(&offer.parameters, key, &mut all);
                assert_eq!(all, Vec::<&Value>::new(), "{key} of {}", offer.name);
            }
            assert!(!offer.parameters.to_string().contains("null"), "{}", offer.parameters);
            assert_eq!(offer.parameters["type"], "object");
            assert_eq!(offer.parameters["additionalProperties"], false);
            jsonschema::validator_for(&offer.parameters).unwrap();
        }
    }

    #[test]
    fn the_receivers_stand_where_a_model_looks_for_them() {
        let offer = &list_tools(&receivers())[0];
        let to = &offer.parameters["properties"]["to"];
        assert_eq!(to["enum"], json!(["parser", "printer", "tester"]));
        assert_eq!(to["description"], "The receiver: `parser`, `printer` or `tester`.");
        assert_eq!(offer.parameters["properties"]["message"]["maxLength"], MESSAGE_LIMIT);
        assert_eq!(offer.parameters["required"], json!(["to", "message"]));
        // A step that only receives is offered no more than that.
        let names = |reach: &Reach| list_tools(reach).into_iter().map(|offer| offer.name).collect::<Vec<_>>();
        let open = OPERATIONS.iter().filter(|spec| spec.access == Access::All);
        assert_eq!(names(&Reach::default()), open.map(|spec| spec.name).collect::<Vec<_>>());
        assert_eq!(names(&receivers()), OPERATIONS.iter().map(|spec| spec.name).collect::<Vec<_>>());
    }

    #[test]
    fn a_handoff_that_says_everything_fits_the_schema_and_is_read() {
        let whole = json!({
            "to": "parser", "message": "m", "structured": { "n": 1 },
            "artifacts": [{ "type": "diff", "ref": "artifact://diff/1" }],
            "status": { "ok": true, "reason": "tests-pass" },
            "response": "required", "reply_to": "e3", "context_ref": "contextpack://pack/1",
            "kind": "signal", "priority": "high",
        });
        let validator = jsonschema::validator_for(&list_tools(&receivers())[0].parameters).unwrap();
        assert!(validator.is_valid(&whole));
        for wrong in [
            json!({ "to": "parser" }),
            json!({ "to": "absent", "message": "m" }),
            json!({ "to": "parser", "message": "m", "summary": "s" }),
            json!({ "to": "parser", "message": "m", "structured": [1] }),
            json!({ "to": "parser", "message": "m", "priority": "urgent" }),
        ] {
            assert!(!validator.is_valid(&wrong), "{wrong}");
        }
        let Value::Object(arguments) = whole else { panic!("it is an object") };
        assert!(matches!(Operation::from_call("send_handoff", arguments), Ok(Operation::SendHandoff(_))));
    }

    #[test]
    fn a_call_that_is_wrong_is_told_what_would_be_right() {
        let told = |tool: &str, arguments: Value| {
            let Value::Object(arguments) = arguments else { panic!("it is an object") };
            Operation::from_call(tool, arguments).unwrap_err()
        };
        let missing = told("send_handoff", json!({ "to": "parser" }));
        assert!(missing.contains("missing field `message`"), "{missing}");
        let unknown = told("send_handoff", json!({ "to": "parser", "message": "m", "summary": "s" }));
        assert!(unknown.contains("unknown field `summary`, expected one of `to`, `message`"), "{unknown}");
        let unknown = told("send\u{7}", json!({}));
        assert!(unknown.starts_with("there is no tool `send`: there are `send_handoff`, `spawn_node`, "), "{unknown}");
        assert!(unknown.ends_with(" and `read_context`"), "{unknown}");
        assert_eq!(told("read_inbox", json!({ "of": "x" })), "`read_inbox` takes no arguments");
    }
}
