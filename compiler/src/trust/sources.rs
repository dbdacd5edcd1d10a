//! Where the texts of one pipeline go: reads, arguments, items, conversations, folders and edges.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::build::{Builder, Instance};
use super::graph::{Kind, Via};
use super::label::{Label, Labels};
use super::paths;
use super::propagate::Carried;
use crate::ast::{self, Name, TypeExpr};
use crate::model::{self, Body, ParamRef, Read, Step, Variable};
use crate::source::Span;
use crate::syntax::Text;
use crate::template::Root;

/// Who is called so where a pack is given, if free text comes from there; the whole of what an artifact is does.
pub(super) type Find<'f, 'm, 'a> = dyn Fn(&Builder<'m, 'a>, &str, bool) -> Option<usize> + 'f;

/// Lists that items come from, of one step.
const MOST_LISTS: usize = 16;

impl<'m, 'a> Builder<'m, 'a> {
    /// What a step reads goes into it; what a call is passed, into the parameters of what it calls.
    pub(super) fn connect_reads(&mut self, instance: &Instance, index: usize) {
        let model = self.model;
        let step = &model.pipelines[instance.pipeline].steps[index];
        let node = instance.steps[index];
        // A person reads what a gate shows, and none of it goes on.
        if matches!(step.body, Body::Gate { .. } | Body::Loop { .. }) {
            return;
        }
        let carried = collect_carried(model, step);
        let targets = self.collect_targets(instance, index);
        let list = step.list.as_ref().map(|list| list.text.span(0..list.text.as_str().len()));
        let of_list = |read: &Read| {
            list.is_some_and(|list| {
                list.file == read.span.file && list.start <= read.span.start && read.span.end <= list.end
            })
        };
        let lists: Vec<(usize, Option<&'m TypeExpr>)> = match list {
            Some(_) => {
                let reads = step.reads.iter().filter(|read| !read.in_when && of_list(read));
                reads.filter_map(|read| self.list_source(instance, read)).take(MOST_LISTS).collect()
            }
            None => Vec::new(),
        };
        for read in &step.reads {
            if read.in_when || carried.idle.contains(&read.whole) || of_list(read) {
                continue;
            }
            let (to, via) = targets.get(&read.whole).copied().unwrap_or((Some(node), Via::Reads));
            let Some(to) = to else { continue };
            for fields in list_parts(read, carried.parts.get(&read.whole)) {
                if read.root == Root::Item {
                    for &(source, kind) in &lists {
                        if kind.is_none_or(|kind| self.labels.field_label(kind, &fields) == Label::Arbitrary) {
                            self.graph.add_edge(source, to, read.span, via);
                        }
                    }
                } else if let Some(source) = self.find_source(instance, read, &fields) {
                    self.graph.add_edge(source, to, read.span, via);
                    // One edge is enough, however many parts of it carry text.
                    break;
                }
            }
        }
    }

    /// Where free text that is read comes from; none where what goes on of it, by these fields, carries none.
    fn find_source(&mut self, instance: &Instance, read: &Read, fields: &[Name]) -> Option<usize> {
        match read.root {
            Root::Output | Root::Previous | Root::Input => {
                let step = read.step()?;
                (self.output_label(instance.pipeline, step, fields) == Label::Arbitrary).then(|| instance.steps[step])
            }
            Root::Error | Root::Log => read.step().map(|step| instance.steps[step]),
            Root::Param => {
                let (index, kind) = self.find_param(instance, read)?;
                (self.labels.field_label(kind, fields) == Label::Arbitrary).then(|| instance.params[index])
            }
            Root::Stdin => Some(self.stdin_node(read.span)),
            Root::Context => Some(self.pack_given(instance, read.pack()?)),
            _ => None,
        }
    }

