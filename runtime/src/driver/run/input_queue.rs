//! The inputs of the driver that wait to be taken, and the moment at which it decides again without one.

use std::collections::VecDeque;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use super::Input;
use super::records::now_millis;
use crate::io::children::sweep_orphans;
use crate::io::executor::Pool;

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
}

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

/// What ends a wait.
pub(super) enum Waited {
    /// An input has come.
    Input(Input),
    /// It is time to decide again.
    Alarm,
}

impl InputQueue {
    /// The queue of what `receiver` receives.
    pub(super) fn new(receiver: Receiver<Input>, stepwise: bool) -> InputQueue {
        InputQueue { receiver, held: VecDeque::new(), stepwise, unfinished: false, alarm: None }
    }

    /// Whether the driver can wait for an input: it has decided everything, and has taken what it held back.
    pub(super) fn may_wait(&self) -> bool {
        !self.unfinished && self.held.is_empty()
    }

    /// Waits for an input or the alarm, while the pool carries out the attempts of this thread. Reaps orphans meanwhile.
    pub(super) fn wait(&self, pool: Option<&mut Pool<'_>>) -> Option<Waited> {
        let Some(pool) = pool else { return self.wait_input().map(Waited::Input) };
        // Also where one input follows another.
        sweep_orphans();
        // They have their turn also where one input follows another.
        if pool.has_own() {
            pool.run_once(Some(Instant::now()));
        }
        let due = self.alarm.map(|alarm| alarm.moment);
        loop {
            if let Ok(input) = self.receiver.try_recv() {
                return Some(Waited::Input(input));
            }
            if due.is_some_and(|due| due <= Instant::now()) {
                return Some(Waited::Alarm);
            }
            pool.run_once([due, sweep_orphans()].into_iter().flatten().min());
        }
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
