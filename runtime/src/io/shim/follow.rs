//! Follows a process that a shim holds: reads it as if it were the runner's own, and has the shim end it.
//!
//! In: the connection to the shim, and the files of the process. Out: what the sink of an own process is shown, in the same
//! order. Invariant: the thread never waits for a shim; what it has no room for is sent when it has.

use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustix::process::{Pid, Signal};

use super::attach::{LOST, STUCK, read_ended, read_exit};
use super::reader::{Reader, is_cut};
use super::{EndCause, Exit, FromRunner, FromShim, Hold, Living};
use crate::io::event_loop::{Interest, Registered};
use crate::io::proc_status::{end_group, identify_process};
use crate::io::process::{ANNOUNCE, Cause, End, Limits, Poller, Sink, TERM_GRACE, Watchdog};
use crate::types::cancel::Cancel;
use crate::types::event::Process;
use crate::types::user_request::StopLevel;

/// How much is read before the shim hears of that, where more is there.
const NOTED: u64 = 4 << 20;

/// The bytes that a shim has and its program has not read, beyond which it is passed no more: as much as a pipe holds.
const AHEAD: usize = 64 << 10;

/// A line for a shim.
pub(super) fn render_line(line: &impl serde::Serialize) -> Vec<u8> {
    (serde_json::to_string(line).expect("texts and numbers are JSON") + "\n").into_bytes()
}

/// A process that is read while it lives.
pub(super) struct Following<'e> {
    lines: Registered<'e, UnixStream>,
    begun: Vec<u8>,
    /// Lines that wait for room in the socket: the thread never waits for a shim that is stopped.
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
    pub(super) fn new(lines: Registered<'e, UnixStream>, first: Vec<u8>) -> Following<'e> {
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
    pub(super) async fn follow(
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
                    // It had ended when this runner came: its shim listened still, and accepted no connection.
                    Some(exit) if self.reader.is_none() => return read_ended(hold, exit, sink),
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
        match &living.host {
            // One that had ended before anything was known of it.
            Some(_) if living.group == 0 => {}
            // Its numbers are those of another machine.
            Some(_) => {
                let host = living.host.clone();
                sink.report_alive(Process { group: living.group, started: 0, boot: None, host });
            }
            None => [living.shim, living.group].into_iter().for_each(|pid| sink.report_alive(identify_process(pid))),
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
        // Input for a process that has ended is lost, as in a pipe.
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
        let group = match living.host {
            Some(_) => None,
            None => Some(Pid::from_raw(living.group).ok_or(io::ErrorKind::InvalidData)?),
        };
        self.reader = Some(Reader::open(&hold.folder, living.came)?);
        let ago = |ms: u64| Duration::from_millis(ms);
        // What it took under former runners counts.
        let deadline = limits.deadline.map(|deadline| deadline.checked_sub(ago(living.age_ms)).unwrap_or(now));
        let last_output = now.checked_sub(ago(living.silent_ms)).unwrap_or(now);
        self.watchdog = Some(Watchdog::new(group, Limits { deadline, ..limits }, last_output));
        group.into_iter().for_each(|group| sink.report_start(group));
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
    pub(super) async fn stop(&mut self, poller: &Poller) {
        self.say(&FromRunner::Stop);
        let until = Instant::now() + TERM_GRACE + STUCK;
        // On the heap: an array would be a part of the attempt's task, from its start on.
        let mut buffer = vec![0; 16 * 1024];
        while !self.is_broken && Instant::now() < until {
            match recv(self.lines.as_fd(), &mut buffer[..], RecvFlags::DONTWAIT) {
                Ok((0, _)) => return,
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => _ = poller.events.next(Some(until)).await,
                Err(_) => return,
            }
        }
    }

    /// Ends what is left of the process and its shim; false where the shim has not said which process it is.
    pub(super) fn end_all(&self) -> bool {
        let here = self.living.iter().filter(|living| living.host.is_none());
        for process in here.flat_map(|living| [living.group, living.shim]).filter_map(Pid::from_raw) {
            // The shim leads a session, and so a group. Where it has ended there is none.
            end_group(process, Signal::KILL);
        }
        self.living.is_some()
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
