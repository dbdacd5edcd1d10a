//! The control socket of a running run: one line in (`stop`, `pulses`, or `answer` or `send` and JSON), one line out
//! (`ok` with what there is to say, or what is wrong; to `pulses` JSON with the activities).
//!
//! Invariant: only people stop a run, answer for it or write to it. Processes of the run may only read activities.

mod listen;

use std::time::Duration;

use serde::Serialize;

use crate::io::home::RunFolder;
use crate::io::unix;
use crate::types::activity::Activity;
use crate::types::error::RunError;
use crate::types::user_request::{GateAnswer, UserMessage};

pub(crate) use listen::Socket;

/// The longest order.
const LONGEST: u64 = 256 * 1024;
/// The longest answer to one.
const ANSWER: u64 = 64 * 1024 * 1024;
/// How long a client may take to send an order, and again to read the answer. Also how long the runner may take to
/// answer one that asks for no more than a word.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long an answer may take that waits for the disk, behind all that the run has to decide and to write before: an
/// order that the client gives up may have been carried out.
const THROUGH: Duration = Duration::from_secs(60);

/// How the answer to an order begins that was taken.
const OK: &str = "ok";

/// Asks the process that runs `folder` to stop the run, as Ctrl-C there would.
///
/// # Errors
/// No process runs it, or the one that does cannot be reached.
pub fn request_stop(folder: &RunFolder) -> Result<(), RunError> {
    if !folder.is_running() {
        return Err(RunError::NotRunning { run: folder.id.clone() });
    }
    match order(folder, "stop", PATIENCE)?.as_str() {
        "ok" => Ok(()),
        answer => Err(RunError::Request(answer.to_owned())),
    }
}

/// Answers a gate of the run in `folder`, and waits until that is on disk.
///
/// # Errors
/// No process runs it, it cannot be reached, or the answer does not fit a gate that asks.
pub fn answer_gate(folder: &RunFolder, answer: &GateAnswer) -> Result<(), RunError> {
    if !folder.is_running() {
        return Err(RunError::NotRunning { run: folder.id.clone() });
    }
    ask(folder, "answer", answer).map(drop)
}

/// Writes to an agent of the run in `folder`, and waits until that is on disk: what becomes of it, for a person.
///
/// # Errors
/// No process runs it, it cannot be reached, or no agent of it reads the message.
pub fn send_message(folder: &RunFolder, message: &UserMessage) -> Result<String, RunError> {
    if !folder.is_running() {
        return Err(RunError::NotRunning { run: folder.id.clone() });
    }
    ask(folder, "send", message)
}

/// Sends an order with an argument to the process that runs `folder`; its answer, where it took the order.
fn ask(folder: &RunFolder, word: &str, what: &impl Serialize) -> Result<String, RunError> {
    let line = format!("{word} {}", serde_json::to_string(what).expect("what people type is texts"));
    if line.len() as u64 >= LONGEST {
        return Err(RunError::Request(format!("it is longer than {} KB", LONGEST / 1024)));
    }
    let told = order(folder, &line, THROUGH)?;
    let taken = told.strip_prefix(OK).map(|words| words.trim_start().to_owned());
    taken.ok_or(RunError::Request(told))
}

/// What goes on in the attempts of the run in `folder` that are open now.
///
/// # Errors
/// No process runs it, or the one that does cannot be reached.
pub fn activities(folder: &RunFolder) -> Result<Vec<Activity>, RunError> {
    if !folder.is_running() {
        return Err(RunError::NotRunning { run: folder.id.clone() });
    }
    let answer = order(folder, "pulses", PATIENCE)?;
    serde_json::from_str(&answer).map_err(|_| RunError::Request(answer))
}

/// Sends an order to the process that runs `folder`; its answer.
fn order(folder: &RunFolder, line: &str, patience: Duration) -> Result<String, RunError> {
    let path = folder.socket_path();
    let answer = unix::ask(&path, line, ANSWER, patience).map_err(RunError::io("reach", &path))?;
    Ok(answer.trim_end().to_owned())
}
