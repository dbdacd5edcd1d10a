//! The control socket of a running run: one line in (`stop`, `pulses`, or `answer` or `send` and JSON), one line out
//! (`ok` with what there is to say, or what is wrong; to `pulses` JSON).
//!
//! A Unix socket's address holds about 100 bytes and `$SWARM_HOME` may be deeper: both ends go through
//! `/proc/self/fd`, which is always short.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use serde::Serialize;

use crate::control::{Control, GateAnswer, UserMessage};
use crate::error::RunError;
use crate::home::RunFolder;
use crate::pulse::{Pulse, Pulses};

/// The longest order.
const LONGEST: u64 = 256 * 1024;
/// The longest answer to one.
const ANSWER: u64 = 64 * 1024 * 1024;
/// How long a client may take to give an order, and whoever runs it to answer one that asks for no more than a word.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long an answer may take that waits for the disk, behind all that the run has to decide and to write meanwhile: one
/// that is given up may have been carried out.
const THROUGH: Duration = Duration::from_secs(60);

/// How the answer to an order begins that was taken.
const OK: &str = "ok";

/// Asks the process that runs `folder` to stop the run, as Ctrl-C there would.
///
/// # Errors
/// Nobody runs it, or whoever does cannot be reached.
pub fn request_stop(folder: &RunFolder) -> Result<(), RunError> {
    if !folder.is_running() {
        return Err(RunError::NotRunning { run: folder.id.clone() });
    }
    match order(folder, "stop", PATIENCE)?.as_str() {
        "ok" => Ok(()),
        answer => Err(RunError::io("reach", folder.socket_path())(io::Error::other(answer.to_owned()))),
    }
}

/// Answers a gate of the run in `folder`, and waits until that is on disk.
///
/// # Errors
/// Nobody runs it, it cannot be reached, or the answer does not fit a gate that asks.
pub fn answer_gate(folder: &RunFolder, answer: &GateAnswer) -> Result<(), RunError> {
    if !folder.is_running() {
        return Err(RunError::NotRunning { run: folder.id.clone() });
    }
    ask(folder, "answer", answer).map(drop)
}

/// Writes to an agent of the run in `folder`, and waits until that is on disk: what becomes of it, for a person.
///
/// # Errors
/// Nobody runs it, it cannot be reached, or no agent of it reads the message.
pub fn send_message(folder: &RunFolder, message: &UserMessage) -> Result<String, RunError> {
    if !folder.is_running() {
        return Err(RunError::NotRunning { run: folder.id.clone() });
    }
    ask(folder, "send", message)
}

/// Gives an order with something to it to whoever runs `folder`; what is said to that where it was taken.
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
/// Nobody runs it, or whoever does cannot be reached.
pub fn pulses(folder: &RunFolder) -> Result<Vec<Pulse>, RunError> {
    if !folder.is_running() {
        return Err(RunError::NotRunning { run: folder.id.clone() });
    }
    let answer = order(folder, "pulses", PATIENCE)?;
    serde_json::from_str(&answer).map_err(|_| RunError::Request(answer))
}

/// Gives an order to whoever runs `folder`; what it says to that.
fn order(folder: &RunFolder, line: &str, patience: Duration) -> Result<String, RunError> {
    let order = |mut stream: UnixStream| {
        stream.set_read_timeout(Some(patience))?;
        stream.write_all(format!("{line}\n").as_bytes())?;
        let mut answer = String::new();
        BufReader::new(stream.take(ANSWER)).read_line(&mut answer)?;
        Ok(answer.trim_end().to_owned())
    };
    through(folder, UnixStream::connect).and_then(order).map_err(RunError::io("reach", folder.socket_path()))
}

