//! Reads the one action of a turn from a model's text, or from the tools that it called.

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value};

use super::team::check_ident;
use super::turn_options::is_own_tool;
use super::{
    ACTIONS, ANSWER_BYTES, IDLE, MessageType, NESTING, PARAMS_BYTES, PAYLOAD_BYTES, RECEIVER_CHARS, RawAction, SKILLS,
    SKILLS_BYTES, TOOL_CALL, TOOL_CHARS, TeamPart,
};
use crate::core::swarm::prompt::inline_text;
use crate::types::answer::find_candidates;
use crate::types::chat::Call;

/// The field that a step held to [`super::schema`] stands in.
pub(super) const STEP: &str = "step";
/// The characters of a model's own word that are quoted back to it.
const QUOTED: usize = 40;
const EXACTLY_ONE: &str = "return exactly one action, as one JSON object and nothing else";

/// The action that `text` holds, which goes on from `prefill` where the provider was given one: the whole of it, a
/// fenced block, or an object within prose. `part` is that of the agent, for what an error says.
///
/// # Errors
/// It holds none, several, or a wrong one: a sentence that says what to return.
pub(crate) fn parse_action(text: &str, prefill: Option<&str>, part: TeamPart) -> Result<RawAction, String> {
    if text.len() > ANSWER_BYTES {
        return Err(format!("it is longer than {} KiB: {EXACTLY_ONE}", ANSWER_BYTES / 1024));
    }
    let text = behind_thoughts(text);
    // Some providers repeat the prefill in their answer, and others go on behind it.
    let joined =
        prefill.filter(|prefill| !text.trim_start().starts_with(prefill)).map(|prefill| format!("{prefill}{text}"));
    let mut found = Found::default();
    for text in joined.iter().map(String::as_str).chain([text]) {
        found.scan_text(text);
        if found.is_whole {
            break;
        }
    }
    match found.actions.as_slice() {
        [] => Err(found.describe_missing()),
        [one] => one.to_action(part),
        many => Err(format!("it holds {} actions: {EXACTLY_ONE}", many.len())),
    }
}

/// The action that a model took by calling a tool: `calls` are its calls of [`super::tools`].
/// Without a call, its text counts.
///
/// # Errors
/// It called several, or one in a wrong way: a sentence that says what to call.
pub(crate) fn from_calls(text: &str, calls: &[Call], part: TeamPart) -> Result<RawAction, String> {
    let call = match calls {
        [] => {
            return parse_action(text, None, part)
                .map_err(|_| "it calls no tool: call exactly one; `done` ends your work".to_owned());
        }
        [call] => call,
        many => return Err(format!("it calls {} tools, and none was run: call exactly one in a turn", many.len())),
    };
    let name = call.tool.as_str();
    let arguments = match &call.arguments {
        Value::Null => Map::new(),
        Value::Object(fields) => fields.clone(),
        Value::String(text) if text.trim().is_empty() => Map::new(),
        Value::String(text) => parse_object(text).ok_or_else(|| "its arguments are no JSON object".to_owned())?,
        _ => return Err("its arguments are no JSON object: give the parameters by name".to_owned()),
    };
    let mut fields = arguments;
    if is_own_tool(name) {
        fields.insert("action".to_owned(), Value::String(name.to_owned()));
    } else {
        let call = [("action", Value::from(TOOL_CALL.name)), ("tool", name.into()), ("tool_params", fields.into())];
        fields = call.map(|(key, value)| (key.to_owned(), value)).into_iter().collect();
    }
    Step { fields, twice: None }.to_action(part)
}

/// The action that a program takes by a tool while its turn goes on.
///
/// # Errors
/// There is no such tool, or it takes other arguments: says which there are, or what is wrong.
pub(crate) fn read_operation(name: &str, arguments: Map<String, Value>, part: TeamPart) -> Result<RawAction, String> {
    let Some(spec) = ACTIONS.into_iter().find(|spec| spec.name == name && is_own_tool(name)) else {
        let open = ACTIONS.into_iter().filter(|spec| spec.is_for(part) && spec.is_operation());
        let open: Vec<&str> = open.map(|spec| spec.name).collect();
        return Err(format!("there is no tool `{}`: there are {}", quote_word(name), open.join(", ")));
    };
    let step = Step { fields: arguments, twice: None };
    (spec.read)(&step).map_err(|problem| format!("`{name}` cannot take these arguments: {problem}"))
}

/// What stands behind the thoughts that some models write first, between `<think>` and `</think>`.
fn behind_thoughts(text: &str) -> &str {
    let thinks = text.trim_start().strip_prefix("<think>");
    thinks.and_then(|thoughts| thoughts.split_once("</think>")).map_or(text, |(_, rest)| rest)
}

