//! Runs commands beside the steps of a run: hooks, whose output is not kept, programs that the run itself needs, and
//! commands that agents run with a tool.

use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, Instant};

use swarmc_plan::Command;

use super::run::{Cause, Limits, Poller, Sink, run_process};
use super::spawn::{Launch, argv};
use super::tail::Tail;
use crate::types::cancel::Cancel;
use crate::types::event::Process;

/// The bytes of standard error that the report of a failed command includes.
const TOLD: usize = 500;

/// The bytes of standard output that are kept.
const KEPT: usize = 64 * 1024;

/// Runs a command and waits for it, so long at most; then its group is ended.
///
/// # Errors
/// Why it failed, in words.
pub(crate) fn run_side_command(
    command: &Command,
    environment: &[(OsString, OsString)],
    directory: &Path,
    most: Duration,
) -> Result<(), String> {
    read_stdout(&argv(command), environment, directory, most, &Cancel::default()).map(drop)
}

/// What a program prints on its standard output, 64 KiB at most: asked for by the run itself, and waited for so long at
/// most.
///
/// # Errors
/// Why it failed, in words.
pub(crate) fn read_stdout(
    argv: &[OsString],
    environment: &[(OsString, OsString)],
    directory: &Path,
    most: Duration,
    cancel: &Cancel,
) -> Result<String, String> {
    let printed = read_stdout_bytes(argv, environment, (directory, None), (most, KEPT), cancel)?;
    Ok(String::from_utf8_lossy(&printed).into_owned())
}

/// The same of a program that reads `stdin`, as bytes, and so many of them at most.
///
/// # Errors
/// Why it failed, in words.
pub(crate) fn read_stdout_bytes(
    argv: &[OsString],
    environment: &[(OsString, OsString)],
    (directory, stdin): (&Path, Option<&[u8]>),
    (most, kept): (Duration, usize),
    cancel: &Cancel,
) -> Result<Vec<u8>, String> {
    let poller = Poller::new().map_err(|error| error.to_string())?;
    let launch = Launch { argv, environment, directory, stdin, install: None };
    let limits = Limits { deadline: Some(Instant::now() + most), idle: None, grace: Duration::ZERO };
    let mut said = Said { stdout: Vec::new(), stderr: Vec::new(), kept };
    let end = poller.block_on(run_process(&poller, &launch, limits, cancel, &mut said))?;
    let problem = String::from_utf8_lossy(&said.stderr).trim().to_owned();
    match (end.cause, end.exit) {
        (Cause::Exit | Cause::Reported, 0) => Ok(said.stdout),
        (Cause::Timeout, _) => Err(format!("it took longer than {} seconds", most.as_secs())),
        (Cause::Cancelled, _) => Err("it was ended".to_owned()),
        (_, exit) if problem.is_empty() => Err(format!("it exited with {exit}")),
        (_, exit) => Err(format!("it exited with {exit}: {problem}")),
    }
}

/// What a command printed, on both streams as it came.
pub(crate) struct Printed {
    /// The last bytes of it.
    pub text: Vec<u8>,
    /// Whether earlier bytes were dropped.
    pub is_cut: bool,
    /// Its exit code; 128 + N when signal N ended it.
    pub exit: i32,
    /// Whether it was ended because its time was over.
    pub too_long: bool,
    /// Whether it was ended because it was cancelled.
    pub cancelled: bool,
}

/// Runs a command to its end, so long at most, and keeps the last `kept` bytes of what it prints. Its whole group ends
/// with it.
///
/// # Errors
/// It could not be started: says why.
pub(crate) fn capture_output(
    argv: &[OsString],
    environment: &[(OsString, OsString)],
    directory: &Path,
    most: Duration,
    kept: usize,
    cancel: &Cancel,
) -> Result<Printed, String> {
    let poller = Poller::new().map_err(|error| error.to_string())?;
    let launch = Launch { argv, environment, directory, stdin: None, install: None };
    let limits = Limits { deadline: Some(Instant::now() + most), idle: None, grace: Duration::ZERO };
    let mut both = Both(Tail::new(kept));
    let end = poller.block_on(run_process(&poller, &launch, limits, cancel, &mut both))?;
    Ok(Printed {
        is_cut: both.0.is_cut(),
        text: both.0.into_bytes(),
        exit: end.exit,
        too_long: end.cause == Cause::Timeout,
        cancelled: end.cause == Cause::Cancelled,
    })
}

/// The end of both streams.
struct Both(Tail);

impl Sink for Both {
    fn stdout(&mut self, bytes: &[u8]) -> bool {
        self.0.push(bytes);
        false
    }

    fn stderr(&mut self, bytes: &[u8]) {
        self.0.push(bytes);
    }

    fn report_alive(&mut self, _: Process) {}

    fn due(&self) -> Option<Instant> {
        None
    }

    fn tick(&mut self, _: Instant) {}
}

/// The beginning of a standard output, and the end of a standard error.
struct Said {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    /// The bytes of standard output that are kept.
    kept: usize,
}

impl Sink for Said {
    fn stdout(&mut self, bytes: &[u8]) -> bool {
        let room = self.kept.saturating_sub(self.stdout.len());
        self.stdout.extend_from_slice(&bytes[..bytes.len().min(room)]);
        false
    }

    fn stderr(&mut self, bytes: &[u8]) {
        self.stderr.extend_from_slice(bytes);
        let cut = self.stderr.len().saturating_sub(TOLD);
        self.stderr.drain(..cut);
    }

    fn report_alive(&mut self, _: Process) {}

    fn due(&self) -> Option<Instant> {
        None
    }

    fn tick(&mut self, _: Instant) {}
}
