//! `swarmc check --watch`: checks, and checks again whenever it would come out otherwise.
//!
//! The system says when to look; whether anything changed is decided by asking again what the check asked. Folders are
//! watched before that, so nothing that happens in between is missed. Ctrl-C ends it as it ends any program.

mod spots;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use miette::{IntoDiagnostic, WrapErr, miette};
use notify::{ErrorKind, Event, RecursiveMode, Watcher};

use crate::args::{Check, Format};
use crate::check;
use crate::config;
use crate::exit::Exit;
use crate::file_deps::{Became, FileDependencies};
use crate::files::relative_path;
use crate::terminal::{self, Stream};
use spots::Spots;

/// How long nothing must happen before what happened is looked at: editors save in several steps.
const QUIET: Duration = Duration::from_millis(40);

/// How long it is put off at most while it goes on happening.
const LONGEST: Duration = Duration::from_secs(1);

/// How many paths are named that changed.
const NAMED: usize = 3;

pub(crate) fn exec(args: &Check) -> miette::Result<Exit> {
    check_format(args)?;
    terminal::exit_without_reader();
    let here = std::env::current_dir().into_diagnostic().wrap_err("cannot find the current folder")?;
    let screen = Screen::new(args.format, here.clone());
    let mut changes = BTreeMap::new();
    loop {
        screen.show_changes(&changes)?;
        let asked = FileDependencies::default();
        asked.note_folder(&here);
        // Another folder may have taken its place.
        let outcome = match std::env::set_current_dir(&here) {
            Ok(()) => check::check_once(args, &asked),
            Err(_) => Err(miette!("the current folder is gone: `{}`", here.display())),
        };
        if let Err(error) = outcome {
            // The files may be why; they can be mended.
            crate::report_error(&error);
        }
        changes = wait_for_changes(&asked, &screen)?;
    }
}

/// Says at once what no change of a file would mend.
fn check_format(args: &Check) -> miette::Result<()> {
    let name = match args.format {
        Format::Sarif => "sarif",
        Format::Github => "github",
        Format::Junit => "junit",
        Format::Text | Format::Short | Format::Json => return config::apply_flags(args, &mut Default::default()),
    };
    Err(miette!(
        help = "watch with `--format json`: one document, on one line, for each check",
        "`--format {name}` is one report of one check: it cannot be used with `--watch`"
    ))
}

/// Waits until the check would come out otherwise.
fn wait_for_changes(asked: &FileDependencies, screen: &Screen) -> miette::Result<BTreeMap<PathBuf, Became>> {
    let mut is_told = false;
    loop {
        // Made anew each time: what watched a folder that was moved or deleted says nothing any more.
        let (sender, events) = channel();
        let mut watcher = notify::recommended_watcher(sender).map_err(|error| watch_error(None, &error))?;
        let spots = watch_folders(&mut watcher, asked)?;
        // What changed before the folders were watched sends no event.
        if asked.find_changes().is_empty() {
            // An event need not change an answer: a file saved as it was says nothing new.
            if !is_told {
                screen.show_waiting(asked.count_files())?;
                is_told = true;
            }
            wait_for_event(&events, &spots)?;
        }
        wait_until_quiet(&events, &spots);
        let changes = asked.find_changes();
        if !changes.is_empty() {
            return Ok(changes);
        }
    }
}

/// Watches the folders of all that was asked for; those too that come while it begins.
fn watch_folders(watcher: &mut impl Watcher, asked: &FileDependencies) -> miette::Result<Spots> {
    let mut watched = std::collections::BTreeSet::new();
    loop {
        let spots = Spots::from_dependencies(asked);
        let mut is_complete = true;
        for folder in &spots.folders {
            if watched.insert(folder.clone()) {
                is_complete = false;
                match watcher.watch(folder, RecursiveMode::NonRecursive) {
                    Err(error) if !is_away(&error) => return Err(watch_error(Some(folder), &error)),
                    _ => {}
                }
            }
        }
        if is_complete {
            return Ok(spots);
        }
    }
}

/// Waits for something that matters.
fn wait_for_event(events: &Receiver<notify::Result<Event>>, spots: &Spots) -> miette::Result<()> {
    loop {
        let event = events.recv().into_diagnostic().wrap_err("cannot watch for changes")?;
        if is_relevant(&event, spots) {
            return Ok(());
        }
    }
}

