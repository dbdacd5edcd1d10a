//! What a shim keeps of its process: the files, the connection to a runner, and what is still to be read.

use std::cell::RefCell;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FallocateFlags, fallocate};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustix::process::{Pid, getpid};

use serde::{Deserialize, Serialize};

use super::{EndCause, FromRunner, FromShim, Living, Order, Words};
use crate::io::children::reap_orphans;
use crate::io::process::{Sink, StdinDialogue};
use crate::types::cancel::Cancel;
use crate::types::event::Process;
use crate::types::user_request::StopLevel;

/// The bytes of a stream that a runner may not have read yet before the program has to wait.
const WINDOW: u64 = 16 << 20;

/// The last bytes of a stream that are kept on disk: as much as a log has of it.
const KEPT: u64 = 256 << 20;

/// How much of a file is given back at once.
const PIECE: u64 = 16 << 20;

/// What a hole in a file is a multiple of.
const BLOCK: u64 = 64 << 10;

/// How long the program waits for room on the disk.
const DISK_PATIENCE: Duration = Duration::from_secs(60);

/// Between two looks at a disk that is full.
const PAUSE: Duration = Duration::from_millis(100);

/// How often orphans below it that have ended are reaped.
const SWEEP: Duration = Duration::from_secs(5);

/// The longest line of a runner: a message of an agent, every character escaped.
const LONGEST: usize = 128 << 20;

/// One stream of the program.
struct Spool {
    file: File,
    came: u64,
    read: u64,
    /// What lies before this byte was given back to the disk.
    given_back: u64,
}

/// What one shim has.
pub(super) struct Spools {
    out: Spool,
    err: Spool,
    input: File,
    /// What the program is to read next, and whether nothing follows.
    unread: Vec<u8>,
    is_closed: bool,
    talks: bool,
    /// The bytes that runners have told it, those of them that it has read, and whether it reads or writes no more.
    told: u64,
    heard: u64,
    is_gone: bool,
    connection: Option<Connection>,
    /// The folder of the run.
    pub run: PathBuf,
    pub epoch: u64,
    living: Option<Living>,
    /// The token and the address of tools in its environment.
    credentials: (Option<String>, Option<String>),
    pub cancel: Arc<Cancel>,
    /// Why the shim ends the program itself.
    pub cause: Option<EndCause>,
    /// Why the runner has asked the program to end its work.
    pub parting: Option<EndCause>,
    /// Wakes the task of the program.
    pub waker: Option<Waker>,
    deadline: Option<Instant>,
    idle: Option<Duration>,
    orphan_limit: Duration,
    began: Instant,
    last_output: Instant,
    /// Since when no runner is there.
    alone_since: Option<Instant>,
    next_sweep: Instant,
}

/// The connection to a runner.
struct Connection {
    stream: UnixStream,
    /// What came of a line that is not whole.
    begun: Vec<u8>,
    /// Whether it was told less than there is.
    is_behind: bool,
}

impl Spools {
    pub(super) fn new(order: &Order, runner: UnixStream) -> io::Result<Spools> {
        let create =
            |name: &str| OpenOptions::new().append(true).create_new(true).mode(0o600).open(order.folder.join(name));
        let spool = |name: &str| Ok::<_, io::Error>(Spool { file: create(name)?, came: 0, read: 0, given_back: 0 });
        let variable = |name: &str| {
            let is_meant = |word: &Words| matches!(word, Words::Text(text) if text == name);
            match order.environment.iter().rev().find(|(other, _)| is_meant(other)) {
                Some((_, Words::Text(value))) => Some(value.clone()),
                _ => None,
            }
        };
        let now = Instant::now();
        let input = create("in")?;
        Ok(Spools {
            out: spool("out")?,
            err: spool("err")?,
            input,
            unread: Vec::new(),
            is_closed: false,
            talks: order.talks,
            told: 0,
            heard: 0,
            is_gone: false,
            connection: Some(Connection { stream: runner, begun: Vec::new(), is_behind: false }),
            run: order.run.clone(),
            epoch: order.epoch,
            living: None,
            credentials: (variable(crate::io::agent_api::TOKEN), variable(crate::io::agent_api::MCP)),
            cancel: Arc::default(),
            cause: None,
            parting: None,
            waker: None,
            deadline: order.timeout_ms.map(|timeout| now + Duration::from_millis(timeout)),
            idle: order.idle_ms.map(Duration::from_millis),
            orphan_limit: Duration::from_millis(order.orphan_ms),
            began: now,
            last_output: now,
            alone_since: None,
            next_sweep: now + SWEEP,
        })
    }

