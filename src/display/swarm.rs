//! The lines of what happens in a swarm.

use swarmc_runtime::swarm::End;
use swarmc_runtime::{Content, Event};
use swarmc_view::{Team, describe_phase, sanitize_line};

use crate::terminal::Paint;

/// An event as one line; `live` where the live lines show the working agents anyway.
pub(super) fn format_event(team: &Team, event: &Event, label: &str, paint: Paint, live: bool) -> Option<String> {
    let text = |content: &Option<Content>| match content {
        Some(Content::Text(text)) => format!(": {}", sanitize_line(text)),
        Some(Content::Artifact { .. }) | None => String::new(),
    };
    Some(match event {
        Event::PhaseEntered { .. } if live => return None,
        Event::PhaseEntered { phase, .. } => format!("  {label}: {}", describe_phase(*phase)),
        Event::AgentSpawned { agent, by: Some(by), task, .. } => {
            format!("  {label}: {agent} was spawned to help {by}{}", text(task))
        }
        Event::AgentStarted { .. } if live => return None,
        Event::AgentStarted { agent, .. } => {
            let mate = team.find_mate(agent)?;
            format!("  {label}: {agent} started{}", text(&mate.task))
        }
        Event::AgentFinished { agent, how, error, .. } => {
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
