//! `copilot --output-format json`: messages, tools that start and complete, and one `result` with an exit code. It tells of
//! no tokens.

use std::collections::BTreeMap;

use super::json::Json;
use super::turn::Sink;

/// Tools that are under way at once; copilot has a handful.
const OPEN_LIMIT: usize = 1024;

#[derive(Debug, Default)]
pub(super) struct Copilot {
    /// The names of tools by their uses, as the end of a use does not tell its tool.
    open: BTreeMap<String, String>,
    /// What went wrong, as the result has a code and no words.
    error: Option<String>,
}

impl Copilot {
    pub(super) fn read(&mut self, event: Json<'_>, sink: &mut Sink<'_>) {
        let (kind, data) = (event.get("type"), event.get("data"));
        if kind.is("assistant.turn_start") {
            sink.working();
        } else if kind.is("assistant.message") {
            let text = data.get("content").text().unwrap_or_default();
            sink.said(&text);
            sink.answer(text);
        } else if kind.is("tool.execution_start") {
            let name = data.get("toolName").text().unwrap_or_default();
            sink.tool(data.get("toolCallId"), &name, data.get("arguments").written());
            if self.open.len() >= OPEN_LIMIT {
                self.open.clear();
            }
            self.open.insert(data.get("toolCallId").text().unwrap_or_default(), name);
        } else if kind.is("tool.execution_complete") {
            let (id, error) = (data.get("toolCallId"), data.get("error"));
            let (output, message) = (data.get("result").get("content").words(), error.get("message").words());
            sink.came(id, !data.get("success").is_true(), if message.is_empty() { &output } else { &message });
            let name = self.open.remove(&id.text().unwrap_or_default()).unwrap_or_default();
            if error.get("code").is("denied") {
                sink.denied(id, &name);
            }
        } else if kind.is("session.error") {
            self.error = data.get("message").text();
            sink.complaint(data.get("message").text());
        } else if kind.is("result") {
            sink.session(event.get("sessionId").text());
            if event.get("exitCode").number() == Some(0.0) {
                sink.done();
            } else {
                sink.failed(self.error.take());
            }
        }
    }
}
