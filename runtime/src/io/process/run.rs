//! Runs one process from start to end: feeds it, reads it, times it, and ends its group.
//!
//! A task of its thread's event loop, which waits for everything that can happen at once. Invariant: it ends soon after
//! the process did, even where another process holds the pipes, and soon after a cancellation, whatever the process
//! does.

use std::cell::RefCell;
use std::future::Future;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::pipe::fcntl_setpipe_size;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, test_kill_process_group};

use super::spawn::{Finder, Launch, Refused};
use super::stdin::{StdinDialogue, StdinWriter};
use super::watchdog::{LINGER, TERM_GRACE, Watchdog};
use crate::io::children::{self, reap_child};
use crate::io::event_loop::{EventLoop, Inbox, Interest, Ready, Registered};
use crate::io::proc_status::{end_group, group_lives, identify_process};
use crate::types::cancel::Cancel;
use crate::types::event::Process;
use crate::types::observer::Stream;

/// How long a process lives before it is worth recording: a survivor of a killed runner is found by its environment
/// as well, and most processes of a moment never become one.
pub(crate) const ANNOUNCE: Duration = Duration::from_millis(20);

/// Processes of one thread that are worth recording within this time are recorded together: many that start one after the
/// other would have the driver write one by one.
const TOGETHER: Duration = Duration::from_millis(10);

/// How long a process waits for room in the system where nothing else of the run takes any.
const PATIENCE: Duration = Duration::from_secs(30);

/// Between two looks at whether there is room for a process, or at a group that is to end.
const SHORTEST_PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// What is read at once: little at first, more once something fills it.
const SMALL_READ: usize = 16 * 1024;
const LARGE_READ: usize = 256 * 1024;
const LARGE_PIPE: usize = 1024 * 1024;

/// The means of one thread to run processes.
pub(crate) struct Poller {
    finder: RefCell<Finder>,
    began: Instant,
    /// Where its tasks wait.
    pub(crate) events: EventLoop,
    /// What is read into; its tasks read one after another.
    buffer: RefCell<Vec<u8>>,
}

impl Poller {
    pub(crate) fn new() -> io::Result<Poller> {
        let buffer = RefCell::new(vec![0; SMALL_READ]);
        Ok(Poller { finder: RefCell::default(), began: Instant::now(), events: EventLoop::new()?, buffer })
    }

    /// When a process that is there `now` is to be recorded.
    fn announce_moment(&self, now: Instant) -> Instant {
        let moment = now + ANNOUNCE;
        let turns = (moment - self.began).as_nanos() / TOGETHER.as_nanos() + 1;
        // After 497 days there are too many to count: it is recorded by itself.
        u32::try_from(turns).map_or(moment, |turns| self.began + TOGETHER * turns)
    }

    /// What wakes the thread from others.
    pub(crate) fn inbox(&self) -> Arc<Inbox> {
        self.events.inbox()
    }

    /// Runs `task` to its end on this thread, which has no other.
    pub(crate) fn block_on<T>(&self, task: impl Future<Output = T>) -> T {
        self.events.block_on(task)
    }
}

/// Who gets what a process puts out.
pub(crate) trait Sink {
    /// Bytes of its standard output. Says whether the process has reported its result.
    fn stdout(&mut self, bytes: &[u8]) -> bool;
    /// Bytes of its standard error.
    fn stderr(&mut self, bytes: &[u8]);
    /// Whether it takes bytes now. While it does not, they stay in the pipes, and the process waits where those are full.
    fn takes_output(&self) -> bool {
        true
    }
    /// Moves bytes from the pipe of a stream to where they belong, unread: how many, and zero at the end of the stream.
    /// None where it wants to be given the bytes.
    fn take_from(&mut self, _: Stream, _: BorrowedFd<'_>) -> Option<rustix::io::Result<usize>> {
        None
    }
    /// The system has no room for it, and it waits beside so many others.
    fn report_waiting(&mut self, _: &str, _: usize) {}
    /// There is none though nothing else of the run takes any.
    fn gives_up(&mut self, _: &str) {}
    /// It was started.
    fn report_start(&mut self, _: Pid) {}
    /// It has lived for a while.
    fn report_alive(&mut self, process: Process);
    /// When [`Sink::tick`] wants to be called.
    fn due(&self) -> Option<Instant>;
    /// Some time has passed.
    fn tick(&mut self, now: Instant);
    /// Whether the process is talked with: its standard input stays open for what [`Sink::talk`] says.
    fn has_dialogue(&self) -> bool {
        false
    }
    /// What is to be said to it now; asked whenever something has happened.
    fn next_input(&mut self) -> StdinDialogue<'_> {
        StdinDialogue::default()
    }
    /// It was told so many bytes of that.
    fn note_written(&mut self, _: usize) {}
    /// All that it had put out before this runner came has been said: what follows it puts out now, or it has ended.
    fn caught_up(&mut self) {}
    /// It writes nothing more, or reads nothing more.
    fn hung_up(&mut self) {}
    /// It is to be ended: how long it may take to end its work by itself, where it was asked to.
    fn request_exit(&mut self) -> Option<Duration> {
        None
    }
}

