//! Runs of an engine: `run --engine` has one carried out, and other commands see copies of them.

use std::path::Path;
use std::process::{Command, Stdio};

use miette::miette;
use swarmc_runtime::{Engine, Home, Mirror};

use crate::args;
use crate::home::find_home;
use crate::terminal;

/// The engine that was named.
pub(crate) fn connect(args: &args::Engine) -> miette::Result<Option<Engine>> {
    let Some(url) = args.engine.as_deref().filter(|url| !url.is_empty()) else { return Ok(None) };
    let engine = Engine::connect(url, args.store.as_deref()).map_err(|problem| miette!("{problem}"))?;
    Ok(Some(engine))
}

/// Copies the runs of the engine that was named, as long as this lives.
pub(crate) fn mirror(args: &args::Engine) -> miette::Result<Option<(Engine, Mirror)>> {
    let Some(engine) = connect(args)? else { return Ok(None) };
    let mirror = start_mirror(&engine, &find_home()?)?;
    Ok(Some((engine, mirror)))
}

fn start_mirror(engine: &Engine, home: &Home) -> miette::Result<Mirror> {
    Mirror::start(engine, home).map_err(|problem| miette!("{problem}"))
}

/// The commit that a run works on: that of the repository around its workspace; none where there is none.
pub(crate) fn find_commit(workspace: &Path) -> Option<String> {
    let git = |arguments: &[&str]| {
        let output =
            Command::new("git").arg("-C").arg(workspace).args(arguments).stderr(Stdio::null()).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = git(&["rev-parse", "--verify", "HEAD^{commit}"])?;
    if git(&["status", "--porcelain", "--untracked-files=no"]).is_some_and(|changed| !changed.is_empty()) {
        terminal::eprint("note: changes that are not committed are not part of the run\n");
    }
    Some(commit)
}
