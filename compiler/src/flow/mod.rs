//! What can happen in a pipeline, as formulas over what its steps do and what its conditions read.
//!
//! Questions go in: can this value be missing where it is read, can this step ever run. Answers come out, with a route
//! that shows it. Formulas are built on demand, for the steps that a question leads to, and never path by path. The work
//! for all questions of a spec is bounded (`budget.rs`): where one is too large, the answer says so. What is built in the
//! place of such a formula allows more than really happens, so that what cannot be stays proved, and what can be is only
//! said where that plays no part.

mod budget;
mod cases;
mod condition;
pub(crate) mod diagram;
mod ends;
mod kinds;
mod order;
mod place;
mod proof;
mod rounds;
mod route;
mod values;

use std::collections::{BTreeMap, BTreeSet};

use crate::ast;
use crate::model::{Body, Model, Pipeline};
use crate::template::Root;
use condition::Value;
use diagram::{Diagram, Formula, NEVER, Sized, TooLarge, Variable};
use ends::{Ends, Task};
use values::{Key, Vocabulary};

pub(crate) use budget::Budget;
pub(crate) use cases::{Cover, Uncovered};
pub(crate) use ends::can_fail;
pub(crate) use proof::{Proofs, is_about, is_assumed};
pub(crate) use route::{Hop, Missing};

/// The loops around a step that the order of variables looks at.
const MOST_NESTED: usize = 8;

/// A pipeline and what is known of it so far.
pub(crate) struct Flow<'p, 'a> {
    model: &'p Model<'a>,
    pipeline: &'p Pipeline<'a>,
    diagram: Diagram<'p>,
    /// Where each step stands in the order of needs.
    position: Vec<usize>,
    /// Where its variables stand among those of others, from below: next to what they are read with.
    depth: Vec<usize>,
    /// The parameters by name, `_` for `-`.
    params: BTreeMap<String, &'a ast::Param>,
    /// The steps by name, `_` for `-`.
    steps: BTreeMap<String, usize>,
    vocabulary: Vocabulary,
    values: BTreeMap<Key, Value>,
    atoms: BTreeMap<String, Variable>,
    /// The variables of values of steps that take one of a few cases.
    branching: BTreeSet<Variable>,
    outcomes: Vec<Option<Variable>>,
    /// When the `when` of each step holds.
    whens: Vec<Option<Sized>>,
    /// When another round of a loop follows, or of the pipeline.
    rounds: BTreeMap<Option<usize>, Sized>,
    runs: Vec<Option<Formula>>,
    ends: Vec<Option<Ends>>,
    /// What is being built, from the outside.
    making: Vec<Task>,
    /// The steps that each loop holds.
    children: Vec<Vec<usize>>,
    /// The steps that handle a failure of each, if they run.
    handlers: Vec<Vec<usize>>,
    /// The steps that read anything of each.
    readers: Vec<Vec<usize>>,
    /// The steps that read each parameter, `_` for `-`.
    param_readers: BTreeMap<String, Vec<usize>>,
    /// The loops.
    loops: Vec<usize>,
    /// Whether each pipeline has a value whenever it succeeds.
    sure: &'p [Answer],
    /// The needs looked at to tell what waits for what.
    looks: usize,
    /// The variables so far, so that no two have one rank.
    variables: u64,
}

/// What comes of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Yes,
    No,
    /// It is too large.
    Unknown,
}

/// A [`Flow`] that is made when the first question comes: most pipelines raise none.
pub(crate) struct Lazy<'p, 'a> {
    model: &'p Model<'a>,
    pipeline: &'p Pipeline<'a>,
    sure: &'p [Answer],
    budget: &'p Budget<'p>,
    flow: Option<Flow<'p, 'a>>,
}

impl<'p, 'a> Lazy<'p, 'a> {
    /// Of a pipeline whose needs have no cycle; `sure` is what [`sure`] says.
    pub(crate) fn new(
        model: &'p Model<'a>,
        pipeline: &'p Pipeline<'a>,
        sure: &'p [Answer],
        budget: &'p Budget<'p>,
    ) -> Lazy<'p, 'a> {
        Lazy { model, pipeline, sure, budget, flow: None }
    }

    pub(crate) fn get(&mut self) -> &mut Flow<'p, 'a> {
        self.flow.get_or_insert_with(|| Flow::new(self.model, self.pipeline, self.sure, self.budget))
    }
}

