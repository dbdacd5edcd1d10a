//! One process from start to end: fed, read, timed, and ended as a group.
//!
//! One thread, one `poll` over everything that can happen. Invariant: the loop ends soon after the process did, whoever
//! else still holds its pipes, and soon after a cancellation, whatever the process does about it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::pipe::fcntl_setpipe_size;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, test_kill_process_group};

use super::cancel::Cancel;
use super::proc_status::{end_group, group_ends, group_lives, start_time};
use super::spawn::{Finder, Launch};
use super::voice::{Talk, Voice};
use crate::children::{self, reap};
use crate::control::Wish;
use crate::event::Process;

/// Between TERM and KILL.
const TERM_GRACE: Duration = Duration::from_secs(5);

/// How long pipes may stay open after the process ended, before those who hold them are ended.
const LINGER: Duration = Duration::from_millis(100);

/// How long a process lives before it is worth recording: a survivor of a killed runner is found by its environment
/// as well, and most processes of a moment never become one.
const ANNOUNCE: Duration = Duration::from_millis(20);

/// How long a process waits for room in the system where nothing else of the run takes any.
const PATIENCE: Duration = Duration::from_secs(30);

/// Between two looks at whether there is room for a process.
const SHORTEST_PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// What is read at once: little at first, more once something fills it.
const SMALL_READ: usize = 16 * 1024;
const LARGE_READ: usize = 256 * 1024;
const LARGE_PIPE: usize = 1024 * 1024;

/// The means of one thread to run processes.
pub(super) struct Means {
    finder: Finder,
    wake: Arc<OwnedFd>,
    buffer: Vec<u8>,
}

impl Means {
    /// Wakes the thread out of its wait.
    pub(super) fn wake(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.wake)
    }

    pub(super) fn new() -> io::Result<Means> {
        let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        Ok(Means { finder: Finder::default(), wake, buffer: vec![0; SMALL_READ] })
    }
}

/// Who gets what a process puts out.
pub(super) trait Sink {
    /// Bytes of its standard output. Says whether the process has reported its result.
    fn stdout(&mut self, bytes: &[u8]) -> bool;
    /// Bytes of its standard error.
    fn stderr(&mut self, bytes: &[u8]);
    /// The system has no room for it, and it waits beside so many others.
    fn crowded(&mut self, _: &str, _: usize) {}
    /// There is none though nothing else of the run takes any.
    fn gives_up(&mut self, _: &str) {}
    /// It was started.
    fn starts(&mut self) {}
    /// It has lived for a while.
    fn lives(&mut self, process: Process);
    /// When [`Sink::tick`] wants to be called.
    fn due(&self) -> Option<Instant>;
    /// Some time has passed.
    fn tick(&mut self, now: Instant);
    /// Whether the process is talked with: its standard input stays open for what [`Sink::talk`] says.
    fn talks(&self) -> bool {
        false
    }
    /// What is to be said to it now; asked whenever something has happened.
    fn talk(&mut self) -> Talk<'_> {
        Talk::default()
    }
    /// It was told so many bytes of that.
    fn told(&mut self, _: usize) {}
    /// It says nothing more, or hears nothing more.
    fn hung_up(&mut self) {}
    /// It is to be ended: how long it may take to end its work by itself, where it was asked to.
    fn farewell(&mut self) -> Option<Duration> {
        None
    }
}

/// How long a process may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub deadline: Option<Instant>,
    pub idle: Option<Duration>,
    pub grace: Duration,
}

/// Why a process was ended, or that it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// By itself.
    Exit,
    /// It reported its result, and did not exit.
    Reported,
    /// Its deadline passed.
    Timeout,
    /// It put out nothing for too long.
    Idle,
    /// Somebody wanted it so.
    Cancelled,
}

/// How a process ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    pub cause: Cause,
    /// Its exit code; 128 + N when signal N ended it.
    pub exit: i32,
    /// The signal that ended it, where one did.
    pub signal: Option<i32>,
}

