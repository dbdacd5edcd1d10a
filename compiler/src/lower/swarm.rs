//! Swarms. Every number that is not written is the table's.

use swarmc_plan as plan;

use super::datum::Datum;
use super::element::Element;
use super::policy::{lower_budget, parse_approval};
use super::{
    Section, argument_name, argument_names, child_argument, clamp_count, datum_name, description_text, edges,
    lower_command, lower_source, parse_choice,
};
use crate::ast::{self, LeaderKind, Spanned};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};

pub(super) fn lower_swarm(element: &Element, diagnostics: &mut Diagnostics) -> Option<ast::Swarm> {
    let name = argument_name(element, 0)?;
    let section = Section::of(element);
    let leader = lower_leader(element, diagnostics);
    let members: Vec<ast::Member> =
        element.children("member").filter_map(|node| lower_member(node, diagnostics)).collect();
    let groups: Vec<ast::Group> = element.children("members").filter_map(lower_group).collect();
    // A coordinator may begin alone, and add all the others.
    let adds = element.child("spawns").is_some()
        && leader.as_ref().is_some_and(|leader| leader.kind == LeaderKind::Coordinator);
    if members.is_empty() && groups.is_empty() && !adds && !diagnostics.has_report_at(element.span) {
        let diagnostic = Diagnostic::new(Code::WrongValue, format!("swarm `{}` has no member", name.value))
            .label(name.span, "no member")
            .help("write `member NAME \"TASK\"` or `members 3` in its block");
        diagnostics.push(diagnostic);
    }
    let decompose = element
        .child("decompose")
        .map(|node| ast::Decompose { max: Section::of(node).count_of("max"), span: node.span });
    if let (Some(decompose), None) = (&decompose, &leader) {
        let diagnostic =
            Diagnostic::new(Code::WrongValue, format!("swarm `{}` has no leader to split the goal", name.value))
                .label(decompose.span, "only a leader splits a goal")
                .help("write `supervisor NAME` in its block, or remove `decompose`");
        diagnostics.push(diagnostic);
    }
    let channel = |node: &Element| {
        Some(ast::Channel {
            name: super::argument_name(node, 0)?,
            members: node.child("members").map(argument_names).unwrap_or_default(),
            open: node.child("open").is_some_and(|open| open.argument(0).is_none_or(|on| on.number == 1)),
            span: node.span,
        })
    };
    let synthesize = |node: &Element| ast::Synthesize {
        agent: node.property("agent").map(datum_name),
        tier: node.property("tier").map(datum_name),
        span: node.span,
    };
    Some(ast::Swarm {
        description: description_text(element),
        goal: child_argument(element, "goal"),
        leader,
        members,
        groups,
        decompose,
        limits: lower_limits(section.child("limits"), diagnostics),
        timeouts: lower_timeouts(section.child("timeouts")),
        history: lower_history(section.child("history")),
        workspace: lower_workspace(section.child("workspace")),
        ttl_ms: section.child("ttl").number(),
        convergence: lower_convergence(section.child("convergence")),
        retry: lower_retry(section.child("retry").child("transient")),
        spawn: lower_spawn(section.child("spawn")),
        spawns: element.child("spawns").map(lower_spawns),
        channels: element.children("channel").filter_map(channel).collect(),
        items: element.children("item").filter_map(lower_item).collect(),
        worktrees: element.children("worktree").filter_map(|node| lower_managed_worktree(node, diagnostics)).collect(),
        conflicts: lower_conflicts(section.child("conflicts")),
        edges: element.child("edges").map(|node| edges::lower_edges(node, diagnostics)),
        synthesize: element.child("synthesize").map(synthesize),
        budget: element.child("budget").map(|node| lower_budget(node, diagnostics)),
        span: element.span,
        name,
    })
}

fn lower_leader(element: &Element, diagnostics: &mut Diagnostics) -> Option<ast::Leader> {
    let (supervisor, coordinator) = (element.child("supervisor"), element.child("coordinator"));
    if let (Some(first), Some(second)) = (supervisor, coordinator) {
        let diagnostic = Diagnostic::new(Code::WrongValue, "a swarm takes a supervisor or a coordinator, not both")
            .label(second.name.span, "one leader too many")
            .label(first.name.span, "first here")
            .help("remove one of them; a coordinator owns the plan, and only it may spawn");
        diagnostics.push(diagnostic);
    }
    let (node, kind) = match (supervisor, coordinator) {
        (Some(node), _) => (node, LeaderKind::Supervisor),
        (None, node) => (node?, LeaderKind::Coordinator),
    };
    Some(ast::Leader {
        kind,
        name: argument_name(node, 0)?,
        agent: node.property("agent").map(datum_name),
        ambiguous: supervisor.is_some() && coordinator.is_some(),
    })
}

fn lower_member(node: &Element, diagnostics: &mut Diagnostics) -> Option<ast::Member> {
    let says = node.argument(1).is_some() || node.property("file").is_some() || node.property("ref").is_some();
    Some(ast::Member {
        name: argument_name(node, 0)?,
        agent: node.property("agent").map(datum_name),
        task: says.then(|| lower_source(node, 1, diagnostics)).flatten(),
    })
}

