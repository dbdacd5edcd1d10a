//! The row of a step: where it stands, what it used, and why it ended so.

use serde::{Deserialize, Serialize};
use swarmc_runtime::{Content, Reused, SkipReason, Status, StepId, Usage};

use super::words::describe_skip;
use crate::documents::StepStatus;

/// One step of one instance in one round. A run can have very many: what few of them have is kept apart.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Row {
    /// The step.
    pub step: StepId,
    /// Where it stands.
    pub state: RowState,
    /// The last attempt, from 1; 0 when none began.
    pub attempt: u32,
    /// The attempts that one turn of it has at most.
    pub attempts: u32,
    /// When it began, in milliseconds since 1970.
    pub started_ms: u64,
    /// When its last attempt ended, in milliseconds since 1970.
    pub ended_ms: u64,
    /// Why it was skipped.
    #[serde(default, skip_serializing_if = "is_default")]
    pub skip: Option<Box<SkipReason>>,
    /// Why the last attempt failed, in words.
    #[serde(default, skip_serializing_if = "is_default")]
    pub failure: Option<String>,
    /// The exit code of its last attempt.
    pub exit: Option<i32>,
    /// The end of the standard error of its last attempt.
    #[serde(default, skip_serializing_if = "is_default")]
    pub stderr: Box<str>,
    /// What its turns used, of all attempts.
    #[serde(default, skip_serializing_if = "is_default")]
    pub usage: Option<Box<Usage>>,
    /// The conversation that its provider keeps.
    #[serde(default, skip_serializing_if = "is_default")]
    pub session: Option<Box<str>>,
    /// The round of its instance that it belongs to.
    pub(super) round: u32,
    /// The agent that took the last turn in place of the step's own.
    #[serde(default, skip_serializing_if = "is_default")]
    pub fallback: Option<Box<str>>,
    /// The further turns in which answers were mended, of all attempts.
    #[serde(default, skip_serializing_if = "is_default")]
    pub repairs: u32,
    /// The attempts of its earlier turns, and those in which files were summed up.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) earlier: u32,
    /// The agent whose turn the attempt is in which files are summed up for the one after it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub summarizer: Option<Box<str>>,
    /// The turns of a step that edges lead to or away from, and its envelopes.
    #[serde(default, skip_serializing_if = "is_default")]
    pub post: Option<Box<EnvelopeCounts>>,
    /// What a gate asks.
    #[serde(default, skip_serializing_if = "is_default")]
    pub question: Option<Box<Content>>,
    /// Why a `stop` of the pipeline ended it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub message: Option<Box<Content>>,
    /// The earlier result that its last attempt took.
    #[serde(default, skip_serializing_if = "is_default")]
    pub reused: Option<Box<Reused>>,
    /// Why no earlier result took the place of its last attempt, in a run that looks for one.
    #[serde(default, skip_serializing_if = "is_default")]
    pub missed: Option<Box<str>>,
}

/// A snapshot has very many rows: what is as it begins is left out.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// What a step did with its envelopes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct EnvelopeCounts {
    /// The turns that ended well.
    pub turns: u32,
    /// The envelopes that it sent.
    pub sent: u32,
    /// The envelopes that it read.
    pub read: u32,
}

impl EnvelopeCounts {
    /// In a few words.
    pub fn summarize(&self) -> String {
        let turns = if self.turns == 1 { "1 turn".to_owned() } else { format!("{} turns", self.turns) };
        format!("{turns}, {} sent, {} read", self.sent, self.read)
    }
}

/// Where a step stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum RowState {
    /// At work.
    Running,
    /// Between two attempts.
    Waiting,
    /// Between two turns: it waits for envelopes.
    Idle,
    /// It repeats itself, and waits for a decision whether to go on.
    Stalled,
    /// A gate without an answer.
    Asking,
    /// It has not begun: it waits for other steps, or until there is room for it.
    Blocked,
    /// A stop ended it.
    Cancelled,
    /// It is over.
    Ended(Status),
}

impl RowState {
    /// The word for it in documents and tables.
    pub fn as_str(self) -> &'static str {
        StepStatus::from(self).as_str()
    }
}

/// How many steps of the current rounds stand where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Those that succeeded.
    pub succeeded: usize,
    /// Those that failed.
    pub failed: usize,
    /// Those that were skipped.
    pub skipped: usize,
    /// Those that a stop ended.
    pub cancelled: usize,
    /// Those that go on.
    pub running: usize,
}

impl Row {
    /// That of a step that has not begun.
    pub fn blocked(step: StepId) -> Row {
        Row {
            step,
            state: RowState::Blocked,
            attempt: 0,
            attempts: 1,
            started_ms: 0,
            ended_ms: 0,
            skip: None,
            failure: None,
            exit: None,
            stderr: Box::default(),
            usage: None,
            session: None,
            round: 1,
            fallback: None,
            repairs: 0,
            earlier: 0,
            summarizer: None,
            post: None,
            question: None,
            message: None,
            reused: None,
            missed: None,
        }
    }

    /// Why it did not succeed, in words; empty when it did.
    pub fn reason(&self) -> String {
        match (self.skip.as_deref(), &self.failure) {
            (Some(SkipReason::OnFailure), Some(failure)) => failure.clone(),
            (Some(reason), _) => describe_skip(reason),
            (None, Some(failure)) => failure.clone(),
            (None, None) => String::new(),
        }
    }

    /// The attempts of the turn that goes on, this one included.
    pub fn turn_attempts(&self) -> u32 {
        self.attempt - self.earlier.min(self.attempt)
    }

    /// Which turn goes on, from 2.
    pub fn current_turn(&self) -> Option<u32> {
        self.post.as_ref().map(|post| post.turns + 1).filter(|&turn| turn > 1)
    }

    /// How long it has taken until then.
    pub fn elapsed(&self, until: u64) -> std::time::Duration {
        std::time::Duration::from_millis(until.saturating_sub(self.started_ms))
    }
}