    /// Whether no runner is there.
    pub(super) fn is_alone(&self) -> bool {
        self.connection.is_none()
    }

    /// The bytes of both streams so far.
    pub(super) fn came(&self) -> [u64; 2] {
        [self.out.came, self.err.came]
    }

    /// The connection, to be waited for.
    pub(super) fn stream(&self) -> Option<UnixStream> {
        self.connection.as_ref()?.stream.try_clone().ok()
    }

    /// The program as it is now; none before it was started.
    pub(super) fn living(&self) -> Option<Living> {
        let to_ms = |since: Instant| u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
        let living = self.living.clone()?;
        let (age_ms, silent_ms) = (to_ms(self.began), to_ms(self.last_output));
        Some(Living { age_ms, silent_ms, came: self.came(), told: self.told, ..living })
    }

    /// Another runner takes the process over.
    pub(super) fn hand_over(&mut self, stream: UnixStream, epoch: u64) {
        self.lose_runner();
        self.epoch = epoch;
        (self.out.read, self.err.read) = (self.out.given_back, self.err.given_back);
        self.connection = Some(Connection { stream, begun: Vec::new(), is_behind: false });
        self.alone_since = None;
        if let Some(living) = self.living() {
            self.tell(&FromShim::Lives(living));
        }
        self.tell_progress();
        self.wake();
    }

    /// Ends the program, which nothing else has been asked for.
    pub(super) fn end_for(&mut self, cause: EndCause) {
        self.cause.get_or_insert(cause);
        self.cancel.request_stop(StopLevel::Stop);
    }

    /// Tells the runner something that it must hear.
    pub(super) fn tell(&mut self, told: &FromShim) {
        let Some(connection) = &mut self.connection else { return };
        let line = serde_json::to_string(told).expect("texts and numbers are JSON") + "\n";
        if connection.stream.write_all(line.as_bytes()).is_err() {
            self.lose_runner();
        }
    }

    /// Tells how much there is, where the runner listens: what it does not hear now it hears when it has read.
    fn tell_progress(&mut self) {
        let mut lines = vec![FromShim::Came(self.came())];
        lines.extend(self.talks.then_some(FromShim::Heard { bytes: self.heard, is_gone: self.is_gone }));
        let Some(connection) = &mut self.connection else { return };
        let line: String =
            lines.iter().map(|line| serde_json::to_string(line).expect("numbers are JSON") + "\n").collect();
        // A line is far shorter than what a socket takes at once.
        match send(&connection.stream, line.as_bytes(), SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
            Ok(count) => connection.is_behind = count < line.len(),
            Err(rustix::io::Errno::AGAIN) => connection.is_behind = true,
            Err(_) => self.lose_runner(),
        }
    }

    fn lose_runner(&mut self) {
        if let Some(connection) = self.connection.take() {
            // A runner that is given up learns that, whatever else has the descriptor.
            let _ = connection.stream.shutdown(std::net::Shutdown::Both);
        }
        if let Some(cause) = self.parting {
            self.end_for(cause);
        }
        self.alone_since.get_or_insert_with(Instant::now);
        // The task of the program now looks at the limits itself.
        self.wake();
    }

    fn wake(&self) {
        self.waker.iter().for_each(Waker::wake_by_ref);
    }

