//! `pi --mode json`: messages with their tokens and stop reasons. It exits with 0 whatever happened; only the stop
//! reason of the last message tells.

use super::json::Json;
use super::turn::{Sink, price};
use crate::types::usage::Usage;

#[derive(Debug, Default)]
pub(super) struct Pi {
    /// How the last message of the agent ended.
    stop: Option<String>,
    /// What it said about that.
    error: Option<String>,
}

impl Pi {
    pub(super) fn read(&mut self, event: Json<'_>, sink: &mut Sink<'_>) {
        let kind = event.get("type");
        if kind.is("message_end") && event.get("message").get("role").is("assistant") {
            self.message(event.get("message"), sink);
        } else if kind.is("tool_execution_start") {
            let name = event.get("toolName").text().unwrap_or_default();
            sink.tool(event.get("toolCallId"), &name, event.get("args").written());
        } else if kind.is("tool_execution_end") {
            let failed = event.get("isError").is_true();
            sink.came(event.get("toolCallId"), failed, &event.get("result").get("content").words());
        } else if ["agent_start", "auto_retry_start", "compaction_start"].iter().any(|start| kind.is(start)) {
            // It starts again by itself after an error that may pass, once it has waited, and after compacting.
            sink.working();
        } else if kind.is("agent_end") {
            match self.stop.take().as_deref() {
                Some("error" | "aborted") => sink.failed(self.error.take()),
                Some("length") => sink.cut_off("length"),
                Some(_) => sink.done(),
                None => sink.failed(Some("the agent ended without a message".to_owned())),
            }
        } else if kind.is("session") {
            sink.session(event.get("id").text());
        }
    }

    fn message(&mut self, message: Json<'_>, sink: &mut Sink<'_>) {
        let mut text = String::new();
        message.get("content").each(&mut |block| {
            if block.get("type").is("text") {
                text.push_str(&block.get("text").text().unwrap_or_default());
            }
        });
        sink.said(&text);
        sink.answer(text);
        sink.usage_more(usage(message.get("usage")));
        self.stop = message.get("stopReason").text();
        self.error = message.get("errorMessage").text();
        if self.stop.as_deref() == Some("error") {
            sink.complaint(self.error.clone());
        }
    }
}

fn usage(usage: Json<'_>) -> Usage {
    let count = |key| usage.get(key).count().unwrap_or_default();
    let (cache_read, cache_write) = (count("cacheRead"), count("cacheWrite"));
    Usage {
        input: count("input").saturating_add(cache_read).saturating_add(cache_write),
        output: count("output"),
        cache_read,
        cache_write,
        cost: price(usage.get("cost").get("total").number()),
        at_least: false,
    }
}
