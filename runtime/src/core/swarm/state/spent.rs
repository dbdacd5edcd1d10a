//! What the turns of a swarm reserve and use.

use super::Spent;
use crate::types::event::Reserved;

/// What a turn used.
pub(super) struct Used {
    pub(super) usage: Option<crate::types::usage::Usage>,
    pub(super) cost: Option<u64>,
}

impl Spent {
    /// A turn begins, perhaps once more: then what it reserved before is free.
    pub(super) fn reserve(&mut self, before: &Reserved, reserved: &Reserved) {
        let left = self.reserved.saturating_sub(before.tokens.unwrap_or(0));
        self.reserved = left.saturating_add(reserved.tokens.unwrap_or(0));
    }

    pub(super) fn settle(&mut self, reserved: &Reserved, used: &Used) {
        self.calls += 1;
        self.reserved = self.reserved.saturating_sub(reserved.tokens.unwrap_or(0));
        if let Some(usage) = used.usage {
            self.usage = crate::types::usage::sum(self.usage, usage);
        }
        match used.cost {
            Some(cost) => self.cost = self.cost.saturating_add(cost),
            None => self.unpriced = true,
        }
    }
}
