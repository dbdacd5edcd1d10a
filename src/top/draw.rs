//! Draws what `swarmc top` shows.
//!
//! In: the model, the run, the log, the time, and what the terminal can show. Out: cells. Only rows that are visible are
//! built, so that a frame costs what the screen has, and not what the run has.

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use swarmc_runtime::{Status, StepId};
use swarmc_view::{FollowedRun, Row, RowState, describe_answer, format_number, make_printable};

use super::fit::{plain_text, wrap_text};
use super::keys::HELP;
use super::log_tail::LogTail;
use super::model::{Entry, Filter, Model, Overlay, View, describe_row};
use super::pictures::{draw_plan, draw_team};
use crate::live::format_totals;
use crate::summary::name_step;
use crate::terminal::cut_text;

/// From this many columns on there is room for two panes.
const TWO_PANES: u16 = 100;

/// The lines of a reason, or of a notice, at most.
const REASON: u16 = 6;

/// The widest names that are lined up.
const NAMES: usize = 28;

/// What a terminal can show.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Looks {
    pub(crate) colour: bool,
    pub(crate) unicode: bool,
}

/// What is drawn.
pub(crate) struct Picture<'a> {
    pub(crate) run: &'a FollowedRun,
    pub(crate) log: &'a LogTail,
    /// What people should know of the attempt whose log that is.
    pub(crate) notices: &'a [String],
    /// Whether a process runs it.
    pub(crate) is_running: bool,
    /// Where the past is shown: after how many records, and how many there are.
    pub(crate) replayed: Option<(usize, usize)>,
    pub(crate) now: u64,
    pub(crate) looks: Looks,
}

/// Draws a frame; notes in the model how many rows a page has.
pub(crate) fn draw(frame: &mut Frame<'_>, model: &mut Model, picture: &Picture<'_>) {
    let area = frame.area();
    let buffer = frame.buffer_mut();
    if area.is_empty() {
        return;
    }
    picture.write_head(buffer, line_of(area, 0));
    // The head, a line and the foot: with fewer lines the subtractions below would overflow.
    if area.height < 3 {
        return;
    }
    picture.write_foot(buffer, line_of(area, area.height - 1), model);
    let body = Rect { y: area.y + 1, height: area.height - 2, ..area };
    model.page = usize::from(body.height - 1);
    model.list = None;
    match model.overlay {
        Overlay::None => picture.draw_body(buffer, body, model),
        Overlay::Help => {
            let lines: Vec<String> = HELP.iter().map(|(keys, does)| format!("  {keys:<16} {does}")).collect();
            picture.write_wrapped(buffer, body, "Keys", &lines, &mut model.down);
        }
        Overlay::Ending => {
            let stop = if picture.run.report.finished.is_none() && picture.replayed.is_none() {
                "  s    stop the run; it can be resumed"
            } else {
                ""
            };
            let lines = [stop, "  d    leave; the run goes on", "  Esc  back"].map(str::to_owned);
            picture.write_text(buffer, body, "End", &lines, &mut 0);
        }
        Overlay::Asks => picture.draw_ask(buffer, body, model),
    }
}

/// A line of an area.
fn line_of(area: Rect, line: u16) -> Rect {
    Rect { y: area.y + line, height: 1, ..area }
}

