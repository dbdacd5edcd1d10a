//! What a run uses at most: a pure function of a plan.
//!
//! In: a plan. Out: its [`Bounds`] by pipeline and swarm, and the checks SW401, SW403 and SW404 that follow from them.
//! Unknown is never zero: it carries its reason. All of it is linear in the plan.

mod amount;
mod budget;
mod input;
mod path;
mod place;
mod prompt;
mod schema;
mod totals;
mod turns;
mod value;
mod window;

use std::collections::BTreeMap;

use swarmc_plan::{Bounds, Plan};

use crate::diagnostic::Diagnostics;
use crate::model::Model;
use crate::source::Sources;
use crate::tokens::Tokenizer;
use totals::{Sums, Totals};

pub use turns::{Turn, turns};

/// What one run of each pipeline and swarm of a plan uses at most, tokens counted by `tokenizer`.
pub fn bounds(plan: &Plan, tokenizer: &dyn Tokenizer) -> BTreeMap<String, Bounds> {
    let sums = Sums::of(plan, tokenizer);
    let pipelines = plan
        .pipelines
        .iter()
        .map(|pipeline| (&pipeline.name, sums.pipelines[pipeline.name.as_str()].within(pipeline.budget.as_ref())));
    let swarms =
        plan.swarms.iter().map(|swarm| (&swarm.name, sums.swarms[swarm.name.as_str()].within(swarm.budget.as_ref())));
    pipelines.chain(swarms).map(|(name, totals)| (name.clone(), written(totals.within(plan.budget.as_ref())))).collect()
}

fn written(totals: Totals<'_>) -> Bounds {
    Bounds {
        launches: totals.launches.bound(),
        turns: totals.turns.bound(),
        input_tokens: totals.input.bound(),
        output_tokens: totals.output.bound(),
        cost: totals.cost.bound(),
        critical_path_ms: totals.time.bound(),
    }
}

/// Reports what cannot hold. Bytes stand for tokens wherever that settles it.
pub(crate) fn check(plan: &Plan, model: &Model<'_>, sources: &Sources, diagnostics: &mut Diagnostics) {
    window::check(plan, sources, diagnostics);
    input::check(plan, model, sources, diagnostics);
    budget::check(plan, sources, diagnostics);
}
