//! Records what an agent reports of its turn: pieces of text, tools, its plan, what it used.
//!
//! In: updates of a session. Out: what people are shown, and at the end the answer. Invariant: whatever it reports,
//! the log keeps no more than an answer of [`ANSWER_LIMIT`] and a name for each tool that it uses at once.

use std::collections::BTreeMap;

use agent_client_protocol::v1::schema::{
    ContentBlock, ContentChunk, MessageId, PlanEntryStatus, PromptResponse, SessionUpdate, ToolCallContent,
    ToolCallStatus, UsageUpdate,
};
use serde_json::Value;

use crate::io::stream::{ANSWER_LIMIT, Edit, Item, Report, ToolResult, ToolUse, cut};
use crate::types::event::Usage;

/// The tools whose names are kept for later reports of their use; an agent uses a handful at once.
const TOOLS: usize = 1_000;
/// The files that one use of a tool changes, as far as others hear of them.
const EDITS: usize = 20;

/// The characters of a tool's title that people are shown.
const SHOWN: usize = 200;

/// What was told so far.
#[derive(Debug, Default)]
pub(super) struct Account {
    text: String,
    /// The message that the text is of.
    message: Option<MessageId>,
    /// Whether the next piece of text begins another message.
    ended: bool,
    /// Whether people are shown the middle of a line.
    within: bool,
    /// What the conversation has cost in dollars, all together.
    cost: Option<f64>,
    /// What it had cost before this turn.
    before: f64,
    /// The tokens that its last request has read, as far as it says.
    context: Option<u64>,
    /// Whether it has used a tool, so that it made several requests.
    used_tools: bool,
    /// The names of the reported tools, by the id of their use.
    tools: BTreeMap<String, String>,
    /// The edits whose end is not reported yet, by the id of their use.
    edits: BTreeMap<String, Vec<Edit>>,
}

impl Account {
    /// An account of a turn in a conversation that has used this much before.
    pub(super) fn new(earlier: Usage) -> Account {
        Account { before: earlier.cost.unwrap_or_default(), ..Account::default() }
    }

    /// Takes what is told before the turn begins: of a conversation that goes on, all that was said in it.
    pub(super) fn note_earlier_usage(&mut self, update: &SessionUpdate) {
        if let SessionUpdate::UsageUpdate(usage) = update {
            self.before = cost_in_dollars(usage).unwrap_or(self.before);
        }
    }

