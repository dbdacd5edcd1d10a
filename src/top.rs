//! `swarmc top`: a run on the whole screen, whichever process runs it.
//!
//! In: the journal and the logs of a run, and keys. Out: frames; answers and stops go to the run as from `swarmc approve`
//! and `swarmc stop`. Only this file, `log_tail` and `notice_tail` do I/O: `model` decides what is shown, `draw` shows
//! it. Invariants: leaving ends no run, and the terminal is as it was, also after a panic; without a terminal no control
//! character is written.

mod asks;
mod draw;
mod fit;
mod keys;
mod layers;
mod log_tail;
mod model;
mod notice_tail;
mod pictures;
mod replay;

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use miette::IntoDiagnostic;
use ratatui::backend::TestBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{
    self, DisableMouseCapture, EnableMouseCapture, Event, KeyEventKind, MouseButton, MouseEvent, MouseEventKind,
};
use ratatui::crossterm::execute;
use ratatui::{DefaultTerminal, Terminal};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use swarmc_runtime::{Layout, RunFolder, Stream as TaskStream, answer_gate, request_stop, send_message};
use swarmc_view::{FollowedRun, RowState, format_size, now_ms};

use self::draw::{Looks, Picture, draw};
use self::keys::read_key;
use self::log_tail::LogTail;
use self::model::{Model, Overlay, Replay, UserCommand};
use self::notice_tail::NoticeTail;
use self::replay::PastRun;
use crate::agent_log::find_step_format;
use crate::args::Top;
use crate::exit::Exit;
use crate::home::{find_home, find_run};
use crate::summary::{latest_time, write_table};
use crate::terminal::{self, Stream};

/// How long a wait for a key lasts, and so how often the run is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// How often a process that runs it is looked for, and times are drawn anew.
const TICK: Duration = Duration::from_secs(1);

/// The bytes from the end of a log that are copied, and the steps that stay on the terminal at the end.
const COPIED: usize = 64 * 1024;
const ENDING: usize = 200;

/// Whether clicks and the wheel come here, and not to the terminal: what gives that back has to know it.
static MOUSE: AtomicBool = AtomicBool::new(false);

/// The size of a frame that is printed where there is no terminal to ask.
const PRINTED: (u16, u16) = (120, 40);

pub(crate) fn exec(args: &Top) -> miette::Result<Exit> {
    let run = args.run.as_deref().filter(|run| *run != "last");
    let folder = find_run(&find_home()?, run, "is there", |_| true)?;
    let screen = Screen::open(folder)?;
    match has_screen() {
        true => screen.show(),
        false => screen.print_frames(args.frames, Duration::from_secs_f64(args.delay)),
    }
}

/// Whether there is a terminal to draw on, and a person at it.
pub(crate) fn has_screen() -> bool {
    Stream::Out.is_watched()
}

/// Shows a run until a person leaves.
pub(crate) fn show_run(folder: RunFolder) -> miette::Result<Exit> {
    Screen::open(folder)?.show()
}

/// A run on a screen.
struct Screen {
    run: FollowedRun,
    /// What is shown in its place: how it was before its end.
    past: Option<PastRun>,
    layout: Layout,
    model: Model,
    log: LogTail,
    /// What people should know of the attempt whose log that is.
    notices: NoticeTail,
    is_running: bool,
    looks: Looks,
    /// When a runner was looked for, and the times were drawn.
    ticked: Instant,
}

impl Screen {
    fn open(folder: RunFolder) -> miette::Result<Screen> {
        let run = FollowedRun::open(folder).map_err(|error| miette::miette!("{error}"))?;
        let layout = run.folder.layout(run.past.pipeline());
        let is_running = run.folder.is_running();
        let looks =
            Looks { colour: Stream::Out.paint().colour, unicode: shows_unicode(|name| std::env::var(name).ok()) };
        let mut screen = Screen {
            run,
            past: None,
            layout,
            model: Model::new(),
            log: LogTail::default(),
            notices: NoticeTail::default(),
            is_running,
            looks,
            ticked: Instant::now(),
        };
        screen.model.update(&screen.run);
        screen.select_log();
        Ok(screen)
    }

