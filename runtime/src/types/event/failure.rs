//! Why an attempt failed, why a step did not run, and how steps and runs end.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why an attempt failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "cause", rename_all = "snake_case")]
pub enum Failure {
    /// Its process exited with something else than 0.
    Exit,
    /// Its process could not be started.
    Spawn {
        /// What is missing, and what to type.
        message: String,
    },
    /// It took longer than `timeout`.
    Timeout {
        /// The limit in milliseconds.
        after_ms: u64,
    },
    /// It put out nothing for longer than `timeout idle=`.
    Idle {
        /// The limit in milliseconds.
        after_ms: u64,
    },
    /// A `check` failed.
    Check {
        /// The command line.
        line: String,
        /// Its exit code.
        exit: Option<i32>,
    },
    /// The agent's own stream said that the turn failed.
    Agent {
        /// In its words.
        message: String,
    },
    /// Its output is not of the declared type, also after the turns that the agent had to mend it.
    Invalid {
        /// What is wrong with it.
        violations: Vec<String>,
    },
    /// A text could not be rendered, or a file not be read.
    Render {
        /// What and where.
        message: String,
    },
    /// A step, an item or the rounds inside failed, and nothing there handles it.
    Inside {
        /// Which, and why.
        message: String,
    },
    /// The budget of the agent or of the task refuses it.
    Budget {
        /// Which, and what was wanted of it.
        message: String,
    },
    /// What its agent left in its folder (`files`) says that it failed, or is not what it should be.
    Files {
        /// What is wrong.
        message: String,
        /// The agent says that another attempt would fail as well: it is not repeated.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        lasting: bool,
    },
    /// A gate was answered with `fail`.
    Refused,
    /// A person interrupted it: its agent reads what that person wrote, in a further turn.
    Interrupted,
    /// The run ended it (`stop`, a person, a fatal error); it is not repeated.
    Cancelled,
}

/// Why a step was skipped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "because", rename_all = "snake_case")]
pub enum SkipReason {
    /// A need does not hold.
    Need {
        /// The step needed, with how it ended.
        step: String,
        /// `succeeded`, `failed` or `skipped`.
        status: Status,
    },
    /// None of the needs of a `join any` or `none-failed` holds.
    Join,
    /// Its own `when` is false.
    When,
    /// An edge with `kind=spawn` leads to it, and no agent asked for it.
    Unspawned,
    /// It failed, and says `on-failure skip`.
    OnFailure,
    /// Its pipeline was ended by a `stop`.
    Stopped {
        /// The stop.
        by: String,
    },
    /// A failure that nothing handles ended the pipeline first (`fail-fast`).
    FailFast,
    /// The budget of the run was spent, or its time over.
    OverBudget,
    /// A failure that nothing handles ended its loop, call or item first.
    Ended {
        /// The step that failed.
        by: String,
    },
}

/// How a step ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It did what it should.
    Succeeded,
    /// Every attempt failed.
    Failed,
    /// It did not run.
    Skipped,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// Done.
    Succeeded,
    /// A failure that nothing handled, an exhausted iteration, or a `stop status=failure`.
    Failed,
    /// The workflow's budget was spent, or its time over.
    OverBudget,
}
