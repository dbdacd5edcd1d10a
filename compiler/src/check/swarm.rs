//! SW005: the parts of a swarm contradict each other: too few places, no agent left for a task, or no work at all.
//!
//! Lowering checks each number alone where it reads it; this module compares several of them.

use swarmc_plan::Approval;

use crate::ast;
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::model::{Body, Model, Start, Swarm};
use crate::source::Span;

pub(super) fn check(model: &Model<'_>, swarm: &Swarm<'_>, diagnostics: &mut Diagnostics) {
    check_member_count(swarm, diagnostics);
    check_split_goal(swarm, diagnostics);
    check_spawning(swarm, diagnostics);
    check_groups(swarm, diagnostics);
    check_work(model, swarm, diagnostics);
}

fn report_wrong_value(message: String, span: Span, label: impl Into<String>) -> Diagnostic {
    Diagnostic::new(Code::WrongValue, message).label(span, label)
}

/// More members than agents. A coordinator is one of the agents, and so is everyone that it may add.
fn check_member_count(swarm: &Swarm<'_>, diagnostics: &mut Diagnostics) {
    let ast = swarm.ast;
    let groups: u64 = ast.groups.iter().map(|group| u64::from(group.count.value)).sum();
    // Managers that are no members are agents as well.
    let managers = swarm.managers.iter().flatten().count() as u64;
    let members = ast.members.len() as u64 + groups + managers;
    let coordinator = u64::from(ast.coordinator().is_some());
    let spawns = ast.spawns.as_ref().filter(|_| coordinator > 0);
    let spawned = spawns.map_or(0, |spawns| u64::from(spawns.max.value));
    let (all, agents) = (members + coordinator + spawned, ast.limits.agents);
    if all <= u64::from(agents) {
        return;
    }
    let name = &ast.name.value;
    let mut parts = vec![format!("{members} member{}", if members == 1 { "" } else { "s" })];
    parts.extend((coordinator > 0).then(|| "a coordinator".to_owned()));
    parts.extend(spawns.map(|spawns| format!("`spawns … max={}`", spawns.max.value)));
    let has = match parts.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last} ({all} agents)", rest.join(", ")),
        _ => parts.concat(),
    };
    let message = format!("swarm `{name}` has {has}, but allows {agents} agents at most");
    let more = if coordinator > 0 { "has more agents" } else { "has more members" };
    let diagnostic = match ast.limits.span {
        Some(limits) => report_wrong_value(message, limits, format!("{agents} agents")).label(ast.name.span, more),
        None => report_wrong_value(message, ast.name.span, format!("more than the default limit of {agents}")),
    };
    let diagnostic = match spawns {
        Some(spawns) => diagnostic.label(spawns.span, format!("may add {spawned}")),
        None => diagnostic,
    };
    let fewer = match spawns.filter(|_| members + coordinator < u64::from(agents)) {
        Some(_) => format!("`max={}` in `spawns`", u64::from(agents) - members - coordinator),
        None => "take members out".to_owned(),
    };
    diagnostics.push(diagnostic.help(format!("write `limits {{ agents {all} }}`, or {fewer}")));
}

/// Reports a split goal if every member has its own task.
fn check_split_goal(swarm: &Swarm<'_>, diagnostics: &mut Diagnostics) {
    let ast = swarm.ast;
    let Some(decompose) = &ast.decompose else { return };
    if ast.groups.is_empty()
        && let Some(first) = ast.members.first()
        && ast.members.iter().all(|member| member.task.is_some())
    {
        let name = &ast.name.value;
        diagnostics.push(
            report_wrong_value(
                format!("no member of swarm `{name}` is free to take a part of the goal"),
                decompose.span,
                "splits it",
            )
            .label(first.name.span, "every member has a task of its own")
            .help("remove `decompose`, or the task of a member that is to take a part"),
        );
    }
}

/// Who may ask for help, and who agrees.
fn check_spawning(swarm: &Swarm<'_>, diagnostics: &mut Diagnostics) {
    let ast = swarm.ast;
    let Some(approval) = &ast.spawn.approval else { return };
    if ast.spawn.per_agent == 0 {
        diagnostics.push(
            report_wrong_value(
                "`per-agent=0` leaves nothing to approve".to_owned(),
                approval.span,
                "no member may ask",
            )
            .help("remove `approval=`; or write `per-agent=1` so that each member may ask once"),
        );
    }
    if approval.value == Approval::Coordinator && ast.coordinator().is_none() {
        let diagnostic = report_wrong_value(
            format!("swarm `{}` has no coordinator to approve anything", ast.name.value),
            approval.span,
            "no `coordinator` is declared",
        );
        diagnostics.push(match &ast.leader {
            Some(leader) => diagnostic.label(leader.name.span, "a supervisor spawns help itself").help(format!(
                "write `approval=human`; or `coordinator {}` instead of `supervisor`, and `spawns AGENT` instead of `spawn`",
                leader.name.value
            )),
            None => {
                diagnostic.help("write `approval=human`; or `coordinator NAME`, and `spawns AGENT` instead of `spawn`")
            }
        });
    }
}