    /// The list that a read gives, with the type of its items.
    fn list_source(&self, instance: &Instance, read: &Read) -> Option<(usize, Option<&'m TypeExpr>)> {
        let (node, kind) = match read.root {
            Root::Output | Root::Previous | Root::Input => {
                let step = read.step()?;
                (instance.steps[step], self.output_type(instance.pipeline, step))
            }
            Root::Param => {
                let (index, kind) = self.find_param(instance, read)?;
                (instance.params[index], Some(kind))
            }
            _ => return None,
        };
        Some((node, kind.and_then(|kind| self.labels.item(kind, &read.fields))))
    }

    /// A parameter of the pipeline itself: those of the workflow are what its user wrote.
    fn find_param(&self, instance: &Instance, read: &Read) -> Option<(usize, &'m TypeExpr)> {
        let Some(ParamRef::Pipeline(index)) = read.param() else { return None };
        let params = &self.model.pipelines[instance.pipeline].ast.params;
        Some((index, &params.get(index)?.kind))
    }

    /// What a step calls or starts, and where each of its texts goes, by the place of the read.
    fn collect_targets(&mut self, instance: &Instance, index: usize) -> HashMap<Span, (Option<usize>, Via)> {
        let model = self.model;
        let step = &model.pipelines[instance.pipeline].steps[index];
        let mut targets = HashMap::new();
        match &step.body {
            Body::Call { pipeline: Some(target), args, .. } => {
                let callee = self.add_call(instance, index, *target);
                let params = &model.pipelines[*target].ast.params;
                for (name, prose) in args {
                    let param = params.iter().position(|param| param.name.value == name.value);
                    let carries =
                        param.filter(|&param| self.labels.type_label(&params[param].kind) == Label::Arbitrary);
                    let to = carries.map(|param| callee.params[param]);
                    let places = prose.template.reads.iter().map(|read| prose.passage.span(read.whole.clone()));
                    targets.extend(places.map(|place| (place, (to, Via::Passes))));
                }
            }
            Body::Swarm { swarm: Some(swarm), goal, .. } => {
                let team = self.add_swarm(*swarm, Some((instance.steps[index], step.ast.name.span)));
                let reads = goal.iter().flat_map(|goal| goal.template.reads.iter().map(move |read| (goal, read)));
                let places = reads.map(|(goal, read)| goal.passage.span(read.whole.clone()));
                targets.extend(places.map(|place| (place, (Some(team), Via::Passes))));
            }
            _ => {}
        }
        targets
    }

    /// The turns of one conversation: what was said in one is there in those after it.
    pub(super) fn connect_sessions(&mut self, instance: &Instance) {
        let model = self.model;
        let pipeline = &model.pipelines[instance.pipeline];
        // Agents with one name for their conversations have one each.
        let mut talks: BTreeMap<(Option<usize>, &str), Vec<usize>> = BTreeMap::new();
        for &index in &pipeline.order.sorted {
            let step = &pipeline.steps[index];
            if let Some(session) = &step.ast.session {
                talks.entry((step.agent, &session.value)).or_default().push(index);
            }
        }
        for turns in talks.values() {
            let place = |index: usize| pipeline.steps[index].ast.session.as_ref().map(|session| session.span);
            let mut join = |from: usize, to: usize| {
                if let Some(span) = place(to) {
                    self.graph.add_edge(instance.steps[from], instance.steps[to], span, Via::Continues);
                }
            };
            turns.windows(2).for_each(|pair| join(pair[0], pair[1]));
            // A list is made with its first turn, so it is never empty.
            let (first, last) = (turns[0], turns[turns.len() - 1]);
            // In the next round the first turn goes on with the last one.
            if first != last && pipeline.has_previous_round(last, first) {
                join(last, first);
            }
        }
    }

    /// Who may hand over to whom.
    pub(super) fn pipeline_edges(&mut self, instance: &Instance) {
        let model = self.model;
        let pipeline = &model.pipelines[instance.pipeline];
        let Some(edges) = &pipeline.ast.edges else { return };
        let nodes: HashMap<&str, usize> =
            pipeline.steps.iter().zip(&instance.steps).map(|(step, &node)| (step.name(), node)).collect();
        self.connect_edges(edges, &nodes);
    }

