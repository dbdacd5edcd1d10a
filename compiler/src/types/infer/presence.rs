//! What is known to be there, by place: `output.plan.notes`, or a variable and its fields.
//!
//! A key alone says that the value is there, with `!` that it holds something, with `+` that it has an item. What is
//! known of a part is known of the whole. Knowledge is taken back in the order in which it came.

use std::collections::BTreeMap;

/// Something that is known of a value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Known(String);

impl Known {
    pub(super) fn defined(key: &str) -> Known {
        Known(key.to_owned())
    }

    pub(super) fn holds(key: &str) -> Known {
        Known(format!("{key}!"))
    }

    pub(super) fn filled(key: &str) -> Known {
        Known(format!("{key}+"))
    }
}

/// What is known.
#[derive(Debug, Default)]
pub(super) struct Presence {
    known: BTreeMap<String, usize>,
    trail: Vec<String>,
}

impl Presence {
    /// How much is known: give it back to [`Presence::forget`].
    pub(super) fn mark(&self) -> usize {
        self.trail.len()
    }

    pub(super) fn learn(&mut self, known: Vec<Known>) {
        for Known(key) in known {
            *self.known.entry(key.clone()).or_default() += 1;
            self.trail.push(key);
        }
    }

    pub(super) fn forget(&mut self, mark: usize) {
        for key in self.trail.drain(mark..) {
            if let Some(count) = self.known.get_mut(&key) {
                *count -= 1;
                if *count == 0 {
                    self.known.remove(&key);
                }
            }
        }
    }

    pub(super) fn is_defined(&self, key: &str) -> bool {
        self.known.contains_key(key) || self.holds(key)
    }

    pub(super) fn holds(&self, key: &str) -> bool {
        let inside = format!("{key}.");
        self.known.contains_key(&format!("{key}!"))
            || self.is_filled(key)
            || self.known.range(inside.clone()..).next().is_some_and(|(known, _)| known.starts_with(&inside))
    }

    pub(super) fn is_filled(&self, key: &str) -> bool {
        self.known.contains_key(&format!("{key}+"))
    }
}

/// What follows from both lists.
pub(super) fn common(one: Vec<Known>, other: &[Known]) -> Vec<Known> {
    one.into_iter().filter(|known| other.contains(known)).collect()
}
