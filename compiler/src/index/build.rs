//! The index of a model: symbols from its lists, references from the trees of its files and from what its texts read.

use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasherDefault;

use swarmc_plan::StepKind;

use super::order;
use super::place::PlaceHasher;
use super::shapes::Shapes;
use super::walk;
use super::{Import, Index, Need, Occurrence, PathUse, Role, ShapeId, Step, Symbol, SymbolId, SymbolKind, TextUse};
use crate::ast::{self, Name};
use crate::load::{Loader, path_from};
use crate::model::{Model, ParamRef, Read, TemplateText, Variable};
use crate::resolve::list_receivers;
use crate::schema::Target;
use crate::source::{FileId, Span};
use crate::symbols::NameKind;
use crate::template::{Root, same_name};
use crate::trust::Trust;
use crate::types::Type;

/// The index of a model, with places in the sources of `loader`.
pub(crate) fn build_index(model: &Model<'_>, loader: &Loader<'_>, trust: &[(Span, Trust)]) -> Index {
    let mut builder = Builder {
        model,
        loader,
        index: Index { workflow: workflow_name(model, loader), ..Index::default() },
        shapes: Shapes::default(),
        top: Vec::new(),
        by_place: HashMap::default(),
        steps: Vec::new(),
        pipelines_of: BTreeMap::new(),
        locals: HashMap::new(),
    };
    builder.top_level();
    builder.add_types();
    builder.add_pipelines();
    builder.add_swarms();
    builder.add_aliases();
    // The walk looks names up, so every symbol must be there by now.
    for module in &model.tables.modules.list {
        walk::visit_file(&mut builder, module.file);
    }
    builder.add_reads();
    builder.add_texts();
    builder.add_trust(trust);
    builder.finish()
}

/// An index while it is gathered.
pub(super) struct Builder<'m, 'a, 'l> {
    pub(super) model: &'m Model<'a>,
    pub(super) loader: &'m Loader<'l>,
    pub(super) index: Index,
    shapes: Shapes,
    /// By [`NameKind`] and index.
    top: Vec<Vec<SymbolId>>,
    /// Symbols by the place that declares them.
    by_place: HashMap<Span, SymbolId, BuildHasherDefault<PlaceHasher>>,
    /// By pipeline and step: the position in the index.
    steps: Vec<Vec<usize>>,
    /// The pipelines that a step is part of: more than one for a shared task.
    pipelines_of: BTreeMap<SymbolId, Vec<usize>>,
    /// What has a name in a pipeline, a swarm or a gate only; steps by the pipeline that they run in.
    locals: HashMap<(SymbolId, Local), HashMap<String, SymbolId>>,
}

/// What has a name of its own inside something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Local {
    Step,
    Member,
    Item,
    Channel,
    Worktree,
    Option,
}

