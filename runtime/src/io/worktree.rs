//! Git worktrees of the workspace's repository, in which pipelines and tasks work apart from each other.
//!
//! In: a name for each of them, made of names of the plan. Out: a folder under `runs/RUN/worktrees`, on a branch
//! `swarm/RUN/NAME` of its own. Invariant: no attempt works in a tree that is not checked out in full, a tree that
//! exists is used again, and none with changes is removed, or with commits that no other branch has. What Git ignores is no
//! change: builds made most of it.

pub(crate) mod merge;
mod parts;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::io::home::{RunFolder, create_private};
use crate::io::process::read_stdout;
use crate::types::cancel::Cancel;

/// How long Git may take for a checkout, or for an answer.
const PATIENCE: Duration = Duration::from_secs(600);

/// The repository of a workspace, as Git is asked about it.
#[derive(Clone, Debug)]
pub(crate) struct Repository {
    workspace: PathBuf,
    /// The workspace, from the top of its checkout.
    prefix: PathBuf,
    environment: Vec<(OsString, OsString)>,
}

/// The working trees of one run.
#[derive(Debug)]
pub(crate) struct Worktrees {
    repository: Repository,
    /// The commit that every one of them begins at.
    commit: String,
    run: String,
    /// Where they lie.
    folder: PathBuf,
    /// Held while a tree is made: Git reads all other trees while it adds one, and fails where one of them is only half
    /// there.
    making: Mutex<()>,
}

/// The working tree of a job.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    pub trees: Arc<Worktrees>,
    /// Made of names of the plan, fit for a folder and a branch.
    pub name: String,
    /// Where its processes run, from the workspace.
    pub working_dir: Option<String>,
}

impl Repository {
    /// The repository that `workspace` is part of; `environment` is that of the processes that ask.
    ///
    /// # Errors
    /// Says what is missing, and what to type.
    pub(crate) fn find(workspace: &Path, environment: Vec<(OsString, OsString)>) -> Result<Repository, String> {
        let mut repository = Repository { workspace: workspace.to_owned(), prefix: PathBuf::new(), environment };
        let ask = |arguments: &[&str]| repository.git(workspace, arguments, &Cancel::default());
        let prefix = ask(&["rev-parse", "--is-inside-work-tree", "--show-prefix"]).map_err(|problem| {
            let workspace = workspace.display();
            match problem.contains("not found") && !problem.contains("repository") {
                true => format!("`worktree` needs Git: {problem}"),
                false => format!(
                    "`worktree` needs a Git repository, and `{workspace}` is in none that can be used ({problem}): \
                     type `git init`, `git add -A` and `git commit` there, or name another folder with `--workspace`"
                ),
            }
        })?;
        let prefix = prefix.lines().nth(1).unwrap_or_default();
        repository.prefix = PathBuf::from(prefix);
        Ok(repository)
    }

    /// The commit that the workspace is at.
    ///
    /// # Errors
    /// There is none yet: says what to type.
    pub(crate) fn commit(&self) -> Result<String, String> {
        let commit =
            self.git(&self.workspace, &["rev-parse", "--verify", "--quiet", "HEAD^{commit}"], &Cancel::default());
        commit.map(|commit| commit.trim().to_owned()).map_err(|_| {
            format!(
                "`worktree` begins at the last commit, and the repository of `{}` has none: type `git add -A` and \
                 `git commit` there",
                self.workspace.display()
            )
        })
    }

    fn git(&self, directory: &Path, arguments: &[&str], cancel: &Cancel) -> Result<String, String> {
        let argv: Vec<OsString> = std::iter::once(&"git").chain(arguments).map(OsString::from).collect();
        read_stdout(&argv, &self.environment, directory, PATIENCE, cancel)
    }
}

impl Worktrees {
    /// The working trees of `run`, in its folder.
    pub(crate) fn new(mut repository: Repository, commit: String, folder: &RunFolder) -> Worktrees {
        // So that a checkout which outlives a killed runner is found.
        repository.environment.push((OsString::from("SWARM_RUN"), OsString::from(&folder.id)));
        let (run, folder) = (folder.id.clone(), folder_in(&folder.path));
        Worktrees { repository, commit, run, folder, making: Mutex::default() }
    }

    /// The workspace as it is in the tree of this name, once the tree is ready.
    pub(crate) fn workspace_path(&self, name: &str) -> Option<PathBuf> {
        self.is_ready(name).then(|| self.folder.join(name).join(&self.repository.prefix))
    }

    /// Removes the trees in which nothing was changed, or all of which is on another branch. Says of the others what is in
    /// them, and where.
    pub(crate) fn clear(&self) -> Vec<String> {
        let mut kept = Vec::new();
        for name in list_trees(&self.folder).unwrap_or_default() {
            if !self.is_ready(&name) {
                // A person or a program has removed it.
                let _ = std::fs::remove_file(mark_path(&self.folder, &name));
                continue;
            }
            match self.describe_changes(&name) {
                Ok(None) => match self.remove(&name) {
                    Ok(()) => {}
                    Err(problem) => kept.push(self.describe_kept(&name, &format!("it cannot be removed: {problem}"))),
                },
                Ok(Some(what)) => kept.push(self.describe_kept(&name, what)),
                Err(problem) => {
                    kept.push(self.describe_kept(&name, &format!("Git does not say what is in it: {problem}")))
                }
            }
        }
        // It stays where something is in it.
        let _ = std::fs::remove_dir(&self.folder);
        kept
    }

