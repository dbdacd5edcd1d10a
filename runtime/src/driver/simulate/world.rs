//! A simulated world, which fixes the fate of every attempt, condition and round beforehand.
//!
//! Invariant: a fate depends on the seed and the id only, so that an interrupted run meets the same fates.

use crate::StepId;

/// A world.
#[derive(Clone, Copy, Debug)]
pub(crate) struct World {
    pub(crate) seed: u64,
    /// Whether the driver takes its time before it records what it was ordered to do.
    pub(crate) lazy: bool,
    /// Whether everything succeeds.
    pub(crate) kind: bool,
}

impl World {
    /// How long an attempt takes, and whether it succeeds.
    pub(crate) fn attempt(self, step: &StepId, attempt: u32) -> (u64, bool) {
        let number = self.number("attempt", step, attempt);
        (number >> 8 & 15, self.kind || number % 5 < 3)
    }

    /// Whether a step's `when` holds, or cannot be evaluated.
    pub(crate) fn condition(self, step: &StepId) -> Result<bool, String> {
        match self.number("condition", step, 0) % 8 {
            0 if self.kind => Ok(true),
            0 => Err("the field is missing".to_owned()),
            1 | 2 => Ok(false),
            _ => Ok(true),
        }
    }

    /// Whether an `until` holds after a round.
    pub(crate) fn until(self, instance: u32, iteration: u32, within: Option<&str>) -> bool {
        let round = StepId { within: within.map(Into::into), ..StepId::new("", iteration, instance) };
        self.number("until", &round, 0).is_multiple_of(4)
    }

    /// How many items a for-each has; none where its list cannot be evaluated.
    pub(crate) fn items(self, step: &StepId) -> Option<u32> {
        let number = self.number("items", step, 0);
        (self.kind || !number.is_multiple_of(9)).then_some((number >> 8) as u32 % 4)
    }

    /// Whether a person says yes at a gate, and after how long; none if no person answers.
    pub(crate) fn answer(self, step: &StepId) -> Option<(u64, bool)> {
        let number = self.number("answer", step, 0);
        (!number.is_multiple_of(4)).then_some((number >> 8 & 7, self.kind || number % 4 > 1))
    }

    /// How long the driver takes for an order.
    pub(crate) fn delay(self, order: &str, step: &StepId) -> u64 {
        if self.lazy { self.number(order, step, 0) % 4 } else { 0 }
    }

    /// A number for an id: FNV-1a, then mixed.
    fn number(self, kind: &str, step: &StepId, attempt: u32) -> u64 {
        let numbers = [step.iteration, step.instance, attempt].map(u32::to_le_bytes);
        let within = step.within.iter().flat_map(|within| within.bytes());
        let name = kind.bytes().chain(step.name.bytes());
        let bytes = name.chain(within).chain(numbers.into_iter().flatten());
        let hash = bytes.fold(self.seed ^ 0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let mixed = (hash ^ hash >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
        mixed ^ mixed >> 33
    }
}
