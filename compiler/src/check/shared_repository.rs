//! SW506: a text that tells an agent of a coordinated swarm to run a Git command that changes the repository under the
//! others.
//!
//! The members work in one repository at the same time, and its worktrees have one list of stashes and one set of
//! objects. Only what stands in backticks is looked at, as for other commands.

use std::collections::BTreeSet;

use super::tools::{find_quoted, is_requested};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::model::{Model, Swarm};
use crate::source::Span;

/// Commands that reach the work of others, each with why.
const SHARED: &[(&str, &str)] = &[
    ("git stash", "all worktrees share one list of stashes"),
    ("git gc", "it may drop what others have not committed yet"),
    ("git prune", "it may drop what others have not committed yet"),
    ("git switch", "others work on the branch that is checked out"),
    ("git checkout", "others work on the branch that is checked out"),
    ("git reset --hard", "it drops the changes of others"),
    ("git clean", "it removes the files of others"),
];

pub(super) fn check(model: &Model<'_>, swarm: &Swarm<'_>, told: &mut BTreeSet<Span>, diagnostics: &mut Diagnostics) {
    if swarm.ast.coordinator().is_none() {
        return;
    }
    let name = &swarm.ast.name.value;
    let mut check_text = |text: &str, span: &dyn Fn(std::ops::Range<usize>) -> Span| {
        for range in find_quoted(text) {
            let quoted = &text[range.clone()];
            let known = SHARED.iter().find(|(command, _)| {
                let rest = quoted.strip_prefix(command);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' ') && !rest.starts_with(" -- "))
            });
            let Some((command, why)) = known.filter(|_| is_requested(text, range.start)) else { continue };
            let at = span(range);
            // Several swarms may play one agent.
            if !told.insert(at) {
                continue;
            }
            diagnostics.push(
                Diagnostic::new(
                    Code::NeedsDeniedTool,
                    format!("the agents of swarm `{name}` share a repository, so none may run `{command}`"),
                )
                .label(at, *why)
                .help("tell them to commit their own work on the branch that they are on"),
            );
        }
    };
    let tasks = swarm.members.iter().filter_map(|member| member.task.as_ref());
    let playing = swarm.members.iter().map(|member| member.agent).chain(swarm.groups.iter().copied());
    let playing = playing.chain([swarm.leader]).chain(swarm.managers.iter().chain(&swarm.spawns).copied());
    let agents: BTreeSet<usize> = playing.flatten().collect();
    let systems = agents.iter().filter_map(|&agent| model.agents[agent].system.as_ref());
    for prose in swarm.goal.iter().chain(tasks).chain(systems) {
        check_text(prose.passage.text(), &|range| prose.passage.span(range));
    }
    for text in swarm.ast.items.iter().filter_map(|item| item.text.as_ref()) {
        check_text(text.as_str(), &|range| text.span(range));
    }
}
