//! `codex exec --json`: items that start and complete, and a turn that is completed or failed.
//!
//! Tokens are counted over the whole thread: a resumed one starts where the last turn ended.

use std::collections::BTreeSet;

use super::json::Json;
use super::turn::Sink;
use crate::types::usage::Usage;

/// Items that are open at once; codex has a handful.
const OPEN_LIMIT: usize = 1024;

#[derive(Debug, Default)]
pub(super) struct Codex {
    /// What the thread had used before.
    pub(super) earlier: Usage,
    /// Items whose start was told, so that their end is no second use of the tool.
    open: BTreeSet<String>,
}

impl Codex {
    pub(super) fn read(&mut self, event: Json<'_>, sink: &mut Sink<'_>) {
        let kind = event.get("type");
        if kind.is("item.completed") {
            self.item(event.get("item"), true, sink);
        } else if kind.is("item.started") {
            self.item(event.get("item"), false, sink);
        } else if kind.is("turn.started") {
            sink.working();
        } else if kind.is("turn.completed") {
            if let Some(usage) = self.usage(event.get("usage")) {
                sink.usage(usage);
            }
            sink.done();
        } else if kind.is("turn.failed") {
            sink.failed(event.get("error").get("message").text());
        } else if kind.is("thread.started") {
            sink.session(event.get("thread_id").text());
        } else if kind.is("error") {
            // Also said at each of its five attempts to reconnect: only `turn.failed` is the end.
            sink.complaint(event.get("message").text());
        }
    }

    fn item(&mut self, item: Json<'_>, completed: bool, sink: &mut Sink<'_>) {
        let Some(kind) = item.get("type").text() else { return };
        match kind.as_str() {
            "agent_message" if completed => {
                let text = item.get("text").text().unwrap_or_default();
                sink.said(&text);
                sink.answer(text);
            }
            // An item of this type is a warning (an unknown model, say), not the end of anything.
            "agent_message" | "reasoning" | "todo_list" | "error" => {}
            tool => {
                let id = item.get("id").text().unwrap_or_default();
                let told = if completed { self.open.remove(&id) } else { !self.open(id) };
                if !told {
                    let arguments = match item.get("command").text() {
                        Some(command) => command,
                        None => ["arguments", "changes", "query"].map(|key| item.get(key).written()).concat(),
                    };
                    let name = item.get("tool").text().unwrap_or_else(|| tool.to_owned());
                    sink.tool(item.get("id"), &name, &arguments);
                }
                if completed {
                    let exit = item.get("exit_code").number().is_some_and(|code| code != 0.0);
                    let texts = [
                        item.get("aggregated_output").words(),
                        item.get("result").get("content").words(),
                        item.get("error").get("message").words(),
                    ];
                    let text = texts.into_iter().find(|text| !text.is_empty()).unwrap_or_default();
                    let declined = item.get("status").is("declined");
                    sink.came(item.get("id"), exit || declined || item.get("status").is("failed"), &text);
                    if declined {
                        sink.denied(item.get("id"), &item.get("tool").text().unwrap_or_else(|| tool.to_owned()));
                    }
                }
            }
        }
    }

    fn open(&mut self, id: String) -> bool {
        if self.open.len() >= OPEN_LIMIT {
            self.open.clear();
        }
        self.open.insert(id)
    }

    fn usage(&self, thread: Json<'_>) -> Option<Usage> {
        if thread.is_null() {
            return None;
        }
        let count = |key, earlier| thread.get(key).count().unwrap_or_default().saturating_sub(earlier);
        Some(Usage {
            input: count("input_tokens", self.earlier.input),
            output: count("output_tokens", self.earlier.output),
            cache_read: count("cached_input_tokens", self.earlier.cache_read),
            cache_write: count("cache_write_input_tokens", self.earlier.cache_write),
            cost: None,
            at_least: false,
        })
    }
}
