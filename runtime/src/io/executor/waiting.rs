//! The jobs that wait for an event loop, and the event loops that wait for a job.
//!
//! In: jobs, and the loops that are about to sleep. Out: the loops to be woken, those without an attempt first, and a job for
//! the loop that asks. Invariant: a loop that was called for a job finds one, unless a loop without an attempt came first:
//! two attempts in one loop would run one after the other beside a thread that has none.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::io::event_loop::Inbox;

#[derive(Debug)]
pub(super) struct Waiting<J> {
    jobs: VecDeque<J>,
    /// Those without an attempt are the last.
    asleep: Vec<Asleep>,
}

/// A loop that looks for a job only when it is woken.
#[derive(Debug)]
struct Asleep {
    inbox: Arc<Inbox>,
    /// It has no attempt.
    is_idle: bool,
    /// It was called for a job, and has not looked yet.
    is_called: bool,
}

/// What the jobs that wait need.
#[derive(Debug, Default)]
pub(super) struct Called {
    /// The loops to be woken.
    pub woken: Vec<Arc<Inbox>>,
    /// How many loops are to be started besides.
    pub missing: usize,
}

impl<J> Default for Waiting<J> {
    fn default() -> Waiting<J> {
        Waiting { jobs: VecDeque::new(), asleep: Vec::new() }
    }
}

impl<J> Waiting<J> {
    pub(super) fn push(&mut self, job: J) {
        self.jobs.push_back(job);
    }

    /// The jobs that no loop was called for.
    fn count_free(&self) -> usize {
        self.jobs.len().saturating_sub(self.asleep.iter().filter(|asleep| asleep.is_called).count())
    }

    /// Calls loops for the jobs that wait; at most `may_start` can be started. The loop of the caller, where it has one,
    /// begins the first job, but leaves it to a loop that has no attempt where it has some itself: `caller_is_idle` says
    /// whether it has none.
    pub(super) fn call_loops(&mut self, caller_is_idle: Option<bool>, may_start: usize) -> Called {
        let has_idle = may_start > 0 || self.asleep.iter().any(|asleep| asleep.is_idle && !asleep.is_called);
        let keeps_first = caller_is_idle.is_some_and(|is_idle| is_idle || !has_idle);
        let jobs = self.count_free().saturating_sub(usize::from(keeps_first));
        let mut woken = Vec::new();
        for asleep in self.asleep.iter_mut().rev().filter(|asleep| !asleep.is_called).take(jobs) {
            asleep.is_called = true;
            woken.push(Arc::clone(&asleep.inbox));
        }
        // The others look for a job before they sleep.
        let missing = (jobs - woken.len()).min(may_start);
        Called { woken, missing }
    }

    /// A job for the loop of `inbox`, which has no attempt where it `is_idle`, and whether it is the last one. One with
    /// attempts leaves those alone that other loops were called for.
    pub(super) fn take(&mut self, inbox: &Arc<Inbox>, is_idle: bool) -> Option<(J, bool)> {
        self.asleep.retain(|asleep| !Arc::ptr_eq(&asleep.inbox, inbox));
        let may_take = is_idle || self.count_free() > 0;
        let job = self.jobs.pop_front_if(|_| may_take)?;
        Some((job, self.jobs.is_empty()))
    }

    /// The loop of `inbox` is to be woken for the next job, until [`Waiting::stay_awake`].
    pub(super) fn fall_asleep(&mut self, inbox: &Arc<Inbox>, is_idle: bool) {
        let place = if is_idle { self.asleep.len() } else { 0 };
        self.asleep.insert(place, Asleep { inbox: Arc::clone(inbox), is_idle, is_called: false });
    }

    /// The loop of `inbox` looks for a job by itself; one that was called stays so until it has looked.
    pub(super) fn stay_awake(&mut self, inbox: &Arc<Inbox>) {
        self.asleep.retain(|asleep| asleep.is_called || !Arc::ptr_eq(&asleep.inbox, inbox));
    }

    /// Wakes every loop.
    pub(super) fn wake_all(&mut self) {
        self.asleep.drain(..).for_each(|asleep| asleep.inbox.wake());
    }

