//! Exchanges: what a run asked of the outside, and what came back.
//!
//! The journal of a recorded run holds each as the JSON of an [`Event::Exchanged`](crate::types::event::Event), with its
//! placeholders. Long texts lie in files beside it, named from the folder of the recording.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::swarm_turns::{Member, ToolResult, TurnReply};
use super::{Part, words};
use crate::io::files::{AgentFiles, Laying};
use crate::types::event::{Failure, StepId, Usage, VERSION};

/// The version of recordings that this build writes, and the newest it reads: that of the journal.
pub const RECORDING_VERSION: u32 = VERSION;

/// The folder with texts that are too long for a line.
pub(super) const TEXTS: &str = "texts";

/// An attempt of a step.
pub(super) type Attempt = (StepId, u32);

/// What of an attempt an exchange is about: its kind, two numbers, and a name.
pub(super) type Key = (u8, u32, u32, String);

/// A text: in the line, or a file of its own, named from the recording's folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Text {
    Here(String),
    File { file: String },
}

/// One exchange.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum Exchange {
    /// A turn of an agent.
    Turn {
        /// The turn within the attempt: from 2, the answer is mended.
        turn: u32,
        /// 0 for the step's own agent, from 1 for fallbacks.
        #[serde(default, skip_serializing_if = "is_zero")]
        fallback: u32,
        #[serde(flatten)]
        asked: RecordedQuestion,
        answer: Answered,
    },
    /// A command of a step.
    Command {
        #[serde(flatten)]
        asked: RecordedQuestion,
        answer: Answered,
    },
    /// A check of a step, from 1.
    Check {
        check: u32,
        #[serde(flatten)]
        asked: RecordedQuestion,
        answer: Answered,
    },
    /// A file that a text of the step took in; relative to the workspace.
    File {
        path: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<Text>,
        /// Why it could not be read.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        problem: Option<String>,
    },
    /// The folder of an agent that works by files: what lay in it, and what was collected.
    Files {
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        inputs: Vec<Laying>,
        /// What the runner wrote into it.
        told: BTreeMap<String, Text>,
        /// None where the attempt was ended from outside.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        left: Option<Box<AgentFiles>>,
        /// Files of the outbox; of others there is the digest only.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        files: BTreeMap<String, Text>,
        /// Why the attempt has failed by then.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failure: Option<Failure>,
    },
    /// The tools that an agent of a swarm was offered from this turn on, as JSON; or why they are unknown.
    Tools {
        #[serde(flatten)]
        turn: Member,
        answer: ToolResult,
    },
    /// A turn of an agent of a swarm.
    Member {
        #[serde(flatten)]
        turn: Member,
        #[serde(flatten)]
        asked: RecordedQuestion,
        /// None where it was ended before it was answered.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answer: Option<TurnReply>,
    },
    /// A call of a tool by an agent of a swarm.
    Call {
        #[serde(flatten)]
        turn: Member,
        tool: String,
        arguments: Text,
        /// None where it was ended before it was answered.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answer: Option<ToolResult>,
    },
}

/// What was asked, as far as the workflow says it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct RecordedQuestion {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<Text>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<Text>,
    /// The command, as a person would type it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Text>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin: Option<Text>,
    /// The variables that the step and its pipeline set.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, Text>,
    /// The conversation that the turn goes on with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The schema of the answer, where the agent takes it apart from the prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Text>,
}

/// What came back.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Answered {
    /// The answer, or what the command printed; none where there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<Text>,
    /// The whole answer, where `text` is only its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole: Option<Text>,
    /// Whether the beginning of it was dropped.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// The tail of its standard error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr: Option<Text>,
    /// The end of both streams of a command, where something reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<Text>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Whether the agent used a tool.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tools: bool,
    /// The operations in lines of it that were refused, each with why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<Text>,
}

impl RecordedQuestion {
    fn texts(&self) -> impl Iterator<Item = &Text> {
        let RecordedQuestion { system, prompt, command, stdin, env, schema, .. } = self;
        [system, prompt, command, stdin, schema].into_iter().flatten().chain(env.values())
    }
}

impl Answered {
    fn texts(&self) -> impl Iterator<Item = &Text> {
        [&self.text, &self.whole, &self.stderr, &self.log].into_iter().flatten().chain(&self.refused)
    }
}

