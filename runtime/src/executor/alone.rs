//! Commands beside the steps of a run: hooks, whose output nobody keeps, and what the run itself asks of a program.

use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, Instant};

use swarmc_plan::Command;

use super::Cancel;
use super::attempt::argv;
use super::process::{Cause, Limits, Means, Sink, run};
use super::spawn::Launch;
use crate::event::Process;

/// The bytes of standard error that are told of a command that failed.
const TOLD: usize = 500;

/// The bytes of standard output that are kept.
const KEPT: usize = 64 * 1024;

/// Runs a command and waits for it, so long at most; then its group is ended.
///
/// # Errors
/// Why it failed, in words.
pub(crate) fn alone(
    command: &Command,
    environment: &[(OsString, OsString)],
    directory: &Path,
    most: Duration,
) -> Result<(), String> {
    output(&argv(command), environment, directory, most, &Cancel::default()).map(drop)
}

/// What a program prints on its standard output, 64 KiB at most: asked for by the run itself, and waited for so long at
/// most.
///
/// # Errors
/// Why it failed, in words.
pub(crate) fn output(
    argv: &[OsString],
    environment: &[(OsString, OsString)],
    directory: &Path,
    most: Duration,
    cancel: &Cancel,
) -> Result<String, String> {
    let mut means = Means::new().map_err(|error| error.to_string())?;
    let launch = Launch { argv, environment, directory, stdin: None, install: None };
    let limits = Limits { deadline: Some(Instant::now() + most), idle: None, grace: Duration::ZERO };
    let mut said = Said::default();
    let end = run(&mut means, &launch, limits, cancel, &mut said)?;
    let problem = String::from_utf8_lossy(&said.stderr).trim().to_owned();
    match (end.cause, end.exit) {
        (Cause::Exit | Cause::Reported, 0) => Ok(String::from_utf8_lossy(&said.stdout).into_owned()),
        (Cause::Timeout, _) => Err(format!("it took longer than {} seconds", most.as_secs())),
        (Cause::Cancelled, _) => Err("it was ended".to_owned()),
        (_, exit) if problem.is_empty() => Err(format!("it exited with {exit}")),
        (_, exit) => Err(format!("it exited with {exit}: {problem}")),
    }
}

/// The beginning of a standard output, and the end of a standard error.
#[derive(Default)]
struct Said {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl Sink for Said {
    fn stdout(&mut self, bytes: &[u8]) -> bool {
        let room = KEPT.saturating_sub(self.stdout.len());
        self.stdout.extend_from_slice(&bytes[..bytes.len().min(room)]);
        false
    }

    fn stderr(&mut self, bytes: &[u8]) {
        self.stderr.extend_from_slice(bytes);
        let cut = self.stderr.len().saturating_sub(TOLD);
        self.stderr.drain(..cut);
    }

    fn lives(&mut self, _: Process) {}

    fn due(&self) -> Option<Instant> {
        None
    }

    fn tick(&mut self, _: Instant) {}
}