/// Runs a process to its end.
///
/// # Errors
/// It could not be started: says why.
pub(super) fn run(
    means: &mut Means,
    launch: &Launch<'_>,
    limits: Limits,
    cancel: &Cancel,
    sink: &mut dyn Sink,
) -> Result<End, String> {
    let began = Instant::now();
    let child = match begin(means, launch, cancel, sink)? {
        Some(child) => child,
        None => return Ok(End { cause: Cause::Cancelled, exit: -1, signal: None }),
    };
    // What it had to wait for is not its time.
    let limits = Limits { deadline: limits.deadline.map(|deadline| deadline + began.elapsed()), ..limits };
    let group = Pid::from_child(&child);
    let pidfd = match pidfd_open(group, PidfdFlags::empty()) {
        Ok(pidfd) => pidfd,
        Err(error) => {
            end_group(group, Signal::KILL);
            reap(child);
            return Err(format!("its end cannot be watched: {error}"));
        }
    };
    let _reins = Reins(group);
    cancel.watch(Some(Arc::clone(&means.wake)));
    sink.starts();
    let now = Instant::now();
    let mut running = Running {
        group,
        feed: None,
        voice: None,
        stdout: None,
        stderr: None,
        child,
        pidfd,
        exited: None,
        linger: None,
        farewell: None,
        ending: None,
        announce: Some(now + ANNOUNCE),
        reported: None,
        last_output: now,
        limits,
        large: false,
    };
    running.open_pipes(launch.stdin, sink.talks());
    let cause = running.watch(means, cancel, sink);
    cancel.watch(None);
    // A wish that came too late for this process must not wake the next one.
    let _ = rustix::io::read(&means.wake, &mut [0; 8]);
    let (exit, signal) = running.finish();
    Ok(End { cause, exit, signal })
}

/// Starts a process as soon as there is room for it; none where it is cancelled before.
fn begin(
    means: &mut Means,
    launch: &Launch<'_>,
    cancel: &Cancel,
    sink: &mut dyn Sink,
) -> Result<Option<Child>, String> {
    let mut pause = SHORTEST_PAUSE;
    let mut alone_since = None;
    while cancel.asked().is_none() {
        let (has_room, running) = children::has_room();
        if has_room {
            let refused = match means.finder.start(launch) {
                Ok(child) => return Ok(Some(child)),
                Err(refused) if refused.is_full => refused.message,
                Err(refused) => return Err(refused.message),
            };
            children::lower_limit();
            sink.crowded(&refused, running);
            let alone = *alone_since.get_or_insert_with(Instant::now);
            if running > 0 {
                alone_since = None;
            } else if alone.elapsed() >= PATIENCE {
                sink.gives_up(&refused);
                return Err(refused);
            }
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
    Ok(None)
}

/// Ends a group whose watcher panics: nobody else would.
struct Reins(Pid);

impl Drop for Reins {
    fn drop(&mut self) {
        if std::thread::panicking() {
            end_group(self.0, Signal::KILL);
        }
    }
}

struct Running<'a> {
    group: Pid,
    child: Child,
    pidfd: OwnedFd,
    feed: Option<Feed<'a>>,
    voice: Option<Voice>,
    stdout: Option<OwnedFd>,
    stderr: Option<OwnedFd>,
    /// When the process was seen to have ended; it is not reaped before [`Running::finish`].
    exited: Option<Instant>,
    /// When to look at who holds its pipes beyond its end.
    linger: Option<Instant>,
    /// Why it is to end its work by itself, and how long it may take.
    farewell: Option<(Cause, Instant)>,
    ending: Option<Ending>,
    announce: Option<Instant>,
    /// When it reported its result.
    reported: Option<Instant>,
    last_output: Instant,
    limits: Limits,
    /// Whether its standard output has a large pipe.
    large: bool,
}

/// What it still has to read.
struct Feed<'a> {
    pipe: ChildStdin,
    rest: &'a [u8],
}

