//! What a check looked at and proved, in numbers.
//!
//! Nothing is analysed here: the checks say what they counted while they ran, names come from the index, bounds from the
//! plan. Of a spec with errors it is what could be read; what was not looked at is none, and never zero.

use std::collections::BTreeSet;

use swarmc_plan::{Bound, Plan};

use crate::index::{self, Role, SymbolKind};
use crate::load::Loader;
use crate::model::{self, Body, Model};
use crate::source::Span;
use crate::tokens::O200k;

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

impl Pipeline {
    /// One of which nothing but its steps is known.
    pub(crate) fn new(pipeline: &model::Pipeline<'_>) -> Pipeline {
        let steps = Runs { all: pipeline.steps.len(), ..Runs::default() };
        Pipeline { name: pipeline.ast.name.value.clone(), steps, ..Pipeline::default() }
    }
}

impl Stats {
    /// Adds what a plan says.
    pub(crate) fn add_plan(&mut self, plan: &Plan) {
        for known in &mut self.pipelines {
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
        self.swarms = swarms.collect();
    }
}

fn count_prompts(plan: &Plan, pipeline: &swarmc_plan::Pipeline) -> Prompts {
    let turns = crate::bounds::count_turn_inputs(plan, pipeline, &O200k);
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

/// Counts the names and values that a spec and its texts read.
pub(crate) fn count_names(model: &Model<'_>, loader: &Loader<'_>) -> Names {
    let index = index::build_index(model, loader, &[]);
    let references: BTreeSet<Span> =
        index.occurrences.iter().filter(|found| found.role == Role::Reference).map(|found| found.span).collect();
    let known: BTreeSet<Span> = index
        .occurrences
        .iter()
        .filter(|found| found.role != Role::Definition && index.symbol(found.symbol).kind == SymbolKind::Field)
        .map(|found| found.span)
        .collect();
    let (mut directives, mut expressions, mut fields) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for read in list_reads(model) {
        if read.directive { &mut directives } else { &mut expressions }.insert(read.whole);
        fields.extend(read.fields.iter().map(|field| field.span));
    }
    let typed = fields.iter().filter(|field| known.contains(field)).count();
    Names {
        references: references.len(),
        directives: directives.len(),
        expressions: expressions.len(),
        fields: Fields { read: fields.len(), typed },
    }
}

/// Everything that texts and conditions read.
fn list_reads<'m>(model: &'m Model<'_>) -> impl Iterator<Item = &'m model::Read> {
    let of_steps = model.pipelines.iter().flat_map(|pipeline| &pipeline.steps).flat_map(|step| {
        let inner = match &step.body {
            Body::Loop { until_reads, .. } => until_reads.as_slice(),
            _ => &[],
        };
        step.reads.iter().chain(inner)
    });
    let of_pipelines =
        model.pipelines.iter().flat_map(|pipeline| pipeline.until_reads.iter().chain(&pipeline.env_reads));
    let of_providers = model.providers.iter().flat_map(|provider| &provider.env_reads);
    let of_servers = model.servers.iter().flat_map(|server| &server.env_reads);
    let of_swarms = model.swarms.iter().flat_map(|swarm| &swarm.reads);
    of_steps.chain(of_pipelines).chain(of_providers).chain(of_servers).chain(of_swarms)
}
