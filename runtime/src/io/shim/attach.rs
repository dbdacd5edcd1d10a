//! The runner's end: starts a shim or comes back to one, and reads its process as if it were the runner's own.

use std::fs;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use super::reader::{Reader, is_cut};
use super::{EndCause, Exit, FromRunner, FromShim, Hold, Living, Order, PROGRAM, Words, socket_path};
use crate::io::children::{self, reap_child};
use crate::io::event_loop::{EventLoop, Interest, Registered};
use crate::io::home::create_private;
use crate::io::proc_status::{boot_id, end_group, identify_process};
use crate::io::process::{
    ANNOUNCE, Cause, End, Launch, Limits, Poller, Refused, Sink, TERM_GRACE, Watchdog, start_process,
};
use crate::io::socket_peer::SHIM;
use crate::io::unix::through;
use crate::types::cancel::Cancel;
use crate::types::user_request::StopLevel;

/// How much is read before the shim hears of that, where more is there.
const NOTED: u64 = 4 << 20;

/// How long a shim may take to tell the end of a process that was killed, and to end after it.
const STUCK: Duration = Duration::from_secs(5);

/// The bytes that a shim has and its program has not read, beyond which it is passed no more: as much as a pipe holds.
const AHEAD: usize = 64 << 10;

/// Why an attempt failed whose shim went away.
const LOST: &str = "`swarmc shim`, which held its process, was ended from outside: nothing says how the process ended";

/// Runs a process to its end as [`run_process`](crate::io::process::run_process) does, held by a shim. Where `hold` has
/// one already, of a runner that is gone, this goes on with it: from its first byte.
///
/// # Errors
/// It could not be started: says why.
pub(crate) async fn run_held_process(
    poller: &Poller,
    launch: &Launch<'_>,
    limits: Limits,
    cancel: &Cancel,
    sink: &mut dyn Sink,
    hold: &Hold,
) -> Result<End, String> {
    let failed = |error: io::Error| format!("`swarmc shim` cannot hold its process: {error}");
    let former = if hold.rejoins { find_former(hold) } else { Former::None };
    let (stream, first, child) = match former {
        Former::Ended(exit) => {
            return match read_ended(hold, &exit, sink) {
                Err(error) if is_cut(&error) => Ok(End { cause: Cause::Cut, exit: -1, signal: None }),
                outcome => outcome.map_err(failed)?,
            };
        }
        Former::Lost => return Ok(End { cause: Cause::Lost(LOST), exit: -1, signal: None }),
        Former::Lives(stream) => (stream, render_line(&FromRunner::Hello { epoch: hold.epoch }), None),
        Former::None => {
            cancel.set_waker(Some(poller.events.current_waker()));
            let started = start_shim(poller, launch, limits, hold, cancel, sink).await;
            cancel.set_waker(None);
            match started? {
                Some((stream, order, child)) => (stream, render_line(&order), Some(child)),
                None => return Ok(End { cause: Cause::Cancelled, exit: -1, signal: None }),
            }
        }
    };
    cancel.set_waker(Some(poller.events.current_waker()));
    let outcome = match poller.events.register(stream, Interest::Stdout) {
        Ok(lines) => {
            let mut following = Following::new(lines, first);
            let outcome = following.follow(poller, limits, cancel, sink, hold).await;
            if matches!(outcome, Ok(End { cause: Cause::Cut, .. })) {
                following.stop(poller).await;
            }
            if !matches!(outcome, Ok(End { cause: Cause::Exit | Cause::Reported, .. })) {
                // Whatever it failed for: nothing of it goes on.
                following.end_all();
            }
            outcome
        }
        Err(error) => Err(failed(error)),
    };
    cancel.set_waker(None);
    if let Some(child) = child {
        reap_shim(child, &poller.events).await;
    }
    poller.events.forget();
    outcome
}

