//! SW505: permissions wider than anything here needs: every tool, no questions, a network that nothing can reach.

use swarmc_plan::{Capability, Permissions};

use crate::ast::Agent;
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::model::{Model, Step};
use crate::source::{Sources, Span};
use crate::trust::command;
use crate::trust::shell::Simple;

pub(super) fn check(model: &Model<'_>, sources: &Sources, diagnostics: &mut Diagnostics) {
    for provider in &model.spec.providers {
        let lines = provider.programs().flat_map(|(_, line)| command::list_started(line));
        let args = command::parse_argv(&provider.args);
        for started in lines.chain(args) {
            if let Some((span, flag)) =
                find_skip_flag(&started.simple).map(|(range, flag)| (started.span_at(&range), flag))
            {
                diagnostics.push(report_flag(&format!("provider `{}`", provider.name.value), span, &flag));
            }
        }
    }
    for agent in &model.spec.agents {
        check_agent(agent, diagnostics);
    }
    for step in model.pipelines.iter().flat_map(|pipeline| &pipeline.steps) {
        diagnostics.set_home(Some(step.ast.name.span));
        check_step(step, sources, diagnostics);
    }
    diagnostics.set_home(None);
}

fn check_agent(agent: &Agent, diagnostics: &mut Diagnostics) {
    let name = &agent.name.value;
    for tool in agent.tools.iter().flat_map(|tools| &tools.names).filter(|tool| tool.value == "*") {
        diagnostics.push(
            Diagnostic::new(Code::OverBroadPermission, format!("agent `{name}` may use every tool"))
                .label(tool.span, "including tools that a server adds later")
                .help("name the tools that it needs: `tools Read Grep SERVER`"),
        );
    }
    if let Some(permissions) = agent.permissions.as_ref().filter(|found| found.value == Permissions::Skip) {
        diagnostics.push(
            Diagnostic::new(Code::OverBroadPermission, format!("agent `{name}` acts without asking"))
                .label(permissions.span, "its command skips its own permission checks")
                .help("write `permissions gated`, and name what it may use: `tools Read Edit`"),
        );
    }
    let network = agent.can.iter().find(|can| can.value == Capability::Network);
    let tools =
        agent.tools.as_ref().filter(|tools| tools.names.iter().all(|tool| LOCAL.contains(&tool.value.as_str())));
    if let (Some(network), Some(tools)) = (network, tools) {
        diagnostics.push(
            Diagnostic::new(
                Code::OverBroadPermission,
                format!("agent `{name}` can use the network, but none of its tools does"),
            )
            .label(network.span, "nothing needs it")
            .label(tools.span, "these stay on this machine")
            .help("take `network` out of its `can`"),
        );
    }
}

/// Tools of agent programs that reach nothing but files.
const LOCAL: &[&str] = &[
    "Read",
    "Write",
    "Edit",
    "MultiEdit",
    "Glob",
    "Grep",
    "LS",
    "NotebookRead",
    "NotebookEdit",
    "TodoWrite",
    "file_read",
    "file_write",
    "file_list",
    "file_search",
];

fn check_step(step: &Step<'_>, sources: &Sources, diagnostics: &mut Diagnostics) {
    for started in command::list_body_commands(step, sources) {
        if let Some((range, flag)) = find_skip_flag(&started.simple) {
            diagnostics.push(report_flag(&format!("`{}`", step.name()), started.span_at(&range), &flag));
        }
    }
}

fn report_flag(who: &str, span: Span, flag: &str) -> Diagnostic {
    Diagnostic::new(Code::OverBroadPermission, format!("{who} skips the permission checks of its agent"))
        .label(span, format!("with `{flag}`, the agent acts without asking"))
        .help("leave it out, and allow by name what the agent needs")
}

/// Flags of agent programs that skip what they would ask.
const FLAGS: &[&str] = &[
    "--dangerously-skip-permissions",
    "--allow-dangerously-skip-permissions",
    "--dangerously-bypass-approvals-and-sandbox",
    "--dangerously-allow-all",
    "--yolo",
    "--full-auto",
    "--allow-all-tools",
    "--trust-all-tools",
    "--always-approve",
];

/// Flags that do it with this word behind them.
const MODES: &[(&str, &str)] = &[
    ("--approval-mode", "yolo"),
    ("--permission-mode", "bypassPermissions"),
    ("--sandbox", "danger-full-access"),
    ("-s", "danger-full-access"),
    ("--ask-for-approval", "never"),
];

/// The flag that skips permissions, and where it stands.
fn find_skip_flag(simple: &Simple) -> Option<(std::ops::Range<usize>, String)> {
    simple.words.iter().enumerate().find_map(|(index, word)| {
        if FLAGS.contains(&word.text.as_str()) {
            return Some((word.range.clone(), word.text.clone()));
        }
        let (flag, value) = word.text.split_once('=').unwrap_or((&word.text, ""));
        let next = simple.words.get(index + 1).filter(|_| value.is_empty());
        let told = next.map_or(value, |next| next.text.as_str());
        let end = next.map_or(word.range.end, |next| next.range.end);
        let found = MODES.contains(&(flag, told));
        found.then(|| (word.range.start..end, format!("{flag} {told}")))
    })
}