    /// Envelopes along edges; one that carries a type without free text brings none.
    pub(super) fn connect_edges(&mut self, edges: &ast::Edges, nodes: &HashMap<&str, usize>) {
        for edge in &edges.list {
            let typed = edge.carries.as_ref().is_some_and(|kind| self.labels.type_label(kind) != Label::Arbitrary);
            let ends = (nodes.get(edge.from.value.as_str()), nodes.get(edge.to.value.as_str()));
            let (Some(&from), Some(&to), false) = (ends.0, ends.1, typed) else { continue };
            self.graph.add_edge(from, to, edge.span, Via::Sends);
            if edge.both {
                self.graph.add_edge(to, from, edge.span, Via::Sends);
            }
        }
    }

    /// The packs of the prompts of an instance.
    pub(super) fn connect_packs(&mut self, instance: &Instance) {
        let model = self.model;
        let steps = &model.pipelines[instance.pipeline].steps;
        for (index, step) in steps.iter().enumerate() {
            for (&pack, name) in step.context.iter().zip(&step.ast.context) {
                let from = self.pack_given(instance, pack);
                self.graph.add_edge(from, instance.steps[index], name.span, Via::Reads);
            }
        }
    }

    /// The node of a pack, as a turn of this instance is given it.
    fn pack_given(&mut self, instance: &Instance, pack: usize) -> usize {
        let steps = &self.model.pipelines[instance.pipeline].steps;
        // All turns of an instance share its packs: the first node stands for the instance.
        let place = instance.steps.first().copied().unwrap_or_default();
        self.add_pack(place, pack, &|builder, name, whole| {
            let step = steps.iter().position(|step| step.name() == name)?;
            let free = whole || builder.output_label(instance.pipeline, step, &[]) == Label::Arbitrary;
            free.then(|| instance.steps[step])
        })
    }

    /// The node of a pack in a place: `find` gives the node of whom it names, where free text comes from there; of an
    /// artifact always.
    pub(super) fn add_pack(&mut self, place: usize, pack: usize, find: &Find<'_, 'm, 'a>) -> usize {
        if let Some(&node) = self.files.packs.get(&(place, pack)) {
            return node;
        }
        let model = self.model;
        let spec = model.spec;
        let node = self.graph.add_node(&*spec.packs[pack].name.value, Kind::Pack, spec.packs[pack].name.span);
        self.files.packs.insert((place, pack), node);
        let (mut open, mut seen) = (vec![pack], HashSet::from([pack]));
        while let Some(pack) = open.pop() {
            for (rule, found) in spec.packs[pack].rules.iter().zip(&model.packs[pack].rules) {
                let (names, artifact) = match &rule.value {
                    ast::PackRule::Inputs(names) => (names.as_slice(), false),
                    ast::PackRule::Artifacts { from, .. } => (std::slice::from_ref(from), true),
                    _ => (&[][..], false),
                };
                for name in names {
                    if let Some(from) = find(self, &name.value, artifact) {
                        self.graph.add_edge(from, node, name.span, Via::Joins);
                    }
                }
                match &rule.value {
                    ast::PackRule::Docs { path, .. } => self.read_beside(node, path),
                    ast::PackRule::Files { globs, .. } => globs.iter().for_each(|glob| self.read_beside(node, glob)),
                    _ => {}
                }
                if let model::PackRule::Merge(Some(other)) = found
                    && seen.insert(*other)
                {
                    open.push(*other);
                }
            }
        }
        node
    }

    /// A path that counts from the file that it stands in.
    fn read_beside(&mut self, node: usize, path: &Text) {
        let seen = self.resolve_path(path);
        self.files.add_read(node, &seen, text_span(path));
    }

    fn resolve_path(&self, path: &Text) -> String {
        paths::resolve_path(self.sources, text_span(path), path.as_str())
    }

