//! Resolves pipelines: their steps as one flat list, the needs of each step, and the result of the pipeline.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::text::Has;
use super::{Resolver, files, needs, order, text};
use crate::ast;
use crate::code::Code;
use crate::diagnostic::Diagnostic;
use crate::files::Entry;
use crate::mapped_text::MappedText;
use crate::model::{Agent, Body, Condition, Pipeline, Read, Step};
use crate::source::{FileId, Span};
use crate::suggest;
use crate::symbols::NameKind;
use crate::symbols::names::Names;

/// How deep loops may stand in each other: a plan is read with bounded recursion.
const DEEPEST: usize = 16;

/// What the steps of a pipeline see.
pub(super) struct Within<'w> {
    /// The pipeline.
    pub(super) name: &'w str,
    /// The file that it stands in.
    pub(super) file: FileId,
    pub(super) steps: &'w Names,
    pub(super) params: &'w Names,
    /// The patterns of paths that steps say they write.
    pub(super) writes: Vec<&'w str>,
    /// Where the `files` of its steps and of any agent are copied to.
    pub(super) copies: Vec<String>,
    /// Shared tasks that `use partial=#true` left out.
    pub(super) left_out: BTreeSet<&'w str>,
    /// The steps that an edge leads to.
    pub(super) receivers: BTreeSet<&'w str>,
    /// The tasks that may write to others, in declaration order.
    pub(super) talkers: Vec<&'w str>,
}

/// A step in its place.
pub(super) struct PlacedStep<'a> {
    pub(super) ast: &'a ast::Step,
    /// The loop that it stands in.
    pub(super) within: Option<usize>,
    /// Whether tasks that it refers to may be left out.
    pub(super) partial: bool,
}

