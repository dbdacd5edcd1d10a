//! The arguments of built-in tools, as models write them: read leniently where the meaning is clear, refused with a
//! sentence that says what to write where it is not.

use serde_json::{Map, Value};

use crate::types::visible_text;

/// The longest text that is taken as JSON in disguise, in bytes.
const DISGUISED: usize = 2 * 1024 * 1024;

/// The arguments as an object: some models write the object as a text, and none at all where nothing is needed.
pub(super) fn object(arguments: &Value) -> Result<Map<String, Value>, String> {
    match arguments {
        Value::Object(object) => Ok(object.clone()),
        Value::Null => Ok(Map::new()),
        Value::String(text) if text.trim().is_empty() => Ok(Map::new()),
        Value::String(text) if text.len() <= DISGUISED => match serde_json::from_str(text) {
            Ok(Value::Object(object)) => Ok(object),
            _ => Err("the arguments must be one JSON object".to_owned()),
        },
        _ => Err("the arguments must be one JSON object".to_owned()),
    }
}

/// The arguments of one call.
pub(super) struct Arguments {
    tool: &'static str,
    given: Map<String, Value>,
    known: Vec<&'static str>,
}

impl Arguments {
    pub(super) fn new(tool: &'static str, given: Map<String, Value>) -> Arguments {
        Arguments { tool, given, known: Vec::new() }
    }

    /// A text that must be there.
    pub(super) fn text(&mut self, name: &'static str) -> Result<String, String> {
        let tool = self.tool;
        self.optional_text(name)?.ok_or_else(|| format!("`{tool}` needs `{name}`, a text"))
    }

    /// A text that may be left out.
    pub(super) fn optional_text(&mut self, name: &'static str) -> Result<Option<String>, String> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(self.wrong(name, "a text", &other)),
        }
    }

    /// A whole number within bounds, or the default.
    pub(super) fn number(
        &mut self,
        name: &'static str,
        (least, most): (u64, u64),
        default: u64,
    ) -> Result<u64, String> {
        let Some(value) = self.take(name) else { return Ok(default) };
        let whole = value.as_u64().or_else(|| {
            let number = value.as_f64().filter(|number| number.fract() == 0.0 && (0.0..1e15).contains(number))?;
            Some(number as u64)
        });
        let whole = whole.or_else(|| value.as_str()?.trim().parse().ok());
        whole
            .filter(|number| (least..=most).contains(number))
            .ok_or_else(|| self.wrong(name, &format!("a whole number from {least} to {most}"), &value))
    }

    /// `true` or `false`; false when left out.
    pub(super) fn flag(&mut self, name: &'static str) -> Result<bool, String> {
        match self.take(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(flag),
            Some(other) => Err(self.wrong(name, "true or false", &other)),
        }
    }

    /// Nothing else may be there.
    pub(super) fn finish(self) -> Result<(), String> {
        let Some(name) = self.given.keys().next() else { return Ok(()) };
        let known: Vec<String> = self.known.iter().map(|name| format!("`{name}`")).collect();
        let name = visible_text::short(name);
        Err(format!("`{}` has no parameter `{name}`; it takes {}", self.tool, known.join(", ")))
    }

    fn take(&mut self, name: &'static str) -> Option<Value> {
        self.known.push(name);
        self.given.remove(name).filter(|value| !value.is_null())
    }

    fn wrong(&self, name: &str, wanted: &str, found: &Value) -> String {
        let found = match found {
            Value::Object(_) => "an object".to_owned(),
            Value::Array(_) => "a list".to_owned(),
            other => format!("`{}`", visible_text::short(&other.to_string())),
        };
        format!("`{name}` of `{}` must be {wanted}, not {found}", self.tool)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn arguments(value: Value) -> Arguments {
        Arguments::new("file_read", object(&value).unwrap())
    }

    #[test]
    fn what_is_meant_is_understood() {
        let mut given = arguments(json!("{\"path\": \"a\", \"line\": 3.0, \"lines\": \"7\", \"x\": null}"));
        assert_eq!(given.text("path"), Ok("a".to_owned()));
        assert_eq!(given.number("line", (1, 9), 1), Ok(3));
        assert_eq!(given.number("lines", (1, 9), 1), Ok(7));
        assert_eq!(given.number("more", (1, 9), 4), Ok(4));
        assert_eq!(given.flag("x"), Ok(false));
        assert_eq!(given.finish(), Ok(()));
    }

    #[test]
    fn what_is_wrong_is_said_so_that_it_can_be_mended() {
        assert_eq!(arguments(json!({})).text("path").unwrap_err(), "`file_read` needs `path`, a text");
        assert_eq!(
            arguments(json!({"path": ["a"]})).text("path").unwrap_err(),
            "`path` of `file_read` must be a text, not a list"
        );
        assert_eq!(
            arguments(json!({"line": -1})).number("line", (1, 9), 1).unwrap_err(),
            "`line` of `file_read` must be a whole number from 1 to 9, not `-1`"
        );
        let mut given = arguments(json!({"path": "a", "file": "b"}));
        given.text("path").unwrap();
        assert_eq!(given.finish().unwrap_err(), "`file_read` has no parameter `file`; it takes `path`");
        for wrong in [json!([1]), json!("nonsense"), json!(7)] {
            assert_eq!(object(&wrong).unwrap_err(), "the arguments must be one JSON object");
        }
    }
}
