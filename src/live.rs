//! The live lines at the bottom of a terminal: what runs, for how long, and how much is done.
//!
//! In: the ledger and the size of the terminal. Out: the bytes that draw a frame or take it away. No line is wider than
//! the terminal; when that shrinks, the rows that lines were wrapped into are counted, so that none is left behind.

use std::fmt::Write;

use crate::ledger::{Ledger, Row, RowState};
use crate::terminal::Paint;
use crate::units::duration;

const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// What stands on the terminal.
pub(crate) struct Live {
    /// The width of each line that was drawn last, in columns.
    drawn: Vec<usize>,
}

impl Live {
    pub(crate) fn new() -> Live {
        Live { drawn: Vec::new() }
    }

    /// Takes the lines away, and leaves the cursor where the first one began.
    pub(crate) fn clear(&mut self, columns: usize) -> String {
        let rows: usize = self.drawn.drain(..).map(|width| width.div_ceil(columns.max(1)).max(1)).sum();
        match rows {
            0 => String::new(),
            rows => format!("\x1b[{rows}A\r\x1b[J"),
        }
    }

    /// Draws the lines anew.
    pub(crate) fn draw(
        &mut self,
        ledger: &Ledger,
        paint: Paint,
        (columns, rows): (usize, usize),
        note: Option<&str>,
        now: u64,
    ) -> String {
        let mut out = self.clear(columns);
        if ledger.started_ms == 0 || ledger.finished.is_some() {
            return out;
        }
        let spinner = SPINNER[usize::try_from(now / 100 % 10).unwrap_or(0)];
        let most = (rows / 3).clamp(1, 10);
        let open: Vec<&Row> = ledger.open().collect();
        // One row too many is shown rather than counted.
        let shown = if open.len() == most + 1 { most + 1 } else { most };
        for row in open.iter().take(shown) {
            let text = task(ledger, row, now);
            self.line(&mut out, columns, &text, |text| format!("{} {text}", paint.cyan(spinner)));
        }
        if open.len() > shown {
            let text = format!("and {} more", open.len() - shown);
            self.line(&mut out, columns, &text, |text| format!("  {}", paint.dim(text)));
        }
        self.line(&mut out, columns, &totals(ledger, now), |text| format!("  {}", paint.bold(text)));
        if let Some(note) = note {
            self.line(&mut out, columns, note, |text| format!("  {}", paint.yellow(text)));
        }
        out
    }

    /// A line of two columns and `text`, cut to the terminal.
    fn line(&mut self, out: &mut String, columns: usize, text: &str, dress: impl Fn(&str) -> String) {
        let room = columns.saturating_sub(3);
        let cut: String = match text.char_indices().nth(room) {
            Some(_) => text.chars().take(room.saturating_sub(1)).chain(['…']).collect(),
            None => text.to_owned(),
        };
        self.drawn.push(cut.chars().count() + 2);
        let _ = writeln!(out, "{}", dress(&cut));
    }
}

fn task(ledger: &Ledger, row: &Row, now: u64) -> String {
    let mut text = format!("{}  {}", ledger.label(&row.step), duration(row.elapsed(now)));
    if row.state == RowState::Waiting {
        let _ = write!(text, "  attempt {} failed, next one soon", row.attempt);
    } else if row.attempt > 1 {
        let _ = write!(text, "  attempt {} of {}", row.attempt, row.attempts);
    }
    text
}

fn totals(ledger: &Ledger, now: u64) -> String {
    let counts = ledger.counts();
    let mut text = String::new();
    if ledger.rounds > 1 {
        let _ = write!(text, "round {} of at most {}: ", ledger.round(), ledger.rounds);
    }
    let _ = write!(text, "{} done", counts.succeeded);
    for (count, word) in [(counts.failed, "failed"), (counts.skipped, "skipped"), (counts.running, "running")] {
        if count > 0 {
            let _ = write!(text, ", {count} {word}");
        }
    }
    let elapsed = std::time::Duration::from_millis(now.saturating_sub(ledger.started_ms));
    let _ = write!(text, " of {}, {}", ledger.total, duration(elapsed));
    text
}
