//! What an agent may do in its next turn, as the JSON Schema of one step and as tools of the model's own protocol.

use serde_json::{Map, Value, json};

use super::read::STEP;
use super::{ACTIONS, Abilities, ActionSpec, Fields, SKILLS, TOOL_CALL, TOOL_CHARS, TeamPart};
use crate::types::chat::Tool;

/// The tools whose parameters a step's schema spells out; more are named only, their parameters given as a text.
const SPELLED: usize = 32;
/// The characters of a text in a step's schema that says no limit of its own, and the items of such a list.
/// llama.cpp refuses a grammar that repeats something 2,000 times.
const TEXT: usize = 1_900;
const ITEMS: usize = 20;
/// How deep the parameters of a tool nest that a step's schema spells out.
const DEPTH: usize = 8;

/// What an agent may do in its next turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TurnOptions<'a> {
    /// Its tools, by their own names.
    pub tools: &'a [Tool],
    /// Whom it may write to, by name; none at all when it may send nothing.
    pub receivers: &'a [&'a str],
    /// Whether it may ask for a further agent.
    pub help: bool,
    /// Its part in a team with a coordinator.
    pub part: TeamPart,
    /// The agents that it may add to the team.
    pub spawns: &'a [String],
    /// The channels of the team.
    pub channels: &'a [&'a str],
}

impl TurnOptions<'_> {
    fn abilities(&self) -> Abilities {
        Abilities {
            tools: !self.tools.is_empty(),
            receivers: !self.receivers.is_empty(),
            help: self.help,
            part: self.part,
            spawns: !self.spawns.is_empty(),
            channels: !self.channels.is_empty(),
        }
    }

    /// The actions that are open to the agent.
    fn open_actions(&self) -> impl Iterator<Item = &'static ActionSpec> {
        let abilities = self.abilities();
        ACTIONS.into_iter().filter(move |spec| spec.is_open(abilities))
    }
}

/// Whether a model that calls tools takes the action of this name by a tool of its own.
pub(super) fn is_own_tool(name: &str) -> bool {
    name != TOOL_CALL.name && ACTIONS.iter().any(|spec| spec.name == name)
}

/// What an agent may call, for a model that calls tools: its tools, and the actions besides, which no tool is called as.
pub(crate) fn list_tools(options: &TurnOptions<'_>) -> Vec<Tool> {
    let theirs = options.tools.iter().filter(|tool| !is_own_tool(&tool.name)).cloned();
    let ours = options.open_actions().filter(|spec| is_own_tool(spec.name)).flat_map(|spec| list_forms(spec, options));
    theirs.chain(ours).collect()
}

/// An action as a tool, one for each of its forms.
fn list_forms(spec: &ActionSpec, options: &TurnOptions<'_>) -> Vec<Tool> {
    let tool = |fields| Tool {
        name: spec.name.to_owned(),
        description: spec.does.to_owned(),
        parameters: closed_object(fields),
    };
    (spec.forms)(options).into_iter().map(tool).collect()
}

/// What a program may call while its turn goes on: the actions that end no turn.
pub(crate) fn list_operations(options: &TurnOptions<'_>) -> Vec<Tool> {
    options.open_actions().filter(|spec| spec.is_operation()).flat_map(|spec| list_forms(spec, options)).collect()
}

/// The JSON Schema of one step, for a model that is held to one: an object whose only field is one of the actions, every
/// field required, nothing else allowed, so that grammars and strict modes take it. Texts and lists are bounded, which
/// small models need to come to an end.
pub(crate) fn step_schema(options: &TurnOptions<'_>) -> Value {
    let steps: Vec<Value> = options
        .open_actions()
        .flat_map(|spec| (spec.forms)(options).into_iter().map(|fields| (spec.name, fields)))
        .map(|(name, mut fields)| {
            fields.insert(0, ("action", json!({ "enum": [name], "type": "string" })));
            closed_object(fields)
        })
        .collect();
    closed_object(vec![(STEP, json!({ "anyOf": steps }))])
}