fn parse_object(text: &str) -> Option<Map<String, Value>> {
    serde_json::from_str(text).ok()
}

/// What was found in a text.
#[derive(Default)]
struct Found {
    /// The objects that name an action, each once.
    actions: Vec<Step>,
    /// Whether one of the texts is nothing but JSON.
    is_whole: bool,
    /// Whether there is an object that names none.
    has_other: bool,
    /// Why the first piece is no JSON.
    fault: Option<String>,
}

impl Found {
    fn scan_text(&mut self, text: &str) {
        for (position, piece) in find_candidates(text).into_iter().enumerate() {
            // An object within one that was never closed is a part of it, and no action of its own.
            if position > 0 && is_inner(text, piece) {
                continue;
            }
            match serde_json::from_str::<Json>(piece) {
                Ok(json) => {
                    self.is_whole |= position == 0;
                    self.add_steps(json);
                    if self.is_whole {
                        return;
                    }
                }
                Err(error) if piece.contains('{') => _ = self.fault.get_or_insert(error.to_string()),
                Err(_) => {}
            }
        }
    }

    fn add_steps(&mut self, json: Json) {
        let steps = match json {
            Json::Object(step) => vec![step],
            Json::List(items) => items.into_iter().filter_map(Step::from_value).collect(),
            Json::Other => return,
        };
        for step in steps {
            let step = step.unwrap_step();
            if !step.fields.contains_key("action") {
                self.has_other = true;
            } else if !self.actions.contains(&step) {
                self.actions.push(step);
            }
        }
    }

    fn describe_missing(self) -> String {
        match self.fault {
            _ if self.has_other => {
                format!("its JSON object has no field `action`: {EXACTLY_ONE}, such as {}", IDLE.json)
            }
            Some(fault) => format!("its JSON cannot be read ({fault}): {EXACTLY_ONE}"),
            None => format!("it holds no JSON object: {EXACTLY_ONE}, such as {}", IDLE.json),
        }
    }
}

