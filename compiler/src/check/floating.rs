//! SW702: a workflow with `locked` uses a model or a tool without a fixed version.
//!
//! The check reads the names of models, and the commands of providers and tool servers that fetch the program that they
//! start. It ignores recorded answers, and programs that take no model name.

use std::collections::BTreeSet;

use super::packages;
use crate::ast::{Line, Variable};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::model::{Agent, Model, Provider};
use crate::source::Span;
use crate::syntax::Text;
use crate::trust::command::{self, Started};
use crate::trust::powers;

pub(super) fn check(model: &Model<'_>, diagnostics: &mut Diagnostics) {
    let Some(locked) = model.spec.workflow.as_ref().and_then(|workflow| workflow.locked) else { return };
    let mut finder = Finder { locked, told: BTreeSet::new(), diagnostics };
    let agents: Vec<&Agent<'_>> =
        model.agents.iter().zip(&model.uses.agents).filter(|(_, used)| **used).map(|(agent, _)| agent).collect();
    let mut providers: BTreeSet<usize> = BTreeSet::new();
    for agent in &agents {
        let Some(index) = agent.provider else { continue };
        providers.insert(index);
        let tier = agent.tier.and_then(|tier| model.spec.tiers[tier].model.as_ref());
        let said =
            agent.ast.model.as_ref().map(|model| (model.value.as_str(), model.span)).or(tier.map(text_with_span));
        finder.check_model(&agent.ast.name.value, agent.ast.name.span, said, &model.providers[index]);
    }
    for provider in providers.into_iter().map(|index| model.providers[index].ast) {
        let (name, args) = (&provider.name.value, provider.args.as_slice());
        for (_, line) in provider.programs() {
            finder.check_packages(&format!("provider `{name}`"), line, args);
        }
    }
    let mut used: BTreeSet<Span> = BTreeSet::new();
    for tool in agents.iter().flat_map(|agent| &agent.ast.tools).flat_map(|tools| &tools.names) {
        used.extend(powers::find_server(model, tool).map(|server| server.name.span));
    }
    for server in model.servers.iter().map(|server| server.ast) {
        // An import may declare servers that nothing here starts.
        if let Some(line) = &server.exec
            && (model.tables.modules.is_own(server.name.span) || used.contains(&server.name.span))
        {
            finder.check_packages(&format!("tool server `{}`", server.name.value), line, &[]);
        }
    }
}

struct Finder<'d> {
    /// The span of `locked` in the workflow.
    locked: Span,
    /// The places that have been told: agents share providers.
    told: BTreeSet<Span>,
    diagnostics: &'d mut Diagnostics,
}

impl Finder<'_> {
    fn push(&mut self, span: Span, message: String, label: String, help: String) {
        if self.told.insert(span) {
            self.diagnostics.push(
                Diagnostic::new(Code::FloatingVersion, message)
                    .label(span, label)
                    .label(self.locked, "this asks for fixed versions")
                    .help(help),
            );
        }
    }

    /// The model of an agent or a tier: what it says itself, else what its provider's declaration does.
    fn check_model(&mut self, who: &str, span: Span, said: Option<(&str, Span)>, provider: &Provider<'_>) {
        if provider.ast.script.is_some() {
            return;
        }
        let help = "name a version, as the provider lists its models: a name with a number or a date".to_owned();
        let found = said.map(|(name, span)| vec![(name.to_owned(), span)]).unwrap_or_else(|| own_models(provider));
        for (name, span) in &found {
            if is_alias(name) {
                let message = format!("model `{name}` is not a fixed version: its meaning can change");
                self.push(*span, message, "a name for the newest version".to_owned(), help.clone());
            }
        }
        if found.is_empty() && takes_model(provider) {
            let message = format!("`{who}` names no model, so provider `{}` chooses it", provider.ast.name.value);
            self.push(span, message, "no `model=`".to_owned(), format!("write `model=` behind it and {help}"));
        }
    }

    /// What the command of `who` fetches.
    fn check_packages(&mut self, who: &str, line: &Line, args: &[Text]) {
        let joined: Vec<Text> = line.words.iter().chain(args).cloned().collect();
        let started: Vec<Started<'_>> = match args {
            [] => command::list_started(line),
            _ => command::parse_argv(&joined).into_iter().collect(),
        };
        for started in started {
            for found in packages::find_floating(&started.simple) {
                let message = match &found.says {
                    Some(says) => format!("{who} starts `{}` as `{says}`, which is not one version", found.name),
                    None => format!("{who} starts the newest version of `{}`", found.name),
                };
                let label = if found.says.is_some() { "its version can change" } else { "no version" };
                self.push(
                    started.span_at(&found.range),
                    message,
                    label.to_owned(),
                    format!("name the one that you tried: `{}`", found.pinned),
                );
            }
        }
    }
}