    /// Takes what the runner has said.
    pub(super) fn hear(&mut self) {
        let mut buffer = vec![0; 64 * 1024];
        while let Some(connection) = &mut self.connection {
            match recv(&connection.stream, &mut buffer[..], RecvFlags::DONTWAIT) {
                Ok((0, _)) => self.lose_runner(),
                Ok((count, _)) => {
                    connection.begun.extend_from_slice(&buffer[..count]);
                    if connection.begun.len() > LONGEST {
                        return self.lose_runner();
                    }
                    self.take_lines();
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => return,
                Err(_) => self.lose_runner(),
            }
        }
    }

    fn take_lines(&mut self) {
        while let Some(connection) = &mut self.connection
            && let Some(end) = connection.begun.iter().position(|&byte| byte == b'\n')
        {
            let line: Vec<u8> = connection.begun.drain(..=end).collect();
            match serde_json::from_slice(&line) {
                Ok(FromRunner::Write(text)) => {
                    // What was written down was said, whatever becomes of the runner.
                    if self.input.write_all(describe_messages(&text).as_bytes()).is_err() {
                        self.end_for(EndCause::Disk);
                    }
                    self.told += text.len() as u64;
                    self.unread.extend_from_slice(text.as_bytes());
                    self.wake();
                }
                Ok(FromRunner::Close) => {
                    self.is_closed = true;
                    self.wake();
                }
                Ok(FromRunner::Read([out, err])) => {
                    (self.out.read, self.err.read) = (self.out.read.max(out), self.err.read.max(err));
                    if self.connection.as_ref().is_some_and(|connection| connection.is_behind) {
                        self.tell_progress();
                    }
                }
                Ok(FromRunner::Stop) => self.end_for(EndCause::Stopped),
                Ok(FromRunner::Ending(cause)) => self.end_for(cause),
                Ok(FromRunner::Parting(cause)) => self.parting = Some(cause),
                // A runner that speaks another language is none.
                Ok(FromRunner::Hello { .. } | FromRunner::Ask) | Err(_) => self.lose_runner(),
            }
        }
    }

    /// Waits so long for the runner to say something, and takes that.
    fn hear_for(&mut self, patience: Duration) {
        let Some(connection) = &self.connection else { return std::thread::sleep(patience) };
        let timeout = Timespec { tv_sec: patience.as_secs() as i64, tv_nsec: i64::from(patience.subsec_nanos()) };
        // Interrupted by a signal: the caller looks again.
        let _ = poll(&mut [PollFd::new(&connection.stream, PollFlags::IN)], Some(&timeout));
        self.hear();
    }

    /// When the program is to end while no runner is there, and why; none where one is, or it ends already.
    fn lone_end(&self) -> Option<(Instant, EndCause)> {
        let alone_since = self.alone_since.filter(|_| self.cause.is_none())?;
        // An agent that is talked with may wait for an answer that only a runner gives.
        let idle = self.idle.filter(|_| !self.talks).map(|idle| (self.last_output + idle, EndCause::Idle));
        let deadline = self.deadline.map(|deadline| (deadline, EndCause::Timeout));
        let orphaned = Some((alone_since + self.orphan_limit, EndCause::Orphaned));
        [idle, deadline, orphaned].into_iter().flatten().min_by_key(|(due, _)| *due)
    }

    /// Keeps what came on one stream, and tells the runner.
    fn keep(&mut self, which: fn(&mut Spools) -> &mut Spool, bytes: &[u8]) {
        self.last_output = Instant::now();
        let full_since = Instant::now();
        let mut rest = bytes;
        while !rest.is_empty() {
            match which(self).file.write(rest) {
                Ok(count) => {
                    which(self).came += count as u64;
                    rest = &rest[count..];
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The program waits meanwhile: nothing of it is dropped.
                Err(_) if full_since.elapsed() < DISK_PATIENCE && self.cancel.requested_level().is_none() => {
                    self.hear_for(PAUSE);
                }
                Err(_) => return self.end_for(EndCause::Disk),
            }
        }
        self.tell_progress();
        // A runner that reads more slowly than the program writes holds it up, as a pipe does.
        while self.connection.is_some() && self.cancel.requested_level().is_none() && {
            let spool = which(self);
            spool.came - spool.read.min(spool.came) > WINDOW
        } {
            self.hear_for(PAUSE);
        }
        which(self).give_back();
    }
}

/// What a later runner needs of the messages of a dialogue: their names, and no more, for some hold the token of the attempt.
fn describe_messages(text: &str) -> String {
    #[derive(Serialize, Deserialize)]
    struct Head {
        id: Option<serde_json::Value>,
        method: Option<String>,
    }
    let heads = text.lines().filter_map(|line| serde_json::from_str::<Head>(line).ok());
    heads.filter_map(|head| Some(serde_json::to_string(&head).ok()? + "\n")).collect()
}

impl Spool {
    /// Gives back to the disk what no log would keep either.
    fn give_back(&mut self) {
        let old = self.came.saturating_sub(KEPT) / BLOCK * BLOCK;
        if old >= self.given_back + PIECE {
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            // A file system that cannot do that keeps all of it, as long as it has room.
            let _ = fallocate(&self.file, flags, 0, old);
            self.given_back = old;
        }
    }
}

/// The sink of the program. It borrows the spools for each call alone, since the task of the connection has them as well.
pub(super) struct Keeper<'s> {
    spools: &'s RefCell<Spools>,
    talks: bool,
    /// What the program is to read next.
    words: Vec<u8>,
}

impl<'s> Keeper<'s> {
    pub(super) fn new(spools: &'s RefCell<Spools>) -> Keeper<'s> {
        let talks = spools.borrow().talks;
        Keeper { spools, talks, words: Vec::new() }
    }
}

impl Sink for Keeper<'_> {
    fn stdout(&mut self, bytes: &[u8]) -> bool {
        self.spools.borrow_mut().keep(|spools| &mut spools.out, bytes);
        // What it has reported is the runner's to read.
        false
    }