/// How long a process may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub deadline: Option<Instant>,
    pub idle: Option<Duration>,
    pub grace: Duration,
}

/// Why a process was ended, or that it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// By itself.
    Exit,
    /// It reported its result, and did not exit.
    Reported,
    /// Its deadline passed.
    Timeout,
    /// It put out nothing for too long.
    Idle,
    /// The run, or a person, cancelled it.
    Cancelled,
    /// No runner was there for too long: it is to be started again.
    Orphaned,
    /// What it put out while no runner was there is not whole any more: it is to be started again.
    Cut,
    /// The worker that held it is lost: it is to be started again, by another.
    WorkerLost,
    /// It is not known how: why.
    Lost(&'static str),
}

/// How a process ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End {
    pub cause: Cause,
    /// Its exit code; 128 + N when signal N ended it.
    pub exit: i32,
    /// The signal that ended it, where one did.
    pub signal: Option<i32>,
}

impl End {
    /// Why the process is to be started again, in words; none where it counts.
    pub(crate) fn starts_again(&self) -> Option<&'static str> {
        match self.cause {
            Cause::Orphaned => Some("no runner came back in time"),
            Cause::Cut => Some("what it had put out was cut off"),
            Cause::WorkerLost => Some("its worker is lost"),
            _ => None,
        }
    }
}

/// Runs a process to its end.
///
/// # Errors
/// It could not be started: says why.
pub(crate) async fn run_process(
    poller: &Poller,
    launch: &Launch<'_>,
    limits: Limits,
    cancel: &Cancel,
    sink: &mut dyn Sink,
) -> Result<End, String> {
    let began = Instant::now();
    // Before the start, since a process may have to wait for room, and can be cancelled meanwhile.
    cancel.set_waker(Some(poller.events.current_waker()));
    let child = start_process(poller, || poller.finder.borrow_mut().start(launch), cancel, sink).await;
    let child = match child {
        Ok(Some(child)) => child,
        other => {
            cancel.set_waker(None);
            return other.map(|_| End { cause: Cause::Cancelled, exit: -1, signal: None });
        }
    };
    // What it had to wait for is not its time.
    let limits = Limits { deadline: limits.deadline.map(|deadline| deadline + began.elapsed()), ..limits };
    let group = Pid::from_child(&child);
    let now = Instant::now();
    let mut running = Running {
        group,
        events: &poller.events,
        feed: None,
        voice: None,
        stdout: None,
        stderr: None,
        child,
        pidfd: None,
        exited: None,
        linger: None,
        paused: None,
        announce: Some(poller.announce_moment(now)),
        watchdog: Watchdog::new(Some(group), limits, now),
        large: false,
    };
    if let Err(error) = running.open_pipes(launch.stdin, sink.has_dialogue()) {
        end_group(group, Signal::KILL);
        reap_child(running.child);
        cancel.set_waker(None);
        return Err(format!("its end cannot be watched: {error}"));
    }
    let _reins = KillGroupOnDrop(group);
    sink.report_start(group);
    let cause = running.watch_process(poller, cancel, sink).await;
    cancel.set_waker(None);
    let (exit, signal) = running.finish().await;
    poller.events.forget();
    Ok(End { cause, exit, signal })
}

