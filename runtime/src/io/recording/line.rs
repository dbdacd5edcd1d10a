//! The lines of a recording: one JSON object each, the first says what was run, the last how it ended.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::member::{Gave, Member, Said};
use crate::io::files::{AgentFiles, Laying};
use crate::types::approval::Choice;
use crate::types::event::{AnsweredBy, Failure, RunStatus, StepId, Usage};
use crate::types::handoff::Envelope;

/// The version of recordings that this build writes, and the newest it reads.
///
/// 2 holds what attempts handed over and left behind.
pub const RECORDING_VERSION: u32 = 1;

/// The file with the lines.
pub(super) const LINES: &str = "recording.jsonl";

/// The folder with texts that are too long for a line.
pub(super) const TEXTS: &str = "texts";

/// A text: in the line, or a file of its own, named from the recording's folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Text {
    Here(String),
    File { file: String },
}

/// One line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum Line {
    /// What was run, and with what: always the first.
    Recording(Header),
    /// A turn of an agent.
    Turn {
        #[serde(flatten)]
        place: Place,
        /// The turn within the attempt: from 2, the answer is mended.
        turn: u32,
        /// 0 for the step's own agent, from 1 for fallbacks.
        #[serde(default, skip_serializing_if = "is_zero")]
        fallback: u32,
        #[serde(flatten)]
        asked: Asked,
        answer: Answered,
    },
    /// A command of a step.
    Command {
        #[serde(flatten)]
        place: Place,
        #[serde(flatten)]
        asked: Asked,
        answer: Answered,
    },
    /// A check of a step, from 1.
    Check {
        #[serde(flatten)]
        place: Place,
        check: u32,
        #[serde(flatten)]
        asked: Asked,
        answer: Answered,
    },
    /// A file that a text of the step took in; relative to the workspace.
    File {
        #[serde(flatten)]
        place: Place,
        path: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<Text>,
        /// Why it could not be read.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        problem: Option<String>,
    },
    /// An attempt that failed before anything was asked.
    Failed {
        #[serde(flatten)]
        place: Place,
        failure: Failure,
    },
    /// A gate; `asked` counts, from 1, how often it has asked by then.
    Gate {
        #[serde(flatten)]
        place: Place,
        asked: u32,
        message: Text,
        /// None where no person answered before the run ended.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<AnsweredBy>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        choice: Option<String>,
        /// The choice and the fields, as JSON.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<Text>,
    },
    /// A turn of an agent of a swarm.
    Member {
        #[serde(flatten)]
        place: Place,
        #[serde(flatten)]
        turn: Member,
        /// How many answers the swarm had by then, where something else than the last of them made it begin.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<u32>,
        #[serde(flatten)]
        asked: Asked,
        /// None where it was ended before it was answered.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answer: Option<Said>,
    },
    /// A call of a tool by an agent of a swarm.
    Call {
        #[serde(flatten)]
        place: Place,
        #[serde(flatten)]
        turn: Member,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<u32>,
        tool: String,
        arguments: Text,
        /// None where it was ended before it was answered.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answer: Option<Gave>,
    },
    /// The tools that an agent of a swarm was offered from this turn on, as JSON; or why they are unknown.
    Tools {
        #[serde(flatten)]
        place: Place,
        #[serde(flatten)]
        turn: Member,
        answer: Gave,
    },
    /// What an agent of a swarm asked a person to agree to.
    Approval {
        #[serde(flatten)]
        place: Place,
        member: Arc<str>,
        /// Which of its requests, from 1.
        asked: u32,
        /// What for.
        wants: String,
        #[serde(default = "person", skip_serializing_if = "is_person")]
        by: AnsweredBy,
        /// None where no person answered before the swarm ended.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        choice: Option<Choice>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        because: Option<String>,
        /// What its tool is called with in place of what it wanted, as JSON.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arguments: Option<Text>,
    },
    /// An agent of a swarm whose time was over.
    Late {
        #[serde(flatten)]
        place: Place,
        member: Arc<str>,
    },
    /// What an agent handed over, as its receiver got it.
    Sent {
        #[serde(flatten)]
        place: Place,
        envelope: Box<Envelope>,
        /// Whether a person had to approve it first.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        asks: bool,
        /// The id of the message that told its sender of the refusal.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        refusal: Option<String>,
    },
    /// What a turn changed, as a diff.
    Left {
        #[serde(flatten)]
        place: Place,
        id: String,
        text: Text,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        files: Option<u32>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        added: Option<u32>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        removed: Option<u32>,
        /// The other steps whose turns went on in the same tree.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        with: Vec<String>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        omitted: Vec<String>,
    },
    /// An attempt began whose step others write to: when, and the envelopes that it took from its inbox.
    Begun {
        #[serde(flatten)]
        place: Place,
        inputs: Vec<String>,
    },
    /// How far an agent said it was, as JSON.
    Reported {
        #[serde(flatten)]
        place: Place,
        /// Which of its reports, from 1.
        report: u32,
        text: Text,
    },
    /// What an agent asked a person to help it with.
    Pleaded {
        #[serde(flatten)]
        place: Place,
        /// Which of its requests, from 1.
        plea: u32,
        message: Text,
        /// The id of the message with the answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answer: Option<String>,
    },
    /// What was said when a task asked for help, to have another one started, or whether it goes on that goes in circles.
    Agreed {
        #[serde(flatten)]
        place: Place,
        /// Which of its requests, from 1.
        asked: u32,
        /// What for.
        wants: String,
        #[serde(default = "person", skip_serializing_if = "is_person")]
        by: AnsweredBy,
        /// None where no person answered before the run ended.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        choice: Option<Choice>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        because: Option<String>,
    },
    /// What a person wrote to an agent.
    Message {
        id: String,
        to: Arc<str>,
        #[serde(default = "one", skip_serializing_if = "is_one")]
        instance: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        within: Option<Arc<str>>,
        /// Whether a turn was to be ended for it, where that loses nothing.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        interrupts: bool,
        text: Text,
    },
    /// What of that an agent read while its turn went on.
    Overheard {
        #[serde(flatten)]
        place: Place,
        inputs: Vec<String>,
    },
    /// The folder of an agent that works by files: what lay in it, and what was collected.
    Files {
        #[serde(flatten)]
        place: Place,
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
    /// A line that was taken back. Only while a recording is put together.
    #[serde(skip)]
    Nothing,
    /// How the run ended: always the last.
    End { status: RunStatus, values: Vec<Text> },
    /// An attempt began. Only while a run goes on: what an earlier runner recorded of the attempt no longer counts.
    Began {
        #[serde(flatten)]
        place: Place,
    },
}