/// Whether `piece`, a part of `text`, is the value of a field or the item of a list there.
fn is_inner(text: &str, piece: &str) -> bool {
    let start = (piece.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
    let before = text.get(..start).unwrap_or_default().trim_end();
    let key = before.strip_suffix(':').map(str::trim_end);
    key.is_some_and(|key| key.ends_with('"')) || before.ends_with('[')
}

/// A JSON value, as far as it can be an action.
enum Json {
    Object(Step),
    List(Vec<Value>),
    Other,
}

/// One object that may be an action.
#[derive(Debug, PartialEq)]
pub(super) struct Step {
    fields: Map<String, Value>,
    /// A field that stands in it twice.
    twice: Option<String>,
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Json, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Json;
            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("an action")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json, A::Error> {
                let mut step = Step { fields: Map::new(), twice: None };
                // `Value` would drop the first of two fields without a word.
                while let Some((key, value)) = map.next_entry::<String, Value>()? {
                    if step.fields.contains_key(&key) {
                        step.twice.get_or_insert(key.clone());
                    }
                    step.fields.insert(key, value);
                }
                Ok(Json::Object(step))
            }
            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut seq: A) -> Result<Json, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = seq.next_element()? {
                    items.push(item);
                }
                Ok(Json::List(items))
            }
            fn visit_bool<E>(self, _: bool) -> Result<Json, E> {
                Ok(Json::Other)
            }
            fn visit_i64<E>(self, _: i64) -> Result<Json, E> {
                Ok(Json::Other)
            }
            fn visit_u64<E>(self, _: u64) -> Result<Json, E> {
                Ok(Json::Other)
            }
            fn visit_f64<E>(self, _: f64) -> Result<Json, E> {
                Ok(Json::Other)
            }
            fn visit_str<E>(self, _: &str) -> Result<Json, E> {
                Ok(Json::Other)
            }
            fn visit_unit<E>(self) -> Result<Json, E> {
                Ok(Json::Other)
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

impl Step {
    fn from_value(value: Value) -> Option<Step> {
        match value {
            Value::Object(fields) => Some(Step { fields, twice: None }),
            _ => None,
        }
    }

    /// What stands in the field that steps held to a schema stand in.
    fn unwrap_step(mut self) -> Step {
        let is_alone = self.fields.len() == 1;
        match self.fields.get_mut(STEP) {
            Some(Value::Object(inner)) if is_alone => Step { fields: std::mem::take(inner), twice: self.twice },
            _ => self,
        }
    }

    fn to_action(&self, part: TeamPart) -> Result<RawAction, String> {
        if let Some(key) = &self.twice {
            return Err(format!("`{}` stands in it twice: {EXACTLY_ONE}", quote_word(key)));
        }
        let Some(Value::String(name)) = self.fields.get("action") else {
            return Err(format!("`action` is no text: it is one of {}", list_actions(part)));
        };
        let Some(spec) = ACTIONS.into_iter().find(|spec| spec.name == name) else {
            return Err(describe_unknown(name, part));
        };
        (spec.read)(self).map_err(|problem| format!("{problem}: return {}", spec.json))
    }

    /// The value of a field; one that is null counts as left out.
    fn field(&self, key: &str) -> Option<&Value> {
        self.fields.get(key).filter(|value| !value.is_null())
    }

    fn required_field(&self, key: &str) -> Result<&Value, String> {
        self.field(key).ok_or_else(|| format!("`{key}` is missing"))
    }

    /// A name: one line that says something.
    pub(super) fn name_field(&self, key: &str, limit: usize) -> Result<String, String> {
        let Value::String(text) = self.required_field(key)? else { return Err(format!("`{key}` is no text")) };
        let text = text.trim();
        if text.is_empty() {
            return Err(format!("`{key}` is empty"));
        }
        if text.chars().any(char::is_control) {
            return Err(format!("`{key}` holds a line break or another control character"));
        }
        check_length(key, text, limit)?;
        Ok(text.to_owned())
    }

    /// A text, or a list or object as one.
    pub(super) fn text_field(&self, key: &str, limit: usize) -> Result<String, String> {
        let text = match self.required_field(key)? {
            Value::String(text) => text.clone(),
            value @ (Value::Object(_) | Value::Array(_)) => check_nesting(key, value)?.to_string(),
            _ => return Err(format!("`{key}` is no text")),
        };
        if text.trim().is_empty() {
            return Err(format!("`{key}` is empty"));
        }
        check_length(key, &text, limit)?;
        Ok(text)
    }

    /// The parameters of a tool: an object, or the text of one.
    pub(super) fn params_field(&self) -> Result<Value, String> {
        let key = "tool_params";
        // Parameters under another name are not left out.
        let other = || self.fields.iter().find(|(name, value)| *name != key && value.is_object());
        let params = match self.field(key) {
            None => match other() {
                Some((name, _)) => {
                    return Err(format!("`{key}` is missing, and `{}` is no field of it", quote_word(name)));
                }
                None => Map::new(),
            },
            Some(Value::Object(fields)) => fields.clone(),
            Some(Value::String(text)) => parse_object(text).ok_or_else(|| format!("`{key}` is no JSON object"))?,
            Some(_) => return Err(format!("`{key}` is no JSON object")),
        };
        let params = Value::Object(params);
        check_nesting(key, &params)?;
        check_size(key, &params, PARAMS_BYTES)?;
        Ok(params)
    }

    /// A message: an object; of a bare text one is made.
    pub(super) fn payload_field(&self) -> Result<Value, String> {
        let key = "payload";
        let payload = match self.required_field(key)? {
            Value::String(text) => serde_json::json!({ "message": text }),
            value @ Value::Object(_) => check_nesting(key, value)?.clone(),
            _ => return Err(format!("`{key}` is no JSON object")),
        };
        check_size(key, &payload, PAYLOAD_BYTES)?;
        Ok(payload)
    }

    pub(super) fn message_type(&self) -> Result<MessageType, String> {
        let key = "message_type";
        let Value::String(name) = self.required_field(key)? else { return Err(format!("`{key}` is no text")) };
        let known = MessageType::ALL.into_iter().find(|kind| kind.as_str() == name);
        let names = MessageType::ALL.map(MessageType::as_str);
        known.ok_or_else(|| format!("`{key}` is `{}`, which is none of {}", quote_word(name), names.join(", ")))
    }

    /// Whether a field is there and not null.
    pub(super) fn has_value(&self, key: &str) -> bool {
        self.field(key).is_some()
    }

    /// The name of an item, an agent or a channel.
    pub(super) fn ident_field(&self, key: &str) -> Result<String, String> {
        let name = self.name_field(key, RECEIVER_CHARS)?;
        check_ident(&name).map_err(|why| format!("`{key}`: {why}"))?;
        Ok(name)
    }

    /// A list of names; one that is missing is empty.
    pub(super) fn idents_field(&self, key: &str, limit: usize) -> Result<Vec<String>, String> {
        if !self.has_value(key) {
            return Ok(Vec::new());
        }
        let list = self.list_field(key)?;
        if list.len() > limit {
            return Err(format!("`{key}` has {} names and may have {limit}", list.len()));
        }
        check_size(key, &Value::from(list), SKILLS_BYTES)?;
        list.iter()
            .map(|value| {
                let name = value.as_str().ok_or_else(|| format!("`{key}` holds something that is no text"))?;
                check_ident(name).map_err(|why| format!("`{key}`: {why}"))?;
                Ok(name.to_owned())
            })
            .collect()
    }

    /// A list of short texts; none where it is left out.
    pub(super) fn texts_field(&self, key: &str, limit: usize, chars: usize) -> Result<Vec<String>, String> {
        if !self.has_value(key) {
            return Ok(Vec::new());
        }
        let list = self.list_field(key)?;
        if list.len() > limit {
            return Err(format!("`{key}` has {} entries and may have {limit}", list.len()));
        }
        let read = |value: &Value| {
            let text = value.as_str().ok_or_else(|| format!("`{key}` holds something that is no text"))?;
            check_length(key, text, chars)?;
            Ok(text.to_owned())
        };
        list.iter().map(read).collect()
    }

    pub(super) fn list_field(&self, key: &str) -> Result<&[Value], String> {
        match self.required_field(key)? {
            value @ Value::Array(list) => {
                check_nesting(key, value)?;
                Ok(list)
            }
            _ => Err(format!("`{key}` is no list")),
        }
    }

    /// A number from 1.
    pub(super) fn number_field(&self, key: &str) -> Result<u32, String> {
        let number = self.required_field(key)?.as_u64().and_then(|number| u32::try_from(number).ok());
        number.filter(|number| *number > 0).ok_or_else(|| format!("`{key}` is no number from 1"))
    }

    pub(super) fn bool_field(&self, key: &str) -> Result<bool, String> {
        self.required_field(key)?.as_bool().ok_or_else(|| format!("`{key}` is neither true nor false"))
    }

    pub(super) fn skills_field(&self) -> Result<Vec<String>, String> {
        let key = "help_skills";
        let items = match self.field(key) {
            None => return Ok(Vec::new()),
            Some(Value::Array(items)) => items,
            Some(_) => return Err(format!("`{key}` is no list")),
        };
        if items.len() > SKILLS {
            return Err(format!("`{key}` has {} items and may have {SKILLS}", items.len()));
        }
        let mut skills = Vec::new();
        for item in items {
            let Value::String(skill) = item else { return Err(format!("`{key}` holds something that is no text")) };
            if skill.chars().any(char::is_control) {
                return Err(format!("`{key}` holds a control character"));
            }
            check_length(key, skill, TOOL_CHARS)?;
            if !skill.trim().is_empty() {
                skills.push(skill.trim().to_owned());
            }
        }
        check_size(key, &Value::from(skills.clone()), SKILLS_BYTES)?;
        Ok(skills)
    }
}

pub(super) fn check_length(key: &str, text: &str, limit: usize) -> Result<(), String> {
    let chars = text.chars().count();
    match chars > limit {
        true => Err(format!("`{key}` has {chars} characters and may have {limit}")),
        false => Ok(()),
    }
}

pub(super) fn check_size(key: &str, value: &Value, limit: usize) -> Result<(), String> {
    let bytes = value.to_string().len();
    match bytes > limit {
        true => Err(format!("`{key}` has {bytes} bytes and may have {limit}")),
        false => Ok(()),
    }
}

/// `value`, unless it nests too deep. What was read from JSON nests 128 deep at most, so this may recurse.
fn check_nesting<'a>(key: &str, value: &'a Value) -> Result<&'a Value, String> {
    fn is_deep(value: &Value, left: usize) -> bool {
        match value {
            Value::Array(items) => left == 0 || items.iter().any(|item| is_deep(item, left - 1)),
            Value::Object(fields) => left == 0 || fields.values().any(|item| is_deep(item, left - 1)),
            _ => false,
        }
    }
    match is_deep(value, NESTING) {
        true => Err(format!("`{key}` nests deeper than {NESTING}")),
        false => Ok(value),
    }
}

fn describe_unknown(name: &str, part: TeamPart) -> String {
    let known = ACTIONS.into_iter().filter(|spec| spec.is_for(part));
    let close = known.map(|spec| (strsim::damerau_levenshtein(spec.name, &name.to_lowercase()), spec));
    let close = match name.len() > QUOTED {
        true => None,
        false => close.min_by_key(|(distance, _)| *distance).filter(|(distance, spec)| distance * 3 <= spec.name.len()),
    };
    let quoted = quote_word(name);
    match close {
        Some((_, spec)) => format!("there is no action `{quoted}`: did you mean {}", spec.json),
        None => {
            format!(
                "there is no action `{quoted}`: it is one of {}; a tool is called by {}",
                list_actions(part),
                TOOL_CALL.json
            )
        }
    }
}

fn list_actions(part: TeamPart) -> String {
    let open = ACTIONS.iter().filter(|spec| spec.is_for(part)).map(|spec| spec.name);
    open.collect::<Vec<_>>().join(", ")
}

/// A word of the model's, as it can stand in a sentence.
pub(super) fn quote_word(text: &str) -> String {
    inline_text(text, QUOTED).replace('`', "'")
}
