//! What a shim keeps of its process: the files, the connection to a runner, and what is still to be read.

use std::cell::RefCell;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::fd::BorrowedFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

use memchr::memchr;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustix::process::{Pid, getpid};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::spool::{RING, Spool};
use super::{EndCause, FromRunner, FromShim, Living, Order, Words};
use crate::io::children::reap_orphans;
use crate::io::process::{Sink, StdinDialogue};
use crate::types::cancel::Cancel;
use crate::types::event::Process;
use crate::types::observer::Stream;
use crate::types::user_request::StopLevel;

/// The bytes of a stream that a runner may not have read yet before the program has to wait.
const WINDOW: u64 = 16 << 20;

/// Where less than this comes at once, and comes again within a moment, more gathers in the pipe before it is taken: a
/// program that writes much in small pieces costs a fraction then. It hardly ever waits, as a pipe holds as much or more.
const LITTLE: usize = 64 << 10;
const MOMENT: Duration = Duration::from_millis(1);
const REST: Duration = Duration::from_micros(200);

/// The bytes of a connection that are taken at once.
const HEARD: usize = 8 * 1024;

/// How long the program waits for room on the disk.
const DISK_PATIENCE: Duration = Duration::from_secs(60);

/// Between two looks at a disk that is full.
const PAUSE: Duration = Duration::from_millis(100);

/// How often orphans below it that have ended are reaped.
const SWEEP: Duration = Duration::from_secs(5);

/// The longest line of a runner: a message of an agent, every character escaped.
const LONGEST: usize = 128 << 20;

/// What one shim has.
pub(super) struct Spools {
    out: Spool,
    err: Spool,
    /// What a program was told that is talked with.
    input: Option<File>,
    /// Whether bytes can be moved from a pipe into these files.
    moves: bool,
    /// Since when the disk takes nothing, and when it is tried again.
    full_since: Option<Instant>,
    retry: Option<Instant>,
    /// Until when more gathers in the pipes.
    rest: Option<Instant>,
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
    /// What it was told last.
    told: Progress,
    /// Whether it still reads that: it hears of more when it has.
    is_reading: bool,
}

/// How far the program is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Progress {
    /// The bytes of both streams.
    came: [u64; 2],
    /// The bytes of this runner that the program has read.
    heard: u64,
    /// Whether the program takes no part in the talk any more.
    is_gone: bool,
}

impl Connection {
    fn new(stream: UnixStream) -> Connection {
        Connection { stream, begun: Vec::new(), told: Progress::default(), is_reading: false }
    }
}