/// What was run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Header {
    pub version: u32,
    pub workflow: String,
    /// The digest of the plan.
    pub plan: String,
    pub pipeline: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub params: BTreeMap<String, Text>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin: Option<Text>,
}

/// An attempt of a step.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Place {
    pub step: Arc<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<Arc<str>>,
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub instance: u32,
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub iteration: u32,
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub attempt: u32,
}

/// What was asked, as far as the workflow says it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Asked {
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
}

impl Asked {
    fn texts(&self) -> impl Iterator<Item = &Text> {
        let Asked { system, prompt, command, stdin, env, schema, .. } = self;
        [system, prompt, command, stdin, schema].into_iter().flatten().chain(env.values())
    }
}

impl Place {
    pub(super) fn of(step: &StepId, attempt: u32) -> Place {
        Place {
            step: Arc::clone(&step.name),
            within: step.within.clone(),
            instance: step.instance,
            iteration: step.iteration,
            attempt,
        }
    }

    pub(super) fn id(&self) -> StepId {
        StepId {
            name: Arc::clone(&self.step),
            iteration: self.iteration,
            instance: self.instance,
            within: self.within.clone(),
        }
    }
}

impl Line {
    /// The attempt that it is of.
    pub(super) fn place(&self) -> Option<&Place> {
        match self {
            Line::Turn { place, .. }
            | Line::Command { place, .. }
            | Line::Check { place, .. }
            | Line::File { place, .. }
            | Line::Failed { place, .. }
            | Line::Gate { place, .. }
            | Line::Member { place, .. }
            | Line::Call { place, .. }
            | Line::Tools { place, .. }
            | Line::Late { place, .. }
            | Line::Approval { place, .. }
            | Line::Sent { place, .. }
            | Line::Left { place, .. }
            | Line::Begun { place, .. }
            | Line::Agreed { place, .. }
            | Line::Files { place, .. }
            | Line::Overheard { place, .. }
            | Line::Reported { place, .. }
            | Line::Pleaded { place, .. }
            | Line::Began { place } => Some(place),
            Line::Recording(_) | Line::End { .. } | Line::Message { .. } | Line::Nothing => None,
        }
    }

