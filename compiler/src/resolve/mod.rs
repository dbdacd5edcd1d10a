//! Typed tree to model: looks names up, reads the files that texts stand in, scans the texts, and spells needs out.

mod names;
mod needs;
mod order;
mod params;
pub(crate) mod tables;
pub(crate) mod templates;
pub(crate) mod text;

use std::collections::{BTreeMap, BTreeSet};

use crate::ast::{self, Name, Spanned};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::files::Entry;
use crate::load::Loader;
use crate::model::{Agent, Answer, Body, Made, Model, Pipeline, Prose, Provider, Read, Step, Uses, Variable};
use crate::passage::Passage;
use crate::source::{FileId, Span};
use crate::suggest;
use names::Names;
use params::Params;
use tables::{Tables, What};
use text::Scope;

/// Resolves a spec. `presets` are the providers of the library that it may start from, `templates` says which agents
/// others start from.
pub(crate) fn resolve<'a>(
    spec: &'a ast::Spec,
    presets: &'a ast::Spec,
    tables: Tables,
    templates: Vec<bool>,
    loader: &mut Loader<'_>,
    diagnostics: &mut Diagnostics,
) -> Model<'a> {
    let unused = |what: What| vec![false; tables.len(what)];
    let uses = Uses {
        params: unused(What::Param),
        secrets: unused(What::Secret),
        providers: unused(What::Provider),
        agents: unused(What::Agent),
        templates,
        prompts: unused(What::Prompt),
        pipeline_params: Vec::new(),
    };
    let (shared, renames) = (Vec::new(), BTreeMap::new());
    let mut resolver = Resolver { spec, presets, tables, uses, renames, loader, diagnostics, shared };
    resolver.default_paths(&spec.params);
    resolver.shared = resolver.shared_prompts();
    let providers = spec.providers.iter().map(|provider| resolver.provider(provider)).collect();
    let agents: Vec<Agent<'a>> =
        spec.agents.iter().enumerate().map(|(index, agent)| resolver.agent(index, agent)).collect();
    let pipelines = spec.pipelines.iter().map(|pipeline| resolver.pipeline(pipeline, &agents)).collect();
    let default = resolver.default();
    resolver.orphan_prompts();
    resolver.answers_name_steps();
    let Resolver { tables, uses, renames, .. } = resolver;
    Model { spec, default, providers, agents, pipelines, uses, tables, renames }
}

struct Resolver<'r, 'a, 'l, 'd> {
    spec: &'a ast::Spec,
    presets: &'a ast::Spec,
    tables: Tables,
    uses: Uses,
    renames: BTreeMap<(FileId, Span), (String, usize)>,
    loader: &'r mut Loader<'l>,
    diagnostics: &'d mut Diagnostics,
    /// The texts of the shared prompts, by index.
    shared: Vec<Option<Passage>>,
}

