//! Who does the work: providers, agents, the servers of their tools; and the commands of hooks.

use swarmc_plan as plan;
use swarmc_plan::{Ability, Connection};

use super::{Emitter, command};
use crate::ast;
use crate::model::{Agent, Answer, Provider, Server};
use crate::source::FileId;
use crate::symbols::NameKind;

impl Emitter<'_, '_, '_> {
    pub(super) fn emit_provider(&self, provider: &Provider<'_>) -> plan::Provider {
        let (own, preset) = (provider.ast, provider.preset);
        let either = |pick: fn(&ast::Provider) -> Option<String>| pick(own).or_else(|| preset.and_then(pick));
        let connection = emit_connection(provider);
        let price = own.price.as_ref().or_else(|| preset.and_then(|preset| preset.price.as_ref()));
        let rate = own.rate.as_ref().or_else(|| preset.and_then(|preset| preset.rate.as_ref()));
        let window = own.context_window.as_ref().or_else(|| preset.and_then(|preset| preset.context_window.as_ref()));
        plan::Provider {
            name: own.name.value.clone(),
            provides: list_abilities(provider, &connection),
            connection,
            env: self.emit_env(&provider.env),
            install: either(|provider| provider.install.clone()),
            login: either(|provider| provider.login.clone()),
            context_window: window.map(|window| window.value),
            price: price.and_then(self::emit_price),
            concurrency: own.concurrency.or_else(|| preset.and_then(|preset| preset.concurrency)),
            rate: rate.map(|rate| plan::Rate {
                requests: rate.requests.as_ref().map(|requests| requests.value),
                tokens: rate.tokens.as_ref().map(|tokens| tokens.value),
            }),
            origin: self.to_origin(own.name.span),
        }
    }

    pub(super) fn emit_agent(&self, agent: &Agent<'_>) -> plan::Agent {
        let name = |agent: usize| self.model.agents[agent].ast.name.value.clone();
        let ast = agent.ast;
        let provider = agent.provider.expect("a model without errors has a provider for each agent");
        let tier = agent.tier.map(|tier| &self.model.spec.tiers[tier]);
        let of_tier = || tier?.model.as_ref().map(|model| model.as_str().to_owned());
        plan::Agent {
            name: ast.name.value.clone(),
            provider: self.model.providers[provider].ast.name.value.clone(),
            model: ast.model.as_ref().map(|model| model.value.clone()).or_else(of_tier),
            description: ast.description.clone(),
            system: agent.system.as_ref().map(|system| self.emit_text(system, &|_| false)),
            fallback: agent.fallback.map(name),
            tier: tier.map(|tier| tier.name.value.clone()),
            mode: ast.mode.as_ref().map(|mode| mode.value),
            temperature: ast.temperature.as_ref().map(|temperature| temperature.value),
            max_output: ast.max_output.as_ref().map(|max| max.value),
            tools: ast.tools.as_ref().map(|tools| tools.names.iter().map(|name| self.tool_name(name)).collect()),
            can: ast.can.iter().map(|can| can.value).collect(),
            permissions: ast.permissions.as_ref().map(|permissions| permissions.value).unwrap_or_default(),
            budget: ast.budget.as_ref().map(|budget| self.emit_budget(budget)),
            files: self.emit_files(ast.files.as_ref(), agent.files.as_ref(), &|_| false),
            pool: ast.pool.clone(),
            origin: self.to_origin(ast.name.span),
        }
    }

    /// A tool as the plan calls it: a server of an import has the name of its import before its own,
    /// and a tool of a server follows it behind a point.
    fn tool_name(&self, name: &ast::Name) -> String {
        let find = |server: &str| self.model.tables.find_name(NameKind::ToolServer, server, true, name.span.file);
        let split = plan::tools::split_tool_name(&name.value, |server| find(server).is_some());
        let Some((server, rest)) = split else { return name.value.clone() };
        let server = find(server).map_or(server, |server| &self.model.spec.tool_servers[server].name.value);
        rest.map_or_else(|| server.to_owned(), |rest| format!("{server}.{rest}"))
    }

    pub(super) fn emit_server(&self, server: &Server<'_>) -> plan::ToolServer {
        let ast = server.ast;
        let url = ast.url.as_ref().map(|url| plan::Transport::Url(url.as_str().to_owned()));
        plan::ToolServer {
            name: ast.name.value.clone(),
            transport: url.unwrap_or_else(|| plan::Transport::Exec(line_words(ast.exec.as_ref()))),
            auth: server.auth.clone(),
            env: self.emit_env(&server.env),
            origin: self.to_origin(ast.name.span),
        }
    }

    pub(super) fn emit_hook(&self, hook: &ast::Hook, script: Option<FileId>) -> Option<plan::Hook> {
        let run = match (&hook.body, script) {
            (Some(ast::Body::Run(line)), _) => command::emit_command(line),
            (_, Some(file)) => {
                let sources = &self.loader.sources;
                command::script_command(sources.name(file), sources.text(file), "")
            }
            _ => return None,
        };
        Some(plan::Hook { event: hook.event.value, run, origin: self.to_origin(hook.span) })
    }
}

fn line_words(line: Option<&ast::Line>) -> Vec<String> {
    line.into_iter().flat_map(|line| &line.words).map(|word| word.as_str().to_owned()).collect()
}