    fn stderr(&mut self, bytes: &[u8]) {
        self.spools.borrow_mut().keep(|spools| &mut spools.err, bytes);
    }

    fn report_start(&mut self, group: Pid) {
        let mut spools = self.spools.borrow_mut();
        let (token, tools) = spools.credentials.clone();
        let (group, shim) = (group.as_raw_nonzero().get(), getpid().as_raw_nonzero().get());
        let living = Living { group, shim, age_ms: 0, silent_ms: 0, came: [0; 2], told: 0, token, tools };
        spools.living = Some(living.clone());
        spools.tell(&FromShim::Lives(living));
    }

    fn report_alive(&mut self, _: Process) {}

    fn due(&self) -> Option<Instant> {
        let spools = self.spools.borrow();
        Some(spools.lone_end().map_or(spools.next_sweep, |(due, _)| due.min(spools.next_sweep)))
    }

    fn tick(&mut self, now: Instant) {
        let mut spools = self.spools.borrow_mut();
        if spools.next_sweep <= now {
            spools.next_sweep = now + SWEEP;
            reap_orphans();
        }
        if let Some((due, cause)) = spools.lone_end()
            && due <= now
        {
            spools.end_for(cause);
        }
    }

    fn has_dialogue(&self) -> bool {
        self.talks
    }

    fn next_input(&mut self) -> StdinDialogue<'_> {
        let mut spools = self.spools.borrow_mut();
        self.words.append(&mut spools.unread);
        StdinDialogue { words: &self.words, over: spools.is_closed, waits: false }
    }

    fn note_written(&mut self, count: usize) {
        self.words.drain(..count);
        if count > 0 {
            let mut spools = self.spools.borrow_mut();
            spools.heard += count as u64;
            spools.tell_progress();
        }
    }

    fn hung_up(&mut self) {
        let mut spools = self.spools.borrow_mut();
        spools.is_gone = true;
        spools.tell_progress();
    }
}
