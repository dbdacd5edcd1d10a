//! The tools that an attempt used, for people.
//!
//! In: what is known of a use. Out: a line, which no terminal obeys.

use std::time::Duration;

use swarmc_view::{UsedTool, format_duration, sanitize_line};

/// One use of a tool: its arguments, what came of it, and how long that took.
pub(super) fn format_tool(UsedTool { used, is_last, .. }: &UsedTool) -> String {
    let mut line = format!("tool    turn {}: {}", used.turn, sanitize_line(&used.tool));
    if !used.arguments.is_empty() {
        line.push_str(&format!(" {}", sanitize_line(&used.arguments)));
    }
    if let (Some(ended), Some(ok), Some(text)) = (used.ended_ms, used.ok, &used.text) {
        let took = format_duration(Duration::from_millis(ended.saturating_sub(used.at)));
        line.push_str(&format!(", {} after {took}", if ok { "ok" } else { "failed" }));
        if !text.trim().is_empty() {
            line.push_str(&format!(": {}", sanitize_line(text)));
        }
    }
    if *is_last {
        line.push_str(" (what it used further is not listed)");
    }
    line
}
