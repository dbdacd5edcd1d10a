//! What `swarmc top` shows, and what keys change of it.
//!
//! In: a followed run, keys, and the time. Out: which rows, which text, which question; and what the person wants done.
//! No clock of its own. Invariant: an answer goes to the question that stood on the screen for [`SETTLED`].

use std::collections::HashMap;

use ratatui::layout::{Position, Rect};
use swarmc_runtime::{GateAnswer, Status, StepId, UserMessage};
use swarmc_view::{FollowedRun, Row, RowState, RunReport, Team, describe_answer, format_duration, sanitize_line};

use super::asks::{Ask, Filled, Filling, list_asks};
use super::keys::Key;
use super::pictures::agent_sign;

/// How long a question must stand on the screen before a key answers it, in milliseconds: a key that was on its way when
/// it came answers nothing.
const SETTLED: u64 = 400;

/// Within how long a second Ctrl-C stops the run, in milliseconds.
const TWICE: u64 = 2_000;

/// The lines that one turn of the wheel moves.
const WHEEL: usize = 3;

/// The steps that have not begun that are listed at most: a run can have millions.
const BLOCKED: usize = 1_000;

/// The agents of a swarm whose states stand in its row.
const MATES: usize = 12;

/// What is on the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    Steps,
    /// The team of the selected swarm.
    Team,
    /// Its plan.
    Plan,
}

/// Which steps are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Filter {
    All,
    Failed,
    /// At work, or waiting.
    Open,
}

/// What lies above the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overlay {
    None,
    Asks,
    Help,
    /// Stop the run, or leave?
    Ending,
}

/// A row of the list.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Entry {
    /// A step that has begun, by its place in the report.
    Begun(usize),
    /// One that has not, and what it waits for.
    Blocked(StepId, String),
}

/// What a person wants done.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum UserCommand {
    Leave,
    Stop,
    Suspend,
    /// Go on with a run that no process runs.
    Resume,
    /// The log, for the clipboard.
    Copy,
    /// The log, in a pager.
    Page,
    /// The log, as a file of the current folder.
    Save,
    /// That clicks and the wheel count, or no longer.
    Mouse,
    /// To write to an agent.
    Tell(UserMessage),
    Answer(GateAnswer),
    /// To see how a run that is over went.
    Replay(Replay),
}

/// How the past is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Replay {
    Earlier,
    Later,
    /// One record after the other, or no longer.
    Play,
    /// No longer: the end is shown.
    Leave,
}

/// A loop, a call or a for-each: its label, and its instance.
type Frame = (String, u32);

/// How the steps inside of one stand.
#[derive(Clone, Copy, Debug, Default)]
struct Inside {
    open: usize,
    succeeded: usize,
    failed: usize,
}

/// What is shown.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) view: View,
    pub(crate) overlay: Overlay,
    pub(crate) filter: Filter,
    /// The text that names must contain.
    pub(crate) query: String,
    /// Whether it is being typed.
    pub(crate) typing: bool,
    /// Whether the log has the whole screen.
    pub(crate) zoomed: bool,
    /// Where there is room for one pane: whether it is the right one.
    pub(crate) right: bool,
    pub(crate) entries: Vec<Entry>,
    /// The selected row.
    pub(crate) selected: usize,
    /// Whether the first row at work is selected until a person selects another.
    pub(crate) follows: bool,
    /// How far the log is scrolled up from its end, in lines.
    pub(crate) back: usize,
    /// How far the text of a team, a plan or a question is scrolled down, in lines.
    pub(crate) down: usize,
    pub(crate) asks: Vec<Ask>,
    /// Which of them is shown.
    pub(crate) ask: usize,
    /// The fields of its answer, while a person types them.
    pub(crate) filling: Option<Filling>,
    /// What was said last, for a line at the bottom.
    pub(crate) notice: Option<String>,
    /// What an answer was refused to; what was said to it is a notice as soon as it is known.
    pub(crate) refused: Option<String>,
    /// The steps inside of loops, calls and for-eachs, by what they are inside of.
    inside: HashMap<Frame, Inside>,
    /// Whether the past of a run that is over is shown: nothing of it can be answered.
    pub(crate) replays: bool,
    /// The rows of a page.
    pub(crate) page: usize,
    /// Where the list stands on the screen, with its title, and the place of its first row; none where it does not.
    pub(crate) list: Option<(Rect, usize)>,
    /// The question that stands on the screen, and since when.
    shown: Option<(String, u64)>,
    interrupted: Option<u64>,
}

