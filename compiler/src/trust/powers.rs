//! What agents are able to do, with the places that say so.
//!
//! In: their declarations, the secrets that reach them, the servers of their tools. Out: marks by agent. An agent that
//! declares nothing is taken to be able to do nothing.

use std::collections::HashMap;

use super::graph::{Mark, Marks};
use swarmc_plan::Capability;

use crate::ast::{self, Variable};
use crate::model::Model;

/// The secrets of a spec, by their names and by their variables.
pub(crate) struct Secrets<'a>(HashMap<&'a str, &'a ast::Secret>);

impl<'a> Secrets<'a> {
    pub(crate) fn new(spec: &'a ast::Spec) -> Secrets<'a> {
        // A name outdoes a variable, as in `env`.
        let variables = spec.secrets.iter().map(|secret| (secret.env.as_str(), secret));
        Secrets(variables.chain(spec.secrets.iter().map(|secret| (secret.name.value.as_str(), secret))).collect())
    }

    pub(crate) fn find(&self, name: &str) -> Option<&'a ast::Secret> {
        self.0.get(name).copied()
    }

    /// The secrets of an environment, each with the place that hands it over.
    pub(crate) fn of<'v>(&self, env: &'v [Variable]) -> impl Iterator<Item = (&'a ast::Secret, &'v ast::Name)> {
        env.iter().filter_map(|variable| match variable {
            Variable::Named(name) => Some((self.find(&name.value)?, name)),
            Variable::Set(..) => None,
        })
    }
}

/// The marks of every agent.
pub(crate) fn agents(model: &Model<'_>, secrets: &Secrets<'_>) -> Vec<Marks> {
    let servers: HashMap<&str, &ast::ToolServer> =
        model.spec.tool_servers.iter().map(|server| (server.name.value.as_str(), server)).collect();
    model.agents.iter().map(|agent| marks(model, agent.ast, agent.provider, secrets, &servers)).collect()
}

fn marks(
    model: &Model<'_>,
    agent: &ast::Agent,
    provider: Option<usize>,
    secrets: &Secrets<'_>,
    servers: &HashMap<&str, &ast::ToolServer>,
) -> Marks {
    let name = &agent.name.value;
    let able = |wanted: Capability, does: &str| {
        let can = agent.can.iter().find(|can| can.value == wanted)?;
        Some(Mark { span: can.span, text: format!("agent `{name}` {does}"), agent: Some(agent.name.clone()) })
    };
    let commands = able(Capability::RunCommands, "runs commands");
    // What is in the environment of a process is there for whoever can run `printenv` in it.
    let from_provider = || {
        let provider = model.providers[provider?].ast;
        let (secret, place) = secrets.of(&provider.env).next()?;
        let text = format!("agent `{name}` runs commands with the secret `{}` in their environment", secret.name.value);
        commands.as_ref().map(|_| Mark { span: place.span, text, agent: Some(agent.name.clone()) })
    };
    let from_server = || {
        let tools = agent.tools.as_ref()?;
        tools.names.iter().find_map(|tool| {
            let server = servers.get(server_of(&tool.value))?;
            let (secret, _) = secrets.of(&server.env).next()?;
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
        privileged: able(Capability::WriteFiles, "writes files").or_else(|| commands.clone()),
    }
}

/// The server that a tool belongs to: `github`, `github.search`, `github:search`, `github/*`, `mcp__github__search`.
pub(crate) fn server_of(tool: &str) -> &str {
    let tool = tool.strip_prefix("mcp__").map_or(tool, |rest| rest.split_once("__").map_or(rest, |(server, _)| server));
    tool.split(['.', ':', '/', '(']).next().unwrap_or(tool)
}

impl Marks {
    /// Takes over what another one has and this one has not.
    pub(crate) fn merge(&mut self, other: &Marks) {
        fn fill(own: &mut Option<Mark>, other: Option<&Mark>) {
            if own.is_none() {
                *own = other.cloned();
            }
        }
        fill(&mut self.untrusted, other.untrusted.as_ref());
        fill(&mut self.private, other.private.as_ref());
        fill(&mut self.exit, other.exit.as_ref());
        fill(&mut self.privileged, other.privileged.as_ref());
    }
}