    /// Takes what came meanwhile; whether the picture has changed.
    fn poll(&mut self) -> bool {
        let mut changed = match self.run.poll() {
            Ok(changed) => changed,
            Err(error) => {
                self.model.notice = Some(error.to_string());
                true
            }
        };
        if changed && self.run.report.finished.is_none() {
            // It goes on.
            (self.past, self.model.replays) = (None, false);
        }
        if self.past.as_ref().is_some_and(PastRun::is_due)
            && let Some(past) = self.past.take()
        {
            self.past = self.note_problem(|screen| past.play(&screen.run));
            changed = true;
        }
        if changed {
            self.model.replays = self.past.is_some();
            self.model.update(shown_run(&self.run, self.past.as_ref()));
        }
        if self.ticked.elapsed() >= TICK {
            self.ticked = Instant::now();
            let was_running = std::mem::replace(&mut self.is_running, self.run.folder.is_running());
            // Times go on only while a runner lives; one more frame after its end says that it is gone.
            changed |= was_running || self.is_running;
        }
        // Not `||`: the log is read also where the picture has changed anyway.
        changed | self.select_log()
    }

    /// What was asked for, or none and the problem in a line at the bottom.
    fn note_problem<T, E: ToString>(&mut self, ask: impl FnOnce(&Screen) -> Result<Option<T>, E>) -> Option<T> {
        ask(self).unwrap_or_else(|error| {
            self.model.notice = Some(error.to_string());
            None
        })
    }

    /// Shows how the run was, where it is over.
    fn replay(&mut self, replay: Replay) {
        if self.run.report.finished.is_none() {
            self.model.notice = Some("it goes on: how it went can be shown when it is over".to_owned());
            return;
        }
        let past = self.past.take();
        // At the end of a run nothing is at work to follow; in its past something is.
        self.model.follows |= past.is_none();
        self.past = self.note_problem(|screen| PastRun::show(past, &screen.run, replay));
        self.model.replays = self.past.is_some();
        self.model.update(shown_run(&self.run, self.past.as_ref()));
        self.select_log();
    }

    /// Follows the log of the selected step; whether there is more of it.
    fn select_log(&mut self) -> bool {
        let run = shown_run(&self.run, self.past.as_ref());
        let row = self.model.selected_row(run);
        let path = row
            .map_or_else(PathBuf::new, |row| self.layout.log_path(&row.step, row.attempt.max(1), TaskStream::Stdout));
        let notices = row.map_or_else(PathBuf::new, |row| self.layout.tool_log_path(&row.step, row.attempt.max(1)));
        let goes_on = row.is_some_and(|row| row.state == RowState::Running);
        let is_other = !self.log.is_of(&path);
        if is_other {
            let step = self.model.selected_row(run).map(|row| row.step.name.clone());
            let format = step.and_then(|step| find_step_format(&self.run.past.plan, &step));
            self.log = LogTail::new(path, format);
        }
        if !self.notices.is_of(&notices) {
            self.notices = NoticeTail::new(notices);
        }
        let is_noticed = self.notices.poll();
        if let Some(text) = self.notices.texts().last().filter(|_| is_noticed && goes_on) {
            // A narrow screen shows the list alone.
            self.model.notice = Some(text.clone());
        }
        self.log.poll() | is_other | is_noticed
    }

