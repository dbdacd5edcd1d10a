//! The lines of what happens in a swarm.

use swarmc_runtime::Content;
use swarmc_runtime::swarm::End;
use swarmc_view::{SwarmChange, Team, describe_phase, sanitize_line};

use crate::terminal::Paint;

/// A change as one line; `live` where the live lines show the working agents anyway.
pub(super) fn format_change(
    team: &Team,
    change: &SwarmChange<'_>,
    label: &str,
    paint: Paint,
    live: bool,
) -> Option<String> {
    let text = |content: Option<&Content>| match content {
        Some(Content::Text(text)) => format!(": {}", sanitize_line(text)),
        Some(Content::Artifact { .. }) | None => String::new(),
    };
    Some(match change {
        SwarmChange::PhaseEntered(_) | SwarmChange::AgentStarted { .. } if live => return None,
        SwarmChange::PhaseEntered(phase) => format!("  {label}: {}", describe_phase(*phase)),
        SwarmChange::HelperSpawned { agent, by, task } => {
            format!("  {label}: {agent} was spawned to help {by}{}", text(*task))
        }
        SwarmChange::AgentStarted { agent } => {
            let mate = team.find_mate(agent)?;
            format!("  {label}: {agent} started{}", text(mate.task.as_ref()))
        }
        SwarmChange::AgentFinished { agent, how, error } => {
            let mate = team.find_mate(agent)?;
            let error = error.map(|error| format!(": {}", sanitize_line(error))).unwrap_or_default();
            let sign = match (how, how.has_result()) {
                (_, true) => paint.green("✓"),
                (End::Unneeded, _) => paint.dim("-"),
                _ => paint.red("✗"),
            };
            let how = how.as_str().replace('_', " ");
            format!("{sign} {label}: {agent} {how} after {}{error}", mate.came_to())
        }
    })
}