/// Waits for a shim, which ends with its process, and ends one that does not.
async fn reap_shim(mut child: Child, events: &EventLoop) {
    let pid = Pid::from_child(&child);
    if let Ok(None) = child.try_wait() {
        let handle = pidfd_open(pid, PidfdFlags::empty()).map_err(io::Error::from);
        let ended = handle.and_then(|handle| events.register(handle, Interest::Exit));
        let until = Instant::now() + STUCK;
        // Other events of the task end a wait early.
        while ended.is_ok() && Instant::now() < until && !events.next(Some(until)).await.has(Interest::Exit) {}
        // Where it has ended, it is there all the same until it is reaped.
        let _ = kill_process(pid, Signal::KILL);
    }
    reap_child(child);
}

/// What a former runner has left of a process.
enum Former {
    None,
    Lives(UnixStream),
    Ended(Exit),
    /// It was started, and nothing says what became of it.
    Lost,
}

fn find_former(hold: &Hold) -> Former {
    if let Some(exit) = read_exit(&hold.folder) {
        return Former::Ended(exit);
    }
    if let Some(stream) = connect(hold) {
        return Former::Lives(stream);
    }
    // It may have ended between the two looks.
    match read_exit(&hold.folder) {
        Some(exit) => Former::Ended(exit),
        None if hold.folder.join("out").exists() => Former::Lost,
        None => Former::None,
    }
}

/// Reads a process that ended while no runner was there.
fn read_ended(hold: &Hold, exit: &Exit, sink: &mut dyn Sink) -> io::Result<Result<End, String>> {
    if let Some(message) = &exit.refused {
        return Ok(Err(message.clone()));
    }
    let mut reader = Reader::open(&hold.folder, exit.came)?;
    let mut has_reported = false;
    loop {
        // What it says to the program was said before, or comes too late.
        if sink.has_dialogue() {
            let count = sink.next_input().words.len();
            sink.note_written(count);
        }
        match reader.read_piece(exit.came, sink)? {
            None => break,
            Some(reported) => has_reported = reported.unwrap_or(has_reported),
        }
    }
    sink.caught_up();
    sink.hung_up();
    let cause = match exit.cause {
        // It only stayed after its result.
        EndCause::Orphaned | EndCause::Idle | EndCause::Timeout if has_reported => Cause::Reported,
        cause => cause.as_cause().unwrap_or(Cause::Cancelled),
    };
    Ok(Ok(End { cause, exit: exit.exit, signal: exit.signal }))
}

/// How the process ended that is held in a folder; none while it lives, and where it is not known.
pub(super) fn read_exit(folder: &Path) -> Option<Exit> {
    let exit: Exit = serde_json::from_str(&fs::read_to_string(folder.join("exit")).ok()?).ok()?;
    // What it put out may be lost where the machine went down since.
    (exit.boot == boot_id()).then_some(exit)
}

/// Comes back to the shim that holds the process, where one does.
fn connect(hold: &Hold) -> Option<UnixStream> {
    through(&socket_path(&hold.folder), UnixStream::connect).ok()
}

/// Starts a shim, which starts the program.
async fn start_shim(
    poller: &Poller,
    launch: &Launch<'_>,
    limits: Limits,
    hold: &Hold,
    cancel: &Cancel,
    sink: &mut dyn Sink,
) -> Result<Option<(UnixStream, Order, Child)>, String> {
    let failed = |error: io::Error| format!("`swarmc shim` cannot be started: {error}");
    let program = PROGRAM.get().ok_or("no program holds processes")?;
    // What a shim left that could not go on.
    let _ = fs::remove_dir_all(&hold.folder);
    create_private(&hold.folder, true).map_err(failed)?;
    let (ours, other) = UnixStream::pair().map_err(failed)?;
    let other = OwnedFd::from(other);
    let start = || {
        let stdin = other.try_clone().map_err(|error| Refused::from_error(program, &error))?;
        let mut command = Command::new(program);
        // The folder is an argument for people who look at the list of processes.
        command.arg0("swarmc").arg(SHIM).arg(&hold.folder).env_clear().current_dir("/");
        command.stdin(stdin).stdout(Stdio::null()).stderr(Stdio::null());
        children::start_child(|| command.spawn()).map_err(|error| Refused::from_error(program, &error))
    };
    let began = Instant::now();
    let Some(child) = start_process(poller, start, cancel, sink).await? else { return Ok(None) };
    drop(other);
    let now = Instant::now();
    // What it had to wait for is not its time.
    let deadline = limits.deadline.map(|deadline| deadline + began.elapsed());
    let to_ms = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let order = Order {
        folder: hold.folder.clone(),
        run: hold.run.clone(),
        argv: launch.argv.iter().cloned().map(Words::from).collect(),
        environment: launch.environment.iter().cloned().map(|(name, value)| (name.into(), value.into())).collect(),
        directory: absolute(launch.directory),
        stdin: launch.stdin.map(|stdin| String::from_utf8_lossy(stdin).into_owned()),
        talks: sink.has_dialogue(),
        timeout_ms: deadline.map(|deadline| to_ms(deadline.saturating_duration_since(now))),
        idle_ms: limits.idle.map(to_ms),
        orphan_ms: to_ms(hold.orphan_limit),
        install: launch.install.map(str::to_owned),
        epoch: hold.epoch,
    };
    Ok(Some((ours, order, child)))
}

