//! The plan of a team in the prompt of one of its agents: its items, what changed since the agent saw it last, and what
//! waits for the coordinator.
//!
//! What agents wrote into the plan is data, as everywhere in a prompt.

use std::fmt::Write;

use super::data::{self, inline_text};
use crate::core::swarm::action::TeamPart;
use crate::core::swarm::merge::{WorkPlace, Worktree};
use crate::core::swarm::plan::{Item, TeamPlan};
use crate::types::team::{ItemState, PlanOp};

/// The characters that a prompt shows of a name, and of what an owner says of an item.
const WORD: usize = 200;
/// The items that are shown with their texts at most, beside those of the agent itself; more are counted.
const SHOWN: usize = 100;

/// What an agent of a team is shown of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TeamView<'a> {
    /// Its part.
    pub part: TeamPart,
    /// The name of the coordinator.
    pub coordinator: &'a str,
    /// The plan.
    pub plan: &'a TeamPlan,
    /// The version that its last turn showed; 0 before its first turn.
    pub seen: u32,
    /// How it takes actions while its turn goes on.
    pub calls: Calls,
    /// The agents that the coordinator may add.
    pub spawns: &'a [String],
    /// The channels: the name, who takes part, and whether others may join.
    pub channels: &'a [(&'a str, Vec<&'a str>, bool)],
    /// The worktrees.
    pub worktrees: &'a [TreeView<'a>],
    /// Where it works.
    pub place: WorkPlace<'a>,
}

/// A worktree of a team.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TreeView<'a> {
    /// Its name.
    pub name: &'a str,
    /// Who works in it, and how far it is.
    pub tree: &'a Worktree,
}

/// How an agent takes actions while its turn goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Calls {
    /// Not at all.
    Nothing,
    /// By tools of the MCP server of the run.
    Tools,
    /// By a command in its shell.
    Command,
}

/// The section of the plan.
pub(super) fn write_plan(out: &mut String, team: &TeamView<'_>, name: &str) {
    let plan = team.plan;
    if plan.version == 0 {
        out.push_str("\n## Plan\nThere is none yet.");
        out.push_str(match team.part {
            TeamPart::Lead => " Make the first version by `plan_update`: small items, with owners and dependencies.\n",
            _ => "\n",
        });
        return;
    }
    let _ =
        writeln!(out, "\n## Plan, Version {} ({} of {} items done)", plan.version, plan.count_done(), plan.items.len());
    let mine = |item: &&Item| item.owner.as_deref() == Some(name);
    let (own, others): (Vec<&Item>, Vec<&Item>) = plan.items.iter().partition(mine);
    let shown = others.len().min(SHOWN);
    own.iter().chain(&others[..shown]).for_each(|item| write_item(out, plan, item, name));
    if others.len() > shown {
        let _ = writeln!(out, "- ({} more items are left out)", others.len() - shown);
    }
    write_changes(out, plan, team.seen);
    if team.part == TeamPart::Lead {
        write_proposals(out, plan);
    }
    write_channels(out, team);
    write_worktrees(out, team);
}

/// The plan, for an agent that asks for it while its turn goes on.
pub(crate) fn render_plan(plan: &TeamPlan, name: &str) -> String {
    let mut out = format!("version {}, {} of {} items done\n", plan.version, plan.count_done(), plan.items.len());
    plan.items.iter().for_each(|item| write_item(&mut out, plan, item, name));
    out
}

fn write_item(out: &mut String, plan: &TeamPlan, item: &Item, name: &str) {
    let owner = match item.owner.as_deref() {
        Some(owner) if owner == name => "yours".to_owned(),
        Some(owner) => format!("owner {}", inline_text(owner, WORD)),
        None => "no owner".to_owned(),
    };
    let _ = write!(out, "- {} [{}] ({owner}", inline_text(&item.name, WORD), plan.describe_state(item));
    let waits: Vec<&str> = plan.waits_for(item).map(|on| &*on.name).collect();
    if !waits.is_empty() {
        let _ = write!(out, "; waits for {}", inline_text(&waits.join(", "), WORD));
    }
    if !item.checkpoints.is_empty() && item.state != ItemState::Done {
        let next = item
            .checkpoints
            .get(item.reached)
            .map_or_else(String::new, |next| format!(", next: {}", inline_text(next, WORD)));
        let _ = write!(out, "; checkpoint {} of {}{next}", item.reached, item.checkpoints.len());
    }
    if !item.scope.is_empty() {
        let _ = write!(out, "; touches {}", inline_text(&item.scope.join(" "), WORD));
    }
    out.push_str("): ");
    data::push(out, &item.text, WORD * 2);
    if let Some(note) = item.note.as_deref().filter(|note| !note.is_empty()) {
        let _ = write!(out, " → {}", inline_text(note, WORD * 2));
    }
    out.push('\n');
}

/// What is other since the version `seen`.
pub(super) fn write_changes(out: &mut String, plan: &TeamPlan, seen: u32) {
    if seen == 0 || seen >= plan.version {
        return;
    }
    let Some(changes) = plan.changes_since(seen) else { return };
    let _ = writeln!(out, "You last saw version {seen}. Since then:");
    for change in changes {
        let ops: Vec<String> = change.ops.iter().map(PlanOp::describe).collect();
        let (by, ops) = (inline_text(&change.by, WORD), inline_text(&ops.join(", "), WORD * 2));
        let _ = writeln!(out, "- version {} by {by}: {ops}; {}", change.version, inline_text(&change.why, WORD * 2));
    }
}

