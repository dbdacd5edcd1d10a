//! What a check looked at and proved, in numbers.
//!
//! The checks say what they counted while they ran, names come from the index, bounds from the plan. Of a spec with errors it is what could be read; what was not looked at is none, and never zero.

use swarmc_plan::Bound;

/// What a check looked at.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    /// The texts that were read: the spec, what it imports, prompts, scripts, and what it needs of the library.
    pub files: usize,
    /// The names and values that are read, in the spec and in what it imports.
    pub names: Names,
    /// The ways of free text.
    pub flows: Flows,
    /// The suppressions.
    pub suppressions: Suppressed,
    /// What it took to follow conditions, in nodes that were looked at.
    pub conditions: usize,
    /// The pipelines that a run can come to.
    pub pipelines: Vec<Pipeline>,
    /// The swarms that a run can come to; none without a plan.
    pub swarms: Vec<Swarm>,
}

/// Names and values that are read, by place: a text that several steps share counts once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Names {
    /// The names in the spec that lead to what they name.
    pub references: usize,
    /// The `<<…>>` that read a value of the run.
    pub directives: usize,
    /// The places in conditions and `{{ }}` that read one.
    pub expressions: usize,
    /// The fields of values.
    pub fields: Fields,
}

/// The fields that are read of values.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fields {
    /// All of them.
    pub read: usize,
    /// Those whose type is known.
    pub typed: usize,
}

/// The ways that free text can take between steps, members, files and meeting places.
#[derive(Clone, Copy, Debug, Default)]
pub struct Flows {
    /// All of them.
    pub ways: usize,
    /// The places where strangers write.
    pub untrusted: usize,
    /// The places that hold private data.
    pub private: usize,
    /// The places from which something can leave.
    pub exits: usize,
}

/// Suppressions, and what they hide.
#[derive(Clone, Copy, Debug, Default)]
pub struct Suppressed {
    /// All of them.
    pub written: usize,
    /// Those that hide something.
    pub used: usize,
    /// The problems that are hidden.
    pub hidden: usize,
}

/// What was looked at in a pipeline.
#[derive(Clone, Debug, Default)]
pub struct Pipeline {
    /// Its name in the plan.
    pub name: String,
    /// Its steps.
    pub steps: Runs,
    /// The values of steps that others read.
    pub outputs: Outputs,
    /// The values over which its steps branch.
    pub routes: Routes,
    /// What its agents are given; none without a plan.
    pub prompts: Option<Prompts>,
    /// What one run starts at most; none without a plan.
    pub launches: Option<Bound>,
    /// The turns of agents that one run takes at most; none without a plan.
    pub turns: Option<Bound>,
}

/// What one run of a swarm uses at most.
#[derive(Clone, Debug)]
pub struct Swarm {
    /// Its name in the plan.
    pub name: String,
    /// What it starts.
    pub launches: Bound,
    /// The turns of agents.
    pub turns: Bound,
}

/// Whether steps can run. Of the others nothing is known: they could not be read, or wait for each other.
#[derive(Clone, Copy, Debug, Default)]
pub struct Runs {
    /// All of them.
    pub all: usize,
    /// Those that a run can come to.
    pub can: usize,
    /// Those that never run.
    pub never: usize,
}

/// Values of steps where they are read. The others may be missing there, or were not looked at.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outputs {
    /// All places.
    pub read: usize,
    /// Those where the value is certainly there.
    pub present: usize,
    /// Those that do without: a default, or a question whether it is there.
    pub guarded: usize,
}

/// Values over which steps branch.
#[derive(Clone, Copy, Debug, Default)]
pub struct Routes {
    /// Those of which it is known whether a step takes every case.
    pub branches: usize,
    /// Those of which it does.
    pub exhaustive: usize,
}

/// What the agents of a pipeline are given.
#[derive(Clone, Debug, Default)]
pub struct Prompts {
    /// The steps that ask an agent.
    pub all: usize,
    /// Those whose turn has a bound.
    pub bounded: usize,
    /// The largest of these.
    pub largest: Option<Largest>,
}

/// The largest prompt of a pipeline: all that the first turn is given.
#[derive(Clone, Debug)]
pub struct Largest {
    /// The step.
    pub step: String,
    /// The tokens that its turn is given at most.
    pub tokens: u64,
    /// Whether they were counted with the tokenizer of the agent's model.
    pub exact: bool,
    /// The tokens that the model can take, where its provider declares them.
    pub window: Option<u64>,
}
