//! The tools that an attempt used, each with its arguments, what came of it, and how long that took; and the notices about
//! the attempt.
//!
//! In: the signals that the runtime wrote beside the logs of the attempt. Out: one [`UsedTool`] for each use, in the order in
//! which they began, and one [`AttemptNotice`] for each notice, in the order in which they came.

use std::fs::File;
use std::io::{BufRead, BufReader};

use swarmc_runtime::{Layout, Signal, StepId, TOOL_USES, TelemetryKind};

use crate::documents::{AttemptNotice, ToolUse};

/// One use of a tool.
#[derive(Debug)]
pub struct UsedTool {
    /// What is known of it.
    pub used: ToolUse,
    /// Whether further uses of the attempt are not listed.
    pub is_last: bool,
    id: String,
}

/// The uses and the notices of an attempt.
pub fn read_tool_log(layout: &Layout, step: &StepId, attempt: u32) -> (Vec<UsedTool>, Vec<AttemptNotice>) {
    let (mut all, mut notices): (Vec<UsedTool>, Vec<AttemptNotice>) = Default::default();
    let Ok(file) = File::open(layout.tool_log_path(step, attempt)) else { return (all, notices) };
    // A runner that was killed may have left half a line.
    let lines = BufReader::new(file).lines().map_while(Result::ok);
    for Signal { at, sign, .. } in lines.filter_map(|line| serde_json::from_str(&line).ok()) {
        match sign {
            TelemetryKind::ToolStarted { id, tool, arguments } => match find_open(&mut all, &id) {
                // A program may tell of one use several times.
                Some(known) => (known.tool, known.arguments) = (tool, arguments),
                None => {
                    let used = ToolUse { turn: attempt, tool, arguments, at, ended_ms: None, ok: None, text: None };
                    all.push(UsedTool { used, is_last: false, id });
                }
            },
            TelemetryKind::ToolEnded { id, ok, text } => {
                if let Some(known) = find_open(&mut all, &id) {
                    (known.ended_ms, known.ok, known.text) = (Some(at), Some(ok), Some(text));
                }
            }
            TelemetryKind::Notice { text } => notices.push(AttemptNotice { turn: attempt, at, text }),
            TelemetryKind::Connection { .. } => {}
        }
    }
    if let Some(last) = all.get_mut(TOOL_USES - 1) {
        last.is_last = true;
    }
    (all, notices)
}

/// The use of this id of which nothing has come yet.
fn find_open<'u>(all: &'u mut [UsedTool], id: &str) -> Option<&'u mut ToolUse> {
    // Uses without an id cannot be told apart, so each report of one is a use by itself.
    let open = all.iter_mut().rev().find(|known| !id.is_empty() && known.id == *id && known.used.ended_ms.is_none());
    open.map(|known| &mut known.used)
}
