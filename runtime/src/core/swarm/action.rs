//! What an agent does in one turn: exactly one action, read from a model's text or from the tool that it called.
//!
//! [`ACTIONS`] declares each action once: prompts, tools, schemas and the reader are made from it. `send_message` and
//! `request_help` have the names of operations (`types/handoff/operation.rs`), with the arguments of seed 001: the types of
//! messages are others, and help is a further agent, not a person.
//!
//! Texts are untrusted: reading is linear in their length, and recurses no deeper than the nesting that the JSON reader
//! allows. A text that is no action gives a sentence that tells the model what to return.

mod merge;
mod read;
mod reading;
mod team;
mod turn_options;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::types::chat::Tool;
use crate::types::swarm::MessageType;
use crate::types::team::TeamOp;
use read::Step;
use turn_options::{closed_object, skills_schema, text_schema, tool_call_forms};

pub(crate) use read::{from_calls, parse_action, read_operation};
pub(crate) use turn_options::{TurnOptions, list_operations, list_tools, step_schema};

/// The bytes of an answer that are looked at; a longer one is no action.
pub(crate) const ANSWER_BYTES: usize = 256 * 1024;
/// The characters of a tool's name at most, and of a skill.
pub(crate) const TOOL_CHARS: usize = 128;
/// The bytes of a tool call's parameters at most, as JSON.
pub(crate) const PARAMS_BYTES: usize = 128 * 1024;
/// The characters of a topic at most.
pub(crate) const TOPIC_CHARS: usize = 64;
/// The characters of what is published at most.
pub(crate) const DATA_CHARS: usize = 16_000;
/// The characters of a receiver's name at most: an agent may have any name that a spec can give it.
pub(crate) const RECEIVER_CHARS: usize = swarmc_plan::LONGEST_NAME;
/// The most names that a model receives after it wrote an unknown one.
pub(crate) const TOLD: usize = 20;
/// The characters of a message in the schema of a step.
const MESSAGE_CHARS: usize = 1_000;
/// The bytes of a message at most, as JSON.
pub(crate) const PAYLOAD_BYTES: usize = 4_000;
/// The characters of a request for help at most.
pub(crate) const DESCRIPTION_CHARS: usize = 2_000;
/// The skills of a request for help at most.
pub(crate) const SKILLS: usize = 20;
/// The bytes of them at most, as JSON: events contain them.
pub(crate) const SKILLS_BYTES: usize = 2_000;
/// How deep parameters and messages nest at most.
pub(crate) const NESTING: usize = 32;
/// The characters of a final answer that is not repaired.
pub(crate) const RESPONSE_CHARS: usize = 500;

/// What an agent does. Written as the JSON that models answer with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub(crate) enum RawAction {
    /// Calls a tool.
    ToolCall {
        /// Its name.
        tool: String,
        /// Its parameters, an object.
        #[serde(rename = "tool_params")]
        params: Value,
    },
    /// Adds an entry to the shared workspace.
    PublishData {
        /// Where it belongs.
        topic: String,
        /// The entry.
        data: String,
    },
    /// Writes to another agent.
    SendMessage {
        /// Its name, as the model wrote it.
        to: String,
        /// What kind of message it is.
        #[serde(rename = "message_type")]
        kind: MessageType,
        /// The message, an object.
        payload: Value,
    },
    /// Asks for a further agent.
    RequestHelp {
        /// What that agent is to do.
        #[serde(rename = "help_description")]
        description: String,
        /// The tools that it needs.
        #[serde(rename = "help_skills")]
        skills: Vec<String>,
    },
    /// Does something that only a team with a coordinator knows.
    Operate(TeamOp),
    /// Ends its work.
    Done {
        /// The result: a text, or a JSON value as one.
        response: String,
    },
    /// Does nothing this turn.
    Idle,
}

/// The declaration of an action.
pub(crate) struct ActionSpec {
    /// Its name.
    pub name: &'static str,
    /// What it does, one sentence.
    pub does: &'static str,
    /// The JSON of it.
    pub json: &'static str,
    /// What an agent needs for it.
    needs: Need,
    /// The fields that it has beside `action`, with their schemas: one list for each form that it can have.
    forms: fn(&TurnOptions<'_>) -> Vec<Fields>,
    /// Reads it from its fields.
    read: fn(&Step) -> Result<RawAction, String>,
}

/// The fields of an object, each with its schema.
type Fields = Vec<(&'static str, Value)>;

/// What an agent needs for an action.
enum Need {
    Nothing,
    Tools,
    Receivers,
    Help,
    /// To be the coordinator of a team.
    Lead,
    /// To be another agent of a team.
    Follow,
    /// To be the manager of a worktree of a team.
    Manager,
    /// To be in a team.
    Team,
    /// To be the coordinator of a team to which agents may be added.
    Spawns,
    /// To be in a team with channels.
    Channels,
}

/// The part of an agent in a team with a coordinator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum TeamPart {
    /// Its swarm has no coordinator.
    #[default]
    None,
    /// It is the coordinator.
    Lead,
    /// It merges a worktree.
    Manager,
    /// It is one of the others.
    Follow,
}

/// What an agent has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Abilities {
    /// Whether it has tools.
    pub tools: bool,
    /// Whether it may write to another agent.
    pub receivers: bool,
    /// Whether it may ask for a further agent.
    pub help: bool,
    /// Its part in a team with a coordinator.
    pub part: TeamPart,
    /// Whether it may add agents to a team.
    pub spawns: bool,
    /// Whether its team has channels.
    pub channels: bool,
}

