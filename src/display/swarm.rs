//! The lines of what happens in a swarm.

use swarmc_runtime::Content;
use swarmc_runtime::swarm::{End, SwarmEvent};
use swarmc_view::{Team, describe_phase, sanitize_line};

use crate::terminal::Paint;

/// An event as one line; `live` where the live lines show the working agents anyway.
pub(super) fn format_event(team: &Team, fact: &SwarmEvent, label: &str, paint: Paint, live: bool) -> Option<String> {
    let text = |content: &Option<Content>| match content {
        Some(Content::Text(text)) => format!(": {}", sanitize_line(text)),
        Some(Content::Artifact { .. }) | None => String::new(),
    };
    Some(match fact {
        SwarmEvent::Progress { .. } if live => return None,
        SwarmEvent::Progress { phase } => format!("  {label}: {}", describe_phase(*phase)),
        SwarmEvent::AgentSpawned { agent, by: Some(by), task, .. } => {
            format!("  {label}: {agent} was spawned to help {by}{}", text(task))
        }
        SwarmEvent::AgentStarted { .. } if live => return None,
        SwarmEvent::AgentStarted { agent } => {
            let mate = team.find_mate(agent)?;
            format!("  {label}: {agent} started{}", text(&mate.task))
        }
        SwarmEvent::AgentCompleted { agent, how, error, .. } => {
            let mate = team.find_mate(agent)?;
            let error = error.as_deref().map(|error| format!(": {}", sanitize_line(error))).unwrap_or_default();
            let sign = match (how, how.has_result()) {
                (_, true) => paint.green("✓"),
                (End::Unneeded, _) => paint.dim("-"),
                _ => paint.red("✗"),
            };
            let how = how.as_str().replace('_', " ");
            format!("{sign} {label}: {agent} {how} after {}{error}", mate.came_to())
        }
        _ => return None,
    })
}
