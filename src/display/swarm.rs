//! The lines of what happens in a swarm.

use swarmc_runtime::Content;
use swarmc_runtime::swarm::End;
use swarmc_view::{SwarmChange, Team, describe_phase, format_size, sanitize_line};

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
        SwarmChange::MessageSent { message } => {
            let [from, to] = [&message.from, &message.to].map(|name| sanitize_line(name));
            let (sign, kind) = (paint.cyan("›"), message.kind.as_str());
            format!("{sign} {label}: {from} to {to} ({kind}): {}", describe_payload(&message.payload))
        }
        SwarmChange::DataPublished { author, topic, data } => {
            let (sign, topic) = (paint.cyan("+"), sanitize_line(topic));
            format!("{sign} {label}: {} publishes {topic}: {}", sanitize_line(author), describe_payload(data))
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

/// What a message or a finding says, in a short line; of an object with a `message`, that.
fn describe_payload(content: &Content) -> String {
    let text = match content {
        Content::Text(text) => text,
        Content::Artifact { bytes, .. } => return format!("({})", format_size(*bytes)),
    };
    let only = match serde_json::from_str(text) {
        Ok(serde_json::Value::String(text)) => Some(text),
        Ok(serde_json::Value::Object(fields)) => {
            fields.get("message").and_then(|text| text.as_str()).map(str::to_owned)
        }
        _ => None,
    };
    sanitize_line(only.as_deref().unwrap_or(text))
}
