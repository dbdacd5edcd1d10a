//! Swarms. Every number that is not written is the table's.

use swarmc_plan as plan;

use super::element::Element;
use super::policy::{approval, budget};
use super::{Section, argument, choice, count, description, edges, name, names, source, spanned};
use crate::ast::{self, LeaderKind, Spanned};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};

pub(super) fn swarm(element: &Element, diagnostics: &mut Diagnostics) -> Option<ast::Swarm> {
    let name = name(element, 0)?;
    let section = Section::of(element);
    let leader = leader(element, diagnostics);
    let members: Vec<ast::Member> = element.children("member").filter_map(|node| member(node, diagnostics)).collect();
    let groups: Vec<ast::Group> = element.children("members").filter_map(group).collect();
    if members.is_empty() && groups.is_empty() && !diagnostics.covers(element.span) {
        let diagnostic = Diagnostic::new(Code::WrongValue, format!("swarm `{}` has no member", name.value))
            .label(name.span, "nobody to work")
            .help("write `member NAME \"TASK\"` or `members 3` in its block");
        diagnostics.push(diagnostic);
    }
    let decompose = element
        .child("decompose")
        .map(|node| ast::Decompose { max: Section::of(node).count_of("max"), span: node.span });
    if let (Some(decompose), None) = (&decompose, &leader) {
        let diagnostic =
            Diagnostic::new(Code::WrongValue, format!("nobody in swarm `{}` can split the goal", name.value))
                .label(decompose.span, "a leader does this")
                .help("write `supervisor NAME` in its block, or remove `decompose`");
        diagnostics.push(diagnostic);
    }
    let channel = |node: &Element| {
        Some(ast::Channel {
            name: super::name(node, 0)?,
            members: node.child("members").map(names).unwrap_or_default(),
        })
    };
    let synthesize = |node: &Element| ast::Synthesize {
        agent: node.property("agent").map(spanned),
        tier: node.property("tier").map(spanned),
        span: node.span,
    };
    Some(ast::Swarm {
        description: description(element),
        goal: argument(element, "goal"),
        leader,
        members,
        groups,
        decompose,
        limits: limits(section.child("limits"), diagnostics),
        timeouts: timeouts(section.child("timeouts")),
        history: history(section.child("history")),
        workspace: workspace(section.child("workspace")),
        ttl_ms: section.child("ttl").number(),
        convergence: convergence(section.child("convergence")),
        retry: retry(section.child("retry").child("transient")),
        spawn: spawn(section.child("spawn")),
        channels: element.children("channel").filter_map(channel).collect(),
        items: element.children("item").filter_map(item).collect(),
        worktrees: element.children("worktree").filter_map(managed).collect(),
        edges: element.child("edges").map(|node| edges::edges(node, diagnostics)),
        synthesize: element.child("synthesize").map(synthesize),
        budget: element.child("budget").map(|node| budget(node, diagnostics)),
        span: element.span,
        name,
    })
}

fn leader(element: &Element, diagnostics: &mut Diagnostics) -> Option<ast::Leader> {
    let (supervisor, coordinator) = (element.child("supervisor"), element.child("coordinator"));
    if let (Some(first), Some(second)) = (supervisor, coordinator) {
        let diagnostic =
            Diagnostic::new(Code::WrongValue, "a swarm has a supervisor or a coordinator, and only one of them")
                .label(second.name.span, "one leader too many")
                .label(first.name.span, "first here")
                .help("a coordinator owns the plan and alone may spawn; remove the other one");
        diagnostics.push(diagnostic);
    }
    let (node, kind) = match (supervisor, coordinator) {
        (Some(node), _) => (node, LeaderKind::Supervisor),
        (None, node) => (node?, LeaderKind::Coordinator),
    };
    Some(ast::Leader { kind, name: name(node, 0)?, agent: node.property("agent").map(spanned) })
}

fn member(node: &Element, diagnostics: &mut Diagnostics) -> Option<ast::Member> {
    let says = node.argument(1).is_some() || node.property("file").is_some() || node.property("ref").is_some();
    Some(ast::Member {
        name: name(node, 0)?,
        agent: node.property("agent").map(spanned),
        task: says.then(|| source(node, 1, diagnostics)).flatten(),
    })
}

fn group(node: &Element) -> Option<ast::Group> {
    let size = node.argument(0)?;
    Some(ast::Group {
        count: Spanned { value: count(size.number), span: size.span },
        agent: node.property("agent").map(spanned),
        // The only list there is.
        names: ast::NameList::Stations,
        span: node.span,
    })
}

fn limits(section: Section<'_>, diagnostics: &mut Diagnostics) -> ast::Limits {
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
        span: section.element().map(|node| node.span),
    }
}

fn timeouts(section: Section<'_>) -> ast::Timeouts {
    let of = |child: &str| {
        let section = section.child(child);
        ast::TurnTimeout { time_ms: section.number(), retries: section.count_of("retries") }
    };
    ast::Timeouts { turn: of("turn"), decompose: of("decompose"), synthesize: of("synthesize") }
}

fn history(section: Section<'_>) -> ast::History {
    let (recent, whole) = (section.child("recent"), section.child("prompt"));
    ast::History {
        recent: recent.count(),
        recent_chars: recent.count_of("chars"),
        older_chars: section.child("older").count_of("chars"),
        prompt_chars: whole.count_of("chars"),
        keep: whole.count_of("keep"),
    }
}

fn workspace(section: Section<'_>) -> ast::Workspace {
    ast::Workspace {
        per_topic: section.child("per-topic").count(),
        entries: section.child("entries").count(),
        snippet: section.child("snippet").count(),
    }
}

fn convergence(section: Section<'_>) -> ast::Convergence {
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

fn retry(transient: Section<'_>) -> ast::TransientRetry {
    ast::TransientRetry { transient_ms: transient.number(), max_ms: transient.number_of("max") }
}

fn spawn(section: Section<'_>) -> ast::Spawn {
    let written = section.element().and_then(|node| node.property("approval"));
    ast::Spawn { approval: written.map(|datum| choice(datum, approval)), per_agent: section.count_of("per-agent") }
}

fn item(node: &Element) -> Option<ast::Item> {
    Some(ast::Item {
        name: name(node, 0)?,
        text: node.argument(1).map(|text| text.text.clone()),
        owner: node.property("owner").map(spanned),
        priority: match Section::of(node).word_of("priority").as_str() {
            "low" => plan::Priority::Low,
            "high" => plan::Priority::High,
            _ => plan::Priority::Normal,
        },
        needs: node.children("depends-on").flat_map(names).collect(),
    })
}

fn managed(node: &Element) -> Option<ast::Managed> {
    Some(ast::Managed {
        name: name(node, 0)?,
        manager: node.property("manager").map(spanned),
        members: node.child("members").map(names).unwrap_or_default(),
    })
}
