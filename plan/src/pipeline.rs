//! Pipelines: their steps, and how they repeat.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::provider::Environment;
use crate::{Budget, Edge, Expression, Origin, Param, Step};

/// A graph of steps that runs once in each round.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pipeline {
    /// Its name.
    pub name: String,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its own inputs, in declaration order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub params: Vec<Param>,
    /// How it repeats.
    pub iteration: Iteration,
    /// How many independent instances run, named `NAME.1` to `NAME.N` where there is more than one.
    pub parallelism: u32,
    /// How many steps may run at once, over all instances; by default as many commands as there are processors, and 16
    /// agents beside them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    /// Whether an unhandled failure keeps further steps from starting.
    #[serde(default, skip_serializing_if = "crate::is_false")]
    pub fail_fast: bool,
    /// Where its processes run, relative to the workspace; by default the workspace itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_dir: Option<String>,
    /// Variables of its processes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Environment,
    /// The steps, in declaration order.
    pub steps: Vec<Step>,
    /// The steps whose output is the pipeline's value: the first of them that succeeded. Empty: it has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub result: Vec<String>,
    /// Which step may send to which one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edges: Vec<Edge>,
    /// What a run of it may use at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// Whether its processes run in a working tree of their own, one for each instance.
    #[serde(default, skip_serializing_if = "crate::is_false")]
    pub worktree: bool,
    /// Where it is declared.
    pub origin: Origin,
}

impl Pipeline {
    /// The turns of a step at most: its first one, and one for each envelope that can wake it.
    pub fn max_turns(&self, step: &Step) -> u64 {
        let wakes = step.reads_inbox();
        let ways = self.edges.iter().filter(|edge| wakes && edge.wakes_step(&step.name));
        1 + ways.filter(|edge| edge.leads_to(&step.name)).map(|edge| u64::from(edge.max_envelopes())).sum::<u64>()
    }

    /// Whether a step starts only when another one asks for it.
    pub fn is_spawned(&self, step: &str) -> bool {
        self.edges.iter().any(|edge| edge.kind == crate::EdgeKind::Spawn && edge.to == step)
    }

    /// Every step, those in loops included, in declaration order.
    pub fn all_steps(&self) -> impl Iterator<Item = &Step> {
        let mut open = vec![self.steps.iter()];
        std::iter::from_fn(move || {
            loop {
                match open.last_mut()?.next() {
                    Some(step) => {
                        // What is inside of a loop comes right behind it, before the next step beside it.
                        open.push(step.body.loop_steps().iter());
                        return Some(step);
                    }
                    None => drop(open.pop()),
                }
            }
        })
    }
}

/// How a pipeline, or a loop in it, repeats.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Iteration {
    /// The rounds at most, 1 or more.
    pub max: u32,
    /// The repetition ends when one of these holds after a round. A condition that reads a missing value does not hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub until: Vec<Expression>,
    /// The steps whose status, exit code or error an `until` reads: their failures are handled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub handles: Vec<String>,
    /// What an unhandled failure in a round does.
    pub on_failure: RoundFailure,
    /// The result if no `until` ever holds.
    pub exhausted: Exhausted,
}

/// What an unhandled failure in a round does to the rounds after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RoundFailure {
    /// No further round starts, and the pipeline has failed.
    #[default]
    Stop,
    /// The next round starts; the last round decides.
    Continue,
}

/// The result if no `until` holds after the last round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Exhausted {
    /// The pipeline has failed.
    #[default]
    Fail,
    /// The pipeline has succeeded.
    Success,
}