impl Exchange {
    /// What of its attempt it is about.
    pub(super) fn key(&self) -> Key {
        match self {
            Exchange::Turn { turn, fallback, .. } => part_key(Part::Turn(*fallback, *turn)),
            Exchange::Command { .. } => part_key(Part::Command),
            Exchange::Check { check, .. } => part_key(Part::Check(*check)),
            Exchange::File { path, .. } => file_key(path),
            Exchange::Files { .. } => FOLDER,
            Exchange::Tools { turn, .. } => turn.key(TOOLS),
            Exchange::Member { turn, .. } => turn.key(TURN),
            Exchange::Call { turn, .. } => turn.key(CALL),
        }
    }

    /// Whether it is of an attempt of a step, and begins anew with that.
    pub(super) fn is_of_attempt(&self) -> bool {
        matches!(self, Exchange::Turn { .. } | Exchange::Command { .. } | Exchange::Check { .. })
            || matches!(self, Exchange::Files { .. })
    }

    /// Whether it is of a swarm.
    pub(super) fn is_of_swarm(&self) -> bool {
        matches!(self, Exchange::Tools { .. } | Exchange::Member { .. } | Exchange::Call { .. })
    }

    /// Whether an agent or a program was asked, and whether it answered.
    pub(super) fn answers(&self) -> Option<bool> {
        match self {
            Exchange::Turn { .. } | Exchange::Command { .. } | Exchange::Check { .. } => Some(true),
            Exchange::Member { answer, .. } => Some(answer.is_some()),
            Exchange::Call { answer, .. } => Some(answer.is_some()),
            Exchange::File { .. } | Exchange::Files { .. } | Exchange::Tools { .. } => None,
        }
    }

    /// What asks, for people.
    pub(super) fn describe(&self, (step, attempt): (&StepId, u32)) -> String {
        match self {
            Exchange::Turn { turn, fallback, .. } => describe_part((step, attempt), Part::Turn(*fallback, *turn)),
            Exchange::Check { check, .. } => describe_part((step, attempt), Part::Check(*check)),
            Exchange::Member { turn, .. } => turn.describe(step, attempt),
            Exchange::Call { turn, tool, .. } => format!("the call of `{tool}` in {}", turn.describe(step, attempt)),
            _ => words(step, attempt),
        }
    }

    /// The names of its texts that are files.
    pub(super) fn files<'t>(&'t self) -> Vec<&'t str> {
        let mut texts: Vec<&'t Text> = Vec::new();
        match self {
            Exchange::Turn { asked, answer, .. }
            | Exchange::Command { asked, answer }
            | Exchange::Check { asked, answer, .. } => texts.extend(asked.texts().chain(answer.texts())),
            Exchange::File { text, .. } => texts.extend(text),
            Exchange::Files { told, files, .. } => texts.extend(told.values().chain(files.values())),
            Exchange::Tools { answer, .. } => texts.extend(&answer.text),
            Exchange::Member { asked, answer, .. } => {
                texts.extend(asked.texts().chain(answer.iter().flat_map(TurnReply::texts)));
            }
            Exchange::Call { arguments, answer, .. } => {
                texts.push(arguments);
                texts.extend(answer.iter().filter_map(|answer| answer.text.as_ref()));
            }
        }
        let file = |text: &'t Text| if let Text::File { file } = text { Some(file.as_str()) } else { None };
        texts.into_iter().filter_map(file).collect()
    }
}

/// The kinds of the keys of swarms.
pub(super) const TOOLS: u8 = 4;
pub(super) const TURN: u8 = 5;
pub(super) const CALL: u8 = 6;

/// The key of the folder of an attempt.
pub(super) const FOLDER: Key = (7, 0, 0, String::new());

/// The key of what an attempt asks.
pub(super) fn part_key(part: Part) -> Key {
    match part {
        Part::Turn(fallback, turn) => (0, turn, fallback, String::new()),
        Part::Command => (1, 0, 0, String::new()),
        Part::Check(check) => (2, check, 0, String::new()),
    }
}

/// The key of a file that a text takes in.
pub(super) fn file_key(path: &str) -> Key {
    (3, 0, 0, path.to_owned())
}

/// What asks, for people.
pub(super) fn describe_part((step, attempt): (&StepId, u32), part: Part) -> String {
    let words = words(step, attempt);
    match part {
        Part::Turn(0, 1) | Part::Command => words,
        Part::Turn(0, turn) => format!("turn {turn} of {words}"),
        Part::Turn(fallback, 1) => format!("fallback {fallback} of {words}"),
        Part::Turn(fallback, turn) => format!("turn {turn} of fallback {fallback} of {words}"),
        Part::Check(check) => format!("check {check} of {words}"),
    }
}

pub(super) fn one() -> u32 {
    1
}

pub(super) fn is_one(number: &u32) -> bool {
    *number == 1
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}
