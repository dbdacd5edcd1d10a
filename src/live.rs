//! The live lines at the bottom of a terminal: what runs, for how long, and how much is done.
//!
//! In: the run report and the size of the terminal. Out: the bytes that draw or erase a frame. No line is wider than
//! the terminal; when the terminal shrinks, the module counts the wrapped rows, so that it erases all of them.

use std::fmt::Write;

use swarmc_view::{Row, RowState, RunReport, format_duration};
use unicode_width::UnicodeWidthStr;

use crate::terminal::{Paint, cut_text};

const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// What stands on the terminal.
pub(crate) struct Live {
    /// The width of each line that stands there, in columns.
    drawn: Vec<usize>,
    /// The last frame: what stands above it may change a thousand times before the next one is due.
    frame: Option<Frame>,
}

struct Frame {
    /// The terminal's columns, and what was noted below.
    of: (usize, Option<String>),
    text: String,
    widths: Vec<usize>,
}

impl Live {
    pub(crate) fn new() -> Live {
        Live { drawn: Vec::new(), frame: None }
    }

    /// Takes the lines away, and leaves the cursor where the first one began.
    pub(crate) fn clear(&mut self, columns: usize) -> String {
        let rows: usize = self.drawn.drain(..).map(|width| width.div_ceil(columns.max(1)).max(1)).sum();
        match rows {
            0 => String::new(),
            rows => format!("\x1b[{rows}A\r\x1b[J"),
        }
    }

    /// Forgets the last frame, as it is time for the next.
    pub(crate) fn advance(&mut self) {
        self.frame = None;
    }

    /// Puts the lines there, those of the last frame where they still fit.
    pub(crate) fn draw(
        &mut self,
        ledger: &RunReport,
        paint: Paint,
        (columns, rows): (usize, usize),
        (waiting, note): (&[String], Option<&str>),
        now: u64,
    ) -> String {
        let mut out = self.clear(columns);
        if ledger.started_ms == 0 || ledger.finished.is_some() {
            return out;
        }
        let of = (columns, note.map(str::to_owned));
        let frame = match self.frame.take() {
            Some(frame) if frame.of == of => frame,
            _ => build_frame(ledger, paint, rows, (of, waiting), now),
        };
        out.push_str(&frame.text);
        self.drawn.clone_from(&frame.widths);
        self.frame = Some(frame);
        out
    }
}

fn build_frame(
    ledger: &RunReport,
    paint: Paint,
    rows: usize,
    (of, waiting): ((usize, Option<String>), &[String]),
    now: u64,
) -> Frame {
    let (columns, note) = of.clone();
    let mut frame = Frame { of, text: String::new(), widths: Vec::new() };
    // A sign for each frame of 100 ms.
    let spinner = SPINNER[usize::try_from(now / 100 % 10).unwrap_or(0)];
    // Most of a small terminal stays for what the steps print.
    let most = (rows / 3).clamp(1, 10);
    let open: Vec<&Row> = ledger.open_rows().collect();
    // One row too many is shown rather than counted.
    let shown = if open.len() == most + 1 { most + 1 } else { most };
    let width = open.iter().take(shown).map(|row| ledger.label(&row.step).len()).max().unwrap_or(0);
    let more = |frame: &mut Frame, left: usize| {
        frame.push_line(columns, &format!("and {left} more"), |text| format!("  {}", paint.dim(text)));
    };
    // What the rows leave, the agents of swarms share.
    let mut room = most.saturating_sub(open.len());
    for row in open.iter().take(shown) {
        frame
            .push_line(columns, &format_row(ledger, row, width, now), |text| format!("{} {text}", paint.cyan(spinner)));
        let Some(team) = ledger.teams.get(&row.step) else { continue };
        let agents: Vec<String> = team.active_lines().collect();
        let fit = if agents.len() <= room + 1 { agents.len() } else { room };
        agents.iter().take(fit).for_each(|line| frame.push_line(columns, line, |text| format!("  {text}")));
        if agents.len() > fit {
            more(&mut frame, agents.len() - fit);
        }
        room = room.saturating_sub(fit);
    }
    if open.len() > shown {
        more(&mut frame, open.len() - shown);
    }
    let room = most.saturating_sub(open.len()).max(1);
    let fit = if waiting.len() <= room + 1 { waiting.len() } else { room };
    waiting.iter().take(fit).for_each(|line| frame.push_line(columns, line, |text| format!("  {}", paint.dim(text))));
    frame.push_line(columns, &format_totals(ledger, now), |text| format!("  {}", paint.bold(text)));
    if let Some(note) = note {
        frame.push_line(columns, &note, |text| format!("  {}", paint.yellow(text)));
    }
    frame
}

impl Frame {
    /// A line of two columns and `text`, cut to the terminal.
    fn push_line(&mut self, columns: usize, text: &str, dress: impl Fn(&str) -> String) {
        // The last column stays free: a terminal may wrap behind it, and the line would take two rows.
        let room = columns.saturating_sub(3);
        let cut = cut_text(text, room);
        self.widths.push(cut.width() + 2);
        let _ = writeln!(self.text, "{}", dress(&cut));
    }
}

