//! `gemini --output-format stream-json`: messages in pieces, tools, and one `result` with the tokens.

use super::json::Json;
use super::turn::Sink;
use crate::types::usage::Usage;

#[derive(Debug, Default)]
pub(super) struct Gemini {
    /// The message whose pieces come in: whether its last piece ended a line. None between messages.
    speaking: Option<bool>,
}

impl Gemini {
    pub(super) fn read(&mut self, event: Json<'_>, sink: &mut Sink<'_>) {
        let kind = event.get("type");
        if kind.is("message") && event.get("role").is("assistant") {
            self.message(event, sink);
            return;
        }
        if self.speaking.take() == Some(false) {
            sink.piece("\n");
        }
        if kind.is("init") {
            sink.session(event.get("session_id").text());
        } else if kind.is("tool_use") {
            sink.working();
            let name = event.get("tool_name").text().unwrap_or_default();
            sink.tool(event.get("tool_id"), &name, event.get("parameters").written());
        } else if kind.is("tool_result") {
            let failed = !event.get("status").is("success");
            let (output, error) = (event.get("output").words(), event.get("error").get("message").words());
            sink.came(event.get("tool_id"), failed, if failed && !error.is_empty() { &error } else { &output });
        } else if kind.is("error") {
            sink.complaint(event.get("message").text());
        } else if kind.is("result") {
            if let Some(usage) = usage(event.get("stats")) {
                sink.usage(usage);
            }
            if event.get("status").is("success") {
                sink.done();
            } else {
                sink.failed(event.get("error").get("message").text());
            }
        }
    }

    fn message(&mut self, event: Json<'_>, sink: &mut Sink<'_>) {
        sink.working();
        let text = event.get("content").text().unwrap_or_default();
        if text.is_empty() {
            return;
        }
        sink.piece(&text);
        let first = self.speaking.replace(text.ends_with('\n')).is_none();
        if !first && event.get("delta").is_true() {
            sink.answer_more(&text);
        } else {
            sink.answer(text);
        }
    }
}

fn usage(stats: Json<'_>) -> Option<Usage> {
    if stats.is_null() {
        return None;
    }
    let count = |key| stats.get(key).count().unwrap_or_default();
    let input = count("input_tokens");
    // Thoughts are in the total only.
    let output = count("total_tokens").saturating_sub(input).max(count("output_tokens"));
    Some(Usage { input, output, cache_read: count("cached"), cache_write: 0, cost: None, at_least: false })
}
