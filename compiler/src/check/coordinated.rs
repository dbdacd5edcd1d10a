//! SW005, SW208: what a swarm declares for a coordinator, and what a coordinator makes superfluous.
//!
//! In: a swarm whose names are resolved. Out: what only a coordinator can use in a swarm without one, what a coordinator
//! does itself, plan items beyond the limits of the run, and worktrees in which no agent can work.

use std::collections::BTreeMap;

use swarmc_plan::{PlanItem, Worktree};

use crate::ast::{self, Item, Leader, LeaderKind};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::model::Swarm;
use crate::source::Span;
use crate::suggest;
use crate::syntax::Text;
use crate::template;

/// The codes that it reports.
pub(super) const CODES: &[Code] = &[Code::WrongValue, Code::BadDirective];

const TEXT_CHARS: usize = PlanItem::TEXT_CHARS;
const ITEM_PARTS: usize = PlanItem::PARTS;

pub(super) fn check(swarm: &Swarm<'_>, diagnostics: &mut Diagnostics) {
    let ast = swarm.ast;
    match &ast.leader {
        // With two leaders, only one of which stays, neither half can be told to be wrong.
        Some(leader) if leader.ambiguous => {}
        Some(leader) if leader.kind == LeaderKind::Coordinator => check_superfluous(ast, leader, diagnostics),
        leader => diagnostics.extend(report_leaderless(ast, leader.as_ref())),
    }
    check_item_count(ast, diagnostics);
    check_worktrees(ast, diagnostics);
    ast.items.iter().for_each(|item| check_item(item, diagnostics));
}

/// Items, spawned agents and channels without the coordinator that they need.
fn report_leaderless(ast: &ast::Swarm, leader: Option<&Leader>) -> Option<Diagnostic> {
    let parts = [
        ast.spawns.as_ref().map(|spawns| ("spawns", spawns.span, "only a coordinator adds these agents")),
        ast.channels.first().map(|channel| ("channel", channel.name.span, "only a coordinated swarm has channels")),
        ast.items.first().map(|item| ("item", item.name.span, "a coordinator assigns the items")),
        ast.conflicts.span.map(|span| ("conflicts", span, "only in a coordinated swarm do agents hear of them")),
        ast.worktrees.first().map(|tree| ("worktree", tree.name.span, "only a coordinated swarm has worktrees")),
    ];
    let mut parts: Vec<(&str, Span, &str)> = parts.into_iter().flatten().collect();
    parts.sort_by_key(|(_, span, _)| *span);
    let words = suggest::format_list(parts.iter().map(|(word, ..)| *word), "and");
    let message = format!("swarm `{}` has no coordinator for its {words}", ast.name.value);
    let diagnostic = Diagnostic::new(Code::WrongValue, message);
    let diagnostic = parts.iter().fold(diagnostic, |diagnostic, (_, span, label)| diagnostic.label(*span, *label));
    parts.first()?;
    Some(match leader {
        Some(leader) => diagnostic
            .label(leader.name.span, "a supervisor has no plan")
            .help(format!("write `coordinator {}` instead of `supervisor`", leader.name.value)),
        None => diagnostic.help("write `coordinator NAME` in its block: it plans the work, and ends the swarm"),
    })
}

/// What a supervisor does in steps of its own, and a coordinator in its turns.
fn check_superfluous(ast: &ast::Swarm, leader: &Leader, diagnostics: &mut Diagnostics) {
    let name = &leader.name.value;
    let parts = [
        ast.decompose.as_ref().map(|decompose| {
            let help = format!("remove it: `{name}` makes the plan itself; to begin with a plan, write `item NAME \"TEXT\"`");
            ("decompose", decompose.span, "the coordinator splits the goal in its turns", help)
        }),
        ast.synthesize.as_ref().map(|synthesize| {
            let help = format!("remove it: the result is what `{name}` says when it is done");
            ("synthesize", synthesize.span, "the coordinator sums up", help)
        }),
        ast.spawn.span.map(|span| {
            let help = format!(
                "write `spawns AGENT max=3`: the agents that `{name}` may add; who approves them, `policy {{ spawn … }}` says"
            );
            ("spawn", span, "members do not ask for help here", help)
        }),
    ];
    for (word, span, label, help) in parts.into_iter().flatten() {
        let message = format!("swarm `{}` has a coordinator, so it cannot have `{word}`", ast.name.value);
        diagnostics.push(
            Diagnostic::new(Code::WrongValue, message)
                .label(span, label)
                .label(leader.name.span, "the coordinator")
                .help(help),
        );
    }
}

/// More items than the plan may have.
fn check_item_count(ast: &ast::Swarm, diagnostics: &mut Diagnostics) {
    let (items, most) = (ast.items.len(), ast.limits.items);
    let Some(first) = ast.items.get(most as usize) else { return };
    let message = format!("swarm `{}` has {items} items, but allows {most} at most", ast.name.value);
    let diagnostic =
        Diagnostic::new(Code::WrongValue, message).label(first.name.span, format!("the first beyond {most}"));
    let diagnostic = match ast.limits.span {
        Some(limits) => diagnostic.label(limits, "the limits"),
        None => diagnostic,
    };
    diagnostics.push(diagnostic.help(format!("write `limits {{ items {items} }}`, or take items out")));
}

