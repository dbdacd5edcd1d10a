//! Where a replay differs from its recording.

use std::fmt;

use crate::types::event::StepId;

/// The first request of a replay that its recording does not contain.
#[derive(Clone, Debug, PartialEq)]
pub struct Divergence {
    /// The replay's run.
    pub run: String,
    /// The step; none where it is the end of the run that differs.
    pub step: Option<StepId>,
    /// The attempt, from 1.
    pub attempt: u32,
    /// The step with its round, attempt and turn, in words.
    pub place: String,
    /// What is different.
    pub difference: Difference,
}

/// What is different.
#[derive(Clone, Debug, PartialEq)]
pub enum Difference {
    /// A text, with the placeholders for folders and ids in recordings.
    Text {
        /// Which: `the prompt`, `the command`, ….
        what: String,
        /// As it was recorded; none where there was none.
        recorded: Option<String>,
        /// As it is now.
        now: Option<String>,
    },
    /// The recording does not hold it.
    Missing,
    /// A gate that no person answered while the recorded run went on.
    Unanswered,
    /// The recorded run ended the attempt from outside, and this one does not.
    GoesOn,
    /// A turn or a call of a swarm was ended before it was answered in the recording, and is not now.
    Unended,
    /// What was sent is refused now.
    Unsent {
        /// Why.
        problem: String,
        /// The file of the recording and its line.
        at: String,
    },
    /// The recorded answer does not fit the gate any more: why.
    Unfit(String),
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = &self.place;
        match &self.difference {
            Difference::Text { what, recorded: Some(_), now: Some(_) } => {
                write!(f, "{place}: {what} differs from the recording")
            }
            Difference::Text { what, recorded: None, .. } => write!(f, "{place}: {what} is not in the recording"),
            Difference::Text { what, .. } => write!(f, "{place}: {what} is in the recording, but is not asked now"),
            Difference::Missing => write!(f, "{place} is not in the recording"),
            Difference::Unanswered => write!(f, "{place} waits for an answer, but the recording has none"),
            Difference::GoesOn => write!(f, "{place} was ended from outside in the recording, but continues now"),
            Difference::Unended => write!(f, "{place} has no answer in the recording, but waits for one now"),
            Difference::Unsent { problem, at } => write!(f, "{place} cannot be sent now ({at}): {problem}"),
            Difference::Unfit(problem) => write!(f, "{place}: the recorded answer does not fit: {problem}"),
        }
    }
}