/// That its group is being ended, and when the next, harder step is due.
struct Ending {
    cause: Cause,
    next: Instant,
    killed: bool,
}

impl<'a> Running<'a> {
    fn open_pipes(&mut self, stdin: Option<&'a [u8]>, talks: bool) {
        self.stdout = self.child.stdout.take().map(OwnedFd::from);
        self.stderr = self.child.stderr.take().map(OwnedFd::from);
        if let (Some(pipe), Some(rest)) = (self.child.stdin.take(), stdin)
            && fcntl_getfl(&pipe).and_then(|flags| fcntl_setfl(&pipe, flags | OFlags::NONBLOCK)).is_ok()
        {
            if talks {
                self.voice = Some(Voice { pipe, full: false });
                return;
            }
            self.feed = Some(Feed { pipe, rest });
            self.feed();
        }
    }

    /// Goes on with the talk, where there is one.
    fn talk(&mut self, now: Instant, sink: &mut dyn Sink) {
        let talk = sink.talk();
        if talk.waits {
            self.last_output = now;
        }
        if talk.over {
            self.reported.get_or_insert(now);
        }
        let Some(voice) = &mut self.voice else { return };
        let (told, goes_on) = voice.say(talk.words);
        let is_done = talk.over && told == talk.words.len();
        if is_done || !goes_on {
            self.voice = None;
        }
        sink.told(told);
        if !goes_on {
            sink.hung_up();
        }
    }

    fn watch(&mut self, means: &mut Means, cancel: &Cancel, sink: &mut dyn Sink) -> Cause {
        loop {
            let now = Instant::now();
            if sink.talks() {
                self.talk(now, sink);
            }
            self.consider(now, cancel, sink);
            if self.is_over(now) {
                return self.cause();
            }
            let ready = self.wait(means, self.next_moment(sink).map(|moment| moment.saturating_duration_since(now)));
            if ready.exited && self.exited.is_none() {
                let now = Instant::now();
                self.exited = Some(now);
                self.linger = Some(now + LINGER);
            }
            if ready.stdin {
                self.feed();
            }
            if ready.stdout {
                self.read_stdout(means, sink);
            }
            if ready.stderr {
                self.read_stderr(means, sink);
            }
        }
    }

    /// Does what the time and the wishes of others ask for.
    fn consider(&mut self, now: Instant, cancel: &Cancel, sink: &mut dyn Sink) {
        if sink.due().is_some_and(|due| due <= now) {
            sink.tick(now);
        }
        if self.announce.is_some_and(|moment| moment <= now) && self.exited.is_none() {
            self.announce = None;
            let group = self.group.as_raw_nonzero().get();
            sink.lives(Process { group, started: start_time(group).unwrap_or(0) });
        }
        match cancel.asked() {
            Some(Wish::Kill) => self.kill(Cause::Cancelled, now),
            Some(Wish::Stop | Wish::Interrupt) => self.part(Cause::Cancelled, now, sink),
            None => {}
        }
        if self.exited.is_none() {
            if self.limits.deadline.is_some_and(|deadline| deadline <= now) {
                self.part(Cause::Timeout, now, sink);
            }
            if self.limits.idle.is_some_and(|idle| self.last_output + idle <= now) && self.reported.is_none() {
                self.part(Cause::Idle, now, sink);
            }
            if let Some((cause, due)) = self.farewell
                && (due <= now || self.reported.is_some())
            {
                self.end(cause, now);
            }
            if self.reported.is_some_and(|reported| reported + self.limits.grace <= now) {
                self.end(Cause::Reported, now);
            }
        } else if self.linger.is_some_and(|moment| moment <= now) {
            self.linger = None;
            if group_lives(self.group) {
                self.end(Cause::Exit, now);
            } else if self.last_output + LINGER > now && self.exited.is_some_and(|exited| exited + TERM_GRACE > now) {
                // There may be more of it in the pipes.
                self.linger = Some(self.last_output + LINGER);
            } else {
                // Whoever holds the pipes has left the group, and is out of reach.
                self.let_go(now);
            }
        }
        if self.ending.as_ref().is_some_and(|ending| !ending.killed && ending.next <= now) {
            self.kill(Cause::Exit, now);
        }
    }

