//! `swarmc logs`: prints the logs of a run's tasks: those of several with a prefix on each line.
//!
//! A command's log is unchanged. That of an agent whose program writes events is what it said and did; `--raw` prints
//! the events.
//!
//! It reads the complete logs beside the journal. To follow a run, it reads the journal and the logs five times a
//! second: both only grow, so it prints every byte once.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::time::Duration;

use miette::{IntoDiagnostic, miette};
use swarmc_plan::{Body, Format};
use swarmc_runtime::{RunError, RunFolder, Stream as TaskStream};
use swarmc_view::{Past, did_you_mean, is_supervisor, list_steps, make_printable, matches_step, split_agent};

use crate::agent_log::{AgentLog, find_agent_format, find_step_format};
use crate::args::Logs;
use crate::exit::Exit;
use crate::home::{find_home, list_files, read_past};
use crate::target::{find_target, refuse_more};
use crate::terminal::{self, Stream};

/// The streams of an attempt, in the order in which their logs are printed.
const STREAMS: [TaskStream; 2] = [TaskStream::Stdout, TaskStream::Stderr];

/// How much of a log is read at once, in bytes.
const CHUNK: u64 = 256 * 1024;

/// A line without an end is passed on in pieces of this many bytes.
const MAX_LINE: usize = 16 * 1024;

/// How often a running run is looked at.
const LOOK: Duration = Duration::from_millis(200);

pub(crate) fn exec(args: &Logs) -> miette::Result<Exit> {
    let home = find_home()?;
    let target = find_target(&home, &[&args.run, &args.task], |_, _| false)?;
    refuse_more(&target.rest, 1, "swarmc logs [RUN] [STEP/AGENT]")?;
    let (folder, word) = (target.folder, target.rest.into_iter().next());
    let past = match read_past(&folder) {
        // A broken journal says nothing about the logs beside it, which may tell what happened.
        Err(error) if matches!(folder.read_records(), Err(RunError::Journal(_))) => {
            print_files(&folder, word.as_deref())?;
            return Err(error);
        }
        past => past?,
    };
    let choice = word.as_deref().map(|word| split_agent(&past, word));
    if let Some((task, agent)) = choice {
        let report = past.build_report();
        let begun = || report.rows.iter().filter(|row| matches_step(&report, &row.step, task));
        if begun().next().is_none() && past.pipeline().all_steps().all(|step| step.name != task) {
            let names = list_steps(&past);
            let help = did_you_mean(task, names.iter().map(String::as_str));
            return Err(miette!(help = help, "run `{}` has no task `{task}`", folder.id));
        }
        let mates = || begun().filter_map(|row| report.teams.get(&row.step)).flat_map(|team| &team.mates);
        if let Some(agent) = agent
            && !is_supervisor(agent)
            && mates().all(|mate| *mate.name != *agent)
        {
            let help = did_you_mean(agent, mates().map(|mate| &*mate.name));
            return Err(miette!(help = help, "swarm `{task}` has no agent `{agent}`"));
        }
    }
    let choice = choice.map(|(task, agent)| (task.to_owned(), agent.map(str::to_owned)));
    let mut reader = Reader { choice, raw: args.raw, ..Reader::default() };
    loop {
        // The question comes first: what is written between it and the look is seen in the next round.
        let running = args.follow && folder.is_running();
        let past = read_past(&folder)?;
        if !reader.print_new(&folder, &past, !running)? {
            return Ok(Exit::Done);
        }
        if !running {
            if let (Some((task, Some(agent))), true) = (&reader.choice, reader.logs.is_empty()) {
                let see = format!("swarmc inspect {} {task}/{agent}", folder.id);
                terminal::eprint(format!("`{agent}` has no log, as no program takes its turns; see `{see}`\n"));
            } else if let (Some((task, None)), true) = (&reader.choice, reader.logs.is_empty()) {
                let report = past.build_report();
                let row = report.rows.iter().rev().find(|row| matches_step(&report, &row.step, task));
                let why = row.map(swarmc_view::Row::reason).filter(|why| !why.is_empty());
                let why = why.map(|why| format!(": {why}")).unwrap_or_default();
                let ran = row.is_some_and(|row| row.attempt > 0 && is_command(&past, &row.step.name));
                let what = if ran { "printed nothing" } else { "has no log, as no program ran for it" };
                terminal::eprint(format!("`{task}` {what}{why}\n"));
            }
            return Ok(Exit::Done);
        }
        std::thread::sleep(LOOK);
    }
}

/// Whether a step runs a command, wherever it stands.
fn is_command(past: &Past, name: &str) -> bool {
    let mut steps = past.plan.pipelines.iter().flat_map(|pipeline| pipeline.all_steps());
    steps.any(|step| step.name == name && matches!(step.body, Body::Run(_)))
}

