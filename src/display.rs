//! Shows a run as it happens on standard error: task lines with a prefix, and progress; or JSON lines on standard output.
//!
//! In: the events of the runtime's observer. Out: whole lines only, even if several tasks print at once. On a terminal
//! a few live lines below them show what runs, for how long, and how much is done. Standard output stays free for the
//! result. If a stream breaks (`| head`), the display stops writing to it, and the run goes on.

mod output;
mod swarm;

/// The first line of what a person wrote; of a long text, how long it is.
fn show_first_line(content: &Content) -> String {
    match content {
        Content::Text(text) => make_printable(text.lines().next().unwrap_or_default()).into_owned(),
        Content::Artifact { bytes, .. } => format!("({bytes} bytes)"),
    }
}

#[cfg(test)]
mod tests;
mod waiting;

use std::collections::HashMap;
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use swarmc_plan::{Pipeline, StopStatus};
use swarmc_runtime::{AnsweredBy, Content, Event, Observer, Record, Signal, SnapshotWriter, Status, StepId};
use swarmc_view::documents::{RunLine, RunLineKind, encode};
use swarmc_view::{
    Change, EventLine, OpenRequest, Past, Row, RowState, RunReport, describe_verdict, format_ask, format_choices,
    format_duration, make_printable,
};

use self::output::{Tail, has_failed};
use self::waiting::{Silence, find_folder, read_waiting};
use crate::args::{LogLines, Show};
use crate::live::Live;
use crate::terminal::{Paint, Stream};

/// Names longer than this are not lined up.
const MAX_LABEL: usize = 24;

/// How often the live lines are drawn anew, and how often plain output looks whether to say what it waits for.
const FRAME: Duration = Duration::from_millis(100);
const LOOK: Duration = Duration::from_secs(1);

/// The display of one run; clones are the same.
#[derive(Clone)]
pub(crate) struct Display {
    shared: Arc<Mutex<Screen>>,
    /// How often a person asked to end the run. Apart from the screen, which may be stuck at a slow terminal.
    asked: Arc<AtomicU8>,
    live: bool,
}

struct Screen {
    show: Show,
    ledger: RunReport,
    out: Sink,
    err: Sink,
    /// The position of each step in the plan, which decides its colour.
    order: HashMap<String, usize>,
    label_width: usize,
    pending: HashMap<(StepId, u32, bool), Vec<u8>>,
    /// Where the lines of a piece of output are gathered: its memory is used again.
    gathered: Vec<u8>,
    /// The last lines of the attempts that go on, where only those are shown.
    tails: HashMap<(StepId, u32), Tail>,
    live: Option<Live>,
    /// How long nothing has been said, and what the run waits for as far as that is shown on a terminal.
    silence: Silence,
    waiting: Vec<String>,
    asked: Arc<AtomicU8>,
    /// Whether no person attends the run.
    headless: bool,
    /// Whether the run takes results of earlier runs.
    reuses: bool,
    /// Where the id of the run is written once the run has begun, for the program that started it.
    id_file: Option<PathBuf>,
    /// What keeps snapshots of the report, from the first record on, and how many records the last one holds.
    snapshots: Option<SnapshotWriter>,
    folded: u64,
}

/// A stream that may break.
struct Sink {
    writer: Box<dyn Write + Send>,
    terminal: bool,
    paint: Paint,
    broken: bool,
}

impl Display {
    /// A display for a run of `pipeline`, whose report `ledger` may contain an earlier part of the run.
    pub(crate) fn new(pipeline: &Pipeline, ledger: RunReport, show: Show) -> Display {
        let live = (Stream::Err.is_watched() && !show.quiet && !show.is_machine()).then(Live::new);
        let screen = Screen::new(pipeline, ledger, show, [Sink::new(Stream::Out), Sink::new(Stream::Err)], live);
        Display { live: screen.live.is_some(), asked: screen.asked.clone(), shared: Arc::new(Mutex::new(screen)) }
    }