fn lower_group(node: &Element) -> Option<ast::Group> {
    let size = node.argument(0)?;
    Some(ast::Group {
        count: Spanned { value: clamp_count(size.number), span: size.span },
        agent: node.property("agent").map(datum_name),
        // The only list there is.
        names: ast::NameList::Stations,
        span: node.span,
    })
}

fn lower_limits(section: Section<'_>, diagnostics: &mut Diagnostics) -> ast::Limits {
    let timeout = section.child("timeout");
    if let Some(zero) = timeout.element().and_then(|node| node.argument(0)).filter(|time| time.number == 0) {
        let diagnostic = Diagnostic::new(Code::WrongValue, "a time limit of zero ends every member at once")
            .label(zero.span, "nothing can be done in this time")
            .help("write how long each may take, as in `\"10m\"`");
        diagnostics.push(diagnostic);
    }
    ast::Limits {
        agents: section.child("agents").count(),
        iterations: section.child("iterations").count(),
        timeout_ms: timeout.number(),
        messages: section.child("messages").count(),
        proposals: section.child("proposals").count(),
        items: section.child("items").count(),
        summary_feed: section.child("summary-feed").count(),
        context_reads: section.child("context-reads").count(),
        span: section.element().map(|node| node.span),
    }
}

fn lower_timeouts(section: Section<'_>) -> ast::Timeouts {
    let of = |child: &str| {
        let section = section.child(child);
        ast::TurnTimeout { time_ms: section.number(), retries: section.count_of("retries") }
    };
    ast::Timeouts { turn: of("turn"), decompose: of("decompose"), synthesize: of("synthesize") }
}

fn lower_history(section: Section<'_>) -> ast::History {
    let (recent, whole) = (section.child("recent"), section.child("prompt"));
    ast::History {
        recent: recent.count(),
        recent_chars: recent.count_of("chars"),
        older_chars: section.child("older").count_of("chars"),
        prompt_chars: whole.count_of("chars"),
        keep: whole.count_of("keep"),
    }
}

fn lower_workspace(section: Section<'_>) -> ast::Workspace {
    ast::Workspace {
        per_topic: section.child("per-topic").count(),
        entries: section.child("entries").count(),
        snippet: section.child("snippet").count(),
    }
}

fn lower_convergence(section: Section<'_>) -> ast::Convergence {
    let no_progress = section.child("no-progress");
    ast::Convergence {
        no_progress: no_progress.count(),
        counts: match no_progress.word_of("counts").as_str() {
            "findings" => plan::ProgressRule::Findings,
            "messages" => plan::ProgressRule::Messages,
            _ => plan::ProgressRule::Tools,
        },
        errors: section.child("errors").count(),
    }
}

fn lower_retry(transient: Section<'_>) -> ast::TransientRetry {
    ast::TransientRetry { transient_ms: transient.number(), max_ms: transient.number_of("max") }
}

fn lower_spawn(section: Section<'_>) -> ast::Spawn {
    let written = section.element().and_then(|node| node.property("approval"));
    ast::Spawn {
        approval: written.map(|datum| parse_choice(datum, parse_approval)),
        per_agent: section.count_of("per-agent"),
        span: section.element().map(|node| node.span),
    }
}

fn lower_spawns(node: &Element) -> ast::Spawns {
    let max = node.property("max").map_or(node.name.span, |datum| datum.span);
    ast::Spawns {
        agents: argument_names(node),
        max: Spanned { value: Section::of(node).count_of("max"), span: max },
        span: node.span,
    }
}

fn lower_item(node: &Element) -> Option<ast::Item> {
    Some(ast::Item {
        name: argument_name(node, 0)?,
        text: node.argument(1).map(|text| text.text.clone()),
        owner: node.property("owner").map(datum_name),
        priority: match Section::of(node).word_of("priority").as_str() {
            "low" => plan::Priority::Low,
            "high" => plan::Priority::High,
            _ => plan::Priority::Normal,
        },
        needs: node.children("depends-on").flat_map(argument_names).collect(),
        checkpoints: list_arguments(node, "checkpoint").map(|datum| datum.text.clone()).collect(),
        scope: list_arguments(node, "scope")
            .map(|datum| Spanned { value: datum.text.as_str().to_owned(), span: datum.span })
            .collect(),
    })
}

/// The arguments of all children of this name.
fn list_arguments<'e>(node: &'e Element, child: &'e str) -> impl Iterator<Item = &'e Datum> {
    node.children(child).flat_map(|child| &child.arguments).map(|(_, datum)| datum)
}

fn lower_conflicts(section: Section<'_>) -> ast::Conflicts {
    ast::Conflicts {
        notices: section.count_of("notices"),
        window_ms: section.number_of("window"),
        span: section.element().map(|node| node.span),
    }
}

fn lower_managed_worktree(node: &Element, diagnostics: &mut Diagnostics) -> Option<ast::Managed> {
    Some(ast::Managed {
        name: argument_name(node, 0)?,
        manager: node.property("manager").map(datum_name),
        members: node.child("members").map(argument_names).unwrap_or_default(),
        into: node.property("into").map(|datum| Spanned { value: datum.text.as_str().to_owned(), span: datum.span }),
        checks: node.children("check").filter_map(|check| lower_command(check, diagnostics)).collect(),
        span: node.span,
    })
}