/// The forms of a call: one for each tool, with its parameters; where there are too many tools, one for all of them.
pub(super) fn tool_call_forms(options: &TurnOptions<'_>) -> Vec<Fields> {
    let form = |names: &[&str], parameters: Value| {
        vec![("tool", json!({ "enum": names, "type": "string" })), ("tool_params", parameters)]
    };
    if options.tools.len() > SPELLED {
        let names: Vec<&str> = options.tools.iter().map(|tool| tool.name.as_str()).collect();
        return vec![form(&names, text_of_parameters())];
    }
    let parameters = |tool: &Tool| strict_schema(&tool.parameters, DEPTH).unwrap_or_else(text_of_parameters);
    options.tools.iter().map(|tool| form(&[tool.name.as_str()], parameters(tool))).collect()
}

/// Parameters that no strict schema can describe.
fn text_of_parameters() -> Value {
    text_schema("The parameters, as the text of a JSON object.", TEXT)
}

/// A text of this many characters at most.
pub(super) fn text_schema(what: &str, limit: usize) -> Value {
    json!({ "type": "string", "description": what, "maxLength": limit.min(TEXT) })
}

/// The tools that a helper can be asked for: those of the asker.
pub(super) fn skills_schema(options: &TurnOptions<'_>) -> Value {
    let names: Vec<&str> = options.tools.iter().take(SPELLED).map(|tool| tool.name.as_str()).collect();
    let item = match names.is_empty() || options.tools.len() > SPELLED {
        true => json!({ "type": "string", "maxLength": TOOL_CHARS }),
        false => json!({ "type": "string", "enum": names }),
    };
    json!({ "type": "array", "description": "The tools that it needs.", "items": item, "maxItems": SKILLS })
}

/// An object with these fields alone, all of them required.
pub(super) fn closed_object(properties: Fields) -> Value {
    let required: Vec<&str> = properties.iter().map(|(name, _)| *name).collect();
    let fields: Map<String, Value> =
        properties.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect();
    json!({ "type": "object", "properties": fields, "required": required, "additionalProperties": false })
}

/// The parameters of a tool as they must be for a model that is held to them: only what such schemas can say, every
/// field required, bounded. None where that would change what the tool takes.
fn strict_schema(schema: &Value, depth: usize) -> Option<Value> {
    let depth = depth.checked_sub(1)?;
    let fields = schema.as_object()?;
    let described = fields.get("description").filter(|text| text.is_string());
    let mut strict = if let Some(options) = fields.get("enum").and_then(Value::as_array) {
        let all_texts = options.len() <= 100 && options.iter().all(Value::is_string);
        all_texts.then(|| json!({ "type": "string", "enum": options }))?
    } else {
        match fields.get("type").and_then(Value::as_str)? {
            "string" => {
                let limit =
                    fields.get("maxLength").and_then(Value::as_u64).map_or(TEXT as u64, |limit| limit.min(TEXT as u64));
                json!({ "type": "string", "maxLength": limit })
            }
            kind @ ("integer" | "number" | "boolean") => json!({ "type": kind }),
            "array" => {
                let items = strict_schema(fields.get("items")?, depth)?;
                let limit = fields
                    .get("maxItems")
                    .and_then(Value::as_u64)
                    .map_or(ITEMS as u64, |limit| limit.min(ITEMS as u64));
                json!({ "type": "array", "items": items, "maxItems": limit })
            }
            "object" => strict_object(fields, depth)?,
            _ => return None,
        }
    };
    if let (Some(text), Some(strict)) = (described, strict.as_object_mut()) {
        strict.insert("description".to_owned(), text.clone());
    }
    Some(strict)
}

fn strict_object(fields: &Map<String, Value>, depth: usize) -> Option<Value> {
    let empty = Map::new();
    let properties = match fields.get("properties") {
        None => &empty,
        Some(properties) => properties.as_object()?,
    };
    // A map from anything to anything is no record.
    let is_open = fields.get("additionalProperties").is_some_and(|more| more.as_bool() != Some(false));
    if is_open || ["anyOf", "oneOf", "allOf", "$ref"].iter().any(|key| fields.contains_key(*key)) {
        return None;
    }
    let required = fields.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|all| all.iter().any(|one| one == name));
    let mut strict_properties = Map::new();
    for (name, property) in properties {
        let property = strict_schema(property, depth)?;
        // Strict modes want every field required, so an optional one may be null instead.
        let property = match is_required(name) {
            true => property,
            false => json!({ "anyOf": [property, { "type": "null" }] }),
        };
        strict_properties.insert(name.clone(), property);
    }
    let names: Vec<&String> = strict_properties.keys().collect();
    Some(json!({ "type": "object", "required": names, "properties": strict_properties, "additionalProperties": false }))
}