    fn draw(&mut self, frame: &mut ratatui::Frame<'_>) {
        let now = now_ms();
        let run = shown_run(&self.run, self.past.as_ref());
        let replayed = self.past.as_ref().map(|past| (past.at(), self.run.past.records.len()));
        // The clock of the past stands at its last record.
        let now = if replayed.is_some() { run.report.changed_ms } else { now };
        let Screen { log, is_running, looks, .. } = self;
        let notices = self.notices.texts();
        let picture = Picture { run, log, notices, is_running: *is_running, replayed, now, looks: *looks };
        draw(frame, &mut self.model, &picture);
        self.model.note_drawn(now);
    }

    /// Shows it on the terminal until a person leaves.
    fn show(mut self) -> miette::Result<Exit> {
        // A terminal that is gone is read for ever without an end: the loop below would not come to look at a flag.
        let mut signals = Signals::new([SIGTERM, SIGHUP]).into_diagnostic()?;
        std::thread::spawn(move || {
            if signals.forever().next().is_some() {
                give_back();
                // The run goes on without its screen, so nothing has failed.
                std::process::exit(Exit::Done as i32);
            }
        });
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            give_back();
            hook(panic);
        }));
        // Restores the terminal in a panic, too, but for the mouse.
        let mut terminal = take_terminal().into_diagnostic()?;
        let outcome = self.interact(&mut terminal);
        give_back();
        // Behind `give_back`, so that the error stands on the ordinary screen.
        outcome?;
        terminal::eprint(self.describe_end());
        Ok(Exit::Done)
    }

    /// What stays on the terminal: how each step stands, and how to come back.
    fn describe_end(&self) -> String {
        let (id, report) = (&self.run.folder.id, &self.run.report);
        let mut text = String::new();
        let rows = report.rows.iter().filter(|row| report.is_current(row)).take(ENDING);
        write_table(&mut text, report, rows, latest_time(&self.run.folder, report), Stream::Err.paint());
        text.push_str(&match report.finished {
            Some(status) => format!("\nrun {id} {}: swarmc inspect {id}\n", status.as_str()),
            None if self.run.folder.is_running() => format!("\nrun {id} goes on: swarmc top {id}\n"),
            None => format!("\nrun {id} is not running: swarmc resume {id}\n"),
        });
        text
    }

    fn interact(&mut self, terminal: &mut DefaultTerminal) -> miette::Result<()> {
        let mut is_stale = true;
        loop {
            if std::mem::take(&mut is_stale) {
                terminal.draw(|frame| self.draw(frame)).into_diagnostic()?;
                // For the test of what a panic leaves on the terminal.
                #[cfg(debug_assertions)]
                assert!(std::env::var_os("SWARMC_TOP_PANIC").is_none(), "SWARMC_TOP_PANIC is set");
            }
            if event::poll(LOOK).into_diagnostic()? {
                // All keys that wait count before the next picture.
                loop {
                    let event = event::read().into_diagnostic()?;
                    if let Event::Mouse(mouse) = event
                        && MOUSE.load(Ordering::Acquire)
                    {
                        self.take_mouse(mouse);
                    }
                    if let Event::Key(key) = event
                        && key.kind != KeyEventKind::Release
                        && let Some(key) = read_key(key, self.model.takes_text())
                        && let Some(command) = self.model.press(key, shown_run(&self.run, self.past.as_ref()), now_ms())
                        && self.carry_out(command, terminal)?
                    {
                        return Ok(());
                    }
                    if !event::poll(Duration::ZERO).into_diagnostic()? {
                        break;
                    }
                }
                is_stale = true;
            }
            is_stale |= self.poll();
        }
    }

    fn take_mouse(&mut self, mouse: MouseEvent) {
        let run = shown_run(&self.run, self.past.as_ref());
        match mouse.kind {
            MouseEventKind::Down(MouseButton::Left) => self.model.click(mouse.column, mouse.row),
            MouseEventKind::ScrollUp => self.model.turn_wheel(true, mouse.column, run, now_ms()),
            MouseEventKind::ScrollDown => self.model.turn_wheel(false, mouse.column, run, now_ms()),
            _ => {}
        }
    }

    /// Does what a person wants; whether that ends the screen.
    fn carry_out(&mut self, command: UserCommand, terminal: &mut DefaultTerminal) -> miette::Result<bool> {
        match command {
            UserCommand::Leave => return Ok(true),
            UserCommand::Stop => {
                self.model.overlay = Overlay::None;
                self.model.notice = Some(match request_stop(&self.run.folder) {
                    Ok(()) => "the run ends; it can be resumed".to_owned(),
                    Err(error) => error.to_string(),
                });
            }
            UserCommand::Answer(answer) => {
                self.model.overlay = Overlay::None;
                self.model.notice = Some(match answer_gate(&self.run.folder, &answer) {
                    Ok(()) => format!("answered: {}", answer.choice),
                    Err(error) => {
                        self.model.refused = Some(answer.gate);
                        error.to_string()
                    }
                });
            }
            UserCommand::Resume => {
                self.model.notice = Some(match self.start_resume() {
                    Ok(()) => "the run is being resumed: runner.log says how that goes".to_owned(),
                    Err(error) => format!("it cannot be resumed: {error}"),
                });
            }
            UserCommand::Copy => {
                // The terminal takes the text for its clipboard (OSC 52), also over SSH.
                let text = self.log.text(COPIED);
                terminal::print(format!("\x1b]52;c;{}\x07", BASE64_STANDARD.encode(text)))?;
                self.model.notice = Some("the end of the log is copied, where this terminal allows it".to_owned());
            }
            UserCommand::Save => self.model.notice = Some(self.save_log()),
            UserCommand::Mouse => {
                let is_on = !MOUSE.fetch_xor(true, Ordering::AcqRel);
                set_mouse(is_on).into_diagnostic()?;
                self.model.notice = Some(match is_on {
                    true => "clicks select and the wheel scrolls: M gives the mouse back to the terminal".to_owned(),
                    false => "the terminal has the mouse".to_owned(),
                });
            }
            UserCommand::Tell(message) => {
                self.model.notice = Some(match send_message(&self.run.folder, &message) {
                    Ok(said) if said.is_empty() => format!("written to {}: {}", message.to, message.text),
                    Ok(said) => said,
                    Err(error) => error.to_string(),
                });
            }
            UserCommand::Replay(replay) => self.replay(replay),
            UserCommand::Page => self.open_pager(terminal)?,
            UserCommand::Suspend => {
                give_back();
                rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::TSTP)
                    .into_diagnostic()?;
                *terminal = take_terminal().into_diagnostic()?;
                terminal.clear().into_diagnostic()?;
            }
        }
        Ok(false)
    }

    /// Saves the whole log of the selected step as a file of the current folder; what to say of it.
    fn save_log(&self) -> String {
        let log = self.log.path();
        // The name of a log has no sign that means something to a file system.
        let Some(name) = log.file_name().and_then(|name| name.to_str()) else {
            return "no log to save: the step has not begun".to_owned();
        };
        let name = format!("{}-{name}.log", self.run.folder.id);
        // The file begins with the first byte.
        if !log.exists() {
            return "no log to save: the step has written nothing so far".to_owned();
        }
        let save = || {
            let mut from = std::fs::File::open(log)?;
            // Nothing that is there is written over.
            let mut to = std::fs::File::options().create_new(true).write(true).open(&name)?;
            std::io::copy(&mut from, &mut to)
        };
        match save() {
            Ok(bytes) => format!("saved as {name}, {}", format_size(bytes)),
            Err(error) => format!("cannot save the log as {name}: {error}"),
        }
    }

    /// Goes on with the run in a process that outlives the screen.
    fn start_resume(&self) -> std::io::Result<()> {
        let log = std::fs::File::options().create(true).append(true).open(self.run.folder.path.join("runner.log"))?;
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["resume", &self.run.folder.id, "--detach", "--quiet"]).stdin(Stdio::null());
        let mut child = command.stdout(log.try_clone()?).stderr(log).spawn()?;
        // A child that ends is a zombie until it is waited for, and the screen may live for days.
        std::thread::spawn(move || child.wait());
        Ok(())
    }

    /// Shows the log of the selected step in the pager of the person.
    fn open_pager(&mut self, terminal: &mut DefaultTerminal) -> miette::Result<()> {
        let pager = std::env::var("PAGER").ok().filter(|pager| !pager.is_empty()).unwrap_or_else(|| "less".to_owned());
        // Ctrl-C in the pager is a signal for this process as well, and means nothing to it.
        let _ = signal_hook::flag::register(SIGINT, Arc::default());
        let mut words = pager.split_whitespace();
        let Some(program) = words.next() else { return Ok(()) };
        give_back();
        // Without `-R` it writes control characters as their codes.
        let shown =
            Command::new(program).args(words).arg(self.log.path()).env("LESS", "-M").env_remove("LESSOPEN").status();
        *terminal = take_terminal().into_diagnostic()?;
        terminal.clear().into_diagnostic()?;
        if let Err(error) = shown {
            self.model.notice = Some(format!("cannot start `{program}`: {error}"));
        }
        Ok(())
    }

    /// Prints frames as text, where no terminal is there to draw on.
    fn print_frames(mut self, frames: u64, delay: Duration) -> miette::Result<Exit> {
        let size = if Stream::Out.is_terminal() { Stream::Out.size() } else { (PRINTED.0.into(), PRINTED.1.into()) };
        let (columns, rows) = (u16::try_from(size.0).unwrap_or(PRINTED.0), u16::try_from(size.1).unwrap_or(PRINTED.1));
        let mut printed = 0;
        loop {
            // Looked at first: what a runner wrote before its end is in the last frame.
            let is_over = !self.run.folder.is_running();
            self.poll();
            let mut terminal = Terminal::new(TestBackend::new(columns, rows)).into_diagnostic()?;
            terminal.draw(|frame| self.draw(frame)).into_diagnostic()?;
            terminal::print(to_text(terminal.backend()))?;
            printed += 1;
            if printed == frames || frames == 0 && is_over {
                return Ok(Exit::Done);
            }
            std::thread::sleep(delay);
        }
    }
}