impl Model {
    pub(crate) fn new() -> Model {
        Model {
            view: View::Steps,
            overlay: Overlay::None,
            filter: Filter::All,
            query: String::new(),
            typing: false,
            zoomed: false,
            right: false,
            entries: Vec::new(),
            selected: 0,
            follows: true,
            back: 0,
            down: 0,
            asks: Vec::new(),
            ask: 0,
            filling: None,
            notice: None,
            refused: None,
            replays: false,
            inside: HashMap::new(),
            page: 10,
            list: None,
            shown: None,
            interrupted: None,
        }
    }

    /// Lists the steps and the questions anew after the run has changed. The selected step stays selected, and so does the
    /// question that is shown.
    pub(crate) fn update(&mut self, run: &FollowedRun) {
        let kept = self.selected_step(run);
        let report = &run.report;
        let fits = |step: &StepId| self.query.is_empty() || report.label(step).contains(&self.query);
        let shows = |row: &Row| match self.filter {
            Filter::All => true,
            Filter::Failed => matches!(row.state, RowState::Ended(Status::Failed) | RowState::Cancelled),
            Filter::Open => is_open(row),
        };
        let begun = report.rows.iter().enumerate().filter(|(_, row)| shows(row) && fits(&row.step));
        let mut entries: Vec<Entry> = begun.map(|(place, _)| Entry::Begun(place)).collect();
        // After the end of a run nothing begins any more.
        if self.filter != Filter::Failed && report.finished.is_none() {
            let blocked = run.blocked_steps().filter(|(step, _)| fits(step));
            entries.extend(blocked.take(BLOCKED).map(|(step, why)| Entry::Blocked(step, why.into_owned())));
        }
        self.entries = entries;
        self.inside = count_inside(report);
        let place = kept.and_then(|step| self.entries.iter().position(|entry| *entry_step(entry, run) == step));
        self.selected = place.unwrap_or(self.selected).min(self.entries.len().saturating_sub(1));
        if self.follows {
            self.select_open(run);
        }
        let asked = self.asks.get(self.ask).map(|ask| (ask.key.clone(), ask.title.clone()));
        self.asks = if self.replays { Vec::new() } else { list_asks(run) };
        let place = asked.as_ref().and_then(|(key, _)| self.asks.iter().position(|ask| ask.key == *key));
        self.ask = place.unwrap_or(self.ask).min(self.asks.len().saturating_sub(1));
        // A form whose question another person has answered has nothing to answer.
        self.filling = self.filling.take().filter(|form| self.asks.iter().any(|ask| ask.key == form.key()));
        // Another person answered what stood on the screen.
        if let Some((key, title)) = asked.filter(|_| place.is_none() && self.overlay == Overlay::Asks)
            && let Some(said) = describe_answer(&run.past, &key)
        {
            (self.notice, self.down) = (Some(format!("{title} is answered: {said}")), 0);
        }
        if let Some(said) = self.refused.as_ref().and_then(|key| describe_answer(&run.past, key)) {
            (self.notice, self.refused) = (Some(format!("already answered: {said}")), None);
        }
    }