    /// Takes an update of the turn, and passes on what people are shown.
    pub(super) fn apply_update(&mut self, update: SessionUpdate, show: &mut dyn FnMut(Item<'_>)) {
        match update {
            SessionUpdate::AgentMessageChunk(chunk) => self.append_chunk(chunk, show),
            SessionUpdate::ToolCall(call) => {
                // What it says after a tool is another message: the answer is the last one.
                (self.ended, self.within, self.used_tools) = (true, false, true);
                let name = tool_title(call.name.as_deref(), &call.title);
                let arguments = format_value(call.raw_input.as_ref());
                show(Item::Tool(ToolUse { id: &call.tool_call_id.0, name: &name, arguments: &arguments }));
                self.note_edits(&call.tool_call_id.0, &call.content);
                report_tool_result(&call.tool_call_id.0, call.status, (&call.content, call.raw_output.as_ref()), show);
                self.report_edits(&call.tool_call_id.0, call.status, show);
                self.tools.insert(call.tool_call_id.0.to_string(), name);
                // Only the display suffers: later reports of these uses have no name any more.
                if self.tools.len() > TOOLS {
                    self.tools.clear();
                }
            }
            SessionUpdate::ToolCallUpdate(update) => {
                self.ended = true;
                let (id, fields) = (&update.tool_call_id.0, update.fields);
                // Many tell the arguments once their model has written them all.
                if let (Some(name), arguments @ Some(_)) = (self.tools.get(&**id), fields.raw_input.as_ref()) {
                    show(Item::Tool(ToolUse { id, name, arguments: &format_value(arguments) }));
                }
                let content = fields.content.unwrap_or_default();
                self.note_edits(id, &content);
                if let Some(status) = fields.status {
                    report_tool_result(id, status, (&content, fields.raw_output.as_ref()), show);
                    self.report_edits(id, status, show);
                }
            }
            SessionUpdate::Plan(plan) => {
                let done = plan.entries.iter().filter(|entry| entry.status == PlanEntryStatus::Completed).count();
                let now = plan.entries.iter().find(|entry| entry.status == PlanEntryStatus::InProgress);
                let now = now.map(|entry| format!(": {}", first_line(&entry.content))).unwrap_or_default();
                let line = if std::mem::take(&mut self.within) { "\n" } else { "" };
                show(Item::Said(&format!("{line}[plan {done}/{}{now}]\n", plan.entries.len())));
            }
            SessionUpdate::UsageUpdate(usage) => {
                self.cost = cost_in_dollars(&usage).or(self.cost);
                self.context = Some(usage.used);
            }
            // What it was told itself, what it thinks, and what concerns editors alone.
            _ => {}
        }
    }

    /// What a turn comes to that `response` ended.
    pub(super) fn into_report(mut self, response: Option<&PromptResponse>) -> Report {
        cut(&mut self.text);
        // Programs tell what the whole conversation has cost.
        let cost = self.cost.map(|cost| cost - self.before).filter(|cost| *cost > 0.0);
        let usage = match (response.and_then(read_usage), cost) {
            (None, None) => None,
            (tokens, cost) => {
                let tokens = tokens.unwrap_or_default();
                // What a turn with several requests has read is more than its last one had before it: an agent that
                // says no more than that tells of its last request alone (opencode does).
                let is_last = self.context.is_some_and(|context| tokens.input > 0 && tokens.input <= context);
                Some(Usage { cost, at_least: is_last && self.used_tools, ..tokens })
            }
        };
        Report { text: (!self.text.is_empty()).then_some(self.text), usage, ..Report::default() }
    }

    /// Keeps the differences that a use of a tool shows: the last ones count.
    fn note_edits(&mut self, id: &str, content: &[ToolCallContent]) {
        let edits = content.iter().filter_map(|content| match content {
            ToolCallContent::Diff(diff) => Some(Edit {
                path: diff.path.to_str()?.to_owned(),
                old: diff.old_text.clone(),
                new: diff.new_text.clone(),
            }),
            _ => None,
        });
        let edits: Vec<Edit> = edits.take(EDITS).collect();
        if !edits.is_empty() && self.edits.len() < TOOLS {
            self.edits.insert(id.to_owned(), edits);
        }
    }

    /// Tells of the edits of a use that has ended well.
    fn report_edits(&mut self, id: &str, status: ToolCallStatus, show: &mut dyn FnMut(Item<'_>)) {
        if matches!(status, ToolCallStatus::Completed | ToolCallStatus::Failed) {
            let edits = self.edits.remove(id).unwrap_or_default();
            edits.iter().filter(|_| status == ToolCallStatus::Completed).for_each(|edit| show(Item::Edited(edit)));
        }
    }

    fn append_chunk(&mut self, chunk: ContentChunk, show: &mut dyn FnMut(Item<'_>)) {
        let text = match chunk.content {
            ContentBlock::Text(text) => text.text,
            ContentBlock::ResourceLink(link) => link.uri,
            _ => return,
        };
        if text.is_empty() {
            return;
        }
        // Without ids, only what stands between two messages tells them apart.
        let another = chunk.message_id.is_some() && self.message.is_some() && chunk.message_id != self.message;
        if another || std::mem::take(&mut self.ended) {
            if self.within {
                show(Item::Said("\n"));
            }
            self.text.clear();
        }
        self.message = chunk.message_id.or(self.message.take());
        show(Item::Said(&text));
        self.within = !text.ends_with('\n');
        self.text.push_str(&text);
        // Cut seldom, so that an answer in small pieces does not move its whole text at each of them.
        if self.text.len() > 2 * ANSWER_LIMIT {
            cut(&mut self.text);
        }
    }
}

/// Tells what came of a tool, once its use has ended.
fn report_tool_result(
    id: &str,
    status: ToolCallStatus,
    (content, output): (&[ToolCallContent], Option<&Value>),
    show: &mut dyn FnMut(Item<'_>),
) {
    let failed = status == ToolCallStatus::Failed;
    if failed || status == ToolCallStatus::Completed {
        let texts = content.iter().filter_map(|content| match content {
            ToolCallContent::Content(content) => match &content.content {
                ContentBlock::Text(text) => Some(text.text.clone()),
                _ => None,
            },
            ToolCallContent::Diff(diff) => Some(format!("{} was changed", diff.path.display())),
            _ => None,
        });
        let texts: Vec<String> = texts.collect();
        let text = if texts.is_empty() { format_value(output) } else { texts.join("\n") };
        show(Item::Came(ToolResult { id, failed, text: &text }));
    }
}

/// A value as it is shown: a text as it is, nothing where there is none or an empty object.
fn format_value(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::Object(fields)) if fields.is_empty() => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
    }
}

/// What people are shown of a tool.
pub(super) fn tool_title(name: Option<&str>, title: &str) -> String {
    match (name, title.trim()) {
        (Some(name), "") => first_line(name),
        (Some(name), title) if name != title => first_line(&format!("{name}: {title}")),
        (_, title) => first_line(title),
    }
}

/// The first line of a text, as far as people who watch want it.
fn first_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let shown: String = line.chars().filter(|character| !character.is_control()).take(SHOWN).collect();
    if shown.len() < line.len() { format!("{shown}…") } else { shown }
}

/// What a conversation has cost, where that is said in dollars.
fn cost_in_dollars(usage: &UsageUpdate) -> Option<f64> {
    let cost = usage.cost.as_ref().filter(|cost| cost.currency == "USD")?;
    (cost.amount.is_finite() && cost.amount >= 0.0).then_some(cost.amount)
}

/// The tokens of a turn. Programs that never heard of any say zero; that is unknown.
fn read_usage(response: &PromptResponse) -> Option<Usage> {
    let said = response.usage.as_ref().map(|usage| {
        let (read, write) = (usage.cached_read_tokens.unwrap_or(0), usage.cached_write_tokens.unwrap_or(0));
        // Their sum is that of all kinds of tokens, each counted once.
        let input = usage.input_tokens.saturating_add(read).saturating_add(write);
        (input, usage.output_tokens.saturating_add(usage.thought_tokens.unwrap_or(0)), read, write)
    });
    // Gemini CLI says it in a place of its own.
    let quota = || {
        let quota = response.meta.as_ref()?.get("quota")?.get("token_count")?;
        let count = |key| quota.get(key).and_then(Value::as_u64);
        Some((count("input_tokens")?, count("output_tokens")?, 0, 0))
    };
    let (input, output, cache_read, cache_write) = said.or_else(quota)?;
    let usage = Usage { input, output, cache_read, cache_write, ..Usage::default() };
    (usage.input > 0 || usage.output > 0).then_some(usage)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What people are shown of updates, and the answer that they come to.
    fn told(updates: &[Value]) -> (String, Option<String>) {
        let mut account = Account::default();
        let mut shown = String::new();
        for update in updates {
            let update = serde_json::from_value(update.clone()).unwrap();
            account.apply_update(update, &mut |item| match item {
                Item::Said(text) => shown.push_str(text),
                Item::Tool(used) => shown.push_str(&format!("[{} {}{}]\n", used.id, used.name, used.arguments)),
                Item::Came(came) => shown.push_str(&format!("[{} {} {}]\n", came.id, came.failed, came.text)),
                _ => {}
            });
        }
        (shown, account.into_report(None).text)
    }

    fn chunk(text: &str) -> Value {
        json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": text } })
    }

    #[test]
    fn the_answer_is_the_last_message() {
        let tool = json!({ "sessionUpdate": "tool_call", "toolCallId": "1", "title": "Reads\nmuch" });
        let thought = json!({ "sessionUpdate": "agent_thought_chunk", "content": { "type": "text", "text": "Hm." } });
        let (shown, text) = told(&[chunk("I will "), chunk("look."), tool, chunk("It is "), thought, chunk("right.")]);
        assert_eq!(shown, "I will look.[1 Reads]\nIt is right.");
        assert_eq!(text.as_deref(), Some("It is right."));
    }

    #[test]
    fn arguments_and_results_of_tools_are_told_when_they_come() {
        let call = json!({ "sessionUpdate": "tool_call", "toolCallId": "1", "title": "bash", "rawInput": {} });
        let of = |fields: Value| {
            let mut update = json!({ "sessionUpdate": "tool_call_update", "toolCallId": "1" });
            fields.as_object().unwrap().iter().for_each(|(key, value)| update[key] = value.clone());
            update
        };
        let content = json!([{ "type": "content", "content": { "type": "text", "text": "no such file" } }]);
        let (shown, _) = told(&[
            call.clone(),
            of(json!({ "rawInput": { "command": "cat a" }, "status": "in_progress" })),
            of(json!({ "status": "failed", "content": content })),
        ]);
        assert_eq!(shown, "[1 bash]\n[1 bash{\"command\":\"cat a\"}]\n[1 true no such file]\n");
        let (shown, _) = told(&[call, of(json!({ "status": "completed", "rawOutput": { "exit": 0 } }))]);
        assert_eq!(shown, "[1 bash]\n[1 false {\"exit\":0}]\n");
    }

    #[test]
    fn messages_with_ids_are_told_apart() {
        let of = |id: &str, text: &str| {
            let mut chunk = chunk(text);
            chunk["messageId"] = json!(id);
            chunk
        };
        let (shown, text) = told(&[of("a", "One"), of("a", " and"), of("b", "two"), chunk(", three")]);
        assert_eq!((shown.as_str(), text.as_deref()), ("One and\ntwo, three", Some("two, three")));
        assert_eq!(told(&[]).1, None);
    }

    #[test]
    fn an_agent_that_tells_of_its_last_request_alone_has_used_more() {
        let at_least = |tool: bool, context: u64| {
            let mut account = Account::default();
            let mut updates = vec![json!({ "sessionUpdate": "usage_update", "used": context, "size": 1000 })];
            if tool {
                updates.push(json!({ "sessionUpdate": "tool_call", "toolCallId": "1", "title": "bash" }));
            }
            for update in updates {
                account.apply_update(serde_json::from_value::<SessionUpdate>(update).unwrap(), &mut |_| {});
            }
            let usage = json!({ "totalTokens": 30, "inputTokens": 20, "cachedReadTokens": 5, "outputTokens": 5 });
            let ended = json!({ "stopReason": "end_turn", "usage": usage });
            let ended = serde_json::from_value::<PromptResponse>(ended).unwrap();
            account.into_report(Some(&ended)).usage.unwrap().at_least
        };
        assert!(at_least(true, 25), "its last request alone has read that much");
        assert!(!at_least(true, 15), "it has read more than its last request");
        assert!(!at_least(false, 25), "there was one request");
    }

    #[test]
    fn a_turn_costs_what_the_conversation_cost_since() {
        let cost = |amount: f64| {
            let update = json!({ "sessionUpdate": "usage_update", "used": 9, "size": 10, "cost": { "amount": amount, "currency": "USD" } });
            serde_json::from_value::<SessionUpdate>(update).unwrap()
        };
        let response = |value: Value| serde_json::from_value::<PromptResponse>(value).unwrap();
        let mut account = Account::new(Usage { cost: Some(0.5), ..Usage::default() });
        account.note_earlier_usage(&cost(1.0));
        account.apply_update(cost(1.25), &mut |_| {});
        let ended = response(
            json!({ "stopReason": "end_turn", "usage": { "totalTokens": 30, "inputTokens": 20, "outputTokens": 10 } }),
        );
        let usage = account.into_report(Some(&ended)).usage.unwrap();
        assert_eq!((usage.input, usage.output, usage.cost), (20, 10, Some(0.25)));
        let quota = json!({ "quota": { "token_count": { "input_tokens": 3, "output_tokens": 4 } } });
        let ended = response(json!({ "stopReason": "end_turn", "_meta": quota }));
        let usage = Account::default().into_report(Some(&ended)).usage.unwrap();
        assert_eq!((usage.input, usage.output, usage.cost), (3, 4, None));
        let ended = response(json!({ "stopReason": "end_turn" }));
        assert_eq!(Account::default().into_report(Some(&ended)).usage, None);
        // A price counts without tokens, too, and without an end.
        let priced = || {
            let mut account = Account::default();
            account.apply_update(cost(0.5), &mut |_| {});
            account
        };
        for ended in [Some(&ended), None] {
            let usage = priced().into_report(ended).usage;
            assert_eq!(usage, Some(Usage { cost: Some(0.5), ..Usage::default() }));
        }
    }
}