fn absolute(directory: &Path) -> std::path::PathBuf {
    std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned())
}

fn render_line(line: &impl serde::Serialize) -> Vec<u8> {
    (serde_json::to_string(line).expect("texts and numbers are JSON") + "\n").into_bytes()
}

/// A process that is read while it lives.
struct Following<'e> {
    lines: Registered<'e, UnixStream>,
    begun: Vec<u8>,
    /// What the shim is told as soon as there is room for it: a shim that was stopped must not hold up the thread.
    outbox: Vec<u8>,
    /// Wakes the task when there is room; none before it was missing.
    room: Option<Registered<'e, UnixStream>>,
    reader: Option<Reader>,
    living: Option<Living>,
    watchdog: Option<Watchdog>,
    /// When the processes are worth recording.
    announce: Option<Instant>,
    /// The bytes of both streams that there are.
    came: [u64; 2],
    /// Whether the shim waits to hear that they are read.
    owes_word: bool,
    /// The bytes that the shim knows to be read.
    noted: u64,
    ended: Option<Exit>,
    /// What it is to read next begins with so many bytes that the shim has already.
    passed: usize,
    /// The bytes of this runner that it has read.
    heard: u64,
    is_closed: bool,
    /// Whether it takes no part in the talk any more.
    is_gone: bool,
    /// Whether all is read that it had put out before this runner came.
    has_caught_up: bool,
    /// What the shim was told last of the end of the process.
    told: Option<FromRunner>,
    /// Whether a line could not be written: the shim is no use any more.
    is_broken: bool,
}

