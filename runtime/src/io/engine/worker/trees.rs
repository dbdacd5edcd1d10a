//! The files of processes: working trees of the worker's clone, each at a commit with the patches of a run.
//!
//! In: a commit and patches. Out: a folder with these files, and at the end what was changed in it. A tree that no process
//! has any more is used again, and what was applied once is a commit that any tree can go to. Invariants: a tree has one
//! process; no hook, editor or signing program of the repository runs, and what a process does to the `.git` of its tree
//! changes nothing.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::io::home::{create_private, list_folder_names};
use crate::io::process::read_stdout_bytes;
use crate::types::cancel::Cancel;
use crate::types::engine::Files;

/// How long Git may take for one thing: a fetch of a large repository is the longest.
const PATIENCE: Duration = Duration::from_secs(1800);

/// The bytes of an answer of Git at most, and those of a patch.
const ANSWER: usize = 16 << 20;
const LONGEST: usize = 256 << 20;

/// The working trees of a worker.
#[derive(Debug)]
pub(super) struct Trees {
    folder: PathBuf,
    /// The clone; none where the worker has none.
    workspace: Option<PathBuf>,
    /// The environment of Git, and of a fetch, which may need the credentials of the worker.
    environment: Vec<(OsString, OsString)>,
    credentials: Vec<(OsString, OsString)>,
    state: Mutex<State>,
    /// Held while a tree is made: Git reads all other trees meanwhile. Also while something is fetched, so that each
    /// commit is fetched once.
    making: Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    /// Those that no process has, the last one used at the end.
    free: Vec<u32>,
    next: u32,
    /// The commits of files that were made: the commit and the patches, and what they are as one commit.
    known: HashMap<(String, Vec<String>), String>,
}

/// A working tree that a process has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tree {
    /// Its number.
    pub number: u32,
    /// Where it lies.
    pub path: PathBuf,
    /// The commit of the files in it.
    pub base: String,
}

/// What was changed in a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Changes {
    pub patch: Vec<u8>,
    pub paths: Vec<String>,
}

