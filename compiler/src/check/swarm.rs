//! SW005: the parts of a swarm contradict each other: too few places, no agent left for a task, or no work at all.
//!
//! Lowering checks each number alone where it reads it; this module compares several of them.

use swarmc_plan::Approval;

use crate::ast::{self, LeaderKind};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::model::{Body, Model, Start, Swarm};
use crate::source::Span;

pub(super) fn check(model: &Model<'_>, swarm: &Swarm<'_>, diagnostics: &mut Diagnostics) {
    places(swarm, diagnostics);
    parts(swarm, diagnostics);
    spawning(swarm, diagnostics);
    groups(swarm, diagnostics);
    work(model, swarm, diagnostics);
}

fn wrong(message: String, span: Span, label: impl Into<String>) -> Diagnostic {
    Diagnostic::new(Code::WrongValue, message).label(span, label)
}

/// More members than agents.
fn places(swarm: &Swarm<'_>, diagnostics: &mut Diagnostics) {
    let ast = swarm.ast;
    let groups: u64 = ast.groups.iter().map(|group| u64::from(group.count.value)).sum();
    let members = ast.members.len() as u64 + groups;
    let agents = ast.limits.agents;
    if members <= u64::from(agents) {
        return;
    }
    let name = &ast.name.value;
    let message = format!("swarm `{name}` has {members} members, and {agents} agents at most");
    let diagnostic = match ast.limits.span {
        Some(limits) => wrong(message, limits, format!("{agents} agents")).label(ast.name.span, "its members are more"),
        None => wrong(message, ast.name.span, format!("more than the {agents} of a swarm that says nothing")),
    };
    diagnostics.push(diagnostic.help(format!("write `limits {{ agents {members} }}`, or take members out")));
}

/// Reports a split goal if every member has its own task.
fn parts(swarm: &Swarm<'_>, diagnostics: &mut Diagnostics) {
    let ast = swarm.ast;
    let Some(decompose) = &ast.decompose else { return };
    if ast.groups.is_empty()
        && let Some(first) = ast.members.first()
        && ast.members.iter().all(|member| member.task.is_some())
    {
        let name = &ast.name.value;
        diagnostics.push(
            wrong(format!("nobody in swarm `{name}` is left to take a part of the goal"), decompose.span, "splits it")
                .label(first.name.span, "every member has a task of its own")
                .help("remove `decompose`, or the task of a member that is to take a part"),
        );
    }
}

/// Who may ask for help, and who agrees.
fn spawning(swarm: &Swarm<'_>, diagnostics: &mut Diagnostics) {
    let ast = swarm.ast;
    let Some(approval) = &ast.spawn.approval else { return };
    if ast.spawn.per_agent == 0 {
        diagnostics.push(
            wrong(
                "`per-agent=0` leaves nothing to approve".to_owned(),
                approval.span,
                "approves what nobody may ask for",
            )
            .help("remove `approval=`; or write `per-agent=1` so that each member may ask once"),
        );
    }
    let coordinator = ast.leader.as_ref().filter(|leader| leader.kind == LeaderKind::Coordinator);
    if approval.value == Approval::Coordinator && coordinator.is_none() {
        let diagnostic = wrong(
            format!("swarm `{}` has no coordinator to approve anything", ast.name.value),
            approval.span,
            "who is this?",
        );
        diagnostics.push(match &ast.leader {
            Some(leader) => diagnostic.label(leader.name.span, "a supervisor, who has help started itself").help(
                format!("write `coordinator {}` instead of `supervisor`, or `approval=human`", leader.name.value),
            ),
            None => diagnostic.help("write `coordinator NAME` in its block, or `approval=human`"),
        });
    }
}

