//! What a plan adds to the numbers of a check: the prompts of its agents, and what its runs use at most.

use swarmc_plan::{Bound, Pipeline, Plan};

use super::count_turn_inputs;
use crate::stats::{Largest, Prompts, Stats, Swarm};
use crate::tokens::O200k;

/// Adds what a plan says.
pub(crate) fn add_plan(stats: &mut Stats, plan: &Plan) {
    for known in &mut stats.pipelines {
        let Some(pipeline) = plan.pipelines.iter().find(|pipeline| pipeline.name == known.name) else { continue };
        known.prompts = Some(count_prompts(plan, pipeline));
        if let Some(bounds) = plan.bounds.get(&known.name) {
            (known.launches, known.turns) = (Some(bounds.launches.clone()), Some(bounds.turns.clone()));
        }
    }
    let swarms = plan.swarms.iter().filter_map(|swarm| {
        let bounds = plan.bounds.get(&swarm.name)?;
        let (launches, turns) = (bounds.launches.clone(), bounds.turns.clone());
        Some(Swarm { name: swarm.name.clone(), launches, turns })
    });
    stats.swarms = swarms.collect();
}

fn count_prompts(plan: &Plan, pipeline: &Pipeline) -> Prompts {
    let turns = count_turn_inputs(plan, pipeline, &O200k);
    let mut prompts = Prompts { all: turns.len(), ..Prompts::default() };
    // In their order, so that of two that are equally large the first is named.
    for step in pipeline.all_steps() {
        let Some(turn) = turns.get(step.name.as_str()) else { continue };
        let Bound::Most(tokens) = turn.input else { continue };
        prompts.bounded += 1;
        if prompts.largest.as_ref().is_none_or(|largest| largest.tokens < tokens) {
            let (step, exact, window) = (step.name.clone(), turn.exact, turn.window);
            prompts.largest = Some(Largest { step, tokens, exact, window });
        }
    }
    prompts
}
