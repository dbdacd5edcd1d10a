//! The end of a worker: starts a shim or comes back to one, passes on what a driver says to it, and says what it says.
//!
//! Unlike a runner, a worker does not understand the process: it reads the streams from where it was, and passes bytes and
//! lines on. Invariant: no call waits for the shim but [`Relay::next`] and [`Relay::stop`], which may be dropped at any moment.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{Interest, Ready};
use tokio::net::UnixStream;
use tokio::time::{sleep, timeout};

use super::attach::{LOST, STUCK, read_exit, spawn_shim};
use super::follow::render_line;
use super::reader::Reader;
use super::{EndCause, Exit, FromRunner, FromShim, HeldCommand, Living, Order, PROGRAM, Words, socket_path};
use crate::io::children::reap_child;
use crate::io::ending::kill_attempt;
use crate::io::home::create_private;
use crate::io::proc_status::{boot_id, end_group};
use crate::io::process::TERM_GRACE;
use crate::io::unix::through;

/// How much is read before the shim hears of that, where more is there.
const NOTED: u64 = 4 << 20;

/// The longest line of a shim: a path in a message is the longest part of one.
const LONGEST: usize = 1 << 20;

/// Between two tries to start a shim where the system has no room for one more process.
const PAUSE: Duration = Duration::from_millis(100);

/// What a shim says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// The process lives: the line that says so, and how long it has lived, in milliseconds.
    Lives(String, u64),
    /// Bytes have come.
    Came,
    /// A line that is for the driver.
    Line(String),
    /// The process has ended: the line that says how.
    Ended(String),
}

/// A shim and the streams of its process.
pub(crate) struct Relay {
    folder: PathBuf,
    /// The connection; none where the shim has ended.
    stream: Option<UnixStream>,
    /// What came of a line that is not whole.
    begun: Vec<u8>,
    /// Lines that came and were not told yet.
    lines: VecDeque<String>,
    /// What waits for room in the socket.
    outbox: Vec<u8>,
    child: Option<Child>,
    /// The variables of the program, until the shim says that it lives; none where a former worker has started it.
    environment: Vec<(OsString, OsString)>,
    living: Option<Living>,
    reader: Option<Reader>,
    /// What was read before this worker.
    behind: [u64; 2],
    came: [u64; 2],
    /// Whether the shim waits to hear that its bytes are read, and the bytes that it knows to be.
    owes_word: bool,
    noted: u64,
    has_ended: bool,
}

/// A line of a driver as its shim reads it, and the bytes of it that are for the program; none where it is for no shim.
pub(crate) fn read_line(line: &[u8]) -> Option<(Vec<u8>, u64)> {
    let line: FromRunner = serde_json::from_slice(line).ok()?;
    let bytes = match &line {
        FromRunner::Write(text) => text.len() as u64,
        FromRunner::Close | FromRunner::Stop | FromRunner::Parting(_) | FromRunner::Ending(_) => 0,
        // What is between the shim and its worker.
        FromRunner::Hello { .. } | FromRunner::Ask | FromRunner::Read(_) => return None,
    };
    Some((render_line(&line), bytes))
}

/// The line that says of a process that it failed, and why.
pub(crate) fn describe_refusal(message: &str) -> String {
    let refused = Some(message.to_owned());
    let exit = Exit { cause: EndCause::Exit, exit: -1, signal: None, refused, came: [0; 2], boot: boot_id() };
    to_line(&FromShim::Ended(exit))
}

fn to_line(said: &FromShim) -> String {
    serde_json::to_string(said).expect("texts and numbers are JSON")
}

/// What a former worker has left of the process that is held in `folder`, of whose streams so much was read; none where it
/// was not started.
pub(crate) fn find_relay(folder: &Path, behind: [u64; 2]) -> Option<Relay> {
    if let Some(exit) = read_exit(folder) {
        return Some(Relay::ended(folder, behind, exit));
    }
    let stream = through(&socket_path(folder), StdUnixStream::connect).and_then(into_async);
    if let Ok(stream) = stream {
        let mut relay = Relay::new(folder, behind, Some(stream), None);
        // The lock of the folder decides which worker that is, and no number.
        relay.send(&render_line(&FromRunner::Hello { epoch: 0 }));
        return Some(relay);
    }
    // It may have ended between the two looks.
    match read_exit(folder) {
        Some(exit) => Some(Relay::ended(folder, behind, exit)),
        None if folder.join("out").exists() => {
            let mut relay = Relay::new(folder, behind, None, None);
            relay.lose();
            Some(relay)
        }
        None => None,
    }
}

fn into_async(stream: StdUnixStream) -> io::Result<UnixStream> {
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}

