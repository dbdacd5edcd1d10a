//! Builds the taint graph of a model: one part for each call of a pipeline, and one for each task that starts a swarm.
//!
//! In: the model. Out: a [`Graph`] with all its marks. The texts of one caller do not reach another one, unless there
//! are so many calls that they have to share the nodes of a pipeline.

use std::collections::HashMap;

use super::graph::{Gate, Graph, Kind, Mark, Marks, Via};
use super::label::{Label, Labels};
use super::powers::{self, Secrets};
use super::{command, gates, paths};
use crate::ast::{self, Name, TypeExpr, TypeKind};
use crate::model::{Body, Model, Pipeline, Step};
use crate::source::{Sources, Span};

/// Nodes beyond what the spec itself has, before calls share what they call.
const SPARE: usize = 10_000;

/// How deep calls may stand in each other before they share what they call.
const DEEPEST: usize = 8;

/// Builds the graph of a model.
pub(crate) fn build_graph(model: &Model<'_>, sources: &Sources) -> Graph {
    let secrets = Secrets::new(model);
    let steps: usize = model.pipelines.iter().map(|pipeline| pipeline.steps.len()).sum();
    let mut builder = Builder {
        model,
        sources,
        labels: Labels::new(model.spec, &model.tables),
        agents: powers::mark_agents(model, &secrets),
        marks: vec![None; model.pipelines.len()],
        graph: Graph::default(),
        most: 2 * steps + SPARE,
        open: Vec::new(),
        shared: HashMap::new(),
        files: paths::Files::default(),
        worktrees: HashMap::new(),
        teams: HashMap::new(),
        results: HashMap::new(),
        stdin: None,
        secrets,
    };
    builder.run();
    // Only now all writers and readers are known.
    builder.files.connect_files(&mut builder.graph);
    builder.graph
}

/// A pipeline in one of the places where it runs.
#[derive(Clone)]
pub(super) struct Instance {
    pub pipeline: usize,
    /// The node of each step.
    pub steps: Vec<usize>,
    /// The node of each parameter.
    pub params: Vec<usize>,
    depth: usize,
}

pub(super) struct Builder<'m, 'a> {
    pub model: &'m Model<'a>,
    pub sources: &'m Sources,
    pub labels: Labels<'m>,
    pub agents: Vec<Marks>,
    /// The marks of the steps of each pipeline, worked out when it is first used.
    marks: Vec<Option<Vec<Marks>>>,
    pub graph: Graph,
    /// The nodes from which on calls share.
    most: usize,
    /// Instances whose texts have not been followed yet.
    open: Vec<Instance>,
    /// The instance that calls share when there are too many.
    shared: HashMap<usize, Instance>,
    pub files: paths::Files,
    worktrees: HashMap<String, usize>,
    /// The swarms that were built last, by index.
    pub teams: HashMap<usize, usize>,
    /// What comes of a swarm, by its node.
    pub results: HashMap<usize, Vec<usize>>,
    stdin: Option<usize>,
    secrets: Secrets<'m>,
}

impl<'m, 'a> Builder<'m, 'a> {
    fn run(&mut self) {
        let model = self.model;
        let mut called = vec![false; model.pipelines.len()];
        let mut started = vec![false; model.spec.swarms.len()];
        for step in model.pipelines.iter().flat_map(|pipeline| &pipeline.steps) {
            match step.body {
                Body::Call { pipeline: Some(pipeline), .. } => called[pipeline] = true,
                Body::Swarm { swarm: Some(swarm), .. } => started[swarm] = true,
                _ => {}
            }
        }
        let mut seen = vec![false; model.pipelines.len()];
        // What is called in a circle has no first caller: it begins with itself.
        for only_called in [false, true] {
            for pipeline in 0..model.pipelines.len() {
                if seen[pipeline] || called[pipeline] != only_called {
                    continue;
                }
                let instance = self.add_instance(pipeline, 0);
                self.open.push(instance);
                while let Some(instance) = self.open.pop() {
                    seen[instance.pipeline] = true;
                    self.connect_texts(&instance);
                }
            }
        }
        // What no step starts is checked as well.
        for (swarm, _) in started.iter().enumerate().filter(|(_, started)| !**started) {
            self.add_swarm(swarm, None);
        }
    }