    /// The observer to hand to the runtime.
    pub(crate) fn observer(&self) -> Box<dyn Observer> {
        Box::new(self.clone())
    }

    /// Draws the live lines anew, and shows what the run waits for.
    fn advance(&self) {
        let now = swarmc_view::now_ms();
        let run = {
            let mut screen = self.lock_screen();
            screen.advance_frame();
            screen.silence.is_over(now).then(|| screen.ledger.run.clone())
        };
        // The screen is free while the journal is read: what a person types is answered meanwhile.
        if let Some(run) = run {
            let waiting = read_waiting(&run);
            self.lock_screen().show_waiting(waiting, now);
        }
    }

    /// Whether a person at this terminal can be asked.
    pub(crate) fn can_ask(&self) -> bool {
        self.live
    }

    /// The gate that has waited longest.
    pub(crate) fn first_gate(&self) -> Option<StepId> {
        let screen = self.lock_screen();
        screen.ledger.rows.iter().find(|row| row.state == RowState::Asking).map(|row| row.step.clone())
    }

    /// Whether an agent waits for an answer to the request of this number.
    pub(crate) fn has_request(&self, id: u32) -> bool {
        self.lock_screen().ledger.approvals.contains_key(&id)
    }

    /// The same, for a run that takes results of earlier runs, or does not.
    pub(crate) fn with_reuse(self, reuses: bool) -> Display {
        self.lock_screen().reuses = reuses;
        self
    }

    /// The same, for a run that another program started: it reads the id of the run from this file.
    pub(crate) fn with_id_file(self, file: Option<PathBuf>) -> Display {
        self.lock_screen().id_file = file;
        self
    }

    /// The same, for a run that goes on, of whose report a snapshot holds so many records.
    pub(crate) fn with_snapshot(self, records: u64) -> Display {
        self.lock_screen().folded = records;
        self
    }

    /// Sets that no person attends the run: the policy decides requests of agents at once.
    pub(crate) fn with_headless(self, headless: bool) -> Display {
        self.lock_screen().headless = headless;
        self
    }

    /// Shows what is wrong with something that was typed.
    pub(crate) fn show_problem(&self, problem: &str) {
        self.lock_screen().write_notice(problem);
    }

    /// Says that a person asked for the end, once or more.
    pub(crate) fn request_stop(&self, times: u8) {
        self.asked.store(times, Ordering::Relaxed);
        if !self.live {
            crate::terminal::eprint(format!("{}\n", describe_stop(times)));
        }
    }

    /// Passes on what is left, takes the live lines away, and gives back what became of the steps.
    pub(crate) fn finish(&self) -> RunReport {
        let mut screen = self.lock_screen();
        screen.flush_all();
        screen.live_off();
        // A problem with a line typed meanwhile may still be shown: it must not draw them again.
        screen.live = None;
        screen.end_snapshots();
        std::mem::take(&mut screen.ledger)
    }

    fn lock_screen(&self) -> MutexGuard<'_, Screen> {
        // The run must not end because a thread that draws has panicked.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Display {
    fn recorded(&mut self, record: &Record) {
        let mut screen = self.lock_screen();
        screen.handle_record(record);
        screen.note_record(record.seq);
    }

    fn output(&mut self, step: &StepId, attempt: u32, stream: swarmc_runtime::Stream, bytes: &[u8]) {
        self.lock_screen().write_output(step, attempt, stream == swarmc_runtime::Stream::Stderr, bytes);
    }

    fn notice(&mut self, text: &str) {
        self.lock_screen().write_notice(text);
    }

    fn signal(&mut self, signal: &Signal) {
        self.lock_screen().write_json(&RunLine::from(RunLineKind::Signal(signal.clone())));
    }

    fn wants_signals(&self) -> bool {
        self.lock_screen().show.is_machine()
    }

    fn wants_output(&self) -> bool {
        self.lock_screen().show.log_lines() != LogLines::None
    }

