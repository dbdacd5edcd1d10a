//! What models may call: SW101 for a tool that neither comes with the runner nor belongs to a server, and SW509 for one
//! that does what its agent is not declared to be able to do.
//!
//! Only agents of an `llm` are looked at: programs have tools of their own.

use swarmc_plan::Capability;
use swarmc_plan::tools::{BUILT_IN, built_in, covers};

use crate::ast::{Agent, Name};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::model::{Model, Provider};
use crate::suggest;
use crate::trust::powers;

pub(super) fn check(model: &Model<'_>, diagnostics: &mut Diagnostics) {
    for agent in &model.agents {
        if agent.provider.is_some_and(|provider| is_model(&model.providers[provider])) {
            for tool in agent.ast.tools.iter().flat_map(|tools| &tools.names) {
                if powers::server(model, tool).is_none() {
                    check_tool(model, agent.ast, tool, diagnostics);
                }
            }
        }
    }
}

fn is_model(provider: &Provider<'_>) -> bool {
    let own = provider.ast;
    let has_way = own.exec.is_some() || own.acp.is_some() || own.script.is_some();
    own.llm.is_some() || !has_way && provider.preset.is_some_and(|preset| preset.llm.is_some())
}

fn check_tool(model: &Model<'_>, agent: &Agent, tool: &Name, diagnostics: &mut Diagnostics) {
    let name = &tool.value;
    if let Some(found) = built_in(name) {
        if let Some(needed) = found.needs.filter(|needed| !agent.can.iter().any(|can| can.value == *needed)) {
            diagnostics.push(not_able(agent, tool, needed));
        }
        return;
    }
    if BUILT_IN.iter().any(|built_in| covers(name, built_in.name)) {
        return;
    }
    let servers = model.spec.tool_servers.iter().map(|server| server.name.value.as_str());
    let known: Vec<&str> = BUILT_IN.iter().map(|tool| tool.name).chain(servers).collect();
    let (close, help) = suggest::did_you_mean(name, &known, "the tools and servers are ");
    let diagnostic = Diagnostic::new(Code::UnknownReference, format!("there is no tool `{name}`"))
        .label(tool.span, "neither a built-in tool nor one of a server")
        .help_maybe(help);
    diagnostics.push(match close {
        Some(close) => diagnostic.unsafe_fix(format!("write `{close}`"), tool.span, close),
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
        format!("agent `{name}` may use `{tool_name}`, and its `can` does not say so"),
    )
    .label(tool.span, format!("a tool that {does}"));
    match agent.can.first() {
        Some(first) => diagnostic
            .label(first.span, format!("`{word}` is not among these"))
            .help(format!("write `can {word}`, or take `{tool_name}` out of its `tools`")),
        None => diagnostic.help(format!("write `can {word}` in the agent, or take `{tool_name}` out of its `tools`")),
    }
}
