//! The calls of an answer of OpenAI chat, gathered from the pieces that they come in.
//!
//! In: pieces, of which the first of a call has its name and the others belong to it by an id or a position. Out: whole
//! calls. Invariant: neither their number nor their length goes beyond what one answer may hold.

use genai::chat::ToolCall;
use serde_json::Value;

use crate::types::chat::{Call, Fault};

/// The calls of one answer at most.
const MOST: usize = 128;

/// The arguments of all calls of one answer at most, in bytes.
const LONGEST: usize = 4 << 20;

/// The calls so far.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    calls: Vec<Piece>,
    bytes: usize,
}

#[derive(Debug)]
struct Piece {
    id: String,
    name: String,
    arguments: String,
}

impl Gathered {
    /// Adds a piece of a call.
    ///
    /// # Errors
    /// There are too many, or they are too long.
    pub(super) fn add(&mut self, piece: ToolCall) -> Result<(), Fault> {
        let arguments = match &piece.fn_arguments {
            Value::String(text) => text.as_str(),
            _ => "",
        };
        self.bytes += arguments.len() + piece.fn_name.len() + piece.call_id.len();
        if self.bytes > LONGEST {
            return Err(Fault::permanent("the calls of the answer are longer than 4 MiB"));
        }
        match self.find_call(&piece) {
            Some(at) => self.calls[at].arguments.push_str(arguments),
            None if piece.fn_name.is_empty() => {}
            None if self.calls.len() == MOST => {
                return Err(Fault::permanent(format!("the answer calls more than {MOST} tools at once")));
            }
            None => {
                let arguments = arguments.to_owned();
                self.calls.push(Piece { id: piece.call_id, name: piece.fn_name, arguments });
            }
        }
        Ok(())
    }

    /// The call that a piece belongs to: that of its id, of its position, or the last one.
    fn find_call(&self, piece: &ToolCall) -> Option<usize> {
        let known = self.calls.iter().position(|call| call.id == piece.call_id);
        if known.is_some() {
            return known;
        }
        if !piece.fn_name.is_empty() {
            return None;
        }
        // A piece without an id is told by its position in genai's name for it.
        let at = piece.call_id.strip_prefix("call_").and_then(|at| at.parse::<usize>().ok());
        at.filter(|at| *at < self.calls.len()).or(self.calls.len().checked_sub(1))
    }

    /// The whole calls.
    pub(super) fn into_calls(self) -> Vec<Call> {
        let calls = self.calls.into_iter();
        calls
            .map(|call| Call {
                id: call.id,
                tool: call.name,
                arguments: parse_arguments(Value::String(call.arguments)),
            })
            .collect()
    }
}

/// Arguments as a value: what a model wrote as text is read, and stays a text where it is no JSON.
pub(super) fn parse_arguments(written: Value) -> Value {
    match written {
        Value::String(text) if text.trim().is_empty() => Value::Object(serde_json::Map::new()),
        Value::String(text) => serde_json::from_str(&text).unwrap_or(Value::String(text)),
        Value::Null => Value::Object(serde_json::Map::new()),
        value => value,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn piece(id: &str, name: &str, arguments: &str) -> ToolCall {
        ToolCall {
            call_id: id.to_owned(),
            fn_name: name.to_owned(),
            fn_arguments: Value::String(arguments.to_owned()),
            thought_signatures: None,
        }
    }

    fn gathered(pieces: &[(&str, &str, &str)]) -> Vec<(String, String, Value)> {
        let mut gathered = Gathered::default();
        for (id, name, arguments) in pieces {
            gathered.add(piece(id, name, arguments)).expect("they are few and short");
        }
        gathered.into_calls().into_iter().map(|call| (call.id, call.tool, call.arguments)).collect()
    }

    #[test]
    fn pieces_find_their_call_by_id_by_position_or_as_the_last() {
        let calls = gathered(&[
            ("a", "read", ""),
            ("call_0", "", r#"{"path":"#),
            ("b", "list", ""),
            ("call_0", "", r#""x"}"#),
            ("b", "list", "{}"),
            ("call_7", "", " "),
        ]);
        let expected = [("a", "read", json!({ "path": "x" })), ("b", "list", json!({}))];
        assert_eq!(calls, expected.map(|(id, name, arguments)| (id.to_owned(), name.to_owned(), arguments)));
    }

    #[test]
    fn arguments_that_are_no_json_stay_what_the_model_wrote() {
        assert_eq!(gathered(&[("a", "read", "{oops")])[0].2, json!("{oops"));
        assert_eq!(gathered(&[("a", "read", "")])[0].2, json!({}));
        assert_eq!(gathered(&[("call_3", "", "lost")]), []);
    }

    #[test]
    fn an_answer_can_neither_call_without_end_nor_at_any_length() {
        let mut many = Gathered::default();
        let added = (0..=MOST).try_for_each(|number| many.add(piece(&number.to_string(), "read", "{}")));
        assert!(!added.expect_err("they are too many").transient);
        let mut long = Gathered::default();
        long.add(piece("a", "write", "")).expect("it is short");
        let kilobyte = "x".repeat(1 << 10);
        let added = (0..LONGEST >> 10).try_for_each(|_| long.add(piece("a", "", &kilobyte)));
        assert!(!added.expect_err("they are too long").transient);
    }
}