/// Channels for one, and worktrees that the coordinator would have to integrate.
fn check_groups(swarm: &Swarm<'_>, diagnostics: &mut Diagnostics) {
    let ast = swarm.ast;
    let mut found = Vec::new();
    for channel in ast.channels.iter().filter(|channel| !channel.open && !diagnostics.has_report_at(channel.span)) {
        let name = &channel.name.value;
        let diagnostic = match channel.members.as_slice() {
            [] => report_wrong_value(format!("channel `{name}` has no member"), channel.name.span, "no agent reads it")
                .help("write `members MEMBER…` in its block, or `open #true`, so that all may take part"),
            [only] => report_wrong_value(format!("channel `{name}` has only one member"), only.span, "the only member")
                .help("add another member, write `open #true`, so that others may join, or remove the channel"),
            _ => continue,
        };
        found.push(diagnostic);
    }
    // Only now: the filter above looks at the diagnostics.
    found.into_iter().for_each(|diagnostic| diagnostics.push(diagnostic));
    let coordinator = ast.coordinator();
    for tree in &ast.worktrees {
        let Some((manager, leader)) = tree.manager.as_ref().zip(coordinator) else { continue };
        if manager.value == leader.name.value {
            diagnostics.push(
                report_wrong_value(
                    format!("the coordinator cannot integrate worktree `{}`", tree.name.value),
                    manager.span,
                    "it plans and does not merge",
                )
                .label(leader.name.span, "the coordinator")
                .help("name another member as `manager=`, or an agent that is not a member"),
            );
        }
    }
}

/// A swarm without work.
fn check_work(model: &Model<'_>, swarm: &Swarm<'_>, diagnostics: &mut Diagnostics) {
    let ast = swarm.ast;
    let told = ast.coordinator().is_none()
        && (ast.goal.is_some() || !ast.items.is_empty() || ast.members.iter().any(|member| member.task.is_some()));
    if diagnostics.has_report_at(ast.span) {
        return;
    }
    if has_no_starter(ast) && ast.goal.is_some() {
        diagnostics.push(report_idle(ast));
        return;
    }
    if ast.goal.is_some() || told && ast.decompose.is_none() {
        return;
    }
    let name = &ast.name.value;
    // A coordinator begins with the goal, whatever tasks and items there are.
    let needs = match (ast.coordinator(), &ast.decompose) {
        (Some(coordinator), _) => (coordinator.name.span, "the goal is its task"),
        (None, Some(decompose)) => (decompose.span, "splits a goal"),
        (None, None) => (ast.name.span, "whose members have no tasks"),
    };
    let own = |index: usize| std::ptr::eq(&raw const *model.swarms[index].ast, ast);
    let steps = model.pipelines.iter().flat_map(|pipeline| &pipeline.steps);
    let (mut started, mut given) = (false, false);
    for step in steps {
        let Body::Swarm { name: written, swarm: Some(index), goal } = &step.body else { continue };
        if !own(*index) {
            continue;
        }
        started = true;
        given |= goal.is_some();
        if goal.is_none() {
            diagnostics.push(
                report_wrong_value(format!("swarm `{name}` is started without a goal"), written.span, "no goal here")
                    .label(needs.0, needs.1)
                    .help(format!("write `swarm {name} goal=\"…\"`, or `goal \"…\"` in the swarm")),
            );
        }
    }
    if given && has_no_starter(ast) {
        diagnostics.push(report_idle(ast));
    }
    let by_hand = matches!(model.default, Some(Start::Swarm(index)) if own(index));
    if (by_hand || !started) && model.tables.modules.is_own(ast.name.span) {
        diagnostics.push(match ast.coordinator() {
            Some(coordinator) => report_wrong_value(
                format!("swarm `{name}` has no goal for its coordinator"),
                coordinator.name.span,
                "the goal is its task",
            )
            .help("write `goal \"…\"` in its block"),
            None => report_wrong_value(format!("swarm `{name}` has no goal"), ast.name.span, "nothing to do")
                .help("write `goal \"…\"` in its block, or give its members tasks"),
        });
    }
}

/// Whether no agent can begin: members without a task wait for a message, and no agent starts to write one.
fn has_no_starter(ast: &ast::Swarm) -> bool {
    // A coordinator begins itself. Items without one are reported as such.
    let plans = ast.coordinator().is_some() || !ast.items.is_empty();
    ast.decompose.is_none() && !plans && ast.members.iter().all(|member| member.task.is_none())
}

fn report_idle(ast: &ast::Swarm) -> Diagnostic {
    let name = &ast.name.value;
    let diagnostic =
        report_wrong_value(format!("no agent of swarm `{name}` has anything to do"), ast.name.span, "always fails");
    let first = ast.members.first().map(|member| &member.name);
    let diagnostic = match first {
        Some(member) => diagnostic.label(member.span, "has no task, and waits for a message that no member writes"),
        None => diagnostic,
    };
    let task = format!("give a member a task: `member {} \"…\"`", first.map_or("NAME", |member| &member.value));
    diagnostic.help(match &ast.leader {
        Some(leader) => format!("write `decompose`, so that `{}` splits the goal, or {task}", leader.name.value),
        None => format!("{task}; or write `supervisor NAME` and `decompose`, which splits the goal"),
    })
}
