//! A command beside the steps of a run: a hook, whose output nobody keeps.

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
    let mut means = Means::new().map_err(|error| error.to_string())?;
    let argv = argv(command);
    let launch = Launch { argv: &argv, environment, directory, stdin: None, install: None };
    let limits = Limits { deadline: Some(Instant::now() + most), idle: None, grace: Duration::ZERO };
    let mut tail = Tail(Vec::new());
    let end = run(&mut means, &launch, limits, &Cancel::default(), &mut tail)?;
    let said = String::from_utf8_lossy(&tail.0).trim().to_owned();
    match (end.cause, end.exit) {
        (Cause::Exit | Cause::Reported, 0) => Ok(()),
        (Cause::Timeout, _) => Err(format!("it took longer than {} seconds", most.as_secs())),
        (_, exit) if said.is_empty() => Err(format!("it exited with {exit}")),
        (_, exit) => Err(format!("it exited with {exit}: {said}")),
    }
}

/// The end of a standard error.
struct Tail(Vec<u8>);

impl Sink for Tail {
    fn stdout(&mut self, _: &[u8]) -> bool {
        false
    }

    fn stderr(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
        let cut = self.0.len().saturating_sub(TOLD);
        self.0.drain(..cut);
    }

    fn lives(&mut self, _: Process) {}

    fn due(&self) -> Option<Instant> {
        None
    }

    fn tick(&mut self, _: Instant) {}
}