/// Worktrees that no agent works in, and agents that would work in two places.
fn check_worktrees(ast: &ast::Swarm, diagnostics: &mut Diagnostics) {
    let mut managers: BTreeMap<&str, Span> = BTreeMap::new();
    let mut places: BTreeMap<&str, (&str, Span)> = BTreeMap::new();
    let mut found = Vec::new();
    let wrong =
        |message: String, span: Span, label: &str| Diagnostic::new(Code::WrongValue, message).label(span, label);
    for tree in &ast.worktrees {
        let name = &tree.name.value;
        if tree.members.is_empty() && !diagnostics.has_report_at(tree.span) {
            let diagnostic = wrong(format!("worktree `{name}` has no member"), tree.name.span, "no agent works in it");
            found.push(diagnostic.help("write `members MEMBER…` in its block, or remove it"));
        }
        if let Some(branch) = tree.into.as_ref().filter(|branch| !Worktree::is_branch_name(&branch.value)) {
            let diagnostic =
                wrong(format!("no branch can be called `{}`", branch.value), branch.span, "no name of a branch");
            found.push(diagnostic.help("write the name of a branch of the repository, such as `into=main`"));
        }
        if let Some(manager) = &tree.manager
            && let Some(first) = managers.insert(&manager.value, manager.span)
        {
            let message = format!("`{}` is the manager of two worktrees", manager.value);
            let diagnostic = wrong(message, manager.span, "again here").label(first, "first here");
            found.push(diagnostic.help("give each worktree a manager of its own: another member, or another agent"));
        }
        for member in &tree.members {
            if let Some((other, first)) = places.insert(&member.value, (name, member.span))
                && other != name
            {
                let message = format!("`{}` cannot work in worktrees `{other}` and `{name}`", member.value);
                let diagnostic = wrong(message, member.span, "also here").label(first, "works here");
                found.push(diagnostic.help("take it out of one of them"));
            }
        }
    }
    let coordinator = ast.coordinator().map(|leader| (leader.name.value.as_str(), leader.name.span, "the coordinator"));
    let merging = managers.iter().map(|(name, span)| (*name, *span, "merges what others commit"));
    for (name, span, label) in merging.chain(coordinator) {
        let Some((tree, place)) = places.get(name) else { continue };
        let message = format!("`{name}` cannot work in worktree `{tree}`");
        let help = "take it out of `members`: managers work where they merge, and coordinators in the workspace";
        found.push(wrong(message, *place, "works here").label(span, label).help(help));
    }
    found.into_iter().for_each(|diagnostic| diagnostics.push(diagnostic));
}

/// The texts of an item, and how many parts it has.
fn check_item(item: &Item, diagnostics: &mut Diagnostics) {
    let name = &item.name.value;
    if let Some(text) = &item.text {
        check_text(&format!("item `{name}`"), text, diagnostics);
    }
    for text in &item.checkpoints {
        check_text(&format!("a checkpoint of item `{name}`"), text, diagnostics);
    }
    let parts = [
        ("checkpoints", item.checkpoints.get(ITEM_PARTS).map(Text::outer_span), item.checkpoints.len()),
        ("patterns in its `scope`", item.scope.get(ITEM_PARTS).map(|glob| glob.span), item.scope.len()),
        ("items that it depends on", item.needs.get(ITEM_PARTS).map(|need| need.span), item.needs.len()),
    ];
    for (what, place, count) in parts {
        let Some(place) = place else { continue };
        diagnostics.push(
            Diagnostic::new(Code::WrongValue, format!("item `{name}` has {count} {what}, but may have {ITEM_PARTS}"))
                .label(place, format!("the first beyond {ITEM_PARTS}"))
                .help("split the item into several"),
        );
    }
}

/// A text that every agent of the swarm sees in each turn, as it is written.
fn check_text(what: &str, text: &Text, diagnostics: &mut Diagnostics) {
    let value = text.as_str();
    let chars = value.chars().count();
    if chars > TEXT_CHARS {
        diagnostics.push(
            Diagnostic::new(
                Code::WrongValue,
                format!("the text of {what} has {chars} characters, but may have {TEXT_CHARS}"),
            )
            .label(text.outer_span(), "every agent reads it in each turn")
            .help("say it in short; put the rest into the `goal`, or into a file that the text names"),
        );
    }
    for (range, _) in template::list_placeholders(value) {
        diagnostics.push(
            Diagnostic::new(
                Code::BadDirective,
                format!("the text of {what} is no template, so `{}` would stay as it is", &value[range.clone()]),
            )
            .label(text.span(range), "nothing replaces this")
            .help("write the value itself, or read it in the `goal`, which is a template"),
        );
    }
}
