//! The attempts of a run over time.

use std::collections::HashMap;

use swarmc_runtime::{Event, Failure, StepId};
use swarmc_view::FollowedRun;
use swarmc_view::documents::Version;
use swarmc_view::now_ms;

use super::{last_event, reply};
use crate::Service;
use crate::documents;
use crate::problem::Problem;
use crate::routes::{Call, Reply};

/// The bars at most: more cannot be told apart.
const MOST: usize = 4_000;

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
            _ => {}
        }
    }
    let Lanes { rows, mut bars, open, .. } = lanes;
    let (from, to) = (run.report.started_ms, run.report.changed_ms);
    let is_running = run.folder.is_running();
    let now = if is_running { now_ms() } else { to };
    // What no process runs is not under way.
    for index in open.into_values().filter(|_| !is_running) {
        end_bar(&mut bars, index, to, "cancelled");
    }
    let left_out = bars.len().saturating_sub(MOST) as u64;
    if left_out > 0 {
        // The longest ones: what takes no time is not to be seen.
        bars.sort_by_key(|bar| std::cmp::Reverse(bar.2.unwrap_or(now).saturating_sub(bar.1)));
        bars.truncate(MOST);
        bars.sort_by_key(|bar| (bar.1, bar.0));
    }
    documents::Timeline { version: Version, as_of: last_event(run), from, to, now, rows, bars, left_out }
}

/// The bars of each step, while the records are read.
#[derive(Default)]
struct Lanes<'r> {
    rows: Vec<String>,
    known: HashMap<&'r StepId, u32>,
    bars: Vec<Bar>,
    open: HashMap<(&'r StepId, u32), usize>,
}

/// Row, start, end, state, attempt.
type Bar = (u32, u64, Option<u64>, &'static str, u32);

impl<'r> Lanes<'r> {
    fn begin(&mut self, run: &FollowedRun, of: (&'r StepId, u32), at: u64, state: &'static str) {
        let row = *self.known.entry(of.0).or_insert_with(|| {
            self.rows.push(run.report.label(of.0));
            self.rows.len() as u32 - 1
        });
        // A resumed run begins an attempt again.
        self.end(of, at, "cancelled");
        self.open.insert(of, self.bars.len());
        self.bars.push((row, at, None, state, of.1));
    }

    fn end(&mut self, of: (&'r StepId, u32), at: u64, state: &'static str) {
        if let Some(index) = self.open.remove(&of) {
            end_bar(&mut self.bars, index, at, state);
        }
    }
}

fn end_bar(bars: &mut [(u32, u64, Option<u64>, &'static str, u32)], index: usize, at: u64, state: &'static str) {
    bars[index].2 = Some(at);
    bars[index].3 = state;
}
