//! Tests of workflows, ready for `swarmc test`: the compiler has resolved names, read files and checked types.
//!
//! Tests are no part of the plan. Their spans point into the sources of the compilation.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::source::Span;

/// A test.
#[derive(Clone, Debug)]
pub struct Test {
    /// Its name.
    pub name: String,
    /// Where that stands.
    pub span: Span,
    /// The pipeline, or the swarm, which is a pipeline of one step then.
    pub pipeline: String,
    /// Values of parameters, as the command line takes them; paths from the workspace.
    pub params: BTreeMap<String, String>,
    /// What is piped into the run.
    pub stdin: Option<String>,
    /// Who answers what; the first that fits answers.
    pub fakes: Vec<Fake>,
    /// What must hold.
    pub expectations: Vec<Expectation>,
}

/// When something is asked; what is left out may be any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TurnFilter {
    /// The round, from 1.
    pub iteration: Option<u32>,
    /// The attempt, from 1.
    pub attempt: Option<u32>,
    /// The turn of the attempt, from 1.
    pub turn: Option<u32>,
    /// The item of a for-each, from 0.
    pub index: Option<u32>,
}

/// What of a step is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Its agent, its command, or the person of its gate.
    Body,
    /// One of its checks, from 1.
    Check(u32),
    /// The agent that mends its failure.
    Fix,
    /// A tool that a member of a swarm calls.
    Tool,
}

/// A fake: the answer that a test gives in place of an agent, a command or a person.
#[derive(Clone, Debug)]
pub struct Fake {
    /// The step, or a member of a swarm.
    pub step: String,
    /// Where it is named.
    pub span: Span,
    /// Of what.
    pub part: Part,
    /// The tool that a member of a swarm calls.
    pub tool: Option<String>,
    /// When.
    pub moment: TurnFilter,
    /// The texts, one for each time, the last from then on; each with its place.
    pub texts: Vec<(String, Span)>,
    /// The exit code.
    pub exit: i32,
    /// How long it takes, in milliseconds.
    pub delay_ms: u64,
    /// What a person chooses: an option, or `fail`.
    pub choice: Option<String>,
    /// What the person says besides.
    pub fields: Map<String, Value>,
}

/// Something that must hold.
#[derive(Clone, Debug)]
pub struct Expectation {
    /// The whole node.
    pub span: Span,
    /// What.
    pub expected: Expected,
}

/// What must hold.
#[derive(Clone, Debug)]
pub enum Expected {
    /// The run ends so.
    Status(Ending),
    /// A step ends so.
    Step {
        /// The step.
        step: String,
        /// Its round and item.
        moment: TurnFilter,
        /// How.
        status: StepEnd,
    },
    /// Each of these steps begins after the one before it has ended.
    Order(Vec<String>),
    /// What a step is asked.
    Prompt {
        /// The step.
        step: String,
        /// When.
        moment: TurnFilter,
        /// What holds each time.
        holds: Vec<Hold>,
    },
    /// The value of a step.
    Output {
        /// The step.
        step: String,
        /// Its round and item.
        moment: TurnFilter,
        /// What holds.
        holds: Vec<Hold>,
    },
    /// The value of the pipeline.
    Result(Vec<Hold>),
    /// So many rounds, of a loop or of the pipeline.
    Rounds(Option<String>, u64),
    /// Turns, commands and checks that are started.
    Launches(Count),
    /// Turns of agents.
    Turns(Count),
    /// Tokens at most.
    Tokens(u64),
    /// Millionths of a dollar at most.
    Cost(u64),
    /// What holds of a swarm with a coordinator.
    Team {
        /// The step that runs it; none: the only one.
        of: Option<String>,
        /// What.
        expected: TeamExpected,
    },
}

/// What is expected of a swarm with a coordinator.
#[derive(Clone, Debug)]
pub enum TeamExpected {
    /// Its plan ends at this version.
    Plan {
        /// The version; 0: there is none.
        version: u32,
    },
    /// An item of its plan ends so.
    Item {
        /// The item.
        item: String,
        /// Its state, as `swarmc inspect` writes it.
        state: String,
        /// Its owner; none: any.
        owner: Option<String>,
    },
    /// A worktree of it ends so.
    Worktree {
        /// The worktree.
        worktree: String,
        /// `unmerged`, `merging` or `merged`.
        state: String,
    },
    /// An agent receives a message with this text.
    Notice {
        /// The agent.
        to: String,
        /// The text.
        contains: String,
    },
}

/// What holds of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hold {
    /// This stands in it.
    Contains(String),
    /// This does not.
    Lacks(String),
    /// This pattern matches somewhere.
    Matches(String),
    /// It is this, as text or as JSON.
    Equals(String),
    /// It is what a file says.
    Snapshot,
}

/// How many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// Exactly.
    Exactly(u64),
    /// At most.
    Most(u64),
}

/// How a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Done.
    Success,
    /// Failed.
    Failure,
    /// The workflow's budget is spent.
    OverBudget,
}

/// How a step ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepEnd {
    /// It did what it should.
    Succeeded,
    /// Every attempt failed.
    Failed,
    /// It did not run.
    Skipped,
}
