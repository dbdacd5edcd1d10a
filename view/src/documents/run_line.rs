//! The lines of `swarmc run --json` and `swarmc resume --json`.

use schemars::JsonSchema;
use serde::Serialize;
use serde::ser::{Error as _, SerializeMap, Serializer};
use swarmc_runtime::{Difference, Divergence, Record, Signal, StepId};

use super::Version;

/// A line of `swarmc run --json`.
#[derive(Debug, JsonSchema)]
pub struct RunLine {
    /// The version of this form.
    pub version: Version,
    /// What it says.
    #[schemars(flatten)]
    pub line: RunLineKind,
}

impl Serialize for RunLine {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // The journal has a version of its own, in its first record.
        let fields = serde_json::to_value(&self.line).map_err(S::Error::custom)?;
        let fields = fields.as_object().into_iter().flatten().filter(|(name, _)| *name != "version");
        let mut line = serializer.serialize_map(None)?;
        line.serialize_entry("version", &self.version)?;
        fields.into_iter().try_for_each(|(name, field)| line.serialize_entry(name, field))?;
        line.end()
    }
}

/// What a line says.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum RunLineKind {
    /// A record of the journal.
    Record(Box<Record>),
    /// A line that a task printed.
    Output {
        /// The task.
        step: String,
        /// Its round, from 1.
        iteration: u32,
        /// Its instance of the pipeline, from 1.
        instance: u32,
        /// What it is inside of.
        within: Option<String>,
        /// The attempt.
        attempt: u32,
        /// Where it printed the line.
        stream: TaskStream,
        /// The line.
        text: String,
    },
    /// Something for a person.
    Notice {
        /// What.
        text: String,
    },
    /// How the run ended: the last line.
    Result(RunResult),
    /// Where a replay and its recording part: the last line.
    Divergence {
        /// The run.
        run: String,
        /// The step; null where the end of the run differs.
        step: Option<StepId>,
        /// The attempt.
        attempt: u32,
        /// In what way they differ.
        because: DivergenceCause,
        /// In words.
        message: String,
        /// The text that differs.
        what: Option<String>,
        /// As it was recorded; null where there was none.
        recorded: Option<String>,
        /// As it is now; null where there is none.
        now: Option<String>,
        /// The exit code.
        exit: u8,
    },
    /// What stands in no journal.
    #[serde(untagged)]
    Signal(Signal),
}

/// Where a task prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// How a run ended.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RunResult {
    /// The run.
    pub run: String,
    /// How it ended.
    pub status: ResultStatus,
    /// The exit code.
    pub exit: u8,
    /// The result of each instance.
    pub values: Vec<String>,
    /// The steps that failed, and were not handled.
    pub failed: Vec<StepId>,
    /// The instances that succeeded without a result.
    pub skipped_results: Vec<SkippedResult>,
}

/// How a run ended, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ResultStatus {
    /// It did what it should.
    Succeeded,
    /// It failed.
    Failed,
    /// A person stopped it.
    Stopped,
    /// A budget was spent, or its time.
    OverBudget,
}

/// An instance that succeeded without a result, because every step of its `result` was skipped.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SkippedResult {
    /// The instance of the pipeline, from 1.
    pub instance: u32,
    /// The first of these steps.
    pub step: String,
    /// Why it was skipped.
    pub reason: String,
}

/// In what way a replay and its recording part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DivergenceCause {
    /// A text is another.
    Differs,
    /// The recording does not hold it.
    Missing,
    /// A gate had no answer.
    Unanswered,
    /// The recorded run ended what goes on now.
    GoesOn,
    /// The recorded run ended a turn of a swarm.
    Unended,
    /// An envelope or a message cannot be sent any more.
    Unsent,
    /// An answer does not fit its gate.
    Unfit,
}

impl From<RunLineKind> for RunLine {
    fn from(line: RunLineKind) -> RunLine {
        RunLine { version: Version, line }
    }
}

impl RunLineKind {
    /// Where a replay and its recording part.
    pub fn divergence(divergence: &Divergence, exit: u8) -> RunLineKind {
        let (because, what, recorded, now) = match &divergence.difference {
            Difference::Text { what, recorded, now } => {
                (DivergenceCause::Differs, Some(what), recorded.as_ref(), now.as_ref())
            }
            Difference::Missing => (DivergenceCause::Missing, None, None, None),
            Difference::Unanswered => (DivergenceCause::Unanswered, None, None, None),
            Difference::GoesOn => (DivergenceCause::GoesOn, None, None, None),
            Difference::Unended => (DivergenceCause::Unended, None, None, None),
            Difference::Unsent { .. } => (DivergenceCause::Unsent, None, None, None),
            Difference::Unfit(_) => (DivergenceCause::Unfit, None, None, None),
        };
        RunLineKind::Divergence {
            run: divergence.run.clone(),
            step: divergence.step.clone(),
            attempt: divergence.attempt,
            because,
            message: divergence.to_string(),
            what: what.cloned(),
            recorded: recorded.cloned(),
            now: now.cloned(),
            exit,
        }
    }
}
