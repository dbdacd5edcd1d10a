//! Resolves the typed tree to the model: looks up names, reads prompt and script files, scans texts, collects needs.

mod edges;
pub(crate) mod files;
mod lists;
mod needs;
pub(crate) mod order;
mod pack;
mod params;
mod pipeline;
pub(crate) mod presets;
mod reach;
pub(crate) mod replace;
mod step;
mod swarm;
pub(crate) mod templates;
mod test;
pub(crate) mod text;
mod typing;
pub(crate) mod variants;

use std::cell::OnceCell;
use std::collections::BTreeMap;

use swarmc_plan::ProviderKind;

use crate::ast::{self, Name, Spanned};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::files::Entry;
use crate::load::Loader;
use crate::mapped_text::MappedText;
use crate::model::{Agent, Answer, Model, Pipeline, Provider, Read, Server, Start, TemplateText, Uses, Variable};
use crate::source::{FileId, Span};
use crate::suggest;
use crate::symbols::names::Names;
use crate::symbols::{NameKind, Tables};
use crate::types::Typing;
use params::Params;
pub(crate) use pipeline::list_receivers;
use text::{Has, Scope};

/// What was filled in before.
pub(crate) struct Filled {
    /// Which agents others start from.
    pub(crate) templates: Vec<bool>,
    /// Which providers a person named: others stand in for them, or they for others.
    pub(crate) providers: Vec<bool>,
}

/// Resolves a spec. `presets` are the providers of the library that it may start from.
pub(crate) fn resolve_spec<'a>(
    spec: &'a ast::Spec,
    presets: &'a ast::Spec,
    tables: Tables,
    filled: Filled,
    loader: &mut Loader<'_>,
    diagnostics: &mut Diagnostics,
) -> Model<'a> {
    let unused = |what: NameKind| vec![false; tables.len(what)];
    let uses = Uses {
        params: unused(NameKind::Param),
        secrets: unused(NameKind::Secret),
        providers: filled.providers,
        agents: unused(NameKind::Agent),
        templates: filled.templates,
        prompts: unused(NameKind::Prompt),
        tasks: unused(NameKind::Task),
        packs: unused(NameKind::Pack),
        tiers: unused(NameKind::Tier),
        swarms: unused(NameKind::Swarm),
        types: unused(NameKind::Type),
        pipeline_params: Vec::new(),
    };
    let (shared, renames) = (Vec::new(), BTreeMap::new());
    let mut resolver = Resolver {
        spec,
        presets,
        tables,
        uses,
        renames,
        loader,
        diagnostics,
        shared,
        made_across_calls: OnceCell::new(),
    };
    resolver.check_sources(&spec.params);
    resolver.shared = resolver.shared_prompts();
    let providers = spec.providers.iter().map(|provider| resolver.resolve_provider(provider)).collect();
    let agents: Vec<Agent<'a>> =
        spec.agents.iter().enumerate().map(|(index, agent)| resolver.resolve_agent(index, agent)).collect();
    let packs = resolver.resolve_packs(&agents);
    let wanted = reach::find_reachable(spec, &resolver.tables);
    let pipelines = resolver.resolve_pipelines(&agents, &wanted);
    let default = resolver.default();
    let swarms = resolver.resolve_swarms(&agents, default);
    resolver.packs_given(&packs, &pipelines, &swarms);
    let servers = spec.tool_servers.iter().map(|server| resolver.resolve_server(server)).collect();
    let hooks = spec.hooks.iter().map(|hook| resolver.resolve_hook(hook)).collect();
    resolver.resolve_fallbacks(&agents);
    resolver.orphan_prompts();
    resolver.answers_name_steps(&pipelines);
    let tests = resolver.resolve_tests(&pipelines, &wanted, default);
    let Resolver { tables, uses, renames, diagnostics, .. } = resolver;
    let typing = Typing::default();
    let mut model = Model {
        spec,
        default,
        providers,
        agents,
        servers,
        hooks,
        pipelines,
        wanted,
        swarms,
        packs,
        tests,
        uses,
        tables,
        renames,
        typing,
    };
    // `find` marks types while `model` is borrowed, so the marks stand beside it until then.
    let mut used = std::mem::take(&mut model.uses.types);
    let mut find = |name: &Name| {
        let index = model.tables.resolve_name(NameKind::Type, name, diagnostics)?;
        used[index] = true;
        Some(index)
    };
    let typing = typing::infer_types(&model, &mut find);
    for (pipeline, known) in model.pipelines.iter_mut().zip(&typing.pipelines) {
        for (index, step) in pipeline.steps.iter_mut().enumerate() {
            step.declared = known.declared[index].clone();
            step.output = known.steps.output(index).clone();
            if let Some((written, files)) = step.ast.files.as_deref().zip(step.files.as_mut()) {
                files.kinds = files::output_types(written, &typing.types, &mut find);
            }
        }
        pipeline.carries = edges::carried_types(pipeline.ast.edges.as_ref(), &typing.types, &mut find);
    }
    for swarm in &mut model.swarms {
        swarm.carries = edges::carried_types(swarm.ast.edges.as_ref(), &typing.types, &mut find);
    }
    for agent in &mut model.agents {
        if let Some((written, files)) = agent.ast.files.as_ref().zip(agent.files.as_mut()) {
            files.kinds = files::output_types(written, &typing.types, &mut find);
        }
    }
    model.typing = typing;
    model.uses.types = used;
    model.typing.types.check_founded(diagnostics);
    model
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
    shared: Vec<Option<MappedText>>,
    /// What [`Resolver::made_across_calls`] has found.
    made_across_calls: OnceCell<Vec<&'a str>>,
}