    /// Selects the first step that is at work or waits, and not what it is inside of; where none is, that which is selected
    /// stays so.
    fn select_open(&mut self, run: &FollowedRun) {
        let is_open = |entry: &Entry| match entry {
            Entry::Begun(place) => {
                let row = &run.report.rows[*place];
                is_open(row) && self.find_inside(row).is_none_or(|inside| inside.open == 0)
            }
            Entry::Blocked(..) => false,
        };
        if let Some(place) = self.entries.iter().position(is_open)
            // The same step keeps the place to which its log is scrolled.
            && place != self.selected
        {
            (self.selected, self.back) = (place, 0);
        }
    }

    fn find_inside(&self, row: &Row) -> Option<&Inside> {
        // Few runs have any, and a label costs.
        (!self.inside.is_empty()).then(|| self.inside.get(&(row.step.label(), row.step.instance))).flatten()
    }

    /// How the steps stand that are inside of a row's: how many have succeeded, have failed, and are at work.
    pub(crate) fn describe_inside(&self, row: &Row) -> String {
        let Some(Inside { open, succeeded, failed }) = self.find_inside(row) else { return String::new() };
        let counts = [("✓", succeeded), ("✗", failed), ("●", open)];
        let parts = counts.iter().filter(|(_, count)| **count > 0).map(|(sign, count)| format!("  {sign} {count}"));
        parts.collect()
    }

