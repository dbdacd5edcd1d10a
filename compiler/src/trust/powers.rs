//! What agents are able to do, with the spans that declare it.
//!
//! In: their declarations, the secrets that reach them, the servers of their tools. Out: marks by agent. An agent that
//! declares nothing counts as able to do nothing.

use std::collections::HashMap;

use super::graph::{Mark, Marks};
use swarmc_plan::{Capability, tools};

use crate::ast::{self, Variable};
use crate::model::Model;
use crate::symbols::{NameKind, Tables};

/// The secrets of a spec, as environments name them.
pub(crate) struct Secrets<'m> {
    spec: &'m ast::Spec,
    tables: &'m Tables,
    /// By their variables.
    variables: HashMap<&'m str, Vec<usize>>,
}

impl<'m> Secrets<'m> {
    pub(crate) fn new(model: &'m Model<'_>) -> Secrets<'m> {
        let mut variables: HashMap<&str, Vec<usize>> = HashMap::new();
        for (index, secret) in model.spec.secrets.iter().enumerate() {
            variables.entry(&secret.env).or_default().push(index);
        }
        Secrets { spec: model.spec, tables: &model.tables, variables }
    }

    /// The secret of this name, or the one that this variable holds.
    fn find(&self, name: &ast::Name) -> Option<&'m ast::Secret> {
        let home = name.span.file;
        let index = self.tables.find_name(NameKind::Secret, &name.value, true, home).or_else(|| {
            let holders = self.variables.get(name.value.as_str())?;
            holders.iter().copied().find(|&index| self.tables.is_visible(NameKind::Secret, index, home))
        })?;
        self.spec.secrets.get(index)
    }

    /// The secrets of an environment, each with the place that hands it over.
    pub(crate) fn secrets_of<'v>(&self, env: &'v [Variable]) -> impl Iterator<Item = (&'m ast::Secret, &'v ast::Name)> {
        env.iter().filter_map(|variable| match variable {
            Variable::Named(name) => Some((self.find(name)?, name)),
            Variable::Set(..) => None,
        })
    }
}

/// The marks of every agent.
pub(crate) fn mark_agents(model: &Model<'_>, secrets: &Secrets<'_>) -> Vec<Marks> {
    model.agents.iter().map(|agent| mark_agent(model, agent.ast, agent.provider, secrets)).collect()
}

fn mark_agent(model: &Model<'_>, agent: &ast::Agent, provider: Option<usize>, secrets: &Secrets<'_>) -> Marks {
    let name = &agent.name.value;
    let able = |wanted: Capability, does: &str| {
        let can = agent.can.iter().find(|can| can.value == wanted)?;
        Some(Mark { span: can.span, text: format!("agent `{name}` {does}"), agent: Some(agent.name.clone()) })
    };
    let commands = able(Capability::RunCommands, "runs commands");
    // An agent that runs commands can read its environment with `printenv`.
    let from_provider = || {
        let provider = model.providers[provider?].ast;
        let (secret, place) = secrets.secrets_of(&provider.env).next()?;
        let text = format!("agent `{name}` runs commands with the secret `{}` in their environment", secret.name.value);
        commands.as_ref().map(|_| Mark { span: place.span, text, agent: Some(agent.name.clone()) })
    };
    let from_server = || {
        let tools = agent.tools.as_ref()?;
        tools.names.iter().find_map(|tool| {
            let server = find_server(model, tool)?;
            let token = server.auth.as_ref().and_then(|auth| secrets.find(auth));
            let secret = secrets.secrets_of(&server.env).map(|(secret, _)| secret).next().or(token)?;
            let text = format!(
                "agent `{name}` uses the tools of `{}`, which holds the secret `{}`",
                server.name.value, secret.name.value
            );
            Some(Mark { span: tool.span, text, agent: Some(agent.name.clone()) })
        })
    };
    Marks {
        untrusted: able(Capability::UntrustedInput, "reads what strangers wrote"),
        private: able(Capability::PrivateData, "reads private data").or_else(from_server).or_else(from_provider),
        exit: able(Capability::Network, "can send to the outside"),
        privileged: match (&commands, able(Capability::WriteFiles, "writes files")) {
            (Some(_), Some(_)) => able(Capability::WriteFiles, "writes files and runs commands"),
            (commands, files) => files.or_else(|| commands.clone()),
        },
    }
}

/// The server of this spec that a tool in a list of tools belongs to.
pub(crate) fn find_server<'m>(model: &'m Model<'_>, tool: &ast::Name) -> Option<&'m ast::ToolServer> {
    let find = |name: &str| model.tables.find_name(NameKind::ToolServer, name, true, tool.span.file);
    let (server, _) = tools::split_tool_name(&tool.value, |name| find(name).is_some())?;
    model.servers.get(find(server)?).map(|server| server.ast)
}

/// The server that a tool belongs to: `github`, `github.search`, `github:search`, `github/*`, `mcp__github__search`.
pub(crate) fn server_of(tool: &str) -> &str {
    let tool = tool.strip_prefix("mcp__").map_or(tool, |rest| rest.split_once("__").map_or(rest, |(server, _)| server));
    tool.split(['.', ':', '/', '(']).next().unwrap_or(tool)
}

impl Marks {
    /// Takes over what another one has and this one has not.
    pub(crate) fn merge(&mut self, other: &Marks) {
        fn fill_missing(own: &mut Option<Mark>, other: Option<&Mark>) {
            if own.is_none() {
                *own = other.cloned();
            }
        }
        fill_missing(&mut self.untrusted, other.untrusted.as_ref());
        fill_missing(&mut self.private, other.private.as_ref());
        fill_missing(&mut self.exit, other.exit.as_ref());
        fill_missing(&mut self.privileged, other.privileged.as_ref());
    }
}
