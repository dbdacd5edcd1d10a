//! The lines of what happens in a swarm.

use swarmc_runtime::Content;
use swarmc_runtime::swarm::End;
use swarmc_runtime::team::{ItemState, MergeState, PlanOp};
use swarmc_view::{SwarmChange, Team, describe_phase, format_size, is_supervisor, make_printable, sanitize_line};

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
            let [from, to] = [&message.from, &message.to].map(|name| name_agent(name));
            let (sign, kind) = (paint.cyan("›"), message.kind.as_str());
            format!("{sign} {label}: {from} to {to} ({kind}): {}", describe_payload(&message.payload))
        }
        SwarmChange::DataPublished { author, topic, data } => {
            let (sign, topic) = (paint.cyan("+"), sanitize_line(topic));
            format!("{sign} {label}: {} publishes {topic}: {}", sanitize_line(author), describe_payload(data))
        }
        SwarmChange::PlanUpdated { version, agent, ops, why } => {
            let (agent, ops) = (name_agent(agent), describe_ops(ops));
            format!("{} {label}: {agent} makes plan v{version}: {ops} ({})", paint.cyan("+"), sanitize_line(why))
        }
        SwarmChange::PlanProposed { proposal, agent, ops, why } => {
            let (agent, ops) = (sanitize_line(agent), describe_ops(ops));
            format!("{} {label}: {agent} proposes change {proposal}: {ops} ({})", paint.cyan("?"), sanitize_line(why))
        }
        SwarmChange::ProposalRefused { proposal, verdict, because } => {
            let word = verdict.as_str();
            format!("- {label}: proposal {proposal} is {word}: {}", sanitize_line(because))
        }
        SwarmChange::ItemMoved { agent, item, to, note } => {
            let (agent, item) = (sanitize_line(agent), sanitize_line(item));
            let note = note.map(|note| format!(": {}", sanitize_line(note))).unwrap_or_default();
            match to {
                ItemState::Running => format!("  {label}: {agent} works on {item}"),
                ItemState::Done => format!("{} {label}: {agent} has done {item}{note}", paint.green("✓")),
                ItemState::Blocked => format!("{} {label}: {agent} cannot go on with {item}{note}", paint.yellow("!")),
                ItemState::Failed => format!("{} {label}: {agent} gave up {item}{note}", paint.red("✗")),
                ItemState::Open => format!("  {label}: {item} is open again"),
            }
        }
        SwarmChange::Posted { agent, channel, message } => {
            let (agent, to) = (sanitize_line(agent), sanitize_line(channel.unwrap_or("everybody")));
            format!("{} {label}: {agent} to {to}: {}", paint.cyan("›"), describe_payload(message))
        }
        SwarmChange::Conflict { agent, with, path, certain } => {
            let [agent, with, path] = [agent, with, path].map(|text| sanitize_line(text));
            let sure = if *certain { "" } else { "perhaps " };
            let sign = paint.yellow("!");
            format!("{sign} {label}: {agent} and {with} changed {sure}the same lines of {path}; both hear of it")
        }
        SwarmChange::WorktreeOpened { worktree, manager, members } => {
            let members: Vec<&str> = members.iter().map(|member| &**member).collect();
            let [worktree, manager, members] = [worktree, manager, members.join(", ").as_str()].map(sanitize_line);
            format!("  {label}: worktree {worktree} for {members}; {manager} merges it")
        }
        SwarmChange::AgentMoved { agent, to } => {
            let to = to.map_or_else(|| "the workspace".to_owned(), |tree| format!("worktree {}", sanitize_line(tree)));
            format!("  {label}: {} works in {to} from now on", sanitize_line(agent))
        }
        SwarmChange::Integrated { agent, worktree, to, note } => {
            // It may hold a command to type, so none of it is cut off.
            let note = make_printable(note.lines().next().unwrap_or_default());
            let (agent, worktree) = (sanitize_line(agent), sanitize_line(worktree));
            match to {
                MergeState::Open => format!("{} {label}: {agent} merges {worktree}: {note}", paint.yellow("!")),
                MergeState::Committed => format!("  {label}: {agent} merged {worktree}: {note}"),
                MergeState::Merged => format!("{} {label}: {agent} merged {worktree}: {note}", paint.green("✓")),
                MergeState::Aborted => {
                    format!("{} {label}: {agent} dropped the merge of {worktree}: {note}", paint.red("✗"))
                }
            }
        }
        SwarmChange::Intended { agent, text } => {
            format!("  {label}: {} is about to: {}", sanitize_line(agent), sanitize_line(text))
        }
        SwarmChange::UserTold { agent, message } => {
            format!("{} {label}: {}: {}", paint.bold("›"), sanitize_line(agent), describe_payload(message))
        }
        SwarmChange::AgentFinished { agent, how, error } => {
            let mate = team.find_mate(agent)?;
            let error = error.map(|error| format!(": {}", sanitize_line(error))).unwrap_or_default();
            let sign = match (how, how.has_result()) {
                (_, true) => paint.green("✓"),
                (End::Unneeded | End::Released | End::Stopped, _) => paint.dim("-"),
                _ => paint.red("✗"),
            };
            let how = how.as_str().replace('_', " ");
            format!("{sign} {label}: {agent} {how} after {}{error}", mate.came_to())
        }
    })
}

/// The name of an agent; the swarm itself is the program that people know.
fn name_agent(name: &str) -> String {
    if is_supervisor(name) { "swarmc".to_owned() } else { sanitize_line(name) }
}

/// Changes of a plan, in a few words.
fn describe_ops(ops: &[PlanOp]) -> String {
    let ops: Vec<String> = ops.iter().map(PlanOp::describe).collect();
    sanitize_line(&ops.join(", "))
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
