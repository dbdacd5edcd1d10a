//! How the nodes of a run stand with their agents, for `ps` and `inspect`.
//!
//! In: what the runtime says of them. Out: a line for each, in words that no terminal obeys, or JSON.

use std::fmt::Write;
use std::time::Duration;

use swarmc_runtime::{AgentStatus, Blocked, Link, Standing};
use swarmc_view::{RunSummary, escape_hidden, format_duration, format_number, make_printable};

use crate::terminal::Paint;

/// The lines of a run among others, and those of steps that have not begun.
pub(crate) const FEW: usize = 20;
const FIRST: usize = 3;

/// The lines of a run's nodes: `all` of them, or those that are not over, and not too many; and of the steps that have not
/// begun, the first.
pub(crate) fn render_nodes(run: &RunSummary, all: bool, now: u64, paint: Paint) -> String {
    let mut out = String::new();
    let shown = |node: &&Standing| all || !matches!(node.state, Link::Disconnected | Link::Over);
    let nodes: Vec<&Standing> = run.nodes.iter().filter(shown).collect();
    let of = |node: &Standing| find_status(run, &node.step.label());
    let several = run.nodes.iter().any(|node| node.step.instance > 1);
    // The line that counts the rest takes the place of one.
    let most = if all || nodes.len() <= FEW { nodes.len() } else { FEW - 1 };
    for node in nodes.iter().take(most) {
        let label = node.step.label();
        let name = if several { format!("{label}.{}", node.step.instance) } else { label };
        let said = of(node).map(|status| format!("{}; ", make_printable(&status.summarize()))).unwrap_or_default();
        let words = describe_node(node, now);
        let words = match node.state {
            Link::Connected => paint.cyan(&words),
            Link::Idle => words,
            Link::Disconnected | Link::Over => paint.dim(&words),
        };
        let _ = writeln!(out, "    {name}: {said}{words}");
    }
    if nodes.len() > most {
        let more = format!("and {} more: swarmc ps {}", nodes.len() - most, run.id);
        let _ = writeln!(out, "    {}", paint.dim(&more));
    }
    // Steps that work by files and are no nodes.
    for (step, status) in &run.agents {
        if !run.nodes.iter().any(|node| node.step.label() == *step) {
            let _ = writeln!(out, "    {step}: {}", make_printable(&status.summarize()));
        }
    }
    out.push_str(&render_blocked(run, if all { FEW } else { FIRST }, paint));
    out
}

/// The lines of the steps that have not begun, so many at most; nodes have theirs already.
pub(crate) fn render_blocked(run: &RunSummary, most: usize, paint: Paint) -> String {
    let mut out = String::new();
    let several = run.blocked.iter().any(|blocked| blocked.step.instance > 1);
    let known = |blocked: &&Blocked| !run.nodes.iter().any(|node| node.step == blocked.step);
    let waiting: Vec<&Blocked> = run.blocked.iter().filter(known).collect();
    for blocked in waiting.iter().take(most) {
        let label = blocked.step.label();
        let name = if several { format!("{label}.{}", blocked.step.instance) } else { label };
        let _ = writeln!(out, "    {}", paint.dim(&format!("{name}: {}", describe_wait(blocked))));
    }
    let unseen = run.blocked_count - run.blocked.len() as u64;
    let rest = unseen + waiting.len().saturating_sub(most) as u64;
    if rest > 0 {
        let waits = if rest == 1 { "waits" } else { "wait" };
        let more = format!("and {} more {waits}: swarmc inspect {} STEP", format_number(rest), run.id);
        let _ = writeln!(out, "    {}", paint.dim(&more));
    }
    out
}

/// What a step that has not begun waits for, in a line.
fn describe_wait(blocked: &Blocked) -> String {
    let first = blocked.pending.iter().take(FIRST).map(|other| format!("{}: {}", other.step, other.why));
    let mut pending: Vec<String> = first.collect();
    if blocked.pending.len() > FIRST {
        pending.push(format!("and {} more", blocked.pending.len() - FIRST));
    }
    match pending.is_empty() {
        true => format!("waits for {}", blocked.waits),
        false => format!("waits for {} ({})", blocked.waits, pending.join("; ")),
    }
}

/// How a node stands, in a line.
pub(crate) fn describe_node(node: &Standing, now: u64) -> String {
    let mut words = node.state.as_str().to_owned();
    if let Some(stream) = node.stream {
        let _ = write!(words, ", {}", stream.as_str());
    }
    let ago = format_duration(Duration::from_millis(now.saturating_sub(node.active_ms)));
    let _ = write!(words, ", active {ago} ago");
    if let Some(session) = &node.session {
        let _ = write!(words, ", session {}", escape_hidden(session));
    }
    if let Some(waits) = node.waits {
        let _ = write!(words, ", waits for {waits}");
    }
    let pending: Vec<String> = node.pending.iter().map(|other| format!("{}: {}", other.step, other.why)).collect();
    if !pending.is_empty() {
        let _ = write!(words, " ({})", pending.join("; "));
    }
    words
}

fn find_status<'a>(run: &'a RunSummary, label: &str) -> Option<&'a AgentStatus> {
    run.agents.iter().find(|(step, _)| step == label).map(|(_, status)| status)
}

#[cfg(test)]
mod tests {
    use swarmc_runtime::{Flow, Pending, StepId};

    use super::*;

    #[test]
    fn a_line_says_what_is_known_and_nothing_that_a_terminal_obeys() {
        let mut node = Standing {
            step: StepId::new("coder", 1, 1),
            attempt: 2,
            state: Link::Connected,
            stream: Some(Flow::Writing),
            session: Some("ses_1\x1b[2J".to_owned()),
            active_ms: 1_000,
            waits: None,
            pending: Vec::new(),
        };
        assert_eq!(describe_node(&node, 3_000), "connected, writing, active 2.0s ago, session ses_1\\u{1b}[2J");
        (node.state, node.stream, node.session) = (Link::Idle, None, None);
        node.waits = Some("envelopes");
        node.pending = vec![Pending { step: "reviewer".into(), why: "its turn goes on".into() }];
        let expected = "idle, active 2.0s ago, waits for envelopes (reviewer: its turn goes on)";
        assert_eq!(describe_node(&node, 3_000), expected);
    }

    #[test]
    fn of_those_that_are_waited_for_the_first_are_named_and_the_others_counted() {
        let mut blocked = Blocked { step: StepId::new("c", 1, 1), waits: "other steps".into(), pending: Vec::new() };
        assert_eq!(describe_wait(&blocked), "waits for other steps");
        blocked.pending = ["a", "b", "d"].map(|step| Pending { step: step.into(), why: "it runs".into() }).into();
        assert_eq!(describe_wait(&blocked), "waits for other steps (a: it runs; b: it runs; d: it runs)");
        blocked.pending.push(Pending { step: "e".into(), why: "it runs".into() });
        assert_eq!(describe_wait(&blocked), "waits for other steps (a: it runs; b: it runs; d: it runs; and 1 more)");
    }
}
