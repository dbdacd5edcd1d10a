//! The events of a simulated swarm in words, a line for each.

use crate::types::event::{Content, Event};
use crate::types::swarm::{MemberMessage, Phase, Purpose, TurnId};
use crate::types::team::PlanOp;
use crate::types::team_fact::TeamFact;

pub(super) fn read_text(content: &Content) -> &str {
    match content {
        Content::Text(text) => text,
        Content::Artifact { digest, .. } => digest,
    }
}

/// An event in a line.
pub(super) fn line_of(event: &Event) -> String {
    let turn_of = |turn: &TurnId| match turn.purpose {
        Purpose::Act => format!("{}.{}", turn.iteration, turn.attempt),
        Purpose::Decompose => format!("split.{}", turn.attempt),
        Purpose::Synthesize => format!("merge.{}", turn.attempt),
    };
    match event {
        Event::SwarmStarted { .. } => "started".to_owned(),
        Event::PhaseEntered { phase, .. } => format!("phase {}", phase_word(*phase)),
        Event::AgentSpawned { agent, plays, task, by, tools, .. } => {
            let task = task.as_ref().map_or("nothing", read_text);
            let by = by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
            let tools = tools.as_ref().map(|tools| format!(" with {}", tools.join(" "))).unwrap_or_default();
            format!("{agent} spawned as {plays} for {task}{by}{tools}")
        }
        Event::AgentStarted { agent, .. } => format!("{agent} starts"),
        Event::TurnStarted { turn, .. } => format!("{} asks {}", turn.agent, turn_of(turn)),
        Event::TurnEnded { turn, .. } => format!("{} answered {}", turn.agent, turn_of(turn)),
        Event::ToolStarted { turn, tool, .. } => format!("{} calls {tool} {}", turn.agent, turn_of(turn)),
        Event::ToolEnded { turn, result, .. } => format!("{} hears {}", turn.agent, read_text(result)),
        Event::MessageSent { message: MemberMessage { number, from, to, kind, payload, .. }, .. } => {
            format!("{from} → {to} #{number} {} {}", kind.as_str(), read_text(payload))
        }
        Event::MessageReceived { agent, from, number, .. } => format!("{agent} takes #{number} from {from}"),
        Event::DataPublished { number, topic, author, data, .. } => {
            format!("{author} publishes #{number} {topic} {}", read_text(data))
        }
        Event::ActionRefused { agent, reason, .. } => format!("{agent} refused: {reason}"),
        Event::AgentIdled { agent, .. } => format!("{agent} idles"),
        Event::HelpRequested { agent, description, .. } => format!("{agent} wants help: {}", read_text(description)),
        Event::AgentFinished { agent, how, response, error, .. } => {
            let response = response.as_ref().map(|it| format!(": {}", read_text(it))).unwrap_or_default();
            let error = error.as_ref().map(|error| format!(" ({error})")).unwrap_or_default();
            format!("{agent} ends {}{error}{response}", how.as_str())
        }
        Event::Team { fact: TeamFact::PlanUpdated { version, agent, ops, proposal, .. }, .. } => {
            let ops: Vec<String> = ops.iter().map(PlanOp::describe).collect();
            let proposal = proposal.map(|id| format!(" for proposal {id}")).unwrap_or_default();
            format!("{agent} makes plan v{version}: {}{proposal}", ops.join(", "))
        }
        Event::Team { fact: TeamFact::PlanProposed { proposal, agent, base, ops, .. }, .. } => {
            let ops: Vec<String> = ops.iter().map(PlanOp::describe).collect();
            format!("{agent} proposes {proposal} on v{base}: {}", ops.join(", "))
        }
        Event::Team { fact: TeamFact::ProposalRefused { proposal, agent, verdict, because, .. }, .. } => {
            format!("proposal {proposal} is {} by {agent}: {because}", verdict.as_str())
        }
        Event::Team { fact: TeamFact::ItemMoved { agent, item, to, note, .. }, .. } => {
            let note = note.as_ref().map(|note| format!(": {note}")).unwrap_or_default();
            format!("{item} of {agent} is {}{note}", format!("{to:?}").to_lowercase())
        }
        Event::Team { fact: TeamFact::ItemChecked { item, checkpoint, .. }, .. } => {
            format!("{item} is at checkpoint {checkpoint}")
        }
        Event::Team { fact: TeamFact::ItemAssigned { agent, item, to, .. }, .. } => {
            format!("{agent} assigns {item} to {}", to.as_deref().unwrap_or("no agent"))
        }
        Event::Team { fact: TeamFact::Posted { agent, channel, message, .. }, .. } => {
            format!("{agent} posts to {}: {}", channel.as_deref().unwrap_or("all"), read_text(message))
        }
        Event::Team { fact: TeamFact::ChannelChanged { agent, channel, joined, .. }, .. } => {
            format!("{agent} {} {channel}", if *joined { "joins" } else { "leaves" })
        }
        Event::Team { fact: TeamFact::AgentCompleted { agent, response, .. }, .. } => {
            format!("{agent} completed: {}", read_text(response))
        }
        Event::Team { fact: TeamFact::AgentStopped { by, agent, why, .. }, .. } => format!("{by} stops {agent}: {why}"),
        Event::Team { fact: TeamFact::UserTold { agent, message, .. }, .. } => {
            format!("{agent} tells the user: {}", read_text(message))
        }
        Event::Team { fact: TeamFact::ContextRead { agent, what, text }, .. } => {
            format!("{agent} reads {}: {}", what.name(), read_text(text).replace('\n', " "))
        }
        Event::Team { fact: TeamFact::WorktreeOpened { agent, worktree, manager, members }, .. } => {
            format!("{agent} opens {worktree} for {}, merged by {manager}", members.join(", "))
        }
        Event::Team { fact: TeamFact::AgentMoved { by, agent, to }, .. } => {
            format!("{by} moves {agent} to {}", to.as_deref().unwrap_or("the workspace"))
        }
        Event::Team { fact: TeamFact::Integrated { worktree, to, files, note, .. }, .. } => {
            format!("{worktree} is {}: {note}{}", format!("{to:?}").to_lowercase(), files.concat())
        }
        Event::SwarmFinished { result: Some(result), .. } => format!("over: {}", read_text(result)),
        Event::SwarmFinished { error, .. } => format!("failed: {}", error.as_deref().unwrap_or_default()),
        other => panic!("{other:?} happens outside of swarms"),
    }
}

fn phase_word(phase: Phase) -> &'static str {
    match phase {
        Phase::Planning => "planning",
        Phase::Spawning => "spawning",
        Phase::Monitoring => "monitoring",
        Phase::Synthesizing => "synthesizing",
    }
}
