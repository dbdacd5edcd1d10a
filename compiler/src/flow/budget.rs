//! Limits the work that questions about conditions take. It counts steps and measures no time, so the same spec gives
//! the same answers on every machine.
//!
//! Each question may take a part of the steps that are left, so that a few hard questions leave room for the many easy
//! ones that follow.

use std::cell::Cell;

use crate::cancel::Cancel;

/// What a spec has at least, in nodes that are looked at.
const BASE: usize = 150_000;
/// What each of its steps adds.
const PER_STEP: usize = 300;
/// The part of what is left that one question may take.
const PART: usize = 32;
/// What one question may take of it however little that is.
const LEAST: usize = 500;

/// What is left for the questions of a spec.
#[derive(Debug)]
pub(crate) struct Budget<'c> {
    cancel: &'c Cancel,
    left: Cell<usize>,
    spent: Cell<usize>,
}

impl Budget<'_> {
    pub(crate) fn new(steps: usize, cancel: &Cancel) -> Budget<'_> {
        Budget { cancel, left: Cell::new(BASE.saturating_add(steps.saturating_mul(PER_STEP))), spent: Cell::default() }
    }

    /// The steps that the next question may take: none after the caller has cancelled.
    pub(crate) fn share(&self) -> usize {
        let left = if self.cancel.is_cancelled() { 0 } else { self.left.get() };
        (left / PART).max(LEAST).min(left)
    }

    pub(crate) fn spend(&self, steps: usize) {
        self.left.set(self.left.get().saturating_sub(steps));
        self.spent.set(self.spent.get() + steps);
    }

    /// What has been spent.
    pub(crate) fn spent_steps(&self) -> usize {
        self.spent.get()
    }
}
