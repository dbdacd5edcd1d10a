//! `--reuse`, `--from` and `--until`: what a run takes from earlier ones, and which of its steps run.

use std::path::Path;

use miette::{IntoDiagnostic, miette};
use swarmc_runtime::{Home, Reuse, ReuseFrom};

/// Reads the value of `--reuse`: `any`, `last`, or a run of this home.
pub(crate) fn parse_reuse(home: &Home, from: &str) -> miette::Result<Reuse> {
    let from = match from {
        "any" => ReuseFrom::Any,
        "last" => ReuseFrom::Last,
        // `run --reuse SPEC`: the flag took the spec.
        spec if Path::new(spec).exists() && home.find(spec).is_err() => {
            return Err(miette!("`--reuse` names a run, and `{spec}` is none: write `swarmc run {spec} --reuse`"));
        }
        run => ReuseFrom::Run(home.find(run).into_diagnostic()?.id),
    };
    Ok(Reuse { from, anew: Vec::new() })
}
