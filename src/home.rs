//! Finds the folder of runs, and the run that a person names.

use std::path::{Path, PathBuf};

use miette::{IntoDiagnostic, miette};
use swarmc_runtime::{Home, RunError, RunFolder};
use swarmc_view::{Past, PastError, RunReport};

/// `$SWARM_HOME`, else `~/.swarm`.
pub(crate) fn find_home() -> miette::Result<Home> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let root = set("SWARM_HOME").or_else(|| set("HOME").map(|home| home.join(".swarm")));
    let root =
        root.ok_or_else(|| miette!(help = "set SWARM_HOME to a folder", "neither SWARM_HOME nor HOME is set"))?;
    Ok(Home::new(std::path::absolute(root).into_diagnostic()?))
}

/// The run that is named, or the newest one of which `fits` holds.
pub(crate) fn find_run(
    home: &Home,
    name: Option<&str>,
    what: &str,
    fits: impl Fn(&RunFolder) -> bool,
) -> miette::Result<RunFolder> {
    if let Some(name) = name {
        return home.find(name).into_diagnostic();
    }
    home.list_folders().into_diagnostic()?.into_iter().find(fits).ok_or_else(|| miette!("no run {what}"))
}

/// What is left of a run whose journal cannot be read, and what to do with it.
pub(crate) fn describe_remains(folder: &RunFolder) -> String {
    let logs = folder.path.join("logs");
    let counted = [("output", &folder.outputs), ("log", &logs)].map(|(what, path)| match list_files(path).len() {
        0 => None,
        1 => Some(format!("1 {what} in `{}`", path.display())),
        count => Some(format!("{count} {what}s in `{}`", path.display())),
    });
    let counted: Vec<String> = counted.into_iter().flatten().collect();
    let id = &folder.id;
    match counted.is_empty() {
        true => format!("no outputs of its tasks are left: `swarmc prune {id}` deletes it"),
        false => format!(
            "outputs of its tasks exist: {}; `swarmc logs {id}` prints the logs, `swarmc prune {id}` deletes everything",
            counted.join(", ")
        ),
    }
}

/// The files beneath a folder that hold something, in order.
pub(crate) fn list_files(folder: &Path) -> Vec<PathBuf> {
    let (mut found, mut open) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(meta) if meta.is_dir() => open.push(entry.path()),
                Ok(meta) if meta.is_file() && meta.len() > 0 => found.push(entry.path()),
                _ => {}
            }
        }
    }
    found.sort();
    found
}

/// Reads a run back from its folder.
///
/// # Errors
/// Its journal cannot be read, which the help says what is left of, or does not match its plan.
pub(crate) fn read_past(folder: &RunFolder) -> miette::Result<Past> {
    Past::read(folder).map_err(|error| describe_unreadable(folder, error))
}

/// Reads a run that is about to go on: its plan, and its report, without its records.
///
/// # Errors
/// As [`read_past`].
pub(crate) fn read_report(folder: &RunFolder) -> miette::Result<(Past, RunReport, u64)> {
    Past::read_report(folder).map_err(|error| describe_unreadable(folder, error))
}

fn describe_unreadable(folder: &RunFolder, error: PastError) -> miette::Report {
    match error {
        PastError::Run(error @ RunError::Journal(_)) => {
            let help = describe_remains(folder);
            miette!(help = help, "cannot read run `{}`: {error}", folder.id)
        }
        error => miette!("{error}"),
    }
}