/// A step that is at work or waits, and for how long.
pub(crate) fn format_row(ledger: &RunReport, row: &Row, width: usize, now: u64) -> String {
    let mut text = format!("{:<width$}  {:>6}", ledger.label(&row.step), format_duration(row.elapsed(now)));
    if row.state == RowState::Asking {
        text.push_str("  waits for an answer");
    } else if row.state == RowState::Stalled {
        text.push_str("  repeats itself, waits for a person's decision");
    } else if row.state == RowState::Idle {
        text.push_str("  waits for envelopes");
    } else if row.state == RowState::Waiting {
        let _ = write!(text, "  attempt {} failed, next one soon", row.attempt);
    } else if let Some(agent) = &row.summarizer {
        let _ = write!(text, "  agent `{agent}` sums up files");
    } else {
        if let Some(turn) = row.current_turn() {
            let _ = write!(text, "  turn {turn}");
        }
        if row.turn_attempts() > 1 {
            let _ = write!(text, "  attempt {} of {}", row.turn_attempts(), row.attempts);
        }
    }
    if let Some(team) = ledger.teams.get(&row.step) {
        let phase = team.phase.map_or("", swarmc_view::describe_phase);
        let _ = write!(text, "  {phase}, {}", team.summarize());
    }
    text
}

/// How many steps stand where, and what the run has taken so far.
pub(crate) fn format_totals(ledger: &RunReport, now: u64) -> String {
    let counts = ledger.count_rows();
    let mut text = String::new();
    if ledger.rounds > 1 {
        let _ = write!(text, "round {} of at most {}: ", ledger.current_round(), ledger.rounds);
    }
    let _ = write!(text, "{} done", counts.succeeded);
    let others = [
        (counts.failed, "failed"),
        (counts.skipped, "skipped"),
        (counts.cancelled, "cancelled"),
        (counts.running, "running"),
    ];
    for (count, word) in others {
        if count > 0 {
            let _ = write!(text, ", {count} {word}");
        }
    }
    let elapsed = std::time::Duration::from_millis(now.saturating_sub(ledger.started_ms));
    let _ = write!(text, " of {}, {}", ledger.total, format_duration(elapsed));
    let used = ledger.describe_usage();
    if !used.is_empty() {
        let _ = write!(text, ", {used}");
    }
    text
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use swarmc_runtime::{AttemptId, Content, Event, Record, StepId};

    use super::*;

    #[test]
    fn rows_that_a_narrower_terminal_wrapped_are_taken_away_too() {
        let mut live = Live { drawn: vec![30, 80, 0], frame: None };
        assert_eq!(live.clear(40), "\x1b[4A\r\x1b[J");
        assert_eq!(live.clear(40), "");
    }

    #[test]
    fn the_agents_of_a_swarm_share_the_room_that_there_is() {
        let mut ledger = RunReport::default();
        (ledger.rounds, ledger.instances, ledger.total) = (1, 1, 1);
        let step = StepId::new("team", 1, 1);
        let mut record = |event| _ = ledger.apply(&Record { seq: 1, at: 1, event });
        record(Event::AttemptStarted { step: step.clone(), attempt: 1, reserved: None, summarizer: None });
        for number in 0..200 {
            let agent: Arc<str> = format!("agent{number}").into();
            let (plays, task) = ("a".into(), Some(Content::Text("x".to_owned())));
            let (swarm, name) = (AttemptId::new(&step, 1), agent.clone());
            record(Event::AgentSpawned {
                swarm,
                agent: name,
                plays,
                task,
                brief: None,
                by: None,
                tools: None,
                items: Vec::new(),
                replaces: None,
                worktree: None,
            });
            record(Event::AgentStarted { swarm: AttemptId::new(&step, 1), agent });
        }
        let paint = Paint::NONE;
        let frame = build_frame(&ledger, paint, 24, ((80, None), &[]), 1);
        let lines: Vec<&str> = frame.text.lines().collect();
        assert_eq!(lines.len(), 1 + 7 + 1 + 1, "{lines:#?}");
        assert!(lines[0].contains("200 agents") && lines[1].contains("agent0"), "{lines:#?}");
        assert!(lines[8].contains("and 193 more"), "{lines:#?}");
        let waiting = ["later: waits for other steps (team: it runs)".to_owned(), "and 7 more wait".to_owned()];
        let frame = build_frame(&ledger, paint, 24, ((80, None), &waiting), 1);
        let lines: Vec<&str> = frame.text.lines().collect();
        assert_eq!(lines[9..11], ["  later: waits for other steps (team: it runs)", "  and 7 more wait"], "{lines:#?}");
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for columns in [0, 1, 4, 20, 200] {
            let mut frame = Frame { of: (columns, None), text: String::new(), widths: Vec::new() };
            for (at, sign) in ["é", "漢"].into_iter().enumerate() {
                frame.push_line(columns, &sign.repeat(100), |text| format!("  {text}"));
                assert!(frame.widths[at] < columns.max(4), "{columns}: {}", frame.text);
                let line = frame.text.lines().nth(at).expect("a line is drawn");
                assert_eq!(line.trim_end().width().max(2), frame.widths[at]);
            }
        }
    }
}