impl<'a> Resolver<'_, 'a, '_, '_> {
    /// Every pipeline. Those that no run comes to are resolved last, and what they use does not count.
    fn resolve_pipelines(&mut self, agents: &[Agent<'a>], wanted: &[bool]) -> Vec<Pipeline<'a>> {
        let spec = self.spec;
        let mut order: Vec<usize> = (0..spec.pipelines.len()).collect();
        order.sort_by_key(|&index| !wanted[index]);
        let mut resolved = Vec::with_capacity(order.len());
        let mut kept = None;
        for &index in &order {
            if !wanted[index] && kept.is_none() {
                kept = Some(self.uses.clone());
            }
            resolved.push((index, self.resolve_pipeline(&spec.pipelines[index], agents)));
        }
        // These stand in the order of resolution, and their readers expect that of the spec.
        let params = std::mem::take(&mut self.uses.pipeline_params);
        if let Some(kept) = kept {
            self.uses = kept;
        }
        let mut params: Vec<(usize, Vec<bool>)> = order.into_iter().zip(params).collect();
        params.sort_by_key(|(index, _)| *index);
        self.uses.pipeline_params = params.into_iter().map(|(_, used)| used).collect();
        resolved.sort_by_key(|(index, _)| *index);
        resolved.into_iter().map(|(_, pipeline)| pipeline).collect()
    }

    fn shared_prompts(&mut self) -> Vec<Option<MappedText>> {
        let spec = self.spec;
        spec.prompts.iter().map(|prompt| self.resolve_passage(prompt.text.as_ref()?)).collect()
    }

    /// A shared prompt that no task uses is scanned here; the others are, with their task.
    fn orphan_prompts(&mut self) {
        for (index, passage) in std::mem::take(&mut self.shared).into_iter().enumerate() {
            if let Some(passage) = passage
                && !self.uses.prompts[index]
            {
                text::scan_prose(passage, true, self.diagnostics);
            }
        }
    }

    fn default(&mut self) -> Option<Start> {
        let written = self.spec.workflow.as_ref().and_then(|workflow| workflow.default.as_ref());
        let Some(name) = written else {
            // The items of the spec itself come first.
            let pipeline = (self.tables.own_len(NameKind::Pipeline) > 0).then_some(Start::Pipeline(0));
            return pipeline.or_else(|| (self.tables.own_len(NameKind::Swarm) > 0).then_some(Start::Swarm(0)));
        };
        let home = name.span.file;
        if let Some(pipeline) = self.tables.find_name(NameKind::Pipeline, &name.value, true, home) {
            return Some(Start::Pipeline(pipeline));
        }
        if let Some(swarm) = self.tables.find_name(NameKind::Swarm, &name.value, true, home) {
            return Some(Start::Swarm(swarm));
        }
        let swarms = self.tables.visible_names(NameKind::Swarm, home);
        let swarms: Vec<&str> = swarms.iter().map(String::as_str).collect();
        let unknown =
            self.tables.unknown_name(NameKind::Pipeline, &name.value, name.span, home, &str::to_owned, &swarms);
        self.diagnostics.push(unknown);
        None
    }

    /// The default of a `file` or a `dir`: as every path of a spec, it is there and relative to it. And the environment,
    /// which is for the spec itself.
    fn check_sources(&mut self, params: &[ast::Param]) {
        for param in params {
            if let Some(env) = param.env.as_ref().filter(|env| !self.tables.modules.is_own(env.span)) {
                self.diagnostics.push(
                    Diagnostic::new(Code::SecretInPrompt, "what is imported may not read the environment")
                        .label(env.span, "a variable of the one who imports it")
                        .help("declare the parameter without `env`, and pass its value from the spec that imports it"),
                );
            }
            let wanted = match param.kind.kind {
                ast::TypeKind::File => Entry::File,
                ast::TypeKind::Dir => Entry::Folder,
                _ => continue,
            };
            if let Some(default) = &param.default {
                self.loader.find_entry(&default.value, wanted, default.span, None, self.diagnostics);
            }
        }
    }

    fn resolve_provider(&mut self, provider: &'a ast::Provider) -> Provider<'a> {
        let preset = provider.preset.as_ref().and_then(|preset| self.resolve_preset(preset));
        let mut env = preset.map_or_else(Vec::new, |preset| self.resolve_variables(&preset.env));
        env.extend(self.resolve_variables(&provider.env));
        let env_reads = self.outside_reads(&env, None, "the `env` of a provider");
        let answers = provider.script.iter().flat_map(|script| &script.answers);
        let answers =
            answers.filter_map(|answer| Some(Answer { ast: answer, text: self.resolve_answer(answer)? })).collect();
        Provider { ast: provider, preset, auth: self.resolve_auth(provider, preset), env, env_reads, answers }
    }

    /// The variable that holds the key of a provider's model.
    fn resolve_auth(&mut self, provider: &ast::Provider, preset: Option<&ast::Provider>) -> Option<String> {
        let kind = provider.kind().or_else(|| preset?.kind());
        let is_model = kind.is_none_or(ProviderKind::is_model) && (kind.is_some() || preset.is_none());
        let stray = provider.auth.as_ref().map(|auth| ("auth", auth.span));
        if let (false, Some((node, span))) =
            (is_model, stray.or(provider.rate.as_ref().map(|rate| ("rate", rate.span))))
        {
            let diagnostic = Diagnostic::new(
                Code::WrongValue,
                format!("`{node}` is for models, but `{}` is not a model", provider.name.value),
            )
            .label(span, "only an `llm` uses it")
            .help(match node {
                "auth" => "give a command its key with `env NAME`",
                _ => "limit the attempts that run at once with `concurrency`",
            });
            self.diagnostics.push(diagnostic);
            return None;
        }
        // An endpoint of its own is not sent the key of the preset's.
        let name = provider.auth.as_ref().or_else(|| preset.filter(|_| provider.llm.is_none())?.auth.as_ref())?;
        self.resolve_key(name)
    }

    /// The variable that holds a secret, which may be named itself.
    fn resolve_key(&mut self, name: &Name) -> Option<String> {
        if let Some(secret) = self.find_secret(name) {
            self.uses.secrets[secret] = true;
            return Some(self.spec.secrets[secret].env.clone());
        }
        if name.value.bytes().any(|byte| byte.is_ascii_lowercase()) {
            // Environment variables have no lower case, so the author means a secret.
            self.tables.resolve_name(NameKind::Secret, name, self.diagnostics);
            return None;
        }
        Some(name.value.clone())
    }

    fn resolve_preset(&mut self, name: &Name) -> Option<&'a ast::Provider> {
        let preset = self.presets.providers.iter().find(|preset| preset.name.value == name.value);
        if preset.is_none() {
            let known: Vec<&str> = self.presets.providers.iter().map(|preset| preset.name.value.as_str()).collect();
            let (close, help) = suggest::did_you_mean(&name.value, &known, "the presets are ");
            let diagnostic = Diagnostic::new(Code::UnknownReference, format!("there is no preset `{}`", name.value))
                .label(name.span, "not in `std:providers`")
                .help_maybe(help);
            self.diagnostics.push(match close {
                Some(close) => diagnostic.write_near(name.span, close),
                None => diagnostic,
            });
        }
        preset
    }

    /// A recorded answer is data: its text stands as it is.
    fn resolve_answer(&mut self, answer: &ast::Answer) -> Option<String> {
        match answer.text.as_ref()? {
            ast::Source::Inline(text) => Some(text.as_str().to_owned()),
            ast::Source::File(path) => {
                let file =
                    self.loader.resolve_file(path.as_str(), path.span(0..path.as_str().len()), self.diagnostics)?;
                Some(self.loader.sources.text(file).to_owned())
            }
            ast::Source::Ref(_) => None,
        }
    }

    fn resolve_agent(&mut self, index: usize, agent: &'a ast::Agent) -> Agent<'a> {
        let provider = self.provider_of(index, agent);
        if let Some(provider) = provider {
            self.uses.providers[provider] = true;
        }
        let system = agent.system.as_ref().and_then(|system| self.resolve_passage(system));
        let system = system.map(|system| text::scan_prose(system, true, self.diagnostics));
        let tier = agent
            .tier
            .as_ref()
            .and_then(|tier| self.tables.find_name(NameKind::Tier, &tier.value, true, tier.span.file));
        let fallback =
            agent.fallback.as_ref().and_then(|name| self.tables.resolve_name(NameKind::Agent, name, self.diagnostics));
        let files = agent.files.as_ref().map(|files| self.resolve_files(files));
        Agent { ast: agent, provider, tier, fallback, system, files }
    }

    fn resolve_server(&mut self, server: &'a ast::ToolServer) -> Server<'a> {
        let env = self.resolve_variables(&server.env);
        let env_reads = self.outside_reads(&env, None, "the `env` of a tool server");
        let auth = server.auth.as_ref().and_then(|auth| self.resolve_key(auth));
        Server { ast: server, auth, env, env_reads }
    }

    /// The script file of a hook, if it runs one.
    fn resolve_hook(&mut self, hook: &ast::Hook) -> Option<FileId> {
        let Some(ast::Body::Script(path)) = &hook.body else { return None };
        self.loader.resolve_file(path.as_str(), path.span(0..path.as_str().len()), self.diagnostics)
    }

    /// An agent that stands in for one that is used is used too; agents that stand in for each other are reported.
    fn resolve_fallbacks(&mut self, agents: &[Agent<'a>]) {
        let used: Vec<usize> = (0..agents.len()).filter(|&agent| self.uses.agents[agent]).collect();
        for mut agent in used {
            // `takes_turns` marks the next agent as used, so a circle ends this walk.
            while let Some(next) = agents[agent].fallback.filter(|&next| !self.uses.agents[next]) {
                if let Some(name) = &agents[agent].ast.fallback {
                    self.takes_turns(next, name, agents);
                }
                agent = next;
            }
        }
        // Each agent is walked over once: where a walk meets itself, it has found a circle.
        let mut walk = vec![0; agents.len()];
        for start in 0..agents.len() {
            let mut path = Vec::new();
            let mut at = Some(start);
            while let Some(agent) = at.filter(|&agent| walk[agent] == 0) {
                walk[agent] = start + 1;
                path.push(agent);
                at = agents[agent].fallback;
            }
            if let Some(met) = at.filter(|&agent| walk[agent] == start + 1)
                && let Some(first) = path.iter().position(|&agent| agent == met)
            {
                self.diagnostics.push(fallback_cycle(agents, &path[first..]));
            }
        }
    }

    fn provider_of(&mut self, index: usize, agent: &ast::Agent) -> Option<usize> {
        let of_tier = match (&agent.provider, &agent.tier) {
            (None, Some(tier)) => {
                let tier = self.tables.resolve_name(NameKind::Tier, tier, self.diagnostics)?;
                self.uses.tiers[tier] = true;
                Some(&self.spec.tiers[tier].provider)
            }
            _ => None,
        };
        let Some(name) = agent.provider.as_ref().or(of_tier) else {
            let (home, spec) = (agent.name.span.file, self.tables.modules.list[0].file);
            // An imported agent may lean on the only provider of the spec that imports it.
            let sole = self
                .tables
                .find_sole(NameKind::Provider, home)
                .or_else(|| self.tables.find_sole(NameKind::Provider, spec));
            if sole.is_some() || self.is_template(index) {
                return sole;
            }
            let help = self.name_one(NameKind::Provider, home);
            let message = format!("agent `{}` has no provider", agent.name.value);
            self.diagnostics.push(
                Diagnostic::new(Code::WrongValue, message).label(agent.name.span, "`provider=` is missing").help(help),
            );
            return None;
        };
        self.tables.resolve_name(NameKind::Provider, name, self.diagnostics)
    }

    /// Whether an agent need not be able to take turns itself: others start from it, or it is there for those that
    /// import it.
    fn is_template(&self, agent: usize) -> bool {
        self.uses.templates[agent] || !self.tables.modules.is_own(self.spec.agents[agent].name.span)
    }

    /// What to type where one of several has to be named.
    fn name_one(&self, what: NameKind, from: FileId) -> String {
        let seen = self.tables.visible_names(what, from);
        match (what, seen.is_empty()) {
            (NameKind::Agent, true) => {
                "name one, `agent=claude-code` for example, or declare one: a sole agent is the default one".to_owned()
            }
            (_, true) => "name one, `provider=claude-code` for example".to_owned(),
            (_, false) => {
                format!(
                    "write `{}=` with {}",
                    what.as_str(),
                    suggest::format_list(seen.iter().map(String::as_str), "or")
                )
            }
        }
    }

    fn resolve_passage(&mut self, source: &ast::Source) -> Option<MappedText> {
        let (tables, shared, uses) = (&self.tables, &self.shared, &mut self.uses);
        let mut lookup = |name: &Spanned<String>, diagnostics: &mut Diagnostics| {
            let index = tables.resolve_name(NameKind::Prompt, name, diagnostics)?;
            uses.prompts[index] = true;
            shared[index].clone()
        };
        text::load_passage(source, self.loader, &mut lookup, self.diagnostics)
    }

    fn resolve_variables(&mut self, variables: &[ast::Variable]) -> Vec<Variable> {
        let mut resolved = Vec::new();
        for variable in variables {
            resolved.push(match variable {
                ast::Variable::Named(name) => match self.find_secret(name) {
                    Some(secret) => {
                        self.uses.secrets[secret] = true;
                        Variable::Secret(self.spec.secrets[secret].env.clone())
                    }
                    None => Variable::Pass(name.value.clone()),
                },
                ast::Variable::Set(name, text) => {
                    Variable::Set(name.clone(), text::scan_inline(text, self.loader, self.diagnostics))
                }
            });
        }
        resolved
    }

    /// The secret of this name, or the one that this variable holds.
    fn find_secret(&self, name: &Name) -> Option<usize> {
        let (name, home) = (&name.value, name.span.file);
        self.tables.find_name(NameKind::Secret, name, true, home).or_else(|| {
            let holds = |secret: &ast::Secret| secret.env == *name;
            let seen = |index: &usize| self.tables.is_visible(NameKind::Secret, *index, home);
            (0..self.spec.secrets.len()).filter(|index| holds(&self.spec.secrets[*index])).find(seen)
        })
    }

    /// What variables read that are the same for every step.
    fn outside_reads(&mut self, env: &[Variable], params: Option<(&Names, FileId)>, place: &str) -> Vec<Read> {
        let mut reads = Vec::new();
        for variable in env {
            let Variable::Set(_, prose) = variable else { continue };
            // The first step to start reads it already.
            self.file_reads(prose, None);
            reads.extend(self.free_reads(prose, params, place, Has::default()));
        }
        reads
    }

    /// What a text reads that stands outside of every step.
    fn free_reads(
        &mut self,
        prose: &TemplateText,
        inner: Option<(&Names, FileId)>,
        place: &str,
        has: Has,
    ) -> Vec<Read> {
        let spec = self.spec;
        let params =
            Params { tables: &self.tables, inner, outer: &spec.params, packs: &spec.packs, uses: &mut self.uses };
        let mut scope = Scope { steps: None, ports: &[], params, renames: &mut self.renames, task: None, place, has };
        text::resolve_reads(&prose.template.reads, &prose.passage, &mut scope, self.diagnostics)
    }
}

fn fallback_cycle(agents: &[Agent<'_>], cycle: &[usize]) -> Diagnostic {
    let name = |agent: usize| agents[agent].ast.name.value.as_str();
    let path: Vec<String> = cycle.iter().chain(cycle.first()).map(|&agent| format!("`{}`", name(agent))).collect();
    let diagnostic =
        Diagnostic::new(Code::Cycle, format!("these agents are fallbacks of each other: {}", path.join(" → ")));
    let spans = cycle.iter().filter_map(|&agent| Some((agent, agents[agent].ast.fallback.as_ref()?.span)));
    spans
        .take(6)
        .fold(diagnostic, |diagnostic, (agent, span)| {
            diagnostic.label(span, format!("the fallback of `{}`", name(agent)))
        })
        .help("remove one of these `fallback` nodes")
}