impl<'a> Resolver<'_, 'a, '_, '_> {
    pub(super) fn resolve_pipeline(&mut self, pipeline: &'a ast::Pipeline, agents: &[Agent<'a>]) -> Pipeline<'a> {
        let params = self.resolve_params(pipeline);
        let list = self.list_steps(pipeline);
        let steps = Names::new("step", list.iter().map(|step| &step.ast.name), self.diagnostics);
        if let Some(path) = &pipeline.working_dir {
            let span = path.span(0..path.as_str().len());
            self.loader.find_entry(path.as_str(), Entry::Folder, span, None, self.diagnostics);
        }
        let own = list.iter().flat_map(|step| &step.ast.writes).map(|pattern| pattern.as_str());
        let writes = own.chain(self.made_across_calls().iter().copied()).collect();
        let files = list.iter().filter_map(|step| step.ast.files.as_deref());
        let files = files.chain(agents.iter().filter_map(|agent| agent.ast.files.as_ref()));
        let copies =
            files.flat_map(|files| files::copy_targets(files, &self.loader.sources)).map(|(place, _)| place).collect();
        let left_out = match list.iter().any(|step| step.partial) {
            true => {
                let tasks = self.spec.tasks.iter().map(|task| task.name.value.as_str());
                tasks.filter(|task| steps.find_exact(task).is_none()).collect()
            }
            false => BTreeSet::new(),
        };
        let talks = |step: &&PlacedStep<'_>| step.ast.body.as_ref().is_some_and(|body| body.kind().takes_turn());
        let talkers: Vec<&str> = list.iter().filter(talks).map(|step| step.ast.name.value.as_str()).collect();
        let mut receivers = list_receivers(pipeline);
        // The resolver does not know the receiver of a wrong edge, so every step counts as one.
        let is_wrong = |edges: &ast::Edges| {
            let unknown =
                |edge: &ast::Edge| [&edge.from, &edge.to].iter().any(|end| steps.find_exact(&end.value).is_none());
            self.diagnostics.has_report_at(edges.span) || edges.list.iter().any(unknown)
        };
        if pipeline.edges.as_ref().is_some_and(is_wrong) {
            receivers.extend(&talkers);
        }
        let within = Within {
            name: &pipeline.name.value,
            file: pipeline.name.span.file,
            steps: &steps,
            params: &params,
            writes,
            copies,
            left_out,
            receivers,
            talkers,
        };
        let env = self.resolve_variables(&pipeline.env);
        let env_reads = self.outside_reads(&env, Some((&params, pipeline.name.span.file)), "the `env` of a pipeline");
        let mut resolved: Vec<Step<'a>> = Vec::with_capacity(list.len());
        let mut declared = Vec::new();
        for (index, step) in list.iter().enumerate() {
            resolved.push(self.resolve_step(step, &within, agents));
            declared.extend(self.resolve_dependencies(index, step, &within));
        }
        if let Some(edges) = &pipeline.edges {
            self.resolve_edges(edges, &steps, &|name| {
                text::unknown_step(&name.value, &within, None, name.span, &str::to_owned)
            });
        }
        // A task may take files from one that is declared after it, so this waits until all steps are known.
        for index in 0..resolved.len() {
            let (awaits, made) = self.collect_awaits(&resolved, index, (&steps, pipeline.edges.as_ref()), agents);
            resolved[index].awaits = awaits;
            resolved[index].made.extend(made);
        }
        needs::add_declared_needs(&mut resolved, declared, self.diagnostics);
        self.guards_of_fields(&mut resolved);
        let (until, until_reads) = self.resolve_untils(&pipeline.until, &within);
        let order = order::order_steps(&mut resolved);
        let edges = pipeline.edges.iter().flat_map(|edges| &edges.list);
        let spawns = edges.filter(|edge| edge.kind == swarmc_plan::EdgeKind::Spawn);
        let spawns: BTreeMap<&str, Span> = spawns.map(|edge| (edge.to.value.as_str(), edge.span)).collect();
        let spawned = resolved.iter().map(|step| spawns.get(step.name()).copied()).collect();
        let mut result: Vec<usize> =
            pipeline.result.iter().filter_map(|name| self.step_named(name, &within, None)).collect();
        if pipeline.result.is_empty() {
            result.extend(sole_sink(&resolved));
        }
        Pipeline {
            ast: pipeline,
            steps: resolved,
            until,
            until_reads,
            env,
            env_reads,
            carries: Vec::new(),
            spawned,
            result,
            order,
        }
    }

    /// The pipeline's own parameters; a name that the workflow has too is reported.
    fn resolve_params(&mut self, pipeline: &'a ast::Pipeline) -> Names {
        let params = Names::new("parameter", pipeline.params.iter().map(|param| &param.name), self.diagnostics);
        for param in &pipeline.params {
            if let Some(outer) = self.tables.find_name(NameKind::Param, &param.name.value, false, param.name.span.file)
            {
                self.diagnostics.push(
                    Diagnostic::new(
                        Code::DuplicateDefinition,
                        format!("parameter `{}` is defined by the workflow too", param.name.value),
                    )
                    .label(param.name.span, "again here")
                    .label(self.spec.params[outer].name.span, "first here")
                    .help("rename one of them, or remove this one and read the workflow's"),
                );
            }
        }
        self.check_sources(&pipeline.params);
        self.uses.pipeline_params.push(vec![false; params.len()]);
        params
    }

    /// The steps of a pipeline in declaration order, each loop before what stands in it; shared tasks come first.
    fn list_steps(&mut self, pipeline: &'a ast::Pipeline) -> Vec<PlacedStep<'a>> {
        let mut list = Vec::with_capacity(pipeline.steps.len());
        self.taken_in(pipeline, &mut list);
        let mut open = vec![(pipeline.steps.iter(), None)];
        while let Some((steps, within)) = open.last_mut() {
            let within = *within;
            let Some(step) = steps.next() else {
                open.pop();
                continue;
            };
            let index = list.len();
            list.push(PlacedStep { ast: step, within, partial: false });
            let Some(ast::Body::Loop(body)) = &step.body else { continue };
            match open.len() > DEEPEST {
                true => self.diagnostics.push(
                    Diagnostic::new(Code::InputLimits, format!("loops stand in each other more than {DEEPEST} deep"))
                        .label(step.name.span, "too deep")
                        .help("make the inner loops a pipeline of their own, and `call` it"),
                ),
                false => open.push((body.steps.iter(), Some(index))),
            }
        }
        list
    }

    /// The shared tasks that a pipeline takes in.
    fn taken_in(&mut self, pipeline: &'a ast::Pipeline, list: &mut Vec<PlacedStep<'a>>) {
        let mut taken: Vec<(usize, Span)> = Vec::new();
        for used in &pipeline.uses {
            for name in &used.tasks {
                let Some(task) = self.tables.resolve_name(NameKind::Task, name, self.diagnostics) else { continue };
                self.uses.tasks[task] = true;
                if let Some((_, first)) = taken.iter().find(|(known, _)| *known == task) {
                    self.diagnostics.push(
                        Diagnostic::new(Code::Duplicate, format!("task `{}` is used twice", name.value))
                            .label(name.span, "again here")
                            .label(*first, "first here")
                            .help("remove one of them"),
                    );
                    continue;
                }
                taken.push((task, name.span));
                list.push(PlacedStep { ast: &self.spec.tasks[task], within: None, partial: used.partial });
            }
        }
    }

    /// Marks the guards that stand for a field that may be missing in a value that is there.
    fn guards_of_fields(&self, steps: &mut [Step<'a>]) {
        for index in 0..steps.len() {
            for position in 0..steps[index].reads.len() {
                let read = &steps[index].reads[position];
                let Some(target) = read.step().filter(|_| read.guarded && !read.fields.is_empty()) else { continue };
                if self.may_lack(steps[target].ast, &read.fields) {
                    let read = &mut steps[index].reads[position];
                    read.optional = !read.leans;
                    read.leans = true;
                }
            }
        }
    }

    /// Whether a field of this path is declared as one that may be missing.
    fn may_lack(&self, producer: &ast::Step, path: &[ast::Name]) -> bool {
        let Some((first, rest)) = path.split_first() else { return false };
        let find = |fields: &'_ [ast::Field], name: &ast::Name| {
            fields.iter().find(|field| field.name.value == name.value).map(|field| field.kind.clone())
        };
        let (mut kind, path) = match (&producer.body, &producer.output.kind) {
            (Some(ast::Body::Gate(gate)), _) => match find(&gate.asks, first) {
                Some(kind) => (kind, rest),
                None => return false,
            },
            (_, Some(kind)) => (kind.clone(), path),
            _ => return false,
        };
        // Each turn takes a name of the path or looks one up that leads to no further name, so the loop ends.
        let mut path = path.iter();
        loop {
            if kind.optional {
                return true;
            }
            kind = match kind.kind {
                ast::TypeKind::Named(name) => {
                    let known = self.tables.find_name(NameKind::Type, &name.value, true, name.span.file);
                    match known.map(|index| &self.spec.types[index].kind) {
                        // A type that is another name for itself is reported where it is declared.
                        Some(known) if !matches!(known.kind, ast::TypeKind::Named(_)) => known.clone(),
                        _ => return false,
                    }
                }
                ast::TypeKind::Record(fields) => match path.next().and_then(|name| find(&fields, name)) {
                    Some(kind) => kind,
                    None => return false,
                },
                ast::TypeKind::List(inner) | ast::TypeKind::Map(inner) if path.next().is_some() => *inner,
                _ => return false,
            };
        }
    }

    /// Conditions that end rounds, with what they read.
    pub(super) fn resolve_untils(
        &mut self,
        until: &[Arc<crate::syntax::Text>],
        within: &Within<'_>,
    ) -> (Vec<Condition>, Vec<Read>) {
        let until: Vec<Condition> = until.iter().map(|until| text::parse_condition(until, self.diagnostics)).collect();
        let mut reads = Vec::new();
        for condition in &until {
            let passage = MappedText::from_string(&condition.text);
            reads.extend(self.resolve_reads(
                &condition.expression.reads,
                &passage,
                (within, None),
                &[],
                "an `until`",
                Has::default(),
            ));
        }
        (until, reads)
    }

    /// Recorded answers name tasks of any pipeline, or members of any swarm; one that names neither is a slip.
    pub(super) fn answers_name_steps(&mut self, pipelines: &[Pipeline<'a>]) {
        let spec = self.spec;
        // Who leads names those that it makes, in words that only a run knows.
        if spec.swarms.iter().any(|swarm| swarm.decompose.is_some()) {
            return;
        }
        let steps = pipelines.iter().flat_map(|pipeline| &pipeline.steps);
        let members = spec.swarms.iter().flat_map(ast::Swarm::party_names);
        let known: BTreeSet<&str> =
            steps.map(|step| step.name()).chain(members.map(|name| name.value.as_str())).collect();
        let answers = spec.providers.iter().flat_map(|provider| &provider.script).flat_map(|script| &script.answers);
        for name in answers.filter_map(|answer| answer.task.as_ref()) {
            if known.contains(name.value.as_str()) || known.is_empty() {
                continue;
            }
            let known: Vec<&str> = known.iter().copied().collect();
            let (what, list) = match spec.swarms.is_empty() {
                true => ("step", "the steps are "),
                false => ("step or member", "the steps and members are "),
            };
            let (close, help) = suggest::did_you_mean(&name.value, &known, list);
            let place = if spec.swarms.is_empty() { " in any pipeline" } else { "" };
            let diagnostic =
                Diagnostic::new(Code::UnknownReference, format!("there is no {what} `{}`{place}", name.value))
                    .label(name.span, "this answer is never given")
                    .help_maybe(help);
            self.diagnostics.push(match close {
                Some(close) => diagnostic.write_near(name.span, close),
                None => diagnostic,
            });
        }
    }
}

/// The steps that an edge of the pipeline leads to.
pub(crate) fn list_receivers(pipeline: &ast::Pipeline) -> BTreeSet<&str> {
    let edges = pipeline.edges.iter().flat_map(|edges| &edges.list);
    let ends = edges.flat_map(|edge| std::iter::once(&edge.to).chain(edge.both.then_some(&edge.from)));
    ends.map(|name| name.value.as_str()).collect()
}

/// The only step that no other needs, of the pipeline or, where that is a loop, of the loop; a `stop` is not one.
fn sole_sink(steps: &[Step<'_>]) -> Option<usize> {
    let mut needed = vec![false; steps.len()];
    for need in steps.iter().flat_map(|step| &step.needs) {
        needed[need.step] = true;
    }
    // Each turn goes one loop deeper, so the search ends.
    let mut list = None;
    loop {
        let last = |&step: &usize| {
            steps[step].within == list && !needed[step] && !matches!(steps[step].body, Body::Stop { .. })
        };
        let mut sinks = (0..steps.len()).filter(last);
        match (sinks.next(), sinks.next()) {
            (Some(sink), None) if matches!(steps[sink].body, Body::Loop { .. }) => list = Some(sink),
            (Some(sink), None) => return Some(sink),
            _ => return None,
        }
    }
}
