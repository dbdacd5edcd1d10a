//! The inputs of the driver that wait to be taken, and the moment at which it decides again without one.

use std::collections::VecDeque;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use super::Input;
use super::records::now_millis;

/// The inputs that have come.
pub(super) struct InputQueue {
    receiver: Receiver<Input>,
    /// Inputs of swarms that wait until the driver has decided all that follows from earlier ones.
    pub held: VecDeque<Input>,
    /// Whether all that follows from an input is decided before the next one is taken: what a turn finds in its inbox
    /// is then what has come before it began.
    pub stepwise: bool,
    /// There was more to decide than one turn takes.
    pub unfinished: bool,
    /// When to decide again.
    pub alarm: Option<Alarm>,
    /// Until when the run's own thread waits for the alarm.
    waits_until: Option<Instant>,
}

/// The same alarm, ordered again, is less than this earlier or later: its moment is computed anew.
const TOLERANCE: Duration = Duration::from_millis(5);

/// A moment to decide at.
#[derive(Clone, Copy)]
pub(super) struct Alarm {
    /// In milliseconds since 1970.
    pub due: u64,
    /// The same moment on the monotonic clock.
    moment: Instant,
}

impl Alarm {
    /// An alarm at `due`, seen from a run whose last record is from `clock`.
    pub(super) fn new(due: u64, clock: u64) -> Alarm {
        // The time of a run never goes back: after the clock was put back, its last record is later than now.
        let rest = due.saturating_sub(now_millis().max(clock));
        // A year at most: an instant cannot hold every moment.
        let far = Duration::from_secs(365 * 24 * 3600);
        Alarm { due, moment: Instant::now() + Duration::from_millis(rest).min(far) }
    }
}

impl InputQueue {
    /// The queue of what `receiver` receives.
    pub(super) fn new(receiver: Receiver<Input>, stepwise: bool) -> InputQueue {
        InputQueue { receiver, held: VecDeque::new(), stepwise, unfinished: false, alarm: None, waits_until: None }
    }

    /// Whether the driver can wait for an input: it has decided everything, and has taken what it held back.
    pub(super) fn may_wait(&self) -> bool {
        !self.unfinished && self.held.is_empty()
    }

    /// The run's own thread begins to wait: until this moment, where nothing comes.
    pub(super) fn begin_wait(&mut self) -> Option<Instant> {
        self.waits_until = self.alarm.map(|alarm| alarm.moment);
        self.waits_until
    }

    /// Whether the run's own thread waits beyond the moment of the alarm.
    pub(super) fn waits_too_long(&self) -> bool {
        let until = self.waits_until;
        self.alarm.is_some_and(|alarm| until.is_none_or(|until| alarm.moment + TOLERANCE < until))
    }

    /// Whether the moment of the alarm has come.
    pub(super) fn is_due(&self) -> bool {
        self.alarm.is_some_and(|alarm| alarm.moment <= Instant::now())
    }

    /// Waits for an input, whatever else is due. The driver has a sender itself, so there always is one.
    pub(super) fn wait_input(&self) -> Option<Input> {
        self.receiver.recv().ok()
    }

    /// The next input that has come; those held back are first, once all is decided.
    pub(super) fn take_next(&mut self) -> Option<Input> {
        let held = if self.unfinished { None } else { self.held.pop_front() };
        held.or_else(|| self.take_received())
    }

    /// The next input that has come and was not held back.
    pub(super) fn take_received(&self) -> Option<Input> {
        self.receiver.try_recv().ok()
    }
}
