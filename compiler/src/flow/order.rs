//! Which steps can run at the same time.
//!
//! Two steps go in; whether neither waits for the other, and some route runs both, comes out. Work is bounded: where a
//! pipeline is too large to tell, they count as ordered.

use super::Flow;
use super::diagram::NEVER;
use crate::model::siblings;

/// The steps that may be looked at, over all questions of a pipeline.
const MOST_LOOKS: usize = 1_000_000;

impl Flow<'_, '_> {
    /// Whether two steps can run at once.
    pub(crate) fn at_once(&mut self, one: usize, other: usize) -> bool {
        let Some((one_held, other_held)) = siblings(&self.pipeline.steps, one, other) else { return false };
        if self.waits(one_held, other_held) || self.waits(other_held, one_held) {
            return false;
        }
        self.diagram.ask();
        let both = self.runs(one).and_then(|one| {
            let other = self.runs(other)?;
            self.diagram.and(one, other)
        });
        both != Ok(NEVER)
    }

    /// Where a step stands in an order that the needs allow.
    pub(crate) fn position(&self, step: usize) -> usize {
        self.position[step]
    }

    /// Whether `later` waits, by however many steps between, for `earlier`; both stand in one list.
    fn waits(&mut self, later: usize, earlier: usize) -> bool {
        if self.position[later] < self.position[earlier] {
            return false;
        }
        let mut seen = std::collections::BTreeSet::new();
        let mut open = vec![later];
        while let Some(step) = open.pop() {
            for need in &self.pipeline.steps[step].needs {
                if need.step == earlier {
                    return true;
                }
                if self.position[need.step] > self.position[earlier] && seen.insert(need.step) {
                    open.push(need.step);
                }
            }
            self.looks += 1;
            if self.looks > MOST_LOOKS {
                return true;
            }
        }
        false
    }
}
