//! Approvals: requests of agents that a person must allow, and the answers.
//!
//! All kinds of requests share one form. An agent asks, and gets one answer; the journal holds both. Only the agent
//! that asked waits in between.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use swarmc_plan::Approval;

use crate::types::content::Content;
use crate::types::inbox_message::InboxMessage;

/// Who answered a gate, or a request for agreement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AnsweredBy {
    /// A person.
    Person,
    /// No person answered in time (`on-timeout`).
    Timeout,
    /// No person can answer (`headless`).
    Headless,
    /// No person can answer: the policy's rule for unattended runs (`unattended`).
    Policy,
    /// A person, by an earlier `always`.
    Earlier,
}

/// The characters at most that an agent sees of arguments that a person gave in place of its own.
const SHOWN: usize = 500;

/// A request for a person's approval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Request {
    /// Its number in the run, from 1: what people call it.
    pub id: u32,
    /// Who asks: an agent of the plan, or in a swarm an agent of that.
    pub agent: Arc<str>,
    /// What for.
    #[serde(flatten)]
    pub wants: RequestKind,
}

impl Request {
    /// The name by which the message that answers it refers to it.
    pub(crate) fn name(&self) -> String {
        approval_name(self.id)
    }
}

/// The name by which the message that answers a request of this number refers to it.
pub(crate) fn approval_name(id: u32) -> String {
    format!("approval-{id}")
}

/// What an agent wants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "wants", rename_all = "snake_case")]
pub enum RequestKind {
    /// To call a tool.
    Tool {
        /// The tool: its own name, or `SERVER.TOOL`.
        tool: Arc<str>,
        /// The arguments, as JSON.
        arguments: Content,
        /// What the tool takes: a JSON Schema. None where the schema is unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        schema: Option<Content>,
        /// Whether its agent makes the call itself, so that the arguments cannot be changed.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        fixed: bool,
    },
    /// To have a helper.
    Spawn {
        /// The agent that it would play.
        plays: Arc<str>,
        /// What it would do.
        task: Content,
        /// The tools that it would have.
        tools: Vec<String>,
    },
    /// To change the plan of its team.
    Plan {
        /// How, and why, in words.
        change: Content,
    },
    /// To move a branch of the repository on to what it merged.
    Merge {
        /// Which, and what is in it, in words.
        change: Content,
    },
    /// To take a further turn, or attempt, though the last ones came to the same.
    GoOn {
        /// What they have in common.
        same: Same,
        /// How many of them, in a row.
        times: u32,
        /// What they put out, or changed, or how they failed.
        evidence: Content,
    },
    /// To have a task of its pipeline started, with this as its first payload.
    Node {
        /// The agent of that task.
        plays: Arc<str>,
        /// The task.
        to: Arc<str>,
        /// The way that the payload takes, by its number in the pipeline's edges.
        way: usize,
        /// The payload.
        letter: Box<InboxMessage>,
    },
    /// To be helped by a person, who answers in the inbox of its task.
    Help {
        /// With what, in its words.
        message: Content,
    },
}

/// What turns have in common that go in circles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Same {
    /// What they put out and sent, and what they changed.
    Output,
    /// What they changed.
    Diff,
    /// The check that they fail.
    Check,
}

impl Same {
    /// So many of them, in words.
    fn describe_repeats(self, times: u32) -> String {
        match (self, times) {
            (Same::Check, 1) => "an attempt that failed a check".to_owned(),
            (_, 1) => "a turn".to_owned(),
            (Same::Output, times) => format!("{times} turns with the same result"),
            (Same::Diff, times) => format!("{times} turns with the same changes"),
            (Same::Check, times) => format!("{times} attempts that failed the same check"),
        }
    }
}

impl RequestKind {
    /// In a few words, without what an agent wrote.
    pub fn describe(&self) -> String {
        match self {
            RequestKind::Tool { tool, .. } => format!("tool {tool}"),
            RequestKind::Spawn { .. } => "a helper".to_owned(),
            RequestKind::GoOn { same, times, .. } => format!("to go on after {}", same.describe_repeats(*times)),
            RequestKind::Node { to, .. } => format!("task {to}"),
            RequestKind::Help { .. } => "help".to_owned(),
            RequestKind::Plan { .. } => "a change of the plan".to_owned(),
            RequestKind::Merge { .. } => "a merge".to_owned(),
        }
    }

