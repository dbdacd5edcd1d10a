//! Describes events in words: for people, and for directives and conditions.

use super::{Failure, RunStatus, Status};

impl Status {
    /// The word that directives and conditions see.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Succeeded => "succeeded",
            Status::Failed => "failed",
            Status::Skipped => "skipped",
        }
    }
}

impl RunStatus {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            RunStatus::Succeeded => "succeeded",
            RunStatus::Failed => "failed",
            RunStatus::OverBudget => "over_budget",
        }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::Exit => f.write_str("it exited with an error"),
            Failure::Spawn { message }
            | Failure::Agent { message }
            | Failure::Render { message }
            | Failure::Inside { message }
            | Failure::Budget { message }
            | Failure::Files { message, .. } => f.write_str(message),
            Failure::Refused => f.write_str("it was not approved"),
            Failure::Timeout { after_ms } => write!(f, "it took longer than {}", format_duration(*after_ms)),
            Failure::Idle { after_ms } => write!(f, "it printed nothing for {}", format_duration(*after_ms)),
            Failure::Check { line, exit: Some(exit) } => write!(f, "the check `{line}` exited with {exit}"),
            Failure::Check { line, exit: None } => write!(f, "the check `{line}` could not be run"),
            Failure::Invalid { violations } => {
                write!(f, "its output is not of the declared type: {}", violations.join("; "))
            }
            Failure::Interrupted => f.write_str("a person interrupted it"),
            Failure::Cancelled => f.write_str("it was ended"),
        }
    }
}

/// Milliseconds in the largest unit of the language that divides them.
pub(crate) fn format_duration(ms: u64) -> String {
    let units = [(3_600_000, "h"), (60_000, "m"), (1_000, "s")];
    match units.into_iter().find(|&(unit, _)| ms >= unit && ms.is_multiple_of(unit)) {
        Some((unit, name)) => format!("{}{name}", ms / unit),
        None => format!("{ms}ms"),
    }
}
