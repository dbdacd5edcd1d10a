//! `claude -p --output-format stream-json --verbose`, and `qwen -o stream-json`, which took the form over.
//!
//! The one `result` event says everything: the answer, the tokens, and whether it is an error, which neither its
//! subtype (`success` beside `is_error`) nor the exit code tells reliably.

use super::json::Json;
use super::turn::{Sink, price};
use crate::types::usage::Usage;
use crate::types::usage::sum;

#[derive(Debug, Default)]
pub(super) struct Claude {
    /// The text of the last message of the agent itself, for a result without one.
    last: String,
}

impl Claude {
    pub(super) fn read(&mut self, event: Json<'_>, sink: &mut Sink<'_>) {
        let kind = event.get("type");
        if kind.is("assistant") {
            self.message(event, sink);
        } else if kind.is("user") {
            results(event, sink);
        } else if kind.is("result") {
            self.result(event, sink);
        } else if kind.is("system") && event.get("subtype").is("init") {
            sink.session(event.get("session_id").text());
        } else if kind.is("system") && event.get("subtype").is("api_retry") {
            let status = event.get("error_status").count();
            sink.complaint(status.map(|status| format!("the model's server answered with status {status}")));
        }
    }

    fn message(&mut self, event: Json<'_>, sink: &mut Sink<'_>) {
        sink.working();
        // Messages of sub-agents come in the same stream; they are not the agent's own words.
        let own = event.get("parent_tool_use_id").is_null();
        let mut text = String::new();
        event.get("message").get("content").each(&mut |block| {
            let kind = block.get("type");
            if kind.is("tool_use") {
                let name = block.get("name").text().unwrap_or_default();
                sink.tool(block.get("id"), &name, block.get("input").written());
            } else if kind.is("text") && own {
                text.push_str(&block.get("text").text().unwrap_or_default());
            }
        });
        if !text.is_empty() {
            sink.said(&text);
            self.last = text;
        }
    }

    fn result(&mut self, event: Json<'_>, sink: &mut Sink<'_>) {
        sink.session(event.get("session_id").text());
        event.get("permission_denials").each(&mut |denial| {
            sink.denied(denial.get("tool_use_id"), &denial.get("tool_name").text().unwrap_or_default());
        });
        if let Some(usage) = usage(event) {
            sink.usage(usage);
        }
        let text = event.get("result").text();
        if event.get("is_error").is_true() || !event.get("subtype").is("success") {
            return sink.failed(text.or_else(|| fault(event)));
        }
        if event.get("stop_reason").is("max_tokens") {
            return sink.cut_off("max_tokens");
        }
        // Qwen Code calls an error of its endpoint a success, with these words for an answer and no tokens.
        let unused = event.get("usage").get("output_tokens").count() == Some(0);
        if let Some(text) = text.as_ref().filter(|text| unused && text.starts_with("[API Error:")) {
            return sink.failed(Some(text.clone()));
        }
        let structured = event.get("structured_output");
        if structured.is_null() {
            sink.settle(text.unwrap_or_else(|| std::mem::take(&mut self.last)));
        } else {
            sink.settle(structured.raw().to_owned());
        }
        sink.done();
    }
}

/// What came of tools is told as words of the user.
fn results(event: Json<'_>, sink: &mut Sink<'_>) {
    event.get("message").get("content").each(&mut |block| {
        if block.get("type").is("tool_result") {
            let failed = block.get("is_error").is_true();
            sink.came(block.get("tool_use_id"), failed, &block.get("content").words());
        }
    });
}

/// What a result without an answer says about its failure.
fn fault(event: Json<'_>) -> Option<String> {
    let mut errors = Vec::new();
    event.get("errors").each(&mut |error| errors.extend(error.text().or_else(|| error.get("message").text())));
    errors.extend(event.get("error").get("message").text());
    if errors.is_empty() { event.get("subtype").text() } else { Some(errors.join("; ")) }
}

/// The tokens by model hold those of sub-agents and side calls too; the plain ones are the fallback.
fn usage(event: Json<'_>) -> Option<Usage> {
    let mut total: Option<Usage> = None;
    event.get("modelUsage").each(&mut |model| {
        let count = |key| model.get(key).count().unwrap_or_default();
        let (cache_read, cache_write) = (count("cacheReadInputTokens"), count("cacheCreationInputTokens"));
        let usage = Usage {
            input: count("inputTokens").saturating_add(cache_read).saturating_add(cache_write),
            output: count("outputTokens"),
            cache_read,
            cache_write,
            cost: None,
            at_least: false,
        };
        total = Some(total.map_or(usage, |total| sum(total, usage)));
    });
    let plain = event.get("usage");
    let count = |key| plain.get(key).count().unwrap_or_default();
    let mut usage = match total {
        Some(total) => total,
        None if plain.is_null() => return None,
        None => {
            let (cache_read, cache_write) = (count("cache_read_input_tokens"), count("cache_creation_input_tokens"));
            // Qwen Code counts the cached tokens among the input, and says so by its total.
            let apart = plain.get("total_tokens").is_null();
            let cached = if apart { cache_read.saturating_add(cache_write) } else { 0 };
            let input = count("input_tokens").saturating_add(cached);
            Usage { input, output: count("output_tokens"), cache_read, cache_write, cost: None, at_least: false }
        }
    };
    usage.cost = price(event.get("total_cost_usd").number());
    Some(usage)
}