impl<'p, 'a> Flow<'p, 'a> {
    /// The view of a pipeline whose needs have no cycle.
    fn new(
        model: &'p Model<'a>,
        pipeline: &'p Pipeline<'a>,
        sure: &'p [Answer],
        budget: &'p Budget<'p>,
    ) -> Flow<'p, 'a> {
        let count = pipeline.steps.len();
        let mut position = vec![0; count];
        for (at, &step) in pipeline.order.sorted.iter().enumerate() {
            position[step] = at;
        }
        let (mut children, mut handlers) = (vec![Vec::new(); count], vec![Vec::new(); count]);
        let mut readers: Vec<Vec<usize>> = vec![Vec::new(); count];
        let mut param_readers: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (index, step) in pipeline.steps.iter().enumerate() {
            if let Some(holder) = step.within {
                children[holder].push(index);
            }
            for need in step.needs.iter().filter(|need| need.handles) {
                handlers[need.step].push(index);
            }
            for target in step.reads.iter().filter_map(|read| read.step()) {
                // The reads of one step come one after another: the last reader tells whether it is there.
                if readers[target].last() != Some(&index) {
                    readers[target].push(index);
                }
            }
            for name in step.reads.iter().filter(|read| read.root == Root::Param).filter_map(|read| read.name.as_ref())
            {
                let readers = param_readers.entry(normalize_name(name)).or_default();
                if readers.last() != Some(&index) {
                    readers.push(index);
                }
            }
        }
        let steps =
            pipeline.steps.iter().enumerate().map(|(index, step)| (normalize_name(step.name()), index)).collect();
        let loops = (0..count).filter(|&step| matches!(pipeline.steps[step].body, Body::Loop { .. })).collect();
        let mut params = BTreeMap::new();
        // A parameter of the pipeline hides one of the workflow.
        for param in pipeline.ast.params.iter().chain(&model.spec.params) {
            params.entry(normalize_name(&param.name.value)).or_insert(param);
        }
        let mut flow = Flow {
            model,
            pipeline,
            diagram: Diagram::new(budget),
            depth: variable_depths(pipeline, &children),
            position,
            params,
            steps,
            vocabulary: Vocabulary::default(),
            values: BTreeMap::new(),
            atoms: BTreeMap::new(),
            branching: BTreeSet::new(),
            outcomes: vec![None; count],
            whens: vec![None; count],
            rounds: BTreeMap::new(),
            runs: vec![None; count],
            ends: vec![None; count],
            making: Vec::new(),
            children,
            handlers,
            readers,
            param_readers,
            loops,
            sure,
            looks: 0,
            variables: 0,
        };
        flow.learn_vocabulary();
        flow
    }

    fn learn_vocabulary(&mut self) {
        let mut vocabulary = Vocabulary::default();
        let conditions = self.pipeline.steps.iter().enumerate().map(|(step, resolved)| (Some(step), &resolved.when));
        for (reader, when) in conditions {
            if let Some(tree) = when.as_ref().and_then(|when| when.expression.tree.as_ref()) {
                vocabulary.learn_comparisons(tree, &|path| self.expression_key(reader, path));
            }
        }
        let of_loops = self.pipeline.steps.iter().flat_map(|step| match &step.body {
            Body::Loop { until, .. } => until.as_slice(),
            _ => &[],
        });
        for tree in self.pipeline.until.iter().chain(of_loops).filter_map(|until| until.expression.tree.as_ref()) {
            vocabulary.learn_comparisons(tree, &|path| self.expression_key(None, path));
        }
        self.vocabulary = vocabulary;
    }

    fn find_step(&self, name: &str) -> Option<usize> {
        self.steps.get(&normalize_name(name)).copied()
    }