/// Waits until nothing happens that matters.
fn wait_until_quiet(events: &Receiver<notify::Result<Event>>, spots: &Spots) {
    let latest = Instant::now() + LONGEST;
    let mut until = Instant::now() + QUIET;
    while let Ok(event) = events.recv_timeout(until.min(latest).saturating_duration_since(Instant::now())) {
        let now = Instant::now();
        // Events that wait are received also when no time is left: without this a flood of them would never end.
        if now >= latest {
            break;
        }
        if is_relevant(&event, spots) {
            until = now + QUIET;
        }
    }
}

/// What could not be told may be anything.
fn is_relevant(event: &notify::Result<Event>, spots: &Spots) -> bool {
    event.as_ref().map_or(true, |event| spots.is_affected_by(event))
}

/// Whether a folder went away meanwhile, or is not for us to read: those above and below it are watched all the same.
fn is_away(error: &notify::Error) -> bool {
    match &error.kind {
        ErrorKind::PathNotFound => true,
        ErrorKind::Io(error) => matches!(
            error.kind(),
            std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory | std::io::ErrorKind::PermissionDenied
        ),
        _ => false,
    }
}

fn watch_error(folder: Option<&Path>, error: &notify::Error) -> miette::Report {
    let what = folder.map_or("for changes".to_owned(), |folder| format!("`{}`", folder.display()));
    match &error.kind {
        ErrorKind::MaxFilesWatch => {
            let help = "name fewer folders, or raise `fs.inotify.max_user_watches`";
            miette!(help = help, "cannot watch {what}: the system watches no more folders for you")
        }
        _ => miette!("cannot watch {what}: {error}"),
    }
}

/// What stands around the problems: on a terminal they take the place of those before.
struct Screen {
    here: PathBuf,
    is_cleared: bool,
    /// Where what is no problem is told.
    stream: Stream,
}

impl Screen {
    fn new(format: Format, here: PathBuf) -> Screen {
        let is_cleared = matches!(format, Format::Text | Format::Short) && Stream::Out.is_live();
        // Of the other formats programs read standard output, where only problems may stand.
        let stream = if format == Format::Text || is_cleared { Stream::Out } else { Stream::Err };
        Screen { here, is_cleared, stream }
    }

    /// Says what has changed since the last check; nothing before the first.
    fn show_changes(&self, changes: &BTreeMap<PathBuf, Became>) -> miette::Result<()> {
        if self.is_cleared {
            terminal::print("\x1b[H\x1b[2J")?;
        }
        match changes.is_empty() {
            true => Ok(()),
            false => self.print_line(&describe_changes(changes, &self.here)),
        }
    }

    /// Says that it waits now.
    fn show_waiting(&self, files: usize) -> miette::Result<()> {
        let what = match files {
            0 => "waiting for a spec".to_owned(),
            1 => "watching 1 file".to_owned(),
            files => format!("watching {files} files"),
        };
        match self.is_cleared {
            true => {
                let moment = swarmc_view::format_moment(swarmc_view::now_ms());
                let time = moment.rsplit(' ').next().unwrap_or_default();
                self.print_line(&format!("{time}: {what} (Ctrl-C ends)"))
            }
            false => self.print_line(&what),
        }
    }

    fn print_line(&self, text: &str) -> miette::Result<()> {
        let paint = self.stream.paint();
        let line = if self.is_cleared { text.to_owned() } else { format!("--- {text}") };
        let line = format!("{}\n", paint.dim(&swarmc_view::make_printable(&line)));
        match self.stream {
            Stream::Out => terminal::print(line),
            Stream::Err => {
                terminal::eprint(line);
                Ok(())
            }
        }
    }
}

/// What has changed, in a line.
fn describe_changes(changes: &BTreeMap<PathBuf, Became>, here: &Path) -> String {
    let mut parts: Vec<String> = changes
        .iter()
        .take(if changes.len() == NAMED + 1 { NAMED + 1 } else { NAMED })
        .map(|(path, became)| {
            let path = match path == here {
                true => "the current folder".to_owned(),
                false => relative_path(path, here).display().to_string(),
            };
            let word = match became {
                Became::Changed => "changed",
                Became::Gone => "is gone",
                Became::New => "is new",
            };
            format!("{path} {word}")
        })
        .collect();
    if changes.len() > parts.len() {
        parts.push(format!("and {} more", changes.len() - parts.len()));
    }
    parts.join(", ")
}