    /// Whether nothing more is to be waited for: it ended, and its pipes are closed or held by somebody out of reach.
    fn is_over(&self, now: Instant) -> bool {
        let beyond_reach = self.ending.as_ref().is_some_and(|ending| ending.killed && ending.next <= now);
        self.exited.is_some() && (self.is_silent() || beyond_reach)
    }

    fn is_silent(&self) -> bool {
        self.stdout.is_none() && self.stderr.is_none()
    }

    /// Asks it to end its work, where it can be asked, and ends it otherwise.
    fn part(&mut self, cause: Cause, now: Instant, sink: &mut dyn Sink) {
        if self.farewell.is_some() || self.ending.is_some() {
            return;
        }
        match sink.farewell().filter(|_| self.exited.is_none()) {
            Some(patience) => self.farewell = Some((cause, now + patience)),
            None => self.end(cause, now),
        }
    }

    /// Why it ends or has ended.
    fn cause(&self) -> Cause {
        let ending = self.ending.as_ref().map(|ending| ending.cause);
        ending.or(self.farewell.map(|(cause, _)| cause)).unwrap_or(Cause::Exit)
    }

    /// Sends TERM to the group, once.
    fn end(&mut self, cause: Cause, now: Instant) {
        if self.ending.is_none() {
            end_group(self.group, Signal::TERM);
            // A stopped process hears nothing before it goes on.
            end_group(self.group, Signal::CONT);
            self.ending = Some(Ending { cause, next: now + TERM_GRACE, killed: false });
        }
    }

    /// Sends KILL to the group, once.
    fn kill(&mut self, cause: Cause, now: Instant) {
        let cause = match &self.ending {
            Some(Ending { killed: true, .. }) => return,
            Some(ending) => ending.cause,
            None => self.farewell.map_or(cause, |(cause, _)| cause),
        };
        end_group(self.group, Signal::KILL);
        self.ending = Some(Ending { cause, next: now + LINGER, killed: true });
    }

    /// Waits for nobody any more.
    fn let_go(&mut self, now: Instant) {
        self.ending = Some(Ending { cause: self.cause(), next: now, killed: true });
    }

