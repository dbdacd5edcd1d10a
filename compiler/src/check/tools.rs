//! SW506: a prompt that tells its agent to use a tool or a command that the agent's `tools` leave out.
//!
//! Only what stands in backticks is looked at, after a word that asks for it ("use", "run", "call"), in a sentence that
//! does not forbid it; and only names that are known: servers of this spec, tools of agent programs, common commands.

use std::collections::BTreeSet;
use std::ops::Range;

use swarmc_plan::tools::{built_in, covers_tool};

use super::shared_repository;
use crate::ast::{Agent, Tools};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::model::{Body, Model, TemplateText};
use crate::suggest;
use crate::trust::powers::server_of;

pub(super) fn check(model: &Model<'_>, diagnostics: &mut Diagnostics) {
    let servers: BTreeSet<&str> = model.spec.tool_servers.iter().map(|server| server.name.value.as_str()).collect();
    for agent in &model.agents {
        if let (Some(tools), Some(system)) = (&agent.ast.tools, &agent.system) {
            check_text(agent.ast, tools, system, &servers, diagnostics);
        }
    }
    let mut told = BTreeSet::new();
    for swarm in &model.swarms {
        shared_repository::check(model, swarm, &mut told, diagnostics);
    }
    for step in model.pipelines.iter().flat_map(|pipeline| &pipeline.steps) {
        let Some(agent) = step.agent.map(|agent| model.agents[agent].ast) else { continue };
        if let (Some(tools), Body::Prompt(prose)) = (&agent.tools, &step.body) {
            diagnostics.set_home(Some(step.ast.name.span));
            check_text(agent, tools, prose, &servers, diagnostics);
        }
    }
    diagnostics.set_home(None);
}

fn check_text(
    agent: &Agent,
    tools: &Tools,
    prose: &TemplateText,
    servers: &BTreeSet<&str>,
    diagnostics: &mut Diagnostics,
) {
    let text = prose.passage.text();
    for range in find_quoted(text) {
        let quoted = &text[range.clone()];
        let Some(wanted) = resolve_quoted(quoted, servers) else { continue };
        if is_allowed(tools, &wanted) || !is_requested(text, range.start) {
            continue;
        }
        let name = &agent.name.value;
        let (what, help) = match wanted {
            Wanted::Tool(tool) => (format!("the tool `{tool}`"), format!("write `{tool}` in its `tools`")),
            Wanted::Command(program) => (
                format!("the command `{program}`"),
                format!("allow it: `tools … \"Bash({program}:*)\"`, or the name of its shell tool"),
            ),
        };
        let list = match tools.names.is_empty() {
            true => "it may use none".to_owned(),
            false => format!(
                "it may use {}",
                suggest::format_list(tools.names.iter().map(|tool| tool.value.as_str()), "and")
            ),
        };
        diagnostics.push(
            Diagnostic::new(
                Code::NeedsDeniedTool,
                format!("the prompt needs {what}, which agent `{name}` may not use"),
            )
            .label(prose.passage.span(range), "asked for here")
            .label(tools.span, list)
            .help(format!("{help}, or do not ask for it")),
        );
    }
}

enum Wanted<'t> {
    Tool(&'t str),
    Command(&'t str),
}

/// What `…` in a prompt means, where it is the name of something known.
fn resolve_quoted<'t>(quoted: &'t str, servers: &BTreeSet<&str>) -> Option<Wanted<'t>> {
    let first = quoted.split_whitespace().next()?;
    if first == quoted && (TOOLS.contains(&first) || built_in(first).is_some() || servers.contains(server_of(first))) {
        return Some(Wanted::Tool(first));
    }
    COMMANDS.contains(&first).then_some(Wanted::Command(first))
}

fn is_allowed(tools: &Tools, wanted: &Wanted<'_>) -> bool {
    tools.names.iter().map(|tool| tool.value.as_str()).any(|tool| {
        let base = tool.split('(').next().unwrap_or(tool);
        tool == "*"
            || match wanted {
                Wanted::Tool(wanted) => {
                    covers_tool(base, wanted)
                        || base.trim_end_matches('*') == *wanted
                        || base.eq_ignore_ascii_case(wanted)
                        || {
                            // A whole server, or one of its tools where the server is asked for.
                            let (own, asked) = (server_of(base), server_of(wanted));
                            own == asked && (own == base || asked == *wanted || base.ends_with('*'))
                        }
                }
                Wanted::Command(program) => {
                    let inside = tool.split_once('(').map(|(_, inside)| inside);
                    SHELLS.contains(&base)
                        && inside.is_none_or(|inside| inside.starts_with(program) || inside.starts_with('*'))
                }
            }
    })
}

/// Whether the sentence around asks for what stands here.
pub(super) fn is_requested(text: &str, at: usize) -> bool {
    let line = &text[text[..at].rfind('\n').map_or(0, |newline| newline + 1)..at];
    let start = line.rfind(['.', ';', '!', '?', ':']).map_or(0, |end| end + 1);
    let sentence = line[start..].to_lowercase();
    let words: Vec<&str> =
        sentence.split(|sign: char| !sign.is_alphanumeric() && sign != '\'').filter(|word| !word.is_empty()).collect();
    let forbids = ["not", "never", "don't", "dont", "without", "cannot", "no", "avoid", "instead", "unless", "if"];
    let asks = ["use", "run", "call", "invoke", "execute", "using", "running", "calling", "start"];
    let near = words.iter().rev().take(4).any(|word| asks.contains(word));
    near && !words.iter().any(|word| forbids.contains(word))
}

/// What stands between two backticks on one line.
pub(super) fn find_quoted(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut offset = 0;
    for line in text.split_inclusive('\n') {
        let ticks: Vec<usize> = memchr::memchr_iter(b'`', line.as_bytes()).collect();
        for pair in ticks.chunks_exact(2) {
            let range = offset + pair[0] + 1..offset + pair[1];
            if !range.is_empty() && range.len() < 100 {
                found.push(range);
            }
        }
        offset += line.len();
    }
    found
}

/// Tools of agent programs.
const TOOLS: &[&str] = &[
    "Read",
    "Write",
    "Edit",
    "MultiEdit",
    "Bash",
    "Glob",
    "Grep",
    "WebFetch",
    "WebSearch",
    "NotebookEdit",
    "TodoWrite",
    "apply_patch",
    "run_shell_command",
    "read_file",
    "write_file",
    "web_fetch",
    "google_web_search",
];

/// Tools that run commands.
const SHELLS: &[&str] = &["Bash", "bash", "shell", "Shell", "run_shell_command", "exec", "execute", "terminal"];

/// Commands that prompts ask for.
const COMMANDS: &[&str] = &[
    "git", "gh", "glab", "cargo", "npm", "pnpm", "yarn", "npx", "make", "just", "pytest", "python", "python3", "node",
    "go", "docker", "kubectl", "curl", "wget", "rg", "grep", "sed", "ls", "find", "jq",
];