impl<'a> Resolver<'_, 'a, '_, '_> {
    fn shared_prompts(&mut self) -> Vec<Option<Passage>> {
        let spec = self.spec;
        spec.prompts.iter().map(|prompt| self.passage(prompt.text.as_ref()?)).collect()
    }

    /// A shared prompt that no task uses is scanned here; the others are, with their task.
    fn orphan_prompts(&mut self) {
        for (index, passage) in std::mem::take(&mut self.shared).into_iter().enumerate() {
            if let Some(passage) = passage
                && !self.uses.prompts[index]
            {
                text::prose(passage, true, self.diagnostics);
            }
        }
    }

    fn default(&mut self) -> Option<usize> {
        let written = self.spec.workflow.as_ref().and_then(|workflow| workflow.default.as_ref());
        match written {
            Some(name) => self.tables.lookup(What::Pipeline, name, self.diagnostics),
            // The items of the spec itself come first.
            None => (self.tables.own_len(What::Pipeline) > 0).then_some(0),
        }
    }

    /// The default of a `file` or a `dir`: as every path of a spec, it is there and relative to it.
    fn default_paths(&mut self, params: &[ast::Param]) {
        for param in params {
            let wanted = match param.kind.kind {
                ast::TypeKind::File => Entry::File,
                ast::TypeKind::Dir => Entry::Folder,
                _ => continue,
            };
            if let Some(default) = &param.default {
                self.loader.find(&default.value, wanted, default.span, None, self.diagnostics);
            }
        }
    }

    fn provider(&mut self, provider: &'a ast::Provider) -> Provider<'a> {
        let preset = provider.preset.as_ref().and_then(|preset| self.preset(preset));
        let mut env = preset.map_or_else(Vec::new, |preset| self.variables(&preset.env));
        env.extend(self.variables(&provider.env));
        let env_reads = self.outside_reads(&env, None, "the `env` of a provider");
        let answers = provider.script.iter().flat_map(|script| &script.answers);
        let answers = answers.filter_map(|answer| Some(Answer { ast: answer, text: self.answer(answer)? })).collect();
        Provider { ast: provider, preset, env, env_reads, answers }
    }

    fn preset(&mut self, name: &Name) -> Option<&'a ast::Provider> {
        let preset = self.presets.providers.iter().find(|preset| preset.name.value == name.value);
        if preset.is_none() {
            let known: Vec<&str> = self.presets.providers.iter().map(|preset| preset.name.value.as_str()).collect();
            let (close, help) = suggest::did_you_mean(&name.value, &known, "the presets are ");
            let diagnostic = Diagnostic::new(Code::UnknownReference, format!("there is no preset `{}`", name.value))
                .label(name.span, "not in `std:providers`")
                .help_maybe(help);
            self.diagnostics.push(match close {
                Some(close) => diagnostic.unsafe_fix(format!("write `{close}`"), name.span, close),
                None => diagnostic,
            });
        }
        preset
    }

    /// A recorded answer is data: its text stands as it is.
    fn answer(&mut self, answer: &ast::Answer) -> Option<String> {
        match answer.text.as_ref()? {
            ast::Source::Inline(text) => Some(text.as_str().to_owned()),
            ast::Source::File(path) => {
                let file = self.loader.named(path.as_str(), path.span(0..path.as_str().len()), self.diagnostics)?;
                Some(self.loader.sources.text(file).to_owned())
            }
            ast::Source::Ref(_) => None,
        }
    }

    fn agent(&mut self, index: usize, agent: &'a ast::Agent) -> Agent<'a> {
        let provider = self.provider_of(index, agent);
        if let Some(provider) = provider {
            self.uses.providers[provider] = true;
        }
        let system = agent.system.as_ref().and_then(|system| self.passage(system));
        let system = system.map(|system| text::prose(system, true, self.diagnostics));
        Agent { ast: agent, provider, system }
    }

    fn provider_of(&mut self, index: usize, agent: &ast::Agent) -> Option<usize> {
        let Some(name) = &agent.provider else {
            let (home, spec) = (agent.name.span.file, self.root());
            let sole = self.tables.sole(What::Provider, home).or_else(|| self.tables.sole(What::Provider, spec));
            // One that others start from, or that an import declares, need not be able to take turns itself.
            if sole.is_some() || self.uses.templates[index] || !self.tables.modules.is_own(agent.name.span) {
                return sole;
            }
            let help = self.name_one(What::Provider, home);
            let message = format!("agent `{}` has no provider", agent.name.value);
            self.diagnostics.push(
                Diagnostic::new(Code::WrongValue, message).label(agent.name.span, "`provider=` is missing").help(help),
            );
            return None;
        };
        let is_preset = || crate::library::presets().contains(&name.value);
        if self.tables.find(What::Provider, &name.value, true, name.span.file).is_none() && is_preset() {
            let message = format!("there is no provider `{}`", name.value);
            self.diagnostics.push(
                Diagnostic::new(Code::UnknownReference, message)
                    .label(name.span, "a preset, and no provider is declared from it")
                    .help(format!("declare it: `provider {0} preset={0}`", name.value)),
            );
            return None;
        }
        self.tables.lookup(What::Provider, name, self.diagnostics)
    }

    /// What to type where one of several has to be named.
    fn name_one(&self, what: What, from: FileId) -> String {
        let seen = self.tables.seen(what, from);
        match (what, seen.is_empty()) {
            (What::Agent, true) => "declare one: `agent coder provider=…`; a sole agent is the default one".to_owned(),
            (_, true) => "declare one: `provider claude preset=claude-code`, and say `provider=claude`".to_owned(),
            (_, false) => {
                format!("write `{}=` with {}", what.noun(), suggest::list(seen.iter().map(String::as_str), "or"))
            }
        }
    }

    /// The file of the spec itself.
    fn root(&self) -> FileId {
        self.tables.modules.list[0].file
    }

    fn pipeline(&mut self, pipeline: &'a ast::Pipeline, agents: &[Agent<'a>]) -> Pipeline<'a> {
        let params = Names::new("parameter", pipeline.params.iter().map(|param| &param.name), self.diagnostics);
        for param in &pipeline.params {
            if let Some(outer) = self.tables.find(What::Param, &param.name.value, false, param.name.span.file) {
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
        self.default_paths(&pipeline.params);
        self.uses.pipeline_params.push(vec![false; params.len()]);
        let steps = Names::new("step", pipeline.steps.iter().map(|step| &step.name), self.diagnostics);
        if let Some(path) = &pipeline.working_dir {
            let span = path.span(0..path.as_str().len());
            self.loader.find(path.as_str(), Entry::Folder, span, None, self.diagnostics);
        }
        let writes = pipeline.steps.iter().flat_map(|step| &step.writes).map(|pattern| pattern.as_str()).collect();
        let within = Within {
            name: &pipeline.name.value,
            file: pipeline.name.span.file,
            steps: &steps,
            params: &params,
            writes,
        };
        let env = self.variables(&pipeline.env);
        let env_reads = self.outside_reads(&env, Some((&params, pipeline.name.span.file)), "the `env` of a pipeline");
        let mut resolved: Vec<Step<'a>> = pipeline.steps.iter().map(|step| self.step(step, &within, agents)).collect();
        let until: Vec<_> = pipeline.until.iter().map(|until| text::condition(until, self.diagnostics)).collect();
        let mut until_reads = Vec::new();
        for condition in &until {
            let passage = Passage::string(&condition.text);
            until_reads.extend(self.reads(&condition.expression.reads, &passage, &within, &[], "an `until`"));
        }
        let order = order::order(&mut resolved);
        let mut result: Vec<usize> = pipeline.result.iter().filter_map(|name| self.step_named(name, &within)).collect();
        if pipeline.result.is_empty() {
            result.extend(sole_sink(&resolved));
        }
        Pipeline { ast: pipeline, steps: resolved, until, until_reads, env, env_reads, result, order }
    }

    /// Recorded answers name tasks of any pipeline; one that names none is a slip.
    fn answers_name_steps(&mut self) {
        let spec = self.spec;
        let steps = spec.pipelines.iter().flat_map(|pipeline| &pipeline.steps);
        let known: BTreeSet<&str> = steps.map(|step| step.name.value.as_str()).collect();
        let answers = spec.providers.iter().flat_map(|provider| &provider.script).flat_map(|script| &script.answers);
        for name in answers.filter_map(|answer| answer.task.as_ref()) {
            if known.contains(name.value.as_str()) || spec.pipelines.is_empty() {
                continue;
            }
            let known: Vec<&str> = known.iter().copied().collect();
            let (close, help) = suggest::did_you_mean(&name.value, &known, "the steps are ");
            let diagnostic =
                Diagnostic::new(Code::UnknownReference, format!("there is no step `{}` in any pipeline", name.value))
                    .label(name.span, "answers nothing")
                    .help_maybe(help);
            self.diagnostics.push(match close {
                Some(close) => diagnostic.unsafe_fix(format!("write `{close}`"), name.span, close),
                None => diagnostic,
            });
        }
    }

    fn step(&mut self, step: &'a ast::Step, within: &Within<'_>, agents: &[Agent<'a>]) -> Step<'a> {
        self.diagnostics.about(Some(step.name.span));
        let mut ports: Vec<(String, Option<usize>)> = Vec::new();
        Names::new("input", step.inputs.iter().map(|input| &input.name), self.diagnostics);
        for input in &step.inputs {
            ports.push((input.name.value.clone(), self.step_named(&input.from, within)));
        }
        let agent = match &step.body {
            Some(ast::Body::Prompt(_)) => self.step_agent(step, agents),
            _ => None,
        };
        let body = self.body(step);
        let mut proses: Vec<&Prose> = match &body {
            Body::Prompt(prose) | Body::Value(prose) | Body::Stop(Some(prose)) => vec![prose],
            Body::Fields(fields) => fields.iter().map(|(_, prose)| prose).collect(),
            Body::Run | Body::Script(_) | Body::Stop(None) | Body::Missing => Vec::new(),
        };
        proses.extend(agent.and_then(|agent| agents[agent].system.as_ref()));
        let (mut reads, mut made) = (Vec::new(), Vec::new());
        for prose in proses {
            reads.extend(self.reads(&prose.template.reads, &prose.passage, within, &ports, "this"));
            made.extend(self.file_reads(prose, Some(&within.writes)));
        }
        let stdin = step.stdin.as_ref().map(|stdin| text::inline(stdin, self.loader, self.diagnostics));
        let env = self.variables(&step.env);
        let of_env = env.iter().filter_map(|variable| match variable {
            Variable::Set(_, prose) => Some(prose),
            Variable::Pass(_) | Variable::Secret(_) => None,
        });
        for prose in stdin.iter().chain(of_env) {
            reads.extend(self.reads(&prose.template.reads, &prose.passage, within, &ports, "this"));
            made.extend(self.file_reads(prose, Some(&within.writes)));
        }
        let when = step.when.as_ref().map(|when| text::condition(when, self.diagnostics));
        if let Some(when) = &when {
            let passage = Passage::string(&when.text);
            let of_when = self.reads(&when.expression.reads, &passage, within, &ports, "a `when`");
            reads.extend(of_when.into_iter().map(|read| Read { in_when: true, ..read }));
        }
        let inputs = ports.into_iter().filter_map(|(name, target)| Some((name, target?))).collect();
        let mut resolved = Step { ast: step, agent, body, when, stdin, env, inputs, reads, needs: Vec::new(), made };
        let declared =
            step.needs.iter().filter_map(|need| Some((self.step_named(&need.step, within)?, need))).collect();
        resolved.needs = needs::declared(declared, step, self.diagnostics);
        self.diagnostics.about(None);
        resolved
    }

    fn step_agent(&mut self, step: &ast::Step, agents: &[Agent<'a>]) -> Option<usize> {
        let home = step.name.span.file;
        let found = match &step.agent {
            Some(name) => self.tables.lookup(What::Agent, name, self.diagnostics),
            None => self.tables.sole(What::Agent, home).or_else(|| {
                let none = self.tables.seen(What::Agent, home).is_empty();
                let code = if none { Code::UnknownReference } else { Code::WrongValue };
                let message = format!("task `{}` has a prompt and no agent", step.name.value);
                let diagnostic = Diagnostic::new(code, message).label(step.name.span, "who takes the prompt?");
                self.diagnostics.push(diagnostic.help(self.name_one(What::Agent, home)));
                None
            }),
        };
        let agent = found?;
        self.uses.agents[agent] = true;
        let (name, silent) = (
            &agents[agent].ast.name,
            self.uses.templates[agent] || !self.tables.modules.is_own(agents[agent].ast.name.span),
        );
        if agents[agent].provider.is_none() && agents[agent].ast.provider.is_none() && silent {
            let message =
                format!("agent `{}` has no provider, and task `{}` gives it a turn", name.value, step.name.value);
            let (place, written) = match &step.agent {
                Some(agent) => (agent.span, agent.value.as_str()),
                None => (step.name.span, name.value.as_str()),
            };
            self.diagnostics.push(
                Diagnostic::new(Code::WrongValue, message)
                    .label(place, "who plays this role?")
                    .label(name.span, "declared here")
                    .help(format!("declare an agent that starts from it, and name that: `agent NAME template={written} provider=…`")),
            );
        }
        found
    }

    fn body(&mut self, step: &'a ast::Step) -> Body {
        match &step.body {
            None | Some(ast::Body::Call { .. } | ast::Body::Swarm { .. } | ast::Body::Gate(_) | ast::Body::Loop(_)) => {
                Body::Missing
            }
            Some(ast::Body::Prompt(source)) => self.prompt(step, source).map_or(Body::Missing, Body::Prompt),
            Some(ast::Body::Run(_)) => Body::Run,
            Some(ast::Body::Script(path)) => {
                let span = path.span(0..path.as_str().len());
                self.loader.named(path.as_str(), span, self.diagnostics).map_or(Body::Missing, Body::Script)
            }
            Some(ast::Body::Value(text)) => Body::Value(text::inline(text, self.loader, self.diagnostics)),
            Some(ast::Body::Fields(fields)) => Body::Fields(
                fields
                    .iter()
                    .map(|(name, text)| (name.value.clone(), text::inline(text, self.loader, self.diagnostics)))
                    .collect(),
            ),
            Some(ast::Body::Stop { message, .. }) => {
                Body::Stop(message.as_ref().map(|message| text::inline(message, self.loader, self.diagnostics)))
            }
        }
    }

    /// Prefix, prompt and suffix as one text, so that logic and narrowing see what will be rendered.
    fn prompt(&mut self, step: &'a ast::Step, source: &'a ast::Source) -> Option<Prose> {
        let prefix = step.prefix.as_ref().map(|prefix| self.passage(prefix));
        let prompt = self.passage(source);
        let suffix = step.suffix.as_ref().map(|suffix| self.passage(suffix));
        // A part that is not there has been reported; the others are read all the same.
        let parts: Vec<Passage> = [prefix, Some(prompt), suffix].into_iter().flatten().flatten().collect();
        if parts.is_empty() {
            return None;
        }
        let [whole] = parts.as_slice() else {
            let mut whole = Passage::empty(step.name.span);
            for (index, part) in parts.iter().enumerate() {
                if index > 0 {
                    whole.made("\n\n", step.name.span);
                }
                let part = part.trimmed();
                whole.append(&part, 0..part.text().len());
            }
            return Some(text::prose(whole, true, self.diagnostics));
        };
        Some(text::prose(whole.clone(), true, self.diagnostics))
    }

    fn passage(&mut self, source: &ast::Source) -> Option<Passage> {
        let (tables, shared, uses) = (&self.tables, &self.shared, &mut self.uses);
        let mut lookup = |name: &Spanned<String>, diagnostics: &mut Diagnostics| {
            let index = tables.lookup(What::Prompt, name, diagnostics)?;
            uses.prompts[index] = true;
            shared[index].clone()
        };
        text::passage(source, self.loader, &mut lookup, self.diagnostics)
    }

    fn variables(&mut self, variables: &[ast::Variable]) -> Vec<Variable> {
        let mut resolved = Vec::new();
        for variable in variables {
            resolved.push(match variable {
                ast::Variable::Named(name) => match self.secret(name) {
                    Some(secret) => {
                        self.uses.secrets[secret] = true;
                        Variable::Secret(self.spec.secrets[secret].env.clone())
                    }
                    None => Variable::Pass(name.value.clone()),
                },
                ast::Variable::Set(name, text) => {
                    Variable::Set(name.clone(), text::inline(text, self.loader, self.diagnostics))
                }
            });
        }
        resolved
    }

    /// The secret of this name, or the one that this variable holds.
    fn secret(&self, name: &Name) -> Option<usize> {
        let (name, home) = (&name.value, name.span.file);
        self.tables.find(What::Secret, name, true, home).or_else(|| {
            let secrets = self.tables.seen(What::Secret, home);
            let secrets = secrets.iter().filter_map(|seen| self.tables.find(What::Secret, seen, true, home));
            secrets.into_iter().find(|secret| self.spec.secrets[*secret].env == *name)
        })
    }

    /// What variables read that are the same for every step.
    fn outside_reads(&mut self, env: &[Variable], params: Option<(&Names, FileId)>, place: &str) -> Vec<Read> {
        let mut reads = Vec::new();
        for variable in env {
            let Variable::Set(_, prose) = variable else { continue };
            // The first step to start reads it already.
            self.file_reads(prose, None);
            let params = Params { tables: &self.tables, inner: params, outer: &self.spec.params, uses: &mut self.uses };
            let mut scope = Scope { steps: None, ports: &[], params, renames: &mut self.renames, place };
            reads.extend(text::reads(&prose.template.reads, &prose.passage, &mut scope, self.diagnostics));
        }
        reads
    }

    fn reads(
        &mut self,
        found: &[crate::template::Read],
        passage: &Passage,
        within: &Within<'_>,
        ports: &[(String, Option<usize>)],
        place: &str,
    ) -> Vec<Read> {
        let inner = Some((within.params, within.file));
        let params = Params { tables: &self.tables, inner, outer: &self.spec.params, uses: &mut self.uses };
        let steps = Some((within.name, within.steps));
        let mut scope = Scope { steps, ports, params, renames: &mut self.renames, place };
        text::reads(found, passage, &mut scope, self.diagnostics)
    }

    /// `<<file:PATH>>`: it must be there, unless a step says that it writes it; those are given.
    fn file_reads(&mut self, prose: &Prose, writes: Option<&[&str]>) -> Vec<Made> {
        let mut made = Vec::new();
        for part in &prose.template.parts {
            let crate::template::Part::Directive(directive) = part else { continue };
            let (crate::template::Kind::File, Some(name)) = (directive.kind, &directive.name) else { continue };
            let span = prose.passage.span(name.range.clone());
            let written = |path: &str| writes.unwrap_or_default().iter().any(|glob| fast_glob::glob_match(glob, path));
            let written = writes.map(|_| &written as &dyn Fn(&str) -> bool);
            let path = self.loader.find(&name.value, Entry::File, span, written, self.diagnostics);
            made.extend(path.map(|path| Made { path, span }));
        }
        made
    }

    fn step_named(&mut self, name: &Name, within: &Within<'_>) -> Option<usize> {
        let step = within.steps.exact(&name.value);
        if step.is_none() {
            self.diagnostics.push(text::unknown_step(
                &name.value,
                within.name,
                within.steps,
                name.span,
                &str::to_owned,
            ));
        }
        step
    }
}

/// The names that a step of a pipeline sees.
struct Within<'w> {
    name: &'w str,
    file: FileId,
    steps: &'w Names,
    params: &'w Names,
    /// The patterns of paths that steps say they write.
    writes: Vec<&'w str>,
}

/// The only step that no other needs; a `stop` is not one.
fn sole_sink(steps: &[Step<'_>]) -> Option<usize> {
    let mut needed = vec![false; steps.len()];
    for need in steps.iter().flat_map(|step| &step.needs) {
        needed[need.step] = true;
    }
    let mut sinks = (0..steps.len()).filter(|&step| !needed[step] && !matches!(steps[step].body, Body::Stop(_)));
    match (sinks.next(), sinks.next()) {
        (Some(sink), None) => Some(sink),
        _ => None,
    }
}
