//! OpenAI chat completions: a turn as one JSON body, or as the frames of a stream.

use serde_json::{Value, json};

use crate::Request;
use crate::answer::{Turn, Usage};

pub(crate) fn whole(turn: &Turn) -> Value {
    let mut message = json!({ "role": "assistant", "content": content(turn) });
    if !turn.calls.is_empty() {
        message["tool_calls"] = (0..turn.calls.len()).map(|at| call(turn, at)).collect();
    }
    let mut body = envelope(turn, "chat.completion");
    body["choices"] = json!([{ "index": 0, "message": message, "finish_reason": reason(turn) }]);
    body["usage"] = usage(turn.usage);
    body
}

pub(crate) fn frames(request: &Request, turn: &Turn) -> Vec<String> {
    let mut frames = vec![frame(turn, &json!({ "role": "assistant", "content": "" }), None)];
    for piece in turn.pieces() {
        frames.push(frame(turn, &json!({ "content": piece }), None));
    }
    for at in 0..turn.calls.len() {
        // First the call without arguments, then the arguments: what real servers do.
        let mut opened = call(turn, at);
        let arguments = std::mem::take(&mut opened["function"]["arguments"]);
        opened["index"] = json!(at);
        opened["function"]["arguments"] = json!("");
        frames.push(frame(turn, &json!({ "tool_calls": [opened] }), None));
        let delta = json!({ "index": at, "function": { "arguments": arguments } });
        frames.push(frame(turn, &json!({ "tool_calls": [delta] }), None));
    }
    frames.push(frame(turn, &json!({}), Some(reason(turn))));
    if request.body["stream_options"]["include_usage"] == true {
        let mut last = envelope(turn, "chat.completion.chunk");
        last["choices"] = json!([]);
        last["usage"] = usage(turn.usage);
        frames.push(format!("data: {last}\n\n"));
    }
    frames.push("data: [DONE]\n\n".to_owned());
    frames
}

fn frame(turn: &Turn, delta: &Value, finish: Option<&str>) -> String {
    let mut body = envelope(turn, "chat.completion.chunk");
    body["choices"] = json!([{ "index": 0, "delta": delta, "finish_reason": finish }]);
    format!("data: {body}\n\n")
}

fn envelope(turn: &Turn, object: &str) -> Value {
    json!({
        "id": format!("chatcmpl-{}", turn.number),
        "object": object,
        "created": 0,
        "model": turn.model,
    })
}

fn content(turn: &Turn) -> Value {
    match turn.text.as_str() {
        "" if !turn.calls.is_empty() => Value::Null,
        text => json!(text),
    }
}

fn call(turn: &Turn, at: usize) -> Value {
    let call = &turn.calls[at];
    json!({
        "id": turn.call_id(at),
        "type": "function",
        "function": { "name": call.name, "arguments": call.arguments.to_string() },
    })
}

fn reason(turn: &Turn) -> &'static str {
    turn.reason("stop", "tool_calls", "length")
}

fn usage(usage: Usage) -> Value {
    json!({
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": { "cached_tokens": usage.cached },
    })
}