    /// Whether it is a person's help.
    pub fn is_help(&self) -> bool {
        matches!(self, RequestKind::Help { .. })
    }

    /// Whether it is a task that is to be started.
    pub(crate) fn is_node(&self) -> bool {
        matches!(self, RequestKind::Node { .. })
    }

    /// Whether it is waited for beyond the attempt that asked, for as long as the step has not ended.
    pub fn outlasts_attempt(&self) -> bool {
        matches!(self, RequestKind::Node { .. } | RequestKind::Help { .. })
    }

    /// Whether an answer may give other arguments.
    pub fn takes_arguments(&self) -> bool {
        matches!(self, RequestKind::Tool { fixed: false, .. })
    }

    /// What may be said to it. Help is given each time anew.
    pub fn choices(&self) -> &'static [Choice] {
        match self {
            RequestKind::Help { .. } => &[Choice::Allow, Choice::Deny],
            RequestKind::Tool { .. }
            | RequestKind::Spawn { .. }
            | RequestKind::GoOn { .. }
            | RequestKind::Node { .. }
            | RequestKind::Plan { .. }
            | RequestKind::Merge { .. } => &Choice::ALL,
        }
    }

    /// Why a step has failed that was not to go on.
    pub fn describe_denial(&self, verdict: &Verdict) -> String {
        let circles = match self {
            RequestKind::GoOn { same, times, .. } => same.describe_repeats(*times),
            other => other.describe(),
        };
        format!("it repeated itself ({circles}), and {}", verdict.refusal())
    }

    /// Whether both ask for the same.
    pub(crate) fn is_like(&self, other: &RequestKind) -> bool {
        match (self, other) {
            (RequestKind::Tool { tool, arguments, .. }, RequestKind::Tool { tool: other, arguments: others, .. }) => {
                tool == other && arguments == others
            }
            (one, other) => one == other,
        }
    }

    /// What is to be stored, for who agrees to it.
    pub fn content(&self) -> &Content {
        match self {
            RequestKind::Tool { arguments, .. } => arguments,
            RequestKind::Spawn { task, .. } => task,
            RequestKind::Node { letter, .. } => &letter.content,
            RequestKind::GoOn { evidence, .. } => evidence,
            RequestKind::Help { message } => message,
            RequestKind::Plan { change } | RequestKind::Merge { change } => change,
        }
    }
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// The number of the request.
    pub id: u32,
    /// What was decided.
    pub choice: Choice,
    /// Who decided.
    pub by: AnsweredBy,
    /// Why, in the words of the person or policy that decided; the agent reads them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// The arguments that the tool is called with in place of those that were asked for, as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Content>,
}

/// What is said to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// Yes, this once.
    Allow,
    /// Yes, and to the same tool for the same agent for the rest of the run.
    Always,
    /// No.
    Deny,
}

impl Choice {
    /// All of them.
    pub const ALL: [Choice; 3] = [Choice::Allow, Choice::Always, Choice::Deny];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Choice::Allow => "allow",
            Choice::Always => "always",
            Choice::Deny => "deny",
        }
    }

    /// What a word means.
    pub fn from_word(word: &str) -> Option<Choice> {
        Choice::ALL.into_iter().find(|choice| choice.as_str() == word)
    }
}

impl Verdict {
    /// Whether the agent gets what it wants.
    pub fn is_allowed(&self) -> bool {
        self.choice != Choice::Deny
    }

    /// Whether it came after a while. What is said at once follows from the policy, in a replay as well.
    pub(crate) fn was_awaited(&self) -> bool {
        matches!(self.by, AnsweredBy::Person | AnsweredBy::Timeout)
    }

    /// Why the agent does not get it, for the agent.
    pub(crate) fn refusal(&self) -> String {
        let who = match self.by {
            AnsweredBy::Person => "a person said no",
            AnsweredBy::Timeout => "no person approved it in time",
            AnsweredBy::Policy | AnsweredBy::Headless | AnsweredBy::Earlier => {
                "it needs approval, but no person can answer"
            }
        };
        match &self.because {
            Some(because) => format!("{who}: {because}"),
            None => who.to_owned(),
        }
    }
}

