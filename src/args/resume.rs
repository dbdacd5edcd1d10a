//! The arguments of `swarmc resume`.

use std::path::PathBuf;

use clap::Args;

use super::Show;

/// Goes on with a run that was stopped or killed; or that has failed, with what failed.
///
/// What finished does not run again. A run that failed goes on where its cause is gone (`--retry-failed`), or with a mended
/// spec (`--with`): in a loop in the round that failed, in a for-each with the items that did.
#[derive(Debug, Args)]
pub(crate) struct Resume {
    /// The run: its id, the beginning of it, or `last`; without it, the latest that can be resumed, or with one of the
    /// options below the latest that has not succeeded.
    pub(crate) run: Option<String>,
    /// Runs again what failed and was not handled, with all that depends on it or was ended by it. What finished stays.
    #[arg(long)]
    pub(crate) retry_failed: bool,
    /// Runs this step again, with all that depends on it: by its name, or as `swarmc inspect` lists it (`polish/draft`,
    /// `triage[3]`). May be repeated.
    #[arg(long, value_name = "STEP")]
    pub(crate) retry: Vec<String>,
    /// Goes on with this spec in place of the run's own, and runs again what failed (`--retry-failed`). Steps that have
    /// finished and do not run again must be the same in it; those that are not are listed.
    #[arg(long, value_name = "SPEC")]
    pub(crate) with: Option<PathBuf>,
    /// Says that nobody can answer gates: each takes at once what its `headless` says, or else its `on-timeout`. Implied where
    /// `CI` is set.
    #[arg(long)]
    pub(crate) headless: bool,
    #[command(flatten)]
    pub(crate) show: Show,
}