    /// The attempt and what of it is told, in a form of its own for each kind.
    pub(super) fn key(&self) -> Option<(Place, u8, u32, u32, String)> {
        let of = |kind: u8, turn: &Member| (kind, turn.turn, turn.attempt, turn.key());
        let (kind, first, second, name) = match self {
            Line::Turn { turn, fallback, .. } => (0, *turn, *fallback, String::new()),
            Line::Command { .. } => (1, 0, 0, String::new()),
            Line::Check { check, .. } => (2, *check, 0, String::new()),
            Line::File { path, .. } => (3, 0, 0, path.clone()),
            Line::Failed { .. } => (4, 0, 0, String::new()),
            Line::Gate { asked, .. } => (5, *asked, 0, String::new()),
            Line::Tools { turn, .. } => of(6, turn),
            Line::Member { turn, .. } => of(7, turn),
            Line::Call { turn, .. } => of(8, turn),
            Line::Late { member, .. } => (9, 0, 0, member.to_string()),
            Line::Approval { member, asked, .. } => (10, *asked, 0, member.to_string()),
            Line::Sent { envelope, .. } => (11, 0, 0, envelope.id.clone()),
            Line::Left { id, .. } => (12, 0, 0, id.clone()),
            Line::Begun { .. } => (13, 0, 0, String::new()),
            Line::Agreed { asked, .. } => (14, *asked, 0, String::new()),
            Line::Files { .. } => (15, 0, 0, String::new()),
            Line::Reported { report, .. } => (17, *report, 0, String::new()),
            Line::Pleaded { plea, .. } => (18, *plea, 0, String::new()),
            Line::Overheard { inputs, .. } => (16, 0, 0, inputs.join(" ")),
            Line::Recording(_) | Line::End { .. } | Line::Began { .. } => return None,
            Line::Message { .. } | Line::Nothing => return None,
        };
        Some((self.place()?.clone(), kind, first, second, name))
    }

    /// Whether it is something that an attempt did, or that happened to it, beside being asked and answering.
    pub(super) fn is_deed(&self) -> bool {
        matches!(self, Line::Sent { .. } | Line::Left { .. } | Line::Begun { .. } | Line::Agreed { .. })
            || matches!(self, Line::Message { .. } | Line::Overheard { .. })
            || matches!(self, Line::Reported { .. } | Line::Pleaded { .. })
    }

    /// Whether it is of a swarm.
    pub(super) fn is_of_swarm(&self) -> bool {
        matches!(self, Line::Member { .. } | Line::Call { .. } | Line::Tools { .. } | Line::Late { .. })
            || matches!(self, Line::Approval { .. })
    }

    /// The texts of it that are files.
    pub(super) fn files(&self) -> Vec<&str> {
        let mut texts: Vec<&Text> = Vec::new();
        match self {
            Line::Recording(header) => texts.extend(header.params.values().chain(&header.stdin)),
            Line::Turn { asked, answer, .. }
            | Line::Command { asked, answer, .. }
            | Line::Check { asked, answer, .. } => {
                texts.extend(asked.texts());
                texts.extend([&answer.text, &answer.whole, &answer.stderr, &answer.log].into_iter().flatten());
            }
            Line::File { text, .. } => texts.extend(text),
            Line::Gate { message, output, .. } => texts.extend(std::iter::once(message).chain(output)),
            Line::End { values, .. } => texts.extend(values),
            Line::Member { asked, answer, .. } => {
                texts.extend(asked.texts());
                texts.extend(answer.iter().flat_map(Said::texts));
            }
            Line::Call { arguments, answer, .. } => {
                texts.push(arguments);
                texts.extend(answer.iter().filter_map(|answer| answer.text.as_ref()));
            }
            Line::Tools { answer, .. } => texts.extend(&answer.text),
            Line::Approval { arguments, .. } => texts.extend(arguments),
            Line::Left { text, .. } | Line::Message { text, .. } | Line::Reported { text, .. } => texts.push(text),
            Line::Pleaded { message, .. } => texts.push(message),
            Line::Files { told, files, .. } => texts.extend(told.values().chain(files.values())),
            Line::Failed { .. } | Line::Began { .. } | Line::Late { .. } => {}
            Line::Sent { .. } | Line::Begun { .. } | Line::Agreed { .. } | Line::Overheard { .. } | Line::Nothing => {}
        }
        let file = |text: &'_ Text| matches!(text, Text::File { .. });
        texts.retain(|text| file(text));
        texts
            .into_iter()
            .filter_map(|text| if let Text::File { file } = text { Some(file.as_str()) } else { None })
            .collect()
    }
}

pub(super) fn one() -> u32 {
    1
}

pub(super) fn is_one(number: &u32) -> bool {
    *number == 1
}

fn person() -> AnsweredBy {
    AnsweredBy::Person
}

fn is_person(by: &AnsweredBy) -> bool {
    *by == AnsweredBy::Person
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}
