//! What is known to be there, by place: `output.plan.notes`, or a variable and its fields.
//!
//! What is known of a part is known of the whole. Knowledge is taken back in the order in which it came.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::super::Classes;

/// Something that is known of the value at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Known {
    key: String,
    claim: Claim,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Claim {
    /// It is there.
    Defined,
    /// It is there, and is not `none`.
    Value,
    /// It has at least so many items.
    Items(u64),
    /// It is of one of these kinds.
    Classes(Classes),
}

impl Known {
    pub(super) fn claim_defined(key: &str) -> Known {
        Known { key: key.to_owned(), claim: Claim::Defined }
    }

    pub(super) fn claim_value(key: &str) -> Known {
        Known { key: key.to_owned(), claim: Claim::Value }
    }

    /// The value has an item.
    pub(super) fn claim_filled(key: &str) -> Known {
        Known::claim_items(key, 1)
    }

    /// The value has at least so many items.
    pub(super) fn claim_items(key: &str, least: u64) -> Known {
        Known { key: key.to_owned(), claim: Claim::Items(least) }
    }

    /// The value is of one of these kinds.
    pub(super) fn claim_classes(key: &str, classes: Classes) -> Known {
        Known { key: key.to_owned(), claim: Claim::Classes(classes) }
    }
}

/// What is known.
#[derive(Debug, Default)]
pub(super) struct Presence {
    /// A claim stands as often as it was made: an outer branch may know what an inner one learns and forgets.
    known: BTreeMap<String, Vec<Claim>>,
    trail: Vec<Known>,
}

impl Presence {
    /// How much is known: give it back to [`Presence::forget`].
    pub(super) fn mark(&self) -> usize {
        self.trail.len()
    }

    pub(super) fn learn(&mut self, known: Vec<Known>) {
        for known in known {
            match self.known.get_mut(&known.key) {
                Some(claims) => claims.push(known.claim),
                None => _ = self.known.insert(known.key.clone(), vec![known.claim]),
            }
            self.trail.push(known);
        }
    }

    pub(super) fn forget(&mut self, mark: usize) {
        for Known { key, .. } in self.trail.drain(mark..).rev() {
            if let Some(claims) = self.known.get_mut(&key) {
                claims.pop();
                if claims.is_empty() {
                    self.known.remove(&key);
                }
            }
        }
    }

    pub(super) fn is_defined(&self, key: &str) -> bool {
        self.claims(key).contains(&Claim::Defined) || self.has_value(key)
    }

    pub(super) fn has_value(&self, key: &str) -> bool {
        self.claims(key).contains(&Claim::Value) || self.is_filled(key) || self.knows_part(key)
    }

    /// The kinds that a value may have, where something is known of them.
    pub(super) fn known_classes(&self, key: &str) -> Option<Classes> {
        let classes = self.claims(key).iter().filter_map(|claim| match claim {
            Claim::Classes(classes) => Some(*classes),
            Claim::Defined | Claim::Value | Claim::Items(_) => None,
        });
        classes.reduce(Classes::intersection)
    }

    pub(super) fn is_filled(&self, key: &str) -> bool {
        self.least_items(key) > 0
    }

    /// How many items the value has at least.
    pub(super) fn least_items(&self, key: &str) -> u64 {
        let counts = self.claims(key).iter().filter_map(|claim| match claim {
            Claim::Items(least) => Some(*least),
            Claim::Defined | Claim::Value | Claim::Classes(_) => None,
        });
        counts.max().unwrap_or(0)
    }

    fn claims(&self, key: &str) -> &[Claim] {
        self.known.get(key).map_or(&[], Vec::as_slice)
    }

    /// Whether something is known of a field of the value.
    fn knows_part(&self, key: &str) -> bool {
        let after = self.known.range::<str, _>((Bound::Excluded(key), Bound::Unbounded));
        let mut rest = after.map_while(|(known, _)| known.strip_prefix(key));
        rest.any(|rest| rest.starts_with('.'))
    }
}

/// What follows from both lists.
pub(super) fn common_claims(one: Vec<Known>, other: &[Known]) -> Vec<Known> {
    // Either list may be the one that holds, so each claim is the weaker of two.
    let weaker = |one: Claim, other: Claim| match (one, other) {
        (Claim::Classes(one), Claim::Classes(other)) => Some(Claim::Classes(one.union(other))),
        (Claim::Items(one), Claim::Items(other)) => Some(Claim::Items(one.min(other))),
        (one, other) => (one == other).then_some(one),
    };
    let either = |known: Known| {
        let mut others = other.iter().filter(|other| other.key == known.key);
        let claim = others.find_map(|other| weaker(known.claim, other.claim))?;
        Some(Known { claim, ..known })
    };
    one.into_iter().filter_map(either).collect()
}
