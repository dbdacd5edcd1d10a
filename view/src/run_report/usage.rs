//! What steps have used, how long they took, and what becomes of the row of one that runs again.

use swarmc_runtime::{StepId, Usage};

use super::words::{add_usage, format_usage};
use super::{Row, RowState, RunReport};
use crate::team::Team;

impl RunReport {
    /// A step runs again: what it used counts, and nothing else that was known of it.
    pub(super) fn reopen(&mut self, (step, attempt, inside): (StepId, u32, bool)) {
        let Some(&index) = self.index.get(&step) else { return };
        let is_known = self.rules.contains_key(&*step.name);
        self.teams.remove(&step);
        let row = &mut self.rows[index];
        (row.skip, row.failure, row.exit, row.message, row.question) = (None, None, None, None, None);
        row.stderr = Box::default();
        row.state = match is_known {
            _ if inside => RowState::Running,
            true => RowState::Blocked,
            // The plan that the run goes on with has no such step: nothing begins it again.
            false => RowState::Cancelled,
        };
        if !inside {
            (row.attempt, row.earlier) = (attempt.saturating_sub(1), attempt.saturating_sub(1));
        }
    }

    /// What the turns of agents have used so far, in words: those of all rounds; nothing where none has said.
    pub fn describe_usage(&self) -> String {
        let (total, is_part) = self.total_usage();
        total.map(|usage| format_usage(&usage, is_part)).unwrap_or_default()
    }

    /// The same, in numbers; and whether the price of some of it is unknown.
    pub fn total_usage(&self) -> (Option<Usage>, bool) {
        let mut total: Option<Usage> = None;
        let mut is_part = false;
        for row in &self.rows {
            let team = self.teams.get(&row.step).map(Team::total_usage);
            // A swarm that has ended says the same as its step.
            let Some(usage) = row.usage.as_deref().copied().or(team.flatten()) else { continue };
            is_part |= usage.cost.is_none();
            total = Some(match total {
                None => usage,
                Some(total) => {
                    // One unknown price must not hide those that are known: `is_part` says that there is more.
                    let cost = total.cost.into_iter().chain(usage.cost).reduce(|a, b| a + b);
                    Usage { cost, ..add_usage(Some(total), Some(usage)).unwrap_or_default() }
                }
            });
        }
        (total, is_part)
    }
}

impl Row {
    /// How long it took, or has taken until now.
    pub fn time_taken(&self, now: u64) -> std::time::Duration {
        match self.state {
            RowState::Running | RowState::Waiting | RowState::Idle | RowState::Stalled | RowState::Asking => {
                self.elapsed(now)
            }
            RowState::Blocked | RowState::Cancelled | RowState::Ended(_) => self.elapsed(self.ended_ms),
        }
    }

    /// Tokens and cost, where they are known; nothing otherwise.
    pub fn describe_usage(&self) -> String {
        self.usage.as_deref().map(|usage| format_usage(usage, usage.cost.is_none())).unwrap_or_default()
    }
}