/// Whether an action is for the coordinator of a team alone.
pub(crate) fn is_for_coordinator(name: &str) -> bool {
    ACTIONS.into_iter().any(|spec| spec.name == name && matches!(spec.needs, Need::Lead | Need::Spawns))
}

impl ActionSpec {
    /// Whether an agent with this part may ever take this action.
    fn is_for(&self, part: TeamPart) -> bool {
        match self.needs {
            Need::Nothing | Need::Tools | Need::Receivers => true,
            // In a team only the coordinator adds agents, by another action.
            Need::Help => part == TeamPart::None,
            Need::Lead | Need::Spawns => part == TeamPart::Lead,
            Need::Follow => matches!(part, TeamPart::Follow | TeamPart::Manager),
            Need::Manager => part == TeamPart::Manager,
            Need::Team | Need::Channels => part != TeamPart::None,
        }
    }

    /// Whether Git carries it out, which takes its time.
    fn needs_git(&self) -> bool {
        matches!(self.needs, Need::Manager)
            || [merge::WORKTREE_OPEN.name, merge::WORKTREE_MOVE.name].contains(&self.name)
    }

    /// Whether a program may take it while its turn goes on: it ends no turn.
    fn is_operation(&self) -> bool {
        !self.needs_git() && ![TOOL_CALL.name, REQUEST_HELP.name, DONE.name, IDLE.name].contains(&self.name)
    }

    /// Whether an agent may take this action.
    pub(crate) fn is_open(&self, abilities: Abilities) -> bool {
        match self.needs {
            Need::Nothing => true,
            Need::Tools => abilities.tools,
            Need::Receivers => abilities.receivers,
            Need::Help => abilities.help,
            Need::Spawns => self.is_for(abilities.part) && abilities.spawns,
            Need::Channels => self.is_for(abilities.part) && abilities.channels,
            Need::Lead | Need::Follow | Need::Manager | Need::Team => self.is_for(abilities.part),
        }
    }
}

/// The actions, in the order in which prompts describe them.
pub(crate) const ACTIONS: [&ActionSpec; 30] = [
    &TOOL_CALL,
    &PUBLISH_DATA,
    &SEND_MESSAGE,
    &REQUEST_HELP,
    &DONE,
    &IDLE,
    &team::PLAN_UPDATE,
    &team::PLAN_DECIDE,
    &team::ASSIGN,
    &team::SPAWN_AGENT,
    &team::STOP_AGENT,
    &team::TELL_USER,
    &merge::WORKTREE_OPEN,
    &merge::WORKTREE_MOVE,
    &team::ITEM_DONE,
    &team::ITEM_BLOCKED,
    &team::ITEM_FAILED,
    &team::ITEM_CHECKPOINT,
    &merge::INTEGRATE,
    &merge::INTEGRATE_CONTINUE,
    &merge::INTEGRATE_ABORT,
    &team::PLAN_PROPOSE,
    &team::DECLARE_INTENT,
    &team::BROADCAST,
    &team::CHANNEL_SEND,
    &team::CHANNEL_JOIN,
    &team::CHANNEL_LEAVE,
    &reading::PLAN_READ,
    &reading::READ_SUMMARY,
    &reading::READ_TRANSCRIPT,
];

pub(crate) const TOOL_CALL: ActionSpec = ActionSpec {
    name: "tool_call",
    does: "Call one of your tools. You see its result in your next turn.",
    json: r#"{"action": "tool_call", "tool": "NAME", "tool_params": {"PARAMETER": "..."}}"#,
    needs: Need::Tools,
    forms: tool_call_forms,
    read: |step| Ok(RawAction::ToolCall { tool: step.name_field("tool", TOOL_CHARS)?, params: step.params_field()? }),
};

const PUBLISH_DATA: ActionSpec = ActionSpec {
    name: "publish_data",
    does: "Share a finding with the whole team.",
    json: r#"{"action": "publish_data", "topic": "findings", "data": "..."}"#,
    needs: Need::Nothing,
    forms: |_| {
        vec![vec![
            ("topic", text_schema("Where it belongs, such as `findings`.", TOPIC_CHARS)),
            ("data", text_schema("What you found.", DATA_CHARS)),
        ]]
    },
    read: |step| {
        Ok(RawAction::PublishData {
            topic: step.name_field("topic", TOPIC_CHARS)?,
            data: step.text_field("data", DATA_CHARS)?,
        })
    },
};

