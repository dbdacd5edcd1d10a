//! What a run waits for, shown when nothing has been said for a while.
//!
//! In: the clock, and the journal of the run. Out: in plain output a few lines, which come less often the longer nothing
//! happens; on a terminal lines below the steps that run. The journal is read only then, so that a busy run pays nothing.

use swarmc_runtime::{LeftProcesses, RunFolder};
use swarmc_view::{RunReport, RunSummary};

use super::Screen;
use crate::home::find_home;
use crate::live::{format_row, format_totals};
use crate::nodes::render_blocked;
use crate::terminal::Paint;

/// The steps at work that are listed, and those that wait.
const RUNNING: usize = 10;
const WAITING: usize = 3;

/// How long nothing has been said, and after how long something is said of that.
#[derive(Clone, Copy, Debug)]
pub(super) struct Silence {
    since_ms: u64,
    wait_ms: u64,
    first_ms: u64,
    most_ms: u64,
}

impl Silence {
    /// For a terminal, where the lines replace each other, or for a log, where they stay.
    pub(super) fn new(is_live: bool) -> Silence {
        let (first_ms, most_ms) = if is_live { (2_000, 60_000) } else { (30_000, 600_000) };
        Silence { since_ms: 0, wait_ms: first_ms, first_ms, most_ms }
    }

    /// Something was said.
    pub(super) fn restart(&mut self, now: u64) {
        (self.since_ms, self.wait_ms) = (now, self.first_ms);
    }

    /// Whether it is time to say what is waited for.
    pub(super) fn is_over(&self, now: u64) -> bool {
        self.since_ms > 0 && now >= self.since_ms.saturating_add(self.wait_ms)
    }

    /// It was said; the next time comes after twice as long.
    fn extend(&mut self, now: u64) {
        (self.since_ms, self.wait_ms) = (now, self.wait_ms.saturating_mul(2).min(self.most_ms));
    }
}

/// The steps of a run that have not begun, each with what it waits for, in lines; none where that cannot be known.
pub(super) fn read_waiting(run: &str) -> Vec<String> {
    let Some(folder) = find_folder(run) else { return Vec::new() };
    let summary = RunSummary::read(&folder, &LeftProcesses::default());
    let lines = render_blocked(&summary, WAITING, Paint::NONE);
    lines.lines().map(|line| line.trim().to_owned()).collect()
}

/// The folder of the run that is shown.
pub(super) fn find_folder(run: &str) -> Option<RunFolder> {
    find_home().ok()?.find(run).ok()
}

impl Screen {
    /// Shows what is waited for, unless something has happened meanwhile.
    pub(super) fn show_waiting(&mut self, waiting: Vec<String>, now: u64) {
        if !self.silence.is_over(now) || self.ledger.finished.is_some() {
            return;
        }
        // `write_lines` restarts the silence, so the longer one is set behind it.
        let mut silence = self.silence;
        silence.extend(now);
        match self.live.is_some() {
            true => self.waiting = waiting,
            false => self.write_lines(format_status(&self.ledger, &waiting, now).as_bytes()),
        }
        self.silence = silence;
    }
}

/// How far the run is, what is at work and for how long, and what waits.
fn format_status(ledger: &RunReport, waiting: &[String], now: u64) -> String {
    let mut text = format!("  still running: {}\n", format_totals(ledger, now));
    let open: Vec<_> = ledger.open_rows().collect();
    let width = open.iter().take(RUNNING).map(|row| ledger.label(&row.step).len()).max().unwrap_or(0);
    for row in open.iter().take(RUNNING) {
        text.push_str(&format!("    {}\n", format_row(ledger, row, width, now).trim_end()));
    }
    if open.len() > RUNNING {
        text.push_str(&format!("    and {} more\n", open.len() - RUNNING));
    }
    waiting.iter().for_each(|line| text.push_str(&format!("    {line}\n")));
    text
}