    /// The files that a step says it writes and reads, and the folder that it works in.
    pub(super) fn step_files(&mut self, instance: &Instance, index: usize) {
        let model = self.model;
        let steps = &model.pipelines[instance.pipeline].steps;
        let (step, node) = (&steps[index], instance.steps[index]);
        step.ast.writes.iter().for_each(|glob| self.files.add_write(node, glob.as_str(), text_span(glob)));
        step.ast.reads.iter().for_each(|glob| self.files.add_read(node, glob.as_str(), text_span(glob)));
        for (path, span) in super::paths::list_named_files(model, step, self.sources) {
            self.files.add_read(node, &path, span);
        }
        let Some(files) = self.file_protocol(step) else { return self.connect_folder(step, node) };
        for output in files.outputs.iter().filter(|output| can_hold_text(&self.labels, output)) {
            if let Some(place) = &output.copy_to {
                let target = self.resolve_path(place);
                self.files.add_write(node, &target, text_span(place));
                // What is copied to a folder has a name in it.
                let path = output.path.as_str();
                let name = path.rsplit_once('/').map_or(path, |(_, name)| name);
                let inside = if name.is_empty() { "**" } else { name };
                self.files.add_write(node, &format!("{target}/{inside}"), text_span(place));
            }
        }
        for input in &files.inputs {
            match &input.from {
                Some(from) => {
                    if let Some(maker) = steps.iter().position(|step| step.name() == from.value)
                        && self.outbox_label(&steps[maker], input.path.as_str()) == Label::Arbitrary
                    {
                        self.graph.add_edge(instance.steps[maker], node, from.span, Via::Reads);
                    }
                }
                None => self.read_beside(node, &input.path),
            }
        }
        self.connect_folder(step, node);
    }

    /// The folder that a step shares with others.
    fn connect_folder(&mut self, step: &Step<'a>, node: usize) {
        if let Some(name) = step.ast.worktree.as_ref().and_then(|worktree| worktree.name.as_ref()) {
            let folder = self.worktree_node(name);
            let writes = self.graph.nodes[node].marks.privileged.is_some() || !step.ast.writes.is_empty();
            self.works_in(node, folder, name.span, writes);
        }
    }

    /// The file protocol of a step: its own, else that of its agent.
    fn file_protocol(&self, step: &Step<'a>) -> Option<&'a ast::Files> {
        step.ast.files.as_deref().or_else(|| self.model.agents[step.agent?].ast.files.as_ref())
    }

    /// What a file in the outbox of a step can carry.
    fn outbox_label(&self, step: &Step<'a>, path: &str) -> Label {
        let outputs = self.file_protocol(step).into_iter().flat_map(|files| &files.outputs);
        let kind = outputs.filter(|output| output.path.as_str() == path).find_map(|output| output.kind.as_ref());
        kind.map_or(Label::Arbitrary, |kind| self.labels.type_label(kind))
    }
}

/// Whether a file can hold free text.
fn can_hold_text(labels: &Labels<'_>, output: &ast::FileOutput) -> bool {
    output.kind.as_ref().is_none_or(|kind| labels.type_label(kind) == Label::Arbitrary)
}

fn text_span(text: &Text) -> Span {
    text.span(0..text.as_str().len())
}

/// The fields that lead to what goes on of a read: its own, or those and further ones to each part.
fn list_parts(read: &Read, parts: Option<&Vec<Vec<String>>>) -> Vec<Vec<Name>> {
    let Some(parts) = parts else { return vec![read.fields.clone()] };
    let name = |field: &String| Name { value: field.clone(), span: read.span };
    parts.iter().map(|part| read.fields.iter().cloned().chain(part.iter().map(name)).collect()).collect()
}

/// What goes on of what the texts of a step read.
fn collect_carried(model: &model::Model<'_>, step: &Step<'_>) -> Carried {
    let mut carried = Carried::default();
    let system = step.agent.and_then(|agent| model.agents[agent].system.as_ref());
    let env = step.env.iter().filter_map(|variable| match variable {
        Variable::Set(_, prose) => Some(prose),
        Variable::Pass(_) | Variable::Secret(_) => None,
    });
    for prose in step.body.template_texts().into_iter().chain(system).chain(&step.stdin).chain(env) {
        carried.add_prose(prose);
    }
    carried
}