/// The run that is on the screen.
fn shown_run<'s>(run: &'s FollowedRun, past: Option<&'s PastRun>) -> &'s FollowedRun {
    past.map_or(run, |past| &past.run)
}

/// Takes the terminal, with the mouse where a person wanted that.
fn take_terminal() -> std::io::Result<DefaultTerminal> {
    let terminal = ratatui::try_init()?;
    if MOUSE.load(Ordering::Acquire) {
        set_mouse(true)?;
    }
    Ok(terminal)
}

fn set_mouse(is_on: bool) -> std::io::Result<()> {
    match is_on {
        true => execute!(std::io::stdout(), EnableMouseCapture),
        false => execute!(std::io::stdout(), DisableMouseCapture),
    }
}

/// Gives the terminal back as it was, with its cursor, which a frame hides. One that is gone takes nothing.
fn give_back() {
    if MOUSE.load(Ordering::Acquire) {
        let _ = set_mouse(false);
    }
    let _ = ratatui::try_restore();
    let _ = execute!(std::io::stdout(), Show);
}

/// The cells of a frame as lines, without the blanks at their ends.
fn to_text(backend: &TestBackend) -> String {
    let buffer = backend.buffer();
    let mut text = String::new();
    for y in 0..buffer.area.height {
        let line: String = (0..buffer.area.width).map(|x| buffer[(x, y)].symbol()).collect();
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Whether the locale has more signs than ASCII.
fn shows_unicode(variable: impl Fn(&str) -> Option<String>) -> bool {
    let set =
        ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(|name| variable(name).filter(|value| !value.is_empty()));
    set.is_none_or(|locale| {
        let locale = locale.to_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}