/// Listens until dropped.
pub(crate) struct Socket {
    path: PathBuf,
    folder: RunFolder,
    closing: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Socket {
    /// Starts to take orders for `control`. The lock of the run must be held.
    pub(crate) fn listen(folder: &RunFolder, control: Control, pulses: Pulses) -> Result<Socket, RunError> {
        let path = folder.socket_path();
        // A killed runner leaves its socket behind, and the lock says that nobody else listens.
        let _ = std::fs::remove_file(&path);
        let listener = through(folder, UnixListener::bind).map_err(RunError::io("listen on", &path))?;
        let closing = Arc::new(AtomicBool::new(false));
        let thread = {
            let closing = Arc::clone(&closing);
            let accept = move || {
                let mut serving: Vec<JoinHandle<()>> = Vec::new();
                for stream in listener.incoming() {
                    if closing.load(Ordering::Acquire) {
                        break;
                    }
                    serving.retain(|client| !client.is_finished());
                    let (control, pulses) = (control.clone(), pulses.clone());
                    // A client that goes away early, or finds no thread, has nobody left to complain to.
                    let serve = move || drop(stream.and_then(|stream| serve(stream, &control, &pulses)));
                    serving.extend(thread("client", serve));
                }
                // What they asked for was answered, or is not any more.
                serving.into_iter().for_each(|client| drop(client.join()));
            };
            thread("control", accept).map_err(RunError::io("listen on", &path))?
        };
        Ok(Socket { path, folder: folder.clone(), closing, thread: Some(thread) })
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.closing.store(true, Ordering::Release);
        // A connection wakes the thread; where none can be made it ends with the process.
        let woken = through(&self.folder, UnixStream::connect);
        if woken.is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
        let _ = std::fs::remove_file(&self.path);
    }
}

fn thread(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name(name.to_owned()).stack_size(128 * 1024).spawn(work)
}

fn serve(mut stream: UnixStream, control: &Control, pulses: &Pulses) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut order = String::new();
    BufReader::new((&stream).take(LONGEST)).read_line(&mut order)?;
    match order.trim_end() {
        "stop" => {
            control.stop();
            stream.write_all(b"ok\n")
        }
        "pulses" => {
            let mut line = serde_json::to_string(&pulses.all())?;
            line.push('\n');
            stream.write_all(line.as_bytes())
        }
        order => {
            let told = match obey(order, control) {
                Ok(words) => format!("{OK} {}", words.replace('\n', " ")),
                Err(problem) => problem.replace('\n', " "),
            };
            stream.write_all(format!("{}\n", told.trim_end()).as_bytes())
        }
    }
}

/// Takes an order with something to it.
fn obey(order: &str, control: &Control) -> Result<String, String> {
    let unknown = |_| "unknown order".to_owned();
    match order.split_once(' ') {
        Some(("answer", json)) => {
            let answer = serde_json::from_str(json).map_err(unknown)?;
            control.answer(answer).map(|()| String::new())
        }
        Some(("send", json)) => control.send(serde_json::from_str(json).map_err(unknown)?),
        _ => Err("unknown order".to_owned()),
    }
}

fn through<T>(folder: &RunFolder, connect: impl FnOnce(PathBuf) -> io::Result<T>) -> io::Result<T> {
    let directory = File::open(&folder.path)?;
    connect(PathBuf::from(format!("/proc/self/fd/{}/control.sock", directory.as_raw_fd())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::home::Home;

    #[test]
    fn clients_that_are_slow_hold_nobody_else_up() {
        let place = tempfile::tempdir().unwrap();
        let home = Home::new(place.path().join("home"));
        let folder = home.publish(home.create().unwrap()).unwrap();
        let _socket = Socket::listen(&folder, Control::new(), Pulses::default()).unwrap();
        let slow = |number: usize| {
            let mut stream = through(&folder, UnixStream::connect).unwrap();
            // Some say nothing, and some half of something.
            stream.write_all(&b"pulses"[..number % 6]).unwrap();
            stream
        };
        // One after the other they would take longer than anybody waits.
        let slow: Vec<UnixStream> = (0..100).map(slow).collect();
        assert_eq!(order(&folder, "pulses", THROUGH).unwrap(), "[]");
        assert_eq!(order(&folder, "stop", THROUGH).unwrap(), "ok");
        drop(slow);
    }
}
