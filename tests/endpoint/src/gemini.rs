//! Gemini: a turn as the frames of a stream.

use serde_json::{Value, json};

use crate::answer::Turn;

pub(crate) fn frames(turn: &Turn) -> Vec<String> {
    let texts = turn.pieces().into_iter().map(|piece| json!({ "text": piece }));
    let calls = turn.calls.iter().map(|call| json!({ "functionCall": { "name": call.name, "args": call.arguments } }));
    let mut frames: Vec<String> = texts.chain(calls).map(|part| frame(turn, vec![part], None)).collect();
    frames.push(frame(turn, Vec::new(), Some(turn.reason("STOP", "STOP", "MAX_TOKENS"))));
    frames
}

fn frame(turn: &Turn, parts: Vec<Value>, finish: Option<&str>) -> String {
    let mut candidate = json!({ "index": 0, "content": { "role": "model", "parts": parts } });
    if let Some(finish) = finish {
        candidate["finishReason"] = json!(finish);
    }
    let usage = json!({
        "promptTokenCount": turn.usage.input,
        "cachedContentTokenCount": turn.usage.cached,
        "candidatesTokenCount": turn.usage.output,
        "totalTokenCount": turn.usage.input + turn.usage.output,
    });
    let body = json!({ "candidates": [candidate], "usageMetadata": usage, "modelVersion": turn.model });
    format!("data: {body}\r\n\r\n")
}