/// How it is reached: its own way, or that of its preset.
fn emit_connection(provider: &Provider<'_>) -> Connection {
    let (own, preset) = (provider.ast, provider.preset);
    if own.script.is_some() {
        return Connection::Script { answers: provider.answers.iter().map(emit_answer).collect() };
    }
    let way = if own.kind().is_some() { own } else { preset.unwrap_or(own) };
    let args = preset.into_iter().flat_map(|preset| &preset.args).chain(&own.args);
    let args: Vec<String> = args.map(|word| word.as_str().to_owned()).collect();
    let argv = |line: &ast::Line| line_words(Some(line)).into_iter().chain(args.iter().cloned()).collect::<Vec<_>>();
    if let Some(llm) = &way.llm {
        let text = |text: &Option<crate::syntax::Text>| text.as_ref().map(|text| text.as_str().to_owned());
        let native = declared_abilities(provider).is_some_and(|said| said.iter().any(|it| it.value == Ability::Tools));
        return Connection::Llm {
            kind: llm.kind.value,
            base_url: text(&llm.base_url),
            model: text(&llm.model),
            auth: provider.auth.clone(),
            tools: llm.tools.as_ref().map(|tools| tools.value).or(native.then_some(plan::ToolProtocol::Native)),
        };
    }
    if let Some(line) = &way.acp {
        return Connection::Acp { argv: argv(line), mcp: emit_mcp_config(own, preset) };
    }
    let delivery = own.delivery.as_ref().or_else(|| preset.and_then(|preset| preset.delivery.as_ref()));
    let reads = own.reads.as_ref().or_else(|| preset.and_then(|preset| preset.reads.as_ref()));
    let either = |pick: fn(&ast::Provider) -> Option<String>| pick(own).or_else(|| preset.and_then(pick));
    let resume = own.resume_args.as_ref().or_else(|| preset.and_then(|preset| preset.resume_args.as_ref()));
    let schema = own.schema_flag.clone().or_else(|| preset.and_then(|preset| preset.schema_flag.clone()));
    let argv = way.exec.as_ref().map(argv).unwrap_or_default();
    Connection::Exec {
        prompt: delivery.map_or_else(Default::default, |delivery| delivery.value),
        reads: reads.map_or_else(Default::default, |reads| reads.value),
        model_flag: either(|provider| provider.model_flag.clone()),
        system_flag: either(|provider| provider.system_flag.clone()),
        resume: resume
            .map(|words| argv.iter().cloned().chain(words.iter().map(|word| word.as_str().to_owned())).collect()),
        schema,
        argv,
        mcp: emit_mcp_config(own, preset),
    }
}

/// How it is told of the MCP server of its run: its own way, or that of its preset.
fn emit_mcp_config(own: &ast::Provider, preset: Option<&ast::Provider>) -> plan::McpConfig {
    let says = |provider: &&ast::Provider| provider.mcp_args.is_some() || !provider.mcp_env.is_empty();
    let words = |words: &Option<Vec<crate::syntax::Text>>| {
        words.iter().flatten().map(|word| word.as_str().to_owned()).collect()
    };
    let notices = own.notice_args.as_ref().or_else(|| preset.and_then(|preset| preset.notice_args.as_ref()));
    let notices = words(&notices.cloned());
    let Some(said) = [Some(own), preset].into_iter().flatten().find(says) else {
        return plan::McpConfig { notices, ..plan::McpConfig::default() };
    };
    plan::McpConfig { args: words(&said.mcp_args), env: said.mcp_env.clone(), notices }
}

/// What it says that it can do, or else what its declaration shows.
fn list_abilities(provider: &Provider<'_>, connection: &Connection) -> Vec<Ability> {
    let mut abilities: Vec<Ability> = declared_abilities(provider).into_iter().flatten().map(|it| it.value).collect();
    if let Connection::Exec { resume, schema, .. } = connection {
        abilities.extend(resume.as_ref().map(|_| Ability::Resume));
        abilities.extend(schema.as_ref().map(|_| Ability::Schema));
    }
    if let Connection::Llm { tools: Some(plan::ToolProtocol::Schema), .. } = connection {
        abilities.push(Ability::Schema);
    }
    // A provider may also declare what its flags show.
    abilities.sort_unstable();
    abilities.dedup();
    abilities
}

/// What it says that it can do, or what its preset says.
fn declared_abilities<'a>(provider: &Provider<'a>) -> Option<&'a Vec<ast::Spanned<Ability>>> {
    provider.ast.provides.as_ref().or_else(|| provider.preset?.provides.as_ref())
}

/// A price says what both directions cost, or it is not known.
fn emit_price(price: &ast::Price) -> Option<plan::Price> {
    let value = |price: &Option<ast::Spanned<u64>>| price.as_ref().map(|price| price.value);
    Some(plan::Price {
        input: value(&price.input)?,
        output: value(&price.output)?,
        cache_read: value(&price.cache_read),
        cache_write: value(&price.cache_write),
    })
}

fn emit_answer(answer: &Answer<'_>) -> plan::Recorded {
    plan::Recorded {
        task: answer.ast.task.as_ref().map(|task| task.value.clone()),
        iteration: answer.ast.iteration,
        attempt: answer.ast.attempt,
        turn: answer.ast.turn,
        index: answer.ast.index,
        text: answer.text.clone(),
        exit: answer.ast.exit,
        delay_ms: answer.ast.delay_ms,
    }
}
