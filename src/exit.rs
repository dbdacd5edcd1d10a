//! The exit codes of the process, all in one place.

use std::process::ExitCode;

/// What an exit code says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done.
    Done = 0,
    /// The spec has errors.
    Spec = 1,
    /// Wrong usage, or the environment failed.
    Usage = 2,
    /// The workflow failed.
    Failed = 3,
    /// Stopped by a person; the run can be resumed.
    Stopped = 4,
    /// Over budget, or out of time.
    OverBudget = 5,
}

impl Exit {
    /// That of another process of swarmc.
    pub(crate) fn from_code(code: Option<i32>) -> Exit {
        let all = [Exit::Done, Exit::Spec, Exit::Usage, Exit::Failed, Exit::Stopped, Exit::OverBudget];
        all.into_iter().find(|exit| Some(*exit as i32) == code).unwrap_or(Exit::Usage)
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}