impl Picture<'_> {
    fn write_head(&self, buffer: &mut Buffer, area: Rect) {
        let state = match (self.replayed, self.run.report.finished, self.is_running) {
            (Some((at, all)), ..) => format!("record {at} of {all}"),
            (None, Some(status), _) => status.as_str().to_owned(),
            (None, None, true) => "running".to_owned(),
            (None, None, false) => "runner gone: r resumes".to_owned(),
        };
        let until = if self.is_running { self.now } else { self.run.report.changed_ms };
        let totals = format_totals(&self.run.report, until);
        let text = format!(" {}  {state}  {}  {totals}", self.run.past.plan.workflow, self.run.folder.id);
        self.write_line(buffer, area, &text, Style::new().add_modifier(Modifier::REVERSED));
    }

    fn write_foot(&self, buffer: &mut Buffer, area: Rect, model: &Model) {
        let text = match (&model.notice, model.typing, model.asks.as_slice()) {
            (Some(notice), ..) => format!(" {notice}"),
            (None, true, _) => format!(" / {}_", model.query),
            (None, false, [first, rest @ ..]) if model.overlay == Overlay::None => {
                let more = if rest.is_empty() { String::new() } else { format!(" (and {} more)", rest.len()) };
                format!(" ! answers: {}{more}   ? keys  q leave", first.title)
            }
            _ if model.overlay == Overlay::Asks && model.filling.is_some() => " Enter goes on  Esc back".to_owned(),
            _ if model.view == View::Plan && model.proposal(self.run).is_some() => {
                " a r ask the coordinator to approve or reject the first proposal   ? keys  q leave".to_owned()
            }
            _ if self.replayed.is_some() => {
                " , . back and forward  space plays  Esc the end   ? keys  q leave".to_owned()
            }
            _ => " ? keys  q leave".to_owned(),
        };
        let style = if model.asks.is_empty() { Style::new() } else { self.style(Color::Yellow) };
        self.write_line(buffer, area, &text, style.add_modifier(Modifier::REVERSED));
    }

    fn draw_body(&self, buffer: &mut Buffer, area: Rect, model: &mut Model) {
        match model.view {
            View::Steps if model.zoomed => self.draw_log(buffer, area, model),
            View::Steps if area.width >= TWO_PANES => {
                let left = Rect { width: area.width / 2, ..area };
                let right = Rect { x: area.x + left.width + 1, width: area.width - left.width - 1, ..area };
                self.draw_steps(buffer, left, model);
                for y in area.top()..area.bottom() {
                    buffer.set_stringn(right.x - 1, y, self.pick("│", "|"), 1, self.style(Color::DarkGray));
                }
                self.draw_right(buffer, right, model);
            }
            View::Steps if model.right => self.draw_right(buffer, area, model),
            View::Steps => self.draw_steps(buffer, area, model),
            View::Team => {
                let (title, lines) = match model.shown_team(self.run) {
                    Some((step, team)) => {
                        (format!("Team of {}: {}", step.label(), team.summarize()), draw_team(team, self.now))
                    }
                    None => ("This run has no swarm".to_owned(), Vec::new()),
                };
                self.write_text(buffer, area, &title, &lines, &mut model.down);
            }
            View::Plan => {
                let team = model.shown_team(self.run);
                let plan = team.and_then(|(step, team)| Some((step, team.coordination.as_ref()?)));
                let (title, lines) = match plan {
                    Some((step, coordination)) => {
                        (format!("Plan of {}", step.label()), draw_plan(coordination, area.width.into()))
                    }
                    None => ("This run has no swarm with a coordinator".to_owned(), Vec::new()),
                };
                self.write_text(buffer, area, &title, &lines, &mut model.down);
            }
        }
    }

    fn draw_steps(&self, buffer: &mut Buffer, area: Rect, model: &mut Model) {
        let report = &self.run.report;
        let filter = match model.filter {
            Filter::All => "",
            Filter::Failed => ", failed",
            Filter::Open => ", at work or waiting",
        };
        let query = if model.query.is_empty() { String::new() } else { format!(", with `{}`", model.query) };
        let all = model.entries.len();
        let follows = if model.follows && report.finished.is_none() { ", following" } else { "" };
        let title = format!("Steps{filter}{query}: {} of {all}{follows}", (model.selected + 1).min(all));
        self.write_title(buffer, area, &title);
        let rows = usize::from(area.height - 1);
        // The selected row is always visible, in the middle where it can be.
        let first = model.selected.saturating_sub(rows / 2).min(all.saturating_sub(rows));
        model.list = Some((area, first));
        let shown = model.entries.iter().enumerate().skip(first).take(rows);
        let label = |entry: &Entry| match entry {
            Entry::Begun(place) => name_step(report, &report.rows[*place].step),
            Entry::Blocked(step, _) => name_step(report, step),
        };
        let width = shown.clone().map(|(_, entry)| label(entry).chars().count()).max().unwrap_or(0).min(NAMES);
        for (line, (place, entry)) in (1..).zip(shown) {
            let (sign, colour, words) = match entry {
                Entry::Begun(row) => {
                    let row = &report.rows[*row];
                    let (sign, colour) = self.sign(row.state);
                    (sign, colour, describe_row(self.run, row, self.now) + &model.describe_inside(row))
                }
                Entry::Blocked(step, why) => {
                    let why = format!("         waits for {}", self.describe_waiting(step, why));
                    (self.pick("◌", "o"), Color::DarkGray, why)
                }
            };
            let text = format!("{sign} {:<width$} {words}", label(entry));
            let style = self.style(colour);
            let style = if place == model.selected { style.add_modifier(Modifier::REVERSED) } else { style };
            self.write_line(buffer, line_of(area, line), &text, style);
        }
    }

    /// What a step waits for that has not begun: the steps, where they are known.
    fn describe_waiting(&self, step: &StepId, why: &str) -> String {
        let pending = self.run.state.list_pending(step, self.is_running);
        let names: Vec<&str> = pending.iter().map(|pending| &*pending.step).collect();
        if names.is_empty() { why.to_owned() } else { names.join(", ") }
    }

    /// The log of the selected step; of a swarm, its agents; of a gate that asks, the question. Above, why it failed.
    fn draw_right(&self, buffer: &mut Buffer, area: Rect, model: &mut Model) {
        if let Some(ask) = model.selected_ask(self.run) {
            let answers = match ask.choices.as_slice() {
                [] => Vec::new(),
                choices => vec![String::new(), format!("! answers: {}", choices.join(", "))],
            };
            let lines: Vec<String> = ask.lines.iter().cloned().chain(answers).collect();
            return self.write_wrapped(buffer, area, &format!("{} asks you", ask.title), &lines, &mut 0);
        }
        let row = model.selected_row(self.run);
        // A gate has no log.
        if let Some(row) = row.filter(|_| self.log.count() == 0)
            && let Some(said) = describe_answer(&self.run.past, &row.step.to_string())
        {
            let title = name_step(&self.run.report, &row.step);
            return self.write_wrapped(buffer, area, &title, &[format!("answered: {said}")], &mut 0);
        }
        let area = row.map_or(area, |row| self.write_reason(buffer, area, row));
        let area = self.write_notices(buffer, area);
        match row.and_then(|row| self.run.report.teams.get(&row.step)) {
            Some(team) => self.write_text(buffer, area, &team.summarize(), &draw_team(team, self.now), &mut 0),
            None => self.draw_log(buffer, area, model),
        }
    }

    /// Writes why a step failed, which its row has hardly room for; what is left of the area.
    fn write_reason(&self, buffer: &mut Buffer, area: Rect, row: &Row) -> Rect {
        match row.state {
            RowState::Ended(Status::Failed) => self.write_above(buffer, area, &row.reason(), Color::Red),
            _ => area,
        }
    }

    /// Writes the notices about the attempt; what is left of the area.
    fn write_notices(&self, buffer: &mut Buffer, area: Rect) -> Rect {
        self.notices.iter().fold(area, |area, text| self.write_above(buffer, area, text, Color::Yellow))
    }

    /// Writes a text above what an area shows, in some lines at most; what is left of the area.
    fn write_above(&self, buffer: &mut Buffer, area: Rect, text: &str, colour: Color) -> Rect {
        let wrap = |line: &str| wrap_text(&plain_text(&make_printable(line), true), area.width.into());
        // Two lines stay for the title and the end of the log.
        let most = area.height.saturating_sub(2).min(REASON);
        let lines = text.lines().flat_map(wrap).filter(|line| !line.is_empty());
        let mut at = 0;
        for line in lines.take(most.into()) {
            self.write_line(buffer, line_of(area, at), &line, self.style(colour));
            at += 1;
        }
        Rect { y: area.y + at, height: area.height - at, ..area }
    }

    fn draw_log(&self, buffer: &mut Buffer, area: Rect, model: &mut Model) {
        let rows = usize::from(area.height - 1);
        let count = self.log.count();
        model.back = model.back.min(count.saturating_sub(rows));
        let first = count.saturating_sub(rows + model.back);
        let title = match model.selected_row(self.run) {
            Some(row) => {
                let used = row.usage.as_deref().map(|usage| format_number(usage.input + usage.output));
                let used = used.map_or_else(String::new, |tokens| format!(", {tokens} tokens"));
                let follows = if model.back == 0 { "" } else { ", scrolled" };
                {
                    let name = name_step(&self.run.report, &row.step);
                    format!("Log of {name}, attempt {}{used}{follows}", row.attempt.max(1))
                }
            }
            None if model.entries.is_empty() => "No step is selected".to_owned(),
            None => "No log: it has not begun".to_owned(),
        };
        self.write_title(buffer, area, &title);
        for (line, number) in (1..).zip(first..(first + rows).min(count)) {
            self.write_line(buffer, line_of(area, line), &self.log.line(number), Style::new());
        }
    }

    fn draw_ask(&self, buffer: &mut Buffer, area: Rect, model: &mut Model) {
        let Some(ask) = model.asks.get(model.ask) else {
            return self.write_text(buffer, area, "Nothing waits for an answer", &[], &mut 0);
        };
        let several = match model.asks.len() {
            0 | 1 => String::new(),
            count => format!(" ({} of {count}, Tab: the next)", model.ask + 1),
        };
        let choices = ask.choices.iter().zip(1..).map(|(choice, number)| format!("[{number}] {choice}   "));
        let choices = match &model.filling {
            Some(form) => form.prompt(),
            None if ask.choices.is_empty() => {
                format!("several steps have its name: answer it by `swarmc approve {}`   Esc: back", self.run.folder.id)
            }
            None => format!("{}Esc: back", choices.collect::<String>()),
        };
        let mut lines = vec![choices, String::new()];
        lines.extend(ask.lines.iter().cloned());
        self.write_wrapped(buffer, area, &format!("{}{several}", ask.title), &lines, &mut model.down);
    }

    /// A title and lines below it, which go on where they are too long, scrolled down by some.
    fn write_wrapped(&self, buffer: &mut Buffer, area: Rect, title: &str, lines: &[String], down: &mut usize) {
        let wrap = |line: &String| wrap_text(&plain_text(&make_printable(line), true), area.width.into());
        let lines: Vec<String> = lines.iter().flat_map(wrap).collect();
        self.write_text(buffer, area, title, &lines, down);
    }

    /// A title and lines below it, scrolled down by some.
    fn write_text(&self, buffer: &mut Buffer, area: Rect, title: &str, lines: &[String], down: &mut usize) {
        self.write_title(buffer, area, title);
        let rows = usize::from(area.height - 1);
        *down = (*down).min(lines.len().saturating_sub(rows));
        for (line, text) in (1..).zip(lines.iter().skip(*down).take(rows)) {
            self.write_line(buffer, line_of(area, line), text, Style::new());
        }
    }

    fn write_title(&self, buffer: &mut Buffer, area: Rect, title: &str) {
        self.write_line(buffer, line_of(area, 0), title, Style::new().add_modifier(Modifier::BOLD));
    }

    /// Writes a line, cut to its area.
    fn write_line(&self, buffer: &mut Buffer, area: Rect, text: &str, style: Style) {
        let text =
            // Cut before the change to ASCII, so that the sign for the rest is changed as well.
            plain_text(&cut_text(&plain_text(&make_printable(text), true), area.width.into()), self.looks.unicode);
        // The style reaches to the end of the line, also where the text does not.
        buffer.set_style(area, style);
        buffer.set_stringn(area.x, area.y, text, usize::from(area.width), style);
    }

    fn sign(&self, state: RowState) -> (&'static str, Color) {
        match state {
            RowState::Running => (self.pick("●", "*"), Color::Cyan),
            RowState::Asking | RowState::Stalled => (self.pick("◆", "?"), Color::Yellow),
            RowState::Waiting | RowState::Idle => (self.pick("○", "o"), Color::Cyan),
            RowState::Blocked => (self.pick("◌", "o"), Color::DarkGray),
            RowState::Cancelled => (self.pick("■", "#"), Color::Yellow),
            RowState::Ended(Status::Succeeded) => (self.pick("✓", "+"), Color::Green),
            RowState::Ended(Status::Failed) => (self.pick("✗", "x"), Color::Red),
            RowState::Ended(Status::Skipped) => ("-", Color::DarkGray),
        }
    }

    fn pick(&self, unicode: &'static str, ascii: &'static str) -> &'static str {
        if self.looks.unicode { unicode } else { ascii }
    }

    fn style(&self, colour: Color) -> Style {
        if self.looks.colour { Style::new().fg(colour) } else { Style::new() }
    }
}
