//! SW101: a tool of a server that is not declared and whose name is nearly that of one that is; as a warning, a name that
//! is nearly that of a tool, and `server.tool` of a server that nothing declares.
//!
//! Agent programs have servers and tools of their own, so a name that is like none that is known says nothing wrong. Their
//! own servers they write `mcp__server__tool`; the `.` is ours.

use swarmc_plan::tools::BUILT_IN;

use crate::ast::Name;
use crate::code::{Code, Severity};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::model::Model;
use crate::suggest;
use crate::trust::powers::server_of;

pub(super) fn check(model: &Model<'_>, diagnostics: &mut Diagnostics) {
    let known: Vec<&str> = model.spec.tool_servers.iter().map(|server| server.name.value.as_str()).collect();
    for agent in &model.agents {
        let is_model =
            agent.provider.is_some_and(|provider| super::granted_tools::is_model(&model.providers[provider]));
        for tool in agent.ast.tools.iter().flat_map(|tools| &tools.names) {
            let server = server_of(&tool.value);
            // A bare name is a tool of the agent's own; `server.tool` and `mcp__server__tool` are not.
            let qualified = server != tool.value && !tool.value.contains('(');
            if known.contains(&server) {
                continue;
            }
            if !qualified {
                // What a model may call is known: another check says so.
                diagnostics.extend(check_spelling(tool, &known).filter(|_| !is_model));
                continue;
            }
            let Some(close) = suggest::find_nearest(server, known.iter().copied()) else {
                diagnostics.extend(check_declared(tool, server).filter(|_| !is_model));
                continue;
            };
            let written = tool.value.replacen(server, close.name, 1);
            let declared = model.spec.tool_servers.iter().find(|server| server.name.value == close.name);
            let diagnostic = Diagnostic::new(Code::UnknownReference, format!("there is no tool server `{server}`"))
                .label(tool.span, "a tool of a server that is not declared");
            let diagnostic = match declared {
                Some(declared) => diagnostic.label(declared.name.span, "declared here"),
                None => diagnostic,
            };
            let title = format!("write `{written}`");
            let diagnostic = diagnostic.help(format!("did you mean `{written}`?"));
            diagnostics.push(diagnostic.edit(title, tool.span, written, close.certain));
        }
    }
}

/// The name of a tool or a server that is nearly one that is known, and none itself.
fn check_spelling(tool: &Name, servers: &[&str]) -> Option<Diagnostic> {
    let name = tool.value.split('(').next().unwrap_or_default();
    let known: Vec<&str> = PROGRAM_TOOLS
        .iter()
        .copied()
        .chain(BUILT_IN.iter().map(|tool| tool.name))
        .chain(servers.iter().copied())
        .collect();
    let plain = |name: &str| name.to_lowercase().replace(['_', '-'], "");
    if name.contains('*') || known.iter().any(|known| plain(known) == plain(name)) {
        return None;
    }
    let close =
        suggest::find_closest(name, known.iter().copied()).filter(|close| suggest::is_slip(name, close, &[]))?;
    let written = tool.value.replacen(name, close, 1);
    let mut diagnostic =
        Diagnostic::new(Code::UnknownReference, format!("no agent program is known to have a tool `{name}`"))
            .label(tool.span, format!("nearly `{close}`"))
            .help(format!("did you mean `{written}`?"))
            .unsafe_fix(format!("write `{written}`"), tool.span, written);
    diagnostic.severity = Some(Severity::Warning);
    Some(diagnostic)
}

/// `server.tool` of a server that the spec does not have.
fn check_declared(tool: &Name, server: &str) -> Option<Diagnostic> {
    let dotted = tool.value.strip_prefix(server).is_some_and(|rest| rest.starts_with('.'));
    let mut diagnostic = Diagnostic::new(Code::UnknownReference, format!("there is no tool server `{server}`"))
        .label(tool.span, "a tool of a server that is not declared")
        .help(format!(
            "declare it: `tool-server {server} {{ exec … }}`; a server of the agent's own is written `mcp__{server}__…`"
        ));
    diagnostic.severity = Some(Severity::Warning);
    dotted.then_some(diagnostic)
}

/// Tools of agent programs: Claude Code, Gemini CLI, Codex, opencode.
pub const PROGRAM_TOOLS: &[&str] = &[
    "Agent",
    "AskUserQuestion",
    "Bash",
    "BashOutput",
    "Edit",
    "ExitPlanMode",
    "Glob",
    "Grep",
    "KillShell",
    "LS",
    "MultiEdit",
    "NotebookEdit",
    "NotebookRead",
    "Read",
    "Skill",
    "SlashCommand",
    "Task",
    "TodoRead",
    "TodoWrite",
    "ToolSearch",
    "WebFetch",
    "WebSearch",
    "Write",
    "apply_patch",
    "glob",
    "google_web_search",
    "list",
    "list_directory",
    "patch",
    "read_file",
    "read_many_files",
    "replace",
    "run_shell_command",
    "save_memory",
    "search_file_content",
    "shell",
    "update_plan",
    "view_image",
    "web_fetch",
    "web_search",
    "write_file",
    "write_todos",
];
