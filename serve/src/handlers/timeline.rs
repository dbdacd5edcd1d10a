//! The attempts of a run over time, with the turns and the tools within them.
//!
//! In: the records of a run, and the files beside the logs of its attempts. Out: bars, and the parts of bars. Bounded: the
//! longest bars, and of the longest ones the parts.

use std::collections::HashMap;

use swarmc_runtime::swarm::{Answer, TurnId};
use swarmc_runtime::{AttemptId, Event, Failure, StepId};
use swarmc_view::documents::{ToolUse, Version};
use swarmc_view::{FollowedRun, now_ms, read_tool_log};

use super::{last_event, reply};
use crate::Service;
use crate::documents::{self, TimelinePart};
use crate::problem::Problem;
use crate::routes::{Call, Reply};

/// The bars at most, and the parts of bars: more cannot be told apart.
const MOST: usize = 4_000;

/// The attempts whose files are read for the tools that they used: those that took longest.
const READ: usize = 200;

pub(crate) fn get_timeline(service: &Service, call: &Call) -> Result<Reply, Problem> {
    service.store.with_run(&service.home, call.part(0), |run| reply(&build_timeline(run)))
}

fn build_timeline(run: &FollowedRun) -> documents::Timeline {
    let mut lanes = Lanes::default();
    for record in &run.past.records {
        match &record.event {
            Event::AttemptStarted { step, attempt, .. } | Event::AttemptRejoined { step, attempt } => {
                lanes.begin(run, (step, *attempt), record.at, "running")
            }
            // A gate waits for a person, and has no attempt.
            Event::GateOpened { step, .. } => lanes.begin(run, (step, 0), record.at, "waiting"),
            Event::GateAnswered { step, .. } => lanes.end((step, 0), record.at, "succeeded"),
            Event::AttemptEnded { step, attempt, outcome, .. } => {
                let state = match &outcome.failure {
                    None => "succeeded",
                    Some(Failure::Cancelled) => "cancelled",
                    Some(_) => "failed",
                };
                lanes.end((step, *attempt), record.at, state);
            }
            Event::TurnStarted { swarm, turn, .. } => {
                lanes.begin_part((swarm, turn, "turn"), record.at, turn.agent.to_string());
            }
            Event::TurnEnded { swarm, turn, answer, .. } => {
                let is_lost = matches!(answer, Answer::Failed { .. } | Answer::Invalid(_));
                lanes.end_part((swarm, turn, "turn"), record.at, if is_lost { "failed" } else { "succeeded" });
            }
            Event::ToolStarted { swarm, turn, tool } => {
                lanes.begin_part((swarm, turn, "tool"), record.at, tool.to_string());
            }
            Event::ToolEnded { swarm, turn, fault, .. } => {
                let state = if fault.is_some() { "failed" } else { "succeeded" };
                lanes.end_part((swarm, turn, "tool"), record.at, state);
            }
            _ => {}
        }
    }
    let (from, to) = (run.report.started_ms, run.report.changed_ms);
    let is_running = run.folder.is_running();
    let now = if is_running { now_ms() } else { to };
    // What no process runs is not under way.
    if !is_running {
        lanes.end_all(to);
    }
    let longest = |start: u64, end: Option<u64>| std::cmp::Reverse(end.unwrap_or(now).saturating_sub(start));
    // The longest ones: what takes no time is not to be seen.
    lanes.bars.sort_by_key(|(_, bar)| longest(bar.1, bar.2));
    let left_out = lanes.bars.len().saturating_sub(MOST) as u64;
    lanes.bars.truncate(MOST);
    let layout = run.folder.layout(run.past.pipeline());
    for (step, bar) in lanes.bars.iter().filter(|(_, bar)| bar.4 > 0).take(READ) {
        let (tools, _) = read_tool_log(&layout, step, bar.4);
        lanes.parts.extend(tools.into_iter().map(|tool| describe_tool(tool.used, bar)));
    }
    lanes.parts.sort_by_key(|part| longest(part.1, part.2));
    lanes.parts.truncate(MOST);
    lanes.parts.sort_by_key(|part| (part.0, part.1));
    let mut bars: Vec<Bar> = lanes.bars.into_iter().map(|(_, bar)| bar).collect();
    bars.sort_by_key(|bar| (bar.1, bar.0));
    let Lanes { rows, parts, .. } = lanes;
    documents::Timeline { version: Version, as_of: last_event(run), from, to, now, rows, bars, parts, left_out }
}

/// Row, start, end, state, attempt.
type Bar = (u32, u64, Option<u64>, &'static str, u32);

/// A use of a tool in an attempt. What of it had not ended with the attempt ended then.
fn describe_tool(tool: ToolUse, bar: &Bar) -> TimelinePart {
    let end = tool.ended_ms.or(bar.2);
    let state = match (tool.ok, end) {
        (Some(true), _) => "succeeded",
        (Some(false), _) => "failed",
        (None, None) => "running",
        (None, Some(_)) => "cancelled",
    };
    (bar.0, tool.at, end, "tool", tool.tool, state)
}

/// A turn of a swarm, or a tool that one calls.
type PartKey<'r> = (&'r AttemptId, &'r TurnId, &'static str);

/// The bars of each step, and their parts, while the records are read.
#[derive(Default)]
struct Lanes<'r> {
    rows: Vec<String>,
    known: HashMap<&'r StepId, u32>,
    bars: Vec<(&'r StepId, Bar)>,
    parts: Vec<TimelinePart>,
    open: HashMap<(&'r StepId, u32), usize>,
    open_parts: HashMap<PartKey<'r>, usize>,
}

impl<'r> Lanes<'r> {
    fn begin(&mut self, run: &FollowedRun, of: (&'r StepId, u32), at: u64, state: &'static str) {
        let row = *self.known.entry(of.0).or_insert_with(|| {
            self.rows.push(run.report.label(of.0));
            self.rows.len() as u32 - 1
        });
        // A resumed run begins an attempt again.
        self.end(of, at, "cancelled");
        self.open.insert(of, self.bars.len());
        self.bars.push((of.0, (row, at, None, state, of.1)));
    }

    fn end(&mut self, of: (&'r StepId, u32), at: u64, state: &'static str) {
        if let Some(index) = self.open.remove(&of) {
            (self.bars[index].1.2, self.bars[index].1.3) = (Some(at), state);
        }
    }

    fn begin_part(&mut self, of: PartKey<'r>, at: u64, name: String) {
        let Some(row) = self.known.get(&of.0.step) else { return };
        self.open_parts.insert(of, self.parts.len());
        self.parts.push((*row, at, None, of.2, name, "running"));
    }

    fn end_part(&mut self, of: PartKey<'r>, at: u64, state: &'static str) {
        if let Some(index) = self.open_parts.remove(&of) {
            (self.parts[index].2, self.parts[index].5) = (Some(at), state);
        }
    }

    /// Ends what goes on.
    fn end_all(&mut self, at: u64) {
        for index in std::mem::take(&mut self.open).into_values() {
            (self.bars[index].1.2, self.bars[index].1.3) = (Some(at), "cancelled");
        }
        for index in std::mem::take(&mut self.open_parts).into_values() {
            (self.parts[index].2, self.parts[index].5) = (Some(at), "cancelled");
        }
    }
}
