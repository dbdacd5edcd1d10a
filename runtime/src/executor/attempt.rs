//! One attempt: its body, then its checks, and what both come to.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use swarmc_plan::{Command, Format};

use super::capture::Capture;
use super::pool::Services;
use super::process::{Cause, End, Limits, Means, run};
use super::spawn::Launch;
use super::tail::{keep_last, text};
use super::{Job, Work};
use crate::error::RunError;
use crate::event::{Failure, INLINE, Outcome};
use crate::home::create_private;
use crate::stream::Decoder;

/// How an attempt ended, its text not yet stored.
#[derive(Debug, Default)]
pub(super) struct Ended {
    pub outcome: Outcome,
    /// What it put out, for `outcome.output`.
    pub output: Option<String>,
    /// What it put out, for the file that people read; none where it put out nothing.
    pub captured: Option<Vec<u8>>,
    /// Whether logs wait to be written.
    pub logs: bool,
}

impl Ended {
    pub(super) fn failed(failure: Failure) -> Ended {
        Ended { outcome: Outcome { failure: Some(failure), ..Outcome::default() }, ..Ended::default() }
    }
}

/// Carries `job` out.
///
/// # Errors
/// The run cannot go on: a log or a prompt could not be written.
pub(super) fn carry_out(job: &Job, means: &mut Means, services: &Services) -> Result<Ended, RunError> {
    if job.cancel.asked().is_some() {
        return Ok(Ended::failed(Failure::Cancelled));
    }
    let started = Instant::now();
    let limits = Limits { deadline: job.timeout.map(|timeout| started + timeout), idle: job.idle, grace: job.grace };
    let decoder = match &job.work {
        Work::Agent { reads, .. } => Some(Decoder::new(*reads)),
        Work::Command { .. } | Work::Recorded { .. } | Work::Text(_) => None,
    };
    let mut capture = Capture::new(services, &job.step, job.attempt, job.max_output, decoder);
    let mut ended = match &job.work {
        Work::Command { command, stdin } => {
            let argv = argv(command);
            command_ended(job, process(job, &argv, stdin.as_deref(), None, limits, means, &mut capture), &mut capture)
        }
        Work::Agent { argv, stdin, install, files, reads } => {
            write_files(files)?;
            let end = process(job, argv, stdin.as_deref(), install.as_deref(), limits, means, &mut capture);
            agent_ended(job, *reads, end, &mut capture)
        }
        Work::Recorded { text, exit, delay, files } => {
            write_files(files)?;
            recorded(job, text, *exit, *delay, limits, &mut capture)
        }
        Work::Text(text) => Ended { output: Some(text.clone()), ..Ended::default() },
    };
    if ended.outcome.failure.is_none() {
        ended.outcome.failure = check(job, limits, means, &mut capture, &mut ended.outcome.stderr);
        if ended.outcome.failure.is_some() && matches!(job.work, Work::Agent { .. } | Work::Recorded { .. }) {
            ended.output = None;
        }
    }
    ended.logs = capture.finish()?;
    Ok(ended)
}

fn process(
    job: &Job,
    argv: &[OsString],
    stdin: Option<&[u8]>,
    install: Option<&str>,
    limits: Limits,
    means: &mut Means,
    capture: &mut Capture<'_>,
) -> Result<End, String> {
    let launch = Launch { argv, environment: &job.environment, directory: &job.directory, stdin, install };
    run(means, &launch, limits, &job.cancel, capture)
}

/// A command's output is what it printed, without the final newline, whether it failed or not.
fn command_ended(job: &Job, end: Result<End, String>, capture: &mut Capture<'_>) -> Ended {
    let end = match end {
        Ok(end) => end,
        Err(message) => return Ended::failed(Failure::Spawn { message }),
    };
    let (output, stderr) = capture.begin_check();
    let captured = (!output.is_empty()).then(|| output.into_bytes());
    let outcome = Outcome {
        failure: failure(job, end),
        exit: Some(end.exit),
        stderr: text(stderr.into_bytes(), INLINE),
        ..Outcome::default()
    };
    let output = without_newline(text(captured.clone().unwrap_or_default(), job.max_output));
    Ended { outcome, output: Some(output), captured, logs: false }
}

/// An agent's output is its final text; one that failed has none.
fn agent_ended(job: &Job, reads: Format, end: Result<End, String>, capture: &mut Capture<'_>) -> Ended {
    let end = match end {
        Ok(end) => end,
        Err(message) => return Ended::failed(Failure::Spawn { message }),
    };
    let report = capture.end_stream().unwrap_or_default();
    let (output, stderr) = capture.begin_check();
    let is_plain = matches!(reads, Format::Text | Format::Json);
    let captured = match report.text {
        Some(mut answer) => {
            keep_last(&mut answer, job.max_output);
            Some(answer.into_bytes())
        }
        None => (is_plain && !output.is_empty()).then(|| output.into_bytes()),
    };
    // The stream's own word counts for more than the exit code, which several programs get wrong; but an end that we
    // brought about says more than a stream that was cut short by it.
    let failure = match (failure(job, end), report.failure) {
        (None | Some(Failure::Exit), Some(message)) => Some(Failure::Agent { message }),
        (failure, _) => failure,
    };
    let answer = without_newline(text(captured.clone().unwrap_or_default(), job.max_output));
    let outcome = Outcome {
        exit: Some(end.exit),
        stderr: text(stderr.into_bytes(), INLINE),
        usage: report.usage,
        session: report.session,
        output: None,
        errors: None,
        failure,
    };
    Ended { output: outcome.failure.is_none().then_some(answer), captured, outcome, logs: false }
}

