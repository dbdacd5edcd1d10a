//! What each turn of a pipeline is given, for the table that people read.

use std::collections::HashMap;

use swarmc_plan::{Bound, Pipeline, Plan};

use super::meter::Meter;
use super::prompt::{Reader, prompt_body};
use super::schema::Types;
use super::value::{Estimate, Scope};
use crate::tokens::{Family, Tokenizer};

/// One turn of an agent.
#[derive(Clone, Debug)]
pub struct Turn {
    /// The tokens that it is given.
    pub input: Bound,
    /// Whether the tokenizer is that of the agent's model.
    pub exact: bool,
    /// The tokens that the agent's model can take, where its provider declares them.
    pub window: Option<u64>,
}

/// What the turns of a pipeline are given, by step.
pub fn count_turn_inputs<'p>(
    plan: &'p Plan,
    pipeline: &'p Pipeline,
    tokenizer: &dyn Tokenizer,
) -> HashMap<&'p str, Turn> {
    let scope = Scope::for_pipeline(plan, pipeline, Estimate::Highest);
    let mut types = Types::new(&plan.types);
    let mut meter = Meter::new(tokenizer);
    let mut turns = HashMap::new();
    for step in pipeline.all_steps() {
        let Some(body) = prompt_body(step) else { continue };
        let Some(agent) = plan.agent(&body.agent) else { continue };
        let Some(provider) = plan.provider(&agent.provider) else { continue };
        let mut reader = Reader { scope: &scope, types: &mut types, meter: &mut meter };
        let input = reader.count_turn(step, body, agent).to_bound();
        let (exact, window) = (Family::for_agent(agent, provider).is_exact(), provider.context_window);
        let turn = Turn { input, exact, window };
        turns.insert(step.name.as_str(), turn);
    }
    turns
}