    /// The row of the selected step, where it has begun.
    pub(crate) fn selected_row<'r>(&self, run: &'r FollowedRun) -> Option<&'r Row> {
        match self.entries.get(self.selected)? {
            Entry::Begun(place) => run.report.rows.get(*place),
            Entry::Blocked(..) => None,
        }
    }

    /// What the selected step asks, where it is a gate that waits.
    pub(crate) fn selected_ask(&self, run: &FollowedRun) -> Option<&Ask> {
        let row = self.selected_row(run).filter(|row| row.state == RowState::Asking)?;
        self.asks.iter().find(|ask| ask.key == row.step.to_string())
    }

    fn selected_step(&self, run: &FollowedRun) -> Option<StepId> {
        // A run that goes on with another plan may have fewer rows.
        self.entries.get(self.selected).and_then(|entry| match entry {
            Entry::Begun(place) => run.report.rows.get(*place).map(|row| row.step.clone()),
            Entry::Blocked(step, _) => Some(step.clone()),
        })
    }

    /// The swarm whose team is shown: of the selected step, else the first.
    pub(crate) fn shown_team<'r>(&self, run: &'r FollowedRun) -> Option<(&'r StepId, &'r Team)> {
        let step = self.selected_step(run);
        let teams = &run.report.teams;
        step.and_then(|step| teams.get_key_value(&step)).or_else(|| teams.iter().min_by_key(|(step, _)| step.label()))
    }

    /// Whether characters are text and no keys.
    pub(crate) fn takes_text(&self) -> bool {
        self.typing || self.filling.is_some() && self.overlay == Overlay::Asks
    }

    /// Notes what is drawn now: since when a question stands on the screen.
    pub(crate) fn note_drawn(&mut self, now: u64) {
        let drawn = self.asks.get(self.ask).filter(|_| self.overlay == Overlay::Asks).map(|ask| &ask.key);
        match (&self.shown, drawn) {
            (Some((shown, _)), Some(key)) if shown == key => {}
            (_, key) => self.shown = key.map(|key| (key.clone(), now)),
        }
    }

    /// A key was pressed; what is wanted, where that is more than another picture.
    pub(crate) fn press(&mut self, key: Key, run: &FollowedRun, now: u64) -> Option<UserCommand> {
        (self.notice, self.refused) = (None, None);
        // Ahead of the text fields and overlays, which would take it for a key of their own.
        if key == Key::Interrupt {
            if self.interrupted.is_some_and(|before| now.saturating_sub(before) <= TWICE) {
                return Some(UserCommand::Stop);
            }
            (self.interrupted, self.overlay, self.typing) = (Some(now), Overlay::Ending, false);
            self.filling = None;
            return None;
        }
        if key == Key::Suspend {
            return Some(UserCommand::Suspend);
        }
        if self.typing {
            self.type_query(key);
            self.update(run);
            return None;
        }
        match self.overlay {
            Overlay::Ending => return self.press_ending(key, run),
            Overlay::Asks => return self.press_ask(key, now),
            Overlay::Help => {
                match key {
                    Key::Up => self.down = self.down.saturating_sub(1),
                    Key::Down => self.down = self.down.saturating_add(1),
                    _ => (self.overlay, self.down) = (Overlay::None, 0),
                }
                return None;
            }
            Overlay::None => {}
        }
        match key {
            Key::Leave => return Some(UserCommand::Leave),
            Key::Help => (self.overlay, self.down) = (Overlay::Help, 0),
            Key::Asks => (self.overlay, self.down) = (Overlay::Asks, 0),
            Key::Filter => self.typing = true,
            Key::Failed => self.toggle_filter(Filter::Failed, run),
            Key::Waiting => self.toggle_filter(Filter::Open, run),
            Key::Steps => self.show_view(View::Steps),
            Key::Team => self.show_view(View::Team),
            Key::Plan => self.show_view(View::Plan),
            Key::Open => self.zoomed = !self.zoomed,
            Key::Pane => self.right = !self.right,
            Key::Resume if self.view == View::Plan && self.proposal(run).is_some() => {
                return self.decide_proposal(false, run);
            }
            Key::Resume if !self.replays && run.report.finished.is_none() && !run.folder.is_running() => {
                return Some(UserCommand::Resume);
            }
            Key::Resume => self.notice = Some("the run is running, or has ended".to_owned()),
            Key::Earlier => return Some(UserCommand::Replay(Replay::Earlier)),
            Key::Later => return Some(UserCommand::Replay(Replay::Later)),
            Key::Play => return Some(UserCommand::Replay(Replay::Play)),
            Key::Copy => return Some(UserCommand::Copy),
            Key::Pager => return Some(UserCommand::Page),
            Key::Save => return Some(UserCommand::Save),
            Key::Mouse => return Some(UserCommand::Mouse),
            Key::Approve if self.view == View::Plan => return self.decide_proposal(true, run),
            Key::Approve => {}
            Key::Back if self.replays && !self.zoomed && self.view == View::Steps => {
                return Some(UserCommand::Replay(Replay::Leave));
            }
            Key::Back => self.go_back(run),
            Key::Up | Key::Down | Key::PageUp | Key::PageDown | Key::First | Key::Last => self.scroll(key),
            Key::Char(_) | Key::Erase | Key::Interrupt | Key::Suspend => {}
        }
        None
    }

    fn show_view(&mut self, view: View) {
        (self.view, self.zoomed, self.down) = (view, false, 0);
    }

    fn toggle_filter(&mut self, filter: Filter, run: &FollowedRun) {
        self.filter = if self.filter == filter { Filter::All } else { filter };
        self.update(run);
    }

    /// The oldest proposal for the plan that is shown, by its number; with the step of the swarm, and its coordinator.
    pub(crate) fn proposal<'r>(&self, run: &'r FollowedRun) -> Option<(&'r StepId, &'r str, u32)> {
        let (step, team) = self.shown_team(run).filter(|_| !self.replays && run.report.finished.is_none())?;
        let coordination = team.coordination.as_ref()?;
        Some((step, &coordination.coordinator, *coordination.plan.proposals.keys().next()?))
    }

    /// Asks the coordinator for a decision: it alone decides.
    fn decide_proposal(&mut self, approves: bool, run: &FollowedRun) -> Option<UserCommand> {
        let Some((step, coordinator, id)) = self.proposal(run) else {
            self.notice = Some("no proposal waits".to_owned());
            return None;
        };
        let verb = if approves { "approve" } else { "reject" };
        let text = format!("A person asks you to {verb} proposal {id}.");
        Some(UserCommand::Tell(UserMessage { to: format!("{}/{coordinator}", step.label()), text, interrupt: false }))
    }

    /// A click selects a row of the list.
    pub(crate) fn click(&mut self, column: u16, line: u16) {
        let Some((area, first)) = self.list.filter(|_| self.overlay == Overlay::None && !self.takes_text()) else {
            return;
        };
        if area.contains(Position { x: column, y: line }) && line > area.y {
            let place = first + usize::from(line - area.y - 1);
            if place < self.entries.len() {
                (self.selected, self.back, self.follows) = (place, 0, false);
            }
        }
    }

    /// The wheel moves what it is over: the list and texts by rows, the log by lines.
    pub(crate) fn turn_wheel(&mut self, up: bool, column: u16, run: &FollowedRun, now: u64) {
        let is_in_list = self.list.is_some_and(|(area, _)| column < area.right());
        if self.overlay == Overlay::None && self.view == View::Steps && !is_in_list {
            let back = if up { self.back.saturating_add(WHEEL) } else { self.back.saturating_sub(WHEEL) };
            self.back = back;
            return;
        }
        if self.takes_text() || self.overlay == Overlay::Ending {
            return;
        }
        for _ in 0..WHEEL {
            // Up and down want nothing done.
            let _ = self.press(if up { Key::Up } else { Key::Down }, run, now);
        }
    }

    /// Goes back by one: leaves the zoom, the other view, or the filter with its text and the selection.
    fn go_back(&mut self, run: &FollowedRun) {
        if self.zoomed {
            self.zoomed = false;
        } else if self.view != View::Steps {
            self.show_view(View::Steps);
        } else {
            self.filter = Filter::All;
            self.query.clear();
            self.follows = true;
            self.update(run);
        }
    }

    fn scroll(&mut self, key: Key) {
        let page = isize::try_from(self.page.max(1)).unwrap_or(isize::MAX);
        let step = match key {
            Key::Up => -1,
            Key::Down => 1,
            Key::PageUp => -page,
            Key::PageDown => page,
            Key::First => isize::MIN,
            _ => isize::MAX,
        };
        if self.view != View::Steps {
            // Where it ends is known when it is drawn.
            self.down = self.down.saturating_add_signed(step);
        } else if self.zoomed {
            // Up is further from the end. `First` is `isize::MIN`, which has no negative.
            self.back = self.back.saturating_add_signed(step.saturating_neg());
        } else {
            let last = self.entries.len().saturating_sub(1);
            (self.selected, self.back) = (self.selected.saturating_add_signed(step).min(last), 0);
            self.follows = false;
        }
    }

    fn type_query(&mut self, key: Key) {
        match key {
            Key::Char(sign) if !sign.is_control() => self.query.push(sign),
            Key::Erase => _ = self.query.pop(),
            Key::Back => {
                self.query.clear();
                self.typing = false;
            }
            Key::Open => self.typing = false,
            _ => {}
        }
    }

    fn press_ending(&mut self, key: Key, run: &FollowedRun) -> Option<UserCommand> {
        match key {
            // Here `s` stands for stop: the same key saves a log elsewhere.
            Key::Save if run.report.finished.is_none() && !self.replays => Some(UserCommand::Stop),
            Key::Char('d') | Key::Leave => Some(UserCommand::Leave),
            _ => {
                self.overlay = Overlay::None;
                None
            }
        }
    }

    fn press_ask(&mut self, key: Key, now: u64) -> Option<UserCommand> {
        if let Some(form) = &mut self.filling {
            match form.press(key) {
                Filled::Open => {}
                Filled::Dropped => self.filling = None,
                Filled::Done(answer) => {
                    self.filling = None;
                    return Some(UserCommand::Answer(answer));
                }
            }
            return None;
        }
        match key {
            Key::Back | Key::Leave | Key::Asks => self.overlay = Overlay::None,
            Key::Pane if !self.asks.is_empty() => (self.ask, self.down) = ((self.ask + 1) % self.asks.len(), 0),
            Key::Up => self.down = self.down.saturating_sub(1),
            Key::Down => self.down = self.down.saturating_add(1),
            Key::PageUp => self.down = self.down.saturating_sub(self.page),
            Key::PageDown => self.down = self.down.saturating_add(self.page),
            // `read_key` gives the digits 1 to 3 these names, as they choose a view elsewhere.
            Key::Steps => return self.answer(0, now),
            Key::Team => return self.answer(1, now),
            Key::Plan => return self.answer(2, now),
            Key::Char(digit @ '4'..='9') => return self.answer(digit as usize - '1' as usize, now),
            _ => {}
        }
        None
    }

    /// Answers what is shown with its choice of this number, from 0.
    fn answer(&mut self, number: usize, now: u64) -> Option<UserCommand> {
        let ask = self.asks.get(self.ask)?;
        let choice = ask.choices.get(number)?.clone();
        if self.shown.as_ref().is_none_or(|(key, since)| *key != ask.key || now < since + SETTLED) {
            self.notice = Some("it has just come: read it, and press again".to_owned());
            return None;
        }
        match Filling::begin(ask, choice) {
            Ok(form) => {
                self.filling = Some(form);
                None
            }
            Err(answer) => Some(UserCommand::Answer(answer)),
        }
    }
}

