//! What can happen in a pipeline, as formulas over what its steps do and what its conditions read.
//!
//! Questions go in: can this value be missing where it is read, can this step ever run. Answers come out, with a route
//! that shows it. Formulas are built on demand, for the steps that a question leads to, and never path by path; where a
//! question is too large, the answer says so.

mod cases;
mod condition;
pub(crate) mod diagram;
mod ends;
mod kinds;
mod order;
mod place;
mod proof;
mod route;
mod values;

use std::collections::BTreeMap;

use crate::ast;
use crate::model::{Body, Model, Pipeline};
use condition::Value;
use diagram::{Diagram, Formula, Variable};
use ends::{Ends, Task};
use values::{Key, Vocabulary};

pub(crate) use cases::{Cover, Uncovered};
pub(crate) use ends::can_fail;
pub(crate) use proof::{Proofs, assumed, ends as ends_of, leaves, names};
pub(crate) use route::Missing;

/// A pipeline and what is known of it so far.
pub(crate) struct Flow<'p, 'a> {
    model: &'p Model<'a>,
    pipeline: &'p Pipeline<'a>,
    diagram: Diagram,
    /// Where each step stands in the order of needs.
    position: Vec<usize>,
    /// The steps by name, `_` for `-`.
    steps: BTreeMap<String, usize>,
    vocabulary: Vocabulary,
    values: BTreeMap<Key, Value>,
    atoms: BTreeMap<String, Variable>,
    outcomes: Vec<Option<Variable>>,
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
    /// The pipelines that have a value whenever they succeed.
    sure: &'p [bool],
    /// The steps looked at to tell what waits for what.
    looks: usize,
    /// The variables so far, so that no two have one rank.
    variables: u64,
}

/// A [`Flow`] that is made when the first question comes: most pipelines raise none.
pub(crate) struct Lazy<'p, 'a> {
    model: &'p Model<'a>,
    pipeline: &'p Pipeline<'a>,
    sure: &'p [bool],
    flow: Option<Flow<'p, 'a>>,
}

impl<'p, 'a> Lazy<'p, 'a> {
    /// Of a pipeline whose needs have no cycle; `sure` is what [`sure`] says.
    pub(crate) fn new(model: &'p Model<'a>, pipeline: &'p Pipeline<'a>, sure: &'p [bool]) -> Lazy<'p, 'a> {
        Lazy { model, pipeline, sure, flow: None }
    }

    pub(crate) fn get(&mut self) -> &mut Flow<'p, 'a> {
        self.flow.get_or_insert_with(|| Flow::new(self.model, self.pipeline, self.sure))
    }
}

impl<'p, 'a> Flow<'p, 'a> {
    /// The view of a pipeline whose needs have no cycle.
    fn new(model: &'p Model<'a>, pipeline: &'p Pipeline<'a>, sure: &'p [bool]) -> Flow<'p, 'a> {
        let count = pipeline.steps.len();
        let mut position = vec![0; count];
        for (at, &step) in pipeline.order.sorted.iter().enumerate() {
            position[step] = at;
        }
        let (mut children, mut handlers) = (vec![Vec::new(); count], vec![Vec::new(); count]);
        let mut readers: Vec<Vec<usize>> = vec![Vec::new(); count];
        for (index, step) in pipeline.steps.iter().enumerate() {
            if let Some(holder) = step.within {
                children[holder].push(index);
            }
            for need in step.needs.iter().filter(|need| need.handles) {
                handlers[need.step].push(index);
            }
            for target in step.reads.iter().filter_map(|read| read.step) {
                if readers[target].last() != Some(&index) {
                    readers[target].push(index);
                }
            }
        }
        let steps = pipeline.steps.iter().enumerate().map(|(index, step)| (plain(step.name()), index)).collect();
        let mut flow = Flow {
            model,
            pipeline,
            diagram: Diagram::new(),
            position,
            steps,
            vocabulary: Vocabulary::default(),
            values: BTreeMap::new(),
            atoms: BTreeMap::new(),
            outcomes: vec![None; count],
            runs: vec![None; count],
            ends: vec![None; count],
            making: Vec::new(),
            children,
            handlers,
            readers,
            sure,
            looks: 0,
            variables: 0,
        };
        flow.learn();
        flow
    }

    fn learn(&mut self) {
        let mut vocabulary = Vocabulary::default();
        let conditions = self.pipeline.steps.iter().enumerate().map(|(step, resolved)| (Some(step), &resolved.when));
        for (reader, when) in conditions {
            if let Some(tree) = when.as_ref().and_then(|when| when.expression.tree.as_ref()) {
                vocabulary.learn(tree, &|path| self.key(reader, path));
            }
        }
        let of_loops = self.pipeline.steps.iter().flat_map(|step| match &step.body {
            Body::Loop { until, .. } => until.as_slice(),
            _ => &[],
        });
        for tree in self.pipeline.until.iter().chain(of_loops).filter_map(|until| until.expression.tree.as_ref()) {
            vocabulary.learn(tree, &|path| self.key(None, path));
        }
        self.vocabulary = vocabulary;
    }

    fn step(&self, name: &str) -> Option<usize> {
        self.steps.get(&plain(name)).copied()
    }

    fn param(&self, name: &str) -> Option<&'a ast::Param> {
        let own = self.pipeline.ast.params.iter().chain(&self.model.spec.params);
        own.into_iter().find(|param| plain(&param.name.value) == name)
    }

    /// A new variable, tested before those of earlier positions.
    fn fresh(&mut self, position: usize, size: usize) -> Variable {
        self.variables += 1;
        self.diagram.variable(((position as u64) << 32) + self.variables, size)
    }
}

/// The pipelines that have a value whenever they succeed, by index; empty where nothing is called.
pub(crate) fn sure(model: &Model<'_>) -> Vec<bool> {
    let called = |pipeline: &Pipeline<'_>| -> Vec<usize> {
        let of_step = |body: &Body| if let Body::Call { pipeline, .. } = body { *pipeline } else { None };
        pipeline.steps.iter().filter_map(|step| of_step(&step.body)).collect()
    };
    let mut open: Vec<(usize, bool)> = model.pipelines.iter().flat_map(called).map(|callee| (callee, false)).collect();
    if open.is_empty() {
        return Vec::new();
    }
    let mut sure = vec![false; model.pipelines.len()];
    let mut seen = vec![false; model.pipelines.len()];
    // Those that a pipeline calls come before it.
    while let Some((callee, ready)) = open.pop() {
        let pipeline = &model.pipelines[callee];
        if ready {
            let known = sure.clone();
            sure[callee] = pipeline.order.cycles.is_empty() && Flow::new(model, pipeline, &known).has_value();
        } else if !std::mem::replace(&mut seen[callee], true) {
            open.push((callee, true));
            open.extend(called(pipeline).into_iter().map(|callee| (callee, false)));
        }
    }
    sure
}

fn plain(name: &str) -> String {
    name.replace('-', "_")
}