pub(crate) const SEND_MESSAGE: ActionSpec = ActionSpec {
    name: "send_message",
    does: "Write to one teammate. Types: request, offer, accept, delegation, info.",
    json: r#"{"action": "send_message", "to": "NAME", "message_type": "info", "payload": {"message": "..."}}"#,
    needs: Need::Receivers,
    forms: |options| {
        vec![vec![
            ("to", json!({ "type": "string", "description": "A teammate.", "enum": options.receivers })),
            ("message_type", json!({ "type": "string", "enum": MessageType::ALL.map(MessageType::as_str) })),
            ("payload", closed_object(vec![("message", text_schema("What you tell or ask.", MESSAGE_CHARS))])),
        ]]
    },
    read: |step| {
        Ok(RawAction::SendMessage {
            to: step.name_field("to", RECEIVER_CHARS)?,
            kind: step.message_type()?,
            payload: step.payload_field()?,
        })
    },
};

const REQUEST_HELP: ActionSpec = ActionSpec {
    name: "request_help",
    does: "Ask the supervisor for a further agent, with the tools that it needs.",
    json: r#"{"action": "request_help", "help_description": "...", "help_skills": ["TOOL"]}"#,
    needs: Need::Help,
    forms: |options| {
        vec![vec![
            ("help_description", text_schema("What the new agent is to do.", DESCRIPTION_CHARS)),
            ("help_skills", skills_schema(options)),
        ]]
    },
    read: |step| {
        Ok(RawAction::RequestHelp {
            description: step.text_field("help_description", DESCRIPTION_CHARS)?,
            skills: step.skills_field()?,
        })
    },
};

const DONE: ActionSpec = ActionSpec {
    name: "done",
    does: "End your work with your result: under 500 characters, details belong in files that you wrote before.",
    json: r#"{"action": "done", "response": "..."}"#,
    needs: Need::Nothing,
    forms: |_| vec![vec![("response", text_schema("Your result in short.", RESPONSE_CHARS))]],
    read: |step| Ok(RawAction::Done { response: step.text_field("response", ANSWER_BYTES)? }),
};

const IDLE: ActionSpec = ActionSpec {
    name: "idle",
    does: "Wait for messages; nothing is gained by it.",
    json: r#"{"action": "idle"}"#,
    needs: Need::Nothing,
    forms: |_| vec![Vec::new()],
    read: |_| Ok(RawAction::Idle),
};

/// The tools that a helper is to have, by their own names: `web_search` for `web.web_search`, where only one tool ends so.
/// Those that the asker does not have are left out.
///
/// # Errors
/// None of the names fits one of `tools`, which the asker has: a sentence that says which there are.
pub(crate) fn match_skills(skills: &[String], tools: &[Tool]) -> Result<Vec<String>, String> {
    let (mut matched, mut wrong) = (Vec::new(), None);
    for skill in skills {
        match match_skill(skill, tools) {
            Ok(name) => matched.push(name),
            Err(problem) => _ = wrong.get_or_insert(problem),
        }
    }
    wrong.filter(|_| matched.is_empty()).map_or(Ok(matched), Err)
}

fn match_skill(skill: &str, tools: &[Tool]) -> Result<String, String> {
    let is_end = |tool: &&Tool| tool.name.rsplit_once('.').is_some_and(|(_, end)| end == skill);
    let fits: Vec<&str> = match tools.iter().find(|tool| tool.name == skill) {
        Some(tool) => vec![&tool.name],
        None => tools.iter().filter(is_end).map(|tool| tool.name.as_str()).collect(),
    };
    let list = |names: Vec<&str>| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    match fits[..] {
        [name] => Ok(name.to_owned()),
        [] if tools.is_empty() => {
            Err("`help_skills` names tools, and you have none to pass on: return an empty list".to_owned())
        }
        [] => {
            let yours = list(tools.iter().map(|tool| tool.name.as_str()).take(TOLD).collect());
            Err(format!("`help_skills` has `{}`, which is none of your tools: {yours}", read::quote_word(skill)))
        }
        _ => Err(format!(
            "`help_skills` has `{}`, which several of your tools fit: {}",
            read::quote_word(skill),
            list(fits)
        )),
    }
}

/// What to say to an agent whose final answer is over [`RESPONSE_CHARS`]; none where it is not.
pub(crate) fn too_long(response: &str) -> Option<String> {
    let chars = response.chars().count();
    (chars > RESPONSE_CHARS).then(|| {
        format!(
            "the response of `done` has {chars} characters and may have {RESPONSE_CHARS}: save the details to a file \
             first, then return `done` with a short summary that names the file"
        )
    })
}

/// A final answer as it counts when it stayed too long: its first characters, and how many are missing.
pub(crate) fn cut_response(response: &str) -> String {
    super::prompt::truncate_text(response, RESPONSE_CHARS)
}

#[cfg(test)]
mod tests;
