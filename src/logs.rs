//! `swarmc logs`: prints the logs of a run's tasks: unchanged for one task, with a prefix on each line for several.
//!
//! It reads the complete logs beside the journal. To follow a run, it reads the journal and the logs five times a
//! second: both only grow, so it prints every byte once.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::time::Duration;

use miette::{IntoDiagnostic, miette};
use swarmc_runtime::{Home, RunError, RunFolder, StepId, Stream as TaskStream};
use swarmc_view::{Past, make_printable};

use crate::args::Logs;
use crate::exit::Exit;
use crate::home::{find_home, list_files, read_past};
use crate::load::did_you_mean;
use crate::terminal::{self, Stream};

/// How much of a log is read at once, in bytes.
const CHUNK: u64 = 256 * 1024;

/// A line without an end is passed on in pieces of this many bytes.
const MAX_LINE: usize = 16 * 1024;

/// How often a running run is looked at.
const LOOK: Duration = Duration::from_millis(200);

pub(crate) fn exec(args: &Logs) -> miette::Result<Exit> {
    let home = find_home()?;
    let (folder, task) = resolve_target(&home, args)?;
    let past = match read_past(&folder) {
        // A broken journal says nothing about the logs beside it, which may tell what happened.
        Err(error) if matches!(folder.read_records(), Err(RunError::Journal(_))) => {
            print_files(&folder, task.as_deref())?;
            return Err(error);
        }
        past => past?,
    };
    if let Some(task) = &task
        && !has_task(&past, task)
    {
        let labels: BTreeSet<String> = past.build_report().rows.iter().map(|row| row.step.label()).collect();
        let steps = past.pipeline().steps.iter().map(|step| step.name.as_str());
        let names = steps
            .clone()
            .chain(labels.iter().map(String::as_str).filter(|label| !steps.clone().any(|step| step == *label)));
        return Err(miette!(help = did_you_mean(task, names), "run `{}` has no task `{task}`", folder.id));
    }
    let mut reader = Reader { task, logs: BTreeMap::new(), paint: Stream::Out.paint(), out: Vec::new() };
    loop {
        // The question comes first: what is written between it and the look is seen in the next round.
        let running = args.follow && folder.is_running();
        let past = read_past(&folder)?;
        if !reader.print_new(&folder, &past, !running)? || !running {
            return Ok(Exit::Done);
        }
        std::thread::sleep(LOOK);
    }
}

/// Prints the logs of a run whose journal says no more which they are: those of a task, or all, by the names of the files.
fn print_files(folder: &RunFolder, task: Option<&str>) -> miette::Result<()> {
    let logs = folder.path.join("logs");
    let mut reader = Reader { task: None, logs: BTreeMap::new(), paint: Stream::Out.paint(), out: Vec::new() };
    for path in list_files(&logs) {
        let name = path.strip_prefix(&logs).unwrap_or(&path).to_string_lossy().into_owned();
        // `TASK.ATTEMPT.out`, in a folder for what the task is inside of.
        let of_task = name.rsplit('/').next().and_then(|file| file.split('.').next());
        let is_text = name.ends_with(".out") || name.ends_with(".err");
        if is_text
            && task.is_none_or(|task| of_task == Some(task))
            && !reader.copy_log(path, Some(&format!("{name} │ ")), true)?
        {
            break;
        }
    }
    Ok(())
}

/// Whether a task of the run is called so: by its name, or with what it is inside of.
fn has_task(past: &Past, word: &str) -> bool {
    past.pipeline().all_steps().any(|step| step.name == *word)
        || past.build_report().rows.iter().any(|row| matches_step(word, &row.step))
}

/// Whether the word is for this step: its name, or its name with what it is inside of.
fn matches_step(word: &str, step: &StepId) -> bool {
    *step.name == *word || step.label() == word
}