    /// All jobs that wait.
    pub(super) fn take_all(&mut self) -> VecDeque<J> {
        std::mem::take(&mut self.jobs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::event_loop::EventLoop;

    /// Loops that sleep; each is idle or not, in the order in which they fall asleep.
    fn asleep(idle: &[bool]) -> (Waiting<u8>, Vec<Arc<Inbox>>) {
        let mut waiting = Waiting::default();
        let inboxes: Vec<_> = idle.iter().map(|_| EventLoop::new().expect("an event loop").inbox()).collect();
        inboxes.iter().zip(idle).for_each(|(inbox, &is_idle)| waiting.fall_asleep(inbox, is_idle));
        (waiting, inboxes)
    }

    /// Which of two loops, each idle or not, are woken for so many jobs of a caller.
    fn check(idle: [bool; 2], jobs: u8, caller_is_idle: Option<bool>, expected: &[usize]) {
        let (mut waiting, inboxes) = asleep(&idle);
        (0..jobs).for_each(|job| waiting.push(job));
        let called = waiting.call_loops(caller_is_idle, 0);
        let place = |woken: &Arc<Inbox>| inboxes.iter().position(|inbox| Arc::ptr_eq(inbox, woken));
        let woken: Vec<_> = called.woken.iter().filter_map(place).collect();
        assert_eq!((woken.as_slice(), called.missing), (expected, 0));
    }

    #[test]
    fn a_loop_without_an_attempt_comes_first() {
        // An idle caller begins the first job itself.
        check([true, false], 1, Some(true), &[]);
        check([true, false], 2, Some(true), &[0]);
        check([false, true], 2, Some(true), &[1]);
        check([false, true], 3, Some(true), &[1, 0]);
        // A busy one leaves it to a loop that is idle, where there is one.
        check([true, false], 1, Some(false), &[0]);
        check([false, false], 1, Some(false), &[]);
        check([false, false], 2, Some(false), &[0]);
        // Without a loop of its own it begins none.
        check([true, true], 1, None, &[1]);
    }

    #[test]
    fn loops_are_started_as_long_as_there_may_be_more() {
        let missing = |jobs: u8, caller_is_idle, may_start| {
            let (mut waiting, _) = asleep(&[]);
            (0..jobs).for_each(|job| waiting.push(job));
            waiting.call_loops(caller_is_idle, may_start).missing
        };
        assert_eq!(missing(1, Some(true), 2), 0);
        assert_eq!(missing(1, Some(false), 2), 1);
        assert_eq!(missing(2, Some(true), 2), 1);
        assert_eq!(missing(9, Some(true), 2), 2);
        assert_eq!(missing(9, Some(true), 0), 0);
        assert_eq!(missing(1, None, 1), 1);
    }

    #[test]
    fn a_job_stays_for_the_loop_that_was_called_for_it() {
        let (mut waiting, inboxes) = asleep(&[true]);
        let busy = EventLoop::new().expect("an event loop").inbox();
        waiting.push(1);
        assert_eq!(waiting.call_loops(Some(false), 0).woken.len(), 1);
        assert_eq!(waiting.take(&busy, false), None);
        // The next job is free, and needs no second call.
        waiting.push(2);
        assert!(waiting.call_loops(Some(false), 0).woken.is_empty());
        assert_eq!(waiting.take(&busy, false), Some((1, false)));
        assert_eq!(waiting.take(&busy, false), None);
        // It wakes up, and looks.
        waiting.stay_awake(&inboxes[0]);
        assert_eq!(waiting.take(&busy, false), None);
        assert_eq!(waiting.take(&inboxes[0], true), Some((2, true)));
        // It has looked: what comes now is free again.
        waiting.push(3);
        assert_eq!(waiting.take(&busy, false), Some((3, true)));
    }

    #[test]
    fn one_that_stays_awake_is_not_called() {
        let (mut waiting, inboxes) = asleep(&[true, true]);
        waiting.stay_awake(&inboxes[1]);
        waiting.push(1);
        waiting.push(2);
        assert_eq!(waiting.call_loops(None, 0).woken.len(), 1);
    }
}