    fn describe_kept(&self, name: &str, what: &str) -> String {
        let path = self.folder.join(name);
        format!("worktree `{name}` is kept, {what}: branch `{}`, in {}", self.branch(name), path.display())
    }

    /// What was done in a tree; none where nothing was.
    fn describe_changes(&self, name: &str) -> Result<Option<&'static str>, String> {
        let path = self.folder.join(name);
        let ask = |arguments: &[&str]| self.repository.git(&path, arguments, &Cancel::default());
        let status = ask(&["status", "--porcelain", "--untracked-files=normal", "--ignore-submodules=none"])?;
        let ends = ask(&["rev-parse", "HEAD", &self.reference(name)])?;
        let ends: Vec<&str> = ends.lines().collect();
        let mut committed = ends.iter().any(|end| *end != self.commit);
        if let [head, tip] = ends[..]
            && committed
            && head == tip
        {
            let holders = ask(&["for-each-ref", "--format=%(refname)", "--contains", tip, "refs/heads/"])?;
            let own = self.reference(name);
            committed = !holders.lines().any(|holder| holder != own);
        }
        Ok(match (status.is_empty(), committed) {
            (true, false) => None,
            (true, true) => Some("with commits"),
            (false, true) => Some("with commits, and changes that are not committed"),
            (false, false) => Some("with changes that are not committed"),
        })
    }

    fn remove(&self, name: &str) -> Result<(), String> {
        let path = self.folder.join(name);
        let ask = |arguments: &[&str]| self.repository.git(&self.repository.workspace, arguments, &Cancel::default());
        let reference = self.reference(name);
        let tip = ask(&["rev-parse", "--verify", &reference])?;
        ask(&["worktree", "remove", &path.to_string_lossy()])?;
        // Only as long as it is where it was looked at.
        ask(&["update-ref", "-d", &reference, tip.trim()])?;
        std::fs::remove_file(mark_path(&self.folder, name)).map_err(|error| error.to_string())
    }

    fn branch(&self, name: &str) -> String {
        format!("swarm/{}/{name}", self.run)
    }

    fn reference(&self, name: &str) -> String {
        format!("refs/heads/{}", self.branch(name))
    }

    fn is_ready(&self, name: &str) -> bool {
        mark_path(&self.folder, name).exists() && self.folder.join(name).join(".git").exists()
    }

    /// Makes the tree of this name, unless it is there.
    fn create_tree(&self, name: &str, cancel: &Cancel) -> Result<(), String> {
        if self.is_ready(name) {
            return Ok(());
        }
        let _making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_ready(name) {
            return Ok(());
        }
        let path = self.folder.join(name);
        let file = |error: io::Error| format!("worktree `{name}` cannot be made: {error}");
        create_private(&self.folder, true).map_err(file)?;
        if path.exists() && !mark_path(&self.folder, name).exists() {
            // A runner was killed while it was made, and no attempt has worked in it.
            std::fs::remove_dir_all(&path).map_err(file)?;
        }
        let ask = |arguments: &[&str]| self.repository.git(&self.repository.workspace, arguments, cancel);
        let place = path.to_string_lossy();
        let branch = self.branch(name);
        // Twice `--force`: what a killed runner left of it is registered, and locked.
        let mut arguments = vec!["worktree", "add", "--quiet", "--force", "--force"];
        match ask(&["rev-parse", "--verify", "--quiet", &self.reference(name)]) {
            Ok(_) => arguments.extend([&*place, &branch]),
            Err(_) => arguments.extend(["--no-track", "-b", &branch, &place, &self.commit]),
        }
        ask(&arguments).map_err(|problem| format!("worktree `{name}` cannot be made: {problem}"))?;
        std::fs::write(mark_path(&self.folder, name), "").map_err(file)
    }
}

impl Tree {
    /// The folder that processes run in, once the tree is there.
    ///
    /// # Errors
    /// It cannot be made, or has no such folder: says why.
    pub(crate) fn enter(&self, cancel: &Cancel) -> Result<Arc<PathBuf>, String> {
        let Tree { trees, name, working_dir } = self;
        trees.create_tree(name, cancel)?;
        let top = trees.folder.join(name);
        let path = top.join(&trees.repository.prefix).join(working_dir.as_deref().unwrap_or_default());
        let missing = |error: io::Error| {
            let folder = working_dir.as_deref().map_or(trees.repository.prefix.to_string_lossy(), Into::into);
            format!("worktree `{name}` has no folder `{folder}`: {error}; only what is committed is in it")
        };
        let (path, top) = (path.canonicalize().map_err(missing)?, top.canonicalize().map_err(missing)?);
        match path.starts_with(&top) {
            true => Ok(Arc::new(path)),
            false => Err(format!("the working folder of worktree `{name}` lies outside of it")),
        }
    }
}

/// Whether working trees of a run are kept in its folder.
pub(crate) fn any_in(run_folder: &Path) -> bool {
    list_trees(&folder_in(run_folder)).is_ok_and(|made| !made.is_empty())
}

fn folder_in(run_folder: &Path) -> PathBuf {
    run_folder.join("worktrees")
}

/// What says that a tree is checked out in full.
fn mark_path(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!(".{name}"))
}

/// The names of the trees that were made, in order.
fn list_trees(folder: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        names.extend(name.strip_prefix('.').map(str::to_owned));
    }
    names.sort();
    Ok(names)
}