impl Relay {
    /// Starts a shim, which starts the program: in `folder`, which is made anew, for the worker that holds the lock of the
    /// folder `lock`. Where the system has no room for one more process, this waits for it.
    ///
    /// # Errors
    /// It cannot be started: says why.
    pub(crate) async fn start(folder: &Path, lock: &Path, command: HeldCommand) -> Result<Relay, String> {
        let failed = |error: io::Error| format!("`swarmc shim` cannot be started: {error}");
        let program = PROGRAM.get().ok_or("no program holds processes")?;
        // What a shim left that could not go on.
        let _ = fs::remove_dir_all(folder);
        create_private(folder, true).map_err(failed)?;
        let (ours, other) = StdUnixStream::pair().map_err(failed)?;
        let other = OwnedFd::from(other);
        let child = loop {
            match spawn_shim(program, folder, &other) {
                Ok(child) => break child,
                Err(refused) if refused.is_full => sleep(PAUSE).await,
                Err(refused) => return Err(refused.message),
            }
        };
        let environment = command.environment.clone();
        let order = Order {
            folder: folder.to_owned(),
            run: lock.to_owned(),
            argv: command.argv.into_iter().map(Words::from).collect(),
            environment: command.environment.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
            directory: command.directory,
            stdin: command.stdin.map(|stdin| String::from_utf8_lossy(&stdin).into_owned()),
            talks: command.talks,
            timeout_ms: command.timeout_ms,
            idle_ms: command.idle_ms,
            orphan_ms: command.orphan_ms,
            install: command.install,
            epoch: 0,
        };
        let stream = into_async(ours).map_err(failed)?;
        let mut relay = Relay { environment, ..Relay::new(folder, [0; 2], Some(stream), Some(child)) };
        relay.send(&render_line(&order));
        Ok(relay)
    }

    fn new(folder: &Path, behind: [u64; 2], stream: Option<UnixStream>, child: Option<Child>) -> Relay {
        Relay {
            folder: folder.to_owned(),
            stream,
            begun: Vec::new(),
            lines: VecDeque::new(),
            outbox: Vec::new(),
            child,
            environment: Vec::new(),
            living: None,
            reader: None,
            behind,
            came: behind,
            owes_word: false,
            noted: 0,
            has_ended: false,
        }
    }

    /// A process that ended while no worker was there.
    fn ended(folder: &Path, behind: [u64; 2], exit: Exit) -> Relay {
        let mut relay = Relay::new(folder, behind, None, None);
        relay.lines.push_back(to_line(&FromShim::Ended(exit)));
        relay
    }

    /// Says a line of [`read_line`] to the shim.
    pub(crate) fn send(&mut self, line: &[u8]) {
        self.outbox.extend_from_slice(line);
        self.flush();
    }

    /// Whether the system has all that was said.
    pub(crate) fn has_sent(&self) -> bool {
        self.outbox.is_empty()
    }

    /// Has the shim end the process, as after this time.
    pub(crate) fn end_for_time(&mut self, is_idle: bool) {
        let cause = if is_idle { EndCause::Idle } else { EndCause::Timeout };
        self.send(&render_line(&FromRunner::Ending(cause)));
    }

    /// The bytes that the shim had been told for its program when this worker came; none before it has said that it lives.
    pub(crate) fn told_before(&self) -> Option<u64> {
        self.living.as_ref().map(|living| living.told)
    }

    /// Whether a former worker has started it.
    pub(crate) fn is_found(&self) -> bool {
        self.child.is_none()
    }

    /// The bytes of both streams that were read.
    pub(crate) fn read(&self) -> [u64; 2] {
        self.reader.as_ref().map_or(self.behind, |reader| reader.read)
    }

    /// What the shim says next. It says nothing after `Ended`.
    pub(crate) async fn next(&mut self) -> Said {
        loop {
            while let Some(line) = self.lines.pop_front() {
                if let Some(said) = self.take(line) {
                    return said;
                }
            }
            let interest = match self.outbox.is_empty() {
                true => Interest::READABLE,
                false => Interest::READABLE | Interest::WRITABLE,
            };
            let ready = match &self.stream {
                _ if self.has_ended => std::future::pending().await,
                Some(stream) => stream.ready(interest).await.unwrap_or(Ready::READABLE),
                None => {
                    self.lose();
                    continue;
                }
            };
            if ready.is_writable() {
                self.flush();
            }
            if (ready.is_readable() || ready.is_read_closed()) && !self.receive() {
                self.stream = None;
            }
        }
    }

    /// Reads what the shim has sent; whether more can follow.
    fn receive(&mut self) -> bool {
        let Some(stream) = &self.stream else { return false };
        let mut buffer = [0; 4096];
        let may_go_on = loop {
            match stream.try_read(&mut buffer) {
                Ok(0) => break false,
                Ok(count) => self.begun.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break true,
                Err(_) => break false,
            }
            if self.begun.len() > LONGEST {
                break false;
            }
        };
        let whole = self.begun.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
        let lines: Vec<u8> = self.begun.drain(..whole).collect();
        let lines = lines.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
        self.lines.extend(lines.map(|line| String::from_utf8_lossy(line).into_owned()));
        may_go_on
    }