/// Starts a process by `start` as soon as there is room for it; none where it is cancelled before.
pub(crate) async fn start_process(
    poller: &Poller,
    mut start: impl FnMut() -> Result<Child, Refused>,
    cancel: &Cancel,
    sink: &mut dyn Sink,
) -> Result<Option<Child>, String> {
    let mut pause = SHORTEST_PAUSE;
    let mut alone_since = None;
    while cancel.requested_level().is_none() {
        let (has_room, running) = children::has_room();
        if has_room {
            let refused = match start() {
                Ok(child) => return Ok(Some(child)),
                Err(refused) if refused.is_full => refused.message,
                Err(refused) => return Err(refused.message),
            };
            // The system has less room than was thought: as many as run now are all that fit, until one more is tried.
            children::lower_limit();
            sink.report_waiting(&refused, running);
            // While others of the run go on, one of them will end and leave room. Alone, it waits for programs outside
            // the run, which may never end.
            let alone = *alone_since.get_or_insert_with(Instant::now);
            if running > 0 {
                alone_since = None;
            } else if alone.elapsed() >= PATIENCE {
                sink.gives_up(&refused);
                return Err(refused);
            }
        }
        poller.events.next(Some(Instant::now() + pause)).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
    Ok(None)
}

/// Ends a group whose watcher panics: no other code would.
struct KillGroupOnDrop(Pid);

impl Drop for KillGroupOnDrop {
    fn drop(&mut self) {
        if std::thread::panicking() {
            end_group(self.0, Signal::KILL);
        }
    }
}

struct Running<'a> {
    group: Pid,
    events: &'a EventLoop,
    child: Child,
    /// Held as long as its end is waited for.
    pidfd: Option<Registered<'a, OwnedFd>>,
    feed: Option<Feed<'a>>,
    voice: Option<StdinWriter<'a>>,
    stdout: Option<Registered<'a, OwnedFd>>,
    stderr: Option<Registered<'a, OwnedFd>>,
    /// When the process was seen to have ended; it is not reaped before [`Running::finish`].
    exited: Option<Instant>,
    /// When to look at who holds its pipes beyond its end.
    linger: Option<Instant>,
    /// Since when its pipes are not read.
    paused: Option<Instant>,
    announce: Option<Instant>,
    watchdog: Watchdog,
    /// Whether its standard output has a large pipe.
    large: bool,
}

/// What it still has to read.
struct Feed<'a> {
    pipe: Registered<'a, ChildStdin>,
    rest: &'a [u8],
}

impl<'a> Running<'a> {
    fn open_pipes(&mut self, stdin: Option<&'a [u8]>, talks: bool) -> io::Result<()> {
        let pidfd = pidfd_open(self.group, PidfdFlags::empty())?;
        // The number is still that of the process, as it is reaped in `finish` alone.
        self.pidfd = Some(self.events.register(pidfd, Interest::Exit)?);
        if let Some(pipe) = self.child.stdout.take() {
            self.stdout = Some(self.events.register(OwnedFd::from(pipe), Interest::Stdout)?);
        }
        if let Some(pipe) = self.child.stderr.take() {
            self.stderr = Some(self.events.register(OwnedFd::from(pipe), Interest::Stderr)?);
        }
        if let (Some(pipe), Some(stdin)) = (self.child.stdin.take(), stdin)
            // Only our end of this pipe: a process that does not read must not hold up the loop. The outputs are read
            // when they are ready, which never blocks.
            && fcntl_getfl(&pipe).and_then(|flags| fcntl_setfl(&pipe, flags | OFlags::NONBLOCK)).is_ok()
        {
            if talks {
                self.voice = Some(StdinWriter { pipe: self.events.register(pipe, Interest::Stdin)? });
            } else if let Some(rest) = feed_pipe(&pipe, stdin) {
                self.feed = Some(Feed { pipe: self.events.register(pipe, Interest::Stdin)?, rest });
            }
        }
        Ok(())
    }