    fn find_param(&self, name: &str) -> Option<&'a ast::Param> {
        self.params.get(name).copied()
    }

    /// The rank of what a step is asked about once it has ended.
    fn rank_after(&self, step: usize) -> usize {
        2 * self.depth[step] + 2
    }

    /// The rank of what a step asks besides how others ended; the lowest for the end of a round.
    fn rank_before(&self, reader: Option<usize>) -> usize {
        reader.map_or(0, |reader| 2 * self.depth[reader] + 1)
    }

    /// A new variable, tested before those of lower ranks.
    fn fresh_variable(&mut self, rank: usize, size: usize) -> Variable {
        let rank = self.next(rank);
        self.diagram.add_variable(rank, size)
    }

    /// A new variable for what was too large.
    fn rough_variable(&mut self, rank: usize) -> Variable {
        let rank = self.next(rank);
        self.diagram.add_rough_variable(rank)
    }

    /// No two variables have one rank.
    fn next(&mut self, rank: usize) -> u64 {
        self.variables += 1;
        ((rank as u64) << 32) + self.variables
    }

    /// Whether something never is so.
    fn prove_never(&mut self, formula: Sized) -> Answer {
        match formula {
            Ok(NEVER) => Answer::Yes,
            Ok(formula) if self.diagram.is_exact(formula) => Answer::No,
            // What holds whatever the rough variables are proves something all the same.
            Ok(formula) => match self.diagram.find_assignment(formula) {
                Ok(_) => Answer::No,
                Err(TooLarge) => Answer::Unknown,
            },
            Err(TooLarge) => Answer::Unknown,
        }
    }
}

/// The order of the variables of steps: those that conditions bring together stand next to each other, so that formulas
/// over long chains and wide trees stay small. Each step comes after all that it needs, the largest part first, and what
/// else it needs directly before it.
fn variable_depths(pipeline: &Pipeline<'_>, children: &[Vec<usize>]) -> Vec<usize> {
    let steps = &pipeline.steps;
    // What is inside a loop needs what the loop needs.
    let before = |step: usize| {
        let around = std::iter::successors(steps[step].within, |&holder: &usize| steps[holder].within);
        let outer = around.take(MOST_NESTED).flat_map(|holder| &steps[holder].needs);
        let needs = steps[step].needs.iter().chain(outer).map(|need| need.step);
        needs.chain(children[step].iter().copied()).collect::<Vec<usize>>()
    };
    let mut sizes = vec![1_usize; steps.len()];
    for &step in &pipeline.order.sorted {
        // A shared need counts once for each way to it, which doubles at each join of a chain: the sum saturates.
        sizes[step] = steps[step].needs.iter().fold(1_usize, |size, need| size.saturating_add(sizes[need.step]));
    }
    let mut depths = vec![usize::MAX; steps.len()];
    let mut seen = vec![false; steps.len()];
    let mut next = 0;
    let mut open = Vec::new();
    for &last in pipeline.order.sorted.iter().rev() {
        open.push((last, false));
        while let Some((step, ready)) = open.pop() {
            if ready {
                depths[step] = next;
                next += 1;
            } else if !std::mem::replace(&mut seen[step], true) {
                open.push((step, true));
                let mut before = before(step);
                before.retain(|&before| !seen[before]);
                // What is pushed last comes first.
                before.sort_by_key(|&before| (sizes[before], std::cmp::Reverse(before)));
                open.extend(before.into_iter().map(|before| (before, false)));
            }
        }
    }
    depths
}

/// Whether each pipeline has a value whenever it succeeds, by index; empty where nothing is called.
pub(crate) fn check_pipeline_values(model: &Model<'_>, budget: &Budget<'_>) -> Vec<Answer> {
    let called = |pipeline: &Pipeline<'_>| -> Vec<usize> { pipeline.called_pipelines().collect() };
    let mut open: Vec<(usize, bool)> = model.called_pipelines().into_iter().map(|callee| (callee, false)).collect();
    if open.is_empty() {
        return Vec::new();
    }
    // In a circle of calls, a pipeline is asked about before it is known: it may lack its value then.
    let mut sure = vec![Answer::No; model.pipelines.len()];
    let mut seen = vec![false; model.pipelines.len()];
    // Those that a pipeline calls come before it.
    while let Some((callee, ready)) = open.pop() {
        let pipeline = &model.pipelines[callee];
        if ready {
            if pipeline.order.cycles.is_empty() {
                sure[callee] = Flow::new(model, pipeline, &sure, budget).has_value();
            }
        } else if !std::mem::replace(&mut seen[callee], true) {
            open.push((callee, true));
            open.extend(called(pipeline).into_iter().map(|callee| (callee, false)));
        }
    }
    sure
}

fn normalize_name(name: &str) -> String {
    name.replace('-', "_")
}
