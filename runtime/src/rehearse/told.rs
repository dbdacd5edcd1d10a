//! What a rehearsal asks, is answered, and tells.

use serde_json::{Map, Value};
use swarmc_plan::{Ask, Command as Line, Schema};

use crate::event::{Record, RunStatus, Status, StepId};
use crate::state::End;

/// What somebody is asked for.
#[derive(Debug)]
pub struct Turn<'a> {
    /// The step.
    pub step: &'a StepId,
    /// The attempt, from 1; of a gate always 1.
    pub attempt: u32,
    /// How often the answer to this attempt was refused already, because it is not of the declared type.
    pub repair: u32,
    /// The JSON Schema that the answer must satisfy; its references lead to the `$defs` of the plan.
    pub schema: Option<&'a Schema>,
    /// The item of the for-each that this is for, and its position.
    pub item: Option<&'a (Value, u32)>,
    /// Of whom, and what.
    pub asks: Asks<'a>,
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

/// What somebody answers.
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
    /// Nobody answers the gate: what it says about that happens, and where it says nothing it fails.
    Nobody,
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
    /// What could not be rendered or evaluated, and what is of the wrong type: reasons that stand in the plan.
    pub faults: Vec<Fault>,
    /// Values that were read and not there, so that a placeholder stood in.
    pub missing: Vec<Fault>,
    /// All that was recorded.
    pub records: Vec<Record>,
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