    fn take(&mut self, line: String) -> Option<Said> {
        match serde_json::from_str(&line) {
            Ok(FromShim::Lives(living)) => {
                let age = living.age_ms;
                self.came = living.came;
                self.living = Some(living);
                // It has the values of secrets, and is of no more use.
                self.environment = Vec::new();
                Some(Said::Lives(line, age))
            }
            Ok(FromShim::Came(came)) => {
                (self.came, self.owes_word) = (came, true);
                Some(Said::Came)
            }
            Ok(FromShim::Heard { .. }) => {
                self.owes_word = true;
                Some(Said::Line(line))
            }
            Ok(FromShim::Ended(exit)) => {
                self.came = [0, 1].map(|number: usize| exit.came[number].max(self.came[number]));
                self.has_ended = true;
                Some(Said::Ended(line))
            }
            // What another version tells beside.
            Err(_) => None,
        }
    }

    /// The shim is gone: its file says how the process ended, or nothing does.
    fn lose(&mut self) {
        let exit = read_exit(&self.folder);
        if exit.is_none() {
            self.end_all();
        }
        self.lines.push_back(exit.map_or_else(|| describe_refusal(LOST), |exit| to_line(&FromShim::Ended(exit))));
    }

    /// Reads a piece of one of the streams: which, and at most 256 KiB of it. None where all is read.
    ///
    /// # Errors
    /// A stream is shorter than it was, or cannot be read.
    pub(crate) fn read_piece(&mut self) -> io::Result<Option<(u8, &[u8])>> {
        if self.read().iter().zip(self.came).all(|(read, came)| *read >= came) {
            self.note_read();
            return Ok(None);
        }
        if self.reader.is_none() {
            self.reader = Some(Reader::open_behind(&self.folder, self.came, self.behind)?);
        }
        let read: u64 = self.read().iter().sum();
        if read >= self.noted + NOTED {
            self.noted = read;
            self.say_read();
        }
        let came = self.came;
        let Some(reader) = &mut self.reader else { return Ok(None) };
        Ok(reader.next_piece(came)?.map(|(number, bytes)| (u8::from(number > 0), bytes)))
    }

    /// All is read: the shim hears of it where it waits for that.
    fn note_read(&mut self) {
        if let Some(reader) = &mut self.reader {
            reader.rest();
        }
        if std::mem::take(&mut self.owes_word) {
            self.noted = self.read().iter().sum();
            self.say_read();
        }
    }

    fn say_read(&mut self) {
        let read = self.read();
        self.send(&render_line(&FromRunner::Read(read)));
    }

    /// Sends what there is room for.
    fn flush(&mut self) {
        let Some(stream) = &self.stream else { return self.outbox.clear() };
        while !self.outbox.is_empty() {
            match stream.try_write(&self.outbox) {
                Ok(count) => _ = self.outbox.drain(..count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // What it said last is still to be read.
                Err(_) => return self.outbox.clear(),
            }
        }
        self.outbox = Vec::new();
    }

    /// Has the process end with everything below it, and waits for that.
    pub(crate) async fn stop(&mut self) {
        if self.has_ended {
            return;
        }
        self.send(&render_line(&FromRunner::Stop));
        let ends = async { while !matches!(self.next().await, Said::Ended(_)) {} };
        if timeout(TERM_GRACE + STUCK, ends).await.is_err() {
            self.end_all();
        }
    }

    /// Ends what is left of the process and its shim.
    fn end_all(&self) {
        if self.living.is_none() {
            // The shim has not said which process that is.
            kill_attempt(&self.environment);
        }
        for process in self.living.iter().flat_map(|living| [living.group, living.shim]).filter_map(Pid::from_raw) {
            // The shim leads a session, and so a group. Where it has ended there is none.
            end_group(process, Signal::KILL);
        }
    }

    /// Waits for the shim, which ends with its process, and ends one that does not.
    pub(crate) async fn reap(mut self) {
        let Some(child) = self.child.take() else { return };
        // Its end of the connection is closed when it ends.
        let closes = async {
            let Some(stream) = &self.stream else { return };
            loop {
                let is_ready = stream.readable().await.is_ok();
                match stream.try_read(&mut [0; 256]) {
                    Ok(count) if count > 0 => {}
                    Err(error) if is_ready && error.kind() == io::ErrorKind::WouldBlock => {}
                    _ => return,
                }
            }
        };
        if timeout(STUCK, closes).await.is_err() {
            let _ = kill_process(Pid::from_child(&child), Signal::KILL);
        }
        reap_child(child);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::Command;

    use super::*;

    #[test]
    fn what_a_shim_started_and_did_not_tell_is_killed_when_the_shim_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let run = folder.path().to_string_lossy().into_owned();
        let environment =
            [("SWARM_RUN", &*run), ("SWARM_TASK", "one")].map(|(name, value)| (name.into(), value.into()));
        let mut left = Command::new("sleep").arg("60").envs(environment.clone()).spawn().expect("it starts");
        let (ours, other) = StdUnixStream::pair().expect("there is room");
        drop(other);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("there is room");
        let said = runtime.block_on(async {
            let stream = into_async(ours).expect("it is a socket");
            let relay = Relay::new(folder.path(), [0; 2], Some(stream), None);
            Relay { environment: environment.to_vec(), ..relay }.next().await
        });
        assert_eq!(said, Said::Ended(describe_refusal(LOST)));
        assert_eq!(left.wait().expect("it ends").signal(), Some(9));
    }
}