    /// Goes on with the talk, where there is one.
    fn send_input(&mut self, now: Instant, sink: &mut dyn Sink) {
        let talk = sink.next_input();
        self.watchdog.note_dialogue(talk, now);
        let Some(voice) = &mut self.voice else { return };
        let (told, goes_on) = voice.write_available(talk.words);
        let is_done = talk.over && told == talk.words.len();
        if is_done || !goes_on {
            self.voice = None;
        }
        sink.note_written(told);
        if !goes_on {
            sink.hung_up();
        }
    }

    async fn watch_process(&mut self, poller: &Poller, cancel: &Cancel, sink: &mut dyn Sink) -> Cause {
        loop {
            let now = Instant::now();
            if sink.has_dialogue() {
                self.send_input(now, sink);
            }
            self.enforce_limits(now, cancel, sink);
            self.pace_reading(now, sink);
            if self.is_over(now) {
                return self.watchdog.cause();
            }
            let ready = self.events.next(self.next_moment(sink)).await;
            if ready.has(Interest::Exit) && self.exited.is_none() {
                let now = Instant::now();
                if let Some(pidfd) = self.pidfd.take() {
                    pidfd.note_reported();
                }
                self.exited = Some(now);
                self.linger = Some(now + LINGER);
            }
            self.transfer_pipes(ready, poller, sink);
        }
    }

    /// Reads the pipes only while there is a place for what they hold.
    fn pace_reading(&mut self, now: Instant, sink: &dyn Sink) {
        let takes = sink.takes_output();
        for pipe in [&mut self.stdout, &mut self.stderr].into_iter().flatten() {
            match takes {
                true => pipe.resume(),
                false => pipe.pause(),
            }
        }
        if !takes {
            self.paused.get_or_insert(now);
        } else if let Some(since) = self.paused.take() {
            // What an ended process has left in its pipes is not given up for that.
            self.exited = self.exited.map(|exited| exited + (now - since));
            self.linger = self.linger.map(|_| now + LINGER);
        }
    }

    /// When to look at who holds its pipes beyond its end, where they are read.
    fn linger(&self) -> Option<Instant> {
        self.linger.filter(|_| self.paused.is_none())
    }

    /// Does what the time and the requested stop level ask for.
    fn enforce_limits(&mut self, now: Instant, cancel: &Cancel, sink: &mut dyn Sink) {
        if sink.due().is_some_and(|due| due <= now) {
            sink.tick(now);
        }
        if self.announce.is_some_and(|moment| moment <= now) && self.exited.is_none() {
            self.announce = None;
            let group = self.group.as_raw_nonzero().get();
            sink.report_alive(identify_process(group));
        }
        self.watchdog.enforce(now, self.exited.is_none(), cancel, sink);
        if self.exited.is_some() && self.linger().is_some_and(|moment| moment <= now) {
            self.linger = None;
            if group_lives(self.group) {
                self.watchdog.terminate_group(Cause::Exit, now);
            } else if self.watchdog.last_output + LINGER > now
                && self.exited.is_some_and(|exited| exited + TERM_GRACE > now)
            {
                // There may be more of it in the pipes.
                self.linger = Some(self.watchdog.last_output + LINGER);
            } else {
                // The process that holds the pipes has left the group, and is out of reach.
                self.watchdog.let_go(now);
            }
        }
    }

    /// Whether nothing more is to be waited for: it ended, and its pipes are closed, or a process out of reach holds
    /// them.
    fn is_over(&self, now: Instant) -> bool {
        self.exited.is_some() && (self.is_silent() || self.watchdog.is_beyond_reach(now))
    }

    fn is_silent(&self) -> bool {
        self.stdout.is_none() && self.stderr.is_none()
    }

    /// The next moment at which [`Running::enforce_limits`] has something to do.
    fn next_moment(&self, sink: &dyn Sink) -> Option<Instant> {
        let living = self.exited.is_none();
        let moments = [sink.due(), self.announce.filter(|_| living), self.watchdog.next_moment(living), self.linger()];
        moments.into_iter().flatten().min()
    }

