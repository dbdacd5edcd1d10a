//! What is known to be there, by place: `output.plan.notes`, or a variable and its fields.
//!
//! A key alone says that the value is there, with `!` that it holds something, with `+` that it has an item, with `:` and
//! a number of which kinds it may be. What is known of a part is known of the whole. Knowledge is taken back in the order in which it came.

use std::collections::BTreeMap;

use super::super::Classes;

/// Something that is known of a value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Known(String);

impl Known {
    pub(super) fn claim_defined(key: &str) -> Known {
        Known(key.to_owned())
    }

    pub(super) fn claim_value(key: &str) -> Known {
        Known(format!("{key}!"))
    }

    pub(super) fn claim_filled(key: &str) -> Known {
        Known(format!("{key}+"))
    }

    /// The value is of one of these kinds.
    pub(super) fn claim_classes(key: &str, classes: Classes) -> Known {
        Known(format!("{key}:{}", classes.bits()))
    }

    /// The place that it is about, and the kinds of the value, where it says so.
    fn of_classes(&self) -> Option<(&str, Classes)> {
        let (key, bits) = self.0.rsplit_once(':')?;
        Some((key, Classes::from_bits(bits.parse().ok()?)))
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
            // An outer branch may know the same: what the inner one forgets must stay known to it.
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
        self.known.contains_key(key) || self.has_value(key)
    }

    pub(super) fn has_value(&self, key: &str) -> bool {
        let inside = format!("{key}.");
        self.known.contains_key(&format!("{key}!"))
            || self.is_filled(key)
            || self.known.range(inside.clone()..).next().is_some_and(|(known, _)| known.starts_with(&inside))
    }

    /// The kinds that a value may have, where something is known of them.
    pub(super) fn known_classes(&self, key: &str) -> Option<Classes> {
        let start = format!("{key}:");
        let known = self.known.range(start.clone()..).take_while(|(known, _)| known.starts_with(&start));
        known
            .filter_map(|(known, _)| known[start.len()..].parse().ok())
            .map(Classes::from_bits)
            .reduce(Classes::intersection)
    }

    pub(super) fn is_filled(&self, key: &str) -> bool {
        self.known.contains_key(&format!("{key}+"))
    }
}

/// What follows from both lists.
pub(super) fn common_claims(one: Vec<Known>, other: &[Known]) -> Vec<Known> {
    let either = |known: Known| {
        let Some((key, classes)) = known.of_classes() else { return other.contains(&known).then_some(known) };
        let (_, others) = other.iter().filter_map(Known::of_classes).find(|(other, _)| *other == key)?;
        // Either list may be the one that holds.
        Some(Known::claim_classes(key, classes.union(others)))
    };
    one.into_iter().filter_map(either).collect()
}
