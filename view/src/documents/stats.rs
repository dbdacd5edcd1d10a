//! What `swarmc check --stats` counts.

use std::ops::AddAssign;

use schemars::JsonSchema;
use serde::Serialize;
use swarmc_plan::Bound;

/// What a check looked at and proved.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CheckStats {
    /// The sums over all specs; what several read counts for each. Nothing where no spec was counted.
    pub all: Option<Counts>,
    /// Spec by spec.
    pub specs: Vec<SpecStats>,
}

/// What can be summed. Of a spec with errors, as far as it could be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Counts {
    /// The texts that were read: the spec, what it imports, prompts, scripts, and what it needs of the library.
    pub files: usize,
    /// The places of the spec, and of what it imports, whose name leads to what it names.
    pub references: usize,
    /// The `<<…>>` that read a value of the run.
    pub directives: usize,
    /// The places in conditions and `{{ }}` that read a value of the run.
    pub expressions: usize,
    /// The fields of values that these read.
    pub fields: Fields,
    /// The steps of pipelines.
    pub steps: StepCounts,
    /// The places where a step reads the value of another, or its own of the round before.
    pub outputs: OutputCounts,
    /// The values over which the conditions of steps branch.
    pub routes: RouteCounts,
    /// The steps that ask an agent; nothing where there is no plan.
    pub prompts: Option<PromptCounts>,
    /// How free text can pass between steps, members, files and meeting places.
    pub flows: FlowCounts,
    /// Suppressions in the spec and its texts.
    pub suppressions: Suppressions,
}

/// A spec: its sums, and its pipelines and swarms.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SpecStats {
    /// Its sums.
    #[serde(flatten)]
    pub counts: Counts,
    /// The spec, as one would type it in the folder that swarmc ran in.
    pub spec: String,
    /// The pipelines that a run can come to.
    pub pipelines: Vec<PipelineStats>,
    /// The swarms that a run can come to; none where there is no plan.
    pub swarms: Vec<SwarmStats>,
}

/// A pipeline. Where the spec has errors there is no plan, and what comes of it is null.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PipelineStats {
    /// Its steps.
    pub steps: StepCounts,
    /// The places where its steps read values.
    pub outputs: OutputCounts,
    /// The values over which its steps branch.
    pub routes: RouteCounts,
    /// Its name in the plan.
    pub name: String,
    /// The processes and turns that one run starts at most.
    pub launches: Option<Bound>,
    /// The turns of agents that one run takes at most.
    pub turns: Option<Bound>,
    /// Its steps that ask an agent.
    pub prompts: Option<PipelinePrompts>,
}

/// A swarm.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SwarmStats {
    /// Its name in the plan.
    pub name: String,
    /// The processes and turns that it starts at most.
    pub launches: Bound,
    /// The turns of agents that it takes at most.
    pub turns: Bound,
}

/// The fields of values that directives and expressions read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Fields {
    /// All of them.
    pub read: usize,
    /// Those whose type is known.
    pub typed: usize,
}

/// The steps of pipelines. Of those that are neither, as they could not be read or wait for each other, nothing is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StepCounts {
    /// All of them.
    pub all: usize,
    /// Those that a run can come to.
    pub can_run: usize,
    /// Those that never run.
    pub never_run: usize,
}

/// The places where a step reads the value of another, or its own of the round before. A shared text counts for each step
/// that says it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OutputCounts {
    /// All of them.
    pub read: usize,
    /// Those where the value is certainly there.
    pub present: usize,
    /// Those that do without it.
    pub guarded: usize,
}

/// The values over which the conditions of steps branch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RouteCounts {
    /// Those of which it could be told whether every case is taken.
    pub branches: usize,
    /// Those of which it is.
    pub exhaustive: usize,
}

/// The steps that ask an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PromptCounts {
    /// All of them.
    pub all: usize,
    /// Those whose tokens have a bound.
    pub bounded: usize,
}

/// The steps of a pipeline that ask an agent.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PipelinePrompts {
    /// How many there are.
    #[serde(flatten)]
    pub counts: PromptCounts,
    /// The largest of these.
    pub largest: Option<Largest>,
}

/// All that the first turn of a step is given.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Largest {
    /// The step.
    pub step: String,
    /// The tokens at most.
    pub tokens: u64,
    /// Whether they were counted with the tokenizer of the agent's model.
    pub exact: bool,
    /// The tokens that the model can take; null where its provider declares none.
    pub window: Option<u64>,
}

/// How free text can pass between steps, members, files and meeting places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FlowCounts {
    /// The ways from one to another.
    pub ways: usize,
    /// The places where strangers write.
    pub untrusted: usize,
    /// The places that hold private data.
    pub private: usize,
    /// The places from which something can leave.
    pub exits: usize,
}

/// Suppressions in the spec and its texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Suppressions {
    /// All of them.
    pub written: usize,
    /// Those that hide something.
    pub used: usize,
    /// The problems that they hide.
    pub hidden: usize,
}

/// Adds field by field.
macro_rules! sum_fields {
    ($($counts:ident { $($field:ident),+ })+) => {
        $(impl AddAssign for $counts {
            fn add_assign(&mut self, other: $counts) {
                $(self.$field += other.$field;)+
            }
        })+
    };
}

sum_fields! {
    Fields { read, typed }
    StepCounts { all, can_run, never_run }
    OutputCounts { read, present, guarded }
    RouteCounts { branches, exhaustive }
    PromptCounts { all, bounded }
    FlowCounts { ways, untrusted, private, exits }
    Suppressions { written, used, hidden }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.files += other.files;
        self.references += other.references;
        self.directives += other.directives;
        self.expressions += other.expressions;
        self.fields += other.fields;
        self.steps += other.steps;
        self.outputs += other.outputs;
        self.routes += other.routes;
        self.add_prompts(other.prompts);
        self.flows += other.flows;
        self.suppressions += other.suppressions;
    }
}

impl Counts {
    /// Adds prompts; what is unknown adds nothing.
    pub fn add_prompts(&mut self, prompts: Option<PromptCounts>) {
        if let Some(prompts) = prompts {
            *self.prompts.get_or_insert_default() += prompts;
        }
    }
}