/// The models that the declaration of a provider names, with the flags and variables that agent programs know.
fn own_models(provider: &Provider<'_>) -> Vec<(String, Span)> {
    let ast = provider.ast;
    let mut found: Vec<(String, Span)> = Vec::new();
    let llm = ast.llm.iter().chain(provider.preset.iter().filter_map(|preset| preset.llm.as_ref()));
    found.extend(
        llm.filter_map(|llm| llm.model.as_ref()).map(|model| (model.as_str().to_owned(), text_with_span(model).1)),
    );
    let own = ast.model_flag.as_deref();
    let line = |provider: &'_ crate::ast::Provider| provider.programs().next().map(|(_, line)| program_name(line));
    let program = line(ast).or_else(|| provider.preset.and_then(line)).unwrap_or_default();
    let words: Vec<&Text> = ast.programs().flat_map(|(_, line)| &line.words).chain(&ast.args).collect();
    for (index, word) in words.iter().enumerate() {
        let text = word.as_str();
        let is_flag =
            |flag: &str| flag == "--model" || Some(flag) == own || (flag == "-m" && SHORT.contains(&program.as_str()));
        // Codex takes a setting of its configuration so.
        let setting = || program == "codex" && index > 0 && matches!(words[index - 1].as_str(), "-c" | "--config");
        match text.split_once('=') {
            Some((flag, name)) if is_flag(flag) || (flag == "model" && setting()) => {
                let span = word.span(text.len() - name.len()..text.len());
                found.push((name.trim_matches(['"', '\'']).to_owned(), span));
            }
            None if is_flag(text) => {
                let next = words.get(index + 1).map(|next| text_with_span(next));
                found.extend(next.map(|(name, span)| (name.to_owned(), span)));
            }
            _ => {}
        }
    }
    for variable in &ast.env {
        if let Variable::Set(name, value) = variable
            && name.ends_with("_MODEL")
            && !value.as_str().contains(['<', '{'])
        {
            let (name, span) = text_with_span(value);
            found.push((name.to_owned(), span));
        }
    }
    found
}

/// The programs in which `-m` stands before a model; in others it stands before all sorts of things.
const SHORT: &[&str] = &["codex", "gemini", "qwen", "opencode", "llm"];

/// What a command starts, without its folder.
fn program_name(line: &Line) -> String {
    let first = line.words.first().map_or("", Text::as_str);
    first.rsplit('/').next().unwrap_or(first).to_owned()
}

/// Whether the declaration can name a model.
fn takes_model(provider: &Provider<'_>) -> bool {
    let either = |say: fn(&crate::ast::Provider) -> bool| say(provider.ast) || provider.preset.is_some_and(say);
    either(|provider| provider.llm.is_some() || provider.acp.is_some() || provider.model_flag.is_some())
}

/// Whether a name can mean different models over time: `sonnet`, `opus[1m]`, `claude-sonnet-latest`. A
/// file of weights does not.
fn is_alias(name: &str) -> bool {
    if packages::is_path(name) {
        return false;
    }
    let name = name.rsplit('/').next().unwrap_or(name);
    let name = name.split('[').next().unwrap_or(name);
    packages::is_floating(name)
}

fn text_with_span(text: &Text) -> (&str, Span) {
    (text.as_str(), text.span(0..text.as_str().len()))
}
