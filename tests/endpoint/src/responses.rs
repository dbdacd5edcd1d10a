//! OpenAI responses: a turn as one JSON body, or as the events of a stream.

use serde_json::{Value, json};

use crate::Request;
use crate::answer::Turn;

pub(crate) fn whole(request: &Request, turn: &Turn) -> Value {
    let mut items = Vec::new();
    if speaks(turn) {
        items.push(message(turn));
    }
    items.extend((0..turn.calls.len()).map(|at| call(request, turn, at)));
    response(turn, turn.reason("completed", "completed", "incomplete"), items)
}

pub(crate) fn frames(request: &Request, turn: &Turn) -> Vec<String> {
    let mut stream = Stream::default();
    let started = response(turn, "in_progress", Vec::new());
    stream.push("response.created", json!({ "response": started }));
    stream.push("response.in_progress", json!({ "response": started }));
    if speaks(turn) {
        stream.message(turn);
    }
    for at in 0..turn.calls.len() {
        stream.call(&call(request, turn, at));
    }
    let done = whole(request, turn);
    stream.push(
        turn.reason("response.completed", "response.completed", "response.incomplete"),
        json!({ "response": done }),
    );
    stream.frames
}

#[derive(Default)]
struct Stream {
    frames: Vec<String>,
    /// The index of the next output item.
    item: usize,
}

impl Stream {
    fn message(&mut self, turn: &Turn) {
        let (id, item) = (message_id(turn), self.item);
        let mut opened = message(turn);
        opened["status"] = json!("in_progress");
        opened["content"] = json!([]);
        self.push("response.output_item.added", json!({ "output_index": item, "item": opened }));
        let at = |mut data: Value| {
            data["item_id"] = json!(id);
            data["output_index"] = json!(item);
            data["content_index"] = json!(0);
            data
        };
        self.push("response.content_part.added", at(json!({ "part": part("") })));
        for piece in turn.pieces() {
            self.push("response.output_text.delta", at(json!({ "delta": piece })));
        }
        self.push("response.output_text.done", at(json!({ "text": turn.text })));
        self.push("response.content_part.done", at(json!({ "part": part(&turn.text) })));
        self.close(message(turn));
    }

    fn call(&mut self, call: &Value) {
        let (field, event) = match call["type"].as_str() {
            Some("custom_tool_call") => ("input", "response.custom_tool_call_input"),
            _ => ("arguments", "response.function_call_arguments"),
        };
        let mut opened = call.clone();
        opened["status"] = json!("in_progress");
        opened[field] = json!("");
        self.push("response.output_item.added", json!({ "output_index": self.item, "item": opened }));
        for (step, key) in [("delta", "delta"), ("done", field)] {
            let mut data = json!({ "item_id": call["id"], "output_index": self.item });
            data[key] = call[field].clone();
            self.push(&format!("{event}.{step}"), data);
        }
        self.close(call.clone());
    }

    fn close(&mut self, item: Value) {
        self.push("response.output_item.done", json!({ "output_index": self.item, "item": item }));
        self.item += 1;
    }

    fn push(&mut self, name: &str, mut data: Value) {
        data["type"] = json!(name);
        data["sequence_number"] = json!(self.frames.len());
        self.frames.push(format!("event: {name}\ndata: {data}\n\n"));
    }
}

fn response(turn: &Turn, status: &str, output: Vec<Value>) -> Value {
    let usage = turn.usage;
    let mut body = json!({
        "id": format!("resp_{}", turn.number),
        "object": "response",
        "created_at": 0,
        "status": status,
        "model": turn.model,
        "output": output,
        "parallel_tool_calls": true,
        "tools": [],
    });
    if status != "in_progress" {
        body["usage"] = json!({
            "input_tokens": usage.input,
            "input_tokens_details": { "cached_tokens": usage.cached },
            "output_tokens": usage.output,
            "output_tokens_details": { "reasoning_tokens": 0 },
            "total_tokens": usage.input + usage.output,
        });
    }
    body
}

fn message(turn: &Turn) -> Value {
    json!({
        "type": "message",
        "id": message_id(turn),
        "status": "completed",
        "role": "assistant",
        "content": [part(&turn.text)],
    })
}

/// A call in the form in which the client offered the tool: a function, perhaps in a namespace, or
/// a custom tool that takes free text.
fn call(request: &Request, turn: &Turn, at: usize) -> Value {
    let call = &turn.calls[at];
    let mut item = json!({
        "type": "function_call",
        "id": format!("fc_{}_{at}", turn.number),
        "call_id": turn.call_id(at),
        "name": call.name,
        "status": "completed",
    });
    let named = |tool: &Value| tool["name"] == call.name.as_str();
    let tools = request.body["tools"].as_array();
    for tool in tools.into_iter().flatten() {
        if tool["type"] == "custom" && named(tool) {
            item["type"] = json!("custom_tool_call");
            item["input"] = json!(call.arguments.as_str().unwrap_or_default());
            return item;
        }
        if tool["tools"].as_array().is_some_and(|tools| tools.iter().any(named)) {
            item["namespace"] = tool["name"].clone();
        }
    }
    item["arguments"] = json!(call.arguments.to_string());
    item
}

/// A turn that only calls tools has no message; one that does nothing says the empty text.
fn speaks(turn: &Turn) -> bool {
    !turn.text.is_empty() || turn.calls.is_empty()
}

fn message_id(turn: &Turn) -> String {
    format!("msg_{}", turn.number)
}

fn part(text: &str) -> Value {
    json!({ "type": "output_text", "text": text, "annotations": [] })
}