impl<'e> Following<'e> {
    fn new(lines: Registered<'e, UnixStream>, first: Vec<u8>) -> Following<'e> {
        Following {
            lines,
            begun: Vec::new(),
            outbox: first,
            room: None,
            reader: None,
            living: None,
            watchdog: None,
            announce: None,
            came: [0; 2],
            owes_word: false,
            noted: 0,
            ended: None,
            passed: 0,
            heard: 0,
            is_closed: false,
            is_gone: false,
            has_caught_up: false,
            told: None,
            is_broken: false,
        }
    }

    /// Reads the process to its end.
    async fn follow(
        &mut self,
        poller: &'e Poller,
        limits: Limits,
        cancel: &Cancel,
        sink: &mut dyn Sink,
        hold: &Hold,
    ) -> Result<End, String> {
        let failed = |error: io::Error| format!("`swarmc shim` cannot be read: {error}");
        loop {
            let now = Instant::now();
            self.send_input(now, sink);
            if sink.due().is_some_and(|due| due <= now) {
                sink.tick(now);
            }
            self.enforce(now, cancel, sink);
            self.announce_living(now, sink);
            let heard = self.hear(sink, (limits, now), hold);
            let step = heard.and_then(|heard| Ok((heard, self.read(sink)?)));
            let ((is_over, has_heard), has_read) = match step {
                Err(error) if is_cut(&error) && hold.rejoins && !self.has_caught_up => {
                    return Ok(End { cause: Cause::Cut, exit: -1, signal: None });
                }
                step => step.map_err(failed)?,
            };
            self.catch_up(sink);
            self.flush(poller);
            if has_read {
                // Others have their turn in between.
                poller.events.next(Some(Instant::now())).await;
                continue;
            }
            if std::mem::take(&mut self.is_gone) {
                self.passed = 0;
                sink.hung_up();
            }
            if let Some(exit) = self.ended.take() {
                return self.conclude(exit, sink);
            }
            if is_over {
                // It may have ended between its file and its word.
                match read_exit(&hold.folder) {
                    Some(exit) => {
                        self.came = exit.came;
                        self.ended = Some(exit);
                        continue;
                    }
                    None => {
                        sink.hung_up();
                        return Ok(self.end_with(Cause::Lost(LOST)));
                    }
                }
            }
            // A program that lives may be told something.
            if has_heard {
                continue;
            }
            let stuck = self.watchdog.as_ref().and_then(Watchdog::killed).map(|killed| killed + STUCK);
            if stuck.is_some_and(|stuck| stuck <= now) {
                return Ok(self.end_with(Cause::Lost(LOST)));
            }
            let next = self.watchdog.as_ref().and_then(|watchdog| watchdog.next_moment(true));
            poller.events.next([sink.due(), next, stuck, self.announce].into_iter().flatten().min()).await;
        }
    }

    /// Has the processes recorded once they have lived for a while: both, so that both are ended where no runner can.
    fn announce_living(&mut self, now: Instant, sink: &mut dyn Sink) {
        let Some(living) = self.living.as_ref().filter(|_| self.announce.is_some_and(|moment| moment <= now)) else {
            return;
        };
        for pid in [living.shim, living.group] {
            sink.report_alive(identify_process(pid));
        }
        self.announce = None;
    }

    fn say(&mut self, line: &FromRunner) {
        self.outbox.extend_from_slice(&render_line(line));
    }

    /// Sends what there is room for.
    fn flush(&mut self, poller: &'e Poller) {
        while !self.outbox.is_empty() && !self.is_broken {
            match send(self.lines.get(), &self.outbox, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(count) => _ = self.outbox.drain(..count),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if self.room.is_some() => return,
                Err(Errno::AGAIN) => {
                    let room = self.lines.get().try_clone();
                    // Where it has become free meanwhile, that is reported at once.
                    self.room = room.and_then(|room| poller.events.register(room, Interest::Stdin)).ok();
                    self.is_broken = self.room.is_none();
                    return;
                }
                Err(_) => self.is_broken = true,
            }
        }
    }

    /// Passes on what the program is to read. What it has not read stays the sink's, as with a pipe: that holds up those
    /// who ask for more than they read.
    fn send_input(&mut self, now: Instant, sink: &mut dyn Sink) {
        let Some(watchdog) = self.watchdog.as_mut().filter(|_| sink.has_dialogue()) else { return };
        let talk = sink.next_input();
        watchdog.note_dialogue(talk, now);
        // What an ended process is told is lost, as in a pipe.
        if self.ended.is_some() {
            let count = talk.words.len();
            self.passed = 0;
            return sink.note_written(count);
        }
        // The words are whole lines, and so is each piece of them: the shim notes what they are about.
        let new = talk.words.get(self.passed..).unwrap_or_default();
        let room = AHEAD.saturating_sub(self.passed).min(new.len());
        let end = match room {
            0 => 0,
            room => new[room - 1..].iter().position(|&byte| byte == b'\n').map_or(new.len(), |end| room + end),
        };
        let piece = (end > 0).then(|| String::from_utf8_lossy(&new[..end]).into_owned());
        let is_done = talk.over && end == new.len();
        self.passed += end;
        piece.into_iter().for_each(|piece| self.say(&FromRunner::Write(piece)));
        if is_done && !std::mem::replace(&mut self.is_closed, true) {
            self.say(&FromRunner::Close);
        }
    }

    /// Notes how much the program has read of all that it was told.
    fn note_heard(&mut self, bytes: u64, sink: &mut dyn Sink) {
        let before = self.living.as_ref().map_or(0, |living| living.told);
        let heard = bytes.saturating_sub(before).max(self.heard);
        let count = usize::try_from(heard - self.heard).map_or(self.passed, |count| count.min(self.passed));
        self.heard = heard;
        self.passed -= count;
        sink.note_written(count);
    }

    /// Says once that all is read that the process had put out before this runner came.
    fn catch_up(&mut self, sink: &mut dyn Sink) {
        let (Some(reader), Some(living)) = (&self.reader, &self.living) else { return };
        let is_read = reader.read.iter().zip(living.came).all(|(&read, came)| read >= came);
        if is_read && !std::mem::replace(&mut self.has_caught_up, true) {
            sink.caught_up();
        }
    }

    /// Ends the program where the time or a person asks for that.
    fn enforce(&mut self, now: Instant, cancel: &Cancel, sink: &mut dyn Sink) {
        let Some(watchdog) = &mut self.watchdog else {
            // Before its start nothing is known of the program: the shim ends it as soon as it is there.
            if cancel.requested_level().is_some() {
                self.tell_end(FromRunner::Stop);
            }
            return;
        };
        // A program can be asked to end its work as soon as it is known what that is.
        if !self.has_caught_up && cancel.requested_level() != Some(StopLevel::Kill) {
            return;
        }
        watchdog.enforce(now, self.ended.is_none(), cancel, sink);
        let is_ending = watchdog.is_ending();
        let cause = match watchdog.cause() {
            Cause::Cancelled => EndCause::Stopped,
            Cause::Timeout => EndCause::Timeout,
            Cause::Idle => EndCause::Idle,
            _ => return,
        };
        // A later runner must not take it for an end of its own.
        self.tell_end(if is_ending { FromRunner::Ending(cause) } else { FromRunner::Parting(cause) });
    }

    fn tell_end(&mut self, line: FromRunner) {
        if self.told.as_ref() != Some(&line) {
            self.say(&line);
            self.told = Some(line);
        }
    }

    /// Takes what the shim has told; whether it tells nothing more, and whether it has told anything.
    fn hear(&mut self, sink: &mut dyn Sink, (limits, now): (Limits, Instant), hold: &Hold) -> io::Result<(bool, bool)> {
        let mut buffer = [0; 16 * 1024];
        let mut is_over = self.is_broken;
        loop {
            match recv(self.lines.as_fd(), &mut buffer[..], RecvFlags::DONTWAIT) {
                Ok((0, _)) => is_over = true,
                Ok((count, _)) => {
                    self.begun.extend_from_slice(&buffer[..count]);
                    continue;
                }
                Err(rustix::io::Errno::INTR) => continue,
                Err(rustix::io::Errno::AGAIN) => {}
                Err(_) => is_over = true,
            }
            break;
        }
        let whole = self.begun.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
        let lines: Vec<u8> = self.begun.drain(..whole).collect();
        for line in lines.split(|&byte| byte == b'\n') {
            match serde_json::from_slice(line) {
                Ok(FromShim::Lives(living)) => self.begin(living, sink, (limits, now), hold)?,
                Ok(FromShim::Came(came)) => (self.came, self.owes_word) = (came, true),
                Ok(FromShim::Heard { bytes, is_gone }) => {
                    self.owes_word = true;
                    self.note_heard(bytes, sink);
                    self.is_gone |= is_gone;
                }
                Ok(FromShim::Ended(exit)) => {
                    self.came = exit.came;
                    self.ended = Some(exit);
                }
                // What another version tells beside.
                Err(_) => {}
            }
        }
        Ok((is_over, whole > 0))
    }

    /// The program lives.
    fn begin(
        &mut self,
        living: Living,
        sink: &mut dyn Sink,
        (limits, now): (Limits, Instant),
        hold: &Hold,
    ) -> io::Result<()> {
        let group = Pid::from_raw(living.group).ok_or(io::ErrorKind::InvalidData)?;
        self.reader = Some(Reader::open(&hold.folder, living.came)?);
        let ago = |ms: u64| Duration::from_millis(ms);
        // What it took under former runners counts.
        let deadline = limits.deadline.map(|deadline| deadline.checked_sub(ago(living.age_ms)).unwrap_or(now));
        let last_output = now.checked_sub(ago(living.silent_ms)).unwrap_or(now);
        self.watchdog = Some(Watchdog::new(group, Limits { deadline, ..limits }, last_output));
        sink.report_start(group);
        self.announce = Some(now + ANNOUNCE);
        self.living = Some(living);
        Ok(())
    }

    /// Reads a piece; whether there was one.
    fn read(&mut self, sink: &mut dyn Sink) -> io::Result<bool> {
        let Some(reader) = &mut self.reader else { return Ok(false) };
        let piece = reader.read_piece(self.came, sink)?;
        let read = reader.read;
        if let (Some(reported), Some(watchdog)) = (piece, &mut self.watchdog) {
            watchdog.note_output(reported, Instant::now());
        }
        let (is_whole, count) = (read == self.came, read.iter().sum::<u64>());
        if self.ended.is_none() && (is_whole && self.owes_word || count >= self.noted + NOTED) {
            (self.owes_word, self.noted) = (self.owes_word && !is_whole, count);
            self.say(&FromRunner::Read(read));
        }
        Ok(piece.is_some())
    }

    /// The process has ended, and everything is read.
    fn conclude(&mut self, exit: Exit, sink: &mut dyn Sink) -> Result<End, String> {
        if let Some(message) = exit.refused {
            return Err(message);
        }
        // The last bytes may have been an answer.
        if sink.has_dialogue() {
            let count = sink.next_input().words.len();
            sink.note_written(count);
        }
        self.passed = 0;
        sink.hung_up();
        // What the runner brought about counts first.
        let own = self.watchdog.as_ref().map(Watchdog::cause).filter(|cause| *cause != Cause::Exit);
        let cause = own.or(exit.cause.as_cause()).unwrap_or(Cause::Cancelled);
        Ok(End { cause, exit: exit.exit, signal: exit.signal })
    }

    fn end_with(&self, cause: Cause) -> End {
        let own = self.watchdog.as_ref().map(Watchdog::cause).filter(|cause| *cause != Cause::Exit);
        End { cause: own.unwrap_or(cause), exit: -1, signal: None }
    }

    /// Has the shim end its process with everything below it, and waits for that.
    async fn stop(&mut self, poller: &Poller) {
        self.say(&FromRunner::Stop);
        let until = Instant::now() + TERM_GRACE + STUCK;
        let mut buffer = [0; 16 * 1024];
        while !self.is_broken && Instant::now() < until {
            match recv(self.lines.as_fd(), &mut buffer[..], RecvFlags::DONTWAIT) {
                Ok((0, _)) => return,
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => _ = poller.events.next(Some(until)).await,
                Err(_) => return,
            }
        }
    }

    /// Ends what is left of the process and its shim.
    fn end_all(&self) {
        for process in self.living.iter().flat_map(|living| [living.group, living.shim]).filter_map(Pid::from_raw) {
            // The shim leads a session, and so a group. Where it has ended there is none.
            end_group(process, Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};

    use super::*;

    #[test]
    fn a_shim_that_is_stopped_holds_up_no_thread_and_hears_everything_when_it_goes_on() {
        let poller = Poller::new().unwrap();
        let (ours, other) = UnixStream::pair().unwrap();
        let words = "x".repeat(4 << 20);
        let heard = poller.block_on(async {
            let mut following = Following::new(poller.events.register(ours, Interest::Stdout).unwrap(), Vec::new());
            following.say(&FromRunner::Write(words.clone()));
            following.say(&FromRunner::Close);
            // This returns though nothing is read.
            following.flush(&poller);
            assert!(!following.outbox.is_empty() && !following.is_broken);
            let hears = std::thread::spawn(|| BufReader::new(other).lines().take(2).collect::<io::Result<Vec<_>>>());
            while !following.outbox.is_empty() {
                poller.events.next(None).await;
                following.flush(&poller);
            }
            hears.join().unwrap().unwrap()
        });
        assert_eq!(
            heard,
            [FromRunner::Write(words), FromRunner::Close].map(|line| serde_json::to_string(&line).unwrap())
        );
    }
}
