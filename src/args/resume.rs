//! The arguments of `swarmc resume`.

use std::path::PathBuf;

use clap::Args;

use super::Show;

/// Resumes a run that was stopped, killed or has failed.
///
/// Finished steps do not run again. Resume a failed run after its cause is gone (`--retry-failed`), or with a fixed
/// spec (`--with`): a loop continues in the round that failed, a for-each with the items that failed.
#[derive(Debug, Args)]
pub(crate) struct Resume {
    /// The run: its id, the beginning of it, or `last`; without it, the latest run that can be resumed, or with one of
    /// the options below the latest that has not succeeded.
    pub(crate) run: Option<String>,
    /// Runs the steps again that failed without being handled, and all steps that depend on them or were ended by them;
    /// items of a `for-each` with `join=settled` too.
    #[arg(long)]
    pub(crate) retry_failed: bool,
    /// Runs this step again, and all steps that depend on it: by its name, or as `swarmc inspect` lists it
    /// (`polish/draft`, `triage[3]`). May be repeated.
    #[arg(long, value_name = "STEP")]
    pub(crate) retry: Vec<String>,
    /// Replaces the run's spec by this one, and runs failed steps again (`--retry-failed`). Finished steps that do not
    /// run again must be the same in it; the command lists the steps that differ.
    #[arg(long, value_name = "SPEC")]
    pub(crate) with: Option<PathBuf>,
    /// Runs unattended: each gate takes its `headless` option at once, or else its `on-timeout`. Implied when `CI` is
    /// set.
    #[arg(long)]
    pub(crate) headless: bool,
    /// For a program that starts a run which outlives it: the run leaves its session.
    #[arg(long, hide = true)]
    pub(crate) detach: bool,
    #[command(flatten)]
    pub(crate) show: Show,
}
