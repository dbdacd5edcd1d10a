//! A swarm as `swarmc plan` shows it: who takes part, what they are told, and what holds them.
//!
//! In: a swarm of a plan. Out: a few lines of text.

use std::fmt::Write;

use swarmc_plan::{Approval, Member, Plan, PlanItem, Priority, Swarm, Worktree};
use swarmc_view::{describe_template, format_command, format_count, format_limit};

use crate::terminal::Paint;

/// Adds the lines of a swarm.
pub(crate) fn write_swarm(out: &mut String, plan: &Plan, swarm: &Swarm, paint: Paint) {
    let default = if swarm.name == plan.default { " (default)" } else { "" };
    let members: u64 = swarm.members.iter().map(|member| u64::from(member.count)).sum();
    let _ = writeln!(out, "\nswarm {}{default}: {}", paint.bold(&swarm.name), format_count(members, "member"));
    if let Some(goal) = &swarm.goal {
        let _ = writeln!(out, "  goal of {}", describe_template(goal));
    }
    if let Some(lead) = &swarm.lead {
        let role = if lead.coordinator { "coordinates" } else { "leads" };
        let _ = writeln!(out, "  {} {role}, agent {}", paint.bold(&lead.name), describe_player(plan, &lead.agent));
    }
    for member in &swarm.members {
        let _ = writeln!(out, "  {}", self::describe_member(plan, member, swarm, paint));
    }
    for line in list_rules(swarm) {
        let _ = writeln!(out, "  {}", paint.dim(&line));
    }
}

fn describe_player(plan: &Plan, agent: &str) -> String {
    let provider = plan.agent(agent).map_or("", |agent| agent.provider.as_str());
    format!("{agent} ({provider})")
}

fn describe_member(plan: &Plan, member: &Member, swarm: &Swarm, paint: Paint) -> String {
    let name = match (&member.name, &member.names) {
        (Some(name), _) => paint.bold(name),
        (None, Some(list)) => format!("{} named from `{list}`", format_count(member.count.into(), "member")),
        (None, None) => format_count(member.count.into(), "member"),
    };
    let task = match (&member.task, swarm.decompose) {
        (Some(task), _) => format!("task of {}", describe_template(task)),
        (None, Some(_)) => "a part of the goal".to_owned(),
        (None, None) if is_team(swarm) => "works by the plan".to_owned(),
        (None, None) => "waits for a message".to_owned(),
    };
    format!("{name}: agent {}, {task}", describe_player(plan, &member.agent))
}

/// Whether a coordinator leads it: its agents work by a plan, and it alone adds further ones.
fn is_team(swarm: &Swarm) -> bool {
    swarm.lead.as_ref().is_some_and(|lead| lead.coordinator)
}

/// What holds for all of them.
fn list_rules(swarm: &Swarm) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(parts) = swarm.decompose {
        lines.push(format!("the goal is split into {} at most", format_count(parts.into(), "part")));
    }
    let limits = &swarm.limits;
    lines.push(format!(
        "at most {}, each with {}, {} and {}",
        format_count(limits.agents.into(), "agent"),
        format_count(limits.iterations.into(), "turn"),
        format_limit(limits.timeout_ms),
        format_count(limits.messages.into(), "message"),
    ));
    let who = match swarm.spawn.approval {
        Approval::Auto => "granted at once",
        Approval::Human => "approved by a person",
        Approval::Coordinator => "approved by the coordinator",
    };
    lines.push(match (swarm.spawn.per_agent, &swarm.spawns) {
        (_, Some(spawns)) if is_team(swarm) => {
            // The coordinator itself needs no approval of its own.
            let who = if swarm.spawn.approval == Approval::Human { who } else { "as the coordinator decides" };
            let most = format_count(spawns.max.into(), "agent");
            format!("{most} more at most, playing {}, {who}", spawns.agents.join(" or "))
        }
        (_, None) if is_team(swarm) => "no further agents".to_owned(),
        (0, _) => "no agent may ask for help".to_owned(),
        (each, _) => format!("each may ask for {}, {who}", format_count(each.into(), "helper")),
    });
    lines.extend(swarm.items.iter().map(describe_item));
    let channels = swarm.channels.iter();
    lines.extend(channels.map(|channel| format!("channel {}: {}", channel.name, channel.members.join(", "))));
    lines.extend(swarm.worktrees.iter().map(describe_worktree));
    for edge in &swarm.edges {
        let arrow = if edge.both { "<->" } else { "->" };
        lines.push(format!("{} {arrow} {}", edge.from, edge.to));
    }
    if let Some(synthesize) = &swarm.synthesize {
        lines.push(format!("summed up by agent {}", synthesize.agent));
    }
    lines
}

fn describe_item(item: &PlanItem) -> String {
    let mut line = format!("item {}", item.name);
    if let Some(owner) = &item.owner {
        let _ = write!(line, " of {owner}");
    }
    match item.priority {
        Priority::Low => line.push_str(", low priority"),
        Priority::Normal => {}
        Priority::High => line.push_str(", high priority"),
    }
    if !item.depends_on.is_empty() {
        let _ = write!(line, ", after {}", item.depends_on.join(", "));
    }
    line
}

fn describe_worktree(tree: &Worktree) -> String {
    let mut line = format!("worktree {} of {}, merged by {}", tree.name, tree.members.join(", "), tree.manager);
    if let Some(branch) = &tree.into {
        let _ = write!(line, " into {branch}");
    }
    let checks = tree.checks.iter().map(format_command).collect::<Vec<_>>();
    if !checks.is_empty() {
        let _ = write!(line, ", checked by {}", checks.join(", "));
    }
    line
}
