//! Decides when a process is to be ended, and ends its group: for its limits, or because it was cancelled.
//!
//! It knows no pipes: the code that reads the process tells it what came, and asks it at every turn.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use super::run::{Cause, Limits, Sink};
use super::stdin::StdinDialogue;
use crate::io::proc_status::end_group;
use crate::types::cancel::Cancel;
use crate::types::user_request::StopLevel;

/// Between TERM and KILL.
pub(crate) const TERM_GRACE: Duration = Duration::from_secs(5);

/// How long pipes may stay open after the process ended, before those who hold them are ended.
pub(super) const LINGER: Duration = Duration::from_millis(100);

/// The limits of one process, and how far its end is.
pub(crate) struct Watchdog {
    /// None where it lives on another machine, whose shim ends it.
    group: Option<Pid>,
    limits: Limits,
    /// Why it is to end its work by itself, and how long it may take.
    farewell: Option<(Cause, Instant)>,
    ending: Option<Ending>,
    /// When it reported its result.
    reported: Option<Instant>,
    pub(super) last_output: Instant,
}

/// That its group is being ended, and when the next, harder step is due.
struct Ending {
    cause: Cause,
    next: Instant,
    killed: bool,
}

impl Watchdog {
    pub(crate) fn new(group: Option<Pid>, limits: Limits, now: Instant) -> Watchdog {
        Watchdog { group, limits, farewell: None, ending: None, reported: None, last_output: now }
    }

    /// Notes how a talk goes on.
    pub(crate) fn note_dialogue(&mut self, talk: StdinDialogue<'_>, now: Instant) {
        // Its silence is ours: it waits for an answer to what it asked.
        if talk.waits {
            self.last_output = now;
        }
        if talk.over {
            self.reported.get_or_insert(now);
        }
    }

    /// Something came; `reported` says of its standard output whether its result has come with it.
    pub(crate) fn note_output(&mut self, reported: Option<bool>, now: Instant) {
        self.last_output = now;
        if let Some(reported) = reported {
            // Some programs go on after a result: what they say then takes it back.
            self.reported = reported.then(|| self.reported.unwrap_or(now));
        }
    }

    /// Does what the time and the requested stop level ask for.
    pub(crate) fn enforce(&mut self, now: Instant, is_alive: bool, cancel: &Cancel, sink: &mut dyn Sink) {
        match cancel.requested_level() {
            // Asked at every turn, as the stop level may rise while the process is being ended.
            Some(StopLevel::Kill) => self.kill_group(Cause::Cancelled, now),
            Some(StopLevel::Stop | StopLevel::Interrupt) => self.request_end(Cause::Cancelled, is_alive, now, sink),
            None => {}
        }
        if is_alive {
            if self.limits.deadline.is_some_and(|deadline| deadline <= now) {
                self.request_end(Cause::Timeout, is_alive, now, sink);
            }
            // After its result it may be silent: `grace` says how long.
            if self.limits.idle.is_some_and(|idle| self.last_output + idle <= now) && self.reported.is_none() {
                self.request_end(Cause::Idle, is_alive, now, sink);
            }
            if let Some((cause, due)) = self.farewell
                // Having reported the end of its work, it needs no patience any more.
                && (due <= now || self.reported.is_some())
            {
                self.terminate_group(cause, now);
            }
            if self.reported.is_some_and(|reported| reported + self.limits.grace <= now) {
                self.terminate_group(Cause::Reported, now);
            }
        }
        if self.ending.as_ref().is_some_and(|ending| !ending.killed && ending.next <= now) {
            self.kill_group(Cause::Exit, now);
        }
    }

    /// The next moment at which [`Watchdog::enforce`] has something to do.
    pub(crate) fn next_moment(&self, is_alive: bool) -> Option<Instant> {
        let acts = is_alive && self.ending.is_none();
        let unless_ending = |moment: Option<Instant>| moment.filter(|_| acts && self.farewell.is_none());
        let idle = self.limits.idle.filter(|_| self.reported.is_none()).map(|idle| self.last_output + idle);
        [
            unless_ending(self.limits.deadline),
            unless_ending(idle),
            unless_ending(self.reported.map(|reported| reported + self.limits.grace)),
            self.farewell.filter(|_| acts).map(|(_, due)| due),
            // After KILL the end of the process itself is awaited without a time limit.
            self.ending.as_ref().filter(|ending| !ending.killed || !is_alive).map(|ending| ending.next),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Asks it to end its work, where it can be asked, and ends it otherwise.
    fn request_end(&mut self, cause: Cause, is_alive: bool, now: Instant, sink: &mut dyn Sink) {
        if self.farewell.is_some() || self.ending.is_some() {
            return;
        }
        match sink.request_exit().filter(|_| is_alive) {
            Some(patience) => self.farewell = Some((cause, now + patience)),
            None => self.terminate_group(cause, now),
        }
    }

    /// Whether its group has got a signal.
    pub(crate) fn is_ending(&self) -> bool {
        self.ending.is_some()
    }

    /// When it was killed.
    pub(crate) fn killed(&self) -> Option<Instant> {
        self.ending.as_ref().filter(|ending| ending.killed).map(|ending| ending.next)
    }

    /// Why it ends or has ended.
    pub(crate) fn cause(&self) -> Cause {
        let ending = self.ending.as_ref().map(|ending| ending.cause);
        ending.or(self.farewell.map(|(cause, _)| cause)).unwrap_or(Cause::Exit)
    }

    /// Whether it was killed, and what it has left does not answer.
    pub(crate) fn is_beyond_reach(&self, now: Instant) -> bool {
        self.ending.as_ref().is_some_and(|ending| ending.killed && ending.next <= now)
    }

    /// Sends TERM to the group, once.
    pub(crate) fn terminate_group(&mut self, cause: Cause, now: Instant) {
        if self.ending.is_none() {
            self.send(Signal::TERM);
            // A stopped process receives no signal before it goes on.
            self.send(Signal::CONT);
            self.ending = Some(Ending { cause, next: now + TERM_GRACE, killed: false });
        }
    }

    /// Sends KILL to the group, once.
    fn kill_group(&mut self, cause: Cause, now: Instant) {
        let cause = match &self.ending {
            Some(Ending { killed: true, .. }) => return,
            Some(ending) => ending.cause,
            None => self.farewell.map_or(cause, |(cause, _)| cause),
        };
        self.send(Signal::KILL);
        self.ending = Some(Ending { cause, next: now + LINGER, killed: true });
    }

    fn send(&self, signal: Signal) {
        if let Some(group) = self.group {
            end_group(group, signal);
        }
    }

    /// Waits for no process any more.
    pub(crate) fn let_go(&mut self, now: Instant) {
        self.ending = Some(Ending { cause: self.cause(), next: now, killed: true });
    }
}
