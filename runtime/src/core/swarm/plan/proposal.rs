//! Proposals: changes that an agent wants, and whether they still apply (table T2 of seed 004's design).

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{PlanOp, TeamPlan};

/// A change that an agent proposed.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Proposal {
    /// Who proposed it.
    pub by: Arc<str>,
    /// The version that the agent knew.
    pub base: u32,
    /// How the plan is to change.
    pub ops: Vec<PlanOp>,
    /// Why.
    pub why: String,
}

impl TeamPlan {
    /// Whether a proposal can be decided about: it applies to the plan as it is now, and changes nothing that has
    /// changed since its base.
    ///
    /// # Errors
    /// It is stale: why.
    pub fn check_proposal(
        &self,
        proposal: &Proposal,
        is_agent: impl Fn(&str) -> bool,
        limit: u32,
    ) -> Result<(), String> {
        let Some(changes) = self.changes_since(proposal.base) else {
            return Err(format!("it is based on version {}, and the plan is at {}", proposal.base, self.version));
        };
        let wanted = TeamPlan::touched(&proposal.ops);
        for change in changes {
            let changed = TeamPlan::touched(&change.ops);
            if let Some(item) = wanted.iter().find(|item| changed.contains(*item)) {
                let ops: Vec<String> = change.ops.iter().map(PlanOp::describe).collect();
                return Err(format!(
                    "version {} has changed `{item}` since version {}: {}",
                    change.version,
                    proposal.base,
                    ops.join(", ")
                ));
            }
        }
        self.check_ops(&proposal.ops, is_agent, limit)
    }

    /// A proposal waits for an answer.
    pub(super) fn propose(&mut self, id: u32, proposal: Proposal) {
        if id == self.last_proposal + 1 {
            self.last_proposal = id;
            self.proposals.insert(id, proposal);
        }
    }
}