    /// The next moment at which [`Running::consider`] has something to do.
    fn next_moment(&self, sink: &dyn Sink) -> Option<Instant> {
        let living = self.exited.is_none();
        let acts = living && self.ending.is_none();
        let unless_ending = |moment: Option<Instant>| moment.filter(|_| acts && self.farewell.is_none());
        [
            sink.due(),
            self.announce.filter(|_| living),
            unless_ending(self.limits.deadline),
            unless_ending(self.limits.idle.filter(|_| self.reported.is_none()).map(|idle| self.last_output + idle)),
            unless_ending(self.reported.map(|reported| reported + self.limits.grace)),
            self.farewell.filter(|_| acts).map(|(_, due)| due),
            self.linger,
            self.ending.as_ref().filter(|ending| !ending.killed || !living).map(|ending| ending.next),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    fn wait(&self, means: &Means, timeout: Option<Duration>) -> Ready {
        let none = PollFlags::empty();
        let of = |fd: &'_ Option<OwnedFd>| if fd.is_some() { PollFlags::IN } else { none };
        let wake = means.wake.as_fd();
        let full = self.voice.as_ref().filter(|voice| voice.full);
        let stdin = self.feed.as_ref().map(|feed| feed.pipe.as_fd()).or(full.map(|voice| voice.pipe.as_fd()));
        let exit = if self.exited.is_none() { self.pidfd.as_fd() } else { wake };
        let mut fds = [
            PollFd::from_borrowed_fd(wake, PollFlags::IN),
            PollFd::from_borrowed_fd(exit, if self.exited.is_none() { PollFlags::IN } else { none }),
            PollFd::from_borrowed_fd(stdin.unwrap_or(wake), if stdin.is_some() { PollFlags::OUT } else { none }),
            PollFd::from_borrowed_fd(self.stdout.as_ref().map_or(wake, AsFd::as_fd), of(&self.stdout)),
            PollFd::from_borrowed_fd(self.stderr.as_ref().map_or(wake, AsFd::as_fd), of(&self.stderr)),
        ];
        // A millisecond more than asked for: waking a moment too early would only mean to wait again.
        let timeout = timeout.map(|timeout| {
            let timeout = (timeout + Duration::from_micros(100)).min(Duration::from_secs(3600));
            Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: i64::from(timeout.subsec_nanos()) }
        });
        if poll(&mut fds, timeout.as_ref()).is_err() {
            // Interrupted by a signal: look at everything again.
            return Ready::default();
        }
        let any = |position: usize| !fds[position].revents().is_empty();
        if any(0) {
            // Taken away here; what was asked for stays in the cancellation itself.
            let _ = rustix::io::read(wake, &mut [0; 8]);
        }
        Ready {
            exited: self.exited.is_none() && any(1),
            stdin: stdin.is_some() && any(2),
            stdout: self.stdout.is_some() && any(3),
            stderr: self.stderr.is_some() && any(4),
        }
    }

    fn feed(&mut self) {
        let Some(feed) = &mut self.feed else {
            return;
        };
        while !feed.rest.is_empty() {
            match rustix::io::write(&feed.pipe, feed.rest) {
                Ok(count) => feed.rest = &feed.rest[count..],
                Err(rustix::io::Errno::AGAIN) => return,
                Err(rustix::io::Errno::INTR) => {}
                // It does not want to read on, which is its right.
                Err(_) => break,
            }
        }
        self.feed = None;
    }

    fn read_stdout(&mut self, means: &mut Means, sink: &mut dyn Sink) {
        let Some(pipe) = &self.stdout else {
            return;
        };
        let Some(count) = read(pipe, &mut means.buffer) else {
            self.stdout = None;
            sink.hung_up();
            return;
        };
        let bytes = &means.buffer[..count];
        if count > 0 {
            self.last_output = Instant::now();
            let reported = sink.stdout(bytes);
            self.reported = reported.then(|| self.reported.unwrap_or(self.last_output));
        }
        if count == means.buffer.len() && !self.large {
            self.large = true;
            // Beyond what this user may have, the pipe stays as it is.
            let _ = fcntl_setpipe_size(pipe, LARGE_PIPE);
            means.buffer.resize(LARGE_READ, 0);
        }
    }

    fn read_stderr(&mut self, means: &mut Means, sink: &mut dyn Sink) {
        let Some(pipe) = &self.stderr else {
            return;
        };
        match read(pipe, &mut means.buffer) {
            None => self.stderr = None,
            Some(0) => {}
            Some(count) => {
                self.last_output = Instant::now();
                sink.stderr(&means.buffer[..count]);
            }
        }
    }

    /// Ends what is left of the group, and takes the exit code.
    fn finish(self) -> (i32, Option<i32>) {
        let Running { group, child, .. } = self;
        // The process is still a zombie here, so its number cannot have become another group's.
        end_group(group, Signal::TERM);
        let status = reap(child);
        if test_kill_process_group(group).is_ok() {
            group_ends(group, TERM_GRACE);
        }
        let signal = status.and_then(|status| status.signal());
        let code = status.and_then(|status| status.code()).or(signal.map(|signal| 128 + signal));
        (code.unwrap_or(-1), signal)
    }
}

#[derive(Default)]
struct Ready {
    exited: bool,
    stdin: bool,
    stdout: bool,
    stderr: bool,
}

/// Reads once; none at the end of the stream.
fn read(pipe: &OwnedFd, buffer: &mut [u8]) -> Option<usize> {
    match rustix::io::read(pipe, buffer) {
        Ok(0) => None,
        Ok(count) => Some(count),
        Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => Some(0),
        Err(_) => None,
    }
}
