//! The jobs that wait for an event loop, and the event loops that wait for a job.
//!
//! In: jobs, and the loops that are about to sleep. Out: the loops to be woken, those without an attempt first, and a job for
//! the loop that asks. Two attempts in one loop would wait for each other beside a thread that has none. Invariant: a loop
//! that sleeps and was called for a job finds one, unless a loop without an attempt took it before.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::io::event_loop::Inbox;

/// The jobs in the order in which they came, and the loops that sleep.
#[derive(Debug)]
pub(super) struct Waiting<J> {
    jobs: VecDeque<J>,
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

    /// Calls loops for the jobs that wait: first those without an attempt, then as many as `may_start` says can be started,
    /// and those with attempts for the rest. The caller, with the inbox of its loop and whether that has no attempt, takes one
    /// itself: the first, where it has none, and otherwise the first that is left for loops with attempts.
    pub(super) fn call_loops(&mut self, caller: Option<(&Arc<Inbox>, bool)>, may_start: usize) -> Called {
        if let Some((inbox, _)) = caller {
            // It looks at the queue next, whether it was called or not.
            self.asleep.retain(|asleep| !Arc::ptr_eq(&asleep.inbox, inbox));
        }
        let mut jobs = self.count_free();
        let keep_one = |jobs: &mut usize, when_idle: bool| {
            *jobs -= usize::from(*jobs > 0 && caller.is_some_and(|(_, is_idle)| is_idle == when_idle));
        };
        let mut woken = Vec::new();
        keep_one(&mut jobs, true);
        self.call_asleep(true, &mut jobs, &mut woken);
        let missing = jobs.min(may_start);
        jobs -= missing;
        keep_one(&mut jobs, false);
        self.call_asleep(false, &mut jobs, &mut woken);
        // What is left is found by loops that are awake.
        Called { woken, missing }
    }

    /// Calls loops that sleep, those without an attempt or those with some.
    fn call_asleep(&mut self, is_idle: bool, jobs: &mut usize, woken: &mut Vec<Arc<Inbox>>) {
        for asleep in self.asleep.iter_mut().filter(|asleep| asleep.is_idle == is_idle && !asleep.is_called).take(*jobs)
        {
            asleep.is_called = true;
            *jobs -= 1;
            woken.push(Arc::clone(&asleep.inbox));
        }
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
        self.asleep.push(Asleep { inbox: Arc::clone(inbox), is_idle, is_called: false });
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

    fn make_inbox() -> Arc<Inbox> {
        EventLoop::new().expect("an event loop").inbox()
    }

    /// Loops that sleep, each idle or not.
    fn asleep(idle: &[bool]) -> (Waiting<u8>, Vec<Arc<Inbox>>) {
        let mut waiting = Waiting::default();
        let inboxes: Vec<_> = idle.iter().map(|_| make_inbox()).collect();
        inboxes.iter().zip(idle).for_each(|(inbox, &is_idle)| waiting.fall_asleep(inbox, is_idle));
        (waiting, inboxes)
    }

    /// Which of two loops, each idle or not, are woken for so many jobs of a caller where one may be started, and how many
    /// are.
    fn check(idle: [bool; 2], jobs: u8, caller_is_idle: Option<bool>, may_start: usize, expected: (&[usize], usize)) {
        let (mut waiting, inboxes) = asleep(&idle);
        let own = make_inbox();
        (0..jobs).for_each(|job| waiting.push(job));
        let called = waiting.call_loops(caller_is_idle.map(|is_idle| (&own, is_idle)), may_start);
        let place = |woken: &Arc<Inbox>| inboxes.iter().position(|inbox| Arc::ptr_eq(inbox, woken));
        let woken: Vec<_> = called.woken.iter().filter_map(place).collect();
        assert_eq!((woken.as_slice(), called.missing), expected);
    }

    #[test]
    fn a_loop_without_an_attempt_comes_first() {
        // An idle caller begins the first job itself.
        check([true, false], 1, Some(true), 1, (&[], 0));
        check([true, false], 2, Some(true), 1, (&[0], 0));
        check([false, true], 2, Some(true), 0, (&[1], 0));
        check([false, true], 3, Some(true), 0, (&[1, 0], 0));
        // A busy one leaves it to a loop that is idle, where there is one or may be one.
        check([true, false], 1, Some(false), 1, (&[0], 0));
        check([false, false], 1, Some(false), 1, (&[], 1));
        check([false, false], 1, Some(false), 0, (&[], 0));
        // It begins the second itself before it wakes one that is busy too.
        check([false, true], 2, Some(false), 0, (&[1], 0));
        check([false, false], 2, Some(false), 0, (&[0], 0));
        check([false, false], 3, Some(false), 1, (&[0], 1));
        // Without a loop of its own it begins none.
        check([true, true], 1, None, 1, (&[0], 0));
        check([false, false], 9, None, 1, (&[0, 1], 1));
    }

    #[test]
    fn the_call_of_a_caller_is_over() {
        let (mut waiting, inboxes) = asleep(&[true, true]);
        waiting.push(1);
        waiting.call_loops(None, 0);
        // The loop that was called takes a turn before it looks, which brings another job.
        waiting.push(2);
        let called = waiting.call_loops(Some((&inboxes[0], true)), 0);
        assert_eq!(called.woken.len(), 1);
    }

    #[test]
    fn a_job_stays_for_the_loop_that_was_called_for_it() {
        let (mut waiting, inboxes) = asleep(&[true]);
        let busy = make_inbox();
        waiting.push(1);
        assert_eq!(waiting.call_loops(Some((&busy, false)), 0).woken.len(), 1);
        assert_eq!(waiting.take(&busy, false), None);
        // The next job is free, and needs no second call.
        waiting.push(2);
        assert!(waiting.call_loops(Some((&busy, false)), 0).woken.is_empty());
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