impl Builder<'_, '_, '_> {
    pub(super) fn top_symbol(&self, what: NameKind, index: usize) -> Option<SymbolId> {
        self.top[what as usize].get(index).copied()
    }

    /// The symbol that is declared in a place.
    pub(super) fn find_declared(&self, place: Span) -> Option<SymbolId> {
        self.by_place.get(&place).copied()
    }

    /// The pipelines that a step is part of, by index.
    pub(super) fn pipelines_of(&self, step: SymbolId) -> &[usize] {
        self.pipelines_of.get(&step).map_or(&[], Vec::as_slice)
    }

    /// The step of this name in a pipeline, as it is declared.
    fn find_step(&self, pipeline: usize, name: &str) -> Option<SymbolId> {
        self.find_local(self.top_symbol(NameKind::Pipeline, pipeline)?, Local::Step, name)
    }

    pub(super) fn find_local(&self, home: SymbolId, local: Local, name: &str) -> Option<SymbolId> {
        self.locals.get(&(home, local))?.get(name).copied()
    }

    /// A symbol that has its name inside another one only.
    pub(super) fn add_local(
        &mut self,
        kind: SymbolKind,
        local: Local,
        name: &Name,
        home: Option<SymbolId>,
    ) -> SymbolId {
        let id = self.add_symbol(kind, name, home);
        if let Some(home) = home {
            self.locals.entry((home, local)).or_default().entry(name.value.clone()).or_insert(id);
        }
        id
    }

    /// Notes that a name stands in a place.
    pub(super) fn add_occurrence(&mut self, span: Span, symbol: SymbolId, role: Role) {
        self.index.occurrences.push(Occurrence { span, symbol, role });
    }

    fn add_symbol(&mut self, kind: SymbolKind, name: &Name, within: Option<SymbolId>) -> SymbolId {
        // A shared task is a step of each pipeline that takes it in, and one symbol.
        if let Some(&known) = self.by_place.get(&name.span) {
            return known;
        }
        let id = SymbolId(u32::try_from(self.index.symbols.len()).expect("a spec has fewer than 2^32 names"));
        let prefix = match self.model.tables.modules.list.get(self.model.tables.modules.module_of(name.span.file)) {
            Some(module) if within.is_none() => module.prefix.as_str(),
            _ => "",
        };
        self.index.symbols.push(Symbol {
            kind,
            // The plan's name of what an import declares starts with what it is imported as.
            name: name.value.strip_prefix(prefix).unwrap_or(&name.value).to_owned(),
            span: name.span,
            whole: name.span,
            within,
            doc: None,
            shape: None,
        });
        self.by_place.insert(name.span, id);
        self.add_occurrence(name.span, id, Role::Definition);
        id
    }

    fn top_level(&mut self) {
        let spec = self.model.spec;
        for &what in NameKind::ALL {
            let kind = kind_of(what);
            let names = what.declared_names(spec);
            // An agent that a task makes is, to a person, the agent that it is made of.
            let declaration = |index: usize| match what {
                NameKind::Agent if spec.agents[index].variant => {
                    let template = spec.agents[index].template.as_ref()?;
                    let tables = &self.model.tables;
                    Some(names[tables.find_name(what, &template.value, true, template.span.file)?])
                }
                _ => None,
            };
            let places: Vec<&Name> =
                names.iter().enumerate().map(|(index, name)| declaration(index).unwrap_or(name)).collect();
            let ids = places.into_iter().map(|name| self.add_symbol(kind, name, None)).collect();
            self.top.push(ids);
        }
    }

    fn add_shape(&mut self, kind: &Type) -> ShapeId {
        let types = &self.model.typing.types;
        self.shapes.shape_of(kind, types, &self.top[NameKind::Type as usize], &mut self.index.symbols)
    }

    fn add_types(&mut self) {
        for (index, (_, kind, doc)) in self.model.typing.types.iter().enumerate() {
            let Some(id) = self.top_symbol(NameKind::Type, index) else { continue };
            let shape = self.add_shape(kind);
            let symbol = &mut self.index.symbols[id.0 as usize];
            (symbol.shape, symbol.doc) = (Some(shape), doc.map(str::to_owned));
            for field in self.shape_fields(shape) {
                self.index.symbols[field.0 as usize].within.get_or_insert(id);
            }
        }
        for (index, kind) in self.model.typing.params.iter().enumerate() {
            let shape = self.add_shape(kind);
            if let Some(id) = self.top_symbol(NameKind::Param, index) {
                self.index.symbols[id.0 as usize].shape = Some(shape);
            }
        }
    }

    fn shape_fields(&self, shape: ShapeId) -> Vec<SymbolId> {
        match &self.shapes.list[shape.0 as usize].kind {
            super::ShapeKind::Record(fields) => fields.clone(),
            _ => Vec::new(),
        }
    }

    fn add_pipelines(&mut self) {
        let model = self.model;
        for (number, pipeline) in model.pipelines.iter().enumerate() {
            let home = self.top_symbol(NameKind::Pipeline, number);
            for (param, kind) in pipeline.ast.params.iter().zip(&model.typing.pipelines[number].own_params) {
                let id = self.add_symbol(SymbolKind::Param, &param.name, home);
                self.index.symbols[id.0 as usize].shape = Some(self.add_shape(kind));
            }
            let mut ids: Vec<SymbolId> = Vec::with_capacity(pipeline.steps.len());
            for step in &pipeline.steps {
                // A loop stands before its steps, so its symbol is there by now.
                let holder = step.within.map(|holder| ids[holder]).or(home);
                let id = self.add_symbol(step_kind(step.ast), &step.ast.name, holder);
                ids.push(id);
                if let Some(home) = home {
                    self.locals
                        .entry((home, Local::Step))
                        .or_default()
                        .entry(step.ast.name.value.clone())
                        .or_insert(id);
                }
                self.pipelines_of.entry(id).or_default().push(number);
                for input in &step.ast.inputs {
                    self.add_symbol(SymbolKind::Port, &input.name, Some(id));
                }
                if let Some(gate) = step.body.gate() {
                    for option in &gate.options {
                        self.add_local(SymbolKind::Option, Local::Option, option, Some(id));
                    }
                }
            }
            let first = self.index.steps.len();
            self.steps.push((first..first + ids.len()).collect());
            let positions = order::step_positions(pipeline);
            let types = &model.typing.pipelines[number];
            let receivers = list_receivers(pipeline.ast);
            for (index, step) in pipeline.steps.iter().enumerate() {
                let output = self.add_shape(types.steps.output(index));
                let item = step.list.is_some().then(|| self.add_shape(&types.items[index]));
                // A shared task may have another type in each pipeline: the first one counts.
                self.index.symbols[ids[index].0 as usize].shape.get_or_insert(output);
                let needs = step.needs.iter().map(|need| Need {
                    step: first + need.step,
                    when: need.when,
                    declared: need.declared,
                    span: need.span,
                });
                self.index.steps.push(Step {
                    symbol: ids[index],
                    pipeline: home.unwrap_or(ids[index]),
                    within: step.within.map(|holder| ids[holder]),
                    agent: step.agent.and_then(|agent| self.top_symbol(NameKind::Agent, agent)),
                    needs: needs.collect(),
                    output,
                    item,
                    ports: step.inputs.iter().map(|(name, step)| (name.clone(), first + step)).collect(),
                    position: positions[index],
                    rounds: pipeline.ast.iterations > 1,
                    receives: receivers.contains(step.ast.name.value.as_str()),
                });
            }
            if let (Some(home), Some(result)) = (home, &types.result) {
                self.index.symbols[home.0 as usize].shape = Some(self.add_shape(result));
            }
        }
    }

    fn add_aliases(&mut self) {
        let modules = &self.model.tables.modules;
        for module in &modules.list {
            let import = |import: &crate::modules::Import| Import {
                from: module.file,
                file: modules.list[import.module].file,
                alias: import.alias.as_ref().map(|alias| alias.value.clone()),
            };
            self.index.imports.extend(module.imports.iter().map(import));
        }
        let imports = modules.list.iter().flat_map(|module| &module.imports);
        for alias in imports.filter_map(|import| import.alias.as_ref()) {
            self.add_symbol(SymbolKind::Alias, alias, None);
        }
    }

    /// What texts and conditions read.
    fn add_reads(&mut self) {
        let model = self.model;
        for (number, pipeline) in model.pipelines.iter().enumerate() {
            for (index, step) in pipeline.steps.iter().enumerate() {
                for read in step.reads.iter().chain(step.body.until_reads()) {
                    self.add_read(read, Some(number), Some(index));
                }
            }
            for read in pipeline.until_reads.iter().chain(&pipeline.env_reads) {
                self.add_read(read, Some(number), None);
            }
        }
        let outside = model.swarms.iter().flat_map(|swarm| &swarm.reads);
        let outside = outside.chain(model.providers.iter().flat_map(|provider| &provider.env_reads));
        for read in outside.chain(model.servers.iter().flat_map(|server| &server.env_reads)) {
            self.add_read(read, None, None);
        }
    }

    fn add_read(&mut self, read: &Read, pipeline: Option<usize>, step: Option<usize>) {
        let role = if read.directive { Role::Directive } else { Role::Expression };
        let read_step = |builder: &Self| Some(builder.steps[pipeline?][read.step()?]);
        let (symbol, mut shape) = match read.root {
            Root::Input => {
                let port = pipeline.zip(step).and_then(|(pipeline, step)| {
                    let inputs = &self.model.pipelines[pipeline].steps[step].ast.inputs;
                    let name = read.name.as_deref()?;
                    inputs.iter().find(|input| same_name(&input.name.value, name)).map(|input| input.name.span)
                });
                let shape = read_step(self).map(|step| self.index.steps[step].output);
                (port.and_then(|port| self.find_declared(port)), shape)
            }
            Root::Param => {
                let symbol = match read.param() {
                    Some(ParamRef::Spec(param)) => self.top_symbol(NameKind::Param, param),
                    Some(ParamRef::Pipeline(param)) => pipeline.and_then(|pipeline| {
                        self.find_declared(self.model.pipelines[pipeline].ast.params.get(param)?.name.span)
                    }),
                    None => None,
                };
                (symbol, symbol.and_then(|symbol| self.index.symbol(symbol).shape))
            }
            Root::Context => (read.pack().and_then(|pack| self.top_symbol(NameKind::Pack, pack)), None),
            Root::Item => {
                let step = pipeline.zip(step).map(|(pipeline, step)| self.steps[pipeline][step]);
                (None, step.and_then(|step| self.index.steps[step].item))
            }
            Root::Output | Root::Previous => {
                let step = read_step(self).map(|step| &self.index.steps[step]);
                (step.map(|step| step.symbol), step.map(|step| step.output))
            }
            _ => (read_step(self).map(|step| self.index.steps[step].symbol), None),
        };
        if let Some(symbol) = symbol {
            self.add_occurrence(read.span, symbol, role);
        }
        for field in &read.fields {
            let fields = shape.map(|shape| self.shape_fields(shape)).unwrap_or_default();
            let found = fields.into_iter().find(|known| self.index.symbol(*known).name == field.value);
            let Some(found) = found else { break };
            self.add_occurrence(field.span, found, role);
            shape = self.index.symbol(found).shape;
        }
    }

    /// Who says the texts of files.
    fn add_texts(&mut self) {
        let model = self.model;
        for (number, pipeline) in model.pipelines.iter().enumerate() {
            let home = self.top_symbol(NameKind::Pipeline, number);
            for (index, step) in pipeline.steps.iter().enumerate() {
                let owner = self.index.steps[self.steps[number][index]].symbol;
                let env = step.env.iter().filter_map(variable_text);
                let files = step.files.iter().flat_map(|files| files.template_texts());
                for prose in step.body.template_texts().into_iter().chain(&step.stdin).chain(env).chain(files) {
                    self.add_text_uses(prose, owner, home);
                }
                if let Some(agent) = step.agent
                    && let (Some(owner), Some(system)) =
                        (self.top_symbol(NameKind::Agent, agent), &model.agents[agent].system)
                {
                    self.add_text_uses(system, owner, home);
                }
            }
        }
        // An agent without a step says its text all the same.
        for (index, agent) in model.agents.iter().enumerate() {
            if let (Some(owner), Some(system)) = (self.top_symbol(NameKind::Agent, index), &agent.system) {
                self.add_text_uses(system, owner, None);
            }
        }
        for (number, swarm) in model.swarms.iter().enumerate() {
            let home = self.top_symbol(NameKind::Swarm, number);
            for (member, written) in swarm.members.iter().zip(&swarm.ast.members) {
                if let (Some(owner), Some(task)) = (self.find_declared(written.name.span).or(home), &member.task) {
                    self.add_text_uses(task, owner, None);
                }
            }
        }
        for (index, prompt) in model.spec.prompts.iter().enumerate() {
            if let (Some(owner), Some(ast::Source::File(path))) =
                (self.top_symbol(NameKind::Prompt, index), &prompt.text)
                && let Some(file) = self.file_of(path.as_str(), path.span(0..0).file)
            {
                self.says_file(file, owner, None);
            }
        }
    }

    fn add_text_uses(&mut self, prose: &TemplateText, owner: SymbolId, pipeline: Option<SymbolId>) {
        for file in prose.passage.files() {
            self.says_file(file, owner, pipeline);
        }
        for &(file, span) in prose.passage.includes() {
            self.index.paths.push(PathUse { span, file });
        }
    }

    fn says_file(&mut self, file: FileId, owner: SymbolId, pipeline: Option<SymbolId>) {
        let end = u32::try_from(self.loader.sources.text(file).len()).unwrap_or(u32::MAX);
        self.index.texts.push(TextUse { span: Span::new(file, 0, end), owner, pipeline });
    }

    /// The file that a path in a file leads to, when it was read.
    pub(super) fn file_of(&self, written: &str, from: FileId) -> Option<FileId> {
        self.loader.loaded_file(&path_from(self.loader.sources.name(from), written)?)
    }

    /// What may have reached whom; of a task that pipelines share, in any of them.
    fn add_trust(&mut self, trust: &[(Span, Trust)]) {
        for (span, trust) in trust {
            if let Some(&id) = self.by_place.get(span) {
                let known = self.index.trust.entry(id).or_default();
                known.strangers |= trust.strangers;
                known.private |= trust.private;
            }
        }
    }

    fn finish(self) -> Index {
        let mut index = self.index;
        index.shapes = self.shapes.list;
        // The choice of a gate has no place where its name stands.
        let sources = &self.loader.sources;
        let stands = |symbol: &Symbol| sources.slice(symbol.span).trim_matches('"') == symbol.name;
        let fields = index.list_symbols().filter(|(_, symbol)| symbol.kind == SymbolKind::Field && stands(symbol));
        let fields: Vec<Occurrence> =
            fields.map(|(id, symbol)| Occurrence { span: symbol.span, symbol: id, role: Role::Definition }).collect();
        index.occurrences.extend(fields);
        // Most of them come in the order of the text, of which this sort makes use.
        index.occurrences.sort();
        // What pipelines share is gathered for each of them.
        index.occurrences.dedup();
        index.texts.sort_unstable();
        index.texts.dedup();
        index.paths.sort_unstable();
        index.paths.dedup();
        index
    }
}

