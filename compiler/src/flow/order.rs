//! Which steps can run at the same time.
//!
//! Two steps go in; whether neither waits for the other, and some route runs both, comes out. Work is bounded: where a
//! pipeline is too large to tell what waits for what, they count as ordered; where its conditions are, the answer says so.

use std::collections::BTreeSet;

use swarmc_plan::When;

use super::diagram::NEVER;
use super::{Answer, Flow};
use crate::model::find_siblings;
use crate::source::Span;

/// The needs that may be looked at, over all questions of a pipeline.
const MOST_LOOKS: usize = 500_000;

impl Flow<'_, '_> {
    /// Whether two steps can run at once.
    pub(crate) fn at_once(&mut self, one: usize, other: usize) -> Answer {
        let Some((one_held, other_held)) = find_siblings(&self.pipeline.steps, one, other) else { return Answer::No };
        if self.is_after(one_held, other_held) || self.is_after(other_held, one_held) {
            return Answer::No;
        }
        self.diagram.begin_question();
        let both = self.run_formula(one).and_then(|one| {
            let other = self.run_formula(other)?;
            self.diagram.and(one, other)
        });
        match self.prove_never(both) {
            Answer::Yes => Answer::No,
            Answer::No => Answer::Yes,
            Answer::Unknown => Answer::Unknown,
        }
    }

    /// What makes `later` start only after `earlier` has ended, in every run that it runs in; none where nothing surely
    /// does. A step that is skipped settles before all that it waits for has, so that only what must hold leads further.
    pub(crate) fn find_wait(&mut self, later: usize, earlier: usize) -> Option<Span> {
        let (later, earlier) = find_siblings(&self.pipeline.steps, later, earlier)?;
        let mut seen = BTreeSet::new();
        // Each step with the need of the first that leads to it.
        let mut open = vec![(later, None)];
        while let Some((step, first)) = open.pop() {
            let resolved = &self.pipeline.steps[step];
            self.looks += 1 + resolved.needs.len();
            if self.looks > MOST_LOOKS {
                return None;
            }
            for need in &resolved.needs {
                let first = first.unwrap_or(need.span);
                if need.step == earlier {
                    return Some(first);
                }
                let ran = need.when != When::Always && resolved.is_binding(need);
                // What stands before `earlier` in the order cannot wait for it.
                if ran && self.position[need.step] > self.position[earlier] && seen.insert(need.step) {
                    open.push((need.step, Some(first)));
                }
            }
        }
        None
    }

    /// Whether each of two steps runs in some run, and both in none.
    pub(crate) fn is_exclusive(&mut self, one: usize, other: usize) -> bool {
        self.diagram.begin_question();
        let both = self.run_formula(one).and_then(|one| {
            let other = self.run_formula(other)?;
            Ok((one, other, self.diagram.and(one, other)?))
        });
        matches!(both, Ok((one, other, NEVER)) if one != NEVER && other != NEVER)
    }

    /// Where a step stands in an order that the needs allow.
    pub(crate) fn position(&self, step: usize) -> usize {
        self.position[step]
    }

    /// Whether `later` waits, by however many steps between, for `earlier`; both stand in one list.
    fn is_after(&mut self, later: usize, earlier: usize) -> bool {
        if self.position[later] < self.position[earlier] {
            return false;
        }
        let mut seen = BTreeSet::new();
        let mut open = vec![later];
        while let Some(step) = open.pop() {
            self.looks += 1 + self.pipeline.steps[step].needs.len();
            if self.looks > MOST_LOOKS {
                return true;
            }
            for need in &self.pipeline.steps[step].needs {
                if need.step == earlier {
                    return true;
                }
                if self.position[need.step] > self.position[earlier] && seen.insert(need.step) {
                    open.push(need.step);
                }
            }
        }
        false
    }
}