fn write_proposals(out: &mut String, plan: &TeamPlan) {
    if plan.proposals.is_empty() {
        return;
    }
    out.push_str("\n## Proposals\nDecide each by `plan_decide`.\n");
    for (id, proposal) in &plan.proposals {
        let by = inline_text(&proposal.by, WORD);
        let _ = write!(out, "- {id} by {by}, based on version {}: ", proposal.base);
        let ops = serde_json::to_string(&proposal.ops).unwrap_or_default();
        data::push(out, &ops, 4_000);
        let _ = writeln!(out, "; {}", inline_text(&proposal.why, WORD * 2));
    }
}

fn write_channels(out: &mut String, team: &TeamView<'_>) {
    if team.channels.is_empty() {
        return;
    }
    out.push_str("\n## Channels\n");
    for (name, members, open) in team.channels {
        let open = if *open { "; open to others" } else { "" };
        let members = if members.is_empty() { "no members".to_owned() } else { members.join(", ") };
        let _ = writeln!(out, "- {}: {}{open}", inline_text(name, WORD), inline_text(&members, WORD * 2));
    }
}

fn write_worktrees(out: &mut String, team: &TeamView<'_>) {
    if team.worktrees.is_empty() {
        return;
    }
    out.push_str("\n## Worktrees\n");
    for TreeView { name, tree } in team.worktrees {
        let members: Vec<&str> = tree.members.iter().map(|member| &**member).collect();
        let members = inline_text(&members.join(", "), WORD * 2);
        let into =
            tree.into.as_deref().map_or_else(String::new, |branch| format!(" into {}", inline_text(branch, WORD)));
        let stage = inline_text(&tree.describe_stage(), WORD * 2);
        let _ = writeln!(out, "- {}: {members}; {} merges it{into}; {stage}", inline_text(name, WORD), tree.manager);
    }
}

/// How a program takes actions while its turn goes on.
pub(super) fn write_call_rules(out: &mut String, calls: Calls) {
    let way = match calls {
        Calls::Nothing => return,
        Calls::Tools => "are also tools, of the MCP server `swarm`",
        Calls::Command => {
            "can also be taken in your shell, by `swarmc agent call ACTION 'JSON'`, the JSON without `action`"
        }
    };
    let _ = write!(
        out,
        "\n## Actions Within A Turn\n\
         All actions above but `done` and `idle` {way}. Use them while you work, as often as you like: report items, write \
         to others, propose changes. What they return also holds what others wrote to you meanwhile, so use one now and \
         then. When you have used them and have nothing more to do in this turn, end it with a sentence in the place of \
         the JSON object.\n",
    );
}

/// The rules of a team, in the system text of one of its agents.
pub(super) fn write_team_rules(out: &mut String, team: &TeamView<'_>, is_program: bool) {
    out.push_str("\n## Your Part\n");
    if team.part == TeamPart::Lead {
        out.push_str(
            "You coordinate the team. You make the plan, assign its items, and decide proposals; you alone add and end \
             agents. You do not do the items yourself, and you merge nothing.\n\
             - An item begins by itself, once it has an owner and what it waits for is done.\n\
             - You are woken when an item is done, blocked or given up, when an agent ends, and by proposals and messages. \
             Return `idle` to wait for that.\n\
             - After an agent has failed, decide: spawn one that replaces it, assign its items to others, or remove them.\n\
             - When every item is done or removed, return `done` with the result: it ends the team.\n",
        );
        if !team.spawns.is_empty() {
            let _ = writeln!(out, "- You may add agents that play: {}.", team.spawns.join(", "));
        }
        return;
    }
    let _ = write!(
        out,
        "{} coordinates the team, and alone changes the plan, adds and ends agents. You work on the items of the plan that \
         are yours, one after the other, in parallel to the others.\n\
         - An item of yours that is `running` is what you work on now. End it by `item_done`, or by `item_blocked` or \
         `item_failed` if you cannot go on.\n\
         - If the plan should change, use `plan_propose`; {} decides.\n\
         - There are no locks on files. Talk to those whose work meets yours directly, not through {}.\n\
         - Return `idle` to wait for a message or an item.\n",
        team.coordinator, team.coordinator, team.coordinator
    );
    match team.place {
        WorkPlace::Workspace => {}
        WorkPlace::Worktree(name) => {
            let _ = writeln!(
                out,
                "- Your working folder is worktree `{name}`, which you share with its other members. Commit your work \
                 there before `item_done`, where you can run commands; its manager merges it.",
            );
        }
        WorkPlace::Merges(_) => out.push_str(
            "- You are the manager of a worktree, and you alone merge it. You work in the folder in which it is merged, \
             and do no items. A message says when its members have nothing more to do: use `integrate` then. When files \
             conflict, resolve them in your folder, keep what both sides meant, and use `integrate_continue`. `git branch \
             --list 'swarm/*'` shows the branches.\n",
        ),
    }
    if is_program {
        out.push_str(
            "- Others work in the same repository at the same time: use no `git stash`, no `git gc`, and do not switch \
             branches.\n",
        );
    }
}
