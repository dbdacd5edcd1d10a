//! `swarmc shim` as a program of its own: there is one for each agent that runs, and it is to be small.
//!
//! `swarmc` starts this one where it lies beside it, and itself otherwise.

use std::io::Write as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    // It is started by a descriptor, whose number would be its name otherwise. Without /proc it has that.
    let _ = std::fs::write("/proc/self/comm", "swarmc-shim");
    let Err(problem) = swarmc_runtime::serve_shim() else { return ExitCode::SUCCESS };
    // Where it cannot be said, the exit code says it.
    let _ = writeln!(std::io::stderr(), "swarmc-shim: {problem}");
    ExitCode::FAILURE
}