    /// The nodes of a pipeline.
    fn add_instance(&mut self, pipeline: usize, depth: usize) -> Instance {
        let model = self.model;
        let found = &model.pipelines[pipeline];
        let marks = match self.marks[pipeline].take() {
            Some(marks) => marks,
            None => found.steps.iter().map(|step| self.step_marks(found, step)).collect(),
        };
        let steps = found.steps.iter().zip(&marks).map(|(step, marks)| {
            let kind = match step.body {
                Body::Gate { .. } => Kind::Gate,
                _ if step.agent.is_some() => Kind::Turn,
                _ => Kind::Step,
            };
            let node = self.graph.add_node(step.name(), kind, step.ast.name.span);
            self.graph.nodes[node].with_item = step.ast.for_each.as_ref().is_some_and(|each| each.with_item);
            self.graph.nodes[node].marks = marks.clone();
            node
        });
        let steps = steps.collect();
        self.marks[pipeline] = Some(marks);
        let params = &found.ast.params;
        let params =
            params.iter().map(|param| self.graph.add_node(&*param.name.value, Kind::Parameter, param.name.span));
        Instance { pipeline, steps, params: params.collect(), depth }
    }

    /// The agents that sum up files for what a step reads.
    fn list_summarizers(&self, step: &Step<'a>) -> Vec<usize> {
        let given = step.context.iter().copied().chain(step.reads.iter().filter_map(|read| read.pack()));
        self.model.taken_in(given).into_iter().flat_map(|pack| self.model.packs[pack].summary_agents()).collect()
    }

    fn step_marks(&self, pipeline: &Pipeline<'a>, step: &Step<'a>) -> Marks {
        let name = step.name();
        let mut marks = Marks::default();
        if let Some(agent) = step.agent {
            let secret = self.secrets.secrets_of(&step.ast.env).next();
            marks.private = secret.map(|(secret, place)| Mark {
                span: place.span,
                text: format!("`{name}` has the secret `{}` in its environment", secret.name.value),
                agent: None,
            });
            marks.merge(&self.agents[agent]);
            if marks.privileged.is_some() && marks.private.is_none() {
                let commands = self.model.agents[agent]
                    .ast
                    .can
                    .iter()
                    .any(|can| can.value == swarmc_plan::Capability::RunCommands);
                let secret = self.secrets.secrets_of(&pipeline.ast.env).next().filter(|_| commands);
                marks.private = secret.map(|(secret, place)| Mark {
                    span: place.span,
                    text: format!(
                        "`{name}` runs commands with the secret `{}` in their environment",
                        secret.name.value
                    ),
                    agent: None,
                });
            }
        }
        let fallbacks = step.agent.into_iter().flat_map(|agent| self.model.list_fallbacks(agent));
        // They may work in the place of the agent, or for it.
        for agent in step.fixer.into_iter().chain(fallbacks).chain(self.list_summarizers(step)) {
            marks.merge(&self.agents[agent]);
        }
        for started in command::list_body_commands(step, self.sources) {
            let mark = |does: &str| {
                Some(Mark { span: started.span(), text: format!("`{}` {does}", started.name()), agent: None })
            };
            if marks.untrusted.is_none() && command::can_fetch(&started.simple) {
                marks.untrusted = mark("fetches what strangers wrote");
            }
            if marks.private.is_none() && command::reads_private(&started.simple) {
                marks.private = mark("prints private data");
            }
            if marks.exit.is_none() && command::can_send(&started.simple) {
                marks.exit = mark("sends to the outside");
            }
        }
        if let Some(gate) = step.body.gate() {
            let text = gate.asks.iter().find(|field| self.labels.type_label(&field.kind) == Label::Arbitrary);
            marks.untrusted = text.map(|field| Mark {
                span: field.name.span,
                text: format!("a person writes `{}` at `{name}`", field.name.value),
                agent: None,
            });
        }
        marks
    }

    /// Follows the texts of the steps of an instance.
    fn connect_texts(&mut self, instance: &Instance) {
        let model = self.model;
        let pipeline = &model.pipelines[instance.pipeline];
        let gates = gates::Gates::new(pipeline);
        // The gates are those of this pipeline, and judge its own edges alone.
        let first = self.graph.edges.len();
        for index in 0..pipeline.steps.len() {
            self.connect_reads(instance, index);
            self.step_files(instance, index);
        }
        self.connect_packs(instance);
        self.connect_sessions(instance);
        self.pipeline_edges(instance);
        // Most pipelines have no gate, and need no map.
        let step_of: HashMap<usize, usize> = match gates.is_empty() {
            true => HashMap::new(),
            false => instance.steps.iter().enumerate().map(|(step, &node)| (node, step)).collect(),
        };
        for edge in &mut self.graph.edges[first..] {
            if let (Some(&from), Some(&to)) = (step_of.get(&edge.from), step_of.get(&edge.to)) {
                edge.gate = gates.find_gate(pipeline, from, to);
            }
        }
    }

