//! How much work questions about conditions may take: counted, and never timed, so that the same spec gives the same
//! answers on every machine.
//!
//! What is left when a question comes is shared out: each may take a part of it, so that a few hard ones leave room for
//! the many easy ones that follow.

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

    /// What the next question may take: nothing where nobody waits for the answer.
    pub(crate) fn share(&self) -> usize {
        let left = if self.cancel.is_cancelled() { 0 } else { self.left.get() };
        (left / PART).max(LEAST).min(left)
    }

    pub(crate) fn spend(&self, steps: usize) {
        self.left.set(self.left.get().saturating_sub(steps));
        self.spent.set(self.spent.get() + steps);
    }

    /// What has been spent.
    pub(crate) fn spent(&self) -> usize {
        self.spent.get()
    }
}
