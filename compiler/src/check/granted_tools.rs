//! What models may call: SW101 for a tool that neither comes with the runner nor belongs to a server, and SW509 for one
//! that does what its agent is not declared to be able to do.
//!
//! Programs have tools of their own: of theirs nothing is known. An agent that speaks ACP has its client, which is us, do
//! what `file_read`, `file_write` and `shell` do, by the same words.

use swarmc_plan::tools::{BUILT_IN, built_in, covers_tool};
use swarmc_plan::{Capability, ProviderKind};

use crate::ast::{Agent, Name};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::model::{Model, Provider};
use crate::suggest;
use crate::trust::powers;

pub(super) fn check(model: &Model<'_>, diagnostics: &mut Diagnostics) {
    for agent in &model.agents {
        let Some(provider) = agent.provider.map(|provider| &model.providers[provider]) else { continue };
        let listed = agent.ast.tools.iter().flat_map(|tools| &tools.names);
        for tool in listed.filter(|tool| powers::find_server(model, tool).is_none()) {
            if is_model(provider) {
                check_tool(model, agent.ast, tool, diagnostics);
            } else if is_client(provider) {
                check_right(agent.ast, tool, diagnostics);
            }
        }
    }
}

pub(super) fn is_model(provider: &Provider<'_>) -> bool {
    provider.kind().is_some_and(ProviderKind::is_model)
}

/// Whether its program has us do what a built-in tool does.
fn is_client(provider: &Provider<'_>) -> bool {
    provider.kind() == Some(ProviderKind::Acp)
}

/// Whether an agent that may use a built-in tool is declared to be able to; whether the name is one of those.
fn check_right(agent: &Agent, tool: &Name, diagnostics: &mut Diagnostics) -> bool {
    let Some(found) = built_in(&tool.value) else { return false };
    if let Some(needed) = found.needs.filter(|needed| !agent.can.iter().any(|can| can.value == *needed)) {
        diagnostics.push(not_able(agent, tool, needed));
    }
    true
}

fn check_tool(model: &Model<'_>, agent: &Agent, tool: &Name, diagnostics: &mut Diagnostics) {
    let name = &tool.value;
    if check_right(agent, tool, diagnostics) {
        return;
    }
    if BUILT_IN.iter().any(|built_in| covers_tool(name, built_in.name)) {
        return;
    }
    let servers = model.spec.tool_servers.iter().map(|server| server.name.value.as_str());
    let known: Vec<&str> = BUILT_IN.iter().map(|tool| tool.name).chain(servers).collect();
    let (close, help) = suggest::did_you_mean(name, &known, "the tools and servers are ");
    let diagnostic = Diagnostic::new(Code::UnknownReference, format!("there is no tool `{name}`"))
        .label(tool.span, "neither a built-in tool nor one of a server")
        .help_maybe(help);
    diagnostics.push(match close {
        Some(close) => diagnostic.write_near(tool.span, close),
        None => diagnostic,
    });
}

fn not_able(agent: &Agent, tool: &Name, needed: Capability) -> Diagnostic {
    let (word, does) = match needed {
        Capability::RunCommands => ("run-commands", "runs commands"),
        _ => ("write-files", "writes files"),
    };
    let (name, tool_name) = (&agent.name.value, &tool.value);
    let diagnostic = Diagnostic::new(
        Code::ToolNotAble,
        format!("agent `{name}` lists `{tool_name}`, but its `can` does not allow it"),
    )
    .label(tool.span, format!("a tool that {does}"));
    match agent.can.first() {
        Some(first) => diagnostic
            .label(first.span, format!("`{word}` is not among these"))
            .help(format!("write `can {word}`, or take `{tool_name}` out of its `tools`")),
        None => diagnostic.help(format!("write `can {word}` in the agent, or take `{tool_name}` out of its `tools`")),
    }
}