/// What a tool gave that was called with other arguments than its agent wanted, for the agent.
pub(crate) fn describe_changed_call(arguments: &str, given: &str) -> String {
    let shown: String = arguments.chars().take(SHOWN).collect();
    let more = if shown.len() < arguments.len() { "…" } else { "" };
    format!("[a person allowed the call with these arguments: {shown}{more}]\n{given}")
}

/// A tool call that needs an approval.
#[derive(Debug)]
pub(crate) struct ToolCallRequest {
    /// The agent that calls.
    pub agent: Arc<str>,
    /// The tool, by its own name.
    pub tool: String,
    /// Its arguments.
    pub arguments: Value,
    /// The schema of its arguments, if known.
    pub schema: Option<Value>,
    /// Who must approve it.
    pub of: Approval,
    /// Whether the agent makes the call itself, so that an answer cannot change its arguments.
    pub fixed: bool,
}

/// The decision on a call.
#[derive(Debug, PartialEq)]
pub(crate) enum Decision {
    /// The agent may make the call, with these arguments in place of its own if there are some.
    Granted(Option<Value>),
    /// The agent may make all further calls of this tool, too; only for agents that make their calls themselves.
    Always,
    /// The agent may not make the call: why.
    Refused(String),
    /// The attempt has failed: why.
    Failed(String),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::event::{Event, LARGEST, LONGEST_PATH, Record, StepId, can_inline, truncate_message};
    use crate::types::handoff::EnvelopeKind;

    /// The longest text that an event holds itself.
    fn longest(piece: &str) -> String {
        let mut text = piece.repeat(4_000 / piece.len());
        while !can_inline(&text) {
            text.pop();
        }
        text
    }

    #[test]
    fn no_request_and_no_answer_is_longer_than_a_line_of_the_journal() {
        for piece in ["x", "\u{1}", "\"", "漢"] {
            let text = || Content::Text(longest(piece));
            let within = Some("w".repeat(LONGEST_PATH).into());
            let step = StepId { within, ..StepId::new(&"n".repeat(100), u32::MAX, u32::MAX) };
            let mut because = longest(piece).repeat(3);
            truncate_message(&mut because);
            let (agent, plays): (Arc<str>, Arc<str>) = ("a".repeat(100).into(), "p".repeat(100).into());
            let tool = RequestKind::Tool {
                tool: "t".repeat(700).into(),
                arguments: text(),
                schema: Some(text()),
                fixed: true,
            };
            let spawn = RequestKind::Spawn { plays, task: text(), tools: vec!["x".repeat(100); 20] };
            let letter = InboxMessage {
                id: "e".repeat(21).into(),
                kind: EnvelopeKind::Handoff,
                priority: swarmc_plan::Priority::Normal,
                response: swarmc_plan::Response::Required,
                answers: None,
                answered_to: None,
                person: false,
                run: false,
                interrupts: false,
                said: Some("0".repeat(16).into()),
                content: text(),
            };
            let (plays, to) = ("p".repeat(100).into(), "t".repeat(100).into());
            let node = RequestKind::Node { plays, to, way: usize::MAX, letter: Box::new(letter) };
            let help = RequestKind::Help { message: text() };
            let request = |wants| Event::ApprovalAsked {
                step: step.clone(),
                attempt: 1,
                request: Request { id: 1, agent: agent.clone(), wants },
            };
            let (by, arguments) = (AnsweredBy::Person, Some(text()));
            let verdict = Verdict { id: 1, choice: Choice::Deny, by, because: Some(because), arguments };
            let answered = Event::ApprovalAnswered { step: step.clone(), attempt: 1, verdict };
            for event in [request(tool), request(spawn), request(node), request(help), answered] {
                let record = Record { seq: u64::MAX, at: u64::MAX, event };
                let line = serde_json::to_string(&record).unwrap();
                assert!(line.len() < LARGEST, "{piece:?}: {}", line.len());
                assert_eq!(serde_json::from_str::<Record>(&line).unwrap(), record);
            }
        }
    }
}