/// Prints the logs of a run whose journal says no more which they are: those of a task, or all, by the names of the files.
fn print_files(folder: &RunFolder, task: Option<&str>) -> miette::Result<()> {
    let logs = folder.path.join("logs");
    let mut reader = Reader::default();
    for path in list_files(&logs) {
        let name = path.strip_prefix(&logs).unwrap_or(&path).to_string_lossy().into_owned();
        // `TASK.ATTEMPT.out`, in a folder for what the task is inside of.
        let of_task = name.rsplit('/').next().and_then(|file| file.split('.').next());
        let is_text = name.ends_with(".out") || name.ends_with(".err");
        if is_text
            && task.is_none_or(|task| of_task == Some(task))
            && !reader.copy_log(path, None, Some(&format!("{name} │ ")), true)?
        {
            break;
        }
    }
    Ok(())
}

struct Reader {
    /// The one step that is meant, and the one agent of it.
    choice: Option<(String, Option<String>)>,
    /// Whether the events of programs are printed as they are.
    raw: bool,
    logs: BTreeMap<PathBuf, ReadLog>,
    paint: terminal::Paint,
    out: Vec<u8>,
}

/// A log, as far as it was read.
#[derive(Default)]
struct ReadLog {
    /// The bytes that were read.
    at: u64,
    /// The line that has begun.
    begun: Vec<u8>,
    /// What reads it, where it holds events.
    events: Option<AgentLog>,
}

impl Default for Reader {
    fn default() -> Reader {
        Reader { choice: None, raw: false, logs: BTreeMap::new(), paint: Stream::Out.paint(), out: Vec::new() }
    }
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
            let (of_step, agent) = match &self.choice {
                None => (true, None),
                Some((task, agent)) => (matches_step(&ledger, &row.step, task), agent.as_deref()),
            };
            if !of_step {
                continue;
            }
            let prefix = |name: &str| {
                let label = format!("{name:<width$} │");
                let index = colours.get(&*row.step.name).copied().unwrap_or(0);
                self.paint.nth_colour(index, &label) + " "
            };
            let label = ledger.label(&row.step);
            let mut logs: Vec<(PathBuf, Option<Format>, Option<String>)> = Vec::new();
            if agent.is_none() {
                let prefix = self.choice.is_none().then(|| prefix(&label));
                let attempts = 1..=row.attempt;
                let format = find_step_format(&past.plan, &row.step.name);
                logs.extend(attempts.flat_map(|attempt| {
                    STREAMS.map(|stream| {
                        let events = format.filter(|_| stream == TaskStream::Stdout);
                        (layout.log_path(&row.step, attempt, stream), events, prefix.clone())
                    })
                }));
            }
            if let Some(team) = ledger.teams.get(&row.step) {
                let history = past.read_step(&row.step);
                for (name, turn) in history.turns().filter(|(name, _)| agent.is_none_or(|agent| agent == *name)) {
                    let prefix = agent.is_none().then(|| prefix(&format!("{label}/{name}")));
                    let mate = team.mates.iter().find(|mate| *mate.name == *name);
                    let format = mate.and_then(|mate| find_agent_format(&past.plan, &mate.plays));
                    logs.extend([("out", format), ("err", None)].map(|(it, events)| {
                        (layout.turn_log_path(&row.step, row.attempt, turn, it), events, prefix.clone())
                    }));
                }
            }
            for (path, format, prefix) in logs {
                if !self.copy_log(path, format, prefix.as_deref(), last)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Passes on what a log, which may hold events of this format, has beyond what was read of it.
    fn copy_log(
        &mut self,
        path: PathBuf,
        format: Option<Format>,
        prefix: Option<&str>,
        last: bool,
    ) -> miette::Result<bool> {
        // A stream to which nothing was written so far has no file.
        let Ok(mut file) = File::open(&path) else { return Ok(true) };
        let events = || format.filter(|_| !self.raw).map(AgentLog::new);
        let mut log = self.logs.remove(&path).unwrap_or_else(|| ReadLog { events: events(), ..ReadLog::default() });
        file.seek(SeekFrom::Start(log.at)).into_diagnostic()?;
        loop {
            let mut read = Vec::new();
            (&mut file).take(CHUNK).read_to_end(&mut read).into_diagnostic()?;
            log.at += read.len() as u64;
            let end = read.is_empty();
            let mut bytes = std::mem::take(&mut log.begun);
            match &mut log.events {
                Some(events) => bytes.extend(events.read_bytes(&read).into_bytes()),
                None => bytes.extend(read),
            }
            if end && last {
                // The reader of events holds back a line without an end, and none will come now.
                bytes.extend(log.events.take().map(AgentLog::finish).unwrap_or_default().into_bytes());
            }
            // A line that is still being written waits, or another log could cut it in two.
            let mut whole = match memchr::memrchr(b'\n', &bytes) {
                Some(newline) => newline + 1,
                None => 0,
            };
            if bytes.len() - whole >= MAX_LINE || (end && last) {
                whole = bytes.len();
            }
            log.begun = bytes.split_off(whole);
            self.emit_lines(&bytes, prefix);
            if !self.flush()? {
                return Ok(false);
            }
            if end {
                break;
            }
        }
        self.logs.insert(path, log);
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
            // A reader such as `head` has what it wants: no failure, but a reason to stop.
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
            Err(error) => Err(miette!("cannot write to standard output: {error}")),
        }
    }
}
