//! The interface of a rehearsal: its questions, the answers to them, and its report.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use swarmc_plan::{Ask, Command as Line, Schema};

use crate::core::state::End;
use crate::types::event::{Content, Record, RunStatus, Status, StepId};

/// A question to an agent, a command or a person.
#[derive(Debug)]
pub struct Turn<'a> {
    /// The step.
    pub step: &'a StepId,
    /// The attempt, from 1; of a gate always 1.
    pub attempt: u32,
    /// How often the answer to this attempt was refused already, because it is not of the declared type.
    pub repair: u32,
    /// Whether an agent mends a failure of the step (`on-failure fix`).
    pub fixing: bool,
    /// The JSON Schema that the answer must satisfy; its references lead to the `$defs` of the plan.
    pub schema: Option<&'a Schema>,
    /// The item of the for-each that this is for, and its position.
    pub item: Option<&'a (Value, u32)>,
    /// Whose turn it is in the swarm that the step runs.
    pub member: Option<Member<'a>>,
    /// Of whom, and what.
    pub asks: Asks<'a>,
}

/// A turn of an agent in a swarm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member<'a> {
    /// The agent's name in the swarm; of a decomposition or a merger the lead's, without one `swarm-supervisor`.
    pub name: &'a str,
    /// Which of its turns, from 1.
    pub turn: u32,
    /// How often it was asked in this turn, from 1.
    pub attempt: u32,
}

/// Who is asked.
#[derive(Debug)]
pub enum Asks<'a> {
    /// An agent.
    Agent {
        /// Its name.
        agent: &'a str,
        /// The system text.
        system: Option<&'a str>,
        /// The prompt as the agent gets it.
        prompt: &'a str,
    },
    /// A command.
    Command {
        /// What is started.
        command: &'a Line,
        /// What it reads.
        stdin: Option<&'a str>,
    },
    /// A `check` of the step, after its body succeeded.
    Check {
        /// What is started.
        command: &'a Line,
        /// Which of the checks, from 1.
        number: u32,
    },
    /// A tool, by an agent of a swarm.
    Tool {
        /// Its name.
        tool: &'a str,
        /// Its parameters, as JSON.
        arguments: &'a str,
    },
    /// A person, by a gate.
    Person {
        /// What the person reads.
        message: &'a str,
        /// The choices.
        options: &'a [String],
        /// What is asked besides.
        ask: &'a [Ask],
    },
}

/// The answer to a question.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// A text: what an agent says, or a command prints.
    Text(String),
    /// The same as JSON.
    Json(Value),
    /// A failure, with the exit code and the text on standard error.
    Failure {
        /// The exit code.
        exit: i32,
        /// What a command printed before: a failed one keeps its text.
        output: String,
        /// The text on standard error.
        stderr: String,
    },
    /// The choice at a gate, with the fields that were asked.
    Choice {
        /// One of the options.
        choice: String,
        /// The fields.
        fields: Map<String, Value>,
    },
    /// No person answers the gate: it takes its default, and fails if it has none.
    Unanswered,
    /// The inner answer, after so many milliseconds. The rehearsal ends an answer at its time limit.
    After(u64, Box<Answer>),
}

impl Answer {
    /// How long it takes, in milliseconds, and what it is then.
    pub(super) fn timed(self) -> (u64, Answer) {
        let (mut delay, mut answer) = (0_u64, self);
        while let Answer::After(more, then) = answer {
            (delay, answer) = (delay.saturating_add(more), *then);
        }
        (delay, answer)
    }
}

/// How a rehearsal went.
#[derive(Debug)]
pub struct Rehearsal {
    /// How the run ended.
    pub status: RunStatus,
    /// How each instance of the pipeline ended, in order.
    pub ends: Vec<End>,
    /// The value of each instance that has one, in order.
    pub values: Vec<String>,
    /// How every step ended, each round and item, in the order of that.
    pub steps: Vec<(StepId, Status)>,
    /// Agents and commands that were started, repairs included.
    pub launches: u64,
    /// Of these the turns of agents.
    pub turns: u64,
    /// What agents were asked, in order.
    pub prompts: Vec<Prompted>,
    /// What could not be rendered or evaluated, and what has the wrong type: problems of the plan itself.
    pub faults: Vec<Fault>,
    /// Values that were read and not there, so that a placeholder stood in.
    pub missing: Vec<Fault>,
    /// All that was recorded.
    pub records: Vec<Record>,
    /// The texts that were too long for a record, by the digest that the record contains instead.
    pub(super) texts: BTreeMap<String, String>,
}

impl Rehearsal {
    /// The report before anything has happened.
    pub(super) fn empty() -> Rehearsal {
        Rehearsal {
            status: RunStatus::Failed,
            ends: Vec::new(),
            values: Vec::new(),
            steps: Vec::new(),
            launches: 0,
            turns: 0,
            prompts: Vec::new(),
            faults: Vec::new(),
            missing: Vec::new(),
            records: Vec::new(),
            texts: BTreeMap::new(),
        }
    }

    /// The text that a record holds.
    pub fn text<'r>(&'r self, content: &'r Content) -> &'r str {
        match content {
            Content::Text(text) => text,
            Content::Artifact { digest, .. } => self.texts.get(digest).map(String::as_str).unwrap_or_default(),
        }
    }
}

/// What an agent was asked.
#[derive(Clone, Debug)]
pub struct Prompted {
    /// The step.
    pub step: StepId,
    /// The attempt, from 1.
    pub attempt: u32,
    /// The agent.
    pub agent: String,
    /// The prompt.
    pub prompt: String,
}

/// What went wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The step; none for the `until` of a pipeline.
    pub step: Option<StepId>,
    /// What, in words.
    pub message: String,
}