/// What the workflow is called; one without a node of its own after its file.
fn workflow_name(model: &Model<'_>, loader: &Loader<'_>) -> String {
    let named = model.spec.workflow.as_ref().map(|workflow| workflow.name.value.clone());
    named.unwrap_or_else(|| crate::source::file_stem(loader.sources.name(FileId::new(0))).to_owned())
}

/// The text of a variable that is set.
fn variable_text(variable: &Variable) -> Option<&TemplateText> {
    match variable {
        Variable::Set(_, prose) => Some(prose),
        Variable::Pass(_) | Variable::Secret(_) => None,
    }
}

fn kind_of(what: NameKind) -> SymbolKind {
    match what {
        NameKind::Param => SymbolKind::Param,
        NameKind::Secret => SymbolKind::Secret,
        NameKind::Type => SymbolKind::Type,
        NameKind::Provider => SymbolKind::Provider,
        NameKind::Tier => SymbolKind::Tier,
        NameKind::Agent => SymbolKind::Agent,
        NameKind::ToolServer => SymbolKind::ToolServer,
        NameKind::Prompt => SymbolKind::Prompt,
        NameKind::Pack => SymbolKind::Pack,
        NameKind::Task => SymbolKind::Task,
        NameKind::Pipeline => SymbolKind::Pipeline,
        NameKind::Swarm => SymbolKind::Swarm,
    }
}