    fn tick_interval(&self) -> Option<Duration> {
        let show = self.lock_screen().show;
        (!show.is_machine() && !show.quiet).then_some(if self.live { FRAME } else { LOOK })
    }

    fn tick(&mut self) {
        self.advance();
    }
}

impl Screen {
    fn new(pipeline: &Pipeline, ledger: RunReport, show: Show, [out, err]: [Sink; 2], live: Option<Live>) -> Screen {
        let suffix = if ledger.instances > 1 { ledger.instances.to_string().len() + 1 } else { 0 };
        let widest = pipeline.steps.iter().map(|step| step.name.len()).max().unwrap_or(0);
        let order = pipeline.steps.iter().enumerate().map(|(index, step)| (step.name.clone(), index)).collect();
        Screen {
            show,
            ledger,
            out,
            err,
            order,
            label_width: (widest + suffix).min(MAX_LABEL),
            pending: HashMap::new(),
            gathered: Vec::new(),
            tails: HashMap::new(),
            silence: Silence::new(live.is_some()),
            waiting: Vec::new(),
            live,
            asked: Arc::default(),
            headless: false,
            reuses: false,
            id_file: None,
            snapshots: None,
            folded: 0,
        }
    }

    /// The run has recorded so many records.
    fn note_record(&mut self, seq: u64) {
        let snapshots = self.snapshots.get_or_insert_with(|| {
            let run = self.ledger.run.clone();
            SnapshotWriter::new(self.folded, move || find_folder(&run).is_some_and(|folder| Past::keep_report(&folder)))
        });
        snapshots.note_record(seq);
    }

    /// Waits for the snapshot that is being made. A run that has ended needs none.
    fn end_snapshots(&mut self) {
        self.snapshots = None;
        if self.ledger.finished.is_some()
            && let Some(folder) = find_folder(&self.ledger.run)
        {
            folder.remove_snapshots();
        }
    }

    fn handle_record(&mut self, record: &Record) {
        if let Event::RunStarted { run, .. } = &record.event
            && let Some(file) = self.id_file.take()
        {
            // Whole or not at all: the program reads it as soon as it is there.
            let new = file.with_extension("new");
            if let Err(problem) = std::fs::write(&new, run).and_then(|()| std::fs::rename(&new, &file)) {
                self.write_notice(&format!("cannot write `{}`: {problem}", file.display()));
            }
        }
        if self.show.events {
            self.write_json(&EventLine::from(record));
        }
        if self.show.json {
            self.write_json(&RunLine::from(RunLineKind::Record(Box::new(record.clone()))));
        }
        // The rest of its output belongs above the line that says how it ended.
        if let Some((step, attempt)) = record.event.ended_attempt() {
            self.flush_attempt(step, attempt);
            self.end_tail(step, attempt, has_failed(&record.event));
        }
        let change = self.ledger.apply(record);
        if self.live.is_some() {
            self.waiting.clear();
            self.silence.restart(record.at);
        }
        if self.show.is_machine() || self.show.quiet {
            return;
        }
        if let Some(words) = change.and_then(|change| self.describe_change(change)) {
            self.write_lines((words + "\n").as_bytes());
        }
    }

