//! What cannot be had of a run, as the terminal shows it.
//!
//! In: a problem of the crate `view`, which knows no terminal. Out: a report with the same words.

use miette::miette;
use swarmc_view::Problem;

/// A problem as what a command ends with.
pub(crate) fn to_report(Problem { message, help }: Problem) -> miette::Report {
    match help {
        Some(help) => miette!(help = help, "{message}"),
        None => miette!("{message}"),
    }
}