fn step_kind(step: &ast::Step) -> SymbolKind {
    match step.body.as_ref().map(ast::Body::kind) {
        Some(StepKind::Gate) => SymbolKind::Gate,
        Some(StepKind::Loop) => SymbolKind::Loop,
        Some(StepKind::Stop) => SymbolKind::Stop,
        _ => SymbolKind::Task,
    }
}

/// What the names of a spec lead to.
impl Builder<'_, '_, '_> {
    /// The pipeline that a symbol is, by index.
    pub(super) fn pipeline_index(&self, id: SymbolId) -> Option<usize> {
        self.top[NameKind::Pipeline as usize].iter().position(|known| *known == id)
    }

    /// The swarm that a symbol is, by index.
    pub(super) fn swarm_index(&self, id: SymbolId) -> Option<usize> {
        self.top[NameKind::Swarm as usize].iter().position(|known| *known == id)
    }

    /// The parameter of a pipeline.
    pub(super) fn find_param(&self, pipeline: SymbolId, name: &str) -> Option<SymbolId> {
        let params = &self.model.pipelines[self.pipeline_index(pipeline)?].ast.params;
        self.find_declared(params.iter().find(|param| param.name.value == name)?.name.span)
    }

    /// The parameter that a test gives a value to, by the place of its name there.
    pub(super) fn find_test_param(&self, name: &str, place: Span) -> Option<SymbolId> {
        let holds = |span: Span| span.file == place.file && (span.start..span.end).contains(&place.start);
        let test = self.model.tests.iter().find(|test| holds(test.ast.span))?;
        let own = test.pipeline.map(|pipeline| self.model.pipelines[pipeline].ast.params.as_slice());
        match own.unwrap_or_default().iter().find(|param| param.name.value == name) {
            Some(param) => self.find_declared(param.name.span),
            None => {
                self.top_symbol(NameKind::Param, self.model.tables.find_name(NameKind::Param, name, true, place.file)?)
            }
        }
    }

    /// What an import is called in a file.
    pub(super) fn find_alias(&self, alias: &str, file: FileId) -> Option<SymbolId> {
        let modules = &self.model.tables.modules;
        let imports = &modules.list[modules.module_of(file)].imports;
        let found = imports.iter().filter_map(|import| import.alias.as_ref()).find(|known| known.value == alias)?;
        self.find_declared(found.span)
    }

    /// What a reference leads to: more than one symbol only in a shared task, whose pipelines each have a step so called.
    pub(super) fn resolve_reference(
        &self,
        target: Target,
        name: &str,
        file: FileId,
        pipeline: Option<usize>,
        swarm: Option<usize>,
        owner: Option<SymbolId>,
    ) -> Vec<SymbolId> {
        let named = |what: NameKind| {
            let found = self.model.tables.find_name(what, name, true, file);
            found.and_then(|found| self.top_symbol(what, found)).into_iter().collect::<Vec<_>>()
        };
        let or = |one: Vec<SymbolId>, other: &dyn Fn() -> Vec<SymbolId>| if one.is_empty() { other() } else { one };
        let of_swarm = |local: Local| {
            let homes: &[SymbolId] = match swarm {
                Some(swarm) => &self.top[NameKind::Swarm as usize][swarm..=swarm],
                None => &self.top[NameKind::Swarm as usize],
            };
            homes.iter().filter_map(|home| self.find_local(*home, local, name)).collect::<Vec<_>>()
        };
        let steps = |pipelines: &mut dyn Iterator<Item = usize>| {
            let mut found: Vec<SymbolId> = pipelines.filter_map(|pipeline| self.find_step(pipeline, name)).collect();
            found.sort_unstable();
            found.dedup();
            found
        };
        let any_step = || steps(&mut (0..self.model.pipelines.len()));
        match target {
            Target::Agent => named(NameKind::Agent),
            Target::Provider => named(NameKind::Provider),
            Target::Tier => named(NameKind::Tier),
            Target::Prompt => named(NameKind::Prompt),
            Target::Pack => named(NameKind::Pack),
            Target::Pipeline => named(NameKind::Pipeline),
            Target::Swarm => named(NameKind::Swarm),
            Target::Shared => named(NameKind::Task),
            Target::Runnable => or(named(NameKind::Pipeline), &|| named(NameKind::Swarm)),
            Target::Preset => Vec::new(),
            Target::Step => match pipeline {
                Some(pipeline) => steps(&mut std::iter::once(pipeline)),
                None => {
                    let shared = owner.map_or(&[] as &[usize], |owner| self.pipelines_of(owner));
                    or(steps(&mut shared.iter().copied()), &|| named(NameKind::Task))
                }
            },
            Target::AnyStep => any_step(),
            Target::Maker => or(any_step(), &|| of_swarm(Local::Member)),
            Target::Party => match pipeline {
                Some(pipeline) => steps(&mut std::iter::once(pipeline)),
                None => of_swarm(Local::Member),
            },
            // A manager that is no member is called as its agent.
            Target::Member => or(of_swarm(Local::Member), &|| named(NameKind::Agent)),
            Target::Item => of_swarm(Local::Item),
            Target::Option => owner.and_then(|gate| self.find_local(gate, Local::Option, name)).into_iter().collect(),
        }
    }
}
