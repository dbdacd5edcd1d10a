//! Computes what a run uses at most, from its plan alone.
//!
//! In: a plan. Out: its [`Bounds`] by pipeline and swarm, and the checks SW401, SW403 and SW404 that follow from them.
//! Unknown is never zero: it carries its reason. All of it is linear in the plan.

mod amount;
mod budget;
mod exclusive;
mod input;
mod meter;
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

use swarmc_plan::{Bound, Bounds, Likely, Plan};

use crate::tokens::Tokenizer;
use meter::Meter;
use totals::{Sums, Totals};
use value::Estimate;

pub(crate) use budget::check_budgets;
pub(crate) use input::check_inputs;
pub(crate) use stats::add_plan;
pub use turns::{Turn, count_turn_inputs};
pub(crate) use window::check_windows;

/// What one run of each pipeline and swarm of a plan uses at most, and what it is likely to use, tokens counted by
/// `tokenizer`.
pub fn compute_bounds(plan: &Plan, tokenizer: &dyn Tokenizer) -> BTreeMap<String, Bounds> {
    let mut meter = Meter::new(tokenizer);
    let highest = sum_runs(plan, Estimate::Highest, &mut meter);
    let likely = sum_runs(plan, Estimate::Likely, &mut meter);
    let pairs = highest.into_iter().zip(likely);
    pairs.map(|((name, most), (_, likely))| (name.to_owned(), to_bounds(&most, &likely))).collect()
}

/// The totals of one run of each pipeline and swarm, within all budgets.
fn sum_runs<'p>(plan: &'p Plan, estimate: Estimate, meter: &mut Meter<'_>) -> Vec<(&'p str, Totals<'p>)> {
    let sums = Sums::from_meter(plan, estimate, meter);
    let pipelines = plan.pipelines.iter().map(|it| (it.name.as_str(), &sums.pipelines, it.budget.as_ref()));
    let swarms = plan.swarms.iter().map(|it| (it.name.as_str(), &sums.swarms, it.budget.as_ref()));
    let limit = |totals: Totals<'p>, budget| totals.limit_to(budget, estimate).limit_to(plan.budget.as_ref(), estimate);
    pipelines.chain(swarms).map(|(name, sums, budget)| (name, limit(sums[name], budget))).collect()
}

/// What is likely, and never more than what is possible: usual lengths may be longer than those that a spec comes to.
fn cap_bound(likely: Bound, most: &Bound) -> Bound {
    match (&likely, most) {
        (Bound::Most(usual), Bound::Most(limit)) if usual > limit => most.clone(),
        _ => likely,
    }
}

fn to_bounds(most: &Totals<'_>, likely: &Totals<'_>) -> Bounds {
    Bounds {
        launches: most.launches.to_bound(),
        turns: most.turns.to_bound(),
        input_tokens: most.input.to_bound(),
        output_tokens: most.output.to_bound(),
        cost: most.cost.to_bound(),
        critical_path_ms: most.time.to_bound(),
        likely: Some(Box::new(Likely {
            launches: cap_bound(likely.launches.to_bound(), &most.launches.to_bound()),
            turns: cap_bound(likely.turns.to_bound(), &most.turns.to_bound()),
            input_tokens: cap_bound(likely.input.to_bound(), &most.input.to_bound()),
            output_tokens: cap_bound(likely.output.to_bound(), &most.output.to_bound()),
            cost: cap_bound(likely.cost.to_bound(), &most.cost.to_bound()),
        })),
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
