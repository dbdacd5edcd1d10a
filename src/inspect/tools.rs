//! The tools that an attempt used, each with its arguments, what came of it, and how long that took.
//!
//! In: the signals that the runtime wrote beside the logs of the attempt. Out: a line for people, or JSON.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::time::Duration;

use swarmc_runtime::{Layout, Signal, StepId, TOOL_USES, TelemetryKind};
use swarmc_view::documents::ToolUse;
use swarmc_view::{format_duration, sanitize_line};

/// One use of a tool.
pub(super) struct Used {
    attempt: u32,
    at: u64,
    id: String,
    tool: String,
    arguments: String,
    /// When it ended, whether it worked, and what came of it.
    end: Option<(u64, bool, String)>,
    /// Whether further uses of the attempt are not listed.
    is_last: bool,
}

/// Those of an attempt, in the order in which they began.
pub(super) fn list_tool_uses(layout: &Layout, step: &StepId, attempt: u32) -> Vec<Used> {
    let Ok(file) = File::open(layout.tool_log_path(step, attempt)) else { return Vec::new() };
    let mut used: Vec<Used> = Vec::new();
    // A runner that was killed may have left half a line.
    let lines = BufReader::new(file).lines().map_while(Result::ok);
    for Signal { at, sign, .. } in lines.filter_map(|line| serde_json::from_str(&line).ok()) {
        match sign {
            TelemetryKind::ToolStarted { id, tool, arguments } => match find_open(&mut used, &id) {
                Some(known) => (known.tool, known.arguments) = (tool, arguments),
                None => used.push(Used { attempt, at, id, tool, arguments, end: None, is_last: false }),
            },
            TelemetryKind::ToolEnded { id, ok, text } => {
                if let Some(known) = find_open(&mut used, &id) {
                    known.end = Some((at, ok, text));
                }
            }
            TelemetryKind::Connection { .. } => {}
        }
    }
    if let Some(last) = used.get_mut(TOOL_USES - 1) {
        last.is_last = true;
    }
    used
}

/// The use of this id of which nothing has come yet.
fn find_open<'u>(used: &'u mut [Used], id: &str) -> Option<&'u mut Used> {
    used.iter_mut().rev().find(|used| !id.is_empty() && used.id == *id && used.end.is_none())
}

impl Used {
    pub(super) fn format_line(&self) -> String {
        let mut line = format!("tool    turn {}: {}", self.attempt, sanitize_line(&self.tool));
        if !self.arguments.is_empty() {
            line.push_str(&format!(" {}", sanitize_line(&self.arguments)));
        }
        if let Some((at, ok, text)) = &self.end {
            let took = format_duration(Duration::from_millis(at.saturating_sub(self.at)));
            line.push_str(&format!(", {} after {took}", if *ok { "ok" } else { "failed" }));
            if !text.trim().is_empty() {
                line.push_str(&format!(": {}", sanitize_line(text)));
            }
        }
        if self.is_last {
            line.push_str(" (what it used further is not listed)");
        }
        line
    }

    pub(super) fn to_document(&self) -> ToolUse {
        let (ended_ms, ok, text) = match &self.end {
            Some((at, ok, text)) => (Some(*at), Some(*ok), Some(text.clone())),
            None => (None, None, None),
        };
        let (turn, tool, arguments, at) = (self.attempt, self.tool.clone(), self.arguments.clone(), self.at);
        ToolUse { turn, tool, arguments, at, ended_ms, ok, text }
    }
}