    /// Writes to the pipes that have room, and reads from those that hold something.
    fn transfer_pipes(&mut self, ready: Ready, poller: &Poller, sink: &mut dyn Sink) {
        if ready.has(Interest::Stdin)
            && let Some(Feed { pipe, rest }) = self.feed.take()
        {
            self.feed = feed_pipe(&pipe, rest).map(|rest| Feed { pipe, rest });
        }
        let buffer = &mut *poller.buffer.borrow_mut();
        if ready.has(Interest::Stdout) {
            self.read_stdout(buffer, sink);
        }
        if ready.has(Interest::Stderr) {
            self.read_stderr(buffer, sink);
        }
    }

    fn read_stdout(&mut self, buffer: &mut Vec<u8>, sink: &mut dyn Sink) {
        let Some(pipe) = &self.stdout else {
            return;
        };
        let taken = sink.take_from(Stream::Stdout, pipe.as_fd());
        let is_taken = taken.is_some();
        let Some(count) = count_read(taken.unwrap_or_else(|| rustix::io::read(pipe, &mut *buffer))) else {
            self.stdout = None;
            sink.hung_up();
            return;
        };
        if count > 0 {
            let reported = !is_taken && sink.stdout(&buffer[..count]);
            self.watchdog.note_output(Some(reported), Instant::now());
        }
        if count >= SMALL_READ && !self.large {
            self.large = true;
            // Beyond what this user may have, the pipe stays as it is.
            let _ = fcntl_setpipe_size(pipe, LARGE_PIPE);
            if !is_taken {
                // The buffer is that of the thread: it grows once, for all its tasks.
                buffer.resize(LARGE_READ, 0);
            }
        }
    }

    fn read_stderr(&mut self, buffer: &mut [u8], sink: &mut dyn Sink) {
        let Some(pipe) = &self.stderr else {
            return;
        };
        let taken = sink.take_from(Stream::Stderr, pipe.as_fd());
        let is_taken = taken.is_some();
        match count_read(taken.unwrap_or_else(|| rustix::io::read(pipe, &mut *buffer))) {
            None => self.stderr = None,
            Some(0) => {}
            Some(count) => {
                self.watchdog.note_output(None, Instant::now());
                if !is_taken {
                    sink.stderr(&buffer[..count]);
                }
            }
        }
    }

    /// Ends what is left of the group, and takes the exit code.
    async fn finish(self) -> (i32, Option<i32>) {
        let Running { group, events, child, .. } = self;
        // The process is still a zombie here, so its number cannot have become another group's.
        end_group(group, Signal::TERM);
        let status = reap_child(child);
        if test_kill_process_group(group).is_ok() {
            end_rest(group, events).await;
        }
        let signal = status.and_then(|status| status.signal());
        let code = status.and_then(|status| status.code()).or(signal.map(|signal| 128 + signal));
        (code.unwrap_or(-1), signal)
    }
}

/// Writes as much as there is room for. What is left is still to be written; none where nothing is.
fn feed_pipe(pipe: impl AsFd, mut rest: &[u8]) -> Option<&[u8]> {
    while !rest.is_empty() {
        match rustix::io::write(&pipe, rest) {
            Ok(count) => rest = &rest[count..],
            Err(rustix::io::Errno::AGAIN) => return Some(rest),
            Err(rustix::io::Errno::INTR) => {}
            // It does not want to read on, which is its right.
            Err(_) => break,
        }
    }
    None
}

/// What one look at a pipe has brought; none at the end of the stream.
fn count_read(read: rustix::io::Result<usize>) -> Option<usize> {
    match read {
        Ok(0) => None,
        Ok(count) => Some(count),
        Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => Some(0),
        Err(_) => None,
    }
}

/// Waits for a group that got TERM to end, and sends KILL after a while.
async fn end_rest(group: Pid, events: &EventLoop) {
    let deadline = Instant::now() + TERM_GRACE;
    let mut pause = Duration::from_millis(1);
    while group_lives(group) {
        if Instant::now() >= deadline {
            return end_group(group, Signal::KILL);
        }
        // Other events of the task end a wait early.
        let until = Instant::now() + pause;
        while Instant::now() < until {
            events.next(Some(until)).await;
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}