impl Trees {
    /// Those in `folder`, without those that processes have already.
    pub(super) fn new(
        folder: PathBuf,
        workspace: Option<PathBuf>,
        environment: Vec<(OsString, OsString)>,
        credentials: Vec<(OsString, OsString)>,
        taken: &BTreeSet<u32>,
    ) -> Trees {
        let found = list_folder_names(&folder).unwrap_or_default();
        let found: Vec<u32> = found.iter().filter_map(|name| name.parse().ok()).collect();
        let next = found.iter().chain(taken).max().map_or(0, |last| last.saturating_add(1));
        let trees =
            Trees { folder, workspace, environment, credentials, state: Mutex::default(), making: Mutex::default() };
        let free = found.into_iter().filter(|number| !taken.contains(number)).collect();
        *trees.lock() = State { free, next, known: HashMap::new() };
        trees
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A tree with these files. `read_patch` reads a patch by its digest. This waits for Git.
    ///
    /// # Errors
    /// It cannot be made: says what to type.
    pub(super) fn make(
        &self,
        files: &Files,
        read_patch: &dyn Fn(&str) -> Result<Vec<u8>, String>,
    ) -> Result<Tree, String> {
        let commit = files.commit.as_deref().unwrap_or_default();
        let is_id = matches!(commit.len(), 40 | 64) && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_id {
            return Err(format!("`{}` is no commit", commit.escape_debug()));
        }
        self.fetch(commit)?;
        let number = {
            let mut state = self.lock();
            state.free.pop().unwrap_or_else(|| {
                state.next += 1;
                state.next - 1
            })
        };
        let made = self.fill(number, files, read_patch);
        if made.is_err() {
            self.release(number);
        }
        made
    }

    /// No process has this tree any more.
    pub(super) fn release(&self, number: u32) {
        self.lock().free.push(number);
    }

    /// Has the commit in the clone.
    fn fetch(&self, commit: &str) -> Result<(), String> {
        let Some(workspace) = &self.workspace else {
            return Err("it needs the files of a repository: start this worker with `--workspace DIR`, a clone of it"
                .to_owned());
        };
        let files = (commit.to_owned(), Vec::new());
        if self.lock().known.contains_key(&files) {
            return Ok(());
        }
        let _making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        let object = format!("{commit}^{{commit}}");
        let is_there = || self.git(workspace, &self.environment, &["cat-file", "-e", &object]).is_ok();
        if !is_there() {
            let fetch = |words: &[&str]| self.git(workspace, &self.credentials, words).err();
            // Not every server gives out commits that no branch begins with.
            let mut problem = fetch(&["fetch", "--quiet", "origin", commit]);
            if !is_there() {
                problem = fetch(&["fetch", "--quiet", "--all", "--tags"]).or(problem);
            }
            if !is_there() {
                let problem = problem.unwrap_or_else(|| "no branch of `origin` has it".to_owned());
                let folder = workspace.display();
                return Err(format!(
                    "commit {commit} is not in `{folder}` ({problem}): push it, or type `git fetch` there"
                ));
            }
        }
        self.lock().known.insert(files, commit.to_owned());
        Ok(())
    }

    fn fill(
        &self,
        number: u32,
        files: &Files,
        read_patch: &dyn Fn(&str) -> Result<Vec<u8>, String>,
    ) -> Result<Tree, String> {
        let path = self.path(number);
        let (mut base, done) = self.find_known(files);
        let failed = |problem: String| format!("its files cannot be made: {problem}");
        if self.reset(number, &base).is_err() {
            self.create(number, &base).map_err(failed)?;
        }
        for (at, digest) in files.patches.iter().enumerate().skip(done) {
            let patch = read_patch(digest).map_err(failed)?;
            base = self.apply(number, &patch).map_err(|problem| failed(format!("patch {digest}: {problem}")))?;
            let known = (files.commit.clone().unwrap_or_default(), files.patches[..=at].to_vec());
            self.lock().known.insert(known, base.clone());
        }
        if let Some(commit) = files.commit.as_deref().filter(|commit| *commit != base) {
            // What the run has changed is not committed where it goes on in one place either: `git diff HEAD` shows it.
            self.in_tree(number, &["reset", "--quiet", "--soft", commit], &[]).map_err(failed)?;
        }
        Ok(Tree { number, path, base })
    }

    /// The commit with most of these patches that there is, and how many it has.
    fn find_known(&self, files: &Files) -> (String, usize) {
        let state = self.lock();
        let mut sought = (files.commit.clone().unwrap_or_default(), files.patches.clone());
        while !sought.1.is_empty() {
            if let Some(commit) = state.known.get(&sought) {
                return (commit.clone(), sought.1.len());
            }
            sought.1.pop();
        }
        (sought.0, 0)
    }

    /// Brings a tree that is there to a commit, whatever was done in it.
    fn reset(&self, number: u32, commit: &str) -> Result<(), String> {
        if !self.git_folder(number).join("HEAD").exists() {
            return Err("it is not there".to_owned());
        }
        // Of a Git that was killed in it.
        let _ = fs::remove_file(self.git_folder(number).join("index.lock"));
        self.in_tree(number, &["checkout", "--quiet", "--force", "--detach", commit], &[])?;
        // Twice `--force`: repositories in it go as well.
        self.in_tree(number, &["clean", "--quiet", "-ffdx"], &[]).map(drop)
    }

    fn create(&self, number: u32, commit: &str) -> Result<(), String> {
        let _making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(workspace) = &self.workspace else { return Err("there is no clone".to_owned()) };
        let path = self.path(number);
        create_private(&self.folder, true).map_err(|error| error.to_string())?;
        let _ = fs::remove_dir_all(&path);
        let _ = fs::remove_file(self.link(number));
        let place = path.to_string_lossy();
        // Twice `--force`: what a killed worker left of it is registered, and locked.
        let add = ["worktree", "add", "--quiet", "--force", "--force", "--detach", &place, commit];
        self.git(workspace, &self.environment, &add)?;
        // Asked before a process has been in it: later its `.git` may lead elsewhere.
        let folder = self.git(&path, &self.environment, &["rev-parse", "--absolute-git-dir"])?;
        let folder = String::from_utf8_lossy(&folder).trim_end_matches('\n').to_owned();
        std::os::unix::fs::symlink(folder, self.link(number)).map_err(|error| error.to_string())
    }

    /// Applies a patch to a tree without changes: the commit of the result.
    fn apply(&self, number: u32, patch: &[u8]) -> Result<String, String> {
        self.in_tree(number, &["apply", "--binary", "--index", "--whitespace=nowarn"], patch)?;
        self.in_tree(
            number,
            &["commit", "--quiet", "--allow-empty", "--no-verify", "--message=changes of the run"],
            &[],
        )?;
        let commit = self.in_tree(number, &["rev-parse", "--verify", "HEAD"], &[])?;
        Ok(String::from_utf8_lossy(&commit).trim().to_owned())
    }

    /// What was changed in a tree since it was made, committed or not, without what Git ignores; none where nothing was.
    ///
    /// # Errors
    /// Git fails, or the changes are too long.
    pub(super) fn find_changes(&self, number: u32, base: &str) -> Result<Option<Changes>, String> {
        let _ = fs::remove_file(self.git_folder(number).join("index.lock"));
        // A new file may be what Git takes for an old one by its time.
        self.in_tree(number, &["add", "--all"], &[])?;
        let names = ["diff", "--cached", "--name-only", "-z", "--no-renames", "--no-ext-diff", base, "--"];
        let names = self.in_tree(number, &names, &[])?;
        if names.is_empty() {
            return Ok(None);
        }
        let paths: Result<Vec<String>, _> = names
            .split(|&byte| byte == 0)
            .filter(|name| !name.is_empty())
            .map(|name| String::from_utf8(name.to_vec()))
            .collect();
        let paths = paths.map_err(|_| "a file was changed whose name is no text".to_owned())?;
        let mut words = vec!["diff", "--cached", "--binary", "--full-index", "--no-renames", "--no-ext-diff"];
        words.extend(["--no-textconv", "--no-color", "--src-prefix=a/", "--dst-prefix=b/", base, "--"]);
        let patch = self.in_tree(number, &words, &[])?;
        match patch.len() < LONGEST {
            true => Ok(Some(Changes { patch, paths })),
            false => Err(format!("its changes are longer than {} MB", LONGEST >> 20)),
        }
    }

    /// Where a tree lies.
    pub(super) fn path(&self, number: u32) -> PathBuf {
        self.folder.join(number.to_string())
    }

    /// A link to what Git keeps of a tree.
    fn link(&self, number: u32) -> PathBuf {
        self.folder.join(format!(".{number}"))
    }

    fn git_folder(&self, number: u32) -> PathBuf {
        fs::read_link(self.link(number)).unwrap_or_else(|_| self.link(number))
    }

    /// Git in a tree, whatever its `.git` says.
    fn in_tree(&self, number: u32, words: &[&str], stdin: &[u8]) -> Result<Vec<u8>, String> {
        let path = self.path(number);
        let mut environment = self.environment.clone();
        let who = [("NAME", "swarmc"), ("EMAIL", "swarmc@swarm.invalid"), ("DATE", "@0 +0000")];
        for (what, value) in who {
            // So that the same patches make the same commit.
            for role in ["AUTHOR", "COMMITTER"] {
                environment.push((format!("GIT_{role}_{what}").into(), value.into()));
            }
        }
        environment.push(("GIT_DIR".into(), self.git_folder(number).into()));
        environment.push(("GIT_WORK_TREE".into(), path.clone().into()));
        run_git(&path, &environment, words, stdin)
    }

    fn git(&self, folder: &Path, environment: &[(OsString, OsString)], words: &[&str]) -> Result<Vec<u8>, String> {
        run_git(folder, environment, words, &[])
    }
}

/// Runs Git: whatever the repository says, it starts no hook, and asks no person.
fn run_git(
    folder: &Path,
    environment: &[(OsString, OsString)],
    words: &[&str],
    stdin: &[u8],
) -> Result<Vec<u8>, String> {
    let settings = [
        "core.hooksPath=/dev/null",
        "core.fsmonitor=false",
        "core.quotePath=false",
        "commit.gpgSign=false",
        "gc.auto=0",
        "maintenance.auto=false",
    ];
    let argv = ["git", "--literal-pathspecs"].into_iter();
    let argv = argv.chain(settings.iter().flat_map(|setting| ["-c", *setting])).chain(words.iter().copied());
    let argv: Vec<OsString> = argv.map(OsString::from).collect();
    let is_diff = words.contains(&"--binary");
    let mut environment = environment.to_vec();
    environment.extend(
        [("GIT_TERMINAL_PROMPT", "0"), ("GIT_EDITOR", "false")].map(|(name, value)| (name.into(), value.into())),
    );
    let stdin = Some(stdin).filter(|bytes| !bytes.is_empty());
    let limits = (PATIENCE, if is_diff { LONGEST } else { ANSWER });
    read_stdout_bytes(&argv, &environment, (folder, stdin), limits, &Cancel::default())
}
