//! `opencode run --format json`: steps, each a message with its parts and tokens.

use super::json::Json;
use super::turn::{Sink, price};
use crate::types::usage::Usage;

#[derive(Debug, Default)]
pub(super) struct Opencode {
    /// The message whose text is the answer so far.
    message: Option<String>,
}

impl Opencode {
    pub(super) fn read(&mut self, event: Json<'_>, sink: &mut Sink<'_>) {
        sink.session(event.get("sessionID").text());
        let (kind, part) = (event.get("type"), event.get("part"));
        if kind.is("step_start") {
            sink.working();
        } else if kind.is("text") {
            self.text(part, sink);
        } else if kind.is("tool_use") {
            let state = part.get("state");
            let name = part.get("tool").text().unwrap_or_default();
            sink.tool(part.get("callID"), &name, state.get("input").written());
            // It tells of a use once that is over.
            let failed = state.get("status").is("error");
            let text = state.get(if failed { "error" } else { "output" }).words();
            if failed || state.get("status").is("completed") {
                sink.came(part.get("callID"), failed, &text);
            }
        } else if kind.is("step_finish") {
            sink.usage_more(usage(part));
            finish(part.get("reason"), sink);
        } else if kind.is("error") {
            let error = event.get("error");
            let message = error.get("data").get("message").text();
            sink.failed(message.or_else(|| error.get("message").text()).or_else(|| error.get("name").text()));
        }
    }

    /// A message may have several texts, with reasoning or tools between them.
    fn text(&mut self, part: Json<'_>, sink: &mut Sink<'_>) {
        let (message, text) = (part.get("messageID").text(), part.get("text").text().unwrap_or_default());
        if text.is_empty() {
            return;
        }
        sink.said(&text);
        if message.is_some() && message == self.message {
            sink.answer_more("\n");
            sink.answer_more(&text);
        } else {
            self.message = message;
            sink.answer(text);
        }
    }
}

fn finish(reason: Json<'_>, sink: &mut Sink<'_>) {
    match reason.text().as_deref() {
        // After these the agent goes on with another step.
        Some("tool-calls" | "unknown") | None => {}
        Some(reason @ ("length" | "content-filter")) => sink.cut_off(reason),
        Some("error") => sink.failed(Some("the model's server broke the answer off".to_owned())),
        Some(_) => sink.done(),
    }
}

fn usage(part: Json<'_>) -> Usage {
    let tokens = part.get("tokens");
    let count = |key| tokens.get(key).count().unwrap_or_default();
    let cached = |key| tokens.get("cache").get(key).count().unwrap_or_default();
    let (cache_read, cache_write) = (cached("read"), cached("write"));
    let input = count("input").saturating_add(cache_read).saturating_add(cache_write);
    // The reasoning is written, too; whether the output holds it differs by version, the total tells.
    let output = match tokens.get("total").count() {
        Some(total) => total.saturating_sub(input).max(count("output")),
        None => count("output").saturating_add(count("reasoning")),
    };
    Usage { input, output, cache_read, cache_write, cost: price(part.get("cost").number()), at_least: false }
}
