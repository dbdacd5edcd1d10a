//! Shared by all dialects: the turn so far, and the methods by which they report about it.

use super::json::Json;
use super::{ANSWER_LIMIT, Item, Report, ToolResult, ToolUse};
use crate::types::usage::Usage;
use crate::types::usage::sum;

#[derive(Debug, Default)]
pub(super) struct Turn {
    pub(super) report: Report,
    /// Whether the stream has said how the turn ended.
    pub(super) reported: bool,
    /// The last complaint that was not the end of the turn.
    complaint: Option<String>,
}

impl Turn {
    /// Why a turn that never said how it ended has failed.
    pub(super) fn unfinished(&self, skipped: u64) -> String {
        let mut reason = "the stream ended without a result".to_owned();
        if let Some(complaint) = &self.complaint {
            reason.push_str(": ");
            reason.push_str(complaint);
        }
        if skipped > 0 {
            let limit = super::LINE_LIMIT >> 20;
            reason.push_str(&format!("; {skipped} lines longer than {limit} MiB were skipped"));
        }
        reason
    }
}

pub(super) struct Sink<'s> {
    pub(super) turn: &'s mut Turn,
    pub(super) emit: &'s mut dyn FnMut(Item<'_>),
}

impl Sink<'_> {
    /// A whole message, for display.
    pub(super) fn said(&mut self, text: &str) {
        match text.ends_with('\n') {
            _ if text.is_empty() => {}
            true => (self.emit)(Item::Said(text)),
            false => (self.emit)(Item::Said(&format!("{text}\n"))),
        }
    }

    /// A piece of a message, for display.
    pub(super) fn piece(&mut self, text: &str) {
        if !text.is_empty() {
            (self.emit)(Item::Said(text));
        }
    }

    /// A text that is the answer, unless a later one takes its place; an empty one does not.
    pub(super) fn answer(&mut self, text: String) {
        if !text.is_empty() {
            self.turn.report.text = Some(text);
        }
    }

    /// More of the text that is the answer.
    pub(super) fn answer_more(&mut self, more: &str) {
        let text = self.turn.report.text.get_or_insert_default();
        text.push_str(more);
        cut_seldom(text);
    }

    /// The answer itself, even if it is empty.
    pub(super) fn settle(&mut self, text: String) {
        self.turn.report.text = Some(text);
    }

    /// The agent uses a tool.
    pub(super) fn tool(&mut self, id: Json<'_>, name: &str, arguments: &str) {
        let id = id.text().unwrap_or_default();
        (self.emit)(Item::Tool(ToolUse { id: &id, name, arguments }));
    }

    /// Something came of the use of a tool.
    pub(super) fn came(&mut self, id: Json<'_>, failed: bool, text: &str) {
        let id = id.text().unwrap_or_default();
        (self.emit)(Item::Came(ToolResult { id: &id, failed, text }));
    }

    /// The program refused the agent the use of a tool.
    pub(super) fn denied(&mut self, id: Json<'_>, tool: &str) {
        let id = id.text().unwrap_or_default();
        (self.emit)(Item::Denied(&id, tool));
    }

    pub(super) fn session(&mut self, id: Option<String>) {
        let Some(id) = id.filter(|id| !id.is_empty() && self.turn.report.session.as_ref() != Some(id)) else { return };
        (self.emit)(Item::Session(&id));
        self.turn.report.session = Some(id);
    }

    /// The tokens of the whole turn. Programs that never heard of any say zero; that is unknown.
    pub(super) fn usage(&mut self, usage: Usage) {
        if usage.input > 0 || usage.output > 0 {
            (self.emit)(Item::Usage(usage));
            self.turn.report.usage = Some(usage);
        }
    }

    /// The tokens of one more message of the turn.
    pub(super) fn usage_more(&mut self, usage: Usage) {
        let total = self.turn.report.usage;
        self.usage(total.map_or(usage, |total| sum(total, usage)));
    }

    /// Something went wrong that the program may get over by itself.
    pub(super) fn complaint(&mut self, message: Option<String>) {
        self.turn.complaint = message.or(self.turn.complaint.take());
    }

    /// The agent works: whatever was reported before is not the end.
    pub(super) fn working(&mut self) {
        self.turn.report.failure = None;
        if std::mem::take(&mut self.turn.reported) {
            (self.emit)(Item::Continued);
        }
    }

    /// The turn ended well.
    pub(super) fn done(&mut self) {
        self.turn.report.failure = None;
        self.report();
    }

    /// The turn failed.
    pub(super) fn failed(&mut self, message: Option<String>) {
        let message = message.filter(|message| !message.is_empty());
        let message = message.unwrap_or_else(|| "the agent does not say why".to_owned());
        (self.emit)(Item::Failed(&message));
        self.turn.report.failure = Some(message);
        self.report();
    }

    /// The model stopped in the middle of its answer.
    pub(super) fn cut_off(&mut self, reason: &str) {
        self.failed(Some(format!("the model's answer was cut off: it stopped with `{reason}`")));
    }

    fn report(&mut self) {
        if !std::mem::replace(&mut self.turn.reported, true) {
            (self.emit)(Item::Reported);
        }
    }
}

/// A price in dollars. Programs say 0 for models whose price they do not know; that is unknown.
pub(super) fn price(dollars: Option<f64>) -> Option<f64> {
    dollars.filter(|dollars| *dollars > 0.0)
}

/// As [`cut`], but seldom: an answer in small pieces does not move its whole text at each of them.
pub(super) fn cut_seldom(text: &mut String) {
    if text.len() > 2 * ANSWER_LIMIT {
        cut(text);
    }
}

/// Keeps the end of an answer that is too long.
pub(crate) fn cut(text: &mut String) {
    if text.len() > ANSWER_LIMIT {
        let start = text.ceil_char_boundary(text.len() - ANSWER_LIMIT);
        text.drain(..start);
    }
}
