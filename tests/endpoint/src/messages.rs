//! Anthropic messages: a turn as one JSON body, or as the events of a stream.

use serde_json::{Value, json};

use crate::answer::Turn;

pub(crate) fn whole(turn: &Turn) -> Value {
    let mut content = Vec::new();
    if !turn.text.is_empty() {
        content.push(json!({ "type": "text", "text": turn.text }));
    }
    for (at, call) in turn.calls.iter().enumerate() {
        content.push(tool_use(turn, at, &call.arguments));
    }
    message(turn, content, Some(reason(turn)), turn.usage.output)
}

pub(crate) fn frames(turn: &Turn) -> Vec<String> {
    let mut stream = Stream::default();
    let opened = message(turn, Vec::new(), None, 1);
    stream.push("message_start", json!({ "message": opened }));
    stream.push("ping", json!({}));
    if !turn.text.is_empty() {
        let deltas = turn.pieces().into_iter();
        let deltas = deltas.map(|piece| json!({ "type": "text_delta", "text": piece }));
        stream.block(&json!({ "type": "text", "text": "" }), deltas);
    }
    for (at, call) in turn.calls.iter().enumerate() {
        let json = call.arguments.to_string();
        let delta = json!({ "type": "input_json_delta", "partial_json": json });
        stream.block(&tool_use(turn, at, &json!({})), [delta].into_iter());
    }
    let delta = json!({ "stop_reason": reason(turn), "stop_sequence": null });
    let usage = json!({ "output_tokens": turn.usage.output });
    stream.push("message_delta", json!({ "delta": delta, "usage": usage }));
    stream.push("message_stop", json!({}));
    stream.frames
}

#[derive(Default)]
struct Stream {
    frames: Vec<String>,
    /// The index of the next content block.
    block: usize,
}

impl Stream {
    fn block(&mut self, opened: &Value, deltas: impl Iterator<Item = Value>) {
        let index = self.block;
        self.push("content_block_start", json!({ "index": index, "content_block": opened }));
        for delta in deltas {
            self.push("content_block_delta", json!({ "index": index, "delta": delta }));
        }
        self.push("content_block_stop", json!({ "index": index }));
        self.block += 1;
    }

    fn push(&mut self, name: &str, mut data: Value) {
        data["type"] = json!(name);
        self.frames.push(format!("event: {name}\ndata: {data}\n\n"));
    }
}

fn message(turn: &Turn, content: Vec<Value>, reason: Option<&str>, output: u64) -> Value {
    json!({
        "id": format!("msg_{}", turn.number),
        "type": "message",
        "role": "assistant",
        "model": turn.model,
        "content": content,
        "stop_reason": reason,
        "stop_sequence": null,
        // This protocol counts the cached tokens apart from the others.
        "usage": {
            "input_tokens": turn.usage.input.saturating_sub(turn.usage.cached + turn.usage.written),
            "cache_read_input_tokens": turn.usage.cached,
            "cache_creation_input_tokens": turn.usage.written,
            "output_tokens": output,
        },
    })
}

fn tool_use(turn: &Turn, at: usize, input: &Value) -> Value {
    let name = &turn.calls[at].name;
    json!({ "type": "tool_use", "id": turn.call_id(at), "name": name, "input": input })
}

fn reason(turn: &Turn) -> &'static str {
    turn.reason("end_turn", "tool_use", "max_tokens")
}