    /// What there is to say of a change, in lines.
    fn describe_change(&self, change: Change<'_>) -> Option<String> {
        let ledger = &self.ledger;
        let label = |row: &Row| ledger.label(&row.step);
        let took = |row: &Row| format_duration(row.elapsed(row.ended_ms));
        Some(match change {
            Change::RunStarted { pipeline, task } => match task {
                Some(task) => format!("run {}: task {task} of pipeline {pipeline}", ledger.run),
                None => format!("run {}: pipeline {pipeline}", ledger.run),
            },
            Change::RunResumed => self.describe_resumption("resumed", "had settled"),
            Change::RunReopened => self.describe_resumption("goes on", "stay as they ended"),
            Change::RequestAsked { step, request } => {
                let is_decided = self.headless || ledger.is_always(step, request);
                self.format_request(ledger.approvals.get(&request.id).filter(|_| !is_decided)?)
            }
            Change::RequestAnswered { verdict, .. } if verdict.by == AnsweredBy::Earlier => return None,
            Change::RequestAnswered { request, verdict } => {
                let sign = if verdict.is_allowed() { " ".to_owned() } else { self.err.paint.yellow("-") };
                let label = ledger.label(&request.step);
                format!("{sign} {label}: {}: {}", request.describe(), describe_verdict(verdict))
            }
            Change::AgentMessaged { step, agent } => {
                let (sign, agent) = (self.err.paint.yellow("›"), make_printable(agent));
                format!("{sign} a person writes to {}/{agent}", ledger.label(step))
            }
            Change::StepMessaged { to, letter } => {
                let whom = match (&letter.answers, letter.interrupts) {
                    // The policy may have decided, without a person.
                    (Some(_), _) => format!("the run writes to {to}"),
                    (None, true) => format!("a person interrupts {to}"),
                    (None, false) => format!("a person writes to {to}"),
                };
                format!("{} {whom}: {}", self.err.paint.yellow("›"), show_first_line(&letter.content))
            }
            Change::PackAppended { pack, text } => {
                format!("{} a person appends to {pack}: {}", self.err.paint.yellow("›"), show_first_line(text))
            }
            Change::QuestionAsked { step, message } => self.format_question(step, message),
            Change::QuestionAnswered { row, choice } => format!("  {}: {choice}", label(&ledger.rows[row])),
            Change::Interrupted { row } => {
                let row = &ledger.rows[row];
                format!("  {}: interrupted after {}; it goes on", label(row), took(row))
            }
            // The live line of the step says so as long as it lasts.
            Change::SummaryStarted { .. } if self.live.is_some() => return None,
            Change::SummaryStarted { row, agent } => {
                format!("  {}: agent `{agent}` sums up files for its context", label(&ledger.rows[row]))
            }
            Change::SummaryEnded { row } => {
                let row = &ledger.rows[row];
                format!("  {}: files summed up after {}", label(row), took(row))
            }
            Change::Escalated { row } => self.format_failure(&ledger.rows[row]),
            Change::Step { row } => return self.describe_row(&ledger.rows[row]),
            Change::Swarm { step, change } => {
                let team = ledger.teams.get(step)?;
                return swarm::format_change(team, &change, &ledger.label(step), self.err.paint, self.live.is_some());
            }
        })
    }

    /// That the run goes on: how many steps stay as they are, and what is still asked.
    fn describe_resumption(&self, what: &str, how: &str) -> String {
        let counts = self.ledger.count_rows();
        let settled = counts.succeeded + counts.failed + counts.skipped;
        let (run, total) = (&self.ledger.run, self.ledger.total);
        let mut text = format!("run {run}: {what}, {settled} of {total} steps {how}");
        // They opened before, and nothing will say so again.
        for row in self.ledger.rows.iter().filter(|row| row.state == RowState::Asking) {
            if let Some(message) = &row.question {
                text.push_str(&format!("\n{}", self.format_question(&row.step, message)));
            }
        }
        for pending in self.ledger.approvals.values().filter(|_| !self.headless) {
            text.push_str(&format!("\n{}", self.format_request(pending)));
        }
        text
    }

