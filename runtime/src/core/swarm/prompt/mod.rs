//! Prompts for the agents of a swarm, as seed 001 lays them out: a system text with the actions and rules, and a prompt
//! with task, team, findings, history, inbox and budget.
//!
//! In: plain borrowed data. Out: texts. Invariant: no text of an agent, a tool or a message begins a line at the left
//! edge, so it cannot pass for a section, a teammate or a message; and no such text is ever expanded.

mod data;
mod findings;
mod lead;
mod plan;
mod system;
mod user;

use serde_json::Value;
use swarmc_plan::History;

use crate::types::chat::Tool;

pub(crate) use data::{inline_text, truncate_text};
pub(crate) use findings::{Entry, select_findings};
pub(crate) use lead::{
    Ended, Subtask, build_decompose_prompt, build_repair_prompt, build_synthesis_prompt, parse_subtasks,
    subtasks_schema,
};
pub(crate) use plan::{Calls, TeamView, TreeView, render_plan};
pub(crate) use system::render_system;
pub(crate) use user::{mask_seconds, render_notices, render_transcript, render_user};

/// What one turn of an agent is made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'a> {
    /// The agent's name.
    pub name: &'a str,
    /// Its task.
    pub task: &'a str,
    /// What the swarm works towards; empty where that is the task.
    pub goal: &'a str,
    /// The system text of its role; empty is none.
    pub role: &'a str,
    /// Everybody in the swarm, itself included.
    pub roster: &'a [Teammate<'a>],
    /// Whom it may write to; none: everybody.
    pub receivers: Option<&'a [&'a str]>,
    /// What it sees of the workspace, the newest last: see [`findings()`].
    pub findings: &'a [Finding<'a>],
    /// Its turns so far, the newest last.
    pub history: &'a [Turn<'a>],
    /// What came for it since its last turn, the newest last.
    pub inbox: &'a [PromptMessage<'a>],
    /// The turn that this is, from 1.
    pub iteration: u32,
    /// The turns that it has at most.
    pub iterations: u32,
    /// What else is left to it.
    pub left: Left,
    /// Its tools.
    pub tools: &'a [Tool],
    /// Whether it may ask for a further agent.
    pub help: bool,
    /// How it answers.
    pub protocol: Protocol,
    /// How much of the past it sees.
    pub limits: History,
    /// Its team, where that has a coordinator.
    pub team: Option<TeamView<'a>>,
}

/// How an agent says what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// By one JSON object.
    Json,
    /// By calling one tool.
    Native,
    /// By one JSON object, after the work that it does with its own tools.
    Program,
}

/// An agent of the swarm.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Teammate<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its task; empty is none yet.
    pub task: &'a str,
    /// Whether it is the one who is asked.
    pub is_you: bool,
    /// How it ended, in a word; empty while it works. In a team with a coordinator: its state.
    pub state: &'a str,
}

/// An entry of the workspace, as it is shown.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Finding<'a> {
    /// Who published it.
    pub author: &'a str,
    /// Where it belongs.
    pub topic: &'a str,
    /// Its beginning.
    pub text: String,
}

/// An earlier turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn<'a> {
    /// Which, from 0.
    pub iteration: u32,
    /// What was done: `tool_call:TOOL`, or the name of the action.
    pub label: &'a str,
    /// Its result.
    pub result: &'a str,
}

/// A message that came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PromptMessage<'a> {
    /// Who sent it.
    pub from: &'a str,
    /// Its type.
    pub kind: &'a str,
    /// What it says.
    pub payload: &'a Value,
    /// Whether a person wrote it.
    pub person: bool,
}

/// What is left of an agent's limits; none is not said.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Left {
    /// Messages, and how many it had.
    pub messages: Option<(u32, u32)>,
    /// Seconds.
    pub seconds: Option<u64>,
    /// Tokens.
    pub tokens: Option<u64>,
}

/// A prompt for the agent that leads or merges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Prompt {
    /// The system text.
    pub system: String,
    /// The prompt.
    pub user: String,
}

#[cfg(test)]
mod tests;