    /// What a step calls, ready to be passed arguments; its value comes back.
    pub(super) fn add_call(&mut self, instance: &Instance, step: usize, target: usize) -> Instance {
        // With nodes of its own, what one call is given does not come out of another.
        let share = instance.depth >= DEEPEST || self.graph.nodes.len() >= self.most;
        let callee = match self.shared.get(&target) {
            Some(callee) if share => callee.clone(),
            _ => {
                let callee = self.add_instance(target, instance.depth + 1);
                if share {
                    self.shared.insert(target, callee.clone());
                }
                self.open.push(callee.clone());
                callee
            }
        };
        let results = &self.model.pipelines[target].result;
        for &result in results {
            if self.output_label(target, result, &[]) == Label::Arbitrary {
                let span = self.model.pipelines[instance.pipeline].steps[step].ast.name.span;
                self.graph.add_edge(callee.steps[result], instance.steps[step], span, Via::Returns);
            }
        }
        callee
    }

    /// What the output of a step, or a field of it, can carry.
    pub(super) fn output_label(&self, pipeline: usize, step: usize, fields: &[Name]) -> Label {
        let found = &self.model.pipelines[pipeline].steps[step];
        if let Some(gate) = found.body.gate() {
            let of = |field: &ast::Field| self.labels.type_label(&field.kind);
            return match fields.split_first() {
                None => gate.asks.iter().map(of).max().unwrap_or(Label::Fixed),
                Some((first, _)) => {
                    gate.asks.iter().find(|field| field.name.value == first.value).map_or(Label::Fixed, of)
                }
            };
        }
        match self.output_type(pipeline, step) {
            Some(kind) => self.labels.field_label(kind, fields),
            None => Label::Arbitrary,
        }
    }

    /// The declared type of a step's output; that of a call is its result's. None where it can hold free text besides.
    pub(super) fn output_type(&self, pipeline: usize, step: usize) -> Option<&'m TypeExpr> {
        let (mut pipeline, mut step) = (pipeline, step);
        // Calls in a circle are reported elsewhere.
        for _ in 0..DEEPEST * 4 {
            let found = &self.model.pipelines[pipeline].steps[step];
            // Its results hold the items, which are of any type.
            if found.ast.for_each.as_ref().is_some_and(|each| each.with_item) {
                return None;
            }
            match found.body {
                Body::Call { pipeline: Some(target), .. } => {
                    step = *self.model.pipelines[target].result.first()?;
                    pipeline = target;
                }
                _ => return found.ast.output.kind.as_ref().filter(|kind| kind.kind != TypeKind::Unknown),
            }
        }
        None
    }

    /// The text that the caller pipes into the run: its author is unknown.
    pub(super) fn stdin_node(&mut self, span: Span) -> usize {
        *self.stdin.get_or_insert_with(|| {
            let node = self.graph.add_node("stdin", Kind::Stdin, span);
            self.graph.nodes[node].marks.untrusted =
                Some(Mark { span, text: "what is piped into the run comes from outside".to_owned(), agent: None });
            node
        })
    }

    /// A folder that several work in.
    pub(super) fn worktree_node(&mut self, name: &Name) -> usize {
        if let Some(&node) = self.worktrees.get(&name.value) {
            return node;
        }
        let node = self.graph.add_node(&*name.value, Kind::Worktree, name.span);
        self.worktrees.insert(name.value.clone(), node);
        node
    }

    /// Adds the edges between a node and its working folder: a writer leaves text there, and agents read it.
    pub(super) fn works_in(&mut self, node: usize, folder: usize, span: Span, writes: bool) {
        if writes {
            self.graph.add_edge(node, folder, span, Via::Joins);
        }
        if self.graph.nodes[node].is_steerable() {
            self.graph.add_edge(folder, node, span, Via::Reads);
        }
    }

    /// Whether a swarm may be built anew, rather than be shared by those who start it.
    pub(super) fn has_room(&self) -> bool {
        self.graph.nodes.len() < self.most
    }
}

impl Gate {
    /// Whether free text passes without a decision.
    pub(crate) fn is_open(self) -> bool {
        self == Gate::Open
    }
}