    /// What a gate asks, and how to answer.
    fn format_question(&self, step: &StepId, message: &Content) -> String {
        let name = self.ledger.label(step);
        let mut text = format!("{} {name} waits for an answer", self.err.paint.yellow("?"));
        if let Content::Text(message) = message {
            message.lines().for_each(|line| text.push_str(&format!("\n    {}", make_printable(line))));
        }
        let gate = self.ledger.gates.get(&*step.name);
        let options = gate.map_or("CHOICE".to_owned(), |gate| gate.options.join("|"));
        let asks = gate.iter().flat_map(|gate| &gate.ask);
        let fields = asks.clone().map(|ask| match ask.optional {
            true => format!(" [{}=…]", ask.name),
            false => format!(" {}=…", ask.name),
        });
        let fields: String = fields.collect();
        let asks: String = asks.map(|ask| format_ask(&ask.name, ask.optional)).collect();
        if self.live.is_some() {
            text.push_str(&format!("\n  type {options}{fields} and Enter, or elsewhere:"));
        }
        text + &format!("\n  swarmc approve {} {name} {options}{asks}", self.ledger.run)
    }

    /// What an agent wants, and how to answer.
    fn format_request(&self, pending: &OpenRequest) -> String {
        let (id, run) = (pending.request.id, &self.ledger.run);
        let sign = self.err.paint.yellow("?");
        let mut text = format!("{sign} {}: {}", self.ledger.label(&pending.step), pending.describe());
        if let Some(expiry) = pending.describe_expiry(swarmc_view::now_ms()) {
            text.push_str(&format!(", {expiry}"));
        }
        pending.detail_lines(|_| None).iter().for_each(|line| text.push_str(&format!("\n    {line}")));
        if pending.is_elsewhere() {
            text.push_str(&format!("\n  see it first: swarmc approve {run}"));
        }
        if self.live.is_some() {
            let how = match pending.request.wants.is_help() {
                true => format!("{id} allow WORDS or {id} deny WHY"),
                false => format!("{id} allow, {id} always or {id} deny WHY"),
            };
            text.push_str(&format!("\n  type {how}, and Enter, or elsewhere:"));
        }
        text + &format!("\n  swarmc approve {run} {id} {}", format_choices(&pending.request.wants))
    }

    /// That an attempt failed, and why.
    fn format_failure(&self, row: &Row) -> String {
        let round = if self.ledger.rounds > 1 { format!(" in round {}", row.step.iteration) } else { String::new() };
        let reason = make_printable(row.reason().lines().next().unwrap_or_default()).into_owned();
        let took = format_duration(row.elapsed(row.ended_ms));
        let (sign, label) = (self.err.paint.red("✗"), self.ledger.label(&row.step));
        format!("{sign} {label}: failed after {took}{round}{}: {reason}", format_use(row))
    }

    /// What there is to say of a row that changed. What runs is seen in the live lines.
    fn describe_row(&self, row: &Row) -> Option<String> {
        let name = self.ledger.label(&row.step);
        let paint = self.err.paint;
        let round = if self.ledger.rounds > 1 { format!(" in round {}", row.step.iteration) } else { String::new() };
        let took = format_duration(row.elapsed(row.ended_ms));
        let reason = || make_printable(row.reason().lines().next().unwrap_or_default()).into_owned();
        Some(match row.state {
            RowState::Running if self.live.is_some() => return None,
            // What is reused is over at once, and its next line says so.
            RowState::Running if self.reuses && row.missed.is_none() => return None,
            RowState::Running if row.attempt > 1 => format!("  {name}: attempt {} started{round}", row.attempt),
            RowState::Running => match &row.missed {
                Some(reason) => format!("  {name}: started{round}: {}", make_printable(reason)),
                None => format!("  {name}: started{round}"),
            },
            RowState::Asking => format!("{} {name}: waits for an answer{round}", paint.yellow("?")),
            // What is asked stands beside it; and what has not begun is no change.
            RowState::Stalled | RowState::Blocked => return None,
            RowState::Idle => {
                let post = row.post.as_ref().map(|post| post.summarize()).unwrap_or_default();
                format!("  {name}: waits for envelopes after {took}{}: {post}", format_use(row))
            }
            RowState::Waiting if row.failure.is_none() => format!("  {name}: mended in {took}; it runs once more"),
            RowState::Waiting => {
                let attempt = format!("attempt {} of {} failed", row.turn_attempts(), row.attempts);
                format!("{} {name}: {attempt}: {}", paint.yellow("!"), reason())
            }
            RowState::Cancelled => format!("{} {name}: cancelled after {took}", paint.yellow("-")),
            RowState::Ended(Status::Succeeded) if row.message.is_some() => {
                let sign = match self.ledger.stop_status(&row.step) {
                    Some(StopStatus::Failure) => paint.red("✗"),
                    _ => paint.green("✓"),
                };
                let message = match row.message.as_deref() {
                    Some(Content::Text(text)) if !text.trim().is_empty() => {
                        format!(": {}", make_printable(text.trim().lines().next().unwrap_or_default()))
                    }
                    _ => String::new(),
                };
                format!("{sign} {name}: ends the pipeline{round}{message}")
            }
            RowState::Ended(Status::Succeeded) if row.reused.is_some() => {
                let run = row.reused.as_deref().map_or("", |reused| &reused.run);
                format!("{} {name}: reused from {run}{round}", paint.green("✓"))
            }
            RowState::Ended(Status::Succeeded) => {
                format!("{} {name}: succeeded in {took}{round}{}", paint.green("✓"), format_use(row))
            }
            RowState::Ended(Status::Failed) => self.format_failure(row),
            RowState::Ended(Status::Skipped) => format!("{} {name}: skipped{round}: {}", paint.dim("-"), reason()),
        })
    }

