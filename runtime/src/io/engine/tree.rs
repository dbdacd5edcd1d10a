//! The files that a run works on, where its driver is: a worktree at its commit, to which the changes of its processes are
//! added one after another.
//!
//! Invariant: a change is applied whole or not at all, and the list of those that were applied is in the folder of the run
//! before anything that follows from them is recorded.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::{fs, io};

use serde::{Deserialize, Serialize};

use super::Objects;
use crate::types::engine::{Files, Patch, Started};

/// In the folder of a run: what was applied, in order.
pub(crate) const PATCHES: &str = "patches.json";

/// A change that was applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Applied {
    #[serde(flatten)]
    of: Started,
    digest: String,
    /// The paths that it changes.
    paths: Vec<String>,
}

/// The files of a run.
#[derive(Debug)]
pub(crate) struct RunTree {
    /// Where they lie.
    pub folder: PathBuf,
    /// The repository and the commit; none where the run has none.
    repository: Option<(PathBuf, String)>,
    list: PathBuf,
    applied: Mutex<Vec<Applied>>,
}

impl RunTree {
    /// The files of the run whose folder is `run`, in `folder`: made anew where they are not there, with all that was
    /// applied.
    ///
    /// # Errors
    /// The commit is not in the repository, or Git fails: says why, and what to type.
    pub(crate) async fn open(
        run: &Path,
        folder: PathBuf,
        repository: Option<(PathBuf, String)>,
        objects: &Objects,
    ) -> Result<RunTree, String> {
        let list = run.join(PATCHES);
        let applied: Vec<Applied> = match fs::read(&list) {
            Ok(text) => serde_json::from_slice(&text).map_err(|error| format!("{}: {error}", list.display()))?,
            Err(_) => Vec::new(),
        };
        let tree = RunTree { folder, repository, list, applied: Mutex::default() };
        tree.lay_out()?;
        for change in &applied {
            let patch = objects.get(&change.digest).await?;
            tree.apply_bytes(&patch).map_err(|problem| {
                format!("the change of `{}` cannot be applied again: {problem}", change.of.process)
            })?;
        }
        *tree.lock() = applied;
        Ok(tree)
    }

    /// What a process that starts now finds.
    pub(crate) fn files(&self) -> Files {
        let commit = self.repository.as_ref().map(|(_, commit)| commit.clone());
        Files { commit, patches: self.lock().iter().map(|applied| applied.digest.clone()).collect() }
    }

    /// Adds what a process has changed; what was added before is not added again.
    ///
    /// # Errors
    /// It does not fit what others have changed meanwhile: names both, and the files.
    pub(crate) fn apply(&self, of: &Started, seen: usize, patch: &Patch, bytes: &[u8]) -> Result<(), String> {
        let mut applied = self.lock();
        if applied.iter().any(|known| known.of == *of) {
            return Ok(());
        }
        self.apply_bytes(bytes).map_err(|problem| {
            let name = |of: &Started| step_name(&of.process).to_owned();
            // The steps that changed one of its files since this process began.
            let others: BTreeMap<&String, String> = applied
                .iter()
                .skip(seen)
                .flat_map(|other| other.paths.iter().map(|path| (path, name(&other.of))))
                .filter(|(path, _)| patch.paths.contains(path))
                .collect();
            let files: Vec<String> =
                others.iter().map(|(path, other)| format!("`{path}`, which `{other}` has changed")).collect();
            match files.is_empty() {
                true => format!("its changes cannot be applied: {problem}"),
                false => format!(
                    "the changes of `{}` do not fit: it changes {}; let one of both wait for the other",
                    name(of),
                    files.join(" and ")
                ),
            }
        })?;
        applied.push(Applied { of: of.clone(), digest: patch.digest.clone(), paths: patch.paths.clone() });
        self.write_list(&applied).map_err(|error| format!("{} cannot be written: {error}", self.list.display()))
    }