impl Spools {
    /// The files of a process, and its first runner, of which `begun` has come behind the order.
    pub(super) fn new(order: &Order, runner: UnixStream, begun: Vec<u8>) -> io::Result<Spools> {
        let create =
            |name: &str| OpenOptions::new().write(true).create_new(true).mode(0o600).open(order.folder.join(name));
        let spool = |name: &str| Ok::<_, io::Error>(Spool::new(create(name)?, RING));
        let variable = |name: &str| {
            let is_meant = |word: &Words| matches!(word, Words::Text(text) if text == name);
            match order.environment.iter().rev().find(|(other, _)| is_meant(other)) {
                Some((_, Words::Text(value))) => Some(value.clone()),
                _ => None,
            }
        };
        let now = Instant::now();
        let input = order.talks.then(|| create("in")).transpose()?;
        let mut spools = Spools {
            out: spool("out")?,
            err: spool("err")?,
            input,
            moves: true,
            full_since: None,
            retry: None,
            rest: None,
            unread: Vec::new(),
            is_closed: false,
            talks: order.talks,
            told: 0,
            heard: 0,
            is_gone: false,
            connection: Some(Connection { begun, ..Connection::new(runner) }),
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
        };
        spools.take_lines(0);
        Ok(spools)
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
        self.out.read_again();
        self.err.read_again();
        let told = Progress { came: self.came(), ..Progress::default() };
        self.connection = Some(Connection { told, ..Connection::new(stream) });
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

    /// Tells how much there is and what the program has read, unless the runner still reads what it was told of last: it
    /// says when it has.
    fn tell_progress(&mut self) {
        // A program that nothing is told takes no part from the beginning.
        let progress = Progress { came: self.came(), heard: self.heard, is_gone: self.is_gone && self.talks };
        let Some(connection) = self.connection.as_mut().filter(|known| !known.is_reading && known.told != progress)
        else {
            return;
        };
        let mut lines = vec![FromShim::Came(progress.came)];
        lines.extend(self.talks.then_some(FromShim::Heard { bytes: progress.heard, is_gone: progress.is_gone }));
        (connection.told, connection.is_reading) = (progress, true);
        let lines: String =
            lines.iter().map(|line| serde_json::to_string(line).expect("numbers are JSON") + "\n").collect();
        // There is room for them: the runner has taken the lines before.
        let sent = send(&connection.stream, lines.as_bytes(), SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
        if sent != Ok(lines.len()) {
            self.lose_runner();
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
        let mut buffer = [0; HEARD];
        while let Some(connection) = &mut self.connection {
            match recv(&connection.stream, &mut buffer[..], RecvFlags::DONTWAIT) {
                Ok((0, _)) => self.lose_runner(),
                Ok((count, _)) => {
                    let searched = connection.begun.len();
                    connection.begun.extend_from_slice(&buffer[..count]);
                    if connection.begun.len() > LONGEST {
                        return self.lose_runner();
                    }
                    self.take_lines(searched);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => self.lose_runner(),
            }
        }
    }

    /// Takes the whole lines that came; none ends before the byte `searched`.
    fn take_lines(&mut self, mut searched: usize) {
        while let Some(connection) = &mut self.connection
            && let from = std::mem::take(&mut searched)
            && let Some(end) = memchr(b'\n', &connection.begun[from..])
        {
            let line: Vec<u8> = connection.begun.drain(..=from + end).collect();
            match serde_json::from_slice(&line) {
                Ok(FromRunner::Write(text)) => {
                    // What was written down was said, whatever becomes of the runner.
                    let heads = describe_messages(&text);
                    if self.input.as_mut().is_some_and(|input| input.write_all(heads.as_bytes()).is_err()) {
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
                    connection.is_reading = false;
                    let waited = !self.has_place();
                    (self.out.read, self.err.read) = (self.out.read.max(out), self.err.read.max(err));
                    self.tell_progress();
                    if waited {
                        self.wake();
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

    /// When the program is to end while no runner is there, and why; none where one is, or it ends already.
    fn lone_end(&self) -> Option<(Instant, EndCause)> {
        let alone_since = self.alone_since.filter(|_| self.cause.is_none())?;
        // An agent that is talked with may wait for an answer that only a runner gives.
        let idle = self.idle.filter(|_| !self.talks).map(|idle| (self.last_output + idle, EndCause::Idle));
        let deadline = self.deadline.map(|deadline| (deadline, EndCause::Timeout));
        let orphaned = Some((alone_since + self.orphan_limit, EndCause::Orphaned));
        [idle, deadline, orphaned].into_iter().flatten().min_by_key(|(due, _)| *due)
    }

    fn spool(&mut self, stream: Stream) -> &mut Spool {
        match stream {
            Stream::Stdout => &mut self.out,
            Stream::Stderr => &mut self.err,
        }
    }

    /// Whether there is a place for more of the program's output: the disk takes it, and a runner that reads more slowly
    /// than the program writes holds it up, as a pipe does. An end that was asked for waits for neither, but nothing is
    /// written over that the runner is still to read.
    fn has_place(&self) -> bool {
        let is_ending = self.cancel.requested_level().is_some();
        let most = if is_ending { RING.kept } else { WINDOW };
        let is_full = self.connection.is_some() && self.out.unread().max(self.err.unread()) > most;
        let waits = self.retry.or(self.rest).is_some();
        !is_full && (is_ending || !waits)
    }

    /// Moves what a pipe holds into the file of its stream; none where it is to be read.
    fn move_from(&mut self, stream: Stream, pipe: BorrowedFd<'_>) -> Option<rustix::io::Result<usize>> {
        if !self.moves {
            return None;
        }
        match self.spool(stream).move_from(pipe) {
            Ok(0) => Some(Ok(0)),
            Ok(count) if self.spool(stream).is_written() => {
                self.note_kept(count);
                Some(Ok(count))
            }
            Ok(count) => {
                // Not every file system can, and a disk may be full.
                self.moves = false;
                self.keep(stream, &[]);
                Some(Ok(count))
            }
            Err(error) if matches!(Errno::from_io_error(&error), Some(Errno::AGAIN | Errno::INTR)) => {
                Some(Err(Errno::AGAIN))
            }
            Err(_) => {
                self.moves = false;
                None
            }
        }
    }

    /// Writes what was read, as far as the disk takes it.
    fn keep(&mut self, stream: Stream, bytes: &[u8]) {
        let (written, is_written) = self.spool(stream).write(bytes);
        if written > 0 {
            self.note_kept(written);
        }
        if !is_written && !self.waits_for_disk() {
            self.spool(stream).drop_pending();
        }
    }

    /// So many bytes of a stream are in its file.
    fn note_kept(&mut self, count: usize) {
        let now = Instant::now();
        let before = std::mem::replace(&mut self.last_output, now);
        self.full_since = None;
        match count < LITTLE && now - before < MOMENT {
            true => self.rest = Some(now + REST),
            false => self.tell_progress(),
        }
    }

    /// What has gathered meanwhile is taken.
    fn end_rest(&mut self) {
        self.rest = None;
        self.tell_progress();
    }

    /// The disk takes nothing. Whether the program waits for it: nothing is dropped meanwhile.
    fn waits_for_disk(&mut self) -> bool {
        let now = Instant::now();
        if *self.full_since.get_or_insert(now) + DISK_PATIENCE <= now {
            self.end_for(EndCause::Disk);
        }
        let waits = self.cancel.requested_level().is_none();
        self.retry = waits.then_some(now + PAUSE);
        waits
    }
}

/// What a later runner needs of the messages of a dialogue: their names, and no more, for some hold the token of the attempt.
fn describe_messages(text: &str) -> String {
    #[derive(Serialize, Deserialize)]
    struct Head<'t> {
        #[serde(borrow)]
        id: Option<&'t RawValue>,
        method: Option<String>,
    }
    let heads = text.lines().filter_map(|line| serde_json::from_str::<Head<'_>>(line).ok());
    heads.filter_map(|head| Some(serde_json::to_string(&head).ok()? + "\n")).collect()
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
        self.spools.borrow_mut().keep(Stream::Stdout, bytes);
        // What it has reported is the runner's to read.
        false
    }

    fn stderr(&mut self, bytes: &[u8]) {
        self.spools.borrow_mut().keep(Stream::Stderr, bytes);
    }

    fn takes_output(&self) -> bool {
        self.spools.borrow().has_place()
    }

    fn take_from(&mut self, stream: Stream, pipe: BorrowedFd<'_>) -> Option<rustix::io::Result<usize>> {
        self.spools.borrow_mut().move_from(stream, pipe)
    }

    fn report_start(&mut self, group: Pid) {
        let mut spools = self.spools.borrow_mut();
        let (token, tools) = spools.credentials.clone();
        let (group, shim) = (group.as_raw_nonzero().get(), getpid().as_raw_nonzero().get());
        let living = Living { group, shim, age_ms: 0, silent_ms: 0, came: [0; 2], told: 0, token, tools, host: None };
        spools.living = Some(living.clone());
        spools.tell(&FromShim::Lives(living));
    }

    fn report_alive(&mut self, _: Process) {}

    fn due(&self) -> Option<Instant> {
        let spools = self.spools.borrow();
        let moments = [spools.lone_end().map(|(due, _)| due), spools.retry, spools.rest, Some(spools.next_sweep)];
        moments.into_iter().flatten().min()
    }

    fn tick(&mut self, now: Instant) {
        let mut spools = self.spools.borrow_mut();
        if spools.next_sweep <= now {
            spools.next_sweep = now + SWEEP;
            reap_orphans();
        }
        if spools.rest.is_some_and(|rest| rest <= now) {
            spools.end_rest();
        }
        if spools.retry.take_if(|retry| *retry <= now).is_some() {
            spools.keep(Stream::Stdout, &[]);
            spools.keep(Stream::Stderr, &[]);
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
