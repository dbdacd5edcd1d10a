//! Tools as models are shown them: a name, what it does, and the schema of its parameters.

use serde_json::{Value, json};
use swarmc_plan::tools::BuiltIn;

use crate::types::chat;
use crate::types::secrets::Secrets;
use crate::types::visible_text::{beginning, visible};

/// The characters of a description that are shown: what a server says of itself is untrusted.
const DESCRIBED: usize = 1_000;

/// The bytes of a schema at most.
pub(super) const SCHEMA: usize = 32 * 1024;

/// A tool that a server has.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Offered {
    pub name: String,
    pub description: String,
    pub parameters: Value,
}

/// A tool of a server.
pub(super) fn of_server(server: &str, tool: &Offered, secrets: &Secrets) -> chat::Tool {
    let described = visible(&secrets.redact(&tool.description));
    let described = beginning(described.trim(), DESCRIBED).into_owned();
    chat::Tool {
        name: format!("{server}.{}", tool.name),
        description: if described.is_empty() { format!("`{}` of {server}", tool.name) } else { described },
        parameters: tool.parameters.clone(),
    }
}

/// A tool of a server that was not asked for its tools.
pub(super) fn named(server: &str, tool: &str) -> chat::Tool {
    let description = format!("`{tool}` of {server}");
    chat::Tool { name: format!("{server}.{tool}"), description, parameters: json!({"type": "object"}) }
}

/// A tool that comes with the runner.
pub(super) fn built_in(tool: &BuiltIn) -> chat::Tool {
    chat::Tool { name: tool.name.to_owned(), description: tool.does.to_owned(), parameters: parameters(tool.name) }
}

fn parameters(tool: &str) -> Value {
    let text = |does: &str| json!({"type": "string", "description": does});
    let number = |least: u64, most: u64, does: &str| json!({"type": "integer", "minimum": least, "maximum": most, "description": does});
    let flag = |does: &str| json!({"type": "boolean", "description": does});
    let path = || text("A path from the working folder, such as `src/main.rs`.");
    let folder = || text("A folder, from the working folder; without it, the working folder itself.");
    let (properties, required) = match tool {
        "shell" => (
            json!({
                "command": text("The line, as `sh` takes it."),
                "seconds": number(1, 600, "How long it may take; 60 without it."),
            }),
            json!(["command"]),
        ),
        "file_read" => (
            json!({
                "path": path(),
                "line": number(1, 100_000_000, "The line to begin with; 1 without it."),
                "offset": number(0, 100_000_000, "The characters of that line to skip; 0 without it."),
            }),
            json!(["path"]),
        ),
        "file_write" => (
            json!({
                "path": path(),
                "content": text("The whole text of the file, or what is appended."),
                "append": flag("Whether to append to what is there."),
            }),
            json!(["path", "content"]),
        ),
        "file_list" => (
            json!({
                "path": folder(),
                "depth": number(1, 8, "How many folders deep to list; 1 without it."),
            }),
            json!([]),
        ),
        _ => (
            json!({
                "text": text("The text to look for, within one line."),
                "path": text("A folder or a file to look into; without it, the working folder."),
                "ignore_case": flag("Whether letters match without regard to case."),
            }),
            json!(["text"]),
        ),
    };
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

/// The schema of a server's tool without what upsets models' services; none where it is no schema of an object, or too
/// large.
pub(super) fn schema(mut schema: Value) -> Option<Value> {
    let object = schema.as_object_mut()?;
    object.remove("$schema");
    // Left out, it says the same.
    object.entry("type").or_insert_with(|| "object".into());
    object.entry("properties").or_insert_with(|| json!({}));
    if object["type"] != "object" {
        return None;
    }
    without_formats(&mut schema);
    (schema.to_string().len() <= SCHEMA).then_some(schema)
}

/// Takes out the formats of numbers, which validators of agent programs complain about. JSON as it is read is nested 128
/// deep at most.
fn without_formats(value: &mut Value) {
    match value {
        Value::Object(object) => {
            let format = object.get("format").and_then(Value::as_str);
            if format.is_some_and(|format| format.starts_with("int") || format.starts_with("uint")) {
                object.remove("format");
            }
            object.values_mut().for_each(without_formats);
        }
        Value::Array(values) => values.iter_mut().for_each(without_formats),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use swarmc_plan::tools::BUILT_IN;

    use super::*;

    #[test]
    fn every_built_in_tool_has_a_schema_that_compiles_and_names_no_format() {
        for tool in &BUILT_IN {
            let offered = built_in(tool);
            jsonschema::validator_for(&offered.parameters).unwrap();
            assert!(!offered.parameters.to_string().contains("\"format\""));
            assert_eq!(offered.parameters["additionalProperties"], false);
        }
    }

    #[test]
    fn a_servers_schema_is_made_plain_or_left_out() {
        let given = json!({"$schema": "x", "properties": {"n": {"type": "integer", "format": "uint64"}, "d": {"format": "date"}}});
        let plain = json!({"type": "object", "properties": {"n": {"type": "integer"}, "d": {"format": "date"}}});
        assert_eq!(schema(given), Some(plain));
        assert_eq!(schema(json!({"type": "string"})), None);
        assert_eq!(schema(json!(true)), None);
        assert_eq!(schema(json!({"description": "x".repeat(SCHEMA)})), None);
    }
}