/// The run and the task that are meant: a single word may be either.
fn resolve_target(home: &Home, args: &Logs) -> miette::Result<(RunFolder, Option<String>)> {
    let Some(word) = &args.run else {
        return Ok((home.find("last").into_diagnostic()?, None));
    };
    match home.find(word) {
        Ok(folder) => Ok((folder, args.task.clone())),
        Err(error) if args.task.is_none() => {
            let last = home.find("last").into_diagnostic()?;
            if has_task(&read_past(&last)?, word) {
                return Ok((last, Some(word.clone())));
            }
            let help = format!("the last run, `{}`, has no task of that name either", last.id);
            Err(miette!(help = help, "{error}"))
        }
        Err(error) => Err(error).into_diagnostic(),
    }
}

struct Reader {
    task: Option<String>,
    /// How far each log was read, and the line that it has begun.
    logs: BTreeMap<PathBuf, (u64, Vec<u8>)>,
    paint: terminal::Paint,
    out: Vec<u8>,
}

impl Reader {
    /// Prints what is new; at the end also lines without an end. False when the reader of the output is gone.
    fn print_new(&mut self, folder: &RunFolder, past: &Past, last: bool) -> miette::Result<bool> {
        let layout = folder.layout(past.pipeline());
        let ledger = past.build_report();
        let width = past.pipeline().steps.iter().map(|step| step.name.len()).max().unwrap_or(0).min(24);
        let colours: BTreeMap<&str, usize> =
            past.pipeline().steps.iter().enumerate().map(|(index, step)| (step.name.as_str(), index)).collect();
        for row in &ledger.rows {
            if self.task.as_ref().is_some_and(|task| !matches_step(task, &row.step)) {
                continue;
            }
            let prefix = match self.task {
                Some(_) => None,
                None => {
                    let label = format!("{:<width$} │", ledger.label(&row.step));
                    let index = colours.get(&*row.step.name).copied().unwrap_or(0);
                    Some(self.paint.nth_colour(index, &label) + " ")
                }
            };
            for attempt in 1..=row.attempt {
                for stream in [TaskStream::Stdout, TaskStream::Stderr] {
                    let path = layout.log_path(&row.step, attempt, stream);
                    if !self.copy_log(path, prefix.as_deref(), last)? {
                        return Ok(false);
                    }
                }
            }
        }
        Ok(true)
    }

    /// Passes on what a log holds beyond what was read of it.
    fn copy_log(&mut self, path: PathBuf, prefix: Option<&str>, last: bool) -> miette::Result<bool> {
        let Ok(mut file) = File::open(&path) else { return Ok(true) };
        let (mut at, mut begun) = self.logs.remove(&path).unwrap_or_default();
        file.seek(SeekFrom::Start(at)).into_diagnostic()?;
        loop {
            let mut bytes = std::mem::take(&mut begun);
            let before = bytes.len();
            (&mut file).take(CHUNK).read_to_end(&mut bytes).into_diagnostic()?;
            let read = bytes.len() - before;
            at += read as u64;
            let end = read == 0;
            // A line that is still being written waits, or another log could cut it in two.
            let mut whole = match memchr::memrchr(b'\n', &bytes) {
                Some(newline) => newline + 1,
                None => 0,
            };
            if bytes.len() - whole >= MAX_LINE || (end && last) {
                whole = bytes.len();
            }
            begun = bytes.split_off(whole);
            self.emit_lines(&bytes, prefix);
            if !self.flush()? {
                return Ok(false);
            }
            if end {
                break;
            }
        }
        self.logs.insert(path, (at, begun));
        Ok(true)
    }

    fn emit_lines(&mut self, bytes: &[u8], prefix: Option<&str>) {
        let terminal = Stream::Out.is_terminal();
        if prefix.is_none() && !terminal {
            self.out.extend_from_slice(bytes);
            return;
        }
        for line in bytes.split_inclusive(|&byte| byte == b'\n') {
            let text = line.strip_suffix(b"\n").unwrap_or(line);
            self.out.extend_from_slice(prefix.unwrap_or_default().as_bytes());
            match terminal {
                true => self.out.extend_from_slice(make_printable(&String::from_utf8_lossy(text)).as_bytes()),
                false => self.out.extend_from_slice(text),
            }
            self.out.push(b'\n');
        }
    }

    fn flush(&mut self) -> miette::Result<bool> {
        let written = Stream::Out.write_all(&self.out);
        self.out.clear();
        match written {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
            Err(error) => Err(miette!("cannot write to standard output: {error}")),
        }
    }
}