fn recorded(job: &Job, answer: &str, exit: i32, delay: Duration, limits: Limits, capture: &mut Capture<'_>) -> Ended {
    use super::process::Sink;
    let end = Instant::now() + delay;
    let deadline = limits.deadline.filter(|&deadline| deadline < end);
    if !sleep(job, deadline.unwrap_or(end)) {
        return Ended::failed(Failure::Cancelled);
    }
    if deadline.is_some() {
        return Ended::failed(Failure::Timeout { after_ms: millis(job.timeout) });
    }
    capture.stdout(answer.as_bytes());
    let (output, _) = capture.begin_check();
    let captured = (!output.is_empty()).then(|| output.into_bytes());
    let answer = without_newline(text(captured.clone().unwrap_or_default(), job.max_output));
    let failure = (exit != 0).then_some(Failure::Exit);
    Ended {
        output: failure.is_none().then_some(answer),
        captured,
        outcome: Outcome { failure, exit: Some(exit), ..Outcome::default() },
        logs: false,
    }
}

/// Runs the checks until one fails.
fn check(
    job: &Job,
    limits: Limits,
    means: &mut Means,
    capture: &mut Capture<'_>,
    stderr: &mut String,
) -> Option<Failure> {
    for command in &job.checks {
        let argv = argv(command);
        let line = argv.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
        let line = if let Command::Shell(line) = command { line.clone() } else { line };
        capture.begin_check();
        match process(job, &argv, None, None, limits, means, capture) {
            Err(message) => return Some(Failure::Spawn { message }),
            Ok(end) => {
                let failure = match failure(job, end) {
                    None => continue,
                    Some(Failure::Exit) => Failure::Check { line, exit: Some(end.exit) },
                    Some(failure) => failure,
                };
                // Many checkers complain on their standard output.
                let (out, err) = capture.begin_check();
                let told = if err.is_empty() { out } else { err };
                *stderr = text(told.into_bytes(), INLINE);
                return Some(failure);
            }
        }
    }
    None
}

fn failure(job: &Job, end: End) -> Option<Failure> {
    match end.cause {
        Cause::Exit if end.exit == 0 => None,
        Cause::Exit => Some(Failure::Exit),
        Cause::Reported => None,
        Cause::Timeout => Some(Failure::Timeout { after_ms: millis(job.timeout) }),
        Cause::Idle => Some(Failure::Idle { after_ms: millis(job.idle) }),
        Cause::Cancelled => Some(Failure::Cancelled),
    }
}

fn argv(command: &Command) -> Vec<OsString> {
    match command {
        Command::Argv(words) => words.iter().map(OsString::from).collect(),
        Command::Shell(line) => ["/bin/sh", "-c", line].map(OsString::from).to_vec(),
    }
}

fn without_newline(mut text: String) -> String {
    if text.ends_with('\n') {
        text.pop();
    }
    text
}

fn millis(duration: Option<Duration>) -> u64 {
    u64::try_from(duration.unwrap_or_default().as_millis()).unwrap_or(u64::MAX)
}

fn write_files(files: &[(PathBuf, String)]) -> Result<(), RunError> {
    for (path, text) in files {
        let folder = path.parent().expect("a prompt lies in a folder");
        create_private(folder, true).map_err(RunError::io("create", folder))?;
        std::fs::write(path, text).map_err(RunError::io("write", path))?;
    }
    Ok(())
}

/// Waits until `end`; false when the job was cancelled first.
fn sleep(job: &Job, end: Instant) -> bool {
    let Ok(wake) = eventfd(0, EventfdFlags::CLOEXEC) else {
        return false;
    };
    let wake = std::sync::Arc::new(wake);
    job.cancel.watch(Some(std::sync::Arc::clone(&wake)));
    let slept = loop {
        if job.cancel.asked().is_some() {
            break false;
        }
        let rest = end.saturating_duration_since(Instant::now());
        if rest.is_zero() {
            break true;
        }
        let rest = rest.min(Duration::from_secs(3600));
        let timeout = Timespec { tv_sec: rest.as_secs() as i64, tv_nsec: i64::from(rest.subsec_nanos()) };
        // Interrupted or not, the loop looks at the time and the wish again.
        let _ = poll(&mut [PollFd::new(&wake, PollFlags::IN)], Some(&timeout));
    };
    job.cancel.watch(None);
    slept
}
