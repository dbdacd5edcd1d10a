//! Computes what a run uses at most, from its plan alone.
//!
//! In: a plan. Out: its [`Bounds`] by pipeline and swarm, and the checks SW401, SW403 and SW404 that follow from them.
//! Unknown is never zero: it carries its reason. All of it is linear in the plan.

mod amount;
mod budget;
mod input;
mod path;
pub(crate) mod place;
mod prompt;
mod schema;
mod stats;
#[cfg(test)]
mod tests;
mod text;
mod totals;
mod turns;
mod value;
mod window;

use std::collections::BTreeMap;

use swarmc_plan::{Bound, Bounds, Plan};

use crate::tokens::Tokenizer;
use totals::{Sums, Totals};
use value::Lines;

pub(crate) use budget::check_budgets;
pub(crate) use input::check_inputs;
pub(crate) use stats::add_plan;
pub use turns::{Turn, count_turn_inputs};
pub(crate) use window::check_windows;

/// What one run of each pipeline and swarm of a plan uses at most, tokens counted by `tokenizer`.
pub fn compute_bounds(plan: &Plan, tokenizer: &dyn Tokenizer) -> BTreeMap<String, Bounds> {
    let sums = Sums::from_plan(plan, Lines::Endless, tokenizer);
    let pipelines = plan
        .pipelines
        .iter()
        .map(|pipeline| (&pipeline.name, sums.pipelines[pipeline.name.as_str()].limit_to(pipeline.budget.as_ref())));
    let swarms =
        plan.swarms.iter().map(|swarm| (&swarm.name, sums.swarms[swarm.name.as_str()].limit_to(swarm.budget.as_ref())));
    pipelines
        .chain(swarms)
        .map(|(name, totals)| (name.clone(), to_bounds(totals.limit_to(plan.budget.as_ref()))))
        .collect()
}

fn to_bounds(totals: Totals<'_>) -> Bounds {
    Bounds {
        launches: totals.launches.to_bound(),
        turns: totals.turns.to_bound(),
        input_tokens: totals.input.to_bound(),
        output_tokens: totals.output.to_bound(),
        cost: totals.cost.to_bound(),
        critical_path_ms: totals.time.to_bound(),
    }
}

/// What a run has used; `None` where the run has no count.
#[derive(Clone, Copy, Debug, Default)]
pub struct Used {
    /// Processes and turns that were started.
    pub launches: Option<u64>,
    /// Turns of agents.
    pub turns: Option<u64>,
    /// Tokens that turns were given.
    pub input_tokens: Option<u64>,
    /// Tokens that were answered.
    pub output_tokens: Option<u64>,
    /// Money in millionths of a dollar.
    pub cost: Option<u64>,
    /// The time from the first start to the last end in milliseconds, when nothing waited for a slot.
    pub time_ms: Option<u64>,
}

/// Where a run went beyond its bounds, in words; nothing where it did not.
pub fn describe_excess(bounds: &Bounds, used: &Used) -> Vec<String> {
    let all = [
        ("launches", &bounds.launches, used.launches),
        ("turns", &bounds.turns, used.turns),
        ("tokens in", &bounds.input_tokens, used.input_tokens),
        ("tokens out", &bounds.output_tokens, used.output_tokens),
        ("millionths of a dollar", &bounds.cost, used.cost),
        ("milliseconds", &bounds.critical_path_ms, used.time_ms),
    ];
    all.into_iter()
        .filter_map(|(what, bound, used)| match (bound, used) {
            (Bound::Most(most), Some(used)) if used > *most => Some(format!("{used} {what}, and at most {most}")),
            _ => None,
        })
        .collect()
}