    /// Removes the files, which are not needed any more.
    pub(crate) fn clear(&self) {
        if let Some((repository, _)) = &self.repository {
            let _ = git(repository, &["worktree", "remove", "--force", &self.folder.to_string_lossy()], None);
        }
        let _ = fs::remove_dir_all(&self.folder);
    }

    fn lay_out(&self) -> Result<(), String> {
        self.clear();
        let Some((repository, commit)) = &self.repository else {
            return fs::create_dir_all(&self.folder).map_err(|error| format!("{}: {error}", self.folder.display()));
        };
        let has = |name: &str| git(repository, &["cat-file", "-e", &format!("{name}^{{commit}}")], None).is_ok();
        if !commit.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(format!("`{commit}` is no commit"));
        }
        if !has(commit) {
            // Some servers give a single commit, others only what branches lead to.
            let _ = git(repository, &["fetch", "--quiet", "origin", commit], None)
                .or_else(|_| git(repository, &["fetch", "--quiet", "--all"], None));
        }
        if !has(commit) {
            return Err(format!(
                "commit {commit} is not in {}: push it, so that every machine of the run has it",
                repository.display()
            ));
        }
        if let Some(parent) = self.folder.parent() {
            fs::create_dir_all(parent).map_err(|error| format!("{}: {error}", parent.display()))?;
        }
        let folder = self.folder.to_string_lossy();
        git(repository, &["worktree", "add", "--quiet", "--force", "--detach", &folder, commit], None).map(drop)
    }

    fn apply_bytes(&self, patch: &[u8]) -> Result<(), String> {
        if self.repository.is_none() {
            return Err("the run has no repository".to_owned());
        }
        git(&self.folder, &["apply", "--binary", "--whitespace=nowarn", "-"], Some(patch)).map(drop)
    }

    fn write_list(&self, applied: &[Applied]) -> io::Result<()> {
        let draft = self.list.with_extension("draft");
        fs::write(&draft, serde_json::to_string(applied)?)?;
        fs::rename(draft, &self.list)
    }

    /// How many changes a process that starts now finds.
    pub(crate) fn lock_count(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Applied>> {
        self.applied.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Of `RUN/STEP.ATTEMPT/NUMBER`, the step.
pub(super) fn step_name(process: &str) -> &str {
    let attempt = process.rsplit_once('/').map_or(process, |(attempt, _)| attempt);
    let attempt = attempt.split_once('/').map_or(attempt, |(_, attempt)| attempt);
    attempt.rsplit_once('.').map_or(attempt, |(step, _)| step)
}

/// Runs Git, with nothing of a person's configuration that could run something: what it said, or why it failed.
pub(super) fn git(folder: &Path, arguments: &[&str], stdin: Option<&[u8]>) -> Result<Vec<u8>, String> {
    let failed = |error: io::Error| format!("`git` cannot be run: {error}");
    let mut command = Command::new("git");
    command.arg("-C").arg(folder).args(["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"]);
    command.args(arguments).env("GIT_TERMINAL_PROMPT", "0").env("LC_ALL", "C");
    command.stdin(if stdin.is_some() { Stdio::piped() } else { Stdio::null() });
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(failed)?;
    let feed = child.stdin.take().zip(stdin.map(<[u8]>::to_vec)).map(|(mut pipe, bytes)| {
        // Where it does not read to the end, it says why.
        std::thread::spawn(move || drop(pipe.write_all(&bytes)))
    });
    let output = child.wait_with_output().map_err(failed)?;
    if let Some(feed) = feed {
        let _ = feed.join();
    }
    match output.status.success() {
        true => Ok(output.stdout),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_called_by_its_step() {
        assert_eq!(step_name("20261128-000000-abcd/build.1/0"), "build");
        assert_eq!(step_name("20261128-000000-abcd/main.1/loop/build.2.1/0"), "main.1/loop/build.2");
    }
}