/// Channels for one, and worktrees that the coordinator would have to integrate.
fn groups(swarm: &Swarm<'_>, diagnostics: &mut Diagnostics) {
    let ast = swarm.ast;
    for channel in ast.channels.iter().filter(|channel| channel.members.len() == 1) {
        diagnostics.push(
            wrong(
                format!("channel `{}` has one member, who talks to nobody", channel.name.value),
                channel.members[0].span,
                "alone in it",
            )
            .help("write the others behind it, or remove the channel"),
        );
    }
    let coordinator = ast.leader.as_ref().filter(|leader| leader.kind == LeaderKind::Coordinator);
    for tree in &ast.worktrees {
        let Some((manager, leader)) = tree.manager.as_ref().zip(coordinator) else { continue };
        if manager.value == leader.name.value {
            diagnostics.push(
                wrong(
                    format!("the coordinator cannot integrate worktree `{}`", tree.name.value),
                    manager.span,
                    "it plans and does not merge",
                )
                .label(leader.name.span, "the coordinator")
                .help("name a member as `manager=`, or an agent that is none yet"),
            );
        }
    }
}

/// A swarm that is told nothing to do.
fn work(model: &Model<'_>, swarm: &Swarm<'_>, diagnostics: &mut Diagnostics) {
    let ast = swarm.ast;
    let told = ast.goal.is_some() || !ast.items.is_empty() || ast.members.iter().any(|member| member.task.is_some());
    if diagnostics.covers(ast.span) {
        return;
    }
    if nobody_begins(ast) && ast.goal.is_some() {
        diagnostics.push(idle(ast));
        return;
    }
    if told && (ast.goal.is_some() || ast.decompose.is_none()) {
        return;
    }
    let name = &ast.name.value;
    let needs = match &ast.decompose {
        Some(decompose) => (decompose.span, "splits a goal"),
        None => (ast.name.span, "whose members have no tasks"),
    };
    let own = |index: usize| std::ptr::eq(&raw const *model.swarms[index].ast, ast);
    let steps = model.pipelines.iter().flat_map(|pipeline| &pipeline.steps);
    let (mut started, mut given) = (false, false);
    for step in steps {
        let (Body::Swarm { swarm: Some(index), goal }, Some(ast::Body::Swarm { swarm: written, .. })) =
            (&step.body, &step.ast.body)
        else {
            continue;
        };
        if !own(*index) {
            continue;
        }
        started = true;
        given |= goal.is_some();
        if goal.is_none() {
            diagnostics.push(
                wrong(format!("swarm `{name}` is started without a goal"), written.span, "what is it to reach?")
                    .label(needs.0, needs.1)
                    .help(format!("write `swarm {name} goal=\"…\"`, or `goal \"…\"` in the swarm")),
            );
        }
    }
    if given && nobody_begins(ast) {
        diagnostics.push(idle(ast));
    }
    let by_hand = matches!(model.default, Some(Start::Swarm(index)) if own(index));
    if (by_hand || !started) && model.tables.modules.is_own(ast.name.span) {
        diagnostics.push(
            wrong(format!("swarm `{name}` has no goal"), ast.name.span, "nothing to do")
                .help("write `goal \"…\"` in its block, or give its members tasks"),
        );
    }
}

/// Whether no agent can begin: members without a task wait for a message, and no agent starts to write one.
fn nobody_begins(ast: &ast::Swarm) -> bool {
    // A coordinator hands the items out.
    let plans = ast.leader.as_ref().is_some_and(|leader| leader.kind == LeaderKind::Coordinator);
    ast.decompose.is_none() && !plans && ast.items.is_empty() && ast.members.iter().all(|member| member.task.is_none())
}

fn idle(ast: &ast::Swarm) -> Diagnostic {
    let name = &ast.name.value;
    let diagnostic = wrong(format!("no agent of swarm `{name}` has anything to do"), ast.name.span, "always fails");
    let first = ast.members.first().map(|member| &member.name);
    let diagnostic = match first {
        Some(member) => diagnostic.label(member.span, "has no task, and waits for a message that nobody writes"),
        None => diagnostic,
    };
    let task = format!("give a member a task: `member {} \"…\"`", first.map_or("NAME", |member| &member.value));
    diagnostic.help(match &ast.leader {
        Some(leader) => format!("write `decompose`, so that `{}` splits the goal, or {task}", leader.name.value),
        None => format!("{task}; or write `supervisor NAME` and `decompose`, which splits the goal"),
    })
}