    fn write_notice(&mut self, text: &str) {
        if self.show.is_machine() {
            self.write_json(&RunLine::from(RunLineKind::Notice { text: text.to_owned() }));
        } else {
            let line = format!("{} {}\n", self.err.paint.yellow("note:"), make_printable(text));
            self.write_lines(line.as_bytes());
        }
    }

    fn write_json(&mut self, line: &impl Serialize) {
        self.out.write((encode(line) + "\n").as_bytes());
    }

    /// Writes whole lines above the live ones.
    fn write_lines(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        if self.live.is_none() {
            self.silence.restart(swarmc_view::now_ms());
        }
        self.live_off();
        self.err.write(bytes);
        self.draw_frame();
    }

    fn advance_frame(&mut self) {
        if let Some(live) = &mut self.live {
            live.advance();
            self.draw_frame();
        }
    }

    fn draw_frame(&mut self) {
        // What a person types to answer a gate must stay where it is.
        let asks = || self.ledger.rows.iter().any(|row| row.state == RowState::Asking);
        if !self.ledger.approvals.is_empty() || asks() {
            return self.live_off();
        }
        let Some(live) = &mut self.live else { return };
        let note = match self.asked.load(Ordering::Relaxed) {
            0 => None,
            times => Some(describe_stop(times)),
        };
        let below = (self.waiting.as_slice(), note);
        let bytes = live.draw(&self.ledger, self.err.paint, Stream::Err.size(), below, swarmc_view::now_ms());
        self.err.write(bytes.as_bytes());
    }

    fn live_off(&mut self) {
        if let Some(live) = &mut self.live {
            let bytes = live.clear(Stream::Err.size().0);
            self.err.write(bytes.as_bytes());
        }
    }
}

impl Sink {
    fn new(stream: Stream) -> Sink {
        Sink { writer: Box::new(stream), terminal: stream.is_terminal(), paint: stream.paint(), broken: false }
    }

    fn write(&mut self, bytes: &[u8]) {
        if !self.broken && !bytes.is_empty() {
            self.broken = self.writer.write_all(bytes).is_err();
        }
    }
}

/// The tokens and the cost of a step, behind how long it took.
fn format_use(row: &Row) -> String {
    match row.describe_usage() {
        used if used.is_empty() => used,
        used => format!(", {used}"),
    }
}

fn describe_stop(times: u8) -> &'static str {
    match times {
        1 => "stopping: running tasks are being ended; Ctrl-C again kills them",
        _ => "killing running tasks",
    }
}
