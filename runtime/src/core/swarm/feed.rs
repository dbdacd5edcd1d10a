//! What happened last in a team, in short lines: what `read_summary` shows.
//!
//! In: the events of the swarm. Out: a line for each that tells what an agent did, the latest [`KEPT`] of them. Texts of
//! agents are cut to [`CHARS`] characters; a text that does not lie in its event is left out.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::prompt::inline_text;
use crate::types::event::{Content, Event};
use crate::types::swarm::{Action, Answer};
use crate::types::team::{ItemState, PlanOp, Touch};
use crate::types::team_fact::TeamFact;

/// The lines that are kept, so that there are some of an agent that did little lately.
const KEPT: usize = 1_000;
/// The characters of what an agent wrote in a line.
const CHARS: usize = 160;

/// The latest lines.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(crate) struct Feed {
    entries: VecDeque<FeedEntry>,
}

#[derive(Debug, Deserialize, Serialize)]
struct FeedEntry {
    agent: Arc<str>,
    words: String,
}

impl Feed {
    /// Takes a further event.
    pub(super) fn add(&mut self, event: &Event) {
        let Some((agent, words)) = describe_event(event) else { return };
        self.entries.push_back(FeedEntry { agent: Arc::clone(agent), words });
        if self.entries.len() > KEPT {
            self.entries.pop_front();
        }
    }

    /// The last lines, of one agent or of all, the latest last. No times: a replay reads the same.
    pub(crate) fn list_lines(&self, of: Option<&str>, most: usize) -> Vec<String> {
        let mut lines: Vec<String> = self
            .entries
            .iter()
            .rev()
            .filter(|entry| of.is_none_or(|of| *entry.agent == *of))
            .take(most)
            .map(|entry| format!("- {}: {}", entry.agent, entry.words))
            .collect();
        lines.reverse();
        lines
    }
}

/// What an agent did, and which; none where it is of no use to others.
fn describe_event(event: &Event) -> Option<(&Arc<str>, String)> {
    let shown = |content: &Content| match content {
        Content::Text(text) => inline_text(text, CHARS),
        Content::Artifact { .. } => "(a long text)".to_owned(),
    };
    Some(match event {
        Event::TurnEnded { turn, answer: Answer::Acts(act), .. } => {
            let Action::ToolCall { tool, params } = &**act else { return None };
            (&turn.agent, format!("calls {tool} {}", shown(params)))
        }
        Event::ToolEnded { turn, result, fault, .. } => {
            let how = if fault.is_some() { "failed" } else { "gave" };
            (&turn.agent, format!("its call {how}: {}", shown(result)))
        }
        Event::DataPublished { author, topic, data, .. } => {
            (author, format!("publishes {}: {}", inline_text(topic, CHARS), shown(data)))
        }
        Event::AgentSpawned { agent, plays, .. } => (agent, format!("was added, plays {plays}")),
        Event::AgentFinished { agent, how, .. } => (agent, format!("ended: {}", how.as_str())),
        Event::Team { fact, .. } => return describe_fact(fact),
        _ => return None,
    })
}

fn describe_fact(fact: &TeamFact) -> Option<(&Arc<str>, String)> {
    let cut = |text: &str| inline_text(text, CHARS);
    let words = match fact {
        TeamFact::PlanUpdated { version, ops, why, .. } => {
            let ops: Vec<String> = ops.iter().map(PlanOp::describe).collect();
            format!("made version {version} of the plan: {}; {}", cut(&ops.join(", ")), cut(why))
        }
        TeamFact::PlanProposed { proposal, why, .. } => format!("made proposal {proposal}: {}", cut(why)),
        TeamFact::ItemMoved { item, to, note, .. } => {
            let state = match to {
                ItemState::Open => "open",
                ItemState::Running => "running",
                ItemState::Blocked => "blocked",
                ItemState::Done => "done",
                ItemState::Failed => "failed",
            };
            let note = note.as_deref().map_or_else(String::new, |note| format!(": {}", cut(note)));
            format!("item {item} is {state}{note}")
        }
        TeamFact::ItemChecked { item, checkpoint, .. } => format!("item {item} is at checkpoint {checkpoint}"),
        TeamFact::Intended { text, .. } => format!("is about to: {}", cut(text)),
        TeamFact::Touched { touch: Touch { path, added, removed, .. }, .. } => {
            format!("changed {} (+{added} -{removed})", cut(path))
        }
        TeamFact::Integrated { worktree, to, note, .. } => {
            format!("merge of {worktree} is {}: {}", to.as_str(), cut(note))
        }
        TeamFact::AgentCompleted { .. } => "has done its task".to_owned(),
        _ => return None,
    };
    Some((fact.agent(), words))
}
