//! Typed tree to model: looks names up, reads the files that texts stand in, scans the texts, and spells needs out.

mod names;
mod needs;
mod order;
mod pipeline;
mod step;
pub(crate) mod text;

use crate::ast::{self, Name, Spanned};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::files::Entry;
use crate::load::Loader;
use crate::model::{Agent, Answer, Model, Pipeline, Provider, Read, Uses, Variable};
use crate::passage::Passage;
use crate::suggest;
use crate::types::{self, Typing};
use names::Names;
use text::Scope;

/// Resolves a spec. `presets` are the providers of the library that it may start from.
pub(crate) fn resolve<'a>(
    spec: &'a ast::Spec,
    presets: &'a ast::Spec,
    loader: &mut Loader<'_>,
    diagnostics: &mut Diagnostics,
) -> Model<'a> {
    let tables = Tables::new(spec, diagnostics);
    let uses = Uses {
        params: vec![false; tables.params.len()],
        secrets: vec![false; tables.secrets.len()],
        providers: vec![false; tables.providers.len()],
        agents: vec![false; tables.agents.len()],
        prompts: vec![false; tables.prompts.len()],
        tasks: vec![false; tables.tasks.len()],
        packs: vec![false; tables.packs.len()],
        swarms: vec![false; tables.swarms.len()],
        types: vec![false; tables.types.len()],
        pipeline_params: Vec::new(),
    };
    let mut resolver = Resolver { spec, presets, tables, uses, loader, diagnostics, shared: Vec::new() };
    resolver.default_paths(&spec.params);
    resolver.shared = resolver.shared_prompts();
    let providers = spec.providers.iter().map(|provider| resolver.provider(provider)).collect();
    let agents: Vec<Agent<'a>> = spec.agents.iter().map(|agent| resolver.agent(agent)).collect();
    let pipelines: Vec<Pipeline<'a>> =
        spec.pipelines.iter().map(|pipeline| resolver.pipeline(pipeline, &agents)).collect();
    let default = resolver.default();
    resolver.orphan_prompts();
    resolver.answers_name_steps(&pipelines);
    let Resolver { tables, uses, diagnostics, .. } = resolver;
    let mut model = Model { spec, default, providers, agents, pipelines, uses, typing: Typing::default() };
    let mut used = std::mem::take(&mut model.uses.types);
    let mut find = |name: &Name| {
        let index = lookup("type", name, &tables.types, "{ … }", diagnostics)?;
        used[index] = true;
        Some(index)
    };
    let typing = types::typing(&model, &mut find);
    for (pipeline, known) in model.pipelines.iter_mut().zip(&typing.pipelines) {
        for (index, step) in pipeline.steps.iter_mut().enumerate() {
            step.declared = known.declared[index].clone();
            step.output = known.steps.output(index).clone();
        }
    }
    model.typing = typing;
    model.uses.types = used;
    model.typing.types.check_founded(diagnostics);
    model
}

/// The names of the top level.
struct Tables {
    params: Names,
    secrets: Names,
    providers: Names,
    agents: Names,
    prompts: Names,
    tasks: Names,
    packs: Names,
    pipelines: Names,
    swarms: Names,
    types: Names,
}

impl Tables {
    fn new(spec: &ast::Spec, diagnostics: &mut Diagnostics) -> Tables {
        Tables {
            params: Names::new("parameter", spec.params.iter().map(|param| &param.name), diagnostics),
            secrets: Names::new("secret", spec.secrets.iter().map(|secret| &secret.name), diagnostics),
            providers: Names::new("provider", spec.providers.iter().map(|provider| &provider.name), diagnostics),
            agents: Names::new("agent", spec.agents.iter().map(|agent| &agent.name), diagnostics),
            prompts: Names::new("prompt", spec.prompts.iter().map(|prompt| &prompt.name), diagnostics),
            tasks: Names::new("task", spec.tasks.iter().map(|task| &task.name), diagnostics),
            packs: Names::new("context-pack", spec.packs.iter().map(|pack| &pack.name), diagnostics),
            swarms: Names::new("swarm", spec.swarms.iter().map(|swarm| &swarm.name), diagnostics),
            types: Names::new("type", spec.types.iter().map(|declared| &declared.name), diagnostics),
            pipelines: Names::new("pipeline", spec.pipelines.iter().map(|pipeline| &pipeline.name), diagnostics),
        }
    }
}

struct Resolver<'r, 'a, 'l, 'd> {
    spec: &'a ast::Spec,
    presets: &'a ast::Spec,
    tables: Tables,
    uses: Uses,
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
            Some(name) => self.lookup("pipeline", name, |tables| &tables.pipelines, "{ … }"),
            None => (!self.spec.pipelines.is_empty()).then_some(0),
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
        let env_reads = self.outside_reads(&env, &Names::default(), "the `env` of a provider");
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