fn is_open(row: &Row) -> bool {
    !matches!(row.state, RowState::Ended(_) | RowState::Cancelled)
}

/// What is inside of loops, calls and for-eachs.
fn count_inside(report: &RunReport) -> HashMap<Frame, Inside> {
    let mut all: HashMap<Frame, Inside> = HashMap::new();
    for row in &report.rows {
        let Some(within) = row.step.within.as_deref() else { continue };
        // The last part says which round or item of the frame it is.
        let last = within.rfind('/').map_or(0, |slash| slash + 1);
        let end = within[last..].find(['.', '~', '[']).map_or(within.len(), |end| last + end);
        let inside = all.entry((within[..end].to_owned(), row.step.instance)).or_default();
        match row.state {
            RowState::Ended(Status::Succeeded) => inside.succeeded += 1,
            RowState::Ended(Status::Failed) => inside.failed += 1,
            _ if is_open(row) => inside.open += 1,
            _ => {}
        }
    }
    all
}

/// The step of a row.
fn entry_step<'e>(entry: &'e Entry, run: &'e FollowedRun) -> &'e StepId {
    match entry {
        Entry::Begun(place) => &run.report.rows[*place].step,
        Entry::Blocked(step, _) => step,
    }
}

/// The states of the agents of a swarm, and its totals.
fn describe_team(team: &Team) -> String {
    let signs: Vec<&str> = team.mates.iter().take(MATES).map(|mate| agent_sign(team, mate)).collect();
    format!("{}  {}", signs.join(" "), team.summarize())
}

/// What is to be said of a row: how long it takes, and what it waits for or why it ended.
pub(crate) fn describe_row(run: &FollowedRun, row: &Row, now: u64) -> String {
    let until = if is_open(row) { now.max(run.report.changed_ms) } else { row.ended_ms.max(row.started_ms) };
    let mut text = format!("{:>7}", format_duration(row.elapsed(until)));
    if row.attempt > 1 {
        text.push_str(&format!("  attempt {}", row.attempt));
    }
    let says = match row.state {
        RowState::Asking => "waits for you".to_owned(),
        RowState::Stalled => "repeats itself, waits for a decision".to_owned(),
        RowState::Idle => "waits for envelopes".to_owned(),
        RowState::Waiting => "failed, the next attempt begins soon".to_owned(),
        RowState::Running => run.report.teams.get(&row.step).map(describe_team).unwrap_or_default(),
        RowState::Blocked | RowState::Cancelled | RowState::Ended(_) => sanitize_line(&row.reason()),
    };
    if !says.is_empty() {
        text.push_str(&format!("  {says}"));
    }
    text
}