    fn agent(&mut self, agent: &'a ast::Agent) -> Agent<'a> {
        let provider = self.provider_of(agent);
        if let Some(provider) = provider {
            self.uses.providers[provider] = true;
        }
        let system = agent.system.as_ref().and_then(|system| self.passage(system));
        let system = system.map(|system| text::prose(system, true, self.diagnostics));
        Agent { ast: agent, provider, system }
    }

    fn provider_of(&mut self, agent: &ast::Agent) -> Option<usize> {
        let Some(name) = &agent.provider else {
            if self.tables.providers.distinct() == 1 {
                return Some(0);
            }
            let known = self.tables.providers.iter();
            let help = match self.spec.providers.is_empty() {
                true => "declare one: `provider claude preset=claude-code`, and say `provider=claude`".to_owned(),
                false => format!("write `provider=` with {}", suggest::list(known, "or")),
            };
            let message = format!("agent `{}` has no provider", agent.name.value);
            self.diagnostics.push(
                Diagnostic::new(Code::WrongValue, message).label(agent.name.span, "`provider=` is missing").help(help),
            );
            return None;
        };
        let is_preset = || crate::library::presets().contains(&name.value);
        if self.tables.providers.exact(&name.value).is_none() && is_preset() {
            let message = format!("there is no provider `{}`", name.value);
            self.diagnostics.push(
                Diagnostic::new(Code::UnknownReference, message)
                    .label(name.span, "a preset, and no provider is declared from it")
                    .help(format!("declare it: `provider {0} preset={0}`", name.value)),
            );
            return None;
        }
        self.lookup("provider", name, |tables| &tables.providers, "{ … }")
    }

    fn passage(&mut self, source: &ast::Source) -> Option<Passage> {
        let (tables, shared, uses) = (&self.tables, &self.shared, &mut self.uses);
        let mut lookup = |name: &Spanned<String>, diagnostics: &mut Diagnostics| {
            let index = lookup("prompt", name, &tables.prompts, "file=…", diagnostics)?;
            uses.prompts[index] = true;
            shared[index].clone()
        };
        text::passage(source, self.loader, &mut lookup, self.diagnostics)
    }

    fn variables(&mut self, variables: &[ast::Variable]) -> Vec<Variable> {
        let mut resolved = Vec::new();
        for variable in variables {
            resolved.push(match variable {
                ast::Variable::Named(name) => match self.secret(&name.value) {
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
    fn secret(&self, name: &str) -> Option<usize> {
        self.tables.secrets.exact(name).or_else(|| self.spec.secrets.iter().position(|secret| secret.env == name))
    }

    /// What variables read that are the same for every step.
    fn outside_reads(&mut self, env: &[Variable], params: &Names, place: &str) -> Vec<Read> {
        let mut reads = Vec::new();
        for variable in env {
            let Variable::Set(_, prose) = variable else { continue };
            // The first step to start reads it already.
            self.file_reads(prose, None);
            let mut param = param_lookup(&self.tables.params, params, &mut self.uses);
            let mut scope = Scope { steps: None, ports: &[], param: &mut param, place };
            reads.extend(text::reads(&prose.template.reads, &prose.passage, &mut scope, self.diagnostics));
        }
        reads
    }

    fn lookup(&mut self, what: &str, name: &Name, table: fn(&Tables) -> &Names, rest: &str) -> Option<usize> {
        lookup(what, name, table(&self.tables), rest, self.diagnostics)
    }
}

/// Looks a parameter up in the pipeline, then in the workflow, and marks it as used.
fn param_lookup<'p>(
    outer: &'p Names,
    inner: &'p Names,
    uses: &'p mut Uses,
) -> impl FnMut(&str, bool) -> Result<(), Vec<String>> + 'p {
    move |name, exact| {
        if let Some(index) = inner.find(name, exact) {
            let own = uses.pipeline_params.last_mut().expect("the pipeline's own are being resolved");
            own[index] = true;
            return Ok(());
        }
        match outer.find(name, exact) {
            Some(index) => {
                uses.params[index] = true;
                Ok(())
            }
            None => Err(inner.iter().chain(outer.iter()).map(str::to_owned).collect()),
        }
    }
}

/// The thing that a name names, or a report; `rest` is what follows the name where such a thing is declared.
fn lookup(what: &str, name: &Name, table: &Names, rest: &str, diagnostics: &mut Diagnostics) -> Option<usize> {
    let found = table.exact(&name.value);
    if found.is_none() {
        let known: Vec<&str> = table.iter().collect();
        let (close, help) = suggest::did_you_mean(&name.value, &known, &format!("the {what}s are "));
        let help = help.unwrap_or_else(|| format!("declare it: `{what} {} {rest}`", name.value));
        let diagnostic = Diagnostic::new(Code::UnknownReference, format!("there is no {what} `{}`", name.value))
            .label(name.span, "not defined")
            .help(help);
        diagnostics.push(match close {
            Some(close) => diagnostic.unsafe_fix(format!("write `{close}`"), name.span, close),
            None => diagnostic,
        });
    }
    found
}
